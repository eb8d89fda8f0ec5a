"""A catalogue of common randomizers: Laplace and Gaussian noise on a number in [0, 1], and those for categories.

Most of the latter are extremal designs: an input has probability `p c` on the messages of its own set and `c` on all
others, see `Patterns`. How the sets of three inputs overlap is all that is needed: for the blanket of two inputs, and
for a data set whose others all hold a third value. Two inputs whose sets overlap least are the worst pair: trading a
message in both sets and one in neither for one in each spreads `Z` and keeps its mean.

A data set whose others hold a third value is only there if there is a third value. Where `d`, the number of values, may
be left out, the data sets without it hold two values: there are such data sets for every `d`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.integrate import quad
from scipy.special import k1, ndtr

from optdp.amplification.randomizers import (
    KRR,
    TAIL,
    Cells,
    Extremal,
    Family,
    Floats,
    Patterns,
    Ratios,
    cells,
    independent,
)
from optdp.errors import ProblemError
from optdp.numbers.divergence import gaussian_sigma
from optdp.numbers.exact import check_between, check_whole, there


@dataclass(frozen=True)
class SubsetSelection(Extremal):
    """A set of `size` of the `d` values, more likely by `e^eps0` if it holds the true one (Ye and Barg 2018)."""

    d: int
    size: int
    kind: ClassVar[str] = "subset-selection"

    def __post_init__(self) -> None:
        check_whole(self.d, "d", 2)
        check_whole(self.size, "size", 1)
        if self.size >= self.d:
            raise ProblemError(f"size must be smaller than d. Found {self.size} and {self.d}.")

    def patterns(self, eps0: float) -> Patterns:
        """Sets by how many of three values they hold, relative to the likeliest kind, so that nothing overflows."""
        three = min(3, self.d)
        logs = np.array([_log_binomial(self.d - three, self.size - held) for held in range(three + 1)])
        held = np.exp(logs - logs.max())
        if self.d == 2:
            return Patterns(np.array([[[held[0], 0.0], [held[1], 0.0]], [[held[1], 0.0], [held[2], 0.0]]]))
        index = np.indices((2, 2, 2)).sum(axis=0)
        return Patterns(held[index])


@dataclass(frozen=True)
class LocalHash(Family):
    """A public random hash to `g` buckets, then randomized response on the bucket (Wang et al. 2017).

    Two values may fall into one bucket, which hides them. Upper bounds gain nothing from it, as a family of hash
    functions need not offer it: they are those of `k-rr` on the buckets. Data sets are seen through hash functions that
    put every one of `d` values into any bucket alike, independently, as that paper takes them to be.
    """

    g: int
    d: int | None = None
    kind: ClassVar[str] = "local-hash"

    def __post_init__(self) -> None:
        check_whole(self.g, "g", 2)
        _check_values(self.d)

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return KRR(self.g).blankets(eps0)

    def data_sets(self, eps0: float) -> list[Cells]:
        """A value's own set are the messages, a hash and a bucket, whose bucket is that of the value."""
        return independent(1.0 / self.g, self.d).data_sets(eps0)

    def ratios(self, eps0: float) -> Ratios:
        return KRR(self.g).ratios(eps0)


@dataclass(frozen=True)
class Hadamard(Extremal):
    """One of `K` messages, more likely by `e^eps0` where the true value's row of a Hadamard matrix has a 1
    (Acharya, Sun and Zhang 2019); the row of ones alone is not used.

    Rows share half of their ones. Three rows none of which is the product of the two others split the messages evenly;
    of any four rows, hence of `d >= 4`, some three do.
    """

    messages: int
    d: int | None = None
    kind: ClassVar[str] = "hadamard"

    def __post_init__(self) -> None:
        check_whole(self.messages, "messages", 8)
        if self.messages & (self.messages - 1):
            raise ProblemError(f"messages must be a power of two. Found {self.messages}.")
        _check_values(self.d)
        if self.d is not None and self.d >= self.messages:
            raise ProblemError(f"{self.messages} messages are for d up to {self.messages - 1}. Found d = {self.d}.")

    def patterns(self, eps0: float) -> Patterns:
        return independent(0.5, self.d if self.d is not None and self.d > 3 else None)


@dataclass(frozen=True)
class _Encoding(Extremal):
    """A bit for each value."""

    d: int | None = None  # how many values there are, that is, bits

    def __post_init__(self) -> None:
        _check_values(self.d)


@dataclass(frozen=True)
class Rappor(_Encoding):
    """Basic RAPPOR, one-time: each bit of a one-hot vector kept with probability `s/(s+1)`, `s = e^(eps0/2)`."""

    kind: ClassVar[str] = "rappor"

    def patterns(self, eps0: float) -> Patterns:
        return independent(1.0 / (math.exp(eps0 / 2.0) + 1.0), self.d)


@dataclass(frozen=True)
class UnaryEncoding(_Encoding):
    """Optimized unary encoding (Wang et al. 2017): the true bit is 1 with probability 1/2, others `1/(e^eps0+1)`."""

    kind: ClassVar[str] = "unary-encoding"

    def patterns(self, eps0: float) -> Patterns:
        return independent(1.0 / (math.exp(eps0) + 1.0), self.d)


def _check_values(d: int | None) -> None:
    if d is not None:
        check_whole(d, "d", 2)


@dataclass(frozen=True)
class Piecewise(Extremal):
    """The piecewise mechanism for a number in [-1, 1] (Wang et al. 2019), messages in [-C, C].

    The likely stretch of `x` has length `C-1` and the middle `(C+1)x/2`: those of -1 and 1 do not meet.
    """

    kind: ClassVar[str] = "piecewise"

    def patterns(self, eps0: float) -> Patterns:
        reach = 1.0 / math.tanh(eps0 / 4.0)  # C = (e^(eps0/2) + 1) / (e^(eps0/2) - 1)
        length = reach - 1.0
        outer = max(0.0, length / 2.0 - 1.0)  # of the middle value's stretch, how much lies in each of the others
        weights = np.zeros((2, 2, 2))
        weights[1, 0, 1] = weights[0, 1, 1] = outer
        weights[1, 0, 0] = weights[0, 1, 0] = length - outer
        weights[0, 0, 1] = length - 2.0 * outer
        weights[0, 0, 0] = max(0.0, 2.0 - weights[0, 0, 1])
        return Patterns(weights)


@dataclass(frozen=True)
class VariationRatio(Family):
    """Any randomizer of which only this is known: total variation of at most `beta` between two inputs, likelihood
    ratios of at most `e^eps0` between them and of at most `q` to any other input (`e^eps0` if left out).
    """

    beta: float
    q: float | None = None
    kind: ClassVar[str] = "variation-ratio"

    def __post_init__(self) -> None:
        check_between(self.beta, "beta", 1e-9, 1.0 - 1e-9)
        if self.q is not None:
            check_between(self.q, "q", 1.0, 1e18)

    def data_sets(self, eps0: float) -> list[Cells]:
        return []

    def ratios(self, eps0: float) -> Ratios:
        p = math.exp(eps0)
        q = p if self.q is None else self.q
        beta = min(self.beta, (p - 1.0) / (p + 1.0))
        alpha = beta / (p - 1.0)
        if (2.0 * p * alpha + 1.0 - alpha * (p + 1.0)) / q > 1.0 + 1e-9:
            raise ProblemError(f"q = {q} is too small: the others would have more than probability 1. Give a larger q.")
        return Ratios(p, beta, q)


@dataclass(frozen=True)
class PlanarLaplace(Family):
    """A place in a region plus planar Laplace noise (Andres et al. 2013); `eps0` is what two places at the region's
    diameter are told apart by. Their total variation is that of the half-planes: `1 - 2 Pr[projection > D/2]`.
    """

    kind: ClassVar[str] = "planar-laplace"

    def data_sets(self, eps0: float) -> list[Cells]:
        """Which half-plane a message lies in, the others all at one of the two places."""
        beta = self._variation(eps0) * (1.0 - 1e-9)
        near, far = (1.0 + beta) / 2.0, (1.0 - beta) / 2.0
        return [cells((near, far), (far, near), others) for others in ((near, far), (far, near))]

    def ratios(self, eps0: float) -> Ratios:
        p = math.exp(eps0)
        return Ratios(p, min(self._variation(eps0) * (1.0 + 1e-9), (p - 1.0) / (p + 1.0)), p)

    def _variation(self, eps0: float) -> float:
        """`(2/pi) int_0^(eps0/2) t K_1(t) dt`: what the projections onto the line through both places differ by."""
        between, _ = quad(lambda t: t * float(k1(t)) if t > 0.0 else 1.0, 0.0, eps0 / 2.0, epsabs=0.0, epsrel=1e-12)
        return 2.0 / math.pi * float(between)


def _log_binomial(n: int, k: int) -> float:
    if k < 0 or k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


NODES = 1024  # cells that a continuous law is cut into, for each half of it
LEAST = 1e-60  # what a normal law has less of beyond its last cell is given away


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
    densities `(v, 1)` left of 1/2 and `(1, v)` right of it, and `v` has no largest value, but large ones are rare.

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
        return self.sigma if self.sigma is not None else gaussian_sigma(eps0, there(self.delta0))

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        sigma = self.deviation(eps0)
        limit = min(0.5 + sigma * _normal_quantile(LEAST), 300.0 * sigma**2)  # so that v is a number
        reach = min(0.5 + sigma * _normal_quantile(tail), limit)
        nodes, weights = self._between(sigma, np.linspace(reach, 0.0, NODES + 1))
        found = mirrored(nodes, weights)
        rare = None
        if reach < limit:
            nodes, weights = self._between(sigma, np.linspace(limit, reach, NODES + 1))
            rare = cells(nodes * weights, weights, weights)
        missing = float(ndtr((0.5 - limit) / sigma))
        return [Cells(found.first, found.second, found.others, missing * (1.0 + 1e-9), rare)]

    def _between(self, sigma: float, places: Floats) -> tuple[Floats, Floats]:
        """Values of `v` at decreasing distances from 1/2, and the blanket's mass on one side, split onto them."""
        nodes = np.exp(places / sigma**2)
        mass = normal_masses(-(0.5 + places) / sigma)
        moment = normal_masses((0.5 - places) / sigma)
        return nodes, split_between(nodes, np.maximum(mass, 0.0), np.maximum(moment, 0.0))

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
