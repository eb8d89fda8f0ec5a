"""Who is shuffled with whom: the groups of an order, made again from the file that the order names.

Records are numbered from 0, in the order of the rows. A group is a sorted list of records, each once. By points and by
a graph there is a group for each record: everybody within the radius, or within so many edges (which join both ways).
By a column there is a group for each different number, the smallest first: everybody whose number is near it; or one
for each different text, in the order of its characters. A file of lists says the groups themselves.

The digest is SHA-256 of the number of records, of where each group starts, and of the members of all groups one after
the other, as little-endian numbers of 64 bits.
"""

from __future__ import annotations

import hashlib
import os
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from .columns import read_columns, real_numbers, record_numbers
from .fields import exact_number, list_of, one_of, table_with, whole_number
from .near import LARGEST, Point, check_points, near_numbers, near_points
from .reading import read_bytes, strict_json
from .verdict import LONG_BYTES, must, spend

Groups = Sequence[Sequence[int]]
MOST_RECORDS = 10**7
_SOURCES = ("points", "graph", "data", "file")


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


def read_groups(spec: Any, folder: str) -> tuple[int, Groups]:
    """How many records there are, and their groups; files are named from `folder`."""
    must(isinstance(spec, dict) and len(spec) > 0, "The order must say which file its groups are from", spec)
    known = "points columns radius metric graph hops n data column within file"
    spec = {key: value for key, value in table_with(spec, "groups", "", known).items() if _typed(key, value)}
    given = [name for name in _SOURCES if name in spec]
    must(len(given) == 1, f"groups must have one of {', '.join(_SOURCES)}", given)
    path = os.path.join(folder, spec[given[0]])
    n = whole_number(spec["n"], "n", 1, MOST_RECORDS) if "n" in spec and given[0] in ("graph", "file") else None
    if given[0] == "file":
        return _listed(path, n)
    if given[0] == "graph":
        return _by_graph(path, n, whole_number(spec.get("hops", 1), "hops", 1, MOST_RECORDS))
    return _by_column(path, spec) if given[0] == "data" else _by_points(path, spec)


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
        held = table_with(held, "a file of groups", "groups", "n")
        if "n" in held:
            stated = whole_number(held["n"], "n", 1, MOST_RECORDS)
            must(n in (None, stated), "The file must be of as many records as the order says", stated)
            n = stated
        held = held["groups"]
    found = []
    for group in list_of(held, "groups", 1):
        must(isinstance(group, list), "A group must be a list of records", group)
        spend(3 * len(group), 0)
        right = all(type(record) is int and 0 <= record < (n or MOST_RECORDS) for record in group)
        must(right and len(set(group)) == len(group), "A group must name records that there are, each once", group)
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
