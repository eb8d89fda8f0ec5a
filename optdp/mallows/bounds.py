"""What no order can go below: a lower bound of the sensitivity over all orders, for any number of records.

**Side by side.** A group of `m` has `m (m-1) / 2` at least.

**Routes.** Let every record `u` of a set `R` be joined with every record `v` of a set `U` that holds `R` by a route, a walk
`u = r_0, r_1, .., r_k = v` whose steps `(r_i, r_(i+1))` each lie within some group; routes may be split into fractions. Let
`W[g,j]` be how many steps within group `g` begin or end at its member `j`. In an order let `y[r]` be the position of
`r` and `c[g]` the median position of group `g`.

1. `|y[u] - y[v]|` is at most the sum of `|y[r_i] - y[r_(i+1)]|` along its route, and a step within `g` from `a` to `b` is at most
   `|y[a] - c[g]| + |y[b] - c[g]|`. All routes together: `sum |y[u] - y[v]| <= sum_g sum_j W[g,j] |y[j] - c[g]|`.
2. With `W[g]` the largest `W[g,j]` of the group and `S[g] = 2 sum_j |y[j] - c[g]| - floor(m/2)` its sensitivity
   (`optdp.mallows.descent`), the right side is at most `sum_g W[g] (S[g] + floor(m/2)) / 2`.
3. Records of `U` stand at different positions. The one with `p` of the others before it has distances of at least
   `f(p) = p (p+1) / 2 + (q-p) (q-p+1) / 2` in all, `q = |U| - 1`; so the left side is at least the sum `F` of the `|R|` least
   values of `f` over `p = 0..q`. For `R = U` this is `|U| (|U|^2 - 1) / 3`.

Hence the largest sensitivity of any order is at least `(2 F - sum_g W[g] floor(m/2)) / sum_g W[g]`, whatever the routes are.
Good routes are short and spread over all members of the groups that they pass. In the plane, with groups of one radius,
the best ones prove a bound that grows like `m sqrt(n m)`, as the sensitivity of the best order does.

Here the routes are shortest paths in the graph of overlapping groups: from `u` in its home group to the members of the
overlap with the next group, on to the next overlap, and so on; each overlap is spread over its members. Lengths are
the slope of a power mean of `W[g,.]` that stands for the largest, so that crowded members and groups are avoided; they
are renewed after every batch of sources, and routes of several passes are mixed. `U` is a connected component.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_array

from optdp.mallows.descent import distinct
from optdp.mallows.groups import Groups, Whole
from optdp.mallows.orderings import adjacency

Reals = NDArray[np.float64]
POWER = 4
"""Of the mean that stands for the largest number of a group."""
AVOID = 2.0
"""How strongly crowded members of an overlap are avoided."""
EVEN = 0.3
"""What is added to all numbers, over their mean, so that members that nobody passed yet are not free."""
COVER = 2
"""Groups are taken until every record is in so many; for small components in all that there are."""
ALL_GROUPS = 300
BATCH = 64
"""Sources between two renewals of the lengths; fewer where there are few."""
WARM = 2
"""Passes that only teach the lengths."""
PASSES = 12
SLACK = 1e-9
"""What is taken off for round-off: a million times what sums of this size can have."""
COMPONENTS = 3
"""The largest components that are looked at."""


def lower_bound(groups: Groups, seconds: float = 5.0) -> int:
    """No order of the records has a lower Kendall sensitivity; searched for about so long."""
    bound = int((groups.sizes * (groups.sizes - 1) // 2).max(initial=0))
    rows = distinct(groups)
    if not len(rows):
        return bound
    count, label = csgraph.connected_components(adjacency(groups), directed=False)
    of_row = label[groups.members[groups.starts[rows]]]
    sizes = np.bincount(label, minlength=count)
    chosen = [part for part in np.argsort(-sizes, kind="stable")[:COMPONENTS] if sizes[part] > 2]
    for part in chosen:
        bound = max(bound, _routes_bound(groups, rows[of_row == part], np.flatnonzero(label == part), seconds / len(chosen)))
    return bound


def _routes_bound(groups: Groups, rows: Whole, records: Whole, seconds: float) -> int:
    """The bound from routes within one component."""
    deadline = time.perf_counter() + seconds
    overlaps = Overlaps.of(groups, _enough(groups, rows), records)
    source = np.random.default_rng(0)
    n = len(records)
    place = np.arange(n, dtype=np.int64)
    least = np.cumsum(np.sort(place * (place + 1) // 2 + (n - 1 - place) * (n - place) // 2))
    memory = np.zeros(len(overlaps.members))  # what the lengths learn from
    mixed = np.zeros(len(overlaps.members))
    demand = bound = 0
    sources = np.flatnonzero(overlaps.cells)
    for number in range(WARM + PASSES):
        order = source.permutation(sources)
        batch = max(1, min(BATCH, len(order) // 8))
        if number < WARM:
            order = order[: 8 * batch]
        passed, reached = np.zeros_like(memory), 0
        for begin in range(0, len(order), batch):
            if (number or begin) and time.perf_counter() > deadline:
                break
            some = order[begin : begin + batch]
            passed += overlaps.routed(some, overlaps.lengths(memory + passed))
            reached += int(overlaps.cells[some].sum())
        if not reached:
            break
        share = reached / n
        memory += passed / share
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


