"""The lower bound from stored prices: integers against the formula itself, the solver's own figure, and optima."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import arb

from optdp import ArtifactError, CertificateError, Population, SingleLTE, solve, verify
from optdp.numbers.exact import ball, decimal_down, lower_fraction, precision
from optdp.single import bound, bound_proof, lp
from optdp.single.bound_proof import FilePrices, proved_bound
from optdp.single.claims import prices_of
from optdp.single.format import write

PROBLEMS = {
    "plain": SingleLTE(Population.binomial(12, "0.5"), "0.5"),
    "no tails": SingleLTE(Population.binomial(12, "0.3"), "0.4", tail="none"),
    "squares": SingleLTE(Population.binomial(20, "0.5"), "0.5", objective="mse"),
    "no caps": SingleLTE(Population.binomial(15, "0.2"), "0.5", never_worse=False),
    "larger contributions": SingleLTE(Population.iid(6, ["1/2", "1/4", "1/4"]), "0.7"),
    "all pairs": SingleLTE(Population.iid(6, ["1/2", "1/4", "1/4"]), "0.7", adjacency="all"),
    "kinds of people": SingleLTE(Population.independent([["1/2", "1/2"]] * 3 + [["4/5", "1/10", "1/10"]] * 3), "0.6"),
    "two priors": SingleLTE([Population.binomial(14, p) for p in ("0.5", "0.4")], "0.5", weights=["1/3", "2/3"]),
    "beyond one block": SingleLTE(Population.binomial(70, "0.1"), "0.3"),
    "fallback": SingleLTE(Population.binomial(12, "0.3"), "0.4", "1"),
    "fallback by unit steps": SingleLTE(Population.iid(5, ["1/2", "1/4", "1/4"]), "0.7", "2", tail="none"),
    "fallback over all pairs": SingleLTE(
        Population.iid(4, ["1/2", "1/4", "1/8", "1/8"]), "0.7", "2", adjacency="all", objective="mse"
    ),
}


def formula(problem: SingleLTE, prices: FilePrices) -> arb:
    """The bound as its docstring writes it, in balls and every minimum over all outputs; all inputs have a row."""
    last, q = problem.last, ball(problem.q)
    tail = problem.tail == "geometric"
    power = 1 if problem.objective == "mae" else 2

    reach = last + 400  # q^400 is nothing here
    powers = [(1 - q) / (1 + q) * q**d for d in range(reach + last + 1)]

    def noise(d: int) -> arb:
        return powers[abs(d)]

    reached, share = (problem.largest, 1) if problem.adjacency == "all" else (1, problem.largest)
    growth = ball((problem.fallback_epsilon or Fraction(0)) / share).exp()
    upwards = [(x, x + d) for d in range(1, reached + 1) for x in range(last + 1 - d)]
    adjacent = [*upwards, *((y, x) for x, y in upwards)] if prices.v else []

    total = arb(0)
    for x in range(last + 1):
        inside = sum((noise(x - s) for s in range(last + 1)), arb(0)) if tail else arb(1)
        outside = [s for s in range(-400, reach + 1) if tail and not 0 <= s <= last]
        lost = {p: sum((noise(x - s) * abs(x - s) ** p for s in outside), arb(0)) for p in (1, 2)}
        mix = zip(problem.weights, problem.populations, strict=True)
        prior = sum((ball(weight) * people.total.balls(x, x)[0] for weight, people in mix), arb(0))
        gaps = []
        for people in problem.populations:
            for person in people.people:
                given = [law.balls(x, x)[0] * inside for law in person.conditionals]
                for i in range(len(given)):
                    for j in range(i + 1, len(given)):
                        if problem.adjacency == "all" or j == i + 1:
                            step = problem.epsilon if problem.adjacency == "all" else problem.epsilon / problem.largest
                            e = ball(step).exp()
                            gaps += [given[i] - e * given[j], given[j] - e * given[i]]
        z = ball(max(Fraction(prices.z[x]), Fraction(0))) if problem.never_worse else arb(0)
        values = []
        for s in range(last + 1):
            value = prior * inside * abs(x - s) ** power + z * abs(x - s)
            for gap, line in zip(gaps, prices.u, strict=True):
                value += gap * ball(max(Fraction(line[s]), Fraction(0)))
            for (one, other), line in zip(adjacent, prices.v, strict=True):  # r(one, s) <= growth r(other, s)
                sign = 1 if x == one else -growth if x == other else arb(0)
                value += sign * inside * ball(max(Fraction(line[s]), Fraction(0)))
            values.append(value.mid())
        total += min(values, key=lambda value: lower_fraction(value, 400))
        total += prior * lost[power] - z * (ball(problem.cap) - lost[1]) / inside
    return total


@pytest.mark.parametrize("name", PROBLEMS)
def test_integers_give_what_the_formula_says(name: str) -> None:
    """With a solver's prices and with nonsense, which proves less but never too much."""
    problem = PROBLEMS[name]
    solution, random = solve(problem), Random(name)
    assert solution.prices is not None
    chain = solution.prices.v
    assert (chain is None) == (problem.fallback_epsilon is None)
    v = [] if chain is None else [row.tolist() for way in chain for row in way]
    found = FilePrices(solution.prices.z.tolist(), solution.prices.u.tolist(), v)
    shaken = FilePrices(
        [value * random.uniform(0.5, 1.5) for value in found.z],
        *(
            [[value * random.uniform(0.9, 1.1) - random.choice([0, 0, 1e-3]) for value in line] for line in lines]
            for lines in (found.u, found.v)
        ),
    )
    optimum = solution.certificate.mae if problem.objective == "mae" else solution.certificate.mse
    for prices in (found, shaken):
        proved = proved_bound(problem, prices)
        assert proved is not None
        with precision(400):
            exact = lower_fraction(formula(problem, prices), 200)
        assert -Fraction(1, 10**20) < max(exact, Fraction(0)) - proved < Fraction(1, 10**20)
        assert proved <= optimum
    assert solution.lower_bound is not None
    assert 0 <= float((proved_bound(problem, found) or 0) - solution.lower_bound) < 1e-12


@pytest.mark.parametrize(
    "problem",
    [
        SingleLTE(Population.binomial(6000, "0.5"), "0.1"),
        SingleLTE(Population.binomial(6000, "0.002"), "0.5"),
        SingleLTE(Population.binomial(6000, "0.002"), "0.5", tail="none", never_worse=False),
        SingleLTE(Population.binomial(6000, "0.001"), "0.5", objective="mse"),
    ],
)
def test_very_many_people(problem: SingleLTE) -> None:
    """Inputs without a row: not below what floating point proves (but for its last digits), not above the optimum."""
    solution = solve(problem)
    assert solution.prices is not None
    z, u = solution.prices.z, solution.prices.u
    with precision():
        program = lp.formulate(problem)
        old = bound.lower_bound(program, bound.Prices(np.array(z), np.array(u)))
    new = proved_bound(problem, FilePrices(z.tolist(), u.tolist()))
    assert new is not None
    assert new >= old - Fraction(1, 10**25)
    assert float(new) == pytest.approx(float(old), rel=1e-6, abs=1e-20)
    assert new <= (solution.certificate.mae if problem.objective == "mae" else solution.certificate.mse)


@pytest.mark.parametrize(
    "options", [{}, {"objective": "mse"}, {"never_worse": False}, {"tail": "none", "never_worse": False}]
)
def test_rare_events_among_very_many_people(options: dict[str, Any], tmp_path: Path) -> None:
    """The window begins at 0, as all inputs do; what is proved is next to the same as with a row for every input."""
    few, many = (solve(SingleLTE(Population.binomial(n, Fraction(4, n)), "0.5", **options)) for n in (4999, 10**7))
    assert few.mechanism.outside == "error"
    assert many.mechanism.inputs[0] == 0
    assert len(many.mechanism.rows) < 200
    for solution in (few, many):
        assert solution.gap is not None
        assert 0 <= solution.gap < 1e-6
    assert many.value == pytest.approx(few.value, rel=2e-3)
    many.save(tmp_path / "many.json")
    assert verify(tmp_path / "many.json").bound_proved


def test_too_much_work_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is said of the bound, true or false; everything else is verified as ever."""
    solution = solve(PROBLEMS["plain"])
    solution.save(tmp_path / "a.json")
    write(
        replace(
            solution.artifact(),
            claim={**solution.artifact().claim, "lower_bound": decimal_down(solution.certificate.mae)},
            sha256="",
        ),
        tmp_path / "b.json",
    )
    assert verify(tmp_path / "a.json").bound_proved
    with pytest.raises(CertificateError, match="not proved"):
        verify(tmp_path / "b.json")
    monkeypatch.setattr(bound_proof, "MOST_WORK", 100)
    assert not verify(tmp_path / "a.json").bound_proved
    assert not verify(tmp_path / "b.json").bound_proved


def test_prices_must_fit() -> None:
    problem = PROBLEMS["plain"]
    prices = prices_of(solve(problem).artifact().provenance)
    assert prices is not None
    for z, u in (
        (prices.z[1:], prices.u),
        (prices.z, prices.u[1:]),
        (prices.z, [prices.u[0], prices.u[1][1:]]),
        ([], []),
    ):
        with pytest.raises(ArtifactError, match="fit the problem"):
            proved_bound(problem, FilePrices(z, u))


def test_huge_and_tiny_prices_prove_little_and_break_nothing() -> None:
    problem = PROBLEMS["plain"]
    for price in (1e308, 5e-324, -1e308):
        found = proved_bound(problem, FilePrices([price] * 13, [[price] * 13] * 2))
        assert found is not None
        assert 0 <= found <= solve(problem).certificate.mae
