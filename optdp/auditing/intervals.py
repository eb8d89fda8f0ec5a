"""Exact binomial tests (Clopper and Pearson, 1934), and one for the quotient of two probabilities.

Of `m` independent events of probability `share`, `k` happened. The Clopper-Pearson lower bound at level `alpha` is the
`t` with `Pr[Bin(m, t) >= k] = alpha`; it lies above `share` with probability at most `alpha`. What is returned here is
never above that `t`: it is proved in balls that `Pr[Bin(m, t) >= k] <= alpha`.

If every draw belongs to one of two arms by a fair coin, then of the draws that fall into an event each is of the first
arm with probability `p / (p + p')`, independently: `p <= r p'` says that this share is at most `r / (1 + r)`. One
interval does for both probabilities, which is narrower than one for each.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.special import betaincinv

from optdp.math.exact import precision

BITS = 192
"""Of the balls: the logarithms of large factorials cancel."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def surely_rare(hits: int, trials: int, share: float, alpha: float) -> bool:
    """Whether `Pr[Bin(trials, share) >= hits] <= alpha` is proved.

    From `hits` on every term is at most `ratio` times the one before: a geometric series bounds the sum, closely where
    the sum is small.
    """
    if hits <= 0 or share >= 1:
        return alpha >= 1
    if share <= 0:
        return True
    with precision(BITS):
        t, k, m = arb(share), arb(hits), arb(trials)
        ratio = (m - k) / (k + 1) * t / (1 - t)
        if not ratio < 1:
            return False
        choose = (m + 1).lgamma() - (k + 1).lgamma() - (m - k + 1).lgamma()
        term = (choose + k * t.log() + (m - k) * (1 - t).log()).exp()
        return bool(term / (1 - ratio) <= arb(alpha))


def roughly_lower(hits: Integers, trials: Integers, alpha: float) -> Floats:
    """Clopper-Pearson lower bounds of many shares in floating point: for looking, not for claims."""
    k, m = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    found: Floats = np.where(k > 0, betaincinv(np.maximum(k, 1), m - np.maximum(k, 1) + 1, alpha), 0.0)
    return np.nan_to_num(found)


def lower_share(hits: int, trials: int, alpha: float) -> float:
    """A proved lower bound of the share, next to that of Clopper and Pearson."""
    if hits <= 0:
        return 0.0
    start = float(roughly_lower(np.array([hits]), np.array([trials]), alpha)[0])
    step = min(0.001 * math.sqrt(start * (1 - start) / trials), 0.001 * start) + 1e-12 * start
    while start > 0:
        if surely_rare(hits, trials, start, alpha):
            return start
        start, step = max(start - step, 0.0), 1.5 * step
    return 0.0


def log_quotient(share: float) -> float:
    """A lower bound of `log(p / p')` from one of `p / (p + p')`."""
    if share <= 0:
        return -math.inf
    value = math.log(share) - math.log1p(-share) if share < 1 else math.inf
    return value - 1e-12 * max(1.0, abs(value))
