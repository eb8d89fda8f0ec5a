"""GLPK in rational numbers: its answer is that of the program's own floats, by an exact solution of our own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from scipy import sparse

from optdp import ProblemError
from optdp.programs.backends import find
from optdp.programs.program import LinearProgram

pytest.importorskip("swiglpk", reason="needs swiglpk, of the extra [solvers]")


def spread(seed: int) -> LinearProgram:
    """Random rows whose numbers range over twenty orders of magnitude; minimise a positive cost, rows at least 1."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((5, 9)) * 10.0 ** rng.integers(-20, 1, (5, 9))
    return LinearProgram(rng.random(9), sparse.csr_array(matrix), rng.random(5), np.full(5, np.inf))


def rational(value: float) -> fmpq:
    exact = Fraction(value)
    return fmpq(exact.numerator, exact.denominator)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_optimum_of_these_very_floats(seed: int) -> None:
    """The basis that it found is solved in rational numbers: feasible and optimal without any tolerance."""
    program = spread(seed)
    answer = find("glpk-exact").solve(program)
    assert answer.status == "optimal"
    basic, tight = np.flatnonzero(answer.x), np.flatnonzero(answer.duals)
    assert len(basic) == len(tight)
    rows = [[rational(float(value)) for value in row] for row in program.matrix.toarray()]
    square = fmpq_mat([[rows[i][j] for j in basic] for i in tight])
    point = square.inv() * fmpq_mat([[rational(float(program.lower[i]))] for i in tight])
    prices = square.transpose().inv() * fmpq_mat([[rational(float(program.cost[j]))] for j in basic])
    x = {j: point[k, 0] for k, j in enumerate(basic)}
    y = {i: prices[k, 0] for k, i in enumerate(tight)}
    assert min(*x.values(), *y.values()) >= 0
    for i, row in enumerate(rows):
        assert sum((row[j] * x[j] for j in x), fmpq(0)) >= rational(float(program.lower[i]))
    for j, cost in enumerate(program.cost.tolist()):
        assert rational(cost) - sum((rows[i][j] * y[i] for i in y), fmpq(0)) >= 0
    for j, value in x.items():
        assert answer.x[j] == pytest.approx(int(value.p) / int(value.q), rel=1e-15)


def test_a_limit_of_steps_is_a_limit() -> None:
    assert find("glpk-exact").solve(spread(0), {"it_lim": 1}).status == "limit"


def test_what_no_float_can_hold_is_said() -> None:
    wide = LinearProgram(np.ones(2), sparse.csr_array(np.array([[1.0, 1e-300]])), np.ones(1), np.ones(1))
    answer = find("glpk-exact").solve(wide)
    assert answer.status == "failed"
    assert "bits in one row" in answer.said


@pytest.mark.parametrize("value", [0, -3, 2.5, True, "long"])
def test_bad_limits_are_one_line(value: object) -> None:
    """GLPK itself would end the process."""
    with pytest.raises(ProblemError, match="must be a whole number above 0"):
        find("glpk-exact").solve(spread(0), {"tm_lim": value})
