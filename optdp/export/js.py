"""A sampler in JavaScript: an ES module for Node and browsers; a word of 62 bits is two numbers of 31."""

from __future__ import annotations

from collections.abc import Iterable

from optdp.export.sampler import Sampler, flat
from optdp.export.subject import Subject
from optdp.export.text import block, filled, head, numbers, pieces, single_numbers

_HALF = 31


def sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.mjs`."""
    made = Sampler.of(subject)
    lists = dict(made.lists())
    for name in ("NOISE_CUTS", "NOISE_REST", "ROW_CUTS", "ROW_REST"):
        lists[name] = halves(lists[name])
    lists["VECTORS"] = [number for vector in made.vectors for number in _flat_halves(flat(vector))]
    values: dict[str, object] = {name: numbers(entries) for name, entries in lists.items()}
    values |= single_numbers(made.laid) | {"DIGEST": made.digest, "CHECKSUM": made.checksum()}
    values |= pieces(made.laid, "moved.mjs.in", "moved(x, words, at, word)")
    text = filled("sampler.mjs.in", values | {"HEAD": block(head(subject, made.laid, " *"))})
    return {"sampler.mjs": text.encode("ascii")}


def halves(words: Iterable[int]) -> list[int]:
    """Each word as its high and its low half."""
    return [half for word in words for half in (word >> _HALF, word % (1 << _HALF))]


def _flat_halves(vector: list[int]) -> list[int]:
    places, words = vector[4::2], vector[5::2]
    return [*vector[:4], *(n for place, word in zip(places, words, strict=True) for n in (place, *halves([word])))]
