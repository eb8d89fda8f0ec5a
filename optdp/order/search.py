"""The least sensitivity of all orders, from both sides: a local search, and what no order can go below (E).

**The descent** of all records at once, annealed. A group with `m` members at positions `g_1 < .. < g_m` has the
sensitivity

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

**The bound**, for any number of records. A group of `m` has `m (m-1) / 2` at least. Beyond that there are routes: let
every record `u` of a set `R` be joined with every record `v` of a set `U` that holds `R` by a walk whose steps each lie
within some group. Routes may be split into fractions. Let `W[g,j]` be how many steps within group `g` begin or end at
its member `j`, and `W[g]` the largest of these. Then the largest sensitivity of any order is at least

    (2 F - sum_g W[g] floor(m/2)) / sum_g W[g],

whatever the routes are (docs/mathematics.md, "What no order is below"). `F` is what the distances sum to at least: in
`U` the record with `p` of the others before it has `f(p) = p (p+1) / 2 + (q-p) (q-p+1) / 2` in all, `q = |U| - 1`, and
`F` is the sum of the `|R|` least of these. Good routes are short, and spread over all members of the groups they pass.

Here the routes are shortest paths in the graph of overlapping groups: from `u` in its home group to the members of the
overlap with the next group, on to the next overlap, and so on; each overlap is spread over its members. Lengths are
the slope of a power mean of `W[g,.]` that stands for the largest, so that crowded members and groups are avoided; they
are renewed after every batch of sources, and routes of several passes are mixed. `U` is a connected component.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csgraph, csr_array

from optdp.numbers.ordered import dot, powers
from optdp.order.mechanism import Groups, Reals, Whole
from optdp.order.orderings import depths
from optdp.work import Progress, silent
from optdp.work.account import Budget, beyond

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
class GroupTable:
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
        self.least = groups.side_by_side
        self.tables: list[GroupTable] = []
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

    def _table(self, groups: Groups, rows: Whole) -> GroupTable:
        sizes = groups.sizes[rows][:, None]
        rank = np.arange(int(sizes.max()))
        inside = rank < sizes
        at = np.where(inside, groups.starts[rows][:, None] + rank, 0)
        members = np.where(inside, groups.members[at], groups.n).astype(np.int32)
        signs = np.where(inside & (rank >= sizes - sizes // 2), 1, np.where(rank < sizes // 2, -1, 0))
        return GroupTable(members, signs.astype(np.float32), (sizes // 2)[:, 0])

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


EVEN = 0.3
"""What is added to all numbers, over their mean, so that members that nobody passed yet are not free."""
COVER = 2
"""Groups are taken until every record is in so many of them, if it can be."""
ALL_GROUPS = 300
"""Up to so many, all are taken."""
CROSSINGS = 30_000_000
"""Beyond so many, there are no routes but the bound from side by side: a matter of memory."""
BATCH = 64
"""Sources between two renewals of the lengths; fewer where there are few."""
RENEWAL = (3e-4, 3.5e-8, 4.5e-8)
"""Seconds that a batch is charged, for each arc and source, and for each crossing."""
SETTING_UP = (4e-6, 1.5e-7, 0.0)
"""And what comes before the first batch, for each record and member of large problems (`beyond`)."""
CROSSING = 2e-7
"""As well as for each crossing."""
WARM = 2
"""Passes that are not mixed into later ones: they teach the lengths."""
PASSES = 12
SLACK = 1e-9
"""What is taken off for round-off: a million times what sums of this size can have."""
COMPONENTS = 3
"""The largest components that are looked at."""


def lower_bound(groups: Groups, seconds: float = 15.0, progress: Progress = lambda _: None) -> int:
    """No order of the records has a lower Kendall sensitivity; searched for about so long (`Budget`)."""
    bound = groups.side_by_side
    rows = distinct(groups)
    if not len(rows):
        return bound
    count, label = groups.parts
    of_row = label[groups.members[groups.starts[rows]]]
    sizes = np.bincount(label, minlength=count)
    chosen = [part for part in np.argsort(-sizes, kind="stable")[:COMPONENTS] if sizes[part] > 2]
    for part in chosen:
        bound = max(
            bound,
            _routes_bound(groups, rows[of_row == part], np.flatnonzero(label == part), seconds / len(chosen), progress),
        )
    return bound


def _routes_bound(groups: Groups, rows: Whole, records: Whole, seconds: float, progress: Progress) -> int:
    """The bound from routes within one component."""
    budget = Budget(seconds)
    budget.spend(beyond(len(rows), int(groups.sizes[rows].sum()), SETTING_UP))
    if budget.left == 0.0 < budget.spent:
        return 0
    chosen = _enough(groups, rows)
    times = np.bincount(np.concatenate([groups[row] for row in chosen.tolist()]))
    crossings = int((times**2).sum())
    budget.spend(beyond(0, crossings, (0.0, CROSSING, 0.0)))
    if crossings > CROSSINGS or budget.left == 0.0 < budget.spent:
        return 0
    overlaps = Overlaps.of(groups, chosen, records)
    source = np.random.default_rng(0)
    n = len(records)
    place = np.arange(n, dtype=np.int64)
    least = np.cumsum(np.sort(place * (place + 1) // 2 + (n - 1 - place) * (n - place) // 2))
    memory = np.zeros(len(overlaps.members))  # what the lengths learn from
    mixed = np.zeros(len(overlaps.members))
    demand = bound = 0
    sources = np.flatnonzero(overlaps.cells)
    batch = max(1, min(BATCH, len(sources) // 8))
    for number in range(PASSES):
        order = source.permutation(sources)
        passed, reached = np.zeros_like(memory), 0
        for begin in range(0, len(order), batch):
            if (number or begin) and budget.share == 1.0:
                break
            some = order[begin : begin + batch]
            budget.spend(
                RENEWAL[0] + RENEWAL[1] * len(overlaps.tails) * len(some) + RENEWAL[2] * len(overlaps.crossing_arc)
            )
            progress(f"a lower bound, {budget.share:.0%}: no order is below {bound:,}")
            passed += overlaps.routed(some, overlaps.lengths(memory + passed, avoid=number > 0))
            reached += int(overlaps.cells[some].sum())
        if not reached:
            break
        memory += passed
        bound = max(bound, overlaps.proved(passed, int(least[reached - 1])))
        if number >= WARM and reached == n:
            mixed += passed
            demand += int(least[-1])
            bound = max(bound, overlaps.proved(mixed, demand))
    return bound


def _enough(groups: Groups, rows: Whole) -> Whole:
    """Groups that cover every record `COVER` times if it can be, in no particular order; all if they are few."""
    if len(rows) <= ALL_GROUPS:
        return rows
    times = np.zeros(groups.n, dtype=np.int64)
    chosen = []
    for row in np.random.default_rng(0).permutation(rows).tolist():
        members = groups[row]
        if times[members].min() < COVER:
            times[members] += 1
            chosen.append(row)
    return np.sort(np.array(chosen, dtype=np.int64))


@dataclass(frozen=True)
class Overlaps:
    """Some groups of a component, which of them overlap, and in whom.

    An entry is a member of a group, an arc is an ordered pair of groups that overlap, and a crossing is an entry of an
    arc's first group whose record is in the second group too.
    """

    starts: Whole
    members: Whole
    owners: Whole
    tails: Whole
    heads: Whole
    back: Whole
    """The arc in the other direction."""
    crossing_arc: Whole
    crossing_from: Whole
    """The entry in the arc's first group."""
    crossing_to: Whole
    """The entry of the same record in its second group."""
    homes: Whole
    """The entry of each record in its home group."""
    cells: Whole
    """How many records are at home in each group."""

    @classmethod
    def of(cls, groups: Groups, rows: Whole, records: Whole) -> Overlaps:
        sizes = groups.sizes[rows]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        owners = np.repeat(np.arange(len(rows), dtype=np.int64), sizes)
        entries = np.arange(len(owners)) - starts[owners] + groups.starts[rows][owners]
        members = np.searchsorted(records, groups.members[entries])
        by_record = np.argsort(members, kind="stable")
        times = np.bincount(members, minlength=len(records))
        first = np.concatenate(([0], np.cumsum(times)[:-1]))
        partners = times[members]
        one = np.repeat(np.arange(len(members)), partners)
        rank = np.arange(len(one)) - np.repeat(np.cumsum(partners) - partners, partners)
        other = by_record[first[members[one]] + rank]
        differ = one != other
        one, other = one[differ], other[differ]
        pairs, crossing_arc = np.unique(owners[one] * len(rows) + owners[other], return_inverse=True)
        tails, heads = np.divmod(pairs, len(rows))
        back = np.searchsorted(pairs, heads * len(rows) + tails)
        pick = (np.random.default_rng(0).random(len(records)) * times).astype(np.int64)
        homes = by_record[first + pick]
        cells = np.bincount(owners[homes], minlength=len(rows))
        return cls(starts, members, owners, tails, heads, back, crossing_arc, one, other, homes, cells)

    def lengths(self, passed: Reals, avoid: bool) -> tuple[Reals, Reals]:
        """The lengths of the arcs, and how routes are spread over the crossings of one, from who was passed so far.

        With `avoid`, members of an overlap who are crowded are avoided.
        """
        crowd = passed + (EVEN * float(passed.mean()) or 1.0)
        crowd = crowd / self._largest(crowd)[self.owners]
        # The slope of the mean of fourth powers, by operations that every machine rounds alike.
        square = crowd * crowd
        half = np.sqrt(np.add.reduceat(square * square, self.starts[:-1]))
        slope = square * crowd / (half * np.sqrt(half))[self.owners]
        each = slope[self.crossing_from] + slope[self.crossing_to]
        shares = 1.0 / (each * each) if avoid else np.ones(len(each))
        shares /= np.bincount(self.crossing_arc, weights=shares, minlength=len(self.tails))[self.crossing_arc]
        length = np.bincount(self.crossing_arc, weights=shares * each, minlength=len(self.tails))
        return length.astype(np.float64), shares

    def routed(self, sources: Whole, lengths: tuple[Reals, Reals]) -> Reals:
        """`W` of the routes between all records at home in these groups and all records of the component."""
        length, shares = lengths
        flow = self._flow(sources, length)
        flow += flow[self.back]  # an arc's crossings are passed in both of its groups
        crossed = shares * flow[self.crossing_arc]
        passed = np.bincount(self.crossing_from, weights=crossed, minlength=len(self.members)).astype(np.float64)
        begins = np.isin(self.owners[self.homes], sources)
        # Each of them sets out to all others, and everybody else is arrived at by each of them.
        passed[self.homes] += begins * (len(self.homes) - 2.0) + float(begins.sum())
        return passed

    def _flow(self, sources: Whole, length: Reals) -> Reals:
        """How many routes take each arc: shortest paths from every source, loaded from their ends."""
        count = len(self.cells)
        starts = np.searchsorted(self.tails, np.arange(count + 1)).astype(np.int32)
        graph = csr_array((length, self.heads.astype(np.int32), starts), shape=(count, count))
        _, before = csgraph.dijkstra(graph, indices=sources, return_predecessors=True)
        node = np.arange(before.size)
        parent = np.where(
            before >= 0, before + count * np.arange(len(sources))[:, None], node.reshape(before.shape)
        ).ravel()
        depth = depths(parent)
        load = np.tile(self.cells, len(sources)).astype(np.float64)
        by_depth = np.argsort(depth.astype(np.uint16) if depth.max() < 2**16 else depth, kind="stable")
        levels = np.searchsorted(depth[by_depth], np.arange(int(depth.max()) + 2))
        for level in range(int(depth.max()), 0, -1):
            here = by_depth[levels[level] : levels[level + 1]]
            np.add.at(load, parent[here], load[here])
        moved = np.flatnonzero(parent != node)
        routes = load[moved] * self.cells[sources[moved // count]]
        taken = coo_array((routes, (parent[moved] % count, moved % count)), shape=(count, count)).tocsr().tocoo()
        flow = np.zeros(len(self.tails))
        flow[np.searchsorted(self.tails * count + self.heads, taken.row.astype(np.int64) * count + taken.col)] = (
            taken.data
        )
        return flow

    def proved(self, passed: Reals, demand: int) -> int:
        """The bound of these routes; `demand` is what the joined distances sum to at least."""
        largest = self._largest(passed)
        total = float(largest.sum())
        if total == 0.0:
            return 0
        halves = np.diff(self.starts) // 2
        return math.ceil((2.0 * demand - dot(largest, halves)) / total * (1.0 - SLACK) - SLACK)

    def _largest(self, values: Reals) -> Reals:
        return np.maximum.reduceat(values, self.starts[:-1])
