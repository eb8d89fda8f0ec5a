"""Where groups come from: points, edges and columns of a CSV file, lists of a JSON file; or arrays of one's own.

Records are numbered from 0 and rows as a spreadsheet counts them: record `i` stands in row `i + 2`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.artifact.files import LONG_BYTES, LONG_VALUES, name_of, read_bytes
from optdp.artifact.strict_json import parse
from optdp.data import read_columns, real_numbers, whole_numbers
from optdp.errors import ArtifactError, ProblemError
from optdp.mallows.groups import LARGEST_N, Groups, Whole
from optdp.mallows.neighbourhoods import (
    LARGEST_MEMBERS,
    Reals,
    adjacency,
    distinct,
    from_column,
    from_graph,
    from_points,
    misplaced,
)
from optdp.math.exact import check_whole, shown

__all__ = [
    "adjacency",
    "column_csv",
    "distinct",
    "edges_csv",
    "from_column",
    "from_graph",
    "from_lists",
    "from_points",
    "points_csv",
]

LARGEST = 1.7e308


def points_csv(path: Path | str, columns: Sequence[str], metric: str = "euclidean") -> Reals:
    """A point for each row; for `"haversine"` the columns are latitude and longitude, in this order."""
    cells = read_columns(Path(path), columns)
    points = np.stack([_numbers(cells[name.strip()], name) for name in columns], axis=1)
    wrong = misplaced(points, metric)
    if wrong is not None:
        record, rule = wrong
        found = ", ".join(f"{value:g}" for value in points[record])
        raise ProblemError(f"{rule} Found {found} in row {record + 2}. Correct {name_of(path)}.")
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
        a, b = edges[wrong[0]].tolist()
        raise ProblemError(
            f"Edges must join records 0..{most - 1}. Found {a} and {b} in row {wrong[0] + 2}. Number the nodes from 0."
        )
    return edges, int(edges.max()) + 1 if n is None else n


def column_csv(path: Path | str, column: str, numbers: bool = True) -> NDArray[Any]:
    """The finite numbers of a column, or its labels without the spaces around them; an empty cell is a label too."""
    cells = read_columns(Path(path), [column])[column.strip()]
    return _numbers(cells, column) if numbers else np.array([cell.strip() for cell in cells])


def from_lists(path: Path | str, n: int | None = None) -> Groups:
    """Groups from a JSON file: a list of lists of record numbers, or `{"n": .., "groups": [[..], ..]}`.

    Where nothing says how many records there are, it is one more than the largest that is named.
    """
    try:
        held = parse(read_bytes(path, LONG_BYTES), LONG_VALUES)
    except ArtifactError as error:
        raise ProblemError(
            f"Groups must be a JSON file. Found {name_of(path)}, of which this is said: {error}"
        ) from None
    if isinstance(held, dict):
        if "groups" not in held or held.keys() - {"n", "groups"}:
            raise ProblemError(f"A file of groups must say groups, and may say n. Found {shown(sorted(held))}.")
        check_whole(held.get("n", 1), "n", 1, LARGEST_N)
        if n is not None and held.get("n", n) != n:
            raise ProblemError(f"The groups must be of {n:,} records. Found n = {held['n']:,} in {name_of(path)}.")
        n, held = held.get("n", n), held["groups"]
    if not isinstance(held, list) or not held:
        raise ProblemError(f"Groups must be a list of lists. Found {shown(held)} in {name_of(path)}.")
    most = LARGEST_N if n is None else n
    for number, group in enumerate(held):
        if not isinstance(group, list):
            raise ProblemError(f"A group must be a list of records. Found {shown(group)} as group {number}.")
        wrong = [one for one in group if type(one) is not int or not 0 <= one < most]
        if wrong:
            raise ProblemError(
                f"Groups must name records 0..{most - 1}. Found {shown(wrong[0])} in group {number}. Count from 0."
            )
    if sum(map(len, held)) > LARGEST_MEMBERS:
        raise ProblemError(f"All groups together may have {LARGEST_MEMBERS:,} members. Found more. Split the records.")
    return Groups.of(held, n if n is not None else 1 + max(max(group, default=0) for group in held))


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
        raise ProblemError(f"An edge list must begin with a header. Found {shown(names)}. Name the columns: from,to.")
    return names
