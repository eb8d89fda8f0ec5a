"""What several releases spend, against brute force, a formula from the literature, and dp-accounting."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from optdp.numbers import composition
from optdp.numbers.composition import adaptive, basic, optimal

MIXED = {Fraction("0.3"): 3, Fraction("0.5"): 2, Fraction(1, 7): 4}


def brute_delta(epsilons: list[float], epsilon: float) -> float:
    """The hockey-stick divergence of randomized response in place of each release, over all signs."""
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        loss = sum(sign * e for sign, e in zip(signs, epsilons, strict=True))
        chance = math.prod(1 / (1 + math.exp(-sign * e)) for sign, e in zip(signs, epsilons, strict=True))
        total += chance * max(0.0, 1.0 - math.exp(epsilon - loss))
    return total


@pytest.mark.parametrize("epsilon", ["0.05", "0.2", "1", "2.5"])
@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_equal_epsilons_follow_the_theorem(k: int, epsilon: str) -> None:
    """Kairouz, Oh and Viswanath 2015, Theorem 3.3: the pairs ((k - 2i) epsilon, delta_i) are tight."""
    e = float(epsilon)
    for i in range(1, k // 2 + 1):
        delta = sum(
            math.comb(k, j) * (math.exp((k - j) * e) - math.exp((k - 2 * i + j) * e)) for j in range(i)
        ) / (1 + math.exp(e)) ** k  # fmt: skip
        found = optimal({Fraction(epsilon): k}, Fraction(delta))
        assert float(found) == pytest.approx((k - 2 * i) * e, abs=1e-6)
        known = adaptive({Fraction(epsilon): k}, Fraction(delta))
        assert found <= known <= basic({Fraction(epsilon): k})


@pytest.mark.parametrize("delta", ["0.3", "0.01", "1e-4", "1e-7"])
def test_different_epsilons_against_all_signs(delta: str) -> None:
    found = float(optimal(MIXED, Fraction(delta)))
    listed = [float(e) for e, count in MIXED.items() for _ in range(count)]
    assert brute_delta(listed, found) <= float(Fraction(delta)) * (1 + 1e-9)
    assert brute_delta(listed, found - 1e-6) > float(Fraction(delta))


@pytest.mark.parametrize("delta", ["0.3", "1e-3", "1e-9"])
def test_rounded_steps_are_never_below_and_hardly_above(delta: str) -> None:
    exact = optimal(MIXED, Fraction(delta))
    composition._optimal.cache_clear()
    with patch.object(composition, "TERMS", 0):
        rounded = optimal(MIXED, Fraction(delta))
    composition._optimal.cache_clear()
    assert exact <= rounded <= exact + Fraction("0.01")


def test_many_different_epsilons_against_dp_accounting() -> None:
    """A peer: the privacy loss distributions of randomized response, composed. Its estimates are pessimistic."""
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    releases = {Fraction(i, 50): 3 for i in range(1, 13)}
    peers = None
    for epsilon, count in releases.items():
        noise = 2 / (1 + math.exp(float(epsilon)))  # answers at random so often
        one = distributions.from_randomized_response(noise, 2, value_discretization_interval=1e-4)
        peer = one.self_compose(count)
        peers = peer if peers is None else peers.compose(peer)
    found = float(optimal(releases, Fraction("1e-6")))
    assert found == pytest.approx(peers.get_epsilon_for_delta(1e-6), rel=3e-3)


@pytest.mark.parametrize("delta", ["0.2", "1e-3", "1e-8"])
@pytest.mark.parametrize("releases", [{Fraction("0.1"): 200}, {Fraction("0.5"): 40, Fraction("0.05"): 100}])
def test_zcdp_is_the_best_order_and_covers_every_order_of_randomized_response(
    releases: dict[Fraction, int], delta: str
) -> None:
    """By numpy, over a fine grid of orders; and the zCDP of each release against its Renyi divergence."""
    rho = sum(float(e) ** 2 * count / 2 for e, count in releases.items())
    a = 1 + np.exp(np.linspace(-8, 8, 200_001))
    bounds = a * rho + (math.log(1 / float(delta)) - np.log(a)) / (a - 1) + np.log1p(-1 / a)
    least = min(float(bounds.min()), float(basic(releases)))
    assert least - 1e-9 <= float(adaptive(releases, Fraction(delta))) <= least + 1e-3
    for epsilon in map(float, releases):
        p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
        low = a[a < 100]
        renyi = np.log(np.exp(low * epsilon) * q + np.exp(-low * epsilon) * p) / (low - 1)
        assert np.all(renyi <= low * epsilon**2 / 2 + 1e-9)


def test_who_chooses_by_what_was_seen_gets_past_the_optimal_bound() -> None:
    """Why a ledger that is not planned does not use it: each way fits the total, and both together do not.

    First 0.25. If its loss is positive, one release at 1.02, else three at 0.5.
    """
    total, delta, first = Fraction(1), Fraction("0.1"), Fraction("0.25")
    for way in ({Fraction("1.02"): 1}, {Fraction("0.5"): 3}):
        assert optimal({first: 1} | way, delta) <= total
    plus = 1 / (1 + math.exp(-0.25))
    real = plus * brute_delta([1.02], 0.75) + (1 - plus) * brute_delta([0.5] * 3, 1.25)
    assert real > 0.12
    assert any(adaptive({first: 1} | way, delta) > total for way in ({Fraction("1.02"): 1}, {Fraction("0.5"): 3}))


def test_the_rule_of_a_ledger_holds_for_who_chooses_by_what_was_seen() -> None:
    """Brute force over trees: at every node the next epsilon is the one that gives away most, if the rule lets it."""
    steps, delta = (Fraction("0.4"), Fraction("0.8"), Fraction("1.6")), Fraction("0.2")
    for total in (Fraction("1.2"), Fraction("2"), Fraction("3")):

        def worst(used: tuple[Fraction, ...], loss: float, total: Fraction = total) -> float:
            best = max(0.0, 1.0 - math.exp(float(total) - loss))
            for step in steps:
                now = (*used, step)
                if len(now) <= 5 and adaptive({e: now.count(e) for e in now}, delta) <= total:
                    p = 1 / (1 + math.exp(-float(step)))
                    best = max(best, p * worst(now, loss + float(step)) + (1 - p) * worst(now, loss - float(step)))
            return best

        assert worst((), 0.0) <= float(delta)


def test_extremes() -> None:
    assert optimal({}, Fraction("0.1")) == adaptive({}, Fraction("0.1")) == 0
    assert optimal({Fraction(0): 5}, Fraction("0.1")) == 0
    assert optimal(MIXED, Fraction(0)) == basic(MIXED)
    assert optimal({Fraction("0.1"): 1}, Fraction("0.9")) == 0
    many = {Fraction("0.001"): 1_000_000}
    assert optimal(many, Fraction("1e-6")) == adaptive(many, Fraction("1e-6")) < Fraction(7)
    assert optimal({Fraction(5000): 1}, Fraction("1e-6")) == 5000
    large = {Fraction("0.01") * i: 1 for i in range(1, 400)}
    assert 0 < optimal(large, Fraction("1e-100")) <= adaptive(large, Fraction("1e-100")) <= basic(large)
