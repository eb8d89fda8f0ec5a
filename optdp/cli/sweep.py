"""The command that solves a problem at every point of a grid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import optdp.work as work
from optdp.cli.arguments import AllowOutside, AsJson, ProblemPath
from optdp.cli.printing import err, out, plain, print_json, working
from optdp.errors import ProblemError, SolverError
from optdp.files.atomic import check_apart

if TYPE_CHECKING:
    from optdp.sweeps.run import Swept


def sweep(
    problem: ProblemPath,
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            "-g",
            help="key=first:last:count, key=log:first:last:count, or key=a,b,c; several are combined.",
        ),
    ],
    save: Annotated[Path, typer.Option("--out", "-o", help="Write the table here: .parquet, .csv or .jsonl.")],
    scheduler: Annotated[
        str | None, typer.Option(help="The dask cluster to use, such as tcp://host:8786; by default this machine.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes on this machine, by default one for each core; 0 needs no dask.", min=0),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over: discard what an interrupted sweep has finished.")
    ] = False,
    allow_outside: AllowOutside = False,
    deadline: Annotated[
        float | None,
        typer.Option(help="Stop after this many seconds; the same command then continues.", metavar="SECONDS"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the results here: .svg, .png or .pdf (needs the extra plot).")
    ] = None,
    figure: Annotated[str, typer.Option("--show", help="The column to draw; by default the error.")] = "",
    as_json: AsJson = False,
) -> None:
    """Solve a problem at every point of a grid and write one table; an interrupted sweep continues where it stopped.

    For example:  optdp sweep problem.toml --grid epsilon=0.1:1:10 --grid population.p=0.1,0.5 --out sweep.csv
    """
    from optdp.sweeps.grid import Grid
    from optdp.sweeps.plot import check_picture, drawn
    from optdp.sweeps.run import Interrupted, plan_of, run

    try:
        with working(deadline) as (say, clock):
            plan = plan_of(problem, Grid.parse(grid), allow_outside)
            check_apart(save, {"the problem": problem})
            if plot is not None:
                check_picture(plot)
                check_apart(plot, {"the problem": problem, "the table": save})
            found = run(plan, save, scheduler, workers, fresh, say, lambda text: err.print(f"[yellow]{plain(text)}[/]"))
    except Interrupted as stopped:
        kept = "the same command continues from there" if stopped.done else "nothing was written"
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
        if plot is not None and len(found.failed) < len(found.rows):
            drawn(found.rows, list(plan.grid.values), problem.stem, figure, plot)
            if not as_json:
                out.print(plain(f"wrote {plot}"))
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
