"""Who is watching: what somebody may know about the people, and the finitely many worlds that stand for all of it.

People are independent, and each one's law lies anywhere on a segment between two given laws, not at the same place for
all. For a fixed output and a fixed person, `Pr[s | w] - e^eps Pr[s | w']` is affine in the law of each other person, so
that it is largest where everybody is at an end of the segment; and people of one kind are alike, so that only the
number of them at each end counts. Somebody who knows `t` of the others exactly sees a sum that is shifted by what they
contribute. So privacy holds for every such observer if and only if it holds at the vertices:

    others = known + (k people at the high end) + (the rest at the low end),     known = 0..t D,   k = 0..n-1-t,

and then also for every mixture of such worlds that does not depend on the person's own secret. Proof:
docs/mathematics.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import product
from math import comb, lcm, prod
from typing import Any, Literal

import attrs
from flint import fmpz_poly

from optdp.errors import ProblemError
from optdp.numbers.exact import Number, show, shown, to_fraction
from optdp.numbers.pmf import common_denominator
from optdp.people.population import Distribution, Population, checked_law
from optdp.work.account import spend

MOST_PLACES = 6_000_000
"""The most probabilities of all vertices together."""

FEW = 4
"""Where this many times the laws that are wanted are fewer than all, each is computed by itself."""

Known = int | Literal["all"]
Ends = tuple[Distribution, Distribution]


def _ends(given: Sequence[Any] | None) -> Ends | None:
    """Two laws: from two probabilities of contributing 1, or from two lists of probabilities."""
    if given is None:
        return None
    if isinstance(given, str) or len(given) != 2:
        raise ProblemError(f"between must be two probabilities or two laws. Found {shown(given)}.")
    if any(isinstance(end, Sequence) and not isinstance(end, str) for end in given):
        if not all(isinstance(end, Sequence) and not isinstance(end, str) for end in given):
            raise ProblemError(f"between must be two probabilities or two laws, not one of each. Found {shown(given)}.")
        low, high = (checked_law(end, "between") for end in given)
        if len(low) != len(high):
            raise ProblemError(
                f"Both laws of between must be for the same contributions. Found {len(low)} and {len(high)} of them."
            )
        return low, high
    least, most = (to_fraction(end, "between") for end in given)
    if not 0 <= least <= most <= 1:
        raise ProblemError(
            f"between must be two probabilities from 0 to 1, the smaller one first. "
            f"Found {show(least)} and {show(most)}."
        )
    return (1 - least, least), (1 - most, most)


def _margin(given: Number | None) -> Fraction | None:
    if given is None:
        return None
    margin = to_fraction(given, "margin")
    if not 0 <= margin <= 1:
        raise ProblemError(f"margin must lie in [0, 1]. Found {show(margin)}.")
    return margin


def _known(given: Any) -> Known:
    if given == "all" and isinstance(given, str):
        return "all"
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ProblemError(f'known must be a whole number of at least 0, or "all". Found {shown(given)}.')
    return given


def _epsilon(given: Number | None) -> Fraction | None:
    return None if given is None else to_fraction(given, "epsilon of an observer")


@attrs.frozen(repr=False, slots=False)
class Observer:
    """What someone may know about the people; the guarantee holds against every such observer.

    Parameters
    ----------
    between : two probabilities of contributing 1, or two distributions of contributions `0..D`: each other person's
        lies anywhere between them, not necessarily the same for all. By default everyone's is the population's.
    margin : instead of `between`, how far each probability may be from that of the population.
    known : how many of the others the observer may know exactly; "all" is ordinary differential privacy.
    epsilon : the privacy against this observer; by default the problem's.

    Examples
    --------
    >>> from optdp import Observer
    >>> Observer(between=("0.05", "0.15"), known=5)
    Observer(between 0.05 and 0.15, 5 known)
    """

    between: Ends | None = attrs.field(default=None, converter=_ends)
    margin: Fraction | None = attrs.field(default=None, converter=_margin)
    known: Known = attrs.field(default=0, converter=_known)
    epsilon: Fraction | None = attrs.field(default=None, converter=_epsilon)

    def __attrs_post_init__(self) -> None:
        if self.between is not None and self.margin is not None:
            raise ProblemError("An observer has either between or margin. Found both. Remove one.")
        if self.known == "all" and (self.between is not None or self.margin is not None):
            raise ProblemError('With known = "all" nobody is uncertain. Found a range too. Remove between or margin.')

    @property
    def exact(self) -> bool:
        """Whether this observer knows exactly the population, and nothing more."""
        return self.between is None and self.margin is None and self.known == 0

    @property
    def describe(self) -> str:
        """What is known, in a few words."""
        parts = []
        if self.between is not None:
            low, high = self.between
            ends = (low[1], high[1]) if len(low) == 2 else None
            parts.append(f"between {show(ends[0])} and {show(ends[1])}" if ends else "between two laws")
        if self.margin is not None:
            parts.append(f"within {show(self.margin)}")
        if self.known:
            parts.append("everybody else known" if self.known == "all" else f"{self.known} known")
        return ", ".join(parts) or "the population"

    @property
    def knows(self) -> str:
        """What is known, as the end of a sentence: "against someone who knows ..."."""
        if self.known == "all":
            return "exactly what everyone else contributes"
        if self.between is not None and len(self.between[0]) == 2:
            low, high = (show(law[1]) for law in self.between)
            ground = f"that each other person's probability is somewhere between {low} and {high}"
        elif self.between is not None:
            ground = "that each other person's distribution is somewhere between the two stated ones"
        elif self.margin is not None:
            ground = f"each other person's probability to within {show(self.margin)}"
        else:
            ground = "the stated prior of everyone else"
        if not self.known:
            return ground
        people = "one of the others contributes" if self.known == 1 else f"up to {self.known} of the others contribute"
        return f"{ground}, and exactly what {people}"

    def __repr__(self) -> str:
        more = "" if self.epsilon is None else f", epsilon {show(self.epsilon)}"
        return f"Observer({self.describe}{more})"

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        return f'<div class="optdp"><code>optdp: {escape(repr(self))}</code></div>'

    def spec(self) -> dict[str, Any]:
        """The observer as it stands in a problem file."""
        found: dict[str, Any] = {}
        if self.between is not None:
            found["between"] = [
                show(law[1]) if len(law) == 2 else [show(value) for value in law] for law in self.between
            ]
        if self.margin is not None:
            found["margin"] = show(self.margin)
        if self.known:
            found["known"] = self.known
        if self.epsilon is not None:
            found["epsilon"] = show(self.epsilon)
        return found

    def worlds(self, population: Population) -> Worlds:
        """The worlds that this observer holds possible. Not for known = "all", who has no doubts left."""
        assert self.known != "all"
        if not population.laws or "conservative" in population.spec:
            raise ProblemError(
                "An observer with a range, or who knows some of the others, needs independent people whose laws are "
                f"given (binomial, iid, independent, counts). Found a population of kind {population.spec['kind']!r}"
                f"{' that is conservative' if population.laws else ''}."
            )
        if self.known > population.size - 1:
            raise ProblemError(
                f"known must be at most the number of the others, {population.size - 1:,}. Found {self.known:,}."
                ' For ordinary differential privacy write known = "all".'
            )
        every = [self._ends_of(law, population.largest) for law, _ in population.laws]
        kinds = list(dict.fromkeys(every))

        def counted(people: Sequence[int]) -> tuple[int, ...]:
            """So many people of each law, by kind."""
            return tuple(sum(many for own, many in zip(every, people, strict=True) if own == ends) for ends in kinds)

        counts = counted([count for _, count in population.laws])
        crowds = tuple(Crowd(*ends, count) for ends, count in zip(kinds, counts, strict=True))
        worlds = Worlds(crowds, self.known, tuple(dict.fromkeys(map(counted, self._held(population)))))
        worlds.check_size()
        return worlds

    def _held(self, population: Population) -> Sequence[Sequence[int]]:
        """The groups of whom one is known anyway: how many people of each of the population's laws."""
        return [[0] * len(population.laws)]

    def _ends_of(self, law: Distribution, largest: int) -> Ends:
        if self.between is not None:
            if len(law) != largest + 1:
                raise ProblemError(
                    f"between is for people who all contribute 0..{largest}. Found a kind of person with "
                    f"0..{len(law) - 1}. Write zeros for what they never contribute."
                )
            if len(self.between[0]) != largest + 1:
                raise ProblemError(
                    f"between must be for the population's contributions 0..{largest}. "
                    f"Found laws of 0..{len(self.between[0]) - 1}."
                )
            return self.between
        if self.margin is None:
            return law, law
        if len(law) != 2:
            raise ProblemError(
                f"margin is for contributions 0 and 1. Found 0..{len(law) - 1}. Give two laws with between instead."
            )
        low, high = max(law[1] - self.margin, Fraction(0)), min(law[1] + self.margin, Fraction(1))
        return (1 - low, low), (1 - high, high)


def _groups(given: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(group) for group in given)


@attrs.frozen(repr=False, slots=False)
class Insider(Observer):
    """An observer who also holds the data of one of several groups of people, whichever it is.

    A group is given by how many people of each of the population's laws belong to it. What it contributes is a known
    shift of the sum, so that these are the worlds of known people, with the group in place of any `t` people. Nobody
    outside the group is known, but for `known` more; people inside it are not protected from it.

    Examples
    --------
    >>> from optdp import Population
    >>> from optdp.people.observer import Insider
    >>> [family.known for family in Insider(groups=[[1], [2]]).worlds(Population.binomial(4, "0.5")).families]
    [(1,), (2,)]
    """

    groups: tuple[tuple[int, ...], ...] = attrs.field(default=(), kw_only=True, converter=_groups)

    @property
    def exact(self) -> bool:
        return False

    @property
    def knows(self) -> str:
        return f"{super().knows}, and everything that one group of the others contributes"

    def _held(self, population: Population) -> Sequence[Sequence[int]]:
        return self.groups


@dataclass(frozen=True)
class Crowd:
    """People of one kind: each one's law lies anywhere between `low` and `high`."""

    low: Distribution
    high: Distribution
    count: int

    @property
    def largest(self) -> int:
        return len(self.low) - 1

    @property
    def fixed(self) -> bool:
        """Whether there is nothing between the two ends."""
        return self.low == self.high

    def power(self, count: int, high: int) -> fmpz_poly:
        """The law of the sum of `count` of them, `high` at the high end, times `unit(count)`."""
        unit = self.unit(1)
        ends = ((self.low, count - high), (self.high, high))
        spend(3e-5 * (count * self.largest + 1) * self.unit(count).bit_length(), "laws of the observer's worlds")
        return prod(
            (fmpz_poly([int(value * unit) for value in law]) ** many for law, many in ends), start=fmpz_poly([1])
        )

    def powers(self, count: int) -> Iterator[fmpz_poly]:
        """The law of the sum of `count` of them with `0, 1, .., count` at the high end, times `unit(count)`."""
        unit = self.unit(1)
        low, high = (fmpz_poly([int(value * unit) for value in law]) for law in (self.low, self.high))
        law = low**count
        yield law
        for _ in range(0 if self.fixed else count):
            law = law // low * high
            yield law

    def unit(self, count: int) -> int:
        """The common denominator of these laws."""
        return int(lcm(common_denominator(self.low), common_denominator(self.high)) ** count)


@dataclass(frozen=True)
class VertexFamily:
    """The vertices for a person of one kind who sees so many known people of each kind.

    At each vertex `sum = base + u`, where `base` is the law of those who are uncertain, and `u`, what the person and
    the known people contribute together, is anything in `0..shifts`. Secrets differ by at most `reach`.
    """

    crowds: tuple[Crowd, ...]
    person: int
    known: tuple[int, ...]

    @cached_property
    def uncertain(self) -> tuple[int, ...]:
        """How many of each kind are neither the person nor known."""
        return tuple(
            crowd.count - (i == self.person) - known
            for i, (crowd, known) in enumerate(zip(self.crowds, self.known, strict=True))
        )

    @property
    def reach(self) -> int:
        return self.crowds[self.person].largest

    @property
    def shifts(self) -> int:
        return self.reach + sum(crowd.largest * known for crowd, known in zip(self.crowds, self.known, strict=True))

    @property
    def last(self) -> int:
        """The largest value of `base`."""
        return sum(crowd.largest * many for crowd, many in zip(self.crowds, self.uncertain, strict=True))

    @cached_property
    def _choices(self) -> tuple[int, ...]:
        return tuple(1 if crowd.fixed else many + 1 for crowd, many in zip(self.crowds, self.uncertain, strict=True))

    @property
    def size(self) -> int:
        """How many vertices there are."""
        return prod(self._choices)

    def high(self, vertex: int) -> tuple[int, ...]:
        """How many people of each kind are at the high end at this vertex."""
        found = []
        for many in reversed(self._choices):
            vertex, k = divmod(vertex, many)
            found.append(k)
        return tuple(reversed(found))

    def laws(self, wanted: Sequence[int] | None = None) -> Iterator[fmpz_poly]:
        """`base` at each vertex, or at those that are wanted, in increasing order, times `unit`."""
        if wanted is not None and len(wanted) * FEW < self.size:
            yield from map(self.law, wanted)
            return
        bits = self.unit.bit_length()
        spend(self.size * (self.last + 1) * (0.3 + bits / 20_000), "laws of the observer's worlds")
        (first, many), *rest = zip(self.crowds, self.uncertain, strict=True)
        others = [list(crowd.powers(count)) for crowd, count in rest]
        chosen, vertex = None if wanted is None else frozenset(wanted), 0
        for law in first.powers(many):
            for more in product(*others):
                if chosen is None or vertex in chosen:
                    yield prod(more, start=law)
                vertex += 1

    def law(self, vertex: int) -> fmpz_poly:
        """`base` at one vertex, times `unit`."""
        crowds = zip(self.crowds, self.uncertain, self.high(vertex), strict=True)
        return prod((crowd.power(many, high) for crowd, many, high in crowds), start=fmpz_poly([1]))

    @cached_property
    def unit(self) -> int:
        return prod(crowd.unit(many) for crowd, many in zip(self.crowds, self.uncertain, strict=True))

    def pairs(self, every: bool) -> list[tuple[int, int]]:
        """The shifts that must look alike: a step apart, or `every` two that one person can bring about."""
        reach = self.reach if every else 1
        return [(u, v) for u in range(self.shifts) for v in range(u + 1, min(u + reach, self.shifts) + 1)]


@dataclass(frozen=True)
class Worlds:
    """Everything that an observer holds possible: kinds of people with their ranges, and how many are known."""

    crowds: tuple[Crowd, ...]
    known: int
    groups: tuple[tuple[int, ...], ...] = ()
    """Who is known besides: one of these groups, each given by how many of each kind belong to it."""

    @cached_property
    def families(self) -> tuple[VertexFamily, ...]:
        """All vertices, by the kind of the person and the kinds of the known people."""
        found: dict[tuple[int, tuple[int, ...]], None] = {}
        for person in range(len(self.crowds)):
            for group in self.groups or ((0,) * len(self.crowds),):
                rest = [c.count - (i == person) - g for i, (c, g) in enumerate(zip(self.crowds, group, strict=True))]
                if min(rest) < 0:
                    continue  # everybody of this kind is in the group
                for split in _splits(min(self.known, sum(rest)), rest):
                    found[person, tuple(a + b for a, b in zip(group, split, strict=True))] = None
        return tuple(VertexFamily(self.crowds, *which) for which in found)

    @property
    def size(self) -> int:
        """How many vertices there are."""
        return sum(family.size for family in self.families)

    def check_size(self) -> None:
        """Refuse what would take forever or fill the memory."""
        kinds, groups = len(self.crowds), max(len(self.groups), 1)
        if comb(self.known + kinds - 1, kinds - 1) * kinds * groups > 100_000:
            among = f" beside {groups:,} groups" if groups > 1 else ""
            raise ProblemError(
                f"The kinds of {self.known:,} known people among {kinds} kinds{among} are too many to look at. "
                "Use fewer kinds of people, or fewer known people."
            )
        places = sum(family.size * (family.last + 1) for family in self.families)
        if places > MOST_PLACES:
            kinds = sum(not crowd.fixed for crowd in self.crowds)
            share = (MOST_PLACES / places) ** (1 / (kinds + 1))
            fitting = max(int(share * sum(crowd.count for crowd in self.crowds)), 2)
            raise ProblemError(
                f"All worlds of an observer may have {MOST_PLACES:,} probabilities together. Found {places:,} in "
                f"{self.size:,} worlds. It would fit with about {fitting:,} people"
                f"{', or with one range for all kinds of people (between)' if kinds > 1 else ''}."
            )

    def place(self, vertex: int) -> tuple[VertexFamily, int]:
        """The family of a vertex, by its number among all, and its number there."""
        for family in self.families:
            if vertex < family.size:
                return family, vertex
            vertex -= family.size
        raise IndexError(vertex)

    def describe(self, vertex: int) -> str:
        """A vertex in words: who is where."""
        family, inner = self.place(vertex)
        parts = []
        for i, (crowd, many, high) in enumerate(
            zip(self.crowds, family.uncertain, family.high(inner), strict=True), start=1
        ):
            of = f" of kind {i}" if len(self.crowds) > 1 else ""
            if crowd.fixed:
                parts.append(f"{many}{of} as stated")
            elif crowd.largest == 1:
                parts.append(f"{high}{of} at {show(crowd.high[1])} and {many - high} at {show(crowd.low[1])}")
            else:
                parts.append(f"{high}{of} at the second law and {many - high} at the first")
        known = f"; {sum(family.known)} known" if any(family.known) else ""
        return f"of the others {', '.join(parts)}{known}"


def _splits(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to take `total` people from kinds with so many each, in increasing order."""
    if not most:
        if total == 0:
            yield ()
        return
    for first in range(max(0, total - sum(most[1:])), min(total, most[0]) + 1):
        for rest in _splits(total - first, most[1:]):
            yield (first, *rest)
