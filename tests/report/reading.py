"""Reading a page the hard way: its elements, its data, and the numbers that it should show, by exact arithmetic."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass, field
from fractions import Fraction
from html.parser import HTMLParser
from itertools import product
from typing import Any

from optdp import NoiseMatrix


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, name: str = "", **wanted: str) -> list[Element]:
        found = []
        for child in self.children:
            if name in ("", child.name) and all(child.attributes.get(key) == value for key, value in wanted.items()):
                found.append(child)
            found += child.all(name, **wanted)
        return found

    def one(self, **wanted: str) -> Element:
        (found,) = self.all(**wanted)
        return found

    @property
    def words(self) -> str:
        """All text, in which the script and the style sheet do not count."""
        own = "" if self.name in ("script", "style") else self.text
        return " ".join([own, *(child.words for child in self.children)])


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in ("meta", "link"):
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def parsed(page: bytes | str) -> Element:
    reader = _Reader()
    reader.feed(page.decode() if isinstance(page, bytes) else page)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root


def data_of(page: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(parsed(page).one(id="data").text)
    return found


def cells(heat: dict[str, Any]) -> dict[tuple[int, int], float]:
    """Every cell of a map, by row and column from 0, as the page's script reads it."""
    counts = [n for (n,) in struct.iter_unpack("<i", base64.b64decode(heat["counts"]))]
    places = [n for (n,) in struct.iter_unpack("<i", base64.b64decode(heat["places"]))]
    values = [v for (v,) in struct.iter_unpack("<f", base64.b64decode(heat["values"]))]
    (top, bottom), (left, right), (down, across) = heat["rows"], heat["columns"], heat["step"]
    tall, wide = (bottom - top) // down + 1, (right - left) // across + 1
    assert len(counts) == tall
    found = dict.fromkeys(product(range(tall), range(wide)), 0.0)
    q = heat["q"]
    if q is not None:
        a, b, c, d = heat["table"]
        for i, j in found:
            x, s = top + i, left + j
            if not (a <= x <= b and c <= s <= d):
                found[i, j] = (1 - q) / (1 + q) * q ** abs(x - s)
    at = 0
    for i, count in enumerate(counts):
        assert places[at : at + count] == sorted(set(places[at : at + count]))
        for k in range(at, at + count):
            found[i, places[k]] = values[k]
        at += count
    assert at == len(places) == len(values)
    return found


def exact(matrix: NoiseMatrix, x: int, s: int) -> Fraction:
    """`Pr[s|x]` from the integers, as A's Remark 8 has it."""
    row, (low, high), q = matrix.row(x), matrix.outputs, matrix.q
    noise = lambda t: (1 - q) / (1 + q) * q ** abs(t - x)  # type: ignore[operator]  # noqa: E731
    if row is None or not low <= s <= high:
        return Fraction(0) if q is None else noise(s)
    inside = Fraction(1) if q is None else sum((noise(t) for t in range(low, high + 1)), Fraction(0))
    return inside * dict(row).get(s, 0) / matrix.denominator
