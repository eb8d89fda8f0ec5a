"""Who turns the program of one LTE into a draft: for "highs" the first of ENGINES that takes the program and gives an
answer, for any other backend (`optdp.programs.backends`) that backend alone, on the program as it stands (`posed`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optdp.errors import SolverError
from optdp.programs.backends import chosen
from optdp.single.bound import Draft, lower_bound
from optdp.single.chain import solve_chain
from optdp.single.core import solve_core
from optdp.single.cuts import solve_chained, solve_cuts
from optdp.single.lp import NoiseLP
from optdp.single.ordinary import is_closed_form, solve_ordinary
from optdp.single.pairs import solve_pairs
from optdp.single.posed import pose, solve_posed
from optdp.single.truthful import truthful_draft
from optdp.single.window import is_pair_form
from optdp.work import Progress

Run = Callable[[NoiseLP, Progress], Draft]
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
    "ordinary": Engine(is_closed_form, solve_ordinary),
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


def engine() -> Run:
    """Who makes a draft of a program: optdp's own engines on HiGHS, or the backend that is chosen here on its own."""
    who = chosen.get()
    if who.own:
        return _highs

    def once(lp: NoiseLP, progress: Progress) -> Draft:
        return solve_posed(pose(lp), who, progress)

    def solve(lp: NoiseLP, progress: Progress) -> Draft:
        return solve_chained(lp, progress, once) if lp.problem.watched else once(lp, progress)

    return solve
