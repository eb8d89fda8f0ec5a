"""The pair form written out, every pair at once, as a CVXPY model: the specification of `pairs.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from optdp import ProblemError
from optdp.single.lp import NoiseLP
from optdp.single.window import is_pair_form

LARGEST = 3_000_000
"""The most columns that are written out."""


def pair_model(lp: NoiseLP) -> Any:
    """A CVXPY problem over the amounts `t` of all pairs.

        minimise    sum over pairs of  cost(pair) t(pair)
        subject to  sum over pairs of  mass of x in the pair * t(pair) = 1    (<= 1 if x may be reported truthfully)
                    sum over pairs of  error of x in the pair * t(pair) <= cap(x)

    A pair is an input with `gaps[k] > 0`, one with `gaps[k] < 0`, and a report: one of the two, or for squares any
    integer between them. Its masses make constraint `k` an equality. The optimum is that of the plain program.
    """
    from optdp.programs.cvxpy import import_cvxpy

    if not is_pair_form(lp.problem):
        raise ProblemError("The pair form is for one prior, one kind of person, contributions 0 and 1, no fallback.")
    cp = import_cvxpy()
    i, j, a, b, s = _columns(lp)
    size, count = len(lp.inputs), len(i)
    column = np.arange(count)
    error_i, error_j = np.abs(lp.inputs[i] - s), np.abs(lp.inputs[j] - s)
    mass = sp.csr_matrix((np.r_[a, b], (np.r_[i, j], np.r_[column, column])), shape=(size, count))
    error = sp.csr_matrix((np.r_[a * error_i, b * error_j], (np.r_[i, j], np.r_[column, column])), shape=(size, count))
    cost = a * lp.cost[i] * error_i**lp.power + b * lp.cost[j] * error_j**lp.power
    troubled = (lp.gaps > 0).any(axis=0)
    t = cp.Variable(count, nonneg=True, name="t")
    constraints = [mass[troubled] @ t == 1, mass[~troubled] @ t <= 1]
    if lp.tight_cap is not None:
        constraints.append(error @ t <= lp.tight_cap)
    return cp.Problem(cp.Minimize(cost @ t), constraints)


def _columns(lp: NoiseLP) -> tuple[Any, ...]:
    """Inputs, masses and report of every pair."""
    parts = []
    for gap in lp.gaps:
        bad, good = np.flatnonzero(gap > 0), np.flatnonzero(gap < 0)
        i, j = np.repeat(bad, len(good)), np.tile(good, len(bad))
        reports = np.abs(i - j) + 1 if lp.power == 2 else np.full(len(i), 2)
        if reports.sum() > LARGEST:
            raise ProblemError(f"Written out, the pair form has {reports.sum():,} columns. Use the engine instead.")
        low = np.minimum(i, j)
        number = np.arange(reports.sum()) - np.repeat(np.cumsum(reports) - reports, reports)
        i, j, low = np.repeat(i, reports), np.repeat(j, reports), np.repeat(low, reports)
        s = low + number if lp.power == 2 else np.where(number == 0, i, j)
        ratio = gap[i] / -gap[j]
        parts.append((i, j, np.minimum(1, 1 / ratio), np.minimum(1, ratio), lp.inputs[s]))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
