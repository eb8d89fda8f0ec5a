"""Observers with a range against the program as one would write it down: every vertex at once, in CVXPY and HiGHS.

The peer's rows are those of the theorem (docs/mathematics.md, "Observers"): for each number of the others at the high
end, each output and both ways. Its answer is measured as it stands, over all vertices, in floating point.
"""

from __future__ import annotations

import contextlib
import time
import warnings

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import binom

from optdp import Observer, Population, SingleLTE, solve

CASES: list[tuple[int, str, tuple[str, str], str]] = [
    (20, "0.3", ("0.2", "0.4"), "0.5"),
    (40, "0.1", ("0.05", "0.15"), "0.3"),
    (60, "0.1", ("0.05", "0.15"), "0.3"),
    (80, "0.1", ("0.05", "0.15"), "0.3"),
]
"""People, what we believe, the range, and epsilon."""


def vertices(n: int, low: float, high: float) -> np.ndarray:
    """The law of `n` people of whom 0, 1, .. are at the high end."""
    laws = []
    for k in range(n + 1):
        ends = binom.pmf(np.arange(n - k + 1), n - k, low), binom.pmf(np.arange(k + 1), k, high)
        laws.append(np.convolve(*ends))
    return np.array(laws)


def peer(n: int, belief: float, low: float, high: float, epsilon: float) -> tuple[float, float, float]:
    """Seconds, the error, and the real epsilon (in floating point) of the plain program."""
    begin = time.perf_counter()
    laws = vertices(n - 1, low, high)
    zero, one = np.pad(laws, ((0, 0), (0, 1))), np.pad(laws, ((0, 0), (1, 0)))
    prior = binom.pmf(np.arange(n + 1), n, belief)
    table = cp.Variable((n + 1, n + 1), nonneg=True)
    distance = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    rules = [cp.sum(table, axis=1) == 1]
    rules += [a @ table <= np.exp(epsilon) * (b @ table) for a, b in ((zero, one), (one, zero))]
    model = cp.Problem(cp.Minimize(cp.sum(cp.multiply(prior[:, None] * distance, table))), rules)
    with warnings.catch_warnings(), contextlib.suppress(cp.error.SolverError):
        warnings.simplefilter("ignore")
        model.solve(solver="HIGHS", highs_options={"time_limit": 300.0})
    seconds = time.perf_counter() - begin
    if table.value is None:
        return seconds, float("nan"), float("nan")
    found = np.maximum(table.value, 0.0)
    found /= found.sum(axis=1, keepdims=True)
    first, second = zero @ found, one @ found
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nanmax(np.abs(np.log(first) - np.log(second)))
    return seconds, float((prior[:, None] * distance * found).sum()), float(worst)


def observers(quick: bool) -> None:
    """Error, proved bound and time with an observer's range, against the program with every vertex at once."""
    table = Table("people", "range", "epsilon", "optdp", "proved bound", "peer", "peer's real epsilon", "times faster",
                  title="Observers with a range: optdp and every vertex at once (CVXPY, HiGHS)")  # fmt: skip
    for n, belief, ends, epsilon in CASES[:2] if quick else CASES:
        problem = SingleLTE(
            Population.binomial(n, belief), epsilon, tail="none", never_worse=False, observer=Observer(between=ends)
        )
        found = solve(problem)
        seconds, error, real = peer(n, float(belief), float(ends[0]), float(ends[1]), float(epsilon))
        bound = "-" if found.lower_bound is None else f"{float(found.lower_bound):.6f}"
        table.add_row(
            str(n), " to ".join(ends), epsilon, f"{found.mae:.6f}", bound, f"{error:.6f}", f"{real:.4g}",
            f"{seconds / found.seconds:.1f}",
        )  # fmt: skip
    Console().print(table)
