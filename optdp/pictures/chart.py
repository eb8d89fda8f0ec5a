"""Pictures as data: a report's script draws them, `svg` for notebooks and print, `plot` by matplotlib.

Heat maps of tables of probabilities are sparse, in 32-bit floats, binned only where they are too large. Curves are
rounded, and thinned where there are more points than anybody could see.

An exact map holds every entry of the integer table; the geometric noise around the table is computed by the page from
`q`. A binned one holds, for each block of inputs and outputs, the mean over the inputs of the probability of the
outputs. For looking, not for claims.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_ENTRIES = 250_000
"""Entries of one map: 8 bytes each, and a third more as text."""
SMALLEST = float(np.finfo(np.float32).tiny)
LEAST = 1e-9
"""Probabilities below this are left out of maps of shared noise and of binned ones."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Line = tuple[Ints, Floats]
"""The places of a row, increasing, and its values there."""


@dataclass(frozen=True, eq=False)
class Heat:
    """Rows and columns from `first` to `last` in blocks of `step`, and the entries that are not zero."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    lines: tuple[Line, ...]
    step: tuple[int, int] = (1, 1)
    q: float | None = None
    """The ratio of the geometric noise outside of `table`, if the page is to compute it."""
    table: tuple[int, int, int, int] | None = None
    """First and last input and output of the integer table."""
    least: float = 0.0
    """What is not held may be as likely as this."""
    likely: tuple[int, int] | None = None
    """The likely rows, if they are few among all."""
    down: str = "true sum (input)"
    across: str = "published number (output)"

    @property
    def shape(self) -> tuple[int, int]:
        """How many blocks there are."""
        sizes = zip((self.rows, self.columns), self.step, strict=True)
        tall, wide = ((last - first) // step + 1 for (first, last), step in sizes)
        return tall, wide

    @property
    def binned(self) -> bool:
        return self.step != (1, 1)

    def json(self) -> dict[str, Any]:
        """The map as the page reads it."""
        values = np.concatenate([line[1] for line in self.lines]) if self.lines else np.zeros(0)
        values = np.where(values > 0, np.maximum(values, SMALLEST), 0.0)
        places = np.concatenate([line[0] for line in self.lines]) if self.lines else np.zeros(0, np.int64)
        return {
            "rows": self.rows,
            "columns": self.columns,
            "step": self.step,
            "counts": _text(np.array([len(line[0]) for line in self.lines]), "<i4"),
            "places": _text(places, "<i4"),
            "values": _text(values, "<f4"),
            "q": self.q,
            "table": self.table,
            "least": self.least,
            "likely": self.likely,
        }

    def dense(self) -> Floats:
        """All blocks, with the geometric noise around the table."""
        tall, wide = self.shape
        found = np.zeros((tall, wide))
        if self.q is not None and self.table is not None:
            found = geometric(self.q, np.arange(tall) + self.rows[0], np.arange(wide) + self.columns[0])
            a, b, c, d = self.table
            found[a - self.rows[0] : b + 1 - self.rows[0], c - self.columns[0] : d + 1 - self.columns[0]] = 0.0
        for row, (places, values) in zip(found, self.lines, strict=True):
            row[places] = values
        return found


def binned(lines: Iterable[Line], rows: tuple[int, int], columns: tuple[int, int], most: int = MOST_ENTRIES) -> Heat:
    """Blocks that are so large that all of them would fit: means over inputs of sums over outputs."""
    tall, wide = rows[1] - rows[0] + 1, columns[1] - columns[0] + 1
    side = max(1, math.ceil(math.sqrt(tall * wide / most)))
    down, across = min(side, tall), min(side, wide)
    blocks = np.zeros((math.ceil(tall / down), math.ceil(wide / across)))
    for i, (places, values) in enumerate(lines):
        np.add.at(blocks[i // down], places // across, values)
    sizes = np.minimum(down, tall - down * np.arange(len(blocks)))
    blocks /= sizes[:, None]
    kept = [(np.flatnonzero(row >= LEAST), row[row >= LEAST]) for row in blocks]
    return Heat(rows, columns, tuple(kept), (down, across), least=LEAST)


def geometric(q: float, inputs: Ints, outputs: Ints) -> Floats:
    found: Floats = (1 - q) / (1 + q) * q ** np.abs(inputs[:, None] - outputs[None, :]).astype(float)
    return found


def _text(values: npt.NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")


# ---------------------------------------------------------------------- curves

MOST_POINTS = 12_000


@dataclass(frozen=True, eq=False)
class PlottedCurve:
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
    """Curves over consecutive whole numbers from `first` on, or over any increasing `places`."""

    first: int
    curves: Sequence[PlottedCurve]
    across: str
    """What the places are."""
    up: str
    levels: Sequence[Level] = field(default=())
    log: bool = False
    block: int = 1
    """How many places each value stands for already."""
    places: Floats | None = None
    log_across: bool = False

    @property
    def along(self) -> Floats:
        """Where the values are."""
        if self.places is not None:
            return self.places
        found: Floats = self.first + self.block * np.arange(len(self.curves[0].values), dtype=np.float64)
        return found

    def json(self) -> dict[str, Any]:
        """The chart as the page reads it; of `step` places one value stands for all."""
        size = len(self.curves[0].values)
        step = max(1, math.ceil(size / MOST_POINTS))
        return {
            "first": self.first,
            "step": step * self.block,
            "size": size * self.block,
            "across": self.across,
            "up": self.up,
            "log": self.log,
            "curves": [
                {"name": curve.name, "style": curve.style, "values": _thinned(curve.values, step, self.log)}
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


@dataclass(frozen=True)
class Bars:
    """A few numbers beside each other; the first is the one that the picture is about, None is infinite."""

    rows: tuple[tuple[str, float | None], ...]
    across: str
    """What they measure."""
    log: bool = False

    def lengths(self) -> list[float]:
        """How long each bar is, between 0 and 1; on a logarithmic scale the shortest is still seen."""
        known = [value for _, value in self.rows if value is not None and value > 0]
        low, high = min(known, default=1.0), max(known, default=1.0)

        def length(value: float | None) -> float:
            if value is None:
                return 1.0
            if value <= 0:
                return 0.0
            spread = math.log(high) - math.log(low) if self.log else 0.0
            return 0.08 + 0.92 * (math.log(value) - math.log(low)) / spread if spread > 1e-4 else value / high

        return [length(value) for _, value in self.rows]


Picture = Heat | Chart | Bars


def ticks(low: float, high: float, log: bool = False, most: int = 7) -> list[float]:
    """Round numbers from one end of an axis to the other."""
    if log and high / low >= 10:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / most))
        steps = (1, 2, 5) if last - first < 2 else (1,)
        found = [m * 10.0**k for k in range(first - 1, last + 1, every) for m in steps]
        return [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    rough = (high - low) / (most - 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]
