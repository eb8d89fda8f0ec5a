"""The laws of shared noise: within their own account of the balls of `optdp.numbers.sgdl`, and of their definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from optdp import SGDL
from optdp.numbers.exact import ball, geometric_ratio, precision
from optdp.shuffle.metric.released import NoiseLaw, noise_law, proved_law
from tests.shuffle import brute_force

BETAS = ["1e-6", "0.01", "1/3", "0.999", "1", "1.001", "7.5", "100", "1e4"]
EPSILONS = ["0.001", "0.05", "0.69", "0.7", "0.8", "1", "4", "60"]


def _covers(law: NoiseLaw, truth: SGDL, places: list[int]) -> None:
    """Every logarithm within `error`, no tail below the truth."""
    with precision(128):
        for x in places:
            gap = ball(Fraction(float(law.log_p[x]))) - truth.ball(x).log()
            assert abs(gap) <= law.error, (x, float(gap), law.error)
        for x in (0, law.reach):
            tail = truth.cdf_ball(-1 - x).log()
            assert ball(Fraction(float(law.log_tails[x]))) >= tail, x
        assert ball(Fraction(law.log_beyond)) + ball(Fraction(law.error)) >= tail


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("beta", BETAS)
def test_against_balls(beta: str, epsilon: str) -> None:
    """For every size of share and of noise, with a reach that covers the law or does not by far."""
    share, q = Fraction(beta), geometric_ratio(Fraction(epsilon))
    truth = SGDL(share, q)
    for reach in (12, min(400, 12 + math.ceil(6 * math.sqrt(truth.variance)))):
        _covers(noise_law(share, q, reach), truth, [0, 1, reach // 3, reach])


@pytest.mark.parametrize("epsilon", ["0.69", "4", "60"])
def test_a_million_shares(epsilon: str) -> None:
    share, q = Fraction(10**6), geometric_ratio(Fraction(epsilon))
    reach = 12 + math.ceil(3 * math.sqrt(SGDL(share, q).variance))
    _covers(noise_law(share, q, reach), SGDL(share, q), [0, reach])


@pytest.mark.parametrize("beta", ["1e-6", "1/3", "1", "7.5", "1e4"])
@pytest.mark.parametrize("epsilon", ["0.05", "0.8", "60"])
def test_what_claims_are_made_from(beta: str, epsilon: str) -> None:
    """The law of claims against the defining sum of negative binomials where that is short, and against balls."""
    share, q = Fraction(beta), geometric_ratio(Fraction(epsilon))
    law = proved_law(share, q, 60)
    assert law.error < 1e-11
    _covers(law, SGDL(share, q), [0, 1, 20, 60])
    if share < 10:
        mass, tail = brute_force.noise(share, q, 61)
        known = mass[:61] > 1e-20  # the sum is cut at 1e-40
        np.testing.assert_allclose(law.log_p[known], np.log(mass[:61][known]).astype(float), rtol=0, atol=1e-12)
        known = tail[1:] > 1e-20
        assert (law.log_tails[known] >= np.log(tail[1:][known])).all()


@pytest.mark.parametrize(
    ("beta", "epsilon"), [("1", "0.71"), ("1/3", "20"), ("2.5", "60"), ("1", "0.0001"), ("50", "0.8"), ("1", "0.5")]
)
def test_far_out(beta: str, epsilon: str) -> None:
    """Deep tails, down to `e^-60000`: the account still holds."""
    share, q = Fraction(beta), geometric_ratio(Fraction(epsilon))
    _covers(noise_law(share, q, 1000), SGDL(share, q), [0, 10, 100, 333, 777, 1000])


@pytest.mark.parametrize(("beta", "epsilon"), [("0.02", "0.5"), ("1/2", "1"), ("3", "0.2"), ("400", "2"), ("1e5", "2")])
def test_far_enough_it_is_accurate(beta: str, epsilon: str) -> None:
    """With a reach beyond which there is nothing, tails are close from above, and the moments are the exact ones."""
    share, q = Fraction(beta), geometric_ratio(Fraction(epsilon))
    truth = SGDL(share, q)
    reach = math.ceil(12 * math.sqrt(truth.variance) + 60 / float(Fraction(epsilon)))
    law = noise_law(share, q, reach)
    assert law.error < 1e-7
    p = np.exp(law.log_p)
    assert 2 * p.sum() - p[0] == pytest.approx(1.0, abs=1e-9)
    assert 2 * np.sum(np.arange(reach + 1.0) ** 2 * p) == pytest.approx(float(truth.variance), rel=1e-7)
    assert 2 * np.sum(np.arange(reach + 1.0) * p) == pytest.approx(float(truth.mean_absolute()), rel=1e-7)
    for x in (0, reach // 4):
        with precision(128):
            assert float(law.log_tails[x]) == pytest.approx(float(truth.cdf_ball(-1 - x).log()), abs=1e-6)


def test_shares_add_up() -> None:
    """Seven people's law, convolved, is the law of seven shares."""
    q, share = geometric_ratio(Fraction(1)), Fraction(3, 10)
    one = np.exp(noise_law(share, q, 120).log_p)
    whole = one_sided = np.concatenate((one[:0:-1], one))
    for _ in range(6):
        whole = np.convolve(whole, one_sided)
    middle = len(whole) // 2
    np.testing.assert_allclose(
        noise_law(7 * share, q, 60).log_p, np.log(whole[middle : middle + 61]), rtol=0, atol=1e-10
    )


def test_no_noise_and_cutting() -> None:
    nothing = noise_law(Fraction(0), Fraction(1, 2), 5)
    assert nothing.log_p.tolist() == [0.0] + [-math.inf] * 5
    assert nothing.log_tails.max() == -math.inf
    law = noise_law(Fraction(3, 2), Fraction(1, 2), 60)
    short = law.cut(20)
    assert short.reach == 20
    np.testing.assert_array_equal(short.log_p, law.log_p[:21])
    assert law.log_tails[20] <= short.log_beyond <= law.log_tails[20] + 1e-9
    np.testing.assert_allclose(short.log_tails, law.log_tails[:21], atol=1e-9)
    assert (short.log_tails >= law.log_tails[:21] - 1e-12).all()
