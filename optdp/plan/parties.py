"""The parties of a plan in floating point: what their programs compute with. No claim rests on it.

**`Party`, in a joint plan**, has rows for a run of likely inputs; rarer inputs are served by the nearest row
(`outside = "clamp"`), so that their probability is merged there. Its laws are vectors over those rows: one for each
secret and one prior for each world. A table is an array of `Pr[s | x]`.

**`Entity`, which designs alone**, knows its own inputs, their laws given each secret, its share of noise, and how many
parties there are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import geometric_ratio, log, precision
from optdp.numbers.ordered import Array, convolve, exp, geometric, product, total
from optdp.numbers.pmf import Pmf
from optdp.numbers.sgdl import SGDL
from optdp.people.population import Population
from optdp.plan.problem import MultiLTE, each_once

RARE = 1e-13
"""Inputs beyond the rows have at most this probability on either side, in every world, whatever one person does."""


@dataclass(frozen=True)
class Party:
    """One party: the inputs that have rows, the outputs, and its laws in every world."""

    factor: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    epsilon: float
    """What two contributions of a person that are compared may reveal."""
    every: bool
    """Whether any two contributions are compared, or steps."""
    unit: float
    """Epsilon for a unit of the sum."""
    chain: float | None
    """The largest log-quotient of the rows of adjacent inputs, if there is a fallback."""
    priors: tuple[Array, ...]
    """For each world, the law of the input."""
    secrets: tuple[tuple[Array, ...], ...]
    """For each world and each kind of person, the laws of the input given `w = 0..D`, one row each."""

    def compared(self, laws: Iterable[Array]) -> Iterator[tuple[Array, Array]]:
        """Of laws that belong to the contributions `0..D` those that must look alike, two by two."""
        return combinations(laws, 2) if self.every else pairwise(laws)

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
    """Every party, its outputs reaching `margins` beyond its targets on either side; alike ones are one object.

    With `tail = "none"` they stay among the targets of all inputs.
    """
    worlds = list(zip(*problem.worlds, strict=True))  # for each party its populations

    def party_of(i: int) -> Party:
        populations, factor = worlds[i], problem.f[i]
        laws = [
            law
            for population in populations
            for law in (population.total, *(law for person in population.people for law in person.conditionals))
        ]
        first, last = min(_edge(law, False) for law in laws), max(_edge(law, True) for law in laws)
        if problem.never_worse is not None:  # rare inputs count as much as any
            first, last = 0, populations[0].last
        ends = sorted((factor * first, factor * last))
        low, high = ends[0] - margins[i], ends[1] + margins[i]
        if problem.tail == "none":
            least, most = sorted((0, factor * populations[0].last))
            low, high = max(low, least), min(high, most)
        fallback = problem.fallback_epsilon
        return Party(
            factor,
            (first, last),
            (low, high),
            float(problem.pair_epsilon(i)),
            problem.adjacency == "all",
            float(problem.epsilon / problem.sensitivity),
            None if fallback is None else float(fallback) / populations[0].largest,
            tuple(_merged(population.total, first, last) for population in populations),
            tuple(
                tuple(np.array([_merged(law, first, last) for law in person.conditionals]) for person in p.people)
                for p in populations
            ),
        )

    keys = zip((tuple(map(spelled, populations)) for populations in worlds), problem.f, margins, strict=True)
    return each_once(keys, party_of)


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
    if upwards:
        inputs = range(law.mode, law.last)
        return law.mode + bisect_left(inputs, True, key=lambda x: bool(law.geometric_sum(x, arb(1), True) < RARE))
    return bisect_left(range(1, law.mode + 1), True, key=lambda x: not law.geometric_sum(x, arb(1), False) < RARE)


def _merged(law: Pmf, first: int, last: int) -> Array:
    """The law on `first..last`, with what lies beyond merged into the ends."""
    values = np.array([float(value.mid()) for value in law.balls(first, last)])
    values[0] += float(law.geometric_sum(first, arb(1), False).mid())
    values[-1] += float(law.geometric_sum(last, arb(1), True).mid())
    merged: Array = np.maximum(values, 0.0)
    return merged


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


def rounded_table(inputs: tuple[int, int], outputs: tuple[int, int], table: Array, bits: int, last: int) -> NoiseMatrix:
    """A table as integers over `2^bits`: what rounding leaves of a row goes to its largest entry."""
    rows = []
    for row in table:
        weights = [round(value) for value in np.ldexp(row, bits).tolist()]
        weights[int(np.argmax(row))] += (1 << bits) - sum(weights)
        rows.append(tuple((outputs[0] + k, weight) for k, weight in enumerate(weights) if weight))
    return NoiseMatrix(inputs, outputs, 1 << bits, tuple(rows), None, "clamp", last)
