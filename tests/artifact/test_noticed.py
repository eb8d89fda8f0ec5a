"""Faults that were planted in the checks and that no other test noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optdp import ArtifactError, MultiLTE, NoiseMatrix, Population, ProblemError
from optdp.numbers.exact import is_boolean
from optdp.plan import format as plans
from optdp.plan.certify import certify_plan
from optdp.single.claims import number, prices_of

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


def identity(last: int, q: Any = None) -> NoiseMatrix:
    rows = tuple(((x, 4),) for x in range(last + 1))
    return NoiseMatrix((0, last), (0, last), 4, rows, q, "error" if q is None else "geometric", last)


def test_a_joint_plan_has_no_tails() -> None:
    problem = MultiLTE([Population.binomial(2, "0.5")] * 2, epsilon=1)
    with pytest.raises(ArtifactError, match=r"must be finite\. Found a tail in that of party 1"):
        certify_plan(problem, (identity(2), identity(2, problem.q)))


def test_a_plan_that_cannot_be_measured_is_refused_before_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = MultiLTE([Population.binomial(2, "0.5")] * 2, epsilon=1)
    tables = (identity(2), identity(2))
    assert plans.certify_tables(problem, tables).epsilon is None  # the truth gives everything away
    monkeypatch.setattr(plans, "MOST_STEPS", 1)
    with pytest.raises(ProblemError, match="small enough to be measured"):
        plans.certify_tables(problem, tables)
