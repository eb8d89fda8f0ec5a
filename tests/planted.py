"""Samplers with a known flaw: on one event the quotient of two secrets is exactly `e^excess` times what is claimed.

Input `x` goes into the event with probability `low + gain [x >= edge]` (or `x < edge`), where the two numbers solve

    Pr[S | less likely] = low + gain Pr[x >= edge | less likely] = mass
    Pr[S | more likely] = low + gain Pr[x >= edge | more likely] = mass e^(epsilon + excess).

Outside the event a "pure" plant draws from one law whatever the input: nothing else is given away. The other kind draws
from the artifact's table, and from that law if the output lies in the event.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp import NoiseMatrix, Population, Source
from optdp.mechanism.columns import many
from optdp.numbers.pmf import ExactPmf

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Plant:
    event: Integers
    low: float
    gain: float
    edge: int
    upwards: bool
    matrix: NoiseMatrix
    pure: bool
    random: np.random.Generator

    def chance(self, inputs: Integers) -> NDArray[np.float64]:
        """`Pr[S | x]`."""
        beyond = inputs >= self.edge if self.upwards else inputs < self.edge
        return self.low + self.gain * beyond

    def __call__(self, inputs: Integers) -> Integers:
        low, high = self.matrix.outputs
        elsewhere = np.setdiff1d(np.arange(low - 6, high + 3), self.event)
        outputs = self.random.choice(elsewhere, len(inputs))
        if not self.pure:
            drawn = many(self.matrix.drawing, inputs, Source(int(self.random.integers(2**63))))
            outputs = np.where(np.isin(drawn, self.event), outputs, drawn)
        planted = self.random.random(len(inputs)) < self.chance(inputs)
        return np.where(planted, self.random.choice(self.event, len(inputs)), outputs)


def plant(
    population: Population, matrix: NoiseMatrix, event: Integers, epsilon: float, mass: float = 0.05,
    excess: float = 0.1, pair: tuple[int, int] = (0, 1), pure: bool = True, seed: int = 0,
) -> Plant:  # fmt: skip
    """Plant `epsilon + excess` on `event`; `pair` is the less and the more likely contribution of the first person."""
    less, more = (_law(population.people[0].conditionals[w]) for w in pair)
    goal = mass * math.exp(epsilon + excess)
    assert goal < 1
    upwards = pair[1] > pair[0]
    found = []
    for edge in range(1, len(less)):
        part = slice(edge, None) if upwards else slice(0, edge)
        one, other = less[part].sum(), more[part].sum()
        if other <= one:
            continue
        gain = (goal - mass) / (other - one)
        low = mass - gain * one
        if low >= 0 and low + gain <= 1:
            found.append((float(low), float(gain), edge))
    assert found, "no kernel has this quotient: the prior hides too much"
    random = np.random.default_rng(seed)
    low, gain, edge = found[int(random.integers(len(found)))]
    return Plant(np.asarray(event), low, gain, edge, upwards, matrix, pure, random)


def _law(law: Any) -> NDArray[np.float64]:
    assert isinstance(law, ExactPmf)
    return np.array([float(law.fraction(x)) for x in range(law.last + 1)])


Events = Callable[[NoiseMatrix, np.random.Generator], Integers]


def _loose(matrix: NoiseMatrix, random: np.random.Generator) -> Integers:
    """Outputs beyond the table: none of its outputs, tight or not."""
    return np.arange(1, 4) + matrix.outputs[1] + 3


def _single(matrix: NoiseMatrix, random: np.random.Generator) -> Integers:
    return np.array([random.integers(matrix.outputs[0], matrix.outputs[1] + 1)])


def _run(matrix: NoiseMatrix, random: np.random.Generator) -> Integers:
    low, high = matrix.outputs
    first = int(random.integers(low, max(low + 1, high - 8)))
    return np.arange(first, min(first + 12, high))


def _scattered(matrix: NoiseMatrix, random: np.random.Generator) -> Integers:
    low, high = matrix.outputs
    return np.sort(random.choice(np.arange(low, high + 1), size=min(8, (high - low) // 2), replace=False))


def _half(matrix: NoiseMatrix, random: np.random.Generator) -> Integers:
    low, high = matrix.outputs
    return np.arange((low + high) // 2, high + 1)


EVENTS: dict[str, Events] = {
    "beyond the table": _loose,
    "one output": _single,
    "a run": _run,
    "scattered": _scattered,
    "half of all": _half,
}
"""Kinds of events, from the table and a source of chance."""
