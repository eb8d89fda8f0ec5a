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
from optdp.single.problem import SingleLTE
from optdp.single.truthful import truthful_draft
from optdp.single.window import is_pair_form
from optdp.work import Progress

Run = Callable[[NoiseLP, Progress], Draft]
CORE_INSTEAD = 600
"""Up to so many inputs the core program is tried where the pair form has not proved its answer."""
PLAIN_INSTEAD = 60
"""Up to so many inputs the simplex method is tried where the interior-point method for a fallback does not do."""


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


def _chain(lp: NoiseLP, progress: Progress) -> Draft:
    draft = solve_chain(lp, progress)
    if draft.status in ("optimal", "interrupted") or len(lp.inputs) > PLAIN_INSTEAD:
        return draft
    progress("the interior-point method ended early; now the simplex method")
    try:
        other = _posed(lp, progress)
    except SolverError:
        return draft
    return max(draft, other, key=lambda one: -1 if one.prices is None else lower_bound(lp, one.prices))


def _chained_cuts(lp: NoiseLP, progress: Progress) -> Draft:
    return solve_chained(lp, progress, _chain)


ENGINES: dict[str, Engine] = {
    "chained cuts": Engine(lambda lp: lp.problem.watched and lp.chain is not None, _chained_cuts),
    "cuts": Engine(lambda lp: lp.problem.watched, solve_cuts),
    "ordinary": Engine(is_closed_form, solve_ordinary),
    "chain": Engine(lambda lp: lp.chain is not None, _chain),
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
    return _highs if chosen.get().own else _plainly


def engines(problem: SingleLTE) -> tuple[Run, ...]:
    """Who is asked in turn until a draft can be certified.

    The interior-point method ends inside the chain and just below the caps; repair may then exceed these, and do less
    to a corner of a small program.
    """
    small = problem.chain_epsilon is not None and problem.last < PLAIN_INSTEAD
    return (_highs, _plainly) if chosen.get().own and small else (engine(),)


def _posed(lp: NoiseLP, progress: Progress) -> Draft:
    return solve_posed(pose(lp), chosen.get(), progress)


def _plainly(lp: NoiseLP, progress: Progress) -> Draft:
    """The program as it stands, by the backend that is chosen here."""
    return solve_chained(lp, progress, _posed) if lp.problem.watched else _posed(lp, progress)
