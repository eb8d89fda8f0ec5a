"""How much a Mallows shuffle promises: `q`, its dispersion `theta = -log q`, and `alpha = -Delta log q`, in balls."""

from __future__ import annotations

import math
from fractions import Fraction

from optdp.errors import ProblemError
from optdp.math.exact import ball, precision, upper_fraction

MOST_THETA = 700
"""The largest dispersion: beyond it nothing moves anyhow."""


def ratio(alpha: Fraction, largest: int) -> Fraction:
    """The rational `q`, just not below `e^(-alpha / largest)`; 0 if no group can move anything."""
    if not largest:
        return Fraction(0)
    theta = min(alpha / largest, Fraction(MOST_THETA))
    tiny = max(0, theta.denominator.bit_length() - theta.numerator.bit_length())
    bits = 64 + math.ceil(1.4427 * float(theta)) + tiny + largest.bit_length()
    with precision(bits + 128):
        return upper_fraction((-ball(theta)).exp(), bits)


def dispersion(q: Fraction) -> float:
    """`theta = -log q`, accurately also near one; infinite for 0."""
    if not q:
        return math.inf
    return -math.log1p(-float(1 - q)) + 0.0 if 2 * q > 1 else -math.log(q)


def alpha_of(q: Fraction, largest: int) -> Fraction:
    """The alpha of a deployed `q`, rounded up: `-largest log q`."""
    if largest == 0:
        return Fraction(0)
    if q == 0:
        raise ProblemError("Without randomness (q = 0) nothing is promised to groups of two or more.")
    with precision(2048):
        return max(Fraction(0), upper_fraction(-largest * ball(q).log(), 1024))
