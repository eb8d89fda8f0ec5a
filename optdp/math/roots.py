"""Roots of monotone functions, with the safe side known: what is returned was evaluated and kept the condition."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

XTOL = 1e-12
DEEP = -1e6
"""What stands for minus infinity, the logarithm of zero."""


def edge(excess: Callable[[float], float], kept: float, broken: float, xtol: float = XTOL) -> float:
    """The point nearest to `broken` that keeps `excess(x) <= 0`, to within `xtol`; `excess` is monotone in between.

    `excess(kept) <= 0 < excess(broken)` is required, and holds of the point that is returned.
    """

    def bounded(x: float) -> float:
        return max(excess(x), DEEP)

    if bounded(kept) == 0.0:
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
    excess: Callable[[float], float], guess: float, slope: float, kept: float, broken: float
) -> tuple[float, float]:
    """Ends close to a root near `guess`: two steps of Newton's method, then either way with growing steps."""
    low, high = min(kept, broken), max(kept, broken)
    point = guess
    for _ in range(2):
        point = min(max(point - excess(point) / slope, low), high)
    value = excess(point)
    step = max(1e-9 * abs(point), 2.0 * abs(value / slope), XTOL)
    inside = outside = point
    while outside != broken and excess(outside) <= 0.0:
        inside, outside = outside, min(max(outside + math.copysign(step, broken - kept), low), high)
        step *= 8.0
    while inside != kept and excess(inside) > 0.0:
        outside, inside = inside, min(max(inside + math.copysign(step, kept - broken), low), high)
        step *= 8.0
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
