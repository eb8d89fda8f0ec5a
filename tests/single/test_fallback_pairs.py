"""A fallback over all pairs of contributions: the table against a program written down anew, its bound proved again."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from optdp import Population, SingleLTE, solve, verify
from optdp.single.newton import Banded

FOUR = ["3/10", "2/10", "2/10", "2/10", "1/10"]
CASES: list[tuple[int, list[str], str, str, dict[str, Any]]] = [
    (3, FOUR, "1", "3", {"tail": "none", "never_worse": False}),
    (4, ["2/9", "1/9", "5/9", "1/9"], "4", "8", {"tail": "none", "never_worse": False}),
    (4, ["2/9", "1/9", "5/9", "1/9"], "1", "2", {"tail": "none", "never_worse": False, "objective": "mse"}),
    (5, ["1/2", "3/10", "1/5"], "0.5", "1", {"tail": "none"}),
    (3, FOUR, "2", "3", {}),
    (3, ["1/4", "1/4", "1/4", "1/4"], "2", "2.2", {"never_worse": False}),
]


def least_error(n: int, pmf: list[str], epsilon: float, fallback: float, options: dict[str, Any]) -> float:
    """The optimum by enumeration and scipy: every vector of contributions, every output (tails up to 400 beyond)."""
    law, largest = [float(Fraction(p)) for p in pmf], len(pmf) - 1
    last, power = n * largest, 2 if options.get("objective") == "mse" else 1
    tail, capped = options.get("tail", "geometric") == "geometric", options.get("never_worse", True)
    given = np.zeros((largest + 1, last + 1))  # of the sum, for each contribution of the first person
    for people in product(range(largest + 1), repeat=n - 1):
        for w in range(largest + 1):
            given[w, w + sum(people)] += math.prod(law[v] for v in people)
    prior, x = np.array(law) @ given, np.arange(last + 1)
    q = math.exp(-epsilon / largest)
    noise = (1 - q) / (1 + q) * q ** np.abs(np.subtract.outer(x, np.arange(-400, last + 401)))
    outside = np.ones(last + 801, dtype=bool)
    outside[400 : last + 401] = False
    lost = np.abs(np.subtract.outer(x, np.arange(-400, last + 401)))[:, outside]
    left = 1 - noise[:, outside].sum(axis=1) if tail else np.ones(last + 1)
    size, distance = last + 1, np.abs(np.subtract.outer(x, x))

    def at(row: np.ndarray, s: int) -> np.ndarray:
        """The sum of `row[x] r(x, s)`."""
        table = np.zeros((size, size))
        table[:, s] = row
        return table.ravel()

    rows, limits, unit = [], [], np.eye(size)
    for s in range(size):
        for w, other in product(range(largest + 1), repeat=2):
            if w != other:
                rows.append(at(given[w] - math.exp(epsilon) * given[other], s))
        for a, b in product(range(size), repeat=2):
            if 1 <= abs(a - b) <= largest:
                rows.append(at(unit[a] - math.exp(fallback) * unit[b], s))
    limits += [0.0] * len(rows)
    if capped:
        for a in range(size):
            rows.append((unit[a][:, None] * distance).ravel())
            spent = float((noise[a, outside] * lost[a]).sum()) if tail else 0.0
            limits.append(2 * q / (1 - q * q) - spent)
    sums = [np.repeat(unit[a], size) for a in range(size)]
    cost = (prior[:, None] * distance**power).ravel()
    found = linprog(cost, np.array(rows), limits, np.array(sums), left, method="highs")
    assert found.status == 0, found.message
    return float(found.fun) + (float(prior @ (noise[:, outside] * lost**power).sum(axis=1)) if tail else 0.0)


@pytest.mark.parametrize(("n", "pmf", "epsilon", "fallback", "options"), CASES)
def test_is_optimal_and_proved_again(
    n: int, pmf: list[str], epsilon: str, fallback: str, options: dict[str, Any], tmp_path: Path
) -> None:
    problem = SingleLTE(Population.iid(n, pmf), epsilon, fallback, adjacency="all", **options)
    solution = solve(problem)
    optimum = least_error(n, pmf, float(epsilon), float(fallback), options)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(optimum, rel=1e-5)
    assert solution.lower_bound is not None
    assert optimum * (1 - 1e-5) <= float(solution.lower_bound) <= optimum * (1 + 1e-7)
    solution.save(tmp_path / "table.json")
    assert verify(tmp_path / "table.json").bound_proved


@pytest.mark.parametrize(("n", "pmf", "epsilon", "fallback", "options"), CASES[:2])
def test_unit_steps_would_cost_more(
    n: int, pmf: list[str], epsilon: str, fallback: str, options: dict[str, Any]
) -> None:
    """The rows of all pairs, each at e^f, ask for less than unit steps of e^(f/D) each do."""
    pairs, steps = (
        solve(SingleLTE(Population.iid(n, pmf), epsilon, fallback, adjacency=adjacency, **options))
        for adjacency in ("all", "unit")
    )
    assert steps.lower_bound is not None
    assert pairs.value < 0.9 * float(steps.lower_bound)
    assert pairs.certificate.ordinary_epsilon is not None
    assert pairs.certificate.ordinary_epsilon <= Fraction(fallback)


def test_a_plain_solver_agrees() -> None:
    """The CVXPY model of the same program, and its prices."""
    problem = SingleLTE(Population.iid(4, ["1/2", "3/10", "1/5"]), "0.5", "1.5", adjacency="all")
    ours, theirs = solve(problem), solve(problem, backend="cvxpy:CLARABEL")
    assert theirs.value == pytest.approx(ours.value, rel=1e-5)
    assert ours.lower_bound is not None
    assert theirs.lower_bound is not None
    assert float(theirs.lower_bound) == pytest.approx(float(ours.lower_bound), rel=1e-4)


@pytest.mark.parametrize("reach", [2, 3, 5])
def test_banded_factors_invert(reach: int) -> None:
    """Solutions and sums of inverses against numpy's, for weights that span twelve decades."""
    random, size, outputs, ratio = np.random.default_rng(reach), 9, 4, 0.6
    rungs = range(1, reach + 1)
    pairs = [(x, x + far) for far in rungs for x in range(size - far)]
    weights = 10.0 ** random.uniform(-3, 3, (2, len(pairs), outputs))
    matrices = np.zeros((outputs, size, size))
    for s, (way, (k, (low, high))) in product(range(outputs), product((0, 1), enumerate(pairs))):
        row = np.zeros(size)
        row[[high, low] if way == 0 else [low, high]] = 1, -ratio
        matrices[s] += weights[way, k, s] * np.outer(row, row)
    positive = random.uniform(0.5, 1.5, (size, outputs))
    blocks = Banded(weights, ratio, rungs, positive, np.einsum("sxy,ys->xs", matrices, positive))
    right = random.normal(size=(size, outputs, 2))
    for s in range(outputs):
        np.testing.assert_allclose(
            blocks.solve(right)[:, s], np.linalg.solve(matrices[s], right[:, s]), rtol=1e-8, atol=1e-9
        )
    distance = random.uniform(0, 3, (size, outputs))
    inverses = np.linalg.inv(matrices)
    plain, once, twice = blocks.inverse_sums(distance)
    np.testing.assert_allclose(plain, inverses.sum(axis=0), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(once, np.einsum("sxy,ys->xy", inverses, distance), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(twice, np.einsum("xs,sxy,ys->xy", distance, inverses, distance), rtol=1e-8, atol=1e-10)
