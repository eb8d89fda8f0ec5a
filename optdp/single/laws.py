"""What an observer compares: the law of each output given each secret (A, Definition 5), in balls.

For a table with rows for some inputs, `weights[i][x]` is `Pr[sum = x | secret i] c(x)`, where `c(x)` is the mass that
the table (and not the geometric tail) decides. Then `Pr[s | secret i] = sum over x of weights[i][x] W(x, s)`, plus a
known part from inputs that have no row. Adjacent secrets of one person form a `SecretStep`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb

from optdp.errors import ArtifactError
from optdp.mechanism.matrix import NoiseMatrix, Outside
from optdp.numbers.exact import ball
from optdp.numbers.pmf import ExactPmf, Pmf
from optdp.people.population import Population
from optdp.single.problem import Adjacency, SingleLTE
from optdp.work.account import paced, spend


@dataclass(frozen=True)
class Secret:
    """One contribution of one kind of person under one prior."""

    prior: int
    person: int
    contribution: int
    law: Pmf


@dataclass(frozen=True)
class SecretStep:
    """Two secrets, by index, that must look alike: their log-ratio is at most `epsilon`, in both directions."""

    one: int
    other: int
    epsilon: Fraction


@dataclass(frozen=True)
class Shape:
    """Everything of a noise matrix but its numbers."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    q: Fraction | None
    outside: Outside
    last: int

    @staticmethod
    def of(matrix: NoiseMatrix) -> Shape:
        return Shape(matrix.inputs, matrix.outputs, matrix.q, matrix.outside, matrix.last)

    @property
    def whole(self) -> Shape:
        """The shape with a row for every input and the same tails."""
        return Shape((0, self.last), (0, self.last), self.q, "error", self.last)

    @cached_property
    def blank(self) -> NoiseMatrix:
        """A matrix without numbers, for its geometry."""
        return NoiseMatrix(self.inputs, self.outputs, 1, (), self.q, "error", self.last)

    @cached_property
    def masses(self) -> list[arb]:
        """`c(x)` for each input that has a row."""
        first, last = self.inputs
        spend((last - first + 1) * (1 if self.q is None else 8), "masses inside the table")
        return [self.blank.inside_mass(x) for x in range(first, last + 1)]

    @property
    def growth(self) -> list[arb]:
        """By what factor `c(x)` would be larger, were there a row for every input."""
        if self.outside == "error" or self.q is None:
            return [arb(1)] * len(self.masses)
        whole = self.whole.blank
        return [whole.inside_mass(x) / mass for x, mass in enumerate(self.masses, self.inputs[0])]


def secrets_of(populations: Sequence[Population]) -> list[Secret]:
    """Every contribution of every distinct person under every prior."""
    return [
        Secret(i, j, w, law)
        for i, prior in enumerate(populations)
        for j, person in enumerate(prior.people)
        for w, law in enumerate(person.conditionals)
    ]


def steps_of(secrets: Sequence[Secret], epsilon: Fraction, largest: int, adjacency: Adjacency) -> list[SecretStep]:
    """The pairs of secrets that must look alike."""
    many = Counter((secret.prior, secret.person) for secret in secrets)
    spend(sum(count * (count if adjacency == "all" else 2) for count in many.values()) / 2, "pairs of secrets")
    steps = []
    for i, one in enumerate(secrets):
        for j in range(i + 1, len(secrets) if adjacency == "all" else min(i + 2, len(secrets))):
            other = secrets[j]
            if (one.prior, one.person) != (other.prior, other.person):
                break
            if adjacency == "all":
                steps.append(SecretStep(i, j, epsilon))
            elif other.contribution == one.contribution + 1:
                steps.append(SecretStep(i, j, epsilon / largest))
    return steps


Sight = tuple[int, int, int, int]
"""Two secrets of an observer's world that must look alike: observer, vertex, and the two shifts, the smaller first."""


def some_sights(problem: SingleLTE) -> list[Sight]:
    """The ends and the middle of what each observer holds possible."""
    found = []
    for observer, worlds in enumerate(problem.worlds):
        start = 0
        for family in worlds.families if worlds is not None else ():
            pairs = family.pairs(problem.adjacency == "all")
            vertices = sorted({0, family.size // 2, family.size - 1})
            found += [(observer, start + k, *pair) for k in vertices for pair in sorted({pairs[0], pairs[-1]})]
            start += family.size
    return found


def _seen(problem: SingleLTE, sights: Sequence[Sight]) -> tuple[list[Secret], list[SecretStep]]:
    """The secrets of these sights, once each, and the steps between them, in the order of the sights."""
    bases: dict[tuple[int, int], ExactPmf] = {}
    for observer, worlds in enumerate(problem.worlds):
        start = 0
        for family in worlds.families if worlds is not None else ():
            wanted = sorted({k - start for o, k, _, _ in sights if o == observer and 0 <= k - start < family.size})
            if wanted:
                for k, law in zip(wanted, family.laws(wanted), strict=True):
                    weights = tuple(int(value) for value in law.coeffs())
                    bases[observer, start + k] = ExactPmf(weights, family.unit)
            start += family.size
    places: dict[tuple[int, int, int], int] = {}
    secrets: list[Secret] = []
    steps: list[SecretStep] = []
    for observer, k, *pair in sights:
        for u in pair:
            if (observer, k, u) not in places:
                places[observer, k, u] = len(secrets)
                secrets.append(Secret(observer, k, u, bases[observer, k].shifted(u, problem.last)))
        one, other = (places[observer, k, u] for u in pair)
        steps.append(SecretStep(one, other, problem.epsilon_of(observer) / problem.steps))
    return secrets, steps


@dataclass(frozen=True)
class Laws:
    """The weights of every secret on the rows of a table of the given shape."""

    shape: Shape
    factor: int
    """What the largest log-quotient of a step is multiplied by: `D` with unit steps, else 1."""
    independent: bool
    """Whether the laws of one person's secrets are shifts of each other."""
    secrets: tuple[Secret, ...]
    steps: tuple[SecretStep, ...]
    weights: tuple[list[arb], ...]
    beyond: tuple[tuple[arb, arb], ...]
    """For inputs without a row: `sum Pr[x] q^distance` below and above the table, for each secret."""

    @staticmethod
    def build(
        problem: SingleLTE,
        shape: Shape,
        populations: Sequence[Population] | None = None,
        sights: Sequence[Sight] | None = None,
    ) -> Laws:
        """The laws of `problem`'s secrets, or of those of other `populations` (a world that differs).

        Of the many worlds of an observer these are the `sights` that are given, or a few that show the range.
        """
        worlds = problem.populations if populations is None else populations
        largest = max(problem.largest, *(prior.largest for prior in worlds))
        if problem.watched and populations is None:
            secrets, steps = _seen(problem, some_sights(problem) if sights is None else sights)
        else:
            secrets = secrets_of(worlds)
            steps = steps_of(secrets, problem.epsilon, largest, problem.adjacency)
        (first, last), (low, high) = shape.inputs, shape.outputs
        if shape.outside == "geometric" and not first <= low <= high <= last:
            raise ArtifactError(
                f"With plain geometric noise outside, the outputs must lie within the inputs that have a row. "
                f"Found outputs {low}..{high} and rows for {first}..{last}."
            )
        weights, beyond = [], []
        spend(0.7 * len(secrets) * len(range(first, last + 1)), "laws of the sum")
        for secret in secrets:
            row_weights, outer = restrict(secret.law, shape)
            weights.append(row_weights)
            beyond.append(outer)
        factor = largest if problem.adjacency == "unit" else 1
        independent = all(prior.spec["kind"] != "conditionals" for prior in worlds)
        return Laws(shape, factor, independent, tuple(secrets), tuple(steps), tuple(weights), tuple(beyond))

    @cached_property
    def exponentials(self) -> dict[Fraction, arb]:
        """`e^epsilon` of every step."""
        return {epsilon: ball(epsilon).exp() for epsilon in {step.epsilon for step in self.steps}}

    def known_part(self, s: int) -> list[arb]:
        """What inputs without a row add to `Pr[s | secret]`, for each secret."""
        if self.shape.outside != "geometric" or self.shape.q is None:
            return [arb(0)] * len(self.secrets)
        q, (first, last) = ball(self.shape.q), self.shape.inputs
        scale = (1 - q) / (1 + q)
        return [scale * (below * q ** (s - first) + above * q ** (last - s)) for below, above in self.beyond]

    def columns(
        self,
        rows: Sequence[Sequence[tuple[int, int]]],
        denominator: int,
        progress: Callable[[str], None] = lambda _: None,
    ) -> dict[int, list[arb]]:
        """`denominator * Pr[s | secret]` for each output that the rows reach and each secret."""
        columns: dict[int, list[arb]] = {}
        start = self.shape.outside == "geometric"
        each = len(self.weights) * (0.6 + denominator.bit_length() / 3000)
        for i, row in enumerate(paced(rows, "adding up what each output tells", progress)):
            spend(1 + len(row) * (1 + each), "probabilities of outputs")
            weights = [law[i] for law in self.weights]
            for s, weight in row:
                column = columns.get(s)
                if column is None:
                    known = self.known_part(s) if start else None
                    column = [value * denominator for value in known] if known else [arb(0)] * len(weights)
                    columns[s] = column
                for k, value in enumerate(weights):
                    column[k] += value * weight
        if start:
            low, high = self.shape.outputs
            spend((high - low + 1) * (1 + 5 * len(self.secrets)), "outputs outside the table")
            for s in range(low, high + 1):
                if s not in columns:
                    columns[s] = [value * denominator for value in self.known_part(s)]
        return columns

    def tail_columns(self) -> Iterator[list[arb]]:
        """`Pr[s | secret]`, up to a common factor, for the outputs outside the table that can be the worst.

        There every input adds geometric noise, so that the law is proportional to `E[q^sum | secret]` for all `s`
        below 0 and to `E[q^-sum | secret]` for all `s` above the largest sum. Between them, where the table does not
        reach, independent people are protected term by term: no quotient exceeds that of the two ends. For people
        that are not independent every such output is looked at.
        """
        if self.shape.q is None:
            return
        q = ball(self.shape.q)
        spend(20 * len(self.secrets), "outputs outside the table")
        yield [secret.law.power_mean(q) for secret in self.secrets]
        yield [secret.law.power_mean(1 / q) for secret in self.secrets]
        if not self.independent:
            low, high = self.shape.outputs
            for s in range(self.shape.last + 1):
                if not low <= s <= high:
                    yield self.geometric_column(s)

    def geometric_column(self, s: int) -> list[arb]:
        """`Pr[s | secret]` where every input adds geometric noise, for each secret."""
        assert self.shape.q is not None
        q = ball(self.shape.q)
        return [
            (1 - q) / (1 + q) * (law.geometric_sum(s, q, False) + law.balls(s, s)[0] + law.geometric_sum(s, q, True))
            for law in (secret.law for secret in self.secrets)
        ]


def larger_quotient(one: arb, other: arb) -> arb:
    """A ball around the larger of `one/other` and `other/one`, both being positive."""
    ratio = one / other
    if ratio > 1:
        return ratio
    return 1 / ratio if ratio < 1 else ratio.union(1 / ratio)


def restrict(law: Pmf, shape: Shape) -> tuple[list[arb], tuple[arb, arb]]:
    """A secret's weights on the rows, and what lies beyond them."""
    first, last = shape.inputs
    weights = [value * mass for value, mass in zip(law.balls(first, last), shape.masses, strict=True)]
    nothing = (arb(0), arb(0))
    if first == 0 and last == shape.last:
        return weights, nothing
    if shape.outside == "geometric" and shape.q is not None:
        q = ball(shape.q)
        return weights, (law.geometric_sum(first, q, False), law.geometric_sum(last, q, True))
    if shape.outside != "clamp":
        raise ArtifactError(f"Every input 0..{shape.last} must have a row. Found rows for {first}..{last} only.")
    if shape.q is not None:
        raise ArtifactError('Inputs without a row must get plain noise if there is a tail. Found outside = "clamp".')
    weights[0] += law.geometric_sum(first, arb(1), False)
    weights[-1] += law.geometric_sum(last, arb(1), True)
    return weights, nothing
