"""The theory behind the pair form, checked apart from the engine: extreme rays by enumeration, optima by scipy.

A column is private if `g0 @ v <= 0` and `g1 @ v <= 0` with `g0 = c0 - E c1`, `g1 = c1 - E c0`, `E = e^epsilon`.
"""

from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from scipy.optimize import linprog

from optdp import Population, SingleLTE, solve
from optdp.single import pairs

Vector = tuple[Fraction, ...]


def random_others(random: Random, size: int, zeros: bool) -> list[Fraction]:
    weights = [0 if zeros and random.random() < 0.3 else random.randint(1, 30) for _ in range(size)]
    weights[random.randrange(size)] += 1
    return [Fraction(weight, sum(weights)) for weight in weights]


def gaps_of(others: list[Fraction], factor: Fraction) -> tuple[Vector, Vector]:
    none, one = [*others, Fraction(0)], [Fraction(0), *others]
    return (
        tuple(a - factor * b for a, b in zip(none, one, strict=True)),
        tuple(b - factor * a for a, b in zip(none, one, strict=True)),
    )


def dot(a: Vector, b: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def solve_square(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The only solution of a linear system, by elimination; None if there is none or more than one."""
    size = len(rows[0])
    work = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for column in range(size):
        pivot = next((r for r in range(column, len(work)) if work[r][column]), None)
        if pivot is None:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        work[column] = [value / work[column][column] for value in work[column]]
        for r in range(len(work)):
            if r != column and work[r][column]:
                scale = work[r][column]
                work[r] = [a - scale * b for a, b in zip(work[r], work[column], strict=True)]
    if any(row[-1] for row in work[size:]):
        return None
    return [row[-1] for row in work[:size]]


def vertices(gaps: tuple[Vector, Vector]) -> set[Vector]:
    """The vertices of the private columns that sum to 1: every support with every choice of tight constraints."""
    size, found = len(gaps[0]), set()
    for count in range(1, size + 1):
        for support in combinations(range(size), count):
            for tight in ((), (0,), (1,), (0, 1)):
                rows = [[Fraction(1)] * count, *([gaps[k][x] for x in support] for k in tight)]
                solution = solve_square(rows, [Fraction(1)] + [Fraction(0)] * len(tight))
                if solution is None or min(solution) <= 0:
                    continue
                entries = dict(zip(support, solution, strict=True))
                vertex = tuple(entries.get(x, Fraction(0)) for x in range(size))
                if all(dot(gap, vertex) <= 0 for gap in gaps):
                    found.add(vertex)
    return found


def singles_and_pairs(gaps: tuple[Vector, Vector]) -> set[Vector]:
    """What the pair form uses, written down from its definition."""
    size = len(gaps[0])
    unit = [tuple(Fraction(int(x == y)) for y in range(size)) for x in range(size)]
    found = {unit[x] for x in range(size) if gaps[0][x] <= 0 and gaps[1][x] <= 0}
    for gap in gaps:
        for bad in range(size):
            for good in range(size):
                if gap[bad] > 0 > gap[good]:
                    total = gap[bad] - gap[good]
                    a, b = -gap[good] / total, gap[bad] / total
                    found.add(tuple(a * u + b * v for u, v in zip(unit[bad], unit[good], strict=True)))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_extreme_rays_are_singles_and_pairs(seed):
    random = Random(seed)
    others = random_others(random, random.randint(2, 5), zeros=seed % 2 == 1)
    factor = Fraction(random.choice([101, 120, 135, 200, 500]), 100)
    gaps = gaps_of(others, factor)
    corners, used = vertices(gaps), singles_and_pairs(gaps)
    assert corners <= used
    for ray in used:
        assert all(dot(gap, ray) <= 0 for gap in gaps), "a pair meets the other constraint by itself"
    for corner in corners:
        assert sum(1 for value in corner if value) <= 2
        reached = any(value and gaps[0][x] for x, value in enumerate(corner))
        if reached:
            assert sum(dot(gap, corner) == 0 for gap in gaps) <= 1, "both constraints are never tight at once"
    # nobody breaks both constraints
    assert not any(a > 0 and b > 0 for a, b in zip(*gaps, strict=True))


def plain_optimum(cost, gaps, cap, power):
    size = len(cost)
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    eye = np.eye(size)
    upper, right = [np.kron(gap[None, :], eye) for gap in gaps], [np.zeros(size)] * 2
    if cap is not None:
        upper.append(np.stack([np.kron(eye[x], distance[x]) for x in range(size)]))
        right.append(cap)
    found = linprog(
        (cost[:, None] * distance**power).ravel(),
        A_ub=np.vstack(upper), b_ub=np.concatenate(right),
        A_eq=np.kron(eye, np.ones((1, size))), b_eq=np.ones(size), method="highs",
    )  # fmt: skip
    assert found.status == 0
    return found.fun


def pair_optimum(cost, rays, cap, power):
    """Minimise over rays and reports; for absolute errors a pair reports one of its two ends only."""
    size, masses, errors, costs = len(cost), [], [], []
    for ray in rays:
        support = [x for x, value in enumerate(ray) if value]
        reports = support if power == 1 else range(support[0], support[-1] + 1)
        for s in reports:
            mass = np.array([float(value) for value in ray])
            away = np.abs(np.arange(size) - s).astype(float)
            masses.append(mass)
            errors.append(mass * away)
            costs.append(float(cost @ (mass * away**power)))
    capped = {} if cap is None else {"A_ub": np.array(errors).T, "b_ub": cap}
    found = linprog(costs, A_eq=np.array(masses).T, b_eq=np.ones(size), method="highs", **capped)
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_pair_form_has_the_optimum_of_the_plain_program(seed, power):
    random = Random(1000 + seed)
    others = random_others(random, random.randint(2, 5), zeros=False)
    epsilon = random.choice(["0.2", "0.7", "1.5"])
    problem = SingleLTE(
        Population.from_others(others),
        epsilon,
        tail="none",
        never_worse=seed % 3 == 0,
        objective="mae" if power == 1 else "mse",
    )
    factor = Fraction(np.exp(float(epsilon)))
    gaps = gaps_of(others, factor)
    floats = np.array([[float(value) for value in gap] for gap in gaps])
    cost = (np.array([*others, 0], float) + np.array([0, *others], float)) / 2
    cap = np.full(len(cost), float(problem.cap)) if problem.never_worse else None
    plain = plain_optimum(cost, floats, cap, power)
    assert pair_optimum(cost, vertices(gaps), cap, power) == pytest.approx(plain, rel=1e-7, abs=1e-9)
    solution = solve(problem)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(plain, rel=1e-6, abs=1e-8)
    assert float(solution.lower_bound) <= plain * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("keep", [1, 3, 50])
def test_of_equal_pairs_the_first_are_kept(axis: int, keep: int) -> None:
    """So that it does not depend on how a processor sorts; many are equal in a symmetric problem."""
    values = np.random.default_rng(keep).integers(0, 4, size=(20, 12)).astype(float)
    chosen = np.moveaxis(pairs._least(values, keep, axis), axis, 0)
    for line, found in zip(np.moveaxis(values, axis, 0).T, chosen.T, strict=True):
        first = sorted(range(len(line)), key=lambda i: (line[i], i))[:keep]
        assert np.flatnonzero(found).tolist() == sorted(first)
