"""The programs of plans as they are stated: arrays and CVXPY models have the same optimum."""

from __future__ import annotations

import pytest

from optdp import MultiLTE, Population, solve
from optdp.kinds import formulate
from optdp.programs.backends import find
from optdp.programs.cvxpy import import_cvxpy

SMALL = [Population.binomial(3, "0.4"), Population.binomial(2, "0.5")]
CASES = {
    "two": MultiLTE(SMALL, "0.8"),
    "alike": MultiLTE([Population.binomial(2, "0.5")] * 2, "0.7"),
    "squares": MultiLTE(SMALL, "0.8", objective="mse", method="joint"),
    "fallback": MultiLTE(SMALL, "0.8", fallback_epsilon="2", method="joint"),
}
NAMES = {
    "two": "block-0 block-1 alone-0 alone-1 contraction-0 coupling-0 contraction-1 coupling-1 maps bound",
    "alike": "block-0 alone-0 contraction-0 coupling-0 maps bound",
}


@pytest.mark.parametrize("name", CASES)
def test_models_and_arrays_have_the_same_optimum(name: str) -> None:
    cp, statements = import_cvxpy(), formulate(CASES[name])
    names = [statement.name for statement in statements]
    assert {"block-0", "bound"} <= set(names)
    if name in NAMES:
        assert names == NAMES[name].split()
    for statement in statements:
        program, model = statement.program(), statement.model()
        assert (statement.rows, statement.unknowns) == program.matrix.shape
        assert program.matrix.nnz <= statement.entries
        answer = find("highs-simplex").solve(program, {"primal_feasibility_tolerance": 1e-9})
        assert answer.status == "optimal", statement.name
        theirs = model.solve(solver=cp.CLARABEL)
        assert answer.objective == pytest.approx(theirs, rel=2e-6, abs=1e-8), statement.name


def test_the_program_of_maps_and_the_bound_are_what_the_solution_says() -> None:
    """Where all tuples are columns, the stated optimum is the plan's error; the stated bound is its bound."""
    problem = CASES["alike"].changed(method="seeded")
    plan = solve(problem)
    for name, value in (("maps", plan.mae), ("bound", plan.lower_bound)):
        answer = find("highs-simplex").solve(problem.to_program(name))
        assert answer.objective == pytest.approx(float(value), rel=1e-4), name
