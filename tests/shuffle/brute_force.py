"""What a metric shuffle really gives away, by brute force: the oracle of the tests. It shares no code with `optdp`.

The actual protocol, clamping and rounding and all, for a few people: the law of a message for every value, the law of
the sum for every data set, every pair of data sets. The noise is summed from its definition, the difference of two
negative binomials with `Pr[NB = j] = (1-q)^beta C(beta+j-1, j) q^j`, in extended precision (64 bits); all terms are
positive, so that everything but the final differences is right to about 1e-17 times the number of terms. What lies
below 1e-40 is cut off: ask for a delta of zero only where nothing that is sent is as rare.

The sets of the hockey-stick divergence are those of the likelihood ratio (Neyman and Pearson): with points in falling
order of `P/Q` and prefix sums `U_i` and `W_i` it is the largest of `U_i - e^L W_i`, so that the least loss is

    L = max(0, max over i with U_i > delta of log((U_i - delta) / W_i)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np

Longs = np.ndarray[Any, np.dtype[np.longdouble]]
SMALL = np.longdouble("1e-40")


def extended(value: Fraction | int | float) -> np.longdouble:
    """The nearest number of extended precision, or its neighbour."""
    exact = Fraction(value)
    first = float(exact)
    return np.longdouble(first) + np.longdouble(float(exact - Fraction(first)))


@lru_cache(maxsize=256)
def negative_binomial(beta: Fraction, q: Fraction) -> Longs:
    """`Pr[NB = 0, 1, ...]` by the ratio of neighbours, until what is left is below 1e-40."""
    b, ratio = extended(beta), extended(q)
    values = [np.exp(b * np.log(extended(1 - q)))]
    j = 0
    while j * (1 - ratio) < b * ratio or values[-1] * ratio > SMALL * extended(1 - q):
        values.append(values[-1] * ratio * (b + j) / (j + 1))
        j += 1
        if j > 2 * 10**5:
            raise ValueError("too much noise for brute force")
    return np.array(values)


@lru_cache(maxsize=256)
def noise(beta: Fraction, q: Fraction, reach: int) -> tuple[Longs, Longs]:
    """`Pr[N = x]` and `Pr[N >= x]` for `x = 0..reach`."""
    law = negative_binomial(beta, q)
    mass = np.array([np.dot(law[: max(len(law) - x, 0)], law[x:]) for x in range(reach + 1)], dtype=np.longdouble)
    above = np.cumsum(law[::-1])[::-1]  # Pr[NB >= j]
    tail = np.array([np.dot(law[: max(len(law) - x, 0)], above[x:]) for x in range(reach + 1)], dtype=np.longdouble)
    return mass, tail


def padded(x: int, k: int, c: int, beta: Fraction, q: Fraction) -> Longs:
    """The law on `0..k+2c` of `x + N + c`, clamped."""
    length = k + 2 * c
    mass, tail = noise(beta, q, length + 1)
    law = np.array([mass[abs(y - x - c)] for y in range(length + 1)], dtype=np.longdouble)
    law[0], law[length] = tail[x + c], tail[k + c - x]
    return law


def padded_laws(k: int, c: int, beta: Fraction, q: Fraction, quantum: int = 1) -> list[Longs]:
    """The law of the message for every value `0..k`, rounded to quanta at random."""
    top = -(-k // quantum)
    whole = [padded(x, top, c, beta, q) for x in range(top + 1)]
    found = []
    for x in range(k + 1):
        low, rest = divmod(x, quantum)
        part = np.longdouble(rest) / quantum
        found.append(whole[low] if not rest else (1 - part) * whole[low] + part * whole[low + 1])
    return found


def flipped_laws(k: int, flip: Fraction) -> list[Longs]:
    """The law of how many of `k` bits are one when `x` were and each is flipped, for every `x`."""
    f = extended(flip)
    found = []
    for x in range(k + 1):
        law = np.ones(1, dtype=np.longdouble)
        for bit in range(k):
            law = np.convolve(law, np.array([f, 1 - f] if bit < x else [1 - f, f], dtype=np.longdouble))
        found.append(law)
    return found


def sum_law(laws: Sequence[Longs], values: Sequence[int]) -> Longs:
    """The law of the sum of everybody's messages."""
    total = np.ones(1, dtype=np.longdouble)
    for x in values:
        total = np.convolve(total, laws[x])
    return total


def least_losses(p: Longs, q: Longs, delta: float) -> Longs:
    """The least `L >= 0` with `sum (p - e^L q)_+ <= delta`, for rows of `p` against the same rows of `q`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(p > 0, p / q, -1)
        order = np.argsort(-ratio, axis=-1)
        u = np.cumsum(np.take_along_axis(p, order, -1), axis=-1)
        w = np.cumsum(np.take_along_axis(q, order, -1), axis=-1)
        losses = np.where(u > delta, np.log((u - delta) / w), 0)
    return np.maximum(losses.max(axis=-1), 0)


def divergence(p: Longs, q: Longs, loss: float) -> np.longdouble:
    """`sum (p - e^loss q)_+`, as it stands."""
    return np.sum(np.maximum(p - np.exp(np.longdouble(loss)) * q, 0))


def losses_by_distance(
    laws: Sequence[Longs],
    n: int,
    delta: float,
    apart: Callable[[Any, Any], float] = lambda x, y: abs(x - y),
    values: Sequence[Any] | None = None,
) -> dict[float, float]:
    """For every distance at which there are data sets, the largest loss between any two of them, both ways.

    The release does not know who is who, so that data sets are multisets, as near as their best matching is; those who
    are matched otherwise are further apart and lose as much. `values` are pairs in the plane: then each
    coordinate is summed on its own with independent noise.
    """
    points = list(range(len(laws))) if values is None else list(values)
    sets = list(combinations_with_replacement(points, n))
    if values is None:
        rows = np.array([sum_law(laws, chosen) for chosen in sets])
    else:
        sums = [[sum_law(laws, [point[i] for point in chosen]) for i in (0, 1)] for chosen in sets]
        rows = np.array([np.outer(one, other).ravel() for one, other in sums])
    found: dict[float, float] = {}
    for i, mine in enumerate(sets):
        losses = least_losses(np.broadcast_to(rows[i], rows.shape), rows, delta)
        for j, other in enumerate(sets):
            if i != j:
                distance = _matching(mine, other, apart)
                found[distance] = max(found.get(distance, 0.0), float(losses[j]))
    return found


def euclidean(x: tuple[int, int], y: tuple[int, int]) -> float:
    return math.hypot(x[0] - y[0], x[1] - y[1])


@lru_cache(maxsize=1 << 18)
def _matching(mine: tuple[Any, ...], other: tuple[Any, ...], apart: Callable[[Any, Any], float]) -> float:
    if not isinstance(mine[0], tuple):  # on a line the order is the best matching
        return float(sum(abs(x - y) for x, y in zip(mine, other, strict=True)))
    return min(round(sum(apart(x, y) for x, y in zip(mine, order, strict=True)), 9) for order in permutations(other))
