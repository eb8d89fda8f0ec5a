"""Divergences of cells by ball arithmetic, so that the FFT has no part in them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from optdp.amplification.family import Cells
from optdp.numbers.exact import ball, precision
from tests.amplification.balls import delta_ball, from_floats

FACTORS = (Fraction(1), Fraction(9, 8), Fraction(3, 2), Fraction(5, 2))
"""Values of `e^epsilon` to try."""


def log(number: Fraction) -> float:
    with precision(200):
        return float(ball(number).log())


def delta(found: Cells, n: int, factor: Fraction) -> float:
    """The divergence of cells at `e^epsilon = factor`."""
    with precision(400):
        return float(delta_ball(from_floats(found), n, ball(factor).log()).mid())


def largest(every: Iterable[Cells], n: int, factor: Fraction) -> float:
    return max((delta(found, n, factor) for found in every), default=0.0)
