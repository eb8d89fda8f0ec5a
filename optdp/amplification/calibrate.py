"""Whichever of epsilon, delta, eps0, n (and k) is missing, from one bound: root finding on the private side.

`excess = sqrt(log 1/delta) - sqrt(log 1/bound of delta)` is monotone in each of them, and nearly linear in epsilon, so
the answer is where it crosses zero. A guess comes from a coarse grid, the answer from a finer one; it was evaluated
when it is returned. From an upper bound comes a value that keeps the promise; from a lower bound one that breaks it, so
that the truth lies between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from optdp.amplification.bounds import COARSE, GUESS, MIDDLE, Bound, Setting, approximate, capped
from optdp.amplification.randomizers import KRR, LARGEST_EPS0
from optdp.numbers.roots import XTOL, edge, last_whole, narrowed

LARGEST_EPSILON, LARGEST_N, LARGEST_K = 60.0, 10**10, 10**9
SMALLEST_EPS0, LARGE = 1e-3, 1e3


@dataclass(frozen=True)
class Question:
    """A setting with the wanted `epsilon` and `delta`; the one that is asked for is ignored."""

    setting: Setting
    epsilon: float
    delta: float


def answer(bound: Bound, unknown: str, question: Question, grid: int | None = None) -> float | None:
    """What `bound` says of the unknown, or None if it says nothing within the limits; a smaller `grid` is faster.

    To 1e-12, but for the smaller grids: then to some seven digits, which is more than they are worth.
    """
    spent = bound.grid if grid is None else min(grid, bound.grid)
    if bound.guesses and spent <= GUESS:
        raise ValueError(f"This bound needs a grid above {GUESS}. Found {spent}.")
    return ANSWERS[unknown](bound, question, spent)


def _excess(bound: Bound, setting: Setting, epsilon: float, delta: float, grid: int) -> float:
    """Positive where an upper bound does not promise delta, or a lower bound does not exclude it."""
    found = bound.log_delta(setting, epsilon, grid)
    if found is None:
        return LARGE
    excess = math.sqrt(-math.log(delta)) - min(math.sqrt(max(0.0, -found)), LARGE)
    if bound.side == "upper":
        return excess if excess != 0.0 or found <= math.log(delta) else 2.0**-50
    return -excess if excess > 0.0 else max(-excess, 2.0**-50)


def _real(excess: Callable[[float, int], float], kept: float, broken: float, grid: int) -> float | None:
    """The answer between two ends: a guess on the coarsest grid, then better ones up to the grid that is wanted."""

    def on(spent: int) -> Callable[[float], float]:
        return cache(lambda x: excess(x, spent))

    rough = 1e-7 * abs(kept - broken)
    if grid <= COARSE:
        return _between(on(grid), kept, broken, rough if grid else XTOL)
    first, slope = on(GUESS), 0.0
    guess = _between(first, kept, broken, 1e-5 * abs(kept - broken))
    if guess is not None and guess not in (kept, broken):
        nearby = guess + 1e-3 * (kept - guess)
        slope = (first(nearby) - first(guess)) / (nearby - guess)
    for spent in (MIDDLE, grid) if grid > MIDDLE else (grid,):
        xtol, fine = XTOL if spent > MIDDLE else rough, on(spent)
        near = guess is not None and slope != 0.0
        ends = narrowed(fine, guess or 0.0, slope, kept, broken, xtol) if near else (kept, broken)
        found = _between(fine, *ends, xtol)
        guess = guess if found is None and spent < grid else found
    return guess


def _between(excess: Callable[[float], float], kept: float, broken: float, xtol: float) -> float | None:
    """The edge between two ends, or one of them if all between is kept, or None if nothing is."""
    if excess(kept) > 0.0:
        return None
    return broken if excess(broken) <= 0.0 else edge(excess, kept, broken, xtol)


def _epsilon(bound: Bound, question: Question, grid: int) -> float | None:
    """The smallest epsilon. An upper bound must reach it below eps0, where it is worth nothing."""
    setting, delta = question.setting, question.delta
    most = min(setting.eps0 * (1.0 - 1e-9), LARGEST_EPSILON) if capped(setting) else LARGEST_EPSILON

    def excess(epsilon: float, spent: int) -> float:
        return _excess(bound, setting, epsilon, delta, spent)

    if bound.side == "upper":
        return _real(excess, most, 0.0, grid)
    return _real(excess, 0.0, most, grid)


def _delta(bound: Bound, question: Question, grid: int) -> float | None:
    """Delta itself."""
    found = bound.log_delta(question.setting, question.epsilon, grid)
    if found is None:
        return None
    value = math.exp(found)
    if bound.side == "lower":
        return value * (1.0 - 1e-14)
    return min(1.0, max(value * (1.0 + 1e-14), 0.0 if found == -math.inf else 5e-324))


def _eps0(bound: Bound, question: Question, grid: int) -> float | None:
    """The largest eps0."""

    def excess(eps0: float, spent: int) -> float:
        moved = replace(question.setting, eps0=eps0)
        if bound.fits(moved):
            return LARGE
        return _excess(bound, moved, question.epsilon, question.delta, spent)

    least, most = question.epsilon * (1.0 + 1e-9), LARGEST_EPS0
    if approximate(question.setting):  # not even eps0 = epsilon need do
        least = SMALLEST_EPS0
    if least >= most:
        return None
    if bound.side == "upper":
        return _real(excess, least, most, grid)
    return _real(excess, most, least, grid)


def _whole(excess: Callable[[int, int], float], kept: int, broken: int, grid: int) -> int | None:
    """The whole number nearest to `broken` that keeps the promise: by growing steps and bisection on the coarse grid,
    starting from the smaller end, where the work is least; then by steps around what was found.
    """

    @cache
    def fine(value: int) -> float:
        return excess(value, grid)

    small, large = min(kept, broken), max(kept, broken)
    at_first = excess(small, min(grid, GUESS)) <= 0.0
    if at_first and small == broken and fine(broken) <= 0.0:
        return broken
    low = high = small
    while (excess(high, min(grid, GUESS)) <= 0.0) == at_first:
        if high == large:
            return (large if fine(large) <= 0.0 else None) if at_first == (kept == small) else None
        low, high = high, min(4 * high, large)
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if (excess(middle, min(grid, GUESS)) <= 0.0) == at_first else (low, middle)
    toward = 1 if broken > kept else -1
    place, step = (low if at_first else high), max(1, low // 1000)
    inside = outside = place
    while outside != broken and fine(outside) <= 0.0:
        inside, outside = outside, min(max(outside + toward * step, small), large)
        step *= 4
    while inside != kept and fine(inside) > 0.0:
        outside, inside = inside, min(max(inside - toward * step, small), large)
        step *= 4
    if fine(outside) <= 0.0:
        return outside
    return None if fine(inside) > 0.0 else last_whole(fine, inside, outside)


def _n(bound: Bound, question: Question, grid: int) -> float | None:
    """The smallest number of people; from a lower bound the largest that is surely too small."""

    def excess(n: int, spent: int) -> float:
        return _excess(bound, replace(question.setting, n=n), question.epsilon, question.delta, spent)

    if bound.side == "upper":
        return _whole(excess, LARGEST_N, 2, grid)
    return _whole(excess, 2, LARGEST_N, grid)


def _k(bound: Bound, question: Question, grid: int) -> float | None:
    """For a fixed gamma the largest k; for a fixed eps0, where more values hide better, the smallest k from 3 on."""
    randomizer = question.setting.randomizer
    assert isinstance(randomizer, KRR)

    def excess(k: int, spent: int) -> float:
        if randomizer.gamma is not None and math.log1p(k / randomizer.gamma) > LARGEST_EPS0 - 1e-6:
            return LARGE
        moved = replace(question.setting, randomizer=replace(randomizer, k=k))
        if randomizer.gamma is not None:
            moved = replace(moved, eps0=replace(randomizer, k=k).eps0_of_gamma())
        return _excess(bound, moved, question.epsilon, question.delta, spent)

    ends = (2, LARGEST_K) if randomizer.gamma is not None else (LARGEST_K, 3)
    kept, broken = ends if bound.side == "upper" else ends[::-1]
    return _whole(excess, kept, broken, grid)


ANSWERS: dict[str, Callable[[Bound, Question, int], float | None]] = {
    "epsilon": _epsilon,
    "delta": _delta,
    "eps0": _eps0,
    "n": _n,
    "k": _k,
}
"""What can be asked for."""
