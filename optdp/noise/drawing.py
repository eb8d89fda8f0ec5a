"""How a release is drawn from random words of 62 bits: the one procedure that every sampler of a table follows.

A draw looks at `slots` words whatever the input and whatever comes out: the sign of the noise, its digits, and the
table's row (without a tail the row alone). Words have numbered places, so that samplers in different languages can be
given the same ones:

    place  slot + slots j                       word j of that slot; j > 0 only if the words before equal those of a cut
    place  slots limbs + limbs (r-1) + j        word j of the last digit when it starts again for the r-th time
    place  -1                                   a new word every time: all kept words of a cut of the noise were equal

All but the first are rarer than 2^-40. If the noise takes the input out of the table, that is the release; otherwise
it is drawn from the input's row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from optdp.errors import ProblemError
from optdp.noise.cuts import LIMBS, Cuts, NoiseCuts, of_noise, of_row

if TYPE_CHECKING:
    from optdp.noise.matrix import NoiseMatrix, Outside

Words = Callable[[int], int]
"""The random word at a place."""


@dataclass(frozen=True)
class Drawing:
    """The integers that a sampler of one table needs."""

    inputs: tuple[int, int]
    """The inputs that have a row."""
    outputs: tuple[int, int]
    last: int
    """The largest input that exists; inputs are `0..last`."""
    outside: Outside
    """What inputs without a row get: "clamp", the nearest row; "geometric", the noise alone; "error", nothing."""
    noise: NoiseCuts | None
    rows: tuple[Cuts, ...]
    values: tuple[tuple[int, ...], ...]
    """The outputs of each row, one for each of its cuts."""

    @property
    def slots(self) -> int:
        """Words that every draw looks at."""
        return 1 if self.noise is None else 2 + len(self.noise.digits)

    @cached_property
    def limbs(self) -> int:
        """Words of a slot, at most, but for the endless digits of the noise."""
        row = max(cuts.words for cuts in self.rows)
        return row if self.noise is None else max(LIMBS, row)

    def row_of(self, x: int) -> int | None:
        """The number of the row that serves input `x`; None if the noise alone does."""
        if not 0 <= x <= self.last:
            raise ProblemError(f"An input must lie in 0..{self.last}. Found {x}.")
        first, final = self.inputs
        if first <= x <= final:
            return x - first
        if self.outside == "error":
            raise ProblemError(f"The table has rows for the inputs {first}..{final} only. Found {x}.")
        return None if self.outside == "geometric" else 0 if x < first else final - first

    def numbers(self, row: int) -> Any:
        """The outputs of a row as a numpy array."""
        return self._arrays[row]

    @cached_property
    def _arrays(self) -> list[Any]:
        import numpy as np

        return [np.array(values, dtype=np.int64) for values in self.values]

    def draw(self, x: int, words: Words) -> int:
        """One release of input `x`."""
        row = self.row_of(x)
        if self.noise is not None:
            released = x + self._noise(self.noise, words)
            if row is None or not self.outputs[0] <= released <= self.outputs[1]:
                return released
        assert row is not None
        return self.values[row][self.rows[row].index(self._slot(words, self.slots - 1))]

    def _slot(self, words: Words, start: int, step: int | None = None) -> Words:
        """The words of one slot, by their number."""
        apart = self.slots if step is None else step
        return lambda j: words(start + apart * j if j < self.limbs else -1)

    def _noise(self, noise: NoiseCuts, words: Words) -> int:
        negative = noise.sign.index(self._slot(words, 0))
        size, unit = 0, 1
        for i, cuts in enumerate(noise.digits, start=1):
            found = digit = cuts.index(self._slot(words, i))
            start = self.slots * self.limbs
            while i == len(noise.digits) and found == len(cuts.places):
                found = cuts.index(self._slot(words, start, 1))
                digit, start = digit + found, start + self.limbs
            size, unit = size + unit * digit, unit * noise.base
        return -1 - size if negative else size


def drawing(matrix: NoiseMatrix) -> Drawing:
    """How releases of `matrix` are drawn."""
    return Drawing(
        inputs=matrix.inputs,
        outputs=matrix.outputs,
        last=matrix.last,
        outside=matrix.outside,
        noise=None if matrix.q is None else of_noise(matrix.q),
        rows=tuple(of_row([weight for _, weight in row], matrix.denominator) for row in matrix.rows),
        values=tuple(tuple(s for s, _ in row) for row in matrix.rows),
    )
