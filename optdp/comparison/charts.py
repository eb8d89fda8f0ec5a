"""Pictures of many rows, as SVG that needs no script: lines in steps, and clouds of points, on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optdp.html import Html, el, join
from optdp.pictures.svg import DASHES, thickness

WIDE, TALL = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 58, 24, 14, 46
COLOURS = 6
"""Of the style sheet; further series have other marks and dashes."""

Point = tuple[float, float, str]
"""A place on both axes, and what is said of it."""


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `low` to `high`, with further words for places of their own."""

    name: str
    low: float
    high: float
    words: tuple[tuple[float, str], ...] = ()
    """Places that are no numbers, such as "infinite": with each its place between 0 (low) and 1 (high)."""

    @staticmethod
    def around(name: str, values: Sequence[float], **words: float) -> Axis:
        """An axis on which all of these have their place, from one power of ten to another."""
        known = [value for value in values if 0 < value < math.inf] or [1.0, 10.0]
        low, high = 10.0 ** math.floor(math.log10(min(known))), 10.0 ** math.ceil(math.log10(max(known)))
        return Axis(name, low, high if high > low else 10 * low, tuple((share, word) for word, share in words.items()))

    def share(self, value: float) -> float:
        """How far along a number is; those beyond the ends are at them."""
        first, last = self.ends
        if value <= self.low:
            return first
        at = math.log(min(value, self.high) / self.low) / math.log(self.high / self.low)
        return first + at * (last - first)

    @property
    def ends(self) -> tuple[float, float]:
        """Between which shares the numbers lie: places for words are outside."""
        below = any(share < 0.5 for share, _ in self.words)
        above = any(share > 0.5 for share, _ in self.words)
        return 0.12 if below else 0.0, 0.88 if above else 1.0

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Powers of ten, not more than so many, and the words."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        every = max(1, math.ceil((last - first + 1) / most))
        found = [(self.share(10.0**k), _power(k)) for k in range(first, last + 1, every)]
        return found + list(self.words)


@dataclass(frozen=True)
class Series:
    """The points of one backend; `number` is its colour and mark, the same in all pictures of a page."""

    name: str
    number: int
    points: tuple[Point, ...]


def _power(k: int) -> str:
    return f"{10.0**k:g}" if -3 <= k <= 4 else f"1e{k}"


def cloud(name: str, label: str, across: Axis, up: Axis, series: Sequence[Series], caption: str) -> Html:
    """A point for each row. A place on `up` that is a word is given as its share, negative."""
    drawn = [
        _mark(one.number, LEFT + across.share(x) * _width(), _height(up, y), said)
        for one in series
        for x, y, said in one.points
    ]
    return _figure(name, label, across, up, series, drawn, caption, _mark)


def steps(name: str, label: str, across: Axis, up: str, series: Sequence[Series], caption: str) -> Html:
    """A line in steps for each series, from 0 to 1."""
    drawn = []
    for i, one in enumerate(series):
        path, y = "", float(TALL - BOTTOM)
        for x, share, _ in one.points:
            at = LEFT + across.share(x) * _width()
            path += f"{'L' if path else 'M'}{at:.1f} {y:.1f}"
            y = TOP + (1 - share) * (TALL - TOP - BOTTOM)
            path += f"L{at:.1f} {y:.1f}"
        path += f"L{WIDE - RIGHT} {y:.1f}" if path else "M0 0"
        drawn.append(
            el("path", el("title", one.name), d=path, **_stroke(one.number), stroke_width=thickness(i, len(series)))
        )
    axis = Axis(up, 1.0, 10.0)
    shares = [(k / 5, f"{20 * k} %") for k in range(6)]
    return _figure(name, label, across, axis, series, drawn, caption, _sample, shares)


def _width() -> float:
    return WIDE - LEFT - RIGHT


def _height(up: Axis, y: float) -> float:
    share = -y if y <= 0 else up.share(y)
    return TOP + (1 - share) * (TALL - TOP - BOTTOM)


def _figure(
    name: str, label: str, across: Axis, up: Axis, series: Sequence[Series], drawn: Sequence[Html], caption: str,
    mark: Callable[[int, float, float, str], Html], levels: Sequence[tuple[float, str]] | None = None,
) -> Html:  # fmt: skip
    ground = el("rect", x=LEFT, y=TOP, width=_width(), height=TALL - TOP - BOTTOM, class_="ground")
    svg = el(
        "svg", ground, _axes(across, up, levels), drawn,
        viewBox=f"0 0 {WIDE} {TALL}", role="img", aria_label=label,
    )  # fmt: skip
    items = [
        el("li", el("svg", mark(one.number, 11, 7, ""), viewBox="0 0 22 14", aria_hidden="true"), one.name)
        for one in series
    ]
    legend = el("ul", items, class_="legend")
    return el("figure", el("div", svg, legend, class_="plot"), el("figcaption", caption), class_="drawing", id=name)


def _axes(across: Axis, up: Axis, levels: Sequence[tuple[float, str]] | None) -> Html:
    bottom = TALL - BOTTOM
    parts: list[Html] = []
    for share, word in levels or up.ticks(8):
        y = TOP + (1 - share) * (bottom - TOP)
        parts.append(el("line", x1=LEFT, x2=WIDE - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="rule"))
        parts.append(el("text", word, x=LEFT - 6, y=f"{y + 4:.1f}", class_="tick", text_anchor="end"))
    for share, word in across.ticks(7):
        x = LEFT + share * _width()
        parts.append(el("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(el("text", word, x=f"{x:.1f}", y=bottom + 19, class_="tick", text_anchor="middle"))
    parts.append(el("line", x1=LEFT, x2=WIDE - RIGHT, y1=bottom, y2=bottom, class_="axis"))
    middle = f"translate(12 {TOP + (bottom - TOP) / 2:.0f}) rotate(-90)"
    parts.append(el("text", across.name, x=LEFT + _width() / 2, y=TALL - 6, class_="title", text_anchor="middle"))
    parts.append(el("text", up.name, x=0, y=0, class_="title", text_anchor="middle", transform=middle))
    return join(parts)


def _mark(number: int, x: float, y: float, said: str) -> Html:
    """A circle, square, triangle, diamond, by turns, in one of six colours."""
    kind = f"dot curve-{number % COLOURS}"
    inner = el("title", said) if said else join()
    shape = number // COLOURS % 4
    if shape == 0:
        return el("circle", inner, cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, class_=kind)
    if shape == 1:
        return el("rect", inner, x=f"{x - 3.6:.1f}", y=f"{y - 3.6:.1f}", width=7.2, height=7.2, class_=kind)
    corners = ((0, -5), (4.6, 3.6), (-4.6, 3.6)) if shape == 2 else ((0, -5), (5, 0), (0, 5), (-5, 0))
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return el("polygon", inner, points=points, class_=kind)


def _sample(number: int, x: float, y: float, _: str) -> Html:
    return el("path", d=f"M{x - 11:.0f} {y:.0f}L{x + 11:.0f} {y:.0f}", **_stroke(number), stroke_width=2)


def _stroke(number: int) -> dict[str, str | None]:
    """The colour and the dashes of a series."""
    dash = DASHES[(number + number // COLOURS) % len(DASHES)] or None
    return {"class_": f"curve curve-{number % COLOURS}", "stroke_dasharray": dash}
