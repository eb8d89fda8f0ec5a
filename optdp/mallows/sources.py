"""Where groups come from: points, edges and columns of a CSV file, lists of a JSON file; or arrays of one's own.

Records are numbered from 0 and rows as a spreadsheet counts them: record `i` stands in row `i + 2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.mallows import plain_sources
from optdp.mallows.groups import Groups, Whole
from optdp.mallows.neighbourhoods import Reals, adjacency, distinct, from_column, from_graph, from_points

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


def points_csv(path: Path | str, columns: Sequence[str], metric: str = "euclidean") -> Reals:
    """A point for each row; for `"haversine"` the columns are latitude and longitude, in this order."""
    return np.stack(plain_sources.points_csv(path, columns, metric), axis=1)


def edges_csv(path: Path | str, n: int | None = None, columns: Sequence[str] = ()) -> tuple[Whole, int]:
    """The edges of a graph, and how many records it has: `n`, or else one more than the largest that is named.

    The file has two columns below any header, or the two that are named; a row is an edge between two records.
    """
    ends, n = plain_sources.edges_csv(path, n, columns)
    return np.stack(ends, axis=1), n


def column_csv(path: Path | str, column: str, numbers: bool = True) -> NDArray[Any]:
    """The finite numbers of a column, or its labels without the spaces around them; an empty cell is a label too."""
    return np.array(plain_sources.column_csv(path, column, numbers))


def from_lists(path: Path | str, n: int | None = None) -> Groups:
    """Groups from a JSON file: a list of lists of record numbers, or `{"n": .., "groups": [[..], ..]}`.

    Where nothing says how many records there are, it is one more than the largest that is named.
    """
    return Groups.of_plain(plain_sources.from_lists(path, n))
