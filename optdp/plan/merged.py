"""A bound for every plan: one entity that holds everybody's data and is asked for no more privacy.

Let all people be alike, contribute 0 or 1, and count once each. Take any plan, or any mechanism at all that sees the
whole data and releases a number, and average it over all permutations of the people. The error stays what it was. What
the average releases given a secret `w` of one person is the average, over people, of what the mechanism releases given
that secret of theirs; so quotients are bounded as before. And the average treats data with the same total alike: it is
a noise matrix for the merged population. Hence no plan has a smaller error than the best matrix of a single entity for
that population, without tails and without condition (3).

With people that differ, contributions beyond 1, or coefficients, data with the same total need not be treated alike,
and a plan can be *better* than the best matrix on totals. Then this bound does not hold, and none is given.
"""

from __future__ import annotations

from fractions import Fraction

from optdp.people.population import Population
from optdp.plan.problem import MultiLTE
from optdp.single.problem import SingleLTE


def bounding(problem: MultiLTE) -> SingleLTE | None:
    """The problem of the single entity whose optimum bounds every plan; None if there is no proof that it does."""
    if any(factor != 1 for factor in problem.f):
        return None
    populations = []
    # A conservative prior shifts the sum by what is known, differently in every world: then the first has to do.
    shifted = any("conservative" in population.spec for world in problem.worlds for population in world)
    for world in problem.worlds[:1] if shifted else problem.worlds:
        whole = _union(world)
        if whole is None:
            return None
        populations.append(whole)
    weights = [1] + [0] * (len(populations) - 1)
    return SingleLTE(
        populations, problem.epsilon, tail="none", never_worse=False, objective=problem.objective, weights=weights
    )


def _union(world: tuple[Population, ...]) -> Population | None:
    """Everybody in one population if all are alike and contribute 0 or 1; a known constant only shifts the sum."""
    laws: set[tuple[Fraction, ...]] = {law for population in world for law, _ in population.laws}
    if len(laws) != 1 or not all(population.laws for population in world):
        return None
    (law,) = laws
    people = sum(count for population in world for _, count in population.laws)
    return Population.binomial(people, law[1]) if len(law) == 2 else None
