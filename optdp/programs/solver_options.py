"""How CVXPY's solvers are given options by their own names, and how those that nobody checks are refused.

Most solvers say what is wrong with an option. CVXOPT, GLPK, CBC and QOCO ignore what they do not know, so that a slip
of the pen would go unnoticed: here are the names that they take. GLOP and PDLP take a message with fields; the fields
of a part of it are named with dots (`termination_criteria.iteration_limit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from optdp.errors import ProblemError
from optdp.programs.program import Option, Options

KNOWN: Mapping[str, tuple[str, ...]] = {
    "CVXOPT": ("abstol", "feastol", "kktsolver", "max_iters", "maxiters", "refinement", "reltol"),
    "GLPK": (
        "it_lim", "meth", "obj_ll", "obj_ul", "presolve", "pricing", "r_test", "tm_lim", "tol_bnd", "tol_dj", "tol_piv",
    ),
    "CBC": (
        "allowableFractionGap", "allowableGap", "automaticScaling", "dualTolerance", "infeasibilityCost", "logLevel",
        "maxNumIteration", "maximumNodes", "maximumSeconds", "numberThreads", "optimizationDirection", "presolve",
        "primalTolerance", "scaling",
    ),
    "QOCO": (
        "abstol", "abstol_inacc", "algebra", "bisect_iters", "ir_tol", "iter_ref_iters", "kkt_dynamic_reg",
        "kkt_static_reg", "kkt_static_reg_A", "kkt_static_reg_G", "kkt_static_reg_P", "max_ir_iters", "max_iters",
        "reltol", "reltol_inacc", "ruiz_iters",
    ),
}  # fmt: skip
"""What each of these takes; the names differ a little between versions of QOCO."""
MESSAGES: Mapping[str, tuple[str, str]] = {
    "GLOP": ("ortools.glop.parameters_pb2", "GlopParameters"),
    "PDLP": ("ortools.pdlp.solvers_pb2", "PrimalDualHybridGradientParams"),
}
SECONDS = "time_limit_sec"
"""What CVXPY itself takes for GLOP and PDLP."""


def prepared(solver: str, options: Options) -> dict[str, Any]:
    """The options as CVXPY takes them for a solver."""
    for name in options:
        if solver in KNOWN and name not in KNOWN[solver]:
            raise ProblemError(f"{solver} does not know the option {name!r}. It takes: {', '.join(KNOWN[solver])}.")
    if solver == "GLPK" and options:
        return {"glpk": dict(options)}
    if solver in MESSAGES and set(options) - {SECONDS}:
        kept: dict[str, Any] = {SECONDS: options[SECONDS]} if SECONDS in options else {}
        return {**kept, "parameters_proto": _message(solver, options)}
    return dict(options)


def _message(solver: str, options: Options) -> Any:
    module, name = MESSAGES[solver]
    message = getattr(import_module(module), name)()
    if solver == "PDLP":
        message.presolve_options.use_glop = True  # as CVXPY has it
    for path, option in options.items():
        if path != SECONDS:
            _put(solver, message, path, option)
    return message


def _put(solver: str, message: Any, path: str, option: Option) -> None:
    part = message
    *outer, last = path.split(".")
    try:
        for name in outer:
            part = getattr(part, name)
        setattr(part, last, option)
    except (AttributeError, TypeError, ValueError) as error:
        raise ProblemError(f"{solver} does not take the option {path} = {option}: {error}") from None


def option_of(text: str) -> tuple[str, Option]:
    """An option as a command line has it, NAME=VALUE: its name, and true or false, a number, or a word."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (sign and name and value and text.isprintable()):
        raise ProblemError(f"--option must be NAME=VALUE, such as feastol=1e-9. Found {text!r}.")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    return name, value
