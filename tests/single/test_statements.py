"""The programs as they are stated: the CVXPY model is the specification, and the arrays are the same program."""

from __future__ import annotations

import numpy as np
import pytest

from optdp import KRRCount, Population, ProblemError, SingleLTE, solve
from optdp.kinds import formulate, stated
from optdp.programs.backends import find
from optdp.programs.cvxpy import import_cvxpy

CASES = {
    "binomial": SingleLTE(Population.binomial(6, "0.4"), "0.5"),
    "squares": SingleLTE(Population.binomial(5, "0.4"), "0.5", objective="mse", tail="none", never_worse=False),
    "two units": SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), "1", adjacency="all"),
    "fallback": SingleLTE(Population.binomial(5, "0.4"), "0.5", "1.5"),
}
NAMES = {
    "binomial": ["plain", "core", "pairs"], "squares": ["plain", "core", "pairs"], "two units": ["plain", "core"],
    "fallback": ["plain", "chain"],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_models_and_arrays_are_the_same_programs(name: str) -> None:
    problem = CASES[name]
    statements = formulate(problem)
    assert [statement.name for statement in statements] == NAMES[name]
    optimum = float(solve(problem).value)
    cp = import_cvxpy()
    for statement in statements:
        program, model = statement.program(), statement.model()
        assert program.matrix.shape == (len(program.lower), len(program.cost))
        assert len(program.cost) == statement.unknowns
        assert program.matrix.nnz <= statement.entries
        answer = find("highs-simplex").solve(program, {"primal_feasibility_tolerance": 1e-9})
        assert answer.status == "optimal"
        assert answer.objective == pytest.approx(model.solve(solver=cp.CLARABEL), rel=1e-6)
        assert (statement.constant is None) == (statement.name == "core")  # which is in a unit of its own
        if statement.constant is not None:
            assert answer.objective + statement.constant == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_sets_of_both_forms_are_equal(name: str) -> None:
    """In random directions, not of the objective alone: the optima of arrays and model agree."""
    random, cp = np.random.default_rng(2), import_cvxpy()
    for statement in formulate(CASES[name]):
        if statement.name == "pairs":  # whose columns have no order to hold on to
            continue
        program, model = statement.program(), statement.model()
        (unknown,) = model.variables()
        for _ in range(2):
            direction = random.random(len(program.cost))
            tilted = cp.Problem(cp.Minimize(direction @ cp.vec(unknown, order="C")), model.constraints)
            ours = find("highs-simplex").solve(type(program)(direction, program.matrix, program.lower, program.upper))
            assert ours.objective == pytest.approx(tilted.solve(solver=cp.CLARABEL), rel=1e-5, abs=1e-7)


def test_problems_hand_out_their_programs() -> None:
    problem = CASES["binomial"]
    plain, model = problem.to_program(), problem.to_cvxpy()
    assert len(plain.cost) == model.variables()[0].size
    assert len(problem.to_program("pairs").lower) < len(plain.lower)
    with pytest.raises(ProblemError, match="plain, core, pairs"):
        problem.to_program("nothing")
    with pytest.raises(ProblemError, match="formulate is for"):
        KRRCount(100, 30, 3, eps0=1, delta="1e-3").to_program()


def test_observers_are_all_in_the_program() -> None:
    """The program with every world at once has the optimum that cutting planes find."""
    from optdp import Observer

    problem = SingleLTE(
        Population.binomial(6, "0.3"), "0.7", observer=Observer(margin="0.1"), tail="none", never_worse=False
    )
    program = problem.to_program()
    answer = find("highs-simplex").solve(program, {"primal_feasibility_tolerance": 1e-9})
    assert answer.objective == pytest.approx(float(solve(problem).value), rel=1e-5)


def test_what_is_too_large_is_refused_before_it_is_written() -> None:
    with pytest.raises(ProblemError, match="GB"):
        stated(SingleLTE(Population.binomial(3000, "0.5"), "0.1"), "plain").program()
