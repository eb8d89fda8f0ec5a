"""Publishing without data, and the best under ordinary privacy: against a linear program, and against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from optdp import MultiLTE, Population, SingleLTE, solve
from optdp.numbers.exact import ball, precision
from optdp.numbers.pmf import ExactPmf
from optdp.single.alternatives import no_data, no_data_sum, ordinary_best, readings
from optdp.single.problem import Objective

BIN = Population.binomial
OBJECTIVES: tuple[Objective, Objective] = ("mae", "mse")


def belief(problem: SingleLTE) -> list[Fraction]:
    """The law of the sum with all priors, as fractions."""
    laws = [prior.total for prior in problem.populations]
    assert all(isinstance(law, ExactPmf) for law in laws)
    return [
        sum((weight * law.fraction(x) for weight, law in zip(problem.weights, laws, strict=True)), Fraction(0))
        for x in range(problem.last + 1)
    ]


def loss(problem: SingleLTE, objective: Objective) -> np.ndarray:
    """What each pair of input and output costs under the belief."""
    places = np.arange(problem.last + 1)
    apart = np.abs(places[:, None] - places) ** (1 if objective == "mae" else 2)
    return np.array([float(value) for value in belief(problem)])[:, None] * apart


def program(problem: SingleLTE, objective: Objective) -> float:
    """The least error under ordinary privacy, by a linear program over all tables."""
    size = problem.last + 1
    cells = np.arange(size * size).reshape(size, size)
    one, other = (np.concatenate(pair) for pair in ((cells[1:], cells[:-1]), (cells[:-1], cells[1:])))
    rows, q = np.arange(one.size), math.exp(-problem.epsilon / problem.largest)
    values = np.concatenate([np.full(one.size, q), np.full(one.size, -1.0)])
    private = coo_array((values, (np.tile(rows, 2), np.concatenate([one.ravel(), other.ravel()]))))
    whole = coo_array((np.ones(cells.size), (np.repeat(np.arange(size), size), cells.ravel())))
    found = linprog(
        loss(problem, objective).ravel(), A_ub=private.tocsr(), b_ub=np.zeros(one.size), A_eq=whole.tocsr(),
        b_eq=np.ones(size), method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun)


def ordinary_table(problem: SingleLTE) -> np.ndarray:
    """Geometric noise, read as the best ordinary mechanism reads it: a row for each input."""
    size, q = problem.last + 1, math.exp(-problem.epsilon / problem.largest)
    places = np.arange(size)
    noise = (1 - q) / (1 + q) * q ** np.abs(places[:, None] - places)
    noise[:, 0], noise[:, -1] = q**places / (1 + q), q ** places[::-1] / (1 + q)
    table = np.zeros((size, size))
    for s, column in zip(readings(problem, 0, size), noise.T, strict=True):
        table[:, s] += column
    return table


def some_problem(seed: int, objective: Objective = "mae") -> SingleLTE:
    """People of any kind, seldom likely sums, several priors, and any epsilon."""
    chance = np.random.default_rng(seed)
    epsilon = str(round(float(chance.choice([0.05, 0.3, 1.0, 3.0]) * chance.uniform(0.5, 2)), 4))

    def law(count: int) -> list[Fraction]:
        shares = [int(share) for share in chance.integers(0, 50, count) ** int(chance.integers(1, 4))]
        shares[int(chance.integers(count))] += 1
        return [Fraction(share, sum(shares)) for share in shares]

    kind, asked = seed % 4, {"objective": objective}
    if kind == 0:
        return SingleLTE(
            BIN(int(chance.integers(1, 25)), str(round(float(chance.uniform()), 3))), epsilon, objective=objective
        )
    if kind == 1:
        return SingleLTE(Population.from_others(law(int(chance.integers(2, 22)))), epsilon, **asked)
    if kind == 2:
        return SingleLTE(Population.iid(int(chance.integers(1, 7)), law(4)), epsilon, **asked)
    return SingleLTE(
        [BIN(20, "0.15"), Population.from_others(law(15))], epsilon, weights=["0.4", "0.6"], objective=objective
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(24))
def test_no_table_with_ordinary_privacy_is_better(seed: int, objective: Objective) -> None:
    problem = some_problem(seed, objective)
    found = ordinary_best(problem, objective)
    assert found == pytest.approx(program(problem, objective), rel=1e-7, abs=1e-9)
    table = ordinary_table(problem)
    assert found == pytest.approx(float((table * loss(problem, objective)).sum()), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("seed", range(24))
def test_the_table_is_private_and_maps_in_order(seed: int) -> None:
    problem = some_problem(seed)
    table = ordinary_table(problem)
    assert table.sum(axis=1) == pytest.approx(1, rel=1e-12)
    limit = math.exp(problem.epsilon / problem.largest) * (1 + 1e-9)
    for one, other in pairwise(table):
        assert np.all(one <= limit * other)
        assert np.all(other <= limit * one)
    assert np.all(np.diff(table.cumsum(axis=1), axis=0) <= 1e-12)  # larger inputs have larger outputs


@pytest.mark.parametrize(
    ("n", "p", "ordinary", "without"),
    [
        (50, "0.1", (1.467, 1.243, 0.771), 1.664), (50, "0.5", (2.124, 1.608, 0.839), None),
        (100, "0.1", (1.909, 1.502, 0.823), 2.374), (100, "0.5", (2.553, 1.770, 0.849), 3.979),
        (200, "0.5", (2.887, 1.858, 0.851), 5.635), (15, "0.3", (1.278, 1.105, 0.735), None),
    ],
)  # fmt: skip
def test_reference_figures(n: int, p: str, ordinary: tuple[float, ...], without: float | None) -> None:
    """From linear programs that were solved elsewhere."""
    for epsilon, wanted in zip(("0.3", "0.5", "1"), ordinary, strict=True):
        assert ordinary_best(SingleLTE(BIN(n, p), epsilon)) == pytest.approx(wanted, abs=6e-4)
    if without is not None:
        assert no_data(SingleLTE(BIN(n, p), "0.3")) == pytest.approx(without, abs=6e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(24))
def test_no_constant_is_better(seed: int, objective: Objective) -> None:
    problem = some_problem(seed)
    law, power = belief(problem), 1 if objective == "mae" else 2
    errors = [sum(value * abs(x - c) ** power for x, value in enumerate(law)) for c in range(problem.last + 1)]
    assert no_data(problem, objective) == pytest.approx(float(min(errors)), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("n", "p"),
    [(6_000, "0.5"), (10**6, "0.1"), (10**6, "1e-9"), (10**9, "0.3"), (10**9, "1e-60"), (10**7, "0.9999999")],
)
def test_very_many_people_without_data(n: int, p: str) -> None:
    """`sum over k >= a of (k - np) b(k) = a (1-p) b(a)` (de Moivre) leaves one probability, that of more than the
    median; and the variance has a formula."""
    problem, chance = SingleLTE(BIN(n, p), "0.3"), Fraction(p)
    mean, law = n * chance, problem.populations[0].total
    errors = []
    for median in {int(mean), int(mean) + 1}:
        with precision():
            more = law.geometric_sum(median, ball(1), True)
            peak = law.balls(median + 1, median + 1)[0] * (median + 1) * ball(1 - chance)
            errors.append(float(2 * (ball(mean - median) * more + peak) - ball(mean - median)))
    assert no_data(problem) == pytest.approx(min(errors), rel=1e-11, abs=0)
    variance = mean * (1 - chance) + (mean - round(mean)) ** 2
    assert no_data(problem, "mse") == pytest.approx(float(variance), rel=1e-11, abs=0)


def test_two_far_beliefs_of_very_many_people() -> None:
    far = SingleLTE([BIN(10**9, "0.1"), BIN(10**9, "0.9")], 1, weights=["0.5", "0.5"])
    assert no_data(far) == pytest.approx(4e8, rel=1e-9)
    assert ordinary_best(far) is None


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("epsilon", ["0.002", "0.1", "2"])
@pytest.mark.parametrize("n", [1_500, 5_500])
def test_written_out(n: int, epsilon: str, objective: Objective) -> None:
    """The same with every posterior written out; one law is exact, the other a closed form."""
    problem = SingleLTE(BIN(n, "0.2"), epsilon)
    q = math.exp(-float(epsilon))
    with precision():
        law = np.array([float(value) for value in problem.populations[0].total.balls(0, n)])
    places = np.flatnonzero(law > 1e-60)
    law, total = law[places], 0.0
    for s in range(n + 1):
        joint = law * q ** np.abs(places - s) / (1 + q) * (1 if s in (0, n) else -math.expm1(-float(epsilon)))
        if not joint.sum():
            continue
        if objective == "mae":
            target = places[np.searchsorted(joint.cumsum(), joint.sum() / 2)]
            total += float(joint @ np.abs(places - target))
        else:
            target = round(float(joint @ places / joint.sum()))
            total += float(joint @ (places - target) ** 2)
    assert ordinary_best(problem, objective) == pytest.approx(total, rel=1e-9)


def test_a_million_people() -> None:
    problem = SingleLTE(BIN(10**6, "0.5"), "0.3")
    found = ordinary_best(problem)
    assert found is not None
    assert found < problem.cap
    assert found == pytest.approx(float(problem.cap), rel=1e-3)  # so many people: the prior tells next to nothing


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_between_no_noise_and_no_data(objective: Objective) -> None:
    for n in (1, 30, 10**7):
        least = SingleLTE(BIN(n, "0.4"), Fraction(1, 2**40), objective=objective)
        assert ordinary_best(least) == pytest.approx(no_data(least), rel=1e-6)
        assert ordinary_best(SingleLTE(BIN(n, "0.4"), 100, objective=objective)) == pytest.approx(0, abs=1e-30)
    sure = SingleLTE(BIN(5, "1"), 1, objective=objective)
    assert (no_data(sure), ordinary_best(sure)) == (0, 0)
    assert no_data(SingleLTE(BIN(10, "1e-50"), 1, objective=objective)) == pytest.approx(1e-49)


def test_what_is_not_known_is_not_said() -> None:
    people = Population.iid(5, ["0.5", "0.3", "0.2"])
    assert ordinary_best(SingleLTE(people, 1, adjacency="all")) is None
    assert ordinary_best(SingleLTE(BIN(5, "0.5"), 1, adjacency="all")) == ordinary_best(SingleLTE(BIN(5, "0.5"), 1))


def test_only_the_law_of_the_sum_counts() -> None:
    people = [[["0.4", "0.5", "0.1"], ["0.2", "0.6", "0.2"]]]
    dependent = Population.from_conditionals(people, ["0.3", "0.55", "0.15"])
    problem = SingleLTE(dependent, "0.5", tail="none")
    assert ordinary_best(problem) == pytest.approx(program(problem, "mae"), rel=1e-7)
    assert no_data(problem) == pytest.approx(0.45, rel=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_weighted_sum_of_parties(objective: Objective) -> None:
    parties = [BIN(5, "0.3"), Population.iid(3, ["0.5", "0.3", "0.2"]), BIN(2, "0.9")]
    factors, power = (2, -1, 3), 1 if objective == "mae" else 2
    laws = [party.total for party in parties]
    sums: dict[int, Fraction] = {}
    for values in product(*(range(party.last + 1) for party in parties)):
        value = sum(factor * x for factor, x in zip(factors, values, strict=True))
        assert all(isinstance(law, ExactPmf) for law in laws)
        chance = math.prod(law.fraction(x) for law, x in zip(laws, values, strict=True))
        sums[value] = sums.get(value, Fraction(0)) + chance
    errors = [sum(chance * abs(x - c) ** power for x, chance in sums.items()) for c in range(min(sums), max(sums) + 1)]
    assert no_data_sum(parties, factors, objective) == pytest.approx(float(min(errors)), rel=1e-12)


def test_alike_parties_and_parties_without_end() -> None:
    whole = no_data(SingleLTE(BIN(700, "0.1"), 1))
    assert no_data_sum([BIN(100, "0.1")] * 7, [1] * 7, "mae") == pytest.approx(whole, rel=1e-12)
    assert no_data_sum([BIN(100, "0.1")] * 7, [-1] * 7, "mae") == pytest.approx(whole, rel=1e-12)
    assert no_data_sum([BIN(10**9, "0.5")] * 2, [1, 1], "mae") is None
    assert no_data_sum([BIN(10**9, "0.5")] * 2, [1000, 1000], "mae") is None


def test_figures_of_a_solution() -> None:
    solution = solve(SingleLTE(BIN(100, "0.1"), "0.3"))
    figures, sheet = solution.summary(), str(solution.sheet())
    assert figures["no_data_mae"] == solution.no_data_mae == pytest.approx(2.373576, abs=1e-6)
    assert figures["ordinary_mae"] == solution.ordinary_mae == pytest.approx(1.909, abs=1e-3)
    assert figures["note"] == ""
    assert "fallback_geometric_mae" not in figures
    assert "no_data_mse" not in figures
    for name, value in (
        ("optdp", 0.943506),
        ("geometric", 3.283853),
        ("best ordinary DP", 1.90901),
        ("without data", 2.373576),
    ):
        assert f"'MAE, {name}', Cell(text='{value:10.6f}'" in sheet


def test_figures_of_squares_and_of_two_guarantees() -> None:
    solution = solve(SingleLTE(BIN(12, "0.3"), "0.5", fallback_epsilon=2, objective="mse", tail="none"))
    figures, q, other = solution.summary(), math.exp(-0.5), math.exp(-2)
    assert figures["no_data_mse"] == pytest.approx(12 * 0.3 * 0.7 + 0.4**2)
    assert figures["ordinary_mse"] == pytest.approx(program(solution.problem, "mse"), rel=1e-7)
    assert figures["ordinary_mae"] == pytest.approx(program(solution.problem, "mae"), rel=1e-7)
    assert figures["baseline_mse"] == pytest.approx(2 * q / (1 - q) ** 2)
    assert figures["fallback_geometric_mse"] == pytest.approx(2 * other / (1 - other) ** 2)
    assert figures["fallback_geometric_mae"] == pytest.approx(2 * other / (1 - other**2))
    assert "MSE, geometric at 2" in str(solution.sheet())
    assert figures["mse"] < figures["ordinary_mse"] < figures["no_data_mse"]


def test_a_release_that_is_not_worth_it_says_so() -> None:
    noise = solve(SingleLTE(BIN(30, "0.5"), "0.1", method="geometric"))
    assert noise.note == ""
    assert (
        "without looking at any data: the median of the sum under the prior has MAE 2.16697" in noise.summary()["note"]
    )
    assert noise.summary()["note"] in str(noise.sheet())
    squares = solve(SingleLTE(BIN(30, "0.5"), "0.1", method="geometric", objective="mse"))
    assert "the rounded mean of the sum under the prior has MSE 7.5" in squares.summary()["note"]
    capped = solve(SingleLTE(BIN(50, "0.1"), "0.3"))  # with tails, and no input worse than under geometric noise
    assert capped.ordinary_mae is not None
    assert capped.ordinary_mae < capped.mae
    assert "ordinary differential privacy at the same epsilon" in capped.summary()["note"]
    assert "never_worse = false may do better" in capped.summary()["note"]
    free = solve(SingleLTE(BIN(50, "0.1"), "0.3", tail="none", never_worse=False))
    assert free.mae < capped.ordinary_mae
    assert free.summary()["note"] == ""
    plan = solve(MultiLTE([BIN(15, "0.5")] * 2, "0.1", method="geometric"))
    assert plan.summary()["no_data_mae"] == pytest.approx(noise.summary()["no_data_mae"])
    assert "has MAE 2.16697" in plan.summary()["note"]


def test_files_say_nothing_of_it() -> None:
    noise = solve(SingleLTE(BIN(30, "0.5"), "0.1", method="geometric"))
    before = noise.artifact().sha256
    noise.summary()
    artifact = noise.artifact()
    assert artifact.sha256 == before
    assert "note" not in artifact.provenance
    assert "no_data" not in str(artifact.claim)
