"""Plans of finite tables.

Given `w`, the sum of the reports of honest parties has the law `u_w * v_2 * .. * v_t`: polynomials are multiplied, and
every quotient is looked at, for every set of `honest` parties. Larger sets add independent terms, which raises no
quotient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from .enclosures import Pair, both_ways, worst_of
from .entity import Entity
from .laws import POINT, Law, convolved, exact_law, shortened
from .plans import Figures, Plan, demand_privacy
from .priors import Prior
from .verdict import must, spend


def joint_figures(plan: Plan) -> Figures:
    must(len(plan.tables) <= 64, "A joint plan must have at most 64 parties", len(plan.tables))
    entities = [Entity(table, prior.last, prior.last) for table, prior in zip(plan.tables, plan.worlds[0], strict=True)]
    worst: list[Fraction | None] = [Fraction(1)] * len(entities)
    for world, names in zip(plan.worlds, plan.names, strict=True):
        keys = [(name, entity.table.bare) for name, entity in zip(names, entities, strict=True)]
        kinds = list(dict.fromkeys(keys))  # parties that are alike in everything are looked at once
        members = [keys.index(key) for key in kinds]
        found = _honest_sets(plan, [entities[i] for i in members], [world[i] for i in members],
                             [keys.count(key) for key in kinds])  # fmt: skip
        worst = [worst_of([old, found[kinds.index(key)]]) for old, key in zip(worst, keys, strict=True)]
    demand_privacy(plan, worst)
    ordinary = [entity.ordinary(1) for entity in entities]
    errors, total = [], POINT
    for entity, prior, f in zip(entities, plan.worlds[0], plan.f, strict=True):
        errors.append(shortened(_error_law(entity, prior.total, f), relative=False))
        total = shortened(convolved(total, errors[-1]), relative=False)
    return Figures(worst, ordinary, [law.moment(1) for law in errors], total.moment(1), total.moment(2))


def _honest_sets(
    plan: Plan, entities: Sequence[Entity], priors: Sequence[Prior], counts: Sequence[int]
) -> list[Fraction | None]:
    """For each kind of party the largest quotient of a step over all sets of `honest` parties."""
    totals, secrets = [], []
    for entity, prior in zip(entities, priors, strict=True):
        totals.append(_report(entity, prior.total))
        secrets.append([[_report(entity, law) for law in laws] for laws in prior.people])
    around: dict[tuple[int, ...], Law] = {(0,) * len(counts): POINT}

    def of(chosen: tuple[int, ...]) -> Law:
        """The law of the sum of so many reports of each kind."""
        if chosen not in around:
            i = next(i for i, k in enumerate(chosen) if k)
            fewer = (*chosen[:i], chosen[i] - 1, *chosen[i + 1 :])
            around[chosen] = shortened(convolved(of(fewer), totals[i]), relative=True)
        return around[chosen]

    worst: list[Fraction | None] = [Fraction(1)] * len(counts)
    for chosen in _choices(counts, plan.honest):
        for i, k in enumerate(chosen):
            if k == 0 or worst[i] is None:
                continue
            rest = of((*chosen[:i], k - 1, *chosen[i + 1 :]))
            for laws in secrets[i]:
                for one, other in pairwise([convolved(law, rest) for law in laws]):
                    worst[i] = worst_of([worst[i], _law_quotient(one, other)])
    return worst


def _choices(counts: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Every way to take `total` things, at most `counts[i]` of kind `i`."""
    spend(1, 10**6)
    if not counts:
        if total == 0:
            yield ()
        return
    for k in range(min(counts[0], total) + 1):
        if total - k <= sum(counts[1:]):
            for rest in _choices(counts[1:], total - k):
                yield (k, *rest)


def _report(entity: Entity, law: Law) -> Law:
    """The law of what a finite table reports."""
    low, high = entity.outputs[0], entity.outputs[-1]
    spend(high - low, 3000)
    values = dict(zip(entity.outputs, entity.released(law), strict=True))
    weights = [values.get(s, (0, 0))[0] for s in range(low, high + 1)]
    return shortened(exact_law(weights, law.unit * entity.table.denominator, low), relative=True)


def _law_quotient(one: Law, other: Law) -> Fraction | None:
    first = min(one.first, other.first)
    last = max(one.first + len(one.above), other.first + len(other.above))
    spend(4 * (last - first), one.unit.bit_length() ** 2 // 900)

    def padded(law: Law) -> list[Pair]:
        before, after = law.first - first, last - law.first - len(law.above)
        return [(0, 0)] * before + list(zip(law.below, law.above, strict=True)) + [(0, 0)] * after

    return both_ways(padded(one), padded(other), Fraction(other.unit, one.unit))


def _error_law(entity: Entity, law: Law, f: int) -> Law:
    """The law of `s - f x` of a finite table."""
    table, found = entity.table, dict[int, int]()
    for x, weight in law.items():
        row = table.rows[table.served(x) or 0]
        spend(len(row), law.unit.bit_length() + 200)
        for s, inside in row:
            found[s - f * x] = found.get(s - f * x, 0) + weight * inside
    low, high = min(found), max(found)
    spend(high - low, 3000)
    return exact_law([found.get(k, 0) for k in range(low, high + 1)], law.unit * table.denominator, low)
