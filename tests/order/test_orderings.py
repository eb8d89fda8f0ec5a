"""Orders by name, the descent and the portfolio: permutations on any input, never worse than E's, sound figures."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from optdp import OrderShuffle
from optdp.errors import ProblemError
from optdp.order import solve as portfolio
from optdp.order.mechanism import Groups, sensitivities, sensitivity
from optdp.order.orderings import NEED_POINTS, ORDERINGS, adjacency, applicable, together
from optdp.order.orderings import along_eigenvector as along
from optdp.order.search import Descent, Tables, distinct, lower_bound
from optdp.order.solve import best_order
from optdp.work import account as budget
from optdp.work.account import Budget


def ordered(groups: Groups, name: str) -> NDArray[np.int64]:
    return ORDERINGS[name](groups)


def around(n: int, each: float, seed: int, axes: int = 2) -> Groups:
    """Uniform points, and around each the group of about so many."""
    points = np.random.default_rng(seed).random((n, axes))
    radius = (each / n / np.pi) ** 0.5 if axes == 2 else (each / n) ** (1 / axes) / 2
    return Groups.of(cKDTree(points).query_ball_point(points, radius), n, points)


@st.composite
def sets_of(draw: st.DrawFn, largest: int) -> Groups:
    """Groups of any kind: empty, single, twice the same, far more or fewer than records; with points or without."""
    n = draw(st.integers(1, largest))
    listed = draw(st.lists(st.sets(st.integers(0, n - 1), max_size=n), max_size=2 * largest))
    points = None
    if draw(st.booleans()):
        axes = draw(st.integers(1, 3))
        few = st.sampled_from([-1.0, 0.0, 0.5, 1e300, 1e-300])
        points = np.array(draw(st.lists(few, min_size=n * axes, max_size=n * axes))).reshape(n, axes)
    return Groups.of([sorted(group) for group in listed], n, points)


@settings(max_examples=200, deadline=None)
@given(sets_of(12))
def test_every_ordering_gives_a_permutation(groups: Groups) -> None:
    for name, find in applicable(groups).items():
        order = find(groups)
        assert order.dtype == np.int64, name
        assert sorted(order.tolist()) == list(range(groups.n)), name


@settings(max_examples=100, deadline=None)
@given(sets_of(10), st.randoms(use_true_random=False))
def test_components_together_never_raise_a_sensitivity(groups: Groups, chance: object) -> None:
    order = np.array(chance.sample(range(groups.n), groups.n), dtype=np.int64)  # type: ignore[attr-defined]
    closer = together(groups, order)
    assert sorted(closer.tolist()) == list(range(groups.n))
    assert (sensitivities(groups, closer) <= sensitivities(groups, order)).all()


@pytest.mark.parametrize("name", ORDERINGS)
@pytest.mark.parametrize("n", [1, 2, 3, 700])
def test_sizes(name: str, n: int) -> None:
    groups = around(n, 8, seed=n)
    assert sorted(ordered(groups, name).tolist()) == list(range(n))


def test_breadth_first_is_networkx_on_the_papers_graph() -> None:
    """E, section 5.7: the root is the record with the largest group, and its group comes first."""
    groups = around(300, 12, seed=2)
    graph = nx.Graph()
    graph.add_nodes_from(range(groups.n))
    graph.add_edges_from((i, int(j)) for i in range(groups.n) for j in groups[i] if i != j)
    root = int(np.argmax(groups.sizes))
    sorted_first = [root, *(v for _, v in nx.bfs_edges(graph, root, sort_neighbors=sorted))]
    assert ordered(groups, "bfs")[: len(sorted_first)].tolist() == sorted_first
    assert set(ordered(groups, "bfs")[: int(groups.sizes.max())].tolist()) == set(groups[root].tolist())


def test_no_clique_is_built() -> None:
    """Groups that are not the records' own are joined in a star, so that a large one costs as many edges as members."""
    groups = Groups.of([range(5_000), range(4_990, 6_000)], 6_000)
    assert adjacency(groups).nnz == 2 * (4_999 + 1_009)
    for name in applicable(groups):
        if name != "as-is":
            assert sorted(ordered(groups, name).tolist()) == list(range(6_000))


@pytest.mark.parametrize("name", ["bfs", "cm", "rcm", "spectral"])
def test_a_path_is_found(name: str) -> None:
    """The least sensitivity of a path is that of three neighbours; breadth first from the middle doubles the gaps."""
    label = np.random.default_rng(0).permutation(600)
    groups = Groups.of([[label[j] for j in (i - 1, i, i + 1) if 0 <= j < 600] for i in np.argsort(label)], 600)
    assert sensitivity(groups, ordered(groups, name)) <= (3 if name != "bfs" else 7)


@settings(max_examples=60, deadline=None)
@given(sets_of(14))
def test_cuthill_mckee_is_what_a_queue_does(groups: Groups) -> None:
    """Component by component: neighbours of who comes first come first, and of those the ones with few neighbours."""
    graph = adjacency(groups)
    near = [sorted(graph[[v]].indices.tolist(), key=lambda w: (graph[[w]].nnz, w)) for v in range(groups.n)]
    order, seen = ordered(groups, "cm").tolist(), []
    while len(seen) < groups.n:
        queue = [order[len(seen)]]  # whoever begins a component
        for v in queue:
            queue += [w for w in near[v] if w not in queue]
        seen += queue
    assert order == seen


@pytest.mark.parametrize("seed", range(4))
def test_spectral_is_the_eigenvector_of_lapack(seed: int) -> None:
    """On a long strip of points its eigenvalue is simple, and the search settles."""
    points = np.random.default_rng(seed).random((200, 2)) * (4.0, 1.0)
    groups = Groups.of(cKDTree(points).query_ball_point(points, 0.5), 200, points)
    graph = adjacency(groups)
    count, label = csgraph.connected_components(graph, directed=False)
    found = along(graph, label, np.arange(200.0))
    assert count == 1
    values, vectors = np.linalg.eigh(csgraph.laplacian(graph).toarray())
    assert found @ found == pytest.approx(1)
    assert found @ csgraph.laplacian(graph) @ found == pytest.approx(values[1], rel=1e-3)
    assert abs(found @ vectors[:, 1]) > 0.999


def test_spectral_searches_every_component_as_if_it_were_alone() -> None:
    parts = [around(n, 9, seed=n) for n in (40, 3, 90, 1, 2, 60)]
    begins = [0, 40, 43, 133, 134, 136]
    whole = Groups.of([part[i] + at for part, at in zip(parts, begins, strict=True) for i in range(part.n)], 196)
    order = ordered(whole, "spectral").tolist()
    for part, at in zip(parts, begins, strict=True):
        alone = Groups.of(list(part), part.n)
        assert [v - at for v in order if at <= v < at + part.n] == ordered(alone, "spectral").tolist()


@pytest.mark.parametrize("axes", [1, 2, 5])
def test_sweep_follows_the_principal_axis(axes: int) -> None:
    points = np.random.default_rng(axes).normal(size=(80, axes)) * 2.0 ** np.arange(axes) @ _turned(axes)
    order = ordered(Groups.of([range(80)], 80, points), "sweep")
    centred = points - points.mean(axis=0)
    wanted = np.argsort(centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1])
    assert order.tolist() in (wanted.tolist(), wanted[::-1].tolist())


def _turned(axes: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(0).normal(size=(axes, axes)))[0]


def test_hilberts_curve_visits_neighbours() -> None:
    for axes, side in ((2, 16), (3, 8)):
        grid = np.stack(np.meshgrid(*[np.arange(side)] * axes), axis=-1).reshape(-1, axes).astype(float)
        order = ordered(Groups.of([range(len(grid))], len(grid), grid), "hilbert")
        assert (np.abs(np.diff(grid[order], axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("name", sorted(NEED_POINTS))
def test_points_are_needed(name: str) -> None:
    with pytest.raises(ProblemError, match=r"Found groups without points\. Choose among bfs, cm"):
        ordered(Groups.of([[0, 1]], 2), name)


def test_an_unknown_name() -> None:
    with pytest.raises(ProblemError, match=r"best or one of bfs, .* Found 'zigzag'"):
        OrderShuffle(Groups.of([[0, 1]], 2), 1, ordering="zigzag")


@settings(max_examples=100, deadline=None)
@given(sets_of(9), st.integers(0, 2**32 - 1))
def test_the_tables_measure_what_the_closed_form_does(groups: Groups, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(groups.n).astype(np.int64)
    position = np.argsort(order)
    found, _ = Tables(groups).measure(position)
    assert found.tolist() == sensitivities(groups, order)[distinct(groups)].tolist()
    assert int(found.max(initial=0)) == sensitivity(groups, order)


def test_the_slope_is_that_of_the_sensitivity() -> None:
    """Far apart, a record that moves by one changes the sum of the sensitivities by twice the slope there."""
    groups = around(200, 9, seed=4)
    tables = Tables(groups)
    position = 1_000 * np.random.default_rng(0).permutation(200)
    tables.n = 10**6  # room for positions that are not ranks
    found, places = tables.measure(position)
    slope = tables.slope(places, np.ones(len(found)))
    for record in range(0, 200, 17):
        moved = position.copy()
        moved[record] += 1
        assert tables.measure(moved)[0].sum() - found.sum() in {
            2 * slope[position[record]],  # a median of three feels a step on one side only
            2 * slope[position[record]] + 2 * np.count_nonzero(_is_median(groups, position, record)),
        }


def _is_median(groups: Groups, position: np.ndarray, record: int) -> list[bool]:
    rows = [groups[int(row)] for row in distinct(groups) if record in groups[int(row)]]
    return [len(row) % 2 == 1 and np.median(position[row]) == position[record] for row in rows]


def test_the_descent_keeps_the_best_and_improves() -> None:
    groups = around(1_000, 20, seed=0)
    start = ordered(groups, "sort")
    descent = Descent(Tables(groups), start, sensitivity(groups, start))
    descent.run(Budget(1.5))
    assert sorted(descent.order.tolist()) == list(range(1_000))
    assert sensitivity(groups, descent.order) == descent.sensitivity
    assert descent.sensitivity < 0.8 * sensitivity(groups, start)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("axes", [2, 3])
def test_best_is_never_worse_than_any_ordering(seed: int, axes: int) -> None:
    groups = around(400, 10, seed, axes)
    found = best_order(groups, 1.0)
    assert found.sensitivity == sensitivity(groups, found.order)
    assert found.sensitivity <= min(sensitivity(groups, ordered(groups, name)) for name in ORDERINGS)
    assert found.status == "complete"
    assert not found.proved


def test_the_search_ends_at_the_same_step_whatever_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is somewhat slower finds the same order; one that is hopelessly slow stops early."""
    groups = around(400, 10, seed=3)

    def found(pace: float) -> tuple[bytes, list[tuple[str, int]], int]:
        ticks = itertools.count()
        monkeypatch.setattr(budget, "now", lambda: next(ticks) * pace)
        best = best_order(groups, 0.5)
        return best.order.tobytes(), best.history, lower_bound(groups, 0.1)

    assert found(0.0) == found(1e-6) == found(1e-4)
    assert len(found(1e3)[1]) < len(found(0.0)[1])


def test_best_has_bfs_even_without_time() -> None:
    groups = around(400, 10, seed=1)
    assert best_order(groups, 0.0).sensitivity <= sensitivity(groups, ordered(groups, "bfs"))


@settings(max_examples=25, deadline=None)
@given(sets_of(8))
def test_best_of_a_few_is_proved(groups: Groups) -> None:
    found = best_order(groups, 5.0)
    assert found.proved
    assert found.sensitivity == sensitivity(groups, found.order)


def test_best_of_ten_is_proved() -> None:
    assert best_order(around(10, 3, seed=5), 60.0).proved


@pytest.mark.parametrize("after", [1, 5, 9, 12])
def test_an_interrupt_keeps_the_best_so_far(after: int) -> None:
    groups = around(400, 10, seed=1)
    said: list[str] = []

    def progress(text: str) -> None:
        said.append(text)
        if len(said) == after:
            raise KeyboardInterrupt

    found = best_order(groups, 2.0, progress)
    assert found.status == "interrupted"
    assert found.sensitivity == sensitivity(groups, found.order)
    assert found.sensitivity == min([found.sensitivity, *(value for _, value in found.history)])


@pytest.mark.parametrize("budget", [-1.0, float("nan"), float("inf")])
def test_a_budget_that_is_none(budget: float) -> None:
    with pytest.raises(ProblemError, match="budget must be"):
        OrderShuffle(Groups.of([[0, 1]], 2), 1, budget=budget)


def test_apart_components_cost_nothing() -> None:
    """Two squares far apart: no better and no worse than the worse of the two alone."""
    one = around(300, 8, seed=1)
    both = Groups.of([*(one[k] for k in range(300)), *(one[k] + 300 for k in range(300))], 600)
    assert sensitivity(both, ordered(both, "rcm")) == sensitivity(one, ordered(Groups.of(list(one), 300), "rcm"))
    assert portfolio.STARTS > 1


def test_what_takes_long_is_left_out_of_a_short_search() -> None:
    """Thousands of components are quick to order but for their eigenvectors, which a budget has to have room for."""
    groups = Groups.of([[4 * k, 4 * k + 1, 4 * k + 2] for k in range(3000)] + [[1, 6, 11, 16]], 12_000)
    tried = {seconds: [name for name, _ in best_order(groups, seconds).history] for seconds in (0.2, 5.0)}
    assert "spectral" not in tried[0.2]
    assert "spectral" in tried[5.0]
    assert {"bfs", "rcm"} <= set(tried[0.2])


def test_components_are_those_of_the_graph() -> None:
    source = np.random.default_rng(0)
    for _ in range(100):
        n = int(source.integers(1, 40))
        drawn = [
            source.choice(n, size=int(source.integers(0, min(n, 4) + 1)), replace=False).tolist()
            for _ in range(int(source.integers(0, 30)))
        ]
        graph = nx.Graph()
        graph.add_nodes_from(range(n))
        graph.add_edges_from(pair for group in drawn for pair in itertools.pairwise(group))
        count, part = Groups.of(drawn, n).parts
        parts = {frozenset(np.flatnonzero(part == k).tolist()) for k in range(count)}
        assert parts == set(map(frozenset, nx.connected_components(graph)))
