"""The integers of a `Drawing` as exported samplers hold them, and what they cost.

Every list of cuts ends with a mark that no word reaches, so that a search of a fixed number of halving steps may look
at the last entry instead of going beyond it: all rows are searched in as many steps as the longest one. The rows of a
contraction come after those of the table.

    found = 0
    for step in 2^(steps-1), .., 4, 2, 1:
        found += step    if  cuts[min(found + step, length) - 1] <= word

A release beyond plus or minus 2^52, rarer than 2^-5000, is given as that bound in all languages. It is computed
from the release alone, so it costs no privacy, and every language holds every release exactly.

Test vectors are an input, the words of a draw, and what `Drawing.draw` makes of them; the rare paths among them. An
exported sampler asks for the first word of every slot, so a vector always has those, and further words only where the
library asks for them. Where the library would look at more words of a cut of the noise than are kept, an exported
sampler stops: such a vector has no release.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, chain, pairwise

from optdp.errors import ProblemError
from optdp.mechanism.cuts import END, LIMBS, WORD, Cuts, Place
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
    def lengths(self) -> list[int]:
        """How many cuts each list has."""
        return [b - a for a, b in pairwise(self.start)]


@dataclass(frozen=True)
class Layout:
    """All integers of a sampler: the sign and the digits of the noise (none without a tail), the rows, and of each
    entry of the rows the output, or the centre."""

    drawing: Drawing
    noise: CutList
    rows: CutList
    values: tuple[int, ...]

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
    size = max(drawing.last * max(abs(drawing.factor), 1), reach, *map(abs, drawing.outputs))
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


# ---------------------------------------------------------------------- vectors

RELEASED, STOPPED, REFUSED = 0, 1, 2
"""How a vector ends: with a release, undecided by the words that are kept, or with an input that is not allowed."""
RESTARTS = 8
"""How often the last digit starts again in a vector, at most."""


@dataclass(frozen=True)
class Vector:
    """One draw."""

    x: int
    words: Mapping[int, int]
    """The words by their places."""
    outcome: int
    released: int = 0


class _OpenError(Exception):
    """More words of a cut are needed than samplers keep."""


def vectors(drawing: Drawing, seed: str, plain: int = 24, rare: int = 72) -> list[Vector]:
    """Vectors for a self test, the same for the same seed: about so many draws of chance, and of rare events."""
    chance = random.Random(seed)
    inputs = _inputs(drawing)
    forced = list(_extremes(drawing))
    scarce = list(_rare(drawing, chance))
    forced += scarce if len(scarce) <= rare else chance.sample(scarce, rare)
    found = [vector(drawing, chance.choice(inputs), {}, chance) for _ in range(plain)]
    found += [vector(drawing, x, {}, chance) for x in (-1, drawing.last + 1)]
    for i, (x, words) in enumerate(forced):
        found.append(vector(drawing, inputs[i % len(inputs)] if x is None else x, words, chance))
    return found


def vector(drawing: Drawing, x: int, forced: Mapping[int, int], chance: random.Random) -> Vector:
    """What comes of an input and some given words; the others are drawn."""
    words = {place: forced.get(place, chance.getrandbits(WORD)) for place in range(drawing.slots)}

    def word(place: int) -> int:
        if _beyond(drawing, place):
            raise _OpenError
        return words.setdefault(place, forced.get(place, chance.getrandbits(WORD)))

    try:
        return Vector(x, words, RELEASED, drawing.draw(x, word))
    except _OpenError:
        return Vector(x, words, STOPPED)
    except ProblemError:
        return Vector(x, words, REFUSED)


def _beyond(drawing: Drawing, place: int) -> bool:
    """Whether a word lies beyond those that are kept of a cut of the noise."""
    again = drawing.slots * drawing.limbs
    if place >= again:
        return (place - again) % drawing.limbs >= LIMBS
    return place < 0 or (place % drawing.slots < drawing.noise_slots and place // drawing.slots >= LIMBS)


def _inputs(drawing: Drawing) -> list[int]:
    """Inputs of every sort that get a release, the ends among them."""
    first, final = drawing.inputs
    if drawing.outside == "error":
        found = {first, final, (first + final) // 2}
    else:
        found = {0, drawing.last, first, final, (first + final) // 2, max(first - 1, 0), min(final + 1, drawing.last)}
    lengths = [len(values) for values in drawing.values]
    found |= {first + lengths.index(max(lengths)), first + lengths.index(min(lengths))}
    return sorted(found)


Forced = tuple[int | None, dict[int, int]]
"""An input, or any, and the words that are not left to chance."""


def _extremes(drawing: Drawing) -> Iterator[Forced]:
    """The smallest and the largest word in every slot, and the edges of the table."""
    for word in (0, END - 1):
        yield None, dict.fromkeys(range(drawing.slots), word)
        yield drawing.inputs[0], {drawing.slots - 1: word}
        yield drawing.inputs[1], {drawing.slots - 1: word}
    noise = drawing.noise
    if noise is None:
        return
    most = (RESTARTS if noise.restarts else 1) * noise.reach
    for x in {drawing.inputs[0], drawing.inputs[1], *(() if drawing.outside == "error" else (0, drawing.last))}:
        centre = drawing.centres[x][0] if drawing.moves else drawing.factor * x
        for edge in (drawing.outputs[0], drawing.outputs[1]):
            for released in (edge - 1, edge, edge + 1):
                if abs(released - centre) <= most:
                    words = _words_of(drawing, released - centre)
                    yield x, words | {drawing.slots - 2: 0} if drawing.moves else words


def _words_of(drawing: Drawing, e: int) -> dict[int, int]:
    """Words that make the noise `e`."""
    noise = drawing.noise
    assert noise is not None
    size = e if e >= 0 else noise.origin - e
    words = {0: 0 if e >= 0 else END - 1}
    for i, cuts in enumerate(noise.digits, start=1):
        top = i == len(noise.digits)
        digit = size if top else size % noise.base
        size //= noise.base
        count, place = len(cuts.places), i
        for start in range(drawing.slots * drawing.limbs, END, drawing.limbs):
            words[place] = END - 1 if digit >= count else _word_of(cuts, digit)
            if not top or digit < count:
                break
            digit, place = digit - count, start
    return words


def _word_of(cuts: Cuts, k: int) -> int:
    """A word of which just `k` cuts lie below."""
    return 0 if k == 0 else min(cuts.first[k - 1] + 1, END - 1)


def _rare(drawing: Drawing, chance: random.Random) -> Iterator[Forced]:
    """Ties at every word of some cuts of every list, and last digits that start again."""
    noise, slots = drawing.noise, drawing.slots
    rows = [chance.randrange(len(drawing.rows)) for _ in range(6)]
    listed = [(drawing.inputs[0] + row, drawing.rows[row], slots - 1) for row in rows]
    moved = sorted({0, drawing.last // 2, drawing.last}) if drawing.moves else ()
    listed += [(x, drawing.moves[x], slots - 2) for x in moved]
    for x, cuts, slot in listed:
        for k in {0, len(cuts.places) // 2, max(len(cuts.places) - 2, 0)}:
            for words in _near(cuts.places[k]):
                yield x, _at(words, slot, slots)
    if noise is None:
        return
    again, limbs, top = slots * drawing.limbs, drawing.limbs, len(noise.digits)
    for slot, cuts in enumerate((noise.sign, *noise.digits)):
        for k in {0, len(cuts.places) // 2, len(cuts.places) - 1}:
            for words in _near(cuts.places[k]):
                yield None, _at(words, slot, slots)
                if slot == top and noise.restarts:
                    yield None, {slot: END - 1, slot + slots: END - 1} | _at(words, again, 1)
    for times in (1, 2, 3) if noise.restarts else ():
        beyond = {top: END - 1, top + slots: END - 1}  # the second word counts if the last cut begins with the same
        beyond |= {again + limbs * r + j: END - 1 for r in range(times - 1) for j in (0, 1)}
        for sign in (0, END - 1):
            yield None, {0: sign, again + limbs * (times - 1): chance.getrandbits(WORD)} | beyond


def _near(place: Place) -> Iterator[tuple[int, ...]]:
    """Numbers that agree with a cut in more and more of its first words, and lie just below it, above it, or at it."""
    for j, word in enumerate(place):
        if j and place[0] == END:
            return
        for other in (word - 1, word + 1):
            if 0 <= other < END:
                yield (*place[:j], other)
    if place[0] < END:
        yield place


def _at(words: tuple[int, ...], start: int, apart: int) -> dict[int, int]:
    return {start + apart * j: word for j, word in enumerate(words)}
