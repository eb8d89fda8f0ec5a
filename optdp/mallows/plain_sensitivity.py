"""The largest sensitivity of an order and its width, in Python's integers: what verifying recomputes.

For Kendall's distance the closed form of `optdp.mallows.sensitivity` for a group at positions `g_1 < .. < g_m` is

    m (m-1) / 2  +  2 sum over i of min(i, m-i) (g_(i+1) - g_i - 1).

Summed by parts, `min(i-1, m-i+1) - min(i, m-i)` is -1 in the lower half of the positions, +1 in the upper half and 0 in
the middle, and the sum of `min(i, m-i)` is `floor(m^2 / 4)`. So it is

    m (m-1) / 2  +  2 (sum of the upper half  -  sum of the lower half  -  floor(m^2 / 4)).
"""

from __future__ import annotations

from collections.abc import Sequence

from optdp.mallows.plain_groups import PlainGroups


def measured(groups: PlainGroups, order: Sequence[int], distance: str) -> tuple[int, int]:
    """The largest sensitivity of a group, and how far apart members of one stand; `order[p]` is at position `p`."""
    position = [0] * groups.n
    for place, record in enumerate(order):
        position[record] = place
    largest = width = 0
    for group in groups:
        size = len(group)
        if size < 2:
            continue
        at = sorted(map(position.__getitem__, group))
        width = max(width, at[-1] - at[0])
        if distance == "hamming":
            largest = max(largest, size)
        else:
            half = size // 2
            moved = sum(at[-half:]) - sum(at[:half]) - size * size // 4
            largest = max(largest, size * (size - 1) // 2 + 2 * moved)
    return largest, width
