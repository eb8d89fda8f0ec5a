"""The parties of a plan in floating point: what the block programs compute with. No claim rests on it.

A party has rows for a run of likely inputs; rarer inputs are served by the nearest row (`outside = "clamp"`), so that
their probability is merged there. Its laws are vectors over those rows: one for each secret and one prior for each
world. A table is an array of `Pr[s | x]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.ordered import Array, convolve
from optdp.numbers.pmf import Pmf
from optdp.people.population import Population
from optdp.plan.problem import MultiLTE

RARE = 1e-13
"""Inputs beyond the rows have at most this probability on either side, in every world, whatever one person does."""


@dataclass(frozen=True)
class Party:
    """One party: the inputs that have rows, the outputs, and its laws in every world."""

    factor: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    epsilon: float
    """What one step of one person may give away."""
    chain: float | None
    """The largest log-quotient of the rows of adjacent inputs, if there is a fallback."""
    priors: tuple[Array, ...]
    """For each world, the law of the input."""
    secrets: tuple[tuple[Array, ...], ...]
    """For each world and each kind of person, the laws of the input given `w = 0..D`, one row each."""

    @property
    def targets(self) -> Array:
        """What each row should report: the coefficient times the input."""
        return self.factor * np.arange(self.inputs[0], self.inputs[1] + 1.0)

    @property
    def reports(self) -> Array:
        """The outputs."""
        return np.arange(self.outputs[0], self.outputs[1] + 1.0)

    def table(self, matrix: NoiseMatrix) -> Array:
        """The rows of a matrix made for the unweighted sum, with its outputs multiplied by the coefficient."""
        table = np.zeros((self.inputs[1] - self.inputs[0] + 1, self.outputs[1] - self.outputs[0] + 1))
        for i, x in enumerate(range(self.inputs[0], self.inputs[1] + 1)):
            for s, weight in matrix.row(x) or ():
                place = min(max(self.factor * s, self.outputs[0]), self.outputs[1]) - self.outputs[0]
                table[i, place] += weight / matrix.denominator
        return table

    def error_law(self, table: Array) -> tuple[Array, int]:
        """The law of `s - f x` in the first world, and its smallest value."""
        low = self.outputs[0] - int(self.targets.max())
        high = self.outputs[1] - int(self.targets.min())
        law = np.zeros(high - low + 1)
        for chance, target, row in zip(self.priors[0], self.targets, table, strict=True):
            start = self.outputs[0] - int(target) - low
            law[start : start + len(row)] += chance * row
        return law, low


def parties_of(problem: MultiLTE, margins: Sequence[int]) -> list[Party]:
    """Every party, its outputs reaching `margins` beyond its targets on either side; alike ones are one object."""
    found: list[Party] = []
    known: dict[Any, Party] = {}
    for i, factor in enumerate(problem.f):
        populations = [world[i] for world in problem.worlds]
        key = (*map(spelled, populations), factor, margins[i])
        if key in known:
            found.append(known[key])
            continue
        laws = [
            law
            for population in populations
            for law in (population.total, *(law for person in population.people for law in person.conditionals))
        ]
        first, last = min(_edge(law, False) for law in laws), max(_edge(law, True) for law in laws)
        ends = sorted((factor * first, factor * last))
        chain = None
        if problem.fallback_epsilon is not None:
            chain = float(problem.fallback_epsilon) / populations[0].largest
        known[key] = Party(
            factor,
            (first, last),
            (ends[0] - margins[i], ends[1] + margins[i]),
            float(problem.step_epsilon(i)),
            chain,
            tuple(_merged(population.total, first, last) for population in populations),
            tuple(
                tuple(np.array([_merged(law, first, last) for law in person.conditionals]) for person in p.people)
                for p in populations
            ),
        )
        found.append(known[key])
    return found


def spelled(population: Population) -> str:
    """What tells populations apart: how they stand in a file."""
    return str(population.spec)


def width(population: Population) -> int:
    """About how many inputs have a row: those within some 7 standard deviations of the mean."""
    if not population.laws:
        return population.last + 1
    variance = 0.0
    for law, count in population.laws:
        mean = sum(float(chance) * w for w, chance in enumerate(law))
        variance += count * sum(float(chance) * (w - mean) ** 2 for w, chance in enumerate(law))
    return min(population.last + 1, math.ceil(14 * math.sqrt(variance)) + 1)


def power(law: Any, count: int) -> Any:
    """The law of the sum of `count` independent values, by squaring."""
    result = np.ones(1, dtype=law.dtype)
    while count:
        if count & 1:
            result = convolve(result, law)
        count >>= 1
        law = convolve(law, law) if count else law
    return result


def _edge(law: Pmf, upwards: bool) -> int:
    """The outermost input beyond which there is less than `RARE`."""
    low, high = (law.mode, law.last) if upwards else (0, law.mode)

    def beyond(x: int) -> arb:
        return law.geometric_sum(x, arb(1), upwards)

    while low < high:
        middle = (low + high) // 2 if upwards else (low + high + 1) // 2
        if upwards:
            low, high = (low, middle) if beyond(middle) < RARE else (middle + 1, high)
        else:
            low, high = (middle, high) if beyond(middle) < RARE else (low, middle - 1)
    return low


def _merged(law: Pmf, first: int, last: int) -> Array:
    """The law on `first..last`, with what lies beyond merged into the ends."""
    values = np.array([float(value.mid()) for value in law.balls(first, last)])
    values[0] += float(law.geometric_sum(first, arb(1), False).mid())
    values[-1] += float(law.geometric_sum(last, arb(1), True).mid())
    merged: Array = np.maximum(values, 0.0)
    return merged
