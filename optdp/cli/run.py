"""The command that runs a shuffle protocol on data: randomize for every user, shuffle, analyze, write the estimate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.table import Table

import optdp.work as work
from optdp.cli.arguments import AllowOutside, AsJson, Deadline, ProblemPath, Seed
from optdp.cli.printing import bar, err, out, plain, print_json, working
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable
from optdp.sheet import figure

SHOWN_BINS = 40
WARNING = "seeded draws can be repeated and are not private"


class Estimate(Protocol):
    """What the analyst publishes."""

    def summary(self) -> dict[str, Any]:
        """Figures that JSON can hold."""
        ...


class Runnable(Protocol):
    """A shuffle protocol: users randomize, the shuffler takes names and order off, the analyst estimates."""

    @property
    def columns(self) -> int:
        """How many columns of data it needs."""
        ...

    def read(self, columns: list[list[str]], names: Sequence[str], clip: bool) -> Any:
        """The users' values, checked: as many as the protocol was made for, each within its bounds."""
        ...

    def randomize(self, values: Any, source: Any) -> Any: ...

    def shuffle(self, messages: Any) -> Any: ...

    def analyze(self, released: Any) -> Estimate: ...


def run(
    problem: ProblemPath,
    data: Annotated[Path, typer.Option("--data", "-d", help="A CSV file with a header and one row for each user.")],
    column: Annotated[
        list[str],
        typer.Option("--column", "-c", help="The column with the users' values; give it twice for two dimensions."),
    ],
    save: Annotated[Path, typer.Option("--out", "-o", help="Write the estimate here (.json).")],
    clip: Annotated[bool, typer.Option("--clip", help="Move values outside the bounds to the nearest bound.")] = False,
    seed: Seed = None,
    allow_outside: AllowOutside = False,
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """Run a problem's best shuffle protocol on data, and write the private estimate.

    For example:  optdp run ages.toml --data people.csv --column age --out estimate.json
    """
    from optdp.files.atomic import write_bytes
    from optdp.kinds import find, kind_of
    from optdp.loading import load
    from optdp.numbers.source import Source

    source = Source(seed)
    check_writable(save)
    check_apart(save, {"--data": data, "the problem": problem})
    with working(deadline) as (say, clock):
        say("reading the problem")
        given: Any = load(problem, allow_outside=allow_outside)
        find(kind_of(given), "run")
        document = _estimated(given, data, column, clip, source, say)
    with work.held(later=False):
        write_bytes(save, (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())
        if not source.secure:
            err.print(f"[yellow]{WARNING}[/]")
        if as_json:
            print_json(document)
        else:
            show_estimate(document, save)
    raise typer.Exit(clock.exit_code(interrupted=False))


def _estimated(given: Any, data: Path, columns: list[str], clip: bool, source: Any, say: Any) -> dict[str, Any]:
    """Everything between reading and writing: nothing is drawn before all of the data is found to be good."""
    from optdp.files.data import read_columns
    from optdp.kinds import solve

    say("reading the data")
    cells = read_columns(data, columns)
    say("solving")
    solution: Any = solve(given, progress=say)
    if getattr(solution, "status", "") == "interrupted":
        raise work.stopped() or KeyboardInterrupt
    protocol: Runnable = solution.protocol()
    if len(columns) != protocol.columns:
        raise ProblemError(f"--column must be given {_times(protocol.columns)}. Found it {_times(len(columns))}.")
    say("checking the data")
    values = protocol.read(list(cells.values()), list(cells), clip)
    say("randomizing")
    messages = protocol.randomize(values, source)
    say("shuffling")
    released = protocol.shuffle(messages)
    say("analyzing")
    return {
        "format": "optdp/estimate",
        "version": 1,
        "kind": given.kind,
        "problem": given.figures(),
        "estimate": protocol.analyze(released).summary(),
        "privacy": solution.privacy(),
        "private": source.secure,
        "note": "" if source.secure else WARNING,
    }


def show_estimate(document: dict[str, Any], saved: Path) -> None:
    """An estimate as a table, and bars for a histogram."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    given = ", ".join(f"{name} = {value}" for name, value in document.get("problem", {}).items())
    table.add_row("[bold]problem[/]", plain(": ".join(filter(None, (document["kind"], given)))))
    for part in ("estimate", "privacy"):
        for name, value in document[part].items():
            if name != "bins" and (name, part) != ("meaning", "estimate"):
                table.add_row(plain(name.replace("_", " ")), plain(_cell(value)))
    table.add_row("written", plain(saved))
    out.print(table)
    if bins := document["estimate"].get("bins"):
        _show_bins(bins)


def _show_bins(bins: list[dict[str, Any]]) -> None:
    """A bar for every value of a histogram, the first of very many."""
    most = max(max(held["count"] for held in bins), 1e-9)
    table = Table("value", "count", "standard error", "", box=None, padding=(0, 2))
    for held in bins[:SHOWN_BINS]:
        drawn = f"[green]{bar(max(held['count'], 0.0) / most)}[/]"
        table.add_row(plain(held["value"]), f"{held['count']:,.1f}", f"{held['standard_error']:,.1f}", drawn)
    out.print(table)
    if len(bins) > SHOWN_BINS:
        out.print(f"[dim]and {len(bins) - SHOWN_BINS:,} more values, in the file[/]")


def _cell(value: Any) -> str:
    """A figure, or as much of several as fits into a line."""
    if isinstance(value, dict):
        value = [f"{name}: {_cell(entry)}" for name, entry in value.items()]
    if isinstance(value, list | tuple) and value and isinstance(value[0], list):
        value = [f"{_cell(entry[0])}: {_cell(entry[1])}" for entry in value]
    if isinstance(value, list | tuple):
        few = ", ".join(_cell(entry) for entry in value[:8])
        return few if len(value) <= 8 else f"{few}, ... ({len(value):,} values)"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return figure(value) if number else str(value)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
