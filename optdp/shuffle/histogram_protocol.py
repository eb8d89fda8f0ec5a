"""What runs where when a histogram is taken: everybody randomizes, the shuffler forgets, the server estimates.

The randomizer is B, Algorithm 1, which is k-RR: the true value with probability `1 - gamma`, else a uniform one. It is
drawn exactly, so that what is proved of this gamma holds for what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from optdp.data import labels as known_labels
from optdp.data import whole_numbers
from optdp.errors import ProblemError
from optdp.math.draws import bernoulli, uniform_below
from optdp.math.source import Source
from optdp.shuffle.estimators import ESTIMATORS, Array, Response, standard_errors
from optdp.shuffle.messages import check_messages, check_rows


@dataclass(frozen=True, eq=False)
class HistogramEstimate:
    """How many people hold each value, by every estimator; `counts` is that of the chosen one."""

    labels: tuple[str, ...] | None
    estimator: str
    reported: npt.NDArray[np.int64]
    """How many messages name each value."""
    estimates: dict[str, Array]
    standard_errors: Array
    """Of the inverted counts, for the people who are there."""

    @property
    def counts(self) -> Array:
        return self.estimates[self.estimator]

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        names = self.labels or tuple(str(value) for value in range(len(self.reported)))
        bins = [
            {
                "value": name,
                "count": float(self.counts[i]),
                "standard_error": float(self.standard_errors[i]),
                "reported": int(self.reported[i]),
                **{other: float(counts[i]) for other, counts in self.estimates.items()},
            }
            for i, name in enumerate(names)
        ]
        return {
            "n": int(self.reported.sum()),
            "k": len(self.reported),
            "estimator": self.estimator,
            "bins": bins,
            "meaning": "count is by the estimator named; standard_error is that of inversion, which is unbiased",
        }


@dataclass(frozen=True)
class HistogramProtocol:
    """Randomized response of `n` people on `k` values, `0..k-1` or the labels in their order."""

    n: int
    k: int
    gamma: Fraction
    labels: tuple[str, ...] | None = None
    estimator: str = "likelihood"
    columns: ClassVar[int] = 1

    def read(self, columns: Sequence[Sequence[str]], names: Sequence[str], clip: bool) -> npt.NDArray[np.int64]:
        """The values of a table with one column; they must be as many as the design is for."""
        if self.labels is not None:
            values = known_labels(columns[0], names[0], self.labels)
        else:
            values = whole_numbers(columns[0], names[0], 0, self.k - 1, clip)
        check_rows(len(values), self.n)
        return np.asarray(values, dtype=np.int64)

    def randomize(self, values: npt.ArrayLike, source: Source) -> npt.NDArray[np.int64]:
        """Everybody's message (Algorithm 1); each may be made alone, on somebody's own device."""
        held = np.asarray(values)
        if held.ndim != 1 or held.dtype.kind not in "iu":
            raise ProblemError("Values must be a list of whole numbers. Found something else.")
        wrong = np.flatnonzero((held < 0) | (held >= self.k))
        if len(wrong):
            raise ProblemError(
                f"Values must be from 0 to {self.k - 1}. Found {len(wrong)} outside, first {held[wrong[0]]} at "
                f"position {wrong[0]}. Clip them, or take a larger k."
            )
        blank = bernoulli(source, self.gamma, len(held))
        return np.where(blank, uniform_below(source, self.k, len(held)), held.astype(np.int64))

    def shuffle(self, messages: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The messages in sorted order.

        A set with repetitions is all that is left: it gives away exactly what a random order does, and needs no bits.
        """
        return np.sort(check_messages(messages, self.k))

    def analyze(self, messages: npt.ArrayLike) -> HistogramEstimate:
        """The estimated counts, by every estimator."""
        found = check_messages(messages, self.k)
        check_rows(len(found), self.n)
        reported = np.bincount(found, minlength=self.k)
        channel = Response(self.k, self.gamma)
        order = sorted(ESTIMATORS, key=lambda name: name != self.estimator)
        estimates = {name: self.n * ESTIMATORS[name](channel, reported) for name in order}
        errors = self.n * standard_errors(channel, reported)
        return HistogramEstimate(self.labels, self.estimator, reported, estimates, errors)
