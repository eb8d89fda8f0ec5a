"""The deployed table: its law, and draws that follow it exactly."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from optdp import NoiseMatrix, ProblemError
from optdp.math.exact import ball, geometric_ratio, precision
from optdp.noise.matrix import ExactGeometric

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


def test_table_without_tail_is_exact_over_all_words() -> None:
    matrix = NoiseMatrix((0, 0), (0, 3), 8, (((0, 3), (2, 4), (3, 1)),), None, "error", 0)
    words = iter(range(8))
    drawn = Counter(itertools.chain(matrix._from_row(matrix.rows[0], 8, lambda bits: next(words))))
    assert drawn == {0: 3, 2: 4, 3: 1}


@given(st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50)), st.integers(1, 2**64 - 1))
def test_geometric_draw_inverts_the_exact_law(q: Fraction, word: int) -> None:
    """`g` is the number of powers of q above U; checked with fractions, U being the word followed by zeros."""
    noise = ExactGeometric(q)
    words = itertools.chain([word], itertools.repeat(0))
    found = noise.draw(lambda bits: next(words))
    u = Fraction(word, 2**64)
    assert u < q**found or found == 0
    assert u >= q ** (found + 1)


def test_geometric_draw_looks_closer_when_the_first_word_ties() -> None:
    q = Fraction(2, 3)
    noise = ExactGeometric(q)
    for k in range(1, 105):
        word = int(q**k * 2**64)
        more = int(q**k * 2**128) - (word << 64)
        for second, above in ((more + 1, False), (max(more - 1, 0), True)):
            if second >= 2**64 or (second == 0 and more == 0):
                continue
            words = itertools.chain([word, second], itertools.repeat(0))
            g = noise.draw(lambda bits: next(words))  # noqa: B023
            u = Fraction((word << 64) | second, 2**128)
            assert q ** (g + 1) <= u < q**g if u else True
            assert (g >= k) == above


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

    def bits(width: int) -> int:
        asked.append(width)
        return 1 << (width - 1)

    monkeypatch.setattr("optdp.noise.matrix.secrets.randbits", bits)
    SMALL.sample(0, 2)
    assert asked
    assert SMALL.sample(1, 50, seed=3) == SMALL.sample(1, 50, seed=3)
