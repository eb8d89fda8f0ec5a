"""How far an answer is from what it claims to be, measured here, and the status that it deserves.

With prices `y` of the rows and reduced costs `d = cost - matrix' y`, a point is optimal if and only if it keeps all
limits (primal), each `y` and `d` has the sign that a limit on its side allows (dual), and

    cost @ x  =  sum over rows of  y (lower if y > 0, upper if y < 0)  +  sum over unknowns of  d (least or most)

(gap). All three are measured in the program's own units: a limit `b` may be missed by `TOLERANCE (1 + |b|)`, a sign by
`TOLERANCE (1 + largest cost)`, and the two sides may differ by `TOLERANCE` of the larger one, or of a unit of what the
program costs if no unknown is larger than 1 where that is less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optdp.programs.program import Answer, Array, LinearProgram

TOLERANCE = 1e-6
TINY = 1e-9
"""An objective below this is as good as zero."""


@dataclass(frozen=True)
class Residuals:
    """What is missed, as a share of what is allowed to be large; 0 is exact."""

    primal: float
    dual: float | None
    """None: no duals."""
    gap: float | None
    """None: no duals."""

    @property
    def feasible(self) -> bool:
        return self.primal <= TOLERANCE

    @property
    def optimal(self) -> bool:
        if self.dual is None or self.gap is None:
            return False
        return self.feasible and self.dual <= TOLERANCE and self.gap <= TOLERANCE


def residuals(program: LinearProgram, x: Array, duals: Array | None) -> Residuals:
    """How far a point and its prices are from an optimum."""
    rows = program.matrix @ x
    primal = max(_beyond(rows, program.lower, program.upper), _beyond(x, program.floor, program.ceiling))
    if program.whole is not None and program.mixed:
        primal = max(primal, float(np.abs(x - np.rint(x))[program.whole].max()))
    if duals is None or program.mixed:
        return Residuals(primal, None, None)
    reduced = program.cost - program.matrix.T @ duals
    scale = 1.0 + float(np.abs(program.cost).max(initial=0.0))
    wrong_rows, worth_rows = _worth(duals, program.lower, program.upper)
    wrong, worth = _worth(reduced, program.floor, program.ceiling)
    dual = max(float(wrong_rows.max(initial=0.0)), float(wrong.max(initial=0.0))) / scale
    objective, bound = float(program.cost @ x), worth_rows + worth
    gap = abs(objective - bound) / max(abs(objective), abs(bound), TINY)
    return Residuals(primal, dual, gap) if np.isfinite([primal, dual, gap]).all() else Residuals(np.inf, None, None)


def _beyond(values: Array, lower: Array, upper: Array) -> float:
    """By how much a limit is missed at most, relative to it."""
    if not np.isfinite(values).all():
        return np.inf
    worst = 0.0
    for missed, limit in ((lower - values, lower), (values - upper, upper)):
        there = np.isfinite(limit)
        worst = max(worst, float((missed[there] / (1.0 + np.abs(limit[there]))).max(initial=0.0)))
    return worst


def _worth(prices: Array, lower: Array, upper: Array) -> tuple[Array, float]:
    """What each price is in the wrong, having no limit on its side, and what the others are worth together."""
    limit = np.where(prices > 0, lower, upper)
    there = np.isfinite(limit)
    return np.where(there, 0.0, np.abs(prices)), float(prices[there] @ limit[there])


def judged(program: LinearProgram, answer: Answer) -> Answer:
    """The answer with the status that it deserves; only its claim that there is no solution is taken as it is."""
    x = answer.x
    if x is None or len(x) != len(program.cost) or not np.isfinite(x).all():
        status = answer.status if answer.status in ("infeasible", "limit") else "failed"
        return replace(answer, x=None, duals=None, objective=np.nan, status=status)
    duals = answer.duals
    if duals is not None and (len(duals) != len(program.lower) or not np.isfinite(duals).all()):
        duals = None
    answer = replace(answer, duals=duals, objective=float(program.cost @ x))
    if answer.status == "infeasible":
        return replace(answer, x=None, duals=None, objective=np.nan)
    found = residuals(program, x, duals)
    if not found.feasible:
        return replace(answer, status="limit")
    claimed = answer.status == "optimal"
    if found.optimal or (program.mixed and claimed):  # nothing but the solver's word says that whole numbers are best
        return replace(answer, status="optimal")
    return replace(answer, status="limit" if answer.status == "limit" else "feasible")
