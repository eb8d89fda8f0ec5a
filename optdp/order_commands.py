"""The commands about orders: shuffle answers within groups, and check an order."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from optdp.arguments import AsJson, check_apart, check_writable
from optdp.errors import ProblemError
from optdp.printing import err, explain, out, print_json, progress, show_further
from optdp.run_command import WARNING

OrderPath = Annotated[Path, typer.Argument(help="An order that `optdp solve --out` wrote.")]


def shuffle(
    order: OrderPath,
    data: Annotated[Path, typer.Option("--data", "-d", help="A CSV file with a header and a row for each record.")],
    column: Annotated[str, typer.Option("--column", "-c", help="The answers, randomized by the people themselves.")],
    save: Annotated[Path, typer.Option("--out", "-o", help="Write the shuffled answers here (.csv).")],
    seed: Annotated[int | None, typer.Option(help="Repeatable draws, for tests only: they are NOT private.")] = None,
    as_json: AsJson = False,
) -> None:
    """Shuffle answers within groups, around an order that is verified first (E, Algorithm 1).

    For example:  optdp shuffle order.json --data answers.csv --column y --out shuffled.csv
    """
    import numpy as np

    from optdp.artifact.files import write_bytes
    from optdp.data import read_columns
    from optdp.mallows.artifact import verify_order
    from optdp.mallows.mechanism import shuffled
    from optdp.math.source import Source

    source, column = Source(seed), column.strip()
    check_writable(save)
    check_apart(save, {"the order": order, "the data": data})
    with progress(as_json) as say:
        say("verifying the order")
        found = verify_order(order)
        folder = Path(os.path.realpath(order)).parent
        check_apart(save, {f"the file {place.name}": place for place in found.artifact.files(folder)})
        say("reading the answers")
        answers = read_columns(data, [column])[column]
        if len(answers) != found.artifact.n:
            raise ProblemError(
                f"The order is for {found.artifact.n:,} records. Found {len(answers):,} rows. Change the data, or "
                "solve again."
            )
        say("shuffling")
        places = shuffled(
            np.arange(len(answers)), found.artifact.order, found.artifact.q, source, found.artifact.distance
        )
        lines = map(_cell, [column, *(answers[place] for place in places.tolist())])
        write_bytes(save, ("\n".join(lines) + "\n").encode())
    if not source.secure:
        err.print(f"[yellow]{WARNING}[/]")
    figures = {
        "written": str(save), "n": found.artifact.n, "alpha": found.artifact.claim["alpha"],
        "sensitivity": found.sensitivity, "private": source.secure, "note": "" if source.secure else WARNING,
    }  # fmt: skip
    if as_json:
        print_json(figures)
    else:
        out.print(escape(f"wrote {save}: {len(answers):,} answers, alpha {found.artifact.claim['alpha']}"))


def _cell(text: str) -> str:
    """A cell of a CSV file, quoted where it must be: also for a bare carriage return."""
    plain = text and not any(sign in text for sign in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def is_order(path: Path) -> bool:
    """Whether a file says near its start that it is an order."""
    try:
        if not path.is_file():  # to open a pipe would wait for whoever writes to it
            return False
        with path.open("rb") as file:
            return b'"optdp/order"' in file.read(4096)
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return False


def show_verified_order(path: Path, as_json: bool, further: Callable[[str], dict[str, Any]]) -> None:
    """Verify an order and say what was recomputed; `further` checks what goes with its digest."""
    from optdp.mallows.artifact import verify_order
    from optdp.mallows.problem import OrderShuffle
    from optdp.math.exact import decimal_up, finite

    found = verify_order(path)
    claim, certified = found.artifact.claim, decimal_up(found.alpha, 12)
    figures = {
        "file": str(path), "status": "verified", "n": found.artifact.n, "alpha": claim["alpha"],
        "certified_alpha": float(found.alpha), "theta": finite(found.theta), "sensitivity": found.sensitivity,
        "width": claim["width"], "groups": found.artifact.digest, "sha256": found.artifact.sha256,
        "seconds": round(found.seconds, 3),
    }  # fmt: skip
    figures |= further(found.artifact.sha256)
    if as_json:
        print_json(figures)
        return
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("[bold green]verified[/]", escape(str(path)))
    table.add_row("alpha", f"{certified}  (claimed {claim['alpha']})")
    table.add_row("sensitivity", f"{found.sensitivity:,}, recomputed from {len(found.plain):,} groups")
    out.print(table)
    show_further(figures)
    print(f"  sha256  {found.artifact.sha256}")
    explain(OrderShuffle.meaning)
