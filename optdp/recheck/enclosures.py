"""What is not exact: quotients of long numbers, exponentials, logarithms, and noise.

An enclosure is two integers over one denominator, one not above the truth and one not below. Every term is positive, so
that enclosures stay as narrow as their terms. No floating-point number is used.

**Geometric noise**, `G(k) = (1-q)/(1+q) q^|k|`. The mass of `G(.-x)` on the outputs `a..b` is `1 - (q^(b-x+1) +
q^(x-a+1))/(1+q)` for `x` among them, else `(q^near - q^far)/(1+q)`. As `|k+d|` and `|k|` differ by at most `|d|`, `G(k)
<= q^-|d| G(k+d)`.

**Shares of geometric noise**: SGDL, the difference of two negative binomials.

`Pr[x] = C sum over k of b(k) b(k+x)`, `b(k+1)/b(k) = q (beta+k) / (k+1)`, `1/C = (sum of b)^2`. From some `k` on these
ratios are at most `r < 1`, which bounds what a finite sum leaves out. For `beta <= 1` they are at most `q`, so that
`Pr[x+1] <= q Pr[x]`. Its generating function `g` satisfies `(1 + q^2 - q(z+1/z)) z g' = beta q (z-1/z) g`. Compared at
`z^x` and summed over `x >= 1` this says `(1-q)^2 E|X| = 2q (beta Pr[0] - (1-beta) Pr[1])`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from operator import mul

from .verdict import GUARD, MOST_BITS, must, spend

Pair = tuple[int, int]
"""An enclosure: two integers, the truth times a known denominator between them."""
Values = Sequence[Pair]


def _largest(one: Values, other: Values) -> Fraction | None:
    """An upper bound of the largest quotient of `one` over `other`; None if it is not proved to be finite."""
    top, bottom = 0, 1
    for (_, a), (b, _) in zip(one, other, strict=True):
        if a:
            if b <= 0:
                return None
            spare = max(0, b.bit_length() - 2 * GUARD)  # of long integers the leading bits decide
            a, b = -(-a >> spare), b >> spare
            if a * bottom > top * b:
                top, bottom = a, b
    return Fraction(top, bottom)


def both_ways(one: Values, other: Values, scale: Fraction = Fraction(1)) -> Fraction | None:
    """The same in both directions, where `one` must be multiplied by `scale` to compare, and at least 1."""
    up, down = _largest(one, other), _largest(other, one)
    return None if up is None or down is None else max(Fraction(1), up * scale, down / scale)


def worst_of(ratios: Sequence[Fraction | None]) -> Fraction | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known, default=Fraction(1)) if len(known) == len(ratios) else None


def exponential(x: Fraction) -> tuple[int, int, int]:
    """Integers below and above `e^x 2^bits` for `x >= 0`, and `bits`: a series, squared back up."""
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)  # now x / 2^halvings < 1/2
    tiny = max(0, x.denominator.bit_length() - x.numerator.bit_length()) if x else 0
    bits = GUARD + 2 * halvings + tiny
    small = (x.numerator << bits) // (x.denominator << halvings)
    low = term = 1 << bits
    k = 0
    while term:
        k += 1
        term = term * small // (k << bits)
        low += term
    high = 1 << bits  # the same with every term rounded up; the rest of the series is below its last term
    last, k = 1 << bits, 0
    while last > 1:
        k += 1
        last = -(-last * (small + 1) // (k << bits))
        high += last
    high += last
    for _ in range(halvings):
        low, high = low * low >> bits, (high * high >> bits) + 1
    return low, high, bits


def within(ratio: Fraction | None, epsilon: Fraction) -> bool:
    """Whether `ratio <= e^epsilon` is proved; None is an infinite ratio."""
    if ratio is None:
        return False
    if ratio <= 1 or epsilon >= ratio.numerator.bit_length():  # 2^bits is above the ratio, and e above 2
        return epsilon >= 0
    if epsilon <= 0:
        return False
    low, _, bits = exponential(epsilon)
    return ratio.numerator << bits <= low * ratio.denominator


@lru_cache(maxsize=1024)
def log_above(ratio: Fraction | None) -> Fraction | None:
    """At least the logarithm of a ratio of at least 1: `log r <= x - 1 + r e^-x` for every `x`, and Newton's method."""
    if ratio is None or ratio == 1:
        return None if ratio is None else Fraction(0)
    over = ratio - 1
    unit = 1 << (200 + max(0, over.denominator.bit_length() - over.numerator.bit_length()))
    x = Fraction("0.69315") * (ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1)
    while True:
        low, _, bits = exponential(x)
        closer = x - 1 + Fraction(ratio.numerator << bits, low * ratio.denominator)
        closer = Fraction(math.ceil(closer * unit), unit)
        if closer >= x:
            return x
        x = closer


def noise_ratio(epsilon: Fraction) -> Fraction:
    """The `q` of geometric noise at `epsilon`: `e^-epsilon` rounded up to a multiple of a power of two."""
    places = 64 + math.ceil(epsilon * Fraction("1.4427"))
    low, high, bits = exponential(epsilon)
    least, most = (-(-(1 << (bits + places)) // value) for value in (high, low))
    must(least == most, "epsilon must be a number whose exponential can be rounded", str(epsilon)[:40])
    return Fraction(most, 1 << places)


# ---------------------------------------------------------------------- geometric noise


def bits_lost(q: Fraction) -> int:
    """At least 64 times the binary logarithm of `1/q`, by at most one too much."""
    return (q.denominator**64 // q.numerator**64).bit_length()


class Geometric:
    """`G(k) = (1-q)/(1+q) q^|k|` in enclosures over `2^bits`, which are narrow for `|k|` up to `reach`."""

    def __init__(self, q: Fraction, reach: int) -> None:
        self.p, self.r = q.numerator, q.denominator
        near_one = (self.r // (self.r - self.p)).bit_length()
        self.bits = GUARD + 128 + 2 * near_one + reach * bits_lost(q) // 64
        must(self.bits <= MOST_BITS, f"Noise must be enclosed in {MOST_BITS} bits", self.bits)
        self._powers: dict[int, Pair] = {0: (1 << self.bits, 1 << self.bits)}

    def power(self, k: int) -> Pair:
        """`q^k`, by squaring."""
        known = self._powers.get(k)
        if known is None:
            spend(2, self.bits * math.isqrt(self.bits // 30 + 1))
            low, high = self.power(k // 2)
            low, high = low * low >> self.bits, -(-high * high >> self.bits)
            if k % 2:
                low, high = low * self.p // self.r, -(-high * self.p // self.r)
            known = self._powers[k] = low, high
        return known

    def at(self, k: int) -> Pair:
        """`G(k)`."""
        low, high = self.power(abs(k))
        top, bottom = self.r - self.p, self.r + self.p
        return low * top // bottom, -(-high * top // bottom)

    def inside(self, x: int, low: int, high: int) -> Pair:
        """`c(x)`: the mass of `G(. - x)` on `low..high`."""
        bottom = self.r + self.p
        if low <= x <= high:
            one, two = self.power(high - x + 1), self.power(x - low + 1)
            whole = 1 << self.bits
            return whole + (-(one[1] + two[1]) * self.r // bottom), whole - (one[0] + two[0]) * self.r // bottom
        near, far = (low - x, high - x + 1) if x < low else (x - high, x - low + 1)
        one, two = self.power(near), self.power(far)
        return (one[0] - two[1]) * self.r // bottom, -(-(one[1] - two[0]) * self.r // bottom)

    def beyond(self, d: int, power: int) -> Pair:
        """`sum over k >= d of k^power G(k)`, `d >= 1`, by the closed forms of `sum k q^k` and `sum k^2 q^k`."""
        low, high = self.power(d)
        p, r = self.p, self.r
        if power == 1:
            top, bottom = (d * r - (d - 1) * p) * r, (r + p) * (r - p)
        else:
            top = (d * d * r * r + (1 + 2 * d - 2 * d * d) * p * r + (d - 1) ** 2 * p * p) * r
            bottom = (r + p) * (r - p) ** 2
        return low * top // bottom, -(-high * top // bottom)

    def outside(self, x: int, low: int, high: int, power: int) -> int:
        """At least `2^bits sum over s outside low..high of |s-x|^power G(s-x)`."""
        if low <= x <= high:
            return self.beyond(x - low + 1, power)[1] + self.beyond(high - x + 1, power)[1]
        near, far = (low - x, high - x + 1) if x < low else (x - high, x - low + 1)
        return 2 * self.beyond(1, power)[1] - self.beyond(near, power)[0] + self.beyond(far, power)[1]


def mean_absolute(q: Fraction) -> Fraction:
    return 2 * q / (1 - q * q)


def tail_quotient(q: Fraction, steps: int) -> Fraction:
    """`q^-steps`: the quotient of geometric noise for inputs so far apart."""
    must(steps * q.denominator.bit_length() <= MOST_BITS, f"Powers of q must have {MOST_BITS} bits", steps)
    return 1 / q**steps


# ---------------------------------------------------------------------- shares of it


class Shares:
    """`Pr[x]` of SGDL_beta(q) for `x = 0..reach` in enclosures over `2^bits`, narrow relative to its size, or to 1."""

    def __init__(self, beta: Fraction, q: Fraction, reach: int, relative: bool = True) -> None:
        n, d, p, r = beta.numerator, beta.denominator, q.numerator, q.denominator
        must(max(n, d) <= 10**9 and q <= 1 - Fraction(1, 10**9), "q and beta must be of a usual size", str(beta)[:40])
        loss, rise = bits_lost(q), 8 * math.ceil(beta / (1 - q))
        terms = (GUARD // 2 + 20) * 64 // loss + rise  # b(k)^2 is negligible from here on
        length = max(terms + reach, (GUARD + 20) * 64 // loss + rise) + 2
        self.bits = bits = GUARD + 64 + d.bit_length() + (reach * loss // 64 if relative else 0)
        must(bits <= MOST_BITS, f"Noise must be enclosed in {MOST_BITS} bits", bits)
        spend(2 * (length + 2 * terms * (reach + 1)), 2 * bits)
        low, high = [1 << bits], [1 << bits]
        for k in range(length):
            top, bottom = p * (n + k * d), r * d * (k + 1)
            low.append(low[k] * top // bottom)
            high.append(-(-high[k] * top // bottom))

        def ratio(k: int) -> Fraction:
            """No ratio from `b(k)` on is larger."""
            found = max(q, q * (beta + k) / (k + 1))
            must(found < 1, "noise must fall within what is written out", str(beta)[:40])
            return found

        left = 1 / (1 - ratio(length))
        total_low, total_high = sum(low), sum(high) + math.ceil(high[length] * left)
        left = 1 / (1 - ratio(terms) ** 2)
        self.below: list[int] = []
        self.above: list[int] = []
        for x in range(reach + 1):
            below = sum(map(mul, low[:terms], low[x : x + terms]))
            above = sum(map(mul, high[:terms], high[x : x + terms])) + math.ceil(high[terms] * high[terms + x] * left)
            self.below.append((below << bits) // total_high**2)
            self.above.append(-((-above << bits) // total_low**2))

    def at(self, k: int) -> Pair:
        return self.below[abs(k)], self.above[abs(k)]


def share_mean(beta: Fraction, q: Fraction) -> Fraction:
    """At least the mean absolute value of SGDL_beta(q)."""
    if beta == 1:
        return mean_absolute(q)
    law = Shares(beta, q, 1)
    zero, one = law.above[0], law.below[1] if beta < 1 else law.above[1]
    centre = (beta * zero - (1 - beta) * one) / (1 << law.bits)
    return centre * 2 * q / ((1 - q) * (1 - q))


def spread_of(beta: Fraction, q: Fraction) -> Fraction:
    """The variance: that of two negative binomials, `beta q / (1-q)^2` each."""
    return 2 * beta * q / (1 - q) ** 2
