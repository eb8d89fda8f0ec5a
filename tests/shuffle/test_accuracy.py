"""Errors of metric shuffles over all data: enumeration of every data set for few people, simulation for more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, nbinom

from optdp import MetricShuffle, Source, solve
from optdp.shuffle.metric.accuracy import AT_HAND, Accuracy, accuracy
from optdp.shuffle.metric.design import Design
from optdp.shuffle.metric.protocol import MetricProtocol
from tests.shuffle import brute_force

Floats = NDArray[np.float64]
Law = tuple[Floats, Floats]
"""Absolute errors, and their probabilities."""


def design(n: int, k: int, c: int, beta: str, eps_geo: str, quantum: int = 1, dimensions: int = 1) -> Design:
    return Design.noisy("hybrid", n, Fraction(beta), Fraction(eps_geo), c, k=k, quantum=quantum, dimensions=dimensions)


def every_error(given: Design) -> Iterator[Law]:
    """The law of one coordinate's error for every data set: the protocol as it is run, from its definition."""
    assert given.shares is not None
    assert given.c is not None
    laws = brute_force.padded_laws(given.k, given.c, given.shares.beta, given.shares.q, given.quantum)
    for values in combinations_with_replacement(range(given.k + 1), given.n):
        law = brute_force.sum_law(laws, values).astype(float)
        yield np.abs(given.quantum * (np.arange(len(law)) - given.n * given.c) - sum(values)), law


def every_flip(bits: int, f: float) -> Iterator[Law]:
    for ones in range(bits + 1):
        law = np.convolve(
            binom.pmf(np.arange(ones + 1), ones, 1 - f), binom.pmf(np.arange(bits - ones + 1), bits - ones, f)
        )
        yield np.abs((np.arange(bits + 1) - bits * f) / (1 - 2 * f) - ones), law


def together(one: Law, other: Law) -> Law:
    return np.hypot(one[0][:, None], other[0][None, :]).ravel(), np.outer(one[1], other[1]).ravel()


def truth(laws: list[Law], found: Accuracy) -> tuple[float, float, float]:
    """The largest errors over data, and how often the interval is missed at worst."""
    mae = max(float(np.dot(errors, law)) for errors, law in laws)
    rmse = max(math.sqrt(float(np.dot(errors**2, law))) for errors, law in laws)
    return mae, rmse, max(float(law[errors > found.within_95 * (1 + 1e-12)].sum()) for errors, law in laws)


def assert_covers(laws: list[Law], found: Accuracy, tight: float) -> None:
    mae, rmse, missed = truth(laws, found)
    assert mae * (1 - 1e-9) <= found.mae <= tight * mae
    assert rmse * (1 - 1e-9) <= found.rmse <= tight * rmse
    assert found.mae <= found.rmse
    assert missed <= 0.05 + 1e-9
    narrower = max(float(law[errors > found.within_95 / tight**2].sum()) for errors, law in laws)
    assert narrower > 0.05 or found.within_95 == 0.0


NOISE = [
    (design(2, 3, 1, "1", "0.5"), 1.5),
    (design(3, 2, 0, "1", "0.3"), 1.6),
    (design(1, 5, 0, "1", "0.1"), 2.0),
    (design(3, 2, 2, "1/3", "0.5"), 1.2),
    (design(5, 2, 1, "1/5", "0.4"), 1.4),
    (design(4, 1, 3, "1/2", "0.3"), 1.5),
    (design(5, 2, 12, "1", "1"), 1.1),
    (design(5, 2, 9, "1/5", "1"), 1.1),
    (design(2, 3, 40, "1", "1"), 1.1),
    (design(3, 4, 2, "1", "0.7", 2), 1.6),
    (design(3, 6, 8, "1", "0.7", 3), 1.5),
    (design(3, 5, 30, "1/3", "0.4", 4), 1.6),
]


@pytest.mark.parametrize(("given", "tight"), NOISE)
def test_noise_over_every_data_set(given: Design, tight: float) -> None:
    assert_covers(list(every_error(given)), accuracy(given), tight)


@pytest.mark.parametrize(("given", "tight"), [row for row in NOISE if row[0].quantum == 1 and row[0].n < 5])
def test_noise_in_the_plane(given: Design, tight: float) -> None:
    """Each coordinate at its own data: those whose errors are large, and the first, with each other."""
    every = sorted(every_error(given), key=lambda law: -float(np.dot(*law)))
    chosen = [*every[:4], every[-1]]
    flat = Design("hybrid", given.n, given.k, 1, 2, given.eps_geo, given.shares, given.c)
    assert_covers([together(one, other) for one, other in product(chosen, chosen)], accuracy(flat), tight)


@pytest.mark.parametrize(
    ("bits", "f"), [(1, 0.3), (2, 0.01), (10, 0.1), (42, 0.45), (60, 0.001), (150, 0.2), (500, 0.02)]
)
def test_flips_over_every_data_set(bits: int, f: float) -> None:
    laws = list(every_flip(bits, f))
    found = accuracy(Design("rr", bits, 1, flip=Fraction(f)))
    assert_covers(laws, found, 1.02 if bits > 100 else 1.5)
    some = laws[:: max(1, bits // 4)]
    assert_covers(
        [together(*pair) for pair in product(some, some)], accuracy(Design("rr", bits, 1, 1, 2, flip=Fraction(f))), 1.6
    )


@pytest.mark.parametrize(("bits", "f"), [(10**6, 0.2), (10**6, 1e-5), (10**5, 0.01), (10**10, 0.4)])
def test_many_bits_are_nearly_normal(bits: int, f: float) -> None:
    """Beyond enumeration: bounds that hold at no ones and at half ones, by scipy's binomials and a million draws."""
    assert (bits // 2) * 60 > AT_HAND or bits <= 10**5
    found = accuracy(Design("rr", bits, 1, flip=Fraction(f)))
    deviation = math.sqrt(bits * f * (1 - f)) / (1 - 2 * f)
    assert found.rmse == pytest.approx(deviation, rel=1e-12)
    rng = np.random.default_rng(7)
    for ones in (0, bits // 2):
        sums = rng.binomial(bits - ones, f, 200_000) - rng.binomial(ones, f, 200_000).astype(float)
        errors = np.abs(sums - f * (bits - 2 * ones)) / (1 - 2 * f)
        assert errors.mean() <= found.mae * 1.01
        assert np.mean(errors > found.within_95) <= 0.05 + 0.002
    assert found.within_95 <= 3.2 * deviation + 2.0


def test_clamping_is_counted() -> None:
    """Where many clamp, and all of them to one side: the mean is far off, and the claims say so."""
    given = Design.noisy("geo", 100, Fraction(1), Fraction(1, 5), 3, k=10)
    q = math.exp(-0.2)
    far = nbinom.pmf(np.arange(400), 1, 1 - q)
    noise = np.convolve(far, far[::-1])
    law = np.bincount(np.clip(np.arange(-399, 400), -3, 13) + 3, noise)
    total = np.fft.irfft(np.fft.rfft(law, 1 << 12) ** 100, 1 << 12)
    errors = np.abs(np.arange(1 << 12) - 300.0)
    mae, found = float(np.dot(total, errors)), accuracy(given)
    assert mae > 115.0  # the noise alone would have 56
    assert mae <= found.mae <= 1.15 * mae
    assert float(total[errors > found.within_95].sum()) <= 0.05


@pytest.mark.parametrize("mechanism", ["geo", "sgdl", "hybrid", "rr"])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_intervals_cover_at_few_people(mechanism: str, dimensions: int) -> None:
    more = {"local_epsilon": "1"} if mechanism == "hybrid" else {}
    solution = solve(MetricShuffle(mechanism, 5, 20, "1e-3", "0.3", 2, dimensions=dimensions, **more))  # type: ignore[arg-type]
    protocol, source, runs = solution.protocol(), Source(11), 4000
    values = np.zeros((5, dimensions), dtype=np.int64) if dimensions == 2 else np.zeros(5, dtype=np.int64)
    lengths = []
    for _ in range(runs):
        estimate = protocol.analyze(protocol.shuffle(protocol.randomize(values, source)))
        lengths.append(math.hypot(*estimate.sums))
    missed = np.mean(np.array(lengths) > estimate.within_95)
    assert missed <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs)
    assert np.mean(lengths) <= solution.mae * (1.0 + 4.0 / math.sqrt(runs))


@pytest.mark.parametrize(("c", "dimensions"), [(2, 1), (2, 2), (0, 1), (30, 2)])
@pytest.mark.parametrize("held", [0, 6, 12])
def test_a_given_padding_in_the_protocol(c: int, dimensions: int, held: int) -> None:
    given = Design.noisy("geo", 40, Fraction(1), Fraction(1, 4), c, k=12, dimensions=dimensions)
    protocol, source, runs = MetricProtocol(given), Source(3), 1500
    values = np.full((40, dimensions) if dimensions == 2 else 40, held)
    sums = [protocol.analyze(protocol.shuffle(protocol.randomize(values, source))).sums for _ in range(runs)]
    lengths = np.linalg.norm(np.array(sums) - 40.0 * held, axis=1)
    found = accuracy(given)
    assert lengths.mean() <= found.mae + 4.0 * lengths.std() / math.sqrt(runs)
    assert math.sqrt((lengths**2).mean()) <= found.rmse * 1.1
    assert np.mean(lengths > found.within_95) <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs)


def test_averages_have_the_errors_of_sums() -> None:
    given = MetricShuffle("geo", 100, 10, "1e-4", None, 5, eps_geo="0.2", c=3)
    whole, average = solve(given), solve(given.changed(query="average"))
    assert whole.mae == accuracy(whole.design).mae
    assert average.mae == pytest.approx(whole.mae / 100)
    assert average.rmse == pytest.approx(whole.rmse / 100)


def test_wide_noise_is_bounded_at_once() -> None:
    """A law of 400 million points is not written down: the normal law and what it may be wrong by."""
    found = accuracy(Design.noisy("geo-local", 10**7, Fraction(1), Fraction(1, 10**4), None, k=5))
    deviation = math.sqrt(2e7 * math.exp(-1e-4)) / -math.expm1(-1e-4)
    assert found.rmse == pytest.approx(deviation, rel=1e-9)
    assert 1.0 < found.mae / (deviation * math.sqrt(2 / math.pi)) < 1.01
    assert 1.95 * deviation < found.within_95 < 2.1 * deviation
    clamped = accuracy(Design.noisy("geo", 10**7, Fraction(1), Fraction(1, 10**4), 100, k=10**6))
    assert clamped.mae <= clamped.rmse < math.inf
    assert clamped.within_95 < 1.1 * clamped.rmse
