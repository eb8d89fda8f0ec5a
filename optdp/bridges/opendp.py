"""A noise matrix as a measurement of OpenDP: it releases, it chains after a count or a sum, and it composes.

The measurement takes a whole number, and distances are absolute ones: the sums of two data sets differ by `d`. It does
two things, one after the other:

1. Put the number between 0 and `last`, the inputs that the table serves. `|clamp(x) - clamp(y)| <= |x - y|`, so that
   distances do not grow, and every whole number is a valid input.
2. Draw from the table's row, exactly, with the operating system's randomness.

The map of distances is that of `by_distance`: for unit steps it is `d` times what neighbouring inputs give
away, rounded up to a float. Between two inputs at distance `d` lie `d` unit steps, all of whose inputs have rows, and
the logarithms of the quotients add up.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from optdp.artifact import verify
from optdp.bridges.accounting import by_distance
from optdp.errors import ProblemError
from optdp.extras import install
from optdp.mechanism.added_noise import table_only
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import up

FEATURES = ("contrib", "honest-but-curious")
"""What OpenDP asks a user to agree to before a measurement may come from outside."""
WHOLE = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
"""What OpenDP calls its types of whole numbers."""
LARGEST_OUTPUT = 2**63 - 1
"""Releases are 64-bit numbers for OpenDP. Geometric noise goes on for ever; beyond, it is cut off after the fact."""


def measurement(matrix: NoiseMatrix, largest: int = 1, T: str = "int") -> Any:
    """An `opendp.prelude.Measurement` from whole numbers of type `T` to `dp.max_divergence()`.

    `largest` is how far one person can move the sum. It only sharpens the map for distances above 1. `T` must be the
    type that comes out of the transformation before it: OpenDP's counts and sums are "int" (32 bits) unless told
    otherwise.
    """
    bounds = by_distance(matrix, largest)
    dp = _opendp()

    def release(x: int) -> int:
        (released,) = matrix.sample(min(max(x, 0), matrix.last), 1)
        return min(max(released, -LARGEST_OUTPUT), LARGEST_OUTPUT)

    def privacy_map(distance: int) -> float:
        if distance < 0:
            raise ValueError(f"A distance must not be negative. Found {distance}.")
        return up(bounds.epsilon(distance))

    return dp.m.make_user_measurement(
        dp.atom_domain(T=T),
        dp.absolute_distance(T=T),
        output_measure=dp.max_divergence(),
        function=release,
        privacy_map=privacy_map,
        TO="i64",
    )


def measurement_from(path: str | Path, T: str = "int") -> Any:
    """The measurement of an artifact, after all its claims have been verified."""
    _opendp()
    checked = verify(path)
    return measurement(table_only(checked.matrix, "OpenDP"), checked.problem.largest, T)


def in_context() -> None:
    """Let queries of OpenDP's `Context` end with `.optdp(solution)`: `ctx.query().count().optdp(solution).release()`.

    `solution` may also be the file of an artifact, which is verified first, when the query is built. The query is
    refused as any other if the measurement's ordinary epsilon is more than the context has left for it.
    """
    _opendp()
    context = import_module("opendp.context")
    if "optdp" not in context.constructors:
        context.register(make_optdp, "optdp")


def make_optdp(input_domain: Any, input_metric: Any, solution: Any) -> Any:
    """The measurement of a solution, or of the file of one, for whole numbers of the type of a domain."""
    given = str(input_domain.carrier_type)
    if given not in WHOLE or str(input_domain) != str(_opendp().atom_domain(T=given)):
        raise ProblemError(f".optdp(...) comes after a count or a sum of whole numbers. Found {input_domain}.")
    if isinstance(solution, str | Path):
        return measurement_from(solution, given)
    return measurement(table_only(solution.mechanism, "OpenDP"), solution.problem.largest, given)


def _opendp() -> Any:
    """OpenDP, if it is there and its user has agreed to measurements that OpenDP has not vetted itself."""
    try:
        dp = import_module("opendp.prelude")
    except ImportError:
        raise ProblemError(f"This needs OpenDP. Install it: {install('opendp')}.") from None
    try:
        dp.assert_features(*FEATURES)
    except import_module("opendp.mod").OpenDPException:
        raise ProblemError(
            "OpenDP takes measurements from outside only from users who say that they trust them. If you do, call "
            'opendp.prelude.enable_features("contrib", "honest-but-curious") first.'
        ) from None
    return dp
