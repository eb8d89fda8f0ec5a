"""The least sensitivity of all orders of a few records by a mixed-integer program, which HiGHS solves:

    minimise t  over  b[r,p] in {0, 1},  y[r] = sum_p p b[r,p],  d[g,j] >= 0,  c[g]
    sum_p b[r,p] = 1,  sum_r b[r,p] = 1                      each record has a position of its own
    d[g,j] >= y[j] - c[g],  d[g,j] >= c[g] - y[j]            j in g
    t >= 2 sum_j d[g,j] - floor(m/2)                         each group g with m members

For given positions the least `sum_j d[g,j]` is `sum_j |y[j] - median|`, attained at `c[g]` a median, and twice that
less `floor(m/2)` is the sensitivity of the group (`optdp.order.search`): so the least `t` of an order is its
sensitivity exactly. An order and its reverse have the same, so that one record (of the most groups) may be asked to
stand in the first half. What else holds for every order makes the relaxation tight enough to be of use: distances
`D[r,s]` of any two records with `D[r,s] >= |y[r] - y[s]|` and the triangle inequality, `D[r,s] <= d[g,r] + d[g,s]`
within a group, the sum of all of them `n (n^2-1) / 6` at least, and of those from one record `floor(n^2/4)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import highspy
import numpy as np
from scipy.sparse import coo_array

from optdp.order.mechanism import Groups, Whole, sensitivity
from optdp.order.search import distinct, lower_bound
from optdp.programs.highs import new_highs, run

WHOLE = 1e-6
INF = highspy.kHighsInf


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
    program = Program(groups)
    highs = new_highs(time_limit=float(seconds), mip_rel_gap=0.0, mip_abs_gap=0.5)
    highs.passModel(program.model(floor, value - 1))
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


class Program:
    """The program as HiGHS takes it: columns, then rows that are added one by one."""

    def __init__(self, groups: Groups) -> None:
        n = groups.n
        self.n, self.groups, self.rows = n, groups, distinct(groups)
        sizes = groups.sizes[self.rows]
        self.bits = np.arange(n * n).reshape(n, n)
        self.position = n * n + np.arange(n)
        self.middle = self.position[-1] + 1 + np.arange(len(self.rows))
        first = int(n * n + n + len(self.rows))
        self.apart = {pair: first + k for k, pair in enumerate(combinations(range(n), 2))}
        first += len(self.apart)
        begins = first + np.concatenate(([0], np.cumsum(sizes)))
        self.away = [np.arange(begins[k], begins[k + 1]) for k in range(len(sizes))]
        self.columns = int(begins[-1]) + 1
        self.worst = self.columns - 1
        self.entries: list[tuple[int, int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        self._orders()
        self._distances()
        self._groups()

    def _row(self, low: float, high: float, terms: Iterable[tuple[int, float]]) -> None:
        self.entries += [(len(self.low), int(column), value) for column, value in terms]
        self.low.append(low)
        self.high.append(high)

    def _orders(self) -> None:
        for record in range(self.n):
            self._row(1, 1, ((bit, 1.0) for bit in self.bits[record]))
            self._row(1, 1, ((bit, 1.0) for bit in self.bits[:, record]))
            at = ((bit, float(place)) for place, bit in enumerate(self.bits[record]))
            self._row(0, 0, ((self.position[record], -1.0), *at))
        if len(self.rows):
            often = int(np.argmax(np.bincount(self.groups.members, minlength=self.n)))
            self._row(-INF, (self.n - 1) / 2, ((self.position[often], 1.0),))

    def _distances(self) -> None:
        n = self.n
        for (one, other), apart in self.apart.items():
            for sign in (1.0, -1.0):
                self._row(0, INF, ((apart, 1.0), (self.position[one], sign), (self.position[other], -sign)))
            for third in range(n):
                if third not in (one, other):
                    self._row(0, INF, ((apart, -1.0), (self._pair(one, third), 1.0), (self._pair(third, other), 1.0)))
        for record in range(n):
            others = [other for other in range(n) if other != record]
            self._row(n * n // 4, INF, ((self._pair(record, other), 1.0) for other in others))
        self._row(n * (n * n - 1) // 6, INF, ((apart, 1.0) for apart in self.apart.values()))

    def _groups(self) -> None:
        for row, middle, away in zip(self.rows, self.middle, self.away, strict=True):
            members = self.groups[int(row)].tolist()
            for record, distance in zip(members, away, strict=True):
                for sign in (1.0, -1.0):
                    self._row(0, INF, ((distance, 1.0), (self.position[record], sign), (middle, -sign)))
            for (one, a), (other, b) in combinations(zip(members, away, strict=True), 2):
                self._row(0, INF, ((a, 1.0), (b, 1.0), (self._pair(one, other), -1.0)))
            self._row(-(len(members) // 2), INF, ((self.worst, 1.0), *((distance, -2.0) for distance in away)))

    def _pair(self, one: int, other: int) -> int:
        return self.apart[min(one, other), max(one, other)]

    def model(self, floor: int, ceiling: int) -> highspy.HighsLp:
        lower, upper = np.zeros(self.columns), np.full(self.columns, float(self.n))
        upper[self.bits.ravel()] = 1.0
        lower[self.worst], upper[self.worst] = floor, ceiling
        cost = np.zeros(self.columns)
        cost[self.worst] = 1.0
        row, column, value = (np.array(part) for part in zip(*self.entries, strict=True))
        matrix = coo_array((value.astype(float), (row, column)), shape=(len(self.low), self.columns)).tocsc()
        whole = np.isin(np.arange(self.columns), [*self.bits.ravel().tolist(), self.worst])
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, upper
        lp.row_lower_, lp.row_upper_ = np.array(self.low, dtype=float), np.array(self.high, dtype=float)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if one else kinds.kContinuous for one in whole]
        return lp
