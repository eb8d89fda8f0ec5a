"""Plans of shares of noise (tail "sgdl"): what each party and all together reveal, and the errors.

**One entity.** With `A_w` the law of the contracted input given `w`, `base_w = f A_w * SGDL_beta`, `u_w` the law of the
report: let `spread` be the largest `u_w/base_w` over outputs, secrets and the prior over the smallest, both taken with
1. Then `u_w * u_2 * .. <= (spreads) base_w * base_2 * ..`, and as `beta >= 1/honest` this is `f A_w * Geo_q` convolved
with what does not depend on `w`. So the quotient is at most `Q` times the spreads, `Q` the largest quotient of `f A_w *
Geo_q`. Between two points `f y` that law is `q^j L + q^(|f|-j) R`, whose quotient for two secrets is monotone in
`q^(2j)`; beyond the last point it falls by `q` with each step for both. So `Q` is reached at a point `f y`.

**All parties together.** The quotient of a party's people is at most its `Q` times its own spread and the `honest - 1`
largest spreads of others. Larger sets add independent terms, which raises no quotient.

The error of an aggregate is summed over laws cut at `|N_i| <= R`, plus `sum of E[|N_i|; |N_i| > R] + Pr[|N_i| > R] sum
of the other E|N_j|`, which bounds what was cut. These laws are enclosed to `2^-GUARD` of 1, not of each value. Means
and squares are not cut: without a table `N` is the shift of the contraction plus noise, whose mean is 0 and whose
variance is known, and a table moves finitely many values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import mul

from .enclosures import Geometric, Pair, Shares, bits_lost, both_ways, share_mean, spread_of, tail_quotient, worst_of
from .entity import Row, Table, check_row
from .fields import positive, quotient_of, whole_number
from .laws import POINT, Law, convolved, multiplied, shortened
from .plans import Figures, Plan, demand_privacy
from .priors import Prior
from .verdict import GUARD, Failed, must, spend


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


# ---------------------------------------------------------------------- all parties together


def shared_figures(plan: Plan) -> Figures:
    q = plan.tables[0].q
    assert q is not None
    keys = [(name, table.bare, f) for name, table, f in zip(plan.names[0], plan.tables, plan.f, strict=True)]
    kinds = list(dict.fromkeys(keys))  # parties that are alike in everything are looked at once
    places, counts = [kinds.index(key) for key in keys], [keys.count(key) for key in kinds]
    sharers = []
    for key in kinds:
        i = keys.index(key)
        sharers.append(read_sharer(plan.tables[i], plan.worlds[0][i], plan.f[i], plan.honest, q))
    worlds = [_quotients(plan, world, q) for world in range(len(plan.worlds))]
    quotients = [worst_of(found) for found in zip(*worlds, strict=True)]
    demand_privacy(plan, quotients)
    if all(sharer.plain for sharer in sharers):
        return _shares_alone(plan, quotients, [sharers[k] for k in places])
    errors = [_errors(sharer) for sharer in sharers]
    mae, mse = _aggregate(errors, counts)
    return Figures(quotients, [None] * len(places), [errors[k].absolute for k in places], mae, mse)


def _quotients(plan: Plan, world: int, q: Fraction) -> list[Fraction | None]:
    """For each party the largest quotient of a step in one world."""
    leaks = {}
    keys = [(name, table.bare, f) for name, table, f in zip(plan.names[world], plan.tables, plan.f, strict=True)]
    for i, key in enumerate(keys):
        if key not in leaks:
            sharer = read_sharer(plan.tables[i], plan.worlds[world][i], plan.f[i], plan.honest, q)
            leaks[key] = sharer.quotient(), sharer.spread()
    quotients: list[Fraction | None] = []
    for i, key in enumerate(keys):
        own, mine = leaks[key]
        spreads = [leaks[other][1] for n, other in enumerate(keys) if n != i]
        known = sorted((spread for spread in spreads if spread is not None), reverse=True)
        if own is None or mine is None or len(known) < len(spreads):
            quotients.append(None)
        else:
            quotients.append(math.prod(known[: plan.honest - 1], start=own * mine))
    return quotients


def _shares_alone(plan: Plan, quotients: Sequence[Fraction | None], sharers: Sequence[Sharer]) -> Figures:
    """Shares of noise and nothing else. For `beta <= 1` the law is log-convex on each side (its values are moments of a
    measure on `[0, q]`), so that a step of one changes it by `Pr[0]/Pr[1]` at most."""
    q, ordinary, own = sharers[0].q, [], []
    for sharer in sharers:
        law = Shares(sharer.beta, q, 1)
        ordinary.append(Fraction(law.above[0], law.below[1]) ** abs(sharer.f))
        own.append(share_mean(sharer.beta, q))
    total = sum((sharer.beta for sharer in sharers), Fraction(0))
    return Figures(quotients, ordinary, own, share_mean(total, q), spread_of(total, q))


@dataclass(frozen=True)
class Errors:
    """The error `N = s - f x` of one entity: its law up to a cut, and bounds of what lies beyond it."""

    law: Law
    rare: Fraction
    """`Pr[|N| > cut]`."""
    beyond: Fraction
    """`E[|N|; |N| > cut]`."""
    absolute: Fraction
    square: Fraction
    mean: tuple[Fraction, Fraction]


def _redrawn(sharer: Sharer, bits: int) -> dict[int, Pair]:
    """At least and at most what a table adds to the probability of each error, over `2^bits`.

    It moves what noise would have given to where its row says.
    """
    changes: dict[int, Pair] = {}
    prior, m = sharer.prior.total, sharer.table.denominator
    unit, chances = prior.unit * sharer.contracted_unit * m, dict(prior.items())
    unit <<= sharer.noise.bits if sharer.has_table else 0
    for x, line, mass in zip(sharer.served, sharer.base, sharer.masses, strict=True):
        chance, row = chances.get(x, 0), dict(sharer.table.rows[x - sharer.served.start])
        if not chance:
            continue
        spend(4 * len(line), unit.bit_length() + 8 * bits)
        for s, base in zip(sharer.outputs, line, strict=True):
            weight, k = row.get(s, 0), s - sharer.f * x
            under, over = changes.get(k, (0, 0))
            under += (chance * (mass[0] * weight - m * base[1]) << bits) // unit
            over -= (chance * (m * base[0] - mass[1] * weight) << bits) // unit
            changes[k] = under, over
    return changes


def _moved(sharer: Sharer) -> dict[int, int]:
    """The law of the shift `f (y - x)` of the contraction, over the units of the prior and of the contraction."""
    found: dict[int, int] = {}
    for x, weight in sharer.prior.total.items():
        spend(len(sharer.moved(x)), sharer.prior.total.unit.bit_length())
        for y, inside in sharer.moved(x):
            shift = sharer.f * (y - x)
            found[shift] = found.get(shift, 0) + weight * inside
    return found


def _around(moved: Mapping[int, int], unit: int, noise: Shares, cut: int) -> tuple[list[int], list[int]]:
    """Enclosures of the law of the shift plus noise on `-cut..cut`, over `2^(GUARD + noise.bits)`."""
    reach = max(map(abs, moved))
    shift = [moved.get(k, 0) << GUARD for k in range(-reach, reach + 1)]
    spend(2 * len(shift), unit.bit_length() + GUARD)
    below, above = [weight // unit for weight in shift], [-(-weight // unit) for weight in shift]
    low, high = (
        multiplied(weights, [values[abs(e)] for e in range(-cut - reach, cut + reach + 1)])
        for weights, values in ((below, noise.below), (above, noise.above))
    )
    inner = slice(2 * reach, 2 * reach + 2 * cut + 1)
    return low[inner], high[inner]


def _errors(sharer: Sharer) -> Errors:
    q, moved = sharer.q, _moved(sharer)
    reach = max(map(abs, moved))
    far = max(sharer.farthest, 130 * 64 // bits_lost(q)) + 1
    cut, whole = reach + far, sharer.prior.total.unit * sharer.contracted_unit
    noise = Shares(sharer.beta, q, cut + reach, relative=False)
    bits = GUARD + noise.bits
    low, high = _around(moved, whole, noise, cut)
    square, least, most = 0, 0, 0  # what the table adds to the moments, over 2^bits
    for k, (under, over) in _redrawn(sharer, bits).items():
        low[k + cut] += under
        high[k + cut] += over
        square += k * k * over
        least += k * (under if k > 0 else over)
        most += k * (over if k > 0 else under)
    law = shortened(Law(-cut, [max(value, 0) for value in low], high, 1 << bits), relative=False)
    # |N| > cut only if the noise exceeds `far`, and Pr[x+1] <= q Pr[x] there.
    edge, a = 2 * Fraction(noise.above[far], 1 << noise.bits), far + reach
    rare, beyond = edge * q / (1 - q), edge * (a * q / (1 - q) + q / (1 - q) ** 2)
    shifted = Fraction(sum(k * weight for k, weight in moved.items()), whole)
    squared = Fraction(sum(k * k * weight for k, weight in moved.items()), whole) + spread_of(sharer.beta, q)
    mean = shifted + Fraction(least, 1 << bits), shifted + Fraction(most, 1 << bits)
    return Errors(law, rare, beyond, law.moment(1) + beyond, squared + Fraction(square, 1 << bits), mean)


def _aggregate(errors: Sequence[Errors], counts: Sequence[int]) -> tuple[Fraction, Fraction]:
    """At least the mean absolute and the mean squared error of the sum of so many of each."""
    total = POINT
    for error, count in zip(errors, counts, strict=True):
        power = error.law
        while count:
            if count & 1:
                total = shortened(convolved(total, power), relative=False)
            count >>= 1
            power = shortened(convolved(power, power), relative=False) if count else power
    pairs = list(zip(errors, counts, strict=True))
    every = sum((error.absolute * count for error, count in pairs), Fraction(0))
    cut = sum((count * (error.beyond + error.rare * (every - error.absolute)) for error, count in pairs), Fraction(0))
    square, means = Fraction(0), [Fraction(0), Fraction(0)]
    for error, count in pairs:  # E (sum N)^2 = sum of E N^2 + (sum of means)^2 - sum of (mean)^2
        low, high = error.mean
        least = Fraction(0) if low <= 0 <= high else min(low * low, high * high)
        square += count * (error.square - least)
        means = [means[0] + count * low, means[1] + count * high]
    return total.moment(1) + cut, square + max(mean * mean for mean in means)
