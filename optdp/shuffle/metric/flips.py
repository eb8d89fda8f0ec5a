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

*All data sets.* Fewer others never hide more (data processing): if from `m1` to `m2` of the others are ones, then every
such sum is that of `m1` ones and `N-d-m2` zeros beside the pair, plus independent bits. Its loss bounds the block's.
Blocks are cut into parts until their bounds are within the tolerance of the worst data set found. The loss grows with
the distance, as tails of `S_m` grow with `m`; so a bound for a larger distance is one for a smaller.

*Tails and masses* of `T = Bin(zeros, f) - Bin(ones, f)` have full relative accuracy. With `G(z) = E z^(S-s)` and `n`
points `z` on a circle of radius `e^theta > 1`,

    mean of G(z) / (1 - 1/z) = sum over integers j of Pr[S >= s + jn] e^(theta j n),

and without the factor the same for `Pr[S = s + jn]`. At the saddle point nothing cancels but a digit, and 10 to 50
points suffice for every `N`, for all data sets at once. All is done in logarithms, so that no probability is too small.
What is left out is bounded: `|G(z)/(1-1/z)|` only falls up to the negative axis, and `Pr[S >= s] <= G(rho)` for
`rho >= 1` (Markov). Rounding: every exponent and phase is a sum of a few products; its error is taken as `24 u` times
the sum of their sizes, and `128 u` for each term besides (`u = 2^-52`, numpy's functions being good to `4 u`). It comes
to some 1e-14 sqrt(N f) and goes to the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from optdp.numbers.exact import check_whole

Floats = NDArray[np.float64]

DIGITS = 36.0  # what a sum over a circle leaves out is about `e^-36` of it
MOST = 2000  # no sum has more points on either side; it then knows little, far below the mean, and says so
CHUNK = 1 << 16  # how many points are summed at a time
U = 2.0**-52


@dataclass(frozen=True)
class Sums:
    """Logarithms of `Pr[S >= s]` and `Pr[S = s]`, and bounds on their relative errors; endless where unknown."""

    tail: Floats
    tail_error: Floats
    mass: Floats
    mass_error: Floats


def flipped_sums(f: float, ones: Floats, zeros: Floats, place: Floats) -> Sums:
    """`Pr[T >= place]` and `Pr[T = place]` for `T = Bin(zeros, f) - Bin(ones, f)`."""
    theta, slope, bend = _tilt(f, ones, zeros, place)
    sigma = np.maximum(np.sqrt(bend), 1e-6)
    up = np.log1p(math.sqrt(2 * DIGITS) / sigma)
    down = np.minimum(up, theta)
    extra = slope - place
    digits = DIGITS + 2 * np.log1p(sigma)
    points = np.ceil(
        np.maximum((digits + bend * (np.expm1(up) - up)) / up + extra, (digits + bend * (np.expm1(down) - down)) / down)
    )
    points = np.maximum(points, 4.0)
    turn = np.arcsin(np.minimum(np.sqrt(digits / 2) / sigma, 1.0)) / math.pi
    half = np.minimum(np.floor(points / 2), np.minimum(np.ceil(turn * points), MOST))
    parts = _exponent(f, ones, zeros, place, theta)
    scale, scale_error = sum(parts), 24 * U * sum(np.abs(part) for part in parts)
    alias = np.zeros(theta.size)
    with np.errstate(all="ignore"):
        for step, other in ((up, theta + up), (down, theta - down)):
            gain = sum(_exponent(f, ones, zeros, place, other)) - scale
            alias += np.exp(gain + scale_error) / np.expm1(step * points)
    alias = np.where(np.isfinite(alias), alias * points, np.inf)
    rows = max(1, CHUNK // int(half.max(initial=0) + 2))
    given = ones, zeros, place, theta, points, half
    pieces = [_points(f, *(part[i : i + rows] for part in given)) for i in range(0, theta.size, rows)]
    tail, tail_error, mass, mass_error = (np.concatenate(part) for part in zip(*pieces, strict=True))
    with np.errstate(all="ignore"):
        level = scale - np.log(points)
        errors = [
            np.expm1(scale_error) + 1.01 * (error + alias) / value
            for value, error in ((tail, tail_error), (mass, mass_error))
        ]
        errors = [np.where(error < 0.5, error * 2, np.inf) for error in errors]
        return Sums(level + np.log(tail), errors[0], level + np.log(mass), errors[1])


def _points(
    f: float, ones: Floats, zeros: Floats, place: Floats, theta: Floats, points: Floats, half: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The sums over the circle relative to the largest value of `G`, and bounds on their errors."""
    j = np.arange(half.max() + 2)
    n = points[:, None]
    phi = 2 * math.pi * j / n
    sine, square = np.sin(phi), np.sin(phi / 2) ** 2
    real, phase = np.zeros_like(phi), -place[:, None] * phi
    size = np.abs(phase)
    for count, sign in ((zeros, 1.0), (ones, -1.0)):
        grown = f * np.exp(sign * theta)
        h = (grown / (1 - f + grown))[:, None]
        x = 4 * h * ((1 - f) / (1 - f + grown))[:, None] * square
        along = 1 - 2 * h * square
        bent = np.log1p(-np.minimum(x, 0.5))
        if x.max() > 0.5:
            bent = np.where(x > 0.5, 2 * np.log(np.maximum(np.hypot(along, h * sine), 1e-300)), bent)
        part, angle = count[:, None] * bent / 2, count[:, None] * np.arctan2(h * sine, along)
        real += part
        phase += sign * angle
        size += np.abs(part) + angle
    weight = np.where((j == 0) | (2 * j == n), 1.0, 2.0) * np.exp(real)
    q, lift = np.exp(-theta)[:, None], -np.expm1(-theta)[:, None]
    kernel = 1 / (lift + 2 * q * square + 1j * q * sine)
    used = j <= half[:, None]
    c, s = np.cos(phase), np.sin(phase)
    rounding, absolute = (24 * size + 128 + j.size) * U, np.abs(kernel)
    tail = np.sum(weight * (c * kernel.real - s * kernel.imag), axis=1, where=used)
    mass = np.sum(weight * c, axis=1, where=used)
    beyond = np.where(2 * half + 1 < points, points - 2 * half - 1, 0.0)
    edge = np.arange(half.size), (half + 1).astype(np.int64)
    rest = beyond * np.exp(real[edge])
    noise = weight * rounding + 128 * U
    mass_error = np.sum(noise, axis=1, where=used) + rest
    tail_error = np.sum(noise * absolute, axis=1, where=used) + rest * absolute[edge]
    return tail, tail_error, mass, mass_error


def _exponent(f: float, ones: Floats, zeros: Floats, place: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """The parts of `log E e^(theta (T - place))`."""
    return ones * np.log1p(f * np.expm1(-theta)), zeros * np.log1p(f * np.expm1(theta)), -place * theta


def _tilt(f: float, ones: Floats, zeros: Floats, place: Floats) -> tuple[Floats, Floats, Floats]:
    """About the saddle point `theta > 0` of `E e^(theta (T - place)) / (1 - e^-theta)`; tilted mean, variance.

    What matters for speed alone: the sums are right with any `theta`.
    """
    most = 2 * math.log((1 - f) / f) + 40
    low, high = np.full(place.size, 1e-12), np.full(place.size, most)
    spread = (ones + zeros) * f * (1 - f)
    far = place - (zeros - ones) * f
    theta = np.clip(np.log1p((far + np.sqrt(far**2 + 4 * spread)) / (2 * spread)), low, high)
    for step in range(60):
        up, down = f * np.exp(theta), f * np.exp(-theta)
        more, less = up / (1 - f + up), down / (1 - f + down)
        slope = zeros * more - ones * less
        bend = zeros * more * (1 - f) / (1 - f + up) + ones * less * (1 - f) / (1 - f + down)
        grown = np.expm1(theta)
        value, rate = slope - place - 1 / grown, bend + (1 + 1 / grown) / grown
        move = value / rate
        if step == 59 or np.all((np.abs(move) * np.sqrt(rate) < 0.03) | (high - low < 1e-3 * low)):
            break
        low, high = np.where(value < 0, theta, low), np.where(value < 0, high, theta)
        new = theta - move
        theta = np.where((new > low) & (new < high), new, np.where(step % 2, np.sqrt(low * high), (low + high) / 2))
    return theta, slope, bend


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


@dataclass(frozen=True)
class _Losses:
    """Bounds on the loss, and the place it is reached at in standard deviations from the mean of `P`."""

    lower: Floats
    upper: Floats
    start: Floats


class FlippedPair:
    """The laws of two sums at a distance, `1 <= distance <= bits`, with any data of the others; `flip` is below 1/2."""

    def __init__(self, bits: int, flip: Fraction, delta: float, distance: int) -> None:
        check_whole(bits, "bits", 1, LARGEST)
        self.distance, self.f, self.d = distance, float(flip), float(distance)
        self.last = bits - distance
        self.log_delta = math.log(delta)
        self.cap = self.d * math.log1p(float((1 - 2 * flip) / flip)) * (1 + 8 * U)
        self.first = -float(ndtri(min(2 * delta, 0.5)))

    def worst(self, tolerance: float = 1e-3) -> FlipLoss:
        """The largest loss over all data sets by branch and bound, between bounds a factor `1 + tolerance` apart.

        Up to 1500 data sets they agree to rounding. Losses below 1e-5 need only agree to 1e-5 times the tolerance. If
        30,000 blocks do not suffice the bounds are wider, and still hold.
        """
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
        """A good data set and its loss, mostly the worst; places in order, and where the loss is reached there."""
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
