"""One party's program while all other tables stay as they are (a block of the joint program).

With the others fixed both the privacy of every person in every party and the error of the aggregate are linear in one
party's table `r`. Write `y_k(s) = sum over x of law_k(x) r(x, s)` for its laws (one for each secret of its people, one
prior for each world). A `SeenPair` is two laws of the aggregate that must look alike: `y_a` or `y_b` added to an
independent rest.

    minimise    sum over x, s of  prior(x) cost(s - f x) r(x, s)
    subject to  sum over s of r(x, s) = 1                                              every input x
                (rest_a * y_a)(S) <= e^eps (rest_b * y_b)(S), and the reverse          every view, every aggregate S
                r(x, s) <= e^f r(x', s)                                                adjacent inputs, with a fallback
                sum over x, s of given_t(x, s) r(x, s) <= 1 + z                        every sum t, with `never_worse`

where `cost(d) = E |d + N|` and `N` is the error of the others. Probabilities span fifty decades while a solver's
tolerances are absolute, so everything is posed relative to the table at hand: the unknown of an output is divided by
its present probability and the row of an aggregate by its own. Then a coefficient is the probability of the report
given the aggregate, and every row sums to about 1. Few entries of an optimal table and few rows matter, so both are
generated: rows when they are violated, entries when the prices of the rows say that they pay. The violation `z` of
`never_worse` has a price in the objective, so that a start need not keep it.

Where the simplex method ends depends on the last bit of every coefficient, so that all are computed in one order
(`numbers/ordered.py`): the same program, and so the same table, on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from optdp.numbers.exact import log
from optdp.numbers.ordered import Array, convolve, exp, product, total
from optdp.programs.backends import chosen
from optdp.programs.growing import solved
from optdp.programs.highs import add_columns, add_rows, model_of, new_highs
from optdp.programs.program import LinearProgram
from optdp.work import check
from optdp.work.account import Effort

STATUS = highspy.HighsModelStatus
SMALLEST = 1e-12
"""Coefficients below this are left out."""
TOLERANCE = 1e-9
ROUNDS = 200
"""How often rows and entries are added before a step is given up."""
MOST_WORK = (75_000_000, 5_000)
"""A block is given up after so much work (`Effort`), and so much more for each entry."""
KEPT = 1 - 1e-6
"""The share of the error that `never_worse` allows which is spent: the rest is for rounding."""
FAINT = 1e-8
"""Coefficients of a sum below this are left out: together they are less than what is kept."""
AT_ONCE = 40
"""The most rows that one direction of a view adds in one round, evenly spread over the violated ones."""


@dataclass(frozen=True)
class SeenPair:
    """`rest_one * y_one` and `rest_other * y_other` must stay within `epsilon` of each other."""

    one: int
    rest_one: Array
    other: int
    rest_other: Array
    epsilon: float

    def laws(self, y: Array) -> tuple[Array, Array]:
        """Both laws of the aggregate."""
        return convolve(self.rest_one, y[self.one]), convolve(self.rest_other, y[self.other])

    def excess(self, y: Array) -> float:
        """The largest log-quotient over every aggregate, as a multiple of `epsilon`."""
        one, other = self.laws(y)
        return log(max(float(quotient.max()) for quotient in _quotients(one, other))) / self.epsilon


def _quotients(one: Array, other: Array) -> tuple[Array, Array]:
    """Both quotients of two laws at every aggregate; 1 where it is too rare to tell."""
    seen = np.maximum(one, other) > np.finfo(one.dtype).tiny * one.dtype.type(1e50)  # the certificate sees the others
    above, below = np.ones(len(one)), np.ones(len(one))
    with np.errstate(divide="ignore"):
        above[seen], below[seen] = one[seen] / other[seen], other[seen] / one[seen]
    return above, below


def steepest(table: Array) -> float:
    """The largest log-quotient of the rows of adjacent inputs."""
    if len(table) < 2:
        return 0.0
    return log(max(float(np.max(q)) for q in _quotients(table[1:].ravel(), table[:-1].ravel())))


@dataclass(frozen=True)
class TableProgram:
    """One party's program: see above."""

    weights: Array
    """The laws of the input, one a row; the first is the prior of the objective."""
    cost: Array
    """What a report costs, for each input and output."""
    views: tuple[SeenPair, ...]
    chain: float | None
    given: Array | None = None
    """With `never_worse`, for each sum, input and output: the error given the sum, as a share of what is allowed."""
    price: float = 0.0
    """What it costs to exceed that, by the share."""

    def excess(self, table: Array) -> float:
        """The largest log-quotient of any view, as a multiple of what is allowed."""
        y = product(self.weights, table)
        worst = max((view.excess(y) for view in self.views), default=0.0)
        return worst if self.chain is None else max(worst, steepest(table) / self.chain)

    def beyond(self, table: Array) -> float:
        """By how much the error given some sum exceeds what is allowed, as a share of that."""
        return 0.0 if self.given is None else max(float(total(self.given * table, axis=(1, 2)).max()) - KEPT, 0.0)

    def objective(self, table: Array) -> float:
        return float(total(self.weights[0][:, None] * self.cost * table)) + self.price * self.beyond(table)


def improve(
    block: TableProgram, table: Array, floor: float, slack: float, patience: float = 1e-6, effort: Effort | None = None
) -> Array | None:
    """The best table for the block, or None if the solver fails; privacy is asked for at `epsilon (1 - slack)`.

    Every entry is at least `floor` divided by the number of outputs. The given table must be feasible. What is found
    is at most `patience` above the optimum, relative to it. The work is added to `effort`.
    """
    return _Relative(block, table, floor, slack, effort or Effort()).solve(patience)


class _Relative:
    """The program relative to a table.

    Unknown: first `v_k(s) = y_k(s) / present(s)`, then `z`, then `t(x, s)` with `r = floor + scale t` for the entries
    so far. Rows: the sum of each input, the definition of each `v`, the sums, the chain, and the aggregates so far.
    """

    def __init__(self, block: TableProgram, table: Array, floor: float, slack: float, effort: Effort) -> None:
        self.block, self.table, self.slack, self.effort = block, table, slack, effort
        self.inputs, self.outputs = table.shape
        self.floor = floor / self.outputs
        self.now = product(block.weights, table)
        self.present = np.maximum(self.now[0], 1e-300)
        share = np.maximum(block.weights[0], 1e-300)
        self.scale = np.minimum(1.0, self.present[None, :] / share[:, None])
        self.cost = block.weights[0][:, None] * block.cost * self.scale
        self.entries = np.zeros(0, dtype=np.int64)
        self.listed = np.zeros(table.shape, dtype=bool)
        self.highs = new_highs(
            # Primal where entries are added, for the dual one would start nearly anew; dual if only rows are.
            simplex_strategy=4 if block.chain is None else 1,
            small_matrix_value=SMALLEST,
            primal_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE,
        )
        given = np.zeros((0, *table.shape)) if block.given is None else block.given
        self.given = np.where(given > FAINT, given, 0.0)
        self.columns = len(self.now) * self.outputs + (block.given is not None)  # the `v`, and `z`
        self.most = min(effort.spent + MOST_WORK[0] + MOST_WORK[1] * table.size, effort.most)

    def solve(self, patience: float) -> Array | None:
        self._frame()
        x = np.arange(self.inputs)
        first = self.table > 1.5 * self.floor
        first[x, self.block.cost.argmin(axis=1)] = True
        self._add_entries(first if self.block.chain is None else np.ones_like(first))
        added: list[set[int]] = [set() for _ in range(2 * len(self.block.views))]
        for place, rows in self._violated(self.now, 0.95, added):
            self._add_rows(place, rows)
        for _ in range(ROUNDS):
            check()
            if not self._run():
                return None
            table = self._table()
            fresh = self._violated(product(self.block.weights, table), 1.0 - 0.5 * self.slack, added)
            for place, rows in fresh:
                self._add_rows(place, rows)
            paying = self._paying(patience)
            if paying is not None:
                self._add_entries(paying)
            if paying is None and not fresh:
                return table
        return None

    def _run(self) -> bool:
        """Solve with the rows and entries so far; False if that fails or takes too much work."""
        looked = sum(len(view.rest_one) + len(view.rest_other) for view in self.block.views) * self.outputs
        self.effort.convolved(looked, any(view.rest_one.dtype != np.float64 for view in self.block.views))
        self.effort.convolved(3 * self.block.weights.size * self.outputs, True)
        if not chosen.get().own:
            self._limited()
            return self.answer.x is not None and self.effort.spent < self.most
        self._limited()
        if self.highs.getModelStatus() not in (STATUS.kOptimal, STATUS.kIterationLimit):
            self.highs.clearSolver()
            self.highs.setOptionValue("presolve", "off")
            if self.block.given is not None:  # the rows of rare sums may be too much for the primal one
                self.highs.setOptionValue("simplex_strategy", 1)
            self._limited()
        return self.answer.status == "optimal"

    def _limited(self) -> None:
        rows = max(self.highs.getNumRow(), 1)
        left = max((self.most - self.effort.spent) // rows, 0)
        self.highs.setOptionValue("simplex_iteration_limit", int(min(left, highspy.kHighsIInf)))
        self.answer = solved(self.highs)
        self.effort.spent += rows * (rows if self.answer.iterations is None else self.answer.iterations)

    def _table(self) -> Array:
        assert self.answer.x is not None
        values = self.answer.x[self.columns :]
        table = np.zeros(self.inputs * self.outputs)
        table[self.entries] = np.maximum(values, 0.0)
        table = table.reshape(self.table.shape) * self.scale + self.floor
        result: Array = table / total(table, axis=1, keepdims=True)
        return result

    def _frame(self) -> None:
        """The rows of inputs and of the `v`, before there are any entries."""
        laws, inputs = len(self.now), self.inputs
        known = np.tile(self.floor / self.present, laws) * np.repeat(total(self.block.weights, axis=1), self.outputs)
        chain = 0 if self.block.chain is None else 2 * (inputs - 1) * self.outputs
        # Written for `r`, the chain loses what the floor adds: r <= e^f r' holds for the floor itself.
        right = np.concatenate([np.full(inputs, 1.0 - self.floor * self.outputs), -known])
        limits = np.concatenate([KEPT - self.floor * total(self.given, axis=(1, 2)), np.zeros(chain)])
        own, sums = laws * self.outputs, len(self.given)
        cost = np.concatenate([np.zeros(own), np.full(self.columns - own, self.block.price)])
        starts = np.concatenate([np.arange(own + 1), np.full(self.columns - own, own + sums)])
        matrix = sparse.csc_array(
            (-np.ones(own + sums), inputs + np.arange(own + sums), starts), (len(right) + len(limits), self.columns)
        )
        lower = np.concatenate([right, np.full(len(limits), -np.inf)])
        self.highs.passModel(model_of(LinearProgram(cost, matrix, lower, np.concatenate([right, limits]))))

    def _add_entries(self, wanted: Any) -> None:
        """Columns for the wanted entries that have none yet."""
        fresh = np.flatnonzero((wanted & ~self.listed).ravel())
        self.listed |= wanted
        self.entries = np.concatenate([self.entries, fresh])
        x, s = np.divmod(fresh, self.outputs)
        size, laws = self.scale[x, s], len(self.now)
        rows = [x] + [self.inputs + k * self.outputs + s for k in range(laws)]
        values = [size] + [self.block.weights[k, x] * size / self.present[s] for k in range(laws)]
        rows += [np.full(len(fresh), self.inputs + laws * self.outputs + k) for k in range(len(self.given))]
        values += [own[x, s] * size for own in self.given]
        if self.block.chain is not None:
            grow = exp(-self.block.chain * (1 - self.slack))
            base = self.inputs + laws * self.outputs + len(self.given)
            half = (self.inputs - 1) * self.outputs
            # Row (x, s) of the first half: grow r(x+1, s) <= r(x, s); of the second: grow r(x, s) <= r(x+1, s). Each
            # is divided by the larger of the two scales.
            before = np.where(x > 0, size / np.maximum(size, self.scale[np.maximum(x - 1, 0), s]), 0.0)
            after = np.minimum(x + 1, self.inputs - 1)
            behind = np.where(x < after, size / np.maximum(size, self.scale[after, s]), 0.0)
            for start, above, below in ((base, grow, -1.0), (base + half, -1.0, grow)):
                rows += [start + (x - 1) * self.outputs + s, start + x * self.outputs + s]
                values += [above * before, below * behind]
        row, value = np.array(rows).T, np.array(values).T
        add_columns(self.highs, self.cost[x, s], row, value, np.abs(value) > SMALLEST)

    def _paying(self, patience: float) -> Any:
        """The entries whose reduced cost is negative, a few for each input and output; None if they gain too little.

        The entries of an input sum to 1, so that no more than its largest saving can be gained by it.
        """
        dual, laws = self.answer.duals, len(self.now) * self.outputs
        if self.listed.all() or dual is None:
            return None
        price, worth = dual[: self.inputs], dual[self.inputs : self.inputs + laws].reshape(len(self.now), self.outputs)
        reduced = self.cost / self.scale - price[:, None] - product(self.block.weights.T, worth / self.present)
        for value, own in zip(dual[self.inputs + laws :].tolist(), self.given, strict=False):
            if value:
                reduced = reduced - value * own
        reduced = np.where(self.listed, 0.0, reduced)
        gains = np.maximum(-reduced.min(axis=1), 0.0)
        if total(gains) <= patience * max(self.answer.objective, 1e-12):
            return None
        chosen = np.zeros(reduced.shape, dtype=bool)
        few = min(3, self.outputs)
        best = np.argsort(reduced, axis=1, kind="stable")[:, :few]
        chosen[np.arange(self.inputs)[:, None], best] = True
        weighed = reduced * self.scale
        chosen[weighed.argmin(axis=0), np.arange(self.outputs)] = True
        return chosen & (reduced < 0)

    def _violated(self, y: Array, share: float, added: list[set[int]]) -> list[tuple[int, Any]]:
        """For each view and direction the aggregates beyond `share` of what is allowed that have no row yet."""
        found = []
        for k, view in enumerate(self.block.views):
            limit = exp(share * view.epsilon)
            for place, quotient in enumerate(_quotients(*view.laws(y)), start=2 * k):
                beyond = np.flatnonzero(quotient > limit).tolist()
                rows = np.array([row for row in beyond if row not in added[place]], dtype=np.int64)
                if len(rows) > AT_ONCE:
                    rows = rows[np.linspace(0, len(rows) - 1, AT_ONCE).astype(np.int64)]
                if len(rows):
                    added[place].update(rows.tolist())
                    found.append((place, rows))
        return found

    def _add_rows(self, place: int, rows: Any) -> None:
        """`e^-eps (rest_a * y_a)(S) - (rest_b * y_b)(S) <= 0` for each aggregate `S` of `rows`, divided by `Pr[S]`."""
        view = self.block.views[place // 2]
        ends = ((view.one, view.rest_one), (view.other, view.rest_other))
        (a, rest_a), (b, rest_b) = ends if place % 2 == 0 else ends[::-1]
        shrink = exp(-view.epsilon * (1 - self.slack))
        chance = convolve(rest_a, self.now[a])[rows] + convolve(rest_b, self.now[b])[rows]
        gap = rows[:, None] - np.arange(self.outputs)[None, :]
        tables = []
        for rest, sign in ((rest_a, shrink), (rest_b, -1.0)):
            inside = (gap >= 0) & (gap < len(rest))
            taken = np.where(inside, rest[np.clip(gap, 0, len(rest) - 1)], 0.0)
            share = sign * taken * self.present[None, :] / np.maximum(chance, np.finfo(chance.dtype).tiny)[:, None]
            tables.append(share.astype(np.float64))
        one, other = a * self.outputs + np.arange(self.outputs), b * self.outputs + np.arange(self.outputs)
        dense, columns = (tables[0] + tables[1], one) if a == b else (np.hstack(tables), np.concatenate([one, other]))
        matrix = sparse.csr_matrix(np.where(np.abs(dense) > SMALLEST, dense, 0.0))
        add_rows(self.highs, matrix.indptr, columns[matrix.indices], matrix.data)
