"""A bound for every plan: one entity that sees everybody's data and is asked for no more privacy.

Whatever the parties do, the aggregate is a function of all their inputs and of noise, and it must hide every person. So
no plan has a smaller error than the best mechanism of a single entity for the merged population, without tails and
without condition (3). Dropping some people's privacy only lowers that bound, which is what a weighted sum needs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

from flint import fmpz_poly

from optdp.errors import ProblemError
from optdp.math.exact import show
from optdp.math.pmf import ExactPmf, Pmf
from optdp.noise.lp import choose_shape
from optdp.noise.multi import MultiLTE
from optdp.noise.population import Person, Population
from optdp.noise.single import SingleLTE

LARGEST = 20_000
"""Sums beyond this are not merged where exact laws must be multiplied."""


def bounding(problem: MultiLTE) -> SingleLTE | None:
    """The problem whose optimum bounds every plan: the single entity's, or a part of it if that is too large."""
    whole = merged(problem)
    if whole is not None:
        try:
            choose_shape(whole)
            return whole
        except ProblemError:
            pass
    return one_step(problem)


def merged(problem: MultiLTE) -> SingleLTE | None:
    """The problem of the single entity; None if its laws would be too large."""
    # A conservative prior shifts the sum by what is known, differently in every world: then the first has to do.
    shifted = any("conservative" in population.spec for world in problem.worlds for population in world)
    worlds = problem.worlds[:1] if shifted else problem.worlds
    try:
        populations = [_union(world) if _plain(problem, world) else _weighted(problem, world) for world in worlds]
        weights = [1] + [0] * (len(populations) - 1)
        return SingleLTE(
            populations, problem.epsilon, tail="none", never_worse=False, objective=problem.objective, weights=weights
        )
    except ProblemError:
        return None


def one_step(problem: MultiLTE) -> SingleLTE | None:
    """The same with one step of one person protected: weaker, but of any size, for it has two secrets only."""
    if not _plain(problem, problem.parties):
        return None
    try:
        whole = _union(problem.parties)
    except ProblemError:
        return None
    person = whole.people[0]
    pair = replace(whole, people=(Person(0, person.conditionals[:2]),), spec={"kind": "conditionals"}, laws=())
    epsilon = problem.epsilon / problem.sensitivity
    return SingleLTE(pair, epsilon, tail="none", never_worse=False, objective=problem.objective)


def _plain(problem: MultiLTE, world: tuple[Population, ...]) -> bool:
    return all(factor == 1 for factor in problem.f) and all(population.laws for population in world)


def _union(world: tuple[Population, ...]) -> Population:
    """Everybody in one population, with what is known to be constant left out (it shifts inputs and outputs alike)."""
    laws: Counter[tuple[Fraction, ...]] = Counter()
    for population in world:
        for law, count in population.laws:
            laws[law] += count
    if len(laws) == 1:
        ((law, count),) = laws.items()
        return Population.iid(count, law) if len(law) != 2 else Population.binomial(count, law[1])
    if sum(laws.values()) > LARGEST:
        raise ProblemError("Too many people to merge.")
    return Population.independent([law for law, count in laws.items() for _ in range(count)])


def _weighted(problem: MultiLTE, world: tuple[Population, ...]) -> Population:
    """The weighted sum of all, hiding only the people of a party that can move it furthest."""
    moves = [abs(factor) * population.largest for factor, population in zip(problem.f, world, strict=True)]
    chosen = moves.index(max(moves))
    rest, denominator = fmpz_poly([1]), 1
    for i, population in enumerate(world):
        if i != chosen:
            poly, scale = _polynomial(population.total, problem.f[i], population.last)
            rest, denominator = rest * poly, denominator * scale
    last = sum(abs(factor) * population.last for factor, population in zip(problem.f, world, strict=True))
    if last > LARGEST:
        raise ProblemError("Too large a sum to merge.")

    def law(own: Pmf) -> list[str]:
        poly, scale = _polynomial(own, problem.f[chosen], world[chosen].last)
        values = [int(value) for value in (poly * rest).coeffs()]
        values += [0] * (last + 1 - len(values))
        return [show(Fraction(value, scale * denominator)) for value in values]

    people = [[law(given) for given in person.conditionals] for person in world[chosen].people]
    return Population.from_conditionals(people, law(world[chosen].total))


def _polynomial(law: Pmf, factor: int, last: int) -> tuple[fmpz_poly, int]:
    """The law of `factor * x`, shifted so that it starts at 0."""
    if not isinstance(law, ExactPmf):
        raise ProblemError("Only exact laws are merged.")
    coefficients = [0] * (abs(factor) * last + 1)
    for x, weight in enumerate(law.weights):
        coefficients[factor * x if factor > 0 else factor * x - factor * last] = weight
    return fmpz_poly(coefficients), law.denominator
