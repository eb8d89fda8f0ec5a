"""Estimators of shares: closed forms against matrices, projection and likelihood against solvers, errors simulated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from optdp import iterative_bayesian_update
from optdp.shuffle.estimators import ESTIMATORS, KRRChannel, invert, likely, project, standard_errors
from tests.people.likelihood import log_likelihood


def table(channel: KRRChannel) -> NDArray[np.float64]:
    """Randomized response as a table of probabilities."""
    share = float(channel.gamma)
    return (1.0 - share) * np.eye(channel.k) + share / channel.k


@given(st.lists(st.integers(0, 50), min_size=2, max_size=9).filter(sum), st.fractions(0, Fraction(19, 20)))
def test_randomized_response_needs_no_matrix(counts: list[int], gamma: Fraction) -> None:
    channel = KRRChannel(len(counts), gamma)
    matrix, n = table(channel), sum(counts)
    inverse = np.linalg.inv(matrix)
    inverted = counts @ inverse / n
    assert invert(channel, counts) == pytest.approx(inverted, abs=1e-9)
    variances = np.maximum(counts @ inverse**2 - n * inverted, 0.0)
    assert standard_errors(channel, counts) == pytest.approx(np.sqrt(variances) / n, abs=1e-6)
    closed = likely(channel, counts)
    assert closed.min() >= 0
    assert closed.sum() == pytest.approx(1, abs=1e-12)
    # stationary: no value's multiplier is above 1, the rule by which the iterative Bayesian update stops
    chances = closed @ matrix
    seen = np.array(counts) > 0
    factors = matrix[:, seen] @ (np.array(counts)[seen] / sum(counts) / chances[seen])
    assert factors.max() <= 1 + 1e-9
    best = log_likelihood(closed, matrix, counts)
    iterated = np.array([float(share) for share in iterative_bayesian_update(matrix, np.array(counts, dtype=float))])
    assert best >= log_likelihood(iterated, matrix, counts) - 1e-9 * sum(counts)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_projection(law: list[float]) -> None:
    point = project(np.array(law))
    assert point.min() >= 0
    assert point.sum() == pytest.approx(1, abs=1e-12)
    # nearest: the gap to the law makes no acute angle with any direction into the simplex
    gap = np.array(law) - point
    assert (gap - gap @ point).max() <= 1e-9


def test_projection_by_a_solver() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        law = rng.normal(0.2, 0.5, 6)
        rule = {"type": "eq", "fun": lambda x: x.sum() - 1}
        found = minimize(lambda x, law=law: ((x - law) ** 2).sum(), np.full(6, 1 / 6), bounds=[(0, None)] * 6,
                         constraints=[rule], tol=1e-12)  # fmt: skip
        assert project(law) == pytest.approx(found.x, abs=1e-5)


def test_unbiased_and_standard_errors_hold_for_fixed_data() -> None:
    rng, held, runs = np.random.default_rng(5), np.array([700, 250, 50]), 20_000
    channel = KRRChannel(3, Fraction(1, 3))
    matrix = table(channel)
    counts = sum(rng.multinomial(m, row, runs) for m, row in zip(held, matrix, strict=True))
    estimates = np.array([invert(channel, one) for one in counts])
    truth = held / held.sum()
    spread = estimates.std(axis=0)
    assert (np.abs(estimates.mean(axis=0) - truth) < 4 * spread / np.sqrt(runs)).all()
    said = np.array([standard_errors(channel, one) for one in counts[:4000]])
    assert (said**2).mean(axis=0) == pytest.approx(spread**2, rel=0.06)  # variances of 20,000 runs: 4 of 1 percent
    # brute force: the variance of every person's part
    inverse = np.linalg.pinv(matrix)
    parts = matrix @ inverse**2 - (matrix @ inverse) ** 2
    assert held @ parts / held.sum() ** 2 == pytest.approx(spread**2, rel=0.06)


def test_projection_and_likelihood_are_better() -> None:
    rng, k, n = np.random.default_rng(3), 50, 2000
    law = 0.5 ** np.arange(1, k + 1)
    held, channel = np.floor(n * law).astype(int), KRRChannel(k, Fraction(1, 2))
    held[0] += n - held.sum()
    errors = dict.fromkeys(ESTIMATORS, 0.0)
    for _ in range(20):
        counts = sum(rng.multinomial(m, row) for m, row in zip(held, table(channel), strict=True))
        for name, estimate in ESTIMATORS.items():
            errors[name] += float(np.abs(estimate(channel, counts) - held / n).sum())
    assert errors["projection"] < 0.7 * errors["inversion"]
    assert errors["likelihood"] < 0.7 * errors["inversion"]


def test_many_values_take_no_matrix() -> None:
    k = 100_000
    counts = np.arange(k) % 7
    channel = KRRChannel(k, Fraction(1, 4))
    for estimate in ESTIMATORS.values():
        assert estimate(channel, counts).sum() == pytest.approx(1)
    assert len(standard_errors(channel, counts)) == k
