"""The best order that can be found within a budget: every ordering, then descents from the best of them.

The orders of the registry are measured, the few best of them are each improved for a short while, and the rest of the
budget goes to a long descent from the one that came out lowest. Up to `SMALL` records the least sensitivity of all
orders is found and proved instead (`optdp.mallows.milp`). The answer is thus never worse than any ordering of the
registry that had its turn, E's own among them, which is always the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from optdp.errors import ProblemError
from optdp.mallows.budget import PATIENCE, Budget
from optdp.mallows.descent import Descent, Tables
from optdp.mallows.groups import Groups, Whole
from optdp.mallows.milp import SMALL, least
from optdp.mallows.orderings import applicable, together
from optdp.mallows.sensitivity import sensitivity

Progress = Callable[[str], None]
STARTS = 3
"""Orders from which a descent is tried."""
TRIAL = 0.05
"""The share of the budget for each trial."""
ANNEALED = 150
"""Up to so many records half of what is left after the trials goes to moves of single records."""
ORDERING = 1e-6
"""Seconds that an ordering is charged for each member of a group."""
SHORTEST = 1.0
"""Seconds that the exact program has at least; it ends long before, unless a machine is hopelessly slow."""


@dataclass(frozen=True)
class Step:
    """One thing that was tried: what, the least sensitivity known after it, and when."""

    name: str
    sensitivity: int
    seconds: float


@dataclass
class Found:
    """The best order so far. `proved`: no order at all has a lower sensitivity."""

    order: Whole
    sensitivity: int
    ordering: str
    status: str = "complete"
    proved: bool = False
    seconds: float = 0.0
    history: list[Step] = field(default_factory=list)


def best_order(groups: Groups, budget_seconds: float = 60.0, progress: Progress = lambda _: None) -> Found:
    """Search for about so many seconds (`Budget`), or until interrupted (Ctrl-C): the best so far, "interrupted"."""
    if not 0.0 <= budget_seconds < float("inf"):
        raise ProblemError(f"budget must be a number of seconds, not negative. Found {budget_seconds}.")
    budget = Budget(budget_seconds)
    start = np.arange(groups.n, dtype=np.int64)
    best = Found(start, sensitivity(groups, start), "as-is")
    try:
        _search(groups, budget, best, progress)
    except KeyboardInterrupt:
        best.status = "interrupted"
    best.seconds = time.perf_counter() - budget.begun
    return best


def _search(groups: Groups, budget: Budget, best: Found, progress: Progress) -> None:
    def offer(name: str, order: Whole, value: int) -> None:
        if value < best.sensitivity:
            best.order, best.sensitivity, best.ordering = order, value, name
        best.history.append(Step(name, value, time.perf_counter() - budget.begun))

    met: dict[str, tuple[int, Whole]] = {}
    for name, find in applicable(groups).items():
        if met and budget.share == 1.0:
            return
        progress(name)
        order = together(groups, find(groups))
        budget.spend(ORDERING * len(groups.members))
        met[name] = sensitivity(groups, order), order
        offer(name, order, met[name][0])
    best.proved = best.sensitivity <= int((groups.sizes * (groups.sizes - 1) // 2).max(initial=0))
    if groups.n <= SMALL and not best.proved:
        progress("all orders")
        exact = least(groups, PATIENCE * max(budget.left, SHORTEST), best.order)
        offer("exact", exact.order, exact.sensitivity)
        best.proved = exact.proved
    if not best.proved:
        _descents(groups, budget, met, offer, progress)
        best.proved = best.sensitivity <= int((groups.sizes * (groups.sizes - 1) // 2).max(initial=0))


def _descents(
    groups: Groups,
    budget: Budget,
    met: dict[str, tuple[int, Whole]],
    offer: Callable[[str, Whole, int], None],
    progress: Progress,
) -> None:
    tables = Tables(groups)
    starts: dict[int, str] = {}
    for name, (value, _) in sorted(met.items(), key=lambda item: item[1][0]):
        starts.setdefault(value, name)  # an order and its reverse are one start
    trials = list(starts.values())[:STARTS]
    trial = TRIAL * budget.left

    def improve(name: str, seconds: float, moves: bool = False) -> int:
        """From the ordering's own order: one long descent finds more than a short one that is taken up again."""
        value, order = met[name]
        descent, part = Descent(tables, order, value), budget.part(seconds)
        try:
            (descent.anneal if moves else descent.run)(part, progress)
        finally:  # also what was found before an interrupt
            order = together(groups, descent.order)
            offer(f"{name}+{'moves' if moves else 'descent'}", order, sensitivity(groups, order))
        budget.spend(part.spent)
        return descent.sensitivity

    lowest = min(trials, key=lambda name: improve(name, trial))
    if groups.n <= ANNEALED:
        improve(lowest, budget.left / 2, moves=True)
    improve(lowest, budget.left)
