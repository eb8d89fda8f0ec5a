"""The iterative Bayesian update: it finds the maximum of the likelihood, and its answer is an exact law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from optdp import Population, ProblemError, iterative_bayesian_update
from optdp.people.learn import to_grid, update
from tests.people.likelihood import log_likelihood


def geometric_channel(size, q):
    """Geometric noise clamped to the range."""
    x = np.arange(size)
    table = (1 - q) / (1 + q) * q ** np.abs(np.subtract.outer(x, x))
    table[:, 0], table[:, -1] = q**x / (1 + q), q ** x[::-1] / (1 + q)
    return table


def random_channel(seed, inputs, outputs):
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), size=inputs)


def test_a_known_law_is_recovered_from_exact_counts():
    law = np.array([0.5, 0.25, 0.125, 0.0625, 0.0625])
    channel = geometric_channel(5, 0.3)
    found = iterative_bayesian_update(channel, 1e6 * law @ channel, tolerance=1e-13)
    assert np.abs(np.array(found, dtype=float) - law).max() < 1e-5


def test_a_known_law_is_recovered_from_samples():
    law = np.array([0.6, 0.3, 0.1])
    channel = geometric_channel(3, 0.5)
    counts = np.random.default_rng(7).multinomial(1_000_000, law @ channel)
    found = iterative_bayesian_update(channel, counts)
    assert np.abs(np.array(found, dtype=float) - law).max() < 0.01


def test_without_noise_the_estimate_is_the_shares():
    found = iterative_bayesian_update(np.eye(4), [1, 2, 0, 5])
    assert [float(value) for value in found] == pytest.approx([1 / 8, 2 / 8, 0, 5 / 8])


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None)
def test_the_likelihood_never_falls_and_the_shortfall_is_true(seed, inputs, outputs):
    channel = random_channel(seed, inputs, outputs)
    counts = np.random.default_rng(seed + 1).integers(1, 100, outputs).astype(float)
    law = np.full(inputs, 1 / inputs)
    best = log_likelihood(iterative_bayesian_update(channel, counts, 3000), channel, counts)
    before = log_likelihood(law, channel, counts)
    for _ in range(30):
        new, shortfall = update(law, channel, counts)
        assert best <= before + counts.sum() * (shortfall + 1e-12)
        after = log_likelihood(new, channel, counts)
        assert after >= before - 1e-12 * counts.sum()
        law, before = new, after


@pytest.mark.parametrize("seed", range(5))
def test_a_direct_convex_solve_agrees(seed):
    channel = random_channel(seed, 4, 6)
    counts = np.random.default_rng(seed + 100).integers(0, 200, 6).astype(float)
    shares = counts / counts.sum()

    def loss(law):
        return -float(shares @ np.log(np.maximum(law @ channel, 1e-12)))

    def slope(law):
        return -(channel @ (shares / np.maximum(law @ channel, 1e-12)))

    direct = minimize(
        loss,
        np.full(4, 0.25),
        jac=slope,
        method="SLSQP",
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda law: law.sum() - 1, "jac": lambda law: np.ones(4)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    found = np.array(iterative_bayesian_update(channel, counts, 200_000, 1e-10), dtype=float)
    assert loss(found) == pytest.approx(direct.fun, abs=1e-8)
    assert np.abs(found - direct.x).max() < 1e-3


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
@settings(deadline=None)
def test_the_result_is_an_exact_law(seed, inputs):
    channel = random_channel(seed, inputs, 5)
    law = iterative_bayesian_update(channel, [3, 0, 1, 4, 1], iterations=20)
    assert sum(law) == 1
    assert min(law) >= 0
    assert all(2**53 % value.denominator == 0 for value in law)
    assert Population.iid(3, law).largest == inputs - 1


def test_the_grid_gives_the_remainder_to_the_largest():
    third = to_grid(np.array([1 / 3, 1 / 3, 1 / 3]))
    assert sum(third) == 1
    assert third[1] == third[2] == Fraction(round(2**53 * Fraction(1 / 3)), 2**53)
    assert third[0] == 1 - 2 * third[1]
    assert to_grid(np.array([1e-300, 1.0])) == (0, 1)


def test_an_output_that_hardly_ever_happens():
    """A column of subnormal numbers neither overflows nor loses its say."""
    channel = [[1.0, 0.0, 0.0], [0.0, 1.0, 5e-321]]
    assert iterative_bayesian_update(channel, [1, 0, 1]) == (Fraction(1, 2), Fraction(1, 2))


def test_impossible_is_infinitely_unlikely():
    assert log_likelihood([1, 0], np.eye(2), [1, 1]) == -math.inf


@pytest.mark.parametrize(
    ("channel", "observed", "message"),
    [
        ([[0.5, 0.5], [1.2, -0.2]], [1, 1], "at least 0. Found -0.2 for input 1, output 1"),
        ([[0.5, math.nan], [1, 0]], [1, 1], "Found nan for input 0, output 1"),
        ([[0.5, 0.5], [0.5, 0.4]], [1, 1], r"row 1 is off by -0\.1"),
        ([[0.5, 0.5], [0.5]], [1, 1], "rows of one length"),
        ([0.5, 0.5], [1, 1], "a row for each input"),
        ([], [], "a row for each input"),
        ([[0.5, 0.5]], [1, -1], "Found -1.0 for output 1"),
        ([[0.5, 0.5]], [math.nan, 1], "Found nan for output 0"),
        ([[0.5, 0.5]], [math.inf, 1], "Found inf for output 0"),
        ([[0.5, 0.5]], [0, 0], "at least one observation"),
        ([[0.5, 0.5]], [1, 1, 1], "one count for each output of the channel, 2. Found 3"),
        ([[0.5, 0.5]], [[1, 1]], "a list of counts"),
        ([[0.5, 0.5, 0], [1, 0, 0]], [1, 0, 4], "output 2 was seen 4 times, which no input can produce"),
        ([["a", "b"]], [1, 1], "must hold numbers"),
    ],
)
def test_bad_input(channel, observed, message):
    with pytest.raises(ProblemError, match=message):
        iterative_bayesian_update(channel, observed)


@pytest.mark.parametrize(
    "options",
    [
        {"iterations": 0},
        {"iterations": 1.5},
        {"iterations": math.inf},
        {"tolerance": -1},
        {"tolerance": math.nan},
    ],
)
def test_bad_options(options):
    with pytest.raises(ProblemError, match=r"iterations|tolerance"):
        iterative_bayesian_update(np.eye(2), [1, 1], **options)
