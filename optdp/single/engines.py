"""The backends: each turns the program of one LTE into a draft. Adding one is a function and a line.

highs          optdp's own engines on HiGHS: the first of ENGINES that takes the program and gives an answer
highs-ipm      the whole program by HiGHS's interior-point method
cvxpy:<NAME>   the CVXPY model as it stands, by any solver that CVXPY finds
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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

Backend = Callable[[NoiseLP, Progress], Draft]
CORE_INSTEAD = 600
"""Up to so many inputs the core program is tried where the pair form has not proved its answer."""


@dataclass(frozen=True)
class Engine:
    """A way to solve the program with HiGHS: which programs it takes, and a draft, or None for the next to try."""

    accepts: Callable[[NoiseLP], bool]
    solve: Callable[[NoiseLP, Progress], Draft | None]


def _pairs_if_proved(lp: NoiseLP, progress: Progress) -> Draft | None:
    try:
        draft = solve_pairs(lp, progress)
    except SolverError as error:
        progress(f"{error} Now the core program.")
        return None
    kept = draft.status == "interrupted" or len(lp.inputs) > CORE_INSTEAD or _proved(lp, draft)
    return draft if kept else None


ENGINES: dict[str, Engine] = {
    "chained cuts": Engine(lambda lp: lp.problem.watched and lp.chain is not None, solve_chained),
    "cuts": Engine(lambda lp: lp.problem.watched, solve_cuts),
    "chain": Engine(lambda lp: lp.chain is not None, solve_chain),
    "truthful": Engine(lambda lp: True, lambda lp, _: truthful_draft(lp)),
    "pairs": Engine(lambda lp: is_pair_form(lp.problem), _pairs_if_proved),
    "core": Engine(lambda lp: True, solve_core),
}
"""In the order in which they are asked."""


def _highs(lp: NoiseLP, progress: Progress) -> Draft:
    drafts = (engine.solve(lp, progress) for engine in ENGINES.values() if engine.accepts(lp))
    return next(draft for draft in drafts if draft is not None)


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


BACKENDS: dict[str, Backend] = {"highs": _highs, "highs-ipm": _highs_ipm}
"""The backends that are always there; those of CVXPY come on top."""


def backends() -> list[str]:
    """The names of all backends that can be used here."""
    return [*BACKENDS, *(f"cvxpy:{name}" for name in cvxpy_solvers())]


def engine(backend: str) -> Backend:
    """The backend of that name."""
    if backend in BACKENDS:
        return BACKENDS[backend]
    if backend.startswith("cvxpy:"):
        solver = backend.removeprefix("cvxpy:").upper()
        if solver in cvxpy_solvers(explain=True):
            return lambda lp, progress: _cvxpy(lp, solver)
    there = ", ".join(backends())
    extra = 'More solvers: pip install "optdp[solvers]".' if backend.startswith("cvxpy:") else ""
    raise ProblemError(f"Unknown backend {backend!r}. There are: {there}. {extra}".rstrip())
