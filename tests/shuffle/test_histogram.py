"""Shuffled histograms: the promise by other routes, the law of the messages, estimates, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from optdp import ProblemError, ShuffleHistogram, Source, compare_with_central
from optdp.loading import built
from optdp.numbers.divergence import gaussian_delta
from optdp.numbers.exact import ball, precision
from optdp.shuffle.estimators import count_deltas
from optdp.shuffle.gamma import GRID, eps0_of
from optdp.shuffle.histogram import HistogramProtocol, solve_histogram, standard_error
from tests.amplification.balls import delta_ball, krr_blanket
from tests.amplification.oracle import exp_enclosure, krr, worst_exact

HELD = np.repeat(np.arange(5), (4000, 3000, 2000, 900, 100))


def odds(gamma: Fraction, k: int) -> Fraction:
    return 1 + k * (1 - gamma) / gamma


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "delta"), [(4, 3, "1", "0.05"), (5, 2, "0.5", "0.02"), (3, 4, "2", "0.01")]
)
def test_the_promise_by_enumeration(n: int, k: int, epsilon: str, delta: str) -> None:
    found = solve_histogram(ShuffleHistogram(k, n, epsilon, delta))
    assert (found.gamma * GRID).denominator == 1
    worst = worst_exact(krr(k, odds(found.gamma, k)), n, exp_enclosure(Fraction(epsilon))[0])
    assert worst <= Fraction(delta)
    assert found.eps0 > float(epsilon)  # shuffling buys something


@pytest.mark.parametrize(("n", "k", "epsilon", "delta"), [(50, 4, "1", "1e-4"), (400, 10, "0.5", "1e-6")])
def test_the_promise_by_balls(n: int, k: int, epsilon: str, delta: str) -> None:
    found = solve_histogram(ShuffleHistogram(k, n, epsilon, delta))
    with precision(400):
        exact = delta_ball(krr_blanket(ball(odds(found.gamma, k)).log(), k), n, Fraction(epsilon))
        less = delta_ball(krr_blanket(ball(odds(found.gamma * Fraction(999, 1000), k)).log(), k), n, Fraction(epsilon))
        assert exact <= ball(Fraction(delta))
        assert less > ball(Fraction(delta))  # and nothing is given away
    assert found.lower is not None
    assert found.lower <= found.epsilon


def test_round_trips() -> None:
    design = solve_histogram(ShuffleHistogram(10, 10_000, "0.5", "1e-6"))
    assert design.unknown == "eps0"
    assert design.eps0 == pytest.approx(4.4282, abs=1e-3)
    back = solve_histogram(ShuffleHistogram(10, 10_000, delta="1e-6", eps0=design.eps0))
    assert back.unknown == "epsilon"
    assert back.epsilon == pytest.approx(0.5, abs=1e-6)
    again = solve_histogram(ShuffleHistogram(10, 10_000, epsilon="0.5", eps0=design.eps0))
    assert again.unknown == "delta"
    assert again.delta == pytest.approx(1e-6, rel=1e-4)
    assert eps0_of(again.gamma, 10) <= design.eps0 * (1 + 1e-15)  # more randomness rather than less
    assert solve_histogram(ShuffleHistogram(10, 100, epsilon=3, eps0=2)).delta == 0.0


def test_figures() -> None:
    found = solve_histogram(ShuffleHistogram(15, 1000, "1", "1e-5", estimator="projection"))
    figures = found.summary()
    assert figures["kind"] == "shuffle-histogram"
    assert figures["bits_per_user"] == 4
    assert figures["local_epsilon"] == found.eps0
    assert set(found.privacy()) == {"epsilon", "delta", "lower", "local_epsilon", "meaning"}
    assert gaussian_delta(found.gaussian_sigma / math.sqrt(2), 1.0) <= 1e-5
    assert found.value == found.standard_error > 0
    # the expected distance, simulated
    held, n, protocol = np.repeat(np.arange(15), 67)[:1000], 1000, found.protocol()
    true = np.bincount(held, minlength=15)
    source, distances = Source(4), []
    for _ in range(200):
        inverted = protocol.analyze(protocol.randomize(held, source)).estimates["inversion"]
        distances.append(0.5 * np.abs(inverted - true).sum() / n)
    assert np.mean(distances) == pytest.approx(found.expected_tv, rel=0.05)


def statistic(messages: Any, gamma: Fraction) -> float:
    """Chi-square of the messages of HELD against what gamma says, each value's people on their own: 20 degrees."""
    total = 0.0
    for value in range(5):
        seen = np.bincount(messages[value == HELD], minlength=5)
        law = np.full(5, float(gamma) / 5)
        law[value] += 1 - float(gamma)
        total += float(((seen - seen.sum() * law) ** 2 / (seen.sum() * law)).sum())
    return total


def test_messages_have_their_law() -> None:
    gamma = Fraction(3, 10)
    protocol = HistogramProtocol(len(HELD), 5, gamma)
    limit = chi2.isf(1e-4, 20)
    values = [statistic(protocol.randomize(HELD, Source(seed)), gamma) for seed in range(10)]
    assert max(values) < limit
    assert chi2.ppf(1e-4, 200) < sum(values) < chi2.isf(1e-4, 200)
    less = HistogramProtocol(len(HELD), 5, gamma * Fraction(7, 10))
    assert min(statistic(less.randomize(HELD, Source(seed)), gamma) for seed in range(10)) > limit


def test_estimates_within_their_errors() -> None:
    found = solve_histogram(ShuffleHistogram(n=len(HELD), labels=list("abcde"), epsilon="1", delta="1e-6"))
    protocol = found.protocol()
    values = protocol.read([["abcde"[i] for i in HELD]], ["letter"], False)
    assert (values == HELD).all()
    messages = protocol.randomize(values, Source(7))
    shuffled = protocol.shuffle(messages)
    assert (np.diff(shuffled) >= 0).all()
    estimate, true = protocol.analyze(shuffled), np.bincount(HELD)
    assert list(estimate.estimates) == ["likelihood", "projection", "inversion"]
    for counts in estimate.estimates.values():
        assert counts.sum() == pytest.approx(len(HELD))
        assert (np.abs(counts - true) < 4.5 * estimate.standard_errors + 1e-9).all()
    exact = [standard_error(held, len(HELD), 5, float(found.gamma)) for held in true]
    assert estimate.standard_errors == pytest.approx(exact, rel=0.1)
    row = estimate.summary()["bins"][0]
    assert row["value"] == "a"
    assert row["count"] == row["likelihood"]


def test_the_order_says_nothing() -> None:
    protocol = HistogramProtocol(4, 3, Fraction(1, 2))
    assert (protocol.shuffle(np.array([2, 0, 1, 0])) == protocol.shuffle(np.array([0, 0, 1, 2]))).all()


def test_comparison_with_the_central_model() -> None:
    counts = [300, 500, 150, 50]
    deltas = count_deltas(counts, 3, "0.5")
    assert (deltas > 0).all()
    found = compare_with_central(counts, 3, "0.5", runs=400, seed=2)
    assert found.community_delta == deltas.max()
    # the simulated errors are those of the formulas
    gamma = 4 / (math.exp(3) + 3)
    said = [math.sqrt(2 / math.pi) * standard_error(held, 1000, 4, gamma) / 1000 for held in counts]
    assert found.individual["inversion"] == pytest.approx(said, rel=0.15)
    assert found.community["gaussian-projected"].mean() <= found.community["gaussian"].mean()
    assert found.community["projection"].mean() <= found.community["inversion"].mean() + 1e-12
    assert set(found.summary()["community"]) == set(found.individual)
    given = compare_with_central(counts, 3, "0.5", delta="1e-6", runs=50)
    assert given.community["gaussian"].mean() > 0
    assert (count_deltas(counts, 4, 4) == 0).all()  # Table 4 of the paper: at epsilon = eps0 delta is zero
    assert np.isfinite(compare_with_central(counts, 4, 4, runs=5).individual["gaussian"]).all()
    assert count_deltas([5, 0, 5], 2, 1)[1] == 0.0


def test_files() -> None:
    spec = {"kind": "shuffle-histogram", "n": 100, "labels": ["yes", "no"], "epsilon": "1", "delta": "1e-3"}
    problem = built(spec)
    assert (problem.k, problem.labels) == (2, ("yes", "no"))
    assert problem.figures()["epsilon"] == "1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Either k or labels"),
        ({"k": 1, "n": 10, "epsilon": 1, "delta": "1e-3"}, "k must be from 2"),
        ({"k": 3, "epsilon": 1, "delta": "1e-3"}, "n must be a whole number"),
        ({"k": 3, "n": 10, "epsilon": 1}, "Leave out exactly one of epsilon, delta and eps0.*delta"),
        ({"k": 3, "n": 10, "epsilon": 1, "delta": "0.1", "eps0": 2}, "Left out: none"),
        ({"k": 3, "n": 10, "epsilon": 1, "delta": 2}, "delta must be"),
        ({"k": 3, "n": 10, "epsilon": "nan", "delta": "0.1"}, "epsilon must be"),
        ({"k": 3, "n": 10, "epsilon": 1, "delta": "0.1", "labels": ["a", "b"]}, "a label for each of the 3"),
        ({"n": 10, "epsilon": 1, "delta": "0.1", "labels": ["a", "a"]}, "Found 'a' twice"),
        ({"n": 10, "epsilon": 1, "delta": "0.1", "labels": ["a", ""]}, "not empty"),
        ({"k": 3, "n": 10, "epsilon": 1, "delta": "0.1", "estimator": "magic"}, "estimator must be one of"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message) as caught:
        ShuffleHistogram(**given)
    assert "\n" not in str(caught.value)


def test_bad_data() -> None:
    protocol = HistogramProtocol(3, 4, Fraction(1, 2))
    assert protocol.read([["0", "3", "2"]], ["x"], False).tolist() == [0, 3, 2]
    with pytest.raises(ProblemError, match=r"design is for n = 3 people. Found 2 rows. Change n, or the data"):
        protocol.read([["0", "3"]], ["x"], False)
    with pytest.raises(ProblemError, match="row 3"):
        protocol.read([["0", "4", "2"]], ["x"], False)
    assert protocol.read([["0", "4", "-2"]], ["x"], True).tolist() == [0, 3, 0]
    for cell in ("nan", "1.5", "", "a"):
        with pytest.raises(ProblemError, match="whole number"):
            protocol.read([["0", cell, "2"]], ["x"], True)
    with pytest.raises(ProblemError, match="Found 1 outside, first 4 at position 1"):
        protocol.randomize(np.array([0, 4, 1]), Source(1))
    with pytest.raises(ProblemError, match="whole numbers"):
        protocol.randomize(np.array([0.5, 1, 1]), Source(1))
    for values in ([0, True, 1], np.array([True, False, True])):
        with pytest.raises(ProblemError, match="whole numbers"):
            protocol.randomize(values, Source(1))
    with pytest.raises(ProblemError, match="first 9 at position 2"):
        protocol.analyze(np.array([0, 1, 9]))
    with pytest.raises(ProblemError, match="not empty"):
        protocol.analyze(np.array([]))
    with pytest.raises(ProblemError, match=r"whole numbers. Found 0.5"):
        protocol.analyze(np.array([0.5, 1.0, 2.0]))
