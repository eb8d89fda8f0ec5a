"""The best table under ordinary privacy in closed form: against a solver, its own prices, and neighbouring rows."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from scipy.optimize import linprog

from optdp import InfeasibleError, Observer, Population, ProblemError, SingleLTE, solve
from optdp.artifact import verify
from tests.checkers import agrees
from tests.exact_checker import exp_below

EVERYBODY = Observer(known="all")
BIN = Population.binomial


def asked(people: Population, epsilon: str, **more: object) -> SingleLTE:
    return SingleLTE(people, epsilon, observer=EVERYBODY, **{"tail": "none", "never_worse": False, **more})  # type: ignore[arg-type]


SMALL = {
    "a few": asked(BIN(7, "0.3"), "0.5"),
    "two": asked(BIN(2, "0.9"), "1.5"),
    "squares": asked(BIN(20, "0.4"), "0.7", objective="mse"),
    "contributions": asked(Population.iid(6, ["0.5", "0.2", "0.2", "0.1"]), "0.9"),
    "kinds": asked(Population.independent([["0.9", "0.1"]] * 8 + [["0.2", "0.8"]] * 6), "1.3"),
    "much": asked(BIN(12, "0.5"), "6"),
    "little": asked(BIN(12, "0.5"), "0.01"),
}


@pytest.mark.parametrize("name", SMALL)
def test_no_solver_finds_a_better_one(name: str) -> None:
    problem = SMALL[name]
    found, other = solve(problem), solve(problem, backend="highs-ipm")
    assert found.engine == "ordinary"
    assert found.value <= other.value * (1 + 1e-6)
    assert found.lower_bound is not None
    assert found.gap < 1e-8  # weak duality: the prices prove it, whoever made them
    assert found.certificate.ordinary_epsilon is not None
    assert found.certificate.ordinary_epsilon <= problem.epsilon


def test_the_program_is_used_for_caps_and_tails() -> None:
    assert solve(asked(BIN(7, "0.3"), "0.5", never_worse=True)).engine == "chain"
    assert solve(asked(BIN(7, "0.3"), "0.5", tail="geometric")).engine in ("chain", "geometric")


@pytest.mark.parametrize(("n", "p"), [(1_500, "0.02"), (10**6, "1e-5")])
def test_rows_for_the_likely_inputs_alone(n: int, p: str, tmp_path: Path) -> None:
    found = solve(asked(BIN(n, p), "0.3"))
    assert found.lower_bound is not None
    assert found.gap < 1e-8
    assert abs(found.mae - found.ordinary_mae) < 1e-8
    table, limit = found.mechanism, exp_below(Fraction("0.3")) + Fraction(1, 2**300)
    assert table.outside == "clamp"
    for one, other in pairwise(map(dict, table.rows)):
        assert one.keys() == other.keys()
        assert all(a <= limit * other[s] and other[s] <= limit * a for s, a in one.items())
    found.save(tmp_path / "table.json")
    verify(tmp_path / "table.json")


@pytest.mark.parametrize("objective", ["mae", "mse"])
@pytest.mark.parametrize(("n", "p", "epsilon"), [(3, "0.5", "0.4"), (4, "0.05", "1.2"), (6, "0.9", "0.1")])
def test_with_tails_and_no_input_worse_nothing_but_noise_is_left(
    n: int, p: str, epsilon: str, objective: Literal["mae", "mse"], tmp_path: Path
) -> None:
    """The program as it is defined, by SciPy; the answer needs none, and its bound is proved from its own prices."""
    x, q = np.arange(n + 1), math.exp(-float(epsilon))
    away = np.abs(np.subtract.outer(x, x))
    inside = 1 - (q ** (n - x + 1) + q ** (x + 1)) / (1 + q)
    far = np.arange(1, 3000)
    weight = (1 - q) / (1 + q) * q**far
    tails = {
        power: np.array([(weight * far**power)[i:].sum() + (weight * far**power)[n - i :].sum() for i in x])
        for power in (1, 2)
    }
    most = 2 * (weight * far).sum() - tails[1]
    power = 1 if objective == "mae" else 2
    belief = np.array([math.comb(n, i) * float(p) ** i * (1 - float(p)) ** (n - i) for i in x])
    ladder = np.zeros((2 * n, n + 1))  # r(x, s) <= e^eps r(x+1, s), and the converse
    for i in range(n):
        ladder[i, [i, i + 1]] = 1, -1 / q
        ladder[n + i, [i + 1, i]] = 1, -1 / q
    every = np.eye(n + 1)
    caps = np.vstack([np.kron(every[i], away[i]) for i in x])
    best = linprog(
        (belief[:, None] * away**power).ravel(), np.vstack([np.kron(ladder, every), caps]),
        np.append(np.zeros(2 * n * (n + 1)), most * (1 + 1e-9)), np.kron(every, np.ones(n + 1)), inside, method="highs",
    )  # fmt: skip
    found = solve(asked(BIN(n, p), epsilon, tail="geometric", never_worse=True, objective=objective))
    noise = 2 * (weight * far**power).sum()
    assert best.fun + (belief * tails[power]).sum() == pytest.approx(noise, rel=1e-6)
    assert found.value == pytest.approx(noise, rel=1e-12)
    assert found.status == "optimal"
    assert found.gap is not None
    assert found.gap < 1e-9
    found.save(tmp_path / "a.json")
    assert verify(tmp_path / "a.json").bound_proved
    agrees(tmp_path / "a.json", found.certificate)


def test_no_program_where_nothing_but_noise_is_left(tmp_path: Path) -> None:
    """A hundred people at once, and the bound with them; an observer with a range besides changes nothing."""
    found = solve(asked(BIN(100, "0.1"), "0.3", tail="geometric", never_worse=True))
    assert found.engine == "geometric"
    assert found.gap is not None
    assert found.gap < 1e-9
    both = solve(SingleLTE(BIN(9, "0.2"), "0.3", observer=[Observer(("0.1", "0.3")), EVERYBODY]))
    assert both.mae == found.mae
    assert both.gap is not None
    assert both.gap < 1e-9
    both.save(tmp_path / "a.json")
    assert verify(tmp_path / "a.json").bound_proved
    agrees(tmp_path / "a.json", both.certificate)


def test_caps_that_leave_no_room_are_refused_in_words() -> None:
    with pytest.raises(InfeasibleError, match=r"less than rounding needs\. Set never_worse = false\.$"):
        solve(asked(BIN(20, "0.05"), "4", never_worse=True))


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize(("p", "epsilon"), [("0.05", "0.3"), ("0.5", "0.3"), ("0.8", "2"), ("0.02", "4")])
def test_one_person(p: str, epsilon: str, everybody: bool, tmp_path: Path) -> None:
    """Alone with a secret: a constant, or randomized response. Any two columns of two inputs mix these three."""
    share = float(p)
    least = min(share, 1 - share, 1 / (1 + math.exp(float(epsilon))))
    observer = EVERYBODY if everybody else Observer()
    for careful in (False, True):
        problem = SingleLTE(BIN(1, p), epsilon, tail="none", never_worse=careful, observer=observer)
        found = solve(problem)
        assert found.gap is not None
        assert found.gap < 1e-6
        if not careful:
            assert found.mae == pytest.approx(least, rel=1e-6)
        assert found.certificate.worst_error < problem.cap or not careful
        found.save(tmp_path / "a.json")
        agrees(tmp_path / "a.json", verify(tmp_path / "a.json").certificate)


def test_a_million_people_who_spread_far() -> None:
    found = solve(SingleLTE(BIN(10**6, "0.1"), "0.3", observer=EVERYBODY))
    assert found.engine == "geometric"
    assert found.mae == pytest.approx(found.ordinary_mae, rel=1e-9)
    with pytest.raises(ProblemError, match="at most 1,200 rows"):
        solve(asked(BIN(10**6, "0.1"), "0.3"))
