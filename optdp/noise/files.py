"""Problem files of noise matrices and plans: how they are checked, and the problems that they become."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from optdp.errors import ProblemError
from optdp.file_models import Documented, Exact, Law, Strict
from optdp.noise.multi import MultiLTE
from optdp.noise.population import Population
from optdp.noise.single import SingleLTE


class _Concentrated(Strict):
    conservative: Exact | None = Field(None, description="Share of the people who are uncertain (A, section VI-E).")

    def finish(self, population: Population) -> Population:
        return population if self.conservative is None else population.conservative(self.conservative)


class Binomial(_Concentrated):
    """`n` people who each contribute 1 with probability `p`."""

    kind: Literal["binomial"]
    n: StrictInt
    p: Exact

    def build(self) -> Population:
        return self.finish(Population.binomial(self.n, self.p))


class Iid(_Concentrated):
    """`n` people who each contribute `0..D` with the probabilities `pmf`."""

    kind: Literal["iid"]
    n: StrictInt
    pmf: Law

    def build(self) -> Population:
        return self.finish(Population.iid(self.n, self.pmf))


class Group(Strict):
    """`count` people of one kind."""

    count: StrictInt = Field(1, ge=1, le=1_000_000)
    pmf: Law


class Independent(_Concentrated):
    """People that differ."""

    kind: Literal["independent"]
    people: list[Group] = Field(min_length=1)

    def build(self) -> Population:
        if sum(group.count for group in self.people) > 1_000_000:
            raise ProblemError("An independent population has at most 1,000,000 people.")
        return self.finish(Population.independent([g.pmf for g in self.people for _ in range(g.count)]))


class Counts(_Concentrated):
    """`n` people like those of a past survey, in which `counts[w]` people contributed `w`."""

    kind: Literal["counts"]
    counts: list[StrictInt]
    n: StrictInt | None = None
    smoothing: Exact = 1

    def build(self) -> Population:
        return self.finish(Population.from_counts(self.counts, self.n, self.smoothing))


class Others(Strict):
    """One kind of person, given the law of the sum of everybody else."""

    kind: Literal["others"]
    others: Law
    contributions: Law | StrictInt = 1

    def build(self) -> Population:
        return Population.from_others(self.others, self.contributions)


class Conditionals(Strict):
    """People that need not be independent: the law of the sum given each contribution of each kind of person."""

    kind: Literal["conditionals"]
    people: list[list[Law]]
    total: Law

    def build(self) -> Population:
        return Population.from_conditionals(self.people, self.total)


AnyPopulation = Annotated[Binomial | Iid | Independent | Counts | Others | Conditionals, Field(discriminator="kind")]


MOST_BYTES = 3e8
"""The most memory that the exact laws of all populations of a problem may take together."""


def _built(given: Sequence[Binomial | Iid | Independent | Counts | Others | Conditionals]) -> list[Population]:
    """Every population, unless all together would fill the memory."""
    built: list[Population] = []
    needed = 0.0
    for i, item in enumerate(given):
        built.append(item.build())
        needed += built[-1].bytes_needed
        if needed > MOST_BYTES:
            raise ProblemError(
                f"The exact laws of all populations may take {MOST_BYTES / 1e9:g} GB together. Found more with the "
                f"first {i + 1} of {len(given)}. Use fewer populations, or fewer people in each."
            )
    return built


class SingleLTEFile(Documented):
    """The best noise matrix for one entity that knows the prior of its people's sum."""

    kind: Literal["single-lte"]
    epsilon: Exact
    fallback_epsilon: Exact | None = None
    tail: Literal["geometric", "none"] = "geometric"
    never_worse: StrictBool = True
    objective: Literal["mae", "mse"] = "mae"
    adjacency: Literal["unit", "all"] = "unit"
    method: Literal["lp", "shifting", "geometric"] = "lp"
    population: AnyPopulation | list[AnyPopulation]
    weights: list[Exact] | None = None

    def build(self) -> SingleLTE:
        given = self.population if isinstance(self.population, list) else [self.population]
        return SingleLTE(
            population=_built(given),
            epsilon=self.epsilon,
            fallback_epsilon=self.fallback_epsilon,
            tail=self.tail,
            never_worse=self.never_worse,
            objective=self.objective,
            adjacency=self.adjacency,
            method=self.method,
            weights=self.weights,
        )


class _Unit(Strict):
    unit: StrictStr = Field("", description='What is counted, such as "e-mails"; the same for every party.')


class BinomialParty(Binomial, _Unit):
    pass


class IidParty(Iid, _Unit):
    pass


class IndependentParty(Independent, _Unit):
    pass


class CountsParty(Counts, _Unit):
    pass


class OthersParty(Others, _Unit):
    pass


class ConditionalsParty(Conditionals, _Unit):
    pass


AnyParty = Annotated[
    BinomialParty | IidParty | IndependentParty | CountsParty | OthersParty | ConditionalsParty,
    Field(discriminator="kind"),
]


class World(Strict):
    """Another world in which the same privacy must hold: one population for each party."""

    parties: list[AnyParty]


class MultiLTEFile(Documented):
    """The best tables for several entities whose reports are added before anybody sees them."""

    kind: Literal["multi-lte"]
    epsilon: Exact
    method: Literal["joint", "divisible", "geometric"] = "joint"
    honest: StrictInt | None = None
    objective: Literal["mae", "mse"] = "mae"
    fallback_epsilon: Exact | None = None
    f: list[StrictInt] | None = Field(None, description="Integer coefficients of a weighted sum, one for each party.")
    divisor: Exact = Field(1, description="A public number that the aggregate is divided by.")
    contraction: Literal["optimal", "scaled", "shifts", "none", "algorithm-5"] = "optimal"
    parties: list[AnyParty]
    also: list[World] = Field(default_factory=list)

    def build(self) -> MultiLTE:
        every = [self.parties, *(world.parties for world in self.also)]
        units = sorted({party.unit for parties in every for party in parties})
        if len(units) > 1:
            listed = ", ".join(unit or "none" for unit in units)
            raise ProblemError(
                f"All parties must count in one unit, for their sums are added. Found the units {listed}. Convert "
                "them, or use the coefficients f."
            )
        named = {party.model_dump_json(): party for party in itertools.chain.from_iterable(every)}
        # Once each: a file may name a thousand alike.
        built = dict(zip(named, _built(list(named.values())), strict=True))
        worlds = [[built[party.model_dump_json()] for party in parties] for parties in every]
        return MultiLTE(
            parties=worlds[0],
            epsilon=self.epsilon,
            honest=self.honest,
            method=self.method,
            objective=self.objective,
            fallback_epsilon=self.fallback_epsilon,
            f=self.f,
            divisor=self.divisor,
            also=worlds[1:],
            contraction=self.contraction,
        )
