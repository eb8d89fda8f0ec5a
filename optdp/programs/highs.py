"""HiGHS: how it is set up and run here, and a linear program as it stands."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse

import optdp.work as work
from optdp.errors import ProblemError, SolverError
from optdp.programs.aside import aside
from optdp.programs.program import Answer, Array, LinearProgram, Mask, Option, Options, Status, verbose

Whole = npt.NDArray[np.signedinteger[Any]]

DEFAULTS: Mapping[str, Option] = {"output_flag": False, "threads": 1}
DEAF = ("pdlp", "hipdlp")
"""Methods that look at no limit that is set while they run, or seldom, and ask nobody."""
LATE = 0.1
"""Seconds after the deadline at which they end by themselves."""


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
    """Run HiGHS so that a signal or the deadline can end it; what it finds is what `highs.run()` finds."""
    cancelled = threading.Event()
    limit = highs.getOptionValue("time_limit")[1]

    def ask(event: Any) -> None:
        event.data_in.user_interrupt = cancelled.is_set()  # also False: HiGHS keeps what it was told in the last run

    def cancel() -> None:
        cancelled.set()
        highs.setOptionValue("time_limit", 0.0)

    if highs.getOptionValue("solver")[1] in DEAF:
        highs.setOptionValue("time_limit", min(limit, work.remaining() + LATE))
        aside(highs.run)
        return
    # The simplex method looks at its limit in every iteration; the others ask, a few times a second at most.
    asked = (highs.cbIpmInterrupt, highs.cbMipInterrupt)
    for callback in asked:
        callback.subscribe(ask)
    try:
        aside(highs.run, cancel)
    finally:
        for callback in asked:
            callback.unsubscribe(ask)
        if cancelled.is_set():
            highs.setOptionValue("time_limit", limit)


def model_of(program: LinearProgram) -> highspy.HighsLp:
    """The program as HiGHS takes it, by columns or by rows as its matrix is."""
    by_columns = program.matrix.format == "csc"
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.matrix.shape
    model.col_cost_ = program.cost
    model.col_lower_, model.col_upper_ = program.floor, program.ceiling
    model.row_lower_, model.row_upper_ = program.lower, program.upper
    if program.whole is not None:
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        model.integrality_ = [kinds[bool(whole)] for whole in program.whole]
    entries = model.a_matrix_
    entries.format_ = highspy.MatrixFormat.kColwise if by_columns else highspy.MatrixFormat.kRowwise
    entries.start_, entries.index_, entries.value_ = program.matrix.indptr, program.matrix.indices, program.matrix.data
    return model


def add_columns(highs: highspy.Highs, cost: Array, places: Whole, values: Array, kept: Mask) -> None:
    """More unknowns, at least 0: for each a row of `values` in the program's rows `places`, where they are `kept`."""
    count, starts = len(cost), np.concatenate([[0], np.cumsum(kept.sum(axis=1))[:-1]])
    highs.addCols(
        count, cost, np.zeros(count), np.full(count, np.inf), int(kept.sum()),
        starts.astype(np.int32), places[kept].astype(np.int32), values[kept],
    )  # fmt: skip


def add_rows(highs: highspy.Highs, starts: Whole, places: Whole, values: Array) -> None:
    """More rows, at most 0: for each the `values` of the unknowns `places`, from its start to the next."""
    count = len(starts) - 1
    highs.addRows(
        count, np.full(count, -np.inf), np.zeros(count), len(values),
        starts[:-1].astype(np.int32), places.astype(np.int32), values,
    )  # fmt: skip


STATUSES: Mapping[highspy.HighsModelStatus, Status] = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kTimeLimit: "limit",
    highspy.HighsModelStatus.kIterationLimit: "limit",
    highspy.HighsModelStatus.kSolutionLimit: "limit",
    highspy.HighsModelStatus.kObjectiveBound: "limit",
    highspy.HighsModelStatus.kObjectiveTarget: "limit",
    highspy.HighsModelStatus.kInterrupt: "limit",
    highspy.HighsModelStatus.kUnknown: "limit",  # so it calls a point that is nearly optimal
    highspy.HighsModelStatus.kMemoryLimit: "limit",
}
"""What HiGHS says, in our words; everything else is a failure."""


def solve_highs(program: LinearProgram, solver: str = "simplex", options: Options | None = None) -> Answer:
    """Pass the arrays to HiGHS and run it; `solver` is one of HiGHS's own: simplex, ipm, hipo, pdlp, hipdlp.

    With `options`, also with none of them, every coefficient counts that is not below HiGHS's least.
    """
    begin = time.perf_counter()
    highs = new_highs(solver=solver) if options is None else new_highs(solver=solver, small_matrix_value=1e-12)
    if highs.getOptionValue("solver")[1] != solver:
        raise SolverError(f"This HiGHS ({highs.version()}) has no solver {solver!r}. Try another backend.")
    _set(highs, options or {})
    highs.passModel(model_of(replace(program, matrix=program.matrix.tocsc())))
    built = time.perf_counter()
    run(highs)
    answer = read(highs)
    answer = replace(answer, duals=None) if program.mixed else answer
    return replace(answer, build_seconds=built - begin, solve_seconds=time.perf_counter() - built)


def read(highs: highspy.Highs) -> Answer:
    """What HiGHS has found when it has run."""
    status, solution, info = highs.getModelStatus(), highs.getSolution(), highs.getInfo()
    x = np.array(solution.col_value) if solution.value_valid else None
    counts = (info.simplex_iteration_count, info.ipm_iteration_count, info.pdlp_iteration_count)
    return Answer(
        x=x,
        duals=np.array(solution.row_dual) if solution.dual_valid else None,
        objective=np.nan if x is None else info.objective_function_value,
        status=STATUSES.get(status, "failed"),
        said=highs.modelStatusToString(status).lower(),
        iterations=sum(max(count, 0) for count in counts),
    )


def held(highs: highspy.Highs) -> LinearProgram:
    """The program that HiGHS holds."""
    model = highs.getLp()
    entries = model.a_matrix_
    parts = np.array(entries.value_), np.array(entries.index_), np.array(entries.start_)
    by_columns = entries.format_ == highspy.MatrixFormat.kColwise
    shape = model.num_row_, model.num_col_
    return LinearProgram(
        np.array(model.col_cost_),
        sparse.csc_array(parts, shape=shape) if by_columns else sparse.csr_array(parts, shape=shape),
        np.array(model.row_lower_),
        np.array(model.row_upper_),
        np.array(model.col_lower_),
        np.array(model.col_upper_),
    )


def _set(highs: highspy.Highs, options: Options) -> None:
    """The user's options; what HiGHS says of one that it does not take is what the user is told."""
    said: list[str] = []

    def hear(event: Any) -> None:
        said.append(event.message.strip())

    highs.setOptionValue("log_to_console", False)
    quiet = not highs.getOptionValue("output_flag")[1]
    for name, option in options.items():
        highs.setOptionValue("output_flag", True)
        highs.cbLogging.subscribe(hear)
        taken = highs.setOptionValue(name, option)
        highs.cbLogging.unsubscribe(hear)
        if quiet and name != "output_flag":
            highs.setOptionValue("output_flag", False)
        if taken != highspy.HighsStatus.kOk:
            reason = " ".join(said).removeprefix("ERROR:").strip()
            raise ProblemError(f"HiGHS does not take the option {name} = {option}. {reason}".rstrip())
