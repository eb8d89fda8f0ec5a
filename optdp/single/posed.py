"""A problem's linear programs as they stand, and what a solver's answer to one says about the table.

core     the inputs that matter, jointly scaled, so that a solver's absolute tolerances suit every row (see `core`)
plain    the specification, without scaling (see `lp`); the only one with a fallback
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optdp.errors import SolverError
from optdp.programs.backends import Chosen
from optdp.programs.program import Answer, Array, LinearProgram
from optdp.single.bound import NO_DUALS, PRICED, Draft, Prices, best_window, lower_bound
from optdp.single.core import Core, check_memory, draft_of
from optdp.single.lp import NoiseLP
from optdp.work import Progress, silent


@dataclass(frozen=True)
class Posed:
    """One linear program of a problem."""

    lp: NoiseLP
    program: LinearProgram
    read: Callable[[Array, Array | None, str], Draft]
    """A point, the prices of the rows and a status, as a draft."""

    def draft(self, answer: Answer) -> Draft:
        """What an answer says about the table; its prices are kept if they prove anything."""
        if answer.x is None:
            raise SolverError(f"The solver must give a solution. Found {answer.said!r}. Try another backend.")
        draft = self.read(answer.x, answer.duals, answer.status)
        prices = draft.prices
        if prices is not None and lower_bound(self.lp, prices) <= lower_bound(self.lp, Prices.none(self.lp)):
            prices = None  # zeros, or noise
        return replace(draft, prices=prices, note="" if prices is not None else NO_DUALS)


def pose(lp: NoiseLP, form: str = "") -> Posed:
    """The program that a solver is given: by default the core program, or with a fallback the plain one."""
    if form == "plain" or (not form and lp.chain is not None):
        return Posed(lp, lp.to_program(), lambda x, duals, status: _plain(lp, x, duals, status))
    core = Core.of(lp, lp.tight_cap)
    check_memory(core)
    return Posed(lp, core.to_program(), lambda x, duals, status: draft_of(lp, core, x, duals, status))


def solve_posed(posed: Posed, who: Chosen, progress: Progress = silent) -> Draft:
    """The draft that a backend gives; where it gives no prices, HiGHS prices the same program, and the note says so."""
    rows, unknowns = posed.program.matrix.shape
    progress(f"{who.backend.name}: {unknowns:,} unknowns, {rows:,} rows")
    answer = who.solve(posed.program)
    draft = posed.draft(answer)
    if draft.prices is not None:
        return draft
    progress(f"{who.backend.name} gives no duals: HiGHS prices the rows")
    priced = who.price(posed.program, answer)
    proved = draft if priced is None else posed.draft(priced)
    return draft if proved.prices is None else replace(proved, note=PRICED)


def _plain(lp: NoiseLP, x: Array, duals: Array | None, status: str) -> Draft:
    size = len(lp.inputs)
    table = x.reshape(size, size)
    if duals is None:
        return Draft.dense(table, None, status, "plain")
    count = len(lp.gaps)
    parts: Any = np.split(-duals[size:], np.cumsum([count * size, 0 if lp.cap is None else size]))
    u, z = parts[0].reshape(count, size), parts[1] if lp.cap is not None else np.zeros(size)
    v = None
    if lp.chain is not None:
        rungs = np.split(parts[2], np.cumsum([2 * (size - far) * size for far in lp.rungs])[:-1])
        halves = [rung.reshape(2, -1, size) for rung in rungs]
        v = np.concatenate(halves, axis=1)
    return Draft.dense(table, best_window(lp, Prices(z, u, v)), status, "plain")
