"""Audits: how many of the planted flaws are refuted, and how many true samplers are.

A flaw is `epsilon + 0.1` on an event of mass 0.05, with a million draws for each secret; its events lie among the tight
outputs of the table, elsewhere in it, and beyond it. A true sampler is optdp's own.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from optdp import Population, SingleLTE, solve, verify
from optdp.audit import NOT_REFUTED, REFUTED
from optdp.audit import audit as examine
from tests.planted import EVENTS, plant

console = Console(width=150)

CASES: list[tuple[SingleLTE, tuple[int, int]]] = [
    (SingleLTE(Population.binomial(100, "0.1"), "0.3"), (0, 1)),
    (SingleLTE(Population.binomial(30, "0.5"), "0.5"), (1, 0)),
    (SingleLTE(Population.binomial(10, "0.2"), 1), (0, 1)),
    (SingleLTE(Population.binomial(12, "0.3"), "0.1", tail="none"), (1, 0)),
    (SingleLTE(Population.iid(10, ["0.5", "0.3", "0.2"]), "0.6", adjacency="all"), (0, 2)),
    (SingleLTE(Population.binomial(25, "0.2"), "0.3", fallback_epsilon=2), (0, 1)),
]
"""A problem, and the less and the more likely contribution of the flaw."""


def audit(quick: bool) -> None:
    """Planted flaws and true samplers, counted."""
    table = Table("problem", "planted", "refuted", "least proved", "true", "not refuted", "seconds", title="audits")
    seeds = 20 if quick else 200
    with tempfile.TemporaryDirectory() as folder:
        for i, (problem, pair) in enumerate(CASES[: 2 if quick else None]):
            begin, path = time.perf_counter(), Path(folder) / f"{i}.json"
            solve(problem).save(path)
            bounds = planted(path, problem, pair, i)
            fine = [examine(path, samples=5000, seed=seed).verdict == NOT_REFUTED for seed in range(seeds)]
            table.add_row(
                f"{problem.populations[0].describe}, eps {float(problem.epsilon)}", str(len(bounds)),
                str(sum(refuted for refuted, _ in bounds)), f"{min(bound for _, bound in bounds):.4f}", str(seeds),
                str(sum(fine)), f"{time.perf_counter() - begin:.0f}",
            )  # fmt: skip
    console.print(table)


def planted(path: Path, problem: SingleLTE, pair: tuple[int, int], number: int) -> list[tuple[bool, float]]:
    """For each kind of event, twice: whether the flaw was refuted, and the epsilon that was proved."""
    matrix, found = verify(path).matrix, []
    for j, event in enumerate(EVENTS.values()):
        for pure in (True, False):
            sampler = plant(
                problem.populations[0], matrix, event(matrix, np.random.default_rng(100 * number + j)),
                float(problem.epsilon), pair=pair, pure=pure, seed=17 * number + j,
            )  # fmt: skip
            seen = examine(path, sampler=sampler, seed=10 * number + j)
            found.append((seen.verdict == REFUTED, seen.epsilon_proved))
    return found
