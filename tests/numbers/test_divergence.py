"""Hockey-stick divergences of points: against exact sums of fractions, and at the edges."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optdp.numbers.divergence import Moved, Pair

weights = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12)


def loss_of(pair: Pair, delta: float) -> float:
    """The least `L >= 0` with `delta(L) <= delta`, rounded up; infinite if there is none."""
    if pair.delta(0.0) <= delta:
        return 0.0
    guess = _root(pair, delta)
    step = 2.0**-50 * max(1.0, guess)
    while math.isfinite(guess) and pair.delta(guess) > delta:
        guess, step = guess + step, 4.0 * step
    return guess


def _root(pair: Pair, delta: float) -> float:
    """With the ratios falling, `delta(L) = U_i - e^L W_i` between two of them."""
    alive = pair.log_u > -math.inf
    log_u, log_w = pair.log_u[alive], pair.log_w[alive]
    ratio = log_u - log_w
    order = np.argsort(-ratio, kind="stable")
    ratio, above = ratio[order], np.cumsum(np.exp(log_u[order])) + pair.lost
    below = np.logaddexp.accumulate(log_w[order])
    with np.errstate(over="ignore", invalid="ignore"):
        at = np.where(np.isfinite(ratio), above - np.exp(ratio + below), above)
    broken = np.flatnonzero(at > delta)
    place = int(broken[0]) if len(broken) else len(at)
    if place == 0 or below[place - 1] == -math.inf:
        return math.inf  # what w does not cover alone is more than delta
    return max(0.0, math.log(max(above[place - 1] - delta, 5e-324)) - float(below[place - 1]))


def _pair(points: list[tuple[int, int]], lost: float = 0.0) -> Pair:
    with np.errstate(divide="ignore"):
        u, w = (np.log(np.array(side, dtype=float) / 64) for side in zip(*points, strict=True))
    return Pair(u, w, lost)


def _exactly(points: list[tuple[int, int]], growth: Fraction) -> Fraction:
    """`sum (u - growth w)_+`."""
    return sum((max(u - growth * w, Fraction(0)) for u, w in points), Fraction(0)) / 64


def _least(points: list[tuple[int, int]], delta: Fraction) -> float:
    """Over all sets: the least loss is the largest `log((u(S) - delta)/w(S))`; the sets are prefixes by the ratio."""
    order = sorted(
        points, key=lambda point: Fraction(point[0], point[1]) if point[1] else Fraction(10**9), reverse=True
    )
    worst, u, w = 0.0, Fraction(0), Fraction(0)
    for mine, other in (point for point in order if point[0]):
        u, w = u + Fraction(mine, 64), w + Fraction(other, 64)
        if u > delta:
            worst = max(worst, math.log((u - delta) / w)) if w else math.inf
    return worst


@given(weights, st.integers(0, 100))
def test_delta_of_fractions(points: list[tuple[int, int]], step: int) -> None:
    """At a loss of `log(1 + step/8)` the sum is the exact one, and never below it."""
    found = _pair(points).delta(math.log1p(step / 8))
    exact = _exactly(points, 1 + Fraction(step, 8))
    assert found == pytest.approx(float(exact), rel=1e-11, abs=1e-13)


@settings(max_examples=300)
@given(weights, st.fractions(Fraction(1, 10**9), 2), st.sampled_from([0, Fraction(1, 1000), Fraction(1, 7)]))
def test_loss_of_fractions(points: list[tuple[int, int]], delta: Fraction, lost: Fraction) -> None:
    """The loss is the least one, from above, and it keeps delta."""
    pair = _pair(points, float(lost))
    found = loss_of(pair, float(delta))
    wanted = math.inf if lost > delta else _least(points, delta - lost)
    assert found == wanted or found >= wanted - 1e-12 * max(1.0, wanted)
    if math.isfinite(found):
        assert pair.delta(found) <= float(delta)
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6 + 1e-12 / float(delta))


@given(weights, st.floats(0.0, 5.0), st.floats(0.0, 1.0))
def test_delta_falls_with_the_loss(points: list[tuple[int, int]], loss: float, more: float) -> None:
    pair = _pair(points, 0.01)
    assert 0.01 <= pair.delta(loss + more) <= pair.delta(loss) * (1 + 1e-12)


def test_more_delta_than_there_is() -> None:
    assert loss_of(_pair([(32, 0), (32, 64)]), 1.5) == 0.0
    assert loss_of(_pair([(10, 10), (20, 20)]), 1e-9) == 0.0


def test_what_the_other_law_does_not_cover() -> None:
    """Half of `u` where `w` is zero: no loss keeps a delta below it, and a loss of what is left one above it."""
    pair = _pair([(32, 0), (32, 16)])
    assert loss_of(pair, 0.4999) == math.inf
    assert loss_of(pair, 0.75) == pytest.approx(0.0, abs=1e-10)
    assert loss_of(pair, 0.6) == pytest.approx(math.log((1 - 0.6) / 0.25), abs=1e-10)


def test_losing_more_than_delta() -> None:
    assert loss_of(_pair([(32, 32)], lost=0.1), 0.05) == math.inf
    assert loss_of(_pair([(32, 32)], lost=0.1), 0.2) == 0.0


def test_plateaus() -> None:
    """Many points with one ratio, as geometric noise has: the loss is that ratio as soon as delta is small."""
    half = np.log(np.full(500, 1 / 1000))
    pair = Pair(np.concatenate((half, half)), np.concatenate((half - 2.0, half + 2.0)))
    assert pair.delta(2.0) == pytest.approx(0.0, abs=1e-13)
    for delta in (1e-12, 1e-6, 0.01, 0.3):
        assert loss_of(pair, delta) == pytest.approx(2.0 + math.log1p(-2 * delta), abs=1e-9)


@pytest.mark.parametrize("delta", [1e-15, 1e-12, 1e-9, 1e-6])
def test_small_deltas(delta: float) -> None:
    """Two normal laws on a fine grid: the loss of the tails, although almost all mass is elsewhere."""
    z = np.arange(-20, 20, 0.01)
    pair = Pair(
        -(z**2) / 2 + math.log(0.01 / math.sqrt(2 * math.pi)),
        -((z + 1) ** 2) / 2 + math.log(0.01 / math.sqrt(2 * math.pi)),
    )
    found = loss_of(pair, delta)

    def exact(loss: float) -> float:  # the closed form of the hockey-stick of two normal laws one apart
        tail = lambda x: math.erfc(x / math.sqrt(2)) / 2  # noqa: E731
        return tail(loss - 0.5) - math.exp(loss) * tail(loss + 0.5)

    assert exact(found) == pytest.approx(delta, rel=0.02)
    assert pair.delta(found) <= delta
    assert pair.delta(found - 1e-6) > delta


def test_far_below_every_float() -> None:
    """Logarithms of -5000 are zeros that do not disturb, and -inf against -inf is nothing at all."""
    pair = Pair(np.array([math.log(0.5), -5000.0, -math.inf]), np.array([math.log(0.25), -9000.0, -math.inf]))
    assert loss_of(pair, 1e-12) == pytest.approx(math.log(2), abs=1e-11)


def test_side_by_side() -> None:
    one, other = _pair([(16, 8), (8, 16)], 0.001), _pair([(20, 4), (20, 36)], 0.002)
    both = one.plus(other)
    for loss in (0.0, 0.5, 1.0, 2.0):
        assert both.delta(loss) == pytest.approx(one.delta(loss) + other.delta(loss), rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_a_law_moved_by_any_distance(seed: int) -> None:
    """`Moved` against the pair itself, with two laws side by side, one of them with holes."""
    draw = np.random.default_rng(seed)
    window, furthest, lost = 40, 12, 1e-7
    laws = []
    for weight in (1.0, 1e-3):
        half = -0.1 * np.arange(window + furthest + 1.0) ** draw.uniform(0.8, 1.4)
        half += math.log(weight) - math.log(2 * np.exp(half).sum())
        low = half - draw.uniform(0, 1e-3, len(half))
        low[draw.integers(1, len(low), 3)] = -math.inf
        laws.append((half, low))
    moved = Moved(laws, window, furthest, lost)
    places = np.arange(-window, window + 1)
    for distance in (1, 5, furthest):
        parts = [Pair(high[np.abs(places)], low[np.abs(places - distance)]) for high, low in laws]
        pair = Pair(parts[0].log_u, parts[0].log_w, lost).plus(parts[1])
        for loss in (0.0, 0.3, 2.0, 30.0):
            assert moved.delta(distance, loss) == pytest.approx(pair.delta(loss), rel=1e-9, abs=1e-15)
            assert moved.delta(distance, loss) >= pair.delta(loss) * (1 - 1e-11)
        for delta in (0.5, 0.05, 1e-2, 2e-7, 1e-8):
            found = moved.loss(distance, delta)
            assert found == pytest.approx(loss_of(pair, delta), rel=1e-9, abs=1e-12)
            assert found == math.inf or moved.delta(distance, found) <= delta
            assert moved.loss(distance, delta, 1.5) == max(found, 1.5)
