"""Local randomizers: what is known of each, as cells (see `cells`) for upper and for lower bounds.

A randomizer is a family; `eps0` picks its member. Each offers

- `blankets(eps0, tail)`: cells whose `others` are the blanket `inf_x R(x)` (B, section 5.1), one for each pair of
  inputs that can be the worst: the divergence of the worst of them is an upper bound for every data set;
- `data_sets(eps0)`: cells of concrete data sets, so that each gives a lower bound;
- `ratios(eps0)`: its variation-ratio parameters (Wang et al. 2024): the largest likelihood ratio `p` of two inputs,
  their largest total variation `beta`, and the largest ratio `q` of those two inputs to any other.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from itertools import permutations
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from scipy.special import ndtr

from optdp.amplification.cells import Cells, Floats, cells
from optdp.errors import ProblemError
from optdp.math.exact import shown
from optdp.math.gaussian import gaussian_sigma

NODES = 1024
"""Cells that a continuous law is cut into, for each half of it."""

LARGEST_EPS0 = 40.0
LARGEST_CHANNEL = 2_000_000
"""Inputs times inputs times messages: the work of looking at all pairs."""
TAIL = 1e-12


@dataclass(frozen=True)
class Ratios:
    """Variation-ratio parameters."""

    p: float
    beta: float
    q: float


@runtime_checkable
class Randomizer(Hashable, Protocol):
    """What every randomizer offers. `own_eps0` is None where `eps0` picks the member of the family."""

    kind: ClassVar[str]

    @property
    def own_eps0(self) -> float | None: ...

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]: ...

    def data_sets(self, eps0: float) -> list[Cells]: ...

    def ratios(self, eps0: float) -> Ratios | None: ...


def described(randomizer: Randomizer) -> str:
    """The kind and its numbers, in words."""
    if isinstance(randomizer, Channel):
        return f"channel, {len(randomizer.matrix)} inputs, {len(randomizer.matrix[0])} messages"
    numbers = [(part.name, getattr(randomizer, part.name)) for part in fields(cast(Any, randomizer))]
    return ", ".join([randomizer.kind, *(f"{name} = {value:g}" for name, value in numbers if value)])


def variation_cells(ratios: Ratios) -> Cells:
    """The worst cells of any two laws with these ratios; a theorem, proved in docs/mathematics.md.

    Where two laws have densities `a` and `b`, every other input has at least `max(a, b)/q`. Splitting every output into
    parts with `a/b` in {p, 1, 1/p} keeps the sums and spreads `Z`; so does trading the parts with `a = b` for more of
    the other two. What is left are two informative cells of mass `alpha = beta/(p-1)` and a common one.
    """
    p, q = ratios.p, ratios.q
    alpha = min(ratios.beta / (p - 1.0), 1.0 / (p + 1.0))
    common = max(0.0, 1.0 - alpha * (p + 1.0))
    return cells((p * alpha, alpha, common), (alpha, p * alpha, common), (alpha * p / q, alpha * p / q, common / q))


def _generic_ratios(eps0: float) -> Ratios:
    p = math.exp(eps0)
    return Ratios(p, (p - 1.0) / (p + 1.0), p)


@dataclass(frozen=True)
class Patterns:
    """Outputs of an extremal design: input `x` has probability `p c` on the outputs of its own set and `c` elsewhere.

    `weights[i][j][l]` measures the outputs that lie (1) or do not (0) in the sets of two inputs and of a third one.
    """

    weights: Floats

    def scale(self, p: float) -> float:
        return 1.0 / float(self.weights[0].sum() + p * self.weights[1].sum())

    def laws(self, p: float) -> tuple[Floats, Floats, Floats, Floats]:
        """The laws of the three inputs on the eight kinds of output, and the blanket."""
        level = self.weights * self.scale(p)
        high = np.array([1.0, p])
        return (
            (level * high[:, None, None]).ravel(),
            (level * high[None, :, None]).ravel(),
            (level * high[None, None, :]).ravel(),
            level.ravel(),
        )


def extremal_blanket(patterns: Patterns, eps0: float) -> list[Cells]:
    first, second, _, blanket = patterns.laws(math.exp(eps0))
    return [_merged(first, second, blanket)]


def extremal_data_sets(patterns: Patterns, eps0: float) -> list[Cells]:
    """The others hold a third value if there is one, or either of the two."""
    first, second, other, _ = patterns.laws(math.exp(eps0))
    held = [other] if patterns.weights[:, :, 1].any() else []
    return [_merged(first, second, law) for law in (*held, first, second)]


def _merged(first: Floats, second: Floats, others: Floats) -> Cells:
    """Cells with the same likelihoods relative to `others` put together, which changes nothing."""
    used = others > 0
    keys = np.round(np.stack([first[used] / others[used], second[used] / others[used]]), 12)
    _, where = np.unique(keys, axis=1, return_inverse=True)
    a, b, m = (np.bincount(where.ravel(), law[used]) for law in (first, second, others))
    return cells(a, b, m)


@dataclass(frozen=True)
class Generic:
    """Any `eps0`-LDP randomizer: nothing else is known of it."""

    kind: ClassVar[str] = "generic"

    @property
    def own_eps0(self) -> None:
        return None

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


@dataclass(frozen=True)
class Laplace:
    """A number in [0, 1] plus Laplace noise of scale `1/eps0`. The blanket is Laplace noise around 1/2 (B, Fig. 2).

    The inputs 0 and 1 are the worst pair (docs/mathematics.md). Relative to the blanket they have the densities
    `(v, 1)` left of 1/2 and `(1, v)` right of it, `1 <= v <= e^eps0`.
    """

    kind: ClassVar[str] = "laplace"

    @property
    def own_eps0(self) -> None:
        return None

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
    """A number in [0, 1] plus Gaussian noise: of standard deviation `sigma`, or (`eps0`, `delta0`)-LDP at the least.

    The inputs 0 and 1 are the worst pair (docs/mathematics.md); relative to the blanket `min(R(0), R(1))` they have the
    densities `(v, 1)` left of 1/2 and `(1, v)` right of it, and `v` has no largest value: the far ends are left out.
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


@dataclass(frozen=True)
class Channel:
    """Any finite randomizer: `matrix[x][y]` is the probability of the message `y` for the input `x`."""

    matrix: tuple[tuple[float, ...], ...]
    kind: ClassVar[str] = "channel"

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.matrix}
        if len(self.matrix) < 2 or len(widths) != 1 or widths == {0}:
            raise ProblemError("A channel needs two or more rows of equal length: a row for each input.")
        array = np.array(self.matrix, dtype=np.float64)
        if array.size * len(array) > LARGEST_CHANNEL:
            raise ProblemError(f"A channel of {array.shape[0]} inputs and {array.shape[1]} messages is too large.")
        if not np.isfinite(array).all() or (array < 0).any():
            raise ProblemError("A channel's entries are probabilities: finite and not negative.")
        sums = array.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1.0)))
        if abs(sums[worst] - 1.0) > 1e-9:
            raise ProblemError(f"Every row of a channel must sum to 1. Found {sums[worst]:.12g} in row {worst}.")
        empty = np.flatnonzero(array.sum(axis=0) == 0)
        if len(empty):
            raise ProblemError(f"A message that no input sends has no place in a channel. Remove column {empty[0]}.")

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]] | Floats) -> Channel:
        try:
            return cls(tuple(tuple(float(entry) for entry in row) for row in rows))
        except (TypeError, ValueError, OverflowError):
            raise ProblemError("A channel is a table of probabilities, a row for each input.") from None

    @property
    def array(self) -> Floats:
        array = np.array(self.matrix, dtype=np.float64)
        scaled: Floats = array / array.sum(axis=1, keepdims=True)
        return scaled

    @property
    def own_eps0(self) -> float:
        array = self.array
        low, high = array.min(axis=0), array.max(axis=0)
        if (low < high * math.exp(-LARGEST_EPS0)).any():
            return math.inf
        return float(np.log(high / low).max()) * (1 + 1e-15) + 1e-15

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        array = self.array
        return _distinct([self._pair(array[x], array[y], array.min(axis=0)) for x, y in self._pairs()])

    def data_sets(self, eps0: float) -> list[Cells]:
        """Others who all hold the same value, for every pair and every such value; the likeliest ones if many."""
        array = self.array
        found = []
        for x, y in self._pairs():
            for held in array:
                if (held[(array[x] > 0) | (array[y] > 0)] > 1e-60).all():
                    information = float((((array[x] - array[y]) ** 2)[held > 0] / held[held > 0]).sum())
                    found.append((information, x, y, held))
        found.sort(key=lambda item: -item[0])
        return _distinct([self._pair(array[x], array[y], held) for _, x, y, held in found[:12]])

    def ratios(self, eps0: float) -> Ratios | None:
        if not 0.0 < eps0 < LARGEST_EPS0:
            return None
        array = self.array
        beta = max(float(np.maximum(array[x] - array[y], 0.0).sum()) for x, y in self._pairs())
        p = math.exp(eps0)
        return Ratios(p, min(beta * (1 + 1e-14), (p - 1.0) / (p + 1.0)), p)

    def _pairs(self) -> list[tuple[int, int]]:
        return list(permutations(range(len(self.matrix)), 2))

    def _pair(self, first: Floats, second: Floats, others: Floats) -> Cells:
        """A message that some input never sends, or next to never, hides nobody: it is counted as given away."""
        bare = others < 1e-60
        found = _merged(first[~bare], second[~bare], others[~bare])
        return Cells(found.first, found.second, found.others, float(first[bare].sum()))


def _distinct(every: list[Cells]) -> list[Cells]:
    seen: dict[tuple[bytes, bytes, bytes, float], Cells] = {}
    for found in every:
        seen.setdefault((found.first.tobytes(), found.second.tobytes(), found.others.tobytes(), found.slack), found)
    return list(seen.values())


def check_whole(value: object, name: str, least: int, most: int = 10**15) -> None:
    """Refuse what is not a whole number between two ends."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProblemError(f"{name} must be a whole number. Found {shown(value)}.")
    if not least <= value <= most:
        raise ProblemError(f"{name} must be from {least:,} to {most:,}. Found {shown(value)}.")


def check_between(value: object, name: str, least: float, most: float) -> None:
    """Refuse what is not a number between two ends, which belong to what is allowed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ProblemError(f"{name} must be a number from {least:g} to {most:g}. Found {shown(value)}.")
