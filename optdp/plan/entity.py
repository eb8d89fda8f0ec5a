"""One party as it sees itself, in floating point: what its programs compute with. No claim rests on it.

It knows its own inputs, their laws given each secret, its share of noise, and how many parties there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optdp.errors import ProblemError
from optdp.numbers.exact import geometric_ratio, precision
from optdp.numbers.ordered import Array, exp, geometric, log, product, total
from optdp.numbers.sgdl import SGDL
from optdp.plan.problem import MultiLTE

Integers = npt.NDArray[np.int64]
Cost = Callable[[npt.NDArray[Any]], Array]

SPAN = 400_000
"""How far noise is written out."""


@dataclass(frozen=True)
class Entity:
    """A party with the inputs `0..last` and its share of noise."""

    last: int
    mode: int
    factor: int
    noise: SGDL
    limit: float
    """`e^(step epsilon)`, less a reserve: the bound of (*) in `contraction.py`."""
    copies: int
    """How many parties there are; each takes the others to be like itself."""
    power: int
    prior: Array
    laws: Array
    """The law of the input given each secret, one row each."""
    steps: tuple[tuple[int, int], ...]
    """Pairs of secrets that must look alike."""

    @staticmethod
    def of(problem: MultiLTE, party: int, level: Fraction = Fraction(1), reserve: Fraction = Fraction(0)) -> Entity:
        """Party number `party` of `problem`, at a level of noise and with a share of epsilon kept in reserve."""
        population = problem.parties[party]
        with precision():
            prior = [float(value) for value in population.total.balls(0, population.last)]
            laws: list[list[float]] = []
            steps: list[tuple[int, int]] = []
            for person in population.people:
                steps += [(len(laws) + w, len(laws) + w + 1) for w in range(person.largest)]
                laws += [[float(value) for value in law.balls(0, population.last)] for law in person.conditionals]
        kept = 1 - reserve
        return Entity(
            last=population.last,
            mode=population.total.mode,
            factor=problem.f[party],
            noise=SGDL(
                Fraction(1, problem.honest), geometric_ratio(problem.epsilon * kept * level / problem.sensitivity)
            ),
            limit=exp(float(problem.step_epsilon(party) * kept)),
            copies=len(problem.parties),
            power=1 if problem.objective == "mae" else 2,
            prior=np.array(prior),
            laws=np.array(laws),
            steps=tuple(steps),
        )

    @cached_property
    def importance(self) -> Array:
        """How much an input matters to anything."""
        return np.asarray((self.prior + total(self.laws, axis=0) / len(self.laws)) / 2, dtype=np.float64)

    @cached_property
    def reach(self) -> int:
        """How far noise goes before it is negligible."""
        return math.ceil(40 / -log(float(self.noise.q))) + 1

    @cached_property
    def chances(self) -> Array:
        """The probabilities of noise `-half..half`, enough for any two places near the inputs."""
        span = 2 * self.reach + 3 * abs(self.factor) * (self.last + 1)
        if span > SPAN:
            raise ProblemError(
                f"Noise that reaches {span:,} is too wide to be written out; at most {SPAN:,}. Use a larger epsilon, "
                'smaller coefficients, contraction = "optimal", or method = "geometric".'
            )
        half = self.noise.pmf(np.arange(span + 1))
        return np.concatenate([half[:0:-1], half])

    @property
    def half(self) -> int:
        return len(self.chances) // 2

    def kernel(self, places: Integers, outputs: Integers) -> Array:
        """`SGDL(s - f y)`, one row for each place `y`."""
        gaps = outputs[None, :] - self.factor * places[:, None]
        return np.asarray(self.chances[gaps + self.half], dtype=np.float64)

    def own_cost(self, gaps: npt.NDArray[Any]) -> Array:
        """`|gap|^power`."""
        floats = np.asarray(gaps, dtype=np.float64)
        return np.abs(floats) if self.power == 1 else floats * floats

    def noisy_cost(self) -> Cost:
        """`E |gap + e|^power` over this party's share of noise `e`."""
        return expected_cost(self.chances, self.power)

    def core(self, share: float) -> Integers:
        """The run of inputs outside which each has at most `share` of the importance of the likeliest."""
        likely = np.flatnonzero(self.importance > share * self.importance.max())
        return np.arange(likely[0], likely[-1] + 1)

    def window(self, moved: Array, inputs: Integers, share: float) -> Integers:
        """The outputs of a table: around the inputs that have rows, but for what falls beyond with at most `share`."""
        low, high = sorted((self.factor * int(inputs[0]), self.factor * int(inputs[-1])))
        pad = abs(self.factor) * max(4, int(inputs[-1] - inputs[0]) // 4)
        outputs = np.arange(low - pad, high + pad + 1)
        mass = product(product(self.importance, moved), self.kernel(np.arange(self.last + 1), outputs))
        below = np.cumsum(mass) + (1 - total(mass)) / 2
        likely = np.flatnonzero((below > share) & (below < 1 - share))
        return outputs[likely[0] : likely[-1] + 1] if len(likely) else outputs

    def quotient(self, moved: Array, q: float | None = None) -> float:
        """The largest quotient of (*) for the contraction `moved`, for this party's `q` or another."""
        ratio = float(self.noise.q) if q is None else q
        places = np.arange(self.last + 1)
        seen = product(product(self.laws, moved), decay(places, ratio, self.factor))
        worst = 1.0
        for one, other in self.steps:
            known = (seen[one] > 0) | (seen[other] > 0)  # else below every float; the certificate decides
            with np.errstate(divide="ignore"):
                ratio = seen[one][known] / seen[other][known]
                worst = max(worst, float(ratio.max()), float((1 / ratio).max()))
        return worst


def decay(places: Integers, q: float, factor: int) -> Array:
    """`q^(|f||z-y|)`."""
    gaps = np.abs(places[None, :] - places[:, None])
    return np.asarray(geometric(q, abs(factor) * int(gaps.max()) + 1)[abs(factor) * gaps], dtype=np.float64)


def expected_cost(law: Array, power: int) -> Cost:
    """`E |gap + N|^power`, if `N` has this law on `-half..half`."""
    half = len(law) // 2
    places = np.arange(-half, half + 1.0)
    if power == 2:
        mass, mean, square = float(total(law)), float(product(law, places)), float(product(law, places * places))
        return lambda gaps: np.asarray(mass * gaps * gaps + 2 * mean * gaps + square, dtype=np.float64)
    below = np.cumsum(law)
    slopes = (
        below[-1] - 2 * below[::-1]
    )  # of E|k + N| from k to k + 1, where k = -half.. : Pr[N > -k-1] - Pr[N <= -k-1]
    values = float(product(np.abs(places - half), law)) + np.concatenate([[0.0], np.cumsum(slopes[1:])])

    def cost(gaps: npt.NDArray[Any]) -> Array:
        inside = np.clip(gaps, -half, half)
        return np.asarray(values[inside + half] + below[-1] * np.abs(gaps - inside), dtype=np.float64)

    return cost
