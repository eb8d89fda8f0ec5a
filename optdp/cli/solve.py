"""The command that solves a problem."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

import optdp.work as work
from optdp.cli.arguments import AllowOutside, AsJson, BackendName, Deadline, ProblemPath
from optdp.cli.printing import err, print_json, show, working
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart


def solve(
    problem: ProblemPath,
    save: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the artifact here (.json); for several entities a folder."),
    ] = None,
    backend: BackendName = "highs",
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="An option of the solver, as NAME=VALUE with the solver's own names; may be given several times."
        ),
    ] = None,
    allow_outside: AllowOutside = False,
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """Find the best mechanism, prove its epsilon, and write the files to deploy."""
    from optdp.kinds import find, kind_of
    from optdp.kinds import solve as solved
    from optdp.loading import load
    from optdp.programs.solver_options import option_of

    options = dict(map(option_of, option or ()))
    with working(deadline) as (say, clock):
        say("reading the problem")
        given = load(problem, allow_outside=allow_outside)
        kind = kind_of(given)
        if save is not None:
            check_apart(save, {"the problem": problem})
            if not kind.target:
                raise ProblemError(
                    f"kind = {kind.name!r} has no tables to write. Leave out --out; --json prints the figures."
                )
            find(kind, "target")(given, save)
        solution: Any = solved(given, backend=backend, progress=say, options=options)
        with work.held(later=False):
            if save is not None:
                solution.save(save)
        figures = solution.summary() if as_json else {}
    with work.held(later=False):
        if as_json:
            print_json(figures)
        else:
            show(solution.sheet(), "" if save is None else solution.written(save))
            if save is not None and any(_apart(Path(place), save) for place in _sources(kind, given)):
                err.print(
                    "[yellow]the groups come from a file outside the order's folder: to verify the order or to shuffle "
                    "with it, put both into one folder or use --allow-outside[/]"
                )
    raise typer.Exit(clock.exit_code(solution.status == "interrupted"))


def _sources(kind: Any, given: Any) -> list[str]:
    """The files that what was written refers to."""
    spec = given.spec if isinstance(getattr(given, "spec", None), dict) else {}
    return [spec[name] for names in kind.files.values() for name in names if isinstance(spec.get(name), str)]


def _apart(file: Path, written: Path) -> bool:
    """Whether a file lies neither in the folder of what was written nor below it."""
    return not Path(os.path.realpath(file)).is_relative_to(Path(os.path.realpath(written)).parent)
