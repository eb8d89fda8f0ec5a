"""The groups of `optdp.mallows.neighbourhoods` once more, from the same numbers and without numpy: for verifying.

Whether two records are near is the same decision here and there, to the last bit of a float: the squares of the
differences are added up from the first coordinate to the last, and on the globe `kilometres` decides wherever rounding
might. Here a grid finds the candidates. Its cells are not smaller than the radius, so that whoever is near lies in the
same cell or in one beside it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from optdp.errors import ProblemError
from optdp.mallows.plain_groups import LARGEST_MEMBERS, LARGEST_N, PlainGroups, check_members
from optdp.math.effort import spend
from optdp.math.exact import check_between, check_whole, shown

EARTH = 6371.0088
"""The mean radius of the Earth in kilometres."""
LARGEST_COORDINATE = 1e150
"""Up to it a square is a float."""
SLACK = 2.0**-50
TINY = 1e-150
"""Below it a square is zero: a cell is at least as large."""
FINEST = 20
"""A grid has at most `2^FINEST` cells along a coordinate, so that rounding moves nobody by more than a cell."""
AXES = 3
"""How many coordinates a grid has: those of the largest extent."""
EVERYWHERE, ON_GLOBE, PLACE_ON_GLOBE = (
    "Coordinates must be finite and below 1e150.",
    "Latitudes must be from -90 to 90, and longitudes from -360 to 360 degrees.",
    "A place on the globe must be a latitude and a longitude.",
)
"""The rules for a place."""

Columns = Sequence["array[float]"]
"""The coordinates of all records, one column after the other."""
Place = tuple[float, ...]


def from_points(points: Columns, radius: float, metric: str = "euclidean") -> PlainGroups:
    """Everybody within `radius` of each record; see `optdp.mallows.neighbourhoods.from_points`."""
    check_metric(metric)
    _check_places(points, metric)
    check_between(radius, "The radius", 0.0, LARGEST_COORDINATE)
    nearness = _on_globe(points, radius) if metric == "haversine" else _in_space(points, radius)
    check_members(_crowded(nearness), LARGEST_MEMBERS)
    return PlainGroups.gathered(len(points[0]), _near(nearness))


def from_column(values: Sequence[str] | array[float], within: float | None = None, once: bool = False) -> PlainGroups:
    """Everybody whose number differs by at most `within`; without it, everybody with the same number or label."""
    if isinstance(values, array):
        _check_places([values], "euclidean")
    reach = 0.0 if within is None else within
    check_between(reach, "The distance within a group", 0.0, LARGEST_COORDINATE)
    records: dict[Any, list[int]] = defaultdict(list)
    for record, value in enumerate(values):
        records[value].append(record)
    spots = sorted(records)
    at = [records[spot] for spot in spots]
    windows = [(i, i + 1) for i in range(len(spots))]
    if reach:
        numbers = [float(spot) for spot in spots]
        wide = reach + SLACK * (reach + max(map(abs, numbers)))
        windows = [(bisect_left(numbers, x - wide), bisect_right(numbers, x + wide)) for x in numbers]
    place = {spot: i for i, spot in enumerate(spots)}
    which = windows if once else (windows[place[value]] for value in values)
    groups = (at[a] if b - a == 1 else sorted(chain.from_iterable(at[a:b])) for a, b in which)
    return PlainGroups.gathered(len(values), groups)


def from_graph(edges: Sequence[array[int]], hops: int = 1, n: int = 1) -> PlainGroups:
    """Everybody at most `hops` edges away; an edge joins record `edges[0][i]` and record `edges[1][i]`, both ways."""
    check_whole(n, "n", 1, LARGEST_N)
    check_whole(hops, "hops", 1, LARGEST_N)
    ends = [0] * (n + 1)
    for node in chain(*edges):
        ends[node] += 1
    total = 0
    for node, degree in enumerate(ends):
        total += degree
        ends[node] = total
    joined = array("i", bytes(4 * total))
    for a, b in zip(*edges, strict=True):  # from the end of a node's part to its start
        ends[a] -= 1
        joined[ends[a]] = b
        ends[b] -= 1
        joined[ends[b]] = a

    def reached(node: int) -> list[int]:
        found = {node}
        last = found
        for _ in range(hops):
            beside = [joined[ends[one] : ends[one + 1]] for one in last]
            spend(0.3 * len(beside) + 0.1 * sum(map(len, beside)), "groups of a graph")
            last = set(chain.from_iterable(beside)) - found
            if not last:
                break
            found |= last
        return sorted(found)

    return PlainGroups.gathered(n, map(reached, range(n)))


def check_metric(metric: str) -> None:
    if metric not in ("euclidean", "haversine"):
        raise ProblemError(f"The metric must be euclidean or haversine. Found {shown(metric)}.")


def misplaced(points: Columns, metric: str) -> tuple[int, str] | None:
    """The first record that is nowhere, and the rule that it breaks."""
    most, rule = [LARGEST_COORDINATE] * len(points), EVERYWHERE
    if metric == "haversine":
        if len(points) != 2:
            return 0, PLACE_ON_GLOBE
        most, rule = [90.0, 360.0], ON_GLOBE
    wrong = [
        next(i for i, value in enumerate(column) if not abs(value) <= end)
        for column, end in zip(points, most, strict=True)
        if not max(map(abs, column)) <= end
    ]
    return (min(wrong), rule) if wrong else None


def unit_vector(latitude: float, longitude: float) -> Place:
    """A place on the globe, given in degrees."""
    up, along = math.radians(latitude), math.radians(longitude)
    across = math.cos(up)
    return across * math.cos(along), across * math.sin(along), math.sin(up)


def kilometres(here: Place, there: Place) -> float:
    """How far apart two unit vectors are: `2 R atan2(|u-v|, |u+v|)`, which is well conditioned for every angle."""
    apart = _length([u - v for u, v in zip(here, there, strict=True)])
    return 2.0 * EARTH * math.atan2(apart, _length([u + v for u, v in zip(here, there, strict=True)]))


def _length(vector: Sequence[float]) -> float:
    """Squares are added up from the first coordinate to the last, for the same bits everywhere."""
    total = 0.0
    for part in vector:
        total += part * part
    return math.sqrt(total)


# ---------------------------------------------------------------------- who is near


@dataclass(frozen=True)
class _Nearness:
    """Places; up to which distance they are near surely, and perhaps, however it is rounded; what decides between."""

    points: Columns
    surely: float
    perhaps: float
    decides: Callable[[Place, Place], bool]


def _in_space(points: Columns, radius: float) -> _Nearness:
    slack = SLACK * (radius + math.hypot(*(max(map(abs, column)) for column in points))) if radius else 0.0
    limit = radius + slack

    def near(here: Place, there: Place) -> bool:
        return _length([u - v for u, v in zip(here, there, strict=True)]) <= limit

    return _Nearness(points, max(0.0, limit * (1.0 - 1e-9) - TINY), limit * (1.0 + 1e-9) + TINY, near)


def _on_globe(points: Columns, radius: float) -> _Nearness:
    """Chords are measured first; only where they are within a millionth of the radius's, the angle."""
    vectors = [array("d", column) for column in zip(*map(unit_vector, *points), strict=True)]
    limit, angle = radius + SLACK * EARTH, min(radius / EARTH, math.pi)
    surely = max(0.0, 2.0 * math.sin(angle * (1.0 - 1e-6) / 2.0) - 1e-14)
    perhaps = 2.0 * math.sin(angle / 2.0) * (1.0 + 1e-7) + 1e-14
    return _Nearness(vectors, surely, perhaps, lambda here, there: kilometres(here, there) <= limit)


def _near(nearness: _Nearness) -> list[array[int]]:
    """The records near each record, increasing: those in the cells around its own that are near enough."""
    points, surely, perhaps, decides = nearness.points, nearness.surely, nearness.perhaps, nearness.decides
    grid = sorted(points, key=lambda column: min(column) - max(column))[:AXES]
    side = max(perhaps * (1.0 + 2.0 ** (1 - FINEST)), _extent(grid) * 2.0**-FINEST)
    cells: dict[int, list[int]] = defaultdict(list)
    for record, cell in enumerate(_cells(grid, side)):
        cells[cell].append(record)
    steps = [sum(map(_shifted, way, range(AXES))) for way in product((-1, 0, 1), repeat=len(grid))]
    places = list(zip(*points, strict=True))
    groups = [array("i")] * len(places)
    total, dist = 0, math.dist
    for cell in sorted(cells):  # not in the order of records: what is near in space stays near in the memory
        spend(5 + len(steps) + 3 * len(cells[cell]), "groups of points")
        others = sorted(chain.from_iterable(cells.get(cell + step, ()) for step in steps))
        spend(0.25 * len(others), "groups of points")
        around = [(other, places[other]) for other in others]
        found: dict[Place, array[int]] = {}
        for record in cells[cell]:
            here = places[record]
            if here not in found:
                spend(1 + 0.1 * len(around), "groups of points")
                found[here] = array("i", [
                    other for other, there in around
                    if (apart := dist(here, there)) <= surely or (apart <= perhaps and decides(here, there))
                ])  # fmt: skip
            groups[record] = found[here]
            total += len(found[here])
        check_members(total, LARGEST_MEMBERS)
    return groups


def _crowded(nearness: _Nearness) -> int:
    """No more members than all groups have: a group holds whoever shares its record's place, or its small cell."""
    points, side = nearness.points, nearness.surely / 2.0  # the diagonal, of three sides at most, is near enough
    shared: Iterable[object] = zip(*points, strict=True)
    if len(points) <= AXES and side > max(TINY, _extent(points) * 2.0**-FINEST):
        shared = _cells(points, side)
    return sum(count * count for count in Counter(shared).values())


def _cells(grid: Columns, side: float) -> list[int]:
    """The cell of every record, as one number; no coordinate is 0 or fills its bits, so that steps do not carry."""
    cells = [0] * len(grid[0])
    for axis, column in enumerate(grid):
        low = min(column)
        cells = [cell + _shifted(int((x - low) / side) + 1, axis) for cell, x in zip(cells, column, strict=True)]
    return cells


def _shifted(cell: int, axis: int) -> int:
    return cell << axis * (FINEST + 2)


def _extent(points: Columns) -> float:
    return max(max(column) - min(column) for column in points)


def _check_places(points: Columns, metric: str) -> None:
    if len(points[0]) > LARGEST_N:
        shape = (len(points[0]), len(points))
        raise ProblemError(f"Points must be a row of coordinates for each record. Found the shape {shape}.")
    wrong = misplaced(points, metric)
    if wrong is not None:
        record, rule = wrong
        found = [column[record] for column in points]
        raise ProblemError(f"{rule} Found {shown(found)} for record {record}.")
