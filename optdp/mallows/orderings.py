"""Reference orders that are quick to find, by name: where the search for a low sensitivity starts (E, section 5.6).

The graph that the search runs on has one vertex for each record. Groups that are given one for each record, with
record `i` in group `i`, give E's edges `(i, j)` for `j` in group `i`. Other groups give a star: the first member of the
group with every other. The graph has thus no more edges than the groups have members; E's text asks in one place for
all pairs of a group, which would be quadratic in its size and is never needed here.

Every function takes the groups and returns `order`, in which `order[p]` is the record at position `p`. Parts of the
graph that are not connected come one after another, so that no group is torn apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csgraph, csr_array
from scipy.sparse.linalg import lobpcg

from optdp.errors import ProblemError
from optdp.mallows.groups import Groups, Whole

Ordering = Callable[[Groups], Whole]
DENSE = 60
"""Components with fewer records have their eigenvectors computed densely."""
STEPS = 50
"""Iterations towards the second eigenvector of a large component."""
CURVE_BITS = 62
"""Bits of a place on the space-filling curve, all axes together."""


def adjacency(groups: Groups) -> csr_array:
    """The graph of the groups, symmetric, without loops, every edge with weight one."""
    owners, members = groups.owners, groups.members
    centre = owners if own(groups) else _first_members(groups)[owners]
    real = centre != members
    ends = np.concatenate((centre[real], members[real])), np.concatenate((members[real], centre[real]))
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(groups.n, groups.n)).tocsr()
    graph.data[:] = 1.0
    return graph


def own(groups: Groups) -> bool:
    """Whether the groups are the records' own: as many as records, and record `i` in group `i`."""
    return len(groups) == groups.n and int(np.count_nonzero(groups.members == groups.owners)) == groups.n


def as_is(groups: Groups) -> Whole:
    """The records as they are numbered."""
    return np.arange(groups.n, dtype=np.int64)


def bfs(groups: Groups) -> Whole:
    """E's order: breadth first from the record with the largest group; then from the largest that is left."""
    graph = adjacency(groups)
    starts, ends = graph.indptr, graph.indices
    vertices = nx.empty_graph(groups.n)
    seen = np.zeros(groups.n, dtype=bool)
    order: list[int] = []
    for root in _by_group_size(groups).tolist():
        if not seen[root]:
            # The neighbours come from the sparse table: networkx' own dictionaries would take 300 bytes for each edge.
            edges = nx.generic_bfs_edges(vertices, root, lambda v: ends[starts[v] : starts[v + 1]].tolist())
            part = [root, *(child for _, child in edges)]
            seen[part] = True
            order += part
    return np.array(order, dtype=np.int64)


def rcm(groups: Groups) -> Whole:
    """Reverse Cuthill-McKee: breadth first from the edge of each component, records with few neighbours first."""
    return np.asarray(csgraph.reverse_cuthill_mckee(adjacency(groups), symmetric_mode=True), dtype=np.int64)


def cm(groups: Groups) -> Whole:
    """Cuthill-McKee: `rcm` backwards. An order and its reverse have the same sensitivity."""
    return rcm(groups)[::-1].copy()


def spectral(groups: Groups) -> Whole:
    """Each component along the second eigenvector of its Laplacian."""
    graph = adjacency(groups)
    along = [
        part[np.argsort(fiedler(graph[part][:, part]), kind="stable")] if len(part) > 2 else part
        for part in _components(graph)
    ]
    return np.concatenate(along)


def fiedler(graph: csr_array) -> NDArray[np.float64]:
    """The second eigenvector of a connected graph's Laplacian: exactly for small graphs; for others so many steps of
    LOBPCG from the ranks of Cuthill-McKee, which never get worse, settled or not."""
    laplacian = csgraph.laplacian(graph)
    size = graph.shape[0]
    if size <= DENSE:
        return np.asarray(np.linalg.eigh(laplacian.toarray())[1][:, 1])
    ranks = np.empty(size)
    ranks[csgraph.reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.linspace(-1.0, 1.0, size)
    start = np.stack((ranks, ranks**2 - 1 / 3, np.random.default_rng(0).standard_normal(size)), axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not settled
        _, vectors = lobpcg(laplacian, start, Y=np.ones((size, 1)), tol=1e-4, maxiter=STEPS, largest=False)
    found = np.asarray(vectors[:, 0])
    return found if np.isfinite(found).all() else ranks


def sweep(groups: Groups) -> Whole:
    """Along the direction in which the points are spread most."""
    points = _points(groups, "sweep")
    centred = points - points.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    return together(groups, np.argsort(centred @ axes[:, -1], kind="stable"))


def sort(groups: Groups) -> Whole:
    """By the first coordinate of the points."""
    return together(groups, np.argsort(_points(groups, "sort")[:, 0], kind="stable"))


def hilbert(groups: Groups) -> Whole:
    """Along Hilbert's space-filling curve through the points, in any number of dimensions."""
    return together(groups, np.argsort(_hilbert_places(_points(groups, "hilbert")), kind="stable"))


def together(groups: Groups, order: Whole) -> Whole:
    """The same order with the components one after another, by where they begin: no sensitivity rises, since only
    records that have nothing to do with a group leave the gaps between its members."""
    count, label = csgraph.connected_components(adjacency(groups), directed=False)
    if count == 1:
        return order
    seen = label[order]
    begin = np.full(count, groups.n, dtype=np.int64)
    np.minimum.at(begin, seen, np.arange(groups.n))
    return order[np.argsort(begin[seen], kind="stable")]


def along(groups: Groups, order: Whole) -> Whole:
    """The same order with parts that share no group one after another, as a curve through the points meets them.

    No sensitivity rises by it, but more is learned: the shuffle mixes records that follow each other in the order, and
    now these are neighbours even if they are in no group together.
    """
    if groups.points is None:
        return order
    count, part = csgraph.connected_components(adjacency(groups), directed=False)
    met = np.full(count, groups.n, dtype=np.int64)
    np.minimum.at(met, part[hilbert(groups)], np.arange(groups.n))
    return order[np.argsort(met[part[order]], kind="stable")]


def _first_members(groups: Groups) -> Whole:
    first = np.zeros(len(groups), dtype=np.int64)
    some = groups.sizes > 0
    first[some] = groups.members[groups.starts[:-1][some]]
    return first


def _by_group_size(groups: Groups) -> Whole:
    """The records, those with (or in) the largest groups first."""
    if own(groups):
        return np.argsort(-groups.sizes, kind="stable")
    largest = np.zeros(groups.n, dtype=np.int64)
    np.maximum.at(largest, groups.members, groups.sizes[groups.owners])
    return np.argsort(-largest, kind="stable")


def _components(graph: csr_array) -> list[Whole]:
    count, label = csgraph.connected_components(graph, directed=False)
    by_part = np.argsort(label, kind="stable").astype(np.int64)
    return np.split(by_part, np.cumsum(np.bincount(label, minlength=count))[:-1])


def _points(groups: Groups, name: str) -> NDArray[np.float64]:
    if groups.points is None:
        raise ProblemError(
            f"The ordering {name} follows the records' points. Found groups without points. "
            f"Choose among {', '.join(name for name in ORDERINGS if name not in NEED_POINTS)}."
        )
    points = np.asarray(groups.points, dtype=np.float64).reshape(groups.n, -1)
    return points / max(float(np.abs(points).max()), np.finfo(float).tiny)  # no sum or square overflows


def _hilbert_places(points: NDArray[np.float64]) -> Whole:
    """Where each point lies on the curve: Skilling's transform of the coordinates, then their bits interleaved."""
    axes = points.shape[1]
    bits = max(1, min(16, CURVE_BITS // axes))
    used = min(axes, CURVE_BITS)  # further coordinates would not fit into a place
    low, spread = points.min(axis=0), max(float(np.ptp(points, axis=0).max()), np.finfo(float).tiny)
    at = [np.minimum((points[:, k] - low[k]) / spread * 2**bits, 2**bits - 1).astype(np.int64) for k in range(used)]
    bit = 1 << (bits - 1)
    while bit > 1:
        for k in range(used):
            high = (at[k] & bit) > 0
            swap = np.where(high, 0, (at[0] ^ at[k]) & (bit - 1))
            at[0] = np.where(high, at[0] ^ (bit - 1), at[0] ^ swap)
            at[k] = at[k] ^ swap if k else at[0]
        bit >>= 1
    for k in range(1, used):
        at[k] ^= at[k - 1]
    turn = np.zeros(len(points), dtype=np.int64)
    for level in range(bits - 1, 0, -1):
        turn ^= np.where(at[-1] & (1 << level), (1 << level) - 1, 0)
    place = np.zeros(len(points), dtype=np.int64)
    for level in range(bits - 1, -1, -1):
        for k in range(used):
            place = (place << 1) | (((at[k] ^ turn) >> level) & 1)
    return place


ORDERINGS: dict[str, Ordering] = {
    "bfs": bfs,
    "cm": cm,
    "rcm": rcm,
    "spectral": spectral,
    "sweep": sweep,
    "sort": sort,
    "hilbert": hilbert,
    "as-is": as_is,
}
NEED_POINTS = frozenset({"sweep", "sort", "hilbert"})


def applicable(groups: Groups) -> dict[str, Ordering]:
    """The orderings that these groups admit."""
    return {name: find for name, find in ORDERINGS.items() if groups.points is not None or name not in NEED_POINTS}


def ordered(groups: Groups, name: str) -> Whole:
    """The order that the ordering of this name finds."""
    if name not in ORDERINGS:
        raise ProblemError(f"ordering must be one of best, {', '.join(ORDERINGS)}. Found {name!r}.")
    return ORDERINGS[name](groups)
