"""Privacy profiles of padded shares: the loss at every distance, in one dimension, in two, and with coarse messages.

*Two dimensions* (D, appendix D). Each coordinate is summed on its own; people at `(dx, dy)` are `sqrt(dx^2 + dy^2)`
apart. The releases are independent, so the exact joint divergence of a shift `(dx, dy)` is

    sum over s of u_x(s) delta_y(L - log u_x(s)/w_x(s)),

which needs no split of epsilon and delta between the coordinates at all. (A shift `(a, 0)` counts no truncation of the
second coordinate. If values move there and cancel, people are at least `sqrt(a^2 + 4)` apart, and `(a, 1)` covers it.)

*Coarse messages* (D, appendix G). A value `x` is sent as `floor(x/Q) + Ber(x/Q - floor(x/Q))` quanta of `Q` before
noise is added. If values move by `d` in all, coupled roundings move by `J` quanta with mean `d/Q`; among all ways to
spread `d` over people `J ~ Bin(d, 1/Q)` is the largest in convex order. A move is rare, and what does not move hides
what does: by advanced joint convexity (Balle, Barthe and Gaboardi 2018), with `t = min(1, d/Q) >= Pr[J > 0]` and
`e^M = 1 + (e^L - 1)/t`,

    delta(L) <= E f(J)    for every convex f with f(j) >= (the divergence at M of a shift by up to j quanta).

(Given which people's roundings move, those of the others are as they would be if none moved, and theirs differ from
what they would be by 0 or 1 each: the moved law is at most `J` quanta from that of no move as well.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.special import bdtrc, gammaln

from optdp.numbers.divergence import LARGEST_LOSS, Floats, Pair
from optdp.numbers.ordered import dot
from optdp.numbers.roots import edge
from optdp.shuffle.metric.released import NEGLIGIBLE, Released
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


def coarse(
    released: Released, delta: float, distances: Sequence[int], quantum: int, progress: Progress = silent
) -> Losses:
    """One coordinate with messages in quanta; `released` speaks of quanta, the distances of the values."""
    found: Losses = []
    most = 0.0
    for distance in distances:
        progress(f"certifying distance {distance:,} of {distances[-1]:,}")
        spent = _rounded(released, delta, distance, quantum)
        if most < math.inf and not spent(most) <= delta:
            most = _least(spent, most, delta)
        found.append((float(distance), most))
    return found


def quanta(distance: int, quantum: int, delta: float) -> int:
    """By how many quanta values that move by `distance` in all may move their roundings, all but negligibly."""
    last = math.ceil(distance / quantum)
    while last < distance and bdtrc(last, distance, 1.0 / quantum) > delta * NEGLIGIBLE:
        last += 1
    return min(distance, last)


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


def _rounded(released: Released, delta: float, distance: int, quantum: int) -> Callable[[float], float]:
    """What a distance spends of delta when roundings move by a random number of quanta."""
    last = quanta(distance, quantum, delta)
    moved = np.arange(last + 1.0)
    ways = gammaln(distance + 1.0) - gammaln(moved + 1.0) - gammaln(distance - moved + 1.0)
    odds = -moved * math.log(quantum) + (distance - moved) * math.log1p(-1.0 / quantum)
    chances = np.exp(ways + odds) * (1.0 + 1e-9)
    beyond = float(bdtrc(last, distance, 1.0 / quantum)) * (1.0 + 1e-9)
    rarity = min(1.0, distance / quantum)

    def spent(loss: float) -> float:
        inner = math.log1p(math.expm1(loss) / rarity) if loss < 500.0 else loss - math.log(rarity)
        each = np.array([0.0] + [released.moved.delta(j, inner * (1.0 - 2.0**-50)) for j in range(1, last + 1)])
        rising = np.maximum.accumulate(np.maximum(np.diff(each), 0.0))
        return dot(chances, np.append(0.0, np.cumsum(rising))) + beyond * _far(rising, distance, last)

    return spent


def _far(rising: Floats, distance: int, last: int) -> float:
    """A bound on the convex majorant anywhere up to `distance`: it goes on with its last slope, or reaches one."""
    slope = max(float(rising[-1]), 1.0) if distance > last else 0.0
    return float(np.sum(rising)) + slope * (distance - last)


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
