"""Shares of geometric noise: SGDL, the difference of two negative binomials.

`Pr[x] = C sum over k of b(k) b(k+x)`, `b(k+1)/b(k) = q (beta+k) / (k+1)`, `1/C = (sum of b)^2`. From some `k` on these
ratios are at most `r < 1`, which bounds what a finite sum leaves out. For `beta <= 1` they are at most `q`, so that
`Pr[x+1] <= q Pr[x]`. Its generating function `g` satisfies `(1 + q^2 - q(z+1/z)) z g' = beta q (z-1/z) g`. Compared at
`z^x` and summed over `x >= 1` this says `(1-q)^2 E|X| = 2q (beta Pr[0] - (1-beta) Pr[1])`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from operator import mul

from .enclosures import Pair
from .geometric import bits_lost, mean_absolute
from .verdict import GUARD, MOST_BITS, must, spend


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
