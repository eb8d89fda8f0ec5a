"""A noise matrix as a privacy loss distribution of dp-accounting, to compose with itself and with other mechanisms.

`H`, the profile of a table, is convex, `H(0) = 1`, it never grows, and `H(e^eps) = 0` at the ordinary epsilon. Such a
function is the profile of a pair of laws, one that dominates every pair of neighbouring inputs, in both orders (proof
and references: docs/mathematics.md, "A dominating pair of a table"). Here `H` is bounded from above at losses
`l = step * index`, and the lower convex hull of these points lies above `H`. The hull is the profile of a pair whose
losses are at its corners: the second law has there what the slope gains, and the first has `e^l` times that.

`H` is its own mirror image, `H(1/a) = 1 - 1/a + H(a)/a`, so that losses of at least 0 are enough. The half of the hull
to the right of 1 is that of the points at `a >= 1` and of the point `(-1, 1)`; the masses of the other half are mirror
images, `P(-l) = Q(l)`.

**Rounding.** The hull is one of exact rationals: coordinates `e^l` are rounded down at 256 bits, which puts every
point's height at a place slightly to the left. `TINY` in each height makes up for it, as no slope is below -1; the last
one, of height 0, lies beyond the ordinary epsilon by more than that. Then the masses are raised by a factor far above
what floats lose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from optdp.artifact import verify
from optdp.errors import CertificateError, ProblemError
from optdp.extras import install
from optdp.mechanism.added_noise import table_only
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import ball, check_between, check_whole, floor_scaled, log_upper, precision
from optdp.single.certify import near_rows, row_ratios

BITS = 256
"""Of the hull's coordinates, after the point."""
HEIGHT = 300
"""The same of its heights, which are at least `TINY`: no bit of a float is cut."""
BEYOND = Fraction(1, 1 << 128)
"""By how much the largest loss exceeds the ordinary epsilon, at least."""
SAFE = 1.0 + 2.0**-32
"""What every mass is raised by, for its round-off and that of sums over it."""
LARGEST_GRID = 2_000_000
TERMS, POINTS, FEWEST = 20_000_000, 50_000_000, 256
"""How much is summed up: probabilities of all pairs; points of all pairs' profiles; losses looked at, at least."""


@dataclass(frozen=True)
class DominatingPair:
    """Two laws whose log-quotient is `step * index`: the first has `masses[index]`, the second `e^-loss` times that."""

    step: float
    masses: dict[int, float]
    epsilon: Fraction
    """The ordinary epsilon, which no loss exceeds but for rounding to the step."""
    note: str
    """What the pair is worth: the table's whole profile, or only its epsilon."""


def pld(matrix: NoiseMatrix, largest: int = 1, discretization: float = 1e-4) -> Any:
    """A pessimistic `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`.

    Neighbours are data sets whose sums differ by at most `largest`, what one person can contribute. It is the same in
    both directions. Only equal discretizations compose. A table that is too large for its profile to be summed up
    (beyond 20 million terms, that is, some 3,000 rows), or with an ordinary epsilon above 200, gets the pair of
    randomized response at its ordinary epsilon instead; the attribute `optdp_note` of what is returned says which of
    the two it is.
    """
    try:
        pmf = import_module("dp_accounting.pld.pld_pmf")
        module = import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise ProblemError(f"This needs dp-accounting. Install it: {install('accounting')}.") from None
    pair = dominating_pair(matrix, largest, discretization)
    found = module.PrivacyLossDistribution(pmf.create_pmf(pair.masses, pair.step, 0.0, pessimistic_estimate=True))
    found.optdp_note = pair.note
    return found


def pld_from(path: str | Path, discretization: float = 1e-4) -> Any:
    """The privacy loss distribution of an artifact, after all its claims have been verified."""
    checked = verify(path)
    return pld(table_only(checked.matrix, "dp-accounting"), checked.problem.largest, discretization)


def dominating_pair(matrix: NoiseMatrix, largest: int = 1, discretization: float = 1e-4) -> DominatingPair:
    """The pair that stands for all neighbouring inputs of `matrix`, rounded to the private side."""
    check_between(discretization, "discretization", 1e-9, 1.0)
    step = float(discretization)
    epsilon = by_distance(matrix, largest).epsilon(min(largest, matrix.last))
    top = math.ceil((epsilon + BEYOND) / Fraction(step))
    if top > LARGEST_GRID:
        raise ProblemError(
            f"discretization must be at least epsilon / {LARGEST_GRID:,}, here {float(epsilon) / LARGEST_GRID:.1e}. "
            f"Found {step:g}."
        )
    neighbours = Neighbours(matrix, largest)
    if epsilon > LARGEST_LOSS or neighbours.count * neighbours.terms > TERMS:
        note = "randomized response at the ordinary epsilon: the table is too large for its whole profile"
        return DominatingPair(step, corners(step, [top], [0.0]), epsilon, note)
    nodes = min(top, max(POINTS // max(neighbours.count, 1), FEWEST))
    index = np.unique(np.floor(np.linspace(0.0, top, nodes + 1)[:-1])).astype(np.int64)
    deltas = profile(neighbours, np.asarray(index * step, dtype=np.float64))
    masses = corners(step, [*index.tolist(), top], [*deltas.tolist(), 0.0])
    return DominatingPair(step, masses, epsilon, f"the whole profile, at {len(index) + 1:,} losses")


def corners(step: float, index: list[int], heights: list[float]) -> dict[int, float]:
    """The masses of the pair whose profile is the hull of the points `(e^(step index), height)`; the last height is 0.

    `index` grows and starts at 0 or above. With one point of height 0 this is randomized response.
    """
    with precision(2 * BITS + math.ceil(2 * step * index[-1])):
        unit = ball(Fraction(step))
        across = [floor_scaled((unit * i).exp(), BITS) for i in index]
    one, height = 1 << BITS, 1 << HEIGHT
    points = [(-one, height), *zip(across, (math.ceil(Fraction(y) * height) for y in heights), strict=True)]
    hull: list[int] = []
    for i, (x, y) in enumerate(points):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = points[hull[-2]], points[hull[-1]]
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append(i)
    slopes = [(points[b][1] - points[a][1], points[b][0] - points[a][0]) for a, b in pairwise(hull)] + [(0, 1)]
    masses: dict[int, float] = {}
    for i, ((rise, run), (next_rise, next_run)) in zip(hull[1:], pairwise(slopes), strict=True):
        gain, scale = next_rise * run - rise * next_run, run * next_run * height
        second, first = gain * one / scale, gain * points[i][0] / scale
        for loss, mass in ((-index[i - 1], second), (index[i - 1], first)):
            masses[loss] = masses.get(loss, 0.0) + max(mass * SAFE, 5e-324)
    return dict(sorted(masses.items()))


# ---------------------------------------------------------------------- what a table reveals without any prior

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
