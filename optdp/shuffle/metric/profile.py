"""Privacy profiles of padded shares: the loss at every distance, in one dimension and in two.

*Two dimensions* (D, appendix D). Each coordinate is summed on its own; people at `(dx, dy)` are `sqrt(dx^2 + dy^2)`
apart. The releases are independent, so the exact joint divergence of a shift `(dx, dy)` is

    sum over s of u_x(s) delta_y(L - log u_x(s)/w_x(s)),

which needs no split of epsilon and delta between the coordinates at all. (A shift `(a, 0)` counts no truncation of the
second coordinate. If values move there and cancel, people are at least `sqrt(a^2 + 4)` apart, and `(a, 1)` covers it.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from optdp.numbers.divergence import LARGEST_LOSS, Floats, Pair
from optdp.numbers.ordered import dot
from optdp.numbers.roots import edge
from optdp.shuffle.metric.released import Released
from optdp.work import Progress, silent

Losses = list[tuple[float, float]]  # distances, and the loss at each; the loss never falls with the distance


def line(released: Released, delta: float, distances: Sequence[int], progress: Progress = silent) -> Losses:
    """One coordinate: people at distance `d` may move the sum by anything up to `d`."""
    found, most = [], 0.0
    for distance in distances:
        progress(f"certifying distance {distance:,} of {distances[-1]:,}")
        most = released.moved.loss(distance, delta, most)
        found.append((float(distance), most))
    return found


def plane(released: Released, delta: float, shifts: Sequence[tuple[int, int]], progress: Progress = silent) -> Losses:
    """Two coordinates with the same noise each, for shifts `(dx, dy)` in the order of their lengths."""
    found: Losses = []
    most = 0.0
    for i, (shift, spent) in enumerate(zip(shifts, _spendings(released, shifts), strict=True)):
        progress(f"certifying shift {i + 1:,} of {len(shifts):,}")
        if most < math.inf and not spent(most) <= delta:
            most = _least(spent, most, delta)
        found.append((math.hypot(*shift), most))
    last = dict(found)  # of equal lengths the last has the largest loss
    return [(length, last[length]) for length, _ in found]


def spending_more(
    released: Released, delta: float, shifts: Sequence[tuple[int, int]], epsilon: float
) -> list[tuple[int, int]]:
    """The shifts that spend more than delta at a loss of epsilon for each unit of their length."""
    every = zip(shifts, _spendings(released, shifts), strict=True)
    return [shift for shift, spent in every if spent(epsilon * math.hypot(*shift)) > delta]


def _spendings(released: Released, shifts: Sequence[tuple[int, int]]) -> Iterator[Callable[[float], float]]:
    """What each shift spends of delta, as a function of the loss."""
    pairs = {d: released.pair(d) for d in {d for shift in shifts for d in shift if d}}
    curves = {dy: _curve(pairs[dy]) for dy in {dy for _, dy in shifts if dy}}
    for dx, dy in shifts:
        yield pairs[dx].delta if not dy else _both(pairs[dx], pairs[dy], curves[dy])


def shifts_within(furthest: float) -> list[tuple[int, int]]:
    """All `(dx, dy)` with `dx >= dy >= 0` up to a length, the shortest first."""
    return sorted(_quarter(furthest), key=lambda shift: (math.hypot(*shift), shift))


def _quarter(furthest: float) -> Iterator[tuple[int, int]]:
    for dx in range(1, math.floor(furthest) + 1):
        for dy in range(dx + 1):
            if math.hypot(dx, dy) <= furthest:
                yield dx, dy


def _both(one: Pair, other: Pair, along: Callable[[Floats], Floats]) -> Callable[[float], float]:
    """The divergence of two independent releases, as a function of the loss; `along` is the curve of the other."""
    finite = one.log_w > -math.inf
    weights, ratios = np.exp(one.log_u), one.log_u - one.log_w
    alone = float(np.sum(weights[~finite])) + one.lost
    mass = float(np.sum(np.exp(other.log_u))) + other.lost
    weights, ratios = weights[finite], ratios[finite]

    def spent(loss: float) -> float:
        joint = dot(weights, along(loss - ratios))
        return (joint + alone * mass) * (1.0 + 1e-12) + 1e-15 * mass

    return spent


def _curve(pair: Pair) -> Callable[[Floats], Floats]:
    """`sum (u - e^L w)_+` as a function of many `L` at once, negative ones too."""
    ratios = pair.log_u - pair.log_w
    order = np.argsort(-ratios, kind="stable")
    falling = ratios[order]
    above = np.concatenate(([0.0], np.cumsum(np.exp(pair.log_u[order])))) + pair.lost
    below = np.concatenate(([-math.inf], np.logaddexp.accumulate(pair.log_w[order])))

    def along(losses: Floats) -> Floats:
        place = np.searchsorted(-falling, -losses, side="left")  # how many ratios lie above each loss
        return np.maximum(above[place] - np.exp(np.minimum(losses + below[place], LARGEST_LOSS)), 0.0)

    return along


def _least(spent: Callable[[float], float], floor: float, delta: float) -> float:
    """The least loss above `floor` that spends at most `delta`; infinite if none up to a large one does."""

    def excess(loss: float) -> float:
        return math.log(max(spent(loss), 1e-300) / delta)  # nearly a line, so that few steps do

    high, step = floor, max(0.05 * floor, 1e-3)
    while excess(high) > 0.0:
        floor, high, step = high, high + step, 2.0 * step
        if high > LARGEST_LOSS:
            return math.inf
    return edge(excess, high, floor, 1e-11 * max(1.0, high))
