"""The error of a joint plan, in balls: what the aggregate of finite tables costs.

An entity's error `s - f x` has a finite law, a polynomial; the error of the aggregate has the product of all. Of very
many people the inputs far from the table are taken at its edge, which is served by the same row, and what that changes
is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_poly

from optdp.math.effort import product_steps, spend
from optdp.math.exact import upper_fraction
from optdp.math.pmf import Pmf
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.population import Population

EXPLICIT = 20_000
"""Inputs without a row whose errors are added one by one; the rest is bounded together."""


@dataclass(frozen=True)
class Errors:
    """The law of `s - f x` as a polynomial from `low`, but for rare inputs, which are taken at the nearest row."""

    law: arb_poly
    low: int
    beyond_mean: arb
    """At most this is added to the mean absolute error by the inputs that are taken elsewhere."""
    beyond_square: arb

    def plus(self, other: Errors) -> Errors:
        spend(product_steps(len(self.law), len(other.law)), "the error of the aggregate")
        square = (self.beyond_square.sqrt() + other.beyond_square.sqrt()) ** 2
        return Errors(self.law * other.law, self.low + other.low, self.beyond_mean + other.beyond_mean, square)

    def mean(self, power: int) -> arb:
        spend(0.8 * len(self.law), "the error of the aggregate")
        values = self.law.coeffs()
        return sum((value * abs(self.low + k) ** power for k, value in enumerate(values)), arb(0))


def error_laws(problem: MultiLTE, tables: Sequence[NoiseMatrix], populations: Sequence[Population]) -> list[Errors]:
    return [
        _error_law(factor, population.total, table)
        for factor, population, table in zip(problem.f, populations, tables, strict=True)
    ]


def aggregate_errors(laws: Sequence[Errors]) -> tuple[Fraction, Fraction]:
    queue = deque(laws)
    while len(queue) > 1:  # neighbours first: polynomials of like length are multiplied fastest
        queue.append(queue.popleft().plus(queue.popleft()))
    total = queue[0]
    mae = upper_fraction(total.mean(1) + total.beyond_mean)
    root = total.mean(2).sqrt() + total.beyond_square.sqrt()
    return mae, upper_fraction(total.mean(2) if total.beyond_square == 0 else root * root)


def _error_law(factor: int, law: Pmf, table: NoiseMatrix) -> Errors:
    (first, last), (low, high) = table.inputs, table.outputs
    begin, end = max(0, first - EXPLICIT), min(table.last, last + EXPLICIT)
    targets = (factor * begin, factor * end)
    least = low - max(targets)
    size = high - least - min(targets) + 1
    longest = max(map(len, table.rows)) * (0.6 + table.denominator.bit_length() / 3000)
    spend(size / 3 + (end - begin + 1) * (1 + longest), "errors of reports")
    values = [arb(0)] * size
    for x, chance in zip(range(begin, end + 1), law.balls(begin, end), strict=True):
        if chance == 0:
            continue
        share, shift = chance / table.denominator, least + factor * x
        for s, weight in table.rows[min(max(x, first), last) - first]:
            values[s - shift] += share * weight
    beyond, square = arb(0), arb(0)
    for edge, upwards, reach in ((begin, False, begin), (end, True, table.last - end)):
        if reach:
            mass = law.geometric_sum(edge, arb(1), upwards)
            for s, weight in table.rows[-1 if upwards else 0]:  # taken at the edge, which is served by the same row
                values[s - least - factor * edge] += mass * weight / table.denominator
            beyond += mass * abs(factor) * reach
            square += mass * (factor * reach) ** 2
    return Errors(arb_poly(values), least, beyond, square)
