"""One entity: its table, what table and tail reveal, and how far its outputs are from its inputs.

**Privacy under the prior.** For each prior, each kind of person and each two adjacent contributions `w, w'` of such a
person, `Pr[s|w] = sum over x of Pr[sum = x|w] Pr[s|x]`, and `Pr[s|w] <= e^eps Pr[s|w']` is asked of every output. Unit
steps may reveal `eps/D`, with `D` the largest contribution of anybody.

**Outputs outside the table**, of which there are infinitely many with a geometric tail. There `Pr[s|x] = G(s-x)` for
every input, `G(k) = (1-q)/(1+q) q^|k|`, whatever `outside` says. People are independent if there is a tail: the sum
given `w` is `Y + w` and `Pr[s|w] = E G(s-w-Y)`. As `|k+d|` and `|k|` differ by at most `|d|`, `G(k) <= q^-|d| G(k+d)`
for each value of `Y`, hence `Pr[s|w] <= q^-|w-w'| Pr[s|w']`; left of all inputs and right of them it is an equality. So
`q^-|w-w'|` is the largest quotient out there, exactly.

**Inside**, `Pr[s|x] = c(x) weight/denominator` with `c(x)` the mass of `G(.-x)` on the outputs. An input without a row
has the nearest row's weights ("clamp", without a tail) or `Pr[s|x] = G(s-x)` ("geometric").

**Ordinary epsilon**: the same for two inputs at most 1 apart (times `D`), or at most `D` apart (adjacency "all").

**Very many people**: the same quotients, of laws that are enclosed and not written out (`Released`). The probability of
an output of the table is a sum over inputs. Inputs that have a row (or get the nearest one) are taken one by one. Those
that get noise alone lie left of the table, `x < first`, or right of it, and `first <= s <= final`:

    sum over x < first of Pr[x] G(s-x) = G(0) q^(s-first) sum over x < first of Pr[x] q^(first-x),

and the same on the right. The two sums on the right-hand side are formed input by input, from the far end: `a <- (a +
Pr[x]) q`. What was cut off from a law stands at the end that is nearer to the table than it was, with 0 as its lower
end, which keeps this an enclosure.

An input `x` beyond the outputs has `c(x) = q^d (1 - q^(high-low+1)) / (1+q)`, `d` its distance to the nearest output;
one among them has a `c(x)` of at least `G(0)`, for which the bits that `Entity` gives to noise near the table suffice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from operator import mul
from typing import Any

from .enclosures import Geometric, Pair, both_ways, tail_quotient
from .fields import positive, quotient_of
from .laws import ZERO, Law, Number, Wide, added, largest_quotient, powers, times, trimmed
from .priors import Prior
from .reading import check_head, digest
from .verdict import GUARD, must, spend

Row = Sequence[tuple[int, int]]
"""Pairs (output, weight); in a file they are lists."""


@dataclass(frozen=True)
class Table:
    """Rows of integers over a power of two for the inputs `first..final`, and what goes with them."""

    first: int
    final: int
    low: int
    high: int
    denominator: int
    rows: Sequence[Row]
    outside: str
    tail: Mapping[str, Any] | None
    q: Fraction | None
    bare: str
    """The digest of the table alone."""

    @cached_property
    def columns(self) -> dict[int, tuple[list[int], list[int]]]:
        """For each output that a row reaches the numbers of these rows and their weights."""
        found: dict[int, tuple[list[int], list[int]]] = {}
        for i, row in enumerate(self.rows):
            for s, weight in row:
                if s not in found:
                    found[s] = ([], [])
                found[s][0].append(i)
                found[s][1].append(weight)
        return found

    @cached_property
    def entries(self) -> int:
        return sum(map(len, self.rows))

    def served(self, x: int) -> int | None:
        """The number of the row that serves input `x`; None if it gets noise alone."""
        if self.first <= x <= self.final:
            return x - self.first
        return None if self.outside == "geometric" else 0 if x < self.first else len(self.rows) - 1


def read_table(document: Mapping[str, Any]) -> Table:
    """The table of a document that keeps every rule of the format."""
    keys = "format version inputs outputs denominator outside tail claim problem provenance sha256 weights"
    check_head(document, "optdp/noise-matrix", keys)
    ends = []
    for name in ("inputs", "outputs"):
        pair = document[name]
        right = isinstance(pair, list) and [type(end) for end in pair] == [int, int]
        must(right and -(2**53) <= pair[0] <= pair[1] <= 2**53, f"{name} must be [first, last] within 2^53", pair)
        ends.append(pair)
    (first, final), (low, high) = ends
    denominator = positive(document["denominator"], "denominator")
    must(denominator.bit_count() == 1, "denominator must be a power of two", document["denominator"])
    outside, tail, rows = document["outside"], document["tail"], document["weights"]
    must(outside in ("error", "clamp", "geometric"), "outside must be error, clamp or geometric", outside)
    must(outside != "geometric" or tail is not None, 'outside = "geometric" needs a tail', tail)
    must(isinstance(rows, list) and len(rows) == final - first + 1, "weights must have a row for each input", rows)
    for row in rows:
        check_row(row, low, high, denominator)
    q = None
    if tail is not None:
        laws = {"geometric": {"law", "q"}}
        laws["added"] = laws["geometric"]
        laws["sgdl"] = {*laws["geometric"], "beta", "factor", "contraction", "contraction_denominator"}
        law = tail.get("law") if isinstance(tail, dict) else None
        right = isinstance(law, str) and law in laws and tail.keys() == laws[law]
        must(right, "tail must be null, geometric noise, a share of it or added noise", tail)
        q = quotient_of(tail["q"], "q")
        must(q < 1, "q must lie between 0 and 1", tail["q"])
    bare = {**document, "problem": {}, "claim": {}, "provenance": {}}
    return Table(first, final, low, high, denominator, rows, outside, tail, q, digest(bare))


def check_row(row: Any, low: int, high: int, denominator: int) -> None:
    shape = isinstance(row, list) and row and all(type(pair) is list and len(pair) == 2 for pair in row)
    must(bool(shape), "A row must be a list of pairs [output, weight]", row)
    must(all(type(s) is int and type(weight) is int for s, weight in row), "A row must hold integers only", row)
    must(all(one[0] < two[0] for one, two in pairwise(row)), "The outputs of a row must increase", row)
    must(low <= row[0][0] and row[-1][0] <= high, f"A row must stay within {low}..{high}", row)
    must(min(weight for _, weight in row) > 0, "Weights must be positive", row)
    must(sum(weight for _, weight in row) == denominator, "A row must sum to the denominator", row)


# ---------------------------------------------------------------------- privacy and errors


@dataclass(frozen=True)
class Entity:
    """A table with its noise, the largest input, and how far from its rows noise must be enclosed narrowly."""

    table: Table
    last: int
    margin: int

    @cached_property
    def near(self) -> range:
        """The inputs that have a row, and others within the margin."""
        table = self.table
        return range(max(0, table.first - self.margin), min(self.last, table.final + self.margin) + 1)

    @cached_property
    def noise(self) -> Geometric | None:
        table, (low, high) = self.table, (self.near[0], self.near[-1])
        if table.q is None:
            return None
        reach = max(table.low - low, high - table.high, 0) + (high - low if table.outside == "geometric" else 0)
        return Geometric(table.q, reach)

    @cached_property
    def _masses(self) -> dict[int, Pair]:
        return {}

    def mass(self, x: int) -> Pair:
        """`c(x)` over `2^bits`; 1 without a tail."""
        table, noise = self.table, self.noise
        if noise is None:
            return 1, 1
        if x not in self._masses:
            spend(4, noise.bits)
            self._masses[x] = noise.inside(x, table.low, table.high)
        return self._masses[x]

    @cached_property
    def outputs(self) -> list[int]:
        """The outputs of the table that can occur."""
        table = self.table
        if table.outside == "geometric" and len(table.rows) <= self.last:
            return list(range(table.low, table.high + 1))
        return sorted(table.columns)

    def released(self, law: Law) -> list[Pair]:
        """`Pr[s]` for each of `outputs` if the input follows `law`, over one unit that depends on `law.unit` alone."""
        table, noise = self.table, self.noise
        bits = law.unit.bit_length() + (noise.bits if noise else 0) + table.denominator.bit_length()
        spend(2 * table.entries, bits)
        spend(2 * len(law.below), law.unit.bit_length() * ((noise.bits if noise else 0) // 30 + 1))
        low, high = [0] * len(table.rows), [0] * len(table.rows)
        alone = [[0, 0], [0, 0]]  # left and right of the table: sum of Pr[x] q^(distance of x to its edge)
        for x, weight in law.items():
            i = table.served(x)
            if i is not None:
                mass = self.mass(x)
                low[i] += weight * mass[0]
                high[i] += weight * mass[1]
            elif noise is not None:
                power, side = noise.power(max(table.first - x, x - table.final)), alone[x > table.final]
                side[0] += weight * power[0]
                side[1] += weight * power[1]
        found = []
        for s in self.outputs:
            rows, weights = table.columns.get(s, ((), ()))
            below = sum(map(mul, map(low.__getitem__, rows), weights))
            above = below if noise is None else sum(map(mul, map(high.__getitem__, rows), weights))
            if noise is not None and table.outside == "geometric":  # outputs lie within the inputs that have a row
                for side, distance in zip(alone, (s - table.first, table.final - s), strict=True):
                    value = noise.at(distance)
                    below += side[0] * value[0] * table.denominator >> noise.bits
                    above -= -side[1] * value[1] * table.denominator >> noise.bits
            found.append((below, above))
        return found

    def quotients(self, prior: Prior, every: bool) -> Fraction | None:
        """The largest quotient of two adjacent secrets: a step apart, or `every` two."""
        q, ratios = self.table.q, [Fraction(1)]
        for laws in prior.people:
            spend(len(laws) * (len(laws) if every else 2) * len(self.outputs), 100 * GUARD)
            pairs = [(i, j) for i, j in combinations(range(len(laws)), 2) if every or j == i + 1]
            if q is not None:
                ratios.append(tail_quotient(q, len(laws) - 1 if every else 1))
            columns = [self.released(law) for law in laws]
            for i, j in pairs:
                found = both_ways(columns[i], columns[j], Fraction(laws[j].unit, laws[i].unit))
                if found is None:
                    return None
                ratios.append(found)
        return max(ratios)

    def ordinary(self, reach: int) -> Fraction | None:
        """The largest quotient of two inputs at most `reach` apart."""
        table, last = self.table, self.last
        # The tails, and inputs that get noise alone.
        worst = Fraction(1) if table.q is None else tail_quotient(table.q, reach)
        bits = (self.noise.bits if self.noise else 0) + table.denominator.bit_length()
        near = range(max(0, table.first - reach), min(last, table.final + reach) + 1)  # within the margin
        spend(4 * reach * (table.entries + len(near)), bits)
        rows = [dict(row) for row in table.rows]
        for x in near:
            for y in range(x + 1, min(x + reach, near[-1]) + 1):
                found = self._two_inputs(rows, x, y)
                if found is None:
                    return None
                worst = max(worst, found)
        return worst

    def _two_inputs(self, rows: Sequence[Mapping[int, int]], x: int, y: int) -> Fraction | None:
        """The largest quotient of two inputs within the table."""
        i, j = self.table.served(x), self.table.served(y)
        if i is None:
            return Fraction(1) if j is None else self._beside_noise(rows[j], y, x)
        if j is None:
            return self._beside_noise(rows[i], x, y)
        if rows[i].keys() != rows[j].keys():
            return None
        most, least = (1, 1), (1, 1)
        if i != j:
            most, least = _extremes([(a, rows[j][s]) for s, a in rows[i].items()])
        (a_low, a_high), (b_low, b_high) = self.mass(x), self.mass(y)
        if a_low <= 0 or b_low <= 0:
            return None
        return max(Fraction(most[0] * a_high, most[1] * b_low), Fraction(least[1] * b_high, least[0] * a_low))

    def _beside_noise(self, row: Mapping[int, int], given: int, alone: int) -> Fraction | None:
        """The same of an input that has a row, and one that gets noise alone."""
        assert self.noise is not None
        outputs, mass = range(self.table.low, self.table.high + 1), self.mass(given)
        spend(8 * len(outputs), self.noise.bits)
        one = [self.noise.at(s - alone) for s in outputs]
        two = [(mass[0] * row.get(s, 0), mass[1] * row.get(s, 0)) for s in outputs]
        return both_ways(one, two, Fraction(self.table.denominator))

    def errors(self, power: int) -> Errors:
        """At least the mean of `|s-x|^power` of every input."""
        table, noise, everywhere = self.table, self.noise, self.table.outside != "geometric"
        inputs = range(self.last + 1) if everywhere else range(table.first, table.final + 1)
        unit = table.denominator << (noise.bits if noise else 0)
        spend(table.entries + 9 * len(inputs), noise.bits if noise else 200)
        found, alone = [], 0
        if noise is not None and len(inputs) <= self.last:
            alone = 2 * noise.beyond(1, power)[1] * table.denominator
        for x in inputs:
            row = table.rows[table.served(x) or 0]
            if not table.first <= x <= table.final:
                spend(len(row), 200)
            inner = sum(weight * abs(s - x) ** power for s, weight in row)
            outer = noise.outside(x, table.low, table.high, power) if noise else 0
            found.append(self.mass(x)[1] * inner + outer * table.denominator)
        return Errors(inputs[0], found, alone, unit)


@dataclass(frozen=True)
class Errors:
    """Mean errors over `unit`: of the inputs from `first` on, and of the others, which get noise alone."""

    first: int
    served: list[int]
    alone: int
    unit: int

    def at(self, x: int) -> int:
        return self.served[x - self.first] if 0 <= x - self.first < len(self.served) else self.alone


def _extremes(quotients: Sequence[Pair]) -> tuple[Pair, Pair]:
    """The largest and the smallest of positive quotients."""
    most = least = quotients[0]
    for a, b in quotients:
        if a * most[1] > most[0] * b:
            most = a, b
        if a * least[1] < least[0] * b:
            least = a, b
    return most, least


# ---------------------------------------------------------------------- very many people


def kept(entity: Entity) -> range | None:
    """The inputs of which a law must not be cut; None if it must not be cut at all."""
    table = entity.table
    if table.outside == "clamp":  # the errors of far inputs grow
        return None
    return range(max(0, table.first - 1), min(entity.last, table.final + 1) + 1)


def crowd_quotient(entity: Entity, prior: Prior, every: bool) -> Fraction | None:
    """The largest quotient of two adjacent secrets: a step apart, or `every` two."""
    table, q, worst = entity.table, entity.table.q, Fraction(1)
    if q is None and all(row == table.rows[0] for row in table.rows):
        return worst  # what is released does not depend on the input
    sums = Released(entity)
    for laws in prior.wide_people(kept(entity)):
        if q is not None:
            worst = max(worst, tail_quotient(q, len(laws) - 1 if every else 1))
        columns = [sums.of(law) for law in laws]
        for i, j in combinations(range(len(laws)), 2):
            if every or j == i + 1:
                for one, other in ((columns[i], columns[j]), (columns[j], columns[i])):
                    found = largest_quotient(one, other)
                    if found is None:
                        return None
                    worst = max(worst, found)
    return worst


def crowd_mean(law: Wide, errors: list[int], first: int, alone: int) -> Fraction:
    """At least the mean of the errors, those of inputs from `first` on, and `alone` of all others."""
    spend(4 * len(law.numbers), 2 * max(errors, default=1).bit_length())
    terms = []
    for x, (_, high, e) in enumerate(law.numbers, start=law.first):
        error = errors[x - first] if 0 <= x - first < len(errors) else alone
        terms.append((0, high * error, e))
    _, high, e = added(terms)
    low, _, f = law.unit
    must(low > 0, "A law must have a sum", low)
    shift = e - f
    return Fraction(high << max(0, shift), low << max(0, -shift))


class Released:
    """`Pr[s]` of the outputs of a table, for one law of the input after the other."""

    def __init__(self, entity: Entity) -> None:
        self.entity, table = entity, entity.table
        self.powers: list[Number] = []
        if table.q is not None:
            q, size = table.q, table.high - table.low + 1
            self.powers = powers(q, size)
            self.centre = times(self.powers[0], q.denominator - q.numerator, q.denominator + q.numerator)

    def mass(self, x: int) -> Number:
        """`c(x)`."""
        noise = self.entity.noise
        return (1, 1, 0) if noise is None else trimmed(*self.entity.mass(x), -noise.bits)

    def of(self, law: Wide) -> list[Number]:
        """For each of the outputs, times the unit of the law."""
        table = self.entity.table
        spend(4 * table.entries + 20 * len(law.numbers), 1000)
        sums, sides = self._by_row(law), self._alone(law)
        found = []
        for s in self.entity.outputs:
            places, weights = table.columns.get(s, ((), ()))
            terms = [(sums[i][0] * w, sums[i][1] * w, sums[i][2]) for i, w in zip(places, weights, strict=True)]
            for side, distance in zip(sides, (s - table.first, table.final - s), strict=True):
                if side[1]:
                    scale = table.denominator
                    near = _product(_product(self.powers[distance], side), self.centre)
                    terms.append(trimmed(near[0] * scale, near[1] * scale, near[2]))
            found.append(added(terms) if terms else ZERO)
        return found

    def _by_row(self, law: Wide) -> list[Number]:
        """For each row the probability of the inputs that it serves, times the `c(x)` of each."""
        rows: list[list[Number]] = [[] for _ in self.entity.table.rows]
        for x, number in enumerate(law.numbers, start=law.first):
            i = self.entity.table.served(x)
            if i is not None:
                rows[i].append(_product(self.mass(x), number))
        return [added(row) if row else ZERO for row in rows]

    def _alone(self, law: Wide) -> tuple[Number, Number]:
        """The sums over the inputs left and right of the table that get noise alone."""
        table, end = self.entity.table, law.first + len(law.numbers)
        q, left, right = table.q or Fraction(0), ZERO, ZERO
        if table.outside == "geometric":
            for x in range(law.first, min(table.first, end)):
                left = times(added((left, law.numbers[x - law.first])), q.numerator, q.denominator)
            for x in range(end - 1, max(table.final, law.first - 1), -1):
                right = times(added((right, law.numbers[x - law.first])), q.numerator, q.denominator)
        return left, right


def _product(one: Number, other: Number) -> Number:
    return trimmed(one[0] * other[0], one[1] * other[1], one[2] + other[2])
