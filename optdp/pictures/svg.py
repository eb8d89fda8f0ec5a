"""Pictures as SVG without a script or a style sheet: for notebooks, and for pages that are printed.

No line hides another: each is thinner than those below it and has dashes of its own, so that lines which coincide are
still seen to be several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch

import numpy as np

from optdp.html import Html, el, join
from optdp.pictures.chart import Bars, Chart, Floats, Heat, Picture, ticks

WIDE, TALL = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 44
INKS = ("#225ea8", "#c2410c", "#4d7c0f", "#7e22ce", "#0f766e", "#6b7280")
DASHES = ("", "7 4", "2 3", "9 3 2 3")
SOFT, RULE = "#6b7280", "#9ca3af"
SHADES = ("#edf8b1", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#253494", "#081d58")
LOW = -6
"""The power of ten at which shades begin."""
CELLS, SIDE = 48, 200
"""Cells and pixels of a heat map's longer side."""
MOST_POINTS = 400
"""Of a line: more could not be told apart."""
SIDE_BY_SIDE = "display:inline-block;vertical-align:top;margin:6px 56px 0 0"
ROW, BAR = 34, 10
"""The height of a row of bars, and of a bar."""


def thickness(number: int, lines: int) -> float:
    """How thick a line is: the first is drawn below all others and is the thickest."""
    return 1.6 + 1.6 * min(lines - 1 - number, 3) if lines > 1 else 2.0


def shown(title: str, sheet: str, pictures: Mapping[str, Callable[[], Picture]]) -> Html:
    """A fragment for notebooks: a sheet, and two pictures below it. The bounds are in the sheet already."""
    names = [name for name in pictures if name != "bounds"][:2] or list(pictures)[:1]
    drawn = [el("div", svg(pictures[name](), name), style=SIDE_BY_SIDE) for name in names]
    return el("div", el("strong", title), Html(sheet), *drawn, class_="optdp")


@singledispatch
def svg(picture: Picture, label: str = "") -> Html:
    """A picture as an element of a page; `label` says what it shows to whoever does not see it."""
    raise TypeError(f"No picture: {type(picture).__name__}.")


@svg.register
def _bars(picture: Bars, label: str = "") -> Html:
    parts: list[Html] = []
    for i, ((name, value), length) in enumerate(zip(picture.rows, picture.lengths(), strict=True)):
        y = ROW * i
        ink = INKS[1] if value is None else INKS[0] if i == 0 else RULE
        figure = "infinite" if value is None else f"{value:.6g}"
        parts.append(el("text", name, x=0, y=y + 14, font_weight=None if i else "bold"))
        parts.append(el("text", figure, x=WIDE, y=y + 14, text_anchor="end"))
        parts.append(el("rect", x=0, y=y + 19, width=f"{max(1.0, WIDE * length):.1f}", height=BAR, fill=ink))
    below = ROW * len(picture.rows) + 14
    scale = f"{picture.across}, logarithmic" if picture.log else picture.across
    return _drawing(label or picture.across, below + 6, *parts, el("text", scale, x=0, y=below, fill=SOFT))


@svg.register
def _chart(picture: Chart, label: str = "") -> Html:
    along = picture.along
    curves = [curve for curve in picture.curves if curve.style != "area"]
    across = _Axis(*ends(along, picture.log_across), picture.log_across, LEFT, WIDE - RIGHT)
    heights = np.concatenate([*(curve.values for curve in curves), [level.value for level in picture.levels]])
    up = _Axis(*ends(heights, picture.log, from_zero=True), picture.log, TALL - BOTTOM, TOP)
    parts = [_rules(across, up, picture)]
    for area in picture.curves:
        if area.style == "area" and (peak := np.nanmax(area.values, initial=0.0)) > 0:
            heights = TALL - BOTTOM - 0.55 * (TALL - TOP - BOTTOM) * np.nan_to_num(area.values) / peak
            line = _path(across.places(along), heights)
            if line:
                first, last = across.places(along[[0, -1]])
                d = f"{line}L{last:.1f} {TALL - BOTTOM}L{first:.1f} {TALL - BOTTOM}Z"
                parts.append(el("path", d=d, fill=RULE, fill_opacity=0.35))
    for i, curve in enumerate(curves):
        d = _path(across.places(along), up.places(curve.values))
        parts.append(el("path", d=d or "M0 0", stroke_linejoin="round", **_stroke(i, len(curves))))
    for level in picture.levels:
        y = f"{up.place(level.value):.1f}"
        parts.append(el("line", x1=LEFT, x2=WIDE - RIGHT, y1=y, y2=y, stroke="currentColor", stroke_dasharray="6 4"))
        said = f"{level.name} = {level.value:.4g}"
        at = up.place(level.value)
        near = at + 14 if at < TOP + 16 else at - 5
        parts.append(el("text", said, x=WIDE - RIGHT - 4, y=f"{near:.1f}", text_anchor="end"))
    names, deep = _names(picture, len(curves))
    return _drawing(label or f"{picture.up} by {picture.across}", TALL + deep, *parts, names)


@svg.register
def _heat(picture: Heat, label: str = "") -> Html:
    """The largest probability of each block, one path for each shade."""
    tall, wide = picture.shape
    cells = _largest(picture)
    unit = SIDE / max(cells.shape)
    height, width = (max(12.0, unit * size) for size in cells.shape)
    down, across = height / cells.shape[0], width / cells.shape[1]
    logs = np.full(cells.shape, -np.inf)
    np.log10(cells, out=logs, where=cells > 0)
    levels = np.floor((1 - logs / LOW) * len(SHADES))
    paths = []
    for level, shade in enumerate(SHADES):
        inside = (levels == level) | ((level == len(SHADES) - 1) & (levels > level))
        boxes = "".join(
            f"M{j * across:.4g} {i * down:.4g}h{across:.4g}v{down:.4g}h-{across:.4g}z" for i, j in np.argwhere(inside)
        )
        if boxes:
            paths.append(el("path", d=boxes, fill=shade))
    ground = el("rect", width=f"{width:.4g}", height=f"{height:.4g}", fill="#ffffff", stroke=RULE)
    names = [
        el("text", said, x=0, y=f"{height + y:.0f}", fill=SOFT)
        for said, y in ((f"down: {picture.down}", 15), (f"across: {picture.across}", 30))
    ]
    return el(
        "svg", ground, *paths, *names, width=f"{width:.0f}", height=f"{height + 34:.0f}",
        viewBox=f"0 0 {width:.4g} {height + 34:.4g}", role="img", font_size=11, font_family="sans-serif",
        aria_label=label or f"Heat map of {tall} inputs and {wide} outputs", overflow="visible",
    )  # fmt: skip


def _largest(heat: Heat) -> Floats:
    """The largest probability of each of at most CELLS by CELLS blocks."""
    tall, wide = heat.shape
    if tall * wide > 4_000_000:  # too large to be written out: the table's own entries alone
        cells = np.zeros((min(tall, CELLS), min(wide, CELLS)))
        for i, (places, values) in enumerate(heat.lines):
            np.maximum.at(cells[i * len(cells) // tall], places * cells.shape[1] // wide, values)
        return cells
    dense = heat.dense()
    rows = np.unique(np.arange(min(tall, CELLS)) * tall // min(tall, CELLS))
    columns = np.unique(np.arange(min(wide, CELLS)) * wide // min(wide, CELLS))
    found: Floats = np.maximum.reduceat(np.maximum.reduceat(dense, rows, axis=0), columns, axis=1)
    return found


# ---------------------------------------------------------------------- axes, lines, names


def ends(values: Floats, log: bool, from_zero: bool = False) -> tuple[float, float]:
    """From where to where an axis goes; those of a height begin at 0 unless they are logarithmic."""
    known = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not len(known):
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    if log:
        room = 1.05 if from_zero else 1.0
        return (low / room, high * room) if high > low else (low / 2, high * 2)
    if from_zero:
        low, high = min(low, 0.0), high + 0.08 * (high - min(low, 0.0))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


class _Axis:
    """Numbers as places on the page."""

    def __init__(self, low: float, high: float, log: bool, start: float, stop: float) -> None:
        self.low, self.high, self.log, self.start, self.stop = low, high, log, start, stop

    def places(self, values: Floats) -> Floats:
        """Where they are; nan for what has no place."""
        with np.errstate(all="ignore"):
            share = (
                (np.log(values) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
                if self.log
                else (values - self.low) / (self.high - self.low)
            )
        found: Floats = np.where(np.isfinite(share), self.start + share * (self.stop - self.start), np.nan)
        return found

    def place(self, value: float) -> float:
        return float(self.places(np.array([value]))[0])

    def ticks(self) -> list[float]:
        return ticks(self.low, self.high, self.log)


def _rules(across: _Axis, up: _Axis, picture: Chart) -> Html:
    parts = []
    for value in up.ticks():
        y = f"{up.place(value):.1f}"
        parts.append(el("line", x1=LEFT, x2=WIDE - RIGHT, y1=y, y2=y, stroke=RULE, stroke_width=0.4))
        parts.append(el("text", f"{value:g}", x=LEFT - 6, y=f"{up.place(value) + 4:.1f}", text_anchor="end"))
    for value in across.ticks():
        x = f"{across.place(value):.1f}"
        parts.append(el("line", x1=x, x2=x, y1=TALL - BOTTOM, y2=TALL - BOTTOM + 5, stroke=SOFT))
        parts.append(el("text", f"{value:g}", x=x, y=TALL - BOTTOM + 18, text_anchor="middle"))
    parts.append(el("line", x1=LEFT, x2=WIDE - RIGHT, y1=TALL - BOTTOM, y2=TALL - BOTTOM, stroke=SOFT))
    turned = f"translate(12 {(TALL - BOTTOM + TOP) / 2:.0f}) rotate(-90)"
    middle = (LEFT + WIDE - RIGHT) / 2
    parts.append(el("text", picture.across, x=f"{middle:.0f}", y=TALL - 8, text_anchor="middle"))
    parts.append(el("text", picture.up, transform=turned, text_anchor="middle"))
    return join(parts)


def _path(xs: Floats, ys: Floats) -> str:
    """A line through the points that there are; gaps stay gaps. Of very many points those at the edges of blocks."""
    block = math.ceil(len(xs) / MOST_POINTS)
    if block > 1:
        kept = set()
        for start in range(0, len(xs), block):
            part = ys[start : start + block]
            if np.isfinite(part).any():
                kept |= {start + int(np.nanargmin(part)), start + int(np.nanargmax(part))}
        chosen = sorted(kept)
        xs, ys = xs[chosen], ys[chosen]
    path, pen = "", "M"
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        if math.isnan(x) or math.isnan(y):
            pen = "M"
            continue
        path += f"{pen}{x:.1f} {y:.1f}"
        pen = "L"
    return path


def _stroke(number: int, lines: int) -> dict[str, str | float | None]:
    return {
        "fill": "none", "stroke": INKS[number % len(INKS)], "stroke_width": thickness(number, lines),
        "stroke_dasharray": DASHES[number % len(DASHES)] or None,
    }  # fmt: skip


def _names(picture: Chart, lines: int) -> tuple[Html, float]:
    """Which line is which, below the chart, and how much room that takes."""
    parts, number = [], 0
    for i, curve in enumerate(picture.curves):
        y = TALL + 4 + 18 * i
        if curve.style == "area":
            parts.append(el("rect", x=LEFT, y=y, width=28, height=9, fill=RULE, fill_opacity=0.35))
        else:
            parts.append(el("path", d=f"M{LEFT} {y + 5}h28", **_stroke(number, lines)))
            number += 1
        parts.append(el("text", curve.name, x=LEFT + 36, y=y + 9))
    return join(parts), 18.0 * len(picture.curves) + 6


def _drawing(label: str, height: float, *parts: Html | Sequence[Html]) -> Html:
    return el(
        "svg", *parts, viewBox=f"0 0 {WIDE} {height:.0f}", width=WIDE, height=f"{height:.0f}", role="img",
        aria_label=label, font_size=12, font_family="sans-serif", fill="currentColor",
    )  # fmt: skip
