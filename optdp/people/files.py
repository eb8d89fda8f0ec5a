"""Populations in problem files: how they are checked, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StrictStr

from optdp.errors import ProblemError
from optdp.files.models import Exact, Law, Strict
from optdp.people.observer import Observer
from optdp.people.population import Population


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


class Watching(Strict):
    """An observer: what somebody may know about the people."""

    between: list[Exact] | list[Law] | None = Field(
        None, description="Two probabilities, or two laws: everybody else is somewhere between them."
    )
    margin: Exact | None = Field(None, description="So much around the probability of each kind of person.")
    known: StrictInt | Literal["all"] = Field(0, description='How many of the others are known exactly, or "all".')
    epsilon: Exact | None = Field(None, description="The privacy against this observer, if not the problem's.")

    def build(self) -> Observer:
        return Observer(self.between, self.margin, self.known, self.epsilon)


MOST_BYTES = 3e8
"""The most memory that the exact laws of all populations of a problem may take together."""


def made(given: Sequence[Any]) -> list[Population]:
    """Every population, unless all together would fill the memory; once each, as a file may name a thousand alike."""
    found: dict[str, Population] = {}
    needed = 0.0
    names = [item.model_dump_json() for item in given]
    for i, (name, item) in enumerate(zip(names, given, strict=True)):
        if name in found:
            continue
        found[name] = item.build()
        needed += found[name].bytes_needed
        if needed > MOST_BYTES:
            raise ProblemError(
                f"The exact laws of all populations may take {MOST_BYTES / 1e9:g} GB together. Found more with the "
                f"first {i + 1} of {len(given)}. Use fewer populations, or fewer people in each."
            )
    return [found[name] for name in names]


class _Unit(Strict):
    unit: StrictStr = Field("", description='What is counted, such as "e-mails"; the same for every party.')

    observer: Watching | None = Field(None, description="What somebody may know about this party's people.")


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
