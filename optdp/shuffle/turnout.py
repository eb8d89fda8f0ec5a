"""Epsilon against the number of people who do as the design says, for any design.

The deployed numbers stay as they are, and so does delta. What `h` of `n` people hide is proved as the claim is (see
`honest`): whoever they are, and even if the others tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from optdp.errors import ProblemError
from optdp.numbers.exact import down, finite
from optdp.sheet import Cell, Listing, figure
from optdp.shuffle.gamma import promised
from optdp.shuffle.honest import counts
from optdp.shuffle.metric.design import Design, worst_epsilon
from optdp.work import Progress, silent

Turnout = tuple[tuple[int, float], ...]
"""Numbers of people, all of them first, and the epsilon if only so many add their noise; infinite if none is proved."""


def of_noise(
    design: Design, delta: Fraction, furthest: int, at: Sequence[int] = (), progress: Progress = silent
) -> Turnout:
    """Of a sum with metric privacy, per unit up to the furthest distance; at some numbers of people, or many."""
    rows = []
    for count in at or counts(design.n, design.fewest):
        progress(f"what {count:,} of {design.n:,} people hide")
        rows.append((count, worst_epsilon(design.of_honest(count), down(delta), furthest)))
    return tuple(rows)


def of_responses(
    n: int, least: int, k: int, gamma: Fraction, delta: Fraction, at: Sequence[int] = (), progress: Progress = silent
) -> Turnout:
    """Of randomized response."""
    rows = []
    for count in at or counts(n, least, 2):
        progress(f"what {count:,} of {n:,} people hide")
        try:
            rows.append((count, promised(count, k, gamma, None, delta, progress)[0]))
        except ProblemError:
            rows.append((count, math.inf))
    return tuple(rows)


def listing(found: Turnout, least: int) -> Listing:
    """As a table; the number that the design counts on stands out."""
    n, worst = found[0][0], max((epsilon for _, epsilon in found if math.isfinite(epsilon)), default=1.0) or 1.0
    rows = tuple(
        (
            Cell(f"{count:,} of {n:,}", "strong" if count == least else ""),
            figure(epsilon),
            Cell("", "good", epsilon / worst) if math.isfinite(epsilon) else "",
        )
        for count, epsilon in found
    )
    return Listing(("honest people", "epsilon", ""), rows)


def summary(found: Turnout) -> list[list[float | None]]:
    """As it is written in JSON."""
    return [[count, finite(epsilon)] for count, epsilon in found]
