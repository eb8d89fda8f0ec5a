"""Who is watching: what an observer may know about the people, and the finitely many cases that decide.

People are independent. Of each the observer knows a segment of laws, from `A` to `B`, in which that person's law lies,
anywhere and not at the same place for all. Of up to `known` people the observer knows what they contribute.

**A box has finitely many vertices.** Fix a person, two secrets and an output. `Pr[s|u] - e^eps Pr[s|u']` is affine in
the law of each of the others, so it is largest where every law is an end of its segment. People with the same segment
are of one **kind**, and only how many of a kind follow `B` counts. A known person contributes one number: a vertex of
all laws on `0..D`. Only the sum of these numbers counts, and it moves the sum as the person's own secret does:

    sum = base + u,    base = what the uncertain people contribute,    u = 0..V + D_i,

with `D_i` the largest contribution of the person, `V` that of all known people together. Two secrets are adjacent if
they can differ by the person's own contribution: by 1 (each such step at `eps/D`), or by up to `D_i`. Fewer known
people are mixtures of these cases; so is every law of a common cause that does not depend on the person's own secret.

A **vertex** is the kind of the person, how many of each other kind are known (a split), and how many of the uncertain
ones of each kind follow `B`. Vertices are counted in this order: the person's kind, then the split, then the latter,
both in lexicographic order. Kinds stand in the order in which the population names them first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from .fields import exact_number, list_of, table_with, whole_number
from .laws import Law, common_unit, exact_law, integer_law, multiplied, powered
from .priors import Prior, read_law
from .verdict import must, spend

MOST_KINDS = 100
"""The most kinds of people of whom vertices are listed."""
Chances = tuple[Fraction, ...]


@dataclass(frozen=True)
class Kind:
    """So many people whose laws lie on the segment from `low` to `high`."""

    low: Chances
    high: Chances
    count: int

    @property
    def largest(self) -> int:
        return len(self.low) - 1

    @property
    def fixed(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True)
class Observer:
    """What one observer may know, and may learn."""

    kinds: tuple[Kind, ...]
    """None if everybody else is known, or if the population does not say what laws people follow."""
    known: int | None
    """How many of the others; None: all of them, whoever they are."""
    epsilon: Fraction
    exact: bool = False
    """Whether this is the observer who knows just the laws of the population, and nobody."""
    doubtful: bool = False
    """Whether a range is stated, or some people are known: then prices say of which vertices they are."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Besides, one of these groups is known, by how many of each kind belong to it: those of a coalition of parties."""

    @property
    def bits(self) -> int:
        """At least those of the denominator of a vertex's law."""
        units = (common_unit((*kind.low, *kind.high), "a law") for kind in self.kinds)
        return sum(kind.count * unit.bit_length() for kind, unit in zip(self.kinds, units, strict=True))


@dataclass(frozen=True)
class Case:
    """A person, and the people whom the observer knows: what is left to chance."""

    counts: tuple[int, ...]
    """How many of each kind are uncertain."""
    secrets: int
    """`V + D_i + 1`."""
    reach: int
    """`D_i`."""


# ---------------------------------------------------------------------- what a file says


def read_observers(stated: Any, population: Any, prior: Prior, epsilon: Fraction) -> list[Observer]:
    """The observers of a problem; none if it names none, or one of whom nothing is said."""
    listed = [stated] if isinstance(stated, dict) else list_of(stated, "observer", 1)
    tables = [table_with(item, "observer", "", "between margin known epsilon") for item in listed]
    if tables in ([{}], [{"known": 0}]) and type(tables[0].get("known", 0)) is int:
        return []
    found = []
    for i, table in enumerate(tables):
        must(i > 0 or "epsilon" not in table, "The first observer's epsilon must be the problem's", table)
        own = exact_number(table["epsilon"], "epsilon") if "epsilon" in table else epsilon
        must(epsilon <= own <= 100, "An observer's epsilon must be from that of the problem to 100", str(own)[:40])
        found.append(_read_observer(table, population, prior, own))
    return found


def _read_observer(table: Mapping[str, Any], population: Any, prior: Prior, epsilon: Fraction) -> Observer:
    known = table.get("known", 0)
    must(type(known) is int or known == "all", 'known must be a whole number or "all"', known)
    must("between" not in table or "margin" not in table, "An observer must have between or margin, not both", table)
    doubtful = bool(table.keys() & {"between", "margin"}) or known not in (0, "all")
    must(known != "all" or not doubtful, 'With known = "all" there must be no range', table)
    laws = prior.laws if population.get("conservative") is None else {}
    people = sum(laws.values())
    if not laws:
        right = known in (0, "all") and not table.keys() & {"between", "margin"}
        rule = "An observer with between, margin or known needs independent people whose laws are known, all uncertain"
        must(right, rule, population.get("kind"))
    kinds: dict[tuple[Chances, Chances], int] = {}
    for segment, count in zip(_segments(table, prior), laws.values(), strict=True) if laws else ():
        kinds[segment] = kinds.get(segment, 0) + count
    if known == "all":
        return Observer((), None, epsilon)
    known = whole_number(known, "known", 0, max(people - 1, 0))
    exact = known == 0 and kinds == {(law, law): count for law, count in laws.items()}
    return Observer(tuple(Kind(*ends, count) for ends, count in kinds.items()), known, epsilon, exact, doubtful)


def insider(stated: Mapping[str, Any], prior: Prior, epsilon: Fraction, held: Sequence[Sequence[int]]) -> Observer:
    """An observer who also knows one of several groups, `held` by how many people of each law of the prior."""
    own = _read_observer(stated, {}, prior, epsilon)
    if own.known is None:
        return own
    segments = list(_segments(stated, prior))
    places = list(dict.fromkeys(segments))
    groups = [
        tuple(sum(n for n, segment in zip(group, segments, strict=True) if segment == place) for place in places)
        for group in held
    ]
    return replace(own, exact=False, doubtful=True, groups=tuple(dict.fromkeys(groups)))


def _segments(table: Mapping[str, Any], prior: Prior) -> Iterator[tuple[Chances, Chances]]:
    """The segment of each law of the population."""
    if "between" in table:
        right = len({len(law) for law in prior.laws}) == 1
        must(right, "between is for people who all have the same largest contribution", sorted(set(prior.sizes))[:9])
        yield from [_between(table["between"], prior.largest)] * len(prior.laws)
        return
    if "margin" in table:
        margin = exact_number(table["margin"], "margin")
        must(0 <= margin <= 1, "margin must lie in [0, 1]", table["margin"])
        must(prior.largest == 1, "margin is for people who contribute 0 or 1", prior.largest)
        for _, p in prior.laws:
            low, high = max(p - margin, Fraction(0)), min(p + margin, Fraction(1))
            yield (1 - low, low), (1 - high, high)
        return
    for law in prior.laws:
        yield law, law


def _between(ends: Any, largest: int) -> tuple[Chances, Chances]:
    must(isinstance(ends, list) and len(ends) == 2, "between must be two numbers or two laws", ends)
    if all(isinstance(end, list) for end in ends):
        low, high = (read_law(end, "between") for end in ends)
        right = len(low) == len(high) == largest + 1
        must(right, f"The laws of between must be of the contributions 0..{largest}", ends)
        return low, high
    must(largest == 1, "between must be two laws unless all contribute 0 or 1", ends)
    one, two = (exact_number(end, "between") for end in ends)
    must(0 <= one <= two <= 1, "between must be [low, high] with 0 <= low <= high <= 1", ends)
    return (1 - one, one), (1 - two, two)


# ---------------------------------------------------------------------- vertices


def cases(observer: Observer) -> Iterator[Case]:
    """Every person with every split of the known people, in their order."""
    kinds, known = observer.kinds, observer.known or 0
    right = len(kinds) <= MOST_KINDS
    must(right, f"Observers are checked here of at most {MOST_KINDS} kinds of people; use optdp verify", len(kinds))
    for i, person in enumerate(kinds):
        others = [kind.count - (i == j) for j, kind in enumerate(kinds)]
        listed: dict[tuple[int, ...], None] = {}
        for group in observer.groups or [(0,) * len(kinds)]:
            left = [n - g for n, g in zip(others, group, strict=True)]
            if min(left) >= 0:  # else everybody of this kind belongs to the group
                for split in _splits(left, min(known, sum(left))):
                    listed[tuple(t + g for t, g in zip(split, group, strict=True))] = None
        for split in listed:
            spend(len(kinds), 0)
            moved = sum(t * kind.largest for t, kind in zip(split, kinds, strict=True))
            counts = tuple(n - t for n, t in zip(others, split, strict=True))
            yield Case(counts, moved + person.largest + 1, person.largest)


def _splits(limits: Sequence[int], known: int) -> Iterator[tuple[int, ...]]:
    """All ways to take `known` people, of each kind up to its limit."""
    if not limits:
        yield ()
        return
    for first in range(max(0, known - sum(limits[1:])), min(limits[0], known) + 1):
        for rest in _splits(limits[1:], known - first):
            yield (first, *rest)


def mixtures(kinds: Sequence[Kind], counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """How many of each kind follow the upper end: all possibilities, in their order."""
    return product(*(range(1 if kind.fixed else m + 1) for kind, m in zip(kinds, counts, strict=True)))


def corners(observer: Observer, prior: Prior, wanted: Collection[int]) -> dict[int, tuple[Sequence[Law], int]]:
    """Of vertices by their number: the law of the sum given each secret, and how far adjacent secrets are apart."""
    if observer.exact:
        return {i: (laws, len(laws) - 1) for i, laws in enumerate(prior.people) if i in wanted}
    found: dict[int, tuple[Sequence[Law], int]] = {}
    listed = ((case, upper) for case in cases(observer) for upper in mixtures(observer.kinds, case.counts))
    for i, (case, upper) in enumerate(listed):
        spend(1, 0)
        if i in wanted:
            base = base_law(observer.kinds, case.counts, upper)
            found[i] = [base.shifted(u) for u in range(case.secrets)], case.reach
        if len(found) == len(wanted):
            break
    return found


def base_law(kinds: Sequence[Kind], counts: Sequence[int], upper: Sequence[int]) -> Law:
    """The law of the sum of the uncertain people at a vertex."""
    weights, unit, shift = [1], 1, 0
    for kind, m, k in zip(kinds, counts, upper, strict=True):
        for chances, count in ((kind.low, m - k), (kind.high, k)):
            law = integer_law(chances)
            zeros = next(w for w, weight in enumerate(law.below) if weight)  # everybody contributes at least so much
            weights = multiplied(weights, powered(law.below[zeros:], count))
            unit, shift = unit * law.unit**count, shift + zeros * count
    return exact_law(weights, unit, shift)
