"""Cells: a shuffled comparison in its simplest form, to which every analysis here is reduced.

One person reports among `n`. The messages fall into cells `j`. That person's message is in cell `j` with probability
`first[j]` if their value is `x`, and `second[j]` if it is `x'`. Each of the other `n-1` messages is in cell `j` with
probability `others[j]`, and in none of them (it hides nobody) with the probability that is left. Who sees how many
messages are in each cell can tell `x` from `x'` with the hockey-stick divergence

    delta(eps) = E[Z_1 + ... + Z_n]_+ / n,
    Z = (first[j] - e^eps second[j]) / others[j] with probability others[j], else 0,

with independent copies `Z_i` (B, Lemma 8 with its prefactor corrected to `1/(gamma n)`; here gamma is in `others`).
Proof: given the counts `c`, the two likelihoods are `sum_j c_j first[j]/others[j]` and the same with `second`, both
over `n` and relative to `n` messages of `others`.

- With `others[j] = inf_x R(x)(j)`, the blanket, this is an **upper** bound for every data set (B, Lemma 8).
- With `others = R(y)` it is exact for the data set in which all others hold `y`: a **lower** bound of the worst case.
- `delta` is convex in the law of `Z`: splitting a cell so that the sums of `first`, `second` and `others` are kept can
  only raise it, merging cells can only lower it, and so does any gain of `others` at the cost of the mass left over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optdp.math.positive_part import LogEnclosure, log_positive_part

Floats = NDArray[np.float64]
ROUND_OFF = 2.0**-49
"""More than the entries of cells and `e^eps` are wrong by, relatively."""


@dataclass(frozen=True)
class Cells:
    """Two laws of one message and what the others' messages hide of it, cell by cell."""

    first: Floats
    second: Floats
    others: Floats
    slack: float = 0.0
    """Probability of the messages that were left out of the cells: it is added to an upper bound of delta."""

    def values(self, epsilon: float, units: float = 0.0) -> Floats:
        """`Z` of every cell, moved by so many units of what round-off may have done to it."""
        scale = math.exp(epsilon)
        moved = units * ROUND_OFF * (self.first + scale * self.second)
        values: Floats = (self.first - scale * self.second + moved) / self.others
        return values

    def log_upper(self, n: int, epsilon: float, grid: int) -> float:
        """An upper bound of `log delta(epsilon)` among `n` messages; `grid` is the length of the FFTs."""
        more = ROUND_OFF * float(self.others.sum())
        upper = log_positive_part(self.values(epsilon, 1.0), self.others, n, grid, more).upper - math.log(n)
        return min(0.0, upper if self.slack == 0.0 else float(np.logaddexp(upper, math.log(self.slack))))

    def log_lower(self, n: int, epsilon: float, grid: int) -> float:
        """A lower bound of the same; what was left out of the cells adds nothing to it."""
        less = -ROUND_OFF * float(self.others.sum())
        return log_positive_part(self.values(epsilon, -1.0), self.others, n, grid, less).lower - math.log(n)

    def log_delta(self, n: int, epsilon: float, grid: int) -> LogEnclosure:
        """Both."""
        return LogEnclosure(self.log_lower(n, epsilon, grid), self.log_upper(n, epsilon, grid))


def cells(first: object, second: object, others: object, slack: float = 0.0) -> Cells:
    """Cells from anything that numpy reads; those that no message reaches are left out."""
    a, b, m = (np.asarray(part, dtype=np.float64) for part in (first, second, others))
    used = (a > 0) | (b > 0)
    return Cells(a[used], b[used], m[used], slack)
