"""Repair: from any floating-point answer to integers that are exactly private (proof in docs/mathematics.md).

Private columns form a cone that is the same for every output, and a *filler* is a vector well inside it: a few inputs
(often one) whose mixture looks the same under every secret. Adding enough filler to a column makes it private, whatever
the column was. So:

 1. Round the answer down to integers; shrink what makes a row's error exceed its cap; give what a row lacks to its
    own diagonal.
 2. Take a reserve: from the diagonal of a lone anchor, or from all rows alike.
 3. For each output compute, in balls, how much filler its column needs; add it, rounded up.
 4. What is left of the reserve goes to one output; it is (nearly) the same for all rows, or the anchor's own.

Losses are in proportion to what had to be repaired. If no sparse filler can carry the need, the vector of equal
probabilities can: in the limit every input reports the same output, which is perfectly private. With a
fallback, each column is first lifted to the least one above it that keeps adjacent inputs within the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy.optimize import linprog

from optdp.errors import CertificateError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import ball, ceiling
from optdp.single.bound import Draft
from optdp.single.certify import ordinary_epsilon
from optdp.single.laws import Laws
from optdp.single.lp import NoiseLP
from optdp.single.watch import Lookout
from optdp.work import Progress, remaining, silent
from optdp.work.account import paced

Array = npt.NDArray[np.float64]
Rows = list[dict[int, int]]

BITS = 62
"""Denominator 2^62; columns that need less than one unit of filler get one."""
FINE_BITS = 128
"""With a fallback every entry is positive and keeps 60 bits of its own; also where the error is tiny."""
GRAIN = 1 << 30
"""Fillers are integers in units of 1/GRAIN, the largest being GRAIN."""


@dataclass(frozen=True)
class Filler:
    """`amounts[x]` for row index `x`, at most GRAIN; what is left over goes to output `home`."""

    amounts: dict[int, int]
    home: int
    least: int
    """The least amount that is ever added, so that rounding does not matter."""
    limit: float
    """The largest share of a row that may be spent."""


@dataclass(frozen=True)
class Cone:
    """The private columns: for each step `one <= factor * other` and the other way round."""

    laws: Laws
    factors: tuple[arb, ...]
    slacks: tuple[tuple[arb, arb], ...]
    """How much room a unit of filler makes, in either direction, for each step."""
    lookout: Lookout | None = None
    """With observers in doubt, who look from more worlds than have steps here."""

    @staticmethod
    def around(lp: NoiseLP, filler: Filler) -> Cone | None:
        """The cone with the filler's room; None if the filler is not proved to lie inside."""
        laws = lp.laws
        if lp.problem.watched:
            lookout = Lookout(lp.problem, lp.shape, filler.amounts, GRAIN)
            return Cone(laws, (), (), lookout) if lookout.inside else None
        profile = [
            sum((weights[x] * amount for x, amount in filler.amounts.items()), arb(0)) / GRAIN
            for weights in laws.weights
        ]
        almost = 1 - arb(2) ** -36
        factors = tuple((ball(step.epsilon) * almost).exp() for step in laws.steps)
        slacks = tuple(
            (f * profile[step.other] - profile[step.one], f * profile[step.one] - profile[step.other])
            for f, step in zip(factors, laws.steps, strict=True)
        )
        if not all(a > 0 and b > 0 for a, b in slacks):
            return None
        return Cone(laws, factors, slacks)

    def needs(self, rows: Rows, denominator: int, progress: Progress = silent) -> dict[int, int]:
        """How many units of filler each output needs; outputs that need none are left out."""
        if self.lookout is not None:
            return self.lookout.needs([tuple(row.items()) for row in rows], progress)
        needs = {}
        columns = self.laws.columns([tuple(row.items()) for row in rows], denominator, progress)
        for s, column in paced(list(columns.items()), "looking for outputs to repair", progress):
            need = 0
            for step, f, (up, down) in zip(self.laws.steps, self.factors, self.slacks, strict=True):
                one, other = column[step.one], column[step.other]
                for excess, slack in ((one - f * other, up), (other - f * one, down)):
                    if not excess <= 0:
                        need = max(need, ceiling(excess / slack))
            if need > 0:
                needs[s] = need
        return needs


def repair(lp: NoiseLP, draft: Draft, progress: Progress = silent) -> NoiseMatrix:
    """The exactly private table nearest to hand; to be called within `precision()`."""
    bits = BITS if lp.chain is None and not _delicate(lp, draft) else FINE_BITS
    denominator = 1 << bits
    table = _clean(lp, draft)
    rows = _round(lp, table, denominator)
    for filler in _fillers(lp):
        mended = _mend(lp, rows, filler, denominator, progress)
        if mended is not None:
            return _matrix(lp, mended, denominator)
    constant = _constant(lp, denominator)
    if constant is not None:
        return constant
    raise CertificateError("The solver's answer cannot be made private. Try another backend.")


def _constant(lp: NoiseLP, denominator: int) -> NoiseMatrix | None:
    """The last resort: every input reports the same output, which tells nothing."""
    filler = list(_fillers(lp))[-1]
    rows: Rows = [{filler.home: denominator} for _ in lp.inputs]
    cone = Cone.around(lp, filler)
    if cone is None or cone.needs(rows, denominator) or not _keeps_chain(lp, rows, denominator):
        return None
    return _matrix(lp, rows, denominator)


def _delicate(lp: NoiseLP, draft: Draft) -> bool:
    """Whether units of 2^-62 in every column would be felt in the objective."""
    values = np.where(np.isfinite(draft.values), draft.values, 0.0)
    felt = len(lp.inputs) * float(lp.inputs[-1] - lp.inputs[0] + 1) ** lp.power * 2.0 ** (8 - BITS)
    return replace(draft, values=values).objective(lp) < 1e7 * felt


def _clean(lp: NoiseLP, draft: Draft) -> dict[tuple[int, int], float]:
    """Finite, non-negative entries; with a fallback, lifted so that adjacent inputs keep the ratio."""
    values = np.where(np.isfinite(draft.values) & (draft.values > 0), draft.values, 0.0)
    values = np.minimum(values, 1e6)
    if lp.chain is None:
        entries: dict[tuple[int, int], float] = {}
        for x, s, value in zip(draft.rows.tolist(), draft.cols.tolist(), values.tolist(), strict=True):
            if value:
                entries[x, s] = entries.get((x, s), 0.0) + value
        return entries
    size = len(lp.inputs)
    dense = np.zeros((size, size))
    np.add.at(dense, (draft.rows, draft.cols), values)
    lifted = lp.mass[:, None] * dense
    ratio = lp.chain * (1 - 1e-11)
    for x in range(1, size):
        lifted[x] = np.maximum(lifted[x], lifted[max(x - lp.reach, 0) : x].max(axis=0) / ratio)
    for x in range(size - 2, -1, -1):
        lifted[x] = np.maximum(lifted[x], lifted[x + 1 : x + 1 + lp.reach].max(axis=0) / ratio)
    dense = lifted / lp.mass[:, None]
    dense /= max(1.0, float(dense.sum(axis=1).max()) * (1 + 1e-12))
    return {(x, s): float(dense[x, s]) for x in range(size) for s in range(size)}


def _round(lp: NoiseLP, table: dict[tuple[int, int], float], denominator: int) -> Rows:
    """Integer rows that sum to the denominator exactly, or with a fallback to no more than it."""
    first = int(lp.inputs[0])
    rows: Rows = [{} for _ in lp.inputs]
    for (x, s), value in table.items():
        rows[x][first + s] = int(value * denominator)
    if lp.chain is not None:
        return rows
    cap = lp.tight_cap
    for x, row in enumerate(rows):
        total = sum(row.values())
        if total > denominator:
            row.update({s: weight * denominator // total for s, weight in row.items()})
        if cap is not None:
            _keep_cap(row, first + x, int(float(cap[x]) * denominator))
        row[first + x] = row.get(first + x, 0) + denominator - sum(row.values())
    return rows


def _keep_cap(row: dict[int, int], x: int, limit: int) -> None:
    """Move mass towards the diagonal until the row's mean absolute error is at most `limit`."""
    error = sum(abs(s - x) * weight for s, weight in row.items())
    if error > limit:
        row.update({s: weight * limit // error for s, weight in row.items() if s != x})


def _mend(lp: NoiseLP, rows: Rows, filler: Filler, denominator: int, progress: Progress) -> Rows | None:
    """Rows that are private and full, or None if this filler cannot carry the need."""
    cone = Cone.around(lp, filler)
    if cone is None:
        return None
    needs = cone.needs(rows, denominator, progress)
    if not needs and lp.chain is None:
        return rows
    columns = lp.shape.outputs[1] - lp.shape.outputs[0] + 1
    reserve = 2 * sum(needs.values()) + 16 * filler.least * columns
    # A lone anchor whose own output is tight has nothing to give: what it gives is missed there. Then the next filler.
    for _ in range(4 if len(filler.amounts) == 1 else 60):
        if reserve > denominator // 4:  # the need shrinks with the rest, so that less than the whole suffices
            reserve = reserve * denominator // (reserve + denominator)
        if reserve > filler.limit * denominator:
            return None
        mended = _with_reserve(rows, filler, reserve, denominator)
        needs = cone.needs(mended, denominator, progress)
        if lp.chain is not None:  # every output gets some, so that rounding cannot break the chain
            low, high = lp.shape.outputs
            needs = {s: max(needs.get(s, 0), denominator >> 60) for s in range(low, high + 1)}
        amounts = {s: need + 4 * filler.least for s, need in needs.items()}
        if sum(amounts.values()) > reserve:
            reserve = 2 * sum(amounts.values()) + reserve
            continue
        for x, share in filler.amounts.items():
            row = mended[x]
            for s, amount in amounts.items():
                row[s] = row.get(s, 0) - (-amount * share // GRAIN)
        for row in mended:
            left = denominator - sum(row.values())
            if left:
                row[filler.home] = row.get(filler.home, 0) + left
        lacking = _lacking(lp, [row.get(filler.home, 0) for row in mended])
        if not lacking and not cone.needs(mended, denominator, progress) and _keeps_chain(lp, mended, denominator):
            return mended
        reserve = max(4 * reserve, lacking)
    return None


def _matrix(lp: NoiseLP, rows: Rows, denominator: int) -> NoiseMatrix:
    shape = lp.shape
    ordered = tuple(tuple(sorted((s, weight) for s, weight in row.items() if weight)) for row in rows)
    return NoiseMatrix(shape.inputs, shape.outputs, denominator, ordered, shape.q, shape.outside, shape.last)


def _lacking(lp: NoiseLP, column: list[int]) -> int:
    """About how much more every entry of the column that takes what is left needs to keep the ratio of a fallback.

    Nothing, as a rule; but the rows of a search that was cut short may sum to very different totals.
    """
    if lp.chain is None:
        return 0
    entries = lp.mass * np.array(column, dtype=np.float64)
    apart = [[entries[by:] - lp.chain * entries[:-by], entries[:-by] - lp.chain * entries[by:]]
             for by in lp.rungs]  # fmt: skip
    most = max((float(excess.max()) for pair in apart for excess in pair), default=0.0)
    return int(2 * most / (lp.chain - 1)) if most > 1e-9 * float(entries.max()) else 0


def _keeps_chain(lp: NoiseLP, rows: Rows, denominator: int) -> bool:
    """Whether adjacent inputs keep the ratio that a fallback asks for (uneven remainders could break it)."""
    if lp.chain is None:
        return True
    problem = lp.problem
    found = ordinary_epsilon(problem, _matrix(lp, rows, denominator))
    return found is not None and found <= (problem.chain_epsilon or problem.epsilon)


def _with_reserve(rows: Rows, filler: Filler, reserve: int, denominator: int) -> Rows:
    """Make room: a single anchor gives of its own diagonal; otherwise all rows shrink alike, which keeps quotients."""
    if len(filler.amounts) == 1:
        (x,) = filler.amounts
        mended = list(rows)
        mended[x] = dict(rows[x])
        mended[x][filler.home] -= reserve
        if mended[x][filler.home] >= 0:
            return mended
    keep = denominator - reserve
    return [{s: weight * keep // denominator for s, weight in row.items()} for row in rows]


def _fillers(lp: NoiseLP) -> Iterator[Filler]:
    """Fillers to try, sparse ones first."""
    first = int(lp.inputs[0])
    middle = int(np.searchsorted(np.cumsum(lp.cost), lp.cost.sum() / 2))
    middle = min(middle, len(lp.inputs) - 1)
    home = first + middle
    if lp.chain is None and lp.problem.watched:
        likely = lp.core(1e-9)
        yield Filler(dict.fromkeys(range(likely.start, likely.stop), GRAIN), home, 1 << 16, 0.25)
    elif lp.chain is None:
        anchor = anchor_of(lp)
        if anchor is not None:
            yield Filler({anchor: GRAIN}, first + anchor, 1, 0.25)
        mixture = _mixture(lp, middle)
        if mixture:
            yield Filler(mixture, home, 1 << 16, 0.25)
    yield Filler(dict.fromkeys(range(len(lp.inputs)), GRAIN), home, 1 << 16, 1 - 2.0**-20)


def anchor_of(lp: NoiseLP) -> int | None:
    """The likeliest input that by itself tells no two secrets apart by more than half of epsilon."""
    least = lp.weights.min(axis=0)
    calm = least > 0
    for step in lp.laws.steps:
        one, other, most = lp.weights[step.one], lp.weights[step.other], math.exp(step.epsilon / 2)
        calm &= (one <= most * other) & (other <= most * one)
    return int(np.argmax(np.where(calm, least, 0.0))) if calm.any() else None


def _mixture(lp: NoiseLP, middle: int) -> dict[int, int]:
    """A few inputs near the middle whose mixture is equally likely under every secret: a vertex of a small program."""
    core = lp.core(1e-3)
    weights = lp.weights[:, core]
    distance = np.abs(lp.inputs[core] - lp.inputs[middle]) + 1
    options = {} if (left := remaining()) == np.inf else {"time_limit": left}
    found = linprog(
        distance * weights.sum(axis=0),
        A_eq=weights,
        b_eq=np.ones(len(weights)),
        bounds=(0, None),
        method="highs",
        options=options,
    )
    if found.status != 0 or found.x.max() <= 0:
        return {}
    amounts = np.floor(found.x / found.x.max() * GRAIN).astype(np.int64)
    return {core.start + x: int(amount) for x, amount in enumerate(amounts.tolist()) if amount > GRAIN >> 20}
