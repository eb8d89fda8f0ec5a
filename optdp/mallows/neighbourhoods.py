"""Groups from public data (E, section 2.2): `G_i = {j : d(t_i, t_j) <= r}`, one group for each record.

The distance `d` is that of points in space or on the globe, of nodes in a graph (hops), or of numbers; or the group is
everybody with the same label. Records are numbered from 0, in the order of the rows. Records at the same place have the
same group: it is found once, and repeated for each of them unless `once` is set; the sensitivity is the same. Rounding
leaves nobody out: whoever is within the radius but for the last bits of a float belongs to the group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, eye_array
from scipy.spatial import cKDTree

from optdp.errors import ProblemError
from optdp.mallows import plain_neighbourhoods as plain
from optdp.mallows.groups import LARGEST_N, Groups, Whole
from optdp.mallows.plain_groups import LARGEST_MEMBERS, check_members
from optdp.mallows.plain_neighbourhoods import EARTH, LARGEST_COORDINATE, SLACK
from optdp.math.exact import check_between, check_whole, shown

Reals = NDArray[np.float64]
CHUNK = 1_000_000
"""How many members are looked at in one go."""
DOUBT = 2.0**-40 * EARTH
"""Kilometres within which rounding might decide, were it not for `plain.kilometres`."""

Near = Iterator[tuple[Whole, Whole]]
"""The places near each place, for some places after others: how many, and which."""


def from_points(points: ArrayLike, radius: float, metric: str = "euclidean", once: bool = False) -> Groups:
    """Everybody within `radius` of each record.

    `"haversine"` takes latitude and longitude in degrees and a radius in kilometres. Candidates come from a tree of
    unit vectors `u`, and `2 R atan2(|u-v|, |u+v|) <= radius` decides, which is well conditioned for every angle.
    """
    where = check_points(points, metric)
    check_between(radius, "The radius", 0.0, LARGEST_COORDINATE)
    globe = metric == "haversine"
    if globe:
        located, slack = _unit_vectors(where), SLACK * EARTH
        reach = 2.0 * math.sin(min(radius / EARTH, math.pi) / 2.0) * (1.0 + 1e-7) + 1e-14
    else:
        located, slack = where, SLACK * (radius + math.hypot(*np.abs(where).max(axis=0))) if radius else 0.0
        reach = radius + 2.0 * slack
    first, place = _places(where)
    spots = located[first]
    tree = cKDTree(spots)
    total = int(tree.count_neighbors(tree, reach))
    _check_members(total)

    def near(start: int, stop: int) -> Near:
        some = cKDTree(spots[start:stop])
        if stop - start > 1 and some.count_neighbors(tree, reach) > 4 * CHUNK:  # a crowded corner
            yield from near(start, (start + stop) // 2)
            yield from near((start + stop) // 2, stop)
            return
        pairs = some.sparse_distance_matrix(tree, reach, output_type="ndarray")
        of, to = pairs["i"].astype(np.int64), pairs["j"].astype(np.int64)
        a, b = spots[start + of], spots[to]
        apart = 2.0 * EARTH * np.arctan2(_norm(a - b), _norm(a + b)) if globe else _norm(a - b)
        fine = apart <= radius + slack
        for i in np.flatnonzero(np.abs(apart - (radius + slack)) <= DOUBT) if globe else ():
            here, there = (plain.unit_vector(*where[first[spot]].tolist()) for spot in (start + of[i], to[i]))
            fine[i] = plain.kilometres(here, there) <= radius + slack
        of, to = of[fine], to[fine]
        yield np.bincount(of, minlength=stop - start), to[np.argsort(of, kind="stable")]

    rows = max(1, CHUNK * len(spots) // total)
    found = (part for start in range(0, len(spots), rows) for part in near(start, min(len(spots), start + rows)))
    return _of_places(place, found, where, once)


def from_column(values: ArrayLike | Sequence[str], within: float | None = None, once: bool = False) -> Groups:
    """Everybody whose number differs by at most `within`; without it, everybody with the same number or label."""
    listed = np.asarray(values)
    if listed.ndim != 1 or not listed.size:
        raise ProblemError(f"A column must hold a value for each record. Found an array of shape {listed.shape}.")
    if within is None and listed.dtype.kind == "U":
        _, place = np.unique(listed, return_inverse=True)
        where = place[:, None].astype(np.float64)
    else:
        where = check_points(listed[:, None], "euclidean")
    reach = 0.0 if within is None else within
    check_between(reach, "The distance within a group", 0.0, LARGEST_COORDINATE)
    spots, place = np.unique(where[:, 0], return_inverse=True)
    slack = SLACK * (reach + float(np.abs(spots).max())) if reach else 0.0
    first = np.searchsorted(spots, spots - (reach + slack), side="left")
    sizes = np.searchsorted(spots, spots + (reach + slack), side="right") - first
    _check_members(int(sizes.sum()))
    near = ((sizes[start:stop], runs(first[start:stop], sizes[start:stop])) for start, stop in _parts(sizes))
    return _of_places(place.astype(np.int64), near, where, once)


def from_graph(edges: Any, hops: int = 1, n: int | None = None) -> Groups:
    """Everybody at most `hops` edges away; `edges` is a list of pairs, or a graph of networkx with the nodes `0..n-1`.

    An edge joins both ways; edges from a node to itself, and edges named twice, change nothing.
    """
    step = adjacency(edges, n)
    n = step.shape[0]
    check_whole(hops, "hops", 1, LARGEST_N)
    step = csr_array(step + eye_array(n, dtype=np.int32, format="csr"))
    counts, members, total = [], [], 0
    start, rows = 0, max(1, min(64, 20 * CHUNK // n))
    while start < n:
        reached = step[start : start + rows]
        for _ in range(hops - 1):
            before = reached.nnz
            reached = csr_array(reached @ step)
            reached.data[:] = 1
            if reached.nnz == before:
                break
        reached.sort_indices()
        total += reached.nnz
        _check_members(total)
        counts.append(np.diff(reached.indptr).astype(np.int64))
        members.append(reached.indices.astype(np.int64))
        start += rows
        if reached.nnz < CHUNK:
            rows *= 2
        elif reached.nnz > 4 * CHUNK:
            rows = max(1, rows // 4)
    return Groups(n, _starts(np.concatenate(counts)), np.concatenate(members))


def adjacency(edges: Any, n: int | None = None) -> csr_array:
    """The symmetric matrix of a graph: 1 where an edge joins two different nodes."""
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
    a, b = pairs[pairs[:, 0] != pairs[:, 1]].T.astype(np.int64)
    joined = csr_array((np.ones(2 * len(a), np.int32), (np.concatenate((a, b)), np.concatenate((b, a)))), shape=(n, n))
    joined.sum_duplicates()
    joined.data[:] = 1
    return joined


def distinct(groups: Groups) -> Groups:
    """Each different group once, in the order of its first appearance: the sensitivity is the same.

    Groups with the same sum of random words, one word for each record, are compared member by member. A group whose sum
    agrees with that of another one by chance is kept, even where it appears again.
    """
    words = np.random.Philox(6).random_raw(groups.n)
    running = np.concatenate((np.zeros(1, np.uint64), np.cumsum(words[groups.members], dtype=np.uint64)))
    _, first, same = np.unique(
        running[groups.starts[1:]] - running[groups.starts[:-1]], return_index=True, return_inverse=True
    )
    chosen = first[same]
    again = np.flatnonzero((chosen != np.arange(len(groups))) & (groups.sizes == groups.sizes[chosen]))
    repeated = np.ones(len(again), dtype=np.bool_)
    for start, stop in _parts(groups.sizes[again]):
        part = again[start:stop]
        sizes = groups.sizes[part]
        here, there = (groups.members[runs(groups.starts[some], sizes)] for some in (part, chosen[part]))
        repeated[start + np.repeat(np.arange(stop - start), sizes)[here != there]] = False
    return _taken(groups, np.delete(np.arange(len(groups)), again[repeated]))


def check_points(points: ArrayLike, metric: str) -> Reals:
    """The points as a table of finite floats, one row for each record; or what is wrong with them."""
    plain.check_metric(metric)
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
    """The first record that is nowhere, and the rule that it breaks."""
    most, rule = np.full(where.shape[1], LARGEST_COORDINATE), plain.EVERYWHERE
    if metric == "haversine":
        if where.shape[1] != 2:
            return 0, plain.PLACE_ON_GLOBE
        most, rule = np.array([90.0, 360.0]), plain.ON_GLOBE
    wrong = np.flatnonzero(~(np.abs(where) <= most).all(axis=1))
    return (int(wrong[0]), rule) if len(wrong) else None


def runs(starts: Whole, sizes: Whole) -> Whole:
    """The numbers `starts[i] .. starts[i]+sizes[i]-1`, for one `i` after the other."""
    ends = np.cumsum(sizes)
    shifts: Whole = np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)
    return shifts


def _of_places(place: Whole, near: Near, points: Reals, once: bool) -> Groups:
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
        for start, stop in _parts(held):
            part = places[ends[start] - sizes[start] : ends[stop - 1]]
            owners = np.repeat(np.arange(stop - start, dtype=np.int64), held[start:stop])
            members.append(np.sort(owners * n + records[runs(first[part], at[part])]) - owners * n)
        counts.append(held)
        total += int(held.sum())
        _check_members(total)
    groups = Groups(n, _starts(np.concatenate(counts)), np.concatenate(members), points)
    return groups if once else _taken(groups, place)


def _taken(groups: Groups, which: Whole) -> Groups:
    """Some of the groups, in an order, perhaps repeatedly."""
    sizes = groups.sizes[which]
    _check_members(int(sizes.sum()))
    members = np.empty(int(sizes.sum()), dtype=np.int64)
    starts = _starts(sizes)
    for start, stop in _parts(sizes):
        members[starts[start] : starts[stop]] = groups.members[
            runs(groups.starts[which[start:stop]], sizes[start:stop])
        ]
    return Groups(groups.n, starts, members, groups.points)


def _places(where: Reals) -> tuple[Whole, Whole]:
    """A record at each different place, and the place of every record."""
    order = np.lexsort(where.T[::-1])
    new = np.concatenate(([True], (where[order[1:]] != where[order[:-1]]).any(axis=1)))
    place = np.empty(len(where), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return order[new], place


def _unit_vectors(where: Reals) -> Reals:
    latitude, longitude = np.radians(where.T)
    across = np.cos(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1)


def _norm(vectors: Reals) -> Reals:
    """Their lengths; squares are added up from the first coordinate to the last, as without numpy."""
    total = np.zeros(len(vectors))
    for column in vectors.T:
        total += column * column
    found: Reals = np.sqrt(total)
    return found


def _parts(sizes: Whole) -> Iterator[tuple[int, int]]:
    """Runs of groups that have together about CHUNK members, or one group if that has more."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        yield start, stop
        start = stop


def _starts(sizes: Whole) -> Whole:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def _check_members(count: int) -> None:
    check_members(count, LARGEST_MEMBERS)
