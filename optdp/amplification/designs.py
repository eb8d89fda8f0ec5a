"""Extremal designs: randomizers whose messages are likely for some inputs, and equally unlikely for all others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optdp.amplification.cells import Cells, Floats, cells


@dataclass(frozen=True)
class Patterns:
    """Outputs of an extremal design: input `x` has probability `p c` on the outputs of its own set and `c` elsewhere.

    `weights[i][j][l]` measures the outputs that lie (1) or do not (0) in the sets of two inputs and of a third one.
    """

    weights: Floats

    def scale(self, p: float) -> float:
        return 1.0 / float(self.weights[0].sum() + p * self.weights[1].sum())

    def laws(self, p: float) -> tuple[Floats, Floats, Floats, Floats]:
        """The laws of the three inputs on the eight kinds of output, and the blanket."""
        level = self.weights * self.scale(p)
        high = np.array([1.0, p])
        return (
            (level * high[:, None, None]).ravel(),
            (level * high[None, :, None]).ravel(),
            (level * high[None, None, :]).ravel(),
            level.ravel(),
        )


def extremal_blanket(patterns: Patterns, eps0: float) -> list[Cells]:
    first, second, _, blanket = patterns.laws(math.exp(eps0))
    return [merged(first, second, blanket)]


def extremal_data_sets(patterns: Patterns, eps0: float) -> list[Cells]:
    """The others hold a third value if there is one, or either of the two."""
    first, second, other, _ = patterns.laws(math.exp(eps0))
    held = [other] if patterns.weights[:, :, 1].any() else []
    return [merged(first, second, law) for law in (*held, first, second)]


def merged(first: Floats, second: Floats, others: Floats) -> Cells:
    """Cells with the same likelihoods relative to `others` put together, which changes nothing."""
    used = others > 0
    keys = np.round(np.stack([first[used] / others[used], second[used] / others[used]]), 12)
    _, where = np.unique(keys, axis=1, return_inverse=True)
    a, b, m = (np.bincount(where.ravel(), law[used]) for law in (first, second, others))
    return cells(a, b, m)
