"""Divergences of cells, and of one count, by ball arithmetic, so that the FFT has no part in them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from flint import arb, arb_poly

from optdp.amplification.counts import CountSetting, pair_of
from optdp.amplification.randomizers import Cells
from optdp.numbers.exact import Number, ball, precision, to_fraction
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


def count_delta_sum(setting: CountSetting, epsilon: Number, reverse: bool = False, bits: int = 512) -> arb:
    """`delta(epsilon)` of one count, summed over all counts with so many `bits`; meant for `n` in the thousands."""
    pair = pair_of(setting.eps0, setting.k, to_fraction(epsilon, "epsilon"), reverse, bits)
    if pair is None:
        return arb(0)
    a, b = (setting.n - 1 - setting.n_x0, setting.n_x0) if reverse else (setting.n_x0, setting.n - 1 - setting.n_x0)
    with precision(pair.bits):
        law = arb_poly([pair.not_t, pair.t]) ** a * arb_poly([pair.not_f, pair.f]) ** b
        masses = [arb(0), *law.coeffs(), arb(0)]
        terms = (pair.A * masses[s] - pair.B * masses[s + 1] for s in range(a + b + 2))
        return sum((term.max(arb(0)) for term in terms), arb(0))
