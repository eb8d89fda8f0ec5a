"""Solvers that give no duals, or duals that prove nothing: no gap is made up for them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from optdp import Population, SingleLTE, solve
from optdp import comparison as compare
from optdp.programs.cvxpy import cvxpy_solvers, solve_cvxpy
from optdp.single import engines
from optdp.single.bound import NO_DUALS
from tests.command_line import Done

PROBLEM = SingleLTE(Population.binomial(8, "0.3"), "0.5")
WHOLE = solve_cvxpy


def silent(model: Any, solver: str) -> Any:
    table, _, status = WHOLE(model, solver)
    return table, None, status


def zeros(model: Any, solver: str) -> Any:
    table, duals, status = WHOLE(model, solver)
    assert duals is not None
    return table, [np.zeros_like(dual) for dual in duals], status


def negative(model: Any, solver: str) -> Any:
    table, duals, status = WHOLE(model, solver)
    assert duals is not None
    return table, [-np.abs(dual) for dual in duals], status


@pytest.fixture
def backend() -> str:
    pytest.importorskip("cvxpy")
    if "HIGHS" not in cvxpy_solvers():
        pytest.skip("CVXPY finds no HiGHS")
    return "cvxpy:HIGHS"


@pytest.mark.parametrize("ways", [silent, zeros, negative])
@pytest.mark.parametrize("tail", ["geometric", "none"])
def test_no_gap_without_duals(ways: Any, tail: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SingleLTE(PROBLEM.populations, "0.5", tail=tail)
    whole = solve(problem, backend=backend)
    assert whole.gap is not None
    assert whole.gap < 1e-5
    assert NO_DUALS not in whole.note
    assert compare.run_one(problem, backend).note == ""
    monkeypatch.setattr(engines, "solve_cvxpy", ways)
    found = solve(problem, backend=backend)
    assert (found.status, found.gap, found.lower_bound, found.prices) == ("optimal", None, None, None)
    assert found.note == NO_DUALS
    assert found.value == pytest.approx(whole.value, rel=1e-6)
    assert found.summary()["gap"] is None
    assert found.summary()["lower_bound"] is None
    row = compare.run_one(problem, backend)
    assert (row.status, row.gap, row.note) == ("optimal", None, NO_DUALS)


def test_the_table_of_compare_says_so(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Done]
) -> None:
    (tmp_path / "p.toml").write_text(
        'kind = "single-lte"\nepsilon = 1\npopulation = { kind = "binomial", n = 2, p = 0.5 }\n'
    )
    rows = [
        compare.Row("cvxpy:CBC", "optimal", 1.0, 0.5, "1", 0.5, "1", None, NO_DUALS),
        compare.Row("cvxpy:SCS", "failed", note="no answer"),
        compare.Row("highs", "optimal", 1.0, 0.5, "1", 0.5, "1", 1e-9),
    ]
    monkeypatch.setattr(compare, "compare", lambda *_: rows)
    done = command("compare", tmp_path / "p.toml")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[1][-2:] == ["no", "duals"]
    assert lines[2][-1] == "-"
    assert lines[3][-1] == "1e-09"


def test_a_model_without_dual_values_has_none() -> None:
    pytest.importorskip("cvxpy")
    variable = SimpleNamespace(value=np.eye(2))
    for values, expected in (((None, None), None), ((None, np.ones(2)), [[0.0, 0.0], [1.0, 1.0]])):
        model = SimpleNamespace(
            solve=lambda **_: None, variables=lambda: [variable], status="optimal",
            constraints=[SimpleNamespace(shape=(2,), dual_value=value) for value in values],
        )  # fmt: skip
        _, duals, status = solve_cvxpy(model, "ANY")
        assert status == "optimal"
        assert (duals if duals is None else [dual.tolist() for dual in duals]) == expected
