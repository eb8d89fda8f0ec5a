"""Randomizers, and cells: a shuffled comparison in its simplest form, to which every analysis here is reduced.

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
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.numbers.exact import check_between, check_whole, there
from optdp.numbers.positive_part import log_positive_part
from optdp.objects import Public

Floats = NDArray[np.float64]
LARGEST_EPS0, TAIL = 40.0, 1e-12
TILTS = 24  # exponential bounds that are tried on what rare cells add
ROUND_OFF = 2.0**-49  # more than the entries of cells and `e^eps` are wrong by, relatively


@dataclass(frozen=True)
class Cells:
    """Two laws of one message and what the others' messages hide of it, cell by cell."""

    first: Floats
    second: Floats
    others: Floats
    slack: float = 0.0
    """Probability of the messages that were left out of the cells: it is added to an upper bound of delta."""
    rare: Cells | None = None
    """Further cells that hardly any message reaches: their `Z` is positive, and may be too large for a grid."""

    def values(self, epsilon: float, units: float = 0.0) -> Floats:
        """`Z` of every cell, moved by so many units of what round-off may have done to it."""
        scale = math.exp(epsilon)
        moved = units * ROUND_OFF * (self.first + scale * self.second)
        values: Floats = (self.first - scale * self.second + moved) / self.others
        return values

    def log_upper(self, n: int, epsilon: float, grid: int) -> float:
        """An upper bound of `log delta(epsilon)` among `n` messages; `grid` is the length of the FFTs."""
        more = ROUND_OFF * float(self.others.sum())
        values = self.values(epsilon, 1.0)
        upper = log_positive_part(values, self.others, n, grid, more).upper - math.log(n)
        aside = self.slack + (0.0 if self.rare is None else self._alone(self.rare, values, n, epsilon))
        return min(0.0, upper if aside == 0.0 else float(np.logaddexp(upper, math.log(aside))))

    def _alone(self, rare: Cells, values: Floats, n: int, epsilon: float) -> float:
        """What the rare cells add to delta at most.

        Let `B` be the sum of the other cells' values and `J >= 0` that of the rare ones. Where one message is rare,
        with value `z`, `(B + J)_+ - B_+ <= (B + z)_+`, whose mean is at most `(c + sqrt(c^2 + v)) / 2` if `B + z` has
        the mean `c` and a variance of `v` or less; where two or more are, it is at most `J`.
        """
        jumps = np.maximum(rare.values(epsilon, 1.0), 0.0)
        size = float(np.abs(values * self.others).sum())
        mean = (n - 1) * (float((values * self.others).sum()) + 1e-12 * size)
        variance = (n - 1) * float((values**2 * self.others).sum()) * (1.0 + 1e-12)
        middle = mean + jumps
        root = np.hypot(middle, math.sqrt(variance))
        over = np.where(middle > 0.0, middle + root, variance / (root + np.abs(middle))) / 2.0
        top = float(values.max()) if values.max() > 0.0 else float(jumps.max())
        for theta in (np.geomspace(1.0, 600.0, TILTS) / max(top, 1e-12)).tolist():
            gain = float((self.others * np.expm1(theta * values)).sum()) + 1e-12 * theta * size
            log_over = theta * jumps + (n - 1) * math.log1p(max(gain, -0.999)) - 1.0 - math.log(theta)
            np.minimum(over, np.exp(np.minimum(log_over, 700.0)), out=over)
        several = (n - 1) * float(rare.others.sum())
        return float((rare.others * (over + several * jumps)).sum()) * (1.0 + 1e-9)

    def log_lower(self, n: int, epsilon: float, grid: int) -> float:
        """A lower bound of the same; what was left out of the cells adds nothing to it."""
        less = -ROUND_OFF * float(self.others.sum())
        return log_positive_part(self.values(epsilon, -1.0), self.others, n, grid, less).lower - math.log(n)


def cells(first: object, second: object, others: object, slack: float = 0.0) -> Cells:
    """Cells from anything that numpy reads; those that no message reaches are left out."""
    a, b, m = (np.asarray(part, dtype=np.float64) for part in (first, second, others))
    used = (a > 0) | (b > 0)
    return Cells(a[used], b[used], m[used], slack)


class Ratios(NamedTuple):
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


@dataclass(frozen=True)
class Family(ABC):
    """What randomizers have in common of which `eps0` picks a member; of some no more is known than their ratios."""

    @property
    def own_eps0(self) -> float | None:
        return None

    @abstractmethod
    def ratios(self, eps0: float) -> Ratios: ...

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return [variation_cells(self.ratios(eps0))]


@dataclass(frozen=True)
class Thinned:
    """Everybody takes part with probability `rate`, by chance and in secret, and otherwise sends nothing.

    Who counts the messages knows how many sent nothing, so that nothing is a message like any other; it is as likely
    for every value, and therefore hides everybody who sends none.
    """

    inner: Randomizer
    rate: Fraction
    kind: ClassVar[str] = "thinned"

    @property
    def own_eps0(self) -> float | None:
        return self.inner.own_eps0

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        return [self._thinned(pair) for pair in self.inner.blankets(eps0, tail)]

    def data_sets(self, eps0: float) -> list[Cells]:
        return [self._thinned(pair) for pair in self.inner.data_sets(eps0)]

    def ratios(self, eps0: float) -> Ratios | None:
        found = self.inner.ratios(eps0)
        return None if found is None else found._replace(beta=found.beta * float(self.rate) * (1.0 + 1e-14))

    def _thinned(self, pair: Cells) -> Cells:
        """Every cell is reached with `rate` times its probability, and one more by those who send nothing."""
        rate, absent = float(self.rate), float(1 - self.rate)
        first, second, others = (np.append(rate * law, absent) for law in (pair.first, pair.second, pair.others))
        rare = pair.rare
        if rare is not None:
            rare = Cells(rate * rare.first, rate * rare.second, rate * rare.others)
        return Cells(first, second, others, rate * pair.slack, rare)


def everybody(randomizer: Randomizer) -> Randomizer:
    """What those who take part do."""
    return randomizer.inner if isinstance(randomizer, Thinned) else randomizer


def described(randomizer: Randomizer) -> str:
    """The kind and its numbers, in words."""
    if randomizer.kind == "channel":
        return str(randomizer)
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

    def data_sets(self, eps0: float) -> list[Cells]:
        """The others hold a third value if there is one, or either of the two."""
        first, second, other, _ = self.laws(math.exp(eps0))
        held = [other] if self.third else []
        return [merged(first, second, law) for law in (*held, first, second)]


@dataclass(frozen=True)
class Extremal(Family):
    """An extremal design, given by its patterns."""

    @abstractmethod
    def patterns(self, eps0: float) -> Patterns: ...

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        first, second, _, blanket = self.patterns(eps0).laws(math.exp(eps0))
        return [merged(first, second, blanket)]

    def data_sets(self, eps0: float) -> list[Cells]:
        return self.patterns(eps0).data_sets(eps0)

    def ratios(self, eps0: float) -> Ratios:
        p = math.exp(eps0)
        first, second, _, _ = self.patterns(eps0).laws(p)
        return Ratios(p, float(np.maximum(first - second, 0.0).sum()) * (1.0 + 1e-14), p)


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

    def data_sets(self, eps0: float) -> list[Cells]:
        """Randomized response on three values is a case that an analysis of any randomizer must allow for."""
        return KRR(3).data_sets(eps0)

    def ratios(self, eps0: float) -> Ratios:
        p = math.exp(eps0)
        return Ratios(p, (p - 1.0) / (p + 1.0), p)


@dataclass(frozen=True)
class KRR(Extremal):
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
        gamma = there(self.gamma)
        return math.log1p(self.k * (1.0 - gamma) / gamma) * (1.0 + 2.0**-50)

    def patterns(self, eps0: float) -> Patterns:
        weights = np.zeros((2, 2, 2))
        weights[1, 0, 0] = weights[0, 1, 0] = 1.0
        if self.k > 2:
            weights[0, 0, 1], weights[0, 0, 0] = 1.0, self.k - 3.0
        return Patterns(weights)

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
        """A message that some input never sends, or next to never, hides nobody: it is counted as revealed."""
        bare = others < 1e-60
        found = merged(first[~bare], second[~bare], others[~bare])
        return Cells(found.first, found.second, found.others, float(first[bare].sum()))


def _distinct(every: list[Cells]) -> list[Cells]:
    seen: dict[tuple[bytes, bytes, bytes, float], Cells] = {}
    for found in every:
        seen.setdefault((found.first.tobytes(), found.second.tobytes(), found.others.tobytes(), found.slack), found)
    return list(seen.values())
