"""Any finite randomizer, given by its matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np

from optdp.amplification.cells import Cells, Floats
from optdp.amplification.designs import merged
from optdp.amplification.family import LARGEST_EPS0, TAIL, Ratios
from optdp.errors import ProblemError

LARGEST_CHANNEL = 2_000_000
"""Inputs times inputs times messages: the work of looking at all pairs."""


@dataclass(frozen=True)
class Channel:
    """Any finite randomizer: `matrix[x][y]` is the probability of the message `y` for the input `x`."""

    matrix: tuple[tuple[float, ...], ...]
    kind: ClassVar[str] = "channel"

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.matrix}
        if len(self.matrix) < 2 or len(widths) != 1 or widths == {0}:
            raise ProblemError("A channel needs two or more rows of equal length: a row for each input.")
        array = np.array(self.matrix, dtype=np.float64)
        if array.size * len(array) > LARGEST_CHANNEL:
            raise ProblemError(f"A channel of {array.shape[0]} inputs and {array.shape[1]} messages is too large.")
        if not np.isfinite(array).all() or (array < 0).any():
            raise ProblemError("A channel's entries are probabilities: finite and not negative.")
        sums = array.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1.0)))
        if abs(sums[worst] - 1.0) > 1e-9:
            raise ProblemError(f"Every row of a channel must sum to 1. Found {sums[worst]:.12g} in row {worst}.")
        empty = np.flatnonzero(array.sum(axis=0) == 0)
        if len(empty):
            raise ProblemError(f"A message that no input sends has no place in a channel. Remove column {empty[0]}.")

    def __str__(self) -> str:
        return f"channel, {len(self.matrix)} inputs, {len(self.matrix[0])} messages"

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]] | Floats) -> Channel:
        try:
            return cls(tuple(tuple(float(entry) for entry in row) for row in rows))
        except (TypeError, ValueError, OverflowError):
            raise ProblemError("A channel is a table of probabilities, a row for each input.") from None

    @cached_property
    def array(self) -> Floats:
        array = np.array(self.matrix, dtype=np.float64)
        scaled: Floats = array / array.sum(axis=1, keepdims=True)
        return scaled

    @cached_property
    def own_eps0(self) -> float:
        array = self.array
        low, high = array.min(axis=0), array.max(axis=0)
        if (low < high * math.exp(-LARGEST_EPS0)).any():
            return math.inf
        return float(np.log(high / low).max()) * (1 + 1e-15) + 1e-15

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]:
        array = self.array
        return _distinct([self._pair(array[x], array[y], array.min(axis=0)) for x, y in self._pairs()])

    def data_sets(self, eps0: float) -> list[Cells]:
        """Others who all hold the same value, for every pair and every such value; the likeliest ones if many."""
        array = self.array
        found = []
        for x, y in self._pairs():
            for held in array:
                if (held[(array[x] > 0) | (array[y] > 0)] > 1e-60).all():
                    information = float((((array[x] - array[y]) ** 2)[held > 0] / held[held > 0]).sum())
                    found.append((information, x, y, held))
        found.sort(key=lambda item: -item[0])
        return _distinct([self._pair(array[x], array[y], held) for _, x, y, held in found[:12]])

    def ratios(self, eps0: float) -> Ratios | None:
        if not 0.0 < eps0 < LARGEST_EPS0:
            return None
        array = self.array
        beta = max(float(np.maximum(array[x] - array[y], 0.0).sum()) for x, y in self._pairs())
        p = math.exp(eps0)
        return Ratios(p, min(beta * (1 + 1e-14), (p - 1.0) / (p + 1.0)), p)

    def _pairs(self) -> list[tuple[int, int]]:
        return list(permutations(range(len(self.matrix)), 2))

    def _pair(self, first: Floats, second: Floats, others: Floats) -> Cells:
        """A message that some input never sends, or next to never, hides nobody: it is counted as given away."""
        bare = others < 1e-60
        found = merged(first[~bare], second[~bare], others[~bare])
        return Cells(found.first, found.second, found.others, float(first[bare].sum()))


def _distinct(every: list[Cells]) -> list[Cells]:
    seen: dict[tuple[bytes, bytes, bytes, float], Cells] = {}
    for found in every:
        seen.setdefault((found.first.tobytes(), found.second.tobytes(), found.others.tobytes(), found.slack), found)
    return list(seen.values())
