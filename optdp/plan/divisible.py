"""Several entities that design their noise each alone (A, section VI): contract, add a share of noise, couple.

Each of `m` parties moves its input by a contraction `A` towards its likely values, adds a share of noise,
SGDL_(1/t)(q), of which `t` honest parties' shares add up to geometric noise of ratio `q`, and changes, by the coupling
program, which input gets which output, so that its error is least and the law of its report given any secret stays what
it was (`contraction.py`).

No party needs to know what the others do. They agree on epsilon, on `t`, and on a level of noise, `q = e^-(level eps)`:

    minimise    over the level: the sum over parties of the least own error (`contraction.py`)

Level 1 is the paper's. A solver keeps the laws to about 1e-9. That much is given back: all is designed for an epsilon
that is a little smaller, and the certificate (`divisible_certify.py`) proves the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from optdp.errors import ProblemError
from optdp.mechanism.matrix import Row
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import Number, figure, log, to_fraction
from optdp.numbers.ordered import Array, exp
from optdp.plan.certificate import PlanCertificate
from optdp.plan.contraction import (
    DENOMINATOR,
    ContractionLP,
    CouplingLP,
    best_table,
    coupled_error,
    integer_rows,
    just_enough,
    settled,
    unmoved,
)
from optdp.plan.divisible_certify import certify_shared
from optdp.plan.parties import Entity, Integers, spelled, width
from optdp.plan.problem import Contraction, MultiLTE, each_once
from optdp.plan.shares import algorithm_5, exchange_to_diagonal, search_shifts
from optdp.work import Progress, announce, check, silent

RESERVES = (1, 10, 100)
"""How often the usual share of epsilon is kept for a solver's inaccuracy, in turn, until that does."""
TABLE_DENOMINATOR = 1 << 128
"""What the weights of a table's row sum to: rare outputs need small weights."""
LARGEST_INPUT = 2000
"""The largest input of an entity that is designed for."""
WIDEST, FAINTEST = 5e-4, 5.0
"""The most noise that is tried, by its epsilon for a unit, and the least, by that for a step; it is next to none."""
COARSE, FINE = 6, 8
"""How many levels are tried before the search goes on around the best, and then."""
SECONDS_PER_CELL = 4e-4
"""What an entry of a table takes for one level."""
FITS = 'Use alike parties, fewer people or coarser contributions in each, or method = "geometric".'


@dataclass(frozen=True)
class SharedPlan:
    """A noise for each party, and what was proved of all together."""

    parties: tuple[SharedNoise, ...]
    certificate: PlanCertificate
    contraction: str
    level: float = 1.0
    """All shares together are geometric noise of `level` times epsilon."""
    interrupted: bool = False
    """Whether the search for the level was ended early."""


def design(
    problem: MultiLTE, contraction: Contraction = "optimal", progress: Progress = silent, level: Number | None = None
) -> SharedPlan:
    """Noise for every party of `problem`, each designed alone, certified.

    `contraction` says how inputs are moved before noise is added: "optimal" (by a linear program), "scaled" (towards
    the mode by one factor), "shifts" (A, VI-D, greedy), "none", or "algorithm-5" (A, appendix B: contraction and table
    without any linear program; for one kind of people with contributions 0 and 1). `level`: the parties' shares add up
    to geometric noise of `level` times epsilon; the best is searched unless it is given. Interrupted (Ctrl-C), the
    search ends with the best level so far. The plan is never worse than geometric noise, which stands in where nothing
    better is proved.
    """
    if contraction not in (*BY_LEVEL, *FIRST):
        raise ProblemError(f"contraction must be one of {', '.join([*BY_LEVEL, *FIRST])}. Found {contraction!r}.")
    given = None if level is None else to_fraction(level, "level")
    if given is not None and given < 1:
        raise ProblemError(f"level must be at least 1. Found {level}.")
    for i, population in enumerate(problem.parties):
        if population.last > LARGEST_INPUT:
            raise ProblemError(
                f"Entities that design alone may have inputs up to {LARGEST_INPUT}. Found 0..{population.last} for "
                f'party {i}. Use coarser contributions, method = "joint" or "geometric".'
            )
    kinds = len(DistinctParties(problem, Fraction(0)).counts)
    announce(divisible_seconds(problem), f"Noise that parties of {kinds} kinds design alone", FITS, progress)
    baseline, interrupted = _shares(problem), False
    least = min(problem.step_epsilon(i) for i in range(len(problem.parties)))
    usual = Fraction(1, 10**6) + problem.honest * Fraction(1, 10**8) / least
    for times in RESERVES:
        crowd = DistinctParties(problem, min(times * usual, Fraction(1, 2)))
        tried: list[tuple[float, Fraction]] = []
        try:
            found, moved = _contractions(crowd, contraction, given, progress, tried)
        except KeyboardInterrupt:
            if not tried or contraction in FIRST:
                raise
            interrupted = True
            found, moved = _contractions(crowd, contraction, min(tried)[1], progress, tried)
        given = found
        noises = []
        for number, (entity, weights) in enumerate(zip(crowd.entities(found), moved, strict=True), start=1):
            progress(f"level {float(found):.4g}: the tables, kind {number} of {kinds}")
            check()
            noises.append(_with_table(entity, weights, contraction == "algorithm-5"))
        progress("certifying")
        parties = crowd.spread(noises)
        plan = SharedPlan(parties, certify_shared(problem, parties), contraction, float(found), interrupted)
        if _private(problem, plan):
            if _private(problem, baseline) and _value(problem, baseline) <= _value(problem, plan):
                break
            return plan
        progress("not private as it stands; once more with a larger reserve")
    baseline.certificate.check(problem)
    progress("geometric noise: nothing better was proved")
    return baseline


def divisible_seconds(problem: MultiLTE) -> float:
    """About how long a design takes: all levels for each kind of party."""
    alike = {(spelled(party), factor): party for party, factor in zip(problem.parties, problem.f, strict=True)}
    cells = [2.0 * abs(factor) * (width(party) / 2) ** 2 for (_, factor), party in alike.items()]
    return (COARSE + FINE + 4) * SECONDS_PER_CELL * sum(cell * math.sqrt(max(cell / 2500, 1.0)) for cell in cells)


def geometric(problem: MultiLTE) -> SharedPlan:
    """The baseline: every party adds its share of geometric noise to `f x`, nothing else."""
    plan = _shares(problem)
    plan.certificate.check(problem)
    return plan


def _shares(problem: MultiLTE) -> SharedPlan:
    noise = tuple(
        SharedNoise(population.last, problem.q, Fraction(1, problem.honest), factor)
        for population, factor in zip(problem.parties, problem.f, strict=True)
    )
    return SharedPlan(noise, certify_shared(problem, noise), "none")


def _private(problem: MultiLTE, plan: SharedPlan) -> bool:
    epsilon = plan.certificate.epsilon
    return epsilon is not None and figure(epsilon) <= problem.epsilon


def _value(problem: MultiLTE, plan: SharedPlan) -> Fraction:
    return plan.certificate.mae if problem.objective == "mae" else plan.certificate.mse


@dataclass(frozen=True)
class DistinctParties:
    """The distinct parties of a problem; equal ones are designed once."""

    problem: MultiLTE
    reserve: Fraction

    @cached_property
    def same(self) -> list[int]:
        """For each party, the first one that is like it."""
        return each_once(zip(map(spelled, self.problem.parties), self.problem.f, strict=True), lambda i: i)

    @cached_property
    def counts(self) -> dict[int, int]:
        return dict(sorted(Counter(self.same).items()))

    @property
    def most(self) -> float:
        """The largest level that is tried."""
        return max(FAINTEST / (self._unit * max(map(abs, self.problem.f))), 2.0)

    @property
    def least(self) -> float:
        """The smallest level that is tried: noise must not be wider than can be written out."""
        return max(WIDEST / self._unit, 1.0)

    @property
    def _unit(self) -> float:
        return float(self.problem.epsilon / self.problem.sensitivity)

    def entities(self, level: Fraction) -> list[Entity]:
        return [Entity.of(self.problem, i, level, self.reserve) for i in self.counts]

    def spread(self, noises: Sequence[SharedNoise]) -> tuple[SharedNoise, ...]:
        """Each distinct party's noise for all parties like it."""
        found = dict(zip(self.counts, noises, strict=True))
        return tuple(found[i] for i in self.same)

    def total(self, errors: Sequence[float]) -> float:
        return sum(count * error for count, error in zip(self.counts.values(), errors, strict=True))


# ---------------------------------------------------------------------- contraction and level


def _contractions(
    crowd: DistinctParties,
    contraction: str,
    level: Fraction | None,
    progress: Progress,
    tried: list[tuple[float, Fraction]],
) -> tuple[Fraction, list[Integers]]:
    """The level of noise and each distinct party's contraction; levels with their own errors are added to `tried`."""
    if contraction in FIRST:
        moved = [settled(FIRST[contraction](entity, progress), entity.mode) for entity in crowd.entities(Fraction(1))]
        if level is None:
            tables = [weights / DENOMINATOR for weights in moved]
            most = _largest_level(crowd, tables)
            level = _best_level(crowd, most, lambda crew: list(map(coupled_error, crew, tables)), progress, tried)
        return level, moved
    method = BY_LEVEL[contraction]
    if level is None:

        def errors(crew: list[Entity]) -> list[float]:
            found = []
            for number, entity in enumerate(crew, start=1):
                check()
                if len(crew) > 1:
                    progress(f"level {len(tried) + 1} of about {COARSE + FINE}, kind {number} of {len(crew)}")
                found.append(method(entity, False)[1])
            return found

        level = _best_level(crowd, crowd.most, errors, progress, tried)
    return level, [settled(method(entity, True)[0], entity.mode, clip=False) for entity in crowd.entities(level)]


def _best_level(
    crowd: DistinctParties,
    most: float,
    errors: Callable[[list[Entity]], list[float]],
    progress: Progress,
    seen: list[tuple[float, Fraction]],
) -> Fraction:
    """The level up to `most` with the least sum of own errors."""

    def error(log_level: float) -> float:
        tried = _grid(exp(log_level))
        found = crowd.total(errors(crowd.entities(tried)))
        seen.append((found, tried))
        progress(f"level {float(tried):.4g}: own errors {found:.6g}")
        return min(float(f"{found:.12g}"), 1e100)

    if most < 1.02:
        return Fraction(1)
    steps = [float(step) for step in np.linspace(log(crowd.least), log(most), COARSE)]
    tried = [(error(step), step) for step in steps]
    place = tried.index(min(tried))
    bounds = (steps[max(place - 1, 0)], steps[min(place + 1, COARSE - 1)])
    search = minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 0.02, "maxiter": FINE})
    return _grid(exp(min(tried[place], (float(search.fun), float(search.x)))[1]))


def _grid(level: float) -> Fraction:
    """A level as a short number, rounded down."""
    return max(Fraction(math.floor(level * 8192), 8192), Fraction(1))


def _largest_level(crowd: DistinctParties, moved: Sequence[Array]) -> float:
    """The least noise with which the contractions are private: they have made room for that."""
    entities, problem = crowd.entities(Fraction(1)), crowd.problem

    def allowed(level: float) -> bool:
        q = exp(-float(problem.epsilon) * level / problem.sensitivity)
        return all(e.quotient(table, q) <= e.limit for e, table in zip(entities, moved, strict=True))

    low, high = 1.0, crowd.most
    while high - low > 1e-4 and not allowed(high):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return high if allowed(high) else low


def _optimal(entity: Entity, final: bool) -> tuple[Array, float]:
    """By the linear program; coarsely while a level is searched. If it fails, scaled."""
    for rare_input, rare_output in ((1e-5, 1e-5), (1e-4, 1e-4), (1e-3, 1e-4)) if final else ((1e-3, 1e-4),):
        moved, error = ContractionLP.of(entity, rare_input, rare_output).solve()
        if moved is not None:
            return moved, error
    return (just_enough(entity) if final else unmoved(entity.last)), math.inf


def _scaled(entity: Entity, final: bool) -> tuple[Array, float]:
    moved = just_enough(entity)
    return moved, 0.0 if final else coupled_error(entity, moved)


def _shifts(entity: Entity, progress: Progress) -> Array:
    return search_shifts(entity, lambda moved: coupled_error(entity, moved), progress=progress)


BY_LEVEL: dict[str, Callable[[Entity, bool], tuple[Array, float]]] = {"optimal": _optimal, "scaled": _scaled}
"""Contractions that are found for a level of noise, which is then searched: the contraction and its own error."""
FIRST: dict[str, Callable[[Entity, Progress], Array]] = {
    "shifts": _shifts,
    "none": lambda entity, _: unmoved(entity.last),
    "algorithm-5": lambda entity, _: algorithm_5(entity)[0],
}
"""Contractions that are found at level 1; the level is then raised as far as they allow."""


# ---------------------------------------------------------------------- integers


def _with_table(entity: Entity, weights: Integers, by_exchange: bool) -> SharedNoise:
    """The integers of one party: its contraction, and the best table for it."""
    moved = weights / DENOMINATOR
    if by_exchange:
        program = CouplingLP.of(entity, moved, entity.own_cost, every=True)
        table = program.trusted(exchange_to_diagonal(entity, moved))
    else:
        program, table = best_table(entity, moved)
    plain = SharedNoise(
        entity.last, entity.noise.q, entity.noise.beta, entity.factor, integer_rows(weights), DENOMINATOR
    )
    if table is None:
        return plain
    low, high = int(program.outputs[0]), int(program.outputs[-1])
    return replace(
        plain,
        inputs=(int(program.inputs[0]), int(program.inputs[-1])),
        outputs=(low, high),
        denominator=TABLE_DENOMINATOR,
        rows=tuple(_integer_row(row, low) for row in table),
    )


def _integer_row(row: Array, low: int) -> Row:
    """Weights that sum to the denominator exactly; the largest takes what rounding leaves."""
    shares = [Fraction(float(value)) for value in row]
    total = sum(shares, Fraction(0))
    weights = [int(share / total * TABLE_DENOMINATOR) for share in shares]
    weights[int(np.argmax(row))] += TABLE_DENOMINATOR - sum(weights)
    return tuple((low + k, weight) for k, weight in enumerate(weights) if weight)
