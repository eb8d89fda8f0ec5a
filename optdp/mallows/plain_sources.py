"""What files say of groups, in Python's own numbers: columns of a CSV file, lists of a JSON file.

Verifying makes groups from these with the functions of `optdp.mallows.plain_neighbourhoods`, which have the names of
those in `optdp.mallows.sources`; that module makes arrays of the same readings.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Sequence
from pathlib import Path

from optdp.artifact.files import LONG_BYTES, LONG_VALUES, name_of, read_bytes
from optdp.artifact.strict_json import parse
from optdp.data import read_columns, reals, wholes
from optdp.errors import ArtifactError, ProblemError
from optdp.mallows.plain_groups import LARGEST_MEMBERS, LARGEST_N, PlainGroups
from optdp.mallows.plain_neighbourhoods import from_column, from_graph, from_points, misplaced
from optdp.math.effort import EffortError
from optdp.math.exact import check_whole, shown

__all__ = ["column_csv", "edges_csv", "from_column", "from_graph", "from_lists", "from_points", "points_csv"]

LARGEST = 1.7e308


def points_csv(path: Path | str, columns: Sequence[str], metric: str = "euclidean") -> list[array[float]]:
    """The columns of the points' coordinates; for `"haversine"` latitude and longitude, in this order."""
    cells = read_columns(Path(path), columns)
    points = [_numbers(cells[name.strip()], name) for name in columns]
    wrong = misplaced(points, metric)
    if wrong is not None:
        record, rule = wrong
        found = ", ".join(f"{column[record]:g}" for column in points)
        raise ProblemError(f"{rule} Found {found} in row {record + 2}. Correct {name_of(path)}.")
    return points


def edges_csv(path: Path | str, n: int | None = None, columns: Sequence[str] = ()) -> tuple[list[array[int]], int]:
    """Both ends of the edges of a graph, and how many records it has; see `optdp.mallows.sources.edges_csv`."""
    names = list(columns) or _header(Path(path))
    if len(names) != 2:
        raise ProblemError(f"An edge list must have two columns. Found {len(names)} in {name_of(path)}. Name the two.")
    cells = read_columns(Path(path), names)
    ends = [wholes(cells[name.strip()], name, 1 - 2**53, 2**53 - 1, clip=False) for name in names]
    most = LARGEST_N if n is None else n
    check_whole(most, "n", 1, LARGEST_N)
    last = max(map(max, ends))
    if min(map(min, ends)) < 0 or last >= most:
        row, a, b = next(
            (row, a, b)
            for row, (a, b) in enumerate(zip(*ends, strict=True), start=2)
            if not (0 <= a < most and 0 <= b < most)
        )
        raise ProblemError(
            f"Edges must join records 0..{most - 1}. Found {a} and {b} in row {row}. Number the nodes from 0."
        )
    return ends, last + 1 if n is None else n


def column_csv(path: Path | str, column: str, numbers: bool = True) -> array[float] | list[str]:
    """The finite numbers of a column, or its labels without the spaces around them; an empty cell is a label too."""
    cells = read_columns(Path(path), [column])[column.strip()]
    return _numbers(cells, column) if numbers else [cell.strip() for cell in cells]


def from_lists(path: Path | str, n: int | None = None) -> PlainGroups:
    """Groups from a JSON file: a list of lists of record numbers, or `{"n": .., "groups": [[..], ..]}`.

    Where nothing says how many records there are, it is one more than the largest that is named.
    """
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
    n = n if n is not None else 1 + max(max(group, default=0) for group in held)
    check_whole(n, "n", 1, LARGEST_N)
    for number, group in enumerate(held):
        if len(set(group)) < len(group):
            raise ProblemError(f"A group must name a record once. Found one twice in group {number}.")
        group.sort()
    return PlainGroups.gathered(n, held)


def _numbers(cells: Sequence[str], name: str) -> array[float]:
    return reals(cells, name, -LARGEST, LARGEST, clip=False)


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
