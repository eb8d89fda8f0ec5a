"""HiGHS in a thread of its own: the same answers to the last bit, and an end when it is asked for."""

from __future__ import annotations

import signal
import threading

import highspy
import numpy as np
import pytest
from scipy import sparse

from optdp import Population, SingleLTE, solve
from optdp.programs.highs import new_highs, run
from optdp.programs.program import verbosely
from optdp.work import DeadlineReached, Terminated, deadline, signals


def program(seed: int, columns: int, rows: int, whole: bool = False) -> highspy.HighsLp:
    source = np.random.default_rng(seed)
    matrix = sparse.random(rows, columns, density=min(1.0, 20 / rows), random_state=seed, format="csc")
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows, columns
    lp.col_cost_ = -source.random(columns)
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, 10.0)
    lp.row_lower_, lp.row_upper_ = np.full(rows, -highspy.kHighsInf), 1.0 + 5.0 * source.random(rows)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    if whole:
        lp.integrality_ = [highspy.HighsVarType.kInteger] * columns
    return lp


@pytest.mark.parametrize("solver", ["simplex", "ipm"])
def test_the_same_to_the_last_bit(solver: str) -> None:
    for seed in range(10):
        model = program(seed, 60, 40)
        one, other = new_highs(solver=solver), new_highs(solver=solver)
        one.passModel(model)
        other.passModel(model)
        one.run()
        run(other)
        for name in ("col_value", "row_dual"):
            assert getattr(one.getSolution(), name) == getattr(other.getSolution(), name)
        assert one.getInfo().simplex_iteration_count == other.getInfo().simplex_iteration_count


@pytest.mark.parametrize("solver", ["simplex", "ipm"])
def test_a_deadline_ends_it_and_it_can_be_run_again(solver: str) -> None:
    highs = new_highs(solver=solver, presolve="off")
    highs.passModel(program(0, 6000, 4000))
    with pytest.raises(DeadlineReached), deadline(0.3):
        run(highs)
    assert highs.getModelStatus() != highspy.HighsModelStatus.kOptimal
    assert highs.getOptionValue("time_limit")[1] == np.inf
    highs.passModel(program(1, 60, 40))
    run(highs)
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal


def test_a_signal_ends_it() -> None:
    highs = new_highs(solver="simplex", presolve="off")
    highs.passModel(program(0, 6000, 4000))
    blow = threading.Timer(0.3, signal.raise_signal, [signal.SIGTERM])

    def struck() -> None:
        blow.start()
        run(highs)
        blow.join()  # no blow comes when nobody listens any more

    with pytest.raises(Terminated), signals():
        struck()
    assert highs.getModelStatus() != highspy.HighsModelStatus.kOptimal


def test_a_deadline_ends_a_search_for_whole_numbers() -> None:
    highs = new_highs()
    highs.passModel(program(0, 150, 60, whole=True))
    with pytest.raises(DeadlineReached), deadline(0.5):
        run(highs)


def test_the_log_is_shown_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    for on in (False, True):
        with verbosely(on):
            highs = new_highs()
        highs.passModel(program(1, 60, 40))
        run(highs)
        said = capfd.readouterr()
        assert said.out == ""
        assert ("Running HiGHS" in said.err) is on


def test_a_verbose_solve_shows_the_solver(capfd: pytest.CaptureFixture[str]) -> None:
    problem = SingleLTE(Population.iid(6, ["0.5", "0.3", "0.2"]), epsilon="0.5", adjacency="all")
    quiet = solve(problem)
    assert capfd.readouterr() == ("", "")
    with verbosely():
        loud = solve(problem)
    assert "HiGHS" in capfd.readouterr().err
    assert loud.mechanism == quiet.mechanism


def test_cvxpy_is_verbose_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    problem = SingleLTE(Population.binomial(5, "0.2"), epsilon="0.5")
    for on in (False, True):
        with verbosely(on):
            solve(problem, backend="cvxpy:clarabel")
        said = capfd.readouterr()
        assert ("Clarabel" in said.out + said.err) is on
