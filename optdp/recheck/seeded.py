"""Several entities that share a secret word: what the sum reveals to who does not know it, and its error.

Given the cell `c` of the word every party reports a map of its input, and the sum of these independent numbers has an
exact law. Who does not know the word sees the mean of these laws over the cells, weighted with their lengths. Its
quotients are looked at for every party, person and step. All of it is integers: of the priors over their common
denominators, of the cells over that of the word. Who knows the word, as every party does, is promised nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise

from .enclosures import worst_of
from .laws import Law, convolved, exact_law
from .maps import Maps
from .plans import Figures, Plan, demand_privacy, law_quotient
from .verdict import must, spend


def seeded_figures(plan: Plan) -> Figures:
    maps, weights, count = plan.maps, plan.maps[0].weights, len(plan.maps)
    cells = range(len(weights))
    same = len({(own.denominator, tuple(own.cuts)) for own in maps}) == 1
    must(same, "All parties must have the same cuts of the common word", "others")
    worst: list[Fraction | None] = [Fraction(1)] * count
    for world in plan.worlds:
        totals = [[_report(own, c, prior.total) for c in cells] for own, prior in zip(maps, world, strict=True)]
        for i, prior in enumerate(world):
            rest = [reduce(convolved, [totals[j][c] for j in range(count) if j != i]) for c in cells]
            for laws in prior.people:
                mixed = [_mixed([convolved(_report(maps[i], c, law), rest[c]) for c in cells], weights)
                         for law in laws]  # fmt: skip
                for one, other in pairwise(mixed):
                    worst[i] = worst_of([worst[i], law_quotient(one, other)])
    demand_privacy(plan, worst)
    errors = [[_error(own, c, prior.total, f) for c in cells]
              for own, prior, f in zip(maps, plan.worlds[0], plan.f, strict=True)]  # fmt: skip
    total = _mixed([reduce(convolved, [own[c] for own in errors]) for c in cells], weights)
    own = [_mixed(laws, weights).moment(1) for laws in errors]
    return Figures(worst, [None] * count, own, total.moment(1), total.moment(2))


def _report(own: Maps, cell: int, law: Law) -> Law:
    """The law of what a party reports in a cell."""
    return _gathered([(own.of(cell, x), weight) for x, weight in law.items()], law.unit)


def _error(own: Maps, cell: int, law: Law, f: int) -> Law:
    """The law of the report less `f` times the input."""
    return _gathered([(own.of(cell, x) - f * x, weight) for x, weight in law.items()], law.unit)


def _gathered(values: Sequence[tuple[int, int]], unit: int) -> Law:
    low, high = min(value for value, _ in values), max(value for value, _ in values)
    spend(high - low + len(values), unit.bit_length())
    weights = [0] * (high - low + 1)
    for value, weight in values:
        weights[value - low] += weight
    return exact_law(weights, unit, low)


def _mixed(laws: Sequence[Law], weights: Sequence[int]) -> Law:
    """The mean of laws over one unit, weighted."""
    low, high = min(law.first for law in laws), max(law.first + len(law.below) for law in laws)
    spend(len(laws) * (high - low), laws[0].unit.bit_length() + 64)
    found = [0] * (high - low)
    for law, weight in zip(laws, weights, strict=True):
        for k, value in enumerate(law.below, start=law.first - low):
            found[k] += weight * value
    return exact_law(found, laws[0].unit * sum(weights), low)
