"""Mallows shuffles: against enumerated laws, chosen words, exact thresholds and exact expectations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from optdp.errors import ProblemError
from optdp.numbers.exact import geometric_ratio
from optdp.numbers.source import Source
from optdp.order.sampling import (
    Digit,
    _digits,
    hamming_word,
    held_number,
    insertions,
    kendall_word,
    uniform_word,
    word_of,
)
from tests.order.words import crossed, displaced

WORD = 1 << 64
ONE = Fraction(1)
Sampler = Callable[[Source, int, Fraction], NDArray[np.int64]]


class Given(Source):
    """A source of chosen words; a fixed word of both bits once they have run out."""

    def __init__(self, words: Iterable[int], rest: int = WORD // 3) -> None:
        super().__init__(0)
        self.given, self.rest = list(words), rest

    def words(self, size: int) -> NDArray[np.uint64]:
        taken, self.given = self.given[:size], self.given[size:]
        return np.array(taken + [self.rest] * (size - len(taken)), np.uint64)


SAMPLERS = [(kendall_word, crossed), (hamming_word, displaced)]


# ------------------------------------------------------------------------------------------------- the laws
@pytest.mark.parametrize(("sampler", "distance"), SAMPLERS)
@pytest.mark.parametrize(("n", "runs"), [(4, 3000), (5, 5000)])
@pytest.mark.parametrize("theta", ["0", "1e-6", "0.1", "0.7", "3"])
def test_words_follow_the_law(
    sampler: Sampler, distance: Callable[[Sequence[int]], int], n: int, runs: int, theta: str
) -> None:
    q, source = geometric_ratio(Fraction(theta)) if theta != "0" else ONE, Source(7)
    words = list(permutations(range(n)))
    weights = np.array([float(q) ** distance(word) for word in words])
    expected = weights / weights.sum() * runs
    seen = Counter(tuple(sampler(source, n, q).tolist()) for _ in range(runs))
    found = np.array([seen[word] for word in words])
    often = expected > 5
    found, expected = (np.append(part[often], part[~often].sum()) for part in (found, expected))
    kept = expected > 0
    assert stats.chisquare(found[kept], expected[kept]).pvalue > 1e-3


@pytest.mark.parametrize("theta", ["1e-6", "1e-3", "0.1", "1", "10"])
def test_inversions_of_many_records(theta: str) -> None:
    n, q = 10**5, geometric_ratio(Fraction(theta))
    m, gap = np.arange(1, n + 1), -math.expm1(-float(theta))
    rest = np.exp(-float(theta) * m) / -np.expm1(-float(theta) * m)
    mean = (1 - gap) / gap - m * rest
    spread = (1 - gap) / gap**2 - m**2 * (rest + rest**2)
    found = crossed(kendall_word(Source(3), n, q))
    assert abs(found - mean.sum()) < 5 * math.sqrt(spread.sum())


@pytest.mark.parametrize("theta", ["1e-6", "1", "10", "11.5", "14", "30"])
def test_displaced_of_many_records(theta: str) -> None:
    n, q = 10**5, geometric_ratio(Fraction(theta))
    held = stats.poisson(math.expm1(float(theta)))
    low, high = min(n, held.ppf(1e-7)), min(n, held.ppf(1 - 1e-7))
    word = hamming_word(Source(5), n, q)
    assert n - high - 12 <= displaced(word.tolist()) <= n - low
    assert np.array_equal(np.sort(word), np.arange(n))


def test_digits_make_up_a_geometric_number() -> None:
    """Of three digits, against the geometric law."""
    q, runs = geometric_ratio(Fraction("1e-5")), 40_000
    digits, source = _digits(q), Source(2)
    assert [digit.bits for digit in digits] == [0, 6, 6]
    found = np.zeros(runs, np.int64)
    for digit in digits:
        found = (found << digit.bits) + digit.draws(source, np.full(runs, 1 << 50))
    assert stats.kstest(found * 1e-5, "expon").pvalue > 1e-3
    low = np.bincount(found % 64, minlength=64)  # nearly uniform
    assert stats.chisquare(low).pvalue > 1e-3


# ------------------------------------------------------------------------------------------------- exactness
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(2, 3), Fraction(1, 1000), Fraction(97, 100)])
@pytest.mark.parametrize(("shift", "bits"), [(0, 0), (0, 3), (2, 0), (2, 3)])
def test_digits_turn_at_exact_thresholds(q: Fraction, shift: int, bits: int) -> None:
    ratio = q ** (1 << shift)
    digit, mass = Digit(q, shift, bits), 1 - ratio ** (1 << bits) if bits else ONE
    for v in range(7 if bits else 12):
        scaled = (1 - ratio ** (v + 1)) / mass * WORD * WORD
        threshold = -(-scaled.numerator // scaled.denominator)  # the smallest 128 bits that are not below F(v)
        for u in (threshold, threshold - 2):
            if 0 < u < WORD * WORD:
                exact = next(k for k in range(10**4) if (1 - ratio ** (k + 1)) / mass * WORD * WORD > u)
                assert digit.draws(Given(divmod(u, WORD)), np.array([1 << 60]))[0] == exact


def test_leading_ones_are_a_fair_geometric_number() -> None:
    """For `q = 1/2` the number of ones that `U` starts with, however many."""
    digit = Digit(Fraction(1, 2), 0, 0)
    for k in [*range(64), 65, 130, 300]:
        u = ((1 << k) - 1) << (512 - k) | 1 << 100
        words = [u >> (64 * j) & (WORD - 1) for j in range(7, -1, -1)]
        assert digit.draws(Given(words), np.array([1 << 60]))[0] == k
        assert digit.draws(Given(words), np.array([7]))[0] % 7 == k % 7


@pytest.mark.parametrize("q", [Fraction(1, 3), Fraction(9, 10), Fraction(1, 1000), Fraction(1, 10**40)])
def test_held_turns_at_exact_thresholds(q: Fraction) -> None:
    n, z = 6, (1 - q) / q
    weights = [z**k / math.factorial(k) for k in range(n + 1)]
    sums = [sum(weights[: k + 1]) / sum(weights) * WORD**3 for k in range(n + 1)]
    for k in range(n):
        threshold = -(-sums[k].numerator // sums[k].denominator)
        for u in (threshold, threshold - 2):
            if u > 0:
                words = [u >> 128, u >> 64 & (WORD - 1), u & (WORD - 1)]
                assert held_number(Given(words), n, q) == next(j for j in range(n + 1) if sums[j] > u)


def test_insertions_of_a_ratio_next_to_one_and_to_zero() -> None:
    near = 1 - Fraction(1, 10**60)  # six digits of ten bits and more: no overflow
    code = insertions(Source(1), 1000, near)
    assert (code >= 0).all()
    assert (code <= np.arange(1000)).all()
    assert abs(int(code.sum()) - 999 * 1000 / 4) < 5 * math.sqrt(1000**3 / 36)
    assert not insertions(Source(1), 1000, Fraction(1, 10**300)).any()
    assert displaced(hamming_word(Source(1), 1000, Fraction(1, 10**300)).tolist()) == 0
    assert displaced(hamming_word(Source(1), 1000, near).tolist()) > 980


# ------------------------------------------------------------------------------------------------- words
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 16, 17, 33, 100, 257])
def test_codes_and_words(n: int) -> None:
    code = np.random.default_rng(n).integers(0, np.arange(1, n + 1))
    word = word_of(code)
    place = np.argsort(word)
    assert [int((word[place[i] :] < i).sum()) for i in range(n)] == code.tolist()
    assert crossed(word.tolist()) == code.sum()


def test_all_codes_of_four() -> None:
    codes = np.stack(np.meshgrid(*(range(i) for i in range(1, 5)), indexing="ij"), -1).reshape(-1, 4)
    assert len({tuple(word_of(code).tolist()) for code in codes}) == 24


def test_the_largest_value_moves_first() -> None:
    assert word_of(np.array([0, 0, 0, 3])).tolist() == [3, 0, 1, 2]
    assert word_of(np.array([0, 1, 0, 0])).tolist() == [1, 0, 2, 3]


def test_extremes() -> None:
    for sampler, _ in SAMPLERS:
        assert sampler(Source(), 50, Fraction(0)).tolist() == list(range(50))
        assert sampler(Source(), 1, Fraction(1, 2)).tolist() == [0]
        uniform = sampler(Source(1), 10**5, ONE)
        assert abs(crossed(uniform) / (10**10 / 4) - 1) < 0.02


def test_seeds_repeat_and_secure_words_do_not() -> None:
    q = geometric_ratio(Fraction("0.01"))
    for sampler, _ in SAMPLERS:
        assert np.array_equal(sampler(Source(9), 1000, q), sampler(Source(9), 1000, q))
        assert not np.array_equal(sampler(Source(), 1000, q), sampler(Source(), 1000, q))


def test_equal_keys_are_drawn_again() -> None:
    assert uniform_word(Given([5, 5, 1, 30, 10, 20]), 3).tolist() == [1, 2, 0]


@pytest.mark.parametrize("sampler", [kendall_word, hamming_word])
def test_a_million_records(sampler: Sampler) -> None:
    word = sampler(Source(), 10**6, geometric_ratio(Fraction("1e-6")))
    assert word.dtype == np.int64
    assert (np.bincount(word, minlength=10**6) == 1).all()


# ------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize("sampler", [kendall_word, hamming_word])
@pytest.mark.parametrize(
    ("n", "q", "message"),
    [
        (0, "0.5", "n must be from 1"),
        (2.5, "0.5", "n must be a whole number"),
        (10**8, "0.5", "n must be from 1"),
        (5, "-0.1", "q must lie between 0 and 1"),
        (5, "1.01", "q must lie between 0 and 1"),
        (5, math.nan, "q must be finite"),
    ],
)
def test_refuses(sampler: Callable[..., object], n: int, q: object, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        sampler(Source(1), n, q)


def test_refuses_bits_that_are_not_random() -> None:
    with pytest.raises(ProblemError, match="must be random"):
        uniform_word(Given([], rest=0), 3)
    with pytest.raises(ProblemError, match="must be random"):
        kendall_word(Given([], rest=WORD - 1), 3, Fraction(1, 2))
    with pytest.raises(ProblemError, match="must be random"):
        held_number(Given([], rest=WORD - 1), 3, Fraction(1, 2))
