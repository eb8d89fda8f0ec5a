"""The error of a plan of finite tables given the sum, in balls: what `never_worse` promises.

Given that the parties' weighted inputs add up to `t`, a plan reports `S` with the mean absolute error

    E[|S - t| given t] = sum over x with f_1 x_1 + .. + f_m x_m = t of  Pr[x] E|s_1 + .. + s_m - t|  /  Pr[t].

All parties but the last are put together, one after the other: for each of their sums a polynomial, the law of their
reports. The last party comes in by `E|s + c|`, an integer over its denominator for each of its inputs and each `c`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from flint import arb, arb_poly

from optdp.mechanism.matrix import NoiseMatrix, Row
from optdp.numbers.exact import ball, precision, upper_fraction
from optdp.people.population import Population
from optdp.plan.problem import MultiLTE
from optdp.work.account import product_steps, spend


@dataclass(frozen=True)
class WorstSum:
    """The sum that is served worst, and its mean absolute error, an upper bound."""

    total: int
    mae: Fraction


def worst_sum(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> WorstSum:
    """The largest mean absolute error given any possible sum of all parties."""
    with precision():
        together = {0: (arb_poly([1]), arb(1))}
        low = 0
        for factor, population, table in zip(problem.f[:-1], problem.parties[:-1], tables[:-1], strict=True):
            together = _added(together, factor, population, table)
            low += table.outputs[0]
        found: dict[int, tuple[arb, arb]] = {}
        factor, population, table = problem.f[-1], problem.parties[-1], tables[-1]
        chances, unit = population.total.balls(0, population.last), ball(table.denominator)
        longest = max(len(law) for law, _ in together.values())
        ends = sorted(u + factor * x for u in together for x in (0, population.last))
        reach = low - ends[-1], low + longest - 1 - ends[0]  # of what the others report, less the sum of all
        spend(sum(len(law) for law, _ in together.values()) * len(chances) / 2, "errors of sums")
        for x, chance in enumerate(chances):
            if chance == 0:
                continue
            costs = _mean_distances(_row(table, x), *reach)
            share = chance / unit
            for u, (law, mass) in together.items():
                t = u + factor * x
                start = low - t - reach[0]
                error = sum((value * costs[start + k] for k, value in enumerate(law.coeffs())), arb(0))
                known = found.get(t, (arb(0), arb(0)))
                found[t] = known[0] + share * error, known[1] + chance * mass
        errors = {t: upper_fraction(error / mass) for t, (error, mass) in found.items()}
    worst = max(errors, key=lambda t: (errors[t], -t))
    return WorstSum(worst, errors[worst])


def _added(
    together: dict[int, tuple[arb_poly, arb]], factor: int, population: Population, table: NoiseMatrix
) -> dict[int, tuple[arb_poly, arb]]:
    """For each sum of one party more: its probability, and that together with the law of the reports."""
    found: dict[int, tuple[arb_poly, arb]] = {}
    low, high = table.outputs
    for x, chance in enumerate(population.total.balls(0, population.last)):
        if chance == 0:
            continue
        line, share = [arb(0)] * (high - low + 1), chance / ball(table.denominator)
        for s, weight in _row(table, x):
            line[s - low] = share * weight
        own = arb_poly(line)
        for u, (law, mass) in together.items():
            spend(product_steps(len(law), len(own)), "reports given each sum")
            t = u + factor * x
            known = found.get(t, (arb_poly([0]), arb(0)))
            found[t] = known[0] + law * own, known[1] + mass * chance
    return found


def _row(table: NoiseMatrix, x: int) -> Row:
    """The row that serves an input: the nearest."""
    first, last = table.inputs
    return table.rows[min(max(x, first), last) - first]


def _mean_distances(row: Row, first: int, last: int) -> list[int]:
    """`sum over s of weight |s + c|` for `c = first..last`: it rises by the weight above `-c` less that at or below."""
    spend((last - first + 1) / 10 + len(row), "errors of sums")
    at = dict(row)
    steps, below = [sum(weight * abs(s + first) for s, weight in row)], sum(w for s, w in row if s < -first)
    whole = sum(at.values())
    for c in range(first, last):
        # from c to c + 1 what lies at or above -c gains one, and what lies below it loses one
        steps.append(whole - 2 * below)
        below -= at.get(-c - 1, 0)
    return list(accumulate(steps))
