"""CVXPY and its solvers: imported when they are used, for loading them takes seconds."""

from __future__ import annotations

import importlib.metadata  # noqa: F401  QOCO's interface uses it without importing it
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from optdp.errors import ProblemError, SolverError
from optdp.extras import install
from optdp.programs.aside import aside
from optdp.programs.program import Answer, Array, LinearProgram, Options, Status, verbose
from optdp.programs.solver_options import prepared

STATUSES: Mapping[str, Status] = {
    "optimal": "optimal",
    "optimal_inaccurate": "limit",
    "infeasible": "infeasible",
    "user_limit": "limit",
}
"""What CVXPY makes of its solvers' words, in ours; everything else is a failure."""
REFUSALS = (ValueError, ArithmeticError, TypeError, AttributeError, LookupError, RuntimeError, OSError)
"""What solvers raise of all sorts, beside CVXPY's own error."""


def import_cvxpy() -> Any:
    """The CVXPY module, or one helpful line."""
    try:
        import cvxpy
    except ImportError as error:
        raise SolverError(
            f"CVXPY cannot be loaded: {error}. Install it again: {install(package='cvxpy-base')}."
        ) from None
    return cvxpy


def model_of(program: LinearProgram) -> tuple[Any, Any, tuple[Any, Any, Any]]:
    """The program as a CVXPY problem: the problem, its unknowns, and the constraints (equal, at most, at least)."""
    cp = import_cvxpy()
    size = len(program.cost)
    matrix = program.matrix.tocsr()
    equal, most, least = program.sides
    if program.whole is not None and program.mixed:
        x = cp.Variable(size, name="x", integer=(np.flatnonzero(program.whole),))
    else:
        x = cp.Variable(size, name="x")
    parts = (
        matrix[equal] @ x == program.upper[equal] if equal.any() else None,
        matrix[most] @ x <= program.upper[most] if most.any() else None,
        matrix[least] @ x >= program.lower[least] if least.any() else None,
    )
    bounds: list[Any] = []
    below, above = np.isfinite(program.floor), np.isfinite(program.ceiling)
    if below.any():
        bounds.append(x >= program.floor if below.all() else x[below] >= program.floor[below])
    if above.any():
        bounds.append(x <= program.ceiling if above.all() else x[above] <= program.ceiling[above])
    return cp.Problem(cp.Minimize(program.cost @ x), [*filter(lambda p: p is not None, parts), *bounds]), x, parts


def solve_cvxpy(program: LinearProgram, solver: str, options: Options | None = None) -> Answer:
    """The program by one of CVXPY's solvers."""
    cp = import_cvxpy()
    begin = built = time.perf_counter()
    given = prepared(solver, options or {})
    problem, x, parts = model_of(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": it is measured, repaired and certified
        try:
            data, chain, inverse = problem.get_problem_data(getattr(cp, solver), solver_opts=dict(given))
            built = time.perf_counter()
            raw = aside(lambda: chain.solve_via_data(problem, data, False, verbose.get(), given))
            done = time.perf_counter()
            solution = chain.invert(raw, inverse)
            problem.unpack(solution)
        except (cp.error.SolverError, *REFUSALS) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if options:
                named = ", ".join(f"{name} = {option}" for name, option in options.items())
                raise ProblemError(f"{solver} fails with {named}: {reason}") from None
            return Answer(None, None, np.nan, "failed", reason, None, built - begin, time.perf_counter() - built)
    said = str(problem.status)
    value = None if x.value is None else np.asarray(x.value, dtype=float)
    return Answer(
        x=value,
        duals=None if program.mixed else _duals(program, parts),
        objective=np.nan if value is None else float(program.cost @ value),
        status=STATUSES.get(said, "failed"),
        said=said,
        iterations=_iterations(solution.attr.get(cp.settings.NUM_ITERS)),
        build_seconds=built - begin,
        solve_seconds=done - built,
    )


def _duals(program: LinearProgram, parts: tuple[Any, Any, Any]) -> Array | None:
    """A price for each row; None if the solver gives none."""
    if all(part is None or part.dual_value is None for part in parts):
        return None
    duals = np.zeros(len(program.lower))
    for rows, part, sign in zip(program.sides, parts, (-1.0, -1.0, 1.0), strict=True):
        if part is not None and part.dual_value is not None:
            duals[rows] += sign * np.asarray(part.dual_value, dtype=float).reshape(-1)
    return duals


def _iterations(count: Any) -> int | None:
    """Some solvers count what they do apart."""
    return None if count is None else int(np.sum(count))
