"""Twenty problems of every shape, solved and saved: `python -m tests.twenty_problems folder [first:last]`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from optdp import MultiLTE, Population, SingleLTE, solve

HALF = Population.binomial
MIXED = [["0.5", "0.5"]] * 5 + [["0.9", "0.1"]] * 4 + [["0.2", "0.5", "0.3"]] * 3

PROBLEMS: dict[str, Callable[[], SingleLTE | MultiLTE]] = {
    "sick-leave.json": lambda: SingleLTE(HALF(100, "0.1"), "0.3"),
    "small.json": lambda: SingleLTE(HALF(12, "0.5"), "0.5", tail="none"),
    "small-mse.json": lambda: SingleLTE(HALF(12, "0.5"), "0.5", tail="none", objective="mse"),
    "mse.json": lambda: SingleLTE(HALF(60, "0.3"), "0.5", objective="mse"),
    "fallback.json": lambda: SingleLTE(HALF(40, "0.5"), "0.3", fallback_epsilon="1"),
    "fallback-mse.json": lambda: SingleLTE(HALF(20, "0.4"), "0.3", fallback_epsilon="2", objective="mse"),
    "robust.json": lambda: SingleLTE([HALF(50, p) for p in ("0.09", "0.1", "0.11")], "0.3"),
    "robust-weights.json": lambda: SingleLTE([HALF(30, "0.4"), HALF(30, "0.5")], "1", weights=["0.3", "0.7"]),
    "contributions.json": lambda: SingleLTE(Population.iid(20, ["0.5", "0.2", "0.2", "0.1"]), "0.9"),
    "contributions-all.json": lambda: SingleLTE(Population.iid(15, ["0.5", "0.3", "0.2"]), "0.9", adjacency="all"),
    "kinds.json": lambda: SingleLTE(Population.independent(MIXED), "0.6"),
    "counts.json": lambda: SingleLTE(Population.from_counts([40, 30, 20, 10], 25), "1"),
    "others.json": lambda: SingleLTE(
        Population.from_others(["0.1", "0.2", "0.4", "0.2", "0.1"], 2), "0.7", tail="none"
    ),
    "thousand.json": lambda: SingleLTE(HALF(1000, "0.5"), "0.3"),
    "many.json": lambda: SingleLTE(HALF(10**6, "0.00002"), "0.5"),
    "shifting.json": lambda: SingleLTE(HALF(80, "0.5"), "0.3", method="shifting"),
    "geometric.json": lambda: SingleLTE(HALF(30, "0.5"), "0.3", method="geometric"),
    "joint": lambda: MultiLTE([HALF(6, "0.5"), HALF(5, "0.5")], "0.5", method="joint"),
    "joint-f": lambda: MultiLTE(
        [HALF(4, "0.5"), HALF(3, "0.4")], "1", honest=1, f=[2, -1], objective="mse", method="joint"
    ),
    "divisible": lambda: MultiLTE([HALF(8, "0.5")] * 3, "0.5", method="divisible"),
}
"""By the name under which each is saved."""

LARGER: dict[str, Callable[[], SingleLTE | MultiLTE]] = {
    "two-offices": lambda: MultiLTE([HALF(25, "0.5")] * 2, "0.5", method="joint"),
    "three": lambda: MultiLTE([HALF(20, "0.5")] * 3, "0.5", method="joint"),
    "divisible-contributions": lambda: MultiLTE(
        [Population.iid(8, ["0.5", "0.3", "0.2"])] * 2, "0.9", method="divisible"
    ),
    "thousand-mse.json": lambda: SingleLTE(HALF(1000, "0.1"), "0.3", objective="mse"),
}
"""More of them, which take longer."""


def started(folder: Path, threads: int, seed: int, which: str = "PROBLEMS", cores: int = 2) -> subprocess.Popen[str]:
    """Solve all in a new process with so many threads, with this hash seed, on so many cores."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
    env = os.environ | dict.fromkeys(names, str(threads)) | {"PYTHONHASHSEED": str(seed)}
    folder.mkdir()
    command = [sys.executable, "-m", "tests.twenty_problems", str(folder), which, str(cores)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def main() -> None:
    folder, which, cores = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    for name, problem in {"PROBLEMS": PROBLEMS, "LARGER": LARGER}[which].items():
        solve(problem()).save(folder / name)


if __name__ == "__main__":
    main()
