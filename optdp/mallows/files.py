"""The problem file of an order shuffle: how it is checked, and the problem that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, StrictInt, StrictStr, ValidationError

from optdp.data import read_columns
from optdp.errors import ProblemError
from optdp.file_models import Documented, Exact, Strict, Sweep, plain_number
from optdp.mallows.plain_groups import FILES, PlainGroups
from optdp.mallows.problem import OrderShuffle
from optdp.math.exact import shown

if TYPE_CHECKING:
    from optdp.mallows.groups import Groups
    from optdp.mallows.study import Study


class GroupsModel(Strict):
    """Who is grouped with whom: by points and a radius, by a graph and hops, by a column, or by a file of groups."""

    points: StrictStr | None = Field(None, description="A CSV file with a row for each record.")
    columns: list[StrictStr] | None = Field(None, description="The columns of the points' coordinates.")
    radius: Exact | None = Field(None, description="Everybody within it; kilometres for haversine.")
    metric: StrictStr = Field("euclidean", description="euclidean, or haversine for latitude and longitude in degrees.")
    graph: StrictStr | None = Field(None, description="A CSV file with an edge in each row: two record numbers.")
    hops: StrictInt = Field(1, description="Everybody within so many steps.")
    n: StrictInt | None = Field(None, description="How many records a graph has, if some have no edge.")
    data: StrictStr | None = Field(None, description="A CSV file with a column to group by.")
    column: StrictStr | None = Field(None, description="Its column.")
    within: Exact | None = Field(None, description="Numbers within so much; left out: equal text.")
    file: StrictStr | None = Field(None, description="A JSON file: a list of groups, each a list of record numbers.")

    @classmethod
    def read(cls, spec: Mapping[str, Any], folder: Path) -> GroupsModel:
        """From an artifact, whose files are named from its folder."""
        named = {
            key: str(folder / value) if key in FILES and isinstance(value, str) else value
            for key, value in spec.items()
        }
        try:
            return cls.model_validate(named)
        except ValidationError:
            raise ProblemError(
                f"The order's file does not say properly where its groups are from. Found {shown(spec)}."
            ) from None

    def build(self) -> Groups:
        """The groups in arrays, for solving."""
        from optdp.mallows import sources

        found: Groups = self._made(sources)
        return found

    def plain(self) -> PlainGroups:
        """The same groups, made without numpy, for verifying."""
        from optdp.mallows import plain_sources

        found: PlainGroups = self._made(plain_sources)
        return found

    def _made(self, sources: Any) -> Any:
        """Both modules that may be given have functions of the same names."""
        given = [name for name in FILES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ProblemError(f"[groups] needs one of {', '.join(FILES)}. Found {' and '.join(given) or 'none'}.")
        if self.points is not None:
            if self.columns is None or self.radius is None:
                raise ProblemError("Groups by points need columns and a radius. Add them.")
            places = sources.points_csv(Path(self.points), self.columns, self.metric)
            return sources.from_points(places, plain_number(self.radius, "radius"), self.metric)
        if self.graph is not None:
            edges, found = sources.edges_csv(Path(self.graph), self.n)
            return sources.from_graph(edges, self.hops, found)
        if self.data is not None:
            if self.column is None:
                raise ProblemError("Groups by data need a column. Add it.")
            within = None if self.within is None else plain_number(self.within, "within")
            values = sources.column_csv(Path(self.data), self.column, within is not None)
            return sources.from_column(values, within, once=True)  # equal groups once: the sensitivity is the same
        assert self.file is not None
        return sources.from_lists(Path(self.file), self.n)

    def spec(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True, exclude_defaults=True)


class StudyModel(Strict):
    """Simulations with the true values: who is found out by a vote of the neighbours, and what can still be learned."""

    data: StrictStr = Field(description="A CSV file with a row for each record.")
    column: StrictStr = Field(description="The column of the true values, any labels.")
    epsilon: Exact = Field(description="Of the local randomizer, k-RR on the labels.")
    neighbours: StrictInt = 25
    trials: StrictInt = 50
    repeats: StrictInt = 3
    model: StrictStr = Field("nearest", description="nearest, or trees (scikit-learn).")
    seed: StrictInt = 1

    def build(self) -> Study:
        import numpy as np

        from optdp.mallows.study import Study

        labels = read_columns(Path(self.data), [self.column])[self.column.strip()]
        known = {label: i for i, label in enumerate(sorted({label.strip() for label in labels}))}
        values = np.array([known[label.strip()] for label in labels], dtype=np.int64)
        settings = {name: getattr(self, name) for name in ("neighbours", "trials", "repeats", "model", "seed")}
        epsilon = plain_number(self.epsilon, "epsilon")
        return Study(values, max(2, len(known)), epsilon, **settings)


class OrderShuffleFile(Documented):
    """Shuffle records within groups: the order of least sensitivity, and the Mallows shuffle around it."""

    kind: Literal["order-shuffle"]
    alpha: Exact
    distance: StrictStr = Field("kendall", description="kendall or hamming.")
    ordering: StrictStr = Field("best", description="best, or a heuristic by its name.")
    budget: Exact = Field(60, description="Seconds for best.")
    groups: GroupsModel
    study: StudyModel | None = None
    sweep: Sweep | None = None

    def build(self) -> OrderShuffle:
        budget = plain_number(self.budget, "budget")
        study = None if self.study is None else self.study.build()
        return OrderShuffle(
            self.groups.build(), self.alpha, self.distance, self.ordering, budget, self.groups.spec(), study
        )
