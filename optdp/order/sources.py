"""Where groups come from: points, edges and columns of a CSV file, lists of a JSON file; or arrays of one's own.

Records are numbered from 0 and rows as a spreadsheet counts them: record `i` stands in row `i + 2`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictInt, StrictStr, ValidationError

from optdp.errors import ArtifactError, ProblemError
from optdp.files.atomic import LONG_BYTES, LONG_VALUES, name_of, read_bytes
from optdp.files.canonical import parse
from optdp.files.data import read_columns, real_numbers, whole_numbers
from optdp.files.models import Exact, Strict, named_file, plain_number
from optdp.numbers.exact import check_whole, shown
from optdp.order.groups import FILES, LARGEST_N, Groups, Whole, check_members, starts_of
from optdp.order.neighbourhoods import Reals, from_column, from_graph, from_points, misplaced
from optdp.work.account import EffortError, spend

__all__ = ["column_csv", "edges_csv", "from_column", "from_graph", "from_lists", "from_points", "points_csv"]

LARGEST = 1.7e308


def points_csv(path: Path | str, columns: Sequence[str], metric: str = "euclidean") -> Reals:
    """A point for each row; for `"haversine"` the columns are latitude and longitude, in this order."""
    cells = read_columns(Path(path), columns)
    points = np.stack([_numbers(cells[name.strip()], name) for name in columns], axis=1)
    wrong = misplaced(points, metric)
    if wrong is not None:
        record, rule = wrong
        raise ProblemError(f"{rule} Found another in row {record + 2}. Correct {name_of(path)}.")
    return points


def edges_csv(path: Path | str, n: int | None = None, columns: Sequence[str] = ()) -> tuple[Whole, int]:
    """The edges of a graph, and how many records it has: `n`, or else one more than the largest that is named.

    The file has two columns below any header, or the two that are named; a row is an edge between two records.
    """
    names = list(columns) or _header(Path(path))
    if len(names) != 2:
        raise ProblemError(f"An edge list must have two columns. Found {len(names)} in {name_of(path)}. Name the two.")
    cells = read_columns(Path(path), names)
    ends = [whole_numbers(cells[name.strip()], name, 1 - 2**53, 2**53 - 1, clip=False) for name in names]
    edges = np.stack(ends, axis=1)
    most = LARGEST_N if n is None else n
    check_whole(most, "n", 1, LARGEST_N)
    wrong = np.flatnonzero(((edges < 0) | (edges >= most)).any(axis=1))
    if len(wrong):
        raise ProblemError(
            f"Edges must join records 0..{most - 1}. Found another in row {wrong[0] + 2}. Number them from 0."
        )
    return edges, int(edges.max()) + 1 if n is None else n


def column_csv(path: Path | str, column: str, numbers: bool = True) -> NDArray[Any]:
    """The finite numbers of a column, or its labels without the spaces around them; an empty cell is a label too."""
    cells = read_columns(Path(path), [column])[column.strip()]
    return _numbers(cells, column) if numbers else np.array([cell.strip() for cell in cells], dtype=object)


def from_lists(path: Path | str, n: int | None = None) -> Groups:
    """Groups from a JSON file: a list of lists of record numbers, or `{"n": .., "groups": [[..], ..]}`.

    Where nothing says how many records there are, it is one more than the largest that is named.
    """
    n, held = _listed(path, n)
    most = LARGEST_N if n is None else n
    for number, group in enumerate(held):
        if not isinstance(group, list):
            raise ProblemError(f"A group must be a list of records. Found something else as group {number}.")
        if not all(type(one) is int and 0 <= one < most for one in group):
            raise ProblemError(
                f"Groups must name records 0..{most - 1}. Found something else in group {number}. Count from 0."
            )
    total = sum(map(len, held))
    check_members(total)
    n = n if n is not None else 1 + max(max(group, default=0) for group in held)
    check_whole(n, "n", 1, LARGEST_N)
    spend(len(held) + 0.35 * total, "groups")
    for number, group in enumerate(held):
        if len(set(group)) < len(group):
            raise ProblemError(f"A group must name a record once. Found one twice in group {number}.")
        group.sort()
    members = np.fromiter(chain.from_iterable(held), np.int64, total)
    return Groups(n, starts_of([len(group) for group in held]), members)


def _listed(path: Path | str, n: int | None) -> tuple[int | None, list[Any]]:
    """How many records a file of groups says that there are, if it does, and what it lists."""
    try:
        held = parse(read_bytes(path, LONG_BYTES), LONG_VALUES)
    except EffortError:
        raise
    except ArtifactError as error:
        raise ProblemError(
            f"Groups must be a JSON file. Found {name_of(path)}, of which this is said: {error}"
        ) from None
    if isinstance(held, dict):
        if "groups" not in held or held.keys() - {"n", "groups"}:
            raise ProblemError(f"A file of groups must say groups, and may say n. Found other keys in {name_of(path)}.")
        if type(held.get("n", 1)) is not int or not 1 <= held.get("n", 1) <= LARGEST_N:
            raise ProblemError(f"n must be a whole number from 1 to {LARGEST_N:,}. Found another in {name_of(path)}.")
        if n is not None and held.get("n", n) != n:
            raise ProblemError(f"The groups must be of {n:,} records. Found n = {held['n']:,} in {name_of(path)}.")
        n, held = held.get("n", n), held["groups"]
    if not isinstance(held, list) or not held:
        raise ProblemError(f"Groups must be a list of lists. Found something else in {name_of(path)}.")
    return n, held


def _numbers(cells: Sequence[str], name: str) -> Reals:
    return real_numbers(cells, name, -LARGEST, LARGEST, clip=False)


def _header(path: Path) -> list[str]:
    """The names of the columns; numbers are none, or the first edge would be lost."""
    try:
        with path.open(encoding="utf-8-sig", newline="") if path.is_file() else io.StringIO("from,to") as file:
            names = [name.strip() for name in next(csv.reader([file.readline(10**6)]), [])]
    except (OSError, UnicodeDecodeError, csv.Error):
        return ["from", "to"]  # `read_columns` says what is wrong
    if names and all(name.lstrip("-").isdigit() for name in names):
        raise ProblemError("An edge list must begin with a header. Found numbers. Name the columns: from,to.")
    return names


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
    def read(cls, spec: Mapping[str, Any], folder: Path, allow_outside: bool) -> GroupsModel:
        """From an artifact, whose files are named from its folder, and lie there or below unless allowed."""
        named = {
            key: named_file(folder, value, allow_outside) if key in FILES and isinstance(value, str) else value
            for key, value in spec.items()
        }
        try:
            return cls.model_validate(named)
        except ValidationError:
            raise ProblemError(
                f"The order's file does not say properly where its groups are from. Found {shown(spec)}."
            ) from None

    def build(self) -> Groups:
        """The groups, made from the file that is named."""
        given = [name for name in FILES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ProblemError(f"[groups] needs one of {', '.join(FILES)}. Found {' and '.join(given) or 'none'}.")
        if self.points is not None:
            if self.columns is None or self.radius is None:
                raise ProblemError("Groups by points need columns and a radius. Add them.")
            places = points_csv(Path(self.points), self.columns, self.metric)
            return from_points(places, plain_number(self.radius, "radius"), self.metric)
        if self.graph is not None:
            edges, found = edges_csv(Path(self.graph), self.n)
            return from_graph(edges, self.hops, found)
        if self.data is not None:
            if self.column is None:
                raise ProblemError("Groups by data need a column. Add it.")
            within = None if self.within is None else plain_number(self.within, "within")
            values = column_csv(Path(self.data), self.column, within is not None)
            return from_column(values, within, once=True)  # equal groups once: the sensitivity is the same
        assert self.file is not None
        return from_lists(Path(self.file), self.n)

    def spec(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True, exclude_defaults=True)
