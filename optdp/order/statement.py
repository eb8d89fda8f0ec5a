"""The order of least sensitivity as a program in whole numbers, for few records and solvers that take such programs:

    minimise t  over  b[r,p] in {0, 1},  y[r] = sum_p p b[r,p],  d[g,j] >= 0,  c[g]
    sum_p b[r,p] = 1,  sum_r b[r,p] = 1                      each record has a position of its own
    d[g,j] >= y[j] - c[g],  d[g,j] >= c[g] - y[j]            j in g
    t >= 2 sum_j d[g,j] - floor(m/2)                         each group g with m members

For given positions the least `sum_j d[g,j]` is `sum_j |y[j] - median|`, attained at `c[g]` a median, and twice that
less `floor(m/2)` is the sensitivity of the group (`optdp.order.search`): so the least `t` of an order is its
sensitivity exactly.

The arrays have more rows, which leave the optimum as it is and make the relaxation tight enough to be of use. An order
and its reverse have the same sensitivity, so that one record (of the most groups) may be asked to stand in the first
half. There are distances `D[r,s]` of any two records with `D[r,s] >= |y[r] - y[s]|` and the triangle inequality,
`D[r,s] <= d[g,r] + d[g,s]` within a group; the sum of all of them is `n (n^2-1) / 6` at least, and of those from one
record `floor(n^2/4)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from optdp.errors import ProblemError
from optdp.order.mechanism import Groups
from optdp.order.problem import OrderShuffle
from optdp.order.search import distinct
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.program import LinearProgram
from optdp.programs.statement import Statement


def statements(problem: OrderShuffle) -> list[Statement]:
    """The one program of an order."""
    if problem.distance != "kendall":
        raise ProblemError(
            "The program of an order is for the Kendall distance: by Hamming's every order has the same sensitivity. "
            f"Found distance {problem.distance}."
        )
    if problem.values is not None:
        raise ProblemError(
            f"The program of an order is for answers of any number of values. Found values = {problem.values}. Leave "
            "values out: the order serves for both."
        )
    groups = problem.groups
    n, sizes = groups.n, groups.sizes[distinct(groups)].tolist()
    pairs, members, within = comb(n, 2), sum(sizes), sum(comb(size, 2) for size in sizes)
    unknowns = n * n + n + len(sizes) + pairs + members + 1
    rows = 3 * n + bool(sizes) + pairs * n + n + 1 + 2 * members + within + len(sizes)
    orders = n * (3 * n + 1) + bool(sizes)
    entries = orders + 3 * n * pairs + n * (n - 1) + pairs + 6 * members + 3 * within + members + len(sizes)
    what = "the order of least sensitivity, in whole numbers"
    return [
        Statement("order", what, unknowns, rows, entries, lambda: OrderProgram(groups).arrays(), lambda: model(groups))
    ]


def model(groups: Groups) -> Any:
    """The specification."""
    cp = import_cvxpy()
    n = groups.n
    places, worst = cp.Variable((n, n), boolean=True, name="places"), cp.Variable(nonneg=True, name="worst")
    position = places @ np.arange(float(n))
    rules = [cp.sum(places, axis=0) == 1, cp.sum(places, axis=1) == 1]
    for row in distinct(groups).tolist():
        members = groups[row]
        away = cp.sum(cp.abs(position[members] - cp.Variable()))
        rules.append(worst >= 2 * away - len(members) // 2)
    return cp.Problem(cp.Minimize(worst), rules)


class OrderProgram:
    """The program as arrays: columns, then rows that are added one by one."""

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

    def _row(self, low: float, high: float, terms: Iterable[tuple[Any, float]]) -> None:
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
            self._row(-np.inf, (self.n - 1) / 2, ((self.position[often], 1.0),))

    def _distances(self) -> None:
        n = self.n
        for (one, other), apart in self.apart.items():
            for sign in (1.0, -1.0):
                self._row(0, np.inf, ((apart, 1.0), (self.position[one], sign), (self.position[other], -sign)))
            for third in range(n):
                if third not in (one, other):
                    self._row(
                        0, np.inf, ((apart, -1.0), (self._pair(one, third), 1.0), (self._pair(third, other), 1.0))
                    )
        for record in range(n):
            others = [other for other in range(n) if other != record]
            self._row(n * n // 4, np.inf, ((self._pair(record, other), 1.0) for other in others))
        self._row(n * (n * n - 1) // 6, np.inf, ((apart, 1.0) for apart in self.apart.values()))

    def _groups(self) -> None:
        for row, middle, away in zip(self.rows, self.middle, self.away, strict=True):
            members = self.groups[int(row)].tolist()
            for record, distance in zip(members, away, strict=True):
                for sign in (1.0, -1.0):
                    self._row(0, np.inf, ((distance, 1.0), (self.position[record], sign), (middle, -sign)))
            for (one, a), (other, b) in combinations(zip(members, away, strict=True), 2):
                self._row(0, np.inf, ((a, 1.0), (b, 1.0), (self._pair(one, other), -1.0)))
            self._row(-(len(members) // 2), np.inf, ((self.worst, 1.0), *((distance, -2.0) for distance in away)))

    def _pair(self, one: int, other: int) -> int:
        return self.apart[min(one, other), max(one, other)]

    def arrays(self, least: float = 0.0, most: float | None = None) -> LinearProgram:
        """The program, perhaps for orders whose sensitivity is between two numbers only."""
        floor, ceiling = np.zeros(self.columns), np.full(self.columns, float(self.n))
        ceiling[self.bits.ravel()] = 1.0
        floor[self.worst], ceiling[self.worst] = least, np.inf if most is None else most
        cost = np.zeros(self.columns)
        cost[self.worst] = 1.0
        row, column, value = (np.array(part) for part in zip(*self.entries, strict=True))
        matrix = coo_array((value.astype(float), (row, column)), shape=(len(self.low), self.columns)).tocsc()
        whole = np.zeros(self.columns, dtype=np.bool_)
        whole[self.bits.ravel()] = whole[self.worst] = True
        return LinearProgram(
            cost, matrix, np.array(self.low, dtype=float), np.array(self.high, dtype=float), floor, ceiling, whole
        )
