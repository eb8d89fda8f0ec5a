"""The largest quotient over all vertices of what an observer may believe (`observers` says why these decide).

Given a vertex, `Pr[s|u] = sum over y of base(y) Pr[s|y+u]`. For all outputs at once, a row of the table is **one long
integer** with a slot of bits for each output. Adding such integers, or multiplying them by small ones, does so with
every slot, as long as each value fits. How large values can become is known beforehand, and slots are made that wide.

**Smoothing.** If people contribute 0 or 1, one person with probability `p` turns rows `R` into

    (S_p R)(u) = (1-p) R(u) + p R(u+1).

These operators commute. `m` people between `a` and `b`, of whom `k` are at `b`, give `V_k(u) = (S_b^k S_a^(m-k) R)(u)`.
All of them come from subdivision (de Casteljau). First a triangle at `a`: all `S_a^i R`. With `E` the shift,

    S_b = (1-c) S_a + c E,    c = (b-a)/(1-a).

So a second triangle starts with `G_0(j) = S_a^(M-j) E^j R(u)`, all of which the first one has, and goes on by

    G_(k+1)(j) = (1-c) G_k(j) + c G_k(j+1).

Then `G_k(0) = S_b^k S_a^(M-k) R(u) = U_k`. With `M = m+1` it serves two neighbouring secrets at once:

    U_k = (1-a) V_k(u) + a V_k(u+1),   U_(k+1) = (1-b) V_k(u) + b V_k(u+1),  hence
    (b-a) V_k(u) = b U_k - a U_(k+1),  (b-a) V_k(u+1) = (1-a) U_(k+1) - (1-b) U_k.

All of this is exact: integers, with `a` and `b` over a common denominator. Other kinds of people, and people with
larger contributions, count as the law that their sum has: `sum over y of law(y) R(y+u)`. Factors that all secrets of a
vertex have in common do not change quotients, and are dropped. Where no law is in doubt there is one vertex, and
`entity` has what its secrets release.

**Noise** is enclosed: a table with a tail has `low <= R <= (1+spread) low` in every slot, with one tiny `spread`. Every
`V_k` is a sum of rows with coefficients of at least 0, so it keeps that, and a quotient of two is at most `(1+spread)`
times that of the `low`. Outside the table quotients are `q^-(u'-u)`, as `entity` proves for all independent people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import gcd, lcm
from operator import mul

from .enclosures import Values, both_ways, tail_quotient
from .entity import Entity
from .laws import Law, common_unit, multiplied
from .observers import Case, Kind, Observer, base_law, cases
from .verdict import GUARD, MOST_MEMORY, must, spend

CUT = 3 * GUARD // 4
"""Bits of noise that are not needed: so many fewer still leave a quotient right to more than 200."""


@dataclass(frozen=True)
class Slots:
    """Long integers, each with the same number of slots of so many bytes, and a value that no slot exceeds."""

    numbers: list[int]
    size: int
    width: int
    top: int

    @property
    def bits(self) -> int:
        return 8 * self.size * self.width

    def values(self, number: int) -> list[int]:
        data = number.to_bytes(self.size * self.width, "little")
        return [int.from_bytes(data[k : k + self.width], "little") for k in range(0, len(data), self.width)]

    def widened(self, growth: int) -> Slots:
        """The same with room for values that are so many times as large."""
        width = (self.top * growth).bit_length() // 8 + 1
        if width <= self.width:
            return self
        spend(len(self.numbers) * (1 + self.size), 8 * width)
        more, whole, numbers = bytes(width - self.width), self.size * self.width, []
        for number in self.numbers:
            data = number.to_bytes(whole, "little")
            parts = [data[k : k + self.width] for k in range(0, whole, self.width)]
            numbers.append(int.from_bytes(more.join(parts), "little"))
        return replace(self, numbers=numbers, width=width)


def observed_quotient(entity: Entity, observer: Observer, every: bool) -> Fraction | None:
    """The largest quotient of two adjacent secrets, a step apart or `every` two, at any vertex."""
    q, kinds = entity.table.q, observer.kinds
    worst = Fraction(1)
    if q is not None:
        worst = tail_quotient(q, max(kind.largest for kind in kinds) if every else 1)
    packed: tuple[Slots, Fraction] | None = None
    for case in _unlike(observer, len(entity.outputs)):
        reach = case.reach if every else 1
        if _settled(kinds, case):
            columns = [entity.released(law) for law in _laws(entity, observer, case)]
            ratios = [_quotient(columns, reach)]
        else:
            rows, spread = packed = packed or _rows(entity)
            ratios = [_scaled(slots, reach, 1 + spread) for slots in _vertices(rows, kinds, case)]
        if None in ratios:
            return None
        worst = max([worst, *(ratio for ratio in ratios if ratio is not None)])
    return worst


def _settled(kinds: Sequence[Kind], case: Case) -> bool:
    """Whether a case has one vertex only."""
    return all(kind.fixed or not m for kind, m in zip(kinds, case.counts, strict=True))


def _laws(entity: Entity, observer: Observer, case: Case) -> list[Law]:
    """The law of the sum given each secret, at the only vertex of a case."""
    memory = (entity.last + 1) * observer.bits
    must(memory <= MOST_MEMORY, f"Laws are written out in at most {MOST_MEMORY} bits; use optdp verify", memory)
    base = base_law(observer.kinds, case.counts, [0] * len(case.counts))
    return [base.shifted(u) for u in range(case.secrets)]


def _unlike(observer: Observer, outputs: int) -> list[Case]:
    """The cases without repetitions. What all of them need at least is accounted for before anything is done."""
    found: dict[Case, None] = {}
    for case in cases(observer):
        if case not in found:
            found[case] = None
            number, steps = case.secrets, 0
            for kind, m in zip(observer.kinds, case.counts, strict=True):
                if not kind.fixed:
                    number, steps = number * (m + 1), max(steps, m * m)
            spend(number + steps, 30 * outputs)
    return list(found)


def _rows(entity: Entity) -> tuple[Slots, Fraction]:
    """A number for every input, with what every output gets; how much larger than this the truth may be."""
    table, noise, outputs = entity.table, entity.noise, entity.outputs
    spend((entity.last + 1) * (len(outputs) + 20), 2 * (noise.bits if noise else 0) + 200)
    cut = CUT if noise else 0
    top = table.denominator << (noise.bits - cut if noise else 0)
    width, spread, numbers = top.bit_length() // 8 + 1, Fraction(0), []
    for x in range(entity.last + 1):
        row = _row(entity, x, outputs)
        known = {pair for pair, _ in row if pair[1]}
        must(all(low >> cut > 0 for low, _ in known), "Noise must be enclosed narrowly", x)
        spread = max([spread, *(Fraction(high, low >> cut << cut) - 1 for low, high in known)])
        parts = [((low >> cut) * weight).to_bytes(width, "little") for (low, _), weight in row]
        numbers.append(int.from_bytes(b"".join(parts), "little"))
    return Slots(numbers, len(outputs), width, top), spread


def _row(entity: Entity, x: int, outputs: Sequence[int]) -> list[tuple[tuple[int, int], int]]:
    """For each output what encloses the noise of an input, and how often it counts."""
    table, noise = entity.table, entity.noise
    i = table.served(x)
    if i is not None:
        mass, weights = entity.mass(x), dict(table.rows[i])
        return [(mass if s in weights else (0, 0), weights.get(s, 0)) for s in outputs]
    assert noise is not None
    return [(noise.at(s - x), table.denominator) for s in outputs]


def _scaled(slots: Slots, reach: int, factor: Fraction) -> Fraction | None:
    """The largest quotient at a vertex, times a factor, where every secret has a number."""
    spend(2 * slots.size * len(slots.numbers), 8 * slots.width)
    found = _quotient([[(value, value) for value in slots.values(number)] for number in slots.numbers], reach)
    return None if found is None else found * factor


def _quotient(columns: Sequence[Values], reach: int) -> Fraction | None:
    """The largest of secrets up to `reach` apart, with what every output gets given each of them."""
    spend(2 * len(columns) * min(reach, len(columns)) * len(columns[0]), 4000)
    worst = Fraction(1)
    for i, j in combinations(range(len(columns)), 2):
        if j - i <= reach:
            found = both_ways(columns[i], columns[j])
            if found is None:
                return None
            worst = max(worst, found)
    return worst


# ---------------------------------------------------------------------- vertices


def _vertices(rows: Slots, kinds: Sequence[Kind], case: Case) -> Iterator[Slots]:
    """For each vertex of a case a number for each secret."""
    simple = [j for j, kind in enumerate(kinds) if kind.largest == 1 and not kind.fixed and case.counts[j]]
    inner = max(simple, key=case.counts.__getitem__, default=None)
    people = 0 if inner is None else case.counts[inner]
    others = [(kind, m) for j, (kind, m) in enumerate(zip(kinds, case.counts, strict=True)) if m and j != inner]
    for weights in _sums(others):
        smooth = _smoothed(rows, weights, people + case.secrets)
        if inner is None:
            yield smooth
        else:
            yield from _subdivided(smooth, kinds[inner], case.secrets)


def _sums(people: Sequence[tuple[Kind, int]]) -> Iterator[list[int]]:
    """The laws that their sum has at the vertices, each times a number that does not matter."""
    for parts in product(*(_powers(kind, m) for kind, m in people)):
        weights = [1]
        for part in parts:
            weights = multiplied(weights, part)
        yield weights


def _powers(kind: Kind, people: int) -> list[list[int]]:
    """The laws of the sum of people of one kind, of whom 0, 1, .. follow the upper end."""
    unit = lcm(common_unit(kind.low, "a law"), common_unit(kind.high, "a law"))
    ends: list[list[list[int]]] = []
    for law in (kind.low, kind.high):
        step, powers = [int(p * unit) for p in law], [[1]]
        for _ in range(people):
            powers.append(multiplied(powers[-1], step))
        ends.append(powers)
    low, high = ends
    return [multiplied(low[people - k], high[k]) for k in range(1 if kind.fixed else people + 1)]


def _smoothed(rows: Slots, weights: Sequence[int], needed: int) -> Slots:
    """`sum over y of weights[y] R(y+u)` for so many `u`."""
    if weights == [1]:
        return replace(rows, numbers=rows.numbers[:needed])
    total = sum(weights)
    wide = rows.widened(total)
    spend(needed * len(weights), wide.bits * (1 + max(weights).bit_length() // 30))
    numbers = [sum(map(mul, weights, wide.numbers[u : u + len(weights)])) for u in range(needed)]
    return replace(wide, numbers=numbers, top=wide.top * total)


def _stages(slots: Slots, steps: int, first: int, second: int, spare: int) -> Iterator[tuple[Slots, Slots]]:
    """`first R(u) + second R(u+1)`, step by step: what was there before each step, and what is there after it.

    Every result has room for `spare` times its value. The slots are widened now and then, not at every step.
    """
    often, total = max(8, steps // 12), first + second  # the work is accounted for by `_subdivided`
    for step in range(steps):
        if step % often == 0:
            slots = slots.widened(total ** min(often, steps - step) * spare)
        numbers = [first * one + second * two for one, two in pairwise(slots.numbers)]
        after = replace(slots, numbers=numbers, top=slots.top * total)
        yield slots, after
        slots = after


def _subdivided(rows: Slots, kind: Kind, secrets: int) -> Iterator[Slots]:
    """The vertices of people of one kind in doubt who contribute 0 or 1; as many rows as people and secrets."""
    people = len(rows.numbers) - secrets
    a, b = sorted((kind.low[1], kind.high[1]))
    unit = lcm(a.denominator, b.denominator)
    low, high = int(a * unit), int(b * unit)
    common = gcd(unit - high, high - low)
    first, second = (unit - high) // common, (high - low) // common
    starts = sorted({*range(0, secrets - 1, 2), secrets - 2})
    _account(rows, people + 1, unit, first + second, len(starts))
    edges = _edges(rows, unit, low, people + 1, starts)
    for stages in zip(*(_stages(edge, people + 1, first, second, unit) for edge in edges), strict=True):
        numbers = [0] * secrets
        for u, (before, after) in zip(starts, stages, strict=True):
            one, two = (first + second) * before.numbers[0], after.numbers[0]
            numbers[u : u + 2] = high * one - low * two, (unit - low) * two - (unit - high) * one
        after = stages[0][1]
        yield replace(after, numbers=numbers, top=after.top * unit)


def _account(rows: Slots, steps: int, unit: int, total: int, triangles: int) -> None:
    """Account for a triangle whose sums grow by `unit` at each step, and those after it, which grow by `total`."""
    once, more = ((value**16).bit_length() * steps // 16 for value in (unit, total))
    bits = rows.top.bit_length()
    spend(steps * len(rows.numbers) - steps * (steps - 1) // 2, rows.size * (bits + once // 2))
    spend(triangles * steps * (steps + 1) // 2, rows.size * (bits + once + more // 2))


def _edges(rows: Slots, unit: int, low: int, degree: int, starts: Sequence[int]) -> list[Slots]:
    """`S_a^(degree-j) E^j R(u)` for `j = 0..degree`, for each of the starts `u`."""
    memory = len(starts) * (degree + 1) * rows.size * (rows.top * unit**degree).bit_length()
    must(memory <= MOST_MEMORY, f"Vertices are written out in at most {MOST_MEMORY} bits; use optdp verify", memory)
    edges: list[list[int]] = [[] for _ in starts]
    for j, level in zip(range(degree, -1, -1), _levels(rows, degree, unit - low, low), strict=True):
        picked = replace(level, numbers=[level.numbers[u + j] for u in starts]).widened(unit**j)
        spend(len(starts), picked.bits * (1 + j * unit.bit_length() // 30))
        for edge, number in zip(edges, picked.numbers, strict=True):
            edge.append(number * unit**j)
    return [replace(picked, numbers=edge[::-1], top=rows.top * unit**degree) for edge in edges]


def _levels(rows: Slots, steps: int, first: int, second: int) -> Iterator[Slots]:
    yield rows
    yield from (after for _, after in _stages(rows, steps, first, second, 1))
