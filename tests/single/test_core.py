"""The core engine against the plain program, and against what any optimum must satisfy."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import optdp.single.core as core_module
from optdp import Population, ProblemError, SingleLTE
from optdp.numbers.exact import precision
from optdp.single.bound import Draft, lower_bound
from optdp.single.core import solve_core
from optdp.single.lp import NoiseLP, formulate
from tests.single.plain import plain_optimum

HALF = Fraction(1, 2)
POPULATIONS: dict[str, list[Population]] = {
    "binomial": [Population.binomial(12, "0.3")],
    "three values": [Population.iid(6, ["0.5", "0.3", "0.2"])],
    "four values": [Population.iid(4, ["0.4", "0.3", "0.2", "0.1"])],
    "kinds": [Population.independent([["0.9", "0.1"]] * 4 + [["0.4", "0.6"]] * 3 + [["0.2", "0.5", "0.3"]] * 2)],
    "holes": [Population.from_others([0, HALF, 0, 0, Fraction(1, 4), Fraction(1, 4), 0], 2)],
    "point mass": [Population.from_others([0, 0, 0, 1], 2)],
    "nobody else": [Population.from_others([1], 1)],
    "multiples": [Population.iid(3, [HALF, 0, 0, 0, HALF])],
    "two priors": [Population.binomial(10, "0.2"), Population.binomial(8, "0.7")],
    "prior and point": [Population.iid(3, ["0.5", "0.25", "0.25"]), Population.from_others([0, 0, 1, 0], 2)],
}
OPTIONS = [
    {"tail": tail, "objective": objective, "adjacency": adjacency, "never_worse": never_worse}
    for tail, objective, adjacency, never_worse in product(
        ("none", "geometric"), ("mae", "mse"), ("unit", "all"), (False, True)
    )
]


def program(populations: list[Population], epsilon: Any, **options: Any) -> NoiseLP:
    with precision():
        return formulate(SingleLTE(populations, epsilon, **options))


def table_of(lp: NoiseLP, draft: Draft) -> np.ndarray:
    table = np.zeros((len(lp.inputs), len(lp.inputs)))
    np.add.at(table, (draft.rows, draft.cols), draft.values)
    return table


def value_of(lp: NoiseLP, table: np.ndarray) -> float:
    return float((lp.cost[:, None] * lp.distances**lp.power * table).sum()) + lp.constant


def check(lp: NoiseLP, draft: Draft, gap: float = 1e-6) -> float:
    """The draft is feasible up to tolerances, and its prices prove it optimal; returns its value."""
    table = table_of(lp, draft)
    assert np.isfinite(table).all()
    assert (table >= 0).all()
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-8
    assert (lp.gaps @ table).max() < 1e-8
    if lp.cap is not None:
        likely = lp.importance > 1e-9 * lp.importance.max()
        assert ((lp.distances * table).sum(axis=1) - lp.cap)[likely].max() < 1e-7
    assert draft.prices is not None
    assert draft.status == "optimal"
    value, bound = value_of(lp, table), float(lower_bound(lp, draft.prices))
    assert value - bound <= gap * max(value, 1e-9)
    assert value - bound >= -gap * max(value, 1e-9)
    return value


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())))
def test_equals_the_plain_program(name: str, options: dict[str, Any]) -> None:
    for epsilon in ("0.2", "1"):
        lp = program(POPULATIONS[name], epsilon, **options)
        draft = solve_core(lp)
        assert draft.engine == "core"
        value, optimum = check(lp, draft), plain_optimum(lp)
        assert value == pytest.approx(optimum, rel=1e-6, abs=1e-8)
        assert float(lower_bound(lp, draft.prices)) <= optimum * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("seed", range(25))
def test_random_people(seed: int) -> None:
    chance = random.Random(seed)
    weights = [[chance.choice([0, 1, 1, 2, 5]) for _ in range(chance.randint(2, 4))] for _ in range(4)]
    weights = [row if sum(row) else [1, 1] for row in weights]
    people = Population.independent([[Fraction(w, sum(row)) for w in row] for row in weights])
    lp = program([people], chance.choice(["0.1", "0.5", "2"]), **chance.choice(OPTIONS))
    assert check(lp, solve_core(lp)) == pytest.approx(plain_optimum(lp), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("adjacency", ["unit", "all"])
def test_interior_point_agrees(adjacency: str) -> None:
    lp = program([Population.iid(40, ["0.5", "0.3", "0.2"])], "0.5", adjacency=adjacency)
    value = check(lp, solve_core(lp))
    assert check(lp, solve_core(lp, solver="ipm")) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("epsilon", ["0.3", "1"])
def test_many_people_prove_their_optimum(epsilon: str) -> None:
    """Far beyond what the plain program can be solved for accurately."""
    lp = program([Population.iid(150, ["0.4", "0.3", "0.2", "0.1"])], epsilon)
    told: list[str] = []
    check(lp, solve_core(lp, told.append))
    assert "inputs that matter" in told[0]


def test_wide_gaps_under_squared_error() -> None:
    """Only multiples of ten are likely, but the best reports lie between them."""
    lp = program([Population.iid(6, [HALF, *[0] * 9, HALF])], "1", objective="mse", never_worse=False, tail="none")
    table = table_of(lp, solve_core(lp))
    assert check(lp, solve_core(lp)) == pytest.approx(plain_optimum(lp), rel=1e-6)
    between = np.arange(len(table)) % 10 != 0
    assert table[~between][:, between].sum() > 0.1


def test_does_not_change_with_the_order_of_priors() -> None:
    priors = POPULATIONS["two priors"]
    one = program(priors, "0.5", weights=["0.3", "0.7"])
    other = program(priors[::-1], "0.5", weights=["0.7", "0.3"])
    assert check(one, solve_core(one)) == pytest.approx(check(other, solve_core(other)), rel=1e-8)


def test_refuses_what_needs_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    lp = program(POPULATIONS["three values"], "1")
    monkeypatch.setattr(core_module, "CELLS", 100)
    with pytest.raises(ProblemError, match=r"Found 169 for 13 inputs.* GB"):
        solve_core(lp)


def test_caps_without_room() -> None:
    """A margin that no mechanism can keep is given up: geometric noise is already the best."""
    lp = replace(program(POPULATIONS["nobody else"], "1"), margin=1e-3)
    assert check(lp, solve_core(lp)) == pytest.approx(float(lp.problem.baseline), rel=1e-6)
