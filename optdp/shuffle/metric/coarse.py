"""Coarse messages (D, appendix G): the worst of all data sets, by one convolution with a binomial law.

A value `x` is sent as `floor(x/Q) + Ber(x/Q - floor(x/Q))` quanta of `Q`, before noise of law `g` is added (symmetric,
in quanta). What two data sets at a distance `d` may be, and what it costs:

1. *Who does not move* may be told to the reader. Of those who do, let one's value go from `x` to `x + s`. The laws of
   both roundings are affine in `x` as long as neither passes a multiple of `Q`, and divergences are jointly convex: the
   worst is where one of both is a multiple.
2. *Which one.* Let A move away from multiples, by `a` in all, and B towards them. With everything else fixed, moving
   some of one person's distance to another person changes both laws along a line, if one is of A and the other of B:
   at the worst one of them moves by whole quanta, and so is of both. So all are of A, or all of B.
3. Thus the laws are `g` and `g` moved by `Y = U - V`, either way around; `U` adds up the quanta of those who move up,
   each `floor(s/Q) + Ber(s/Q - floor(s/Q))`, and `V` of those who move down.
4. *`g` moved against `g`.* For each `z > 0` let `F_z` be convex, rise, and `F_z(y) >= g(z-y)` for all whole `y`. Then
   `E g(z-U+V) <= E F_z(U)`, and `E g(-z-U+V) <= E F_z(V)`. As `F_z(U) + F_z(V) <= F_z(U+V) + F_z(0)`, and as positive
   parts are convex, both together cost at most what `Y = U + V` does, and what does not move at all:

       sum over z > 0 of (E F_z(Y) - e^L g(z))_+ + (F_z(0) - e^L g(z))_+.

   Either `F_z(y) = F(z-y)`, with `F` convex and falling on all whole numbers, or a straight line from `g(z)` on.
   `E F_z(Y)` is largest where `Y` is spread widest: the most people with the fractions as even as possible, for every
   number `T` of whole quanta. With `d <= n` that is `Bin(d, 1/Q)`: `d` people who move by one.
5. *`g` against `g` moved.* Let `C` be convex and fall, `C(y) <= g(|z|+y)` for `y = 0, 1, ..`. Then `E g(z-U+V) >=
   E C(U+V) >= C(d/Q)`. On the side to which less moves it is `C(d/(2Q) + E(Y-2|z|)_+)`, or that, whichever is more.
6. *Truncation.* Who moves and exceeds the padding is given up only if their rounding moves: of all people together at
   most `d/Q` times the chance to exceed.
7. *Fewer who add noise.* Let only `h` of the `n` people surely do. Either `h` of those who do hide the data sets (1. to
   6. for them alone), or the `m > h` who move all add noise, and 1. to 6. hold for these. The law that is left is then
   that of `m`, or of the `m - 1` without one who exceeds and is not moved: `g`, of `h`, with more noise on top, which
   only hides more. So movers are counted up to `n`, what hides is the noise of `h` (or of `h - 1`), and somebody who is
   not moved exceeds with a chance of `(max(h, m) - d/Q)` times that of one, at most.

With bounds on `g` from above and below instead of `g` all of this holds with the one that is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, gammaln

from optdp.numbers.divergence import ROUND_OFF, Floats, Laws, least_loss
from optdp.numbers.ordered import slide
from optdp.shuffle.metric.released import NEGLIGIBLE, Released

BLOCKS = 24  # into so many ranges the numbers of whole quanta are cut, if there are more
WRONG = 1e-9  # more than convolutions of positive terms and binomial probabilities are wrong by, relatively


class Coarse:
    """`released` speaks of quanta, distances of the values."""

    def __init__(self, released: Released, k: int, quantum: int) -> None:
        self.k, self.quantum, self.largest = k, quantum, -(-k // quantum)
        self.people, self.released = released.changed, released
        self.most = max(released.changed, released.shares.n)
        self.law = _Law(released.high, released.low, released.furthest)
        self.others = None if released.others is None else _Law(*released.others, released.furthest)

    def loss(self, distance: int, delta: float, floor: float = 0.0) -> float:
        """The least loss above `floor` that spends at most `delta` whatever the data sets are."""
        distance = min(distance, self.people * self.k)  # further apart no data sets are
        released, moved = self.released, distance / self.quantum
        over = _overshoot(distance, self.quantum, 2 * released.window + released.furthest)
        moving = min(moved, float(self.people))
        lost = released.always + moving * (1.0 + WRONG) * released.beyond + float(over[released.furthest]) + 1e-300
        laws = [(self.law, 1.0)]
        if self.others is not None and moving < self.most:
            laws.append((self.others, (self.most - moving) * (1.0 + WRONG) * released.beyond))
        roundings = list(self.roundings(distance))
        away = [part for law, share in laws for part in law.moved(moved, roundings, share)]
        towards = [part for law, share in laws for part in law.against(moved, over, released.window, share)]
        return least_loss(towards, lost, delta, least_loss(away, lost, delta, floor))

    def roundings(self, distance: int) -> Iterator[tuple[int, Floats]]:
        """Laws of `Y`, each beyond a number of quanta for certain: for every convex function one of them is widest.

        A person moves by `largest` quanta at most. So of `T` whole quanta no more than `n largest - T` people are left
        who may move by a fraction; with many `T` some of these whole quanta count as fractions, too.
        """
        quantum, n = self.quantum, self.people
        if distance <= n:
            yield 0, _even(distance, distance, quantum)
            return
        possible = []
        for whole in range(distance // quantum + 1):
            rest, people = distance - quantum * whole, min(n, n * self.largest - whole)
            if rest <= people * (quantum - 1):
                possible.append((whole, rest, people))
        step = -(-len(possible) // BLOCKS)
        for whole, rest, people in possible[::step]:
            yield whole, _even(min(rest, people + step - 1), rest, quantum)


class _Law:
    """Bounds on a symmetric law, and convex functions above and below it."""

    def __init__(self, high: Floats, low: Floats, reach: int) -> None:
        self.above = np.maximum.accumulate(np.exp(high)[::-1])[::-1] * (1.0 + ROUND_OFF)
        self.below = np.minimum.accumulate(np.exp(low)) * (1.0 - ROUND_OFF)
        self.reach, self.majorant = reach, _majorant(self.above, reach)
        self.heights = np.append(self.below, (0.0, 0.0))
        self.next = _steepest(self.heights)
        before = len(self.above) - 1 - _steepest(-self.above[::-1])[-2::-1]  # where it falls to 1, 2, ... most steeply
        places = np.arange(1, len(self.above))
        self.rates = (self.above[before] - self.above[1:]) / np.maximum(places - before, 1) * (1.0 + WRONG)

    def moved(self, quanta: float, roundings: Iterable[tuple[int, Floats]], share: float) -> Laws:
        """What is moved, against what is not."""
        places, rising = len(self.above) - 1, self.majorant[self.reach + 1 :]
        widest: Floats = np.zeros(places)
        for whole, law in roundings:
            law = law[: self.reach - whole + 1]  # the chance of more is given up
            first = self.reach - whole - len(law) + 2
            np.maximum(widest, slide(self.majorant[first : first + places + len(law) - 1], law), out=widest)
        straight = self.above[1:] + quanta * self.rates
        straighter = straight <= widest
        moved = share * (1.0 + WRONG) * np.where(straighter, straight, widest)
        still = share * np.append(self.above[0], np.where(straighter, self.above[1:], rising))
        scaled = share * self.below
        return [(moved, scaled[1:]), (still, scaled)]

    def against(self, quanta: float, over: Floats, window: int, share: float) -> Laws:
        """What is not moved, against what is."""
        less = np.minimum(quanta, quanta / 2.0 + over[: 2 * window + 1 : 2])
        near, far = (share * self._least(steps) for steps in (np.full(window + 1, quanta), less))
        scaled = share * self.above[: window + 1]
        return [(scaled, near), (scaled[1:], far[1:])]

    def _least(self, steps: Floats) -> Floats:
        """Below the mean of the law at `z` and so many steps further on average, for `z = 0, 1, ...`, rounded down.

        From `z` on, the largest convex function that is nowhere above the law has its corners at `z`, the `next` of
        `z`, the `next` of that, and so on.
        """
        corner = np.arange(len(steps))
        left = np.minimum(steps * (1.0 + 2.0**-40), len(self.heights) - 1.0 - corner)
        while (further := left > (gap := self.next[corner] - corner)).any():
            left = np.where(further, left - gap, left)
            corner = np.where(further, self.next[corner], corner)
        part = left / np.maximum(gap, 1)
        return np.asarray(
            ((1.0 - part) * self.heights[corner] + part * self.heights[self.next[corner]]) * (1.0 - WRONG)
        )


def _majorant(above: Floats, reach: int) -> Floats:
    """A falling convex function on `-reach, 1-reach, ...` that is nowhere below: going down, its steps never shrink."""
    step, value = 0.0, float(above[-1])
    found = [value]
    for height in [*above[-2::-1].tolist(), *([0.0] * reach)]:
        step = max(step, height - value)
        value += step
        found.append(value)
    return np.array(found[::-1]) * (1.0 + WRONG)


def _steepest(heights: Floats) -> NDArray[np.int64]:
    """For each place the later one to which heights fall most steeply; from corner to corner these steps are convex."""
    last = len(heights) - 1
    values, following = heights.tolist(), [last] * (last + 1)
    for x in range(last - 1, -1, -1):
        place = x + 1
        while place < last:
            beyond = following[place]
            if (values[x] - values[place]) * (beyond - place) >= (values[place] - values[beyond]) * (place - x):
                break
            place = beyond
        following[x] = place
    return np.array(following)


def _even(people: int, total: int, quantum: int) -> Floats:
    """The law of how many people round up if their fractions are as even as possible, `total/quantum` on average."""
    if people == 0:
        return np.ones(1)
    low, rest = divmod(total, people)
    one, other = _binomial(people - rest, low / quantum), _binomial(rest, (low + 1) / quantum)
    law = slide(np.concatenate((np.zeros(len(other) - 1), one, np.zeros(len(other) - 1))), other)
    return law * (1.0 + WRONG)


def _binomial(n: int, p: float) -> Floats:
    if p in (0.0, 1.0):
        return np.append(np.zeros(n if p else 0), 1.0)
    j = np.arange(n + 1.0)
    ways = gammaln(n + 1.0) - gammaln(j + 1.0) - gammaln(n - j + 1.0)
    return np.asarray(np.exp(ways + j * math.log(p) + (n - j) * math.log1p(-p)))


def _overshoot(distance: int, quantum: int, last: int) -> Floats:
    """`E(J-j)_+` of `J ~ Bin(distance, 1/quantum)` for `j = 0..last`: not below that of any `Y`."""
    if quantum == 1:
        return np.asarray(np.maximum(distance - np.arange(last + 1.0), 0.0))
    beyond = bdtrc(np.arange(max(distance, last + 1)), distance, 1.0 / quantum)  # Pr[J > j]
    return np.asarray(np.cumsum(np.nan_to_num(beyond)[::-1])[::-1][: last + 1] * (1.0 + WRONG))


def quanta(distance: int, quantum: int, delta: float) -> int:
    """By how many quanta values that move by `distance` in all may move their roundings, all but negligibly."""
    over = _overshoot(distance, quantum, distance)
    enough = np.flatnonzero(over <= delta * NEGLIGIBLE)
    return max(-(-distance // quantum), int(enough[0]) if len(enough) else distance)
