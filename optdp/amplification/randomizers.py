"""The two randomizers that every analysis starts from: any eps0-LDP one, and randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optdp.amplification.cells import Cells
from optdp.amplification.designs import Patterns, extremal_blanket, extremal_data_sets
from optdp.amplification.family import LARGEST_EPS0, TAIL, Family, Ratios, variation_cells
from optdp.errors import ProblemError
from optdp.math.exact import check_between, check_whole


def _generic_ratios(eps0: float) -> Ratios:
    p = math.exp(eps0)
    return Ratios(p, (p - 1.0) / (p + 1.0), p)


@dataclass(frozen=True)
class Generic(Family):
    """Any `eps0`-LDP randomizer: nothing else is known of it."""

    kind: ClassVar[str] = "generic"

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return [variation_cells(_generic_ratios(eps0))]

    def data_sets(self, eps0: float) -> list[Cells]:
        """Randomized response on three values is a case that an analysis of any randomizer must allow for."""
        return KRR(3).data_sets(eps0)

    def ratios(self, eps0: float) -> Ratios:
        return _generic_ratios(eps0)


@dataclass(frozen=True)
class KRR:
    """Randomized response on `k` values: the true one with probability `p/(p+k-1)`, each other with `1/(p+k-1)`."""

    k: int
    """0 stands for the k that is asked for."""
    gamma: float | None = None
    """The probability of a uniform answer (B, Algorithm 1), where that is given instead of eps0."""
    kind: ClassVar[str] = "k-rr"

    def __post_init__(self) -> None:
        if self.k != 0:
            check_whole(self.k, "k", 2)
        if self.gamma is not None:
            check_between(self.gamma, "gamma", 1e-9, 1.0 - 1e-9)
            if self.k and self.eps0_of_gamma() > LARGEST_EPS0:
                raise ProblemError(f"gamma = {self.gamma:g} means eps0 above {LARGEST_EPS0:g}. Give a larger gamma.")

    @property
    def own_eps0(self) -> float | None:
        return None if self.gamma is None else self.eps0_of_gamma() if self.k else math.inf

    def eps0_of_gamma(self) -> float:
        """`p = 1 + k (1-gamma)/gamma`, rounded up."""
        assert self.gamma is not None
        return math.log1p(self.k * (1.0 - self.gamma) / self.gamma) * (1.0 + 2.0**-50)

    @property
    def patterns(self) -> Patterns:
        weights = np.zeros((2, 2, 2))
        weights[1, 0, 0] = weights[0, 1, 0] = 1.0
        if self.k > 2:
            weights[0, 0, 1], weights[0, 0, 0] = 1.0, self.k - 3.0
        return Patterns(weights)

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return extremal_blanket(self.patterns, eps0)

    def data_sets(self, eps0: float) -> list[Cells]:
        return extremal_data_sets(self.patterns, eps0)

    def ratios(self, eps0: float) -> Ratios:
        p = math.exp(eps0)
        return Ratios(p, (p - 1.0) / (p + self.k - 1.0), p)
