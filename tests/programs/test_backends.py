"""The backends: one list, statuses by our own measure, and options by the solvers' own names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from optdp import MultiLTE, Population, ProblemError, SingleLTE, SolverError, solve
from optdp.extras import install
from optdp.programs import backends, scipy
from optdp.programs.backends import BACKENDS, find, installed, solving
from optdp.programs.highs import solve_highs
from optdp.programs.program import Answer, LinearProgram
from optdp.programs.residuals import judged, residuals

PROBLEM = SingleLTE(Population.binomial(6, "0.3"), "0.5")
CAREFUL = {"osqp": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 200_000}, "scs": {"eps_abs": 1e-9, "eps_rel": 1e-9}}
"""What brings those that aim low by themselves within the tolerance."""


@pytest.fixture(params=[backend.name for backend in BACKENDS if not backend.paid])
def name(request: pytest.FixtureRequest) -> str:
    found = next(backend for backend in BACKENDS if backend.name == request.param)
    if not found.here:
        pytest.skip(f"needs {found.distribution}, of the extra [{found.extra}]")
    return str(request.param)


def small() -> LinearProgram:
    """minimise -x - 2y with x + y <= 4, x - y >= -2, x + 3y = 9 - z and bounds; the optimum is (1.5, 2.5, 0)."""
    matrix = sparse.csr_array(np.array([[1.0, 1, 0], [1, -1, 0], [1, 3, 1]]))
    lower, upper = np.array([-np.inf, -2.0, 9.0]), np.array([4.0, np.inf, 9.0])
    return LinearProgram(np.array([-1.0, -2, 0]), matrix, lower, upper, np.array([0.0, -1, 0]), np.array([9.0, 5, 9]))


def test_every_backend_solves_and_prices(name: str) -> None:
    backend, program = find(name), small()
    answer = backend.solve(program, CAREFUL.get(name))
    assert answer.x == pytest.approx([1.5, 2.5, 0], abs=1e-3)
    assert answer.objective == pytest.approx(-6.5, rel=1e-5)
    assert (answer.duals is not None) == backend.duals
    if answer.duals is not None and answer.status == "optimal":
        found = residuals(program, answer.x, answer.duals)
        assert found.optimal
        # by hand: moving the limit of a row moves the optimum by its price
        for row in (0, 2):
            step = np.where(np.arange(3) == row, 1e-3, 0.0)
            lower = program.lower + step if row == 2 else program.lower
            other = solve_highs(replace(program, lower=lower, upper=program.upper + step)).objective
            assert (other - answer.objective) / 1e-3 == pytest.approx(float(answer.duals[row]), abs=2e-2)


def test_every_backend_s_answer_for_an_entity_is_private_and_proved(name: str) -> None:
    best = solve(PROBLEM)
    found = solve(PROBLEM, backend=name)
    assert found.certificate.epsilon is not None
    assert found.certificate.epsilon <= PROBLEM.epsilon
    assert found.mae == pytest.approx(float(best.mae), rel=1e-3)
    assert found.lower_bound is not None
    assert found.lower_bound <= best.certificate.mae
    assert found.gap is not None
    assert (found.status == "optimal") <= (found.gap <= 1e-6)
    assert found.backend == name


def test_whole_numbers(name: str) -> None:
    backend = find(name)
    program = replace(small(), cost=np.array([-1.0, -2.1, 0.1]), whole=np.array([True, True, False]))
    if not backend.milp:
        with pytest.raises(ProblemError, match="whole numbers"):
            backend.solve(program)
        return
    answer = backend.solve(program)
    assert (answer.status, answer.duals) == ("optimal", None)
    assert answer.x == pytest.approx([2, 2, 1], abs=1e-6)


def test_an_unknown_option_is_refused_in_one_line(name: str) -> None:
    if name == "highs":
        with pytest.raises(ProblemError, match="highs-simplex"), solving("highs", {"nonsense": 1}):
            pass
        return
    with pytest.raises(ProblemError, match="nonsense") as refusal:
        find(name).solve(small(), {"nonsense": 1})
    assert "\n" not in str(refusal.value)


def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    find(name).solve(small())
    assert capfd.readouterr() == ("", "")


def test_infeasible_is_said(name: str) -> None:
    program = replace(small(), lower=np.array([3.0, 3.0, 12.0]), upper=np.array([4.0, np.inf, 12.0]))
    program = replace(program, most=np.array([3.4, 5.0, 0.0]))
    answer = find(name).solve(program)
    assert answer.status in ("infeasible", "failed", "limit")
    assert answer.x is None or answer.status == "limit"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "optimal"),
        ({"x": np.array([1.5, 2.5, 1e-3])}, "limit"),
        ({"x": np.array([1.0, 2.0, 2.0])}, "feasible"),
        ({"duals": None}, "feasible"),
        ({"duals": np.zeros(3)}, "feasible"),
        ({"duals": np.array([1.0, 2.0])}, "feasible"),
        ({"duals": np.full(3, np.nan)}, "feasible"),
        ({"x": np.full(3, np.nan)}, "failed"),
        ({"x": np.zeros(2)}, "failed"),
        ({"x": None}, "failed"),
        ({"status": "infeasible"}, "infeasible"),
        ({"status": "failed"}, "optimal"),
        ({"x": None, "status": "limit"}, "limit"),
    ],
)
def test_a_status_is_what_the_answer_deserves(change: dict[str, Any], status: str) -> None:
    """Of a whole answer some part is made wrong; what the solver says of it does not count."""
    program = small()
    answer = replace(solve_highs(program), **change)
    assert judged(program, answer).status == status


def test_a_solver_that_lies_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lies(program: LinearProgram, *_: Any) -> Answer:
        return Answer(np.zeros(len(program.cost)), np.zeros(len(program.lower)), 0.0, "optimal", "optimal")

    monkeypatch.setattr(scipy, "solve_scipy", lies)
    assert find("scipy").solve(PROBLEM.to_program()).status == "limit"
    found = solve(PROBLEM, backend="scipy")
    assert found.status != "optimal"
    assert found.certificate.epsilon is not None
    assert found.certificate.epsilon <= PROBLEM.epsilon


def test_a_solver_without_an_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy, "solve_scipy", lambda *_: Answer(None, None, np.nan, "failed", "it rains"))
    with pytest.raises(SolverError, match="it rains"):
        solve(PROBLEM, backend="scipy")


def test_names() -> None:
    assert find("CVXPY:Clarabel") is find("clarabel")
    assert find(" highs ") is BACKENDS[0]
    with pytest.raises(ProblemError, match="Installed here: highs, highs-simplex"):
        find("simplex")
    names = [backend.name for backend in BACKENDS]
    assert len(set(names)) == len(names)
    assert {"highs", "scipy", "clarabel", "scs", "osqp"} <= {backend.name for backend in installed()}
    assert all(backend.version for backend in installed())
    assert {backend.name for backend in BACKENDS if backend.gpl} == {"cvxopt", "glpk", "glpk-exact", "ecos"}


def test_a_missing_backend_names_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: str) -> str:
        raise backends.PackageNotFoundError

    monkeypatch.setattr(backends, "version", gone)
    with pytest.raises(ProblemError, match=re.escape(install("solvers"))):
        find("piqp")
    with pytest.raises(ProblemError, match=re.escape(install(package="gurobipy"))):
        find("gurobi")


def test_options_reach_the_solver() -> None:
    assert find("clarabel").solve(PROBLEM.to_program(), {"max_iter": 2}).status == "limit"
    assert solve(PROBLEM, "clarabel", options={"max_iter": 6}).status == "limit"
    assert find("highs-simplex").solve(PROBLEM.to_program(), {"simplex_iteration_limit": 1}).status == "limit"


def test_plans_by_another_backend() -> None:
    """Every method whose parts are linear programs; each time the same error, certified."""
    people = [Population.binomial(2, "0.5")] * 2
    for method in ("alone", "divisible", "joint", "seeded"):
        problem = MultiLTE(people, "0.7", method=method)
        ours, theirs = solve(problem), solve(problem, backend="clarabel")
        assert theirs.backend == "clarabel"
        assert theirs.mae == pytest.approx(float(ours.mae), rel=0.01), method
        assert theirs.certificate.epsilon <= problem.epsilon
        assert theirs.lower_bound == pytest.approx(float(ours.lower_bound), rel=1e-4)
