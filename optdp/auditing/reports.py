"""The law of one party's report as floats, for choosing events and for comparing: a finite table, or a share of noise.

A share's report may be any integer. The law is cut off where less than e^-REACH of it is left, and what is left
belongs to the bins beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.math.pmf import Pmf
from optdp.noise.laws import Shape, restrict
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.share_cuts import fits
from optdp.noise.shared_noise import SharedNoise

REACH = 45.0
MOST_OUTPUTS = 1 << 20
"""Outputs of one party that are told apart, at most."""

Floats = NDArray[np.float64]
Table = NoiseMatrix | SharedNoise


@dataclass(frozen=True)
class Reports:
    """What a party may report: from `low` on, `law(inputs)` for each output if its input has the law `inputs`."""

    low: int
    width: int
    law: Callable[[Pmf], Floats]


def reports_of(table: Table) -> Reports:
    """The reports of a table; a table with a geometric tail belongs to no plan."""
    if isinstance(table, SharedNoise):
        return _of_share(table)
    if table.q is not None:
        raise ProblemError("A plan's tables are finite or shares of noise. Found a table with a geometric tail.")
    low, high = table.outputs
    return Reports(low, high - low + 1, lambda law: _of_rows(law, table))


def _of_rows(law: Pmf, table: NoiseMatrix) -> Floats:
    report = np.zeros(table.outputs[1] - table.outputs[0] + 1)
    for weight, row in zip(restrict(law, Shape.of(table))[0], table.rows, strict=True):
        chance = float(weight)
        for s, share in row:
            report[s - table.outputs[0]] += chance * (share / table.denominator)
    return report


def _of_share(table: SharedNoise) -> Reports:
    if not fits(table.beta, table.q):
        raise ProblemError(
            "An audit draws many reports at once. Found noise that is too wide for that: verify the plan."
        )
    wide = math.ceil(REACH / -math.log(table.q))
    ends = sorted((0, table.factor * table.last))
    low, high = ends[0] - wide, ends[1] + wide
    if table.rows:
        low, high = min(low, table.outputs[0]), max(high, table.outputs[1])
    if high - low >= MOST_OUTPUTS:
        raise ProblemError(
            f"An audit tells at most {MOST_OUTPUTS:,} outputs of a party apart. Found {high - low + 1:,}: the noise is "
            "too wide. Verify the plan instead."
        )
    return Reports(low, high - low + 1, lambda law: _share_law(law, table, low, high, wide))


def _share_law(law: Pmf, table: SharedNoise, low: int, high: int, wide: int) -> Floats:
    """Inputs without a row, and noise that leaves the outputs, follow the contraction and the noise; the rest the rows.

    The noise of inputs that have a row is added up first, and within the outputs it is replaced by the rows.
    """
    chances = [float(value) for value in law.balls(0, table.last)]
    noise = _noise(table, wide)
    span = abs(table.factor) * table.last + 1
    centres = np.zeros((2, span))  # of inputs without a row, and of those with one
    start = min(0, table.factor * table.last)
    inside = np.zeros(high - low + 1)
    below = np.concatenate(([0.0], np.cumsum(noise)))
    for x, chance in enumerate(chances):
        row = table.row(x)
        moved = [(table.factor * y, weight / table.contraction_denominator) for y, weight in table.contracted(x)]
        for place, share in moved:
            centres[int(row is not None), place - start] += chance * share
        if row is not None:
            first, last = (s + wide for s in table.outputs)
            mass = sum(
                share * (below[_clip(last - place + 1, below)] - below[_clip(first - place, below)])
                for place, share in moved
            )
            for s, weight in row:
                inside[s - low] += chance * mass * (weight / table.denominator)
    shift = start - wide - low
    spread = np.zeros((2, high - low + 1))
    for line, centre in zip(spread, centres, strict=True):
        line[shift : shift + span + len(noise) - 1] = np.convolve(centre, noise)
    if table.rows:
        spread[1, table.outputs[0] - low : table.outputs[1] - low + 1] = 0.0
    return np.asarray(spread.sum(axis=0) + inside)


def _clip(place: int, ends: Floats) -> int:
    return min(max(place, 0), len(ends) - 1)


@lru_cache(maxsize=4)
def _noise(table: SharedNoise, wide: int) -> Floats:
    """`Pr[e]` for `|e| <= wide`."""
    half = np.array([float(value) for value in table.noise.balls(0, wide)])
    return np.concatenate((half[:0:-1], half))
