"""Bounds of E[sum]_+ against exact sums in balls: powers of polynomials, binomial sums and shuffled cells."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, arb_poly

from optdp.numbers.exact import ball, precision
from optdp.numbers.positive_part import LogEnclosure, log_positive_part
from tests.amplification.balls import BallCells, delta_ball

BITS = 900


def bounds(values: Sequence[float], masses: Sequence[float], n: int, grid: int) -> LogEnclosure:
    found = log_positive_part(np.array(values, dtype=np.float64), np.array(masses, dtype=np.float64), n, grid)
    assert not math.isnan(found.lower)
    assert not math.isnan(found.upper)
    assert found.lower <= found.upper
    return found


def assert_encloses(found: LogEnclosure, truth: arb) -> None:
    """`truth` is a ball around E S_+; contradictions are what is proved beyond its radius."""
    with precision(BITS):
        if found.lower > -math.inf:
            assert not arb(found.lower).exp() > truth, f"lower - log truth = {float(arb(found.lower) - truth.log())}"
        if found.upper == -math.inf:
            assert truth.contains(0)
        else:
            assert not arb(found.upper).exp() < truth, f"log truth - upper = {float(truth.log() - arb(found.upper))}"


def by_polynomials(values: Sequence[int], masses: Sequence[float], n: int, bits: int = BITS) -> arb:
    """E S_+ of whole values: the coefficients of the n-th power of their generating function."""
    low = min(0, *values)
    law = {-low: 1 - sum((Fraction(mass) for mass in masses), Fraction(0))}
    assert law[-low] >= 0
    for value, mass in zip(values, masses, strict=True):
        law[value - low] = law.get(value - low, Fraction(0)) + Fraction(mass)
    with precision(bits):
        power = arb_poly([ball(law.get(i, Fraction(0))) for i in range(max(law) + 1)]) ** n
        first = 1 - low * n
        return sum((power[i] * (i + low * n) for i in range(first, len(power))), arb(0))


def of_two(values: Sequence[float], masses: Sequence[float], n: int, bits: int = 300) -> arb:
    """E S_+ of two values whose masses are read as `m` and `1 - m`, term by term."""
    one, two = (Fraction(value) for value in values)
    with precision(bits):
        mass = ball(Fraction(masses[0]))
        odds, total = mass / (1 - mass), arb(0)
        term = (1 - mass) ** n
        for count in range(n + 1):
            reach = count * one + (n - count) * two
            if reach > 0:
                total += term * ball(reach)
            term = term * odds * (n - count) / (count + 1)
        return total


def by_balls(values: Sequence[float], masses: Sequence[float], n: int) -> arb:
    """E S_+ as `n` times a divergence at epsilon = 0, of cells whose likelihoods differ by the value."""
    exact = [Fraction(value) for value in values]
    rows = [(max(v, Fraction(0)), max(-v, Fraction(0)), Fraction(m)) for v, m in zip(exact, masses, strict=True)]
    with precision(400):
        parts = [(ball(up * mass), ball(down * mass), ball(mass)) for up, down, mass in rows]
        return n * delta_ball(BallCells(*(tuple(column) for column in zip(*parts, strict=True))), n, 0)


def random_law(rng: random.Random) -> tuple[list[int], list[float]]:
    """Whole values, of which some have tiny masses; what is left to 1 is nothing, little or most of it."""
    size, reach = rng.randint(2, 6), rng.choice([1, 3, 10, 30, 100, 300])
    values = [rng.randint(-reach, reach) for _ in range(size)]
    values[0] = max(1, abs(values[0]))
    weights = [rng.random() ** rng.choice([1, 3, 20]) + 1e-13 for _ in range(size)]
    total = sum(weights) * rng.choice([1.0, 1.0, 1.001, 1.5, 100.0])
    masses = [weight / total for weight in weights]
    while sum(map(Fraction, masses)) > 1:
        masses = [mass * (1.0 - 2.0**-52) for mass in masses]
    return values, masses


@pytest.mark.parametrize("seed", range(5))
def test_random_laws_are_enclosed(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(32):
        values, masses = random_law(rng)
        n = rng.choice([2, 3, 4, 5, 6, 8, 10, 20, 40, 63, 64, 65, 100, 128, 200, 320, 500, 2000])
        n = min(n, 10000 // (max(values) - min(0, *values)))
        truth = by_polynomials(values, masses, n)
        unit = 2.0 ** rng.randint(-30, 30)
        scaled = [value * unit for value in values]
        for grid in (1 << rng.randint(8, 11), 1 << rng.randint(12, 14)):
            with precision(BITS):
                assert_encloses(bounds(scaled, masses, n, grid), truth * arb(unit))


def test_random_real_values_are_enclosed() -> None:
    rng = random.Random(10)
    for _ in range(60):
        n = rng.choice([2, 3, 5, 7, 12, 30, 64, 70, 150, 320, 400])
        values = [rng.uniform(0.1, 2.0), -(rng.random() ** 3) * rng.choice([1.0, 3.0, 0.3 * n, n - 1.5])]
        masses = [rng.random() ** 4, rng.random()]
        if n <= 70:
            values.append(rng.uniform(-1.0, 1.0))
            masses.append(rng.random())
        total = sum(masses) * rng.choice([1.0 + 1e-12, 1.1, 3.0])
        masses = [mass / total for mass in masses]
        found = bounds(values, masses, n, 1 << rng.randint(8, 14))
        assert_encloses(found, by_balls(values, masses, n))


def test_huge_ratios_of_values_are_enclosed() -> None:
    rng = random.Random(11)
    for ratio in (1e2, 1e4, 1e6):
        for _ in range(12):
            n, mass = rng.choice([2, 5, 10, 100, 320, 1000]), 10 ** rng.uniform(-9, -0.1)
            for values in ([ratio, -rng.uniform(0.3, 3.0)], [1.0, -rng.uniform(0.1, 1.0) * min(ratio, n - 1.0)]):
                for masses in ([mass, 1.0 - mass], [1.0 - mass, mass]):
                    if Fraction(masses[0]) + Fraction(masses[1]) == 1:
                        found = bounds(values, masses, n, 1 << rng.randint(8, 14))
                        assert_encloses(found, of_two(values, masses, n))


@pytest.mark.parametrize("grid", [1 << 8, 1 << 12, 1 << 14])
@pytest.mark.parametrize(
    ("values", "masses", "n"),
    [
        ([-10, 25, -14], [0.07336073179475239, 0.2576613059911437, 0.659076972115094], 8),
        ([-24, 19], [0.44824945531979105, 0.5517505446802089], 8),
        ([91, 71, 65, 64, -60], [0.0363, 0.0359, 0.2185, 0.4045, 0.3047], 5),
        ([542, -560, 104], [0.6105, 0.3894, 1.6e-7], 6),
        ([-77, 84, 93], [0.8433, 0.0789, 0.0777], 10),
    ],
)
def test_the_grid_has_room_for_the_noise_below_the_least_sum(
    values: list[int], masses: list[float], n: int, grid: int
) -> None:
    """All copies at the least value, each split onto the grid points around it: the sum must not leave the grid."""
    assert_encloses(bounds(values, masses, n, grid), by_polynomials(values, masses, n))


@pytest.mark.parametrize("rare", [5e-4, 1.5e-3, 2e-3])
@pytest.mark.parametrize("grid", [1 << 12, 1 << 13, 1 << 14, 1 << 16])
def test_the_grid_has_room_for_the_noise_above_the_largest_sum(rare: float, grid: int) -> None:
    """The steps are longer than the largest value, which so is split: the sum must not leave the grid above."""
    masses = [1.0 - rare, 1.0 - (1.0 - rare)]
    assert_encloses(bounds([1.0, -1000.0], masses, 1500, grid), of_two([1.0, -1000.0], masses, 1500))


@pytest.mark.parametrize(("values", "share"), [((-22, 21), 0.0558207537703062), ((-5, 3), 0.02), ((2, 1), 0.3)])
@pytest.mark.parametrize("n", [63, 320, 640])
def test_sums_that_are_mostly_positive_are_enclosed(values: tuple[int, int], share: float, n: int) -> None:
    masses = [share, 1.0 - share]
    while Fraction(masses[0]) + Fraction(masses[1]) != 1:
        masses[0] = 1.0 - masses[1]
    for grid in (1 << 8, 1 << 10, 1 << 13):
        assert_encloses(bounds(values, masses, n, grid), of_two(values, masses, n))


@pytest.mark.parametrize("n", [64, 128, 4096, 4097, 8192, 4096 * 3 + 5, 262144 + 1])
def test_digits_of_zero(n: int) -> None:
    for values, masses in (([1.0, -1.0], [0.25, 0.28]), ([1.0, -1.37], [0.3, 0.25]), ([3.1, -0.2], [0.01, 0.4])):
        found = bounds(values, masses, n, 1 << 14)
        assert_encloses(found, by_balls(values, masses, n))
        assert found.upper - found.lower < 0.5 or found.upper < -150.0


@pytest.mark.parametrize("n", [10**6, 2**22 - 1, 2**22, 5 * 10**6])
@pytest.mark.parametrize("shift", [0.0, 1e-3])
def test_very_many_copies(n: int, shift: float) -> None:
    """Either side of where extended precision begins; with balls, and with the normal law that the sum is close to."""
    values, masses = [1.0, -1.0 - shift], [0.125, 0.125]
    found = bounds(values, masses, n, 1 << 14)
    truth = by_balls(values, masses, n)
    assert_encloses(found, truth)
    assert found.upper - found.lower < 0.01
    if shift == 0.0:
        normal = 0.5 * math.log(n * 0.25) - 0.5 * math.log(2.0 * math.pi)
        assert abs(found.upper - normal) < 0.01


def test_extended_precision_joins_double_precision() -> None:
    values, masses = [1.7, -0.9, -0.7], [0.2, 0.3, 0.1]
    before, after = bounds(values, masses, 2**22 - 1, 1 << 14), bounds(values, masses, 2**22, 1 << 14)
    assert abs(before.upper - after.upper) < 1e-3
    assert before.lower <= after.upper
    assert after.lower <= before.upper + 1e-5


@pytest.mark.parametrize("n", [10**8, 10**9])
def test_mass_that_a_sum_of_floats_does_not_see(n: int) -> None:
    """The masses sum to 1 - 2^-54, and in floats to 1: with n = 10^9 the rest is worth 5e-8 of the expectation.

    E|S| = n m C(n-1, ...) has no short form with three values; but given how many are not 0, S is a walk. The rest is
    so rare that it is enough to know E S_+ without it and with one of it, and that E S_+ falls with it.
    """
    rest = Fraction(1, 2**54)
    masses = [0.5 - 2.0**-54, 0.5]
    found = bounds([1.0, -1.0], masses, n, 1 << 12)
    with precision(200):
        high, low = (ball(Fraction(mass)) for mass in masses)
        truth = arb(0)
        for others in range(4):
            steps = n - others
            chance = arb.bin_uiui(n, others) * ball(rest) ** others * (high + low) ** steps
            truth += chance * walk(steps, high / (high + low))
        assert not arb(found.upper).exp() < truth
        missed = truth * 1e-25
        assert not arb(found.lower).exp() > truth + missed


def walk(n: int, up: arb) -> arb:
    """E S_+ of n steps of +-1: `sum_{k > n/2} (2k - n) C(n,k) up^k down^(n-k)`.

    `(2k - n)` is `(up - down) n` and, for the rest, a sum that telescopes: `k C(n,k) down - (n-k) C(n,k) up` is a
    difference of neighbours. So it is `(up - down) n P(K >= t) + 2 t C(n,t) up^t down^(n-t+1)` with `t = n//2 + 1`.
    """
    down, t = 1 - up, n // 2 + 1
    edge = arb.bin_uiui(n, t) * up**t * down ** (n - t)
    tail = half_tail(n, t, up, edge)
    return (up - down) * n * tail + 2 * t * edge * down


def half_tail(n: int, t: int, up: arb, edge: arb) -> arb:
    """P(K >= t) near 1/2, where only a few digits are needed: `up - down` is 1e-16."""
    symmetric = (1 - (arb.bin_uiui(n, n // 2) / arb(2) ** n if n % 2 == 0 else arb(0))) / 2
    slope = n * edge * 4  # |d P / d up| is at most about n C(n-1, t-1) up^(t-1) down^(n-t)
    return symmetric + arb(0, 1) * slope * abs(2 * up - 1)


def test_tiny_expectations() -> None:
    """1e-300 and far below: the logarithm is as good as ever."""
    for values, masses, n in (
        ([1.0, -1.0], [2.0**-10, 1.0 - 2.0**-10], 150),
        ([1.0, -1.0], [2.0**-20, 1.0 - 2.0**-20], 1000),
        ([1.0, -1.0], [0.125, 0.875], 2000),
        ([0.7, -1.9], [2.0**-6, 1.0 - 2.0**-6], 2000),
        ([3.0, -0.4], [2.0**-12, 1.0 - 2.0**-12], 2000),
        ([1.0, -30.0], [2.0**-3, 1.0 - 2.0**-3], 500),
    ):
        found = bounds(values, masses, n, 1 << 14)
        truth = of_two(values, masses, n, 600)
        assert_encloses(found, truth)
        assert found.upper < 0.97 * float(truth.log())


@pytest.mark.parametrize("mass", [2.0**-30, 2.0**-44, 2.0**-53])
@pytest.mark.parametrize("far", [1.0, 30.0, 1000.0])
def test_a_tiny_moment_generating_function(mass: float, far: float) -> None:
    """Nearly all the mass at a value that hardly allows a positive sum: the function is as small as `mass`."""
    masses = [mass, 1.0 - mass]
    for n in (10, 1200, 2000):
        found = bounds([1.0, -far], masses, n, 1 << 12)
        truth = of_two([1.0, -far], masses, n, 600)
        assert_encloses(found, truth)
        with precision(300):
            assert found.upper < 0.5 * float(truth.log())


@pytest.mark.parametrize("n", [2, 5, 10, 100, 1001])
def test_laws_that_can_hardly_be_positive(n: int) -> None:
    """One copy of the negative value, or none, on either side of what drops it for good."""
    for low in (-(n - 1.0) + 2.0**-20, -(n - 1.0) + 0.5, -(n - 1.0), -n + 0.5, -2.0 * n):
        for mass in (0.5, 2.0**-10, 1.0 - 2.0**-10):
            masses = [mass, 1.0 - mass]
            assert_encloses(bounds([1.0, low], masses, n, 1 << 12), of_two([1.0, low], masses, n))


def test_a_value_at_the_brink_is_dropped_only_if_it_is_hopeless() -> None:
    """`3 x` rounds down to `-low`, so that one of `low` and three of `x` sum to more than 0, if barely."""
    x = next(x for x in (0.7 + i / 64 for i in range(64)) if Fraction(3.0 * x) < 3 * Fraction(x))
    low, masses = -3.0 * x, [2.0**-70, 1.0]
    found = bounds([x, low], masses, 4, 1 << 10)
    with precision(300):
        small = ball(Fraction(masses[0]))
        truth = 4 * small**3 * (1 - small) * ball(3 * Fraction(x) + Fraction(low)) + 4 * small**4 * ball(Fraction(x))
        assert not arb(found.upper).exp() < truth


def test_signs() -> None:
    for n in (2, 64, 5000):
        assert bounds([-1.0, -0.5], [0.5, 0.5], n, 256) == LogEnclosure(-math.inf, -math.inf)
        assert bounds([0.0, -0.5], [0.5, 0.25], n, 256) == LogEnclosure(-math.inf, -math.inf)
        assert bounds([0.0, 0.0], [0.5, 0.5], n, 256) == LogEnclosure(-math.inf, -math.inf)
        assert bounds([], [], n, 256) == LogEnclosure(-math.inf, -math.inf)
    for values, masses in (([1.0, 0.5], [0.5, 0.5]), ([2.0, 0.0], [0.25, 0.75]), ([3.0], [0.125]), ([1.0], [1.0])):
        for n in (2, 5, 64, 1000):
            mean = n * sum(v * m for v, m in zip(values, masses, strict=True))
            found = bounds(values, masses, n, 1 << 12)
            assert found.lower <= math.log(mean) + 1e-12
            assert found.upper >= math.log(mean) - 1e-12


def test_rare_large_values_are_not_tilted_away() -> None:
    """One large value in a million people is what matters; a tilt that suits its size must find that."""
    for values, mass, n in (([1e6, -1.0], 2.0**-40, 2), ([1e3, -0.5], 2.0**-20, 30)):
        masses = [mass, 1.0 - mass]
        found = bounds(values, masses, n, 1 << 14)
        truth = of_two(values, masses, n)
        assert_encloses(found, truth)
        with precision(300):
            assert found.upper < float(truth.log()) + 1.5


def test_zero_masses_change_nothing() -> None:
    plain = bounds([1.0, -2.0], [0.25, 0.5], 50, 1 << 12)
    with_zero = bounds([1.0, -2.0, -1.0], [0.25, 0.5, 0.0], 50, 1 << 12)
    truth = by_balls([1.0, -2.0], [0.25, 0.5], 50)
    assert_encloses(plain, truth)
    assert_encloses(with_zero, truth)


def test_finer_grids_are_tighter() -> None:
    values, masses = [1.3, 0.21, -0.77, -1.9], [0.3, 0.1, 0.3, 0.1]
    for n in (10, 100, 3000, 100_000):
        widths, uppers = [], []
        for grid in (1 << 10, 1 << 12, 1 << 14, 1 << 16):
            found = bounds(values, masses, n, grid)
            widths.append(found.upper - found.lower)
            uppers.append(found.upper)
        assert all(finer <= coarser + 1e-9 for coarser, finer in pairwise(uppers))
        assert all(finer <= coarser + 1e-9 for coarser, finer in pairwise(widths))
        assert widths[-1] < 1e-2


def test_chernoff_is_never_beaten_by_more_than_its_own_factor() -> None:
    """Every bound lies below `inf_theta M^n / (e theta)`, computed on a plain grid of theta."""
    values, masses = np.array([1.0, -1.3, -0.2]), np.array([0.1, 0.3, 0.6])
    thetas = np.geomspace(1e-4, 20.0, 4000)
    log_mgf = np.log(np.exp(thetas[:, None] * values) @ masses)
    for n in (10, 100, 10**4, 10**6):
        best = float((n * log_mgf - 1.0 - np.log(thetas)).min())
        assert bounds(list(values), list(masses), n, 1 << 12).upper <= best + 1e-3
