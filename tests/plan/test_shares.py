"""Algorithms 3 to 5 of the paper and its search over shifts: what they keep, what they break, what they gain."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, nbinom

from optdp import MultiLTE, Population, ProblemError
from optdp.plan.contraction import DENOMINATOR, CouplingLP, coupled_error, rounded, settled, unmoved
from optdp.plan.divisible import design, geometric
from optdp.plan.parties import Entity
from optdp.plan.shares import (
    _increments,
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


class Appendix:
    """Appendix B of paper A once more, in plain loops and from its definitions.

    Shares of noise are differences of negative binomial variables, increments solve the equations that they must keep,
    and the largest exchanges are linear programs. `printed` reads Algorithms 3 and 4 to the letter.
    """

    def __init__(self, n, epsilon, printed=False):
        self.c, self.printed, far = n, printed, 400
        q = np.exp(-epsilon)
        one_side = nbinom.pmf(np.arange(far), 0.5, 1 - q)  # two parties: half of geometric noise each
        self.noise = np.convolve(one_side, one_side[::-1])
        self.far = far - 1
        self.prior, self.zero = binom.pmf(range(n + 1), n, 0.5), binom.pmf(range(n + 1), n - 1, 0.5)
        self.contraction, self.table = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))

    def chance(self, e):
        return self.noise[e + self.far] if abs(e) <= self.far else 0.0

    def set_row(self, x, shift):
        """Algorithm 3: move by `shift`, rounded at random, and add noise; and the same for the mirrored row."""
        low = int(np.floor(shift + 1e-9))
        part = max(shift - low, 0.0)
        for row, sign, start in ((x, 1, x), (self.c - x, -1, self.c - x)):
            self.contraction[row] = 0.0
            self.contraction[row, start + sign * low] += 1 - part
            if part:
                self.contraction[row, start + sign * (low + 1)] += part
            places = [(start + sign * low, 1 - part), (start + sign * (low + 1), part)]
            if self.printed:  # assigned twice, the second time with the weight `floor(shift) - shift`
                places = [(place, -part) for place, _ in places[1:]]
            self.table[row] = [sum(w * self.chance(s - y) for y, w in places) for s in range(self.c + 1)]

    def passes(self, x):
        """Algorithm 4, Eq. (8): the error of row `x`, with what leaves the outputs, against that of its noise."""
        own = sum(abs(e) * self.chance(e) for e in range(-self.far, self.far + 1))
        if self.printed:
            value = sum(self.contraction[x, s] * abs(x - s) * self.table[x, s] for s in range(self.c + 1))
            for e in range(1, max(self.c - x, x) + 1):
                for s in range(self.c + 1 - e):
                    value += self.contraction[x, s] * abs(x - s - e) * self.table[x, s + e]
                    value -= self.contraction[x, s + e] * abs(x - s) * self.table[x, s]
                value -= 2 * self.chance(e)
            return value <= 0
        error = sum(abs(s - x) * self.table[x, s] for s in range(self.c + 1))
        for y in range(self.c + 1):
            if self.contraction[x, y]:
                outside = [s for s in range(y - self.far, y + self.far + 1) if not 0 <= s <= self.c]
                error += self.contraction[x, y] * sum(abs(s - x) * self.chance(s - y) for s in outside)
        return error <= own * (1 + 1e-9)

    def increments(self, x1, x2, x3):
        """What rows `x2` and `x3` must change by for a unit of `x1`, so that both laws stay."""
        laws = np.array([self.prior, self.zero])
        try:
            second, third = np.linalg.solve(laws[:, [x2, x3]], -laws[:, x1])
        except np.linalg.LinAlgError:
            return None
        return (1.0, second, third) if second >= -1e-12 else None

    def exchange(self, x):
        c = self.c
        for s in range(x):
            left, right = (x - s - 1, x - s), (c - x + s + 1, c - x + s)
            for y in range(left[0]):
                rows, mirror = (y, c - y, x), (c - y, y, c - x)
                one, other = self.increments(*rows), self.increments(*mirror)
                if one is None or other is None:
                    continue
                share = 0.5 if 2 * x == c else 1.0
                most = [share * self.most(*move) for move in ((rows, left, one), (mirror, right, other))]
                # the largest amounts for which neither outer row ends up farther from the truth than it was
                found = linprog(
                    [-1, -1], A_ub=[[-one[0], other[1]], [one[1], -other[0]]], b_ub=[0, 0],
                    bounds=[(0, most[0]), (0, most[1])], method="highs",
                )  # fmt: skip
                moves = ((rows, left, one), (mirror, right, other))
                for amount, (where, columns, change) in zip(found.x, moves, strict=True):
                    for row, value in zip(where, change, strict=True):
                        self.table[row, columns[0]] += value * amount
                        self.table[row, columns[1]] -= value * amount

    def most(self, rows, columns, change):
        """The largest amount that keeps all six places probabilities."""
        limits = []
        for row, value in zip(rows, change, strict=True):
            for column, sign in zip(columns, (1, -1), strict=True):
                slope, now = sign * value, self.table[row, column]
                if slope:
                    limits.append((1 - now) / slope if slope > 0 else now / -slope)
        return max(min(limits), 0.0)

    def run(self):
        """Algorithm 5 with steps of 1."""
        middle = self.c // 2
        for x in range(middle + 1):
            self.set_row(x, float(middle - x))
        for shift in range(middle + 1):
            for x in range(middle + 1):
                if self.passes(x):
                    if self.printed:
                        return self.contraction, self.table  # `break` leaves the loop
                else:
                    self.set_row(x, max(float(middle - x - shift), 0.0))
                    self.exchange(x)
        return self.contraction, self.table


@pytest.mark.parametrize(("n", "epsilon"), [(6, "0.5"), (9, "0.5"), (10, "1"), (11, "0.7")])
def test_algorithm_5_is_that_of_the_appendix(n, epsilon):
    contraction, table = algorithm_5(entity_of(n, epsilon))
    again, expected = Appendix(n, float(epsilon)).run()
    assert contraction == pytest.approx(again, abs=1e-12)
    assert (again != Appendix(n, float(epsilon)).contraction).any()
    assert table == pytest.approx(expected, abs=1e-7)  # linear programs are solved to a tolerance


@pytest.mark.parametrize("n", [10, 25])
def test_to_the_letter_algorithm_5_returns_zeros(n):
    """Algorithm 3 leaves a whole shift the weight 0; such a row passes Algorithm 4, and `break` leaves the loop."""
    contraction, table = Appendix(n, 0.5, printed=True).run()
    assert (table == 0).all()
    assert contraction[0, n // 2] == 1  # every input goes to the middle
    read, filled = algorithm_5(entity_of(n))
    assert filled.sum(axis=1) == pytest.approx(base_of(entity_of(n), read).sum(axis=1))
    assert (filled.sum(axis=1) > 0.5).all()


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
        design(MultiLTE([Population.iid(4, ["0.3", "0.4", "0.3"])] * 2, "1", method="joint"), "algorithm-5")


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
