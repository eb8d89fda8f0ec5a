"""The second eigenvector of the Laplacian of every component of a graph, the same to the last bit on every machine.

Eigenvectors of LAPACK and of SciPy hang on the order in which BLAS adds, have either sign, and where an eigenvalue is
double are any vector of a plane; an order that follows one would differ from machine to machine. So the search is our
own, by additions, multiplications, divisions and square roots alone, each of which is rounded in one way only. It is
the conjugate gradient of the Rayleigh quotient (LOBPCG with one vector): a step goes to the best vector in the span of
the last one, its residual over the degrees, and the last step. The quotient never rises, settled or not.

All components are searched at once: sums are by component, and so are the 3 x 3 eigenvalue problems of a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csgraph, csr_array

from optdp.errors import ProblemError
from optdp.numbers.ordered import times
from optdp.order.mechanism import Groups, Reals, Whole

STEPS, SETTLED, LOST = 100, 1e-4, 1e-10
"""Steps at most, a residual over the largest degree at which a component has settled, and what must be left of a
direction next to the others, or it is none."""
SWEEPS = 5
"""Jacobi rotations of a 3 x 3 matrix converge quadratically."""


@dataclass(frozen=True)
class _Parts:
    """Vertices, each component's in a run: where the runs begin, and the component of each vertex."""

    graph: csr_array
    degrees: Reals
    begins: Whole
    label: Whole
    sizes: Reals

    def total(self, values: Reals) -> Reals:
        """The sum in each component, for each of its vertices."""
        return np.asarray(np.add.reduceat(values, self.begins)[self.label])

    def sums(self, values: Reals) -> Reals:
        return np.asarray(np.add.reduceat(values, self.begins))

    def centred(self, values: Reals) -> Reals:
        return np.asarray(values - self.total(values) / self.sizes)

    def applied(self, values: Reals) -> Reals:
        """The Laplacian times a vector. The graph's entries are 1: only sums are rounded, in the order of a row."""
        return np.asarray(self.degrees * values - self.graph @ values)


def along_eigenvector(graph: csr_array, label: Whole, start: Reals) -> Reals:
    """The eigenvector of each component of a graph whose entries are 1, from a start that is not constant there.

    `label` is the component of each vertex. A vertex without neighbours keeps its start.
    """
    found = start.copy()
    degrees = np.diff(graph.indptr)
    some = np.flatnonzero(degrees)
    some = some[np.argsort(label[some], kind="stable")]
    if not len(some):
        return found
    first = np.append(True, np.diff(label[some]) != 0)
    begins = np.flatnonzero(first)
    part = np.cumsum(first) - 1
    sizes = np.diff(np.append(begins, len(some))).astype(np.float64)
    parts = _Parts(graph[some][:, some], degrees[some].astype(np.float64), begins, part, sizes[part])
    found[some] = _search(parts, start[some])
    return found


def _search(parts: _Parts, start: Reals) -> Reals:
    largest = np.maximum.reduceat(parts.degrees, parts.begins)
    x = parts.centred(start)
    x /= np.sqrt(parts.total(x * x))
    lx, p, lp = parts.applied(x), np.zeros(len(x)), np.zeros(len(x))
    for _ in range(STEPS):
        residual = lx - parts.total(x * lx) * x
        going = np.sqrt(parts.sums(residual * residual)) > SETTLED * largest
        if not going.any():
            break
        w, _ = _apart(parts, parts.centred(residual / parts.degrees), None, [(x, lx)])
        lw = parts.applied(w)
        p, lp = _apart(parts, p, lp, [(x, lx), (w, lw)])
        pairs = ((x, lx), (x, lw), (x, lp), (w, lw), (w, lp), (p, lp))
        xx, xw, xp, ww, wp, pp = (parts.sums(one * other) for one, other in pairs)
        beyond = 4.0 * largest + 1.0  # above every eigenvalue: a direction that is lost is not taken
        ww, pp = (np.where(parts.sums(v * v) > 0.5, value, beyond) for v, value in ((w, ww), (p, pp)))
        shares = _lowest(np.array([[xx, xw, xp], [xw, ww, wp], [xp, wp, pp]]))
        shares = np.where(going, shares, [[1.0], [0.0], [0.0]])  # each component ends as it would alone
        a, b, c = shares[:, parts.label]
        p, lp = b * w + c * p, b * lw + c * lp
        x, lx = a * x + p, a * lx + lp
    return x


def _apart(parts: _Parts, v: Reals, lv: Reals | None, others: list[tuple[Reals, Reals]]) -> tuple[Reals, Reals]:
    """`v` less its shares of the others, of length one, or nothing where nothing is left; `lv` likewise."""
    whole = parts.total(v * v)
    for _ in range(2):  # once more for what rounding left
        for other, applied in others:
            share = parts.total(v * other)
            v = v - share * other
            if lv is not None:
                lv = lv - share * applied
    left = parts.total(v * v)
    scale = np.zeros(len(v))
    np.divide(1.0, np.sqrt(left), out=scale, where=left > LOST**2 * whole)
    return v * scale, (v if lv is None else lv) * scale


def _lowest(matrix: Reals) -> Reals:
    """The eigenvector to the lowest eigenvalue of each symmetric matrix (the last axis), its first entry not negative.

    Cyclic Jacobi rotations.
    """
    size, vectors = len(matrix), np.zeros_like(matrix)
    for i in range(size):
        vectors[i, i] = 1.0
    for _ in range(SWEEPS):
        for i in range(size):
            for j in range(i + 1, size):
                off, apart = matrix[i, j].copy(), matrix[j, j] - matrix[i, i]
                bend = np.abs(apart) + np.sqrt(apart * apart + 4.0 * off * off)
                tangent = np.zeros(off.shape)
                np.divide(2.0 * np.where(apart < 0, -off, off), bend, out=tangent, where=bend > 0)
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                for rows in (matrix, vectors):
                    rows[i], rows[j] = cosine * rows[i] - sine * rows[j], sine * rows[i] + cosine * rows[j]
                one, other = matrix[:, i].copy(), matrix[:, j].copy()
                matrix[:, i], matrix[:, j] = cosine * one - sine * other, sine * one + cosine * other
    place = np.argmin(matrix[np.arange(size), np.arange(size)], axis=0)
    found: Reals = vectors[place, :, np.arange(matrix.shape[2])].T
    return np.where(found[0] < 0, -found, found)


Ordering = Callable[[Groups], Whole]
WALKS = 6
"""Walks through the graph, at most, in search of an end of each component."""
POWERS = 100
"""Steps of the power method towards the direction of the largest spread."""
CURVE_BITS = 62
"""Bits of a place on the space-filling curve, all axes together."""


def adjacency(groups: Groups) -> csr_array:
    """The graph of the groups, symmetric, without loops, every edge with weight one."""
    owners, members = groups.owners, groups.members
    centre = owners if own(groups) else groups.firsts[owners]
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
    count, label = csgraph.connected_components(graph, directed=False)
    by_size = _by_group_size(groups)
    roots = by_size[np.sort(np.unique(label[by_size], return_index=True)[1])]
    rank = np.empty(count, dtype=np.int64)
    rank[label[roots]] = np.arange(count)
    walked, _ = _breadth_first(graph, roots)  # all components at once, each in its own order
    return walked[np.argsort(rank[label[walked]], kind="stable")]


def rcm(groups: Groups) -> Whole:
    """Reverse Cuthill-McKee: breadth first from the edge of each component, records with few neighbours first."""
    return cm(groups)[::-1].copy()


def cm(groups: Groups) -> Whole:
    """Cuthill-McKee: `rcm` backwards. An order and its reverse have the same sensitivity."""
    return cuthill_mckee(adjacency(groups))


def cuthill_mckee(graph: csr_array) -> Whole:
    """Breadth first, neighbours with fewer neighbours first, from one end of each component; of equals the first.

    The end is looked for as George and Liu do: from a vertex with few neighbours to the farthest, as long as that leads
    to one from which the component is deeper.
    """
    by_degree = np.argsort(np.diff(graph.indptr), kind="stable")  # so that a row in order has few neighbours first
    graph = csr_array(graph[by_degree][:, by_degree])
    graph.sort_indices()
    count, label = csgraph.connected_components(graph, directed=False)
    roots = np.unique(label, return_index=True)[1]
    deepest = np.full(count, -1)
    order: Whole = np.zeros(0, dtype=np.int64)
    for _ in range(WALKS):
        walked, depth = _breadth_first(graph, roots)
        reach = np.zeros(count, dtype=np.int64)
        np.maximum.at(reach, label, depth)
        if not (better := reach > deepest).any():
            break
        ranked = walked[np.argsort(label[walked], kind="stable")]
        order = ranked if not len(order) else np.where(better[label[ranked]], ranked, order)
        deepest = np.maximum(reach, deepest)
        far = np.flatnonzero(depth == reach[label])
        roots = np.where(better, far[np.unique(label[far], return_index=True)[1]], roots)
    return by_degree[order]


def _breadth_first(graph: csr_array, roots: Whole) -> tuple[Whole, Whole]:
    """All vertices breadth first from one root in each component, all at once, and how far each is from its root."""
    size = graph.shape[0]
    indices = np.concatenate((graph.indices, roots)).astype(np.int32)
    starts = np.append(graph.indptr, len(indices)).astype(np.int32)
    above = csr_array((np.ones(len(indices)), indices, starts), shape=(size + 1, size + 1))  # one vertex over the roots
    order, before = csgraph.breadth_first_order(above, size, directed=True)
    before[size] = size
    return order[1:].astype(np.int64), depths(before)[:size] - 1


def depths(parent: Whole) -> Whole:
    """How far each vertex of a forest is from its root, which is its own parent."""
    depth: Whole = (parent != np.arange(len(parent))).astype(np.int64)
    while (more := depth[parent]).any():
        depth, parent = depth + more, parent[parent]
    return depth


def spectral(groups: Groups) -> Whole:
    """Each component along the second eigenvector of its Laplacian, as far as a search from `cm` finds it."""
    graph = adjacency(groups)
    ranks = np.empty(groups.n)
    ranks[cuthill_mckee(graph)] = np.arange(groups.n)
    _, label = csgraph.connected_components(graph, directed=False)
    return np.lexsort((along_eigenvector(graph, label, ranks), label)).astype(np.int64)


def sweep(groups: Groups) -> Whole:
    """Along the direction in which the points are spread most."""
    points = _points(groups, "sweep")
    centred = points - points.mean(axis=0)
    spread = times(centred.T.copy(), centred)
    axis = spread[int(np.argmax(np.diag(spread)))]
    for _ in range(POWERS):
        axis = times(spread, axis / max(float(np.abs(axis).max()), np.finfo(float).tiny))
    return together(groups, np.argsort(times(centred, axis), kind="stable"))


def sort(groups: Groups) -> Whole:
    """By the first coordinate of the points."""
    return together(groups, np.argsort(_points(groups, "sort")[:, 0], kind="stable"))


def hilbert(groups: Groups) -> Whole:
    """Along Hilbert's space-filling curve through the points, in any number of dimensions."""
    return together(groups, np.argsort(_hilbert_places(_points(groups, "hilbert")), kind="stable"))


def together(groups: Groups, order: Whole, met: Whole | None = None) -> Whole:
    """The same order with the components one after another, by where they begin, there or in the order `met`.

    No sensitivity rises: only records that have nothing to do with a group leave the gaps between its members.
    """
    count, part = groups.parts
    begin = np.full(count, groups.n, dtype=np.int64)
    np.minimum.at(begin, part[order if met is None else met], np.arange(groups.n))
    return order[np.argsort(begin[part[order]], kind="stable")]


def along(groups: Groups, order: Whole) -> Whole:
    """The same order with the components one after another, as a curve through the points meets them.

    More is learned by it: the shuffle mixes records that follow each other in the order, and now these are neighbours
    even if they are in no group together.
    """
    return order if groups.points is None else together(groups, order, hilbert(groups))


def _by_group_size(groups: Groups) -> Whole:
    """The records, those with (or in) the largest groups first."""
    if own(groups):
        return np.argsort(-groups.sizes, kind="stable")
    largest = np.zeros(groups.n, dtype=np.int64)
    np.maximum.at(largest, groups.members, groups.sizes[groups.owners])
    return np.argsort(-largest, kind="stable")


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
