"""The best order that can be found within a budget: every ordering, then descents from the best of them.

The orders of the registry are measured, the few best of them are each improved for a short while, and the rest of the
budget goes to a long descent from the one that came out lowest. Up to `SMALL` records the least sensitivity of all
orders is found and proved instead (`enumerated`). The answer is thus never worse than any ordering of the
registry that had its turn, E's own among them, which is always the first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import optdp.work as work
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable
from optdp.numbers.exact import show
from optdp.numbers.source import Source
from optdp.order.alphabet import check_values, different, narrowed_bound
from optdp.order.format import write_order
from optdp.order.mechanism import (
    FILES,
    Groups,
    Whole,
    alpha_of,
    dispersion,
    near_uniform,
    paper_sensitivity,
    ratio,
    reversed_pairs,
    sensitivity,
    width,
)
from optdp.order.orderings import ORDERINGS, along, applicable, bfs, together
from optdp.order.problem import OrderShuffle
from optdp.order.sampling import check_order, shuffled
from optdp.order.search import Descent, Tables, distinct, lower_bound
from optdp.order.study import StudyFindings
from optdp.outcome import Outcome
from optdp.sheet import Cell, Sheet
from optdp.work import Progress, expect, silent
from optdp.work.account import Budget, beyond

SMALL = 10
"""Up to so many records all orders are measured, and the answer is proved to be the best."""
STARTS = 3
"""Orders from which a descent is tried."""
TRIAL = 0.05
"""The share of the budget for each trial."""
ANNEALED = 150
"""Up to so many records half of what is left after the trials goes to moves of single records."""
ORDERING, MORE = 1e-6, (0.0, -6e-7, 0.0)
"""Seconds that an ordering is charged for each member of a group; less for those of large problems (`beyond`)."""
SLOW = {"bfs": (6e-6, 0.0, 0.0), "spectral": (1.2e-5, 1e-6, 5e-4)}
"""What these orderings are charged besides, for each record, member and component of large problems (`beyond`)."""
FINISH = (1e-6, 4e-7, 0.0)
"""What it is charged to set a descent up, and to measure what it found."""


@dataclass
class FoundOrder:
    """The best order so far. `proved`: no order at all has a lower sensitivity."""

    order: Whole
    sensitivity: int
    ordering: str
    status: str = "complete"
    proved: bool = False
    history: list[tuple[str, int]] = field(default_factory=list)
    """What was tried, and its sensitivity."""


def best_order(groups: Groups, budget_seconds: float = 60.0, progress: Progress = silent) -> FoundOrder:
    """Search for about so many seconds (`Budget`), or until interrupted (Ctrl-C): the best so far, "interrupted"."""
    budget = Budget(budget_seconds)
    start = np.arange(groups.n, dtype=np.int64)
    with work.held(later=False):
        best = FoundOrder(start, sensitivity(groups, start), "as-is")
    if work.stopped() is not None:
        best.status = "interrupted"
        return best
    try:
        _search(groups, budget, best, progress)
    except KeyboardInterrupt:
        best.status = "interrupted"
    return best


def _search(groups: Groups, budget: Budget, best: FoundOrder, progress: Progress) -> None:
    def offer(name: str, order: Whole, value: int) -> None:
        if value < best.sensitivity:
            best.order, best.sensitivity, best.ordering = order, value, name
        best.history.append((name, value))

    met: dict[str, tuple[int, Whole]] = {}
    parts, members = groups.parts[0], len(groups.members)
    for name, find in applicable(groups).items():
        charge = beyond(groups.n, members, SLOW.get(name, (0.0, 0.0, 0.0)), parts)
        if met and budget.share == 1.0:
            return
        if met and charge > budget.left:
            continue
        progress(f"{name}; the best so far has sensitivity {best.sensitivity:,}")
        order = together(groups, find(groups))
        budget.spend(ORDERING * members + beyond(0, members, MORE) + charge)
        met[name] = sensitivity(groups, order), order
        offer(name, order, met[name][0])
    best.proved = best.sensitivity <= groups.side_by_side
    if groups.n <= SMALL and not best.proved:
        progress("all orders")
        offer("exact", *enumerated(groups, best.order))
        best.proved = True
    if not best.proved:
        _descents(groups, budget, met, offer, progress)
        best.proved = best.sensitivity <= groups.side_by_side


def _descents(
    groups: Groups,
    budget: Budget,
    met: dict[str, tuple[int, Whole]],
    offer: Callable[[str, Whole, int], None],
    progress: Progress,
) -> None:
    tables = Tables(groups)
    setting = beyond(groups.n, len(groups.members), FINISH)
    budget.spend(setting)
    starts: dict[int, str] = {}
    for name, (value, _) in sorted(met.items(), key=lambda item: item[1][0]):
        starts.setdefault(value, name)  # an order and its reverse are one start
    trials = list(starts.values())[:STARTS]
    trial = TRIAL * budget.left
    if setting > trial:  # no time for trials: what they find is worth less than what it takes to measure
        trials = trials[:1]

    def improve(name: str, seconds: float, moves: bool = False) -> int:
        """From the ordering's own order: one long descent finds more than a short one that is taken up again."""
        value, order = met[name]
        descent, part = Descent(tables, order, value), budget.part(seconds)
        try:
            (descent.anneal if moves else descent.run)(part, progress)
        finally:  # also what was found before an interrupt
            order = together(groups, descent.order)
            offer(f"{name}+{'moves' if moves else 'descent'}", order, sensitivity(groups, order))
        budget.spend(part.spent + setting)
        return descent.sensitivity

    lowest = min(trials, key=lambda name: improve(name, trial))
    if groups.n <= ANNEALED:
        improve(lowest, budget.left / 2, moves=True)
    improve(lowest, budget.left)


def enumerated(groups: Groups, start: Whole | None = None) -> tuple[Whole, int]:
    """The best of all orders and its sensitivity, by measuring them: of an order and its reverse only one, and none
    that is found to be worse than `start`."""
    known = math.inf if start is None else sensitivity(groups, start)
    places = _permutations(groups.n)  # position of each record
    places = places[places[:, 0] <= places[:, -1]]
    worst = np.zeros(len(places), dtype=np.int64)
    for row in distinct(groups)[::-1]:
        at = np.sort(places[:, groups[int(row)]], axis=1)
        half = at.shape[1] // 2
        ahead, behind = (part.sum(axis=1, dtype=np.int64) for part in (at[:, at.shape[1] - half :], at[:, :half]))
        np.maximum(worst, 2 * (ahead - behind) - half, out=worst)
        if int(worst.max()) > known:
            kept = worst <= known
            places, worst = places[kept], worst[kept]
    best = int(np.argmin(worst))
    return np.argsort(places[best]).astype(np.int64), int(worst[best])


def _permutations(n: int) -> NDArray[np.int8]:
    """All of them, a row for each, in the order of a dictionary."""
    found = np.zeros((1, 1), dtype=np.int8)
    for size in range(2, n + 1):
        first = np.arange(size, dtype=np.int8)[:, None, None]
        rest = np.where(found[None] < first, found[None], found[None] + 1)
        found = np.concatenate((np.broadcast_to(first, (size, len(found), 1)), rest), axis=2).reshape(-1, size)
    return found.astype(np.int8)


MEASURING = 4e-7
"""Seconds that it takes to measure the sensitivity, for each member of a group, and whatever else cannot be left."""
MOST_BOUND = 15.0
"""Seconds for the lower bound, or a quarter of the budget if that is less."""


SIMULATED = ("rho", "rho_local", "rho_uniform", "error", "error_local", "error_uniform")
"""What a study finds."""


def _simulated(name: str) -> Any:
    """A figure of the findings, or of the paper's."""
    find = attrgetter(name if name.startswith("paper.") else f"findings.{name}")
    return property(lambda self: find(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderSolution(Outcome):
    """The order, and the shuffle around it: `alpha` is what the deployed `q` promises, recomputed from the order."""

    problem: OrderShuffle
    order: Whole
    ordering: str
    sensitivity: int
    width: int
    paper_sensitivity: int
    lower_bound: int
    q: Fraction
    told = ("status", "n", "alpha", "theta", "sensitivity", "lower_bound", "ordering")
    drawing = "optdp.order.pictures:pictures"

    @property
    def n(self) -> int:
        return self.problem.groups.n

    @property
    def theta(self) -> float:
        """The dispersion, `-log q`; infinite where nobody is grouped with anybody."""
        return dispersion(self.q)

    @property
    def paper_theta(self) -> float:
        """What E's bound of the sensitivity would allow."""
        return float(self.problem.alpha) / self.paper_sensitivity if self.paper_sensitivity else math.inf

    @cached_property
    def reversed_pairs(self) -> float:
        """The expected share of pairs of answers that come out in the other order; 1/2 for a uniform shuffle."""
        return reversed_pairs(self.n, self.theta, self.problem.distance)

    @property
    def alpha(self) -> Fraction:
        return alpha_of(self.q, self.sensitivity)

    @property
    def gap(self) -> float:
        """How far the sensitivity may be from the least possible, as a part of it."""
        return (self.sensitivity - self.lower_bound) / self.sensitivity if self.sensitivity else 0.0

    @property
    def value(self) -> float:
        return float(self.sensitivity)

    @cached_property
    def findings(self) -> StudyFindings:
        """What an adversary and an analyst get out of it, simulated when asked for."""
        if self.problem.study is None:
            raise ProblemError("Simulations need the true values: a [study] table, or study = Study(...).")
        return StudyFindings(self.problem.study, self.problem.groups, self.order, self.q, self.problem.distance)

    @property
    def paper(self) -> StudyFindings:
        """The same with E's own order and its bound of the sensitivity."""
        groups, order = self.problem.groups, bfs(self.problem.groups)
        q = ratio(self.problem.alpha, paper_sensitivity(groups, order))
        return replace(self.findings, order=order, q=q)

    rho, rho_local, rho_uniform = _simulated("rho"), _simulated("rho_local"), _simulated("rho_uniform")
    error, error_local, error_uniform = _simulated("error"), _simulated("error_local"), _simulated("error_uniform")
    paper_rho, paper_error = _simulated("paper.rho"), _simulated("paper.error")

    def shuffle(self, values: Any, source: Source | None = None) -> Any:
        """The values as they are released, drawn with secure bits unless a source with a seed is given."""
        if self.problem.values is not None:
            check_values(different(values), self.problem.values)
        return shuffled(values, self.order, self.q, source or Source(), self.problem.distance)

    def save(self, path: str | Path) -> None:
        """Write the order's artifact, atomically."""
        write_order(self, Path(path))

    def sheet(self) -> Sheet:
        """The order's sensitivity between what nobody can pass and E's bound, and the shuffle that it allows."""
        groups, values = self.problem.groups, self.problem.values
        lines = {
            f"sensitivity, {'exact' if values in (None, 2) else 'at most'}": self.sensitivity,
            "the paper's bound": self.paper_sensitivity,
            "lower bound": self.lower_bound,
        }
        worst = max(1, *lines.values())
        bars = [
            (name, Cell(f"{value:12,}", "good" if name.startswith("sensitivity") else "other", value / worst))
            for name, value in lines.items()
        ]
        facts = self.facts(
            ("groups", f"{len(groups):,}, the largest of {int(groups.sizes.max(initial=0)):,} records"),
            ("order", Cell(self.ordering, "strong", after=f", width {self.width:,}")),
            *bars,
            ("theta", f"{self.theta:.9g}  (by the paper's bound {self.paper_theta:.9g})"),
            ("pairs reversed", f"{100 * self.reversed_pairs:.3g} %  (by a uniform shuffle 50 %)"),
        )
        return Sheet(facts, meaning=self.problem.meaning)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        try:
            simulated = {} if self.problem.study is None else {name: getattr(self, name) for name in SIMULATED}
            status, note = self.status, self.note
        except KeyboardInterrupt:  # the order stands without them
            simulated, status = {}, "interrupted"
            note = "; ".join(filter(None, (self.note, "interrupted before the study was simulated")))
        return {
            "kind": self.problem.kind,
            "status": status,
            "n": self.n,
            "groups": len(self.problem.groups),
            "largest_group": int(self.problem.groups.sizes.max(initial=0)),
            "width": self.width,
            "sensitivity": self.sensitivity,
            "paper_sensitivity": self.paper_sensitivity,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "alpha": show(self.problem.alpha),
            "theta": self.theta if math.isfinite(self.theta) else None,
            "paper_theta": self.paper_theta if math.isfinite(self.paper_theta) else None,
            "reversed_pairs": self.reversed_pairs,
            "distance": self.problem.distance,
            **({} if self.problem.values is None else {"values": self.problem.values}),
            "ordering": self.ordering,
            **simulated,
            "given": self.problem.figures(),
            "seconds": round(self.seconds, 4),
            "note": note,
            "meaning": self.problem.meaning,
        }


def check_target(problem: OrderShuffle, path: Path) -> None:
    """Refuse before a long search what could not be written after it."""
    check_writable(path)
    named = {name: Path(problem.spec[name]) for name in FILES if name in problem.spec}
    check_apart(path, {f"the file of {name}": place for name, place in named.items()})


def solve_order(problem: OrderShuffle, backend: str = "", progress: Progress = silent) -> OrderSolution:
    """Search, then recompute everything from the order that is returned."""
    begin = time.perf_counter()
    groups, values, status = problem.groups, problem.values, "solved"
    if problem.distance == "kendall":
        search = 1.0 if problem.ordering == "best" else 0.0
        bound = min(MOST_BOUND, problem.budget / 4)
        what = f"an order of {groups.n:,} records"
        expect(search * problem.budget + bound + MEASURING * len(groups.members), what, progress)
    if problem.ordering == "best" and problem.distance == "kendall":
        found = best_order(groups, problem.budget, progress)
        order, name = found.order, found.ordering
        status = "optimal" if found.proved else "interrupted" if found.status == "interrupted" else "solved"
    elif problem.distance == "hamming":  # every order has the same sensitivity
        order, name, status = np.arange(groups.n, dtype=np.int64), "as-is", "optimal"
    else:
        progress(problem.ordering)
        order, name = ORDERINGS[problem.ordering](groups), problem.ordering
    check_order(order, groups.n)
    progress("the exact sensitivity")
    with work.held(later=False):  # without these all that was found would be lost
        any_values = sensitivity(groups, order, problem.distance)
        largest = any_values if values is None else sensitivity(groups, order, values=values)
        if problem.distance == "kendall" and status != "interrupted" and groups.points is not None:
            other = along(groups, order)
            if (theirs := sensitivity(groups, other, values=values)) <= largest:  # as private, and more can be learned
                order, largest = other, theirs
        wide = width(groups, order)
    below = any_values = largest if values is None else any_values
    if status != "optimal":
        below, status = _bounded(problem, any_values, status, progress)
    if values is not None:
        below = narrowed_bound(below, groups.sizes, values)
        if status != "interrupted":  # what is best for any answers need not be so for few values
            status = "optimal" if below >= largest else "solved"
    q = ratio(problem.alpha, largest)
    note = "nobody is grouped with anybody: the order is left alone"
    if largest:
        note = near_uniform(reversed_pairs(groups.n, dispersion(q), problem.distance))
    return OrderSolution(
        problem=problem, order=order, ordering=name, sensitivity=largest, width=wide,
        paper_sensitivity=wide * (wide + 1) // 2 if problem.distance == "kendall" else largest,
        lower_bound=below, q=q, status=status, note=note,
        seconds=time.perf_counter() - begin,
    )  # fmt: skip


def _bounded(problem: OrderShuffle, largest: int, status: str, progress: Progress) -> tuple[int, str]:
    """What no order is below, and the status after that; an interrupted search is not kept waiting for it."""
    groups = problem.groups
    below = groups.side_by_side
    if work.stopped() is not None:
        status = "interrupted"
    if status != "interrupted":
        try:
            below = lower_bound(groups, min(MOST_BOUND, problem.budget / 4), progress)
        except KeyboardInterrupt:
            status = "interrupted"
    if below >= largest:
        return largest, "optimal"
    return below, status
