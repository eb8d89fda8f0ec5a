"""A prior in words and figures: what is taken to be known about the people who are counted."""

from __future__ import annotations

import math
from fractions import Fraction

from optdp.math.exact import to_fraction
from optdp.math.pmf import BinomialPmf, ExactPmf
from optdp.noise.population import Population
from optdp.page.figures import people, short
from optdp.page.markup import Html, join, paragraphs, table

KINDS, VALUES = 12, 12
"""How many kinds of people, and how many contributions of one, are listed."""


def moments(population: Population) -> tuple[float, float]:
    """Mean and standard deviation of the sum, in floating point."""
    law = population.total
    if isinstance(law, BinomialPmf):
        p = float(law.p)
        return law.shift + law.n * p, math.sqrt(law.n * p * (1 - p))
    assert isinstance(law, ExactPmf)
    weights = [weight / law.denominator for weight in law.weights]
    mean = math.fsum(x * weight for x, weight in enumerate(weights))
    return mean, math.sqrt(max(0.0, math.fsum((x - mean) ** 2 * weight for x, weight in enumerate(weights))))


def described(population: Population) -> Html:
    """The prior: who is counted, what each may contribute, and how likely each sum is."""
    return join(KIND_WORDS[population.spec["kind"]](population), _narrowed(population), paragraphs(_sum(population)))


def headcount(population: Population) -> str:
    """How many people there are."""
    return people(population.size) if population.size else "an unstated number of people"


def _sum(population: Population) -> str:
    mean, deviation = moments(population)
    return (
        f"The true sum is then a number from 0 to {population.last:,}: {mean:.5g} on average, with a standard "
        f"deviation of {deviation:.3g}."
    )


def _narrowed(population: Population) -> Html | None:
    if "conservative" not in population.spec:
        return None
    share = float(to_fraction(population.spec["conservative"], "conservative"))
    return paragraphs(
        f"Only a share of {share:.4g} of each kind of people is taken to be uncertain. The others are taken to be "
        "known and to contribute their mean."
    )


def _binomial(population: Population) -> Html:
    p = short(to_fraction(population.spec["p"], "p"))
    return paragraphs(
        f"{people(population.spec['n'])[:1].upper()}{people(population.spec['n'])[1:]}. Each contributes 1 with "
        f"probability {p} and 0 otherwise, independently of everybody else."
    )


def _law(law: tuple[Fraction, ...]) -> Html:
    shown = list(enumerate(law))[:VALUES]
    rows = [[str(w), short(value)] for w, value in shown]
    if len(law) > VALUES:
        rows.append([f"{VALUES} to {len(law) - 1}", f"{short(sum(law[VALUES:], Fraction(0)))} together"])
    return table(["contribution", "probability"], rows, numbers=(0, 1))


def _iid(population: Population) -> Html:
    n, law = population.spec["n"], population.laws[0][0]
    words = f"{n:,} people, independent of each other, who each contribute a whole number from 0 to {len(law) - 1}:"
    return join(paragraphs(words), _law(law))


def _counts(population: Population) -> Html:
    spec, law = population.spec, population.laws[0][0]
    seen = sum(spec["counts"])
    words = (
        f"{spec['n']:,} people, independent of each other, who are like the {seen:,} people of an earlier survey. "
        f"{spec['smoothing']} was added to each of its counts, so that nothing is held to be impossible:"
    )
    return join(paragraphs(words), _law(law))


def _independent(population: Population) -> Html:
    words = (
        f"{population.size:,} people, independent of each other, of "
        f"{'one kind' if len(population.laws) == 1 else f'{len(population.laws):,} kinds'}:"
    )
    rows = []
    for law, count in population.laws[:KINDS]:
        chances = ", ".join(f"{w}: {short(value)}" for w, value in enumerate(law[:VALUES]))
        rows.append([f"{count:,}", chances + (", ..." if len(law) > VALUES else "")])
    if len(population.laws) > KINDS:
        rest = population.laws[KINDS:]
        rows.append([f"{sum(count for _, count in rest):,}", f"{len(rest):,} further kinds"])
    return join(paragraphs(words), table(["people", "probability of each contribution"], rows, numbers=(0,)))


def _others(population: Population) -> Html:
    return paragraphs(
        "How many people there are is not stated. Instead the artifact states, for every person alike, how likely each "
        f"sum of all the others is: a number from 0 to {population.last - population.largest:,}. The person "
        f"contributes a whole number from 0 to {population.largest}, independently of them."
    )


def _conditionals(population: Population) -> Html:
    kinds = "one kind" if len(population.people) == 1 else f"{len(population.people)} kinds"
    return paragraphs(
        f"People need not be independent of each other. The artifact states, for {kinds} of person and for each "
        f"contribution from 0 to {population.largest}, how likely each sum is. Such a prior is what is left after an "
        "earlier release about the same people."
    )


KIND_WORDS = {
    "binomial": _binomial,
    "iid": _iid,
    "counts": _counts,
    "independent": _independent,
    "others": _others,
    "conditionals": _conditionals,
}
"""How each kind of population is put into words."""
