"""Privacy against learning as groups grow or alpha falls (E, Figures 3 and 5): a row for each design.

A design is an order of the records and an alpha for its groups, from which `theta = alpha / Delta` follows: once with
the exact sensitivity of the order, and once as E has it, with the bound `w (w+1) / 2` of the width, of its own order if
that is another one. Both promise the same alpha to the same groups, so what is lost by the bound is lost for nothing.
The ends are local randomization alone and the uniform shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optdp.numbers.exact import Number, check_whole, to_fraction
from optdp.numbers.source import Source
from optdp.order.mechanism import Groups, Reals, Whole, paper_sensitivity, placed, ratio, sensitivities, sensitivity
from optdp.order.mechanism import widths as wide_groups
from optdp.order.orderings import Ordering, along, applicable, bfs
from optdp.order.sources import from_points
from optdp.order.study import (
    Model,
    Shuffle,
    check_values,
    learnability_error,
    no_shuffle,
    order_shuffle,
    reports,
    uniform_shuffle,
    vulnerable,
)

Measure = Callable[[Shuffle], float]


@dataclass(frozen=True, eq=False)
class OrderDesign:
    """An order of the records, an alpha, and the sensitivity that it is for: the exact one and E's."""

    at: float
    """Where it stands on the axis: a radius, an alpha or a width, say."""
    group_size: float
    """The mean."""
    covered: float
    """The share of the groups that alpha is promised to; to others it is more (E, Theorem 5.5)."""
    alpha: Fraction
    order: Whole
    sensitivity: int
    paper_order: Whole
    paper_sensitivity: int

    @property
    def theta(self) -> float:
        return float(self.alpha) / self.sensitivity if self.sensitivity else math.inf

    @property
    def paper_theta(self) -> float:
        return float(self.alpha) / self.paper_sensitivity if self.paper_sensitivity else math.inf

    @property
    def gain(self) -> float:
        """How many times larger theta is by the exact sensitivity."""
        return self.paper_sensitivity / self.sensitivity if self.sensitivity else 1.0


@dataclass(frozen=True, eq=False)
class MeasuredDesign(OrderDesign):
    """What was measured with the exact sensitivity, and with E's order and bound."""

    found: float
    paper_found: float
    spread: float
    """The standard deviation of what was found over the shuffler's draws."""


@dataclass(frozen=True)
class TradeOff:
    """A row for each design, and the two ends."""

    rows: tuple[MeasuredDesign, ...]
    local: float
    """Without a shuffle."""
    uniform: float
    """With the uniform shuffle."""


def least(groups: Groups) -> Whole:
    """The order of least sensitivity among those that are quick to find; of several the shortest way by the points."""
    found = [along(groups, find(groups)) for find in applicable(groups).values()]
    return min(found, key=lambda order: (sensitivity(groups, order), _way(groups, order)))


def radius_sweep(
    points: ArrayLike, radii: Iterable[float], alpha: Number, order: Ordering = least, paper: Ordering = bfs
) -> list[OrderDesign]:
    """Groups by ever larger radii, at one alpha."""
    share = to_fraction(alpha, "alpha")
    sizes = ((radius, from_points(points, radius)) for radius in radii)
    return [_design(radius, groups, share, order(groups), paper(groups)) for radius, groups in sizes]


def alpha_sweep(
    groups: Groups, alphas: Iterable[Number], order: Ordering = least, paper: Ordering = bfs
) -> list[OrderDesign]:
    """The same groups at several alphas."""
    ours, theirs = order(groups), paper(groups)
    shares = [to_fraction(alpha, "alpha") for alpha in alphas]
    return [_design(float(share), groups, share, ours, theirs) for share in shares]


def width_sweep(groups: Groups, widths: Iterable[int], alpha: Number, order: Ordering = bfs) -> list[OrderDesign]:
    """E's way for a graph, whose largest groups nothing but the uniform shuffle serves: alpha is promised to those
    groups only that are not wider than the width; for them E takes `w (w+1) / 2`, and the exact sensitivity is less.
    """
    ours, share = order(groups), to_fraction(alpha, "alpha")
    wide, exact = wide_groups(groups, placed(groups, ours)), sensitivities(groups, ours)
    found = []
    for width in widths:
        check_whole(width, "The width", 0, groups.n)
        fine, bound = wide <= width, width * (width + 1) // 2
        size = float(groups.sizes[fine].mean()) if fine.any() else 0.0
        delta = int(exact[fine].max(initial=0))
        found.append(OrderDesign(float(width), size, float(fine.mean()), share, ours, delta, ours, bound))
    return found


def attack_curve(
    designs: Iterable[OrderDesign],
    neighbours: Whole,
    values: ArrayLike,
    k: int,
    eps: float,
    source: Source,
    trials: int = 50,
    repeats: int = 3,
) -> TradeOff:
    """The fraction `rho` of vulnerable people, the mean over some permutations of the shuffler."""
    held = check_values(values, k)
    return _curve(
        designs, lambda shuffle: vulnerable(neighbours, held, k, eps, shuffle, source, trials), len(held), repeats
    )


def learnability_curve(
    designs: Iterable[OrderDesign],
    model: Model,
    truth: Reals,
    values: ArrayLike,
    k: int,
    eps: float,
    source: Source,
    repeats: int = 3,
) -> TradeOff:
    """The error of the local distributions, the mean over some draws of the reports and of the shuffler."""
    held = check_values(values, k)

    def error(shuffle: Shuffle) -> float:
        return learnability_error(model, reports(held, k, eps, source)[shuffle(source)], truth, k, eps)

    return _curve(designs, error, len(held), repeats)


def _curve(designs: Iterable[OrderDesign], measure: Measure, n: int, repeats: int) -> TradeOff:
    check_whole(repeats, "repeats", 1, 10**6)

    def measured(shuffle: Shuffle) -> tuple[float, float]:
        drawn = [measure(shuffle) for _ in range(repeats)]
        return float(np.mean(drawn)), float(np.std(drawn))

    local, _ = measured(no_shuffle(n))
    uniform, _ = measured(uniform_shuffle(n))
    rows = []
    for design in designs:
        found, spread = measured(order_shuffle(design.order, ratio(design.alpha, design.sensitivity)))
        paper, _ = measured(order_shuffle(design.paper_order, ratio(design.alpha, design.paper_sensitivity)))
        rows.append(MeasuredDesign(**vars(design), found=found, paper_found=paper, spread=spread))
    return TradeOff(tuple(rows), local, uniform)


def _design(at: float, groups: Groups, alpha: Fraction, order: Whole, paper: Whole) -> OrderDesign:
    exact, bound = sensitivity(groups, order), paper_sensitivity(groups, paper)
    return OrderDesign(at, float(groups.sizes.mean()), 1.0, alpha, order, exact, paper, bound)


def _way(groups: Groups, order: Whole) -> float:
    if groups.points is None:
        return 0.0
    return float(np.linalg.norm(np.diff(groups.points[order], axis=0), axis=1).sum())
