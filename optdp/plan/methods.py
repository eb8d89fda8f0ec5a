"""The methods by which a plan of several entities is found, and the best of them; nothing leaves uncertified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial

import optdp.work as work
from optdp.errors import CertificateError, OptdpError, ProblemError, SolverError
from optdp.mechanism.added_noise import table_only
from optdp.mechanism.matrix import NoiseMatrix
from optdp.people.observer import Observer
from optdp.plan import seeded
from optdp.plan.certificate import PlanCertificate, Tried
from optdp.plan.certify import certify_plan
from optdp.plan.divisible import design, divisible_seconds, geometric
from optdp.plan.format import Table
from optdp.plan.inside import for_all
from optdp.plan.joint import NARROW, ROOM, PlanDraft, descend, rounded
from optdp.plan.parties import width
from optdp.plan.problem import MultiLTE, each_once
from optdp.plan.seeded_certify import certify_seeded
from optdp.plan.simultaneous import settled
from optdp.plan.starts import MOST_PRODUCTS, Size, check_cells, starts
from optdp.plan.together import designed
from optdp.plan.together import rounded as written
from optdp.single.bound import Prices
from optdp.single.core import core_seconds
from optdp.single.cuts import cuts_seconds
from optdp.single.lp import pair_seconds
from optdp.single.problem import Objective, SingleLTE
from optdp.single.solve import Solution, solve_single
from optdp.work import Progress, announce
from optdp.work.account import Effort

RESERVES = {ROOM: Fraction(94, 100), NARROW: Fraction(996, 1000)}
"""The share of epsilon that the first plan spends, so that the programs have room for a slack."""
MORE_TRIES, DESCENT = 100_000_000, 300_000_000
"""Work (`Effort`) after which no further start is tried, and after which a descent ends with what it has."""
RESERVE, REPAIRS = 1 - 1e-9, 12
"""The share of epsilon that a plan against observers spends; how often what it leaves to repair is looked at."""
FITS = 'Use fewer or alike parties, a larger epsilon, or method = "divisible".'
ALLOWED = 150.0
"""Seconds: of all methods those are left out that take about so long."""
LEAST_GAIN = 1e-9
"""A method that assumes more must be better by this share."""
BITS = (62, 128)
"""Denominators of the tables, in turn, until the rounded plan is private."""


@dataclass(frozen=True)
class Found:
    """What a method found; `bound` is what its own program proves of every such plan, with the prices of it."""

    tables: tuple[Table, ...]
    certificate: PlanCertificate
    status: str
    note: str = ""
    bound: tuple[Fraction | None, Prices | None] | None = None


def best(problem: MultiLTE, progress: Progress) -> tuple[MultiLTE, Found, tuple[Tried, ...]]:
    """The most accurate plan of all methods that the problem admits; of equals, the one that assumes least.

    Methods that end soonest come first, so that whoever interrupts has what is good already. Geometric noise takes no
    search, and stands in where nothing else was found in time. What takes long is left out, unless nothing else is
    found.
    """
    reasons = {name: refusal(problem, name) for name in METHODS}
    seconds = {name: METHODS[name].seconds(problem.changed(method=name)) for name, why in reasons.items() if not why}
    slow = {name for name in seconds if seconds[name] > ALLOWED}
    if slow == seconds.keys() - {"geometric"}:
        slow = set()
    for name in slow:
        reasons[name] = f'it would take about {work.duration(seconds[name])}. Name it, as method = "{name}"'
    work.expect(sum(seconds[name] for name in seconds.keys() - slow), "All methods", progress)
    plans: dict[str, tuple[MultiLTE, Found]] = {}
    stop: KeyboardInterrupt | None = None
    for name in SOONEST:
        if stop is not None and (plans or name != "geometric"):
            reasons[name] = reasons[name] or "interrupted"
        if reasons[name]:
            continue
        stated = problem.changed(method=name)
        progress(f"method {name}")
        try:
            found = METHODS[name].solve(stated, partial(_said, progress, name))
        except (ArithmeticError, OptdpError) as error:
            reasons[name] = str(error)
        except KeyboardInterrupt as error:
            stop, reasons[name] = error, "interrupted"
        else:
            plans[name], reasons[name] = (stated, found), found.note
            if found.status == "interrupted":
                stop = KeyboardInterrupt()
    if not plans:
        if stop is not None:
            raise stop
        raise SolverError("No method found a plan. " + " ".join(f"{name}: {reasons[name]}" for name in METHODS))
    values = {name: _value(stated, found.certificate) for name, (stated, found) in plans.items()}
    least = min(values.values())
    chosen = next(name for name in METHODS if name in values and values[name] * (1 - LEAST_GAIN) <= least)
    tried = tuple(
        Tried(name, float(values[name]) if name in values else None, reasons[name], way.assumes(problem),
              way.protects(problem))
        for name, way in METHODS.items()
    )  # fmt: skip
    stated, found = plans[chosen]
    return stated, found if stop is None else replace(found, status="interrupted"), tried


def _said(progress: Progress, name: str, text: str) -> None:
    progress(f"{name}: {text}")


def refusal(problem: MultiLTE, name: str) -> str:
    """Why a method cannot solve a problem; empty if it can."""
    try:
        return METHODS[name].refusal(problem.changed(method=name))
    except ProblemError as error:
        return str(error)


def _baseline(problem: MultiLTE, status: str = "baseline", note: str = "") -> Found:
    plan = geometric(problem)
    return Found(plan.parties, plan.certificate, status, note)


def _divisible(problem: MultiLTE, progress: Progress) -> Found:
    try:
        plan = design(problem, problem.contraction, progress)
    except KeyboardInterrupt:
        return _baseline(problem, "interrupted", "interrupted before the parties' noise was designed")
    except ArithmeticError as error:
        return _baseline(problem, "baseline", f"what was designed cannot be measured: {error}")
    status = "interrupted" if plan.interrupted else "designed alone"
    return Found(plan.parties, plan.certificate, status)


def _inside(problem: MultiLTE, progress: Progress) -> Found:
    """The table of the total for every party, and what its program proves of all such tables."""
    progress("one table for everybody's total")
    whole = solve_single(problem.merged, progress=progress)
    table, certificate = table_only(whole.mechanism, "A plan"), for_all(problem, whole.certificate)
    bound = whole.lower_bound, whole.prices if isinstance(whole.prices, Prices) else None
    return Found((table,) * len(problem.parties), certificate, whole.status, whole.note, bound)


def _together(problem: MultiLTE, progress: Progress) -> Found:
    """A joint plan against observers with doubts; what the search leaves to repair is repaired step by step."""
    plans = designed(problem, RESERVE, progress)
    plan, status, share = next(plans), "local optimum", 0.0
    try:
        for better in plans:
            plan = better
    except KeyboardInterrupt:
        status = "interrupted"
    with work.certifying():
        for _ in range(REPAIRS):
            progress("rounding and certifying all products of vertices")
            tables = written(plan.blurred(share), problem, BITS[0])
            certificate = certify_plan(problem, tables)
            try:
                certificate.check(problem)
            except CertificateError:
                over = 1.0 if certificate.epsilon is None else float(certificate.epsilon / problem.epsilon) - 1
                share = min(1.0, 2 * share + 2 * over + 1e-9)
                continue
            found = Found(tuple(tables), certificate, status, problem.outside)
            baseline = problem.baseline_mae if problem.objective == "mae" else problem.baseline_mse
            return found if _value(problem, certificate) <= baseline else _no_worse(problem, found, progress)
    raise SolverError('No joint plan could be certified against the observer. Use method = "alone".')


def _no_worse(problem: MultiLTE, found: Found, progress: Progress) -> Found:
    """Where geometric noise is better than the plan that was found: tables that are private alone, if that helps."""
    alone = _private_alone(problem.changed(method="alone"), progress)
    finite = [table for table in alone.tables if isinstance(table, NoiseMatrix)]
    with work.certifying():
        certificate = certify_plan(problem, finite)
    if _value(problem, certificate) >= _value(problem, found.certificate):
        return found
    certificate.check(problem)
    return replace(alone, certificate=certificate)


def _joint(problem: MultiLTE, progress: Progress) -> Found:
    if problem.watched:
        return _together(problem, progress)
    size = Size.of(problem)
    if size.products > MOST_PRODUCTS and not problem.finite and not problem.also:
        found = _divisible(problem, progress)
        reason = f"each party designs alone: a joint plan would compare aggregates of {len(problem.parties)} parties"
        return replace(found, note=found.note or f"{reason} of {size.kinds} kinds for hours")
    check_cells(size.cells)
    announce(size.seconds(DESCENT), f"A joint plan of {len(problem.parties)} parties", FITS, progress)
    best: PlanDraft | None = None
    latest: PlanDraft | None = None
    other: PlanDraft | None = None  # of which all tables moved at once
    power = 1 if problem.objective == "mae" else 2
    status = "local optimum"
    effort = Effort(most=DESCENT)
    try:
        alone = cache(lambda slack: _alone(problem, RESERVES[slack], progress))
        for attempt in starts(problem, alone, progress):
            if best is not None and effort.spent > MORE_TRIES:
                break
            best = best or attempt.start
            for plan in descend(attempt, problem, progress, effort):
                latest = plan
            best, latest = _better(best, latest, power), None
            status = status if attempt.paces else "work limit"  # so large that its start is all there is
        if effort.over:
            status = "work limit"
        for plan in settled(problem, best, progress):
            other = _better(other, plan, power)
    except KeyboardInterrupt:
        status = "interrupted"
        best = _better(best, latest, power)
    why = "interrupted before a plan was found" if status == "interrupted" else "no start is near a good plan"
    for draft in filter(None, (None if best is _better(best, other, power) else other, best)):
        try:
            proved = _proved(problem, draft, progress)
        except KeyboardInterrupt:  # what was found so far is this plan
            if status == "interrupted":
                raise
            status, proved = "interrupted", _proved(problem, draft, progress)
        if not isinstance(proved, str):
            return Found(*proved, status)
        why = proved
    if problem.finite:
        more = " Allow a larger multiple, or leave it out." if problem.finite == "never_worse" else ""
        raise SolverError(f"No plan that keeps {problem.finite} could be certified: {why}.{more}")
    if status == "interrupted" or problem.also:
        state = status if status == "interrupted" else "baseline"
        return _baseline(problem, state, f"shared geometric noise instead of a joint plan: {why}")
    note = f"noise that each party designs alone instead of a joint plan: {why}"
    return replace(_divisible(problem, progress), note=note)


def _proved(problem: MultiLTE, plan: PlanDraft, progress: Progress) -> tuple[tuple[Table, ...], PlanCertificate] | str:
    """The plan in integers with its certificate, or why it is none."""
    reason = ""
    for bits in BITS:
        progress("rounding and certifying")
        with work.certifying():
            tables = rounded(plan, problem, bits)
            certificate = certify_plan(problem, tables)
        try:
            certificate.check(problem)
        except CertificateError as error:
            reason = str(error)
            continue
        value = _value(problem, certificate)
        baseline = problem.baseline_mae if problem.objective == "mae" else problem.baseline_mse
        if problem.finite or value <= baseline:
            return tables, certificate
        return "geometric noise is at least as accurate as the plan that was found"
    return reason


def _better(one: PlanDraft | None, other: PlanDraft | None, power: int) -> PlanDraft | None:
    if one is None or other is None:
        return one or other
    return one if one.value(power) <= other.value(power) * (1 + 1e-9) else other


def _alone(problem: MultiLTE, reserve: Fraction, progress: Progress) -> list[NoiseMatrix]:
    """For each party a table that is private whatever the others do (it need not keep the fallback)."""
    worlds = list(zip(*problem.worlds, strict=True))  # for each party its populations
    steps = [problem.pair_epsilon(i) for i in range(len(worlds))]

    def table_of(i: int) -> NoiseMatrix:
        progress(f"party {i}: a first table that is private alone")
        epsilon = steps[i] * (1 if problem.adjacency == "all" else worlds[i][0].largest) * reserve
        found = solve_single(SingleLTE(worlds[i], epsilon, tail="none", never_worse=False, adjacency=problem.adjacency))
        if found.status == "interrupted":
            raise KeyboardInterrupt
        return table_only(found.mechanism, "A plan")

    return each_once(zip(worlds, steps, strict=True), table_of)


def _table_seconds(problem: SingleLTE) -> float:
    """About how long a table of one entity takes."""
    population = problem.populations[0]
    size = width(population)
    if problem.observers != (Observer(),):
        return cuts_seconds(size, 2)
    if population.largest == 1 and len(problem.populations) == len(population.people) == 1:
        return pair_seconds(size)
    return core_seconds(size, 2 * population.largest * len(population.people), len(problem.populations))


def _alone_seconds(problem: MultiLTE) -> float:
    kinds = {id(problem.alone(i)): problem.alone(i) for i in range(len(problem.parties))}
    return 2 * sum(map(_table_seconds, kinds.values()))  # of both errors


def _private_alone(problem: MultiLTE, progress: Progress) -> Found:
    """For each party the best table that is private by itself.

    What is best for a party need not be best for the sum, as errors of many parties add up like squares: tables with
    the least absolute error and such with the least squared one are tried, and those with the better sum are kept.
    """
    best: tuple[tuple[Table, ...], PlanCertificate] | None = None
    status, note = "each alone", "each table is private on its own, so the sum is, whatever the other parties tell"
    if problem.watched and problem.apart:
        note += f"; a joint plan {problem.apart}"
    kinds: tuple[Objective, ...] = ("mae", "mse")
    for kind in kinds if problem.objective == "mae" else kinds[::-1]:
        wholes = [problem.alone(i, kind) for i in range(len(problem.parties))]

        def solved(i: int, wholes: list[SingleLTE] = wholes) -> Solution:
            progress(f"party {i}: a table that is private alone")
            return solve_single(wholes[i], progress=progress)

        found = each_once(map(id, wholes), solved)
        interrupted = any(own.status == "interrupted" for own in found)
        status = "interrupted" if interrupted else status
        if not interrupted or best is None:
            progress("certifying the plan")
            tables = [_times(table_only(own.mechanism, "A plan"), f) for own, f in zip(found, problem.f, strict=True)]
            certificate = certify_plan(problem, tables)
            certificate.check(problem)
            if best is None or _value(problem, certificate) < _value(problem, best[1]):
                best = tuple(tables), certificate
        if interrupted:
            break
    assert best is not None
    baseline = problem.baseline_mae if problem.objective == "mae" else problem.baseline_mse
    shared = ""
    if _value(problem, best[1]) > baseline:
        who = "all parties" if problem.honest == len(problem.parties) else f"{problem.honest} parties"
        shared = f'if {who} are honest, shared geometric noise does better: method = "geometric"'
    return Found(*best, status, "; ".join(filter(None, (note, shared, problem.outside))))


def _seeded(problem: MultiLTE, progress: Progress) -> Found:
    """A plan with a common secret word."""
    why = seeded.refusal(problem)
    if why:
        raise ProblemError(f'With method = "seeded" {why}. {seeded.FITS}')
    tables, status = seeded.design(problem, progress)
    progress("certifying")
    with work.certifying():
        certificate = certify_seeded(problem, tables)
    certificate.check(problem)
    return Found(tables, certificate, status)


def _value(problem: MultiLTE, certificate: PlanCertificate) -> Fraction:
    return certificate.mae if problem.objective == "mae" else certificate.mse


def _times(table: NoiseMatrix, factor: int) -> NoiseMatrix:
    """The same table with every output multiplied."""
    if factor == 1:
        return table
    rows = tuple(tuple(sorted((factor * s, weight) for s, weight in row)) for row in table.rows)
    low, high = sorted(factor * s for s in table.outputs)
    return replace(table, outputs=(low, high), rows=rows)


def _seen(problem: MultiLTE, whoever: str, party: str = "but from no party") -> str:
    """Whom a plan protects from, if the release alone is seen: outsiders, and parties as far as `honest` says."""
    known = "what the observer may know" if problem.watched else "the priors"
    others = len(problem.parties) - problem.honest
    also = "also any one party" if others == 1 else f"also any {others} parties together"
    return f"{whoever.format(known)}; {also if others else party}"


@dataclass(frozen=True)
class Way:
    """How a plan can be found, and what that is worth to whom."""

    solve: Callable[[MultiLTE, Progress], Found]
    assumes: Callable[[MultiLTE], str]
    """Beyond the priors, or what the observer is said to know."""
    protects: Callable[[MultiLTE], str]
    """From whom."""
    seconds: Callable[[MultiLTE], float]
    """About how long it takes."""
    refusal: Callable[[MultiLTE], str] = lambda _: ""
    """Why it does not apply, beyond what the problem itself refuses; empty if it does."""


METHODS: dict[str, Way] = {
    "alone": Way(
        _private_alone,
        lambda _: "nothing about other parties",
        lambda _: "whoever sees a report or the sum; all other parties",
        _alone_seconds,
    ),
    "geometric": Way(
        lambda problem, _: _baseline(problem),
        lambda _: "each party adds its share of the noise; only the sum is seen",
        lambda problem: _seen(problem, "whoever sees the sum, whatever they know of people"),
        lambda _: 0.0,
    ),
    "divisible": Way(
        _divisible,
        lambda _: "each party designs its own noise; only the sum is seen",
        lambda problem: _seen(problem, "whoever sees the sum and knows {}"),
        divisible_seconds,
    ),
    "joint": Way(
        _joint,
        lambda _: "the parties agree on one plan; only the sum is seen",
        lambda problem: _seen(problem, "whoever sees the sum and knows {}"),
        lambda problem: Size.of(problem).seconds(DESCENT),
    ),
    "seeded": Way(
        _seeded,
        lambda _: "all parties are honest and share a secret word, fresh for each release; only the sum is seen",
        lambda problem: _seen(problem, "whoever sees the sum and knows {}"),
        seeded.seconds,
        seeded.refusal,
    ),
    "inside": Way(
        _inside,
        lambda _: "the release is drawn in a secure computation of three parties or more, most of them honest",
        lambda problem: _seen(
            problem,
            "whoever sees the release and knows {}",
            "but from no party that uses what it knows of its own people",
        ),
        lambda problem: _table_seconds(problem.merged),
    ),
}
"""How a plan is found; what assumes least comes first."""
SOONEST = ("geometric", "inside", "seeded", "joint", "alone", "divisible")
"""The methods in the order in which they are tried."""
