"""From the prices of the pair form to prices of the plain program, which prove a lower bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt

from optdp import work
from optdp.errors import ProblemError, SolverError
from optdp.programs.highs import add_columns, new_highs, run
from optdp.single.bound import Draft, Prices, estimate
from optdp.single.lp import NoiseLP, pair_seconds

Array = npt.NDArray[np.float64]


def plain_prices(lp: NoiseLP, core: slice, y: Array, z: Array, tolerance: float) -> Prices:
    """Prices of the plain program from those of the pair form, on the most useful trusted run of inputs.

    A solver's tolerances are absolute, so that the prices of inputs that hardly ever occur are noise. Inputs outside
    the trusted run get `z = 0`, and outputs outside it the `u` of its edge, which costs nothing for the inputs inside.
    """
    best, value = Prices.none(lp), -np.inf
    for share in (1e-6, 1e-8, 1e-10):
        trusted = lp.core(share * float(lp.cost[(lp.gaps > 0).any(axis=0)].sum()))
        a, b = max(trusted.start, core.start), min(trusted.stop, core.stop)
        if a >= b:
            continue
        inside = slice(a - core.start, b - core.start)
        u = _least_prices(lp, slice(a, b), y[inside], z[inside], tolerance)
        found = estimate(lp, z[inside], u, slice(a, b))
        if found > value:
            full_z = np.zeros(len(lp.inputs))
            full_z[a:b] = z[inside]
            value, best = found, Prices(full_z, u[:, np.clip(np.arange(len(lp.inputs)) - a, 0, b - a - 1)])
    return best


def _least_prices(lp: NoiseLP, trusted: slice, y: Array, z: Array, tolerance: float) -> Array:
    """For each trusted output `s` the least `u >= 0` with `g(x) + gaps[0](x) u0 + gaps[1](x) u1 >= 0` for all `x`.

    Here `g(x)` is the cost of reporting `s` less `y(x)`. The bound on `u0` rises with `u1` and the other way round,
    so that repeating the two maxima from zero climbs to the least solution. Every `y(x)` may give way by a little more
    than the solver's tolerance; without that, inputs right at a bound would ask for absurd prices.
    """
    y = y - 1e-8 * np.abs(y) - tolerance
    cost, x, gaps = lp.cost[trusted], lp.inputs[trusted], lp.gaps[:, trusted]
    low, high = gaps[0] > 0, gaps[1] > 0
    u = np.zeros((2, len(x)))
    block = max(1, 4_000_000 // len(x))
    for start in range(0, len(x), block):
        distance = np.abs(x[start : start + block, None] - x[None, :])
        slack = cost * distance**lp.power + z * distance - y
        u0, u1 = np.zeros(len(distance)), np.zeros(len(distance))
        for _ in range(40):
            before = u0, u1
            if low.any():
                wanted = (-slack[:, low] - gaps[1][low] * u1[:, None]) / gaps[0][low]
                u0 = np.maximum(u0, wanted.max(axis=1))
            if high.any():
                wanted = (-slack[:, high] - gaps[0][high] * u0[:, None]) / gaps[1][high]
                u1 = np.maximum(u1, wanted.max(axis=1))
            if not low.any() or not high.any() or (np.array_equal(u0, before[0]) and np.array_equal(u1, before[1])):
                break
        u[0, start : start + block], u[1, start : start + block] = u0, u1
    return u


Ints = npt.NDArray[np.int64]

COARSEST = 60
"""Grids are halved until they have at most this many points."""
PRICED = 2
"""How many pairs of each kind enter for each input in a round."""
COST = 1e4
"""Costs are scaled so that inputs that may not simply be reported cost this much together for each unit of error."""
MEMORY = 8e9
"""Bytes that pricing may take."""


@dataclass(frozen=True)
class InputGrid:
    """Inputs, or runs of neighbouring inputs merged into one."""

    x: Array
    cost: Array
    gaps: Array
    cap: Array | None
    power: int
    whole: bool
    """Whether the points are inputs themselves, so that reports must be integers."""

    @property
    def troubled(self) -> npt.NDArray[np.bool_]:
        """Inputs that may not simply be reported."""
        return np.asarray((self.gaps > 0).any(axis=0))

    def coarser(self) -> InputGrid:
        block = np.arange(len(self.x)) // 2
        count = np.bincount(block)

        def merge(values: Array) -> Array:
            return np.bincount(block, values).astype(float)

        cap = None if self.cap is None else merge(self.cap) / count
        gaps = np.array([merge(gap) for gap in self.gaps])
        return InputGrid(merge(self.x) / count, merge(self.cost), gaps, cap, self.power, False)


@dataclass(frozen=True)
class Pairs:
    """Columns of the program: inputs `i` and `j` with masses `a` and `b` report `s`."""

    i: Ints
    j: Ints
    a: Array
    b: Array
    s: Array
    way: Ints
    """0 or 1: which of the two candidate reports."""

    def take(self, chosen: Ints | npt.NDArray[np.bool_]) -> Pairs:
        return Pairs(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    @staticmethod
    def join(parts: list[Pairs]) -> Pairs:
        if not parts:
            none, nothing = np.zeros(0, np.int64), np.zeros(0)
            return Pairs(none, none, nothing, nothing, nothing, none)
        return Pairs(*(np.concatenate([getattr(p, name) for p in parts]) for name in Pairs.__dataclass_fields__))


def solve_pairs(lp: NoiseLP, progress: Callable[[str], None] = lambda _: None) -> Draft:
    """The optimal table as floats, with prices that prove it."""
    troubled = (lp.gaps > 0).any(axis=0)
    scale = float(lp.cost[troubled].sum()) or float(lp.importance[troubled].sum())
    size = len(lp.inputs)
    if scale == 0:  # every input may be reported truthfully
        every = np.arange(size)
        return Draft(every, every, np.ones(size), Prices.none(lp), "optimal", "pairs")
    core = lp.core(min(1e-13, 1e-11 * scale))
    unit = COST / scale
    cap = None if lp.tight_cap is None else lp.tight_cap[core]
    finest = InputGrid(lp.inputs[core], lp.cost[core] * unit, lp.gaps[:, core] * unit, cap, lp.power, True)
    _check_memory(finest)
    fits = "Use a larger epsilon or fewer people."
    work.announce(pair_seconds(len(finest.x)), f"The program of {len(finest.x):,} inputs that matter", fits, progress)
    grids = [finest]
    while len(grids[-1].x) > COARSEST:
        grids.append(grids[-1].coarser())
    y, z = np.zeros(len(grids[-1].x)), np.zeros(len(grids[-1].x))
    start = _price(grids[-1], y, z, 6, None)
    grid, used, amounts, status = grids[-1], start, np.zeros(0), "optimal"
    for level in range(len(grids) - 1, -1, -1):
        grid = grids[level]
        y, z, used, amounts, status = _generate(grid, start, lp.problem.last, progress)
        if level:
            start = _refine(grid, grids[level - 1], y, z, used)
    rows, cols, values = _table(lp, core, used, amounts)
    return Draft(rows, cols, values, plain_prices(lp, core, y / unit, z / unit, 1e-8 / unit), status, "pairs")


def _check_memory(grid: InputGrid) -> None:
    largest = max(int((gap > 0).sum()) * int((gap < 0).sum()) for gap in grid.gaps)
    needed = largest * 8 * 6.0
    if needed > MEMORY:
        raise ProblemError(
            f"Pricing {largest:,} pairs of inputs would need about {needed / 1e9:,.0f} GB. "
            "Use a larger epsilon or fewer people."
        )


def _sides(grid: InputGrid) -> list[tuple[Ints, Ints, Array, Array]]:
    """For each constraint: the inputs that break it, those that help, and by how much each does."""
    sides = []
    for gap in grid.gaps:
        bad, good = np.flatnonzero(gap > 0), np.flatnonzero(gap < 0)
        if len(bad) and len(good):
            sides.append((bad, good, gap[bad], -gap[good]))
    return sides


def _reports(grid: InputGrid, i: Ints, j: Ints, a: Array, b: Array, z: Array, way: Ints) -> Array:
    """The report of each pair: an end, or for squares the integer below or above the best point between."""
    left, right = grid.x[i], grid.x[j]
    if grid.power == 1:
        return np.where(way == 0, left, right)
    weight_i, weight_j = a * grid.cost[i], b * grid.cost[j]
    pull = np.sign(right - left) * (b * z[j] - a * z[i]) / 2
    both = weight_i + weight_j
    best = np.where(both > 0, (weight_i * left + weight_j * right + pull) / np.where(both > 0, both, 1), left)
    best = np.clip(best, np.minimum(left, right), np.maximum(left, right))
    if not grid.whole:
        return best
    return np.where(way == 0, np.floor(best), np.ceil(best))


def _pairs(grid: InputGrid, i: Ints, j: Ints, gap_i: Array, gap_j: Array, z: Array, way: Ints) -> Pairs:
    a, b = np.minimum(1, gap_j / gap_i), np.minimum(1, gap_i / gap_j)
    return Pairs(i, j, a, b, _reports(grid, i, j, a, b, z, way), way)


def _price(grid: InputGrid, y: Array, z: Array, keep: int, tolerance: float | None) -> Pairs:
    """The `keep` pairs of the least reduced cost for each input, of those below `-tolerance`."""
    parts = []
    for bad, good, gap_bad, gap_good in _sides(grid):
        distance = np.abs(grid.x[bad][:, None] - grid.x[good][None, :])
        base = -(y[bad] / gap_bad)[:, None] - (y[good] / gap_good)[None, :]
        norm = np.minimum(gap_bad[:, None], gap_good[None, :])
        for way in (0, 1):
            if grid.power == 1:
                end, gap = (good, gap_good) if way == 0 else (bad, gap_bad)
                rate = (grid.cost[end] + z[end]) / gap
                reduced = distance * (rate[None, :] if way == 0 else rate[:, None])
            else:
                reduced = _square_costs(grid, bad, good, gap_bad, gap_good, z, way)
            reduced += base
            reduced *= norm
            flat = np.flatnonzero(_least(reduced, keep, 0) | _least(reduced, keep, 1))
            if tolerance is not None:
                flat = flat[reduced.ravel()[flat] < -tolerance]
            i, j = np.divmod(flat, len(good))
            ways = np.full(len(flat), way)
            parts.append(_pairs(grid, bad[i], good[j], gap_bad[i], gap_good[j], z, ways))
    return Pairs.join(parts)


def _least(values: Array, keep: int, axis: int) -> npt.NDArray[np.bool_]:
    """Where the `keep` least values along an axis are; of equal ones the first."""
    count = min(keep, values.shape[axis])
    limit = np.take(np.partition(values, count - 1, axis=axis), [count - 1], axis=axis)
    chosen = values < limit
    equal = values == limit
    more = count - chosen.sum(axis=axis, keepdims=True)
    if (equal.sum(axis=axis, keepdims=True) > more).any():
        equal &= np.cumsum(equal, axis=axis, dtype=np.int32) <= more
    return np.asarray(chosen | equal)


def _square_costs(grid: InputGrid, bad: Ints, good: Ints, gap_bad: Array, gap_good: Array, z: Array, way: int) -> Array:
    """The cost of every pair under squared error, each with its best report, per unit of constraint."""
    i, j = np.repeat(bad, len(good)), np.tile(good, len(bad))
    a, b = np.repeat(1 / gap_bad, len(good)), np.tile(1 / gap_good, len(bad))
    s = _reports(grid, i, j, a, b, z, np.full(len(i), way))
    error_i, error_j = np.abs(s - grid.x[i]), np.abs(s - grid.x[j])
    costs = a * (grid.cost[i] * error_i**2 + z[i] * error_i) + b * (grid.cost[j] * error_j**2 + z[j] * error_j)
    table: Array = costs.reshape(len(bad), len(good))
    return table


def _generate(
    grid: InputGrid, start: Pairs, last: int, progress: Callable[[str], None]
) -> tuple[Array, Array, Pairs, Array, str]:
    """Column generation on one grid: prices, the pairs that are used, and how much of each."""
    size, inf = len(grid.x), highspy.kHighsInf
    highs = new_highs(
        solver="simplex",
        simplex_strategy=4,  # primal: new columns keep the basis feasible
        primal_feasibility_tolerance=1e-9,
        dual_feasibility_tolerance=1e-10,
        small_matrix_value=1e-12,
    )
    troubled = np.flatnonzero(grid.troubled)
    lower = np.full(2 * size, -inf)
    lower[troubled] = 1.0
    upper = np.concatenate([np.ones(size), np.full(size, inf) if grid.cap is None else grid.cap])
    highs.addRows(2 * size, lower, upper, 0, np.zeros(2 * size, np.int32), np.zeros(0, np.int32), np.zeros(0))
    # mass that is not placed yet; dear enough that it leaves
    missing = len(troubled)
    worth = grid.cost[troubled] + np.abs(grid.gaps[:, troubled]).max(axis=0)
    dear = 50.0 * worth * max(10.0, float(np.ptp(grid.x))) ** grid.power
    add_columns(highs, dear, troubled[:, None], np.ones((missing, 1)), np.ones((missing, 1), bool))
    columns: list[Pairs] = []
    seen: set[tuple[int, int, float]] = set()

    def add(new: Pairs) -> int:
        fresh = []
        for k, key in enumerate(zip(new.i.tolist(), new.j.tolist(), new.s.tolist(), strict=True)):
            if key not in seen:
                seen.add(key)
                fresh.append(k)
        if fresh:
            new = new.take(np.array(fresh))
            columns.append(new)
            _add_columns(highs, grid, new)
        return len(fresh)

    add(start)
    status, rounds = "optimal", 0
    y, z, amounts = np.zeros(size), np.zeros(size), np.zeros(0)
    try:
        while True:
            run(highs)
            model = highs.getModelStatus()
            if model != highspy.HighsModelStatus.kOptimal:  # once more from scratch, by the dual simplex
                highs.clearSolver()
                highs.setOptionValue("simplex_strategy", 1)
                run(highs)
                highs.setOptionValue("simplex_strategy", 4)
                model = highs.getModelStatus()
            if model != highspy.HighsModelStatus.kOptimal:
                raise SolverError(f"HiGHS must end optimal. Found {highs.modelStatusToString(model)}.")
            solution = highs.getSolution()
            dual, amounts = np.array(solution.row_dual), np.array(solution.col_value)
            y, z, rounds = dual[:size], np.maximum(-dual[size:], 0.0), rounds + 1
            left = amounts[:missing] > 1e-8
            progress(f"{size} inputs, round {rounds}: {sum(len(p.i) for p in columns):,} pairs")
            work.check()
            if not add(_price(grid, y, z, PRICED, 1e-9)):
                if not left.any() or dear[left].max() > 1e14:
                    status = "incomplete" if left.any() else "optimal"
                    break
                dear = np.where(left, dear * 100, dear)  # not dear enough
                highs.changeColsCost(missing, np.arange(missing, dtype=np.int32), dear)
    except KeyboardInterrupt:
        if not len(amounts) or not grid.whole:
            raise
        status = "interrupted"
    pairs = Pairs.join(columns)
    amounts = amounts[missing:]
    pairs = pairs.take(np.arange(len(amounts)))
    active = amounts > 1e-13
    return y, z, pairs.take(active), amounts[active], status


def _add_columns(highs: highspy.Highs, grid: InputGrid, new: Pairs) -> None:
    size = len(grid.x)
    error_i, error_j = np.abs(new.s - grid.x[new.i]), np.abs(new.s - grid.x[new.j])
    cost = new.a * grid.cost[new.i] * error_i**grid.power + new.b * grid.cost[new.j] * error_j**grid.power
    index = np.stack([new.i, new.j, size + new.i, size + new.j], axis=1)
    value = np.stack([new.a, new.b, new.a * error_i, new.b * error_j], axis=1)
    add_columns(highs, cost, index, value, value != 0)


def _refine(coarse: InputGrid, fine: InputGrid, y: Array, z: Array, used: Pairs) -> Pairs:
    """Pairs to start the finer grid with: those used on the coarse one, spread out, and those its prices favour."""
    worth = np.where(coarse.cost > 0, coarse.cost, 1e-300)
    guess_y = np.interp(fine.x, coarse.x, y / worth) * fine.cost
    guess_z = np.interp(fine.x, coarse.x, z / worth) * fine.cost
    parts = [_price(fine, guess_y, guess_z, PRICED, None)]
    for di in (0, 1):
        for dj in (0, 1):
            i, j = 2 * used.i + di, 2 * used.j + dj
            inside = (i < len(fine.x)) & (j < len(fine.x))
            i, j, way = i[inside], j[inside], used.way[inside]
            for gap in fine.gaps:
                fits = (gap[i] > 0) & (gap[j] < 0)
                a, b = i[fits], j[fits]
                parts.append(_pairs(fine, a, b, gap[a], -gap[b], guess_z, way[fits]))
    return Pairs.join(parts)


def _table(lp: NoiseLP, core: slice, used: Pairs, amounts: Array) -> tuple[Ints, Ints, Array]:
    """The table's entries: pairs report their `s`, and whatever is left of an input reports itself."""
    size, first = len(lp.inputs), int(lp.inputs[0])
    rows = np.concatenate([used.i, used.j]) + core.start
    cols = np.concatenate([used.s, used.s]).astype(np.int64) - first
    values = np.concatenate([used.a, used.b]) * np.tile(amounts, 2)
    left = 1 - np.bincount(rows, values, minlength=size)
    every = np.arange(size)
    return np.concatenate([rows, every]), np.concatenate([cols, every]), np.concatenate([values, np.maximum(left, 0)])
