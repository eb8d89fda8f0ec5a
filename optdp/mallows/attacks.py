"""Who is found out by a vote of the neighbours (E, sections 3 and 6).

Everybody reports by k-RR of `eps`, and a shuffler moves the reports: `z[i] = y[moved[i]]`. The adversary guesses `x[i]`
by the commonest of the values `z[j]` at the 25 records nearest to `i`. Reports are drawn again and again while the
shuffler's permutation stays, as in the paper. A record is vulnerable if it is guessed in more than 90% of the draws;
`rho` is the fraction of vulnerable records. Among values that are equally common each is guessed as often.

These are simulations: they say how well one adversary does, and no guarantee follows from a low `rho`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from optdp.errors import ProblemError
from optdp.mallows.crescents import uniforms
from optdp.mallows.groups import Whole
from optdp.mallows.mechanism import check_order, shuffled
from optdp.mallows.neighbourhoods import Reals, adjacency, check_points, runs
from optdp.mallows.sampling import uniform_word
from optdp.math.exact import check_between, check_whole, shown
from optdp.math.source import Source

NEIGHBOURS = 25
CHUNK = 4096
"""How many records are looked at in one go."""

Shuffle = Callable[[Source], Whole]
"""Draws a shuffler's permutation: record `i` is given the report of record `moved[i]`."""


def no_shuffle(n: int) -> Shuffle:
    """Reports stay with their people: local differential privacy alone."""
    return lambda source: np.arange(n, dtype=np.int64)


def uniform_shuffle(n: int) -> Shuffle:
    """The shuffle model: every permutation is as likely."""
    return lambda source: uniform_word(source, n)


def order_shuffle(order: Whole, q: Fraction, distance: str = "kendall") -> Shuffle:
    """The Mallows shuffle around an order."""
    check_order(order, len(order))
    records = np.arange(len(order), dtype=np.int64)
    return lambda source: np.asarray(shuffled(records, order, q, source, distance))


def nearest(points: ArrayLike, source: Source, count: int = NEIGHBOURS) -> Whole:
    """The records nearest to each, without itself, a row for each; some of those at the same place by lot."""
    where = check_points(points, "euclidean")
    n = len(where)
    check_whole(count, "The number of neighbours", 1, max(1, n - 1))
    spans = np.ptp(where, axis=0).max() or 1.0
    lots = spans * 1e-9 * uniforms(source, where.size).reshape(where.shape)
    _, found = cKDTree(where + lots).query(where + lots, count + 1)
    others = found != np.arange(n)[:, None]
    others[others.all(axis=1), -1] = False
    chosen: Whole = found[others].reshape(n, count)
    return chosen


def nearest_by_hops(edges: Any, source: Source, n: int | None = None, count: int = NEIGHBOURS) -> Whole:
    """The nodes nearest to each in a graph, by lot among those as far; -1 where a node cannot reach so many."""
    joined = adjacency(edges, n)
    n = joined.shape[0]
    check_whole(count, "The number of neighbours", 1, max(1, n - 1))
    starts, ends = joined.indptr.astype(np.int64), joined.indices.astype(np.int64)
    found, seen = np.full((n, count), -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    for node in range(n):
        seen[node], held, front = node, 0, np.array([node])
        while held < count:
            ahead = ends[runs(starts[front], starts[front + 1] - starts[front])]
            front = np.unique(ahead[seen[ahead] != node])
            if not len(front):
                break
            seen[front] = node
            drawn = front[np.argsort(source.words(len(front)))][: count - held]
            found[node, held : held + len(drawn)] = drawn
            held += len(drawn)
    return found


def reports(values: Whole, k: int, eps: float, source: Source) -> Whole:
    """k-RR: a uniform value with probability `k / (e^eps + k - 1)`, else the true one; in floats, for simulations."""
    drawn, blank = uniforms(source, len(values)), blank_share(k, eps)
    if blank == 0.0:
        return values
    return np.where(drawn < blank, np.minimum((drawn * (k / blank)).astype(np.int64), k - 1), values)


def blank_share(k: int, eps: float) -> float:
    """How often k-RR answers by a uniform value; never for an infinite `eps`."""
    if not eps > 0:
        raise ProblemError(f"eps must be a number above 0. Found {shown(eps)}. Write inf for reports without noise.")
    return k / (math.exp(eps) + k - 1) if eps < 700 else 0.0


def recovery(
    neighbours: Whole, values: ArrayLike, k: int, eps: float, shuffle: Shuffle, source: Source, trials: int = 50
) -> Reals:
    """How often each record's value is guessed: the fraction of `trials` draws of all reports, for one permutation."""
    held = check_values(values, k)
    n = len(held)
    if neighbours.ndim != 2 or len(neighbours) != n or neighbours.max(initial=0) >= n or neighbours.min(initial=0) < -1:
        raise ProblemError(f"Neighbours must be a row of records for each of the {n:,} values. Found other ones.")
    check_whole(trials, "trials", 1, 10**6)
    moved = np.append(shuffle(source), n)
    asked = moved[neighbours]  # the entry -1 leads to the place n, where nobody reports
    right = np.zeros(n, dtype=np.int64)
    for _ in range(trials):
        renamed = np.argsort(uniforms(source, k)).astype(np.uint8)  # the smallest of equals wins: any, thus
        told = np.append(renamed[reports(held, k, eps, source)], np.uint8(k))
        truth = renamed[held]
        for start in range(0, n, CHUNK):
            votes = told[asked[start : start + CHUNK]]
            right[start : start + CHUNK] += _winners(votes, k) == truth[start : start + CHUNK]
    return right / trials


def vulnerable(
    neighbours: Whole,
    values: ArrayLike,
    k: int,
    eps: float,
    shuffle: Shuffle,
    source: Source,
    trials: int = 50,
    share: float = 0.9,
) -> float:
    """The fraction `rho` of records that are guessed in more than a `share` of the draws."""
    check_between(share, "share", 0.0, 1.0)
    return float(np.mean(recovery(neighbours, values, k, eps, shuffle, source, trials) > share))


def check_values(values: ArrayLike, k: int) -> Whole:
    """The values as whole numbers in `0..k-1`, or what is wrong with them."""
    check_whole(k, "k", 2, 255)
    held = np.asarray(values)
    if held.ndim != 1 or not held.size or held.dtype.kind not in "iu":
        raise ProblemError("Values must be a list of whole numbers. Found something else. Number them from 0.")
    wrong = np.flatnonzero((held < 0) | (held >= k))
    if len(wrong):
        raise ProblemError(f"Values must be from 0 to {k - 1}. Found {held[wrong[0]]} for record {wrong[0]}.")
    return held.astype(np.int64)


def _winners(votes: Any, k: int) -> Whole:
    """The commonest value of each row, the smallest of those as common."""
    best = (votes == 0).sum(axis=1, dtype=np.int32)
    winner = np.zeros(len(votes), dtype=np.int64)
    for value in range(1, k):
        count = (votes == value).sum(axis=1, dtype=np.int32)
        better = count > best
        winner[better], best[better] = value, count[better]
    return winner
