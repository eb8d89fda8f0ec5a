"""Weight shifting: whatever it returns must be private, never worse than geometric, and near the optimum."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from optdp import Population, ProblemError, SingleLTE
from optdp.numbers.exact import precision
from optdp.single.lp import NoiseLP, formulate
from optdp.single.pairs import solve_pairs
from optdp.single.shifting import (
    _exchange,
    _knapsack,
    _State,
    allowed,
    exchange,
    expected_error,
    geometric_table,
    shift_to_diagonal,
    shift_weights,
)


def program(population, epsilon="0.3", **options) -> NoiseLP:
    with precision():
        return formulate(SingleLTE(population, epsilon, **options))


def table_of(lp, draft):
    table = np.zeros((len(lp.inputs), len(lp.inputs)))
    np.add.at(table, (draft.rows, draft.cols), draft.values)
    return table


def check(lp, table):
    """Every column private, every row a distribution, no row worse than it may be."""
    assert table.min() >= 0
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-12
    assert (lp.gaps @ table <= 1e-9 * (np.abs(lp.gaps) @ table)).all()
    if lp.cap is not None:
        assert ((table * lp.distances).sum(axis=1) <= lp.cap * (1 + 1e-12)).all()


PROBLEMS = {
    "binomial": (Population.binomial(60, "0.5"), {}),
    "skew": (Population.binomial(100, "0.1"), {}),
    "underflow": (Population.binomial(400, "0.1"), {}),
    "clamped": (Population.binomial(60, "0.5"), {"tail": "none"}),
    "uncapped": (Population.binomial(60, "0.5"), {"never_worse": False}),
    "squares": (Population.binomial(60, "0.5"), {"objective": "mse"}),
    "one person": (Population.binomial(1, "0.5"), {}),
    "certain": (Population.binomial(20, "0"), {}),
    "two steps": (Population.iid(30, ["0.5", "0.3", "0.2"]), {}),
    "two steps, all": (Population.iid(30, ["0.5", "0.3", "0.2"]), {"adjacency": "all"}),
    "two steps, clamped": (Population.iid(30, ["0.5", "0.3", "0.2"]), {"tail": "none"}),
    "others": (Population.from_others(["0.1", "0.2", "0.4", "0.2", "0.1"]), {}),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_stage_is_private_and_no_worse_than_the_one_before(name):
    population, options = PROBLEMS[name]
    lp = program(population, **options)
    table = geometric_table(lp)
    check(lp, table)
    start = expected_error(lp, table)
    assert start <= float(lp.problem.baseline) * (1 + 1e-12)
    if options.get("tail") != "none":
        assert start == pytest.approx(float(lp.problem.baseline), rel=1e-12)
    rows = (table * lp.distances).sum(axis=1)
    shift_to_diagonal(lp, table)
    check(lp, table)
    shifted = expected_error(lp, table)
    assert shifted <= start * (1 + 1e-12)
    assert ((table * lp.distances).sum(axis=1) <= rows * (1 + 1e-12)).all()
    exchange(lp, table)
    check(lp, table)
    assert expected_error(lp, table) <= shifted * (1 + 1e-12)


@given(
    n=st.integers(1, 40),
    p=st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100),
    epsilon=st.sampled_from(["0.01", "0.1", "0.5", "2", "20"]),
    tail=st.sampled_from(["geometric", "none"]),
    objective=st.sampled_from(["mae", "mse"]),
)
@settings(max_examples=40, deadline=None)
def test_any_binomial(n, p, epsilon, tail, objective):
    lp = program(Population.binomial(n, p), epsilon, tail=tail, objective=objective)
    draft = shift_weights(lp)
    table = table_of(lp, draft)
    check(lp, table)
    assert expected_error(lp, table) <= float(lp.problem.baseline) * (1 + 1e-9)


@given(
    weights=st.lists(st.integers(0, 9), min_size=2, max_size=4).filter(lambda w: sum(w) > 0),
    n=st.integers(1, 12),
    adjacency=st.sampled_from(["unit", "all"]),
)
@settings(max_examples=30, deadline=None)
def test_any_identical_people(weights, n, adjacency):
    law = [Fraction(weight, sum(weights)) for weight in weights]
    lp = program(Population.iid(n, law), "0.8", adjacency=adjacency)
    check(lp, table_of(lp, shift_weights(lp)))


@pytest.mark.parametrize(("n", "p"), [(50, "0.1"), (50, "0.5"), (100, "0.1"), (100, "0.5"), (200, "0.5")])
def test_between_the_optimum_and_geometric_noise(n, p):
    lp = program(Population.binomial(n, p))
    best = expected_error(lp, table_of(lp, solve_pairs(lp)))
    table = geometric_table(lp)
    shift_to_diagonal(lp, table)
    shifted = expected_error(lp, table)
    draft = shift_weights(lp)
    found = expected_error(lp, table_of(lp, draft))
    assert (draft.engine, draft.status, draft.prices) == ("shifting", "heuristic", None)
    assert best * (1 - 1e-6) <= found < shifted < float(lp.problem.baseline)
    assert found < 1.2 * best


@pytest.mark.parametrize(("n", "p", "epsilon"), [(100, "0.1", "0.3"), (100, "0.5", "0.3"), (50, "0.3", "0.5")])
def test_no_result_hangs_on_the_last_bits(n, p, epsilon):
    """Another machine's start, were it to differ in the last bits, ends as near to the optimum."""
    lp = program(Population.binomial(n, p), epsilon)
    best = expected_error(lp, table_of(lp, solve_pairs(lp)))
    for seed in range(4):
        table = geometric_table(lp)
        table *= 1 + 2e-16 * np.random.default_rng(seed).integers(-1, 2, size=table.shape)
        shift_to_diagonal(lp, table)
        exchange(lp, table)
        assert expected_error(lp, table) < 1.08 * best


def test_the_error_vanishes_with_the_number_of_people():
    found = []
    for n in (50, 100, 200, 400):
        lp = program(Population.binomial(n, "0.5"))
        table = geometric_table(lp)
        shift_to_diagonal(lp, table)
        found.append((expected_error(lp, table), expected_error(lp, table_of(lp, shift_weights(lp)))))
    for algorithm in zip(*found, strict=True):
        assert list(algorithm) == sorted(algorithm, reverse=True)
        assert algorithm[-1] < algorithm[0] / 50


@pytest.mark.parametrize(
    ("n", "p", "epsilon"), [(50, "0.1", "0.3"), (100, "0.5", "0.3"), (200, "0.3", "0.1"), (80, "0.9", "1")]
)
def test_the_allowed_inputs_are_those_of_the_closed_form(n, p, epsilon):
    q, chance = math.exp(-float(epsilon)), float(p)
    low, high = q * chance * n / (q * chance + 1 - chance), chance * n / (chance + q * (1 - chance))
    expected = [x for x in range(n + 1) if low <= x <= high]
    assert np.flatnonzero(allowed(program(Population.binomial(n, p), epsilon))).tolist() == expected


def test_without_allowed_inputs_the_exchanges_still_work():
    # sums that are even but for one person: no input may be reported truthfully
    lp = program(Population.from_others(["1/3", "0", "1/3", "0", "1/3"]))
    assert not allowed(lp).any()
    table = geometric_table(lp)
    before = table.copy()
    shift_to_diagonal(lp, table)
    assert np.array_equal(table, before)
    found = table_of(lp, shift_weights(lp))
    check(lp, found)
    assert expected_error(lp, found) < expected_error(lp, before)


def test_the_pairwise_exchange_of_remark_7():
    """Two inputs on the same side outside V report themselves more; their columns stay as they were."""
    lp = program(Population.binomial(50, "0.5"))
    table = geometric_table(lp)
    x, y = 10, 14
    assert (lp.gaps[:, [x, y]] > 0).any(axis=0).all()
    for column in (x, y):  # no room to spare in either column: only a balanced exchange is left
        k = int(np.argmax(lp.gaps[:, x]))
        table[allowed(lp), column] *= 0
        table[column, column] += 1 - table[column].sum()
        excess = lp.gaps[k] @ table[:, column]
        helper = int(np.argmin(lp.gaps[k]))
        table[helper, column] += -excess / lp.gaps[k, helper]
    before = lp.gaps @ table
    state = _State(lp, table, slice(0, 51))
    was = table.copy()
    _exchange(state, np.array([x]), np.array([y]))
    assert table[x, x] > was[x, x]
    assert table[y, y] > was[y, y]
    assert min(table[x, y], table[y, x]) == pytest.approx(0, abs=1e-15)
    after, size = lp.gaps @ table, np.abs(lp.gaps) @ table
    k = int(np.argmax(lp.gaps[:, x]))
    assert np.abs(after - before)[k, [x, y]].max() < 1e-14 * size[k, [x, y]].max()


ITEM = st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 4))


@given(st.lists(ITEM, min_size=1, max_size=6), st.integers(0, 6))
@settings(deadline=None)
def test_the_knapsack_is_optimal(items, room):
    effect, gain, bound = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    take = _knapsack(effect, gain, bound, float(room))
    assert (take >= 0).all()
    assert (take <= bound).all()
    assert effect @ take <= room + 1e-9
    best = linprog(-gain, A_ub=effect[None], b_ub=[room], bounds=list(zip(0 * bound, bound, strict=True)))
    assert gain @ take == pytest.approx(-best.fun, abs=1e-9)


def test_two_unit_steps_have_their_own_constraints():
    """With contributions 0..2 an allowed input satisfies all four constraints, and all hold in the end."""
    lp = program(Population.iid(60, ["0.5", "0.3", "0.2"]), "0.6")
    assert lp.gaps.shape[0] == 4
    inside = allowed(lp)
    assert inside.any()
    assert (lp.gaps[:, inside] <= 0).all()
    table = table_of(lp, shift_weights(lp))
    check(lp, table)
    assert expected_error(lp, table) < 0.15 * float(lp.problem.baseline)


def test_what_it_refuses():
    lp = program(Population.binomial(10, "0.5"), fallback_epsilon="2")
    with pytest.raises(ProblemError, match="fallback"):
        shift_weights(lp)
    given_0, given_1 = ["0.9", "0.1", "0"], ["0", "0.1", "0.9"]
    dependent = Population.from_conditionals([[given_0, given_1]], ["0.45", "0.1", "0.45"])
    with pytest.raises(ProblemError, match="geometric noise"):
        shift_weights(program(dependent, tail="none"))


def test_progress_is_told():
    told: list[str] = []
    shift_weights(program(Population.binomial(20, "0.5")), told.append)
    assert told[0].startswith("weight shifting: error")
    assert told[-1].startswith("exchange, round")
