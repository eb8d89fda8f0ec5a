"""What an adversary and an analyst get out of an order's shuffle, by simulation, beside the two ends (E, Figures 3, 5).

The `[study]` table of a problem file names the true values, which nobody who shuffles needs: it is for those who decide
how large groups should be, on data that they may see.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optdp.errors import ProblemError
from optdp.mallows.attacks import (
    NEIGHBOURS,
    Shuffle,
    check_values,
    nearest,
    nearest_by_hops,
    no_shuffle,
    order_shuffle,
    reports,
    uniform_shuffle,
    vulnerable,
)
from optdp.mallows.groups import Groups, Whole
from optdp.mallows.learnability import Model, learnability_error, local_truth, nearest_model, tree_model
from optdp.math.exact import check_whole
from optdp.math.source import Source

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
class Findings:
    """The fraction of vulnerable people and the error of what can be learned, for an order, and at both ends."""

    study: Study
    groups: Groups
    order: Whole
    q: Fraction
    distance: str

    @cached_property
    def rho(self) -> float:
        return self._attacked(self._ours)

    @cached_property
    def rho_local(self) -> float:
        return self._attacked(no_shuffle(self.groups.n))

    @cached_property
    def rho_uniform(self) -> float:
        return self._attacked(uniform_shuffle(self.groups.n))

    @cached_property
    def error(self) -> float:
        return self._learned(self._ours)

    @cached_property
    def error_local(self) -> float:
        return self._learned(no_shuffle(self.groups.n))

    @cached_property
    def error_uniform(self) -> float:
        return self._learned(uniform_shuffle(self.groups.n))

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
