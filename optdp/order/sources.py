"""Where groups come from (E, section 2.2): points, edges and columns of CSV files, lists of a JSON file, or arrays.

The group of record `i` is `G_i = {j : d(t_i, t_j) <= r}`. The distance `d` is that of points in space or on the globe,
of nodes in a graph (hops), or of numbers; or the group is everybody with the same label. Records are numbered from 0,
and rows as a spreadsheet counts them: record `i` stands in row `i + 2`. Records at the same place have the same group:
it is found once, and repeated for each of them unless `once` is set; the sensitivity is the same.

**At the rim.** Rounding leaves nobody out: whoever is within the radius but for the last bits of a float (`SLACK`)
belongs to the group. The decision is the same on every machine, because it rests on operations that are rounded in one
way only: squares of differences are added up from the first coordinate to the last. On the globe, where sines and
arctangents are needed, those of Python's `math` decide wherever numpy's might round differently (`DOUBT`).

**Candidates** come from a grid. Its cells are larger than the radius, so that whoever is near lies in the same cell or
in one beside it. How many pairs that makes is counted before any of them is looked at.
"""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, StrictInt, StrictStr, ValidationError

from optdp.errors import ArtifactError, ProblemError
from optdp.files.atomic import LONG_BYTES, LONG_VALUES, name_of, read_bytes
from optdp.files.canonical import parse
from optdp.files.data import read_columns, real_numbers, whole_numbers
from optdp.files.models import Exact, Strict, named_file, plain_number
from optdp.numbers.exact import check_between, check_whole, shown
from optdp.order.mechanism import (
    FILES,
    LARGEST_N,
    Groups,
    Reals,
    Whole,
    check_members,
    chunks,
    foresee,
    runs,
    starts_of,
)
from optdp.work import announce, check_memory, say
from optdp.work.account import STEPS, EffortError, spend

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


EARTH = 6371.0088
"""The mean radius of the Earth in kilometres."""
LARGEST_COORDINATE = 1e150
"""Up to it a square is a float."""
SLACK = 2.0**-50
TINY = 1e-150
"""Below it a square is zero: a cell is at least as large."""
DOUBT = 2.0**-40 * EARTH
"""Kilometres within which numpy's arctangent might decide differently from Python's."""
FINEST, AXES = 20, 3
"""A grid has at most `2^FINEST` cells along a coordinate, so that rounding moves nobody by more than a cell; and it has
up to so many coordinates, those of the largest extent. The numbers of a cell fit into 63 bits."""
EACH, MEMORY = 2e-8, 80.0
"""Seconds for each coordinate of each pair that is looked at, and the bytes that solving needs for each member."""

Near = Iterator[tuple[Whole, Whole]]
"""The places near each place, for some places after others: how many, and which."""


def from_points(points: ArrayLike, radius: float, metric: str = "euclidean", once: bool = False) -> Groups:
    """Everybody within `radius` of each record.

    `"haversine"` takes latitude and longitude in degrees and a radius in kilometres. The distance of unit vectors `u`
    and `v` is `2 R atan2(|u-v|, |u+v|)`, which is well conditioned for every angle.
    """
    where = check_points(points, metric)
    check_between(radius, "The radius", 0.0, LARGEST_COORDINATE)
    first, place = _places(where)
    nearness = (_on_globe if metric == "haversine" else _in_space)(where[first], radius)
    lined, beside, near = _candidates(nearness)
    rank = np.empty(len(lined), dtype=np.int64)
    rank[lined] = np.arange(len(lined))
    at = np.bincount(rank[place])
    foresee(len(lined), len(where), lambda one: int(at[near(np.array([one]))[1]].sum()))
    parts = (near(np.arange(start, stop)) for start, stop in chunks(beside))
    groups = _of_places(rank[place], parts, where)
    return groups.taken(rank if once else rank[place])


def from_column(values: ArrayLike | Sequence[str], within: float | None = None, once: bool = False) -> Groups:
    """Everybody whose number differs by at most `within`; without it, everybody with the same number or label."""
    labels = values.tolist() if isinstance(values, np.ndarray) else values
    if within is None and isinstance(labels, Sequence) and all(isinstance(label, str) for label in labels):
        known = {label: i for i, label in enumerate(sorted(set(labels)))}
        values = [known[label] for label in labels]
    listed = np.asarray(values)
    if listed.ndim != 1 or not listed.size:
        raise ProblemError(f"A column must hold a value for each record. Found an array of shape {listed.shape}.")
    where = check_points(listed[:, None], "euclidean")
    reach = 0.0 if within is None else within
    check_between(reach, "The distance within a group", 0.0, LARGEST_COORDINATE)
    spots, place = np.unique(where[:, 0], return_inverse=True)
    slack = SLACK * (reach + float(np.abs(spots).max())) if reach else 0.0
    first = np.searchsorted(spots, spots - (reach + slack), side="left")
    sizes = np.searchsorted(spots, spots + (reach + slack), side="right") - first
    near = ((sizes[start:stop], runs(first[start:stop], sizes[start:stop])) for start, stop in chunks(sizes))
    groups = _of_places(place.astype(np.int64), near, where)
    return groups if once else groups.taken(place)


def from_graph(edges: Any, hops: int = 1, n: int | None = None) -> Groups:
    """Everybody at most `hops` edges away; `edges` is a list of pairs, or a graph of networkx with the nodes `0..n-1`.

    An edge joins both ways; edges from a node to itself, and edges named twice, change nothing.
    """
    one_hop = _joined(edges, n)
    check_whole(hops, "hops", 1, LARGEST_N)
    if hops == 1:
        return one_hop
    starts, beside = one_hop.starts.tolist(), array("i", one_hop.members.astype(np.int32).tobytes())

    def group(node: int) -> set[int]:
        found = {node}
        last = found
        for _ in range(hops):
            lines = [beside[starts[one] : starts[one + 1]] for one in last]
            spend(0.3 * len(lines) + 0.1 * sum(map(len, lines)), "groups of a graph")
            last = set(chain.from_iterable(lines)) - found
            if not last:
                break
            found |= last
        return found

    foresee(one_hop.n, one_hop.n, lambda node: len(group(node)))
    sizes, members = array("q"), array("i")
    for node in range(one_hop.n):
        if node % 10_000 == 0:
            say(f"groups of {node:,} of {one_hop.n:,} records")
        found = group(node)
        check_members(len(members) + len(found))
        spend(1 + 0.35 * len(found), "groups of a graph")
        sizes.append(len(found))
        members.extend(sorted(found))
    return Groups(one_hop.n, starts_of(sizes), np.array(members, dtype=np.int64))


def _joined(edges: Any, n: int | None) -> Groups:
    """Each node with those that an edge joins it with."""
    if hasattr(edges, "number_of_nodes"):  # of networkx
        n = edges.number_of_nodes() if n is None else n
        edges = list(edges.edges())
    try:
        pairs = np.asarray(edges)
        pairs = pairs if pairs.size else np.zeros((0, 2), dtype=np.int64)
    except ValueError:
        pairs = np.zeros(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ProblemError("Edges must be pairs of record numbers. Found something else. Number the nodes from 0.")
    if n is None:
        n = int(pairs.max(initial=0)) + 1
    check_whole(n, "n", 1, LARGEST_N)
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if len(wrong):
        a, b = pairs[wrong[0]].tolist()
        raise ProblemError(f"Edges must join records 0..{n - 1}. Found {a} and {b} as edge {wrong[0]}. Correct it.")
    spend(0.4 * (2 * len(pairs) + n), "groups of a graph")
    a, b = pairs.T.astype(np.int64)
    own = np.arange(n, dtype=np.int64)
    owners, members = np.divmod(np.unique(np.concatenate((a * n + b, b * n + a, own * n + own))), n)
    check_members(len(members))
    return Groups(n, starts_of(np.bincount(owners, minlength=n)), members)


def check_points(points: ArrayLike, metric: str) -> Reals:
    """The points as a table of finite floats, one row for each record; or what is wrong with them."""
    if metric not in ("euclidean", "haversine"):
        raise ProblemError(f"The metric must be euclidean or haversine. Found {shown(metric)}.")
    try:
        where = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError("Points must be numbers, as many for each record. Found something else.") from None
    if where.ndim != 2 or not where.size or len(where) > LARGEST_N:
        raise ProblemError(f"Points must be a row of coordinates for each record. Found the shape {where.shape}.")
    wrong = misplaced(where, metric)
    if wrong is not None:
        record, rule = wrong
        raise ProblemError(f"{rule} Found {shown(where[record].tolist())} for record {record}.")
    return where + 0.0  # no minus zero


def misplaced(where: Reals, metric: str) -> tuple[int, str] | None:
    """The first record whose coordinates are not allowed, and the rule that they break."""
    most, rule = np.full(where.shape[1], LARGEST_COORDINATE), "Coordinates must be finite and below 1e150."
    if metric == "haversine":
        if where.shape[1] != 2:
            return 0, "A place on the globe must be a latitude and a longitude."
        most = np.array([90.0, 360.0])
        rule = "Latitudes must be from -90 to 90, and longitudes from -360 to 360 degrees."
    wrong = np.flatnonzero(~(np.abs(where) <= most).all(axis=1))
    return (int(wrong[0]), rule) if len(wrong) else None


# ---------------------------------------------------------------------- who is near


@dataclass(frozen=True)
class _Nearness:
    """The coordinates of all places, one column after the other, and which pairs of places are near."""

    columns: list[Reals]
    reach: float
    """Whoever is near differs by at most so much in each coordinate, however it is rounded."""
    near: Callable[[list[Reals], Whole, Whole], NDArray[np.bool_]]
    """Given the columns, in any order of the places, and the two places of each pair."""


def _in_space(places: Reals, radius: float) -> _Nearness:
    limit = radius + SLACK * (radius + math.hypot(*np.abs(places).max(axis=0))) if radius else 0.0

    def near(columns: list[Reals], a: Whole, b: Whole) -> NDArray[np.bool_]:
        return _length(columns, a, b) <= limit

    return _Nearness(_columns(places), limit * (1.0 + 1e-9) + TINY, near)


def _on_globe(places: Reals, radius: float) -> _Nearness:
    limit = radius + SLACK * EARTH
    chord = 2.0 * math.sin(min(radius / EARTH, math.pi) / 2.0) * (1.0 + 1e-7) + 1e-14

    def near(columns: list[Reals], a: Whole, b: Whole) -> NDArray[np.bool_]:
        apart = _length(columns, a, b)
        found = apart <= chord
        some = np.flatnonzero(found)
        a, b = a[some], b[some]
        away = 2.0 * EARTH * np.arctan2(apart[some], _length(columns, a, b, np.add))
        found[some] = away <= limit
        unsure = np.flatnonzero(np.abs(away - limit) <= DOUBT)
        spend(4 * len(unsure), "places at the rim of a radius")
        for i in unsure.tolist():
            here, there = ([float(column[place]) for column in columns] for place in (a[i], b[i]))
            found[some[i]] = kilometres(here, there) <= limit
        return found

    spend(2 * len(places), "places on the globe")
    return _Nearness(_columns([unit_vector(*place) for place in places.tolist()]), chord, near)


def unit_vector(latitude: float, longitude: float) -> tuple[float, float, float]:
    """A place on the globe, given in degrees."""
    up, along = math.radians(latitude), math.radians(longitude)
    across = math.cos(up)
    return across * math.cos(along), across * math.sin(along), math.sin(up)


def kilometres(here: Sequence[float], there: Sequence[float]) -> float:
    """How far apart two unit vectors are on the globe, by Python's own arctangent."""
    apart = along = 0.0
    for u, v in zip(here, there, strict=True):
        apart += (u - v) * (u - v)
        along += (u + v) * (u + v)
    return 2.0 * EARTH * math.atan2(math.sqrt(apart), math.sqrt(along))


def _columns(places: ArrayLike) -> list[Reals]:
    return [np.ascontiguousarray(column) for column in np.asarray(places, dtype=np.float64).T]


def _length(columns: list[Reals], a: Whole, b: Whole, joined: Any = np.subtract) -> Reals:
    """The length of the differences, or of the sums; squares are added up from the first coordinate to the last."""
    total = np.zeros(len(a))
    with np.errstate(over="ignore"):  # infinite, and thus far away
        for column in columns:
            part = joined(column[a], column[b])
            part *= part
            total += part
    return np.sqrt(total, out=total)


def _candidates(nearness: _Nearness) -> tuple[Whole, Whole, Callable[[Whole], tuple[Whole, Whole]]]:
    """The places cell by cell; how many may be near each in that order; and for some, how many and which are."""
    grid = sorted(nearness.columns, key=lambda column: -float(np.ptp(column)))[:AXES]
    side = max(nearness.reach * (1.0 + 2.0 ** (1 - FINEST)), float(np.ptp(grid[0])) * 2.0**-FINEST)
    cells = np.zeros(len(grid[0]), dtype=np.int64)
    for axis, column in enumerate(grid):  # no coordinate is 0 or fills its bits, so that steps do not carry
        cells += ((column - column.min()) / side).astype(np.int64) + 1 << _bits(axis)
    lined = np.argsort(cells, kind="stable")
    known, counts = np.unique(cells, return_counts=True)
    starts = starts_of(counts)
    # Along the first axis the cells beside one follow each other.
    ways = product((-1, 0, 1), repeat=len(grid) - 1)
    steps = [sum(step << _bits(axis) for axis, step in enumerate(way, start=1)) for way in ways]
    begins = starts[np.stack([np.searchsorted(known, known + (step - 1)) for step in steps], axis=1)]
    ends = starts[np.stack([np.searchsorted(known, known + (step + 1), side="right") for step in steps], axis=1)]
    around = (ends - begins).sum(axis=1)
    pairs = int((counts * around).sum())
    seconds = EACH * pairs * max(2, len(nearness.columns))
    spend(3 * len(lined) + seconds * STEPS, "groups of points")
    announce(seconds, f"{len(lined):,} places with {pairs:,} pairs that may be near", "Take a smaller radius.")
    cell = np.repeat(np.arange(len(known), dtype=np.int64), counts)
    columns = [column[lined] for column in nearness.columns]

    def near(some: Whole) -> tuple[Whole, Whole]:
        own = cell[some]
        to = runs(begins[own].ravel(), (ends[own] - begins[own]).ravel())
        of = np.repeat(np.arange(len(some), dtype=np.int64), around[own])
        fine = nearness.near(columns, some[of], to)
        return np.bincount(of[fine], minlength=len(some)), to[fine]

    return lined, around[cell], near


def _bits(axis: int) -> int:
    return axis * (FINEST + 1)


def _of_places(place: Whole, near: Near, points: Reals) -> Groups:
    """The groups of all places: records are where `place` says, and a group is all records at the places near it."""
    n = len(place)
    records = np.argsort(place, kind="stable")
    at = np.bincount(place)
    first = np.cumsum(at) - at
    counts: list[Whole] = []
    members: list[Whole] = []
    total = 0
    for sizes, places in near:
        ends = np.cumsum(sizes)
        held = np.add.reduceat(at[places], ends - sizes)  # nobody is alone: a place is near itself
        total += int(held.sum())
        check_members(total)
        check_memory(MEMORY * total, f"groups with {total:,} members or more", "Take a smaller radius.")
        spend(0.3 * int(held.sum()), "groups")
        for start, stop in chunks(held):
            part = places[ends[start] - sizes[start] : ends[stop - 1]]
            owners = np.repeat(np.arange(stop - start, dtype=np.int64), held[start:stop])
            members.append(np.sort(owners * n + records[runs(first[part], at[part])]) - owners * n)
        counts.append(held)
    return Groups(n, starts_of(np.concatenate(counts)), np.concatenate(members), points)


def _places(where: Reals) -> tuple[Whole, Whole]:
    """A record at each different place, and the place of every record."""
    order = np.lexsort(where.T[::-1])
    new = np.concatenate(([True], (where[order[1:]] != where[order[:-1]]).any(axis=1)))
    place = np.empty(len(where), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return order[new], place
