"""What no order can go below: a lower bound of the sensitivity over all orders, for any number of records.

**Side by side.** A group of `m` has `m (m-1) / 2` at least.

**Routes.** Let every record `u` of a set `R` be joined with every record `v` of a set `U` that holds `R` by a route: a
walk `u = r_0, r_1, .., r_k = v` whose steps `(r_i, r_(i+1))` each lie within some group. Routes may be split into
fractions. Let `W[g,j]` be how many steps within group `g` begin or end at its member `j`. In an order let `y[r]` be the
position of `r` and `c[g]` the median position of group `g`.

1. `|y[u] - y[v]|` is at most the sum of `|y[r_i] - y[r_(i+1)]|` along its route, and a step within `g` from `a` to `b`
   is at most `|y[a] - c[g]| + |y[b] - c[g]|`. All routes together:
   `sum |y[u] - y[v]| <= sum_g sum_j W[g,j] |y[j] - c[g]|`.
2. With `W[g]` the largest `W[g,j]` of the group and `S[g] = 2 sum_j |y[j] - c[g]| - floor(m/2)` its sensitivity
   (`optdp.order.descent`), the right side is at most `sum_g W[g] (S[g] + floor(m/2)) / 2`.
3. Records of `U` stand at different positions. The one with `p` of the others before it has distances of at least
   `f(p) = p (p+1) / 2 + (q-p) (q-p+1) / 2` in all, `q = |U| - 1`; so the left side is at least the sum `F` of the `|R|`
   least values of `f` over `p = 0..q`. For `R = U` this is `|U| (|U|^2 - 1) / 3`.

Hence the largest sensitivity of any order is at least `(2 F - sum_g W[g] floor(m/2)) / sum_g W[g]`, whatever the routes
are. Good ones are short, and spread over all members of the groups that they pass.

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

from optdp.numbers.ordered import dot
from optdp.order.descent import distinct
from optdp.order.groups import Groups, Whole
from optdp.work import Progress
from optdp.work.account import Budget, beyond

Reals = NDArray[np.float64]
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
    bound = int((groups.sizes * (groups.sizes - 1) // 2).max(initial=0))
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
        depth, above = (parent != node).astype(np.int64), parent
        while (more := depth[above]).any():
            depth, above = depth + more, above[above]
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
