"""Solvers that give no duals, or duals that prove nothing: HiGHS prices the rows, and no gap is made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optdp import Population, SingleLTE, solve
from optdp.comparison.measure import measured
from optdp.programs import backends, scipy
from optdp.programs.program import Answer
from optdp.single.bound import NO_DUALS, PRICED

PROBLEM = SingleLTE(Population.binomial(8, "0.3"), "0.5")
WHOLE = scipy.solve_scipy


def silent(*given: Any) -> Answer:
    return replace(WHOLE(*given), duals=None)


def zeros(*given: Any) -> Answer:
    answer = WHOLE(*given)
    assert answer.duals is not None
    return replace(answer, duals=np.zeros_like(answer.duals))


def wrong(*given: Any) -> Answer:
    answer = WHOLE(*given)
    assert answer.duals is not None
    return replace(answer, duals=np.abs(answer.duals))


@pytest.mark.parametrize("ways", [silent, zeros, wrong])
@pytest.mark.parametrize("tail", ["geometric", "none"])
def test_highs_prices_what_has_no_duals(ways: Any, tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SingleLTE(PROBLEM.populations, "0.5", tail=tail)
    whole = solve(problem, backend="scipy")
    assert whole.note == ""
    monkeypatch.setattr(scipy, "solve_scipy", ways)
    found = solve(problem, backend="scipy")
    assert (found.status, found.note) == ("optimal", PRICED)
    assert found.gap is not None
    assert found.gap < 1e-6
    assert found.value == pytest.approx(whole.value, rel=1e-6)


def test_no_gap_without_anybody_s_duals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy, "solve_scipy", silent)
    monkeypatch.setattr(backends.Chosen, "price", lambda *_: None)
    found = solve(PROBLEM, backend="scipy")
    assert (found.status, found.gap, found.lower_bound, found.prices) == ("feasible", None, None, None)
    assert found.note == NO_DUALS
    assert found.summary()["gap"] is None


def test_a_row_of_compare_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for ways, note in ((WHOLE, ""), (silent, PRICED)):
        monkeypatch.setattr(scipy, "solve_scipy", ways)
        request = {"problem": PROBLEM.spec(), "backend": "scipy", "options": {}, "repeat": 1, "form": "plain"}
        found: dict[str, Any] = {}
        for figures in measured(request):
            found |= figures
        assert found["note"] == note
        assert found["bound_by"] == ("highs" if note else "scipy")
        assert found["gap"] < 1e-6
