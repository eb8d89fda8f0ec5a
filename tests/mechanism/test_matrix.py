"""The deployed table: its law, and draws that follow it exactly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from optdp import NoiseMatrix, ProblemError
from optdp.numbers.exact import ball, geometric_ratio, precision

Q = geometric_ratio(Fraction(3, 10))
SMALL = NoiseMatrix((0, 2), (0, 2), 8, (((0, 8),), ((0, 1), (1, 6), (2, 1)), ((1, 3), (2, 5))), Q, "error", 2)


@given(st.integers(0, 2))
def test_probabilities_sum_to_one(x: int) -> None:
    with precision():
        total = sum((SMALL.probability(x, s) for s in range(-300, 300)), arb(0))
        assert abs(float(total) - 1) < 1e-12


def test_inside_mass_is_the_sum_it_stands_for() -> None:
    with precision():
        matrix = NoiseMatrix((0, 0), (3, 7), 2, (((3, 2),),), Q, "geometric", 12)
        q = ball(Q)
        for x in range(13):
            direct = sum(((1 - q) / (1 + q) * q ** abs(x - s) for s in range(3, 8)), arb(0))
            assert direct.overlaps(matrix.inside_mass(x))


@pytest.mark.parametrize("x", [0, 1, 2])
def test_draws_follow_the_law(x: int) -> None:
    size = 60_000
    draws = Counter(SMALL.sample(x, size, seed=1))
    with precision():
        cells = [(float(SMALL.probability(x, s)), draws[s]) for s in range(-12, 15)]
    cells = [cell for cell in cells if cell[0] > 0]
    rest = (1 - sum(p for p, _ in cells), size - sum(n for _, n in cells))
    expected, seen = zip(*[*cells, rest], strict=True)
    assert chisquare(seen, [size * p for p in expected]).pvalue > 1e-6


def test_inputs_outside_are_refused_or_served() -> None:
    with pytest.raises(ProblemError, match=r"0\.\.2"):
        SMALL.sample(3)
    with pytest.raises(ProblemError, match=r"0\.\.2"):
        SMALL.sample(-1)
    with pytest.raises(ProblemError, match="size"):
        SMALL.sample(1, -1)
    clamped = NoiseMatrix((1, 2), (1, 2), 2, (((1, 2),), ((2, 2),)), None, "clamp", 5)
    assert clamped.sample(0) == [1]
    assert clamped.sample(5, 3) == [2, 2, 2]
    partial = NoiseMatrix((1, 2), (1, 2), 2, (((1, 2),), ((2, 2),)), None, "error", 5)
    with pytest.raises(ProblemError, match="rows for"):
        partial.sample(0)


def test_secure_randomness_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr("optdp.numbers.source.os.urandom", urandom)
    SMALL.sample(0, 2)
    assert sum(asked) >= 2 * 8 * SMALL.drawing.slots
    assert SMALL.sample(1, 50, seed=3) == SMALL.sample(1, 50, seed=3)
