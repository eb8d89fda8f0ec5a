"""Simulations with the true values: whose value is guessed, and what can still be learned (E, sections 3 and 6).

**The attack.** Everybody reports by k-RR and the shuffler moves the reports. An adversary guesses the value of a record
by a vote of the reports at its nearest neighbours. A record is vulnerable if it is guessed in nearly all draws.

**Learning.** The truth at record `i` is the empirical distribution of the true values `x` in a group around `i`. A
model is fitted to the places and the released `z`, and predicts the distribution of `z` near each record: the share of
each value among the nearest records, or gradient-boosted trees that are calibrated by Platt's method. k-RR answers at
random with probability `g`, so that the shares `p` of the reports mean `(p - g/k) / (1 - g)` of the people; negative
ones are cut off. The error is the total variation `1/2 sum over v of |predicted(v) - truth(v)|`, averaged over all
records: low where much can be learned. E divides it by that of guessing the uniform distribution everywhere.

**Made-up data.** There are two clusters, warm and cool. Each is two crescents that hold each other: half circles of
radius 1 around `(0, 0)`, open downwards, and around `(1, 1/2)`, open upwards. Along each crescent the first half is
light and the second is dark. The colour of a record is `4 cluster + 2 crescent + half`, one of eight: shifted right by
one bit it is one of four crescents, and by two bits one of two clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, StrictInt, StrictStr
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from optdp.errors import ProblemError
from optdp.extras import install
from optdp.files.data import read_columns
from optdp.files.models import Exact, Strict, plain_number
from optdp.numbers.exact import check_between, check_whole, shown
from optdp.numbers.source import Source
from optdp.order.mechanism import LARGEST_N, Groups, Reals, Whole, runs
from optdp.order.sampling import check_order, shuffled, uniform_word
from optdp.order.sources import check_points, from_graph

COLOURS = 8
APART = 4.0
"""How far the second cluster is to the right of the first one."""


def crescents(n: int, source: Source, spread: float = 0.1) -> tuple[Reals, Whole]:
    """Points of `n` records and their colours; points lie off their arc by about `spread`, in each coordinate."""
    check_whole(n, "n", 1, LARGEST_N)
    check_between(spread, "The spread", 0.0, 1.0)
    arc = uniforms(source, n)
    colours = (source.words(n) >> np.uint64(62)).astype(np.int64) * 2 + (arc >= 0.5)
    cluster, lower = colours >> 2, (colours >> 1 & 1).astype(np.bool_)
    angle = np.pi * arc
    x = np.where(lower, 1.0 - np.cos(angle), np.cos(angle)) + APART * cluster
    y = np.where(lower, 0.5 - np.sin(angle), np.sin(angle))
    off, turn = np.sqrt(-2.0 * np.log1p(-uniforms(source, n))), 2.0 * np.pi * uniforms(source, n)
    away = spread * off[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)  # normal, by Box and Muller
    return np.stack([x, y], axis=1) + away, colours


def uniforms(source: Source, size: int) -> Reals:
    """Floats between 0 and 1, for simulations."""
    found: Reals = (source.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


NEIGHBOURS, NEARLY_ALL = 25, 0.9
CHUNK = 4096
"""How many records are looked at in one go."""

Shuffle = Callable[[Source], Whole]
"""Draws a shuffler's permutation: record `i` is given the report of record `moved[i]`."""


def no_shuffle(n: int) -> Shuffle:
    """Reports stay with their people: local differential privacy alone."""
    return lambda source: np.arange(n, dtype=np.int64)


def uniform_shuffle(n: int) -> Shuffle:
    """The shuffle model: every permutation is as likely."""
    return lambda source: uniform_word(source, n)


def order_shuffle(order: Whole, q: Fraction, distance: str = "kendall") -> Shuffle:
    """The Mallows shuffle around an order."""
    check_order(order, len(order))
    records = np.arange(len(order), dtype=np.int64)
    return lambda source: np.asarray(shuffled(records, order, q, source, distance))


def nearest(points: ArrayLike, source: Source, count: int = NEIGHBOURS) -> Whole:
    """The records nearest to each, without itself, a row for each; some of those at the same place by lot."""
    where = check_points(points, "euclidean")
    n = len(where)
    check_whole(count, "The number of neighbours", 1, max(1, n - 1))
    spans = np.ptp(where, axis=0).max() or 1.0
    lots = spans * 1e-9 * uniforms(source, where.size).reshape(where.shape)
    _, found = cKDTree(where + lots).query(where + lots, count + 1)
    others = found != np.arange(n)[:, None]
    others[others.all(axis=1), -1] = False
    chosen: Whole = found[others].reshape(n, count)
    return chosen


def nearest_by_hops(edges: Any, source: Source, n: int | None = None, count: int = NEIGHBOURS) -> Whole:
    """The nodes nearest to each in a graph, by lot among those as far; -1 where a node cannot reach so many."""
    joined = from_graph(edges, 1, n)
    n = joined.n
    check_whole(count, "The number of neighbours", 1, max(1, n - 1))
    starts, ends = joined.starts, joined.members
    found, seen = np.full((n, count), -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    for node in range(n):
        seen[node], held, front = node, 0, np.array([node])
        while held < count:
            ahead = ends[runs(starts[front], starts[front + 1] - starts[front])]
            front = np.unique(ahead[seen[ahead] != node])
            if not len(front):
                break
            seen[front] = node
            drawn = front[np.argsort(source.words(len(front)))][: count - held]
            found[node, held : held + len(drawn)] = drawn
            held += len(drawn)
    return found


def reports(values: Whole, k: int, eps: float, source: Source) -> Whole:
    """k-RR: a uniform value with probability `k / (e^eps + k - 1)`, else the true one; in floats, for simulations."""
    drawn, blank = uniforms(source, len(values)), blank_share(k, eps)
    if blank == 0.0:
        return values
    return np.where(drawn < blank, np.minimum((drawn * (k / blank)).astype(np.int64), k - 1), values)


def blank_share(k: int, eps: float) -> float:
    """How often k-RR answers by a uniform value; never for an infinite `eps`."""
    if not eps > 0:
        raise ProblemError(f"eps must be a number above 0. Found {shown(eps)}. Write inf for reports without noise.")
    return k / (math.exp(eps) + k - 1) if eps < 700 else 0.0


def recovery(
    neighbours: Whole, values: ArrayLike, k: int, eps: float, shuffle: Shuffle, source: Source, trials: int = 50
) -> Reals:
    """How often each record's value is guessed: the fraction of `trials` draws of all reports, for one permutation."""
    held = check_values(values, k)
    n = len(held)
    if neighbours.ndim != 2 or len(neighbours) != n or neighbours.max(initial=0) >= n or neighbours.min(initial=0) < -1:
        raise ProblemError(f"Neighbours must be a row of records for each of the {n:,} values. Found other ones.")
    check_whole(trials, "trials", 1, 10**6)
    moved = np.append(shuffle(source), n)
    asked = moved[neighbours]  # the entry -1 leads to the place n, where nobody reports
    right = np.zeros(n, dtype=np.int64)
    for _ in range(trials):
        renamed = np.argsort(uniforms(source, k)).astype(np.uint8)  # the smallest of equals wins: any, thus
        told = np.append(renamed[reports(held, k, eps, source)], np.uint8(k))
        truth = renamed[held]
        for start in range(0, n, CHUNK):
            votes = told[asked[start : start + CHUNK]]
            right[start : start + CHUNK] += _winners(votes, k) == truth[start : start + CHUNK]
    return right / trials


def vulnerable(
    neighbours: Whole, values: ArrayLike, k: int, eps: float, shuffle: Shuffle, source: Source, trials: int = 50
) -> float:
    """The fraction `rho` of records that are guessed in more than `NEARLY_ALL` of the draws."""
    return float(np.mean(recovery(neighbours, values, k, eps, shuffle, source, trials) > NEARLY_ALL))


def check_values(values: ArrayLike, k: int) -> Whole:
    """The values as whole numbers in `0..k-1`, or what is wrong with them."""
    check_whole(k, "k", 2, 255)
    held = np.asarray(values)
    if held.ndim != 1 or not held.size or held.dtype.kind not in "iu":
        raise ProblemError("Values must be a list of whole numbers. Found something else. Number them from 0.")
    wrong = np.flatnonzero((held < 0) | (held >= k))
    if len(wrong):
        raise ProblemError(f"Values must be from 0 to {k - 1}. Found {held[wrong[0]]} for record {wrong[0]}.")
    return held.astype(np.int64)


def _winners(votes: Any, k: int) -> Whole:
    """The commonest value of each row, the smallest of those as common."""
    best = (votes == 0).sum(axis=1, dtype=np.int32)
    winner = np.zeros(len(votes), dtype=np.int64)
    for value in range(1, k):
        count = (votes == value).sum(axis=1, dtype=np.int32)
        better = count > best
        winner[better], best[better] = value, count[better]
    return winner


# ------------------------------------------------------------------------------------------------- learning
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
        raise ProblemError(f"Learnability needs scikit-learn: {install('ml')}.") from None
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


def total_variation(found: Reals, truth: Reals) -> float:
    """The mean over all rows."""
    return float(np.abs(found - truth).sum(axis=1).mean() / 2.0)


def accuracy(shares: Reals, values: ArrayLike, coarse: ArrayLike) -> float:
    """How often the likeliest class is right, where value `v` is in class `coarse[v]` (E, Figure 5h)."""
    held, classes = check_values(values, shares.shape[1]), np.asarray(coarse, dtype=np.int64)
    joined = np.stack([shares[:, classes == one].sum(axis=1) for one in range(int(classes.max()) + 1)], axis=1)
    return float(np.mean(joined.argmax(axis=1) == classes[held]))


MODELS = ("nearest", "trees")


@dataclass(frozen=True, eq=False)
class Study:
    """True values `0..k-1` of all records, local randomization by k-RR of `epsilon`, and how often to simulate."""

    values: Whole
    k: int
    epsilon: float
    neighbours: int = NEIGHBOURS
    trials: int = 50
    repeats: int = 3
    model: str = "nearest"
    seed: int = 1

    def __post_init__(self) -> None:
        check_values(self.values, self.k)
        for name in ("neighbours", "trials", "repeats"):
            check_whole(getattr(self, name), name, 1, 10**6)
        check_whole(self.seed, "seed", 0, 2**63)
        if not 0 < self.epsilon < math.inf:
            raise ProblemError(f"epsilon must be a number above 0. Found {self.epsilon}.")
        if self.model not in MODELS:
            raise ProblemError(f"model must be one of {', '.join(MODELS)}. Found {self.model!r}.")


@dataclass(frozen=True, eq=False)
class StudyFindings:
    """The fraction of vulnerable people and the error of what can be learned, for an order, and at both ends."""

    study: Study
    groups: Groups
    order: Whole
    q: Fraction
    distance: str

    rho = cached_property(lambda self: self._attacked(self._ours))
    rho_local = cached_property(lambda self: self._attacked(no_shuffle(self.groups.n)))
    rho_uniform = cached_property(lambda self: self._attacked(uniform_shuffle(self.groups.n)))
    error = cached_property(lambda self: self._learned(self._ours))
    error_local = cached_property(lambda self: self._learned(no_shuffle(self.groups.n)))
    error_uniform = cached_property(lambda self: self._learned(uniform_shuffle(self.groups.n)))

    @property
    def _ours(self) -> Shuffle:
        return order_shuffle(self.order, self.q, self.distance)

    @cached_property
    def _near(self) -> Whole:
        groups, source = self.groups, Source(self.study.seed)
        count = min(self.study.neighbours, groups.n - 1)
        if groups.points is not None:
            return nearest(groups.points, source, count)
        edges = np.stack((groups.owners, groups.members), axis=1)
        if len(groups) != groups.n:
            raise ProblemError("A study needs a group for each record. Found another number of groups.")
        return nearest_by_hops(edges[edges[:, 0] != edges[:, 1]], source, groups.n, count)

    def _mean(self, measure: Callable[[Source], float]) -> float:
        return float(np.mean([measure(Source(self.study.seed + 1 + i)) for i in range(self.study.repeats)]))

    def _attacked(self, shuffle: Shuffle) -> float:
        study = self.study
        return self._mean(
            lambda source: vulnerable(self._near, study.values, study.k, study.epsilon, shuffle, source, study.trials)
        )

    def _learned(self, shuffle: Shuffle) -> float:
        study, truth = self.study, local_truth(self.groups, self.study.values, self.study.k)

        def once(source: Source) -> float:
            model: Model = nearest_model(self._near, study.k)
            if study.model == "trees":
                if self.groups.points is None:
                    raise ProblemError("Trees learn from points. Found none. Take the model nearest.")
                model = tree_model(self.groups.points, study.k, source)
            released = reports(study.values, study.k, study.epsilon, source)[shuffle(source)]
            return learnability_error(model, released, truth, study.k, study.epsilon)

        return self._mean(once)


class StudyModel(Strict):
    """Simulations with the true values: who is found out by a vote of the neighbours, and what can still be learned."""

    data: StrictStr = Field(description="A CSV file with a row for each record.")
    column: StrictStr = Field(description="The column of the true values, any labels.")
    epsilon: Exact = Field(description="Of the local randomizer, k-RR on the labels.")
    neighbours: StrictInt = 25
    trials: StrictInt = 50
    repeats: StrictInt = 3
    model: StrictStr = Field("nearest", description="nearest, or trees (scikit-learn).")
    seed: StrictInt = 1

    def build(self) -> Study:
        labels = read_columns(Path(self.data), [self.column])[self.column.strip()]
        known = {label: i for i, label in enumerate(sorted({label.strip() for label in labels}))}
        values = np.array([known[label.strip()] for label in labels], dtype=np.int64)
        settings = {name: getattr(self, name) for name in ("neighbours", "trials", "repeats", "model", "seed")}
        epsilon = plain_number(self.epsilon, "epsilon")
        return Study(values, max(2, len(known)), epsilon, **settings)
