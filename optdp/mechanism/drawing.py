"""How a release is drawn from random words of 62 bits: the one procedure that every sampler of a table follows.

A draw looks at `slots` words whatever the input and whatever comes out: the sign of the noise, its digits, the
contraction's row if there is a contraction, and the table's row (without a tail that alone). Words have numbered
places, so that samplers in different languages can be given the same ones:

    place  slot + slots j                       word j of that slot; j > 0 only if the words before equal those of a cut
    place  slots limbs + limbs (r-1) + j        word j of the last digit when it starts again for the r-th time
    place  -1                                   a new word every time: all kept words of a cut of the noise were equal

All but the first are rarer than 2^-40 for tables of up to a million entries. If the noise takes its centre out of the
table, that is the release; otherwise it is drawn from the input's row. The centre is the input, or of a share of noise
(`SharedNoise`) the input or where the contraction takes it, times a factor. Noise that is added (`AddedNoise`) has the
centre 0 and one row for all inputs, to which it is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

from optdp.errors import ProblemError
from optdp.kind import at
from optdp.mechanism.cuts import END, LIMBS, Cuts, NoiseCuts, of_noise, of_row, words_of
from optdp.mechanism.share_cuts import of_share

if TYPE_CHECKING:
    from optdp.mechanism.added_noise import AddedNoise
    from optdp.mechanism.matrix import NoiseMatrix, Outside, Row
    from optdp.mechanism.shared_noise import SharedNoise

Column = TypeVar("Column")
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
    factor: int = 1
    """Without a contraction the noise is centred at this times the input."""
    moves: tuple[Cuts, ...] = ()
    """The rows of the contraction for the inputs `0..last`, of as many words as those of the table."""
    centres: tuple[tuple[int, ...], ...] = ()
    """The centres of each of them, one for each of its cuts."""
    added: bool = False
    """Whether what is drawn is added to the input."""
    common: bool = False
    """Whether the word is one that all parties of a plan share: then nobody may draw one alone."""

    @property
    def slots(self) -> int:
        """Words that every draw looks at."""
        return self.noise_slots + bool(self.moves) + 1

    @property
    def noise_slots(self) -> int:
        """Those of them that are the noise's, the first."""
        return 0 if self.noise is None else 1 + len(self.noise.digits)

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

    def places(self, x: int) -> Any:
        """Where the contraction takes `x`, times the factor, as a numpy array."""
        return self._arrays[len(self.values) + x]

    @cached_property
    def _arrays(self) -> list[Any]:
        import numpy as np

        return [np.array(values, dtype=np.int64) for values in (*self.values, *self.centres)]

    def draw(self, x: int, words: Words) -> int:
        """One release of input `x`."""
        drawn = self.drawn(x, words)
        return x + drawn if self.added else drawn

    def drawn(self, x: int, words: Words) -> int:
        """The same before it is added to anything."""
        return self._drawn(x, lambda place: _of_62_bits(words(place)))

    def _drawn(self, x: int, words: Words) -> int:
        row = self.row_of(x)
        if self.noise is not None:
            released = self._centre(x, words) + self._noise(self.noise, words)
            if row is None or not self.outputs[0] <= released <= self.outputs[1]:
                return released
        assert row is not None
        return self.values[row][self.rows[row].index(self._slot(words, self.slots - 1))]

    def _slot(self, words: Words, start: int, step: int | None = None) -> Words:
        """The words of one slot, by their number."""
        apart = self.slots if step is None else step
        return lambda j: words(start + apart * j if j < self.limbs else -1)

    def _centre(self, x: int, words: Words) -> int:
        if not self.moves:
            return self.factor * x
        return self.centres[x][self.moves[x].index(self._slot(words, self.slots - 2))]

    def _noise(self, noise: NoiseCuts, words: Words) -> int:
        negative = noise.sign.index(self._slot(words, 0))
        size, unit = 0, 1
        for i, cuts in enumerate(noise.digits, start=1):
            found = digit = cuts.index(self._slot(words, i))
            start = self.slots * self.limbs
            while i == len(noise.digits) and noise.restarts and found == len(cuts.places):
                found = cuts.index(self._slot(words, start, 1))
                digit, start = digit + found, start + self.limbs
            size, unit = size + unit * digit, unit * noise.base
        return noise.origin - size if negative else size


def _of_62_bits(word: int) -> int:
    """A larger word would lie beyond the last cut."""
    if type(word) is not int or not 0 <= word < END:
        raise ProblemError("A random word must be a whole number of 62 bits. Found another.")
    return word


def drawing(matrix: NoiseMatrix) -> Drawing:
    """How releases of `matrix` are drawn."""
    return Drawing(
        inputs=matrix.inputs,
        outputs=matrix.outputs,
        last=matrix.last,
        outside=matrix.outside,
        noise=None if matrix.q is None else of_noise(matrix.q),
        rows=_rows(matrix.rows, matrix.denominator),
        values=tuple(tuple(s for s, _ in row) for row in matrix.rows),
    )


def share_drawing(shared: SharedNoise) -> Drawing:
    """How reports with a share of noise are drawn. Without a table there is one row that serves no output."""
    if shared.last * abs(shared.factor) >= 1 << 52:
        raise ProblemError(f"An input times its factor must stay below 2^52. Found inputs up to {shared.last:,}.")
    rows, moves = shared.rows or (((0, shared.denominator),),), shared.contraction or ()
    words = max(words_of(shared.denominator), words_of(shared.contraction_denominator))
    return Drawing(
        inputs=shared.inputs if shared.rows else (0, 0),
        outputs=shared.outputs,
        last=shared.last,
        outside="geometric",
        noise=of_share(shared.beta, shared.q),
        rows=_rows(rows, shared.denominator, words),
        values=tuple(tuple(s for s, _ in row) for row in rows),
        factor=shared.factor,
        moves=_rows(moves, shared.contraction_denominator, words),
        centres=tuple(tuple(shared.factor * y for y, _ in row) for row in moves),
    )


def added_drawing(noise: AddedNoise) -> Drawing:
    """How noise that is added is drawn: around 0 and from the one row, whatever the input."""
    return Drawing(
        inputs=(0, 0),
        outputs=(-noise.reach, noise.reach),
        last=noise.last,
        outside="clamp",
        noise=of_noise(noise.q),
        rows=_rows((noise.row,), noise.denominator),
        values=(tuple(e for e, _ in noise.row),),
        factor=0,
        added=True,
    )


def _rows(rows: Sequence[Row], denominator: int, least: int = 1) -> tuple[Cuts, ...]:
    return tuple(of_row([weight for _, weight in row], denominator, least) for row in rows)


class Sampled:
    """What releases are drawn from."""

    @overload
    def sample(self, x: int, size: int = ..., seed: int | None = ...) -> list[int]: ...

    @overload
    def sample(self, x: Column, size: None = ..., seed: int | None = ...) -> Column: ...

    def sample(self, x: Any, size: int | None = None, seed: int | None = None) -> Any:
        """Independent releases, drawn with integers only.

        Parameters
        ----------
        x : int or column
            One input; or a column of them: a pandas or polars Series, a numpy array, a list.
        size : int, optional
            How many releases of one input, by default 1.
        seed : int, optional
            Makes the draws repeatable, for tests: they are then **not private**. Without it randomness comes from the
            operating system.

        Returns
        -------
        list of int, or a column
            For a column one release for each input; it keeps its type, index and name.

        Examples
        --------
        >>> from optdp import Population, SingleLTE, solve
        >>> matrix = solve(SingleLTE(Population.binomial(10, "0.1"), epsilon=1)).mechanism
        >>> matrix.sample([0, 3, 10], seed=1)
        [0, 3, 10]
        """
        return at("optdp.mechanism.columns:sample")(self, x, size, seed)
