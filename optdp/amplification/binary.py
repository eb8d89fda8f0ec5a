"""Shuffled binary randomized response: its exact privacy over all data sets.

With two answers the histogram is the count, so that `delta` is the largest `delta(a)` of one count (see
`optdp.numbers.counts`) over `a = 0..m` others who hold `x0`, `m = n-1`. The way back is `delta(m-a)`.
Mostly one of the two ends is worst, though not always, so that a search proves its answer: it halves `0..m` until no
block of data sets can hold a larger value. Two bounds serve for a block `a1..a2`.

- Fewer others never hide more (data processing): `delta <= ` that of `a1` others with `x0` and `m-a2` without.
- The contour sum of `optdp.numbers.counts`, expanded about the middle `c` of the block. With `u` and `v` the tilted
  probabilities, the best place is `s = a u + (m-a) v + 1 - y` with `|y| < 1`, and with `a = c + x` a point `z` of the
  circle has the exponent `base(z) + x d(z) + y log z`, where

      e^base(z) = (1-t+tz)^c (1-f+fz)^(m-c) z^-(c u + (m-c) v + 1),    d(z) = log (1-t+tz)/(1-f+fz) - (u - v) log z.

  `|e^w - 1 - w - w^2/2| <= |w|^3 e^|w| / 6` leaves a quadratic in `x` and `y`. All data sets have nearly one value
  if `n` is large (`d` is of the third order in `log z`): one block then covers very many of them.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from flint import acb, arb

from optdp.errors import ProblemError
from optdp.numbers.counts import (
    SMALLEST,
    CountSetting,
    Enclosure,
    Pair,
    circle_of,
    count_delta,
    count_delta_ball,
    delta_is_zero,
    pair_of,
    tilted,
)
from optdp.numbers.exact import Number, precision, to_fraction

EXACT = 3000  # up to so many people the search goes down to single data sets, whatever the tolerance
LEAF = 6  # a block of so few data sets is looked at one by one
ENDS = 16  # how many data sets at either end are looked at in any case
BUDGET = 1500  # how many blocks a search bounds; after that the upper bound is what has been proved by then


@dataclass(frozen=True)
class Worst:
    """The largest delta over all data sets lies between `lower` and `upper`; `n_x0` is a data set that has `lower`."""

    lower: float
    upper: float
    n_x0: int


def data_set_delta(n: int, eps0: Number, epsilon: Number, n_x0: int) -> Enclosure:
    """The exact `delta` if `n_x0` of the others hold what the person holds; for the way back take `n-1-n_x0`."""
    return count_delta(CountSetting(n, n_x0, eps0), epsilon)


def binary_delta(n: int, eps0: Number, epsilon: Number, tolerance: float = 1e-4, budget: int = BUDGET) -> Worst:
    """The exact `delta(epsilon)` of shuffled binary randomized response, between bounds a factor `1 + tolerance` apart.

    Up to 3000 people the bounds agree to rounding. If `budget` blocks do not suffice they are wider, and still hold.
    A delta below 1e-300 is not told from zero: `lower = 0`, `upper = 1e-300`.
    """
    if not 0 <= tolerance < math.inf:
        raise ProblemError(f"tolerance must be a number that is not negative. Found {tolerance}.")
    setting, level = CountSetting(n, 0, eps0), to_fraction(epsilon, "epsilon")
    if delta_is_zero(setting, level):
        return Worst(0.0, 0.0, n - 1)
    small = n <= EXACT
    search = _Search(setting, level, 0.0 if small else tolerance)
    search.climb()
    search.prove(max(budget, EXACT) if small else budget)
    bounds = Enclosure.of(search.best), Enclosure.of(search.best.max(search.ceiling))
    return Worst(bounds[0].lower, bounds[1].upper, search.place)


def likely_delta(n: int, eps0: Number, epsilon: Number) -> Worst:
    """A data set that is likely the worst, by climbing and near both ends: `lower` is its delta, no more is proved."""
    setting, level = CountSetting(n, 0, eps0), to_fraction(epsilon, "epsilon")
    if delta_is_zero(setting, level):
        return Worst(0.0, 0.0, n - 1)
    search = _Search(setting, level, 0.0)
    search.climb()
    for a in {*range(min(ENDS, n)), *range(max(0, n - ENDS), n)}:
        search.at(a)
    return Worst(Enclosure.of(search.best).lower, 1.0, search.place)


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
            self.known[a] = value = count_delta_ball(replace(self.setting, n_x0=a), self.epsilon)
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
        fewer = replace(self.setting, n=self.setting.n - (last - first), n_x0=first)
        return value.min(count_delta_ball(fewer, self.epsilon))


def expanded_bound(n: int, eps0: Fraction, epsilon: Fraction, first: int, last: int) -> arb:
    """A bound on `delta` if from `first` to `last` others hold `x0`, by expansion; endless where that is of no use."""
    pair = pair_of(eps0, 2, epsilon, False, 96 + 3 * n.bit_length())
    if pair is None:
        return arb(0)
    with precision(pair.bits):
        return _expanded(pair, first, last, n - 1)


def _expanded(pair: Pair, first: int, last: int, others: int) -> arb:
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
