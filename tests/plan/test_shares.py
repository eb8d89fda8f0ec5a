"""Algorithms 3 to 5 of the paper and its search over shifts: what they keep, what they break, what they gain."""

from fractions import Fraction

import numpy as np
import pytest

from optdp import MultiLTE, Population, ProblemError
from optdp.plan.contraction import DENOMINATOR, CouplingLP, coupled_error, rounded, settled, unmoved
from optdp.plan.divisible import design, geometric
from optdp.plan.parties import Entity
from optdp.plan.shares import (
    _increments,
    algorithm_3,
    algorithm_4,
    algorithm_5,
    exchange,
    exchange_to_diagonal,
    search_shifts,
)  # fmt: skip


def problem_of(n=25, epsilon="0.5", p="0.5", **options):
    return MultiLTE([Population.binomial(n, p)] * 2, epsilon, **options)


def entity_of(*args, **options):
    return Entity.of(problem_of(*args, **options), 0)


def base_of(entity, contraction):
    places = np.arange(entity.last + 1)
    return contraction @ entity.kernel(places, places)


def algorithm_4_as_printed(entity, x, contraction, table):
    size = entity.last + 1
    places, half = np.arange(size), entity.half
    value = contraction[x] @ (np.abs(x - places) * table[x])
    for e in range(1, max(entity.last - x, x) + 1):
        up, down = places[: size - e], places[e:]
        value += contraction[x, up] @ (np.abs(x - up - e) * table[x, up + e])
        value -= contraction[x, down] @ (np.abs(x - down + e) * table[x, down - e])
        value -= 2 * entity.chances[half + e]
    return value <= 0


def test_to_the_letter_algorithm_5_returns_zeros():
    """Algorithm 3 leaves a whole shift the weight 0; such a row passes Algorithm 4, and `break` leaves the loop."""
    entity, middle = entity_of(), 12
    contraction, table = np.zeros((26, 26)), np.zeros((26, 26))
    for x in range(middle + 1):
        algorithm_3(entity, x, middle - x, 1.0, contraction, table)
        table[x] *= 0  # as printed: times `floor(shift) - shift`
        contraction[25 - x], table[25 - x] = contraction[x, ::-1].copy(), table[x, ::-1].copy()
    assert algorithm_4_as_printed(entity, 0, contraction, table)  # in every round, so nothing else is done
    assert (table == 0).all()
    assert (np.diff(contraction @ np.arange(26.0)) <= 1).all()  # and every input goes to the middle
    assert contraction[0, middle] == 1


@pytest.mark.parametrize(("n", "epsilon", "step"), [(25, "0.5", 1.0), (25, "0.5", 0.25), (20, "1", 1.0)])
def test_as_read_its_rows_are_right_and_its_laws_are_not(n, epsilon, step):
    entity = entity_of(n, epsilon)
    contraction, table = algorithm_5(entity, step)
    base = base_of(entity, contraction)
    assert table.min() >= 0
    assert table.sum(axis=1) == pytest.approx(base.sum(axis=1))
    off = np.abs(entity.laws @ table / (entity.laws @ base) - 1).max()
    assert 0.05 < off < 0.2  # so it is not private as it stands
    assert CouplingLP.of(entity, contraction, entity.own_cost, every=True).trusted(table) is None


@pytest.mark.parametrize(("n", "p"), [(25, "0.5"), (20, "0.5"), (12, "0.4")])
def test_exchanges_keep_the_laws_and_lower_the_error(n, p):
    entity = entity_of(n, "0.5", p)
    distance = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    for moved in (unmoved(n), settled(rounded([Fraction(x * 9 + n // 2, 10) for x in range(n + 1)]), n // 2)):
        contraction = moved / moved.sum(axis=1, keepdims=True)
        base, table = base_of(entity, contraction), exchange_to_diagonal(entity, contraction)
        assert table.min() >= 0
        assert table.sum(axis=1) == pytest.approx(base.sum(axis=1), rel=1e-12)
        assert entity.laws @ table == pytest.approx(entity.laws @ base, rel=1e-11)
        before, after = ((entity.prior @ (t * distance).sum(axis=1)) for t in (base, table))
        assert after < before
        assert coupled_error(entity, contraction) < after  # the program does better


def test_no_row_gets_worse_by_an_exchange():
    entity = entity_of(15)
    table = base_of(entity, unmoved(15))
    distance = np.abs(np.subtract.outer(np.arange(16), np.arange(16)))
    before = (table * distance).sum(axis=1)
    gain = exchange(entity, table, 6)
    after = (table * distance).sum(axis=1)
    assert gain > 0
    assert (after <= before + 1e-12).all()
    assert before[6] - after[6] == pytest.approx(gain)


def test_increments_solve_the_two_equations():
    entity = entity_of(12, p="0.3")
    for x1, x2, x3 in ((1, 11, 5), (11, 1, 7), (0, 12, 3)):
        change = np.array(_increments(entity, x1, x2, x3))
        places = [x1, x2, x3]
        assert change[0] == 1
        assert change[2] < 0 <= change[1]
        assert entity.prior[places] @ change == pytest.approx(0, abs=1e-15)
        assert entity.laws[:, places] @ change == pytest.approx([0, 0], abs=1e-15)


def test_equation_8_compares_with_the_share_of_noise():
    entity = entity_of(10)
    plain = base_of(entity, unmoved(10))
    assert all(algorithm_4(entity, x, unmoved(10), plain) for x in range(11))
    middle = np.zeros((11, 11))
    middle[:, 5] = 1
    assert [algorithm_4(entity, x, middle, base_of(entity, middle)) for x in range(11)] == [x == 5 for x in range(11)]


def test_algorithm_5_is_certified_like_any_other():
    problem = problem_of()
    plan = design(problem, "algorithm-5")
    assert plan.certificate.epsilon <= problem.epsilon
    assert 1.86 < plan.certificate.mae < 1.87 < geometric(problem).certificate.mae
    for bad in (problem_of(objective="mse"), problem_of(f=[2, 1])):
        with pytest.raises(ProblemError, match="one kind of people"):
            design(bad, "algorithm-5")
    with pytest.raises(ProblemError, match="one kind of people"):
        design(MultiLTE([Population.iid(4, ["0.3", "0.4", "0.3"])] * 2, "1"), "algorithm-5")


def test_the_search_over_shifts_never_moves_neighbours_apart():
    entity = entity_of(16)
    log = []
    moved = search_shifts(entity, lambda table: coupled_error(entity, table), Fraction(1, 2), log.append)
    places = moved @ np.arange(17.0)
    assert (np.diff(places) >= 0).all()
    assert (np.diff(places) <= 1).all()
    assert places[entity.mode] == entity.mode
    assert np.abs(places - entity.mode).sum() < np.abs(np.arange(17) - entity.mode).sum()
    settled_rows = settled(moved, entity.mode) / DENOMINATOR
    assert coupled_error(entity, settled_rows) < 0.8 * coupled_error(entity, unmoved(16))
    assert "round 1" in log[0]


def test_shifts_by_name():
    problem = problem_of(16)
    plan = design(problem, "shifts")
    assert plan.certificate.epsilon <= problem.epsilon
    assert plan.level > 1.2
    assert plan.certificate.mae < design(problem, "none").certificate.mae < geometric(problem).certificate.mae
