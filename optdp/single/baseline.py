"""The geometric mechanism: the baseline, and what is left when nothing better can be proved."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.ordered import geometric
from optdp.single.bound import Draft
from optdp.single.lp import formulate
from optdp.single.problem import SingleLTE
from optdp.single.repair import repair

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
    steps, powers = np.arange(size), geometric(q, size)
    table = (1 - q) / (1 + q) * powers[np.abs(steps[:, None] - steps)]
    table[:, 0] = powers / (1 + q)
    table[:, -1] = powers[::-1] / (1 + q)
    chained = replace(lp, chain=math.exp(problem.epsilon / problem.largest), reach=1)
    return repair(chained, Draft.dense(np.asarray(table), None, "baseline", "geometric"))
