"""Plans of shares of noise: what all parties give away together, and the error of their aggregate.

The quotient of a party's people is at most its `Q` times its own spread and the `honest - 1` largest spreads of others
(the proof stands in `sharer`). Larger sets add independent terms, which raises no quotient.

The error of an aggregate is summed over laws cut at `|N_i| <= R`, plus `sum of E[|N_i|; |N_i| > R] + Pr[|N_i| > R] sum
of the other E|N_j|`, which bounds what was cut. These laws are enclosed to `2^-GUARD` of 1, not of each value. Means
and squares are not cut: without a table `N` is the shift of the contraction plus noise, whose mean is 0 and whose
variance is known, and a table moves finitely many values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .geometric import bits_lost
from .laws import POINT, Law, convolved, multiplied, shortened
from .plans import Figures, Plan, demand_privacy
from .sgdl import Shares, share_mean, spread_of
from .sharer import Sharer, read_sharer
from .verdict import GUARD, spend


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
    leaks = [(sharer.quotient(), sharer.spread()) for sharer in sharers]
    quotients: list[Fraction | None] = []
    for i, k in enumerate(places):
        own, spreads = leaks[k][0], [leaks[j][1] for n, j in enumerate(places) if n != i]
        known = sorted((spread for spread in spreads if spread is not None), reverse=True)
        mine = leaks[k][1]
        if own is None or mine is None or len(known) < len(spreads):
            quotients.append(None)
        else:
            quotients.append(math.prod(known[: plan.honest - 1], start=own * mine))
    demand_privacy(plan, quotients)
    if all(sharer.plain for sharer in sharers):
        return _shares_alone(plan, quotients, [sharers[k] for k in places])
    errors = [Errors.of(sharer) for sharer in sharers]
    mae, mse = _aggregate(errors, counts)
    return Figures(quotients, [None] * len(places), [errors[k].absolute for k in places], mae, mse)


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

    @staticmethod
    def of(sharer: Sharer) -> Errors:
        moved: dict[int, int] = {}
        prior, f, q = sharer.prior.total, sharer.f, sharer.q
        for x, weight in prior.items():
            spend(len(sharer.moved(x)), prior.unit.bit_length())
            for y, inside in sharer.moved(x):
                moved[f * (y - x)] = moved.get(f * (y - x), 0) + weight * inside
        reach = max(map(abs, moved))
        far = max(sharer.farthest, 130 * 64 // bits_lost(q)) + 1
        cut = reach + far
        noise, m = Shares(sharer.beta, q, cut + reach, relative=False), sharer.table.denominator
        unit = prior.unit * sharer.contracted_unit
        shift = [moved.get(k, 0) << GUARD for k in range(-reach, reach + 1)]
        spend(2 * len(shift), unit.bit_length() + GUARD)
        shifts = [weight // unit for weight in shift], [-(-weight // unit) for weight in shift]
        sides = []
        for weights, values in zip(shifts, (noise.below, noise.above), strict=True):
            around = multiplied(weights, [values[abs(e)] for e in range(-cut - reach, cut + reach + 1)])
            sides.append(around[2 * reach : 2 * reach + 2 * cut + 1])
        low, high = sides  # over 2^bits
        bits, chances = GUARD + noise.bits, dict(prior.items())
        square, least, most = 0, 0, 0  # what the table adds to the moments, over 2^bits
        unit *= m << (sharer.noise.bits if sharer.has_table else 0)
        for x, line, mass in zip(sharer.served, sharer.base, sharer.masses, strict=True):
            chance, row = chances.get(x, 0), dict(sharer.table.rows[x - sharer.served.start])
            spend(4 * len(line) if chance else 0, unit.bit_length() + 8 * bits)
            for s, base in zip(sharer.outputs, line, strict=True) if chance else ():
                weight = row.get(s, 0)  # a table moves what noise would have given to where its row says
                under = (chance * (mass[0] * weight - m * base[1]) << bits) // unit
                over = -((chance * (m * base[0] - mass[1] * weight) << bits) // unit)
                k = s - f * x
                low[k + cut] += under
                high[k + cut] += over
                square += k * k * over
                least += k * (under if k > 0 else over)
                most += k * (over if k > 0 else under)
        law = shortened(Law(-cut, [max(value, 0) for value in low], high, 1 << bits), relative=False)
        # |N| > cut only if the noise exceeds `far`, and Pr[x+1] <= q Pr[x] there.
        edge, a = 2 * Fraction(noise.above[far], 1 << noise.bits), far + reach
        rare, beyond = edge * q / (1 - q), edge * (a * q / (1 - q) + q / (1 - q) ** 2)
        whole, scale = prior.unit * sharer.contracted_unit, 1 << bits
        shifted = Fraction(sum(k * weight for k, weight in moved.items()), whole)
        squared = Fraction(sum(k * k * weight for k, weight in moved.items()), whole) + spread_of(sharer.beta, q)
        mean = shifted + Fraction(least, scale), shifted + Fraction(most, scale)
        return Errors(law, rare, beyond, law.moment(1) + beyond, squared + Fraction(square, scale), mean)


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
