"""The privacy profile of a table: the hockey-stick divergence of its worst pair of neighbouring inputs.

    H(a) = max over inputs x, x' at most D apart of  sum over s of max(0, Pr[s|x] - a Pr[s|x'])

In floating point, and never below the truth. For one pair, sort the outputs by `Pr[s|x] / Pr[s|x']`. The sum is
`A - a B`, where `A` and `B` are the probabilities of the outputs whose quotient is above `a`: two running sums. Of
geometric tails, all outputs below both inputs have one quotient, and all above both have one: they are one term each.

**Round-off**, with `u = 2^-53`, `n` terms and `a = e^l`: probabilities are right within `4u`, running sums of positive
numbers within `n u` more, `a` within `(l + 4) u`. Outputs are taken in whose quotient seems to be at least
`a (1 - MARGIN)`, so that none above `a` is missed. One that is taken in although its quotient is below `a` lowers the
sum by at most `2 MARGIN` of its own probability. So `A - a B` errs by at most `(2 MARGIN + (2n + l + 20) u) A`, which
is added. That is a tiny share of `A`, a probability of losses above `l`, and so it does not blur small deltas.
Probabilities that no float can hold are covered by `TINY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from flint import arb

from optdp.math.exact import ball, precision
from optdp.noise.certify import near_rows
from optdp.noise.matrix import NoiseMatrix

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
