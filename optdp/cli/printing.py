"""How results look in a terminal: tables, bars, progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

import optdp.work as work
from optdp.sheet import Cell, Sheet
from optdp.work import Clock, Progress, elapsed, lines, listening

out = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 160, emoji=False)
err = Console(stderr=True, soft_wrap=True, emoji=False)


def plain(text: object) -> str:
    """What is not our own words (names, titles, messages of others) for printing as it is: no markup, no control codes.

    Emoji codes such as :x: are off in both consoles.
    """
    return escape("".join(sign if sign.isprintable() else "?" for sign in str(text)))


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2))


class _Shown:
    """What is being done and since when, drawn anew by the terminal's own thread also while a call takes long."""

    def __init__(self) -> None:
        self.text, self.expected, self.begin = "working", "", time.monotonic()

    def __call__(self, text: str) -> None:
        self.text = text

    def estimate(self, text: str) -> None:
        self.expected = text

    def __rich__(self) -> Text:
        passed = elapsed(time.monotonic() - self.begin)
        return Text.assemble(self.text, (f"  {passed}  {self.expected}".rstrip(), "dim"), no_wrap=True)


quiet = False
"""Whether the user wants no progress (`--quiet`)."""


@contextmanager
def progress() -> Iterator[Progress]:
    """What is being done, on stderr: in place in a terminal, else as lines."""
    if quiet:
        yield lambda _: None
    elif err.is_terminal:
        shown = _Shown()
        with err.status(shown), listening(shown):
            yield shown
    else:
        with lines() as say, listening(say):
            yield say


@contextmanager
def working(deadline: float | None = None) -> Iterator[tuple[Progress, Clock]]:
    """Progress and the deadline of a command, for all that may take long."""
    with progress() as say, work.deadline(deadline) as clock:
        yield say, clock


TONES = {"strong": "bold green", "good": "green", "other": "blue", "warning": "yellow", "dim": "dim", "": ""}
"""How a tone of a sheet looks."""


def show(sheet: Sheet, saved: str = "") -> None:
    """A sheet in the terminal."""
    if sheet.facts:
        table = Table(show_header=False, box=None, padding=(0, 2))
        for number, (name, cell) in enumerate(sheet.facts):
            strong = number == 0 or (isinstance(cell, Cell) and cell.tone == "strong")
            table.add_row(f"[bold]{plain(name)}[/]" if strong else plain(name), drawn(cell))
        if saved:
            table.add_row("written", plain(saved))
        out.print(table)
    for listing in sheet.listings:
        table = Table(*map(plain, listing.head), box=None, padding=(0, 2))
        for row in listing.rows:
            table.add_row(*map(drawn, row))
        out.print(table)
    for text in sheet.below:
        out.print(f"[dim]{plain(text)}[/]")


def drawn(cell: Cell | str) -> str:
    """A cell with its tone, and its bar."""
    if isinstance(cell, str):
        return plain(cell)
    style = TONES[cell.tone]
    if cell.share is not None:
        return f"{plain(cell.text)}  [{style}]{bar(cell.share)}[/]{plain(cell.after)}".lstrip()
    return (f"[{style}]{plain(cell.text)}[/]" if style else plain(cell.text)) + plain(cell.after)


def show_further(figures: Mapping[str, Any]) -> None:
    """What else was asked for and holds: the signature, a second opinion."""
    for name in ("signature", "second_opinion"):
        if name in figures:
            out.print(f"  [bold green]{name.replace('_', ' ')}[/]  {plain(figures[name])}")


def show_parties(problem: Any, parties: list[dict[str, Any]]) -> None:
    from optdp.plan.certificate import listed_parties

    show(Sheet((), (listed_parties(problem, parties),)))


def bar(share: float) -> str:
    return "█" * max(1, round(24 * share))
