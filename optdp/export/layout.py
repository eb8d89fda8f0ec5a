"""The integers of a `Drawing` as exported samplers hold them, and what they cost.

Every list of cuts ends with a mark that no word reaches, so that a search of a fixed number of halving steps may look
at the last entry instead of going beyond it: all rows are searched in as many steps as the longest one. The rows of a
contraction come after those of the table.

    found = 0
    for step in 2^(steps-1), .., 4, 2, 1:
        found += step    if  cuts[min(found + step, length) - 1] <= word

A release beyond plus or minus 2^52, rarer than 2^-5000, is given as that bound in all languages. It is computed
from the release alone, so it costs no privacy, and every language holds every release exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, chain

from optdp.errors import ProblemError
from optdp.mechanism.cuts import END, LIMBS, WORD, Place
from optdp.mechanism.drawing import Drawing

FAR = 1 << 52
"""Releases beyond this are given as this."""
LARGEST = 1 << 45
"""Inputs, outputs and the reach of the noise must stay below this."""
SMALLEST_RATIO = Fraction(1, 1 << 124)
"""A smaller q would bring its cuts too close to the end of what four words can tell."""
MOST_CUTS = 1 << 22
"""A table with more entries is no source code."""
OUTSIDE = {"error": 0, "clamp": 1, "geometric": 2}
"""What inputs without a row get, as exported samplers say it."""

_PRIME, _FACTOR = 2147483629, 65599


@dataclass(frozen=True)
class CutList:
    """Lists of cuts one after the other: `start[i]` to `start[i+1]` is list i."""

    places: tuple[Place, ...]
    start: tuple[int, ...]
    words: int

    @staticmethod
    def of(lists: Sequence[Sequence[Place]], words: int) -> CutList:
        """Several lists, each of which ends with the mark that no word reaches."""
        places = tuple(place for cuts in lists for place in cuts)
        return CutList(places, tuple(accumulate(map(len, lists), initial=0)), words)

    @property
    def first(self) -> list[int]:
        """The first word of each cut."""
        return [place[0] for place in self.places]

    @property
    def rest(self) -> list[int]:
        """The other words of each cut, cut after cut."""
        return [word for place in self.places for word in place[1:]]

    @property
    def lengths(self) -> list[int]:
        """How many cuts each list has."""
        return [b - a for a, b in zip(self.start, self.start[1:], strict=False)]


@dataclass(frozen=True)
class Layout:
    """All integers of a sampler."""

    drawing: Drawing
    noise: CutList
    """The sign and the digits of the noise; no lists without a tail."""
    rows: CutList
    values: tuple[int, ...]
    """The output of each entry of `rows`, or the centre."""

    @property
    def base(self) -> int:
        """The base of the digits of the noise."""
        return 1 if self.drawing.noise is None else self.drawing.noise.base

    @cached_property
    def noise_steps(self) -> tuple[int, ...]:
        """Halving steps for each list of the noise."""
        return tuple(map(_steps, self.noise.lengths))

    @cached_property
    def row_steps(self) -> int:
        """Halving steps for every row: as many as the longest takes."""
        return _steps(max(self.rows.lengths))

    @cached_property
    def top_limit(self) -> int:
        """A last digit as large as this takes every input beyond FAR, however it goes on; 0 if it does not."""
        noise = self.drawing.noise
        return 0 if noise is None or not noise.restarts else (1 << 53) // noise.base ** (len(noise.digits) - 1)

    @cached_property
    def rare(self) -> int:
        """An exponent b: a draw looks at more words or more entries with a chance of at most 2^-b."""
        count = len(self.noise.places) + 1  # ties with first words of the noise, and the last digit beyond its end
        if self.rows.words > 1:
            table = len(self.drawing.rows)
            count += max(self.rows.lengths[:table]) + max(self.rows.lengths[table:], default=0)
        return WORD - (count - 1).bit_length()

    @property
    def numbers(self) -> list[int]:
        """The single numbers, in the order in which samplers define them and the checksum takes them."""
        drawing = self.drawing
        shape = [*drawing.inputs, drawing.last, *drawing.outputs, OUTSIDE[drawing.outside]]
        return [*shape, drawing.slots, drawing.limbs, self.base, self.top_limit, self.rows.words, self.row_steps]


def layout(drawing: Drawing) -> Layout:
    """The integers of a drawing, or a refusal of what samplers in other languages cannot hold."""
    noise = drawing.noise
    reach = 0 if noise is None else noise.reach
    size = max(drawing.last * abs(drawing.factor), reach, *map(abs, drawing.outputs))
    if size >= LARGEST:
        raise ProblemError(
            "Exported samplers need inputs, outputs and noise below 2^45. "
            f"Found {size:,}. Sample with optdp itself, or use a larger epsilon."
        )
    if noise is not None and noise.restarts and noise.q < SMALLEST_RATIO:
        raise ProblemError("Exported samplers need noise with q of at least 2^-124. Found a smaller one.")
    entries = sum(len(cuts.places) for cuts in (*drawing.rows, *drawing.moves))
    if entries > MOST_CUTS:
        raise ProblemError(
            f"Exported samplers may have {MOST_CUTS:,} entries. Found {entries:,}. Sample with optdp instead."
        )
    parts = () if noise is None else (noise.sign, *noise.digits)
    ended = [(*cuts.places, (END,) + (0,) * (LIMBS - 1)) for cuts in parts]
    words = max(cuts.words for cuts in drawing.rows)
    rows = CutList.of([cuts.places for cuts in (*drawing.rows, *drawing.moves)], words)
    return Layout(drawing, CutList.of(ended, LIMBS), rows, tuple(chain(*drawing.values, *drawing.centres)))


def checksum(numbers: Sequence[int]) -> int:
    """A remainder that every change of one digit changes; browsers can compute it without large integers."""
    value = 0
    for number in numbers:
        value = (value * _FACTOR + number % _PRIME) % _PRIME
    return value


def _steps(length: int) -> int:
    """Halving steps that find any of `length - 1` cuts and the end."""
    return (length - 1).bit_length()
