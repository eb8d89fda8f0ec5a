"""Problems of every kind, solved and saved: `python -m tests.dozen_problems folder`.

Of each the folder gets what is deployed, if the kind has a file for that, and its figures without the seconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from optdp import (
    Groups,
    MultiLTE,
    Observer,
    OrderShuffle,
    Population,
    SingleLTE,
    Total,
    iterative_bayesian_update,
    solve,
)
from optdp.loading import built

HALF = Population.binomial
RANGE = Observer(between=("0.05", "0.15"))
OFFICES = [HALF(8, "0.1")] * 2 + [Population.iid(3, ["0.5", "0.3", "0.2"])]


def order() -> OrderShuffle:
    """Points on a coarse grid, so that much is equal, in two parts."""
    points = np.random.default_rng(0).integers(0, 12, size=(150, 2)) / 8.0
    points[100:] += 9.0
    return OrderShuffle(Groups.of(cKDTree(points).query_ball_point(points, 0.3), 150, points), "2", budget=0.3)


def learnt() -> SingleLTE:
    """A prior that is learnt from what was released."""
    channel = np.array([[2.0 ** -abs(x - s) for s in range(21)] for x in range(21)])
    seen = np.random.default_rng(1).integers(3, 15, size=300)
    law = iterative_bayesian_update(channel / channel.sum(axis=1, keepdims=True), np.bincount(seen, minlength=21))
    return SingleLTE(Population.from_others(law), "0.5")


PROBLEMS: dict[str, Callable[[], Any]] = {
    "pairs.json": lambda: SingleLTE(HALF(60, "0.3"), "0.5"),
    "squares.json": lambda: SingleLTE(HALF(40, "0.5"), "0.4", objective="mse", tail="none"),
    "contributions.json": lambda: SingleLTE(Population.iid(14, ["0.5", "0.2", "0.2", "0.1"]), "0.9", adjacency="all"),
    "robust.json": lambda: SingleLTE([HALF(40, p) for p in ("0.09", "0.1", "0.11")], "0.3"),
    "shifting.json": lambda: SingleLTE(HALF(60, "0.5"), "0.3", method="shifting"),
    "clamped.json": lambda: SingleLTE(HALF(30, "0.5"), "0.3", method="geometric", tail="none"),
    "fallback.json": lambda: SingleLTE(
        Population.iid(6, ["0.5", "0.3", "0.2"]), "0.4", fallback_epsilon="1", adjacency="all"
    ),
    "range.json": lambda: SingleLTE(HALF(40, "0.1"), "0.3", observer=RANGE),
    "added.json": lambda: SingleLTE(HALF(80, "0.1"), "0.3", form="additive"),
    "monthly.json": lambda: SingleLTE(HALF(40, "0.2"), "0.2", observer=RANGE, releases=12, total=Total(4, "1e-6")),
    "learnt.json": learnt,
    "order.json": order,
    "plan": lambda: MultiLTE(OFFICES, "0.5", method="joint"),
    "plan-fallback": lambda: MultiLTE(OFFICES[1:], "0.5", fallback_epsilon="1.5", method="joint"),
    "plan-never-worse": lambda: MultiLTE(
        [HALF(3, "0.5"), HALF(2, "0.4")], "0.8", tail="none", never_worse=True, method="joint"
    ),
    "plan-alone": lambda: MultiLTE(OFFICES[:2], "0.5", observer=RANGE, method="alone"),
    "plan-range": lambda: MultiLTE(OFFICES[:2], "0.5", observer=RANGE),
    "plan-word": lambda: MultiLTE([HALF(6, "0.4"), HALF(5, "0.6")], "0.5", method="seeded"),
    "plan-inside": lambda: MultiLTE([HALF(6, "0.4"), HALF(5, "0.6"), HALF(4, "0.5")], "0.5", method="inside", honest=2),
    "shares": lambda: MultiLTE(OFFICES, "0.5", method="divisible"),
    "amplification": lambda: built(
        {"kind": "amplification", "n": 10_000, "eps0": "2", "delta": "1e-6", "randomizer": {"kind": "k-rr", "k": 10}}
    ),
    "krr-count": lambda: built({"kind": "krr-count", "n": 500, "n_x0": 60, "k": 4, "eps0": "1", "epsilon": "0.1"}),
    "flips": lambda: built({"kind": "metric-shuffle", "mechanism": "rr", "n": 60, "k": 4, "delta": "1e-2", "p": "0.4"}),
    "metric": lambda: built(
        {
            "kind": "metric-shuffle",
            "mechanism": "geo",
            "n": 100,
            "k": 100,
            "delta": "1e-6",
            "epsilon": "0.2",
            "dimensions": 2,
            "max_distance": 5,
        }
    ),
    "histogram": lambda: built({"kind": "shuffle-histogram", "k": 5, "n": 5_000, "epsilon": "1", "delta": "1e-6"}),
    "real-sum": lambda: built({"kind": "real-sum", "n": 5_000, "epsilon": "1", "delta": "1e-6"}),
}
"""By the name under which each is saved."""


def main() -> None:
    folder = Path(sys.argv[1])
    for name, problem in PROBLEMS.items():
        solution = solve(problem())
        if hasattr(solution, "save"):
            solution.save(folder / name)
        figures = {key: value for key, value in solution.summary().items() if key != "seconds"}
        (folder / f"{name}.figures").write_text(json.dumps(figures, indent=1, default=str), encoding="utf-8")


if __name__ == "__main__":
    main()
