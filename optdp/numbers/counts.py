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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import acb, arb, arb_poly

from optdp.errors import ProblemError
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


@dataclass(frozen=True, init=False)
class CountSetting:
    """`n` people who answer by k-ary randomized response with `eps0`; of the others, `n_x0` hold `x0`."""

    n: int
    n_x0: int
    eps0: Fraction
    k: int

    def __init__(self, n: int, n_x0: int, eps0: Number, k: int = 2) -> None:
        _whole("n", n, 1, LARGEST)
        _whole("n_x0", n_x0, 0, n - 1)
        _whole("k", k, 2, LARGEST)
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "n_x0", n_x0)
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "eps0", to_fraction(eps0, "eps0"))
        if not Fraction(1, 10**12) <= self.eps0 <= 1000:
            raise ProblemError(f"eps0 must lie between 1e-12 and 1000. Found {eps0}. Write the local epsilon.")


def count_delta(setting: CountSetting, epsilon: Number, reverse: bool = False) -> Enclosure:
    """The exact `delta(epsilon)` of the count, to a relative 1e-13; `reverse` is from `x1` to `x0`."""
    return Enclosure.of(count_delta_ball(setting, epsilon, reverse))


def count_delta_ball(setting: CountSetting, epsilon: Number, reverse: bool = False) -> arb:
    """The exact `delta(epsilon)` of the count as a ball of 44 bits or more, for any `n`; exactly 0 where it is zero."""
    eps = _level(epsilon)
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


def count_delta_sum(setting: CountSetting, epsilon: Number, reverse: bool = False, bits: int = 512) -> arb:
    """The same `delta(epsilon)` summed over all counts in a precision of `bits`; meant for `n` in the thousands."""
    pair = pair_of(setting.eps0, setting.k, _level(epsilon), reverse, bits)
    if pair is None:
        return arb(0)
    a, b = _others(setting, reverse)
    with precision(pair.bits):
        law = arb_poly([pair.not_t, pair.t]) ** a * arb_poly([pair.not_f, pair.f]) ** b
        masses = [arb(0), *law.coeffs(), arb(0)]
        terms = (pair.A * masses[s] - pair.B * masses[s + 1] for s in range(a + b + 2))
        return sum((term.max(arb(0)) for term in terms), arb(0))


def delta_is_zero(setting: CountSetting, epsilon: Number, reverse: bool = False) -> bool:
    """Whether `delta(epsilon)` is exactly zero: `epsilon >= eps0`, or in reverse `e^epsilon >= (1-f)/(1-t)`."""
    return pair_of(setting.eps0, setting.k, _level(epsilon), reverse, 128) is None


@dataclass(frozen=True)
class Pair:
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


def _whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ProblemError(f"{name} must be a whole number from {least} to {most}. Found {value!r}.")


def _level(epsilon: Number) -> Fraction:
    value = to_fraction(epsilon, "epsilon")
    if value < 0:
        raise ProblemError(f"epsilon must not be negative. Found {epsilon}. Write a number from 0 on.")
    return value


def _others(setting: CountSetting, reverse: bool) -> tuple[int, int]:
    """How many others count with `t` and with `f`."""
    a, b = setting.n_x0, setting.n - 1 - setting.n_x0
    return (b, a) if reverse else (a, b)


@lru_cache(maxsize=64)
def pair_of(eps0: Fraction, k: int, epsilon: Fraction, reverse: bool, bits: int) -> Pair | None:
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
                    return Pair(A, B, growth, not_low, low, not_high, high, (B / A).log(), work)
                B = ((growth + 1) * gain + (k - 1) * growth) / whole
                return Pair(A, B, growth, high, not_high, low, not_low, (B / A).log(), work)
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


def circle_of(pair: Pair, a: int, b: int, digits: float, lift: float = 4.0) -> Circle:
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


def tilted(pair: Pair, r: arb) -> tuple[arb, arb]:
    """`t` and `f` after a factor `r` for every one counted."""
    return pair.t * r / (pair.not_t + pair.t * r), pair.f * r / (pair.not_f + pair.f * r)


def within(size: arb) -> arb:
    """The ball of all numbers of at most this size."""
    return arb(0, size.upper())


def _contour(pair: Pair, a: int, b: int, digits: float) -> arb:
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


def _sums(pair: Pair, circle: Circle, a: int, b: int, places: range) -> list[arb]:
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


def _spread(pair: Pair, r: arb, a: int, b: int) -> float:
    """About the standard deviation of the count after a factor `r` for every one counted."""
    high, low = (float(part) for part in tilted(pair, r))
    return max(math.sqrt(a * high * (1 - high) + b * low * (1 - low)), 1e-6)


def _power(pair: Pair, z: arb, a: int, b: int) -> arb:
    """`G(z)`."""
    return (pair.not_t + pair.t * z) ** a * (pair.not_f + pair.f * z) ** b


def _reach(pair: Pair, rho: arb, a: int, b: int) -> arb:
    """`C(rho)`."""
    return _power(pair, rho, a, b) * (pair.A * rho).max(pair.growth)
