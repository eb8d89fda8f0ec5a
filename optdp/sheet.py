"""What a person is shown of a solution: facts, tables and bars, without a word about where they are drawn.

The command line draws a sheet in the terminal, a notebook as HTML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Literal, NamedTuple

MORE = "More: docs/guarantee.md in optdp's source"
"""Where it is told what a promise means."""

Tone = Literal["", "strong", "good", "other", "warning", "dim"]


class Cell(NamedTuple):
    """A text, or a bar of so much of the full length, or both: the bar has the tone then. `after` is plain again."""

    text: str = ""
    tone: Tone = ""
    share: float | None = None
    after: str = ""


@dataclass(frozen=True)
class Listing:
    """A table."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell | str, ...], ...]


@dataclass(frozen=True)
class Sheet:
    """Facts by their names, tables below them, remarks, and what the promise means."""

    facts: tuple[tuple[str, Cell | str], ...]
    listings: tuple[Listing, ...] = ()
    remarks: tuple[str, ...] = ()
    meaning: str = ""

    @property
    def below(self) -> tuple[str, ...]:
        """The remarks, and what the promise means."""
        return (*self.remarks, f"{self.meaning} {MORE}") if self.meaning else self.remarks

    def html(self) -> str:
        """As a notebook shows it."""
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{_html(cell)}</td></tr>" for name, cell in self.facts)
        parts = [f"<table>{rows}</table>"]
        for listing in self.listings:
            head = "".join(f"<th>{escape(name)}</th>" for name in listing.head)
            body = "".join("<tr>" + "".join(f"<td>{_html(c)}</td>" for c in row) + "</tr>" for row in listing.rows)
            parts.append(f"<table><tr>{head}</tr>{body}</table>")
        parts += [f"<p><small>{escape(text)}</small></p>" for text in self.below]
        return "".join(parts)


def _html(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return escape(cell)
    colour = "#2a7a3b" if cell.tone == "good" else "#3b6ea5"
    width = 0 if cell.share is None else max(1, round(160 * cell.share))
    style = f"display:inline-block;height:.7em;width:{width}px;background:{colour}"
    drawn = "" if cell.share is None else f' <span style="{style}"></span>'
    text = f"<b>{escape(cell.text)}</b>" if cell.tone == "strong" else escape(cell.text)
    return text + drawn + escape(cell.after)


def figure(value: float | None) -> str:
    """A number with the digits that matter."""
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.9g}" if math.isfinite(value) else "nothing is hidden"


def decimal(text: str) -> str:
    """A claimed number, short."""
    if text == "infinite":
        return text
    value = Fraction(text)
    return f"{float(value):.12g}" if value < 10**9 else "more than 1e9"


def between(value: float, low: float, high: float) -> float:
    """How long the bar of a value is on a logarithmic scale, never quite nothing."""
    spread = high / low > 1.0001
    return 0.08 + 0.92 * (math.log(value / low) / math.log(high / low) if spread else 1.0)


def ordinary(epsilon: str) -> str:
    """An ordinary epsilon in words."""
    if epsilon == "infinite":
        return "infinite: nothing is promised without the prior"
    return f"{decimal(epsilon)}  (whatever anybody knows; composes)"


def bound_words(tail: str, form: str = "table") -> str:
    """What the lower bound speaks of: the mechanisms that the problem admits."""
    if form == "additive":
        return "least possible, additive"
    return "least possible, with tails" if tail == "geometric" else "least possible"
