"""Local search for an order of low sensitivity: a descent of all records at once, annealed (docs/papers.md, E).

A group with `m` members at positions `g_1 < .. < g_m` has the sensitivity

    S = 2 sum_j |g_j - median|  -  floor(m/2),

which is the same number as the closed form of `optdp.order.mechanism`: a gap with `i` members before it and `m - i`
after it lies on `min(i, m - i)` of the ways to the median. It is convex in the positions, and its slope is +2 at
members beyond the median and -2 at those before. What is to be made small is the largest `S`; in its place the descent
follows the slope of the power mean `(sum S^p)^(1/p)`, with `p` growing as the budget is spent. Records move against the
slope with some momentum, by steps that shrink, and are ranked anew: the ranks are the next order. Whatever happens on
the way, the order with the least exact sensitivity that was met is kept. Few records are better moved one by one:
`anneal`.

Only the slope needs the members sorted. Groups are held in tables of nearly equal size, so that rows are sorted at
once; which record stands at a sorted position is known from the order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optdp.numbers.ordered import powers
from optdp.order.groups import Groups, Whole
from optdp.work import Progress, silent
from optdp.work.account import Budget, beyond

Reals = NDArray[np.float64]

POWERS = 50, 1500
"""`p` of the power mean, first and last."""
STEPS = 2.4, 0.04
"""How far a record moves at most, over the mean distance from the median in the worst group; first and last."""
MOMENTUM = 0.9
CALM = 4.0
"""Slopes beyond so many times their mean are levelled."""
HEATS = 0.05, 0.0005
"""By how much a worse order may be taken while annealing, over the best sensitivity; first and last."""
NEGLIGIBLE = 1e-6
"""Groups of less weight are left out of the slope."""
ROUND, MOVE = (5e-5, 3.5e-5, 1.25e-8), (9e-5, 1.2e-5, 1e-8)
"""Seconds that a round of the descent and of annealing are charged, for each table, and for each of its entries."""
RANKING = (1.1e-7, 0.0, 0.0)
"""And for each of very many records (`beyond`), which are ranked in every round."""
SLOW = 0.02
"""Rounds that take longer are told one by one."""
ROOM = 1.25
"""The longest row of a table over the shortest."""


@dataclass(frozen=True)
class Table:
    """Groups of similar size as rows: their members (padded with `n`), the slope's sign by rank, and `floor(m/2)`."""

    members: NDArray[np.int32]
    signs: NDArray[np.float32]
    halves: Whole


class Tables:
    """All groups that can matter: not singletons, each set of members once."""

    def __init__(self, groups: Groups) -> None:
        self.n = groups.n
        rows = distinct(groups)
        self.sizes = sizes = groups.sizes[rows]
        self.least = int((sizes * (sizes - 1) // 2).max(initial=0))  # no order is below
        self.tables: list[Table] = []
        begin = 0
        while begin < len(rows):
            longest = max(int(sizes[begin]) + 2, int(ROOM * sizes[begin]))
            end = int(np.searchsorted(sizes, longest, side="right"))
            self.tables.append(self._table(groups, rows[begin:end]))
            begin = end

    def cost(self, charges: tuple[float, float, float]) -> float:
        """What one look at all tables is charged."""
        entries = self.n + sum(table.members.size for table in self.tables)
        return charges[0] + charges[1] * len(self.tables) + charges[2] * entries + beyond(self.n, 0, RANKING)

    def _table(self, groups: Groups, rows: Whole) -> Table:
        sizes = groups.sizes[rows][:, None]
        rank = np.arange(int(sizes.max()))
        inside = rank < sizes
        at = np.where(inside, groups.starts[rows][:, None] + rank, 0)
        members = np.where(inside, groups.members[at], groups.n).astype(np.int32)
        signs = np.where(inside & (rank >= sizes - sizes // 2), 1, np.where(rank < sizes // 2, -1, 0))
        return Table(members, signs.astype(np.float32), (sizes // 2)[:, 0])

    def measure(self, position: Whole) -> tuple[Whole, list[NDArray[np.int32]]]:
        """The sensitivity of every group, and the sorted positions of its members."""
        extended = np.append(position, self.n).astype(np.int32)
        found, places = [], []
        for table in self.tables:
            at = extended[table.members]
            at.sort(axis=1)
            sums = np.einsum("ij,ij->i", at, table.signs, dtype=np.float64)
            found.append(2 * np.rint(sums).astype(np.int64) - table.halves)
            places.append(at)
        return (np.concatenate(found) if found else np.zeros(0, np.int64)), places

    def group(self, row: int) -> Whole:
        """The members of a group, by its place among the sensitivities."""
        for table in self.tables:
            if row < len(table.members):
                members = table.members[row].astype(np.int64)
                inside: Whole = members[members < self.n]
                return inside
            row -= len(table.members)
        raise IndexError(row)

    def slope(self, places: list[NDArray[np.int32]], weights: Reals) -> Reals:
        """The slope of the weighted sum of sensitivities, by position, over two."""
        total = np.zeros(self.n + 1)
        begin = 0
        for at, table in zip(places, self.tables, strict=True):
            weight = weights[begin : begin + len(at)]
            begin += len(at)
            some = np.flatnonzero(weight > NEGLIGIBLE)
            pull = table.signs[some] * weight[some, None].astype(np.float32)
            total += np.bincount(at[some].ravel(), weights=pull.ravel(), minlength=self.n + 1)
        return total[:-1]


def distinct(groups: Groups) -> Whole:
    """The groups with two members or more, by size, each set of members once."""
    rows = np.flatnonzero(groups.sizes > 1)
    rows = rows[np.argsort(groups.sizes[rows], kind="stable")]
    marks = np.random.default_rng(0).integers(1, 2**62, size=(2, groups.n), dtype=np.uint64)
    sums = np.zeros((3, len(groups)), dtype=np.uint64)
    sums[0] = groups.sizes.astype(np.uint64)
    for line, mark in zip(sums[1:], marks, strict=True):
        totals = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mark[groups.members], dtype=np.uint64)))
        line[:] = totals[groups.starts[1:]] - totals[groups.starts[:-1]]
    _, first = np.unique(sums[:, rows], axis=1, return_index=True)
    return rows[np.sort(first)]


@dataclass
class Descent:
    """A descent from `order`. `order` and `sensitivity` are the best so far at any moment, also after an interrupt."""

    tables: Tables
    order: Whole
    sensitivity: int
    rounds: int = 0

    def run(self, budget: Budget, progress: Progress = silent) -> None:
        """Descend until the budget is spent; the powers and the steps follow the share of it."""
        n = self.tables.n
        cost = self.tables.cost(ROUND)
        order, position, drift = self.order, np.empty(n, dtype=np.int64), np.zeros(n)
        while (share := budget.share) < 1.0:
            budget.spend(cost)
            position[order] = np.arange(n)
            found, places = self.tables.measure(position)
            worst = int(found.max(initial=0))
            if worst < self.sensitivity:
                self.order, self.sensitivity = order, worst
            if self.sensitivity <= self.tables.least:
                return
            if self.rounds % 50 == 0 or cost > SLOW:
                progress(f"descent, round {self.rounds}, {share:.0%}: sensitivity {self.sensitivity:,}")
            self.rounds += 1
            power, step = (first * (last / first) ** share for first, last in (POWERS, STEPS))
            power, step = round(power), round(step, 9)  # another machine's last bit would lead elsewhere
            slope = self.tables.slope(places, powers(found / worst, power))
            slope /= max(CALM * float(np.abs(slope).mean()), 1e-300)
            slope /= np.sqrt(1.0 + slope**2)  # no record runs away, however many groups pull at it
            drift *= MOMENTUM
            drift[order] += (1.0 - MOMENTUM) * slope
            reach = self.sensitivity / (2.0 * self.tables.sizes[np.argmax(found)])
            order = np.argsort(position - step * reach * drift, kind="stable")

    def anneal(self, budget: Budget, progress: Progress = silent) -> None:
        """Simulated annealing, for few records: one of a bad group goes to where its other members are, two records
        change places, or a stretch of the order is turned around."""
        chance = np.random.default_rng(0)
        cost = self.tables.cost(MOVE)
        order = self.order
        energy, found = self._energy(order)
        while (share := budget.share) < 1.0:
            budget.spend(cost)
            if self.sensitivity <= self.tables.least:
                return
            if self.rounds % 1000 == 0:
                progress(f"annealing, round {self.rounds}, {share:.0%}: sensitivity {self.sensitivity:,}")
            self.rounds += 1
            tried = self._moved(order, found, chance)
            value, theirs = self._energy(tried)
            worst = int(theirs.max())
            if worst < self.sensitivity:
                self.order, self.sensitivity = tried, worst
            heat = HEATS[0] * (HEATS[1] / HEATS[0]) ** share * self.sensitivity
            if chance.random() < math.exp(min((energy - value) / heat, 0.0)):  # drawn whether it is needed or not
                order, energy, found = tried, value, theirs

    def _energy(self, order: Whole) -> tuple[float, Whole]:
        """The power mean that stands for the largest sensitivity, and the sensitivities."""
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        found, _ = self.tables.measure(position)
        worst = float(found.max(initial=0))
        return worst * float(powers(found / worst, POWERS[0]).sum()) ** (1.0 / POWERS[0]), found

    def _moved(self, order: Whole, found: Whole, chance: np.random.Generator) -> Whole:
        n = len(order)
        kind = int(chance.integers(3))
        if kind == 0:
            bad = found + chance.random(len(found)) * 0.1 * found.max()
            members = self.tables.group(int(np.argmax(bad)))
            at = np.sort(np.flatnonzero(np.isin(order, members)))
            start = int(chance.choice((at[0], at[-1])))
            end = int(chance.integers(at[0], at[-1] + 1))
        else:
            start, end = (int(place) for place in chance.integers(n, size=2))
        if kind == 2:
            low, high = sorted((start, end))
            return np.concatenate((order[:low], order[low : high + 1][::-1], order[high + 1 :]))
        if kind == 1:
            tried = order.copy()
            tried[[start, end]] = order[[end, start]]
            return tried
        return np.insert(np.delete(order, start), end, order[start])
