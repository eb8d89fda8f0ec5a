"""Faults that were planted in the checks and that no other test noticed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp import (
    ArtifactError,
    CertificateError,
    MultiLTE,
    NoiseMatrix,
    Population,
    ProblemError,
    SingleLTE,
    solve,
    verify,
)
from optdp.numbers.exact import check_between, check_whole, is_boolean
from optdp.plan import format as plans
from optdp.plan.certify import certify_plan
from optdp.recheck import Failed, Refused, recheck
from optdp.recheck.single import read_problem
from optdp.recheck.verdict import work
from optdp.single.claims import check_observed, number, prices_of
from tests.artifact.forgeries import sealed

GOOD = {"z": "0.5 0.25", "u": ["1.0 0.0", "0.0 2.0"]}


def test_good_prices_are_read() -> None:
    assert prices_of({"prices": GOOD}) is not None
    assert prices_of({}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"z": "0.5 1e999"},
        {"u": ["1.0 0.0", "0.0 -1e999"]},
        {"v": ["1.0", "1e400 1.0"]},
        {"u": ["1.0 0.0", "0.0 two"]},
        {"u": "1.0 0.0"},
        {"v": {"0": "1.0"}},
        {"w": ["1.0"]},
        {"z": None},
    ],
)
def test_one_bad_price_among_good_ones_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="Prices must be"):
        prices_of({"prices": GOOD | change})


def test_a_claim_as_large_as_a_float_may_be() -> None:
    assert number("1e300", "mae") == 10**300
    with pytest.raises(ArtifactError, match="usual size"):
        number("1.01e300", "mae")


def test_truth_values_of_numpy_are_truth_values() -> None:
    assert all(map(is_boolean, (True, False, np.True_, np.False_, [1, np.True_], (0, [False]))))
    assert not any(map(is_boolean, (1, 0, np.int64(1), "True", [1, 0], 1.0)))


def test_whole_numbers_are_checked_to_their_ends() -> None:
    for value, most in ((10**15, {}), (3, {}), (7, {"most": 7})):
        check_whole(value, "n", 3, **most)
    for value, most in ((10**15 + 1, {}), (2, {}), (8, {"most": 7}), (True, {}), (4.0, {}), ("4", {})):
        with pytest.raises(ProblemError, match="n must be"):
            check_whole(value, "n", 3, **most)


def test_numbers_are_checked_to_their_ends() -> None:
    for value in (0.5, 1, 2.0, 0.75):
        check_between(value, "share", 0.5, 2.0)
    for value in (0.49, 2.01, 3, float("nan"), float("inf"), True, "1", None, [1.0]):
        with pytest.raises(ProblemError, match="share must be a number from"):
            check_between(value, "share", 0.5, 2.0)


def test_every_observer_is_claimed_and_only_several_are() -> None:
    one, two, three = Fraction(1), Fraction(2), Fraction(3)
    for few in ([], [one]):
        check_observed(few, None)
        for claimed in ([], ["1"], ["1", "2"], "1"):
            with pytest.raises(ArtifactError, match="of several observers"):
                check_observed(few, claimed)
    check_observed([one, two], ["1", "2"])
    check_observed([one, two, three], ["1", "2", "3"])
    for claimed in (None, ["1"], ["1", "2", "3"], {"0": "1", "1": "2"}, "12"):
        with pytest.raises(ArtifactError, match="of several observers, 2 here"):
            check_observed([one, two], claimed)
    for claimed in (["0.9", "2"], ["1", "1.9"]):
        with pytest.raises(CertificateError, match="observed"):
            check_observed([one, two], claimed)


@pytest.mark.parametrize("objective", ["mae", "mse"])
def test_both_checkers_prove_the_bound_of_the_objective(objective: Any, tmp_path: Path) -> None:
    """Prices prove the bound of their own objective only, to one part in a million."""
    path = tmp_path / "a.json"
    solution = solve(SingleLTE(Population.binomial(8, "0.3"), "0.4", objective=objective, never_worse=False))
    solution.save(path)
    assert verify(path).bound_proved
    assert recheck(path).unchecked == ()
    document = json.loads(path.read_text())
    token = work.set([0])
    assert read_problem(document["problem"]).power == {"mae": 1, "mse": 2}[objective]
    work.reset(token)
    document["claim"]["lower_bound"] = f"{float(solution.lower_bound or 0) * (1 + 1e-6):.12f}"
    path.write_bytes(sealed(document))
    with pytest.raises(CertificateError):
        verify(path)
    with pytest.raises(Failed):
        recheck(path)


def test_added_noise_may_fall_more_slowly_but_not_faster(tmp_path: Path) -> None:
    """By whatever little: tails that fall faster are not those of the problem."""
    path = tmp_path / "a.json"
    solve(SingleLTE(Population.binomial(1, "0.5"), "0.5", form="additive", never_worse=False)).save(path)
    document = json.loads(path.read_text())
    q = Fraction(*map(int, document["tail"]["q"]))
    document["claim"] = {"epsilon": "0.5", "ordinary_epsilon": "0.5", "lower_bound": None}
    for slower in (q, q + Fraction(1, 2**10)):
        document["tail"]["q"] = list(map(str, slower.as_integer_ratio()))
        path.write_bytes(sealed(document))
        verify(path)
        recheck(path)
    document["tail"]["q"] = list(map(str, (q - Fraction(1, 2**63)).as_integer_ratio()))
    path.write_bytes(sealed(document))
    with pytest.raises(ArtifactError, match="at least the ratio of geometric noise"):
        verify(path)
    with pytest.raises(Refused, match="must not fall faster"):
        recheck(path)


def identity(last: int, q: Any = None) -> NoiseMatrix:
    rows = tuple(((x, 4),) for x in range(last + 1))
    return NoiseMatrix((0, last), (0, last), 4, rows, q, "error" if q is None else "geometric", last)


def test_a_joint_plan_has_no_tails() -> None:
    problem = MultiLTE([Population.binomial(2, "0.5")] * 2, epsilon=1, method="joint")
    with pytest.raises(ArtifactError, match=r"must be finite\. Found a tail in that of party 1"):
        certify_plan(problem, (identity(2), identity(2, problem.q)))


def test_a_plan_that_cannot_be_measured_is_refused_before_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = MultiLTE([Population.binomial(2, "0.5")] * 2, epsilon=1, method="joint")
    tables = (identity(2), identity(2))
    assert plans.certify_tables(problem, tables).epsilon is None  # the truth gives everything away
    monkeypatch.setattr(plans, "MOST_STEPS", 1)
    with pytest.raises(ProblemError, match="small enough to be measured"):
        plans.certify_tables(problem, tables)
