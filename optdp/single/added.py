"""What added noise reveals and what it costs, from its integers, in balls, on all of the integers.

Let `g` be the law of what everybody but one person contributes, and `f` that of the noise. Given that person's
contribution `w` the release `s` has the probability `h(s - w)` with `h = g * f`. So a step of `d` contributions is
private at epsilon if and only if `h(t) <= e^eps h(t + d)` and `h(t + d) <= e^eps h(t)` for **every integer t**.

**Near** the likely values all `h(t)` are computed: what the row adds is a finite sum, and what the tails add follows
from its neighbour,

    u(t) = sum over x < t - reach of g(x) q^(t-x)          u(t+1) = q u(t) + q^(reach+1) g(t - reach)

and the same from above; all terms are positive. **Beyond** the support of `g` by more than `reach` only tails are left,
and `h` changes by exactly the factor `q` with each step.

**The binomial law of very many people** need not be followed to the ends of its support. Let `L` be the geometric law
of ratio `q` and `G = g * L`, which changes by at most `1/q` with each step. As `f` and `L` differ up to `reach` alone,
and there by 2 in sum at most, `|h(t) - G(t)| <= 2 max g(x)` over the `x` within `reach` of `t`. The quotients
`g(x+1)/g(x)` of a binomial law fall with `x`. Let that at some `z` be `rho > 1/q`, and let `t + reach + j <= z`. Then
`g` rises up to `z`, so that the maximum is `g(t + reach)`, and

    G(t) >= (1-q)/(1+q) q^(reach+j) g(t + reach + j) >= (1-q)/(1+q) q^reach (q rho)^j g(t + reach).

So `|h(t) - G(t)| <= eta G(t)` with `eta = 2 (1+q)/(1-q) q^-reach (q rho)^-j`, for all `t <= z - reach - j` at once, and
`h` changes by at most `(1+eta)/(1-eta) q^-d` over `d` steps there. On the other side it is the same law mirrored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from optdp.errors import ArtifactError, ProblemError
from optdp.mechanism.added_noise import AddedNoise
from optdp.numbers.exact import ball, log, log_upper, upper_fraction
from optdp.numbers.pmf import BinomialPmf, ExactPmf, Pmf
from optdp.single.laws import larger_quotient
from optdp.single.problem import SingleLTE
from optdp.work.account import paced, spend

REST = log(2e20)
"""What is left out of a binomial law moves no probability by more than about 1e-20 of itself."""
LONGEST = 3_000_000
"""The most outputs that are looked at one by one."""


@dataclass(frozen=True)
class PersonKind:
    """One kind of person under one prior: the law of all others, and the steps that must look alike."""

    prior: int
    person: int
    law: Pmf
    steps: range
    """By how much two contributions differ."""


@dataclass(frozen=True)
class Span:
    """Outputs, beyond which `h` follows a geometric law but for a share `below`, or `above`, of itself."""

    first: int
    last: int
    below: arb
    above: arb


@dataclass(frozen=True)
class Seen:
    """The law `h` of what an observer sees of a person who contributes nothing, for the outputs of a span."""

    kind: PersonKind
    span: Span
    values: list[arb]

    def pairs(self) -> Iterator[tuple[int, int, arb, arb]]:
        """An output `t`, a step `d`, `h(t)` and `h(t + d)`."""
        for d in self.kind.steps:
            for t, (one, other) in enumerate(zip(self.values, self.values[d:], strict=False), self.span.first):
                yield t, d, one, other

    def beyond(self, q: arb) -> arb:
        """The largest quotient of two outputs a step apart that are not both in the span."""
        eta = max(self.span.below, self.span.above, key=lambda value: float(value.upper()))
        return (1 + eta) / (1 - eta) * q ** -self.kind.steps[-1]


def kinds_of(problem: SingleLTE) -> list[PersonKind]:
    """Every kind of person of every prior."""
    return [
        PersonKind(
            i, j, person.conditionals[0], range(1, person.largest + 1) if problem.adjacency == "all" else range(1, 2)
        )
        for i, prior in enumerate(problem.populations)
        for j, person in enumerate(prior.people)
        if person.largest > 0
    ]


def epsilon(problem: SingleLTE, noise: AddedNoise, progress: Callable[[str], None] = lambda _: None) -> Fraction | None:
    """The largest log-quotient of two contributions a step apart, over all outputs; with unit steps times `D`.

    None if it is infinite: a row with holes may leave outputs that nothing but some contributions can reach.
    """
    if noise.reach == 0:  # geometric noise itself: nothing is cut off
        return ordinary(problem, noise)
    worst = upper_fraction(1 / noise.ratio)
    for kind in kinds_of(problem):
        seen = seen_by(kind, noise, progress)
        worst = max(worst, upper_fraction(seen.beyond(noise.ratio)))
        if not all(value > 0 for value in seen.values):
            return None
        limit = ball(worst)
        for _, _, one, other in seen.pairs():
            ratio = larger_quotient(one, other)
            if not ratio < limit:
                worst = max(worst, upper_fraction(ratio))
                limit = ball(worst)
    return log_upper(worst) * problem.steps


def seen_by(kind: PersonKind, noise: AddedNoise, progress: Callable[[str], None] = lambda _: None) -> Seen:
    """The law of what an observer sees, near the likely values."""
    span, reach, q = span_of(kind, noise.reach, noise.q), noise.reach, noise.ratio
    count = span.last - span.first + 1
    if count > LONGEST:
        raise ProblemError(
            f'form = "additive" looks at every output near the likely sums, at most {LONGEST:,}. Found {count:,}. '
            "Use fewer people, or a smaller epsilon."
        )
    spend(count * (4 + 0.5 * len(noise.row)), "probabilities of outputs")
    start = span.first - reach - 1
    others = kind.law.balls(start, span.last + reach + 1)
    values = [arb(0)] * count
    for e, weight in paced(noise.row, "adding up what each output tells", progress):
        at = span.first - e - start
        values = [value + chance * weight for value, chance in zip(values, others[at : at + count], strict=True)]
    inside = noise.inside_mass / noise.denominator
    lower = kind.law.geometric_sum(start, q, False) + others[0]
    upper = kind.law.geometric_sum(span.last + reach + 1, q, True) + others[-1]
    tails = [lower]
    for chance in others[1:count]:
        tails.append(tails[-1] * q + chance)
    above = [upper]
    for chance in others[-2 : -count - 1 : -1]:
        above.append(above[-1] * q + chance)
    scale = (1 - q) / (1 + q) * q ** (reach + 1)
    values = [
        inside * value + scale * (low + high) for value, low, high in zip(values, tails, reversed(above), strict=True)
    ]
    return Seen(kind, span, values)


def span_of(kind: PersonKind, reach: int, q: Fraction) -> Span:
    """The outputs that have to be looked at one by one."""
    law, step, nothing = kind.law, kind.steps[-1], arb(0)
    if isinstance(law, ExactPmf):
        support = [x for x, weight in enumerate(law.weights) if weight]
        return Span(support[0] - reach - 1 - step, support[-1] + reach + 1 + step, nothing, nothing)
    assert isinstance(law, BinomialPmf)
    low, below = _edge(law.n, law.p, reach, q)
    high, above = _edge(law.n, 1 - law.p, reach, q)
    first = -reach - 1 if low is None else low
    last = law.n + reach + 1 if high is None else law.n - high
    return Span(law.shift + first - step, law.shift + last + step, below, above)


def _edge(n: int, p: Fraction, reach: int, q: Fraction) -> tuple[int | None, arb]:
    """The largest `t` found up to which `h` is geometric but for a share `eta`, which is proved; None if there is none.

    It is searched for in floating point. Any `z` will do, as what it gives is computed from it in balls.
    """
    odds, log_q = p / (1 - p), log(q)
    need = REST - log(1 - q) - reach * log_q
    log_odds = log(odds)

    def tilt(z: int) -> float:
        return log_q + log_odds + log(Fraction(n - z, z + 1))

    def last_output(z: int) -> int:
        return z - reach - math.ceil(need / max(tilt(z), 1e-9)) if z < n else -reach - 1

    ratio = float(odds * q)
    low, high = 0, max(int(n * ratio / (1 + ratio)) - 2, 0)  # about where the quotient is 1/q
    while high - low > 2:  # the output rises with z and then falls
        one, other = low + (high - low) // 3, high - (high - low) // 3
        low, high = (one, high) if last_output(one) < last_output(other) else (low, other)
    z = max(range(low, high + 1), key=last_output)
    found = last_output(z)
    if found <= -reach - 1:
        return None, arb(0)
    ratio_ball, j = ball(q), z - reach - found
    rise = ratio_ball * ball(odds) * (n - z) / (z + 1)
    eta = 2 * (1 + ratio_ball) / (1 - ratio_ball) * ratio_ball**-reach * rise**-j
    if not (rise > 1 and eta < arb(2) ** -40):
        raise ArtifactError("The tails of a binomial law must be negligible beside the noise. Found noise that is not.")
    return found, eta.upper()


# ---------------------------------------------------------------------- without a prior, and errors


def ordinary(problem: SingleLTE, noise: AddedNoise) -> Fraction | None:
    """The largest log-ratio of the probabilities of two inputs a step apart; None if it is infinite."""
    reach, factor = (problem.largest, 1) if problem.adjacency == "all" else (1, problem.largest)
    worst = log_upper(1 / noise.q) * reach  # the tails
    if len(noise.row) < 2 * noise.reach + 1:
        return None
    if noise.reach == 0:
        return worst * factor
    spend(3.0 * (len(noise.row) + 2) * reach, "quotients of the noise")
    chances = [noise.noise(e) for e in range(-noise.reach - reach, noise.reach + reach + 1)]
    ratio = Fraction(1)
    for d in range(1, reach + 1):
        for one, other in zip(chances, chances[d:], strict=False):
            ratio = max(ratio, upper_fraction(larger_quotient(one, other)))
    return max(worst, log_upper(ratio)) * factor


def error(noise: AddedNoise, power: int) -> arb:
    """The mean of `|e|^power`, for power 1 or 2."""
    inside = sum(weight * abs(e) ** power for e, weight in noise.row)
    tails = 2 * tail_error(noise.ratio, noise.reach + 1, power)
    found: arb = noise.inside_mass * inside / noise.denominator + tails
    return found


def tail_error(q: arb, d: int, power: int) -> arb:
    """`(1-q)/(1+q) sum over k >= d of k^power q^k`, in closed form."""
    if power == 1:
        value = q**d * (d - (d - 1) * q) / (1 - q) ** 2
    else:
        value = q**d * (d * d + (1 + 2 * d - 2 * d * d) * q + (d - 1) ** 2 * q * q) / (1 - q) ** 3
    return value * (1 - q) / (1 + q)
