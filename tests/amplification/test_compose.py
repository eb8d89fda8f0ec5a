"""Rounds of shuffling, composed: against the direct bound, exact laws of two rounds, and convolution without FFT."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest

from optdp import KRR, Channel, Gaussian, Generic, Laplace, ProblemError, composed_epsilon
from optdp.amplification import compose
from optdp.amplification.bounds import BOUNDS, FINE, Setting
from optdp.amplification.calibrate import Question, answer
from optdp.amplification.compose import composed_delta, losses_of, privacy_loss
from optdp.amplification.randomizers import Randomizer
from optdp.extras import install
from tests.amplification import oracle

pytest.importorskip("dp_accounting", reason="composition needs dp-accounting")

MANY = [
    (Setting(KRR(10), 2.0, 10**6), "blanket"),
    (Setting(Laplace(), 1.0, 10**4), "blanket"),
    (Setting(Generic(), 1.0, 10**6), "stronger-clones"),
    (Setting(KRR(2), 1.0, 10**6), "binary-exact"),
    (Setting(KRR(3), 1.0, 10), "blanket"),
]


# ------------------------------------------------------------------------------------------------- one round


@pytest.mark.parametrize(("setting", "name"), MANY)
def test_one_round_is_the_direct_bound_or_a_little_more(setting: Setting, name: str) -> None:
    found = composed_epsilon(setting, 1, 1e-6)
    direct = answer(BOUNDS[name], "epsilon", Question(setting, 0.0, 1e-6))
    assert direct is not None
    assert direct <= found <= direct * 1.01
    bound = BOUNDS[name].log_delta(setting, found, FINE)
    assert bound is not None
    assert math.exp(bound) <= composed_delta(setting, 1, found) <= 1e-6


@pytest.mark.parametrize(("setting", "name"), MANY)
def test_losses_are_a_pair_of_laws(setting: Setting, name: str) -> None:
    losses = losses_of(setting)
    mass, where = np.array(losses.mass), losses.step * np.array(losses.index)
    assert mass.min() >= 0.0
    assert 0.0 <= mass.sum() + losses.beyond - 1.0 <= 1e-9
    assert (mass * np.exp(-where)).sum() <= 1.0 + 1e-9  # the other law
    assert np.allclose(mass[::-1] * np.exp(where), mass, rtol=1e-9, atol=0)  # seen from the other side
    assert losses.beyond <= compose.TAIL
    assert where[-1] <= setting.eps0 * (1.0 + 1e-12)


def test_the_profile_is_above_the_bound_on_both_sides_of_zero() -> None:
    setting = Setting(Laplace(), 1.0, 10**4)
    loss = privacy_loss(setting)
    for epsilon in np.linspace(0.0005, 0.09, 20):
        bound = BOUNDS["blanket"].log_delta(setting, float(epsilon), FINE)
        assert bound is not None
        below = -math.expm1(-epsilon) + math.exp(-epsilon + bound)
        assert loss.get_delta_for_epsilon(float(epsilon)) >= math.exp(bound)
        assert loss.get_delta_for_epsilon(float(-epsilon)) >= below * (1.0 - 1e-12)


def test_a_hull_repairs_a_bound_that_is_not_convex(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, plain = Setting(Generic(), 1.0, 100), BOUNDS["stronger-clones"]
    expected = composed_delta(setting, 3, 0.5)

    def bumpy(setting: Setting, epsilon: float, grid: int) -> float | None:
        found = plain.log_delta(setting, epsilon, grid)
        return None if math.sin(1e5 * epsilon) > 0.5 else found

    monkeypatch.setitem(BOUNDS, "stronger-clones", compose.Bound("upper", "", plain.fits, bumpy))
    compose.losses_of.cache_clear()
    assert expected <= composed_delta(setting, 3, 0.5) <= expected * 1.05
    compose.losses_of.cache_clear()


# ------------------------------------------------------------------------------------------------- exact, two rounds


def two_rounds(one: tuple[oracle.Law, oracle.Law], two: tuple[oracle.Law, oracle.Law], factor: Fraction) -> Fraction:
    """`D_factor` of pairs of histograms, in units of the laws' total."""
    first, second = (
        {(a, b): wa * wb for (a, wa), (b, wb) in product(one[side].items(), two[side].items())} for side in (0, 1)
    )
    unit = sum(first.values())
    return sum((max(Fraction(w) - factor * second[key], Fraction(0)) for key, w in first.items()), Fraction(0)) / unit


@pytest.mark.parametrize(("k", "n", "p"), [(2, 2, Fraction(3)), (2, 3, Fraction(2)), (3, 2, Fraction(5, 2))])
def test_no_two_rounds_are_told_apart_better(k: int, n: int, p: Fraction) -> None:
    rows, _ = oracle._integers(oracle.krr(k, p))
    pairs = []
    for rest in combinations_with_replacement(range(k), n - 1):
        law = oracle._law(rows, rest)
        pairs += [(oracle._joined(law, rows[x]), oracle._joined(law, rows[y])) for x, y in permutations(range(k), 2)]
    setting = Setting(KRR(k), math.log(p) * (1 + 1e-15), n)
    for factor in (Fraction(1), Fraction(21, 20), Fraction(3, 2), p, p * Fraction(5, 4)):
        exact = max(two_rounds(one, two, factor) for one in pairs for two in pairs)
        found = composed_delta(setting, 2, math.log(factor))
        assert found >= float(exact)
        if k == 2:
            assert found <= float(exact) * 1.25  # data sets that are worst at one epsilon are not at others


def test_randomized_response_alone_composes_exactly() -> None:
    """One person: the loss is eps0 or -eps0, and 20 rounds are a binomial law."""
    eps0, rounds = 0.5, 20
    high = math.exp(eps0) / (math.exp(eps0) + 1.0)
    for epsilon in (0.0, 1.0, 3.3):
        exact = 0.0
        for lies in range(rounds + 1):
            loss = (rounds - 2 * lies) * eps0
            chance = math.comb(rounds, lies) * high ** (rounds - lies) * (1.0 - high) ** lies
            exact += chance * max(0.0, -math.expm1(epsilon - loss))
        assert exact <= composed_delta(Setting(KRR(2), eps0, 1), rounds, epsilon) <= exact * (1 + 1e-6)


# ------------------------------------------------------------------------------------------------- many rounds


@pytest.mark.parametrize("setting", [setting for setting, _ in MANY])
def test_more_rounds_give_away_more_and_less_than_their_sum(setting: Setting) -> None:
    delta, known = 1e-6, [composed_epsilon(setting, rounds, 1e-6) for rounds in (1, 2, 10, 100, 1000)]
    assert known == sorted(known)
    assert len(set(known)) == len(known)
    for rounds, found in zip((2, 10, 100, 1000), known[1:], strict=True):
        assert found <= rounds * composed_epsilon(setting, 1, delta / rounds)
        assert composed_delta(setting, rounds, found) <= delta
    each, spare = composed_epsilon(setting, 1, delta / 200), delta / 2  # Dwork, Rothblum and Vadhan 2010
    assert known[3] <= each * math.sqrt(200.0 * math.log(1.0 / spare)) + 100 * each * math.expm1(each)
    deltas = [composed_delta(setting, rounds, known[2]) for rounds in (1, 5, 10, 20, 500)]
    assert deltas == sorted(deltas)


def test_nearly_gaussian_losses_grow_like_a_root() -> None:
    setting = Setting(KRR(10), 2.0, 10**6)
    losses = losses_of(setting)
    where, mass = losses.step * np.array(losses.index), np.array(losses.mass)
    mean = float((where * mass).sum())
    spread = math.sqrt(float(((where - mean) ** 2 * mass).sum()))
    for rounds in (100, 10_000):
        mu = spread * math.sqrt(rounds)
        epsilon = composed_epsilon(setting, rounds, 1e-5)

        def tail(x: float) -> float:
            return math.erfc(x / math.sqrt(2.0)) / 2.0

        gaussian = tail(epsilon / mu - mu / 2.0) - math.exp(epsilon) * tail(epsilon / mu + mu / 2.0)
        assert gaussian == pytest.approx(1e-5, rel=0.1)
    ratio = composed_epsilon(setting, 400, 1e-5) / composed_epsilon(setting, 100, 1e-5)
    assert 2.0 < ratio < 2.3


@pytest.mark.parametrize("rounds", [2, 7, 40])
def test_fft_and_truncation_are_on_the_safe_side(rounds: int) -> None:
    setting = Setting(Laplace(), 1.0, 1000)
    losses = losses_of(setting)
    law = np.zeros(losses.index[-1] - losses.index[0] + 1)
    law[np.array(losses.index) - losses.index[0]] = losses.mass
    total = np.array([1.0])
    for _ in range(rounds):
        total = np.convolve(total, law)  # sums of products of probabilities: nothing cancels
    where = losses.step * (np.arange(len(total)) + rounds * losses.index[0])
    for delta in (1e-3, 1e-8, 1e-11):
        epsilon = composed_epsilon(setting, rounds, delta)
        exact = float((total * np.maximum(0.0, -np.expm1(epsilon - where))).sum())
        assert exact <= delta
        assert exact >= delta * (0.99 if delta > 1e-10 else 0.02)
        assert composed_delta(setting, rounds, epsilon) >= exact


def test_small_deltas_come_from_the_moments() -> None:
    setting = Setting(KRR(10), 2.0, 10**5)
    wide, tiny = composed_epsilon(setting, 1000, 1e-9), composed_epsilon(setting, 1000, 1e-18)
    assert wide < tiny < 2.0 * wide
    assert composed_delta(setting, 1000, tiny * 1.2) < 1e-16


def test_a_law_without_a_largest_ratio() -> None:
    setting = Setting(Gaussian(sigma=2.0), math.inf, 200)
    one, many = composed_epsilon(setting, 1, 1e-6), composed_epsilon(setting, 64, 1e-6)
    bound = BOUNDS["data-set"].log_delta(setting, one, FINE)
    assert bound is not None
    assert math.exp(bound) < 1e-6
    assert 8.0 * one < many < 64.0 * one


def test_messages_that_hide_nobody_are_lost_in_every_round() -> None:
    randomizer = Channel.of([[0.5, 0.49, 0.01], [0.49, 0.51, 0.0]])
    setting = Setting(randomizer, randomizer.own_eps0, 100)
    lost = 1.0 - 0.99**5
    assert lost <= composed_delta(setting, 5, 30.0) <= lost * (1.0 + 1e-6)
    assert composed_epsilon(setting, 5, 0.04) == math.inf
    with pytest.raises(ProblemError, match="Nothing is known to be hidden"):
        composed_delta(Setting(Channel.of([[1.0, 0.0], [0.0, 1.0]]), math.inf, 100), 2, 1.0)


# ------------------------------------------------------------------------------------------------- with others


def test_rounds_of_two_kinds_compose() -> None:
    def loss(randomizer: Randomizer) -> Any:
        return privacy_loss(Setting(randomizer, 1.0, 10**4), discretization=1e-4)

    one, two = loss(Laplace()), loss(KRR(4))
    both = one.compose(two).get_epsilon_for_delta(1e-6)
    least, most = sorted((one.self_compose(2), two.self_compose(2)), key=lambda pld: pld.get_epsilon_for_delta(1e-6))
    assert least.get_epsilon_for_delta(1e-6) < both < most.get_epsilon_for_delta(1e-6)
    assert one.get_epsilon_for_delta(1e-6) == pytest.approx(
        composed_epsilon(Setting(Laplace(), 1.0, 10**4), 1, 1e-6), 0.01
    )


def test_beyond_local_privacy_nothing_is_given_away() -> None:
    setting = Setting(KRR(3), 1.0, 10)
    assert composed_delta(setting, 3, 3.0) == 0.0
    assert composed_epsilon(setting, 3, 1e-90) == pytest.approx(3.0)
    assert composed_epsilon(setting, 1, 0.9) == 0.0


def test_refusals() -> None:
    setting = Setting(KRR(3), 1.0, 10)
    for call in (
        lambda: composed_epsilon(setting, 0, 1e-6),
        lambda: composed_epsilon(setting, 3, 0.0),
        lambda: composed_delta(setting, 1, -1.0),
        lambda: composed_delta(setting, 1, math.inf),
        lambda: privacy_loss(setting, discretization=0.0),
        lambda: privacy_loss(setting, discretization=1e-9),
    ):
        with pytest.raises(ProblemError):
            call()


def test_without_dp_accounting_one_line_says_what_to_install(missing: Callable[..., None]) -> None:
    missing("dp_accounting.pld.pld_pmf", "dp_accounting.pld.privacy_loss_distribution")
    with pytest.raises(ProblemError, match=re.escape(install("accounting"))):
        composed_epsilon(Setting(KRR(3), 1.0, 10), 2, 1e-6)
    with pytest.raises(ProblemError, match="dp-accounting"):
        privacy_loss(Setting(KRR(3), 1.0, 10))
