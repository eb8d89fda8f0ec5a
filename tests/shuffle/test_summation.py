"""The sum of numbers: the exact error, the best k and gamma, the promise, simulation, lower bounds, refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from optdp import ProblemError, RealSum, Source
from optdp.loading import built
from optdp.numbers.exact import ball, precision
from optdp.shuffle.real_sum import RealSumProtocol, RealSumSolution, solve_real_sum
from optdp.shuffle.summation import (
    _mean_error,
    at,
    best_k,
    least_arrival,
    lower_mse,
    mse,
    printed_mse,
    theorem_1,
    theorem_3,
)  # fmt: skip
from tests.amplification.balls import delta_ball, krr_blanket


def worst_number(k: int, gamma: float) -> float:
    """The number in [0, 1] whose message varies most."""
    return max(0.0, 1.0 - gamma * k) / (2.0 * (1.0 - gamma)) / k


@pytest.fixture(scope="module")
def wide() -> RealSumSolution:
    return solve_real_sum(RealSum(100_000, "0.5", "1e-6"))


@given(st.integers(1, 30), st.floats(0.0, 0.99))
def test_the_largest_variance(k: int, gamma: float) -> None:
    x = np.append(np.linspace(0, 1, 60 * k + 1), worst_number(k, gamma))
    steps = np.minimum(np.floor(x * k), k - 1)
    law = np.zeros((len(x), k + 1))
    rows = np.arange(len(x))
    law[rows, steps.astype(int)] = 1 - (x * k - steps)
    law[rows, steps.astype(int) + 1] = x * k - steps
    law = (1 - gamma) * law + gamma / (k + 1)
    y = np.arange(k + 1) / k
    variance = law @ y**2 - (law @ y) ** 2
    wanted = mse(1, k, gamma)
    assert variance.max() / (1 - gamma) ** 2 == pytest.approx(wanted, rel=1e-9)
    assert variance[-1] == pytest.approx(variance.max(), rel=1e-9)
    assert wanted <= printed_mse(1, k, gamma) * (1 + 1e-12)


def test_better_than_theorem_1(wide: RealSumSolution) -> None:
    figures = wide.summary()
    assert wide.theorem_1_mse is not None
    assert wide.mse <= 0.4 * wide.theorem_1_mse
    assert figures["ratio_to_theorem_1"] == pytest.approx(0.27786, abs=1e-4)
    assert figures["printed_mse"] >= wide.theorem_1_mse
    assert wide.bits_per_user == 4
    assert wide.k == 10
    assert wide.local_epsilon > 0.5
    assert figures["lower"] <= 0.5
    assert figures["central"]["mse"] < wide.mse
    assert wide.lower_mse < wide.mse < 7 * wide.lower_mse
    assert wide.theorem_3 < 0.01 * wide.lower_mse
    assert set(wide.privacy()) == {"epsilon", "delta", "lower", "local_epsilon", "meaning"}


def test_confirmed_by_simulation(wide: RealSumSolution) -> None:
    """On the worst data the mean squared error is what is predicted, on other data it is not above."""
    rng, runs, n, k, gamma = np.random.default_rng(8), 4000, wide.n, wide.k, float(wide.gamma)
    for x in (worst_number(k, gamma), 0.5, 0.37):
        step = math.floor(x * k)
        law = np.full(k + 1, gamma / (k + 1))
        law[step] += (1 - gamma) * (1 - (x * k - step))
        law[step + 1] += (1 - gamma) * (x * k - step)
        counts = rng.multinomial(n, law, runs)
        protocol = wide.protocol()
        sums = (counts @ np.arange(k + 1) / k - n * gamma / 2) / (1 - gamma)
        squared = float(((sums - n * x) ** 2).sum())
        assert squared < chi2.isf(1e-5, runs) * wide.mse
        if x == worst_number(k, gamma):
            assert squared > chi2.ppf(1e-5, runs) * wide.mse
        again = protocol.analyze(np.repeat(np.arange(k + 1), counts[0]))
        assert again.total == pytest.approx(sums[0])


def test_the_protocol_itself() -> None:
    found = solve_real_sum(RealSum(2000, "1", "1e-5", low="-1", high="3"))
    protocol, rng, runs = found.protocol(), np.random.default_rng(2), 2000
    x = -1 + 4 * worst_number(found.k, float(found.gamma))
    values, source, squared, total = np.full(2000, x), Source(5), 0.0, 0.0
    for _ in range(runs):
        estimate = protocol.analyze(protocol.shuffle(protocol.randomize(values, source)))
        squared += (estimate.total - 2000 * x) ** 2
        total += estimate.total - 2000 * x
    assert chi2.ppf(1e-5, runs) * found.mse < squared < chi2.isf(1e-5, runs) * found.mse
    assert abs(total / runs) < 4.5 * math.sqrt(found.mse / runs)
    assert estimate.standard_error == pytest.approx(math.sqrt(found.mse))
    assert estimate.summary()["average"] == pytest.approx(estimate.total / 2000)
    spread = rng.uniform(-1, 3, 2000)
    assert abs(protocol.analyze(protocol.randomize(spread, source)).total - spread.sum()) < 5 * math.sqrt(found.mse)


def test_messages_have_their_law() -> None:
    n, k, gamma, x = 40_000, 4, Fraction(1, 5), 0.3
    law = np.full(5, 0.04)
    law[1] += 0.8 * 0.8
    law[2] += 0.8 * 0.2
    limit = chi2.isf(1e-5, 4)

    def statistic(share: Fraction) -> float:
        seen = np.bincount(RealSumProtocol(n, k, share).randomize(np.full(n, x), Source(3)), minlength=5)
        return float(((seen - n * law) ** 2 / (n * law)).sum())

    assert statistic(gamma) < limit
    assert statistic(gamma * Fraction(7, 10)) > 10 * limit
    ends = RealSumProtocol(4, 3, Fraction(1, 10**6)).randomize([0.0, 1.0, 1.0, 0.0], Source(1))
    assert ends.tolist() == [0, 3, 3, 0]


@pytest.mark.parametrize(("n", "epsilon", "delta"), [(60, "1", "1e-3"), (400, "0.8", "1e-5")])
def test_the_promise_by_balls(n: int, epsilon: str, delta: str) -> None:
    found = solve_real_sum(RealSum(n, epsilon, delta))
    k, p = found.k + 1, 1 + (found.k + 1) * (1 - found.gamma) / found.gamma
    with precision(400):
        assert delta_ball(krr_blanket(ball(p).log(), k), n, Fraction(epsilon)) <= ball(Fraction(delta))


@pytest.mark.parametrize(("n", "epsilon", "delta"), [(300, "1", "1e-4"), (20_000, "0.3", "1e-8"), (10**6, "1", "1e-6")])
def test_no_k_is_better(n: int, epsilon: str, delta: str) -> None:
    level, rarity = Fraction(epsilon), Fraction(delta)
    best = best_k(n, level, rarity)
    for k in {2, best.k // 2, best.k - 2, best.k - 1, best.k + 1, best.k + 2, 2 * best.k} - {0, 1, -1}:
        assert at(n, k, level, rarity).mse >= best.mse
    assert best_k(n, level, rarity, start=3 * best.k).k == best.k


def test_given_parameters(wide: RealSumSolution) -> None:
    same = solve_real_sum(RealSum(100_000, None, "1e-6", k=10, gamma=wide.gamma))
    assert same.unknown == "epsilon"
    assert same.epsilon == pytest.approx(0.5, abs=1e-6)
    again = solve_real_sum(RealSum(100_000, "0.5", None, k=10, gamma=wide.gamma))
    assert again.delta == pytest.approx(1e-6, rel=1e-4)
    assert solve_real_sum(RealSum(1000, "8", k=2, gamma="0.5")).delta == 0.0
    other = solve_real_sum(RealSum(100_000, "0.5", "1e-6", k=20, high=10))
    assert other.k == 20
    assert other.mse > 100 * wide.mse
    assert solve_real_sum(RealSum(3, "0.1", "1e-6")).note.startswith("too few people")


def test_the_least_n() -> None:
    found = solve_real_sum(RealSum(epsilon=1, delta="1e-5", average_mse="1e-5"))
    assert found.unknown == "n"
    assert found.mse / found.n**2 <= 1e-5
    with pytest.raises(ProblemError, match=rf"Found n = {found.n - 1:,}.*The least n is {found.n:,}\."):
        solve_real_sum(RealSum(found.n - 1, 1, "1e-5", average_mse="1e-5"))
    assert solve_real_sum(RealSum(found.n, 1, "1e-5", average_mse="1e-5")).n == found.n


def test_accuracy_that_nobody_reaches_is_refused_at_once() -> None:
    """Nobody but the largest number of people is asked."""
    steps: list[str] = []
    with pytest.raises(ProblemError, match="must be reached by 10,000,000,000 people"):
        solve_real_sum(RealSum(epsilon=1, delta="1e-6", average_mse="1e-30"), progress=steps.append)
    assert {step for step in steps if step.endswith("people") and step.startswith("trying 1")} == {
        "trying 10,000,000,000 people"
    }


def test_theorem_1() -> None:
    chosen = theorem_1(100_000, 0.5, 1e-6)
    assert chosen is not None
    rate = max(14 * math.log(2e6) / (99_999 * 0.25), 27 / (99_999 * 0.5))
    assert chosen.gamma == pytest.approx(rate * (chosen.k + 1))
    assert chosen.mse == min(mse(100_000, k, rate * (k + 1)) for k in range(1, 60) if rate * (k + 1) < 1)
    assert theorem_1(100_000, 1.5, 1e-6) is None
    assert theorem_1(500, 0.5, 1e-6) is None


def test_the_gap_in_theorem_3() -> None:
    """A randomizer that always says the same is private, and yet the sum of the smaller of A_b and B_b is 0."""
    k, n, epsilon, delta = 5, 125, 0.5, 1e-6
    p = np.zeros((k, k))
    p[:, 2] = 1
    leaves = (1 - np.diag(p)) / (4 * k**3)
    arrives = (1 - k**-2) / 48 * p.min(axis=0)
    claimed = min(math.exp(-epsilon) / (8 * k**3), (1 - k**-2) / (48 * n) * (0.5 - delta))
    assert np.minimum(leaves, arrives).sum() == 0 < k * claimed
    places = (np.arange(k) + 0.5) / k
    assert np.mean((places[2] - places) ** 2) >= k * claimed  # what the theorem says holds


@given(st.integers(2, 9), st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_what_leaves_and_what_arrives_add_up(k: int, seed: int, weight: float, lazy: bool) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.3), k)
    if lazy:
        p = 0.95 * np.eye(k) + 0.05 * p
    h = 1 / (k - 1)
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) * h
    squares = np.where(distance > 0, (distance - h / 2) ** 2, 0.0)
    least = np.array([min(p[a, b] for a in range(k) if a != b) for b in range(k)])
    rest = np.where(distance > 0, squares - weight * h**2 / 4, 0.0).sum(axis=0)
    bound = (least @ rest + weight * h**2 / 4 * (1 - np.diag(p)).sum()) / k
    assert bound <= (p * squares).sum() / k + 1e-12


def divergences(n: int, p: float, s: float, epsilon: float) -> float:
    """The larger divergence of the two counts, term by term."""
    others = binom.pmf(np.arange(n), n - 1, p)
    first, second = ((1 - c) * np.append(others, 0) + c * np.append(0, others) for c in (s, p))
    gain = math.exp(epsilon)
    return float(max(np.maximum(first - gain * second, 0).sum(), np.maximum(second - gain * first, 0).sum()))


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
@pytest.mark.parametrize("eta", [0.0, 0.3, 0.9])
def test_the_least_that_must_arrive(epsilon: float, eta: float) -> None:
    n, delta = 200, 1e-3
    found = least_arrival(n, epsilon, delta, eta)
    assert found > 0
    assert divergences(n, found * (1 + 1e-4), 1 - eta, epsilon) <= delta  # and it is nearly the largest such number
    for p in found * np.array([1 - 1e-6, 0.9, 0.5, 0.1]):
        for s in (1 - eta, 1 - eta / 2, 1.0):
            assert divergences(n, p, s, epsilon) > delta


def test_lower_bounds_are_below() -> None:
    for n, epsilon, delta in [(10, "1", "1e-3"), (200, "0.2", "1e-6"), (3000, "2", "1e-4"), (50_000, "0.1", "1e-8")]:
        found = solve_real_sum(RealSum(n, epsilon, delta))
        assert 0 < found.theorem_3 <= found.lower_mse <= found.mse
        assert found.summary()["ratio_to_lower"] > 1
    assert lower_mse(10_000, 0.5, 1e-6) == pytest.approx(54.64, rel=1e-3)
    assert lower_mse(100_000, 0.5, 1e-6) == pytest.approx(117.97, rel=1e-3)
    # it grows as n^(1/3), and falls as more is allowed
    assert lower_mse(10**8, 0.5, 1e-6) / lower_mse(10**5, 0.5, 1e-6) == pytest.approx(10, rel=0.05)
    assert lower_mse(1000, 1.0, 1e-6) < lower_mse(1000, 0.5, 1e-6) < lower_mse(1000, 0.5, 1e-9)
    assert theorem_3(1000, 0.5, 0.6) == 0.0
    assert _mean_error(10, (0.0,) * 80) == 0.0


def test_files() -> None:
    problem = built({"kind": "real-sum", "n": 100, "epsilon": "1", "delta": "1e-3"})
    assert problem.figures() == {"n": 100, "epsilon": "1", "delta": "0.001", "low": "0", "high": "1"}
    assert problem.unknown == "mse"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 1, "delta": "1e-3"}, "Give n, or give average_mse"),
        ({"n": 10, "epsilon": 1}, "Give epsilon and delta. Found delta missing"),
        ({"n": 10, "epsilon": 1, "delta": "1e-3", "gamma": "0.1"}, "gamma needs a k"),
        ({"n": 10, "epsilon": 1, "delta": "1e-3", "k": 3, "gamma": "0.1"}, "Left out: none"),
        ({"n": 10, "epsilon": 1, "k": 3, "gamma": "1.1"}, "gamma must be"),
        ({"n": 10, "epsilon": 1, "delta": "1e-3", "low": 1, "high": 1}, "low must be below high"),
        ({"n": 10, "epsilon": 1, "delta": "1e-3", "k": 0}, "k must be from 1"),
        ({"n": 1, "epsilon": 1, "delta": "1e-3"}, "n must be from 2"),
        ({"n": 10, "epsilon": "nan", "delta": "1e-3"}, "epsilon must be"),
        ({"n": 10, "epsilon": 1, "delta": "1e-3", "average_mse": 0}, "average_mse must be above 0"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message) as caught:
        RealSum(**given)
    assert "\n" not in str(caught.value)


def test_bad_data() -> None:
    protocol = RealSumProtocol(3, 4, Fraction(1, 2), Fraction(0), Fraction(10))
    assert protocol.read([["0", "3.5", "10"]], ["x"], False).tolist() == [0, 3.5, 10]
    assert protocol.read([["-1", "3.5", "11"]], ["x"], True).tolist() == [0, 3.5, 10]
    with pytest.raises(ProblemError, match=r"2 values outside.*row 2"):
        protocol.read([["-1", "3.5", "11"]], ["x"], False)
    with pytest.raises(ProblemError, match=r"design is for n = 3 people. Found 1 row. Change n, or the data"):
        protocol.read([["1"]], ["x"], False)
    with pytest.raises(ProblemError, match="finite number"):
        protocol.read([["1", "nan", "2"]], ["x"], True)
    for values in ([0, True, 1], np.array([True, False, True])):
        with pytest.raises(ProblemError, match="True or False"):
            protocol.randomize(values, Source(1))
    with pytest.raises(ProblemError, match="Found 1 outside, first at position 2"):
        protocol.randomize([0.0, 1.0, 10.1], Source(1))
    with pytest.raises(ProblemError, match="finite"):
        protocol.randomize([0.0, math.nan, 1.0], Source(1))
    with pytest.raises(ProblemError, match="design is for n = 3"):
        protocol.analyze(np.array([1, 2]))
