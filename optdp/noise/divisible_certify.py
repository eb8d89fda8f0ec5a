"""What a plan of entities that designed their noise alone gives away, proved on all of `Z` from its integers.

**Privacy.** Write `A_w = sum over x of Pr[x|w] A(x, .)` for the contracted input given a secret `w`, `base_w` for the
law of `f A_w + SGDL_beta`, and `u_w` for the law of what the entity releases given `w`. Outside the table `u_w =
base_w`. Inside, the linear program keeps them equal; rounding and a solver's tolerance leave a difference. Let `spread`
be the largest `u_w(s)/base_w(s)` over all outputs and secrets (and the prior) divided by the smallest, both taken with
1. The observer sees the sum `S` of `t` honest entities (what the others add is known or independent). For a step `w,
w'` of a person of entity 1,

    Pr[S|w] = (u_w * u_2 * .. * u_t)(S)
           <= (largest of u_w/base_w) (largest of u_2/base_2) .. (base_w * base_2 * .. * base_t)(S)       term by term
    base_w * base_2 * .. * base_t = f A_w * Geo_q * rest,   rest the same probability law for w and w'    beta >= 1/t
    (f A_w * Geo_q)(S) <= Q (f A_w' * Geo_q)(S) for every S implies the same for the convolution with rest

and so `Pr[S|w] <= Q spread_1 spread_2 .. spread_t Pr[S|w']`. The others with the largest spreads give the worst set.

**Q on all of Z.** `(f A_w * Geo_q)(S)` is `(1-q)/(1+q)` times `q^j L(y) + q^(|f|-j) R(y+1)` for `S = f y +- j` between
the points `f y` and the next one, with `L(y) = sum over z <= y of A_w(z) q^(|f| (y-z))` and `R` likewise from above. In
the quotient for two secrets this is a monotone function of `j`, so that its largest value is at a point `f y`. Below
the least `f y` and above the largest both laws fall with the same ratio `q`: the quotient there is that of the
outermost point. So the finitely many points `f y` decide. If neighbouring inputs stay at most one apart under `A`, that
is if `A(x)` and `A(x+1)` are coupled so, then `Q <= q^-|f|` (A, Lemma 2); nothing here relies on it but the plain
identity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb, arb_mat

from optdp.errors import ArtifactError, CertificateError
from optdp.math.effort import spend
from optdp.math.exact import ball, log_of, log_upper, lower_fraction, precision, upper_fraction
from optdp.math.sgdl import SGDL
from optdp.noise.laws import larger_quotient
from optdp.noise.multi import MultiLTE
from optdp.noise.plan_certificate import PlanCertificate, largest
from optdp.noise.population import Population
from optdp.noise.shared_error import CUT, ErrorLaw, aggregate_mae, aggregate_mse, exact_mean_absolute, table_reach
from optdp.noise.shared_noise import SharedNoise

LONGEST = 2_000_000
"""The longest law of an aggregate that is written out."""
LARGEST_INPUT = 20_000
"""The largest input of an entity with a contraction or a table whose laws are written out."""


def certify_shared(problem: MultiLTE, plan: Sequence[SharedNoise]) -> PlanCertificate:
    """Recompute every figure of `plan`, one `SharedNoise` for each party of `problem`."""
    with precision():
        check_plan(problem, plan)
        cut = max(table_reach(noise) for noise in plan) + math.ceil(CUT / -log_of(plan[0].q))
        plain = all(noise.contraction is None and not noise.rows for noise in plan)
        if cut * len(plan) > LONGEST and not plain:
            raise ArtifactError(f"Errors are added up to {LONGEST:,}. Found noise that reaches {cut:,} in each party.")
        pairs = list(zip(problem.parties, plan, strict=True))
        same = [pairs.index(pair) for pair in pairs]  # equal parties are looked at once
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
    leaks = leaks_of(pairs)
    return tuple(_party_epsilon(problem, i, leaks) for i in range(len(pairs)))


def leaks_of(pairs: Sequence[tuple[Population, SharedNoise]]) -> list[Leak | None]:
    """What each party contributes; equal parties are looked at once."""
    same = [pairs.index(pair) for pair in pairs]
    leaks = {i: leak_of(*pairs[i]) for i in set(same)}
    return [leaks[i] for i in same]


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
    for i in worst_set(problem, party, known):
        quotient *= known[i].spread
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
