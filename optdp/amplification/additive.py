"""Randomizers that add noise to a number in [0, 1]: Laplace and Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from optdp.amplification.family import TAIL, Cells, Family, Floats, Ratios, cells
from optdp.errors import ProblemError
from optdp.numbers.divergence import gaussian_sigma
from optdp.numbers.exact import check_between

NODES = 1024  # cells that a continuous law is cut into, for each half of it


@dataclass(frozen=True)
class Laplace(Family):
    """A number in [0, 1] plus Laplace noise of scale `1/eps0`. The blanket is Laplace noise around 1/2 (B, Fig. 2).

    The inputs 0 and 1 are the worst pair (docs/mathematics.md). Relative to the blanket they have the densities
    `(v, 1)` left of 1/2 and `(1, v)` right of it, `1 <= v <= e^eps0`.

    Examples
    --------
    >>> from optdp import Amplification, Laplace, solve
    >>> round(solve(Amplification(Laplace(), eps0=1, n=1000, delta="1e-6")).value, 3)
    0.13
    """

    kind: ClassVar[str] = "laplace"

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        """Between nodes `v` is split onto them so that both sums are kept: an upper bound, by convexity."""
        places = np.linspace(0.0, 0.5, NODES + 1)
        nodes = np.exp(eps0 * (1.0 - 2.0 * places))
        mass = -0.5 * np.exp(-eps0 * (1.0 - places[1:])) * np.expm1(-eps0 * np.diff(places))
        moment = -0.5 * np.exp(-eps0 * places[:-1]) * np.expm1(-eps0 * np.diff(places))
        weights = split_between(nodes, mass, moment)
        weights[0] += 0.5 * math.exp(-eps0)  # everything below 0 has v = e^eps0
        return [mirrored(nodes, weights)]

    def data_sets(self, eps0: float) -> list[Cells]:
        """Others at 0, at 1, and at either with equal chances, seen through a grid."""
        edges = np.linspace(0.0, 1.0, NODES // 4 + 1)
        low = np.concatenate(([0.5], -0.5 * np.exp(-eps0 * edges[:-1]) * np.expm1(-eps0 * np.diff(edges))))
        low = np.append(low, 0.5 * math.exp(-eps0))
        high = low[::-1]
        return [cells(low, high, others) for others in (low, high, (low + high) / 2.0)]

    def ratios(self, eps0: float) -> Ratios:
        return Ratios(math.exp(eps0), -math.expm1(-eps0 / 2.0), math.exp(eps0))


@dataclass(frozen=True)
class Gaussian:
    """A number in [0, 1] plus Gaussian noise. Give one of the two parameters.

    The inputs 0 and 1 are the worst pair (docs/mathematics.md); relative to the blanket `min(R(0), R(1))` they have the
    densities `(v, 1)` left of 1/2 and `(1, v)` right of it, and `v` has no largest value: the far ends are left out.

    Parameters
    ----------
    sigma : float, optional
        The standard deviation.
    delta0 : float, optional
        The least noise that is (`eps0`, `delta0`)-LDP; `eps0` is the problem's.

    Examples
    --------
    >>> from optdp import Amplification, Gaussian, solve
    >>> round(solve(Amplification(Gaussian(sigma=2.0), n=1000, delta="1e-6")).value, 3)
    0.07
    """

    sigma: float | None = None
    delta0: float | None = None
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        if (self.sigma is None) == (self.delta0 is None):
            raise ProblemError("A gaussian randomizer has either sigma or delta0 (with eps0). Give one of them.")
        if self.sigma is not None:
            check_between(self.sigma, "sigma", 1e-3, 1e6)
        if self.delta0 is not None:
            check_between(self.delta0, "delta0", 1e-100, 0.999)

    @property
    def own_eps0(self) -> float | None:
        return None if self.sigma is None else math.inf

    def deviation(self, eps0: float) -> float:
        if self.sigma is not None:
            return self.sigma
        assert self.delta0 is not None
        return gaussian_sigma(eps0, self.delta0)

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        sigma = self.deviation(eps0)
        reach = min(0.5 + sigma * _normal_quantile(tail), 300.0 * sigma**2)  # so that v is a number
        places = np.linspace(reach, 0.0, NODES + 1)
        nodes = np.exp(places / sigma**2)
        mass = normal_masses(-(0.5 + places) / sigma)
        moment = normal_masses((0.5 - places) / sigma)
        weights = split_between(nodes, np.maximum(mass, 0.0), np.maximum(moment, 0.0))
        missing = float(ndtr((0.5 - reach) / sigma))
        found = mirrored(nodes, weights)
        return [Cells(found.first, found.second, found.others, 2.0 * missing * (1.0 + 1e-9))]

    def data_sets(self, eps0: float) -> list[Cells]:
        """Others at 0, at 1 or at either, seen through grids whose outermost cells take in more or less."""
        sigma = self.deviation(eps0)
        found = []
        for reach in (1.0, 2.0, 3.0, 4.5):
            ends = np.linspace(-reach * sigma, 1.0 + reach * sigma, NODES // 4)
            edges = np.concatenate(([-np.inf], ends, [np.inf]))
            low, high = normal_masses(edges / sigma), normal_masses((edges - 1.0) / sigma)
            seen = (low > 1e-60) & (high > 1e-60)  # what is left out adds nothing to a lower bound
            low, high = low[seen], high[seen]
            found += [cells(low, high, others) for others in (low, high, (low + high) / 2.0)]
        return found

    def ratios(self, eps0: float) -> None:
        return None


def normal_masses(edges: Floats) -> Floats:
    """What a standard normal has between increasing edges, exact in relative terms on both sides."""
    middle = edges[:-1] + edges[1:] > 0
    masses: Floats = np.where(middle, -np.diff(ndtr(-edges)), np.diff(ndtr(edges)))
    return masses


def _normal_quantile(tail: float) -> float:
    """A number that a standard normal exceeds with probability at most `tail`."""
    return math.sqrt(-2.0 * math.log(2.0 * tail))


def split_between(nodes: Floats, mass: Floats, moment: Floats) -> Floats:
    """Weights on decreasing nodes: what lies between two of them goes to both, keeping its mass and its moment."""
    share = np.clip((moment - nodes[1:] * mass) / (nodes[:-1] - nodes[1:]), 0.0, mass)
    weights = np.zeros(len(nodes))
    weights[:-1] += share
    weights[1:] += mass - share
    return weights


def mirrored(nodes: Floats, weights: Floats) -> Cells:
    """Cells with likelihoods `(v, 1)` and, for the other input, `(1, v)`."""
    first = np.concatenate((nodes * weights, weights))
    second = np.concatenate((weights, nodes * weights))
    return cells(first, second, np.concatenate((weights, weights)))
