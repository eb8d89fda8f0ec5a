"""HiGHS: how it is set up and run here, and a linear program as it stands."""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Mapping
from typing import Any

import highspy
import numpy as np

import optdp.work as work
from optdp.numbers.ordered import dot
from optdp.programs.program import Answer, LinearProgram, verbose

Option = bool | int | float | str
DEFAULTS: Mapping[str, Option] = {"output_flag": False, "threads": 1}
LOOK = 0.2
"""Seconds between two looks at the deadline, where no signal tells of it."""


def new_highs(**options: Option) -> highspy.Highs:
    """HiGHS with optdp's settings and these."""
    highs = highspy.Highs()
    for name, option in {**DEFAULTS, **options}.items():
        highs.setOptionValue(name, option)
    if verbose.get():
        highs.setOptionValue("log_to_console", False)  # it would go past Python's streams, and past notebooks
        highs.setOptionValue("output_flag", True)
        highs.cbLogging.subscribe(_print)
    return highs


def _print(event: Any) -> None:
    sys.stderr.write(event.message)


def run(highs: highspy.Highs) -> None:
    """Run HiGHS so that a signal or the deadline can end it; what it finds is what `highs.run()` finds.

    While HiGHS runs, Python answers no signal in the thread that called it. So it runs in another one, which costs a
    tenth of a millisecond. In threads that no signal reaches and that have no deadline it runs as it is.
    """
    if threading.current_thread() is not threading.main_thread() and work.remaining() == np.inf:
        highs.run()
        return
    done = threading.Event()
    cancelled = threading.Event()
    limit = highs.getOptionValue("time_limit")[1]

    def ask(event: Any) -> None:
        event.data_in.user_interrupt = cancelled.is_set()  # also False: HiGHS keeps what it was told in the last run

    def solve() -> None:
        try:
            highs.run()
        finally:
            done.set()

    # The simplex method looks at its limit in every iteration; the others ask, a few times a second at most.
    asked = (highs.cbIpmInterrupt, highs.cbMipInterrupt)
    for callback in asked:
        callback.subscribe(ask)
    try:
        with work.held():
            _thread.start_new_thread(solve, ())
        try:
            while not done.wait(LOOK):
                work.check()
        except BaseException:
            with work.held():
                cancelled.set()
                highs.setOptionValue("time_limit", 0.0)
                done.wait()
                highs.setOptionValue("time_limit", limit)
            raise
    finally:
        for callback in asked:
            callback.unsubscribe(ask)


def solve_highs(program: LinearProgram, solver: str = "simplex") -> Answer:
    """Pass the arrays to HiGHS and run it; `solver` is "simplex" or "ipm"."""
    columns = program.matrix.tocsc()
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = columns.shape
    lp.col_cost_ = program.cost
    lp.col_lower_ = np.zeros(len(program.cost))
    lp.col_upper_ = np.full(len(program.cost), highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = program.lower, program.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.indptr, columns.indices, columns.data
    highs = new_highs(solver=solver)
    highs.passModel(lp)
    run(highs)
    status = highs.modelStatusToString(highs.getModelStatus()).lower()
    values = np.array(highs.getSolution().col_value)
    if len(values) != len(program.cost):
        values = np.zeros(len(program.cost))
    return Answer(values, dot(program.cost, values), status)
