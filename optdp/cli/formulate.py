"""The command that writes the linear programs of a problem for other solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from optdp.cli.arguments import AllowOutside, AsJson, Deadline, ProblemPath
from optdp.cli.printing import out, plain, print_json, working
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable, write_bytes


def formulate(
    problem: ProblemPath,
    to: Annotated[
        str, typer.Option(help="The format: mps, lp, cvxpy (a script) or npz (arrays); without it, list the programs.")
    ] = "",
    save: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write.")] = None,
    program: Annotated[str, typer.Option(help="The name of the program to write; by default the specification.")] = "",
    allow_outside: AllowOutside = False,
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """List the linear programs that solve a problem, or write one of them for another solver."""
    from optdp.kinds import formulate as stated
    from optdp.loading import load
    from optdp.programs.formats import FORMATS
    from optdp.programs.statement import named

    if to and to not in FORMATS:
        raise ProblemError(f"--to must be one of {', '.join(FORMATS)}. Found {to!r}.")
    if (save is None) != (not to):
        raise ProblemError("--to (the format) and --out (the file) belong together. Found only one of them.")
    with working(deadline) as (say, _):
        say("reading the problem")
        given = load(problem, allow_outside=allow_outside)
        if save is not None:
            check_apart(save, {"the problem": problem})
            check_writable(save)
        say("formulating")
        statements = stated(given)
        if save is not None:
            chosen = named(statements, program)
            say(f"writing out the program {chosen.name}")
            write_bytes(save, FORMATS[to](chosen.program(), chosen.note))
            statements = [chosen]
    listed = [
        {"program": one.name, "what": one.what, "unknowns": one.unknowns, "rows": one.rows, "entries": one.entries,
         "constant": one.constant}
        for one in statements
    ]  # fmt: skip
    if as_json:
        print_json({"programs": listed, "written": None if save is None else str(save)})
        return
    table = Table("program", "unknowns", "rows", "entries", "what it is", box=None)
    for one in statements:
        table.add_row(one.name, f"{one.unknowns:,}", f"{one.rows:,}", f"{one.entries:,}", plain(one.what))
    out.print(table)
    if save is not None:
        out.print(f"wrote {plain(str(save))}")
