"""Test vectors: an input, the words of a draw, and what `Drawing.draw` makes of them; the rare paths among them.

An exported sampler asks for the first word of every slot, so a vector always has those, and further words only where
the library asks for them. Where the library would look at more words of a cut of the noise than are kept, an exported
sampler stops: such a vector has no release.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optdp.errors import ProblemError
from optdp.mechanism.cuts import END, LIMBS, WORD, Cuts, Place
from optdp.mechanism.drawing import Drawing

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
    for _ in range(6):
        row = chance.randrange(len(drawing.rows))
        cuts = drawing.rows[row]
        for k in {0, len(cuts.places) // 2, max(len(cuts.places) - 2, 0)}:
            for words in _near(cuts.places[k]):
                yield drawing.inputs[0] + row, _at(words, slots - 1, slots)
    for x in sorted({0, drawing.last // 2, drawing.last}) if drawing.moves else ():
        cuts = drawing.moves[x]
        for k in {0, len(cuts.places) // 2, max(len(cuts.places) - 2, 0)}:
            for words in _near(cuts.places[k]):
                yield x, _at(words, slots - 2, slots)
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
