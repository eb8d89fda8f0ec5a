"""Exact draws: against enumerated words, the scalar sampler, exact laws and scipy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from optdp import SGDL, ProblemError, Source
from optdp.numbers import draws
from optdp.numbers.draws import (
    bernoulli,
    bernoulli_each,
    binomial,
    flipped_counts,
    negative_binomial,
    sgdl,
    uniform_below,
)
from optdp.numbers.exact import geometric_ratio
from optdp.numbers.sgdl import ExactNegativeBinomial

WORD = 1 << 64
THIRD = WORD // 3  # its 64 bits are followed by the same 64 bits again
UNIT, TENTH = geometric_ratio(Fraction(1)), geometric_ratio(Fraction(1, 10))


class Given(Source):
    """A source of chosen words; zero bits once they have run out."""

    def __init__(self, words: Iterable[int]) -> None:
        super().__init__(0)
        self.given = list(words)

    def words(self, size: int) -> NDArray[np.uint64]:
        taken, self.given = self.given[:size], self.given[size:]
        return np.array(taken + [0] * (size - len(taken)), np.uint64)


def packed(values: Iterable[int]) -> list[int]:
    """Bytes as the words that a draw takes them from."""
    data = bytes(values)
    return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


def follows(found: NDArray[np.int64], pmf: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> bool:
    """A chi-square test over the values that are expected often enough, and all the rest as one."""
    low, high = int(found.min()) - 1, int(found.max()) + 1
    places = np.arange(low, high + 1)
    expected = pmf(places) * len(found)
    often = expected > 20
    seen = np.bincount(found - low, minlength=len(places))
    rest, rest_seen = len(found) - expected[often].sum(), seen[~often].sum()
    if rest > 20:
        return bool(stats.chisquare([*seen[often], rest_seen], [*expected[often], rest]).pvalue > 1e-3)
    share = expected[often] / expected[often].sum()
    return bool(stats.chisquare(seen[often], share * seen[often].sum()).pvalue > 1e-3 and rest_seen < rest + 60)


# ------------------------------------------------------------------------------------------------- events


@pytest.mark.parametrize("eighths", range(9))
def test_all_bytes_make_the_probability(eighths: int) -> None:
    p, words = Fraction(eighths, 8), packed(range(256))
    assert bernoulli(Given(words), p, 256).tolist() == [byte < 32 * eighths for byte in range(256)]
    assert bernoulli_each(Given(words), np.full(256, float(p))).tolist() == [byte < 32 * eighths for byte in range(256)]


def test_ties_of_a_rational_are_resolved_by_more_bits() -> None:
    """One third is 0x55 55 55...: equal bits say nothing, the first that differ say all."""
    tie = packed([0x55] * 8)
    for word, outcome in ((THIRD - 1, True), (THIRD + 1, False), (0, True), (WORD - 1, False)):
        assert bernoulli(Given([*tie, word]), Fraction(1, 3), 1).tolist() == [outcome]
        assert bernoulli(Given([*tie, THIRD, THIRD, word]), Fraction(1, 3), 1).tolist() == [outcome]
    mixed = packed([0x54, 0x55, 0x56, 0x55, 0x55, 0x00, 0xFF, 0x55])
    found = bernoulli(Given([*mixed, THIRD - 1, THIRD, THIRD + 1, THIRD, 5, WORD - 1]), Fraction(1, 3), 8)
    assert found.tolist() == [True, True, False, True, False, True, False, False]
    with pytest.raises(ProblemError, match="must be random"):
        bernoulli(Given([*tie, *[THIRD] * 20]), Fraction(1, 3), 1)


def test_ties_of_floats_are_resolved_by_more_bits() -> None:
    for p in (0.1, 1 / 3, 1e-5, 2.0**-60, 5e-324, 1 - 2.0**-53, math.pi / 4):
        value, width = Fraction(p), 8 + 17 * 64
        exact = value * 2**width
        assert exact.denominator == 1
        for shift, outcome in ((-1, True), (0, False), (1, False)):
            number = int(exact) + shift
            first, rest = number >> (width - 8), number % (1 << (width - 8))
            words = [rest >> place & (WORD - 1) for place in range(16 * 64, -1, -64)]
            assert bernoulli_each(Given([first, *words]), np.array([p])).tolist() == [outcome]
            if p > 1e-300:
                assert bernoulli(Given([first, *words]), value, 1).tolist() == [outcome]


def test_events_follow_their_probabilities() -> None:
    size, source = 400_000, Source(11)
    for p in (Fraction(1, 3), Fraction(1, 1000), Fraction(999, 1000), Fraction(10**30 + 1, 2 * 10**30)):
        assert stats.binomtest(int(bernoulli(source, p, size).sum()), size, float(p)).pvalue > 1e-3
    p = np.linspace(0, 1, size)
    happened = bernoulli_each(source, p)
    groups, wanted = happened.reshape(8, -1).sum(axis=1), p.reshape(8, -1)
    spread = np.sqrt((wanted * (1 - wanted)).sum(axis=1))
    assert (np.abs(groups - wanted.sum(axis=1)) < 4 * spread).all()
    assert not happened[0]
    assert happened[-1]
    square = bernoulli_each(source, np.ones((3, 4)))
    assert square.shape == (3, 4)
    assert square.all()


# ------------------------------------------------------------------------------------------- uniform numbers


def test_uniform_numbers_are_unbiased() -> None:
    last = WORD - WORD % 6  # the words from here on are one incomplete run
    words = [5, 6, last - 1, last, WORD - 1, 7, last + 1, 14]
    assert uniform_below(Given(words), 6, 5).tolist() == [5, 0, 5, 1, 2]
    assert uniform_below(Given([WORD - 1, 9]), 8, 2).tolist() == [7, 1]
    assert uniform_below(Given([WORD - 1]), 1, 1).tolist() == [0]
    with pytest.raises(ProblemError, match="must be random"):
        uniform_below(Given([WORD - 1] * 2000), 6, 1)
    for m in (2, 6, 100):
        found = np.bincount(uniform_below(Source(m), m, 200_000), minlength=m)
        assert stats.chisquare(found).pvalue > 1e-3
    large = uniform_below(Source(1), 2**63 - 1, 10_000)
    assert large.min() >= 0
    assert stats.kstest(large / 2**63, "uniform").pvalue > 1e-3


# ----------------------------------------------------------------------------------------- negative binomials


@pytest.mark.parametrize(
    ("beta", "q", "tables"),
    [
        ("1e-6", TENTH, 1),
        ("1", Fraction(1, 2), 1),
        ("7.3", TENTH, 1),
        ("1", geometric_ratio(Fraction(1, 10**4)), 36),
        pytest.param("1000", geometric_ratio(Fraction(1, 100)), 5, marks=pytest.mark.slow),
    ],
)
def test_words_are_read_as_the_scalar_sampler_reads_them(beta: str, q: Fraction, tables: int) -> None:
    """Ordinary words, and those at and next to thresholds and ends, which are decided by more bits."""
    law = ExactNegativeBinomial(Fraction(beta), q)
    assert abs(law.count - tables) <= 1
    words = Source(1).words(2000).tolist()
    law.draws(np.array(words, np.uint64), Source(2).bits)
    edges = [law.tables[block][place] for block in list(law.tables)[:2] for place in (0, len(law.tables[block]) // 2)]
    steps = (-2, -1, 0, 1, 2) if tables == 1 else (1,)  # a tie takes long in a long law
    words += [*(min(max(edge + step, 0), WORD - 1) for edge in edges for step in steps), 0, WORD - 1]
    for more in (WORD // 7, WORD // 7 * 6) if tables == 1 else (WORD // 7,):
        wanted = []
        for word in words:
            queue = iter([word])
            wanted.append(law.draw(lambda _, queue=queue, more=more: next(queue, more)))  # type: ignore[misc]
        assert law.draws(np.array(words, np.uint64), lambda _, more=more: more).tolist() == wanted  # type: ignore[misc]


@pytest.mark.parametrize(("beta", "q"), [("1", UNIT), ("0.01", TENTH), ("3", TENTH), ("0.5", UNIT)])
def test_noise_follows_its_law(beta: str, q: Fraction) -> None:
    size = 300_000
    noise = sgdl(Source(8), Fraction(beta), q, size)
    assert follows(noise, SGDL(beta, q).pmf)
    counts = negative_binomial(Source(9), Fraction(beta), q, size)
    assert follows(counts, lambda k: stats.nbinom.pmf(k, float(beta), 1 - float(q)))


def test_rare_noise_is_as_rare_as_it_should_be() -> None:
    law, size = SGDL("1e-6", TENTH), 1 << 23
    found = sgdl(Source(6), law.beta, law.q, size)
    rare = found[found != 0]
    assert stats.binomtest(len(rare), size, 1 - law.pmf(0)).pvalue > 1e-3
    assert stats.binomtest(int((rare > 0).sum()), len(rare)).pvalue > 1e-3
    share = 1 - float(law.pmf(np.arange(-4, 5)).sum() - law.pmf(0)) / (1 - law.pmf(0))
    assert stats.binomtest(int((np.abs(rare) > 4).sum()), len(rare), share).pvalue > 1e-3


def test_long_laws_are_grouped_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "CHUNK", 30_000)
    q = geometric_ratio(Fraction(1, 10**4))
    found = negative_binomial(Source(3), Fraction(2), q, 100_000)
    assert stats.kstest(found * (1 - float(q)), stats.gamma(2).cdf).pvalue > 1e-3


# -------------------------------------------------------------------------------------- binomials and flips


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 4), Fraction(2, 7)])
def test_binomial_thresholds_are_exact(p: Fraction) -> None:
    """`F(j)` is rational; a uniform number just below it, at it and just above it is told apart."""
    cdf, total = [], Fraction(0)
    for j in range(4):
        total += math.comb(4, j) * p**j * (1 - p) ** (4 - j)
        cdf.append(total)
    law = draws._binomial(4, p)
    for value, step in product(cdf, (-(2**300), -(2**200), -1, 1, 2**200, 2**300)):
        number = int(value * 2**640) + step
        words = [number >> place & (WORD - 1) for place in range(576, -1, -64)]
        wanted = sum(Fraction(number, 2**640) >= threshold for threshold in cdf)
        assert law.draws(Given(words), 1).tolist() == [wanted]
    assert law.draws(Given([0] * 20), 1).tolist() == [0]
    assert law.draws(Given([WORD - 1, 5]), 1).tolist() == [4]
    with pytest.raises(ProblemError, match="must be random"):
        law.draws(Given([int(cdf[1] * 2**1024) >> place & (WORD - 1) for place in range(960, -1, -64)]), 1)


@pytest.mark.parametrize(("trials", "p"), [(1, "1/3"), (13, "0.2"), (255, "0.5"), (300, "0.001"), (40, "0.98")])
def test_binomials_follow_their_law(trials: int, p: str) -> None:
    found = binomial(Source(trials), np.full(200_000, trials), Fraction(p))
    assert follows(found, lambda k: stats.binom.pmf(k, trials, float(Fraction(p))))


def test_many_trials_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "LARGEST", 8)
    found = binomial(Source(5), np.full(100_000, 45), Fraction(1, 3))
    assert follows(found, lambda k: stats.binom.pmf(k, 45, 1 / 3))
    monkeypatch.undo()
    large = binomial(Source(5), np.full(2000, 200_001), Fraction(1, 2))
    assert stats.kstest((large - 100_000.5) / math.sqrt(200_001 / 4), "norm").pvalue > 1e-3


def flipped_law(ones: int, k: int, flip: float) -> NDArray[np.float64]:
    """By going through all ways to flip."""
    law = np.zeros(k + 1)
    for flips in product((0, 1), repeat=k):
        after = sum((i < ones) != bool(turned) for i, turned in enumerate(flips))
        law[after] += flip ** sum(flips) * (1 - flip) ** (k - sum(flips))
    return law


def test_flipped_counts_follow_their_law() -> None:
    k, flip = 6, Fraction(1, 5)
    ones = np.arange(300_000) % (k + 1)
    after = flipped_counts(Source(2), ones, k, flip)
    for start in range(k + 1):
        seen, law = np.bincount(after[ones == start], minlength=k + 1), flipped_law(start, k, float(flip))
        often = law * seen.sum() > 10
        assert stats.chisquare(seen[often], law[often] / law[often].sum() * seen[often].sum()).pvalue > 1e-3
    assert (flipped_counts(Source(2), ones, k, Fraction(0)) == ones).all()
    assert (flipped_counts(Source(2), ones, k, Fraction(1)) == k - ones).all()


def test_flipped_counts_are_flipped_bits() -> None:
    """The same law as drawing every bit: two samples that scipy cannot tell apart."""
    k, size, flip = 100, 20_000, Fraction(3, 100)
    bits = bernoulli(Source(1), flip, k * size).reshape(size, k) ^ (np.arange(k) < 37)
    after = flipped_counts(Source(4), np.full(size, 37), k, flip)
    table = [np.bincount(np.clip(found, 31, 45) - 31, minlength=15) for found in (bits.sum(axis=1), after)]
    assert stats.chi2_contingency(table).pvalue > 1e-3


# ---------------------------------------------------------------------------------------------- all of them

EVERY: list[Callable[[Source, int], NDArray[np.generic]]] = [
    lambda source, size: bernoulli(source, Fraction(1, 3), size),
    lambda source, size: bernoulli_each(source, np.full(size, 0.3)),
    lambda source, size: uniform_below(source, 1000, size),
    lambda source, size: negative_binomial(source, Fraction(1, 2), TENTH, size),
    lambda source, size: sgdl(source, Fraction(1), TENTH, size),
    lambda source, size: binomial(source, np.full(size, 50), Fraction(1, 3)),
    lambda source, size: flipped_counts(source, np.full(size, 50), 60, Fraction(1, 3)),
]


@pytest.mark.parametrize("draw", EVERY)
def test_sizes_and_seeds(draw: Callable[[Source, int], NDArray[np.generic]]) -> None:
    for size in (0, 1, 7, 1000):
        assert draw(Source(1), size).shape == (size,)
        assert draw(Source(), size).shape == (size,)
    assert (draw(Source(1), 1000) == draw(Source(1), 1000)).all()
    assert (draw(Source(1), 1000) != draw(Source(2), 1000)).any()
    assert draw(Source(1), 0).dtype == draw(Source(1), 1).dtype


def test_secure_draws_have_their_means() -> None:
    """By Hoeffding's inequality each fails once in 1e10 runs."""
    size, source = 200_000, Source()
    margin = math.sqrt(math.log(2e10) / (2 * size))
    assert abs(bernoulli(source, Fraction(1, 3), size).mean() - 1 / 3) < margin
    assert abs(bernoulli_each(source, np.full(size, 0.1)).mean() - 0.1) < margin
    assert abs(uniform_below(source, 101, size).mean() - 50) < 100 * margin
    assert abs(flipped_counts(source, np.full(size, 10), 30, Fraction(1, 5)).mean() - 12) < 30 * margin
    assert abs((sgdl(source, Fraction(1, 2), UNIT, size) == 0).mean() - SGDL("0.5", UNIT).pmf(0)) < margin


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: bernoulli(s, Fraction(4, 3), 1), "between 0 and 1"),
        (lambda s: bernoulli(s, Fraction(-1, 3), 1), "between 0 and 1"),
        (lambda s: bernoulli(s, Fraction(1, 3), -1), "size must be from 0"),
        (lambda s: bernoulli(s, Fraction(1, 3), 1.5), "size must be a whole number"),
        (lambda s: bernoulli_each(s, np.array([0.5, math.nan])), "between 0 and 1. Found nan"),
        (lambda s: bernoulli_each(s, np.array([0.5, 1.5])), "between 0 and 1. Found 1.5"),
        (lambda s: uniform_below(s, 0, 1), "m must be from 1"),
        (lambda s: uniform_below(s, 2**63, 1), "m must be from 1"),
        (lambda s: uniform_below(s, 5, -1), "size must be from 0"),
        (lambda s: negative_binomial(s, Fraction(0), TENTH, 1), "beta must lie"),
        (lambda s: negative_binomial(s, Fraction(1), Fraction(1), 1), "q must lie"),
        (lambda s: sgdl(s, Fraction(1), Fraction(1, 2), -1), "size must be from 0"),
        (lambda s: binomial(s, np.array([1.5]), Fraction(1, 2)), "trials must be a list of whole numbers"),
        (lambda s: binomial(s, np.array([[1]]), Fraction(1, 2)), "trials must be a list of whole numbers"),
        (lambda s: binomial(s, np.array([-1]), Fraction(1, 2)), "trials must be from 0"),
        (lambda s: binomial(s, np.array([1]), Fraction(3, 2)), "p must lie"),
        (lambda s: flipped_counts(s, np.array([3]), 2, Fraction(1, 2)), "ones must be from 0 to 2"),
        (lambda s: flipped_counts(s, np.array([3]), -1, Fraction(1, 2)), "k must be from 0"),
    ],
)
def test_refusals(call: Callable[[Source], object], words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        call(Source(1))
