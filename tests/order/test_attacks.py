"""The vote of the neighbours: against a direct vote, at both ends, and in between."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from optdp.errors import ProblemError
from optdp.numbers.source import Source
from optdp.order.mechanism import Groups, sensitivity
from optdp.order.orderings import bfs, hilbert, spectral
from optdp.order.sources import column_csv, edges_csv, from_graph, from_points, points_csv
from optdp.order.study import (
    blank_share,
    crescents,
    nearest,
    nearest_by_hops,
    no_shuffle,
    order_shuffle,
    recovery,
    reports,
    uniform_shuffle,
    vulnerable,
)
from optdp.order.tradeoff import along, alpha_sweep, attack_curve, least, radius_sweep, width_sweep

DATA = next(
    (up / "shared" / "data" for up in Path(__file__).resolve().parents if (up / "shared" / "data").is_dir()), None
)


def data(name: str) -> Path:
    if DATA is None or not (DATA / name).is_file():
        pytest.skip(f"the data set {name} is not here")
    return DATA / name


def test_crescents_have_three_granularities() -> None:
    points, colours = crescents(4000, Source(1))
    assert np.bincount(colours).min() > 400
    near = nearest(points, Source(2), 5)
    same = [np.mean((colours[near] >> bits) == (colours >> bits)[:, None]) for bits in (0, 1, 2)]
    assert 0.95 < same[0] < same[1] < same[2] == 1.0
    assert np.array_equal(points, crescents(4000, Source(1))[0])
    assert np.bincount(crescents(4000, Source(1), 0.0)[1]).tolist() == np.bincount(colours).tolist()


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_nearest(dimension: int) -> None:
    points = np.random.default_rng(dimension).random((80, dimension))
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    np.fill_diagonal(apart, math.inf)
    wanted = np.argsort(apart, axis=1)[:, :7]
    assert np.array_equal(np.sort(nearest(points, Source(1), 7)), np.sort(wanted))


def test_nearest_at_the_same_place_are_drawn_by_lot() -> None:
    found = nearest(np.zeros((200, 2)), Source(1), 10)
    assert (found != np.arange(200)[:, None]).all()
    assert len(np.unique(found)) > 150
    assert all(len(set(row)) == 10 for row in found.tolist())


def test_nearest_by_hops() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.gnm_random_graph(150, 200, seed=2)
    found = nearest_by_hops(graph, Source(1), count=12)
    for node, steps in networkx.all_pairs_shortest_path_length(graph):
        row = [other for other in found[node].tolist() if other >= 0]
        others = sorted(far for other, far in steps.items() if other != node)
        assert len(set(row)) == len(row) == min(12, len(others))
        assert node not in row
        assert [steps[other] for other in row] == others[:12]


def test_reports_are_k_rr() -> None:
    told = reports(np.full(100_000, 2), 5, 1.5, Source(1))
    p = math.exp(1.5)
    wanted = np.full(5, 1 / (p + 4))
    wanted[2] *= p
    counts = np.bincount(told, minlength=5)
    assert ((counts - 1e5 * wanted) ** 2 / (1e5 * wanted)).sum() < 20
    assert blank_share(5, math.inf) == 0.0
    assert np.array_equal(reports(np.arange(5), 5, math.inf, Source(1)), np.arange(5))


@pytest.mark.parametrize("k", [2, 3, 8])
def test_without_noise_it_is_a_direct_vote(k: int) -> None:
    random = np.random.default_rng(k)
    points = random.random((300, 2))
    values = np.minimum((points[:, 0] * k + random.normal(0, 0.2, 300)).clip(0), k - 1).astype(int)
    near = nearest(points, Source(1), 25)
    often = recovery(near, values, k, math.inf, no_shuffle(300), Source(2), trials=400)
    for record in range(300):
        votes = Counter(values[near[record]].tolist())
        best = [value for value, count in votes.items() if count == max(votes.values())]
        wanted = (values[record] in best) / len(best)
        assert abs(often[record] - wanted) < 5 * math.sqrt(wanted * (1 - wanted) / 400) + 1e-12
    sure = np.mean(often == 1.0)
    assert vulnerable(near, values, k, math.inf, no_shuffle(300), Source(2), 50) == pytest.approx(sure)


def test_a_uniform_shuffle_leaves_chance() -> None:
    points, colours = crescents(3000, Source(1))
    near = nearest(points, Source(2))
    shares = [
        recovery(near, colours, 8, 2.5, uniform_shuffle(3000), Source(seed), trials=20).mean() for seed in range(5)
    ]
    assert abs(np.mean(shares) - 1 / 8) < 0.01
    assert vulnerable(near, colours, 8, 2.5, uniform_shuffle(3000), Source(3)) < 0.01


def test_a_lonely_record_is_guessed() -> None:
    near = np.full((2, 3), -1)
    often = recovery(near, [0, 3], 4, math.inf, no_shuffle(2), Source(1), trials=4000)
    assert np.abs(often - 0.25).max() < 0.04


def test_shuffles_move_reports() -> None:
    order = np.random.default_rng(1).permutation(50)
    assert np.array_equal(no_shuffle(50)(Source(1)), np.arange(50))
    assert np.array_equal(order_shuffle(order, Fraction(0))(Source(1)), np.arange(50))
    for shuffle in (uniform_shuffle(50), order_shuffle(order, Fraction(1, 2)), order_shuffle(order, Fraction(1))):
        assert np.array_equal(np.sort(shuffle(Source(1))), np.arange(50))
    place = np.argsort(order)
    moved = order_shuffle(order, Fraction(1, 10))(Source(1))
    assert np.abs(place[moved] - place).max() <= 3  # by the order's positions, not by the records' numbers
    with pytest.raises(ProblemError, match="every record once"):
        order_shuffle(np.zeros(3, dtype=np.int64), Fraction(1, 2))


@pytest.mark.parametrize(
    ("values", "k", "message"),
    [
        ([0, 1, 2], 2, "from 0 to 1. Found 2 for record 2"),
        ([0.5, 1, 1], 2, "list of whole numbers"),
        ([0, 1], 2, "for each of the 2 values"),
        ([0, 1, 1], 1, "k must be from 2"),
    ],
)
def test_values_of_another_kind(values: list[int], k: int, message: str) -> None:
    near = np.array([[1], [2], [0]])
    with pytest.raises(ProblemError, match=message):
        vulnerable(near, values, k, 1.0, no_shuffle(len(values)), Source(1))


def test_eps() -> None:
    for eps in (0.0, -1.0, math.nan):
        with pytest.raises(ProblemError, match="eps must be a number above 0"):
            blank_share(2, eps)


def test_parts_follow_a_curve() -> None:
    points, _ = crescents(1000, Source(1))
    groups = from_points(points, 0.03)
    for find in (bfs, spectral, hilbert):
        order = along(groups, find(groups))
        assert np.array_equal(np.sort(order), np.arange(1000))
        assert sensitivity(groups, order) == sensitivity(groups, find(groups))
    length = [
        np.linalg.norm(np.diff(points[order], axis=0), axis=1).sum()
        for order in (bfs(groups), along(groups, bfs(groups)))
    ]
    assert length[1] < 0.2 * length[0]
    bare = Groups(groups.n, groups.starts, groups.members)
    assert np.array_equal(along(bare, bfs(bare)), bfs(bare))


def test_rho_falls_from_one_end_to_the_other() -> None:
    points, colours = crescents(3000, Source(1))
    near = nearest(points, Source(2))
    designs = radius_sweep(points, [0.0, 0.02, 0.04, 0.08, 0.3], 4)
    found = attack_curve(designs, near, colours, 8, 2.55, Source(3), trials=30, repeats=2)
    rho = [row.found for row in found.rows]
    assert found.local > 0.85
    assert found.uniform < 0.01
    assert abs(rho[0] - found.local) < 0.02
    assert all(a >= b - 0.02 for a, b in pairwise(rho))
    assert abs(rho[-1] - found.uniform) < 0.02
    assert any(0.1 < one < 0.8 for one in rho)
    assert all(row.gain >= 1.0 for row in found.rows)
    assert found.rows[-1].gain > 4
    assert found.rows[-1].theta == pytest.approx(4 / found.rows[-1].sensitivity)


def test_rho_rises_with_alpha() -> None:
    points, colours = crescents(2000, Source(1))
    near = nearest(points, Source(2))
    designs = alpha_sweep(from_points(points, 0.1), [1, "20", 400, 10**5], least)
    rho = [row.found for row in attack_curve(designs, near, colours, 8, 2.55, Source(3), trials=30, repeats=2).rows]
    assert rho[0] < 0.05
    assert all(a <= b + 0.02 for a, b in pairwise(rho))
    assert rho[-1] > 0.8


def test_widths_cover_the_groups_that_are_not_wider() -> None:
    groups = from_graph([(i, i + 1) for i in range(9)] + [(0, 9)], 1)
    rows = width_sweep(groups, [0, 1, 2, 9], 4, lambda _: np.arange(10))
    assert [row.covered for row in rows] == [0.0, 0.0, 0.8, 1.0]
    assert [row.sensitivity for row in rows] == [0, 0, 3, 3 + 2 * 7]
    assert [row.paper_sensitivity for row in rows] == [0, 1, 3, 45]
    assert [row.group_size for row in rows] == [0.0, 0.0, 3.0, 3.0]


@pytest.mark.data
def test_adult() -> None:
    path = data("adult.csv")
    kept = np.random.default_rng(1).permutation(32561)[:3000]
    points = points_csv(path, ["age", "hours_per_week"])[kept]
    _, values = np.unique(column_csv(path, "marital_status", numbers=False)[kept], return_inverse=True)
    near = nearest(points, Source(1))
    designs = radius_sweep(points, [0.0, 1.0, 3.0], 4)
    found = attack_curve(designs, near, values, 7, 2.5, Source(2), trials=20, repeats=1)
    assert found.local > found.uniform
    assert found.local + 0.02 >= found.rows[0].found >= found.rows[-1].found - 0.02
    assert found.rows[-1].gain > 4


@pytest.mark.data
def test_twitch() -> None:
    edges, n = edges_csv(data("twitch_engb_edges.csv"))
    place = column_csv(data("twitch_engb_target.csv"), "new_id").astype(int)
    values = np.empty(n, dtype=np.int64)
    values[place] = column_csv(data("twitch_engb_target.csv"), "mature", numbers=False) == "True"
    groups = from_graph(edges, 1, n)
    assert groups.sizes.max() == 721
    near = nearest_by_hops(edges, Source(1), n)
    ends = attack_curve(alpha_sweep(groups, [1, 10**8]), near, values, 2, 2.5, Source(2), trials=20, repeats=1)
    assert ends.rows[0].gain > 5
    assert abs(ends.rows[0].found - ends.uniform) < 0.05
    assert abs(ends.rows[1].found - ends.local) < 0.03
    wider = attack_curve(width_sweep(groups, [0, 5, 6500], 4), near, values, 2, 2.5, Source(2), trials=20, repeats=1)
    assert wider.rows[0].found > wider.rows[1].found > wider.rows[2].found - 0.03
    assert [row.covered for row in wider.rows] == sorted(row.covered for row in wider.rows)
    assert all(row.gain >= 1 for row in wider.rows)
