"""Learning from reports: truth and models on cases that are known, and the curve between the two ends."""

from __future__ import annotations

import math
import re
import sys
from itertools import pairwise

import numpy as np
import pytest

from optdp.errors import ProblemError
from optdp.extras import install
from optdp.numbers.source import Source
from optdp.order.mechanism import Groups
from optdp.order.sources import from_points
from optdp.order.study import (
    accuracy,
    crescents,
    debiased,
    learnability_error,
    local_truth,
    nearest,
    nearest_model,
    reports,
    total_variation,
    tree_model,
    uniform_shuffle,
)
from optdp.order.tradeoff import alpha_sweep, learnability_curve


def test_local_truth() -> None:
    groups = Groups.of([[0, 1, 2], [1], [0, 2]], 3)
    assert local_truth(groups, [0, 2, 2], 3).tolist() == [[1 / 3, 0, 2 / 3], [0, 0, 1], [0.5, 0, 0.5]]
    for wrong in (Groups.of([[0], [1]], 3), Groups.of([[0], [], [1]], 3), Groups.of([[0]], 1)):
        with pytest.raises(ProblemError, match="a group around each of the 3 values"):
            local_truth(wrong, [0, 1, 1], 2)


def test_nearest_model_counts() -> None:
    near = np.array([[1, 2], [0, -1], [-1, -1]])
    found = nearest_model(near, 2)(np.array([1, 0, 1]))
    assert found.tolist() == [[0.5, 0.5], [0.0, 1.0], [1 / 3, 2 / 3]]


def test_debiased_inverts_k_rr() -> None:
    truth = np.random.default_rng(1).dirichlet(np.ones(4), 20)
    p = math.exp(1.2)
    channel = (np.ones((4, 4)) + (p - 1) * np.eye(4)) / (p + 3)
    assert np.allclose(debiased(truth @ channel, 4, 1.2), truth)
    assert debiased(np.array([[1.0, 0.0]]), 2, 1.0).tolist() == [[1.0, 0.0]]
    assert np.allclose(debiased(truth, 4, math.inf), truth)


def test_accuracy_at_coarser_classes() -> None:
    shares = np.array([[0.3, 0.3, 0.4], [0.0, 0.6, 0.4]])
    assert accuracy(shares, [0, 1], [0, 1, 2]) == 0.5
    assert accuracy(shares, [0, 1], [0, 0, 1]) == 1.0


def test_without_noise_all_is_learned() -> None:
    points, colours = crescents(2000, Source(1))
    groups = from_points(points, 0.0)
    truth = local_truth(groups, colours, 8)
    itself = nearest_model(np.arange(2000)[:, None], 8)
    assert learnability_error(itself, colours, truth, 8, math.inf) == 0.0
    with pytest.raises(ProblemError, match="a row of 4 shares"):
        learnability_error(itself, colours % 4, truth, 4, 1.0)


def test_the_curve_goes_from_one_end_to_the_other() -> None:
    points, colours = crescents(3000, Source(1))
    truth = local_truth(from_points(points, 0.15), colours, 8)
    model = nearest_model(nearest(points, Source(2), 60), 8)
    designs = alpha_sweep(from_points(points, 0.08), ["0.01", 30, 1000, 10**6])
    found = learnability_curve(designs, model, truth, colours, 8, 2.55, Source(3), repeats=2)
    errors = [row.found for row in found.rows]
    assert found.local < 0.2
    assert found.uniform > 0.75
    assert all(a >= b - 0.01 for a, b in pairwise(errors))  # the last two are both as good as without a shuffle
    assert abs(errors[0] - found.uniform) < 0.1
    assert abs(errors[-1] - found.local) < 0.02
    assert all(row.found <= row.paper_found + 0.02 for row in found.rows)


def test_trees_learn_what_was_not_shuffled_away() -> None:
    pytest.importorskip("sklearn")
    points, colours = crescents(1500, Source(1))
    values = colours >> 1
    truth = local_truth(from_points(points, 0.15), values, 4)
    told = reports(values, 4, 2.5, Source(2))
    model = tree_model(points, 4, Source(3))
    kept = learnability_error(model, told, truth, 4, 2.5)
    lost = learnability_error(model, told[uniform_shuffle(1500)(Source(4))], truth, 4, 2.5)
    assert kept < 0.3 * lost
    assert abs(lost - total_variation(np.full_like(truth, 1 / truth.shape[1]), truth)) < 0.1
    assert total_variation(model(np.full(1500, 2)), np.eye(4)[np.full(1500, 2)]) == 0.0
    few = np.where(np.arange(1500) == 7, 3, values % 2)  # too few of one value to be calibrated
    assert np.allclose(model(few).sum(axis=1), 1.0)


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.calibration", None)
    with pytest.raises(ProblemError, match="^Learnability needs scikit-learn: " + re.escape(install("ml"))):
        tree_model([[0.0], [1.0]], 2, Source(1))
