"""HiGHS on a linear program as it stands."""

from __future__ import annotations

import highspy
import numpy as np

from optdp.solvers.program import Answer, LinearProgram


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
    highs = highspy.Highs()
    options: dict[str, bool | int | str] = {"output_flag": False, "threads": 1, "solver": solver}
    for name, option in options.items():
        highs.setOptionValue(name, option)
    highs.passModel(lp)
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus()).lower()
    values = np.array(highs.getSolution().col_value)
    if len(values) != len(program.cost):
        values = np.zeros(len(program.cost))
    return Answer(values, float(program.cost @ values), status)
