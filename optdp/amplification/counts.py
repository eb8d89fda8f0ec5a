"""One count in the shuffle model: what the number of reports `x0` tells about one person.

`n` people answer by k-ary randomized response, `p = e^eps0`: who holds `x0` reports it with probability
`t = p/(p+k-1)`, who does not with `f = 1/(p+k-1)`. One of them holds `x0` or `x1`; of the other `m = n-1` people
`n_x0` hold `x0`. Let `g` be the law of the others' count, `A = t - e^eps f` and `B = e^eps (1-f) - (1-t)`. Then

    delta(eps) = sum over s of [A g(s-1) - B g(s)]_+                                                  (C, Theorem 1).

`g` is log-concave, hence the positive terms are those from some `s` on and `delta` is the largest value of

    H(s) = sum over u >= s of (A g(u-1) - B g(u)) = A g(s-1) - (e^eps - 1) Pr[count >= s].

It is reached one above the mode of `g(u) (B/A)^u`, a law of independent zeros and ones, whose mode is the mean rounded
down or up (Darroch 1964). With `G(z) = (1-t+tz)^n_x0 (1-f+fz)^(m-n_x0)` and `z` on a circle of radius `r > 1`,

    mean over the N points of G(z) (A z - B) z^-s / (1 - 1/z) = sum over integers j of H(s + jN) r^(jN).

On the circle `r = B/A` nothing cancels but a few digits, so that `delta` has full relative accuracy however small it
is; `|G|` falls like a normal density away from the real axis, so that some 25 points suffice for any `n`. All is done
in balls. What is left out is bounded: `|G|` only falls up to the negative axis, and `|H(s)| <= C(rho) rho^-s` for every
`rho >= 1` with `C(rho) = G(rho) max(A rho, e^eps - 1)`, by Markov's inequality.

From `x1` to `x0` the roles change: with counts of what is not `x0`, `t` becomes `1-f`, `f` becomes `1-t`.

**Binary randomized response over all data sets.** With two answers the histogram is the count, so that `delta` is the
largest `delta(a)` of one count over `a = 0..m` others who hold `x0`. The way back is `delta(m-a)`.
Mostly one of the two ends is worst, though not always, so that a search proves its answer: it halves `0..m` until no
block of data sets can hold a larger value. Two bounds serve for a block `a1..a2`.

- Fewer others never hide more (data processing): `delta <= ` that of `a1` others with `x0` and `m-a2` without.
- The sum over the circle, expanded about the middle `c` of the block. With `u` and `v` the tilted
  probabilities, the best place is `s = a u + (m-a) v + 1 - y` with `|y| < 1`, and with `a = c + x` a point `z` of the
  circle has the exponent `base(z) + x d(z) + y log z`, where

      e^base(z) = (1-t+tz)^c (1-f+fz)^(m-c) z^-(c u + (m-c) v + 1),    d(z) = log (1-t+tz)/(1-f+fz) - (u - v) log z.

  `|e^w - 1 - w - w^2/2| <= |w|^3 e^|w| / 6` leaves a quadratic in `x` and `y`. All data sets have nearly one value
  if `n` is large (`d` is of the third order in `log z`): one block then covers very many of them.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce

import attrs
from flint import acb, arb

from optdp.numbers.exact import Number, ball, ceiling, precision, to_fraction

SMALLEST = 1e-300  # below this a positive delta is reported as the enclosure `[0, 1e-300]`
LARGEST = 10**15  # the most people
RELATIVE_BITS = 44  # how many bits of a delta are guaranteed


@dataclass(frozen=True)
class Enclosure:
    """Two floats between which a number is proved to lie."""

    lower: float
    upper: float

    @classmethod
    def of(cls, value: arb) -> Enclosure:
        """The enclosure of a ball that is known not to be negative."""
        if value == 0:
            return cls(0.0, 0.0)
        upper = math.nextafter(float(value.upper()), math.inf)
        if upper < SMALLEST:
            return cls(0.0, SMALLEST)
        return cls(max(0.0, math.nextafter(float(value.lower()), 0.0)), upper)


def _eps0(value: Number) -> Fraction:
    return to_fraction(value, "eps0")


@attrs.frozen
class CountSetting:
    """`n` people who answer by k-ary randomized response with `eps0`; of the others, `n_x0` hold `x0`."""

    n: int
    n_x0: int
    eps0: Fraction = attrs.field(converter=_eps0)
    k: int = 2


def count_delta(setting: CountSetting, epsilon: Number, reverse: bool = False) -> Enclosure:
    """The exact `delta(epsilon)` of the count, to a relative 1e-13; `reverse` is from `x1` to `x0`."""
    return Enclosure.of(count_delta_ball(setting, epsilon, reverse))


def count_delta_ball(setting: CountSetting, epsilon: Number, reverse: bool = False) -> arb:
    """The exact `delta(epsilon)` of the count as a ball of 44 bits or more, for any `n`; exactly 0 where it is zero."""
    eps = to_fraction(epsilon, "epsilon")
    bits = 96 + 3 * setting.n.bit_length()
    for effort in range(4):
        pair = pair_of(setting.eps0, setting.k, eps, reverse, bits + 128 * effort)
        if pair is None:
            return arb(0)
        with precision(pair.bits):
            value = _contour(pair, *_others(setting, reverse), 27.0 * (1 + effort))
            if value.rel_accuracy_bits() >= RELATIVE_BITS:
                return value
    raise ArithmeticError(f"No accurate delta for {setting} at epsilon {eps}.")


def delta_is_zero(setting: CountSetting, epsilon: Number, reverse: bool = False) -> bool:
    """Whether `delta(epsilon)` is exactly zero: `epsilon >= eps0`, or in reverse `e^epsilon >= (1-f)/(1-t)`."""
    return pair_of(setting.eps0, setting.k, to_fraction(epsilon, "epsilon"), reverse, 128) is None


@dataclass(frozen=True)
class CountPair:
    """What does not depend on the others: `A`, `B`, `e^eps - 1`, `t`, `1-t`, `f`, `1-f` and `log(B/A)`."""

    A: arb
    B: arb
    growth: arb
    t: arb
    not_t: arb
    f: arb
    not_f: arb
    theta: arb
    bits: int


def _others(setting: CountSetting, reverse: bool) -> tuple[int, int]:
    """How many others count with `t` and with `f`."""
    a, b = setting.n_x0, setting.n - 1 - setting.n_x0
    return (b, a) if reverse else (a, b)


@lru_cache(maxsize=64)
def pair_of(eps0: Fraction, k: int, epsilon: Fraction, reverse: bool, bits: int) -> CountPair | None:
    """The pair with `A` to at least `bits` bits, or None if `A <= 0`.

    In reverse `A (p+k-1) = (p-1) - (k-1)(e^eps - 1)`. For `k > 2` this is zero only if `epsilon = eps0 = 0`
    (Lindemann-Weierstrass), so that balls decide its sign.
    """
    if epsilon >= eps0:
        return None
    work = bits
    while True:
        with precision(work):
            gain, growth = ball(eps0).expm1(), ball(epsilon).expm1()
            whole = gain + k
            if not reverse or k == 2:
                A = (growth + 1) * ball(eps0 - epsilon).expm1() / whole
            else:
                A = (gain - (k - 1) * growth) / whole
            if A < 0:
                return None
            if A > 0 and A.rel_accuracy_bits() >= bits - 16:
                high, low = (gain + 1) / whole, 1 / whole
                not_high, not_low = (k - 1) / whole, (gain + k - 1) / whole
                if reverse:
                    B = ((growth + 1) * gain + growth) / whole
                    return CountPair(A, B, growth, not_low, low, not_high, high, (B / A).log(), work)
                B = ((growth + 1) * gain + (k - 1) * growth) / whole
                return CountPair(A, B, growth, high, not_high, low, not_low, (B / A).log(), work)
        work *= 2


@dataclass(frozen=True)
class Circle:
    """Points `e^(theta + 2 pi i j / points)`, summed for `|j| <= half`; `C` is used `up` and `down` from `theta`."""

    radius: arb
    theta: arb
    points: int
    half: int
    up: arb
    down: arb


def circle_of(pair: CountPair, a: int, b: int, digits: float, lift: float = 4.0) -> Circle:
    """A circle for `a` others with `t` and `b` with `f`: what is left out is below about `e^-digits` of `delta`.

    Near `z = 1` there is a pole: the circle stays `lift` standard deviations away from it, where the absolute sum is
    `e^(lift^2/2)` times larger at most. This is a choice for speed alone: what is left out is bounded by who uses it.
    """
    radius, theta = pair.B / pair.A, pair.theta
    spread = _spread(pair, radius, a, b)
    least = min(1.0, lift / spread)
    if not theta > least:  # too near the pole at z = 1
        theta = arb(least)
        radius = theta.exp()
        spread = _spread(pair, radius, a, b)
        digits += 4 + lift**2 / 2
    digits += 4 * math.log(max(spread, 1.0))
    up = math.log1p(math.sqrt(2 * digits) / spread)
    down = min(up, float(theta) * (1 - 1e-9))
    points = math.ceil(max((digits + spread**2 * (math.expm1(step) - step)) / step for step in (up, down)))
    drop = digits / spread**2
    half = points // 2 if drop >= 2 else min(points // 2, math.ceil(math.acos(1 - drop) / (2 * math.pi) * points))
    return Circle(radius, theta, points, half, arb(up), arb(down))


def tilted(pair: CountPair, r: arb) -> tuple[arb, arb]:
    """`t` and `f` after a factor `r` for every one counted."""
    return pair.t * r / (pair.not_t + pair.t * r), pair.f * r / (pair.not_f + pair.f * r)


def within(size: arb) -> arb:
    """The ball of all numbers of at most this size."""
    return arb(0, size.upper())


def _contour(pair: CountPair, a: int, b: int, digits: float) -> arb:
    """`delta` by points on the circle."""
    if a + b == 0:
        return pair.A
    high, low = tilted(pair, pair.B / pair.A)
    mean = a * high + b * low
    places = range(1 - ceiling(-mean), ceiling(mean) + 2)
    circle = circle_of(pair, a, b, digits)
    r, points = circle.radius, circle.points
    scale = _power(pair, r, a, b) / points
    above, below = r * circle.up.exp(), r * (-circle.down).exp()
    outside = _reach(pair, above, a, b) / ((circle.up * points).exp() - 1)
    inside = _reach(pair, below, a, b) / ((circle.down * points).exp() - 1)
    best = arb(0)
    for s, total in zip(places, _sums(pair, circle, a, b, places), strict=True):
        best = best.max(scale * r**-s * total + within(outside * above**-s + inside * below**-s))
    return best


def _sums(pair: CountPair, circle: Circle, a: int, b: int, places: range) -> list[arb]:
    """`sum over z of G(z)/G(r) (A z - B) (z/r)^-s / (1 - 1/z)` for every place `s`, `z` the points on the circle."""
    points, half = circle.points, circle.half
    high, low = tilted(pair, circle.radius)
    front, inverse = pair.A * circle.radius, 1 / circle.radius
    step = acb(arb(2) / points).exp_pi_i()
    turn = step ** (-places[0] % points)
    root, lead, sums = acb(1), acb(1), [arb(0) for _ in places]
    for j in range(half + 1):
        size = (1 + high * (root - 1)) ** a * (1 + low * (root - 1)) ** b
        back = root.conjugate()
        term = size * lead * (front * root - pair.B) / (1 - inverse * back)
        if 0 < 2 * j < points:
            term *= 2
        for i in range(len(sums)):
            sums[i] += term.real
            term *= back
        root, lead = root * step, lead * turn
    if 2 * half + 1 < points:
        size = (1 + high * (root - 1)) ** a * (1 + low * (root - 1)) ** b
        rest = within((points - 2 * half - 1) * abs(size) * (front + pair.B) / (1 - inverse))
        sums = [total + rest for total in sums]
    return sums


def _spread(pair: CountPair, r: arb, a: int, b: int) -> float:
    """About the standard deviation of the count after a factor `r` for every one counted."""
    high, low = (float(part) for part in tilted(pair, r))
    return max(math.sqrt(a * high * (1 - high) + b * low * (1 - low)), 1e-6)


def _power(pair: CountPair, z: arb, a: int, b: int) -> arb:
    """`G(z)`."""
    return (pair.not_t + pair.t * z) ** a * (pair.not_f + pair.f * z) ** b


def _reach(pair: CountPair, rho: arb, a: int, b: int) -> arb:
    """`C(rho)`."""
    return _power(pair, rho, a, b) * (pair.A * rho).max(pair.growth)


EXACT = 3000  # up to so many people the search goes down to single data sets, whatever the tolerance
LEAF = 6  # a block of so few data sets is looked at one by one
ENDS = 16  # how many data sets at either end are looked at in any case
BUDGET = 1500  # how many blocks a search bounds; after that the upper bound is what has been proved by then


@dataclass(frozen=True)
class WorstDelta:
    """The largest delta over all data sets lies between `lower` and `upper`; `n_x0` is a data set that has `lower`."""

    lower: float
    upper: float
    n_x0: int


def binary_delta(n: int, eps0: Number, epsilon: Number, tolerance: float = 1e-4, budget: int = BUDGET) -> WorstDelta:
    """The exact `delta(epsilon)` of shuffled binary randomized response, between bounds a factor `1 + tolerance` apart.

    Up to 3000 people the bounds agree to rounding. If `budget` blocks do not suffice they are wider, and still hold.
    A delta below 1e-300 is not told from zero: `lower = 0`, `upper = 1e-300`.
    """
    setting, level = CountSetting(n, 0, eps0), to_fraction(epsilon, "epsilon")
    if delta_is_zero(setting, level):
        return WorstDelta(0.0, 0.0, n - 1)
    small = n <= EXACT
    search = _Search(setting, level, 0.0 if small else tolerance)
    search.climb()
    search.prove(max(budget, EXACT) if small else budget)
    bounds = Enclosure.of(search.best), Enclosure.of(search.best.max(search.ceiling))
    return WorstDelta(bounds[0].lower, bounds[1].upper, search.place)


def likely_delta(n: int, eps0: Number, epsilon: Number) -> WorstDelta:
    """A data set that is likely the worst, by climbing and near both ends: `lower` is its delta, no more is proved."""
    setting, level = CountSetting(n, 0, eps0), to_fraction(epsilon, "epsilon")
    if delta_is_zero(setting, level):
        return WorstDelta(0.0, 0.0, n - 1)
    search = _Search(setting, level, 0.0)
    search.climb()
    for a in {*range(min(ENDS, n)), *range(max(0, n - ENDS), n)}:
        search.at(a)
    return WorstDelta(Enclosure.of(search.best).lower, 1.0, search.place)


class _Search:
    """Branch and bound over the number of others who hold `x0`."""

    def __init__(self, setting: CountSetting, epsilon: Fraction, tolerance: float) -> None:
        self.setting, self.epsilon = setting, epsilon
        self.slack = 1 + arb(tolerance)
        self.last = setting.n - 1
        self.best, self.place, self.ceiling = arb(0), self.last, arb(0)
        self.known: dict[int, arb] = {}

    def at(self, a: int) -> arb:
        """`delta(a)`; the largest is remembered."""
        if a not in self.known:
            self.known[a] = value = count_delta_ball(attrs.evolve(self.setting, n_x0=a), self.epsilon)
            if value.lower() > self.best.lower():
                self.best, self.place = value, a
        return self.known[a]

    def climb(self) -> None:
        """A good data set: the best of a few, then uphill by smaller and smaller steps."""
        for a in {i * self.last // 8 for i in range(9)}:
            self.at(a)
        step = self.last // 16
        while step:
            place = self.place
            for a in (place - step, place + step):
                if 0 <= a <= self.last:
                    self.at(a)
            step = step if self.place != place else step // 4

    def prove(self, budget: int) -> None:
        """`ceiling` becomes a bound for every data set, block by block, the largest bound first."""
        blocks, seen = [(0.0, 0, arb(math.inf), 0, self.last)], 1
        while blocks:
            _, _, bound, first, last = heapq.heappop(blocks)
            if last - first < LEAF:
                self.ceiling = reduce(arb.max, map(self.at, range(first, last + 1)), self.ceiling)
            elif seen >= budget or bound <= self.goal:
                self.ceiling = self.ceiling.max(bound)
            else:
                middle = (first + last) // 2
                for low, high in (first, middle), (middle + 1, last):
                    part = self.bound(low, high).upper().min(bound)
                    heapq.heappush(blocks, (float(-part.log()), seen, part, low, high))
                    seen += 1

    @property
    def goal(self) -> arb:
        """What need not be told from the best: a little more, or anything below all floats of interest."""
        return (self.best.lower() * self.slack).max(arb(SMALLEST))

    def bound(self, first: int, last: int) -> arb:
        """A bound for all data sets `first..last`."""
        value = expanded_bound(self.setting.n, self.setting.eps0, self.epsilon, first, last)
        if value <= self.goal * (1 + arb(last - first) / self.setting.n):
            return value  # small enough, or smaller than fewer others could make it
        fewer = attrs.evolve(self.setting, n=self.setting.n - (last - first), n_x0=first)
        return value.min(count_delta_ball(fewer, self.epsilon))


def expanded_bound(n: int, eps0: Fraction, epsilon: Fraction, first: int, last: int) -> arb:
    """A bound on `delta` if from `first` to `last` others hold `x0`, by expansion; endless where that is of no use."""
    pair = pair_of(eps0, 2, epsilon, False, 96 + 3 * n.bit_length())
    if pair is None:
        return arb(0)
    with precision(pair.bits):
        return _expanded(pair, first, last, n - 1)


def _expanded(pair: CountPair, first: int, last: int, others: int) -> arb:
    """The sum over the circle of the module's second bound, with all that it leaves out."""
    middle, reach = arb(first + last) / 2, arb(last - first) / 2
    u, v = tilted(pair, pair.B / pair.A)
    place = middle * u + (others - middle) * v + 1

    def exponent(z: acb) -> tuple[acb, acb, acb]:
        high, low, log = (pair.not_t + pair.t * z).log(), (pair.not_f + pair.f * z).log(), z.log()
        return middle * high + (others - middle) * low - place * log, high - low - (u - v) * log, log

    def largest(z: acb) -> arb:
        base, d, log = exponent(z)
        return (base.real + reach * abs(d.real) + abs(log.real)).exp()

    a = (first + last) // 2
    circle = circle_of(pair, a, others - a, digits=20.0, lift=1.0)
    r, points = circle.radius, circle.points
    if reach * abs(exponent(acb(r))[1]) + circle.theta > 1:
        return arb(math.inf)
    moments, rest = [arb(0)] * 6, arb(0)
    for j in range(circle.half + 1):
        z = r * acb(arb(2 * j) / points).exp_pi_i()
        base, d, log = exponent(z)
        term = base.exp() * (pair.A * z - pair.B) / (1 - 1 / z) * (2 if 0 < 2 * j < points else 1)
        slope = term * d
        parts = (term, slope, term * log, slope * d / 2, slope * log, term * log * log / 2)
        moments = [moment + part.real for moment, part in zip(moments, parts, strict=True)]
        size = reach * abs(d) + abs(log)
        rest += abs(term) * size**3 * size.exp() / 6
    value, x, y, xx, xy, yy = moments
    total = value + reach * abs(x) + reach**2 * xx.max(arb(0)) + reach * abs(xy) + _crest(y, yy) + rest
    if 2 * circle.half + 1 < points:
        z = r * acb(arb(2 * circle.half + 2) / points).exp_pi_i()
        total += (points - 2 * circle.half - 1) * largest(z) * (pair.A * r + pair.B) / (1 - 1 / r)
    total /= points
    for rho, step in ((r * circle.up.exp(), circle.up), (r * (-circle.down).exp(), circle.down)):
        total += largest(acb(rho)) * (pair.A * rho).max(pair.growth) / ((step * points).exp() - 1)
    return total if total.is_finite() else arb(math.inf)


def _crest(slope: arb, bend: arb) -> arb:
    """A bound on `slope y + bend y^2` over `|y| <= 1`."""
    if bend < 0 and abs(slope) < -2 * bend:
        return -(slope**2) / (4 * bend)
    return abs(slope) + bend.max(arb(0))
