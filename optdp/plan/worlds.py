"""epsilon_under: the real epsilon of a mechanism or of a plan if the world differs from its priors (A, VI-E)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast, overload

import numpy as np
import numpy.typing as npt
from scipy.signal import fftconvolve

from optdp.errors import CertificateError, ProblemError
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import Number, precision, to_fraction
from optdp.numbers.ordered import dot
from optdp.objects import Public
from optdp.people.population import Population
from optdp.plan.certificate import largest
from optdp.plan.certify import plan_epsilons, plan_errors
from optdp.plan.divisible_certify import certify_shared
from optdp.plan.format import Table, VerifiedPlan
from optdp.plan.inside import common
from optdp.plan.problem import MultiLTE
from optdp.plan.seeded_certify import seeded_epsilons
from optdp.plan.solve import PlanSolution, solve_plan
from optdp.single import certify
from optdp.single.problem import SingleLTE

World = Sequence[Population]
AnyPlan = PlanSolution | VerifiedPlan


@overload
def epsilon_under(first: SingleLTE, second: NoiseMatrix | AddedNoise, third: Population | World) -> Fraction | None: ...


@overload
def epsilon_under(first: AnyPlan, second: World | Sequence[World], third: None = None) -> Fraction | None: ...


def epsilon_under(
    first: SingleLTE | AnyPlan,
    second: NoiseMatrix | AddedNoise | World | Sequence[World],
    third: Population | World | None = None,
) -> Fraction | None:
    """The real epsilon if people differ from the prior.

    Call it as `epsilon_under(problem, matrix, population)` for one entity, or as `epsilon_under(plan, populations)`.

    Parameters
    ----------
    first : SingleLTE or a plan
        The problem of one entity, or a plan that was solved or verified.
    second : NoiseMatrix or populations
        The table; or for a plan one population for each party, or several such lists.
    third : Population or sequence of Population, optional
        For one entity, the world; of several the worst counts.

    Returns
    -------
    Fraction or None
        An upper bound of the real epsilon; None is infinite.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, epsilon_under, solve
    >>> problem = SingleLTE(Population.binomial(10, "0.1"), epsilon=1)
    >>> matrix = solve(problem).mechanism
    >>> round(float(epsilon_under(problem, matrix, Population.binomial(10, "0.2"))), 2)
    8.3
    """
    if isinstance(second, NoiseMatrix | AddedNoise):
        assert third is not None
        return certify.epsilon_under(cast(SingleLTE, first), second, third)
    worlds = [second] if all(isinstance(item, Population) for item in second) else second
    return largest(tuple(_in_world(cast(AnyPlan, first), world) for world in worlds))  # type: ignore[arg-type]


def _in_world(plan: AnyPlan, world: World) -> Fraction | None:
    problem, tables = plan.problem, plan.tables
    if len(world) != len(tables):
        raise ProblemError(f"A world must have {len(tables)} populations. Found {len(world)}.")
    if problem.method == "inside":
        return _inside_in_world(problem, tables, world)
    for i, (population, table) in enumerate(zip(world, tables, strict=True)):
        if population.last > table.last:
            raise CertificateError(
                f"Party {i} serves inputs 0..{table.last}. Found a population whose sum reaches {population.last}."
            )
    finite = [table for table in tables if isinstance(table, NoiseMatrix)]
    if len(finite) == len(tables):
        return largest(plan_epsilons(problem, finite, world))
    seeded = [table for table in tables if isinstance(table, SeededMaps)]
    if len(seeded) == len(tables):
        return largest(seeded_epsilons(problem, seeded, [world]))
    shared = [table for table in tables if isinstance(table, SharedNoise)]
    moved = MultiLTE(
        world, problem.epsilon, problem.honest, problem.method, problem.objective, f=problem.f,
        contraction=problem.contraction,
    )  # fmt: skip
    fitted = [replace(noise, last=population.last) if noise.contraction is None else noise
              for noise, population in zip(shared, world, strict=True)]  # fmt: skip
    return certify_shared(moved, fitted).epsilon


def _inside_in_world(problem: MultiLTE, tables: Sequence[Table], world: World) -> Fraction | None:
    """The same of a release that is drawn inside: coalitions know what their own people contribute there, too."""
    table = common([table for table in tables if isinstance(table, NoiseMatrix)])
    moved = problem.changed(parties=list(world), also=())
    last = moved.merged.last
    if last > table.last:
        raise CertificateError(f"The plan serves totals 0..{table.last}. Found a world whose total reaches {last}.")
    if last < table.last and table.inputs == (0, table.last):  # rows that are never asked for
        table = replace(table, inputs=(0, last), rows=table.rows[: last + 1], last=last)
    with precision():
        return certify.observed(moved.merged, table)[0]


RARE, CELLS = 1e-9, 40_000_000
"""Totals below this probability are left out: their errors would be rounding. And how much is written out at most."""


@dataclass(frozen=True)
class ErrorByTotal(Public):
    """The mean absolute error of the aggregate where the true weighted sum is `total`."""

    total: int
    probability: float
    error: float


def errors_by_total(plan: AnyPlan) -> list[ErrorByTotal]:
    """The error of a joint plan for each likely true total (A, Fig. 8): in floating point, for looking, not for claims.

    Parameters
    ----------
    plan : PlanSolution or VerifiedPlan
        A plan of finite tables: of method "joint", "alone" or "inside".

    Returns
    -------
    list of ErrorByTotal
        `total`, its `probability`, and the mean absolute `error` there.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, errors_by_total, solve
    >>> plan = solve(MultiLTE([Population.binomial(4, "0.2")] * 2, epsilon=1, honest=1))
    >>> rows = errors_by_total(plan)
    >>> [row.total for row in rows]
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    >>> abs(sum(row.probability * row.error for row in rows) - plan.mae) < 1e-6
    True
    """
    joint: npt.NDArray[np.float64] = np.ones((1, 1))
    first, least = 0, 0
    listed: list[tuple[Table, Population, int]] = list(
        zip(plan.tables, plan.problem.parties, plan.problem.f, strict=True)
    )
    if plan.problem.method == "inside":
        listed = [(plan.tables[0], plan.problem.merged.populations[0], 1)]
    for table, population, factor in listed:
        if not isinstance(table, NoiseMatrix):
            raise ProblemError("errors_by_total is for plans of finite tables. Found shares of noise.")
        low, high = table.inputs
        chances = np.array([float(value.mid()) for value in population.total.balls(low, high)])
        targets = factor * np.arange(low, high + 1)
        start, shift = int(targets.min()), table.outputs[0] - int(targets.max())
        own = np.zeros((int(np.ptp(targets)) + 1, table.outputs[1] - int(targets.min()) - shift + 1))
        for chance, target, row in zip(chances, targets, table.rows, strict=True):
            for s, weight in row:
                own[int(target) - start, s - int(target) - shift] += chance * (weight / table.denominator)
        if (joint.shape[0] + own.shape[0]) * (joint.shape[1] + own.shape[1]) > CELLS:
            raise ProblemError("The plan is too large to be looked at total by total.")
        joint = fftconvolve(joint, own)
        first, least = first + start, least + shift
    errors = np.abs(np.arange(least, least + joint.shape[1]))
    found = []
    for i, row in enumerate(np.maximum(joint, 0.0)):
        mass = float(row.sum())
        if mass > RARE:
            found.append(ErrorByTotal(first + i, mass, dot(row, errors) / mass))
    return found


@dataclass(frozen=True)
class Caution(Public):
    """A plan designed for more concentrated priors: only a share of the people is taken to be uncertain (VI-E)."""

    share: Fraction
    mae: float
    """The error if the full priors are right."""
    epsilon: float | None
    """The real epsilon if the full priors are right (None: infinite)."""
    robust_mae: float
    """The error of a plan that keeps epsilon under the concentrated and under the full priors."""


def caution(
    problem: MultiLTE, shares: Sequence[Number], progress: Callable[[str], None] = lambda _: None
) -> list[Caution]:
    """What it costs to assume that only a share of the people is uncertain, for each share (A, section VI-E, Fig. 6).

    The paper says that privacy under the concentrated prior implies privacy under the full one. That is true of added
    noise, not of tables: so the real epsilon is measured, and compared with the plan that is private under both.

    Parameters
    ----------
    problem : MultiLTE
        A problem of method "joint".
    shares : sequence of numbers
        Shares in (0, 1].
    progress : callable, optional
        Is told what is being done.

    Returns
    -------
    list of Caution
        One for each share.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, caution
    >>> problem = MultiLTE([Population.binomial(3, "0.2")] * 2, epsilon=1, honest=1, method="joint")
    >>> (found,) = caution(problem, ["0.5"])
    >>> found.epsilon > 1  # the plan for the concentrated priors does not keep epsilon = 1 under the full ones
    True
    """
    found = []
    for share in shares:
        part = to_fraction(share, "share")
        narrow = [party.conservative(part) for party in problem.parties]
        timid = solve_plan(problem.changed(parties=tuple(narrow)), progress=progress)
        both = solve_plan(problem.changed(also=(*problem.also, tuple(narrow))), progress=progress)
        tables = [table for table in timid.tables if isinstance(table, NoiseMatrix)]
        if len(tables) < len(timid.tables):
            raise ProblemError('caution is for plans of method = "joint". Found another.')
        mae, _ = plan_errors(problem, tables, problem.parties)
        real = epsilon_under(timid, problem.parties)
        found.append(Caution(part, float(mae), None if real is None else float(real), both.mae))
    return found
