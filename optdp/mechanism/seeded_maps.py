"""SeededMaps: what one of several entities deploys when all share a secret random word.

All parties hold the same word, a uniform number below `denominator`, which nobody else knows. It lies in one of the
cells that the common `cuts` make. Each cell names one map of every party, and a party reports what its map says of its
input. Given the word nothing is random, so that reports of different parties go together; the word must be fresh for
each release, and secret.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from optdp.errors import ArtifactError, ProblemError
from optdp.mechanism.cuts import WORD, of_row
from optdp.mechanism.drawing import Drawing
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import check_whole, whole_input
from optdp.numbers.source import Source
from optdp.objects import Public

MOST_CELLS = 5_000_000
"""Cells times inputs that are written out, at most."""


@dataclass(frozen=True)
class SeededMaps(Public):
    """One entity's maps in a plan with a common secret word. Usually one of the `tables` of a plan of method "seeded".

    Parameters
    ----------
    inputs : (int, int)
        The first and the last input that the maps speak of; others are served as the nearest of them.
    outputs : (int, int)
        The first and the last report.
    denominator : int
        A power of two: words are drawn from `0..denominator - 1`.
    cuts : tuple of int
        Where the cells end, increasing; the last is the denominator. They are the same for all parties.
    choices : tuple of int
        The number of the map of each cell.
    maps : tuple
        The different maps, each with a report for every one of the inputs.
    last : int
        The largest input that exists.
    outside : "clamp"
        Inputs that the maps do not speak of are served as the nearest.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, solve
    >>> plan = solve(MultiLTE([Population.binomial(4, "0.5")] * 2, epsilon="0.5", method="seeded"))
    >>> word = 12345  # of 62 random bits, the same for all parties, and known to nobody else
    >>> reports = [table.report(2, word) for table in plan.tables]
    >>> len(reports)
    2
    """

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    denominator: int
    cuts: tuple[int, ...]
    choices: tuple[int, ...]
    maps: tuple[tuple[int, ...], ...]
    last: int = 0
    outside: Literal["clamp"] = "clamp"
    told = ("inputs", "outputs", "last", "denominator", "maps")

    @property
    def weights(self) -> list[int]:
        """The length of each cell."""
        return [end - start for start, end in pairwise((0, *self.cuts))]

    def place(self, x: int) -> int:
        """The place of an input in every map."""
        if not 0 <= x <= self.last:
            raise ProblemError(f"An input must lie in 0..{self.last}. Found {x}.")
        return min(max(x, self.inputs[0]), self.inputs[1]) - self.inputs[0]

    def report(self, x: int, word: int) -> int:
        """What is reported of input `x` under the common word, of 62 random bits."""
        if type(word) is not int or not 0 <= word < 1 << WORD:
            raise ProblemError("The common word must be a whole number of 62 bits. Found another.")
        place = self.place(whole_input(x))
        cell = bisect_right(self.cuts, word >> (WORD + 1 - self.denominator.bit_length()))
        return self.maps[self.choices[cell]][place]

    def column(self, cell: int) -> NoiseMatrix:
        """The map of a cell as a table that reports one value of each input."""
        rows = tuple(((value, 1),) for value in self.maps[self.choices[cell]])
        return NoiseMatrix(self.inputs, self.outputs, 1, rows, None, "clamp", self.last)

    @cached_property
    def matrix(self) -> NoiseMatrix:
        """The law of a report for who does not know the word. Reports of different parties are not independent."""
        shares = [0] * len(self.maps)
        for choice, weight in zip(self.choices, self.weights, strict=True):
            shares[choice] += weight
        rows = []
        for place in range(self.inputs[1] - self.inputs[0] + 1):
            row: dict[int, int] = {}
            for values, share in zip(self.maps, shares, strict=True):
                row[values[place]] = row.get(values[place], 0) + share
            rows.append(tuple(sorted(row.items())))
        return NoiseMatrix(self.inputs, self.outputs, self.denominator, tuple(rows), None, "clamp", self.last)

    @property
    def rows(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The rows of `matrix`."""
        return self.matrix.rows

    def check(self) -> None:
        """Raise unless these are maps at all."""
        bits = self.denominator.bit_length() - 1
        if self.denominator != 1 << bits or not 1 <= bits <= WORD:
            raise ArtifactError(f"The denominator of the common word must be 2 to 2^{WORD}, a power of two.")
        ends = (0, *self.cuts)
        if len(ends) < 2 or ends[-1] != self.denominator or any(a >= b for a, b in pairwise(ends)):
            raise ArtifactError("The common cuts must increase from above 0 to the denominator. Found others.")
        if len(self.choices) != len(self.cuts) or set(self.choices) != set(range(len(self.maps))):
            raise ArtifactError("Every cell must name a map, and every map must be named. Found otherwise.")
        (first, final), (low, high) = self.inputs, self.outputs
        if not 0 <= first <= final <= self.last:
            raise ArtifactError(f"The maps must speak of inputs in 0..{self.last}. Found {first}..{final}.")
        width = final - first + 1
        if width * len(self.cuts) > MOST_CELLS:
            raise ArtifactError(f"Maps may have {MOST_CELLS:,} cells times inputs. Found more.")
        if any(len(values) != width or min(values) < low or max(values) > high for values in self.maps):
            raise ArtifactError(f"Every map must have {width} reports within {low}..{high}. Found another.")
        if len(set(self.maps)) < len(self.maps):
            raise ArtifactError("Every map must stand once. Found one twice.")

    # ------------------------------------------------------------------ sampling

    @cached_property
    def drawing(self) -> Drawing:
        """The integers that exported samplers look up reports with: for each input the cells with different reports."""
        rows, listed = [], []
        for place in range(self.inputs[1] - self.inputs[0] + 1):
            values, weights = list[int](), list[int]()
            for choice, weight in zip(self.choices, self.weights, strict=True):
                value = self.maps[choice][place]
                if values and values[-1] == value:
                    weights[-1] += weight
                else:
                    values.append(value)
                    weights.append(weight)
            rows.append(of_row(weights, self.denominator))
            listed.append(tuple(values))
        return Drawing(self.inputs, self.outputs, self.last, "clamp", None, tuple(rows), tuple(listed), common=True)

    def sample(self, x: int, size: int = 1, seed: int | None = None) -> list[int]:
        """`size` reports of input `x`, each under a word of its own: for looking. In a plan all parties share a word.

        A `seed` makes the draws repeatable.
        """
        check_whole(size, "size", 0)
        source = Source(seed)
        return [self.report(x, source.bits(WORD)) for _ in range(size)]


def seeded_tables(
    inputs: Sequence[tuple[int, int]],
    lasts: Sequence[int],
    columns: Sequence[tuple[int, tuple[tuple[int, ...], ...]]],
    denominator: int,
) -> tuple[SeededMaps, ...]:
    """The tables of all parties from weights, which sum to the denominator, and the maps of all parties for each."""
    cuts, total = [], 0
    for weight, _ in columns:
        total += weight
        cuts.append(total)
    tables = []
    for i, (own, last) in enumerate(zip(inputs, lasts, strict=True)):
        known: dict[tuple[int, ...], int] = {}
        choices = tuple(known.setdefault(maps[i], len(known)) for _, maps in columns)
        values = [value for one in known for value in one]
        table = SeededMaps(own, (min(values), max(values)), denominator, tuple(cuts), choices, tuple(known), last)
        table.check()
        tables.append(table)
    return tuple(tables)
