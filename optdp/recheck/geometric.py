"""Geometric noise `G(k) = (1-q)/(1+q) q^|k|`: its powers of `q`, masses, moments and quotients.

The mass of `G(.-x)` on the outputs `a..b` is `1 - (q^(b-x+1) + q^(x-a+1))/(1+q)` for `x` among them, else `(q^near -
q^far)/(1+q)`. As `|k+d|` and `|k|` differ by at most `|d|`, `G(k) <= q^-|d| G(k+d)`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from .enclosures import Pair
from .verdict import GUARD, MOST_BITS, must, spend


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
