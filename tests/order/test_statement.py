"""The program of an order: its optimum is the least sensitivity of all orders, as arrays and as the CVXPY model."""

from __future__ import annotations

import numpy as np
import pytest

from optdp import Groups, OrderShuffle, ProblemError
from optdp.kinds import stated
from optdp.order.mechanism import sensitivity
from optdp.order.solve import enumerated
from optdp.programs.backends import find

GROUPS = Groups.of([[0, 2, 4], [1, 2], [3], [0, 1, 2, 3], [4, 2, 0]], 5)


def test_the_optimum_is_the_least_sensitivity() -> None:
    problem = OrderShuffle(GROUPS, alpha=1)
    program, least = problem.to_program(), enumerated(GROUPS)[1]
    for name in ("highs-simplex", "scipy"):
        answer = find(name).solve(program)
        assert answer.status == "optimal"
        assert answer.objective == pytest.approx(least)
        assert answer.x is not None
        assert sensitivity(GROUPS, np.argsort(answer.x[25:30])) == least
    model = problem.to_cvxpy()
    model.solve(solver="HIGHS")
    assert model.value == pytest.approx(least)


def test_it_says_how_large_the_program_is() -> None:
    for groups in (GROUPS, Groups.of([[0], [1]], 2), Groups.of([[0, 1, 2, 3, 4, 5, 6]], 7)):
        one = stated(OrderShuffle(groups, alpha=1))
        program = one.program()
        assert (one.rows, one.unknowns) == program.matrix.shape
        assert program.matrix.nnz <= one.entries <= program.matrix.nnz + len(program.cost)  # the place 0 is no entry


def test_a_backend_without_whole_numbers_says_so() -> None:
    with pytest.raises(ProblemError, match=r"does not solve programs in whole numbers\. These do: highs"):
        find("clarabel").solve(OrderShuffle(GROUPS, alpha=1).to_program())


def test_by_hamming_there_is_no_program() -> None:
    with pytest.raises(ProblemError, match="every order has the same sensitivity"):
        OrderShuffle(GROUPS, alpha=1, distance="hamming").to_program()
