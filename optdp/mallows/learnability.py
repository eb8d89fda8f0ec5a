"""What can still be learned from shuffled reports: the distribution of values near each place (E, sections 3 and 6).

The truth at record `i` is the empirical distribution of the true values `x` in a group around `i`. A model is fitted to
the places and the released `z`, and predicts the distribution of `z` near each record: the share of each value among
the nearest records, or gradient-boosted trees that are calibrated by Platt's method. k-RR answers at random with
probability `g`, so that the shares `p` of the reports mean `(p - g/k) / (1 - g)` of the people; negative ones are cut
off. The error is the total variation `1/2 sum over v of |predicted(v) - truth(v)|`, averaged over all records: low
where much can be learned. E divides it by that of guessing the uniform distribution everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from optdp.errors import ProblemError
from optdp.mallows.attacks import blank_share, check_values
from optdp.mallows.groups import Groups, Whole
from optdp.mallows.neighbourhoods import Reals, check_points
from optdp.math.source import Source

Model = Callable[[Whole], Reals]
"""Predicts from the released values, one for each record, the distribution of reports near each record."""
FOLDS = 3


def local_truth(groups: Groups, values: ArrayLike, k: int) -> Reals:
    """The empirical distribution of the values in each record's group."""
    held = check_values(values, k)
    if len(groups) != groups.n or groups.n != len(held) or not groups.sizes.all():
        raise ProblemError(
            f"The truth needs a group around each of the {len(held):,} values. Found {len(groups):,} groups of "
            f"{groups.n:,} records."
        )
    counts = np.bincount(groups.owners * k + held[groups.members], minlength=groups.n * k)
    return np.asarray(counts.reshape(groups.n, k) / groups.sizes[:, None], dtype=np.float64)


def nearest_model(neighbours: Whole, k: int) -> Model:
    """The shares of the values at the neighbours, a row of records for each; -1 stands for none."""
    some = (neighbours >= 0).any(axis=1)

    def predicted(released: Whole) -> Reals:
        told = np.append(released, k)[neighbours]
        counts = np.stack([(told == value).sum(axis=1) for value in range(k)], axis=1).astype(np.float64)
        counts[~some] = np.bincount(released, minlength=k)  # who has no neighbours is like everybody
        return np.asarray(counts / counts.sum(axis=1, keepdims=True), dtype=np.float64)

    return predicted


def tree_model(points: ArrayLike, k: int, source: Source) -> Model:
    """Gradient-boosted trees of scikit-learn on the coordinates, calibrated on folds that they were not fitted to."""
    try:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise ProblemError("Learnability needs scikit-learn: pip install 'optdp[ml]'.") from None
    where = check_points(points, "euclidean")

    def predicted(released: Whole) -> Reals:
        found = np.zeros((len(where), k))
        counts = np.bincount(released, minlength=k)
        if counts.max() == len(where):
            found[:, int(counts.argmax())] = 1.0
            return found
        model: Any = HistGradientBoostingClassifier(
            max_iter=30,
            min_samples_leaf=max(5, min(100, len(where) // 40)),
            early_stopping=False,
            random_state=source.bits(31),
        )
        if counts[counts > 0].min() >= FOLDS:
            model = CalibratedClassifierCV(model, method="sigmoid", cv=FOLDS)
        with threadpool_limits(1):  # two threads of one fit wait for each other longer than they work
            model.fit(where, released)
            found[:, model.classes_] = model.predict_proba(where)
        return found

    return predicted


def debiased(shares: Reals, k: int, eps: float) -> Reals:
    """From the shares of the reports to those of the people: k-RR inverted, negative shares cut off."""
    blank = blank_share(k, eps)
    people = np.maximum((shares - blank / k) / (1.0 - blank), 0.0)
    return np.asarray(people / people.sum(axis=1, keepdims=True), dtype=np.float64)


def learnability_error(model: Model, released: ArrayLike, truth: Reals, k: int, eps: float) -> float:
    """The mean total variation between what the model says of the people near each record, and the truth."""
    told = check_values(released, k)
    if truth.shape != (len(told), k):
        raise ProblemError(f"The truth must be a row of {k} shares for each record. Found the shape {truth.shape}.")
    return total_variation(debiased(model(told), k, eps), truth)


def uniform_error(truth: Reals) -> float:
    """That of guessing the uniform distribution everywhere, which E divides by."""
    return total_variation(np.full_like(truth, 1.0 / truth.shape[1]), truth)


def total_variation(found: Reals, truth: Reals) -> float:
    """The mean over all rows."""
    return float(np.abs(found - truth).sum(axis=1).mean() / 2.0)


def accuracy(shares: Reals, values: ArrayLike, coarse: ArrayLike) -> float:
    """How often the likeliest class is right, where value `v` is in class `coarse[v]` (E, Figure 5h)."""
    held, classes = check_values(values, shares.shape[1]), np.asarray(coarse, dtype=np.int64)
    joined = np.stack([shares[:, classes == one].sum(axis=1) for one in range(int(classes.max()) + 1)], axis=1)
    return float(np.mean(joined.argmax(axis=1) == classes[held]))
