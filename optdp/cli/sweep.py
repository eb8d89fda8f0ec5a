"""The commands that solve a problem at many points: `sweep` over a grid, `curve` over one number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import optdp.work as work
from optdp.cli.terminal import AllowOutside, AsJson, Deadline, ProblemPath, err, out, plain, print_json, working
from optdp.errors import ProblemError, SolverError
from optdp.files.atomic import check_apart, check_writable

if TYPE_CHECKING:
    from optdp.sweeps.run import Swept


def sweep(
    problem: ProblemPath,
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            "-g",
            help="key=first:last:count, key=log:first:last:count, or key=a,b,c; several make the product.",
        ),
    ],
    save: Annotated[Path, typer.Option("--out", "-o", help="The table: .parquet, .csv or .jsonl.")],
    scheduler: Annotated[
        str | None, typer.Option(help="A dask cluster to solve on, such as tcp://host:8786; else this machine.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes on this machine, by default as many as it has cores; 0 needs no dask.", min=0),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away what an interrupted sweep has finished.")] = False,
    allow_outside: AllowOutside = False,
    deadline: Annotated[
        float | None,
        typer.Option(help="Seconds after which it stops; the same command goes on from there.", metavar="SECONDS"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Solve a problem at every point of a grid, and write one table; an interrupted sweep goes on where it stopped.

    For example:  optdp sweep problem.toml --grid epsilon=0.1:1:10 --grid population.p=0.1,0.5 --out sweep.csv
    """
    from optdp.sweeps.grid import Grid
    from optdp.sweeps.run import Interrupted, plan_of, run

    try:
        with working(deadline) as (say, clock):
            plan = plan_of(problem, Grid.parse(grid), allow_outside)
            check_apart(save, {"the problem": problem})
            found = run(plan, save, scheduler, workers, fresh, say, lambda text: err.print(f"[yellow]{plain(text)}[/]"))
    except Interrupted as stopped:
        kept = "the same command goes on from there" if stopped.done else "nothing was written"
        err.print(
            f"[bold red]optdp:[/] {stopped.why}; {stopped.done:,} of {stopped.points:,} points are done; {kept}",
            highlight=False,
        )
        raise typer.Exit(stopped.exit_code or SolverError.exit_code) from None  # 3: a deadline, and no table yet
    with work.held(later=False):
        if as_json:
            print_json(_figures(found, save))
        else:
            _show(found, save)
    if (code := clock.exit_code(interrupted=False)) != 0:
        raise typer.Exit(code)
    if len(found.failed) == len(found.rows):
        raise ProblemError(f"All {len(found.rows):,} points failed; {save} says why. First: {found.rows[0]['error']}")


def _figures(found: Swept, save: Path) -> dict[str, object]:
    return {
        "out": str(save),
        "points": len(found.rows),
        "failed": len(found.failed),
        "kept": found.kept,
        "columns": list(found.rows[0]),
        "seconds": round(found.seconds, 3),
    }


def _show(found: Swept, save: Path) -> None:
    points, failed = len(found.rows), len(found.failed)
    kept = f", {found.kept:,} of them from before" if found.kept else ""
    out.print(plain(f"wrote {save}: {points:,} points{kept}, {failed:,} failed, {found.seconds:.1f} s"))
    if 0 < failed < points:
        first = found.failed[0]
        err.print(f"[yellow]{failed:,} of {points:,} points failed, the first: {plain(first['error'])}[/]")


def curve(
    problem: ProblemPath,
    save: Annotated[Path, typer.Option("--out", "-o", help="A picture (.svg, .png, .pdf) or the numbers (.csv).")],
    points: Annotated[int | None, typer.Option(help="How many points, instead of what the file says.", min=2)] = None,
    allow_outside: AllowOutside = False,
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """Sweep one number of a problem, as the sweep table of its file says, and draw or write the curves."""
    from optdp.loading import load_file
    from optdp.sweeps.curve import WRITERS
    from optdp.sweeps.curve import sweep as drawn

    if save.suffix not in WRITERS:
        raise ProblemError(f"--out must end in {', '.join(WRITERS)}. Found {save.name!r}.")
    check_writable(save)
    with working(deadline) as (say, clock):
        found = drawn(load_file(problem, allow_outside=allow_outside), say, points)
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
