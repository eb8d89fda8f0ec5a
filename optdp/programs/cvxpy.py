"""CVXPY's solvers, as an extra."""

from __future__ import annotations

import importlib.metadata  # noqa: F401  QOCO's interface uses it without importing it
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from optdp.errors import ProblemError, SolverError
from optdp.programs.program import verbose

LP_SOLVERS = (
    "HIGHS", "CLARABEL", "SCS", "SCIPY", "OSQP", "PIQP", "ECOS", "GLPK", "CVXOPT", "CBC", "GLOP", "PDLP", "SCIP",
    "QOCO", "GUROBI", "MOSEK", "XPRESS", "COPT", "CPLEX", "SDPA",
)  # fmt: skip
"""Solvers of CVXPY that take a linear program."""


def import_cvxpy() -> Any:
    """The CVXPY module, or one helpful line."""
    try:
        import cvxpy
    except ImportError:
        raise ProblemError('CVXPY is not installed. Run: pip install "optdp[cvxpy]".') from None
    return cvxpy


def cvxpy_solvers(explain: bool = False) -> list[str]:
    """The LP solvers that CVXPY finds; without CVXPY none, or with `explain` an error that says what to install."""
    try:
        cp = import_cvxpy()
    except ProblemError:
        if explain:
            raise
        return []
    installed = set(cp.installed_solvers())
    return [name for name in LP_SOLVERS if name in installed]


def solve_cvxpy(model: Any, solver: str) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]] | None, str]:
    """The value of the model's one variable, the duals of its constraints, if the solver gives any, and the status."""
    cp = import_cvxpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": it is repaired and certified in any case
        try:
            model.solve(solver=solver, verbose=verbose.get())
        except (cp.error.SolverError, ValueError, ArithmeticError) as error:
            raise SolverError(f"{solver} failed: {str(error).splitlines()[0]}") from None
    (variable,) = model.variables()
    if variable.value is None:
        raise SolverError(f"{solver} must give a solution. Found status {model.status!r}.")
    if all(constraint.dual_value is None for constraint in model.constraints):
        return np.asarray(variable.value), None, str(model.status)
    duals = [
        np.zeros(constraint.shape) if constraint.dual_value is None else np.asarray(constraint.dual_value)
        for constraint in model.constraints
    ]
    return np.asarray(variable.value), duals, str(model.status)
