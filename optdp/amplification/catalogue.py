"""A catalogue of common randomizers.

Most are extremal designs: an input has probability `p c` on the messages of its own set and `c` on all others, see
`Patterns`. How the sets of three inputs overlap is all that is needed: for the blanket of two inputs, and for a data
set whose others all hold a third value. Two inputs whose sets overlap least are the worst pair: trading a message in
both sets and one in neither for one in each spreads `Z` and keeps its mean.

A data set whose others hold a third value is only there if there is a third value. Where `d`, the number of values, may
be left out, the data sets without it hold two values: there are such data sets for every `d`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.integrate import quad
from scipy.special import k1

from optdp.amplification.family import TAIL, Cells, Family, Randomizer, Ratios, cells, variation_cells
from optdp.amplification.randomizers import KRR, Patterns, extremal_blanket, extremal_data_sets, independent
from optdp.errors import ProblemError
from optdp.numbers.exact import check_between, check_whole


@dataclass(frozen=True)
class _Design(Family, ABC):
    """An extremal design, given by its patterns."""

    @abstractmethod
    def patterns(self, eps0: float) -> Patterns: ...

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return extremal_blanket(self.patterns(eps0), eps0)

    def data_sets(self, eps0: float) -> list[Cells]:
        return extremal_data_sets(self.patterns(eps0), eps0)

    def ratios(self, eps0: float) -> Ratios:
        p = math.exp(eps0)
        first, second, _, _ = self.patterns(eps0).laws(p)
        return Ratios(p, float(np.maximum(first - second, 0.0).sum()) * (1.0 + 1e-14), p)


@dataclass(frozen=True)
class SubsetSelection(_Design):
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
        return extremal_data_sets(independent(1.0 / self.g, self.d), eps0)

    def ratios(self, eps0: float) -> Ratios:
        return KRR(self.g).ratios(eps0)


@dataclass(frozen=True)
class Hadamard(_Design):
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
class Rappor(_Design):
    """Basic RAPPOR, one-time: each bit of a one-hot vector kept with probability `s/(s+1)`, `s = e^(eps0/2)`."""

    d: int | None = None  # how many values there are, that is, bits
    kind: ClassVar[str] = "rappor"

    def __post_init__(self) -> None:
        _check_values(self.d)

    def patterns(self, eps0: float) -> Patterns:
        return independent(1.0 / (math.exp(eps0 / 2.0) + 1.0), self.d)


@dataclass(frozen=True)
class UnaryEncoding(_Design):
    """Optimized unary encoding (Wang et al. 2017): the true bit is 1 with probability 1/2, others `1/(e^eps0+1)`."""

    d: int | None = None  # how many values there are, that is, bits
    kind: ClassVar[str] = "unary-encoding"

    def __post_init__(self) -> None:
        _check_values(self.d)

    def patterns(self, eps0: float) -> Patterns:
        return independent(1.0 / (math.exp(eps0) + 1.0), self.d)


def _check_values(d: int | None) -> None:
    if d is not None:
        check_whole(d, "d", 2)


@dataclass(frozen=True)
class Piecewise(_Design):
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

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return [variation_cells(self.ratios(eps0))]

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

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return [variation_cells(self.ratios(eps0))]

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


PLAIN: dict[str, Callable[[], Randomizer]] = {
    "piecewise": Piecewise,
    "planar-laplace": PlanarLaplace,
}
"""Those that eps0 alone describes."""

ENCODINGS: dict[str, Callable[[int | None], Randomizer]] = {"rappor": Rappor, "unary-encoding": UnaryEncoding}
"""Those that eps0 and perhaps the number of values describe."""

CATALOGUE = (*PLAIN, *ENCODINGS, "subset-selection", "local-hash", "hadamard", "variation-ratio")
"""The names of all randomizers here."""
