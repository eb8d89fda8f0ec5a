"""Several releases from one table: a total for all of them together, and what is left for each.

The total is one of ordinary differential privacy, `(epsilon, delta)`, because the data of the same people come again
and after the first release an observer knows more than the prior. What is searched for is the largest ordinary epsilon
of each release such that all of them keep the total (`numbers.composition.largest_each`), by the optimal bound: their
number is fixed beforehand. It takes the place of `fallback_epsilon`; or, if the problem states no epsilon under the
prior, of `epsilon` itself, with an observer who knows everybody else.

The bound is that of randomized response at the table's ordinary epsilon. Tables for contributions 0 and 1 without an
epsilon under the prior were found to attain it; others may reveal less, which is not counted: what is proved is an
upper bound, and the one that a planned ledger uses. `tests/single/test_over_time.py` compares with whole profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import attrs

from optdp.errors import CertificateError, ProblemError
from optdp.files.models import Exact, Strict
from optdp.numbers.composition import largest_each, optimal, total_of
from optdp.numbers.exact import Number, check_whole, decimal_up, show, shown

if TYPE_CHECKING:
    from optdp.single.problem import SingleLTE

MOST_RELEASES = 10_000
"""As many as a ledger has entries."""


def _epsilon(given: Number) -> Fraction:
    return total_of(given, 0, " of total")[0]


def _delta(given: Number) -> Fraction:
    return total_of(1, given, " of total")[1]


@attrs.frozen(repr=False)
class Total:
    """What all releases together may reveal about anyone: ordinary (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : above 0, at most 1000.
    delta : 0 by default, below 1.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, Total
    >>> SingleLTE(Population.binomial(100, "0.1"), releases=52, total=Total(4, "1e-6")).epsilon
    Fraction(75147049, 625000000)
    """

    epsilon: Fraction = attrs.field(converter=_epsilon)
    delta: Fraction = attrs.field(default=Fraction(0), converter=_delta)

    @property
    def describe(self) -> str:
        return f"{brief(self.epsilon)} at delta {brief(self.delta)}"

    def __repr__(self) -> str:
        return f"Total(epsilon {self.describe.replace(' at', ',')})"

    def spec(self) -> dict[str, str]:
        """The total as it stands in a problem file."""
        return {"epsilon": show(self.epsilon), "delta": show(self.delta)}


class TotalTable(Strict):
    """A total: what all releases together may reveal, ordinary (epsilon, delta)-differential privacy."""

    epsilon: Exact
    delta: Exact = 0

    def build(self) -> Total:
        return Total(self.epsilon, self.delta)


def as_total(given: Any) -> Total | None:
    if given is None or isinstance(given, Total):
        return given
    if not isinstance(given, Mapping) or not {"epsilon"} <= given.keys() <= {"epsilon", "delta"}:
        raise ProblemError(f"total must have an epsilon, and may have a delta. Found {shown(given)}.")
    return Total(**given)


def each_of(releases: int | None, whole: Total | None) -> Fraction | None:
    """The largest ordinary epsilon of each release; None if no total is stated."""
    if releases is None and whole is None:
        return None
    if releases is None:
        raise ProblemError("A total is for a number of releases. Found no releases. Say how many there will be.")
    check_whole(releases, "releases", 1, MOST_RELEASES)
    if whole is None:
        raise ProblemError('releases must come with a total. Found none. Add total = {epsilon = "4", delta = "1e-6"}.')
    return largest_each(releases, whole.epsilon, whole.delta)


@dataclass(frozen=True)
class OverTime:
    """What all releases together reveal, proved from the ordinary epsilon of one."""

    releases: int
    total: Total
    each: Fraction
    """The ordinary epsilon that each release may have."""
    epsilon: Fraction
    """That of all together at the total's delta, an upper bound that is at most the total's epsilon."""
    meaning: str
    """What holds for data that are new every period, and what does not."""

    @classmethod
    def of(cls, problem: SingleLTE, ordinary: Fraction | None) -> OverTime | None:
        """For a table with a proved ordinary epsilon; None if there is no total, CertificateError if it is exceeded."""
        if problem.releases is None or problem.total is None or problem.each is None:
            return None
        found = composed(problem.releases, ordinary, problem.total.delta)
        if found is None or found > problem.total.epsilon:
            real = "infinite" if found is None else f"{float(found):.12g}"
            raise CertificateError(
                f"{problem.releases:,} releases must have at most {problem.total.describe} together. Found {real}."
            )
        return cls(problem.releases, problem.total, problem.each, found, meaning(problem, problem.releases))

    @property
    def line(self) -> str:
        """One line for people."""
        return f"{line(self.claim())} (proved; the total is {brief(self.total.epsilon)}, so {show(self.each)} for each)"

    def claim(self) -> dict[str, Any]:
        """As a file claims it."""
        return {"releases": self.releases, "epsilon": decimal_up(self.epsilon), "delta": show(self.total.delta)}

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "releases": self.releases, "total": self.total.spec(), "epsilon_each": show(self.each),
            "certified_epsilon": decimal_up(self.epsilon), "meaning": self.meaning,
        }  # fmt: skip


def line(claim: Mapping[str, Any]) -> str:
    """A proved claim about several releases in a few words."""
    epsilon, delta = decimal_up(Fraction(claim["epsilon"]), 6), brief(Fraction(claim["delta"]))
    number = "1 release" if claim["releases"] == 1 else f"{claim['releases']:,} releases"
    return f"{number}: {epsilon} together at delta {delta}"


def brief(value: Fraction) -> str:
    """A number for a sentence: as it is if that is short, else rounded up to six digits."""
    text = show(value)
    if len(text) <= 12:
        return text
    rounded = Context(prec=6, rounding=ROUND_CEILING).divide(Decimal(value.numerator), Decimal(value.denominator))
    return str(rounded.normalize())


def composed(releases: int, ordinary: Fraction | None, delta: Fraction) -> Fraction | None:
    """The epsilon of all releases together; None if it is infinite.

    That of one is first rounded up to the 20 decimals that files and ledgers have.
    """
    return None if ordinary is None else optimal({Fraction(decimal_up(ordinary)): releases}, delta)


def meaning(problem: SingleLTE, releases: int) -> str:
    """What a proved total means for data that are new every period, and for data that are not."""
    held = (
        "The total holds whatever anyone knows, whether the data are new every period or the same again, even for "
        "people who are in every release."
    )
    if problem.fallback_epsilon is None:
        return held
    return (
        f"{held} If everyone else's data are new every period, that is, drawn afresh and independent of what they "
        f"were before, epsilon is {show(problem.epsilon)} for one release against someone who knows "
        f"{problem.observers[0].knows}, and {show(releases * problem.epsilon)} for all of them. If people stay, or "
        "what they contribute persists, earlier releases say something about the others: then only the total holds."
    )
