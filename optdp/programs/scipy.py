"""SciPy's `linprog`, and its `milp` for whole numbers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.optimize as so

from optdp.errors import ProblemError
from optdp.programs.aside import aside
from optdp.programs.program import Answer, Array, LinearProgram, Options, Status, verbose

STATUSES: Mapping[int, Status] = {0: "optimal", 1: "limit", 2: "infeasible"}
"""What SciPy says, in our words; everything else is a failure."""


def solve_scipy(program: LinearProgram, solver: str = "linprog", options: Options | None = None) -> Answer:
    """The program by SciPy, which has a HiGHS of its own; in whole numbers it is always `milp`."""
    given = {"disp": verbose.get(), **(options or {})}
    begin = time.perf_counter()
    matrix, (equal, most, least) = program.matrix.tocsr(), program.sides
    limits = np.stack([program.floor, program.ceiling], axis=1)
    most_rows = np.concatenate([np.flatnonzero(most), np.flatnonzero(least)])
    signs = np.concatenate([np.ones(most.sum()), -np.ones(least.sum())])
    built = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("error", so.OptimizeWarning)  # an option that it does not know
        try:
            if program.mixed:
                rows = so.LinearConstraint(matrix, program.lower, program.upper)
                found = aside(lambda: so.milp(
                    program.cost, integrality=program.whole, bounds=so.Bounds(*limits.T), constraints=rows,
                    options=given,
                ))  # fmt: skip
            else:
                found = aside(lambda: so.linprog(
                    program.cost, A_eq=matrix[equal], b_eq=program.upper[equal], bounds=limits, options=given,
                    A_ub=matrix[most_rows].multiply(signs[:, None]),
                    b_ub=np.concatenate([program.upper[most], -program.lower[least]]),
                ))  # fmt: skip
        except (ValueError, TypeError, so.OptimizeWarning) as error:
            raise ProblemError(f"SciPy does not take {dict(options or {})}: {str(error).splitlines()[0]}") from None
    done = time.perf_counter()
    x = None if found.x is None else np.asarray(found.x, dtype=float)
    return Answer(
        x=x,
        duals=None if program.mixed or x is None else _duals(program, found, most_rows, signs),
        objective=np.nan if x is None else float(program.cost @ x),
        status=STATUSES.get(int(found.status), "failed"),
        said=" ".join(str(found.message).split()),
        iterations=None if program.mixed else int(found.nit),
        build_seconds=built - begin,
        solve_seconds=done - built,
    )


def _duals(program: LinearProgram, found: Any, rows: Any, signs: Array) -> Array:
    duals = np.zeros(len(program.lower))
    duals[program.sides[0]] = found.eqlin.marginals
    np.add.at(duals, rows, signs * found.ineqlin.marginals)
    return duals
