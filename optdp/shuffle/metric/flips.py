"""RR-Shuffle (D, section 3): what the sum of randomly flipped bits tells, exactly and over all data sets.

`N` bits are flipped with probability `f < 1/2` each and only their sum is released. With `m` true ones it is

    S_m = m - Bin(m, f) + Bin(N-m, f),

and the loss of going from the sum `m+d` to `m` is the least `L >= 0` with `sum over s of (P(s) - e^L Q(s))_+ <= delta`,
`P` the law of `S_(m+d)` and `Q` that of `S_m`. The complement of all bits turns the way from `m` to `m+d` into this one
with `N-d-m` for `m`, so that one way over all `m` is everything.

*One data set.* `S_m` is a sum of independent zeros and ones, hence log-concave; replacing one zero by a one multiplies
the law by a ratio that grows with `s`. So `P/Q` grows with `s`, the positive terms are those from some `s` on, and with
tails `P^(s) = Pr[S >= s]`

    L = max over s of h(s),    h(s) = log (P^(s) - delta) / Q^(s).

`P^(s) - e^L Q^(s)` grows up to the first `s` with `P(s) >= e^L Q(s)` and falls from there on. Hence `L`, the
largest of 0 and `h` at two places `s, s+1`, is proved by `P(s-1) <= e^L Q(s-1)` and `P(s+1) >= e^L Q(s+1)`, and `h(s)`
alone is a lower bound. Where rounding hides that, places `s1 < s < s2` farther apart do: if `P(s1) <= e^L Q(s1)` and
`P(s2) >= e^L Q(s2)`, then `P^ - e^L Q^` is nowhere more than `e^L t Q^(s)` above its value at `s`, with
`t = (P(s2) Q(s1) / P(s1) Q(s2) - 1) (Q^(s1) - Q^(s2)) / Q^(s)`, so that `L = h(s) - log(1-t)` serves. Never is `L`
more than `d log (1-f)/f`, the loss of all bits.

*Tails* come from `optdp.numbers.flipped`, with bounds on their errors.

*All data sets.* Fewer others never hide more (data processing): if from `m1` to `m2` of the others are ones, then every
such sum is that of `m1` ones and `N-d-m2` zeros beside the pair, plus independent bits. Its loss bounds the block's.
Blocks are cut into parts until their bounds are within the tolerance of the worst data set found. The loss grows with
the distance, as tails of `S_m` grow with `m`; so a bound for a larger distance is one for a smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from optdp.errors import ProblemError
from optdp.numbers.exact import check_between, check_whole
from optdp.numbers.flipped import Floats, Sums, U, flipped_sums

Flags = NDArray[np.bool_]

LARGEST = 10**12  # the most bits
SINGLE = 1500  # up to so many data sets all are looked at one by one, whatever the tolerance
REACHES = (1, 1, 1, 4, 16, 64, 256)  # how far from the best place a proof looks, one after the other until it succeeds
BUDGET = 30_000
"""How many blocks are bounded for one distance; after that the upper bound is what has been proved by then."""


@dataclass(frozen=True)
class FlipLoss:
    """The worst loss over all data sets at a distance lies in `lower..upper`.

    `lower` is the loss of the way from `ones + distance` to `ones`, and so from `bits - distance - ones` upwards.
    """

    distance: int
    upper: float
    lower: float
    ones: int


def data_set_loss(bits: int, flip: Fraction, ones: int, distance: int, delta: float, back: bool = False) -> float:
    """The loss of going from `ones` to `ones + distance` true ones, or `back`, rounded up.

    That is by a relative 1e-11 where 100 bits are flipped, 1e-9 for 10,000 and 1e-7 for a million (at distance 1).
    """
    _check(bits, flip, delta, [distance])
    check_whole(ones, "ones", 0, bits - distance)
    pair = _Pair(bits, flip, delta, distance)
    m = float(ones if back else bits - distance - ones)
    return float(pair.losses(np.array([m]), np.array([m])).upper[0])


def worst_losses(
    bits: int,
    flip: Fraction,
    delta: float,
    distances: Sequence[int],
    tolerance: float = 1e-3,
    progress: Callable[[str], None] = lambda _: None,
) -> list[FlipLoss]:
    """The loss at every distance over all data sets, between bounds a factor `1 + tolerance` apart.

    Up to 1500 data sets they agree to rounding. Losses below 1e-5 need only agree to 1e-5 times the tolerance. If
    30,000 blocks do not suffice the bounds are wider, and still hold.
    """
    _check(bits, flip, delta, distances)
    check_between(tolerance, "tolerance", 1e-9, 1.0)
    found = []
    for distance in distances:
        progress(f"distance {distance:,}")
        found.append(_Pair(bits, flip, delta, distance).worst(tolerance))
    least = math.inf
    for i in sorted(range(len(found)), key=lambda i: -found[i].distance):
        least = min(least, found[i].upper)
        found[i] = replace(found[i], upper=max(least, found[i].lower))
    return found


def likely_loss(bits: int, flip: Fraction, delta: float, distance: int) -> float:
    """The largest loss of a few data sets, mostly that of all: for searches, not for claims."""
    _check(bits, flip, delta, [distance])
    return _Pair(bits, flip, delta, distance).good(steps=0)[0]


def theorem_3_1(bits: int, p: float, delta: float) -> float | None:
    """The loss per unit of distance that D's Theorem 3.1 states, or None where it does not apply.

    For comparison only, never the source of a claim: it is 4 to 6 times too large for small distances, and too small
    for large ones.
    """
    lam = p * bits
    if not 14 * math.log(4 / delta) <= lam <= bits:
        return None
    return math.sqrt(32 * math.log(4 / delta) / (lam - math.sqrt(2 * lam * math.log(2 / delta))))


def _check(bits: int, flip: Fraction, delta: float, distances: Sequence[int]) -> None:
    check_whole(bits, "bits", 1, LARGEST)
    if not Fraction(1, 10**12) <= flip < Fraction(1, 2):
        raise ProblemError(f"flip must be a fraction from 1e-12 to less than 1/2. Found {flip!r}. Write half of p.")
    if not 0 <= delta < 1:
        raise ProblemError(f"delta must be from 0 to less than 1. Found {delta!r}. Write a number such as 1e-6.")
    for distance in distances:
        check_whole(distance, "distance", 1, bits)


@dataclass(frozen=True)
class _Losses:
    """Bounds on the loss, and the place it is reached at in standard deviations from the mean of `P`."""

    lower: Floats
    upper: Floats
    start: Floats


class _Pair:
    """Two laws at a distance, with any number of others."""

    def __init__(self, bits: int, flip: Fraction, delta: float, distance: int) -> None:
        self.bits, self.distance, self.f, self.d = bits, distance, float(flip), float(distance)
        self.last = bits - distance
        self.log_delta = math.log(delta) if delta else -math.inf
        self.cap = self.d * math.log1p(float((1 - 2 * flip) / flip)) * (1 + 8 * U)
        self.first = -float(ndtri(min(2 * delta, 0.5))) if delta else math.inf

    def worst(self, tolerance: float) -> FlipLoss:
        """Branch and bound over all data sets."""
        if self.log_delta == -math.inf:
            return FlipLoss(self.distance, self.cap, self.cap * (1 - 32 * U), 0)
        if self.last < SINGLE:
            places = np.arange(self.last + 1.0)
            found = self.losses(places, places)
            at = int(np.argmax(found.lower))
            return FlipLoss(self.distance, float(found.upper.max()), float(found.lower[at]), at)
        lower, ones, known, starts = self.good(steps=3)
        upper, left = 0.0, BUDGET
        edges = np.unique(np.round(np.linspace(0, self.last + 1.0, 33)))
        first, last = edges[:-1], edges[1:] - 1
        while first.size:
            found = self.losses(first, last, np.interp((first + last) / 2, known, starts))
            alone = first == last
            best = int(np.argmax(np.where(alone, found.lower, -1.0)))
            if alone[best] and found.lower[best] > lower:
                lower, ones = float(found.lower[best]), int(first[best])
            left -= first.size
            room = 0.98 * tolerance * max(lower, 1e-5)
            done = alone | (found.upper <= lower + room) | (left < 2 * first.size)
            upper = max(upper, float(found.upper[done].max(initial=0.0)))
            first, last, bound = first[~done], last[~done], found.upper[~done]
            parts = np.ceil(1.1 * (bound - lower) / room)
            parts = np.clip(parts * min(1.0, left / max(parts.sum(), 1.0)), 2, np.minimum(1000, last - first + 1))
            first, last = _cut(first, last, parts.astype(np.int64))
        return FlipLoss(self.distance, max(upper, lower), lower, ones)

    def good(self, steps: int) -> tuple[float, int, Floats, Floats]:
        """A good data set and its loss; places in order, and where the loss is reached there."""
        if self.log_delta == -math.inf:
            return self.cap, 0, np.zeros(1), np.zeros(1)
        places = np.unique(np.round(self.last * np.array([0, 0.001, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 0.999, 1])))
        found = self.losses(places, places)
        known, starts, at = places, found.start, int(np.argmax(found.lower))
        lower, ones = float(found.lower[at]), float(places[at])
        for _ in range(steps):
            low, high = places[max(at - 1, 0)], places[min(at + 1, places.size - 1)]
            places = np.unique(np.round(np.linspace(low, high, 9)))
            found = self.losses(places, places, np.interp(places, known, starts))
            at = int(np.argmax(found.lower))
            if found.lower[at] > lower:
                lower, ones = float(found.lower[at]), float(places[at])
        return lower, int(ones), known, starts

    def losses(self, first: Floats, last: Floats, start: Floats | None = None) -> _Losses:
        """The losses with `first` ones and `N-d-last` zeros beside the pair: proved bounds."""
        if self.log_delta == -math.inf:
            return _Losses(*(np.full(first.size, self.cap) for _ in range(3)))
        zeros = self.last - last
        size = first + zeros + self.d
        mean, spread = self.d + self.f * (zeros - first - self.d), np.sqrt(size * self.f * (1 - self.f))
        guess = mean + spread * (start if start is not None else min(self.first, 37.0))
        place = self._climb(first, zeros, guess, mean, spread)
        upper, lower = np.full(first.size, self.cap), np.zeros(first.size)
        todo = np.arange(first.size)
        for reach in REACHES:
            low, high, move = self._window(first[todo], zeros[todo], place[todo], reach)
            lower[todo] = np.maximum(lower[todo], low)
            upper[todo] = np.where(move == 0, np.minimum(high, self.cap), self.cap)
            todo, move = todo[move != 0], move[move != 0]
            if not todo.size:
                break
            place[todo] += move if reach == 1 else 0.0
        return _Losses(np.minimum(lower, upper), upper, (place - mean) / np.maximum(spread, 1e-9))

    def _both(self, ones: Floats, zeros: Floats, place: Floats) -> tuple[Sums, Sums]:
        """The sums of `P` and `Q` at `s = ones + place`."""
        both = flipped_sums(
            self.f,
            np.concatenate([ones + self.d, ones]),
            np.concatenate([zeros, zeros + self.d]),
            np.concatenate([place - self.d, place]),
        )
        parts = (both.tail, both.tail_error, both.mass, both.mass_error)
        k = ones.size
        return Sums(*(part[:k] for part in parts)), Sums(*(part[k:] for part in parts))

    def _climb(self, ones: Floats, zeros: Floats, guess: Floats, centre: Floats, spread: Floats) -> Floats:
        """About the first place with `P >= Q` from which on `h` falls: a zero of almost a line, by secants."""
        below, above = -ones, zeros + self.d
        place = np.clip(np.ceil(guess), below + 1, above)
        before, value_before = np.full(place.size, np.nan), np.full(place.size, np.nan)
        todo = np.arange(place.size)
        for step in range(100):
            at = place[todo]
            p, q = self._both(ones[todo], zeros[todo], at)
            with np.errstate(all="ignore"):
                ratio = p.mass - q.mass
                gap = -np.expm1(np.minimum(ratio + q.tail - p.tail, -U))
                value = self.log_delta - p.tail - np.log(gap)
                slope = (value - value_before[todo]) / (at - before[todo])
                hazard = np.maximum(np.exp(p.mass - p.tail), 0.1 / (1 + spread[todo]))
                slope = np.where(slope > 0.2 * hazard, slope, hazard)
                less, steep = ratio < 0, self.d * (1 - 2 * self.f) / spread[todo] ** 2
                move = np.where(less, np.fmax(-value / slope, -ratio / steep), -value / slope)
                limit = (2 * spread[todo] + 1) * 1.3**step
                move = np.clip(np.nan_to_num(move), -limit, limit)
            rising = (value < 0) | less | (np.isnan(value) & (at < centre[todo]))
            below[todo] = np.where(rising, at, below[todo])
            above[todo] = np.where(rising, above[todo], at)
            before[todo], value_before[todo] = at, value
            low, high = below[todo], above[todo]
            aim = np.clip((low + high) / 2, at - limit, at + limit) if step % 4 == 3 and step > 8 else at + move
            place[todo] = np.clip(np.ceil(aim), low + 1, np.maximum(high - 1, low + 1))
            todo = todo[high - low > 1]
            if not todo.size:
                break
        return above

    def _window(self, ones: Floats, zeros: Floats, place: Floats, reach: int) -> tuple[Floats, Floats, Floats]:
        """Lower and upper bounds on the loss from the places around; what is not proved asks to move."""
        k, bottom, top = ones.size, 1 - ones, zeros + self.d
        around = np.concatenate([np.clip(place + i, bottom, top) for i in (-reach, 0, reach)])
        p, q = self._both(np.tile(ones, 3), np.tile(zeros, 3), around)
        with np.errstate(all="ignore"):
            size = 16 * U * (2 + np.abs(p.tail) + np.abs(q.tail))
            high = _minus(_up(p.tail, p.tail_error) + size, self.log_delta) - _down(q.tail, q.tail_error) + size
            low = _minus(_down(p.tail, p.tail_error) - size, self.log_delta) - _up(q.tail, q.tail_error) - size
            size = 16 * U * (2 + np.abs(p.mass) + np.abs(q.mass))
            most = _up(p.mass, p.mass_error) - _down(q.mass, q.mass_error) + size
            least = _down(p.mass, p.mass_error) - _up(q.mass, q.mass_error) - size
            if reach == 1:
                loss = np.maximum(high[k : 2 * k], high[2 * k :])
            else:
                upper, lower = _up(q.tail, q.tail_error), _down(q.tail, q.tail_error)
                share = np.exp(upper[:k] - lower[k : 2 * k]) - np.exp(lower[2 * k :] - upper[k : 2 * k]) + 8 * U
                loss = high[k : 2 * k] - np.log1p(-np.minimum(1.01 * np.expm1(most[2 * k :] - least[:k]) * share, 1.0))
        loss = np.maximum(loss, 0.0)  # what is not a number stays so, and is not proved
        under = (most[:k] <= loss) | ((place <= bottom) & (reach == 1))
        over = (least[2 * k :] >= loss) | ((place >= top) & (reach == 1))
        move = np.where(~over, 1.0, np.where(~under, -1.0, 0.0))
        return np.fmax(low[k : 2 * k], 0.0), loss, move


def _up(value: Floats, error: Floats) -> Floats:
    """The upper end of a logarithm."""
    return value + np.log1p(error)


def _down(value: Floats, error: Floats) -> Floats:
    """The lower end of a logarithm; minus infinity where nothing is known."""
    return value + np.log1p(-np.minimum(error, 1.0))


def _minus(value: Floats, other: float) -> Floats:
    """`log(e^value - e^other)`, minus infinity where that is not positive."""
    return value + np.log(-np.expm1(np.minimum(other - value, 0.0)))


def _cut(first: Floats, last: Floats, parts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Every block cut into so many parts of about one length."""
    start, width, count = (np.repeat(array, parts) for array in (first, last - first + 1, parts))
    index = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    return start + np.floor(width * index / count), start + np.floor(width * (index + 1) / count) - 1
