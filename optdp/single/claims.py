"""Claims of a file against what is recomputed, and prices that prove a lower bound again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.files.canonical import shown
from optdp.numbers.composition import LARGEST
from optdp.numbers.exact import decimal_down, figure, to_fraction
from optdp.single.added_proof import parse_prices, proved
from optdp.single.bound_proof import FilePrices, proved_bound
from optdp.single.over_time import MOST_RELEASES, composed
from optdp.single.problem import SingleLTE
from optdp.work.account import EffortError

if TYPE_CHECKING:
    from optdp.single import bound

_PRICES = re.compile(r"(?:-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[-+]?[0-9]{1,3})?(?: |$))*")
ROUNDED = Fraction(1, 10**12)
"""The error of geometric noise is claimed rounded up by no more than this, and as much of itself."""
STORED_PRICES = 200_000
"""At most so many dual prices go into a file, where they prove the lower bound again."""


def at_most(name: str, found: Fraction | None, claimed: Any) -> None:
    """A recomputed figure must not exceed the claimed one."""
    if claimed == "infinite" and name == "ordinary_epsilon":
        return
    limit = number(claimed, name)
    if found is None or figure(found) > limit:
        real = "infinite" if found is None else f"{float(found):.15g}"
        raise CertificateError(f"The claim {name} <= {claimed[:40]} does not hold. Found {real}.")
    if name == "baseline_mae" and limit > found + ROUNDED * (1 + found):  # more would flatter the table beside it
        raise CertificateError(
            f"The claim baseline_mae must be the error of geometric noise, {float(found):.15g}. Found {claimed[:40]}."
        )


def check_observed(found: Sequence[Fraction | None], claimed: Any) -> None:
    """Of several observers, the epsilon against each must be claimed, and hold; of one there is nothing more to say."""
    if len(found) < 2 and claimed is None:
        return
    if len(found) < 2 or not isinstance(claimed, list) or len(claimed) != len(found):
        raise ArtifactError(
            f"The claim observed must have the epsilon against each of several observers, {len(found)} here. "
            f"Found {shown(claimed)}."
        )
    for epsilon, stated in zip(found, claimed, strict=True):
        at_most("observed", epsilon, stated)


def check_over_time(ordinary: Fraction | None, claim: Mapping[str, Any]) -> None:
    """What several releases are claimed to have together must follow from the ordinary epsilon of one."""
    if "over_time" not in claim:
        return
    stated = claim["over_time"]
    if not isinstance(stated, dict) or stated.keys() != {"releases", "epsilon", "delta"}:
        raise ArtifactError(f"The claim over_time must have releases, epsilon and delta. Found {shown(stated)}.")
    releases, delta = stated["releases"], number(stated["delta"], "delta")
    if type(releases) is not int or not 1 <= releases <= MOST_RELEASES or not 0 <= delta < 1:
        raise ArtifactError(
            f"The claim over_time must be of 1 to {MOST_RELEASES:,} releases, and a delta from 0 to below 1. "
            f"Found {shown(stated)}."
        )
    if not 0 <= number(stated["epsilon"], "epsilon") <= LARGEST:
        raise ArtifactError(f"The claim over_time must have an epsilon of 0 to {LARGEST}. Found {shown(stated)}.")
    at_most("over_time", composed(releases, ordinary, delta), stated["epsilon"])


def check_keys(claim: Mapping[str, Any], known: Set[str]) -> None:
    """Refuse a claim about something that nobody recomputes."""
    if unknown := claim.keys() - known:
        raise ArtifactError(f"A claim must be of {', '.join(sorted(known))}. Found {shown(sorted(unknown))}.")
    if type(claim.get("never_worse", False)) is not bool:
        raise ArtifactError(f"The claim never_worse must be true or false. Found {shown(claim['never_worse'])}.")


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


@runtime_checkable
class WithDocument(Protocol):
    """Prices that know how a file has them."""

    def document(self) -> dict[str, Any] | None: ...


def stored(prices: bound.Prices | WithDocument | None) -> dict[str, Any] | None:
    """Prices as a file has them; None if there are none, or too many."""
    if prices is None:
        return None
    if isinstance(prices, WithDocument):
        return prices.document()
    chain = [] if prices.v is None else [row for way in prices.v for row in way]
    if prices.z.size + prices.u.size + sum(row.size for row in chain) > STORED_PRICES:
        return None
    lines = [*enumerate(prices.u)]
    named: dict[str, Any] = {}
    if prices.sights is not None:  # what each line prices, and which way; a line of zeros says nothing
        lines = [(i, row) for i, row in lines if row.any()]
        named = {"at": [[*prices.sights[i // 2], i % 2] for i, _ in lines]}
    document = {"z": _numbers(prices.z), "u": [_numbers(row) for _, row in lines]} | named
    return document | ({"v": [_numbers(row) for row in chain]} if chain else {})


def proves(problem: SingleLTE | None, claimed: Any, provenance: Mapping[str, Any], value: Fraction) -> bool:
    """Prove a claimed lower bound of `problem` again; raise if the stored prices do not, False if that would take long.

    `value` is the objective of what the file holds, which no true bound exceeds. What is proved is rounded down to the
    20 decimals of a claim.
    """
    additive = problem is not None and problem.form == "additive"
    prices = None if additive else prices_of(provenance)
    if claimed is None:
        return False
    check_possible(claimed, value)
    if problem is None or (prices is None and not additive) or not provenance.get("prices"):
        raise ArtifactError("A lower bound may be claimed only with the prices that prove it. Found none that do.")
    if prices is None:
        return check_proved(claimed, lambda: proved(problem, parse_prices(provenance["prices"])))
    return check_proved(claimed, lambda: proved_bound(problem, prices))


def check_possible(claimed: Any, value: Fraction) -> None:
    """No true lower bound exceeds the objective of what the file holds."""
    if number(claimed, "lower_bound") > figure(value):
        raise CertificateError(
            f"A lower bound must be at most the objective, {float(value):.15g}. Found the claim {claimed[:40]}."
        )


def check_proved(claimed: Any, proof: Callable[[], Fraction | None]) -> bool:
    """Raise if less is proved than is claimed; False if that would take long, or cannot be told."""
    try:
        found = proof()
    except EffortError:
        return False
    except ProblemError as error:
        raise ArtifactError(f"The lower bound cannot be proved again: {error}") from None
    if found is not None and Fraction(decimal_down(found)) < number(claimed, "lower_bound"):
        raise CertificateError(f"The claimed lower bound {claimed[:40]} is not proved. Found {float(found):.15g}.")
    return found is not None


def prices_of(provenance: Mapping[str, Any]) -> FilePrices | None:
    """The prices that a file carries: doubles in text."""
    found = provenance.get("prices")
    if found is None:
        return None
    try:
        parts = [[found["z"]], found["u"], found.get("v", [])]
        if not found.keys() <= {"z", "u", "v", "at"} or not all(isinstance(part, list) for part in parts):
            raise ValueError
        at = found.get("at", [])
        if any(type(place) is not list or [type(number) for number in place] != [int] * 5 for place in at):
            raise ValueError
        if not all(_PRICES.fullmatch(line) for part in parts for line in part):
            raise ValueError
        (z,), u, v = ([[*map(float, line.split())] for line in part] for part in parts)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ArtifactError(
            "Prices must be z, u and v, numbers in text, and at, lists of five. Found others. The file was changed."
        ) from None
    if not all(math.isfinite(price) for line in (z, *u, *v) for price in line):
        raise ArtifactError("Prices must be finite. Found one that is not. The file was changed.")
    return FilePrices(z, u, v, [(o, k, one, other, way) for o, k, one, other, way in at])


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)
