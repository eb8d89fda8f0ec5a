"""One count against sums over all counts, windows of exact binomials, and the corrected table of paper C."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import pytest
from flint import arb, arb_poly

from optdp.amplification.counts import CountSetting, count_delta, count_delta_ball, delta_is_zero
from optdp.numbers.exact import ball, precision
from tests.amplification.by_balls import count_delta_sum

TABLE = {
    1: ("8.969e-5", "9.932e-26", "0"),
    2: ("6.147e-3", "2.606e-8", "2.698e-18", "9.668e-32", "0"),
    3: ("2.757e-2", "2.555e-4", "1.034e-7", "7.679e-12", "3.112e-17", "5.196e-26"),
}
LEVELS = ("0.1", "0.5", "1", "1.5", "2", "2.5")


def person_by_person(setting: CountSetting, epsilon: Fraction, reverse: bool, bits: int = 600) -> arb:
    """The hockey-stick divergence of two counts, each of `n` people added one by one."""
    with precision(bits):
        p = ball(setting.eps0).exp()
        t, f = p / (p + setting.k - 1), 1 / (p + setting.k - 1)

        def law(victim: arb) -> list[arb]:
            masses = [arb(1)]
            for share in [t] * setting.n_x0 + [f] * (setting.n - 1 - setting.n_x0) + [victim]:
                kept, moved = [(1 - share) * mass for mass in masses], [share * mass for mass in masses]
                masses = [kept[0], *(x + y for x, y in zip(kept[1:], moved, strict=False)), moved[-1]]
            return masses

        first, second = (law(f), law(t)) if reverse else (law(t), law(f))
        gain = ball(epsilon).exp()
        return sum(((x - gain * y).max(arb(0)) for x, y in zip(first, second, strict=True)), arb(0))


def by_windows(setting: CountSetting, epsilon: Fraction, bits: int = 320) -> arb:
    """The sum over counts, with both binomials from their factorials in a window about their tilted means.

    The terms that are left out, below and above, are not bounded: this is an approximation of far more than 15 digits.
    """
    with precision(bits):
        p = ball(setting.eps0).exp()
        gain, t, f = ball(epsilon).exp(), p / (p + setting.k - 1), 1 / (p + setting.k - 1)
        A, B = t - gain * f, gain * (1 - f) - (1 - t)

        def window(size: int, share: arb) -> tuple[int, list[arb]]:
            peak = float(share * B / (share * B + (1 - share) * A))
            width = 15 * math.sqrt(size * peak * (1 - peak)) + 40
            low, high = max(0, int(size * peak - width)), min(size, int(size * peak + width))
            odds = share / (1 - share)
            logs = arb(size + 1).lgamma() - arb(low + 1).lgamma() - arb(size - low + 1).lgamma()
            mass = (logs + low * share.log() + (size - low) * (1 - share).log()).exp()
            masses = [mass]
            for s in range(low, high):
                mass = mass * odds * (size - s) / (s + 1)
                masses.append(mass)
            return low, masses

        (_, high), (_, low) = window(setting.n_x0, t), window(setting.n - 1 - setting.n_x0, f)
        tilts = [(B / A) ** i for i in range(max(len(high), len(low)))]  # so that no mass drowns in the product
        tilted = (arb_poly([x * y for x, y in zip(part, tilts, strict=False)]) for part in (high, low))
        masses = math.prod(tilted, start=arb_poly([1])).coeffs()
        weight, total = B, arb(0)
        for before, here in pairwise(masses):
            weight = weight * A / B
            total += (weight * (before - here)).max(arb(0))
        return total


def relative(found: arb, truth: arb) -> float:
    return float(abs(found - truth) / truth)


def random_setting(rng: random.Random, most: int) -> tuple[CountSetting, Fraction, bool]:
    n, k = rng.randint(1, most), rng.choice((2, 2, 3, 10, 100))
    eps0 = Fraction(rng.randint(1, 600), 100)
    epsilon = eps0 * Fraction(rng.choice((0, rng.randint(0, 999), rng.randint(0, 300))), 1000)
    return CountSetting(n, rng.randint(0, n - 1), eps0, k), epsilon, rng.random() < 0.5


# ------------------------------------------------------------------------------------------------- the paper


@pytest.mark.parametrize("eps0", TABLE)
def test_corrected_table(eps0: int) -> None:
    setting = CountSetting(100, 80, eps0, 10)
    for epsilon, printed in zip(LEVELS, TABLE[eps0], strict=False):
        found = count_delta(setting, epsilon)
        assert found.lower == pytest.approx(float(printed), rel=6e-4, abs=0)
        assert found.upper == pytest.approx(found.lower, rel=1e-13, abs=0)


# ------------------------------------------------------------------------------------------------- small n


def test_sums_over_all_counts_agree() -> None:
    rng = random.Random(1)
    for _ in range(80):
        setting, epsilon, reverse = random_setting(rng, 60)
        assert count_delta_sum(setting, epsilon, reverse).overlaps(person_by_person(setting, epsilon, reverse))


def test_contour_is_the_sum_over_all_counts() -> None:
    rng = random.Random(2)
    for _ in range(400):
        setting, epsilon, reverse = random_setting(rng, rng.choice((3, 60, 200)))
        found, truth = count_delta_ball(setting, epsilon, reverse), count_delta_sum(setting, epsilon, reverse)
        assert found.overlaps(truth)
        if truth == 0:
            assert found == 0
            continue
        bounds = count_delta(setting, epsilon, reverse)
        assert bounds.lower <= truth.upper()
        assert truth.lower() <= bounds.upper
        assert bounds.lower == 0 or bounds.upper / bounds.lower < 1 + 1e-12
        assert bounds.lower > 0 or truth < 1e-299
        with precision():
            assert relative(found, truth) < 1e-12


@pytest.mark.parametrize("n", [500, 1000, 2000])
def test_contour_is_the_sum_for_a_thousand(n: int) -> None:
    rng = random.Random(n)
    for n_x0 in (0, rng.randrange(n), n - 1):
        for epsilon in ("0", "0.02", "0.3", "1.3", "1.9999"):
            setting = CountSetting(n, n_x0, 2, rng.choice((2, 7)))
            reverse = rng.random() < 0.5
            found, truth = count_delta_ball(setting, epsilon, reverse), count_delta_sum(setting, epsilon, reverse, 2048)
            assert found.overlaps(truth)
            assert (found == 0) == delta_is_zero(setting, epsilon, reverse)


@pytest.mark.parametrize("epsilon", ["0.99999999999999999999", "0.5", "1e-30", "0"])
@pytest.mark.parametrize("eps0", ["1", "40", "1000"])
def test_extreme_privacy(eps0: str, epsilon: str) -> None:
    level = Fraction(epsilon) * Fraction(eps0)
    for n, n_x0, k in ((1, 0, 2), (2, 1, 2), (50, 20, 10**6), (50, 0, 2), (50, 49, 3)):
        setting = CountSetting(n, n_x0, eps0, k)
        for reverse in (False, True):
            found = count_delta_ball(setting, level, reverse)
            assert found.overlaps(count_delta_sum(setting, level, reverse, 40_000 if k < 10**6 else 8000))


# ------------------------------------------------------------------------------------------------- large n


@pytest.mark.parametrize(
    ("n", "n_x0", "eps0", "k", "epsilon"),
    [
        (10**4, 3000, "1", 2, "0.1"),
        (10**5, 99_999, "2", 5, "0.1"),
        (10**6, 0, "1", 2, "0.004"),
        (10**6, 400_000, "1", 2, "0.01"),
        (10**6, 123_456, "3", 100, "0.02"),
        (10**6, 999_000, "1", 2, "0.0001"),
    ],
)
def test_large_counts(n: int, n_x0: int, eps0: str, k: int, epsilon: str) -> None:
    setting = CountSetting(n, n_x0, eps0, k)
    truth = by_windows(setting, Fraction(epsilon))
    bounds = count_delta(setting, epsilon)
    with precision():
        assert relative(count_delta_ball(setting, epsilon), truth) < 1e-13
    assert bounds.lower == pytest.approx(float(truth), rel=1e-12, abs=0)
    assert bounds.upper == pytest.approx(bounds.lower, rel=1e-12, abs=0)


def test_a_billion_people_and_the_normal_limit() -> None:
    """With `mu = (t-f)/sigma`, `delta` tends to that of two normal laws `mu` apart (central limit theorem)."""
    n, p = 10**9, math.e
    sigma = math.sqrt(n * p) / (p + 1)
    mu = (p - 1) / (p + 1) / sigma
    for x in (0.0, 1.0, 3.0):
        epsilon = x * mu
        cdf = [math.erfc((epsilon / mu + sign * mu / 2) / math.sqrt(2)) / 2 for sign in (-1, 1)]
        limit = cdf[0] - math.exp(epsilon) * cdf[1]
        found = count_delta(CountSetting(n, n // 2, 1), epsilon)
        assert found.lower == pytest.approx(limit, rel=1e-3 if x else 1e-6, abs=0)
        assert found.upper / found.lower < 1 + 1e-12


# ------------------------------------------------------------------------------------------------- the edges


def test_delta_falls_with_epsilon_and_ends_at_eps0() -> None:
    setting = CountSetting(300, 100, "1.5", 4)
    for reverse in (False, True):
        values = [count_delta(setting, Fraction(i, 40), reverse) for i in range(61)]
        for before, here in pairwise(values):
            assert here.upper < before.upper or here.upper == before.upper in (0.0, 1e-300)
    assert count_delta(setting, "1.5").upper == 0
    assert count_delta(setting, 7).upper == 0
    assert count_delta(setting, "1.499999999999").upper > 0
    assert delta_is_zero(setting, "1.5")
    assert not delta_is_zero(setting, "1.499999999999")


def test_the_way_back_ends_earlier_with_more_answers() -> None:
    end = math.log((math.e + 8) / 9)
    setting = CountSetting(10, 4, 1, 10)
    assert delta_is_zero(setting, end + 1e-12, reverse=True)
    assert not delta_is_zero(setting, end - 1e-12, reverse=True)
    assert count_delta(setting, end + 1e-12, reverse=True).upper == 0


def test_two_answers_are_symmetric() -> None:
    for n_x0 in (0, 3, 9):
        there = count_delta_ball(CountSetting(10, n_x0, 1), "0.3")
        back = count_delta_ball(CountSetting(10, 9 - n_x0, 1), "0.3", reverse=True)
        assert there.overlaps(back)


def test_tiny_deltas_keep_their_digits() -> None:
    setting = CountSetting(2000, 700, 2)
    for epsilon, least, most in (("0.9", 1e-140, 1e-60), ("1.5", 0, 1e-290)):
        found, truth = count_delta_ball(setting, epsilon), count_delta_sum(setting, epsilon, bits=4096)
        with precision():
            assert relative(found, truth) < 1e-12
        assert least < truth
        assert truth < most
    assert (count_delta(setting, "1.9").lower, count_delta(setting, "1.9").upper) == (0.0, 1e-300)
    assert count_delta_ball(setting, "1.9") > 0
