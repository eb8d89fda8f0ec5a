"""Curves as the page draws them: rounded, and thinned where there are more points than anybody could see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_POINTS = 12_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """One value for each place; what is not finite is left out."""

    name: str
    values: Floats
    style: str = "line"
    """line, bars or area; an area is drawn to its own scale."""


@dataclass(frozen=True)
class Level:
    """A line across."""

    value: float
    name: str


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves over consecutive whole numbers from `first` on."""

    first: int
    curves: Sequence[Curve]
    across: str
    """What the places are."""
    up: str
    levels: Sequence[Level] = field(default=())
    log: bool = False
    block: int = 1
    """How many places each value stands for already."""

    @property
    def step(self) -> int:
        size = len(self.curves[0].values)
        return max(1, math.ceil(size / MOST_POINTS))

    def json(self) -> dict[str, Any]:
        """The chart as the page reads it; of `step` places one value stands for all."""
        return {
            "first": self.first,
            "step": self.step * self.block,
            "size": len(self.curves[0].values) * self.block,
            "across": self.across,
            "up": self.up,
            "log": self.log,
            "curves": [
                {"name": curve.name, "style": curve.style, "values": _thinned(curve.values, self.step, self.log)}
                for curve in self.curves
            ],
            "levels": [{"value": level.value, "name": level.name} for level in self.levels],
        }


def _thinned(values: Floats, step: int, log: bool) -> list[float | None]:
    """The largest value of every `step`; on a logarithmic scale the one that is farthest from 1."""
    found: list[float | None] = []
    for start in range(0, len(values), step):
        part = values[start : start + step]
        part = part[np.isfinite(part) & ((part > 0) | (not log))]
        if not len(part):
            found.append(None)
            continue
        at = np.argmax(np.abs(np.log(part)) if log else part)
        found.append(float(f"{part[at]:.6g}"))
    return found
