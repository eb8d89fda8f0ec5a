"""One entity: what its table and its tail give away, and how far its outputs are from its inputs.

**Privacy under the prior.** For each prior, each kind of person and each two adjacent contributions `w, w'` of such a
person, `Pr[s|w] = sum over x of Pr[sum = x|w] Pr[s|x]`, and `Pr[s|w] <= e^eps Pr[s|w']` is asked of every output.
Unit steps may give away `eps/D`, with `D` the largest contribution of anybody.

**Outputs outside the table**, of which there are infinitely many with a geometric tail. There `Pr[s|x] = G(s-x)` for
every input, `G(k) = (1-q)/(1+q) q^|k|`, whatever `outside` says. If people are independent, the sum given `w` is `Y +
w` and `Pr[s|w] = E G(s-w-Y)`. As `|k+d|` and `|k|` differ by at most `|d|`, `G(k) <= q^-|d| G(k+d)` for each value of
`Y`, hence `Pr[s|w] <= q^-|w-w'| Pr[s|w']`; left of all inputs and right of them it is an equality. So `q^-|w-w'|` is
the largest quotient out there, exactly. If people are not independent, then left of all inputs `Pr[s|w]` is
proportional to `E[q^X|w]` and right of them to `E[q^-X|w]`, and outputs between inputs are looked at one by one.

**Inside**, `Pr[s|x] = c(x) weight/denominator` with `c(x)` the mass of `G(.-x)` on the outputs. An input without a row
has the nearest row's weights ("clamp") or `Pr[s|x] = G(s-x)` ("geometric").

**Ordinary epsilon**: the same for two inputs at most 1 apart (times `D`), or at most `D` apart (adjacency "all").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from operator import mul

from .enclosures import Pair, both_ways
from .geometric import Geometric, tail_quotient
from .laws import Law
from .priors import Prior
from .table import Table
from .verdict import GUARD, spend


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

    def outer(self, laws: Sequence[Law]) -> list[list[Pair]]:
        """For each law `Pr[s]`, up to a factor, of the outputs outside the table that differ: -1 and `last + 1` stand
        for all beyond them."""
        table, noise = self.table, Geometric(self.table.q or Fraction(1, 2), self.last + 1)
        outputs = [s for s in range(-1, self.last + 2) if s in (-1, self.last + 1) or not table.low <= s <= table.high]
        spend(2 * len(laws) * (self.last + 1) * len(outputs), noise.bits + laws[0].unit.bit_length())
        return [
            [
                (
                    sum(w * noise.power(abs(s - x))[0] for x, w in law.items()),
                    sum(w * noise.power(abs(s - x))[1] for x, w in law.items()),
                )
                for s in outputs
            ]
            for law in laws
        ]

    def quotients(self, prior: Prior, every: bool) -> Fraction | None:
        """The largest quotient of two adjacent secrets: a step apart, or `every` two."""
        q, ratios = self.table.q, [Fraction(1)]
        for laws in prior.people:
            spend(len(laws) * (len(laws) if every else 2) * len(self.outputs), 100 * GUARD)
            pairs = [(i, j) for i, j in combinations(range(len(laws)), 2) if every or j == i + 1]
            if q is not None and prior.independent:
                ratios.append(tail_quotient(q, len(laws) - 1 if every else 1))
            columns = [self.released(law) for law in laws]
            if q is not None and not prior.independent:
                columns = [inside + outside for inside, outside in zip(columns, self.outer(laws), strict=True)]
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
        if i is None and j is None:
            return Fraction(1)
        if i is None or j is None:
            assert self.noise is not None
            alone, given = (x, y) if i is None else (y, x)
            outputs = range(self.table.low, self.table.high + 1)
            spend(8 * len(outputs), self.noise.bits)
            one = [self.noise.at(s - alone) for s in outputs]
            mass, weights = self.mass(given), rows[i or j or 0]
            two = [(mass[0] * weights.get(s, 0), mass[1] * weights.get(s, 0)) for s in outputs]
            return both_ways(one, two, Fraction(self.table.denominator))
        if rows[i].keys() != rows[j].keys():
            return None
        top, bottom, under, over = 1, 1, 1, 1  # the largest and the smallest quotient of weights
        if i != j:
            top, bottom, under, over = 0, 1, 1, 0
            for s, a in rows[i].items():
                b = rows[j][s]
                if a * bottom > top * b:
                    top, bottom = a, b
                if a * over < under * b:
                    under, over = a, b
        (a_low, a_high), (b_low, b_high) = self.mass(x), self.mass(y)
        if a_low <= 0 or b_low <= 0:
            return None
        return max(Fraction(top * a_high, bottom * b_low), Fraction(over * b_high, under * a_low))

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
