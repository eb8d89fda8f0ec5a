"""The error of entities that share noise, in balls: what an aggregate costs, infinite tails included.

An entity's error `N = s - f x` has the law `a * SGDL + g`: `a` the law of `f (y - x)`, where the contraction takes `x`
to `y`, and `g` finite, what the table changes. Its moments are closed forms, with `E|k + e|` from its second
differences, which are `2 Pr[e = k]`. The mean of `|N_1 + .. + N_m|` is taken over laws that are cut where hardly
anything is left, those of `N_i` and those of sums on the way, plus a bound of all that was cut (`Sum`). Many alike
parties are added by squaring.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb, arb_mat, arb_poly

from optdp.errors import ArtifactError, CertificateError
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import ball, log_of, log_upper, lower_fraction, precision, upper_fraction
from optdp.numbers.sgdl import SGDL
from optdp.people.population import Population
from optdp.plan.certificate import PlanCertificate, largest
from optdp.plan.problem import MultiLTE, each_once
from optdp.single.laws import larger_quotient
from optdp.work.account import product_steps, spend

WIDE = 12.0
"""Sums are cut so many standard deviations beyond where a single error is cut."""
CUT = 45.0
"""Error laws are cut where geometric noise has fallen by a factor `e^-CUT`; what is cut is bounded."""


@dataclass(frozen=True)
class ErrorLaw:
    """The error of one entity: its law on `-cut..cut`, its moments, and what lies beyond the cut."""

    cut: int
    inside: list[arb]
    absolute: arb
    mean: arb
    square: arb

    @staticmethod
    def of(population: Population, noise: SharedNoise, cut: int) -> ErrorLaw:
        prior, f = population.total.balls(0, population.last), noise.factor
        spend(len(prior) if noise.contraction is None else sum(map(len, noise.contraction)), "errors of shares")
        moved: dict[int, arb] = {}
        for x, chance in enumerate(prior):
            for y, weight in noise.contracted(x):
                moved[f * (y - x)] = moved.get(f * (y - x), arb(0)) + chance * weight
        moved = {k: value / noise.contraction_denominator for k, value in moved.items()}
        farthest = max(abs(k) for k in moved)
        values = noise.noise.balls(0, cut + farthest)
        start = min(moved)
        spend(product_steps(max(moved) - start + 1, 2 * (cut + farthest) + 1) + cut, "errors of shares")
        shift = arb_poly([moved.get(k, arb(0)) for k in range(start, max(moved) + 1)])
        spread_out = shift * arb_poly([values[abs(e)] for e in range(-cut - farthest, cut + farthest + 1)])
        law = [spread_out[k - start + cut + farthest] for k in range(-cut, cut + 1)]
        changes = _changes(noise, prior, values)
        for k, value in changes.items():
            law[k + cut] += value
        tent = _tent(noise.noise, values, farthest)
        absolute = sum((value * tent[abs(k)] for k, value in moved.items()), arb(0))
        mean = sum((value * k for k, value in (*moved.items(), *changes.items())), arb(0))
        square = sum((value * k * k for k, value in (*moved.items(), *changes.items())), ball(noise.noise.variance))
        absolute += sum((value * abs(k) for k, value in changes.items()), arb(0))
        return ErrorLaw(cut, law, absolute, mean, square)

    @property
    def beyond(self) -> arb:
        """`Pr[|N| > cut]`."""
        return 1 - sum(self.inside, arb(0))

    @property
    def absolute_beyond(self) -> arb:
        """`E[|N|; |N| > cut]`."""
        return self.absolute - sum((abs(i - self.cut) * value for i, value in enumerate(self.inside)), arb(0))


def _tent(noise: SGDL, values: Sequence[arb], reach: int) -> list[arb]:
    """`E|k + e|` for `k = 0..reach`: its second difference is `2 Pr[e = k]`, and it is even."""
    tent = [noise.mean_absolute()]
    slope = values[0]
    for k in range(1, reach + 1):
        tent.append(tent[-1] + slope)
        slope += 2 * values[k]
    return tent


def _changes(noise: SharedNoise, prior: Sequence[arb], values: Sequence[arb]) -> dict[int, arb]:
    """`g`: what the table adds to the law of the error of the base kernel."""
    if not noise.rows:
        return {}
    (low, high), f = noise.outputs, noise.factor
    changes: dict[int, arb] = {}
    moves = sum(len(noise.contracted(x)) for x in range(noise.inputs[0], noise.inputs[1] + 1))
    spend((moves + 3 * len(noise.rows)) * (high - low + 1) * 0.6, "errors of shares")
    for x, row in enumerate(noise.rows, start=noise.inputs[0]):
        base = [arb(0)] * (high - low + 1)
        for y, weight in noise.contracted(x):
            share = ball(Fraction(weight, noise.contraction_denominator))
            for s in range(low, high + 1):
                base[s - low] += share * values[abs(s - f * y)]
        mass, table = sum(base, arb(0)), dict(row)
        for s, was in enumerate(base, start=low):
            change = prior[x] * (mass * table.get(s, 0) / noise.denominator - was)
            changes[s - f * x] = changes.get(s - f * x, arb(0)) + change
    return changes


def table_reach(noise: SharedNoise) -> int:
    """How far an output of the table can be from any `f x`."""
    ends = (0, noise.factor * noise.last)
    return max(max(ends) - min(*ends, noise.outputs[0]), max(*ends, noise.outputs[1]) - min(ends))


def exact_mean_absolute(total: SGDL) -> Fraction:
    if total.beta == 1:
        return 2 * total.q / (1 - total.q**2)
    return upper_fraction(total.mean_absolute())


@dataclass(frozen=True)
class Sum:
    """A part of the law of a sum, on `-cut..cut`, and bounds of the rest: its mass and its mean absolute value."""

    cut: int
    inside: arb_poly
    rest: arb
    absolute_rest: arb
    absolute: arb
    """A bound of the mean absolute value of the whole."""

    def plus(self, other: Sum, limit: int) -> Sum:
        """With `a = a' + a''` and `b = b' + b''`, `a' * b'` is kept up to `limit`; the rest has

        sum over i, j of a''(i) b(j) |i + j| <= E[|A|; a''] + mass of a'' E|B|, and so for `a' b''`.
        """
        spend(product_steps(len(self.inside), len(other.inside)), "the error of the aggregate")
        reach = self.cut + other.cut
        cut = min(reach, limit)
        values = (self.inside * other.inside).coeffs()
        values += [arb(0)] * (2 * reach + 1 - len(values))
        spend(2 * len(values), "the error of the aggregate")
        beyond = [(k, values[k + reach]) for k in (*range(-reach, -cut), *range(cut + 1, reach + 1))]
        return Sum(
            cut,
            arb_poly(values[reach - cut : reach + cut + 1]),
            self.rest + other.rest + sum((value for _, value in beyond), arb(0)),
            self.absolute_rest
            + other.absolute_rest
            + self.rest * other.absolute
            + other.rest * self.absolute
            + sum((abs(k) * value for k, value in beyond), arb(0)),
            self.absolute + other.absolute,
        )

    def times(self, count: int, limit: int) -> Sum:
        """The sum of so many, by squaring."""
        result, square = None, self
        while True:
            if count & 1:
                result = square if result is None else result.plus(square, limit)
            count >>= 1
            if not count:
                assert result is not None
                return result
            square = square.plus(square, limit)


def aggregate_mae(errors: Mapping[int, ErrorLaw], counts: Mapping[int, int]) -> Fraction:
    variance = sum((counts[i] * (error.square - error.mean**2) for i, error in errors.items()), arb(0))
    deviation, bias = variance.sqrt(), sum((counts[i] * abs(error.mean) for i, error in errors.items()), arb(0))
    total: Sum | None = None
    for i, error in errors.items():
        limit = error.cut + math.ceil(float((WIDE * deviation + bias).upper()))
        part = Sum(error.cut, arb_poly(error.inside), error.beyond, error.absolute_beyond, error.absolute)
        part = part.times(counts[i], limit)
        total = part if total is None else total.plus(part, limit)
    assert total is not None
    spend(len(total.inside), "the error of the aggregate")
    kept = sum((abs(k - total.cut) * value for k, value in enumerate(total.inside.coeffs())), arb(0))
    return upper_fraction(kept + total.absolute_rest)


def aggregate_mse(errors: Mapping[int, ErrorLaw], counts: Mapping[int, int]) -> Fraction:
    variance = sum((counts[i] * (error.square - error.mean**2) for i, error in errors.items()), arb(0))
    bias = sum((counts[i] * error.mean for i, error in errors.items()), arb(0))
    return upper_fraction(variance + bias**2)


LONGEST = 200_000
"""The farthest that the noise of a party with a contraction or a table may reach."""
LARGEST_INPUT = 20_000
"""The largest input of an entity with a contraction or a table whose laws are written out."""


def certify_shared(problem: MultiLTE, plan: Sequence[SharedNoise]) -> PlanCertificate:
    """Recompute every figure of `plan`, one `SharedNoise` for each party of `problem`."""
    with precision():
        check_plan(problem, plan)
        cut = max(table_reach(noise) for noise in plan) + math.ceil(CUT / -log_of(plan[0].q))
        plain = all(noise.contraction is None and not noise.rows for noise in plan)
        if cut > LONGEST and not plain:
            raise ArtifactError(f"Errors are added up to {LONGEST:,}. Found noise that reaches {cut:,} in each party.")
        pairs = list(zip(problem.parties, plan, strict=True))
        same = first_alike(pairs)
        counts = Counter(same)
        worlds = [_world_epsilons(problem, list(zip(world, plan, strict=True))) for world in problem.worlds]
        epsilons = tuple(largest(each) for each in zip(*worlds, strict=True))
        if plain:
            return _plain_certificate(problem, plan, epsilons)
        errors = {i: ErrorLaw.of(*pairs[i], cut) for i in counts}
        own = tuple(upper_fraction(errors[i].absolute) for i in same)
        mae, mse = aggregate_mae(errors, counts), aggregate_mse(errors, counts)
        return PlanCertificate(epsilons, (None,) * len(plan), own, mae, mse)


def _world_epsilons(problem: MultiLTE, pairs: Sequence[tuple[Population, SharedNoise]]) -> tuple[Fraction | None, ...]:
    """The privacy of each party's people in one world."""
    leaks, same = leaks_of(pairs), first_alike(pairs)
    keys = [(kind, abs(factor)) for kind, factor in zip(same, problem.f, strict=True)]
    return tuple(each_once(keys, lambda i: _party_epsilon(problem, i, leaks)))


def first_alike(pairs: Sequence[tuple[Population, SharedNoise]]) -> list[int]:
    """For each party the first that is like it: alike parties are looked at once."""
    return each_once([(str(population.spec), noise) for population, noise in pairs], lambda i: i)


def leaks_of(pairs: Sequence[tuple[Population, SharedNoise]]) -> list[Leak | None]:
    """What each party contributes; equal parties are looked at once."""
    return each_once(first_alike(pairs), lambda i: leak_of(*pairs[i]))


def _plain_certificate(
    problem: MultiLTE, plan: Sequence[SharedNoise], epsilons: tuple[Fraction | None, ...]
) -> PlanCertificate:
    """Shares of geometric noise and nothing else: all is a closed form.

    One share alone has the ordinary quotient `Pr[0]/Pr[1]` for a step of one: it is log-convex (`SGDL.tail_ratio`).
    """
    ordinary = []
    for noise, population in zip(plan, problem.parties, strict=True):
        least = noise.noise.tail_ratio(0)[0]
        ordinary.append(log_upper(upper_fraction(1 / least)) * abs(noise.factor) * population.largest)
    total = SGDL(sum((noise.beta for noise in plan), Fraction(0)), plan[0].q)
    own = tuple(exact_mean_absolute(noise.noise) for noise in plan)
    return PlanCertificate(epsilons, tuple(ordinary), own, exact_mean_absolute(total), total.variance)


def check_plan(problem: MultiLTE, plan: Sequence[SharedNoise]) -> None:
    """Raise unless the shares of any honest parties add up to geometric noise, and fit the problem."""
    if len(plan) != len(problem.parties):
        raise ArtifactError(f"A plan must have one part for each of {len(problem.parties)} parties. Found {len(plan)}.")
    for i, (population, noise, factor) in enumerate(zip(problem.parties, plan, problem.f, strict=True)):
        noise.check()
        if noise.last != population.last or noise.factor != factor:
            raise ArtifactError(
                f"Party {i} has the inputs 0..{population.last} and the coefficient {factor}. "
                f"Found noise for 0..{noise.last} and {noise.factor}."
            )
        if noise.q != plan[0].q or noise.beta * problem.honest < 1:
            raise CertificateError(
                f"The noise of any {problem.honest} parties must add up to geometric noise of one ratio. "
                f"Found that party {i} adds a share of {float(noise.beta):.12g} of ratio {float(noise.q):.12g}."
            )
        if population.last > LARGEST_INPUT and (noise.contraction is not None or noise.rows):
            raise ArtifactError(f"A contraction or a table is read for inputs up to {LARGEST_INPUT}. Found more.")


def _party_epsilon(problem: MultiLTE, party: int, leaks: Sequence[Leak | None]) -> Fraction | None:
    """The largest log-quotient of a step for a person of `party`, over sets of `honest` parties, for a contribution."""
    known = [leak for leak in leaks if leak is not None]
    if len(known) < len(leaks):
        return None
    quotient = known[party].quotient
    for spread, count in Counter(known[i].spread for i in worst_set(problem, party, known)).items():
        quotient *= spread**count
    return log_upper(quotient) * problem.sensitivity / abs(problem.f[party])


def worst_set(problem: MultiLTE, party: int, leaks: Sequence[Leak]) -> tuple[int, ...]:
    """The honest parties with which a person of `party` is protected least: those with the largest spreads."""
    others = sorted((i for i in range(len(leaks)) if i != party), key=lambda i: leaks[i].spread, reverse=True)
    return tuple(sorted([party, *others[: problem.honest - 1]]))


# ---------------------------------------------------------------------- privacy


@dataclass(frozen=True)
class Leak:
    """`Q` and `spread` of one entity, both rounded up."""

    quotient: Fraction
    spread: Fraction
    place: tuple[int, int, int] | None = None
    """Where `Q` is reached: the kind of person, `w` of the step, and the point `y`; None if everywhere outside."""


def leak_of(population: Population, noise: SharedNoise) -> Leak | None:
    """What one entity contributes to an epsilon; None if some output tells two secrets apart for certain."""
    independent = population.spec["kind"] != "conditionals"
    if noise.contraction is None and not noise.rows and independent:
        return Leak(1 / noise.q ** abs(noise.factor), Fraction(1))
    count = 1 + sum(len(person.conditionals) for person in population.people)
    moves = population.last + 1 if noise.contraction is None else sum(map(len, noise.contraction))
    cells = (noise.outputs[1] - noise.outputs[0] + 1) * (population.last + 1) if noise.rows else 0
    entries = sum(map(len, noise.rows))
    spend(count * (moves + 4 * population.last + entries) + cells * (1 + 0.3 * count), "shares of noise")
    people = [[law.balls(0, population.last) for law in person.conditionals] for person in population.people]
    worst, place = Fraction(1), (0, 0, 0)
    for kind, laws in enumerate(people):
        for w, (one, other) in enumerate(pairwise([smoothed(noise, law) for law in laws])):
            for y, (a, b) in enumerate(zip(one, other, strict=True)):
                if not (a > 0 and b > 0):
                    return None
                quotient = upper_fraction(larger_quotient(a, b))
                if quotient > worst:
                    worst, place = quotient, (kind, w, y)
    laws = [population.total.balls(0, population.last), *(law for laws in people for law in laws)]
    spread = _spread(noise, laws)
    return None if spread is None else Leak(worst, spread, place)


def smoothed(noise: SharedNoise, law: Sequence[arb]) -> list[arb]:
    """`(f A_w * Geo_q)(f y)` for every point `y`, but for the factor `(1-q)/(1+q)`."""
    return _geometric_sums(_contracted(noise, law), noise)


def _contracted(noise: SharedNoise, law: Sequence[arb]) -> list[arb]:
    """`A_w`: the law of `y` for an input that follows `law`."""
    if noise.contraction is None:
        return list(law)
    result = [arb(0)] * len(law)
    for chance, row in zip(law, noise.contraction, strict=True):
        if chance != 0:
            for y, weight in row:
                result[y] += chance * weight
    return [value / noise.contraction_denominator for value in result]


def _geometric_sums(law: Sequence[arb], noise: SharedNoise) -> list[arb]:
    """`sum over z of law(z) q^(|f| |y - z|)` for every point `y`."""
    ratio = ball(noise.q) ** abs(noise.factor)
    below, sums = arb(0), []
    for value in law:
        below = below * ratio + value
        sums.append(below)
    above = arb(0)
    for y in range(len(law) - 1, -1, -1):
        sums[y] += above
        above = (above + law[y]) * ratio
    return sums


def _spread(noise: SharedNoise, laws: Sequence[Sequence[arb]]) -> Fraction | None:
    """The largest quotient of a released and a base law over the smallest, both taken with 1."""
    if not noise.rows:
        return Fraction(1)
    (first, final), (low, high) = noise.inputs, noise.outputs
    kernel = _kernel(noise)
    masses = _masses(noise, kernel)
    served = [[arb(0)] * first + list(law[first : final + 1]) + [arb(0)] * (noise.last - final) for law in laws]
    base = arb_mat([_contracted(noise, law) for law in laws]) * kernel
    replaced = arb_mat([_contracted(noise, law) for law in served]) * kernel
    largest, least = Fraction(1), Fraction(1)
    for i, law in enumerate(laws):
        table = [arb(0)] * (high - low + 1)
        for x, row in enumerate(noise.rows, start=first):
            share = law[x] * masses[x - first]
            if share != 0:
                for s, weight in row:
                    table[s - low] += share * weight
        for k, value in enumerate(table):
            if not base[i, k] > 0:
                return None
            quotient = 1 + (value / noise.denominator - replaced[i, k]) / base[i, k]
            largest, least = max(largest, upper_fraction(quotient)), min(least, lower_fraction(quotient))
            if least <= 0:
                return None
    return largest / least


def _kernel(noise: SharedNoise) -> arb_mat:
    """`SGDL(s - f y)` for each `y` of `0..last` and each output of the table."""
    (low, high), f = noise.outputs, noise.factor
    ends = (0, f * noise.last)
    values = noise.noise.balls(0, max(abs(low - end) for end in ends) + high - low)
    return arb_mat([[values[abs(s - f * y)] for s in range(low, high + 1)] for y in range(noise.last + 1)])


def _masses(noise: SharedNoise, kernel: arb_mat) -> list[arb]:
    """`c(x)` for each input that has a row."""
    inside = [sum(row, arb(0)) for row in kernel.tolist()]
    return [
        sum((inside[y] * weight for y, weight in noise.contracted(x)), arb(0)) / noise.contraction_denominator
        for x in range(noise.inputs[0], noise.inputs[1] + 1)
    ]
