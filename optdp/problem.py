"""Problem files: TOML in, validated problems out; the registry of kinds; their JSON Schema.

Decimals are read as the decimals they are. Besides the problem a file may say where it comes from (`title`, `source`,
`notes`) and what to expect (`[expect]`), which the tests hold it to.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, TypeAdapter, ValidationError

from optdp.errors import ProblemError
from optdp.noise.multi import MultiLTE
from optdp.noise.population import Population
from optdp.noise.single import SingleLTE

LARGEST_FILE = 64 * 1024 * 1024

Exact = Annotated[StrictInt | StrictStr, Field(description='An exact number: an integer, or "0.3", "1e-3", "1/3".')]
Law = Annotated[list[Exact], Field(description="Probabilities that sum to exactly 1.")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Concentrated(_Strict):
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


class Group(_Strict):
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


class Others(_Strict):
    """One kind of person, given the law of the sum of everybody else."""

    kind: Literal["others"]
    others: Law
    contributions: Law | StrictInt = 1

    def build(self) -> Population:
        return Population.from_others(self.others, self.contributions)


class Conditionals(_Strict):
    """People that need not be independent: the law of the sum given each contribution of each kind of person."""

    kind: Literal["conditionals"]
    people: list[list[Law]]
    total: Law

    def build(self) -> Population:
        return Population.from_conditionals(self.people, self.total)


AnyPopulation = Annotated[Binomial | Iid | Independent | Counts | Others | Conditionals, Field(discriminator="kind")]


class SingleLTEFile(_Strict):
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
    title: StrictStr = ""
    source: StrictStr = ""
    notes: StrictStr = ""
    expect: dict[str, Any] = Field(default_factory=dict)

    def build(self) -> SingleLTE:
        given = self.population if isinstance(self.population, list) else [self.population]
        return SingleLTE(
            population=[item.build() for item in given],
            epsilon=self.epsilon,
            fallback_epsilon=self.fallback_epsilon,
            tail=self.tail,
            never_worse=self.never_worse,
            objective=self.objective,
            adjacency=self.adjacency,
            method=self.method,
            weights=self.weights,
        )


class _Unit(_Strict):
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


class World(_Strict):
    """Another world in which the same privacy must hold: one population for each party."""

    parties: list[AnyParty]


class MultiLTEFile(_Strict):
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
    title: StrictStr = ""
    source: StrictStr = ""
    notes: StrictStr = ""
    expect: dict[str, Any] = Field(default_factory=dict)

    def build(self) -> MultiLTE:
        every = [self.parties, *(world.parties for world in self.also)]
        units = sorted({party.unit for parties in every for party in parties})
        if len(units) > 1:
            listed = ", ".join(unit or "none" for unit in units)
            raise ProblemError(
                f"All parties must count in one unit, for their sums are added. Found the units {listed}. Convert "
                "them, or use the coefficients f."
            )
        return MultiLTE(
            parties=[party.build() for party in self.parties],
            epsilon=self.epsilon,
            honest=self.honest,
            method=self.method,
            objective=self.objective,
            fallback_epsilon=self.fallback_epsilon,
            f=self.f,
            divisor=self.divisor,
            also=[[party.build() for party in world.parties] for world in self.also],
            contraction=self.contraction,
        )


Problem = SingleLTE | MultiLTE
"""Every problem that optdp solves."""


@dataclass(frozen=True)
class Kind:
    """A kind of problem: how its file is checked, and what it is for."""

    model: type[SingleLTEFile] | type[MultiLTEFile]
    purpose: str


KINDS: dict[str, Kind] = {
    "single-lte": Kind(SingleLTEFile, "the best certified noise matrix for one locally trusted entity"),
    "multi-lte": Kind(MultiLTEFile, "the best certified plan for several entities of whom only the sum is seen"),
}
"""Every kind of problem that optdp solves."""


@dataclass(frozen=True)
class ProblemFile:
    """A problem together with what its file says about it."""

    problem: Problem
    title: str
    source: str
    expect: Mapping[str, Any]


def load(path: str | Path) -> Problem:
    """The problem in a TOML file."""
    return load_file(path).problem


def load_file(path: str | Path) -> ProblemFile:
    """The problem in a TOML file, with its title, source and expectations."""
    place = Path(path)
    try:
        if not place.is_file():
            raise ProblemError(f"A problem file must be a regular file. Found none at {place}. See: optdp problems.")
        if place.stat().st_size > LARGEST_FILE:
            raise ProblemError(f"A problem file must be smaller than {LARGEST_FILE >> 20} MiB. Found {place}.")
        data = tomllib.loads(place.read_text(encoding="utf-8"), parse_float=str)
    except OSError as error:
        raise ProblemError(f"Cannot read {place}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ProblemError(f"{place} is not a TOML file: {str(error).splitlines()[0]}.") from None
    file = _validate(data)
    return ProblemFile(file.build(), file.title, file.source, file.expect)


def from_spec(data: Mapping[str, Any]) -> Problem:
    """The problem in a mapping, such as the one that an artifact carries."""
    return _validate(data).build()


def _validate(data: Mapping[str, Any]) -> SingleLTEFile | MultiLTEFile:
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ProblemError(f"kind must be one of {', '.join(KINDS)}. Found {kind!r}.")
    try:
        return KINDS[kind].model.model_validate(dict(data))
    except ValidationError as error:
        raise ProblemError(_first_line(error)) from None


def _first_line(error: ValidationError) -> str:
    """The first defect as one line: where, what is wrong, what was found."""
    first = error.errors(include_url=False)[0]
    tags = ("binomial", "iid", "independent", "counts", "others", "conditionals", "list[tagged-union")
    steps = [str(step) for step in first["loc"] if not str(step).startswith(tags) and "union" not in str(step)]
    where = _printable(".".join(steps)) or "the problem"
    if first["type"] == "extra_forbidden":
        return f"Unknown key {where!r}. Remove it, or see: optdp schema."
    if first["type"] == "missing":
        return f"{where} is missing. Add it; see: optdp schema."
    shown, said = repr(first.get("input")), _printable(first["msg"])
    return f"{where}: {said}. Found {shown if len(shown) <= 60 else shown[:57] + '...'}."


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text[:300])


def schema() -> dict[str, Any]:
    """The JSON Schema of all problem files."""
    models = [kind.model for kind in KINDS.values()]
    return TypeAdapter(reduce(or_, models)).json_schema()


def library() -> list[Path]:
    """The problem files of the instance library: `problems/` here, or beside the package."""
    find: Callable[[Path], list[Path]] = lambda root: sorted((root / "problems").rglob("*.toml"))  # noqa: E731
    return find(Path.cwd()) or find(Path(__file__).resolve().parent.parent)
