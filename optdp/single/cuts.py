"""Observers who are in doubt: the program by cutting planes, a privacy constraint of an output being added once broken.

The program is that of `core`, jointly scaled, with a privacy row

    sum over x of (Pr[x | vertex, u] - e^eps Pr[x | vertex, u']) W(x, s) <= 0

for every vertex, every two adjacent shifts, both ways and every output `s`: hundreds of thousands of rows, of which a
few for each output are ever met. It begins with the ends and the middle of each range. What all vertices see of an
answer is a product of matrices (de Casteljau's coefficients, all at once); of each output the constraints that are
broken most, relative to what is seen, are added, and the simplex method goes on from where it was. It ends when what is
still broken costs nothing to repair. The prices of the rows that were added prove a bound for the whole program, as
fewer constraints only make the optimum smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import highspy
import numpy as np
import numpy.typing as npt

from optdp import work
from optdp.errors import SolverError
from optdp.numbers.ordered import exp, product
from optdp.programs.highs import add_rows, model_of, new_highs
from optdp.single.bound import Draft
from optdp.single.chain import solve_chain
from optdp.single.core import Core, check_memory, entries_of, run_until_told, trusted
from optdp.single.laws import Sight, some_sights
from optdp.single.lp import NoiseLP
from optdp.single.watch import View, views
from optdp.work import Progress, silent

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SHARE = 1e-10
"""At most this share of the importance lies outside the core, on either side, and no smaller one counts inside."""
SMALLEST = 1e-10
"""Coefficients of a row below this share of its largest are left out."""
TOLERANCE = 1e-8
RELATIVE = 1e-8
"""A constraint is broken if it is exceeded by more than this share of what is seen."""
WORTH = 1e-9
"""What may stay broken at all outputs together, as a share of the objective."""
CHAIN_WORTH = 1e-6
"""The same where an interior-point method solves, which is less exact."""
EACH = 3
"""How many constraints of an output are added at a time."""
LARGE = 200
"""With more inputs that matter the program is made coarser, and its answer is less exact."""
LARGE_WORTH = 1e-6
"""What may stay broken then, as a share of the objective."""
RARE = 1e-8
"""The share of the belief, on either side, whose inputs need no output of their own in a coarser table."""
UNSEEN = 1e-11
"""In a coarser program, constraints about outputs that are never seen more often are left to repair at first."""
ROUNDS = 300
SHARES = tuple(10.0**-k for k in range(12))


@dataclass(frozen=True)
class ShiftPair:
    """Two adjacent shifts of one family: the coefficients of both at the inputs of the core, for every vertex."""

    view: View
    shifts: tuple[int, int]
    one: Array
    other: Array
    e: float

    def row(self, vertex: int, way: int) -> Array:
        """The coefficients of a privacy constraint: way 0 bounds what the first shift shows, way 1 the other."""
        one, other = self.one[vertex], self.other[vertex]
        gap: Array = one - self.e * other if way == 0 else other - self.e * one
        return gap

    def sight(self, vertex: int) -> Sight:
        return (self.view.observer, self.view.start + vertex, *self.shifts)


Cut = tuple[int, int, int, int]
"""A pair, a vertex, a way and an output."""


@dataclass
class Cutting:
    """The program with the rows so far."""

    core: Core
    pairs: list[ShiftPair]
    highs: highspy.Highs
    columns: Ints
    """Of each unknown `x * size + s` its number in the program, or -1 if it is left out."""
    cuts: list[Cut] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    """What each row was divided by."""
    known: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    """The vertices of the cuts so far, by pair, way and output."""

    @property
    def outputs(self) -> Ints:
        """The outputs that the program has."""
        size = self.core.size
        found: Ints = np.flatnonzero((self.columns.reshape(size, size) >= 0).any(axis=0))
        return found

    @property
    def table(self) -> Array | None:
        """`W` as the program has it now, or None if it has no solution."""
        found = np.nan_to_num(np.array(self.highs.getSolution().col_value))
        if len(found) != self.columns.max() + 1 or not found.any():
            return None
        size, kept = self.core.size, self.columns >= 0
        whole = np.zeros(size * size)
        whole[kept] = np.maximum(found, 0.0)[self.columns[kept]]
        return np.asarray(whole.reshape(size, size) * self.core.scale)

    def add(self, cuts: list[Cut]) -> None:
        """Add rows, each divided by its largest coefficient."""
        size, starts, index, value = self.core.size, [0], [], []
        scale = self.core.scale
        for pair, vertex, way, s in cuts:
            row = self.pairs[pair].row(vertex, way) * scale[:, s]
            largest = float(np.abs(row).max())
            if largest <= 0:
                continue
            kept = np.flatnonzero((np.abs(row) > SMALLEST * largest) & (self.columns[s::size] >= 0))
            index.append(self.columns[kept * size + s])
            value.append(row[kept] / largest)
            starts.append(starts[-1] + len(kept))
            self.cuts.append((pair, vertex, way, s))
            self.sizes.append(largest)
        for pair, vertex, way, s in cuts:
            self.known.setdefault((pair, way, s), []).append(vertex)
        if index:
            add_rows(self.highs, np.array(starts), np.concatenate(index), np.concatenate(value))


def _broken(
    pairs: Sequence[ShiftPair], table: Array, least: float, known: Callable[[int, int, int], Sequence[int]]
) -> Iterator[tuple[float, Cut]]:
    """Constraints that a table breaks by more than `least`: of each pair, way and output those at a peak.

    `known` has the vertices that the program has already. What it still breaks of those, within its tolerance, may be
    much of the little that is seen there, and hides no peak beside it.
    """
    outputs = np.flatnonzero(table.any(axis=0))
    table = table[:, outputs]
    for p, pair in enumerate(pairs):
        one, other = product(pair.one, table), product(pair.other, table)
        for way, (more, less) in enumerate(((one, other), (other, one))):
            excess = more - pair.e * less
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where((excess > least) & (more > 0), excess / more, 0.0)
            for i in np.flatnonzero(share.max(axis=0) > RELATIVE).tolist():
                s = int(outputs[i])
                share[known(p, way, s), i] = 0.0
                for k in _peaks(share[:, i]):
                    yield float(share[k, i]), (p, k, way, s)


def _peaks(values: Array) -> list[int]:
    """Where neighbouring vertices are not higher, above what counts."""
    padded = np.concatenate([[-1.0], values, [-1.0]])
    high = (values > RELATIVE) & (values >= padded[:-2]) & (values > padded[2:])
    return [int(k) for k in np.flatnonzero(high)]


def cuts_seconds(size: int, pairs: int) -> float:
    """About how long cutting planes take with so many inputs that matter and pairs of secrets."""
    return float(1e-4 * size**2.5 * (1 + 0.1 * pairs))


def solve_cuts(lp: NoiseLP, progress: Progress = silent) -> Draft:
    """The optimal table for all observers as floats, with prices that prove it."""
    core = Core.of(lp, lp.tight_cap, SHARE, SHARE)
    check_memory(core)
    vertices = sum(view.family.size * len(view.pairs) for view in views(lp.problem))
    seconds = cuts_seconds(core.size, max(len(view.pairs) for view in views(lp.problem)))
    work.announce(
        seconds, f"The program of {core.size:,} inputs that matter, watched from {vertices:,} worlds",
        "Use fewer people, coarser contributions, or a narrower range.", progress,
    )  # fmt: skip
    cutting, table, status = _begin(lp, core), None, ""
    duals = np.zeros(0)
    try:
        for turn in range(ROUNDS):
            said = _solve(cutting.highs)
            found = cutting.table
            if found is None:
                if lp.cap is not None and said == "infeasible" and turn == 0:
                    raise SolverError("There is no room below the caps. Set never_worse = false.")
                break
            table = found
            duals, status = np.nan_to_num(np.array(cutting.highs.getSolution().row_dual)), said
            worst = _chosen(cutting, table, float(lp.problem.cap))
            progress(f"round {turn + 1}: {len(cutting.cuts):,} constraints, {len(worst):,} more are broken")
            if not worst or said != "optimal":
                break
            cutting.add(worst)
        else:
            status = "iteration limit"
    except KeyboardInterrupt:
        if table is None:
            raise
        status = "interrupted"
    if table is None:
        raise SolverError("HiGHS must give a solution. Found none. Try another epsilon or a narrower range.")
    return _draft(lp, cutting, table, duals, status)


def _begin(lp: NoiseLP, core: Core) -> Cutting:
    """The program without privacy, and the constraints at the ends and in the middle of each range."""
    highs = new_highs(presolve="off", small_matrix_value=1e-12)
    highs.passModel(model_of(replace(core, gaps=core.gaps[:0]).to_program()))
    kept = _kept(core)
    if not kept.all():
        left_out = np.flatnonzero(~kept).astype(np.int32)
        highs.deleteCols(len(left_out), left_out)
    columns = np.where(kept.ravel(), np.cumsum(kept) - 1, -1)
    cutting = Cutting(core, _pairs(lp, core.inputs), highs, columns)
    wanted, least = set(some_sights(lp.problem)), UNSEEN if _coarse(core) else 0.0
    first = [
        (p, k, way, s)
        for p, pair in enumerate(cutting.pairs)
        for k in range(pair.view.family.size)
        if pair.sight(k) in wanted
        for s in cutting.outputs.tolist()
        if float(pair.one[k][kept[:, s]].max()) >= least
        for way in (0, 1)
    ]
    cutting.add(first)
    return cutting


def _coarse(core: Core) -> bool:
    """Whether the table is made coarser: a large one, if inputs have no caps that need outputs close by."""
    return core.size > LARGE and core.cap is None


def _kept(core: Core) -> npt.NDArray[np.bool_]:
    """The unknowns of the program: all, or those of a coarser table.

    There, inputs that the belief holds next to impossible need no output of their own. The bound is for every table all
    the same, as prices prove it.
    """
    kept = np.ones((core.size, core.size), np.bool_)
    if _coarse(core):
        share = np.cumsum(core.cost) / float(core.cost.sum())
        kept[:, (share < RARE) | (share > 1 - RARE)] = False
    return kept


def _pairs(lp: NoiseLP, inputs: slice) -> list[ShiftPair]:
    mass = lp.mass[inputs]
    found = []
    for view in views(lp.problem):
        laws, size = view.floats, lp.problem.last + 1
        e, seen = exp(float(view.step)), {}
        for u in range(view.family.shifts + 1):
            whole = np.zeros((len(laws), size))
            whole[:, u : u + laws.shape[1]] = laws
            seen[u] = whole[:, inputs] * mass
        found += [ShiftPair(view, (u, v), seen[u], seen[v], e) for u, v in view.pairs]
    return found


def _chosen(cutting: Cutting, table: Array, baseline: float) -> list[Cut]:
    """Of each output the few constraints that are broken most."""
    core = cutting.core
    value = float((core.cost[:, None] * core.distances**core.power * table).sum())
    worth = LARGE_WORTH if _coarse(core) else WORTH
    least = worth * max(_felt(value, core.power), 1e-9 * baseline) / core.size
    by_output: dict[int, list[tuple[float, Cut]]] = {}
    for share, cut in _broken(cutting.pairs, table, least, lambda p, way, s: cutting.known.get((p, way, s), [])):
        by_output.setdefault(cut[3], []).append((-share, cut))
    return [cut for s in sorted(by_output) for _, cut in sorted(by_output[s])[:EACH]]


def _felt(objective: float, power: int) -> float:
    """The error that repair is measured against: of a large squared error the root, as caps are about distances."""
    return objective if power == 1 else min(objective, math.sqrt(objective))


def _solve(highs: highspy.Highs) -> str:
    """Go on from where it was; if that fails, from scratch in other ways. The last answer stands: it is repaired."""
    status = run_until_told(highs, ("simplex", TOLERANCE), ("simplex", 1e-7), goes_on=True)
    return str(highs.modelStatusToString(status)).lower()


def _draft(lp: NoiseLP, cutting: Cutting, table: Array, duals: Array, status: str) -> Draft:
    core = cutting.core
    rest = 2 * core.size  # rows of sums and caps
    priced: dict[Sight, list[tuple[int, int, float]]] = {}
    for (pair, vertex, way, s), size, dual in zip(cutting.cuts, cutting.sizes, duals[rest:].tolist(), strict=False):
        if dual < 0:
            sight = cutting.pairs[pair].sight(vertex)
            priced.setdefault(sight, []).append((way, s, -dual / (size * core.unit)))
    sights = sorted(priced) or some_sights(lp.problem)[:1]
    u = np.zeros((2 * len(sights), core.size))
    for i, sight in enumerate(sights):
        for way, s, price in priced.get(sight, ()):
            u[2 * i + way, s] = price
    z = np.maximum(-duals[core.size : rest], 0.0) / core.unit if core.cap is not None else np.zeros(core.size)
    outputs = cutting.outputs
    prices = trusted(lp.seen(sights), core, z, u, SHARES, outputs)
    nearest = outputs if _coarse(core) else None
    if _coarse(core) and status == "optimal":
        status = "heuristic"  # the best of the coarser tables: the gap says how far that is from the best of all
    return Draft(*entries_of(lp, core, table, nearest), replace(prices, sights=tuple(sights)), status, "cuts")


def solve_chained(
    lp: NoiseLP, progress: Progress = silent, solve: Callable[[NoiseLP, Progress], Draft] = solve_chain
) -> Draft:
    """The same with a fallback, or by any solver: whole worlds are added to the program that `solve` solves."""
    pairs, sights, least = _pairs(lp, slice(None)), some_sights(lp.problem), 0.0
    for turn in range(ROUNDS):
        draft = solve(lp.seen(sights), progress)
        table = np.zeros((len(lp.inputs), len(lp.inputs)))
        np.add.at(table, (draft.rows, draft.cols), draft.values)
        least = CHAIN_WORTH * max(_felt(draft.objective(lp), lp.power), 1e-9 * float(lp.problem.cap)) / len(lp.inputs)
        worst: dict[int, tuple[float, Sight]] = {}
        known = [[k for k in range(pair.view.family.size) if pair.sight(k) in sights] for pair in pairs]
        for share, (p, k, _, s) in _broken(pairs, table, least, lambda p, *_, known=known: known[p]):
            sight = pairs[p].sight(k)
            worst[s] = max(worst.get(s, (0.0, sight)), (share, sight))
        more = {sight for _, sight in worst.values()}
        progress(f"round {turn + 1}: {len(sights):,} worlds, {len(more):,} more are needed")
        if not more or draft.status != "optimal":
            break
        sights = sorted({*sights, *more})
    prices = None if draft.prices is None else replace(draft.prices, sights=tuple(sights))
    return replace(draft, prices=prices)
