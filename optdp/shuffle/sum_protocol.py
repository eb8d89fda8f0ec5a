"""What runs where when a sum is taken: everybody randomizes, the shuffler forgets, the server analyzes.

The randomizer is exact: the message of somebody whose rounded number is `j` is `j` with probability `1 - gamma` and
else uniform on `0..k`, down to the last bit, so that what is proved of randomized response on k+1 values holds for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from optdp.data import real_numbers
from optdp.errors import ProblemError
from optdp.math.draws import bernoulli, bernoulli_each, uniform_below
from optdp.math.source import Source
from optdp.shuffle.messages import check_messages, check_rows
from optdp.shuffle.summation import mse


@dataclass(frozen=True)
class RealSumEstimate:
    """What the server learns: the sum and the average, unbiased, with standard errors that hold for any data."""

    n: int
    total: float
    standard_error: float

    @property
    def average(self) -> float:
        return self.total / self.n

    @property
    def average_standard_error(self) -> float:
        return self.standard_error / self.n

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "n": self.n,
            "sum": self.total,
            "standard_error": self.standard_error,
            "average": self.average,
            "average_standard_error": self.average_standard_error,
            "meaning": "unbiased; the standard errors are the largest over all data, so that they hold for these",
        }


@dataclass(frozen=True)
class RealSumProtocol:
    """B, Algorithms 2 and 3, for `n` people with numbers in [low, high]."""

    n: int
    k: int
    gamma: Fraction
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    columns: ClassVar[int] = 1

    def read(self, columns: Sequence[Sequence[str]], names: Sequence[str], clip: bool) -> npt.NDArray[np.float64]:
        """The numbers of a table with one column; they must be as many as the design is for."""
        values = np.asarray(real_numbers(columns[0], names[0], float(self.low), float(self.high), clip), dtype=float)
        check_rows(len(values), self.n)
        return values

    def randomize(self, values: npt.ArrayLike, source: Source) -> npt.NDArray[np.int64]:
        """Everybody's message (Algorithm 2); each may be made alone, on somebody's own device."""
        scaled = (np.asarray(values, dtype=float) - float(self.low)) * (self.k / float(self.high - self.low))
        if scaled.ndim != 1 or not np.isfinite(scaled).all():
            raise ProblemError("Values must be a list of finite numbers. Found something else.")
        slack = 1e-9 * self.k
        wrong = np.flatnonzero((scaled < -slack) | (scaled > self.k + slack))
        if len(wrong):
            raise ProblemError(
                f"Values must be from {float(self.low):g} to {float(self.high):g}. Found {len(wrong)} outside, first "
                f"at position {wrong[0]}. Clip them, or widen the range."
            )
        scaled = np.clip(scaled, 0.0, self.k)
        steps = np.minimum(np.floor(scaled), self.k - 1.0)
        rounded = steps.astype(np.int64) + bernoulli_each(source, scaled - steps)
        blank = bernoulli(source, self.gamma, len(rounded))
        return np.where(blank, uniform_below(source, self.k + 1, len(rounded)), rounded)

    def shuffle(self, messages: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The messages in sorted order.

        A set with repetitions is all that is left: it gives away exactly what a random order does, and needs no bits.
        """
        return np.sort(check_messages(messages, self.k + 1))

    def analyze(self, messages: npt.ArrayLike) -> RealSumEstimate:
        """The sum without the bias of the random answers (Algorithm 3)."""
        found = check_messages(messages, self.k + 1)
        check_rows(len(found), self.n)
        reported = Fraction(int(found.sum()), self.k)
        unbiased = (reported - self.n * self.gamma / 2) / (1 - self.gamma)
        width = self.high - self.low
        error = float(width) * math.sqrt(mse(self.n, self.k, float(self.gamma)))
        return RealSumEstimate(self.n, float(self.n * self.low + width * unbiased), error)
