"""Where the prior alone hides everybody, and what large problems say before they begin."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from optdp import Population, ProblemError, SingleLTE, solve, verify, work
from optdp.numbers.exact import precision
from optdp.recheck import recheck
from optdp.single import bound
from optdp.single.chain import solve_chain
from optdp.single.core import solve_core
from optdp.single.lp import formulate
from optdp.single.pairs import solve_pairs
from optdp.single.shifting import shift_weights
from optdp.single.truthful import truthful_draft, truthful_window
from optdp.single.window import likely_inputs
from optdp.work.account import paced


@pytest.mark.parametrize("share", [1e-3, 1e-14, 1e-42])
@pytest.mark.parametrize(
    ("n", "p"),
    [
        (6000, "0.5"),
        (10**6, "0.001"),
        (10**9, "0.3"),
        (10**9, "0.000000004"),
        (10**6, "1e-400"),
        (5001, "0.9999999999999999999"),
        (40, "0.2"),
    ],
)
def test_likely_inputs_leave_out_no_more_than_the_share(n: int, p: str, share: float) -> None:
    """By scipy's tails: not more than the share beyond either end, and not a run that is far too long."""
    low, high = likely_inputs(SingleLTE(Population.binomial(n, p), 1), share)
    law = binom(n, float(p))
    assert law.cdf(low - 1) <= share
    assert law.sf(high) <= share
    deviations = 2 * math.sqrt(-2 * math.log(share)) + 4
    assert high - low <= deviations * law.std() + 4 * -math.log(share)


@pytest.mark.parametrize(
    ("n", "p", "epsilon", "options"),
    [
        (20_000, "0.5", "1", {}),
        (10**9, "0.00002", "0.5", {}),
        (30_000, "0.3", "1", {"tail": "none", "never_worse": False}),
        (50_000, "0.5", "0.5", {"objective": "mse"}),
        (50_000, "0.5", "0.5", {"method": "shifting"}),
    ],
)
def test_very_many_people_report_themselves(
    n: int, p: str, epsilon: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """No noise but for inputs that never occur. The epsilon is that of the law itself, by scipy."""
    problem = SingleLTE(Population.binomial(n, p), epsilon, **options)
    solution = solve(problem)
    assert (solution.status, solution.engine) == ("optimal", "truthful")
    assert 0 <= solution.value <= 1e-12 * problem.baseline
    assert solution.gap == solution.value  # absolute: the bound is 0
    assert "below 1e-12" in solution.note
    first, last = solution.mechanism.inputs
    others = binom(n - 1, float(p))
    told = max(abs(others.logpmf(x - 1) - others.logpmf(x)) for x in (first, last))
    certified = solution.certificate.epsilon
    assert certified is not None
    assert told * 0.5 <= float(certified) <= float(epsilon)
    solution.save(tmp_path / "table.json")
    assert verify(tmp_path / "table.json").certificate == solution.certificate


def test_the_second_checker_agrees(tmp_path: Path) -> None:
    solve(SingleLTE(Population.binomial(20_000, "0.5"), 1)).save(tmp_path / "table.json")
    assert recheck(tmp_path / "table.json").status == "PASS"


@pytest.mark.parametrize(
    "problem",
    [
        SingleLTE(Population.binomial(20_000, "0.5"), "0.01"),  # quotients beyond epsilon
        SingleLTE(Population.binomial(20_000, "0.001"), "0.5"),  # sums near 0
        SingleLTE(Population.binomial(20_000, "0.5"), 1, tail="none"),  # never_worse at every input
        SingleLTE(Population.binomial(5_000, "0.5"), 1),  # every input has a row
    ],
)
def test_no_window_where_there_is_none(problem: SingleLTE) -> None:
    assert truthful_window(problem) is None


@pytest.mark.parametrize(
    ("problem", "fits"),
    [
        (SingleLTE(Population.iid(2000, ["0.5", "0.3", "0.2"]), "0.5"), True),
        (SingleLTE(Population.binomial(3000, "0.5"), "0.5", tail="none"), True),
        (SingleLTE(Population.iid(300, ["0.5", "0.3", "0.2"]), "0.5"), False),
        (SingleLTE(Population.binomial(100, "0.5"), "0.3"), False),
    ],
)
def test_a_row_for_every_input(problem: SingleLTE, fits: bool) -> None:
    with precision():
        draft = truthful_draft(formulate(problem))
    assert (draft is not None) == fits
    if fits:
        solution = solve(problem)
        assert (solution.status, solution.engine) == ("optimal", "truthful")
        assert solution.value <= 1e-12 * problem.baseline
        assert solution.certificate.epsilon is not None
        assert solution.certificate.epsilon <= problem.epsilon


def test_a_small_error_has_a_relative_gap() -> None:
    solution = solve(SingleLTE(Population.binomial(400, "0.5"), "0.5"))
    assert 0 < solution.value < 1e-3
    assert not solution.negligible
    assert solution.lower_bound is not None
    assert solution.gap == pytest.approx((solution.value - float(solution.lower_bound)) / solution.value, abs=1e-12)


@pytest.mark.parametrize(("n", "p"), [(6000, "0.5"), (6000, "0.01"), (300, "0.5")])
def test_inputs_that_cannot_matter_do_not_change_the_bound(n: int, p: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SingleLTE(Population.binomial(n, p), "0.05")
    prices = solve(problem).prices
    assert prices is not None
    looked: list[int] = []
    least = bound._least

    def counted(*arguments: Any) -> Any:
        looked.append(len(arguments[-1]))
        return least(*arguments)

    monkeypatch.setattr(bound, "_least", counted)
    with precision():
        lp = formulate(problem)
        quick = bound.lower_bound(lp, prices)
        few = sum(looked)
        monkeypatch.setattr(bound, "SMALL", -1.0)
        slow = bound.lower_bound(lp, prices)
    assert sum(looked) - few == len(lp.inputs) >= few
    assert 0 < quick <= slow
    assert float(quick) == pytest.approx(float(slow), rel=1e-9)


# ---------------------------------------------------------------------- before it begins


@pytest.mark.parametrize(
    ("engine", "problem", "rule"),
    [
        (solve_core, SingleLTE(Population.iid(20, ["0.5", "0.3", "0.2"]), "0.3"), "inputs that matter fit"),
        (
            solve_core,
            SingleLTE([Population.binomial(20, "0.4"), Population.binomial(20, "0.5")], "0.3"),
            "or about 1 priors",
        ),
        (solve_pairs, SingleLTE(Population.binomial(100, "0.3"), "0.3"), "Use a larger epsilon or fewer people"),
        (solve_chain, SingleLTE(Population.binomial(30, "0.3"), "0.3", "1"), "inputs fit: use fewer people"),
        (shift_weights, SingleLTE(Population.binomial(30, "0.3"), "0.3", method="shifting"), 'Use method = "lp"'),
    ],
)
def test_engines_refuse_what_takes_too_long(
    engine: Any, problem: SingleLTE, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the door, with what would fit; with a deadline they begin all the same."""
    with precision():
        lp = formulate(problem)
    monkeypatch.setattr(work, "LONGEST", 1e-6)
    with pytest.raises(ProblemError, match=f"would take about .*{rule}"):
        engine(lp)
    with work.deadline(600):
        assert len(engine(lp).values)


def test_fifty_priors_are_refused_before_they_are_solved() -> None:
    priors = [Population.binomial(400, Fraction(k, 100)) for k in range(20, 70)]
    with pytest.raises(ProblemError, match=r"would take about .* days. .* inputs that matter fit: .* priors"):
        solve(SingleLTE(priors, "0.5"))


def test_too_many_constraints_are_refused_before_they_are_written() -> None:
    with pytest.raises(ProblemError, match=r"may have 20,000,000 coefficients. Found 30,310,100"):
        solve(SingleLTE(Population.iid(30, [Fraction(1, 101)] * 101), 1, adjacency="all", tail="none"))


def test_a_population_says_how_many_people_would_fit() -> None:
    pmf = ["0.4", "0.5", "0.1"]
    with pytest.raises(ProblemError, match=r"About 2,500 such people fit"):
        Population.iid(10**9, pmf)
    assert solve(SingleLTE(Population.iid(2500, pmf), 1)).status == "optimal"
    with pytest.raises(ProblemError, match="sums up to 5,002"):
        solve(SingleLTE(Population.iid(2501, pmf), 1))


def test_pace_says_how_far_it_is_and_ends_with_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optdp.work.account.PAUSE", -1.0)
    said: list[str] = []
    assert list(paced(range(1000), "counting", said.append)) == list(range(1000))
    assert said == ["counting: 0%", "counting: 26%", "counting: 51%", "counting: 77%"]

    def overdue() -> None:
        raise work.DeadlineReached

    monkeypatch.setattr(work, "check", overdue)
    with pytest.raises(KeyboardInterrupt):
        list(paced(range(1000), "counting", said.append))


def test_the_certificate_of_a_large_table_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optdp.work.account.PAUSE", -1.0)
    said: list[str] = []
    solve(SingleLTE(Population.binomial(20_000, "0.5"), 1), progress=said.append)
    assert any(line.startswith("adding up what each output tells: ") for line in said)
    assert any(line.startswith("certifying outputs: ") for line in said)
    assert np.all([line.endswith("%") or "inputs report themselves" in line for line in said])
