"""Any number of secrets, no fallback: the program of the inputs that matter, jointly scaled, by HiGHS.

Almost all of a prior lies on a run of inputs, the core. Inputs outside it report themselves. On the core:

    minimise    sum over x, s of  cost(x) |x-s|^power W(x, s)
    subject to  sum over s of W(x, s) = 1                          price y(x)
                sum over s of |x-s| W(x, s) <= cap(x)              price z(x) >= 0
                sum over x of gaps[j](x) W(x, s) <= 0              price u(j, s) >= 0

Importances span fourteen decades, while a solver's tolerances are absolute. So the unknowns are `t(x, s)`,

    W(x, s) = min(1, report(s) / importance(x)) t(x, s)

and the privacy rows of an output are divided by `report(s)`, the importance of the output: then all entries
are of the order of 1, for rare inputs and outputs as for common ones. An output that is itself no likely input
(a prior on multiples of ten, say) takes its importance from its neighbours.

What is left of the tolerances is noise in the prices of rare outputs. A privacy price costs nothing, so that
an output that is not trusted may take what lies between its trusted neighbours. For absolute errors that is as
good as they are: the cost of a report is linear between them for every input that is not between them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse

from optdp import work
from optdp.errors import ProblemError, SolverError
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.highs import model_of, new_highs, run
from optdp.programs.program import LinearProgram
from optdp.single.bound import Draft, Prices, estimate
from optdp.single.lp import CELLS, NoiseLP

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SHARE = 1e-13
"""At most this share of the importance lies outside the core, on either side."""
FLOOR = 1e-14
"""No importance in the core is taken to be smaller than this share of the largest."""
DECAY = 0.1
"""An output is at least this much as important as its neighbour."""
COST = 1e4
"""What a unit of error costs, once scaled, at all inputs together that may not simply be reported."""
SMALLEST = 1e-12
"""Entries of the matrix below this are left out."""


@dataclass(frozen=True)
class Core:
    """The scaled program on a run of inputs: unknown `t(x, s)` is number `x * size + s`."""

    inputs: slice
    cost: Array
    gaps: Array
    cap: Array | None
    power: int
    importance: Array
    report: Array
    """How important each output is."""
    unit: float
    """What costs are multiplied by."""

    @staticmethod
    def of(lp: NoiseLP, cap: Array | None, share: float = SHARE, floor: float = FLOOR) -> Core:
        troubled = float(lp.cost[(lp.gaps > 0).any(axis=0)].sum()) / max(float(lp.cost.sum()), 1e-300)
        run = lp.core(share * min(1.0, max(100 * troubled, 1e-3)))
        importance, report = _importances(lp.importance[run], floor)
        unit = COST / (max(troubled, 1e-5) * float(lp.cost.sum()))
        window = None if cap is None else cap[run]
        return Core(run, lp.cost[run], lp.gaps[:, run], window, lp.power, importance, report, unit)

    @property
    def size(self) -> int:
        return len(self.cost)

    @property
    def distances(self) -> Array:
        x = np.arange(float(self.size))
        table: Array = np.abs(np.subtract.outer(x, x))
        return table

    @property
    def scale(self) -> Array:
        """`W(x, s) / t(x, s)`."""
        table: Array = np.minimum(1.0, self.report[None, :] / self.importance[:, None])
        return table

    def to_program(self) -> LinearProgram:
        """Rows: the sum of each input, then the constraints of each output, then the cap of each input."""
        size, count = self.size, len(self.gaps)
        scale, distance = self.scale, self.distances
        x, s = np.indices((size, size), dtype=np.int32)
        index = np.empty((size, size, count + 2), np.int32)
        value = np.zeros((size, size, count + 2))
        index[:, :, 0], value[:, :, 0] = x, scale
        index[:, :, 1:-1] = size + s[:, :, None] * count + np.arange(count, dtype=np.int32)
        value[:, :, 1:-1] = self.gaps.T[:, None, :] * (scale / self.report)[:, :, None]
        index[:, :, -1] = size + size * count + x
        if self.cap is not None:
            value[:, :, -1] = distance * scale
        kept = np.abs(value) > SMALLEST
        starts = np.concatenate([[0], np.cumsum(kept.sum(axis=2).ravel())]).astype(np.int32)
        nothing, inf = np.zeros(size * count), np.inf
        cap = np.full(size, inf) if self.cap is None else self.cap
        matrix = sparse.csc_array((value[kept], index[kept], starts), shape=(size * (count + 2), size * size))
        cost = (self.unit * self.cost[:, None] * distance**self.power * scale).ravel()
        lower = np.concatenate([np.ones(size), nothing - inf, np.full(size, -inf)])
        upper = np.concatenate([np.ones(size), nothing, cap])
        return LinearProgram(cost, matrix, lower, upper)

    def to_cvxpy(self) -> Any:
        """The specification: the program above, over the scaled unknowns `t`."""
        cp = import_cvxpy()
        t = cp.Variable((self.size, self.size), nonneg=True, name="t")
        W = cp.multiply(self.scale, t)
        constraints = [cp.sum(W, axis=1) == 1, *((gap @ W) / self.report <= 0 for gap in self.gaps)]
        if self.cap is not None:
            constraints.append(cp.sum(cp.multiply(self.distances, W), axis=1) <= self.cap)
        loss = cp.multiply(self.unit * self.cost[:, None] * self.distances**self.power, W)
        return cp.Problem(cp.Minimize(cp.sum(loss)), constraints)


def solve_core(lp: NoiseLP, progress: Callable[[str], None] = lambda _: None, solver: str = "simplex") -> Draft:
    """The optimal table as floats, with prices that prove it; `solver` is "simplex" or "ipm"."""
    core = Core.of(lp, lp.tight_cap)
    check_memory(core)
    _announce(lp, core, progress)
    rows = core.size * (len(lp.gaps) + 2)
    progress(f"{core.size} inputs that matter: {core.size**2:,} unknowns, {rows:,} rows")
    highs, status = _run(core, solver)
    if status == highspy.HighsModelStatus.kInfeasible and lp.cap is not None:
        # Where the best mechanism has exactly the error of geometric noise there is no room below the caps.
        progress("no room below the caps: once more without a margin")
        core = Core.of(lp, lp.cap)
        highs, status = _run(core, solver)
    solution, said = highs.getSolution(), highs.modelStatusToString(status).lower()
    values, dual = np.array(solution.col_value), np.array(solution.row_dual)
    if len(values) != core.size**2 or not np.nan_to_num(values).any():
        raise SolverError(f"HiGHS must give a solution. Found {said!r}. Try another backend.")
    return draft_of(lp, core, values, dual, said)


def draft_of(lp: NoiseLP, core: Core, values: Array, duals: Array | None, status: str) -> Draft:
    """What a solver's answer to the core program says about the whole table."""
    table = np.maximum(np.nan_to_num(values), 0.0).reshape(core.size, core.size) * core.scale
    prices = None if duals is None else trusted(lp, core, *_prices(core, np.nan_to_num(duals)))
    return Draft(*entries_of(lp, core, table), prices, status, "core")


def _importances(raw: Array, share: float) -> tuple[Array, Array]:
    """The importance of each input of the core, with a floor, and of each output, without gaps."""
    floor = share * float(raw.max())
    likely = np.flatnonzero(raw > floor)
    every = np.arange(len(raw))
    report = _value(np.interp(every, likely, _level(raw[likely])))
    for i in every[1:]:
        report[i] = max(report[i], DECAY * report[i - 1])
    for i in every[-2::-1]:
        report[i] = max(report[i], DECAY * report[i + 1])
    return np.maximum(raw, floor), report


def _level(values: Array) -> Array:
    """A stand-in for the logarithm to base 2, straight between powers of two: the same on every machine."""
    share, exponent = np.frexp(values)
    return np.asarray(exponent + 2.0 * share - 2.0)


def _value(levels: Array) -> Array:
    """Its inverse."""
    exponent = np.floor(levels)
    return np.asarray(np.ldexp(1.0 + (levels - exponent), exponent.astype(np.int32)))


def check_memory(core: Core) -> None:
    cells = core.size**2
    if cells > CELLS:
        needed = cells * (400 + 60 * len(core.gaps))
        raise ProblemError(
            f"The core program must have at most {CELLS:,} unknowns. Found {cells:,} for {core.size:,} "
            f"inputs that matter; they would need about {needed / 1e9:,.0f} GB. "
            "Use coarser contributions, or fewer people or kinds of people."
        )


def core_seconds(size: int, gaps: int, priors: int = 1) -> float:
    """How long the simplex method takes, coarsely: pivots by unknowns and priors, each by rows and unknowns."""
    unknowns, rows = size**2, size * (gaps + 2)
    seconds = 0.2 * unknowns * (1e-8 * unknowns + 1e-7 * rows)
    if priors > 1:  # hardly an input may be reported as it is, and the program is degenerate
        seconds *= priors**2 * max(1.0, size / 90) ** 2
    return seconds


def _announce(lp: NoiseLP, core: Core, progress: Callable[[str], None]) -> None:
    priors = len(lp.problem.populations)
    seconds = core_seconds(core.size, len(core.gaps), priors)
    room = work.LONGEST / seconds
    fits = (
        f"Up to about {int(core.size * room ** (1 / (4 if priors == 1 else 6))):,} inputs that matter fit: use fewer "
    )
    fits += "people" if priors == 1 else f"people, or about {max(int(priors * room ** (1 / 3)), 1):,} priors"
    what = f"The program of {core.size:,} inputs that matter and {len(core.gaps):,} privacy constraints of each output"
    work.announce(seconds, what, f"{fits}, or coarser contributions.", progress)


def _run(core: Core, solver: str) -> tuple[highspy.Highs, highspy.HighsModelStatus]:
    """Solve; if that fails, again from scratch in other ways. The last answer stands: it is repaired in any case."""
    highs = new_highs(
        presolve="off",  # finds nothing, costs seconds
        run_crossover="on",
        small_matrix_value=SMALLEST,  # the default 1e-9 drops entries that matter: wrong prices
    )
    highs.passModel(model_of(core.to_program()))
    return highs, run_until_told(highs, (solver, 1e-9), (solver, 1e-7))


def run_until_told(highs: highspy.Highs, *ways: tuple[str, float], goes_on: bool = False) -> highspy.HighsModelStatus:
    """Solve with each method and tolerance in turn, and then others, until the program has an answer or has none.

    Each begins from scratch; the first goes on from where the program was, if it is told to.
    """
    done = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
    without = [(*way, "off") for way in ways]
    for i, (method, tolerance, presolve) in enumerate([*without, ("ipm", 1e-8, "on"), ("simplex", 1e-6, "on")]):
        if i or not goes_on:
            highs.clearSolver()
        highs.setOptionValue("solver", method)
        highs.setOptionValue("presolve", presolve)
        highs.setOptionValue("primal_feasibility_tolerance", tolerance)
        highs.setOptionValue("dual_feasibility_tolerance", tolerance)
        run(highs)
        if highs.getModelStatus() in done:
            break
    return highs.getModelStatus()


def entries_of(lp: NoiseLP, core: Core, table: Array, outputs: Ints | None = None) -> tuple[Ints, Ints, Array]:
    """The table's entries: inputs outside the core, and what is left of those inside, report themselves.

    With a run of `outputs` of the core they report the nearest of these.
    """
    table = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    rows, cols = np.nonzero(table)
    left = np.ones(len(lp.inputs))
    left[core.inputs] = np.maximum(1.0 - table.sum(axis=1), 0.0)
    own = np.flatnonzero(left)
    start = core.inputs.start
    told = own if outputs is None else np.clip(own, outputs[0] + start, outputs[-1] + start)
    return (
        np.concatenate([rows + start, own]),
        np.concatenate([cols + start, told]),
        np.concatenate([table[rows, cols], left[own]]),
    )


def _prices(core: Core, dual: Array) -> tuple[Array, Array]:
    """The prices of the plain program's caps and privacy rows on the core."""
    size, count = core.size, len(core.gaps)
    u = -dual[size : size * (count + 1)].reshape(size, count).T / core.report
    z = -dual[size * (count + 1) :] if core.cap is not None else np.zeros(size)
    return np.maximum(z, 0.0) / core.unit, np.maximum(u, 0.0) / core.unit


SHARES = tuple(10.0 ** (-k / 2) for k in range(31))


def trusted(
    lp: NoiseLP, core: Core, z: Array, u: Array, shares: Sequence[float] = SHARES, priced: Ints | None = None
) -> Prices:
    """The prices, trusted down to the importance that gives the best bound, on all inputs of the program.

    With `priced`, outputs of the core that have prices at all; the others take what their neighbours have.
    """
    x, start = np.arange(len(lp.inputs)), core.inputs.start
    best, value = Prices.none(lp), -np.inf
    for share in shares:
        inputs = core.importance >= share * core.importance.max()
        outputs = np.flatnonzero(core.report >= share * core.report.max())
        outputs = outputs if priced is None else np.intersect1d(outputs, priced)
        full_z = np.zeros(len(x))
        full_z[core.inputs] = np.where(inputs, z, 0.0)
        full_u = np.array([np.interp(x, outputs + start, row[outputs]) for row in u])
        found = estimate(lp, full_z, full_u)
        if found > value:
            best, value = Prices(full_z, full_u), found
    return best
