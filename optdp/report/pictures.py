"""Pictures as the page draws them.

Heat maps of tables of probabilities are sparse, in 32-bit floats, binned only where they are too large. Curves are
rounded, and thinned where there are more points than anybody could see.

An exact map holds every entry of the integer table; the geometric noise around the table is computed by the page from
`q`. A binned one holds, for each block of inputs and outputs, the mean over the inputs of the probability of the
outputs. For looking, not for claims.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import precision
from optdp.people.population import Population
from optdp.report.words import moments

MOST_ENTRIES = 250_000
"""Entries of one map: 8 bytes each, and a third more as text."""
SMALLEST = float(np.finfo(np.float32).tiny)
LEAST = 1e-9
"""Probabilities below this are left out of maps of shared noise and of binned ones."""
MARGIN = 40
"""The most outputs that are shown on either side of a table with geometric tails."""
FAR = 10_000
"""Shares of noise are looked at up to this distance."""
WHOLE = 400
"""Up to this input all of them are shown, also those without a row."""

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
            found = _geometric(self.q, np.arange(tall) + self.rows[0], np.arange(wide) + self.columns[0])
            a, b, c, d = self.table
            found[a - self.rows[0] : b + 1 - self.rows[0], c - self.columns[0] : d + 1 - self.columns[0]] = 0.0
        for row, (places, values) in zip(found, self.lines, strict=True):
            row[places] = values
        return found


def of_table(table: NoiseMatrix | SharedNoise | SeededMaps, population: Population, most: int = MOST_ENTRIES) -> Heat:
    """The map of one party's table."""
    if isinstance(table, SharedNoise):
        return of_shared(table, population, most)
    return of_matrix(table.matrix if isinstance(table, SeededMaps) else table, population, most)


def of_matrix(matrix: NoiseMatrix, population: Population, most: int = MOST_ENTRIES) -> Heat:
    """The map of one entity's table, with the geometric noise near it."""
    heat = _of_matrix(matrix, population, most)
    mean, deviation = moments(population)
    first, last = heat.rows
    low, high = max(first, math.floor(mean - 4 * deviation)), min(last, math.ceil(mean + 4 * deviation))
    return replace(heat, likely=(low, high)) if low < high and high - low < (last - first) / 2 else heat


def _of_matrix(matrix: NoiseMatrix, population: Population, most: int) -> Heat:
    first, last = matrix.inputs
    low, high = matrix.outputs
    rows = (first, last)
    if matrix.outside != "error":
        mean, deviation = moments(population)
        near = (max(0, math.floor(mean - 6 * deviation)), min(matrix.last, math.ceil(mean + 6 * deviation)))
        rows = (0, matrix.last) if matrix.last <= WHOLE else (min(first, near[0]), max(last, near[1]))
    columns = (low, high)
    if matrix.q is not None:
        more = min(MARGIN, max(2, math.ceil(-6 / math.log(float(matrix.q)))))
        columns = (min(low, rows[0]) - more, max(high, rows[1]) + more)
    entries = sum(map(len, matrix.rows))
    if matrix.outside == "clamp":
        entries += (first - rows[0]) * len(matrix.rows[0]) + (rows[1] - last) * len(matrix.rows[-1])
    if entries <= most:
        lines = tuple(_lines(matrix, rows, columns))
        served = rows if matrix.outside == "clamp" else (first, last)
        q = None if matrix.q is None else float(matrix.q)
        return Heat(rows, columns, lines, q=q, table=(*served, low, high))
    return binned(_with_tails(matrix, rows, columns), rows, columns, most)


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


def of_shared(noise: SharedNoise, population: Population, most: int = MOST_ENTRIES) -> Heat:
    """The map of a party that adds a share of noise, near the likely inputs."""
    mean, deviation = moments(population)
    rows = (max(0, math.floor(mean - 6 * deviation)), min(noise.last, math.ceil(mean + 6 * deviation)))
    if noise.last <= WHOLE:
        rows = (0, noise.last)
    if rows[1] - rows[0] > 4 * WHOLE:
        middle = round(mean)
        rows = (max(0, middle - 2 * WHOLE), min(noise.last, middle + 2 * WHOLE))
    ends = sorted(noise.factor * x for x in rows)
    columns = (ends[0] - MARGIN, ends[1] + MARGIN)
    lines = list(_shared_lines(noise, rows, columns))
    used = np.concatenate([places for places, _ in lines])
    if len(used):  # no empty margins
        cut = max(0, int(used.min()) - 2)
        columns = (columns[0] + cut, min(columns[1], columns[0] + int(used.max()) + 2))
        lines = [(places - cut, values) for places, values in lines]
    if sum(len(places) for places, _ in lines) <= most:
        return Heat(rows, columns, tuple(lines), least=LEAST)
    return binned(lines, rows, columns, most)


def caption_of(heat: Heat, last: int) -> str:
    """What a map shows, and what it does not."""
    said = "Probability of each output for each input; a darker cell (brighter on a dark screen) is likelier."
    if heat.binned:
        down, across = heat.step
        said += (
            f" Binned: a cell stands for {down} inputs and {across} outputs, and shows how likely the outputs are on "
            "average over the inputs."
        )
    if heat.rows != (0, last):
        said += f" Inputs {heat.rows[0]:,} to {heat.rows[1]:,} of 0 to {last:,} are shown."
    return said


# ---------------------------------------------------------------------- rows


def _lines(matrix: NoiseMatrix, rows: tuple[int, int], columns: tuple[int, int]) -> Iterator[Line]:
    """The integer table's own entries; nothing for inputs that have no row."""
    with precision(96):
        for x in range(rows[0], rows[1] + 1):
            row = matrix.row(x)
            if row is None:
                yield np.zeros(0, np.int64), np.zeros(0)
                continue
            mass = float(matrix.inside_mass(x).mid())
            places = np.array([s for s, _ in row], dtype=np.int64) - columns[0]
            yield places, np.array([mass * (weight / matrix.denominator) for _, weight in row])


def _with_tails(matrix: NoiseMatrix, rows: tuple[int, int], columns: tuple[int, int]) -> Iterator[Line]:
    places = np.arange(columns[0], columns[1] + 1)
    low, high = matrix.outputs
    for x, (own, values) in zip(range(rows[0], rows[1] + 1), _lines(matrix, rows, columns), strict=True):
        line = np.zeros(len(places))
        if matrix.q is not None:
            line = _geometric(float(matrix.q), np.array([x]), places)[0]
            if len(own):
                line[low - columns[0] : high + 1 - columns[0]] = 0.0
        line[own] = values
        yield np.arange(len(places)), line


def _shared_lines(noise: SharedNoise, rows: tuple[int, int], columns: tuple[int, int]) -> Iterator[Line]:
    """The base kernel, `sum over y of A(x, y) SGDL(s - f y)`, with the table's row where there is one."""
    low, high = noise.outputs
    start, stop = min(columns[0], low), max(columns[1], high)
    reach = min(stop - start + abs(noise.factor) * (noise.last + 1), FAR)
    with precision(96):
        share = np.array([float(value.mid()) for value in noise.noise.balls(0, reach)])
    places = np.arange(start, stop + 1)
    for x in range(rows[0], rows[1] + 1):
        line = np.zeros(len(places))
        for y, weight in noise.contracted(x):
            far = np.abs(places - noise.factor * y)
            line += weight / noise.contraction_denominator * share[np.minimum(far, reach)]
        row = noise.row(x)
        if row is not None:
            inside = slice(low - start, high + 1 - start)
            mass = float(line[inside].sum())
            line[inside] = 0.0
            for s, weight in row:
                line[s - start] = mass * (weight / noise.denominator)
        shown = line[columns[0] - start : columns[1] + 1 - start]
        kept = np.flatnonzero(shown >= LEAST)
        yield kept, shown[kept]


def _geometric(q: float, inputs: Ints, outputs: Ints) -> Floats:
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
    """Curves over consecutive whole numbers from `first` on."""

    first: int
    curves: Sequence[PlottedCurve]
    across: str
    """What the places are."""
    up: str
    levels: Sequence[Level] = field(default=())
    log: bool = False
    block: int = 1
    """How many places each value stands for already."""

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
