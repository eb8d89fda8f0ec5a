"""Repair must take anything, and what it gives must be private for a checker that knows nothing of balls."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdp import NoiseMatrix, Population, SingleLTE, certify, solve
from optdp.numbers.exact import precision
from optdp.single.bound import Draft
from optdp.single.format import Artifact, write
from optdp.single.lp import formulate
from optdp.single.pairs import solve_pairs
from optdp.single.repair import repair
from tests.exact_checker import Checked

PROBLEMS = [
    SingleLTE(Population.binomial(6, "0.5"), "0.3", never_worse=False),
    SingleLTE(Population.binomial(5, "0"), "0.1", never_worse=False),
    SingleLTE(Population.iid(4, ["0.5", "0.3", "0.2"]), "0.5", tail="none", never_worse=False, adjacency="all"),
    SingleLTE(Population.independent([["0.9", "0.1"], ["0.2", "0.8"], ["0.5", "0", "0.5"]]), "1", never_worse=False),
    SingleLTE(Population.from_others(["0.5", "0", "0.5", "0", "0"]), "2", tail="none", never_worse=False),
    SingleLTE([Population.binomial(5, "0.2"), Population.binomial(5, "0.9")], "0.5", never_worse=False),
    SingleLTE(Population.binomial(5, "0.4"), "0.3", "1", never_worse=False),
    SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), "0.3", "1", tail="none", adjacency="all", never_worse=False),
]


def save(problem: SingleLTE, matrix: NoiseMatrix, path: Path) -> Checked:
    claim = {"epsilon": "100", "ordinary_epsilon": "infinite"}
    write(
        Artifact(
            matrix.inputs, matrix.outputs, matrix.denominator, matrix.rows, matrix.outside, matrix.q, problem.spec(),
            claim, {},
        ),
        path,
    )  # fmt: skip
    return Checked(path)


def garbage(kind: str, size: int, seed: int) -> Draft:
    random = np.random.default_rng(seed)
    if kind == "dirichlet":
        table = random.dirichlet(np.full(size, 0.3), size)
    elif kind == "zeros":
        table = np.zeros((size, size))
    elif kind == "negative":
        table = random.normal(size=(size, size))
    elif kind == "not finite":
        table = random.choice([np.nan, np.inf, -np.inf, 0.5, 1e300], (size, size))
    elif kind == "identity":
        table = np.eye(size)
    elif kind == "reversed":
        table = np.eye(size)[::-1]
    else:
        table = random.choice([0, 1e-30, 1e-300, 1.0], (size, size))
    return Draft.dense(np.asarray(table), None, kind, "garbage")


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.populations[0].describe)
@pytest.mark.parametrize("kind", ["dirichlet", "zeros", "negative", "not finite", "identity", "reversed", "tiny"])
def test_anything_becomes_private(problem: SingleLTE, kind: str, tmp_path: Path) -> None:
    with precision():
        lp = formulate(problem)
        matrix = repair(lp, garbage(kind, len(lp.inputs), 7))
    certificate = certify(problem, matrix)
    certificate.check(problem)
    checked = save(problem, matrix, tmp_path / "a.json")
    assert checked.private()
    if problem.fallback_epsilon is not None:
        assert checked.ordinary(problem.fallback_epsilon)


@given(st.integers(0, 10**6))
def test_random_matrices(seed: int) -> None:
    problem = PROBLEMS[seed % len(PROBLEMS)]
    with precision():
        lp = formulate(problem)
        matrix = repair(lp, garbage("dirichlet", len(lp.inputs), seed))
    certify(problem, matrix).check(problem)


def test_losses_are_in_proportion_to_what_is_wrong() -> None:
    problem = SingleLTE(Population.binomial(100, "0.5"), "0.3")
    with precision():
        lp = formulate(problem)
        draft = solve_pairs(lp)
        for noise, loss in ((0.0, 1e-9), (1e-9, 1e-6), (1e-6, 1e-3)):
            random = np.random.default_rng(1)
            shaken = draft.values * (1 + noise * random.normal(size=draft.values.shape))
            matrix = repair(lp, Draft(draft.rows, draft.cols, shaken, None, "", ""))
            certificate = certify(problem, matrix)
            certificate.check(problem)
            assert float(certificate.mae) < 0.3172422083 * (1 + loss)


@pytest.mark.parametrize("objective", ["mae", "mse"])
def test_units_are_fine_where_coarse_ones_would_be_felt(objective: Any) -> None:
    """Errors of 10 million times what one unit of 2^-54 in every entry costs are the limit; not finite counts as 0."""
    power = 2 if objective == "mse" else 1
    problem = SingleLTE(Population.binomial(60, "0.5"), "0.3", tail="none", objective=objective, never_worse=False)
    diagonal = np.arange(61)
    limit = 1e7 * 61.0 * 61.0**power * 2.0**-54
    with precision():
        lp = formulate(problem)
        error = float(Fraction(math.comb(60, 30), 2**60)) * 10.0**power  # of moving all of the 30s to 40
        for times, bits in ((0.995, 128), (1.005, 62)):
            rows, cols = np.append(diagonal, [30, 7]), np.append(diagonal, [40, 9])
            values = np.append(np.ones(61), [times * limit / error, np.nan])
            matrix = repair(lp, Draft(rows, cols, values, None, "", ""))
            assert matrix.denominator == 2**bits


def test_half_finished_answer_of_a_solver() -> None:
    """Only half of the rows were ever filled in."""
    problem = SingleLTE(Population.binomial(60, "0.5"), "0.3")
    with precision():
        lp = formulate(problem)
        draft = solve_pairs(lp)
        half = draft.rows % 2 == 0
        matrix = repair(lp, Draft(draft.rows[half], draft.cols[half], draft.values[half], None, "", ""))
    certificate = certify(problem, matrix)
    assert certificate.epsilon is not None
    assert certificate.epsilon <= Fraction(3, 10)


def test_a_search_that_was_cut_short_is_still_of_use() -> None:
    """After a few iterations the rows of a table with a fallback sum to different totals; what evens them out is small
    beside what they are worth."""

    def stop(words: str) -> None:
        if words.startswith("iteration 12:"):
            raise KeyboardInterrupt

    problem = SingleLTE(Population.binomial(120, "0.5"), "0.3", fallback_epsilon=2, never_worse=False)
    solution = solve(problem, progress=stop)
    assert solution.status == "interrupted"
    assert solution.mae < 0.5 * solution.baseline_mae
    certify(problem, solution.mechanism).check(problem)
