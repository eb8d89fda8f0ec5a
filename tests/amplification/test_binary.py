"""Shuffled binary randomized response against all data sets, all histograms and all orders of reports."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest
from flint import arb

from optdp.amplification.counts import (
    CountSetting,
    WorstDelta,
    binary_delta,
    count_delta,
    count_delta_ball,
    expanded_bound,
)
from optdp.numbers.exact import ball, precision
from tests.amplification.by_balls import count_delta_sum


def largest(n: int, eps0: Fraction, epsilon: Fraction) -> arb:
    """The largest sum over counts, of all data sets and both ways."""
    values = [count_delta_sum(CountSetting(n, a, eps0), epsilon, way) for a in range(n) for way in (False, True)]
    return max(values, key=lambda value: float(value.log()) if value > 0 else -math.inf)


def by_histograms(n: int, eps0: Fraction, epsilon: Fraction) -> arb:
    """All pairs of neighbours among the `2^n` data sets, all `2^n` reports of each, seen as multisets."""
    with precision(400):
        p, gain = ball(eps0).exp(), ball(epsilon).exp()
        truth, lie = p / (p + 1), 1 / (p + 1)

        def law(data: tuple[int, ...]) -> dict[tuple[int, ...], arb]:
            seen: dict[tuple[int, ...], arb] = {}
            for reports in itertools.product((0, 1), repeat=n):
                wrong = sum(x != y for x, y in zip(data, reports, strict=True))
                key = tuple(sorted(reports))
                seen[key] = seen.get(key, arb(0)) + truth ** (n - wrong) * lie**wrong
            return seen

        laws = {data: law(data) for data in itertools.product((0, 1), repeat=n) if list(data[1:]) == sorted(data[1:])}
        worst = arb(0)
        for data, first in laws.items():
            second = laws[(1 - data[0], *data[1:])]
            worst = worst.max(sum(((first[key] - gain * second[key]).max(arb(0)) for key in first), arb(0)))
        return worst


def holds(found: WorstDelta, truth: arb, width: float) -> bool:
    inside = found.lower <= truth.upper() and truth.lower() <= found.upper
    return bool(inside) and found.lower <= found.upper <= found.lower * (1 + width)


# ------------------------------------------------------------------------------------------------- exact for few


@pytest.mark.parametrize("n", range(1, 9))
def test_all_histograms_of_all_data_sets(n: int) -> None:
    for eps0, epsilon in (("1", "0.2"), ("0.5", "0"), ("3", "1.7")):
        truth = by_histograms(n, Fraction(eps0), Fraction(epsilon))
        assert holds(binary_delta(n, eps0, epsilon), truth, 1e-12)


def test_all_data_sets_both_ways() -> None:
    rng = random.Random(3)
    for _ in range(150):
        n, eps0 = rng.randint(1, 30), Fraction(rng.randint(1, 800), 100)
        epsilon = eps0 * Fraction(rng.choice((0, rng.randint(0, 99), rng.randint(0, 20))), 100)
        found = binary_delta(n, eps0, epsilon)
        assert holds(found, largest(n, eps0, epsilon), 1e-12)
        assert count_delta(CountSetting(n, found.n_x0, eps0), epsilon).lower == found.lower


@pytest.mark.parametrize(
    ("n", "eps0", "epsilon"),
    [(100, 1, "0.3"), (300, "0.5", "0.05"), (800, 2, "0.3"), (1000, 1, "0.2"), (400, 9, "0.5"), (250, "0.1", "0.001")],
)
def test_hundreds_of_people_are_exact(n: int, eps0: int | str, epsilon: str) -> None:
    found = binary_delta(n, eps0, epsilon)
    values = [count_delta(CountSetting(n, a, eps0), epsilon) for a in range(n)]
    assert found.lower == max(value.lower for value in values) == values[found.n_x0].lower
    assert found.upper == pytest.approx(max(value.upper for value in values), rel=1e-14, abs=0)


def test_the_worst_data_set_need_not_be_at_an_end() -> None:
    found = binary_delta(100, 1, "0.3")
    assert found.n_x0 == 98
    assert all(count_delta(CountSetting(100, a, 1), "0.3").upper < found.lower for a in (0, 97, 99))


# ------------------------------------------------------------------------------------------------- bounds for many


def test_expansion_bounds_every_data_set_of_a_block() -> None:
    rng, useful = random.Random(4), 0
    for _ in range(150):
        n = rng.choice((200, 3000, 10**5, 10**7))
        eps0 = Fraction(rng.randint(1, 500), 100)
        spread = math.sqrt(n * math.exp(eps0)) / (math.exp(eps0) + 1)
        epsilon = min(eps0 / 2, Fraction(rng.uniform(0, 6) / spread).limit_denominator(10**6))
        first = rng.randrange(n)
        last = min(n - 1, first + rng.choice((0, 3, n // 100, n // 3)))
        bound = expanded_bound(n, eps0, epsilon, first, last)
        for a in (first, last, *(rng.randint(first, last) for _ in range(6))):
            value = count_delta_ball(CountSetting(n, a, eps0), epsilon)
            assert value.lower() <= bound.upper()
            useful += bound < value * 1.01
    assert useful > 300


def test_fewer_others_hide_no_more() -> None:
    rng = random.Random(5)
    for _ in range(60):
        a, b = rng.randint(1, 100), rng.randint(1, 100)
        more = count_delta(CountSetting(a + b + 1, a, 1), "0.1")
        for fewer in (a - 1, a):
            assert more.lower <= count_delta(CountSetting(a + b, fewer, 1), "0.1").upper


@pytest.mark.parametrize(
    ("n", "eps0", "epsilon", "width"),
    [
        (10**4, 1, "0.05", 1e-4),
        (10**5, 4, "0.1", 1e-4),
        (10**6, 1, "0.004", 1e-4),
        (10**6, 1, "0.0001", 1e-4),
        (10**6, 1, "0", 1e-4),
        (10**6, 6, "0.1", 1e-4),
        (10**9, 1, "0.0002", 1e-6),
        (10**12, 1, "0.00001", 1e-8),
    ],
)
def test_many_people(n: int, eps0: int, epsilon: str, width: float) -> None:
    found = binary_delta(n, eps0, epsilon)
    assert 0 < found.lower <= found.upper <= found.lower * (1 + width)
    assert count_delta(CountSetting(n, found.n_x0, eps0), epsilon).lower == found.lower
    rng = random.Random(n)
    for a in (0, 1, n // 2, n - 2, n - 1, *(rng.randrange(n) for _ in range(10))):
        assert count_delta(CountSetting(n, a, eps0), epsilon).lower <= found.upper


def test_a_small_budget_widens_the_bounds() -> None:
    narrow, wide = binary_delta(10**5, 4, "0.1"), binary_delta(10**5, 4, "0.1", budget=4)
    assert wide.lower <= narrow.upper <= wide.upper
    exact = binary_delta(10**5, 4, "0.1", tolerance=0)
    assert exact.upper <= exact.lower * (1 + 1e-12)
    assert narrow.lower <= exact.upper <= narrow.upper


def test_zero_and_nearly_zero() -> None:
    assert binary_delta(1000, 1, 1) == WorstDelta(0.0, 0.0, 999)
    far = binary_delta(10**6, 1, "0.5")
    assert (far.lower, far.upper) == (0.0, 1e-300)
    assert binary_delta(1, 1, 0).lower == pytest.approx(math.tanh(0.5), rel=1e-14)
