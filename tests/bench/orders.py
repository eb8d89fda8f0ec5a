"""Orders for order-private shuffling: every ordering of the registry and the portfolio on seeded instances.

Beside the exact sensitivity: the width, E's bound of the sensitivity from it, the seconds, and what no order is below.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.spatial import cKDTree

from optdp import Groups
from optdp.order.mechanism import Whole, paper_sensitivity, sensitivity, width
from optdp.order.orderings import applicable
from optdp.order.search import lower_bound
from optdp.order.solve import best_order

console = Console(width=150)
TWITCH = Path(__file__).parents[2].parent / "shared" / "data" / "twitch_engb_edges.csv"


def uniform(n: int) -> Groups:
    """Uniform points in the square, about 30 in a group."""
    points = np.random.default_rng(0).random((n, 2))
    return _within(points, (30 / n / np.pi) ** 0.5)


def crescents(n: int) -> Groups:
    """Two crescents that hold each other, with noise."""
    source = np.random.default_rng(0)
    turn = np.pi * source.random(n)
    side = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    points = np.stack((side * np.cos(turn) + 0.5 * (1 - side), side * np.sin(turn) + 0.25 * (1 - side)), axis=1)
    return _within(points + 0.08 * source.standard_normal((n, 2)), 0.05)


def grid(side: int) -> Groups:
    """A square grid: each record with its four neighbours, numbered at random."""
    label = np.random.default_rng(0).permutation(side * side).reshape(side, side)
    groups: list[list[int]] = [[] for _ in range(side * side)]
    for i in range(side):
        for j in range(side):
            near = ((i, j), (i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
            groups[label[i, j]] = [int(label[a, b]) for a, b in near if 0 <= a < side and 0 <= b < side]
    return Groups.of(groups, side * side)


def twitch() -> Groups:
    """The friends of each of 7,126 people."""
    with TWITCH.open() as file:
        pairs = [(int(a), int(b)) for a, b in list(csv.reader(file))[1:]]
    n = max(max(pair) for pair in pairs) + 1
    groups: list[set[int]] = [{k} for k in range(n)]
    for a, b in pairs:
        groups[a].add(b)
        groups[b].add(a)
    return Groups.of([sorted(group) for group in groups], n)


def _within(points: np.ndarray, radius: float) -> Groups:
    return Groups.of(cKDTree(points).query_ball_point(points, radius), len(points), points)


def instances(quick: bool) -> Iterator[tuple[str, Groups, float]]:
    yield "uniform, n=5,000", uniform(5_000), 5.0 if quick else 60.0
    yield "grid, 40 x 40", grid(40), 5.0 if quick else 20.0
    if quick:
        return
    yield "uniform, n=20,000", uniform(20_000), 60.0
    yield "crescents, n=5,000", crescents(5_000), 30.0
    if TWITCH.exists():
        yield "Twitch", twitch(), 60.0


def orders(quick: bool) -> None:
    """Every ordering on every instance."""
    for title, groups, budget in instances(quick):
        table = Table("ordering", "sensitivity", "width", "E's bound", "seconds", title=title)

        def add(name: str, find: Callable[[], Whole], groups: Groups = groups, table: Table = table) -> None:
            begin = time.perf_counter()
            order = find()
            seconds = time.perf_counter() - begin
            figures = sensitivity(groups, order), width(groups, order), paper_sensitivity(groups, order)
            table.add_row(name, *(f"{figure:,}" for figure in figures), f"{seconds:.2f}")

        for name, find in applicable(groups).items():
            add(name, lambda find=find, groups=groups: find(groups))  # type: ignore[misc]
        add(f"best, {budget:.0f} s", lambda groups=groups, budget=budget: best_order(groups, budget).order)  # type: ignore[misc]
        begin = time.perf_counter()
        table.add_row("no order is below", f"{lower_bound(groups):,}", "", "", f"{time.perf_counter() - begin:.2f}")
        console.print(table)


if __name__ == "__main__":
    orders(quick=False)
