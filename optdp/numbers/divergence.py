"""Hockey-stick divergences of two measures given point by point, and the loss at which they fall to a wanted delta.

`Pair` holds logarithms of `u` and `w`: a claim needs `u` to be nowhere below the law of one data set's release and `w`
nowhere above that of the other's (both may have been told more than is released). Then for every `L`

    sup over sets S of Pr[S] - e^L Pr'[S]  <=  sum over points of (u - e^L w)_+ .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Pair:
    """Logarithms of an upper bound `u` on one law and of a lower bound `w` on another, and what is given up.

    `lost` is probability for which nothing is known of the other law: it counts in full.
    """

    log_u: Floats
    log_w: Floats
    lost: float = 0.0

    def delta(self, loss: float) -> float:
        """`sum (u - e^loss w)_+`, rounded up."""
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = self.log_u - self.log_w
            kept = ratio > loss
            parts = np.exp(self.log_u[kept]) * -np.expm1(loss - ratio[kept])
        return (float(np.sum(parts)) + self.lost) * (1.0 + 2.0**-40)

    def plus(self, other: Pair) -> Pair:
        """Both side by side: the reader is told which of the two it is."""
        return Pair(
            np.concatenate((self.log_u, other.log_u)), np.concatenate((self.log_w, other.log_w)), self.lost + other.lost
        )


LARGEST_LOSS = 700.0  # beyond this nothing is hidden: the loss counts as endless
ROUND_OFF = 2.0**-46  # more than products, differences and exponentials of two laws are wrong by, relatively


class Moved:
    """A law and itself moved by any distance up to the furthest: their `Pair` for each, without building it.

    `high` and `low` hold logarithms of upper and lower bounds at `0, 1, ...`; the law is symmetric, `u` is wanted on
    `-window..window`, and `low` is known `furthest` beyond. With `x = e^L` the divergence `sum (u - x w)_+` is convex
    and piecewise linear in `x`: Newton's steps from the left never pass the root, and terms that are zero stay so.
    """

    def __init__(self, laws: list[tuple[Floats, Floats]], window: int, furthest: int, lost: float) -> None:
        self.window, self.furthest = window, furthest
        self.lost = lost + 1e-300 * len(laws)  # what is too small for a float
        self.laws = [
            (_mirrored(np.exp(high[: window + 1]) * (1.0 + ROUND_OFF)), _mirrored(np.exp(low) * (1.0 - ROUND_OFF)))
            for high, low in laws
        ]

    def delta(self, distance: int, loss: float) -> float:
        """`sum (u - e^loss w)_+` at a distance, rounded up."""
        return _spent(self._at(distance), self.lost, math.exp(min(loss, LARGEST_LOSS)))[0]

    def loss(self, distance: int, delta: float, floor: float = 0.0) -> float:
        """The least `L >= floor` that spends at most `delta` at a distance, rounded up; infinite if there is none."""
        return math.inf if self.lost > delta else least_loss(self._at(distance), self.lost, delta, floor)

    def _at(self, distance: int) -> list[tuple[Floats, Floats]]:
        found = []
        for u, w in self.laws:
            start = len(w) // 2 - self.window - distance
            found.append((u, w[start : start + len(u)]))
        return found


Laws = list[tuple[Floats, Floats]]
"""Measures `u` and `w` of one pair of data sets, in parts that lie side by side."""


def least_loss(laws: Laws, lost: float, delta: float, floor: float = 0.0) -> float:
    """The least `L >= floor` with `lost + sum (u - e^L w)_+ <= delta`, rounded up; infinite if there is none."""
    if floor == math.inf or lost > delta:
        return math.inf
    x = math.exp(floor)
    spent, slope, live = _spent(laws, lost, x)
    if spent <= delta:
        return floor
    while spent > delta:
        if not slope or x > math.exp(LARGEST_LOSS):
            return math.inf
        x = max(x + (spent - delta) / slope, x * (1.0 + 2.0**-52))
        spent, slope, live = _spent(live, lost, x)
    return math.log(x) * (1.0 + 2.0**-51) + 2.0**-52


def _spent(laws: Laws, lost: float, x: float) -> tuple[float, float, Laws]:
    """The divergence, its slope in `x`, and the terms that are not zero."""
    spent, slope, live = lost, 0.0, []
    for u, w in laws:
        left = u - x * w
        on = left > 0.0
        live.append((u[on], w[on]))
        spent += float(left[on].sum())
        slope += float(live[-1][1].sum())
    return spent * (1.0 + ROUND_OFF), slope, live


def _mirrored(half: Floats) -> Floats:
    return np.concatenate((half[:0:-1], half))


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """The hockey-stick divergence of `N(0, sigma^2)` and `N(1, sigma^2)`, rounded up by more than its round-off."""
    size = 0.5 / sigma + epsilon * sigma
    near, far = 0.5 / sigma - epsilon * sigma, -size
    found = max(0.0, float(ndtr(near)) - math.exp(epsilon + float(log_ndtr(far))))
    margin = 2.0**-52 * (16.0 + 4.0 * size * (abs(near) + abs(far)) + 4.0 * epsilon)
    return max(found + margin * float(ndtr(near)), 5e-324)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The least standard deviation that makes Gaussian noise of sensitivity 1 (epsilon, delta)-private, rounded up."""
    low = high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2.0
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2.0
    root = float(brentq(lambda sigma: math.log(gaussian_delta(sigma, epsilon) / delta), low, high, xtol=1e-13))
    while gaussian_delta(root, epsilon) > delta:
        root *= 1.0 + 1e-12
    return root
