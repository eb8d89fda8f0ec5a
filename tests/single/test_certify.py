"""Certificates against exact fractions, and against matrices that are a little less private than they claim."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdp import (
    ArtifactError,
    CertificateError,
    NoiseMatrix,
    Population,
    SingleLTE,
    certify,
    epsilon_under,
    errors_by_input,
    posterior,
    quotients,
    solve,
)  # fmt: skip
from optdp.numbers.exact import geometric_ratio, lower_fraction, precision
from optdp.single.certify import tail_error
from optdp.single.laws import Shape
from tests.exact_checker import Checked
from tests.single.test_repair import save


def random_matrix(seed: int, last: int, q: Fraction | None) -> NoiseMatrix:
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(last + 1):
        weights = random.multinomial(1 << 20, random.dirichlet(np.ones(last + 1)))
        weights = np.maximum(weights, 1)
        weights[int(np.argmax(weights))] += (1 << 20) - weights.sum()
        rows.append(tuple((s, int(w)) for s, w in enumerate(weights)))
    return NoiseMatrix((0, last), (0, last), 1 << 20, tuple(rows), q, "error", last)


@given(st.integers(0, 10**6), st.sampled_from(["geometric", "none"]), st.sampled_from(["unit", "all"]))
def test_epsilon_is_exact_to_many_digits(seed: int, tail: str, adjacency: str) -> None:
    population = Population.iid(2, ["0.5", "0.3", "0.2"]) if seed % 2 else Population.binomial(4, "0.3")
    problem = SingleLTE(population, "50", tail=tail, adjacency=adjacency, never_worse=False)  # type: ignore[arg-type]
    matrix = random_matrix(seed, 4, problem.q if tail == "geometric" else None)
    found = certify(problem, matrix)
    assert found.epsilon is not None
    assert found.ordinary_epsilon is not None
    checked = Checked.__new__(Checked)
    checked.problem, checked.specs = problem.spec(), [problem.spec()["population"]]
    checked.data, checked.denominator = {"outside": "error"}, matrix.denominator
    (checked.first, checked.last), (checked.low, checked.high) = matrix.inputs, matrix.outputs
    checked.rows, checked.q, checked.epsilon = [dict(row) for row in matrix.rows], matrix.q, problem.epsilon
    margin = Fraction(1, 10**15)
    assert checked.private(found.epsilon + margin)
    assert not checked.private(found.epsilon - margin)
    assert checked.ordinary(found.ordinary_epsilon + margin)
    assert not checked.ordinary(found.ordinary_epsilon - margin)
    assert abs(found.mae - checked.mae()) < Fraction(1, 10**15)
    assert abs(found.mse - checked.mae(2)) < Fraction(1, 10**15)
    assert found.mae >= checked.mae()


def test_a_slightly_less_private_matrix_fails(tmp_path: Path) -> None:
    problem = SingleLTE(Population.binomial(30, "0.5"), "0.3")
    matrix = solve(problem).mechanism
    certify(problem, matrix).check(problem)
    refuted = 0
    for x in (5, 10, 20, 25):  # move a millionth of a row's mass from another output to the diagonal
        row = dict(matrix.rows[x])
        taken = matrix.denominator // 10**6
        source = next(s for s, w in row.items() if s != x and w > taken)
        row[source] -= taken
        row[x] = row.get(x, 0) + taken
        rows = (*matrix.rows[:x], tuple(sorted(row.items())), *matrix.rows[x + 1 :])
        worse = replace(matrix, rows=rows)
        found = certify(problem, worse)
        agrees = save(problem, worse, tmp_path / "a.json").private()
        assert agrees == (found.epsilon is not None and found.epsilon <= problem.epsilon)
        refuted += not agrees
    assert refuted >= 2


def test_geometric_noise_is_exactly_the_baseline() -> None:
    problem = SingleLTE(Population.binomial(50, "0.5"), "0.3", method="geometric")
    solution = solve(problem)
    found = solution.certificate
    q = geometric_ratio(Fraction(3, 10))
    assert found.never_worse
    assert abs(found.mae - 2 * q / (1 - q * q)) < Fraction(1, 10**30)
    assert abs(float(found.mae) - 3.283853) < 1e-6
    assert found.ordinary_epsilon is not None
    assert found.ordinary_epsilon <= Fraction(3, 10)
    assert found.epsilon is not None
    assert Fraction(3, 10) - found.epsilon < Fraction(1, 10**15)


def test_clamped_geometric_noise_keeps_ordinary_privacy() -> None:
    for population in (Population.binomial(20, "0.5"), Population.iid(8, ["0.5", "0.3", "0.2"])):
        solution = solve(SingleLTE(population, "0.5", tail="none", method="geometric"))
        assert solution.certificate.ordinary_epsilon is not None
        assert solution.certificate.ordinary_epsilon <= Fraction(1, 2)
        assert solution.mae < solution.baseline_mae


def test_the_worst_error_of_inputs_far_beyond_a_clamped_table() -> None:
    """All but three of 50,001 inputs get the row at an edge; the farthest one has the largest error."""
    row = ((100, 1), (101, 2), (102, 1))
    matrix = NoiseMatrix((100, 102), (100, 102), 4, (row, row, row), None, "clamp", 50_000)
    problem = SingleLTE(Population.binomial(50_000, "0.002"), "1", tail="none", never_worse=False)
    assert certify(problem, matrix).worst_error == 50_000 - 101


def test_quotients_of_geometric_noise_are_those_of_lemma_3() -> None:
    """Constant and equal to q^-+1 outside the range, monotone inside (A, Lemma 3, Fig. 1); by direct convolution."""
    problem = SingleLTE(Population.binomial(50, "0.5"), "0.3", method="geometric")
    matrix = solve(problem).mechanism
    (found,) = quotients(problem, matrix, margin=60)
    q = math.exp(-0.3)
    others = [math.comb(49, k) / 2**49 for k in range(50)]

    def law(s: int, w: int) -> float:
        return sum(chance * q ** abs(s - k - w) for k, chance in enumerate(others))

    for s, value in zip(found.outputs.tolist(), found.values.tolist(), strict=True):
        if s <= 0:
            assert value == pytest.approx(law(s, 0) / law(s, 1), rel=1e-9)
            assert value == pytest.approx(1 / q, rel=1e-9)


def test_quotients_of_the_optimum_stay_in_the_band() -> None:
    problem = SingleLTE(Population.binomial(50, "0.5"), "0.3")
    (found,) = quotients(problem, solve(problem).mechanism)
    values = found.values[np.isfinite(found.values)]
    assert values.min() >= math.exp(-0.3) - 1e-12
    assert values.max() <= math.exp(0.3) + 1e-12


def test_errors_by_input_never_exceed_the_cap() -> None:
    problem = SingleLTE(Population.binomial(100, "0.1"), "0.3")
    errors = errors_by_input(solve(problem).mechanism)
    assert len(errors) == 101
    assert errors.max() <= float(problem.cap)
    assert errors[10] < 0.5 < errors[20] + errors[0]


def test_epsilon_under_another_prior() -> None:
    problem = SingleLTE(Population.binomial(60, "0.5"), "0.3")
    matrix = solve(problem).mechanism
    same = epsilon_under(problem, matrix, Population.binomial(60, "0.5"))
    assert same is not None
    assert same <= Fraction(3, 10)
    off = epsilon_under(problem, matrix, Population.binomial(60, "0.45"))
    assert off is not None
    assert off > Fraction(3, 10)
    certain = epsilon_under(problem, matrix, Population.from_others([0] * 30 + [1] + [0] * 29))
    assert certain is None or certain > off  # someone who knows all the others
    with pytest.raises(CertificateError, match="reaches"):
        epsilon_under(problem, matrix, Population.binomial(61, "0.5"))


def test_posterior_is_bayes_rule_and_serves_as_the_next_prior() -> None:
    population = Population.binomial(6, "0.5")
    first = SingleLTE(population, "0.5", tail="none", never_worse=False)
    matrix = solve(first).mechanism
    after = posterior(population, matrix, 3)
    table = matrix.to_array()
    prior = np.array([math.comb(6, k) / 64 for k in range(7)])
    expected = prior * table[:, 3] / (prior * table[:, 3]).sum()
    assert [float(after.total.fraction(x)) for x in range(7)] == pytest.approx(expected.tolist())  # type: ignore[attr-defined]
    second = SingleLTE(after, "0.5", tail="none", never_worse=False)
    solution = solve(second)
    assert solution.certificate.epsilon is not None
    assert solution.certificate.epsilon <= Fraction(1, 2)


# ---------------------------------------------------------------------- errors, by sums that are written out


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("outputs", [(0, 9), (3, 5), (4, 4), (0, 2), (7, 9)])
def test_the_error_in_the_tails_is_the_sum_over_all_outputs_outside(outputs: tuple[int, int], power: int) -> None:
    """For inputs among the outputs, below them and above them."""
    q = Fraction(2, 3)
    with precision():
        for x in range(10):
            found = tail_error(Shape((0, 9), outputs, q, "error", 9), x, power)
            far = [s for s in range(x - 300, x + 301) if not outputs[0] <= s <= outputs[1]]
            summed = (1 - q) / (1 + q) * sum(q ** abs(s - x) * abs(s - x) ** power for s in far)
            assert abs(lower_fraction(found, 200) - summed) < Fraction(1, 10**40)


@pytest.mark.parametrize(
    ("at", "row", "output", "reach"),
    [
        (30_000, 0, 0, 30_000),
        (30_000, 0, -5, 30_005),
        (0, 30_000, 30_000, 30_000),
        (0, 30_000, 40_000, 40_000),
    ],
)
def test_inputs_far_beyond_a_clamped_table_cost_their_whole_distance(
    at: int, row: int, output: int, reach: int
) -> None:
    """The sum surely at one end, the only row at the other: what is taken as the most is then exactly the truth."""
    others, own = ([0] * 29_999 + [1], [0, 1]) if at else ([1] + [0] * 29_999, [1, 0])
    problem = SingleLTE(Population.from_others(others, own), "1", tail="none", never_worse=False)
    matrix = NoiseMatrix((row, row), (output, output), 2, (((output, 2),),), None, "clamp", 30_000)
    found = certify(problem, matrix)
    assert (found.mae, found.mse, found.worst_error) == (reach, reach**2, reach)


def test_inputs_beside_a_clamped_table_cost_what_their_row_gives() -> None:
    population, row = Population.binomial(9, "0.3"), ((2, 1), (4, 5), (7, 2))
    matrix = NoiseMatrix((4, 4), (2, 7), 8, (row,), None, "clamp", 9)
    found = certify(SingleLTE(population, "1", tail="none", never_worse=False), matrix)
    chances = [math.comb(9, k) * Fraction(3, 10) ** k * Fraction(7, 10) ** (9 - k) for k in range(10)]
    errors = [[sum(Fraction(w, 8) * abs(s - x) ** power for s, w in row) for x in range(10)] for power in (1, 2)]
    for value, each in zip((found.mae, found.mse), errors, strict=True):
        assert 0 <= value - sum(c * e for c, e in zip(chances, each, strict=True)) < Fraction(1, 10**30)
    assert found.worst_error == max(errors[0])


def test_only_the_noise_itself_is_never_worse_than_noise() -> None:
    """A table of one output changes nothing; other noise, or a table of two outputs that moves people away, does."""
    problem = SingleLTE(Population.binomial(9, "0.5"), "0.5")
    q = problem.q
    for x, y in ((0, 0), (0, 5), (4, 4), (9, 2)):
        rows = (((y, 2),),)
        assert certify(problem, NoiseMatrix((y, y), (y, y), 2, rows, q, "geometric", 9)).never_worse
        rows = tuple(((x, 2),) for _ in range(10))
        assert certify(problem, NoiseMatrix((0, 9), (x, x), 2, rows, q, "error", 9)).never_worse
    more = (q + 1) / 2
    assert not certify(problem, NoiseMatrix((4, 4), (4, 4), 2, (((4, 2),),), more, "geometric", 9)).never_worse
    rows = (((5, 2),), ((4, 2),))
    assert not certify(problem, NoiseMatrix((4, 5), (4, 5), 2, rows, q, "geometric", 9)).never_worse
    rows = (((4, 2),), ((5, 2),))
    assert certify(problem, NoiseMatrix((4, 5), (4, 5), 2, rows, q, "geometric", 9)).never_worse
    rows = (((4, 2),), ((4, 2),))  # one of the two inputs is worse off
    assert not certify(problem, NoiseMatrix((4, 5), (4, 5), 2, rows, q, "geometric", 9)).never_worse


def test_a_clamped_table_has_no_tail() -> None:
    problem = SingleLTE(Population.binomial(9, "0.5"), "0.5")
    with pytest.raises(ArtifactError, match="plain noise"):
        certify(problem, NoiseMatrix((4, 4), (4, 4), 2, (((4, 2),),), problem.q, "clamp", 9))
