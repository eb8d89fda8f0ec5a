"""The least sensitivity of all orders of a few records: `optdp.order.statement`, solved by HiGHS."""

from __future__ import annotations

import math
from dataclasses import dataclass

import highspy
import numpy as np

from optdp.order.mechanism import Groups, Whole, sensitivity
from optdp.order.search import lower_bound
from optdp.order.statement import OrderProgram
from optdp.programs.highs import model_of, new_highs, run

WHOLE = 1e-6


@dataclass(frozen=True)
class Exact:
    """The best order found, and what no order is below; `proved` if these agree."""

    order: Whole
    sensitivity: int
    lower: int

    @property
    def proved(self) -> bool:
        return self.lower >= self.sensitivity


def branched(groups: Groups, seconds: float, start: Whole | None = None) -> Exact:
    """HiGHS looks for an order that is better than `start`; there is none if it finds the program infeasible."""
    known = np.arange(groups.n, dtype=np.int64) if start is None else start
    value = sensitivity(groups, known)
    floor = lower_bound(groups, min(15.0, seconds))
    if floor >= value:
        return Exact(known, value, value)
    program = OrderProgram(groups)
    highs = new_highs(time_limit=float(seconds), mip_rel_gap=0.0, mip_abs_gap=0.5)
    highs.passModel(model_of(program.arrays(floor, value - 1)))
    run(highs)
    if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return Exact(known, value, value)
    bound = highs.getInfo().mip_dual_bound
    lower = max(floor, math.ceil(bound - WHOLE)) if math.isfinite(bound) else floor
    values = np.array(highs.getSolution().col_value)
    if len(values) == program.columns:
        order = np.argsort(values[program.position], kind="stable").astype(np.int64)
        found = sensitivity(groups, order)
        if found < value:
            return Exact(order, found, min(lower, found))
    return Exact(known, value, min(lower, value))
