"""Shuffled divergences by brute force in rational numbers; nothing here comes from the package.

A channel is a matrix of Fractions, `channel[value][message]`. The shuffled messages of a data set are a histogram; its
law is built person by person. For neighbours `(x, rest)` and `(x', rest)` and `a = e^eps`

    D_a = sum over histograms h of (P(h) - a Q(h))_+,

which is exact for a rational `a`, and falls as `a` grows: rationals below and above `e^eps` enclose it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations

Channel = Sequence[Sequence[Fraction]]
Law = dict[tuple[int, ...], int]


def krr(k: int, p: Fraction) -> Channel:
    """k-ary randomized response with the ratio `p`, so eps0 = log p."""
    return [[(p if x == j else Fraction(1)) / (p + k - 1) for j in range(k)] for x in range(k)]


def extremal(d: int, p: Fraction) -> Iterator[Channel]:
    """Every vertex of the channels with `d` values whose columns are multiples of patterns in `{1,p}^d`.

    Every (log p)-LDP channel of `d` values is what some mixture of these and of a channel that says nothing becomes
    where messages are merged: a column within `[m, p m]^d` is a sum of multiples of patterns.
    """
    patterns = [[p if bits >> x & 1 else Fraction(1) for x in range(d)] for bits in range(1, 2**d - 1)]
    seen = set()
    for chosen in combinations(patterns, d):
        weights = _solve([[column[x] for column in chosen] for x in range(d)])
        if weights is not None and min(weights) >= 0:
            columns = tuple(tuple(w * v for v in column) for w, column in zip(weights, chosen, strict=True) if w > 0)
            if columns not in seen:
                seen.add(columns)
                yield [[column[x] for column in columns] for x in range(d)]


def side_by_side(share: Fraction, one: Channel, two: Channel) -> Channel:
    """With probability `share` a message of the one channel, else of the other, and it is seen of which."""
    return [[share * v for v in a] + [(1 - share) * v for v in b] for a, b in zip(one, two, strict=True)]


def processed(channel: Channel, after: Channel) -> Channel:
    """Every message of `channel` goes through the channel `after`."""
    columns = list(zip(*after, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns] for row in channel
    ]


def ratio(channel: Channel) -> Fraction:
    """e^eps0 of the channel: the largest ratio in a column."""
    worst: Fraction = max(max(column) / min(column) for column in zip(*channel, strict=True))
    return worst


def divergence(channel: Channel, x: int, x2: int, rest: Sequence[int], factor: Fraction) -> Fraction:
    """`D_factor` of the shuffled data sets `(x, rest)` and `(x2, rest)`."""
    rows, unit = _integers(channel)
    law = _law(rows, rest)
    return _divergence(_joined(law, rows[x]), _joined(law, rows[x2]), factor, unit ** (len(rest) + 1))


def worst_exact(channel: Channel, n: int, factor: Fraction) -> Fraction:
    """The largest `D_factor` over all ordered pairs of values and all data sets of the others."""
    rows, unit = _integers(channel)
    worst = Fraction(0)
    for rest in combinations_with_replacement(range(len(rows)), n - 1):
        law = _law(rows, rest)
        joined = [_joined(law, row) for row in rows]
        for x, x2 in permutations(range(len(rows)), 2):
            worst = max(worst, _divergence(joined[x], joined[x2], factor, unit**n))
    return worst


def worst(channel: Channel, n: int, eps: Fraction) -> tuple[float, float]:
    """Floats that enclose the largest divergence at `eps` over all neighbouring data sets of `n` people."""
    below, above = exp_enclosure(eps)
    low, high = float(worst_exact(channel, n, above)), float(worst_exact(channel, n, below))
    return max(0.0, math.nextafter(low, -1.0)), math.nextafter(high, 2.0)


def exp_enclosure(eps: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above `e^eps` for `0 <= eps <= 8`: the series, whose rest is below its first term twice."""
    total = term = Fraction(1)
    for i in range(1, 120):
        term = term * eps / i
        total += term
    scale = 2**200
    return Fraction(math.floor(total * scale), scale), Fraction(math.ceil((total + 2 * term) * scale), scale)


def _integers(channel: Channel) -> tuple[list[list[int]], int]:
    """The channel over its common denominator."""
    unit = math.lcm(*(value.denominator for row in channel for value in row))
    return [[int(value * unit) for value in row] for row in channel], unit


def _law(rows: Sequence[Sequence[int]], people: Iterable[int]) -> Law:
    """The histogram of the messages of `people`, in units of the common denominator's power."""
    law: Law = {(0,) * len(rows[0]): 1}
    for value in people:
        law = _joined(law, rows[value])
    return law


def _joined(law: Law, row: Sequence[int]) -> Law:
    """The histogram with one more message, of the law `row`."""
    result: Law = {}
    for histogram, weight in law.items():
        for j, chance in enumerate(row):
            if chance:
                key = (*histogram[:j], histogram[j] + 1, *histogram[j + 1 :])
                result[key] = result.get(key, 0) + weight * chance
    return result


def _divergence(first: Law, second: Law, factor: Fraction, unit: int) -> Fraction:
    up, down = factor.numerator, factor.denominator
    total = sum(max(down * weight - up * second.get(key, 0), 0) for key, weight in first.items())
    return Fraction(total, down * unit)


def _solve(matrix: list[list[Fraction]]) -> list[Fraction] | None:
    """The solution of `matrix @ w = 1`, or None where it is not unique."""
    size = len(matrix)
    rows = [[*row, Fraction(1)] for row in matrix]
    for i in range(size):
        pivot = next((r for r in range(i, size) if rows[r][i] != 0), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(size):
            if r != i and rows[r][i] != 0:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]
