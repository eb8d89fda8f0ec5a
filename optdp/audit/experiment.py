"""What is drawn to audit the table of one entity: arms that must look alike, and the law that each should follow.

An arm is a secret (one contribution of one kind of person under one prior), whose inputs are drawn from the law of the
sum given that secret; or, if ordinary privacy is claimed, one input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers import draws
from optdp.numbers.exact import ball, precision
from optdp.numbers.pmf import BinomialPmf, ExactPmf, Pmf
from optdp.numbers.source import Source
from optdp.single.laws import Laws, Secret, Shape
from optdp.single.problem import SingleLTE

MARGIN = 24
"""Outputs on either side of a table that are told apart; those farther out are one bin."""
PAIRS = 2
"""How many of the tightest pairs of inputs are compared, besides the likeliest."""
MOST_CELLS = 1 << 24
"""The most entries of laws and of counts that are held."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bins = NDArray[np.int64]
"""An event: which of the bins of a `Space`."""
Inputs = Callable[[Source, int], Integers]


@dataclass(frozen=True)
class Space:
    """The bins: 0 is everything below `low`, then one for each output, and the last is everything above `high`."""

    low: int
    high: int

    def bins(self, outputs: Integers) -> Integers:
        """The bin of each output."""
        return np.clip(outputs, self.low - 1, self.high + 1) - (self.low - 1)

    @property
    def width(self) -> int:
        return self.high - self.low + 3

    def words(self, event: Bins) -> str:
        """An event as outputs, in a line."""
        runs = self.runs(event)
        shown = ", ".join(_run(first, last) for first, last in runs[:6])
        return shown if len(runs) <= 6 else f"{shown}, ... ({len(event):,} outputs)"

    def runs(self, event: Bins) -> list[tuple[int | None, int | None]]:
        """An event as runs of outputs; None is without end."""
        parts = np.split(event, np.flatnonzero(np.diff(event) > 1) + 1) if len(event) else ()
        ends = [(int(part[0]), int(part[-1])) for part in parts]
        low, beyond = self.low - 1, self.width - 1
        return [(a + low if a else None, b + low if b < beyond else None) for a, b in ends]


def _run(first: int | None, last: int | None) -> str:
    if first is None:
        return "any" if last is None else f"at most {last}"
    return f"at least {first}" if last is None else str(first) if first == last else f"{first}..{last}"


class Arm(NamedTuple):
    """What is known in one case, exact draws of its inputs, and the probability of each bin by the artifact."""

    words: str
    inputs: Inputs
    law: Floats


class Compared(NamedTuple):
    """Two arms whose log-quotient is claimed to be at most `epsilon / factor`, in both directions."""

    arms: tuple[int, int]
    epsilon: Fraction
    factor: Fraction
    claim: str


class Trial(NamedTuple):
    """Arms among which every draw chooses uniformly, and what is claimed of them."""

    space: Space
    arms: tuple[Arm, ...]
    comparisons: tuple[Compared, ...]


def trials(problem: SingleLTE, matrix: NoiseMatrix, epsilon: Fraction, ordinary: Fraction | None) -> list[Trial]:
    """Everything that is claimed of a table: `epsilon` under each prior, and the ordinary one if it is finite."""
    with precision():
        laws = Laws.build(problem, Shape.of(matrix))
        space = Space(matrix.outputs[0] - MARGIN, matrix.outputs[1] + MARGIN)
        if space.width * len(laws.secrets) > MOST_CELLS:
            raise ProblemError(
                f"An audit holds at most {MOST_CELLS:,} probabilities. Found {len(laws.secrets)} secrets with "
                f"{space.width:,} outputs. Audit a table with fewer kinds of people or outputs."
            )
        arms = [
            Arm(_words(secret, problem), inputs_of(secret.law), law)
            for secret, law in zip(laws.secrets, _laws(laws, matrix, space), strict=True)
        ]
    found = []
    for key in dict.fromkeys((secret.prior, secret.person) for secret in laws.secrets):
        members = [i for i, secret in enumerate(laws.secrets) if (secret.prior, secret.person) == key]
        place = {i: position for position, i in enumerate(members)}
        comparisons = tuple(
            Compared(
                (place[step.one], place[step.other]),
                problem.epsilon_of(key[0]) if problem.watched else epsilon,
                Fraction(laws.factor),
                problem.promise,
            )
            for step in laws.steps
            if step.one in place
        )
        found.append(Trial(space, tuple(arms[i] for i in members), comparisons))
    if ordinary is not None:
        found += _input_trials(problem, matrix, space, ordinary)
    return found


def inputs_of(law: Pmf) -> Inputs:
    """Exact draws of a sum."""
    if isinstance(law, BinomialPmf):
        n, p, shift = law.n, law.p, law.shift
        return lambda source, count: shift + draws.binomial(source, np.full(count, n, np.int64), p)
    if not isinstance(law, ExactPmf):
        raise ProblemError("Inputs are drawn from laws that are held exactly. Found another.")
    support = [x for x, weight in enumerate(law.weights) if weight]
    values = np.array(support, dtype=np.int64)
    if len(support) == 1:
        return lambda source, count: np.full(count, values[0], dtype=np.int64)
    ends = list(accumulate(law.weights[x] for x in support))

    def cdf() -> list[arb]:
        return [arb(fmpz(end)) / arb(fmpz(law.denominator)) for end in ends]

    table = draws.FiniteLaw(cdf)
    return lambda source, count: values[table.draws(source, count)]


def _words(secret: Secret, problem: SingleLTE) -> str:
    worlds = problem.worlds[secret.prior] if problem.watched else None
    if worlds is not None:
        return f"{worlds.describe(secret.person)}; the person and the known contribute {secret.contribution} together"
    prior = f"prior {secret.prior}, " if len(problem.populations) > 1 else ""
    kinds = len(problem.populations[secret.prior].people)
    return f"{prior}{f'person of kind {secret.person}' if kinds > 1 else 'a person'} contributes {secret.contribution}"


def _laws(laws: Laws, matrix: NoiseMatrix, space: Space) -> list[Floats]:
    """`Pr[bin | secret]` for each secret, from balls."""
    found = np.zeros((len(laws.secrets), space.width))
    for s, column in laws.columns(matrix.rows, matrix.denominator).items():
        found[:, s - space.low + 1] = [float(value / matrix.denominator) for value in column]
    if matrix.q is not None:
        for s in (*range(space.low, matrix.outputs[0]), *range(matrix.outputs[1] + 1, space.high + 1)):
            found[:, s - space.low + 1] = [float(value) for value in laws.geometric_column(s)]
        q = ball(matrix.q)
        for i, secret in enumerate(laws.secrets):
            found[i, 0] = float(_beyond(secret.law, q, space.low, upwards=False))
            found[i, -1] = float(_beyond(secret.law, q, space.high, upwards=True))
    return list(found)


def _beyond(law: Pmf, q: arb, edge: int, upwards: bool) -> arb:
    """The probability that geometric noise takes the sum above `edge` (upwards), or below it.

    From an input on the near side, `d >= 1` steps away from the first output beyond: `q^d / (1+q)`. From an input
    beyond, `d` steps away from the edge: `1 - q^d / (1+q)`.
    """
    step = 1 if upwards else -1
    near = law.geometric_sum(edge + step, q, not upwards)
    far, all_far = law.geometric_sum(edge, q, upwards), law.geometric_sum(edge, arb(1), upwards)
    return (near - far) / (1 + q) + all_far


# ---------------------------------------------------------------------- ordinary privacy: pairs of inputs


def row_law(matrix: NoiseMatrix, space: Space, x: int) -> Floats:
    """`Pr[bin | x]`."""
    row, law = matrix.row(x), np.zeros(space.width)
    inside = 1.0
    if matrix.q is not None:
        q, outputs = float(matrix.q), np.arange(space.low, space.high + 1)
        law[1:-1] = (1 - q) / (1 + q) * q ** np.abs(outputs - x).astype(np.float64)
        for place, steps in ((0, x - space.low + 1), (-1, space.high - x + 1)):
            law[place] = q**steps / (1 + q) if steps >= 1 else 1 - q ** (1 - steps) / (1 + q)
        with precision():
            inside = float(matrix.inside_mass(x))
    if row is not None:
        low, high = matrix.outputs
        law[low - space.low + 1 : high - space.low + 2] = 0.0
        for s, weight in row:
            law[s - space.low + 1] = inside * (weight / matrix.denominator)
    return law


def _input_trials(problem: SingleLTE, matrix: NoiseMatrix, space: Space, ordinary: Fraction) -> list[Trial]:
    reach, factor = (problem.largest, 1) if problem.adjacency == "all" else (1, problem.largest)
    claim = Compared((0, 1), ordinary, Fraction(factor), "ordinary epsilon")

    def arm(x: int) -> Arm:
        return Arm(f"the sum is {x}", lambda _, count: np.full(count, x, dtype=np.int64), row_law(matrix, space, x))

    pairs = _tightest(problem, matrix, space, reach, float(ordinary) / factor)
    return [Trial(space, (arm(x), arm(y)), (claim,)) for x, y in pairs]


def _tightest(
    problem: SingleLTE, matrix: NoiseMatrix, space: Space, reach: int, bound: float
) -> Sequence[tuple[int, int]]:
    """The pairs of inputs with the largest mass where their quotient is near the bound, and the likeliest pair."""
    mode = problem.populations[0].total.mode
    first, last = max(matrix.inputs[0] - reach, 0), min(matrix.inputs[1] + reach, matrix.last)
    most = max(2, MOST_CELLS // space.width // 2)
    if last - first >= most:
        first = max(first, min(mode - most // 2, last - most))
        last = min(last, first + most)
    rows = [row_law(matrix, space, x) for x in range(first, last + 1)]
    scores = [
        (max(_tight_mass(one, rows[j], bound), _tight_mass(rows[j], one, bound)), i, j)
        for i, one in enumerate(rows)
        for j in range(i + 1, min(i + reach, len(rows) - 1) + 1)
    ]
    pairs = [(first + i, first + j) for _, i, j in sorted(scores, key=lambda entry: -entry[0])[:PAIRS]]
    x = min(max(mode, first), last - 1) if last > first else first
    likely = [(x, min(x + reach, last))] if last > first else []
    return list(dict.fromkeys([*pairs, *likely]))


def _tight_mass(one: Floats, other: Floats, bound: float) -> float:
    """The mass of the outputs whose quotient is within a fiftieth of the bound."""
    return float(other[one >= math.exp(min(0.98 * bound, 700.0)) * other].sum())
