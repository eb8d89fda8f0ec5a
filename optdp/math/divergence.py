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

    def loss(self, delta: float) -> float:
        """The least `L >= 0` with `delta(L) <= delta`, rounded up; infinite if there is none."""
        if self.delta(0.0) <= delta:
            return 0.0
        guess = self._root(delta)
        step = 2.0**-50 * max(1.0, guess)
        while math.isfinite(guess) and self.delta(guess) > delta:
            guess, step = guess + step, 4.0 * step
        return guess

    def _root(self, delta: float) -> float:
        """With the ratios falling, `delta(L) = U_i - e^L W_i` between two of them."""
        alive = self.log_u > -math.inf
        log_u, log_w = self.log_u[alive], self.log_w[alive]
        ratio = log_u - log_w
        order = np.argsort(-ratio, kind="stable")
        ratio, above = ratio[order], np.cumsum(np.exp(log_u[order])) + self.lost
        below = np.logaddexp.accumulate(log_w[order])
        with np.errstate(over="ignore", invalid="ignore"):
            at = np.where(np.isfinite(ratio), above - np.exp(ratio + below), above)
        broken = np.flatnonzero(at > delta)
        place = int(broken[0]) if len(broken) else len(at)
        if place == 0 or below[place - 1] == -math.inf:
            return math.inf  # what w does not cover alone is more than delta
        return max(0.0, math.log(max(above[place - 1] - delta, 5e-324)) - float(below[place - 1]))

    def plus(self, other: Pair) -> Pair:
        """Both side by side: the reader is told which of the two it is."""
        return Pair(
            np.concatenate((self.log_u, other.log_u)), np.concatenate((self.log_w, other.log_w)), self.lost + other.lost
        )
