"""What a table gives away without any prior, by the distance of the two inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from flint import arb

from optdp.errors import CertificateError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import ball, check_whole, log_upper, precision
from optdp.single.certify import near_rows, row_ratios

WORK = 20_000_000
"""Quotients that are looked at, at most; beyond, only neighbouring inputs are compared."""


@dataclass(frozen=True)
class ByDistance:
    """`steps[d]` is at least `log Pr[s|x] / Pr[s|x']` for every output and any inputs at most `d` apart."""

    steps: tuple[Fraction, ...]

    @property
    def reach(self) -> int:
        return len(self.steps) - 1

    def epsilon(self, distance: int) -> Fraction:
        """The bound for any distance: go in steps of `reach`, and then the rest; the logarithms add up."""
        whole, rest = divmod(distance, self.reach)
        return whole * self.steps[-1] + self.steps[rest]


def by_distance(matrix: NoiseMatrix, largest: int = 1) -> ByDistance:
    """Proved bounds for inputs up to `largest` apart. Raises where some output tells two inputs apart for certain.

    Inputs that are both served by noise alone, or both by the row at one edge of the table, are compared through their
    noise: what is done with the noisy input afterwards is the same for both. Its logarithm is `d log(1/q)`.
    """
    check_whole(largest, "largest", 1)
    width = matrix.outputs[1] - matrix.outputs[0] + 1
    reach = max(min(largest, matrix.last), 1)
    if reach * (len(matrix.rows) + reach) * width > WORK:
        reach = 1
    with precision():
        matrix = replace(matrix)  # so that its balls are of this precision
        step = log_upper(1 / matrix.q) if matrix.q is not None else Fraction(0)
        worst = [d * step for d in range(reach + 1)]
        for d, ratio in row_ratios(matrix, reach):
            if ratio is None:
                raise CertificateError(
                    "This table's ordinary epsilon is infinite: it promises nothing without the prior, and other "
                    "libraries know no priors. Solve the problem with fallback_epsilon, and use that table."
                )
            worst[d] = max(worst[d], log_upper(ratio))
    return ByDistance(tuple(accumulate(worst, max)))


Floats = npt.NDArray[np.float64]

MARGIN = 2.0**-44
LARGEST_LOSS = 200
"""Up to here the bounds on round-off hold."""
TINY = 2.0**-200
"""More than all that is lost where probabilities are below the smallest floats."""


@dataclass(frozen=True)
class Neighbours:
    """The pairs of inputs of a table that are at most `largest` apart, each as two lists of probabilities."""

    matrix: NoiseMatrix
    largest: int

    @property
    def reach(self) -> int:
        return min(self.largest, self.matrix.last)

    @property
    def count(self) -> int:
        """At most so many pairs, both orders counted."""
        return 2 * self.reach * (len(self.matrix.rows) + self.reach + 1)

    @property
    def terms(self) -> int:
        """The terms of one pair, at most."""
        return self.matrix.outputs[1] - self.matrix.outputs[0] + 5 + self.reach

    def pairs(self) -> Iterator[tuple[Floats, Floats]]:
        """Probabilities under one input and under the other, output by output, zero for both left out."""
        with precision():
            matrix = replace(self.matrix)
            first, last = matrix.inputs
            laws = {x: _inside(matrix, x) for x in near_rows(matrix, self.reach)}
            for x, law in laws.items():
                for y in range(x + 1, x + self.reach + 1):
                    if y not in laws or y < first or x > last:
                        continue  # both on one side of the table: through their noise, below
                    tail = np.array(_tail(matrix, x, y)).reshape(-1, 2)
                    yield np.append(law, tail[:, 0]), np.append(laws[y], tail[:, 1])
            if matrix.q is not None and (first, last) != (0, matrix.last):
                # Inputs without a row: the same is done with their noisy values, so their noise tells at least as much.
                for d in range(1, self.reach + 1):
                    noise = np.array(_tail(replace(matrix, outputs=(0, -1)), 0, d))
                    yield noise[:, 0], noise[:, 1]


def profile(neighbours: Neighbours, losses: Floats) -> Floats:
    """Upper bounds of `H(e^l)` for each `l` of `losses`, which lie from 0 to `LARGEST_LOSS`."""
    factors = np.exp(losses)
    worst = np.zeros(len(losses))
    for one, other in neighbours.pairs():
        for p, r in ((one, other), (other, one)):
            np.maximum(worst, _divergence(p, r, factors), out=worst)
    return np.asarray(np.minimum(worst + TINY, 1.0), dtype=np.float64)


def _divergence(p: Floats, r: Floats, factors: Floats) -> Floats:
    """`sum of max(0, p - a r)` for each factor `a`, raised by its round-off."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(p > 0.0, p / r, 0.0)
    order = np.argsort(-quotients, kind="stable")
    above = np.searchsorted(-quotients[order], -factors * (1.0 - MARGIN), side="right")
    mass, others = np.append(0.0, np.cumsum(p[order])), np.append(0.0, np.cumsum(r[order]))
    slack = 2.0 * MARGIN + (4 * len(p) + 2 * LARGEST_LOSS + 64) * 2.0**-53
    return np.asarray(mass[above] * (1.0 + slack) - factors * others[above], dtype=np.float64)


def _inside(matrix: NoiseMatrix, x: int) -> Floats:
    """`Pr[s|x]` for `s` in the table's outputs."""
    low, high = matrix.outputs
    row = matrix.row(x)
    if row is None:
        return np.array([float(matrix.probability(x, s).mid()) for s in range(low, high + 1)])
    law = np.zeros(high - low + 1)
    scale = float(matrix.inside_mass(x).mid())
    for s, weight in row:
        law[s - low] = scale * (weight / matrix.denominator)
    return law


def _tail(matrix: NoiseMatrix, x: int, y: int) -> list[tuple[float, float]]:
    """Probabilities of what lies outside the outputs, under `x` and `y > x`; a run of one quotient is one term."""
    if matrix.q is None:
        return []
    low, high = matrix.outputs
    q = ball(matrix.q)

    @lru_cache
    def power(k: int) -> arb:
        return q**k

    def run(x: int, start: int | None, end: int | None) -> arb:
        """The noise around `x` from `start` to `end`, both on one side of `x`; None is infinite."""
        if end is not None and end <= x:
            near, far = x - end, None if start is None else x - start + 1
        else:
            assert start is not None
            near, far = start - x, None if end is None else end - x + 1
        return (power(near) - (0 if far is None else power(far))) / (1 + q)

    pieces: list[tuple[int | None, int | None]] = []
    if low > high:  # no outputs at all: the noise alone
        pieces = [(None, x), *((s, s) for s in range(x + 1, y)), (y, None)]
    else:
        pieces = [(None, min(x, low - 1)), (max(y, high + 1), None)]
        pieces += [(high + 1, x)] if x > high else []
        pieces += [(y, low - 1)] if y < low else []
        pieces += [(s, s) for s in range(x + 1, y) if not low <= s <= high]
    return [(float(run(x, *piece).mid()), float(run(y, *piece).mid())) for piece in pieces]
