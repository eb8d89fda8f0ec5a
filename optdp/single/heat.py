"""Heat maps of one entity's table and of one party's: each input's row, and the noise around the table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import precision
from optdp.people.population import Population, moments
from optdp.pictures.chart import LEAST, MOST_ENTRIES, Heat, Line, binned, geometric

MARGIN = 40
"""The most outputs that are shown on either side of a table with geometric tails."""
FAR = 10_000
"""Shares of noise are looked at up to this distance."""
WHOLE = 400
"""Up to this input all of them are shown, also those without a row."""


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
            line = geometric(float(matrix.q), np.array([x]), places)[0]
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
