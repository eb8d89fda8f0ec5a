"""From groups to an order and its shuffle: search, recompute the exact sensitivity, set theta."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optdp.errors import ProblemError
from optdp.mallows.bounds import lower_bound
from optdp.mallows.groups import Whole
from optdp.mallows.mechanism import alpha_of, check_order, dispersion, ratio, shuffled
from optdp.mallows.orderings import along, ordered
from optdp.mallows.portfolio import best_order
from optdp.mallows.problem import OrderShuffle
from optdp.mallows.sensitivity import paper_sensitivity, sensitivity, width
from optdp.mallows.study import Findings
from optdp.math.exact import show
from optdp.math.source import Source

Progress = Callable[[str], None]
MOST_BOUND = 15.0
"""Seconds for the lower bound, or a quarter of the budget if that is less."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderSolution:
    """The order, and the shuffle around it: `alpha` is what the deployed `q` promises, recomputed from the order."""

    problem: OrderShuffle
    order: Whole
    ordering: str
    sensitivity: int
    width: int
    paper_sensitivity: int
    lower_bound: int
    q: Fraction
    status: str
    note: str
    seconds: float

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
    def findings(self) -> Findings:
        """What an adversary and an analyst get out of it, simulated when asked for."""
        if self.problem.study is None:
            raise ProblemError("Simulations need the true values: a [study] table, or study = Study(...).")
        return Findings(self.problem.study, self.problem.groups, self.order, self.q, self.problem.distance)

    @property
    def paper(self) -> Findings:
        """The same with E's own order and its bound of the sensitivity."""
        groups, order = self.problem.groups, ordered(self.problem.groups, "bfs")
        q = ratio(self.problem.alpha, paper_sensitivity(groups, order))
        return replace(self.findings, order=order, q=q)

    @property
    def rho(self) -> float:
        return self.findings.rho

    @property
    def rho_local(self) -> float:
        return self.findings.rho_local

    @property
    def rho_uniform(self) -> float:
        return self.findings.rho_uniform

    @property
    def paper_rho(self) -> float:
        return self.paper.rho

    @property
    def error(self) -> float:
        return self.findings.error

    @property
    def error_local(self) -> float:
        return self.findings.error_local

    @property
    def error_uniform(self) -> float:
        return self.findings.error_uniform

    @property
    def paper_error(self) -> float:
        return self.paper.error

    def shuffle(self, values: Any, source: Source | None = None) -> Any:
        """The values as they are released, drawn with secure bits unless a source with a seed is given."""
        return shuffled(values, self.order, self.q, source or Source(), self.problem.distance)

    def save(self, path: str | Path) -> None:
        """Write the order's artifact, atomically."""
        from optdp.mallows.artifact import write_order

        write_order(self, Path(path))

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        from optdp.page.order_notebook import of_order

        return of_order(self)

    def _simulated(self) -> dict[str, float]:
        names = ("rho", "rho_local", "rho_uniform", "error", "error_local", "error_uniform")
        return {name: getattr(self, name) for name in names}

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "kind": self.problem.kind,
            "status": self.status,
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
            "distance": self.problem.distance,
            "ordering": self.ordering,
            **({} if self.problem.study is None else self._simulated()),
            "given": self.problem.figures(),
            "seconds": round(self.seconds, 4),
            "note": self.note,
            "meaning": self.problem.meaning,
        }


def solve_order(problem: OrderShuffle, progress: Progress = lambda _: None) -> OrderSolution:
    """Search, then recompute everything from the order that is returned."""
    begin = time.perf_counter()
    groups, status = problem.groups, "solved"
    if problem.ordering == "best" and problem.distance == "kendall":
        found = best_order(groups, problem.budget, progress)
        order, name = found.order, found.ordering
        status = "optimal" if found.proved else "interrupted" if found.status == "interrupted" else "solved"
    elif problem.distance == "hamming":  # every order has the same sensitivity
        order, name, status = np.arange(groups.n, dtype=np.int64), "as-is", "optimal"
    else:
        progress(problem.ordering)
        order, name = ordered(groups, problem.ordering), problem.ordering
    check_order(order, groups.n)
    progress("the exact sensitivity, and a lower bound")
    largest = sensitivity(groups, order, problem.distance)
    if problem.distance == "kendall" and sensitivity(groups, other := along(groups, order)) <= largest:
        order, largest = other, sensitivity(groups, other)  # as private, and more can be learned
    below = largest
    if status != "optimal":
        below, status = _bounded(problem, largest, status)
    note = "" if largest else "nobody is grouped with anybody: the order is left alone"
    return OrderSolution(
        problem=problem, order=order, ordering=name, sensitivity=largest, width=width(groups, order),
        paper_sensitivity=paper_sensitivity(groups, order) if problem.distance == "kendall" else largest,
        lower_bound=below, q=ratio(problem.alpha, largest), status=status, note=note,
        seconds=time.perf_counter() - begin,
    )  # fmt: skip


def _bounded(problem: OrderShuffle, largest: int, status: str) -> tuple[int, str]:
    """What no order is below, and the status after that; an interrupted search is not kept waiting for it."""
    groups = problem.groups
    below = int((groups.sizes * (groups.sizes - 1) // 2).max(initial=0))
    if status != "interrupted":
        try:
            below = max(below, lower_bound(groups, min(MOST_BOUND, problem.budget / 4)))
        except KeyboardInterrupt:
            status = "interrupted"
    if below >= largest:
        return largest, "optimal"
    return below, status
