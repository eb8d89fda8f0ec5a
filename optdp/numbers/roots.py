"""Roots of monotone functions, with the safe side known: what is returned was evaluated and kept the condition."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

XTOL = 1e-12
DEEP = -1e6  # what stands for minus infinity, the logarithm of zero


def edge(excess: Callable[[float], float], kept: float, broken: float, xtol: float = XTOL) -> float:
    """The point nearest to `broken` that keeps `excess(x) <= 0`, to within `xtol`; `excess` is monotone in between.

    `excess(kept) <= 0 < excess(broken)` is required, and holds of the point that is returned.
    """

    def bounded(x: float) -> float:
        return max(excess(x), DEEP)

    if abs(kept - broken) <= xtol or bounded(kept) == 0.0:
        return kept
    root = float(brentq(bounded, kept, broken, xtol=xtol, rtol=4 * 2.0**-52, maxiter=200))
    back = math.copysign(max(xtol, abs(root) * 2.0**-50), kept - broken)
    while excess(root) > 0.0:
        root += back
        back *= 2.0
        if (root - kept) * back >= 0.0:
            return kept
    return root


def narrowed(
    excess: Callable[[float], float], guess: float, slope: float, kept: float, broken: float, xtol: float = XTOL
) -> tuple[float, float]:
    """Ends that keep and break the condition, close to a root near `guess`: secant steps, then a step either way.

    The steps either way grow until they have found the root between them, up to the ends that are given.
    """
    low, high = min(kept, broken), max(kept, broken)
    before, value = guess, excess(guess)
    point = min(max(guess - value / slope, low), high)
    for _ in range(4):
        found = excess(point)
        if point == before or found == value:
            break
        move = found * (point - before) / (found - value)
        before, value, point = point, found, min(max(point - move, low), high)
        if abs(move) < xtol:
            break
    back = math.copysign(max(xtol / 2.0, abs(point) * 2.0**-50), kept - broken)
    inside, outside = (min(max(point + step, low), high) for step in (back, -back))
    while inside != kept and excess(inside) > 0.0:
        back *= 8.0
        inside, outside = min(max(inside + back, low), high), inside
    while outside != broken and excess(outside) <= 0.0:
        back *= 8.0
        inside, outside = outside, min(max(outside - back, low), high)
    return inside, outside


def last_whole(excess: Callable[[int], float], kept: int, broken: int) -> int:
    """The whole number nearest to `broken` that keeps `excess <= 0`, by bisection from ends that keep and break it.

    Above ten million it may be off by one in ten million, on the side that keeps.
    """
    while abs(kept - broken) > max(1, kept // 10**7):
        middle = (kept + broken) // 2
        if excess(middle) <= 0.0:
            kept = middle
        else:
            broken = middle
    return kept
