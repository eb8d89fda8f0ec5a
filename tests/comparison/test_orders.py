"""Orders side by side: a solver's numbers are read as an order, which is measured, and judged by optdp's bound."""

from __future__ import annotations

import json

import numpy as np
import pytest

from optdp import Groups, OrderShuffle
from optdp.comparison.measure import told
from optdp.comparison.orders import Order
from optdp.comparison.run import given
from optdp.errors import ProblemError
from optdp.order.solve import enumerated
from optdp.programs import backends
from optdp.programs.program import Answer, LinearProgram, Options

GROUPS = Groups.of([[0, 2, 4], [1, 2], [0, 1, 2, 3]], 5)
PROBLEM = OrderShuffle(GROUPS, alpha="0.5")
LEAST = enumerated(GROUPS)[1]


def backwards(program: LinearProgram, _: str, __: Options | None) -> Answer:
    """An order that is not the best, and its least `t` as a lie."""
    x = np.zeros(len(program.cost))
    x[25:30] = 0, 3, 1, 4, 2
    return Answer(x, None, 0.0, "optimal", "Optimal!")


def test_a_backend_and_our_own_search_find_the_same() -> None:
    for name in ("highs", "scipy"):
        order = Order(PROBLEM, name, {})
        assert set(order.once()) >= {"solve"}
        for figures in ({}, *order.further()):
            found = order.figures() | figures
        assert (found["status"], found["value"], found["lower_bound"], found["gap"]) == ("optimal", LEAST, LEAST, 0)
        assert found["certified_epsilon"] == "0.5"


def test_what_a_solver_boasts_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    liar = backends.Backend("liar", f"{__name__}:backwards", "x", "numpy", "none", milp=True)
    monkeypatch.setattr(backends, "BACKENDS", (*backends.BACKENDS, liar))
    order = Order(PROBLEM, "liar", {})
    order.once()
    assert order.figures()["status"] == "limit"  # its numbers miss rows
    (found,) = order.further()
    assert found["value"] > LEAST == found["lower_bound"]
    assert found["status"] == "limit"
    assert found["theirs"] == "Optimal!"


def test_a_process_is_told_the_whole_problem() -> None:
    found = told(json.loads(json.dumps(given(PROBLEM))))
    assert isinstance(found, OrderShuffle)
    assert (found.alpha, found.distance, found.groups.n) == (PROBLEM.alpha, "kendall", 5)
    assert [found.groups[i].tolist() for i in range(3)] == [GROUPS[i].tolist() for i in range(3)]


def test_a_solver_without_whole_numbers_is_a_row() -> None:
    with pytest.raises(ProblemError, match="does not solve programs in whole numbers"):
        Order(PROBLEM, "clarabel", {}).once()
