"""Bounds by distance, against every quotient in fractions and against the certificate."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optdp import CertificateError, NoiseMatrix, Population, SingleLTE, certify, solve
from optdp.bridges.accounting import by_distance
from tests.bridges.tables import exact_epsilon, logarithm, table


@pytest.mark.parametrize("seed", range(24))
def test_bounds_are_those_of_every_quotient(seed: int) -> None:
    matrix = table(seed)
    bounds = by_distance(matrix, 3)
    for distance in range(1, matrix.last + 1):
        truth = exact_epsilon(matrix, distance)
        bound = bounds.epsilon(distance)
        assert bound >= truth - Fraction(1, 10**40)
        if distance <= bounds.reach:
            # The bound always counts the tail, also where every pair of inputs has rows that are closer.
            tail = distance * logarithm(1 / matrix.q) if matrix.q is not None else Fraction(0)
            assert bound <= max(truth, tail) + Fraction(1, 10**30)


@pytest.mark.parametrize("adjacency", ["unit", "all"])
@pytest.mark.parametrize("tail", ["none", "geometric"])
def test_the_certificate_says_the_same(adjacency: str, tail: str) -> None:
    people = Population.iid(6, ["0.5", "0.3", "0.2"])
    problem = SingleLTE(people, 1, fallback_epsilon=3, adjacency=adjacency, tail=tail, never_worse=False)
    matrix = solve(problem).mechanism
    ordinary = certify(problem, matrix).ordinary_epsilon
    bounds = by_distance(matrix, 2)
    assert ordinary == (bounds.steps[2] if adjacency == "all" else 2 * bounds.steps[1])


def test_a_table_that_tells_for_certain_is_refused() -> None:
    sure = NoiseMatrix((0, 1), (0, 1), 4, (((0, 4),), ((0, 1), (1, 3))), None, "error", 1)
    with pytest.raises(CertificateError, match=r"ordinary epsilon is infinite.*fallback_epsilon"):
        by_distance(sure)


def test_steps_longer_than_the_reach_add_up() -> None:
    matrix = table(0)
    near, far = by_distance(matrix, 1), by_distance(matrix, 3)
    assert near.epsilon(0) == far.epsilon(0) == 0
    for distance in range(1, 30):
        assert far.epsilon(distance) <= near.epsilon(distance) == distance * near.steps[1]
        assert far.epsilon(distance) <= far.epsilon(distance + 1)
