"""The backends: each turns the program of one LTE into a draft. Adding one is a function and a line.

highs          optdp's own engines on HiGHS: the pair form, the core program, or the chain form with a fallback
highs-ipm      the whole program by HiGHS's interior-point method
cvxpy:<NAME>   the CVXPY model as it stands, by any solver that CVXPY finds
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optdp.errors import ProblemError, SolverError
from optdp.programs.cvxpy import cvxpy_solvers, solve_cvxpy
from optdp.programs.highs import solve_highs
from optdp.single.bound import Draft, Prices, best_window, lower_bound
from optdp.single.chain import solve_chain
from optdp.single.core import solve_core
from optdp.single.cuts import solve_chained, solve_cuts
from optdp.single.lp import NoiseLP
from optdp.single.pairs import solve_pairs
from optdp.single.truthful import truthful_draft
from optdp.single.window import is_pair_form
from optdp.work import Progress

Engine = Callable[[NoiseLP, Progress], Draft]


CORE_INSTEAD = 600
"""Up to so many inputs the core program is tried where the pair form has not proved its answer."""


def _highs(lp: NoiseLP, progress: Progress) -> Draft:
    if lp.problem.watched:
        return solve_cuts(lp, progress) if lp.chain is None else solve_chained(lp, progress)
    if lp.chain is not None:
        return solve_chain(lp, progress)
    truthful = truthful_draft(lp)
    if truthful is not None:
        return truthful
    if is_pair_form(lp.problem):
        try:
            draft = solve_pairs(lp, progress)
        except SolverError as error:
            progress(f"{error} Now the core program.")
            return solve_core(lp, progress)
        if draft.status == "interrupted" or len(lp.inputs) > CORE_INSTEAD or _proved(lp, draft):
            return draft
    return solve_core(lp, progress)


def _proved(lp: NoiseLP, draft: Draft) -> bool:
    """Whether the draft's own prices show that it is within a millionth of the optimum (or is as good as nothing)."""
    value = draft.objective(lp)
    return draft.prices is not None and abs(value - float(lower_bound(lp, draft.prices))) <= 1e-6 * value + 1e-15


def _highs_ipm(lp: NoiseLP, progress: Progress) -> Draft:
    if lp.chain is None:
        return solve_core(lp, progress, solver="ipm")
    size = len(lp.inputs)
    answer = solve_highs(lp.to_program(), "ipm")
    return Draft.dense(answer.x.reshape(size, size), None, answer.status, "plain")


def _cvxpy(lp: NoiseLP, solver: str) -> Draft:
    model = lp.to_cvxpy()
    table, duals, status = solve_cvxpy(model, solver)
    if duals is None:
        return Draft.dense(table, None, status, "plain")
    steps = 2 * len(lp.laws.steps)
    u = np.array(duals[2 : 2 + steps])
    z = duals[2 + steps] if lp.cap is not None else np.zeros(len(lp.inputs))
    v = None
    if lp.chain is not None:
        rungs = duals[-2 * len(lp.rungs) :]
        v = np.array([np.concatenate(rungs[0::2]), np.concatenate(rungs[1::2])])
    prices = best_window(lp, Prices(z, u, v))
    useful = lower_bound(lp, prices) > lower_bound(lp, Prices.none(lp))  # else they are zeros, or noise
    return Draft.dense(table, prices if useful else None, status, "plain")


BACKENDS: dict[str, Engine] = {"highs": _highs, "highs-ipm": _highs_ipm}
"""The backends that are always there; those of CVXPY come on top."""


def backends() -> list[str]:
    """The names of all backends that can be used here."""
    return [*BACKENDS, *(f"cvxpy:{name}" for name in cvxpy_solvers())]


def engine(backend: str) -> Engine:
    """The engine of that name."""
    if backend in BACKENDS:
        return BACKENDS[backend]
    if backend.startswith("cvxpy:"):
        solver = backend.removeprefix("cvxpy:").upper()
        if solver in cvxpy_solvers(explain=True):
            return lambda lp, progress: _cvxpy(lp, solver)
    there = ", ".join(backends())
    extra = 'More solvers: pip install "optdp[solvers]".' if backend.startswith("cvxpy:") else ""
    raise ProblemError(f"Unknown backend {backend!r}. There are: {there}. {extra}".rstrip())
