"""The pair form written out, every pair at once: what `pairs` generates as it goes.

    minimise    sum over pairs of  cost(pair) t(pair)
    subject to  sum over pairs of  mass of x in the pair * t(pair) = 1    (<= 1 if x may be reported truthfully)
                sum over pairs of  error of x in the pair * t(pair) <= cap(x)

A pair is an input with `gaps[k] > 0`, one with `gaps[k] < 0`, and a report: one of the two, or for squares any integer
between them. Its masses make constraint `k` an equality. The optimum is that of the plain program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from optdp.errors import ProblemError
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.program import Array, LinearProgram
from optdp.single.lp import NoiseLP
from optdp.single.window import is_pair_form


@dataclass(frozen=True)
class PairForm:
    """Its numbers: each column is a pair with a report."""

    mass: Any
    """A row for each input, sparse."""
    error: Any
    cost: Array
    troubled: npt.NDArray[np.bool_]
    """Inputs that may not simply be reported."""
    cap: Array | None

    @staticmethod
    def size(lp: NoiseLP) -> int:
        """How many columns it has."""
        pairs = [np.subtract.outer(np.flatnonzero(gap > 0), np.flatnonzero(gap < 0)) for gap in lp.gaps]
        return sum(int((np.abs(own) + 1).sum()) if lp.power == 2 else 2 * own.size for own in pairs)

    @staticmethod
    def of(lp: NoiseLP) -> PairForm:
        if not is_pair_form(lp.problem):
            raise ProblemError(
                "The pair form is for one prior, one kind of person, contributions 0 and 1, no fallback."
            )
        i, j, a, b, s = _columns(lp)
        size, column = len(lp.inputs), np.arange(len(i))
        error_i, error_j = np.abs(lp.inputs[i] - s), np.abs(lp.inputs[j] - s)
        places = np.concatenate([i, j]), np.concatenate([column, column])
        shape = size, len(i)
        return PairForm(
            mass=sp.csr_array((np.concatenate([a, b]), places), shape=shape),
            error=sp.csr_array((np.concatenate([a * error_i, b * error_j]), places), shape=shape),
            cost=a * lp.cost[i] * error_i**lp.power + b * lp.cost[j] * error_j**lp.power,
            troubled=np.asarray((lp.gaps > 0).any(axis=0)),
            cap=lp.tight_cap,
        )

    def to_program(self) -> LinearProgram:
        lower, upper = np.where(self.troubled, 1.0, -np.inf), np.ones(len(self.troubled))
        if self.cap is None:
            return LinearProgram(self.cost, self.mass, lower, upper)
        return LinearProgram(
            self.cost,
            sp.vstack([self.mass, self.error], format="csr"),
            np.concatenate([lower, np.full(len(self.cap), -np.inf)]),
            np.concatenate([upper, self.cap]),
        )

    def to_cvxpy(self) -> Any:
        """The specification, over the amounts `t` of all pairs."""
        cp = import_cvxpy()
        t = cp.Variable(len(self.cost), nonneg=True, name="t")
        constraints = []
        if self.troubled.any():
            constraints.append(self.mass[self.troubled] @ t == 1)
        if not self.troubled.all():
            constraints.append(self.mass[~self.troubled] @ t <= 1)
        if self.cap is not None:
            constraints.append(self.error @ t <= self.cap)
        return cp.Problem(cp.Minimize(self.cost @ t), constraints)


def _columns(lp: NoiseLP) -> tuple[Any, ...]:
    """Inputs, masses and report of every pair."""
    parts = []
    for gap in lp.gaps:
        bad, good = np.flatnonzero(gap > 0), np.flatnonzero(gap < 0)
        i, j = np.repeat(bad, len(good)), np.tile(good, len(bad))
        reports = np.abs(i - j) + 1 if lp.power == 2 else np.full(len(i), 2)
        low = np.minimum(i, j)
        number = np.arange(reports.sum()) - np.repeat(np.cumsum(reports) - reports, reports)
        i, j, low = np.repeat(i, reports), np.repeat(j, reports), np.repeat(low, reports)
        s = low + number if lp.power == 2 else np.where(number == 0, i, j)
        ratio = gap[i] / -gap[j]
        parts.append((i, j, np.minimum(1, 1 / ratio), np.minimum(1, ratio), lp.inputs[s]))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
