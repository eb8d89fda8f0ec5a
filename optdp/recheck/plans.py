"""The problem of several entities, and their plan if its tables are finite.

**Tables that are private on their own** (method "alone") are looked at one by one, each with the eyes of its observer
(`observers`). What anybody else sees, or knows of other parties, is computed from such a report and from what does not
depend on the person.

**Other finite tables.** Given `w`, the sum of the reports of honest parties has the law `u_w * v_2 * .. * v_t`:
polynomials are multiplied, and every quotient is looked at, for every set of `honest` parties. Larger sets add
independent terms, which raises no quotient.

**An observer of a joint plan** is in doubt about the people of all parties. The difference of the two sides is affine
in every other person's law, so that everybody is at an end where it is largest, and only how many people of each party
are at which end counts: every product of these numbers is looked at.

**A release that is drawn inside** a secure computation comes from one table of the total: `inside`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate, combinations, pairwise, product
from typing import Any

from .bounds import Program
from .boxes import observed_quotient
from .claims import demand
from .enclosures import Pair, both_ways, noise_ratio, worst_of
from .entity import Entity, Table
from .fields import check_epsilons, exact_number, list_of, one_of, table_with, whole_number
from .inside import check_fit, quotient, read_whole
from .laws import POINT, Law, common_unit, convolved, exact_law, multiplied, shortened
from .maps import Maps
from .observers import Kind, Observer, read_observers
from .priors import Prior, independent, read_prior
from .reading import canonical
from .single import Problem
from .verdict import must, spend


@dataclass(frozen=True)
class Plan:
    """The problem of several entities, and a table for each."""

    tables: Sequence[Table]
    worlds: Sequence[Sequence[Prior]]
    names: Sequence[Sequence[bytes]]
    """For each world and party what tells its prior from another."""
    epsilon: Fraction
    fallback: Fraction | None
    honest: int
    f: Sequence[int]
    power: int
    """Of the error in the objective."""
    alone: bool
    """Whether each table must be private on its own."""
    observers: Sequence[Observer | None]
    """Who is watching each party; None: somebody who knows exactly the prior."""
    every: bool
    """Whether any two contributions are compared at epsilon, instead of steps."""
    inside: bool
    """Whether no party may report anything outside the range of `f x`."""
    never_worse: Fraction | None
    """How often the error of geometric noise any sum may have."""
    maps: Sequence[Maps] = ()
    """With a common word the maps of each party, and no tables."""
    whole: Problem | None = None
    """If the release is drawn inside: the problem of one entity with everybody's data."""

    @cached_property
    def sensitivity(self) -> int:
        """How far one person can move the sum."""
        return max(abs(f) * prior.largest for f, prior in zip(self.f, self.worlds[0], strict=True))

    @cached_property
    def steps(self) -> list[Fraction]:
        """For each party how many steps of one of its people move the sum as far as anybody can."""
        if self.every:
            return [Fraction(1)] * len(self.f)
        return [Fraction(self.sensitivity, abs(f)) for f in self.f]


@dataclass(frozen=True)
class Figures:
    """What is recomputed of a plan; quotients are those of one step."""

    quotients: Sequence[Fraction | None]
    ordinary: Sequence[Fraction | None]
    own: Sequence[Fraction]
    mae: Fraction
    mse: Fraction
    worst: Fraction | None = None
    """With `never_worse`, the largest mean absolute error given any sum."""


def read_plan(problem: Any, tables: Sequence[Table | Maps]) -> Plan:
    spec = table_with(
        problem, "problem", "kind epsilon parties",
        "method honest objective fallback_epsilon f divisor contraction adjacency tail never_worse also observer names "
        "title source notes expect",
    )  # fmt: skip
    one_of(spec["kind"], "kind", "multi-lte")
    epsilon, fallback = check_epsilons(spec)
    power = 1 if one_of(spec.get("objective", "mae"), "objective", "mae mse") == "mae" else 2
    one_of(spec.get("contraction", "optimal"), "contraction", "optimal scaled shifts none algorithm-5")
    divisor = exact_number(spec.get("divisor", 1), "divisor")
    must(Fraction(1, 10**12) <= divisor <= 10**12, "divisor must lie between 1e-12 and 1e12", spec.get("divisor"))
    count = whole_number(len(list_of(spec["parties"], "parties")), "the number of parties", 2, 1000)
    called = list_of(spec.get("names", []), "names")
    distinct = {" ".join(name.split()) for name in called if isinstance(name, str)} - {""}
    must(len(called) in (0, count) and len(distinct) == len(called), "names must be one for each party", called)
    honest = whole_number(spec.get("honest", count), "honest", 1, count)
    f = [whole_number(factor, "f", -1000, 1000) for factor in list_of(spec.get("f", [1] * count), "f")]
    must(len(f) == count and 0 not in f, "f must be one coefficient for each party, not 0", f)
    also = [table_with(world, "a world", "parties")["parties"] for world in list_of(spec.get("also", []), "also")]
    lists = [spec["parties"], *(list_of(parties, "parties") for parties in also)]
    must(all(len(world) == count for world in lists), "Every world must have every party", len(lists))
    must(len(tables) == count, "A plan must have a table for each party", len(tables))
    names, worlds = _read_worlds(lists)
    method = spec.get("method")
    finite = [table for table in tables if isinstance(table, Table)]
    maps = [table for table in tables if isinstance(table, Maps)]
    must(len(maps) == (count if method == "seeded" else 0), "Maps of a common word are for method seeded", method)
    if method == "inside":
        whole = read_whole(spec, worlds, epsilon, fallback, honest, power)
        check_fit(whole, finite)
        must({table.tail is None for table in tables} == {True}, "Tables must be finite", method)
        asked = (spec.get("adjacency", "unit"), spec.get("tail", "margin"), _never_worse(spec.get("never_worse")))
        must(asked == ("unit", "margin", None), "adjacency, tail and never_worse are for joint", method)
        nobody = [None] * count
        return Plan(
            finite, worlds, names, epsilon, fallback, honest, f, power, False, nobody, False, False, None, (), whole
        )
    observers = _read_observers(spec, worlds[0], epsilon)
    must(method is not None or not any(observers), "A plan with an observer must say its method", method)
    method = "joint" if method is None else method
    one_of(method, "method", "joint divisible geometric alone seeded")
    if method == "seeded":  # whoever knows the word sees through the maps
        right = honest == count and fallback is None and not any(observers)
        must(right, "With a common word all parties are honest, without fallback and observers", honest)
    right = method in ("joint", "seeded") or (not also and (fallback is None or method == "alone"))
    must(right, "also and fallback_epsilon are for joint", method)
    must(method in ("joint", "alone") or not any(observers), "An observer is for joint or alone", method)
    every = one_of(spec.get("adjacency", "unit"), "adjacency", "unit all") == "all"
    inside = one_of(spec.get("tail", "margin"), "tail", "margin none") == "none"
    never_worse = _never_worse(spec.get("never_worse"))
    must(not every or method in ("joint", "alone"), 'adjacency = "all" is for joint or alone', method)
    plain = method == "joint" and not any(observers)
    must(plain or not (inside or never_worse), "tail and never_worse are for joint plans without an observer", method)
    plan = Plan(finite, worlds, names, epsilon, fallback, honest, f, power, method == "alone", observers, every, inside,
                never_worse, maps)  # fmt: skip
    laws = {None if table.tail is None else table.tail["law"] for table in tables}
    must(laws in ({None}, {"sgdl"}), "Tables must be all finite, or all with shares of noise", laws)
    more = method == "alone" or any(observers) or every or inside or never_worse is not None
    must(laws == {None} or not more, "Tables that are asked for more than shares of noise keep must be finite", laws)
    must(
        laws == {"sgdl"} or method in ("joint", "alone", "seeded"),
        f'With method = "{method}" parties must add shares of noise',
        laws,
    )
    for i in range(count):
        _check_fit(plan, i, method)
    return plan


def _never_worse(stated: Any) -> Fraction | None:
    if stated is None or stated is False:
        return None
    times = Fraction(1) if stated is True else exact_number(stated, "never_worse")
    must(1 <= times <= 1000, "never_worse must be true, or 1 to 1000", stated)
    return times


def _read_worlds(lists: Sequence[Sequence[Any]]) -> tuple[list[list[bytes]], list[list[Prior]]]:
    """For each world and party what tells its prior from another, and that prior; alike ones are read once."""
    known: dict[bytes, Prior] = {}
    units = set()
    for party in (party for world in lists for party in world):
        name = canonical(party)
        if name not in known:
            must(isinstance(party, dict), "A party must be a table", party)
            known[name] = read_prior({key: value for key, value in party.items() if key != "observer"}, "unit")
            unit = party.get("unit", "")
            must(isinstance(unit, str), "unit must be text", unit)
            units.add(unit)
    must(len(units) == 1, "All parties must count in one unit", sorted(units))
    plain = all(party.get("observer") is None for world in lists[1:] for party in world)
    must(plain, "A world of also must have no observer", "one")
    names = [[canonical(party) for party in world] for world in lists]
    worlds = [[known[name] for name in world] for world in names]
    for world in worlds:
        alike = all((a.last, a.largest) == (b.last, b.largest) for a, b in zip(world, worlds[0], strict=True))
        must(alike, "Parties must have the same inputs and contributions in every world", len(worlds))
    return names, worlds


def _read_observers(spec: Mapping[str, Any], priors: Sequence[Prior], epsilon: Fraction) -> list[Observer | None]:
    """Who is watching each party: the one that it names, or else the one of all."""
    found: list[Observer | None] = []
    for party, prior in zip(spec["parties"], priors, strict=True):
        stated = party.get("observer")
        stated = spec.get("observer") if stated is None else stated
        stated = {} if stated is None else stated
        must(isinstance(stated, dict) and "epsilon" not in stated, "An observer of a plan has no epsilon", stated)
        listed = read_observers(stated, party, prior, epsilon)
        found.append(listed[0] if listed else None)
    return found


def _check_fit(plan: Plan, party: int, method: str) -> None:
    """The table of a party must be one that its problem can have."""
    table: Table | Maps = plan.maps[party] if plan.maps else plan.tables[party]
    last, f = plan.worlds[0][party].last, plan.f[party]
    inputs, outputs = [table.first, table.final], [table.low, table.high]
    must(table.first >= 0 and table.final <= last, f"Rows must be for inputs 0..{last}", inputs)
    must(table.outside != "error" or inputs == [0, last], f"Every input 0..{last} must have a row", inputs)
    unit = plan.epsilon / plan.sensitivity
    if table.tail is None:  # noise goes farther with a chance below e^-40
        (lowest, highest), reach = sorted((0, f * last)), 0 if plan.inside else 2 + math.ceil(40 / unit)
        right = lowest - reach <= table.low and table.high <= highest + reach
        must(right, f"Outputs must lie in {lowest - reach}..{highest + reach}", outputs)
    elif method == "geometric" and isinstance(table, Table):
        right = table.q == noise_ratio(unit) and table.tail["beta"] == ["1", str(plan.honest)]
        must(right, f"Each party must add 1/{plan.honest} of the noise of its epsilon", table.tail)
        must(table.tail["contraction"] is None and table.low == table.high, "Noise alone must be added", outputs)


def bounding(plan: Plan) -> Program | None:
    """The program of one entity that holds everybody's data: no plan does better, if all people are alike, contribute 0
    or 1 and count once each. For then the mean of a plan over all permutations of the people is a table of that
    entity. What a conservative prior takes as known only shifts the sum, differently in every world."""
    if plan.whole is not None:  # the program that was solved
        return plan.whole.program
    shifted = any(json.loads(name).get("conservative") is not None for names in plan.names for name in names)
    merged = []
    for world in plan.worlds[:1] if shifted else plan.worlds:
        laws = {law for prior in world for law in prior.laws}
        if (
            _unlike(plan.observers)
            or len(laws) != 1
            or not all(prior.laws for prior in world)
            or any(f != 1 for f in plan.f)
        ):
            return None
        (law,) = laws
        if len(law) != 2:
            return None
        merged.append(independent({law: sum(sum(prior.laws.values()) for prior in world)}, None))
    weights = [Fraction(1)] + [Fraction(0)] * (len(merged) - 1)
    chain: Fraction | None = None
    watching: list[Observer] = []
    if (one := plan.observers[0]) is not None:  # of everybody, as all know the same
        chain = plan.epsilon if one.known is None else None
        people = sum(sum(prior.laws.values()) for prior in plan.worlds[0])
        watching = [replace(one, kinds=tuple(replace(kind, count=people) for kind in one.kinds))]
    return Program(merged, weights, plan.power, False, plan.epsilon, Fraction(1, 2), False, False, chain, 1, watching)


def _unlike(observers: Sequence[Observer | None]) -> bool:
    """Whether some know more than others."""
    told = {None if one is None else (one.known, *((kind.low, kind.high) for kind in one.kinds)) for one in observers}
    return len(told) > 1


def demand_privacy(plan: Plan, quotients: Sequence[Fraction | None]) -> None:
    for i, ratio in enumerate(quotients):
        demand(f"epsilon of the people of party {i}", ratio, plan.epsilon, plan.steps[i])


# ---------------------------------------------------------------------- finite tables


def joint_figures(plan: Plan) -> Figures:
    if plan.whole is not None:
        return _inside_figures(plan, plan.whole)
    must(len(plan.tables) <= 64, "A joint plan must have at most 64 parties", len(plan.tables))
    entities = [Entity(table, prior.last, prior.last) for table, prior in zip(plan.tables, plan.worlds[0], strict=True)]
    worst: list[Fraction | None] = [Fraction(1)] * len(entities)
    if plan.alone:
        worst = [_own_quotient(*own, plan.every) for own in zip(entities, plan.worlds[0], plan.observers, strict=True)]
    elif any(plan.observers):
        worst = _vertex_products(plan, entities)
    listed = () if plan.alone or any(plan.observers) else zip(plan.worlds, plan.names, strict=True)
    for world, names in listed:
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
    given = None if plan.never_worse is None else _worst_sum(plan, entities)
    return Figures(worst, ordinary, [law.moment(1) for law in errors], total.moment(1), total.moment(2), given)


def _inside_figures(plan: Plan, whole: Problem) -> Figures:
    """One table for all: what it shows about anybody, and its error."""
    entity, count = Entity(plan.tables[0], whole.last, whole.last), len(plan.tables)
    ratios = [quotient(whole, entity)] * count
    demand_privacy(plan, ratios)
    errors = _error_law(entity, whole.priors[0].total, 1)
    mae, mse = errors.moment(1), errors.moment(2)
    return Figures(ratios, [entity.ordinary(1)] * count, [mae] * count, mae, mse)


def _own_quotient(entity: Entity, prior: Prior, observer: Observer | None, every: bool) -> Fraction | None:
    """The largest quotient of a step, or with `every` of any two contributions, that one table shows by itself."""
    if observer is None or observer.exact:
        return entity.quotients(prior, every)
    if observer.known is None:
        return entity.ordinary(prior.largest if every else 1)
    return observed_quotient(entity, observer, every)


def _vertex_products(plan: Plan, entities: Sequence[Entity]) -> list[Fraction | None]:
    """For each party the largest quotient of a step over all products of vertices."""
    right = plan.honest == len(entities) and len(plan.worlds) == 1 and set(plan.f) == {1} and plan.fallback is None
    must(right, "A joint plan with an observer must have honest parties, one world, no fallback and no f", plan.f)
    totals, given = [], []
    for entity, prior, observer in zip(entities, plan.worlds[0], plan.observers, strict=True):
        laws = prior.laws
        must(len(laws) == 1 and prior.largest == 1, "Its parties must have people of one kind, 0 or 1", len(laws))
        ((law, count),) = laws.items()
        kind = observer.kinds[0] if observer is not None and observer.kinds else Kind(law, law, count)
        must(observer is None or observer.known == 0, "Nobody may be known to its observer", "known people")
        totals.append([_report(entity, ends) for ends in _ends(kind, count)])
        given.append([[_report(entity, replace(ends, first=w)) for w in (0, 1)] for ends in _ends(kind, count - 1)])
    width = sum(table.high - table.low + 1 for table in plan.tables)
    for i, own in enumerate(given):  # said beforehand, as it is most of the work
        spend(len(own) * math.prod(len(total) for j, total in enumerate(totals) if j != i) * width, 0)
    worst: list[Fraction | None] = []
    for i, own in enumerate(given):
        found: Fraction | None = Fraction(1)
        for beside in product(*(total for j, total in enumerate(totals) if j != i)):
            rest = reduce(convolved, beside)
            for zero, one in own:
                found = worst_of([found, law_quotient(convolved(zero, rest), convolved(one, rest))])
        worst.append(found)
    return worst


def _ends(kind: Kind, count: int) -> Iterator[Law]:
    """The sum of `count` people, of whom 0, 1, .. are at the upper end."""
    unit = common_unit((*kind.low, *kind.high), "a law")
    low, high = ([int(chance * unit) for chance in law] for law in (kind.low, kind.high))
    powers = []
    for law in (low, high):
        powers.append([[1]])
        for _ in range(count):
            spend(count, count * unit.bit_length())
            powers[-1].append(multiplied(powers[-1][-1], law))
    for k in range(1 if kind.fixed else count + 1):
        spend(count, count * unit.bit_length())
        yield exact_law(multiplied(powers[0][count - k], powers[1][k]), unit**count)


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
                seen = [convolved(law, rest) for law in laws]
                for one, other in combinations(seen, 2) if plan.every else pairwise(seen):
                    worst[i] = worst_of([worst[i], law_quotient(one, other)])
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


def law_quotient(one: Law, other: Law) -> Fraction | None:
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


def _worst_sum(plan: Plan, entities: Sequence[Entity]) -> Fraction:
    """The largest mean absolute error given any sum of the parties' weighted inputs, exactly.

    For each sum `t` of the parties so far: the integers of `Pr[t, s]` for what they report together. The last party
    is added error by error.
    """
    together: dict[int, list[int]] = {0: [1]}
    low = 0
    for entity, prior, f in zip(entities[:-1], plan.worlds[0], plan.f, strict=False):
        table, found = entity.table, dict[int, list[int]]()
        for x, chance in prior.total.items():
            line = [0] * (table.high - table.low + 1)
            for s, weight in table.rows[table.served(x) or 0]:
                line[s - table.low] = chance * weight
            for u, law in together.items():
                more, known = multiplied(law, line), found.get(u + f * x)
                spend(len(more), 64)
                found[u + f * x] = more if known is None else [a + b for a, b in zip(known, more, strict=True)]
        together, low = found, low + table.low
    table, f = entities[-1].table, plan.f[-1]
    errors, masses = dict[int, int](), dict[int, int]()
    for x, chance in plan.worlds[0][-1].total.items():
        row = table.rows[table.served(x) or 0]
        for u, law in together.items():
            t = u + f * x
            spend(len(row) + len(law), 3000)
            # E|s + r - t| over the reports s of the others: a convex function of r, by its slopes
            above, here = sum(law), sum(p * abs(k + low + row[0][0] - t) for k, p in enumerate(law))
            before = list(accumulate(law, initial=0))
            place, error = row[0][0], 0
            for r, weight in row:
                while place < r:
                    below = before[min(max(t - low - place, 0), len(law))]  # k + low + place < t
                    here, place = here + above - 2 * below, place + 1
                error += weight * here
            errors[t] = errors.get(t, 0) + chance * error
            masses[t] = masses.get(t, 0) + chance * above * table.denominator
    return max(Fraction(errors[t], masses[t]) for t in errors)
