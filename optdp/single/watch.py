"""What every observer sees of a table, in all worlds that each holds possible, in balls.

For a family of vertices (`people.observer`) let `V` have a row for each vertex, the law `base` of those who are
uncertain, and let `R(x, s) = c(x) W(x, s)` be what the table decides. Then

    Pr[s | vertex k, shift u] = sum over x of V(k, x) R(x + u, s),

one product of matrices for each shift. Nothing is left out: these are all vertices, and so all worlds between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from flint import arb, arb_mat, fmpz

from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import ball, ceiling, log_upper, upper_fraction
from optdp.people.observer import VertexFamily
from optdp.single.laws import Shape, Sight
from optdp.single.problem import SingleLTE
from optdp.work.account import paced, spend

Rows = Sequence[Sequence[tuple[int, int]]]
FEW = 6
"""Rows with so few outputs are not worth a product of matrices."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class View:
    """The vertices of one family of an observer, as a matrix."""

    observer: int
    start: int
    """The number of its first vertex among all of the observer."""
    family: VertexFamily
    pairs: tuple[tuple[int, int], ...]
    step: Fraction
    """The epsilon of one pair."""

    @cached_property
    def laws(self) -> list[list[arb]]:
        """`V`: a row for each vertex."""
        scale, last = arb(1) / arb(fmpz(self.family.unit)), self.family.last
        rows = []
        for law in self.family.laws():
            values = [arb(value) * scale for value in law.coeffs()]
            rows.append(values + [arb(0)] * (last + 1 - len(values)))
        return rows

    @cached_property
    def floats(self) -> Any:
        """`V` as an array, for those who search."""
        import numpy as np  # whoever verifies needs none

        return np.array([[float(value) for value in row] for row in self.laws])

    def seen(self, table: IntegerTable) -> Iterator[list[list[arb]]]:
        """For each shift `u`: of every vertex and output, `denominator Pr[s | vertex, u]`."""
        size, count, width = self.family.last + 1, self.family.size, len(table.outputs)
        for u in range(self.family.shifts + 1):
            full = [x for x in table.full if u <= x < u + size]
            few = [entry for entry in table.few if u <= entry[0] < u + size]
            spend(count * (len(full) * width / 30 + len(few)), "what observers see")
            if full:
                part = arb_mat([[law[x - u] for x in full] for law in self.laws])
                found = (part * arb_mat([table.full[x] for x in full])).tolist()
            else:
                found = [[arb(0)] * width for _ in range(count)]
            for x, i, value in few:
                for law, line in zip(self.laws, found, strict=True):
                    line[i] += law[x - u] * value
            yield found


@dataclass(frozen=True)
class IntegerTable:
    """`R` times the denominator: a row for every input, a column for every output that occurs."""

    outputs: list[int]
    full: dict[int, list[arb]]
    """The rows of inputs with many outputs."""
    few: list[tuple[int, int, arb]]
    """Input, place of the output and value, of the others."""

    @staticmethod
    def of(shape: Shape, rows: Rows) -> IntegerTable:
        outputs = sorted({s for row in rows for s, _ in row})
        place = {s: i for i, s in enumerate(outputs)}
        spend(len(rows) * len(outputs) / 5, "what observers see")
        full: dict[int, list[arb]] = {}
        few = []
        for x, (row, mass) in enumerate(zip(rows, shape.masses, strict=True)):
            if len(row) <= FEW:
                few += [(x, place[s], mass * weight) for s, weight in row]
                continue
            full[x] = [arb(0)] * len(outputs)
            for s, weight in row:
                full[x][place[s]] = mass * weight
        return IntegerTable(outputs, full, few)


@lru_cache(maxsize=1)
def views(problem: SingleLTE) -> tuple[View, ...]:
    """All vertices of all observers who are in doubt about anybody."""
    found = []
    for observer, worlds in enumerate(problem.worlds):
        start = 0
        for family in worlds.families if worlds is not None else ():
            pairs = tuple(family.pairs(problem.adjacency == "all"))
            found.append(View(observer, start, family, pairs, problem.epsilon_of(observer) / problem.steps))
            start += family.size
    return tuple(found)


@dataclass(frozen=True)
class WorstQuotient:
    """The largest quotient that an observer sees, and where."""

    quotient: Fraction | None
    """Rounded up; None if it is infinite."""
    sight: Sight
    output: int


def worst_sights(
    problem: SingleLTE, matrix: NoiseMatrix, progress: Progress = lambda _: None
) -> dict[int, WorstQuotient]:
    """For each observer who is in doubt about anybody, what tells most. Every input must have a row."""
    table = IntegerTable.of(Shape.of(matrix), matrix.rows)
    found: dict[int, WorstQuotient] = {}
    for view in paced(views(problem), "looking with the observers' eyes", progress):
        worst = _worst(view, table)
        before = found.get(view.observer)
        if before is None or _exceeds(worst.quotient, before.quotient):
            found[view.observer] = worst
    return found


def _exceeds(one: Fraction | None, other: Fraction | None) -> bool:
    return other is not None and (one is None or one > other)


def _worst(view: View, table: IntegerTable) -> WorstQuotient:
    best = WorstQuotient(Fraction(1), (view.observer, view.start, *view.pairs[0]), table.outputs[0])
    limit, mirror = arb(1), arb(1)
    for (u, v), one, other in _in_pairs(view, table):
        spend(len(one) * len(table.outputs) * 0.6, "what observers see")
        for k, (left, right) in enumerate(zip(one, other, strict=True)):
            for i, (a, b) in enumerate(zip(left, right, strict=True)):
                if a == 0 and b == 0:
                    continue
                if not (a > 0 and b > 0):
                    return WorstQuotient(None, (view.observer, view.start + k, u, v), table.outputs[i])
                ratio = a / b
                if not (ratio <= limit and ratio >= mirror):
                    larger = max(upper_fraction(ratio), upper_fraction(1 / ratio))
                    if larger > (best.quotient or 0):
                        best = WorstQuotient(larger, (view.observer, view.start + k, u, v), table.outputs[i])
                        limit = ball(larger)
                        mirror = 1 / limit
    return best


def _in_pairs(view: View, table: IntegerTable) -> Iterator[tuple[tuple[int, int], list[list[arb]], list[list[arb]]]]:
    """The pairs of shifts, each with what is seen of both; what no pair needs any more is let go."""
    kept: dict[int, list[list[arb]]] = {}
    for v, seen in enumerate(view.seen(table)):
        kept[v] = seen
        for pair in view.pairs:
            if pair[1] == v:
                yield pair, kept[pair[0]], seen
        kept.pop(v - view.family.reach, None)


def epsilons(
    problem: SingleLTE, matrix: NoiseMatrix, ordinary: Fraction | None, progress: Progress
) -> list[Fraction | None]:
    """The epsilon against each observer, for a whole contribution; None if it is infinite.

    Nobody sees more than one who knows everybody else. That is all that is looked at where inputs have no row.
    """
    whole = matrix.inputs == (0, problem.last) and matrix.last == problem.last
    worst = worst_sights(problem, matrix, progress) if whole else {}
    found = []
    for observer in range(len(problem.observers)):
        if observer not in worst:
            found.append(ordinary)
            continue
        quotient = worst[observer].quotient
        if matrix.q is not None and quotient is not None:  # outside the table the law is shifted geometric noise
            reach = 1 if problem.adjacency == "unit" else problem.largest
            quotient = max(quotient, upper_fraction(1 / ball(matrix.q) ** reach))
        found.append(None if quotient is None else log_upper(quotient) * problem.steps)
    return found


class Lookout:
    """How much of a mixture of inputs each output needs, so that no observer is told too much."""

    def __init__(self, problem: SingleLTE, shape: Shape, mixture: dict[int, int], grain: int) -> None:
        self.shape, self.views = shape, views(problem)
        mixed = IntegerTable.of(shape, [((0, mixture[x]),) if mixture.get(x) else () for x in range(len(shape.masses))])
        almost = 1 - arb(2) ** -36
        self.factors = [(ball(view.step) * almost).exp() for view in self.views]
        self.rooms = []
        """For each view, pair and vertex: how much room a unit of the mixture makes, in either direction."""
        for view, e in zip(self.views, self.factors, strict=True):
            self.rooms.append(
                [
                    [((e * b[0] - a[0]) / grain, (e * a[0] - b[0]) / grain) for a, b in zip(one, other, strict=True)]
                    for _, one, other in _in_pairs(view, mixed)
                ]
            )
        self.inside = all(a > 0 and b > 0 for room in self.rooms for line in room for a, b in line)
        """Whether the mixture itself tells nobody too much."""

    def needs(self, rows: Rows, progress: Progress) -> dict[int, int]:
        """How many units of the mixture each output needs; outputs that need none are left out."""
        table = IntegerTable.of(self.shape, rows)
        most = [0] * len(table.outputs)
        for view, e, rooms in zip(self.views, self.factors, self.rooms, strict=True):
            progress("looking for outputs to repair")
            for (_, one, other), line in zip(_in_pairs(view, table), rooms, strict=True):
                for left, right, (up, down) in zip(one, other, line, strict=True):
                    for i, (a, b) in enumerate(zip(left, right, strict=True)):
                        if not a <= e * b:
                            most[i] = max(most[i], ceiling((a - e * b) / up))
                        if not b <= e * a:
                            most[i] = max(most[i], ceiling((b - e * a) / down))
        return {s: need for s, need in zip(table.outputs, most, strict=True) if need > 0}
