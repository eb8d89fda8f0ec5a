"""Where the epsilon of a plan is reached: the worst party, the honest parties, and the worst aggregate.

Of finite tables every aggregate of every set of honest parties is looked at, and the worst one is shown as it is. Of
shares of noise the proof has factors (`optdp.plan.divisible_certify`): the largest quotient `Q` of the party's
contracted input with geometric noise, which is reached at a point that is shown, times the spreads of the honest
parties, which bound what rounding left. Where each table is private on its own, the worst report of the worst party is
shown, in the worst of the worlds that its observer holds possible; where the release is drawn inside, the worst release
in the worst of the worlds of all coalitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, Literal

from flint import arb

from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import ball, decimal_up, precision, show
from optdp.objects import Public
from optdp.people.population import Population
from optdp.plan.certify import PRECISIONS, StepComparison, comparisons, places, reports_of, steps_of
from optdp.plan.divisible_certify import check_plan, leaks_of, smoothed, worst_set
from optdp.plan.format import Table
from optdp.plan.inside import common
from optdp.plan.problem import MultiLTE
from optdp.plan.products import crowds_of, worst_products
from optdp.plan.seeded_certify import check_common, seeded_comparisons
from optdp.single.explain import Pair, Sight, Tail, WorstInputs, exceeds, explain, sighted, worst_rows


@dataclass(frozen=True)
class WorstAggregate(Public):
    """The aggregate that tells most about one person, for an observer who knows the priors.

    Worlds, parties and kinds of person (`person`) are counted from 0.
    """

    world: int
    party: int
    honest: tuple[int, ...]
    """The parties whose sum the observer sees alone, having subtracted the others."""
    person: int
    people: int
    contributions: Pair
    """The contribution under which the output is likelier, and the other."""
    sight: Sight
    spread: Fraction = Fraction(1)
    """With shares of noise, what the tables' rounding may add: this factor of the quotient is in no probability."""
    seen: Literal["aggregate", "input with noise", "report", "release"] = "aggregate"
    """What the output is one of. With shares of noise the proof compares the party's own (contracted) input with all of
    the honest parties' noise; what the others add can only make the quotient smaller. Where each table is private on
    its own it is the party's own report. Where it is drawn inside, it is the release, and the person is anybody's."""
    others: str = ""
    """With an observer in doubt, who is where in the worst of the worlds that are held possible."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        about = {"world": self.world, "party": self.party, "honest": list(self.honest), "person": self.person}
        about |= {"people": self.people, "contributions": list(self.contributions)}
        about |= {"others": self.others} if self.others else {}
        return about | {"seen": self.seen} | self.sight.document() | {"spread": decimal_up(self.spread, 30)}


@dataclass(frozen=True)
class PlanExplanation(Public):
    """Where the epsilons of a plan are reached."""

    worst: WorstAggregate | None
    """None if nothing finite is proved of shares of noise."""
    ordinary: tuple[WorstInputs, ...]
    """For each party that of its own table; of the one table if it is drawn inside; empty with shares of noise and with
    a common word."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "worst": None if self.worst is None else self.worst.document(),
            "ordinary": [own.document() for own in self.ordinary],
        }


def explain_plan(problem: MultiLTE, tables: Sequence[Table]) -> PlanExplanation:
    """Where the epsilons of a plan are reached, whether they hold or not."""
    seeded = [table for table in tables if isinstance(table, SeededMaps)]
    if len(seeded) == len(tables):
        check_common(problem, seeded)
        return PlanExplanation(_worst_aggregate(problem, seeded), ())
    finite = [table for table in tables if isinstance(table, NoiseMatrix)]
    if len(finite) < len(tables):
        shares = [table for table in tables if isinstance(table, SharedNoise)]
        with precision():
            check_plan(problem, shares)  # the proof is for shares that add up to geometric noise
            return PlanExplanation(_worst_share(problem, shares), ())
    if problem.method == "inside":
        return _worst_release(problem, common(finite))
    if problem.method == "alone":
        worst = _worst_report(problem, finite)
    elif problem.watched:
        worst = _worst_vertices(problem, finite)
    else:
        worst = _worst_aggregate(problem, finite)
    with precision():
        ordinary = tuple(
            worst_rows(table, 1, Fraction(party.largest), problem.fallback_epsilon)
            for table, party in zip(finite, problem.parties, strict=True)
        )
    return PlanExplanation(worst, ordinary)


# ---------------------------------------------------------------------- finite tables


def _worst_report(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> WorstAggregate:
    """The worst report of all parties, for tables that are private on their own."""
    found = []
    for party, table in enumerate(tables):
        whole = problem.alone(party)
        worst = explain(whole, table).worst
        kind, people = (0, whole.populations[0].size) if worst.world else (worst.person, worst.people)
        sight = replace(worst.sight, factor=worst.sight.factor * problem.epsilon / whole.epsilon, limit=problem.epsilon)
        who = (0, party, (party,), kind, people, worst.contributions)
        found.append(WorstAggregate(*who, sight, seen="report", others=worst.world))
    return max(found, key=_largest)


def _worst_release(problem: MultiLTE, table: NoiseMatrix) -> PlanExplanation:
    """The worst release that is drawn inside, seen by anybody or by the worst coalition."""
    found = explain(problem.merged, table)
    worst, everybody = found.worst, tuple(range(len(problem.parties)))
    world = 0 if worst.world else worst.prior
    who = (world, 0, everybody, 0 if worst.world else worst.person, worst.people, worst.contributions)
    return PlanExplanation(WorstAggregate(*who, worst.sight, seen="release", others=worst.world), (found.ordinary,))


def _worst_vertices(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> WorstAggregate:
    """The worst aggregate over all products of vertices, for an observer with doubts."""
    found, crowds = [], crowds_of(problem)
    for worst in worst_products(problem, tables):
        places = []
        for i, (crowd, high) in enumerate(zip(crowds, worst.high, strict=True)):
            others = crowd.count - (i == worst.party)
            ends = f"{high} at {show(crowd.high[1])} and {others - high} at {show(crowd.low[1])}"
            places.append(f"party {i}: {f'{others} as stated' if crowd.fixed else ends}")
        sight = Sight(worst.sum, (worst.one, worst.other), worst.above, Fraction(1), problem.epsilon)
        who = (0, worst.party, tuple(range(len(tables))), 0, crowds[worst.party].count, worst.contributions)
        found.append(WorstAggregate(*who, sight, others=f"of the others {'; '.join(places)}"))
    return max(found, key=_largest)


def _largest(found: WorstAggregate) -> tuple[bool, Fraction]:
    return found.sight.epsilon is None, found.sight.epsilon or Fraction(0)


Place = tuple[StepComparison, int, arb, arb]
"""A step, an aggregate from the smallest on, and its coefficients in the two laws."""


Finite = Sequence[NoiseMatrix] | Sequence[SeededMaps]


def _worst_aggregate(problem: MultiLTE, tables: Finite) -> WorstAggregate:
    """The worst aggregate of all, for an observer who knows the priors."""
    for bits in PRECISIONS:  # the more, the narrower the balls, until every coefficient is told from zero
        with precision(bits):
            worst, sharp = _sighted_aggregate(problem, tables)
        if sharp:
            break
    return worst


def _compared(problem: MultiLTE, world: Sequence[Population], tables: Finite) -> Iterator[StepComparison]:
    seeded = [table for table in tables if isinstance(table, SeededMaps)]
    if seeded:
        return seeded_comparisons(world, seeded)
    finite = [own for own in tables if isinstance(own, NoiseMatrix)]
    return comparisons(problem.honest, reports_of(world, finite), problem.adjacency == "all")


def _sighted_aggregate(problem: MultiLTE, tables: Finite) -> tuple[WorstAggregate, bool]:
    """The worst aggregate of all, and whether no coefficient that has a mass may be zero."""
    found, sharp = [], True
    for number, world in enumerate(problem.worlds):
        best: dict[int, Place] = {}
        for step in _compared(problem, world, tables):
            known = best.get(step.party)
            alone = step.reached[0] ^ step.reached[1]  # aggregates that only one of both secrets reaches
            for k in places(alone or step.reached[0]):
                one, other = (step.one[k], step.other[k])
                if alone:
                    one, other = (one, arb(0)) if step.reached[0] >> k & 1 else (arb(0), other)
                else:
                    sharp = sharp and bool(one > 0 and other > 0)
                if known is None or exceeds((one, other), known[2:]):
                    known = step, k, one, other
            if known is not None:
                best[step.party] = known
        found += [_aggregate(problem, tables, number, place) for place in best.values()]
    return max(found, key=_largest), sharp


def _aggregate(problem: MultiLTE, tables: Finite, number: int, place: Place) -> WorstAggregate:
    step, k, one, other = place
    own = [tables[i] for i in step.honest]
    units = [table.denominator for table in own]  # the laws of reports leave them out; a common word has one
    scale = ball(units[0] if isinstance(own[0], SeededMaps) else prod(units))
    output = k + sum(table.outputs[0] for table in own)
    factor = steps_of(problem, problem.worlds)[step.party]
    sight = sighted(output, one / scale, other / scale, factor, problem.epsilon)
    people = problem.worlds[number][step.party].people[step.person].count
    contributions = step.contributions[::-1] if one < other else step.contributions
    return WorstAggregate(number, step.party, step.honest, step.person, people, contributions, sight)


# ---------------------------------------------------------------------- shares of noise


def _worst_share(problem: MultiLTE, tables: Sequence[SharedNoise]) -> WorstAggregate | None:
    """The party with the largest bound; None if it is infinite."""
    found = []
    for number, world in enumerate(problem.worlds):
        leaks = leaks_of(list(zip(world, tables, strict=True)))
        known = [leak for leak in leaks if leak is not None]
        if len(known) < len(leaks):
            return None
        for party, (population, noise) in enumerate(zip(world, tables, strict=True)):
            honest = worst_set(problem, party, known)
            spread = prod((known[i].spread for i in honest), start=Fraction(1))
            kind, w, y = known[party].place or (0, 0, 0)
            one, other, tail = _point(population, noise, known[party].place)
            contributions = (w + 1, w) if one < other else (w, w + 1)
            factor = Fraction(problem.sensitivity, abs(problem.f[party]))
            sight = sighted(noise.factor * y, one, other, factor, problem.epsilon, tail)
            bound = replace(sight, quotient=known[party].quotient * spread)
            people = population.people[kind].count
            who = (number, party, honest, kind, people, contributions)
            found.append(WorstAggregate(*who, bound, spread, "input with noise"))
    return max(found, key=lambda item: item.sight.epsilon or 0)


def _point(population: Population, noise: SharedNoise, place: tuple[int, int, int] | None) -> tuple[arb, arb, Tail]:
    """`(f A_w * Geo_q)(f y)` for both secrets of the step for which `Q` is reached, and on which side it lies."""
    q, f, last = ball(noise.q), noise.factor, population.last
    kind, w, y = place or (0, 0, 0)
    laws = population.people[kind].conditionals[w : w + 2]
    if place is None:  # no contraction: at 0 the sum is a mean of powers
        values = [law.power_mean(q ** abs(f)) for law in laws]
    else:
        values = [smoothed(noise, law.balls(0, last))[y] for law in laws]
    one, other = ((1 - q) / (1 + q) * value for value in values)
    return one, other, "" if 0 < y < last else "below" if (y == 0) == (f > 0) else "above"
