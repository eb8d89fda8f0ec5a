"""What is no finite sum of rationals of a bearable size is enclosed: quotients, exponentials, logarithms.

An enclosure is two integers over one denominator, one not above the truth and one not below. Every term is positive, so
that enclosures stay as narrow as their terms. No floating-point number is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from .verdict import GUARD, must

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


def _exp(x: Fraction) -> tuple[int, int, int]:
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
    low, _, bits = _exp(epsilon)
    return ratio.numerator << bits <= low * ratio.denominator


def log_above(ratio: Fraction | None) -> Fraction | None:
    """At least the logarithm of a ratio of at least 1: `log r <= x - 1 + r e^-x` for every `x`, and Newton's method."""
    if ratio is None or ratio == 1:
        return None if ratio is None else Fraction(0)
    over = ratio - 1
    unit = 1 << (200 + max(0, over.denominator.bit_length() - over.numerator.bit_length()))
    x = Fraction("0.69315") * (ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1)
    while True:
        low, _, bits = _exp(x)
        closer = x - 1 + Fraction(ratio.numerator << bits, low * ratio.denominator)
        closer = Fraction(math.ceil(closer * unit), unit)
        if closer >= x:
            return x
        x = closer


def noise_ratio(epsilon: Fraction) -> Fraction:
    """The `q` of geometric noise at `epsilon`: `e^-epsilon` rounded up to a multiple of a power of two."""
    places = 64 + math.ceil(epsilon * Fraction("1.4427"))
    low, high, bits = _exp(epsilon)
    least, most = (-(-(1 << (bits + places)) // value) for value in (high, low))
    must(least == most, "epsilon must be a number whose exponential can be rounded", str(epsilon)[:40])
    return Fraction(most, 1 << places)
