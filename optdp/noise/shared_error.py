"""The error of entities that share noise, in balls: what an aggregate costs, infinite tails included.

An entity's error `N = s - f x` has the law `a * SGDL + g`: `a` the law of `f (y - x)`, where the contraction takes `x`
to `y`, and `g` finite, what the table changes. Its moments are closed forms, with `E|k + e|` from its second
differences, which are `2 Pr[e = k]`. The mean of `|N_1 + .. + N_m|` is taken over laws cut at `|N_i| <= R`, plus a
bound of all that was cut,

    sum over i of  E[|N_i|; |N_i| > R] + Pr[|N_i| > R] sum over j != i of E|N_j|,

for `|N_1 + .. + N_m|` is at most `|N_1| + .. + |N_m|`, and if not all are inside, some `N_i` is outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_poly

from optdp.math.effort import product_steps, spend
from optdp.math.exact import ball, upper_fraction
from optdp.math.sgdl import SGDL
from optdp.noise.population import Population
from optdp.noise.shared_noise import SharedNoise

CUT = 45.0
"""Error laws are cut where geometric noise has fallen by a factor `e^-CUT`; what is cut is bounded."""


@dataclass(frozen=True)
class ErrorLaw:
    """The error of one entity: its law on `-cut..cut`, its moments, and what lies beyond the cut."""

    cut: int
    inside: list[arb]
    absolute: arb
    mean: arb
    square: arb

    @staticmethod
    def of(population: Population, noise: SharedNoise, cut: int) -> ErrorLaw:
        prior, f = population.total.balls(0, population.last), noise.factor
        spend(len(prior) if noise.contraction is None else sum(map(len, noise.contraction)), "errors of shares")
        moved: dict[int, arb] = {}
        for x, chance in enumerate(prior):
            for y, weight in noise.contracted(x):
                moved[f * (y - x)] = moved.get(f * (y - x), arb(0)) + chance * weight
        moved = {k: value / noise.contraction_denominator for k, value in moved.items()}
        farthest = max(abs(k) for k in moved)
        values = noise.noise.balls(0, cut + farthest)
        start = min(moved)
        spend(product_steps(max(moved) - start + 1, 2 * (cut + farthest) + 1) + cut, "errors of shares")
        shift = arb_poly([moved.get(k, arb(0)) for k in range(start, max(moved) + 1)])
        spread_out = shift * arb_poly([values[abs(e)] for e in range(-cut - farthest, cut + farthest + 1)])
        law = [spread_out[k - start + cut + farthest] for k in range(-cut, cut + 1)]
        changes = _changes(noise, prior, values)
        for k, value in changes.items():
            law[k + cut] += value
        tent = _tent(noise.noise, values, farthest)
        absolute = sum((value * tent[abs(k)] for k, value in moved.items()), arb(0))
        mean = sum((value * k for k, value in (*moved.items(), *changes.items())), arb(0))
        square = sum((value * k * k for k, value in (*moved.items(), *changes.items())), ball(noise.noise.variance))
        absolute += sum((value * abs(k) for k, value in changes.items()), arb(0))
        return ErrorLaw(cut, law, absolute, mean, square)

    @property
    def beyond(self) -> arb:
        """`Pr[|N| > cut]`."""
        return 1 - sum(self.inside, arb(0))

    @property
    def absolute_beyond(self) -> arb:
        """`E[|N|; |N| > cut]`."""
        return self.absolute - sum((abs(i - self.cut) * value for i, value in enumerate(self.inside)), arb(0))


def _tent(noise: SGDL, values: Sequence[arb], reach: int) -> list[arb]:
    """`E|k + e|` for `k = 0..reach`: its second difference is `2 Pr[e = k]`, and it is even."""
    tent = [noise.mean_absolute()]
    slope = values[0]
    for k in range(1, reach + 1):
        tent.append(tent[-1] + slope)
        slope += 2 * values[k]
    return tent


def _changes(noise: SharedNoise, prior: Sequence[arb], values: Sequence[arb]) -> dict[int, arb]:
    """`g`: what the table adds to the law of the error of the base kernel."""
    if not noise.rows:
        return {}
    (low, high), f = noise.outputs, noise.factor
    changes: dict[int, arb] = {}
    moves = sum(len(noise.contracted(x)) for x in range(noise.inputs[0], noise.inputs[1] + 1))
    spend((moves + 3 * len(noise.rows)) * (high - low + 1) * 0.6, "errors of shares")
    for x, row in enumerate(noise.rows, start=noise.inputs[0]):
        base = [arb(0)] * (high - low + 1)
        for y, weight in noise.contracted(x):
            share = ball(Fraction(weight, noise.contraction_denominator))
            for s in range(low, high + 1):
                base[s - low] += share * values[abs(s - f * y)]
        mass, table = sum(base, arb(0)), dict(row)
        for s, was in enumerate(base, start=low):
            change = prior[x] * (mass * table.get(s, 0) / noise.denominator - was)
            changes[s - f * x] = changes.get(s - f * x, arb(0)) + change
    return changes


def table_reach(noise: SharedNoise) -> int:
    """How far an output of the table can be from any `f x`."""
    ends = (0, noise.factor * noise.last)
    return max(max(ends) - min(*ends, noise.outputs[0]), max(*ends, noise.outputs[1]) - min(ends))


def exact_mean_absolute(total: SGDL) -> Fraction:
    if total.beta == 1:
        return 2 * total.q / (1 - total.q**2)
    return upper_fraction(total.mean_absolute())


def aggregate_mae(errors: Mapping[int, ErrorLaw], counts: Mapping[int, int]) -> Fraction:
    product, centre, every = arb_poly([1]), 0, arb(0)
    for i, error in errors.items():
        size = len(error.inside) * counts[i]  # squaring takes a few products, the last of which is the longest
        spend(1.4 * product_steps(size // 2, size // 2) + size, "the error of the aggregate")
        if len(errors) > 1:
            spend(product_steps(len(product), size), "the error of the aggregate")
        product *= arb_poly(error.inside) ** counts[i]
        centre += error.cut * counts[i]
        every += counts[i] * error.absolute
    total = sum((abs(k - centre) * value for k, value in enumerate(product.coeffs())), arb(0))
    for i, error in errors.items():
        total += counts[i] * (error.absolute_beyond + error.beyond * (every - error.absolute))
    return upper_fraction(total)


def aggregate_mse(errors: Mapping[int, ErrorLaw], counts: Mapping[int, int]) -> Fraction:
    variance = sum((counts[i] * (error.square - error.mean**2) for i, error in errors.items()), arb(0))
    bias = sum((counts[i] * error.mean for i, error in errors.items()), arb(0))
    return upper_fraction(variance + bias**2)
