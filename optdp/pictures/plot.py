"""Pictures by matplotlib, which the extra [plot] brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from optdp.errors import ProblemError
from optdp.extras import install
from optdp.pictures.chart import Bars, Chart, Heat, Picture, ticks
from optdp.pictures.svg import DASHES, INKS, LOW, RULE, thickness

LONGEST = 1500
"""Rows and columns of a heat map that are drawn one by one; of more the largest of each block."""


def drawn(pictures: Mapping[str, Callable[[], Picture]], which: str, ax: Any) -> Any:
    """Draw the picture of this name, or the first, on `ax` or on new axes, and return the axes."""
    if not pictures:
        raise ProblemError("There are no pictures of this.")
    if which and which not in pictures:
        names = list(pictures)
        listed = ", ".join(names if len(names) <= 12 else [*names[:6], "...", *names[-4:]])
        raise ProblemError(f"There is no picture {which!r} of this. Choose one of: {listed}.")
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ProblemError(f"Pictures need matplotlib: {install('plot')}.") from None
        ax = pyplot.figure(figsize=(7.0, 4.6), layout="constrained").add_subplot()
    draw(pictures[which or next(iter(pictures))](), ax)
    return ax


@singledispatch
def draw(picture: Picture, ax: Any) -> None:
    """Draw a picture on axes."""
    raise TypeError(f"No picture: {type(picture).__name__}.")


@draw.register
def _bars(picture: Bars, ax: Any) -> None:
    """Bars to the right, the first on top, with their numbers; what is infinite goes to the edge."""
    values = [value for _, value in picture.rows]
    known = [value for value in values if value is not None and value > 0]
    edge = max(known, default=1.0) * (1.25 if picture.log else 1.1)
    inks = [INKS[1] if v is None else INKS[0] if i == 0 else RULE for i, v in enumerate(values)]
    drawn = ax.barh(range(len(values)), [edge if v is None else v for v in values], color=inks, height=0.6)
    texts = ["infinite" if v is None else f"{v:.6g}" for v in values]
    ax.bar_label(drawn, texts, padding=4, fontsize=9)
    ax.set_yticks(range(len(values)), [name for name, _ in picture.rows], parse_math=False)
    ax.invert_yaxis()
    if picture.log and known:
        ax.set_xscale("log")
        ax.set_xlim(min(known) / 2, edge * 6)
        _round_ticks(ax.xaxis, *ax.get_xlim())
    else:
        ax.set_xlim(0, edge * 1.2)
    ax.set_xlabel(picture.across)
    ax.spines[["top", "right"]].set_visible(False)


@draw.register
def _chart(picture: Chart, ax: Any) -> None:
    """Lines, each thinner than those below it and with dashes of its own, so that none is hidden; areas behind them."""
    along = picture.along
    lines = [curve for curve in picture.curves if curve.style != "area"]
    for area in picture.curves:
        if area.style == "area":
            behind = ax.twinx()
            behind.fill_between(along, area.values, color=RULE, alpha=0.35, label=area.name)
            behind.set_ylim(0, max(float(np.nanmax(area.values)), 1e-300) / 0.55)
            behind.set_yticks([])
            behind.set_zorder(ax.get_zorder() - 1)
            ax.patch.set_visible(False)
            ax.fill_between([], [], color=RULE, alpha=0.35, label=area.name)
    few = len(along) <= 40
    for i, curve in enumerate(lines):
        heights = np.where(curve.values > 0, curve.values, np.nan) if picture.log else curve.values
        dash, thick = tuple(float(part) / 2 for part in DASHES[i % len(DASHES)].split()), thickness(i, len(lines))
        ax.plot(
            along, heights, label=curve.name if curve.name[:1] != "_" else f" {curve.name}",
            color=INKS[i % len(INKS)], linewidth=thick, zorder=2 + i,
            linestyle=(0, dash) if dash else "-", marker="o" if few else None, markersize=thick + 1.5,
        )  # fmt: skip
    for level in picture.levels:
        ax.axhline(level.value, color="black", linewidth=1, linestyle="--")
        ax.annotate(
            f"{level.name} = {level.value:.4g}", (1, level.value), (-4, 3), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", fontsize=8, parse_math=False,
        )  # fmt: skip
    ax.set_xlabel(picture.across)
    ax.set_ylabel(picture.up)
    ax.set_xscale("log" if picture.log_across else "linear")
    if picture.log_across:
        _round_ticks(ax.xaxis, *ax.get_xlim())
    if picture.log and any(np.nanmax(curve.values, initial=0) > 0 for curve in lines):
        ax.set_yscale("log")
        _round_ticks(ax.yaxis, *ax.get_ylim())
    ax.grid(visible=True, which="both", alpha=0.25)
    for text in ax.legend(fontsize=8).get_texts():
        text.set_parse_math(False)


def _round_ticks(axis: Any, low: float, high: float) -> None:
    """Round numbers on a logarithmic axis, also where it is short."""
    marks = ticks(low, high, log=True)
    axis.set_ticks(marks, [f"{mark:g}" for mark in marks])
    axis.set_ticks([], minor=True)


@draw.register
def _heat(picture: Heat, ax: Any) -> None:
    """Probabilities on a logarithmic scale; what is below the least shade is left white."""
    from matplotlib.colors import LogNorm

    cells = picture.dense()
    steps = [max(1, -(-size // LONGEST)) for size in cells.shape]
    for axis, step in enumerate(steps):
        if step > 1:
            cells = np.maximum.reduceat(cells, np.arange(0, cells.shape[axis], step), axis=axis)
    shown = np.ma.masked_less(cells, 10.0**LOW)
    (top, bottom), (left, right) = picture.rows, picture.columns
    image = ax.imshow(
        shown, norm=LogNorm(10.0**LOW, 1.0), cmap="YlGnBu", aspect="auto", interpolation="nearest",
        extent=(left - 0.5, right + 0.5, bottom + 0.5, top - 0.5),
    )  # fmt: skip
    ax.locator_params(integer=True)
    ax.set_xlabel(picture.across)
    ax.set_ylabel(picture.down)
    ax.figure.colorbar(image, ax=ax, label="probability")
