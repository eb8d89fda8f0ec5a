"""Where an epsilon is reached: the worst output of an artifact, and how likely it is under two secrets.

A certificate says how large the largest quotient is. Here is the output at which it is that large: who wonders about
whom, both probabilities, their quotient, its logarithm, and what that is compared to. Nothing is claimed that the
certificate does not prove; the same laws are looked at once more, and the place is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Literal

from flint import arb

from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import ball, decimal_up, log_upper, precision, show, upper_fraction
from optdp.objects import Public
from optdp.single.added import PersonKind, kinds_of, seen_by
from optdp.single.laws import Laws, SecretStep, Shape, larger_quotient
from optdp.single.problem import SingleLTE
from optdp.single.watch import worst_sights
from optdp.work.account import spend

Tail = Literal["", "below", "above"]
Pair = tuple[int, int]
_TEXT = Context(prec=15)


@dataclass(frozen=True)
class Sight(Public):
    """One output, and its probability in two cases, of which the first is the likelier."""

    output: int
    probabilities: tuple[Fraction, Fraction]
    quotient: Fraction | None
    """The quotient of both, rounded up; None if it is infinite: the second case never gives this output."""
    factor: Fraction
    """What the logarithm is multiplied by: how many steps a whole contribution has."""
    limit: Fraction | None
    """The epsilon that must not be passed; None if none was asked for."""
    tail: Tail = ""
    """ "below": the quotient is the same at every smaller output; "above": at every larger one."""

    @property
    def log(self) -> Fraction | None:
        """The logarithm of the quotient, rounded up; None if it is infinite."""
        return None if self.quotient is None else log_upper(self.quotient)

    @property
    def epsilon(self) -> Fraction | None:
        """For a whole contribution: what the certificate compares with the limit."""
        return None if self.quotient is None else log_upper(self.quotient) * self.factor

    def document(self) -> dict[str, Any]:
        """As JSON has it; numbers as decimals."""
        return {
            "output": self.output,
            "tail": self.tail or None,
            "probabilities": [digits(value) for value in self.probabilities],
            "quotient": _up(self.quotient),
            "log": _up(self.log),
            "factor": show(self.factor),
            "epsilon": _up(self.epsilon),
            "limit": None if self.limit is None else show(self.limit),
        }


@dataclass(frozen=True)
class WorstSecrets(Public):
    """The output that tells most about one person, for an observer who knows the prior."""

    prior: int
    """Which of the problem's priors, from 0."""
    person: int
    """Which kind of person, from 0."""
    people: int
    """How many there are of that kind; 0 if that is not known."""
    contributions: Pair
    """The contribution under which the output is likelier, and the other."""
    sight: Sight
    world: str = ""
    """With observers in doubt: whose eyes it is seen with (`prior`, from 0), and who is where in that world."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        if self.world:
            about: dict[str, Any] = {"observer": self.prior, "vertex": self.person, "world": self.world}
        else:
            about = {"prior": self.prior, "person": self.person, "people": self.people}
        return about | {"contributions": list(self.contributions)} | self.sight.document()


@dataclass(frozen=True)
class WorstInputs:
    """The output that tells most between two adjacent inputs, for an observer who knows everybody else."""

    inputs: Pair
    sight: Sight

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"inputs": list(self.inputs)} | self.sight.document()


@dataclass(frozen=True)
class Explanation(Public):
    """Where the epsilons of one noise matrix are reached."""

    worst: WorstSecrets
    in_table: WorstSecrets
    """The worst output among those that the table decides; `worst` itself unless that is in a tail."""
    ordinary: WorstInputs

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "worst": self.worst.document(),
            "in_table": self.in_table.document(),
            "ordinary": self.ordinary.document(),
        }


def explain(problem: SingleLTE, matrix: NoiseMatrix | AddedNoise) -> Explanation:
    """Where the epsilons of `matrix` under `problem` are reached, whether they hold or not."""
    with precision():
        if isinstance(matrix, AddedNoise):
            worst_seen = _worst_seen(problem, matrix)
            return Explanation(worst_seen, worst_seen, _worst_noise(problem, matrix))
        sights = None
        if problem.watched and matrix.inputs == (0, problem.last):
            sights = [found.sight for found in worst_sights(problem, matrix).values()]
        laws = Laws.build(problem, Shape.of(matrix), sights=sights)
        worst = _Worst(problem, laws)
        for s, column in laws.columns(matrix.rows, matrix.denominator).items():
            worst.look(s, "", [value / matrix.denominator for value in column])
        in_table = worst.found()
        for s, tail, column in _tails(laws):
            worst.look(s, tail, column)
        return Explanation(worst.found(), in_table, worst_inputs(problem, matrix))


def _tails(laws: Laws) -> Iterator[tuple[int, Tail, list[arb]]]:
    """The outputs outside the table that can be the worst: as `Laws.tail_columns`, with their probabilities."""
    shape = laws.shape
    if shape.q is None:
        return
    q, (low, high) = ball(shape.q), shape.outputs
    scale, below, above = (1 - q) / (1 + q), min(low, 0) - 1, max(high, shape.last) + 1
    yield below, "below", [scale * q**-below * secret.law.power_mean(q) for secret in laws.secrets]
    yield above, "above", [scale * q**above * secret.law.power_mean(1 / q) for secret in laws.secrets]
    if not laws.independent:
        for s in range(shape.last + 1):
            if not low <= s <= high:
                yield s, "", laws.geometric_column(s)


class _Worst:
    """The largest quotient so far, and where it was found; an infinite one at the likeliest output."""

    def __init__(self, problem: SingleLTE, laws: Laws) -> None:
        self.problem, self.laws = problem, laws
        self.best: tuple[SecretStep, int, Tail, arb, arb] | None = None

    def look(self, s: int, tail: Tail, column: list[arb]) -> None:
        spend(3.0 * len(self.laws.steps), "the worst output")
        for step in self.laws.steps:
            one, other = column[step.one], column[step.other]
            if (one > 0 or other > 0) and (self.best is None or exceeds((one, other), self.best[3:])):
                self.best = step, s, tail, one, other

    def found(self) -> WorstSecrets:
        assert self.best is not None  # some output is always reached
        step, s, tail, one, other = self.best
        secrets = [self.laws.secrets[i] for i in (step.one, step.other)]
        if one < other:
            secrets.reverse()
        prior, person = secrets[0].prior, secrets[0].person
        worlds = self.problem.worlds[prior] if self.problem.watched else None
        if worlds is not None:
            limit = self.problem.epsilon_of(prior)
            sight = sighted(s, one, other, Fraction(self.laws.factor), limit, tail)
            least = min(secret.contribution for secret in secrets)
            shown = secrets[0].contribution - least, secrets[1].contribution - least
            known = any(worlds.place(person)[0].known)
            world = worlds.describe(person) + (f" to contribute {least} together" if known else "")
            return WorstSecrets(prior, person, 0, shown, sight, world)
        people = self.problem.populations[prior].people[person].count
        contributions = secrets[0].contribution, secrets[1].contribution
        sight = sighted(s, one, other, Fraction(self.laws.factor), self.problem.epsilon, tail)
        return WorstSecrets(prior, person, people, contributions, sight)


# ---------------------------------------------------------------------- noise that is added


def _worst_seen(problem: SingleLTE, noise: AddedNoise) -> WorstSecrets:
    """The worst output of added noise: `t + d` with a contribution of `d` is as likely as `t` with none."""
    best: tuple[PersonKind, int, int, arb, arb] | None = None
    for kind in kinds_of(problem):
        for t, d, one, other in seen_by(kind, noise).pairs():
            if best is None or exceeds((one, other), best[3:]):
                best = kind, t, d, one, other
    assert best is not None  # somebody contributes something
    kind, t, d, one, other = best
    people = problem.populations[kind.prior].people[kind.person].count
    sight = sighted(t + d, one, other, Fraction(problem.steps), problem.epsilon)
    return WorstSecrets(kind.prior, kind.person, people, (d, 0) if one > other else (0, d), sight)


def _worst_noise(problem: SingleLTE, noise: AddedNoise) -> WorstInputs:
    """The same between two inputs."""
    reach = problem.largest if problem.adjacency == "all" else 1
    ends = noise.reach + 1 + reach
    law = [noise.noise(e) for e in range(-ends, ends + 1)]
    best = 1, -ends, law[0], law[1]
    for d in range(1, reach + 1):
        for e, (one, other) in enumerate(zip(law, law[d:], strict=False), -ends):
            if (one > 0 or other > 0) and exceeds((one, other), best[2:]):
                best = d, e, one, other
    d, e, one, other = best
    sight = sighted(e + d, one, other, Fraction(problem.largest, reach), problem.fallback_epsilon)
    return WorstInputs((d, 0) if one > other else (0, d), sight)


# ---------------------------------------------------------------------- the same without a prior


def worst_inputs(problem: SingleLTE, matrix: NoiseMatrix) -> WorstInputs:
    """The adjacent inputs and the output with the largest quotient: where the ordinary epsilon is reached."""
    reach = problem.largest if problem.adjacency == "all" else 1
    return worst_rows(matrix, reach, Fraction(problem.largest, reach), problem.fallback_epsilon)


def worst_rows(matrix: NoiseMatrix, reach: int, factor: Fraction, limit: Fraction | None) -> WorstInputs:
    """The same for inputs at most `reach` apart. To be called within `precision()`."""
    first, last = matrix.inputs
    (s, _), *_ = matrix.rows[0]
    best: tuple[Pair, int, Tail, arb, arb] = (first, first), s, "", arb(1), arb(1)  # nothing to tell apart so far
    if matrix.q is not None:  # outside, noise of the same ratio around two centres
        s = min(matrix.outputs[0], 0) - 1
        best = (0, reach), s, "below", matrix.probability(0, s), matrix.probability(reach, s)
    low, high = max(first - reach, 0), min(last + reach, matrix.last)
    rows = {x: None if (row := matrix.row(x)) is None else dict(row) for x in range(low, high + 1)}
    for x in range(low, high + 1):
        for y in range(x + 1, min(x + reach, high) + 1):
            looked = len(rows[x] or rows[y] or ())
            spend(20 + looked * (4.0 if rows[x] and rows[y] else 10.0 + looked / 20), "the worst inputs")
            for s in _candidates(matrix, rows[x], rows[y]):
                one, other = matrix.probability(x, s), matrix.probability(y, s)
                if exceeds((one, other), best[3:]):
                    best = (x, y), s, "", one, other
    (x, y), s, tail, one, other = best
    return WorstInputs((x, y) if not one < other else (y, x), sighted(s, one, other, factor, limit, tail))


def _candidates(matrix: NoiseMatrix, one: dict[int, int] | None, other: dict[int, int] | None) -> Iterator[int]:
    """Outputs of two rows among which are those with the largest quotients in both directions."""
    if one is not None and other is not None:
        for a, b in ((one, other), (other, one)):
            alone = [(weight, -s) for s, weight in a.items() if s not in b]
            if alone:
                yield -max(alone)[1]
            else:
                yield max(a, key=lambda s: Fraction(a[s], b[s]))
    elif one is not None or other is not None:
        yield from range(matrix.outputs[0], matrix.outputs[1] + 1)


def exceeds(pair: tuple[arb, arb], best: tuple[arb, arb]) -> bool:
    """Whether the quotient of a pair is the larger one; of infinite ones that of the likelier output."""
    infinite, before = (not (one > 0 and other > 0) for one, other in (pair, best))
    if infinite or before:
        return infinite and (not before or bool(max(pair, key=_middle) > max(best, key=_middle)))
    return bool(larger_quotient(*pair) > larger_quotient(*best))


def sighted(output: int, one: arb, other: arb, factor: Fraction, limit: Fraction | None, tail: Tail = "") -> Sight:
    """An output with its two probabilities, the larger one first."""
    large, small = sorted((one, other), key=_middle, reverse=True)
    quotient = upper_fraction(larger_quotient(one, other)) if small > 0 else None
    return Sight(output, (_middle(large), _middle(small)), quotient, factor, limit, tail)


def digits(value: Fraction) -> str:
    """Fifteen digits, however small the number is."""
    return str(_TEXT.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(_TEXT))


def _middle(value: arb) -> Fraction:
    mantissa, exponent = value.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _up(value: Fraction | None) -> str:
    return "infinite" if value is None else decimal_up(value)
