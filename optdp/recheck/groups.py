"""Who is shuffled with whom: the groups of an order, made again from the file that the order names.

Records are numbered from 0, in the order of the rows. A group is a sorted list of records, each once. By points and by
a graph there is a group for each record: everybody within the radius, or within so many edges (which join both ways).
By a column there is a group for each different number, the smallest first: everybody whose number is near it; or one
for each different text, in the order of its characters. A file of lists says the groups themselves.

The digest is SHA-256 of the number of records, of where each group starts, and of the members of all groups one after
the other, as little-endian numbers of 64 bits.

**Columns** of a CSV file: UTF-8, commas, a header, as many cells in every row as in the header. An empty line may stand
at the end only: elsewhere nobody knows whether it is a record. Numbers are read as the floats that they are next to, as
every reader of CSV does. What is refused is named by its row; its text is nobody's business.

**Who is near whom**: numbers that differ by little, points in space, places on the globe. These follow the definition
in floating point, for there the groups are defined: whoever is within the radius but for the last bits of a float
belongs to the group. With `S = 2^-50`,

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

import csv
import hashlib
import io
import math
import os
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, product
from typing import Any

from .fields import exact_number, one_of, table_with, whole_number
from .reading import read_bytes, strict_json
from .verdict import LONG_BYTES, Refused, must, printable, spend

# ---------------------------------------------------------------------- columns


def read_columns(path: str, names: Sequence[str] | None) -> dict[str, list[str]]:
    """The cells of the named columns, or of the only two that there are."""
    try:
        data = read_bytes(path, LONG_BYTES)
        spend(len(data) // 10, 0)
        text = data.decode("utf-8-sig")
        must("\0" not in text, "Data must be text", "a zero byte")
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = [name.strip() for name in next(rows, [])]
        wanted = _wanted(header, names)
        places = [header.index(name) for name in wanted]
        found: list[list[str]] = [[] for _ in wanted]
        ended = False
        for number, row in enumerate(rows, start=2):
            if not row:
                ended = True
                continue
            right = not ended and len(row) == len(header)
            must(right, "A row must have as many cells as the header", f"row {number}")
            for cells, place in zip(found, places, strict=True):
                cells.append(row[place])
    except (csv.Error, UnicodeDecodeError) as error:
        raise Refused(f"{printable(path)}: must be a CSV file in UTF-8. Found {type(error).__name__}.") from None
    must(len(found[0]) > 0, "Data must have a row for each record", 0)
    return dict(zip(wanted, found, strict=True))


def _wanted(header: Sequence[str], names: Sequence[str] | None) -> list[str]:
    """The names of the columns to read, which must stand in the header."""
    must(any(header) and len(set(header)) == len(header), "A header must name the columns, each once", "another")
    if names is None:
        must(len(header) == 2, "An edge list must have two columns", len(header))
        digits = all(name.lstrip("-").isdigit() for name in header)
        must(not digits and "\n" not in "".join(header), "An edge list must begin with a header", "numbers")
        return list(header)
    wanted = [name.strip() for name in names]
    must(len(wanted) > 0 and len(set(wanted)) == len(wanted), "Columns must be named, and differ", wanted)
    must(set(wanted) <= set(header), "The columns must be there", wanted)
    return wanted


def real_numbers(cells: Sequence[str], name: str, largest: float) -> list[float]:
    """Finite numbers of at most that size; no minus zero."""
    found = []
    for row, cell in enumerate(cells, start=2):
        try:
            value = math.nan if "_" in cell else float(cell)  # Python reads 1_000 as a number, people do not
        except ValueError:
            value = math.nan
        must(abs(value) <= largest, f"{name} must be numbers of at most {largest:g}", f"row {row}")
        found.append(value + 0.0)
    return found


def record_numbers(cells: Sequence[str], name: str, most: int) -> list[int]:
    found = []
    for row, value in enumerate(real_numbers(cells, name, 2.0**53 - 1), start=2):
        must(value == int(value) and 0 <= value < most, f"{name} must be records 0..{most - 1}", f"row {row}")
        found.append(int(value))
    return found


Point = tuple[float, ...]
EARTH = 6371.0088
SLACK = 2.0**-50
LARGEST = 1e150
"""The largest coordinate and radius: up to it a square is a float."""
LEAST = 1e-150
"""Down to it as well."""


# ---------------------------------------------------------------------- who is near whom


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
        rule = "Latitudes must be from -90 to 90, and longitudes from -360 to 360 degrees"
        for row, (latitude, longitude) in enumerate(points, start=2):
            must(abs(latitude) <= 90.0 and abs(longitude) <= 360.0, rule, f"row {row}")


Groups = Sequence[Sequence[int]]
MOST_RECORDS = 10**7
_SOURCES = ("points", "graph", "data", "file")


# ---------------------------------------------------------------------- groups


def groups_digest(n: int, groups: Groups) -> str:
    spend(2 * sum(map(len, groups)), 0)
    found = hashlib.sha256(_bytes([n]))
    found.update(_bytes(accumulate(map(len, groups), initial=0)))
    for group in groups:
        found.update(_bytes(group))
    return found.hexdigest()


def _bytes(numbers: Iterable[int]) -> bytes:
    held = array("q", numbers)
    if sys.byteorder == "big":
        held.byteswap()
    return held.tobytes()


def read_groups(spec: Any, folder: str, allow_outside: bool) -> tuple[int, Groups]:
    """How many records there are, and their groups; files are named from `folder`, and lie there or below."""
    must(isinstance(spec, dict) and len(spec) > 0, "The order must say which file its groups are from", spec)
    known = "points columns radius metric graph hops n data column within file"
    spec = {key: value for key, value in table_with(spec, "groups", "", known).items() if _typed(key, value)}
    given = [name for name in _SOURCES if name in spec]
    must(len(given) == 1, f"groups must have one of {', '.join(_SOURCES)}", given)
    path = os.path.join(folder, spec[given[0]])
    rule = "The file of the groups must lie in the order's folder or below it, unless --allow-outside"
    must(allow_outside or _below(path, folder), rule, spec[given[0]])
    n = whole_number(spec["n"], "n", 1, MOST_RECORDS) if "n" in spec and given[0] in ("graph", "file") else None
    if given[0] == "file":
        return _listed(path, n)
    if given[0] == "graph":
        return _by_graph(path, n, whole_number(spec.get("hops", 1), "hops", 1, MOST_RECORDS))
    return _by_column(path, spec) if given[0] == "data" else _by_points(path, spec)


def _below(path: str, folder: str) -> bool:
    """Whether a file lies in a folder or below it, wherever links lead."""
    root = os.path.join(os.path.realpath(folder), "")
    return os.path.realpath(path).startswith(root)


def _typed(key: str, value: Any) -> bool:
    """Whether something is said, and of the right type; null says nothing where there is no default."""
    if value is None:
        must(key not in ("hops", "metric"), f"{key} must not be null", value)
        return False
    if key in ("hops", "n"):
        must(type(value) is int, f"{key} must be a whole number", value)
    elif key in ("radius", "within"):
        must(type(value) in (int, str), f"{key} must be a whole number or text", value)
    elif key == "columns":
        must(isinstance(value, list) and all(isinstance(name, str) for name in value), "columns must be names", value)
    else:
        must(isinstance(value, str), f"{key} must be text", value)
    return True


def _reach(value: Any, name: str) -> float:
    exact = exact_number(value, name)
    must(0 <= exact <= 10**300 and float(exact) <= LARGEST, f"{name} must be a number from 0 to {LARGEST:g}", value)
    return float(exact)


def _listed(path: str, n: int | None) -> tuple[int, Groups]:
    """A list of lists of records, or `{"n": .., "groups": [[..], ..]}`; else `n` is one more than the largest."""
    held = strict_json(read_bytes(path, LONG_BYTES))
    if isinstance(held, dict):
        must("groups" in held and held.keys() <= {"n", "groups"}, "A file of groups has groups and n", "other keys")
        if "n" in held:
            stated = held["n"]
            must(type(stated) is int and 1 <= stated <= MOST_RECORDS, f"n must be 1..{MOST_RECORDS}", "something else")
            must(n in (None, stated), "The file must be of as many records as the order says", stated)
            n = stated
        held = held["groups"]
    must(isinstance(held, list) and len(held) > 0, "Groups must be a list of lists", "something else")
    found = []
    for number, group in enumerate(held):
        must(isinstance(group, list), "A group must be a list of records", f"group {number}")
        spend(3 * len(group), 0)
        right = all(type(record) is int and 0 <= record < (n or MOST_RECORDS) for record in group)
        right = right and len(set(group)) == len(group)
        must(right, "A group must name records that there are, each once", f"group {number}")
        found.append(sorted(group))
    return n or 1 + max((group[-1] for group in found if group), default=0), found


def _by_graph(path: str, n: int | None, hops: int) -> tuple[int, Groups]:
    ends = [record_numbers(cells, name, n or MOST_RECORDS) for name, cells in read_columns(path, None).items()]
    n = n or 1 + max(map(max, ends))
    spend(4 * len(ends[0]) + 4 * n, 0)
    joined: list[set[int]] = [set() for _ in range(n)]
    for a, b in zip(*ends, strict=True):
        joined[a].add(b)
        joined[b].add(a)
    found = []
    for record in range(n):
        reached = frontier = {record}
        for _ in range(hops):
            spend(sum(len(joined[one]) for one in frontier) + 1, 0)
            frontier = set().union(*(joined[one] for one in frontier)) - reached
            if not frontier:
                break
            reached = reached | frontier
        found.append(sorted(reached))
    return n, found


def _by_column(path: str, spec: Mapping[str, Any]) -> tuple[int, Groups]:
    must("column" in spec, "Groups by data must name a column", sorted(spec))
    (cells,) = read_columns(path, [spec["column"]]).values()
    spend(10 * len(cells), 0)
    if "within" in spec:
        numbers = real_numbers(cells, spec["column"], LARGEST)
        return len(cells), near_numbers(numbers, _reach(spec["within"], "within"))
    alike: dict[str, list[int]] = {}
    for record, cell in enumerate(cells):
        alike.setdefault(cell.strip(), []).append(record)
    return len(cells), [alike[text] for text in sorted(alike)]


def _by_points(path: str, spec: Mapping[str, Any]) -> tuple[int, Groups]:
    must("columns" in spec and "radius" in spec, "Groups by points must have columns and a radius", sorted(spec))
    globe = one_of(spec.get("metric", "euclidean"), "metric", "euclidean haversine") == "haversine"
    radius = _reach(spec["radius"], "radius")
    axes = [real_numbers(cells, name, LARGEST) for name, cells in read_columns(path, spec["columns"]).items()]
    spend(20 * len(axes[0]), 0)
    points: list[Point] = list(zip(*axes, strict=True))
    check_points(points, globe)
    return len(points), near_points(points, radius, globe)
