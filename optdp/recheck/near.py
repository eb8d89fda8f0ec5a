"""Who is near whom: numbers that differ by little, points in space, places on the globe.

These follow the definition in floating point, for there the groups are defined: whoever is within the radius but for
the last bits of a float belongs to the group. With `S = 2^-50`,

    numbers     |a - b| <= within + S (within + largest |number|), and equal numbers if within = 0;
    space       |a - b| <= radius + S (radius + |(largest |coordinate| of each axis)|), and radius if radius = 0;
    the globe   2 R atan2(|u - v|, |u + v|) <= radius + S R,  u and v unit vectors, R = 6371.0088 km.

No claim rests on a float, because the digest of the groups is compared afterwards: should two computers round a pair
that is on the very edge differently, the file is refused, and not accepted for other groups.

**The grid.** Points are put into boxes of a side that is larger than the radius by `2^-20` of it, at least `2^-20` of
the extent, and not so small that the square of a distance between boxes that do not touch is lost. Box numbers are then
at most `2^20`, rounding moves `(x - least) / side` by less than `2^-30`, and two points within the radius are in the
same box or in neighbouring ones. At most three axes have boxes.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from .verdict import must, spend

Point = tuple[float, ...]
EARTH = 6371.0088
SLACK = 2.0**-50
LARGEST = 1e150
"""The largest coordinate and radius: up to it a square is a float."""
LEAST = 1e-150
"""Down to it as well."""


def near_numbers(values: Sequence[float], within: float) -> list[list[int]]:
    """For each different number, the smallest first, the records whose number is near it."""
    order = sorted(range(len(values)), key=values.__getitem__)
    spots = sorted(set(values))
    lined = [values[record] for record in order]
    reach = within + SLACK * (within + max(abs(spots[0]), abs(spots[-1]))) if within else 0.0
    found = []
    for spot in spots:
        start, stop = bisect_left(lined, spot - reach), bisect_right(lined, spot + reach)
        spend(stop - start + 1, 0)
        found.append(sorted(order[start:stop]))
    return found


def near_points(points: Sequence[Point], radius: float, globe: bool) -> list[list[int]]:
    """For each record the records near it; records at one place share one list."""
    records: dict[Point, list[int]] = {}
    for record, point in enumerate(points):
        records.setdefault(point, []).append(record)
    places = list(records)
    if globe:
        where, limit = [_unit_vector(*place) for place in places], radius + SLACK * EARTH
        reach = 2.0 * math.sin(min(radius / EARTH, math.pi) / 2.0) * (1.0 + 1e-7) + 1e-14
    else:
        slack = SLACK * (radius + math.hypot(*(max(map(abs, axis)) for axis in zip(*places, strict=True))))
        where, limit = places, radius + slack if radius else 0.0
        reach = limit * (1.0 + 1e-7)
    near = _on_globe(limit) if globe else _in_space(limit, len(places[0]))
    groups: dict[Point, list[int]] = {}
    for i, around in _candidates(where, reach):
        here = where[i]
        spend(2 * len(around), 0)
        members = [record for j in around if near(here, where[j]) for record in records[places[j]]]
        spend(len(members) * (1 + len(records[places[i]])), 0)
        members.sort()
        groups[places[i]] = members
    return [groups[point] for point in points]


def _unit_vector(latitude: float, longitude: float) -> Point:
    up, along = math.radians(latitude), math.radians(longitude)
    across = math.cos(up)
    return across * math.cos(along), across * math.sin(along), math.sin(up)


def _in_space(limit: float, axes: int) -> Callable[[Point, Point], bool]:
    def near(a: Point, b: Point) -> bool:
        total = 0.0
        for x, y in zip(a, b, strict=True):  # one after another: `sum` of newer Pythons rounds otherwise
            total += (x - y) * (x - y)
        return math.sqrt(total) <= limit

    def near_in_the_plane(a: Point, b: Point) -> bool:
        x, y = a[0] - b[0], a[1] - b[1]
        return math.sqrt(x * x + y * y) <= limit

    return near_in_the_plane if axes == 2 else near


def _on_globe(limit: float) -> Callable[[Point, Point], bool]:
    def near(a: Point, b: Point) -> bool:
        (x, y, z), (u, v, w) = a, b
        apart = math.sqrt((x - u) ** 2 + (y - v) ** 2 + (z - w) ** 2)
        along = math.sqrt((x + u) ** 2 + (y + v) ** 2 + (z + w) ** 2)
        return 2.0 * EARTH * math.atan2(apart, along) <= limit

    return near


def _candidates(where: Sequence[Point], reach: float) -> Iterator[tuple[int, list[int]]]:
    """For each point the points in its box and in those around it."""
    axes = list(zip(*where, strict=True))[:3]
    least = [min(axis) for axis in axes]
    extent = max(max(axis) - low for axis, low in zip(axes, least, strict=True))
    side = max(extent * 2.0**-20, reach * (1.0 + 2.0**-20), LEAST)
    boxes: dict[tuple[int, ...], list[int]] = {}
    for i, point in enumerate(where):
        box = tuple(int((x - low) / side) for x, low in zip(point, least, strict=False))
        boxes.setdefault(box, []).append(i)
    steps = list(product((-1, 0, 1), repeat=len(axes)))
    for box, inside in boxes.items():
        spend(len(steps), 0)
        around = [j for step in steps for j in boxes.get(tuple(map(sum, zip(box, step, strict=True))), ())]
        for i in inside:
            yield i, around


def check_points(points: Sequence[Point], globe: bool) -> None:
    """Places on the globe are a latitude and a longitude in degrees."""
    if globe:
        must(len(points[0]) == 2, "A place on the globe must be a latitude and a longitude", len(points[0]))
        wrong = [point for point in points if abs(point[0]) > 90.0 or abs(point[1]) > 360.0]
        must(not wrong, "Latitudes must be from -90 to 90, and longitudes from -360 to 360 degrees", wrong[:1])
