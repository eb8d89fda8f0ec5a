"""Reports on plans for people who would rather look: error by the true total (A, Fig. 8), and caution (A, Fig. 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.signal import fftconvolve

from optdp.errors import ProblemError
from optdp.math.exact import Number, to_fraction
from optdp.noise.joint_certify import plan_errors
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.solution import solve
from optdp.worlds import Plan, epsilon_under

RARE = 1e-9
"""Totals below this probability are left out: their errors would be rounding."""
CELLS = 40_000_000


@dataclass(frozen=True)
class ErrorByTotal:
    """The mean absolute error of the aggregate where the true weighted sum is `total`."""

    total: int
    probability: float
    error: float


def errors_by_total(plan: Plan) -> list[ErrorByTotal]:
    """The error of a joint plan for each likely true total, in floating point: for looking, not for claims (Fig. 8)."""
    joint: npt.NDArray[np.float64] = np.ones((1, 1))
    first, least = 0, 0
    for table, population, factor in zip(plan.tables, plan.problem.parties, plan.problem.f, strict=True):
        if not isinstance(table, NoiseMatrix):
            raise ProblemError('errors_by_total is for plans of method = "joint". Found another.')
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
            found.append(ErrorByTotal(first + i, mass, float(row @ errors) / mass))
    return found


@dataclass(frozen=True)
class Caution:
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
    """What it costs to take only a share of the people as uncertain, for each share (Fig. 6).

    The paper holds that privacy under the concentrated prior implies it under the full one. That is so for added
    noise, not for tables: the real epsilon is measured, and beside it stands the plan that keeps both.
    """
    found = []
    for share in shares:
        part = to_fraction(share, "share")
        narrow = [party.conservative(part) for party in problem.parties]
        timid = solve(_with(problem, parties=tuple(narrow)), progress=progress)
        both = solve(_with(problem, also=(*problem.also, tuple(narrow))), progress=progress)
        tables = [table for table in timid.tables if isinstance(table, NoiseMatrix)]
        if len(tables) < len(timid.tables):
            raise ProblemError('caution is for plans of method = "joint". Found another.')
        mae, _ = plan_errors(problem, tables, problem.parties)
        real = epsilon_under(timid, problem.parties)
        found.append(Caution(part, float(mae), None if real is None else float(real), both.mae))
    return found


def _with(problem: MultiLTE, **changes: object) -> MultiLTE:
    given = {field.name: getattr(problem, field.name) for field in fields(problem)} | changes
    return MultiLTE(**given)
