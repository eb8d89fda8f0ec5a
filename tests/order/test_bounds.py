"""The lower bound and the exact program: never above the truth, which is found by measuring all orders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optdp.order.mechanism import Groups, sensitivity
from optdp.order.search import Overlaps, lower_bound
from optdp.order.solve import enumerated
from tests.order.exact_program import branched
from tests.order.test_orderings import around, sets_of


@settings(max_examples=150, deadline=None)
@given(sets_of(7))
def test_no_order_is_below_the_bound(groups: Groups) -> None:
    assert lower_bound(groups, 0.5) <= enumerated(groups)[1]


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 7), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=14))
def test_no_order_is_below_the_bound_of_pairs(n: int, pairs: list[tuple[int, int]]) -> None:
    """Small groups that overlap: here it is the routes that count."""
    groups = Groups.of([sorted({a % n, b % n}) for a, b in pairs], n)
    assert lower_bound(groups, 0.5) <= enumerated(groups)[1]


def test_routes_prove_more_than_the_largest_group() -> None:
    star = Groups.of([[0, k] for k in range(1, 41)], 41)  # pairs: one each, side by side
    assert 8 < lower_bound(star) <= 39
    grid = Groups.of([[k, k + step] for k in range(100) for step in (1, 10) if k + step < 100 and (k + step) % 10], 100)
    assert 3 < lower_bound(grid) <= sensitivity(grid, np.arange(100, dtype=np.int64))


def test_the_bound_of_many_points_is_far_above_the_largest_group() -> None:
    groups = around(2_000, 30, seed=0)
    largest = int(groups.sizes.max())
    assert lower_bound(groups) > 1.1 * largest * (largest - 1) / 2


def test_a_bound_of_routes_between_some_records_only() -> None:
    """Demand by demand, against the definition: the routes' numbers cover the distances in any order."""
    groups = around(60, 6, seed=3)
    rows = np.flatnonzero(groups.sizes > 1)
    records = np.unique(groups.members[np.isin(groups.owners, rows)])
    _, label = np.unique(records, return_inverse=True)
    overlaps = Overlaps.of(groups, rows, records)
    sources = np.flatnonzero(overlaps.cells)[:5]
    passed = overlaps.routed(sources, overlaps.lengths(np.zeros(len(overlaps.members)), avoid=False))
    begins = np.isin(overlaps.owners[overlaps.homes], sources)
    reach = _reached(groups, records)
    source = np.random.default_rng(1)
    for _ in range(20):
        y = source.permutation(len(records)).astype(float)
        joined = sum(abs(y[u] - y[v]) for u in np.flatnonzero(begins) for v in label if reach[u] == reach[v])
        covered = 0.0
        for group in range(len(rows)):
            entries = slice(overlaps.starts[group], overlaps.starts[group + 1])
            at = y[overlaps.members[entries]]
            covered += float(passed[entries] @ np.abs(at - np.median(at)))
        assert joined <= covered * (1 + 1e-12)


def _reached(groups: Groups, records: np.ndarray) -> np.ndarray:
    from scipy.sparse.csgraph import connected_components

    from optdp.order.orderings import adjacency

    return connected_components(adjacency(groups), directed=False)[1][records]


def test_nothing_to_bound() -> None:
    assert lower_bound(Groups.of([], 3)) == 0
    assert lower_bound(Groups.of([[0], [], [1]], 3)) == 0
    assert lower_bound(Groups.of([[0, 1, 2]] * 3, 3)) == 3


@settings(max_examples=25, deadline=None)
@given(sets_of(6))
def test_the_program_finds_what_enumeration_finds(groups: Groups) -> None:
    (order, value), found = enumerated(groups), branched(groups, 60.0)
    assert found.proved
    assert found.sensitivity == value == sensitivity(groups, found.order) == sensitivity(groups, order)


@pytest.mark.parametrize("seed", range(4))
def test_the_program_on_neighbours(seed: int) -> None:
    groups = around(7, 3, seed)
    start = np.random.default_rng(seed).permutation(7).astype(np.int64)
    assert branched(groups, 60.0, start).sensitivity == enumerated(groups)[1]


def test_a_path_of_ten_is_proved() -> None:
    path = Groups.of([[max(k - 1, 0), k, min(k + 1, 9)][k == 0 : 3 - (k == 9)] for k in range(10)], 10)
    shuffled = np.random.default_rng(0).permutation(10).astype(np.int64)
    order, value = enumerated(path, shuffled)
    assert value == 3 == sensitivity(path, order)


def test_no_time_is_no_proof() -> None:
    groups = around(12, 5, seed=1)
    start = np.random.default_rng(0).permutation(12).astype(np.int64)
    found = branched(groups, 0.0, start)
    assert found.lower <= found.sensitivity <= sensitivity(groups, start)
    assert sensitivity(groups, found.order) == found.sensitivity


def test_enumeration_measures_all_orders() -> None:
    """Against every permutation by `itertools`, with and without an order that is known already."""
    source = np.random.default_rng(5)
    for _ in range(12):
        n = int(source.integers(1, 7))
        drawn = [source.choice(n, size=int(source.integers(0, n + 1)), replace=False).tolist() for _ in range(5)]
        groups = Groups.of(drawn, n)
        true = min(sensitivity(groups, np.array(order)) for order in itertools.permutations(range(n)))
        for start in (None, source.permutation(n)):
            order, value = enumerated(groups, start)
            assert value == true == sensitivity(groups, order)
