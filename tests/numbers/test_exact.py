"""Bounds of exponentials, logarithms and figures against series and long division."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from optdp.numbers.exact import decimal_down, decimal_up, exp_bounds, figure, log_upper
from tests import exact_plan_checker as second


@pytest.mark.parametrize("epsilon", ["0", "1e-9", "0.3", "1", "7/3", "40", "100", "-0.3", "-12"])
def test_exponentials_lie_between_their_bounds_and_these_are_close(epsilon: str) -> None:
    x = Fraction(epsilon)
    low, high = exp_bounds(x)
    below, above = second.exp_bounds(x)
    assert low <= above
    assert below <= high
    assert 0 <= high - low <= Fraction(1, 2**190)
    for bits in (8, 64):
        coarse = exp_bounds(x, bits)
        assert coarse[0] <= low <= high <= coarse[1]
        assert coarse[1] - coarse[0] <= Fraction(2, 2**bits)
        assert all((bound * 2**bits).denominator == 1 for bound in coarse)


def test_logarithms_are_bounded_from_above_and_closely() -> None:
    for ratio in (Fraction(1), Fraction(3, 2), Fraction(10**30 + 1, 10**30), Fraction(2**200)):
        found = log_upper(ratio)
        assert second.exp_bounds(found)[1] >= ratio
        assert found < Fraction(1, 2**150) or second.exp_bounds(found - Fraction(1, 2**150))[0] <= ratio


def test_figures_are_rounded_up_to_thirty_decimals() -> None:
    random = Random(4)
    for _ in range(200):
        value = Fraction(random.randint(-(10**9), 10**9), random.randint(1, 10**40))
        whole, rest = divmod(value.numerator * 10**30, value.denominator)
        assert figure(value) == Fraction(whole + (rest > 0), 10**30)
        assert Fraction(decimal_down(value, 30)) <= value <= figure(value) == Fraction(decimal_up(value, 30))
