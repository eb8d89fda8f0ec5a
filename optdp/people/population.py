"""People, what each may contribute, and the distribution of their sum.

All that privacy under a prior asks of a population is, for each distinct person and each contribution `w` of that
person, the distribution of the sum *given* `w` (A, Definition 5). For independent people that is the distribution of
"the others", shifted by `w`. Every probability is an exact rational.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

from flint import fmpz_poly

from optdp.errors import ProblemError
from optdp.numbers.exact import Number, show, to_fraction
from optdp.numbers.pmf import BinomialPmf, ExactPmf, Pmf, common_denominator, excess_over_one
from optdp.objects import Public
from optdp.work.account import spend

if TYPE_CHECKING:
    import numpy.typing as npt

EXACT_LIMIT = 5000
"""Largest sum for which a binomial is held as integers; beyond it as a closed form."""

EXACT_BYTES = 1.5e8
"""The most memory that an exact distribution may take."""

MOST_PLACES = 4_000_000
"""The most places that all laws of the sum given a contribution may have."""

Distribution = tuple[Fraction, ...]


@dataclass(frozen=True)
class Person:
    """A kind of person: how many there are (0: unknown), and the law of the sum given each contribution `0..D`."""

    count: int
    conditionals: tuple[Pmf, ...]

    @property
    def largest(self) -> int:
        """The largest contribution, `D`."""
        return len(self.conditionals) - 1


@dataclass(frozen=True)
class Population(Public):
    """Who is counted, and the distribution of their sum: the prior. Make one with a constructor, listed below.

    Probabilities are exact: write decimals as strings ("0.1"), because a float stands for its exact binary fraction.

    Parameters
    ----------
    last : int
        The largest possible sum; inputs are `0..last`.
    people : tuple of Person
        Each distinct kind of person, with the law of the sum given each contribution.
    total : Pmf
        The law of the sum.
    spec : mapping
        The population as it stands in a problem file.
    laws : tuple
        Each distinct law of one person's contribution and how many follow it; empty if people are not independent.

    Examples
    --------
    >>> from optdp import Population
    >>> Population.binomial(100, "0.1")
    Population(binomial: 100 people, p = 0.1, contributions 0..1)
    >>> Population.iid(10, ["0.5", "0.3", "0.2"]).largest
    2
    """

    last: int
    people: tuple[Person, ...]
    total: Pmf
    spec: Mapping[str, Any] = field(compare=False)
    laws: tuple[tuple[Distribution, int], ...] = ()

    @property
    def size(self) -> int:
        """How many people there are; 0 if only the law of the others is known."""
        return sum(person.count for person in self.people)

    @property
    def largest(self) -> int:
        """The largest contribution of anybody, `D`: the sensitivity of the sum."""
        return max(person.largest for person in self.people)

    @property
    def bytes_needed(self) -> float:
        """About how much memory the exact laws take; none if there is a closed form."""
        laws = {id(law): law for law in (self.total, *(person.conditionals[0] for person in self.people))}
        exact = [law for law in laws.values() if isinstance(law, ExactPmf)]
        places = sum(len(person.conditionals) for person in self.people) * (self.last + 1) if exact else 0
        return sum(len(law.weights) * (law.denominator.bit_length() / 8 + 40) for law in exact) + 8.0 * places

    @cached_property
    def describe(self) -> str:
        """One line for people to read."""
        kinds = f", {len(self.people)} kinds" if len(self.people) > 1 else ""
        people = f"{self.size:,} people" if self.size > 1 else "1 person" if self.size else f"sums 0..{self.last}"
        chance = f", p = {self.spec['p']}" if "p" in self.spec else ""
        narrow = f", conservative {self.spec['conservative']}" if "conservative" in self.spec else ""
        return f"{self.spec['kind']}: {people}{kinds}{chance}, contributions 0..{self.largest}{narrow}"

    def __repr__(self) -> str:
        return f"Population({self.describe})"

    # ------------------------------------------------------------------ constructors

    @staticmethod
    def binomial(n: int, p: Number) -> Population:
        """`n` people who each contribute 1 with probability `p`, independently, and else 0.

        Examples
        --------
        >>> Population.binomial(100, "0.1").last
        100
        """
        people = _people_count(n)
        chance = to_fraction(p, "p")
        if not 0 <= chance <= 1:
            raise ProblemError(f"p must lie in [0, 1]. Found {show(chance)}.")
        spec = {"kind": "binomial", "n": people, "p": show(chance)}
        return _independent({(1 - chance, chance): people}, spec)

    @staticmethod
    def iid(n: int, person_pmf: Sequence[Number]) -> Population:
        """`n` people who each contribute `0..D` with the probabilities `person_pmf`, independently.

        Examples
        --------
        >>> Population.iid(10, ["0.5", "0.3", "0.2"])
        Population(iid: 10 people, contributions 0..2)
        """
        people = _people_count(n)
        law = checked_law(person_pmf, "pmf")
        return _independent({law: people}, {"kind": "iid", "n": people, "pmf": [show(value) for value in law]})

    @staticmethod
    def independent(pmfs: Sequence[Sequence[Number]]) -> Population:
        """Independent people that differ, one law each. People with the same law are recognised.

        Examples
        --------
        >>> Population.independent([["0.5", "0.5"], ["0.9", "0.1"], ["0.9", "0.1"]])
        Population(independent: 3 people, 2 kinds, contributions 0..1)
        """
        if len(pmfs) == 0:
            raise ProblemError("An independent population needs at least one person. Found none.")
        laws: Counter[Distribution] = Counter()
        for i, pmf, count in _alike(pmfs):
            laws[checked_law(pmf, f"pmf of person {i}")] += count
        listed = [{"count": count, "pmf": [show(value) for value in law]} for law, count in laws.items()]
        return _independent(dict(laws), {"kind": "independent", "people": listed})

    @staticmethod
    def from_counts(counts: Sequence[int], n: int | None = None, smoothing: Number = 1) -> Population:
        """People like those of a past survey: `counts[w]` of them contributed `w`.

        `smoothing` is added to every count (Laplace's rule for 1), so that what was never seen is not impossible.

        Examples
        --------
        >>> Population.from_counts([80, 15, 5], n=40)
        Population(counts: 40 people, contributions 0..2)
        """
        seen = [_whole(count, "counts") for count in counts]
        added = to_fraction(smoothing, "smoothing")
        if added < 0:
            raise ProblemError(f"smoothing must be at least 0. Found {show(added)}.")
        total = sum(seen) + added * len(seen)
        if total <= 0 or any(count < 0 for count in seen):
            raise ProblemError(f"counts must be at least 0 and not all 0. Found {list(counts)[:8]}.")
        people = _people_count(sum(seen) if n is None else n)
        law = checked_law([(count + added) / total for count in seen], "counts")
        spec = {"kind": "counts", "n": people, "counts": seen, "smoothing": show(added)}
        return _independent({law: people}, spec)

    @staticmethod
    def from_samples(
        values: Sequence[int] | npt.NDArray[Any], n: int, smoothing: Number = 1, largest: int | None = None
    ) -> Population:
        """`n` people like those whose contributions `values` were seen; `largest` if more than was seen is possible."""
        seen = [_whole(value, "values") for value in values]
        if not seen or min(seen) < 0:
            raise ProblemError("values must be whole numbers of at least 0, and at least one of them.")
        top = max(seen) if largest is None else _whole(largest, "largest")
        if top > 10_000:
            raise ProblemError(f"values must be at most 10,000. Found {top}. Use a coarser unit.")
        if max(seen) > top:
            raise ProblemError(f"values must be at most largest = {top}. Found {max(seen)}.")
        tally = Counter(seen)
        return Population.from_counts([tally[w] for w in range(top + 1)], n, smoothing)

    @staticmethod
    def from_others(others: Sequence[Number], contributions: Sequence[Number] | int = 1) -> Population:
        """One kind of person, given the distribution of the sum of everybody else.

        `contributions` is the law of one person's contribution `0..D`, or `D` (then each is equally likely). The law
        only enters the error that is minimised; privacy protects every contribution alike.
        """
        rest = ExactPmf.from_fractions(checked_law(others, "others", least=1))
        if isinstance(contributions, int):
            if not 1 <= contributions <= 10_000:
                raise ProblemError("contributions must reach at least 1 and at most 10,000. Found another number.")
            contributions = [Fraction(1, contributions + 1)] * (contributions + 1)
        law = checked_law(contributions, "contributions")
        if len(law) * len(rest.weights) > 10**6:
            raise ProblemError("others and contributions may have at most 1,000,000 combinations. Found more.")
        last = rest.last + len(law) - 1
        _check_secrets(len(law), last)
        spend(len(law) * (last + 1) / 30 + 10 * last, "exact laws of the sum")
        conditionals = tuple(rest.shifted(w, last) for w in range(len(law)))
        spec = {
            "kind": "others",
            "others": [show(rest.fraction(x)) for x in range(rest.last + 1)],
            "contributions": [show(value) for value in law],
        }
        own = ExactPmf.from_fractions(law)
        total = _coefficients(
            fmpz_poly(list(rest.weights)) * fmpz_poly(list(own.weights)), rest.denominator * own.denominator
        )
        return Population(last, (Person(1 if rest.last == 0 else 0, conditionals),), total.shifted(0, last), spec)

    @staticmethod
    def from_conditionals(people: Sequence[Sequence[Sequence[Number]]], total: Sequence[Number]) -> Population:
        """People that need not be independent: for each distinct person, the law of the sum given each contribution.

        `total` is the law of the sum itself. This is what is left after a release: see `optdp.posterior`.
        """
        whole = ExactPmf.from_fractions(checked_law(total, "total"))
        crowd = []
        for i, rows in enumerate(people):
            laws = [ExactPmf.from_fractions(checked_law(row, f"people[{i}][{w}]")) for w, row in enumerate(rows)]
            if len(laws) < 2 or any(law.last != whole.last for law in laws):
                raise ProblemError(
                    f"people[{i}] must have a law of length {whole.last + 1} for each of at least two contributions."
                )
            crowd.append(laws)
        if not crowd:
            raise ProblemError("people must describe at least one person. Found none.")
        spec = {
            "kind": "conditionals",
            "people": [[[show(law.fraction(x)) for x in range(law.last + 1)] for law in laws] for laws in crowd],
            "total": [show(whole.fraction(x)) for x in range(whole.last + 1)],
        }
        return Population(whole.last, tuple(Person(0, tuple(laws)) for laws in crowd), whole, spec)

    def conservative(self, factor: Number) -> Population:
        """A more concentrated prior (A, section VI-E): only a share `factor` of each kind of people is uncertain.

        The others are taken to contribute their mean, as if the observer knew it. The inputs stay `0..last`. The
        paper says that privacy under this prior implies privacy under the full one. That holds for noise that is
        *added*; a matrix treats inputs differently, and for it the real epsilon must be measured: `epsilon_under`.
        """
        share = to_fraction(factor, "conservative")
        if not 0 < share <= 1:
            raise ProblemError(f"conservative must lie in (0, 1]. Found {show(share)}.")
        if not self.laws:
            raise ProblemError(
                "conservative needs independent people (binomial, iid, independent, counts). "
                f"Found a population of kind {self.spec['kind']!r}. Give a more concentrated one directly."
            )
        kept = {law: max(1, math.ceil(share * count)) for law, count in self.laws}
        known = sum(
            (sum(w * value for w, value in enumerate(law)) * (count - kept[law]) for law, count in self.laws),
            Fraction(0),
        )
        spec = {**self.spec, "conservative": show(share)}
        return _independent(kept, spec, known=round(known), last=self.last)


def _alike(pmfs: Sequence[Sequence[Number]]) -> list[tuple[int, Sequence[Number], int]]:
    """The first person with each law, as it is written, and how many write it so: a million may write it alike."""
    try:
        first: dict[tuple[Number, ...], int] = {}
        counts = Counter(first.setdefault(tuple(pmf), i) for i, pmf in enumerate(pmfs))
    except TypeError:  # something that is no number: reading it one by one says what
        return [(i, pmf, 1) for i, pmf in enumerate(pmfs)]
    return [(i, pmfs[i], count) for i, count in counts.items()]


def _people_count(n: int) -> int:
    people = _whole(n, "n")
    if people < 1:
        raise ProblemError(f"n must be at least 1 person. Found {people}.")
    if people > 10**9:
        raise ProblemError("n must be at most 1,000,000,000 people. Found more.")
    return people


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):  # numpy's integers are of this kind
        raise ProblemError(f"{name} must be whole numbers. Found {value!r}.")
    return int(value)


def checked_law(values: Sequence[Number], name: str, least: int = 2) -> Distribution:
    """A checked probability vector."""
    spend(12 * len(values), "probabilities")  # they are read, added up, and written again
    law = tuple(to_fraction(value, name) for value in values)
    if len(law) < least:
        raise ProblemError(
            f"{name} must give the probability of each contribution 0..D with D at least 1. Found {len(law)} values."
        )
    if any(value < 0 for value in law):
        raise ProblemError(f"{name} must not be negative. Found {show(min(law))}.")
    off = excess_over_one(law)
    if off:
        size = float(max(min(off, Fraction(10**300)), Fraction(-(10**300))))
        raise ProblemError(
            f"{name} must sum to exactly 1. Found a sum that is off by {size:+.3g}. "
            "Write the probabilities as decimals or fractions that add up."
        )
    return law


def _independent(
    laws: Mapping[Distribution, int], spec: Mapping[str, Any], known: int = 0, last: int | None = None
) -> Population:
    """Independent people: the sum of all, and the others of each distinct person, by exact polynomial arithmetic.

    `known` is a constant that is added to every sum (contributions that the observer knows).
    """
    listed = tuple(laws.items())
    reach = sum((len(law) - 1) * count for law, count in listed)
    last = reach if last is None else last
    bits = sum(count * common_denominator(law).bit_length() for law, count in listed)
    bytes_needed = reach * (1 + len(listed)) * (bits / 8 + 40)
    binomial = len(listed) == 1 and len(listed[0][0]) == 2 and 0 < listed[0][0][1] < 1
    if binomial and (listed[0][1] > EXACT_LIMIT or bytes_needed > 1e8):
        ((_, p), n) = listed[0]
        pair = tuple(BinomialPmf(n - 1, p, known + w, last) for w in (0, 1))
        return Population(last, (Person(n, pair),), BinomialPmf(n, p, known, last), spec, listed)
    if bytes_needed > EXACT_BYTES or reach > 200_000:
        crowd = sum(count for _, count in listed)
        fits = int(crowd * min(0.99 * (EXACT_BYTES / bytes_needed) ** 0.5, EXACT_LIMIT / reach))
        raise ProblemError(
            f"The exact law of sums up to {reach:,} would need about {bytes_needed / 1e9:,.1f} GB. About {fits:,} such "
            "people fit. Use fewer people, coarser contributions, or a binomial population, which has a closed form."
        )
    _check_secrets(sum(len(law) for law, _ in listed), last)
    longer = bits / 1000 * (0.6 + bits / 400_000)
    spend(reach * (1 + len(listed)) * (2 + longer) + count_places(listed, last) / 30, "exact laws of the sum")
    exact = [(ExactPmf.from_fractions(law), count) for law, count in listed]
    product, denominator = fmpz_poly([1]), 1
    for law, count in exact:
        product *= fmpz_poly(list(law.weights)) ** count
        denominator *= law.denominator**count
    people = []
    for law, count in exact:
        others = _coefficients(product // fmpz_poly(list(law.weights)), denominator // law.denominator)
        people.append(Person(count, tuple(others.shifted(w + known, last) for w in range(law.last + 1))))
    total = _coefficients(product, denominator).shifted(known, last)
    return Population(last, tuple(people), total, spec, listed)


def count_places(listed: Sequence[tuple[Distribution, int]], last: int) -> int:
    """How many places all laws of a sum up to `last` have, one for each contribution of each kind of person."""
    return sum(len(law) for law, _ in listed) * (last + 1)


def _check_secrets(count: int, last: int) -> None:
    """Refuse what would fill the memory: each contribution of each kind of person has a law of its own."""
    if count * (last + 1) > MOST_PLACES:
        raise ProblemError(
            f"All laws of a sum, one for each contribution of each kind of person, may have {MOST_PLACES:,} places. "
            f"Found {count:,} laws of sums up to {last:,}. Use coarser contributions, or fewer kinds of people."
        )


def _coefficients(polynomial: fmpz_poly, denominator: int) -> ExactPmf:
    return ExactPmf(tuple(int(value) for value in polynomial.coeffs()), denominator)


def moments(population: Population) -> tuple[float, float]:
    """Mean and standard deviation of the sum, in floating point."""
    law = population.total
    if isinstance(law, BinomialPmf):
        p = float(law.p)
        return law.shift + law.n * p, math.sqrt(law.n * p * (1 - p))
    assert isinstance(law, ExactPmf)
    weights = [weight / law.denominator for weight in law.weights]
    mean = math.fsum(x * weight for x, weight in enumerate(weights))
    return mean, math.sqrt(max(0.0, math.fsum((x - mean) ** 2 * weight for x, weight in enumerate(weights))))
