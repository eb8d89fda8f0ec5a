"""One entity of a plan of shares of noise (tail "sgdl"): what it gives away.

With `A_w` the law of the contracted input given `w`, `base_w = f A_w * SGDL_beta`, `u_w` the law of the report: let
`spread` be the largest `u_w/base_w` over outputs, secrets and the prior over the smallest, both taken with 1. Then
`u_w * u_2 * .. <= (spreads) base_w * base_2 * ..`, and as `beta >= 1/honest` this is `f A_w * Geo_q` convolved with
what does not depend on `w`. So the quotient is at most `Q` times the spreads, `Q` the largest quotient of `f A_w *
Geo_q`. Between two points `f y` that law is `q^j L + q^(|f|-j) R`, whose quotient for two secrets is monotone in
`q^(2j)`; beyond the last point it falls by `q` with each step for both. So `Q` is reached at a point `f y`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import mul

from .enclosures import Pair, both_ways
from .fields import positive, quotient_of, whole_number
from .geometric import Geometric, tail_quotient
from .laws import Law
from .priors import Prior
from .sgdl import Shares
from .table import Row, Table, check_row
from .verdict import Failed, must, spend


@dataclass(frozen=True)
class Sharer:
    """One entity that contracts its input, adds a share of noise and redraws what falls on the outputs of its table."""

    table: Table
    prior: Prior
    beta: Fraction
    q: Fraction
    f: int
    contraction: Sequence[Row] | None
    contracted_unit: int

    @property
    def has_table(self) -> bool:
        return self.table.low < self.table.high  # what is redrawn from one output is that output

    @property
    def plain(self) -> bool:
        return self.contraction is None and not self.has_table

    def moved(self, x: int) -> Row:
        return [(x, self.contracted_unit)] if self.contraction is None else self.contraction[x]

    def contracted(self, law: Law, without: range = range(0)) -> list[int]:
        """The law of `y` over `law.unit contracted_unit`, but for some inputs."""
        found = [0] * (self.prior.last + 1)
        for x, weight in law.items():
            if x not in without:
                row = self.moved(x)
                spend(len(row), law.unit.bit_length())
                for y, inside in row:
                    found[y] += weight * inside
        return found

    @cached_property
    def outputs(self) -> range:
        return range(self.table.low, self.table.high + 1) if self.has_table else range(0)

    @cached_property
    def served(self) -> range:
        return range(self.table.first, self.table.final + 1) if self.has_table else range(0)

    @cached_property
    def farthest(self) -> int:
        """How far an output of the table can be from any `f x`."""
        ends = (0, self.f * self.prior.last)
        return max([0, *(abs(s - end) for s in (self.table.low, self.table.high) for end in ends if self.has_table)])

    @cached_property
    def noise(self) -> Shares:
        return Shares(self.beta, self.q, self.farthest)

    @cached_property
    def base(self) -> list[list[Pair]]:
        """For each input that has a row the base kernel on the outputs, over `contracted_unit 2^bits`."""
        must(len(self.served) * len(self.outputs) <= 5_000_000, "A table may have 5,000,000 cells", len(self.outputs))
        found = []
        for x in self.served:
            row = self.moved(x)
            spend(2 * len(row) * len(self.outputs), self.noise.bits)
            line = []
            for s in self.outputs:
                values = [(inside, self.noise.at(s - self.f * y)) for y, inside in row]
                line.append((sum(w * value[0] for w, value in values), sum(w * value[1] for w, value in values)))
            found.append(line)
        return found

    @cached_property
    def masses(self) -> list[Pair]:
        """`c(x)` of each input that has a row, over `contracted_unit 2^bits`."""
        return [(sum(value[0] for value in line), sum(value[1] for value in line)) for line in self.base]

    def quotient(self) -> Fraction | None:
        """`Q`: the largest quotient of `f A_w * Geo_q` for a step."""
        size = abs(self.f)
        if self.plain and self.prior.independent:
            return tail_quotient(self.q, size)
        noise, ratios = Geometric(self.q, size * self.prior.last), [Fraction(1)]
        for laws in self.prior.people:
            sums = []
            for law in laws:
                spend(6 * (self.prior.last + 1), noise.bits * 3 + law.unit.bit_length())
                sums.append(_geometric_sums(self.contracted(law), noise, size))
            for (one, a), (other, b) in pairwise(zip(laws, sums, strict=True)):
                found = both_ways(a, b, Fraction(other.unit, one.unit))
                if found is None:
                    return None
                ratios.append(found)
        return max(ratios)

    def spread(self) -> Fraction | None:
        """The largest quotient of a released and a base law over the smallest, both taken with 1."""
        if not self.has_table:
            return Fraction(1)
        most, least = Fraction(1), Fraction(1)
        for law in (self.prior.total, *(law for laws in self.prior.people for law in laws)):
            base = self._around(self.contracted(law))
            unserved = self._around(self.contracted(law, without=self.served))
            chances = dict(law.items())
            weights = [chances.get(x, 0) for x in self.served]
            low, high = ([w * mass[side] for w, mass in zip(weights, self.masses, strict=True)] for side in (0, 1))
            spend(2 * self.table.entries, law.unit.bit_length() + self.noise.bits)
            for s, own, rest in zip(self.outputs, base, unserved, strict=True):
                rows, inside = self.table.columns.get(s, ((), ()))
                below = sum(map(mul, map(low.__getitem__, rows), inside)) + rest[0] * self.table.denominator
                above = sum(map(mul, map(high.__getitem__, rows), inside)) + rest[1] * self.table.denominator
                if below <= 0 or own[0] <= 0:
                    return None
                most = max(most, Fraction(above, own[0] * self.table.denominator))
                least = min(least, Fraction(below, own[1] * self.table.denominator))
        return most / least

    def _around(self, law: Sequence[int]) -> list[Pair]:
        """`sum over y of law(y) SGDL(s - f y)` for each output of the table."""
        points = [(y, weight) for y, weight in enumerate(law) if weight]
        spend(2 * len(points) * len(self.outputs), self.noise.bits + max(law).bit_length())
        found = []
        for s in self.outputs:
            values = [(weight, self.noise.at(s - self.f * y)) for y, weight in points]
            found.append((sum(w * value[0] for w, value in values), sum(w * value[1] for w, value in values)))
        return found


def _geometric_sums(law: Sequence[int], noise: Geometric, size: int) -> list[Pair]:
    """`sum over z of law(z) q^(size |y-z|)` for each `y`, over `2^bits`."""
    (low, high), bits = noise.power(size), noise.bits
    sums, below, above = [], 0, 0
    for weight in law:
        below, above = (below * low >> bits) + (weight << bits), -(-above * high >> bits) + (weight << bits)
        sums.append((below, above))
    below = above = 0
    for y in range(len(law) - 1, -1, -1):
        sums[y] = sums[y][0] + below, sums[y][1] + above
        below, above = (below + (law[y] << bits)) * low >> bits, -(-(above + (law[y] << bits)) * high >> bits)
    return sums


def read_sharer(table: Table, prior: Prior, f: int, honest: int, q: Fraction) -> Sharer:
    """The entity of a table whose tail is a share of noise."""
    tail = table.tail or {}
    beta, factor = quotient_of(tail["beta"], "beta"), whole_number(tail["factor"], "factor", -1000, 1000)
    unit, rows = positive(tail["contraction_denominator"], "contraction_denominator"), tail["contraction"]
    must(beta <= 1 and unit.bit_count() == 1, "beta must be at most 1, denominators powers of two", str(beta)[:40])
    must(factor == f, f"factor must be the coefficient {f}", factor)
    must(table.outside == "geometric", 'outside must be "geometric" with a share of noise', table.outside)
    if rows is not None:
        must(isinstance(rows, list) and len(rows) == prior.last + 1, f"Contract each input 0..{prior.last}", rows)
        for row in rows:
            check_row(row, 0, prior.last, unit)
    if beta * honest < 1 or table.q != q:
        raise Failed(f"the noise of any {honest} parties must add up to geometric noise of one ratio.")
    return Sharer(table, prior, beta, q, f, rows, unit)
