"""The Gaussian privacy profile against error functions in ball arithmetic."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from flint import arb

from optdp.numbers.divergence import gaussian_delta, gaussian_sigma
from optdp.numbers.exact import ball, precision

BITS = 2000


def profile(sigma: Fraction, epsilon: Fraction) -> arb:
    """`Phi(1/(2 sigma) - epsilon sigma) - e^epsilon Phi(-1/(2 sigma) - epsilon sigma)`."""
    s, e, root = ball(sigma), ball(epsilon), arb(2).sqrt()

    def phi(x: arb) -> arb:
        return (-x / root).erfc() / 2

    return phi(1 / (2 * s) - e * s) - e.exp() * phi(-1 / (2 * s) - e * s)


def test_the_profile_is_an_integral() -> None:
    """The oracle itself: the positive part of the two densities' difference, summed up plainly."""
    for sigma, epsilon in ((1.0, 0.5), (0.7, 1.0), (3.0, 0.1)):
        step = 1e-3
        total = 0.0
        for i in range(-20000, 20000):
            x = i * step
            one, two = (math.exp(-(((x - mean) / sigma) ** 2) / 2) / sigma for mean in (0.0, 1.0))
            total += max(0.0, one - math.exp(epsilon) * two) * step / math.sqrt(2 * math.pi)
        with precision(BITS):
            assert float(profile(Fraction(sigma), Fraction(epsilon))) == pytest.approx(total, abs=1e-6)


def relative_excess(sigma: float, epsilon: float) -> float:
    """How far above the truth the computed delta is, relative to it."""
    with precision(BITS):
        truth = profile(Fraction(sigma), Fraction(epsilon))
        return float(arb(gaussian_delta(sigma, epsilon)) / truth - 1)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0])
def test_delta_is_tight_and_not_below(epsilon: float) -> None:
    for sigma in (0.05, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0):
        if (found := gaussian_delta(sigma, epsilon)) > 1e-30:
            assert 0.0 <= relative_excess(sigma, epsilon) <= (1e-12 if found > 1e-5 else 1e-10)


def test_delta_is_never_below() -> None:
    """Also where it is as small as floats can be, and where two nearly equal terms cancel."""
    rng = random.Random(1)
    for _ in range(1500):
        epsilon = rng.choice([rng.uniform(0, 5), rng.uniform(0, 30), 10 ** rng.uniform(-4, 1.4)])
        sigma = 10 ** rng.uniform(-2, 2)
        if gaussian_delta(sigma, epsilon) > 1e-290:
            assert 0.0 <= relative_excess(sigma, epsilon) < 1e-6


def test_delta_is_never_zero_where_the_truth_is_not() -> None:
    for sigma, epsilon in ((10.0, 5.0), (100.0, 1.0), (1.0, 40.0)):
        assert gaussian_delta(sigma, epsilon) > 0.0


def test_delta_falls_with_sigma_and_epsilon() -> None:
    sigmas = [0.1 * 1.3**i for i in range(20)]
    for epsilon in (0.0, 0.3, 2.0):
        deltas = [gaussian_delta(sigma, epsilon) for sigma in sigmas]
        assert deltas == sorted(deltas, reverse=True)
    for sigma in (0.5, 2.0):
        deltas = [gaussian_delta(sigma, 0.2 * i) for i in range(30)]
        assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("delta", [1e-100, 1e-30, 1e-10, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 30.0, 40.0])
def test_sigma_is_private_and_the_least(epsilon: float, delta: float) -> None:
    sigma = gaussian_sigma(epsilon, delta)
    with precision(BITS):
        wanted = ball(Fraction(delta))
        assert profile(Fraction(sigma), Fraction(epsilon)) <= wanted
        assert profile(Fraction(sigma) * (1 - Fraction(1, 10**9)), Fraction(epsilon)) > wanted


@pytest.mark.parametrize("delta", [1e-4, 0.1])
def test_sigma_at_epsilon_zero(delta: float) -> None:
    """Then delta is a total variation, `2 Phi(1/(2 sigma)) - 1`, about `1/(sigma sqrt(2 pi))`."""
    sigma = gaussian_sigma(0.0, delta)
    with precision(BITS):
        assert profile(Fraction(sigma), Fraction(0)) <= ball(Fraction(delta))
    assert sigma == pytest.approx(1.0 / (delta * math.sqrt(2.0 * math.pi)), rel=0.01)


@pytest.mark.parametrize("delta", [1e-30, 1e-100])
def test_sigma_at_tiny_epsilon_and_delta(delta: float) -> None:
    sigma = gaussian_sigma(1e-6, delta)
    with precision(BITS):
        assert profile(Fraction(sigma), Fraction(1e-6)) <= ball(Fraction(delta))
