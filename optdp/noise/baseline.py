"""The geometric mechanism: the baseline, and what is left when nothing better can be proved."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optdp.errors import ProblemError
from optdp.noise.draft import Draft
from optdp.noise.lp import formulate
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.repair import repair
from optdp.noise.single import SingleLTE

CLAMPED_LIMIT = 1200
"""Largest sum for which the clamped mechanism, a full square table, is written out."""


def geometric_mechanism(problem: SingleLTE) -> NoiseMatrix:
    """Geometric noise at `epsilon/D`; without a tail, clamped to `0..last` (which is post-processing).

    With a tail this is exact: the table has a single entry `x -> x`, which is what geometric noise does there, and
    every other input gets plain noise. To be called within `precision()`.
    """
    if problem.tail == "geometric":
        x = problem.populations[0].total.mode
        return NoiseMatrix((x, x), (x, x), 2, (((x, 2),),), problem.q, "geometric", problem.last)
    if problem.last > CLAMPED_LIMIT:
        raise ProblemError(
            f"Clamped geometric noise is a full table and is written for sums up to {CLAMPED_LIMIT}. "
            f'Found {problem.last}. Use tail = "geometric".'
        )
    lp = formulate(problem)
    q, size = float(problem.q), len(lp.inputs)
    table = (1 - q) / (1 + q) * q**lp.distances
    table[:, 0] = q**lp.inputs / (1 + q)
    table[:, -1] = q ** (size - 1 - lp.inputs) / (1 + q)
    chained = replace(lp, chain=math.exp(problem.epsilon / problem.largest))
    return repair(chained, Draft.dense(np.asarray(table), None, "baseline", "geometric"))
