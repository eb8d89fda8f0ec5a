"""The command that draws curves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import optdp.work as work
from optdp.cli.arguments import AllowOutside, AsJson, Deadline, ProblemPath
from optdp.cli.printing import out, plain, print_json, working
from optdp.errors import ProblemError
from optdp.files.atomic import check_writable


def curve(
    problem: ProblemPath,
    save: Annotated[
        Path, typer.Option("--out", "-o", help="Write a picture (.svg, .png, .pdf) or the numbers (.csv) here.")
    ],
    points: Annotated[
        int | None, typer.Option(help="How many points to compute, instead of the number in the file.", min=2)
    ] = None,
    allow_outside: AllowOutside = False,
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """Vary one number of a problem, as the table "sweep" in its file says, and draw or write the curves."""
    from optdp.loading import load_file
    from optdp.sweeps.curve import WRITERS, sweep

    if save.suffix not in WRITERS:
        raise ProblemError(f"--out must end in {', '.join(WRITERS)}. Found {save.name!r}.")
    check_writable(save)
    with working(deadline) as (say, clock):
        found = sweep(load_file(problem, allow_outside=allow_outside), say, points)
        stop = work.stopped() or work.Stopped()
        if found.interrupted and not any(value is not None for line in found.lines.values() for value in line):
            raise stop
    with work.held(later=False):
        WRITERS[save.suffix](found, save)
        if as_json:
            print_json(found.summary())
        else:
            missing = sum(value is None for line in found.lines.values() for value in line)
            words = f"; {missing} points have no answer and are left out" if missing else ""
            words += f"; {stop.why}: the points so far" if found.interrupted else ""
            out.print(f"wrote {plain(save)}: {len(found.lines)} curves of {len(found.places)} points{words}")
    raise typer.Exit(clock.exit_code(found.interrupted))
