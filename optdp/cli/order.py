"""The command that shuffles: answers within groups, around an order; or the messages of a shuffle protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optdp.cli.arguments import AllowOutside, AsJson, Seed
from optdp.cli.printing import err, out, plain, print_json, progress
from optdp.cli.protocol import shuffle_messages
from optdp.cli.run import WARNING
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable

OrderPath = Annotated[Path, typer.Argument(help="An order or a shuffle protocol, as written by `optdp solve --out`.")]


def shuffle(
    order: OrderPath,
    save: Annotated[Path, typer.Option("--out", "-o", help="Write what is shuffled here (.csv; messages: .jsonl).")],
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="A CSV file with a header and one row for each record.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            "-c",
            help="The column with the answers, already randomized by the people; may be given several times.",
        ),
    ] = None,
    given: Annotated[
        Path | None, typer.Option("--messages", "-m", help="For a shuffle protocol: the messages of its clients.")
    ] = None,
    seed: Seed = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Shuffle answers within groups, around an order that is verified first; or the messages of clients.

    Several columns are shuffled together: each row of answers moves to another record as a whole.

    For example:  optdp shuffle order.json --data answers.csv --column y --out shuffled.csv

    or:  optdp shuffle design.json --messages messages.jsonl --out shuffled.jsonl
    """
    import numpy as np

    from optdp.artifact import OpenedOrder, open_artifact
    from optdp.files.atomic import write_bytes
    from optdp.files.data import read_columns
    from optdp.numbers.source import Source
    from optdp.order.alphabet import check_values
    from optdp.order.sampling import shuffled

    if given is not None:
        if data is not None or column or seed is not None or allow_outside:
            raise ProblemError("--messages goes with --out alone. Found options for an order beside it.")
        shuffle_messages(order, given, save, as_json)
        return
    if data is None or not column:
        raise ProblemError("An order needs --data and --column, a shuffle protocol --messages. Found none of these.")
    source, names = Source(seed), [name.strip() for name in column]
    check_writable(save)
    check_apart(save, {"the order": order, "the data": data})
    with progress() as say:
        say("verifying the order")
        opened = open_artifact(order, OpenedOrder, allow_outside=allow_outside)
        check_apart(save, {f"the file {place.name}": place for place in opened.files})
        found = opened.verified
        say("reading the answers")
        columns = read_columns(data, names)
        answers = list(zip(*columns.values(), strict=True))
        if len(answers) != found.artifact.n:
            raise ProblemError(
                f"The order is for {found.artifact.n:,} records. Found {len(answers):,} rows. Change the data, or "
                "solve again."
            )
        check_values(len(set(answers)), found.artifact.values)
        say("shuffling")
        places = shuffled(
            np.arange(len(answers)), found.artifact.order, found.artifact.q, source, found.artifact.distance
        )
        rows = [names, *(answers[place] for place in places.tolist())]
        write_bytes(save, "".join(",".join(map(_cell, row)) + "\n" for row in rows).encode())
    if not source.secure:
        err.print(f"[yellow]{WARNING}[/]")
    figures = {
        "written": str(save), "columns": names, "n": found.artifact.n, "alpha": found.artifact.claim["alpha"],
        "sensitivity": found.sensitivity, "private": source.secure, "note": "" if source.secure else WARNING,
    }  # fmt: skip
    if as_json:
        print_json(figures)
    else:
        out.print(plain(f"wrote {save}: {len(answers):,} answers, alpha {found.artifact.claim['alpha']}"))


def _cell(text: str) -> str:
    """A cell of a CSV file, quoted where it must be: also for a bare carriage return."""
    plain = text and not any(sign in text for sign in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'
