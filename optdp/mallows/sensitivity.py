"""How far one group can move the distance from the reference order: exactly (docs/papers.md, E).

A record stands at position `p` of the order. For Kendall's distance a group with `m` members at positions
`g_1 < .. < g_m` has the sensitivity

    m (m-1) / 2  +  sum over non-members q between g_1 and g_m of 2 min(members before q, members after q):

between `g_i` and `g_(i+1)` there are `g_(i+1) - g_i - 1` non-members with `i` members before and `m - i` after. For the
Hamming distance it is `m` from two members on: all of them in place, or none.
"""

from __future__ import annotations

import numpy as np

from optdp.mallows.groups import Groups, Whole


def sensitivities(groups: Groups, order: Whole, distance: str = "kendall") -> Whole:
    """The sensitivity of every group; `order[p]` is the record at position `p`."""
    if distance == "hamming":
        return np.where(groups.sizes > 1, groups.sizes, 0)
    place = placed(groups, order)
    sizes = groups.sizes
    found: Whole = sizes * (sizes - 1) // 2
    inner = np.flatnonzero(groups.owners[1:] == groups.owners[:-1])  # entries whose successor is in the same group
    if len(inner):
        owner = groups.owners[inner]
        before = inner - groups.starts[owner] + 1
        gaps = place[inner + 1] - place[inner] - 1
        weights = 2 * np.minimum(before, sizes[owner] - before) * gaps
        found = found + np.bincount(owner, weights=weights.astype(np.float64), minlength=len(groups)).astype(np.int64)
    return found


def placed(groups: Groups, order: Whole) -> Whole:
    """The positions of all members, increasing within each group."""
    position = np.empty(groups.n, dtype=np.int64)
    position[order] = np.arange(groups.n, dtype=np.int64)
    at = position[groups.members]
    return at[np.lexsort((at, groups.owners))]


def sensitivity(groups: Groups, order: Whole, distance: str = "kendall") -> int:
    """The largest of all groups."""
    return int(sensitivities(groups, order, distance).max(initial=0))


def width(groups: Groups, order: Whole) -> int:
    """How far apart members of a group stand at most (E, section 2.3)."""
    place = placed(groups, order)
    some = groups.sizes > 0
    first, last = groups.starts[:-1][some], groups.starts[1:][some] - 1
    return int((place[last] - place[first]).max(initial=0))


def paper_sensitivity(groups: Groups, order: Whole) -> int:
    """E's bound for Kendall's distance, `w (w+1) / 2` of the width `w`: valid, and far too large."""
    wide = width(groups, order)
    return wide * (wide + 1) // 2
