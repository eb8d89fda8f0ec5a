"""Sums and powers in a fixed order: as near to the exact ones as any, and where nothing is rounded exactly them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdp.numbers.ordered import dot, geometric, outer_sum, powers, slide, times

SIZES = [(1, 1, 1), (3, 7, 5), (2, 200, 9), (40, 3, 40)]


def whole(*shape: int) -> np.ndarray:
    """Small integers, whose sums and products are exact in any order."""
    return np.random.default_rng(shape[0]).integers(-50, 50, size=shape).astype(np.float64)


@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_products_of_whole_numbers_are_those_of_numpy(rows: int, inner: int, columns: int) -> None:
    one, other = whole(rows, inner), whole(inner, columns)
    assert (times(one, other) == one @ other).all()
    assert (times(one, other[:, 0]) == one @ other[:, 0]).all()
    assert (outer_sum(one.T, other) == one @ other).all()
    assert dot(one[0], other[:, 0]) == one[0] @ other[:, 0]


@pytest.mark.parametrize(("length", "kernel"), [(1, 1), (9, 9), (30, 4), (30, 27)])
def test_slide_is_a_convolution(length: int, kernel: int) -> None:
    values, shares = whole(length), whole(kernel)
    assert slide(values, shares).tolist() == np.convolve(values, shares, "valid").tolist()


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60))
def test_a_sum_is_near_the_exact_one(values: list[float]) -> None:
    exact = sum((Fraction(value) ** 2 for value in values), Fraction(0))
    found = dot(np.array(values), np.array(values))
    assert abs(Fraction(found) - exact) <= 70 * Fraction(2) ** -53 * exact + Fraction(len(values), 10**300)


@given(st.floats(0.5, 1.0), st.integers(0, 1500))
def test_powers(value: float, power: int) -> None:
    found = float(powers(np.array([value]), power)[0])
    assert math.isclose(found, float(Fraction(value) ** power), rel_tol=1e-12, abs_tol=1e-300)


@pytest.mark.parametrize("count", [1, 2, 400])
def test_geometric(count: int) -> None:
    assert geometric(0.5, count).tolist() == [2.0**-k for k in range(count)]
