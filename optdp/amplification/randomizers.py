"""Extremal designs: randomizers whose messages are likely for some inputs, and equally unlikely for all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np

from optdp.amplification.family import LARGEST_EPS0, TAIL, Cells, Family, Floats, Ratios, cells, variation_cells
from optdp.errors import ProblemError
from optdp.numbers.exact import check_between, check_whole
from optdp.objects import Public


@dataclass(frozen=True)
class Patterns:
    """Outputs of an extremal design: input `x` has probability `p c` on the outputs of its own set and `c` elsewhere.

    `weights[i][j][l]` measures the outputs that lie (1) or do not (0) in the sets of two inputs and of a third one.
    Without a third input all of them have `l = 0`.
    """

    weights: Floats
    complete: bool = False
    """Whether there is no input beside these: then the blanket is the least of their laws, and else it is `c`."""

    @property
    def third(self) -> bool:
        """Whether there is a third input."""
        return bool(self.weights[:, :, 1].any())

    def scale(self, p: float) -> float:
        return 1.0 / float(self.weights[0].sum() + p * self.weights[1].sum())

    def laws(self, p: float) -> tuple[Floats, Floats, Floats, Floats]:
        """The laws of the three inputs on the eight kinds of output, and the blanket."""
        level = self.weights * self.scale(p)
        high = np.array([1.0, p])
        laws = (level * high[:, None, None], level * high[None, :, None], level * high[None, None, :])
        least = np.minimum.reduce(laws if self.third else laws[:2]) if self.complete else level
        return laws[0].ravel(), laws[1].ravel(), laws[2].ravel(), least.ravel()


def extremal_blanket(patterns: Patterns, eps0: float) -> list[Cells]:
    first, second, _, blanket = patterns.laws(math.exp(eps0))
    return [merged(first, second, blanket)]


def extremal_data_sets(patterns: Patterns, eps0: float) -> list[Cells]:
    """The others hold a third value if there is one, or either of the two."""
    first, second, other, _ = patterns.laws(math.exp(eps0))
    held = [other] if patterns.third else []
    return [merged(first, second, law) for law in (*held, first, second)]


def independent(share: float, d: int | None) -> Patterns:
    """Sets that every output is in with probability `share`, independently: those of three inputs, or of two.

    Data sets of two values exist whatever the number `d` of inputs is, so that two it is where `d` is not known.
    """
    bit = np.array([1.0 - share, share])
    if d is not None and d > 2:
        return Patterns(np.einsum("i,j,k->ijk", bit, bit, bit), complete=d == 3)
    return Patterns(np.einsum("i,j,k->ijk", bit, bit, np.array([1.0, 0.0])), complete=d == 2)


def merged(first: Floats, second: Floats, others: Floats) -> Cells:
    """Cells with the same likelihoods relative to `others` put together, which changes nothing."""
    used = others > 0
    keys = np.round(np.stack([first[used] / others[used], second[used] / others[used]]), 12)
    _, where = np.unique(keys, axis=1, return_inverse=True)
    a, b, m = (np.bincount(where.ravel(), law[used]) for law in (first, second, others))
    return cells(a, b, m)


def _generic_ratios(eps0: float) -> Ratios:
    p = math.exp(eps0)
    return Ratios(p, (p - 1.0) / (p + 1.0), p)


@dataclass(frozen=True)
class Generic(Family):
    """Any `eps0`-LDP randomizer: nothing else is known of it.

    Examples
    --------
    >>> from optdp import Amplification, Generic, solve
    >>> found = solve(Amplification(Generic(), eps0=1, n=1000, delta="1e-6"))
    >>> round(found.value, 3)
    0.149
    """

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
    """Randomized response on `k` values: the true one with probability `p/(p+k-1)`, each other with `1/(p+k-1)`.

    Here `p = e^eps0`.

    Parameters
    ----------
    k : int
        How many values there are; 0 if `k` is what the problem asks for.
    gamma : float, optional
        The probability of a uniform answer (B, Algorithm 1), where that is given instead of eps0.

    Examples
    --------
    >>> from optdp import Amplification, KRR, solve
    >>> found = solve(Amplification(KRR(10), eps0=2, n=1000, delta="1e-6"))
    >>> round(found.value, 3)
    0.273
    """

    k: int
    gamma: float | None = None
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


LARGEST_CHANNEL = 2_000_000  # inputs times inputs times messages: the work of looking at all pairs


@dataclass(frozen=True)
class Channel(Public):
    """Any finite randomizer. `Channel.of` takes a table of any kind.

    Parameters
    ----------
    matrix : tuple of tuples of float
        `matrix[x][y]` is the probability of the message `y` for the input `x`.

    Examples
    --------
    >>> from optdp import Channel
    >>> channel = Channel.of([[0.75, 0.25], [0.25, 0.75]])
    >>> round(channel.own_eps0, 4)
    1.0986
    """

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

    def __repr__(self) -> str:
        return f"Channel({len(self.matrix)} inputs, {len(self.matrix[0])} messages)"

    def __str__(self) -> str:
        return f"channel, {len(self.matrix)} inputs, {len(self.matrix[0])} messages"

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]] | Floats) -> Channel:
        try:
            return cls(tuple(tuple(float(entry) for entry in row) for row in rows))
        except (TypeError, ValueError, OverflowError):
            raise ProblemError("A channel is a table of probabilities, a row for each input.") from None

    @cached_property
    def array(self) -> Floats:
        array = np.array(self.matrix, dtype=np.float64)
        scaled: Floats = array / array.sum(axis=1, keepdims=True)
        return scaled

    @cached_property
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
        found = merged(first[~bare], second[~bare], others[~bare])
        return Cells(found.first, found.second, found.others, float(first[bare].sum()))


def _distinct(every: list[Cells]) -> list[Cells]:
    seen: dict[tuple[bytes, bytes, bytes, float], Cells] = {}
    for found in every:
        seen.setdefault((found.first.tobytes(), found.second.tobytes(), found.others.tobytes(), found.slack), found)
    return list(seen.values())
