"""A noise matrix as a privacy loss distribution of dp-accounting, to compose with itself and with other mechanisms.

`H` of `optdp.bridges.profile` is convex, `H(0) = 1`, it never grows, and `H(e^eps) = 0` at the ordinary epsilon. Such a
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
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from optdp.artifact import verify
from optdp.bridges.profile import LARGEST_LOSS, Neighbours, by_distance, profile
from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import ball, check_between, floor_scaled, precision

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
        raise ProblemError("This needs dp-accounting. Install it: pip install 'optdp[accounting]'.") from None
    pair = dominating_pair(matrix, largest, discretization)
    found = module.PrivacyLossDistribution(pmf.create_pmf(pair.masses, pair.step, 0.0, pessimistic_estimate=True))
    found.optdp_note = pair.note
    return found


def pld_from(path: str | Path, discretization: float = 1e-4) -> Any:
    """The privacy loss distribution of an artifact, after all its claims have been verified."""
    checked = verify(path)
    return pld(checked.matrix, checked.problem.largest, discretization)


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
