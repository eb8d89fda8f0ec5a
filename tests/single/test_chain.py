"""The interior-point engine against the plain program, reference optima, and the bound that it proves."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import optdp.single.chain as chain_module
from optdp import Population, ProblemError, SingleLTE
from optdp.numbers.exact import precision
from optdp.single.bound import Draft, lower_bound
from optdp.single.chain import solve_chain
from optdp.single.lp import NoiseLP, formulate
from tests.single.plain import plain_optimum

HALF = Fraction(1, 2)
POPULATIONS: dict[str, list[Population]] = {
    "binomial": [Population.binomial(12, "0.3")],
    "three values": [Population.iid(6, ["0.5", "0.3", "0.2"])],
    "kinds": [Population.independent([["0.9", "0.1"]] * 3 + [["0.4", "0.6"]] * 3 + [["0.2", "0.5", "0.3"]] * 2)],
    "holes": [Population.from_others([0, HALF, 0, 0, Fraction(1, 4), Fraction(1, 4), 0], 2)],
    "two priors": [Population.binomial(10, "0.2"), Population.binomial(8, "0.7")],
}
OPTIONS = [
    {"tail": tail, "objective": objective, "adjacency": adjacency, "never_worse": never_worse}
    for tail, objective, adjacency, never_worse in product(
        ("none", "geometric"), ("mae", "mse"), ("unit", "all"), (False, True)
    )
]
REFERENCE = [
    (50, "4", 0.60898), (50, "2", 0.82421), (50, "1", 1.26134), (50, "0.5", 1.85913),
    (100, "4", 0.35286), (100, "2", 0.58327), (100, "1", 1.09625), (100, "0.5", 1.893),
]  # fmt: skip


def program(populations: list[Population], epsilon: Any, fallback: Any, **options: Any) -> NoiseLP:
    with precision():
        return formulate(SingleLTE(populations, epsilon, fallback, **options))


def value_of(lp: NoiseLP, draft: Draft) -> float:
    table = np.zeros((len(lp.inputs), len(lp.inputs)))
    table[draft.rows, draft.cols] = draft.values
    return float((lp.cost[:, None] * lp.distances**lp.power * table).sum()) + lp.constant


def check(lp: NoiseLP, draft: Draft, gap: float = 1e-6) -> float:
    """The draft is feasible up to tolerances, and its prices prove it optimal; returns its value."""
    table = np.zeros((len(lp.inputs), len(lp.inputs)))
    table[draft.rows, draft.cols] = draft.values
    assert np.isfinite(table).all()
    assert (table > 0).all()
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-7
    assert (lp.gaps @ table).max() < 1e-7
    if lp.cap is not None:
        assert ((lp.distances * table).sum(axis=1) - lp.cap).max() < 1e-7
    mechanism = lp.mass[:, None] * table
    assert lp.chain is not None
    assert (mechanism[1:] / mechanism[:-1]).max() < lp.chain * (1 + 1e-6)
    assert (mechanism[:-1] / mechanism[1:]).max() < lp.chain * (1 + 1e-6)
    assert draft.prices is not None
    value, bound = value_of(lp, draft), float(lower_bound(lp, draft.prices))
    assert value - bound <= gap * value
    return value


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())))
def test_equals_the_plain_program(name: str, options: dict[str, Any]) -> None:
    for epsilon, fallback in (("0.3", "0.5"), ("1", "3")):
        lp = program(POPULATIONS[name], epsilon, fallback, **options)
        draft = solve_chain(lp)
        assert draft.status == "optimal"
        value, optimum = check(lp, draft), plain_optimum(lp)
        assert value == pytest.approx(optimum, rel=1e-6, abs=1e-8)
        assert float(lower_bound(lp, draft.prices)) <= optimum * (1 + 1e-7)


@pytest.mark.parametrize(("people", "fallback", "optimum"), REFERENCE)
def test_reference_optima(people: int, fallback: str, optimum: float) -> None:
    lp = program([Population.binomial(people, "0.5")], "0.3", fallback)
    draft = solve_chain(lp)
    assert draft.status == "optimal"
    assert draft.engine == "chain"
    assert check(lp, draft) == pytest.approx(optimum, abs=1e-5 if optimum != 1.893 else 1e-4)


def test_the_smallest_program() -> None:
    """One person: privacy under the prior is ordinary privacy, and geometric noise is the best there is."""
    lp = program([Population.binomial(1, "0.5")], "1", "2")
    assert check(lp, solve_chain(lp)) == pytest.approx(float(lp.problem.baseline), rel=1e-6)


def test_point_masses_and_zero_costs() -> None:
    """No input but one can occur under the prior that is counted, and there is hardly an interior."""
    priors = [Population.from_others([0, 0, 1], 1), Population.binomial(6, "0.5")]
    for options in ({}, {"tail": "none", "never_worse": False, "objective": "mse"}):
        lp = program(priors, "1", "1.5", **options)
        check(lp, solve_chain(lp), 1e-5)


def test_a_loose_fallback_costs_nothing() -> None:
    """At e^60 for one step the fallback is as good as none; the numbers stay finite."""
    people = [Population.binomial(10, "0.4")]
    lp = program(people, "1", "60", tail="none")
    with precision():
        free = formulate(SingleLTE(people, "1", tail="none"))
    assert value_of(lp, solve_chain(lp)) == pytest.approx(plain_optimum(free), rel=1e-6)


def test_an_interrupt_returns_the_best_so_far() -> None:
    lp = program(POPULATIONS["binomial"], "0.3", "1")
    told: list[str] = []

    def progress(message: str) -> None:
        told.append(message)
        if len(told) == 8:
            raise KeyboardInterrupt

    draft = solve_chain(lp, progress)
    assert draft.status == "interrupted"
    assert told[7].startswith("iteration 7: gap ")
    assert np.isfinite(draft.values).all()
    assert draft.prices is not None
    assert float(lower_bound(lp, draft.prices)) <= plain_optimum(lp)


def test_refuses_what_needs_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    lp = program(POPULATIONS["binomial"], "0.3", "1")
    monkeypatch.setattr(chain_module, "LARGEST", 12)
    with pytest.raises(ProblemError, match=r"Found 13 inputs and 2 privacy constraints: about .* GB"):
        solve_chain(lp)
