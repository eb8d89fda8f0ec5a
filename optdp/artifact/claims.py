"""Claims of a file against what is recomputed, and prices that prove a lower bound again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optdp.artifact.bound_proof import Prices, proved_bound
from optdp.artifact.strict_json import shown
from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.math.effort import EffortError
from optdp.math.exact import to_fraction
from optdp.noise.single import SingleLTE

if TYPE_CHECKING:
    from optdp.noise import bound

STORED_PRICES = 200_000
"""At most so many dual prices go into a file, where they prove the lower bound again."""


def at_most(name: str, found: Fraction | None, claimed: Any) -> None:
    """A recomputed figure must not exceed the claimed one."""
    if claimed == "infinite" and name == "ordinary_epsilon":
        return
    limit = number(claimed, name)
    if found is None or found > limit:
        real = "infinite" if found is None else f"{float(found):.15g}"
        raise CertificateError(f"The claim {name} <= {claimed[:40]} does not hold. Found {real}.")


def number(text: Any, name: str) -> Fraction:
    """The number that a claim states."""
    if not isinstance(text, str):
        raise ArtifactError(f"The claim must state {name} as a decimal string. Found {shown(text)}.")
    try:
        value = to_fraction(text, name)
    except ProblemError as error:
        raise ArtifactError(str(error)) from None
    if abs(value) > 10**300:  # more than a floating point number can show
        raise ArtifactError(f"The claim must state {name} as a number of a usual size. Found {shown(text)}.")
    return value


def stored(prices: bound.Prices | None) -> dict[str, Any] | None:
    """Prices as a file has them; None if there are none, or too many."""
    if prices is None or prices.v is not None or prices.z.size + prices.u.size > STORED_PRICES:
        return None
    return {"z": _numbers(prices.z), "u": [_numbers(row) for row in prices.u]}


def prices_of(provenance: Mapping[str, Any]) -> Prices | None:
    """The prices that a file carries."""
    found = provenance.get("prices")
    if found is None:
        return None
    try:
        prices = Prices([*map(float, found["z"].split())], [[*map(float, row.split())] for row in found["u"]])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ArtifactError("The stored prices must be numbers. The file was changed.") from None
    if not all(math.isfinite(price) for line in (prices.z, *prices.u) for price in line):
        raise ArtifactError("The stored prices must be finite. The file was changed.")
    return prices


def proved(problem: SingleLTE, claimed: Any, prices: Prices) -> bool:
    """Prove a claimed lower bound again, and raise if the prices do not prove it; False if that would take long."""
    limit = number(claimed, "lower_bound")
    try:
        found = proved_bound(problem, prices)
    except EffortError:
        found = None
    if found is not None and found < limit:
        raise CertificateError(f"The claimed lower bound {claimed[:40]} is not proved. Found {float(found):.15g}.")
    return found is not None


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)
