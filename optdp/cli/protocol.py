"""The commands of a shuffle protocol that is deployed: `randomize` and `analyze`; `shuffle` is in `order`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optdp.cli.arguments import AsJson
from optdp.cli.printing import err, out, plain, print_json, progress
from optdp.cli.run import WARNING, show_estimate
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable, write_bytes

if TYPE_CHECKING:
    from optdp.shuffle.format import Deployed
    from optdp.shuffle.messages import Tally
    from optdp.work import Progress

DesignPath = Annotated[Path, typer.Argument(help="A shuffle protocol that `optdp solve --out` wrote.")]


def randomize(
    design: DesignPath,
    value: Annotated[
        list[str] | None, typer.Option("--input", "-x", help="One person's value; twice for two dimensions.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="Instead of one value: a CSV file, a row for each person.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="The values in it; twice for two dimensions.")
    ] = None,
    clip: Annotated[bool, typer.Option("--clip", help="Move values outside the bounds to the nearest end.")] = False,
    seed: Annotated[int | None, typer.Option(help="Repeatable draws, for tests only: they are NOT private.")] = None,
) -> None:
    """Randomize values as clients do: a message for each on standard output, one line of JSON.

    For example:  optdp randomize design.json --input 417 >> messages.jsonl
    """
    from optdp.artifact import OpenedShuffle, open_artifact
    from optdp.files.data import read_columns
    from optdp.numbers.source import Source
    from optdp.shuffle import analysis, messages

    if bool(value) == (data is not None) or (data is None) != (not column):
        raise ProblemError("Either --input or --data with --column must be given. Found neither, or parts of both.")
    if clip and data is None:
        raise ProblemError("--clip is for --data. Found it with --input.")
    source = Source(seed)
    with progress() as say:
        say("verifying the protocol")
        found = open_artifact(design, OpenedShuffle).verified.deployed
        if data is None:
            values = analysis.only(found, value or ())
        else:
            say("reading the data")
            cells = read_columns(data, [name.strip() for name in column or ()])
            values = analysis.read_values(found, list(cells.values()), list(cells), clip)
        say("randomizing")
        for part in analysis.randomized(found, values, source):
            sys.stdout.write(messages.spelled(found, part))
    if not source.secure:
        err.print(f"[yellow]{WARNING}[/]")


def _read(design: Path, given: Path, read: Callable[[Deployed, Path], Tally], say: Progress) -> tuple[Deployed, Tally]:
    """The verified protocol, and its messages: as many as its claim is for."""
    from optdp.artifact import OpenedShuffle, open_artifact
    from optdp.shuffle import messages

    say("verifying the protocol")
    found = open_artifact(design, OpenedShuffle).verified.deployed
    say("reading the messages")
    tally = read(found, given)
    messages.check_count(found, tally)
    return found, tally


def shuffle_messages(design: Path, given: Path, save: Path, as_json: bool) -> None:
    """Take names and order off clients' messages."""
    from optdp.shuffle import messages

    check_writable(save)
    check_apart(save, {"the protocol": design, "the messages": given})
    with progress() as say:
        found, tally = _read(design, given, messages.collected, say)
        write_bytes(save, "".join(messages.shuffled(found, tally)).encode())
    if as_json:
        print_json({"written": str(save), "design": found.sha256, "messages": tally["messages"]})
    else:
        out.print(plain(f"wrote {save}: what is left of {tally['messages']:,} messages"))


def analyze(
    design: DesignPath,
    given: Annotated[Path, typer.Option("--messages", "-m", help="What `optdp shuffle` wrote.")],
    save: Annotated[Path, typer.Option("--out", "-o", help="Write the estimate here (.json).")],
    as_json: AsJson = False,
) -> None:
    """Estimate from shuffled messages: the figure, its standard error, an interval, and what is promised.

    For example:  optdp analyze design.json --messages shuffled.jsonl --out estimate.json
    """
    from optdp.shuffle import analysis, messages

    check_writable(save)
    check_apart(save, {"the protocol": design, "the messages": given})
    with progress() as say:
        found, tally = _read(design, given, messages.received, say)
        document: dict[str, Any] = {
            "format": "optdp/estimate", "version": 1, "kind": found.kind, "design": found.sha256,
            "estimate": analysis.estimate(found, tally), "privacy": analysis.promised(found, tally),
        }  # fmt: skip
        write_bytes(save, (json.dumps(document, indent=2) + "\n").encode())
    if as_json:
        print_json(document)
    else:
        show_estimate(document, save)
