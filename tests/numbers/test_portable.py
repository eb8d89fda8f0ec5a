"""Sums and powers in a fixed order: as near to the exact ones as any, and where nothing is rounded exactly them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from optdp.numbers.exact import precision
from optdp.numbers.ordered import (
    cholesky,
    cholesky_solve,
    dot,
    exps,
    geometric,
    gram,
    log_sums,
    logs,
    outer_sum,
    powers,
    slide,
    times,
)

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


def wild(*shape: int) -> np.ndarray:
    """Numbers of all sizes and signs."""
    chance = np.random.default_rng(shape[0])
    return chance.normal(size=shape) * 10.0 ** chance.integers(-9, 9, size=shape)


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (200, 12)])
def test_a_gram_matrix_is_near_the_exact_one_and_the_same_in_any_order(shape: tuple[int, int]) -> None:
    matrix = wild(*shape)
    found = gram(matrix)
    for i, one in enumerate(matrix.T):
        for j, other in enumerate(matrix.T):
            exact = sum((Fraction(a) * Fraction(b) for a, b in zip(one, other, strict=True)), Fraction(0))
            largest = Fraction(abs(one).max()) * Fraction(abs(other).max())
            assert abs(Fraction(found[i, j]) - exact) <= (len(matrix) * Fraction(2) ** -52) * largest
    for seed in range(20):  # BLAS adds the terms in another order
        assert (gram(np.random.default_rng(seed).permutation(matrix)) == found).all()


@pytest.mark.parametrize("size", [1, 5, 48, 130])
def test_cholesky(size: int) -> None:
    rows = whole(size + 3, size) + 60 * np.eye(size + 3, size)
    matrix = rows.T @ rows
    scale = 1 / np.sqrt(np.diag(matrix))
    matrix = matrix * scale[:, None] * scale
    factor, right = cholesky(matrix), whole(size)
    assert (factor == np.tril(factor)).all()
    assert np.abs(factor - np.linalg.cholesky(matrix)).max() < 1e-13
    assert np.abs(matrix @ cholesky_solve(factor, right) - right).max() < 1e-9
    matrix[-1, -1] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(matrix)


@given(st.floats(-700, 700))
def test_exponentials(value: float) -> None:
    with precision():
        assert abs(arb(float(exps(np.array([value]))[0])) / arb(value).exp() - 1) < 1e-15


@given(st.floats(1e-300, 1e300))
def test_logarithms(value: float) -> None:
    with precision():
        exact = arb(value).log()
        assert abs(arb(float(logs(np.array([value]))[0])) - exact) < 4e-16 * (1 + abs(exact))


@given(st.lists(st.floats(-600, 600), min_size=1, max_size=40))
def test_sums_of_exponentials(values: list[float]) -> None:
    total = arb(0)
    with precision():
        for value, found in zip(values, log_sums(np.array(values)).tolist(), strict=True):
            total += arb(value).exp()
            assert abs(arb(found) - total.log()) < 1e-14 * (1 + abs(total.log()))


def test_nothing_has_no_logarithm() -> None:
    nothing = -np.inf
    assert exps(np.array([nothing, -800.0, 0.0])).tolist() == [0.0, 0.0, 1.0]
    assert logs(np.array([0.0, 1.0])).tolist() == [nothing, 0.0]
    assert log_sums(np.array([nothing, nothing, 3.0])).tolist() == [nothing, nothing, 3.0]
