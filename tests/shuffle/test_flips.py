"""Sums of flipped bits against exact fractions, balls, and the shuffled binary randomized response."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, arb_poly

from optdp import ProblemError
from optdp.amplification.counts import CountSetting, binary_delta, count_delta
from optdp.numbers.exact import ball, lower_fraction, precision
from optdp.shuffle.metric.flips import FlippedPair, flipped_sums

LAWS: dict[tuple[int, Fraction, int], list[Fraction]] = {}


def law(bits: int, flip: Fraction, ones: int) -> list[Fraction]:
    """The exact law of the sum."""
    key = bits, flip, ones
    if key not in LAWS:
        masses = [Fraction(1)]
        for i in range(bits):
            one = 1 - flip if i < ones else flip
            masses = [
                (masses[s] * (1 - one) if s < len(masses) else 0) + (masses[s - 1] * one if s else 0)
                for s in range(len(masses) + 1)
            ]
        LAWS[key] = masses
    return LAWS[key]


def exact_loss(p: list[Fraction], q: list[Fraction], delta: Fraction) -> float:
    """The least loss from `p` to `q`, over all sets of outcomes that matter: those of the largest ratios."""
    order = sorted(range(len(p)), key=lambda s: p[s] / q[s], reverse=True)
    above, below, best = Fraction(0), Fraction(0), Fraction(1)
    for s in order:
        above, below = above + p[s], below + q[s]
        best = max(best, (above - delta) / below)
    with precision():
        return float(ball(best).log())


def both_ways(bits: int, flip: Fraction, ones: int, distance: int, delta: Fraction) -> tuple[float, float]:
    p, q = law(bits, flip, ones), law(bits, flip, ones + distance)
    return exact_loss(p, q, delta), exact_loss(q, p, delta)


def data_set_loss(bits: int, flip: Fraction, ones: int, distance: int, delta: float, back: bool = False) -> float:
    """The loss of going from `ones` to `ones + distance` true ones, or `back`, rounded up."""
    m = np.array([float(ones if back else bits - distance - ones)])
    return float(FlippedPair(bits, flip, delta, distance).losses(m, m).upper[0])


def test_published_corrections() -> None:
    for distance, value in ((1, 0.1596), (20, 0.2531), (100, 0.4735), (400, 1.4104)):
        up = data_set_loss(5000, Fraction(1, 20), 0, distance, 1e-4)
        back = data_set_loss(5000, Fraction(1, 20), 0, distance, 1e-4, back=True)
        assert up / distance == pytest.approx(value, abs=6e-5)
        assert back < up


@pytest.mark.parametrize("flip", [Fraction(1, 100), Fraction(1, 7), Fraction(3, 10), Fraction(49, 100)])
@pytest.mark.parametrize("bits", [1, 2, 5, 10])
def test_small_numbers_of_bits(bits: int, flip: Fraction) -> None:
    for delta in (Fraction(1, 2**40), Fraction(1, 1024), Fraction(1, 16), Fraction(3, 4)):
        for d in range(1, bits + 1):
            found, truth = FlippedPair(bits, flip, float(delta), d).worst(), 0.0
            for m in range(bits - d + 1):
                up, back = both_ways(bits, flip, m, d, delta)
                truth = max(truth, up, back)
                for value, way in ((up, False), (back, True)):
                    loss = data_set_loss(bits, flip, m, d, float(delta), way)
                    assert value * (1 - 1e-14) <= loss <= value * (1 + 1e-9) + 1e-12
            assert found.lower * (1 - 1e-14) <= truth <= found.upper * (1 + 1e-14)
            assert found.upper <= found.lower * (1 + 1e-9) + 1e-12
            back = both_ways(bits, flip, found.ones, d, delta)[1]
            assert found.lower == pytest.approx(back, rel=1e-9, abs=1e-12)


def test_random_settings() -> None:
    source = random.Random(5)
    for _ in range(60):
        bits = source.randrange(11, 60)
        flip = Fraction(source.randrange(1, 500), 1000)
        ones = source.randrange(bits)
        distance = source.randrange(1, bits - ones + 1)
        delta = Fraction(2.0 ** -source.uniform(1, 60))
        for value, way in zip(both_ways(bits, flip, ones, distance, delta), (False, True), strict=True):
            loss = data_set_loss(bits, flip, ones, distance, float(delta), way)
            assert value * (1 - 1e-14) <= loss <= value * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize(("ones", "zeros"), [(0, 400), (1, 0), (150, 250), (400, 3), (30, 2000)])
@pytest.mark.parametrize("flip", [Fraction(1, 1000), Fraction(1, 20), Fraction(2, 5)])
def test_probabilities_against_balls(ones: int, zeros: int, flip: Fraction) -> None:
    """Tails and masses at every place above the mean, however small, are within the errors stated, which are small."""
    with precision(2000):
        f = ball(flip)
        masses = (arb_poly([f, 1 - f]) ** ones * arb_poly([1 - f, f]) ** zeros).coeffs()
        tails = [arb(0)]
        for mass in reversed(masses):
            tails.append(tails[-1] + mass)
        tails = tails[:0:-1]
        start = math.floor(float(flip) * (zeros - ones) + ones - 3 * math.sqrt((ones + zeros) * float(flip)))
        places = sorted({*range(max(start, 0), ones + zeros + 1, 7), ones + zeros - 1, ones + zeros})
        count = len(places)
        found = flipped_sums(
            float(flip), np.full(count, float(ones)), np.full(count, float(zeros)), np.array(places, float) - ones
        )
        for i, s in enumerate(places):
            for value, error, truth in (
                (found.tail[i], found.tail_error[i], tails[s]),
                (found.mass[i], found.mass_error[i], masses[s]),
            ):
                assert abs((arb(value) - truth.log()).exp() - 1) <= error + 1e-16 * abs(value)
            assert found.tail_error[i] <= 2e-11 + 5e-13 * abs(found.tail[i])
            assert found.mass_error[i] <= 1e-6


@pytest.mark.parametrize(
    ("bits", "flip"), [(200, Fraction(1, 10)), (5000, Fraction(1, 20)), (10**6, Fraction(1, 5000))]
)
def test_distance_one_is_binary_randomized_response(bits: int, flip: Fraction) -> None:
    delta = 1e-5
    found = FlippedPair(bits, flip, delta, 1).worst(1e-4)
    with precision():
        eps0 = lower_fraction(ball((1 - flip) / flip).log(), 200)
    at_upper = binary_delta(bits, eps0, found.upper, tolerance=1e-3)
    assert at_upper.lower <= delta * (1 + 1e-12)
    assert at_upper.upper <= delta * (1 + 2e-3)
    at_lower = binary_delta(bits, eps0, found.lower * (1 - 1e-9), tolerance=1e-3)
    assert at_lower.upper >= delta
    assert found.upper <= found.lower * (1 + 1e-4)


def test_blocks_hold_all_data_sets() -> None:
    """The bounds of the search against all data sets of a size that is just searched."""
    bits, delta = 2500, 1e-6
    for flip, distance in ((Fraction(1, 500), 1), (Fraction(1, 500), 30), (Fraction(1, 10), 7), (Fraction(2, 5), 900)):
        found = FlippedPair(bits, flip, delta, distance).worst(1e-3)
        places = np.arange(bits - distance + 1.0)
        worst = float(FlippedPair(bits, flip, delta, distance).losses(places, places).upper.max())
        assert found.lower <= worst <= found.upper * (1 + 1e-10)
        assert found.upper <= found.lower * (1 + 1e-3)
        back = data_set_loss(bits, flip, found.ones, distance, delta, back=True)
        assert found.lower == pytest.approx(back, rel=1e-9)
        assert found.lower * (1 - 1e-3) <= FlippedPair(bits, flip, delta, distance).good(steps=0)[0] <= found.upper


def test_the_loss_grows_with_the_distance() -> None:
    distances = (1, 2, 3, 5, 10, 20, 50, 200, 1000, 10**4, 10**5)
    found = [FlippedPair(10**5, Fraction(1, 200), 1e-6, distance).worst() for distance in distances]
    for one, next_one in pairwise(found):
        assert one.lower < next_one.lower
    assert all(one.upper <= one.lower * 1.001 for one in found)
    assert found[-1].upper > 1e5


@pytest.mark.parametrize("bits", [10**7, 10**8, 10**9])
@pytest.mark.parametrize("flips", [1, 100, 10**4, 10**6])
def test_many_bits(bits: int, flips: int) -> None:
    for distance in (1, 20, 5000):
        one = FlippedPair(bits, Fraction(flips, bits), 1e-6, distance).worst()
        assert 0 < one.lower <= one.upper <= one.lower * 1.001


@pytest.mark.parametrize(("flip", "distance"), [(Fraction(1, 20), 1), (Fraction(2, 5), 1), (Fraction(2, 5), 20)])
def test_very_many_flips(flip: Fraction, distance: int) -> None:
    """So many that neighbouring places cannot be told apart by floats: the wider proof serves."""
    found = FlippedPair(10**9, flip, 1e-6, distance).worst()
    assert 0 < found.lower <= found.upper <= found.lower * 1.001
    with precision():
        eps0 = lower_fraction(ball((1 - flip) / flip).log(), 200)
    setting = CountSetting(10**9, found.ones, eps0)
    if distance == 1:
        assert count_delta(setting, found.lower).upper >= 1e-6 >= count_delta(setting, found.upper).lower


def test_wide_proofs_agree_with_exact_ones() -> None:
    pair, ones = FlippedPair(10**8, Fraction(1, 10), 1e-6, 3), np.linspace(0, 10**8 - 3, 9).round()
    exact = pair.losses(ones, ones)
    mean, spread = 3 + 0.1 * (10**8 - 6 - 2 * ones), 3000.0
    place = np.round(mean + spread * exact.start)
    for reach in (4, 16, 64):
        _, upper, move = pair._window(ones, 10**8 - 3 - ones, place, reach)
        assert not move.any()
        assert np.all(exact.lower <= upper)
        assert np.all(upper <= exact.upper * (1 + 1e-7 + 10 * (reach / spread) ** 2))


def test_no_loss_where_the_laws_hardly_differ() -> None:
    found = FlippedPair(10**6, Fraction(2, 5), 0.01, 1).worst()
    assert found.lower == found.upper == 0.0


def test_too_many_bits_are_refused() -> None:
    with pytest.raises(ProblemError, match="bits must be from 1 to 1,000,000,000,000"):
        FlippedPair(10**13, Fraction(1, 4), 0.1, 1)
