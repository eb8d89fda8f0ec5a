"""Made-up places and colours with three granularities, after E's Figure 1.

There are two clusters, warm and cool. Each is two crescents that hold each other: half circles of radius 1 around
`(0, 0)`, open downwards, and around `(1, 1/2)`, open upwards. Along each crescent the first half is light and the
second is dark. The colour of a record is `4 cluster + 2 crescent + half`, one of eight: shifted right by one bit it is
one of four crescents, and by two bits one of two clusters.
"""

from __future__ import annotations

import numpy as np

from optdp.mallows.groups import LARGEST_N, Whole
from optdp.mallows.neighbourhoods import Reals
from optdp.math.exact import check_between, check_whole
from optdp.math.source import Source

COLOURS = 8
APART = 4.0
"""How far the second cluster is to the right of the first one."""


def crescents(n: int, source: Source, spread: float = 0.1) -> tuple[Reals, Whole]:
    """Points of `n` records and their colours; points lie off their arc by about `spread`, in each coordinate."""
    check_whole(n, "n", 1, LARGEST_N)
    check_between(spread, "The spread", 0.0, 1.0)
    arc = uniforms(source, n)
    colours = (source.words(n) >> np.uint64(62)).astype(np.int64) * 2 + (arc >= 0.5)
    cluster, lower = colours >> 2, (colours >> 1 & 1).astype(np.bool_)
    angle = np.pi * arc
    x = np.where(lower, 1.0 - np.cos(angle), np.cos(angle)) + APART * cluster
    y = np.where(lower, 0.5 - np.sin(angle), np.sin(angle))
    off, turn = np.sqrt(-2.0 * np.log1p(-uniforms(source, n))), 2.0 * np.pi * uniforms(source, n)
    away = spread * off[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)  # normal, by Box and Muller
    return np.stack([x, y], axis=1) + away, colours


def uniforms(source: Source, size: int) -> Reals:
    """Floats between 0 and 1, for simulations."""
    found: Reals = (source.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found
