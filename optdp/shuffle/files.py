"""Problem files of shuffled histograms and sums: how they are checked, and the problems that they become."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, StrictInt, StrictStr

from optdp.amplification.files import Swept
from optdp.file_models import Exact
from optdp.shuffle.histogram import ShuffleHistogram
from optdp.shuffle.summation import RealSum


class ShuffleHistogramFile(Swept):
    """A histogram from shuffled randomized response: of eps0, epsilon, delta the one left out is found."""

    kind: Literal["shuffle-histogram"]
    n: StrictInt
    k: StrictInt | None = Field(None, description="How many values there are, 0..k-1; left out if labels are given.")
    labels: list[StrictStr] | None = Field(None, description="The values, if they are not 0..k-1.")
    epsilon: Exact | None = None
    delta: Exact | None = None
    eps0: Exact | None = None
    estimator: Literal["likelihood", "projection", "inversion"] = "likelihood"

    def build(self) -> ShuffleHistogram:
        given = (self.epsilon, self.delta, self.eps0)
        return ShuffleHistogram(self.k, self.n, *given, labels=self.labels, estimator=self.estimator)


class RealSumFile(Swept):
    """The sum of everybody's number by one shuffled message each: the best k and gamma are found."""

    kind: Literal["real-sum"]
    n: StrictInt | None = Field(None, description="Leave it out to have the least n for average_mse found.")
    epsilon: Exact | None = None
    delta: Exact | None = None
    k: StrictInt | None = Field(None, description="Messages are 0..k; left out, the best k is found.")
    gamma: Exact | None = Field(None, description="The probability of a uniform message; needs k.")
    low: Exact = 0
    high: Exact = 1
    average_mse: Exact | None = Field(None, description="The mean squared error of the average that is wanted.")

    def build(self) -> RealSum:
        given = (self.n, self.epsilon, self.delta, self.k, self.gamma, self.low, self.high)
        return RealSum(*given, average_mse=self.average_mse)
