"""The command that shows what each further piece of an observer's knowledge costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import optdp.work as work
from optdp.cli.arguments import AllowOutside, AsJson, Deadline, ProblemPath
from optdp.cli.printing import err, out, plain, print_json, working
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable, write_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from optdp.single.ladder import Rung


def observers(
    problem: ProblemPath,
    save: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write one page with the picture and the table (.html).")
    ] = None,
    allow_outside: AllowOutside = False,
    deadline: Deadline = 120.0,
    as_json: AsJson = False,
) -> None:
    """Show how the error grows with what the observer may know, from exactly the prior to everyone else's data.

    For example:  optdp observers sick-leave --out ladder.html
    """
    from optdp.kinds import find
    from optdp.loading import load_file
    from optdp.report.ladder import page
    from optdp.single.ladder import READING

    if save is not None:
        if save.suffix not in (".html", ".htm"):
            raise ProblemError(f"--out must end in .html. Found {save.name!r}.")
        check_writable(save)
        check_apart(save, {"the problem": problem})
    console = err if out.is_terminal and err.is_terminal else out  # rows go above the line that says what is running
    with working(deadline) as (say, clock):
        say("reading the problem")
        file = load_file(problem, allow_outside=allow_outside)
        climb = find(file.kind, "observers")
        found = climb(file.problem, say, None, _nobody if as_json else _printer(file.problem, console))
    with work.held(later=False):
        if save is not None:
            write_bytes(save, page(found, file.title))
        if as_json:
            print_json(found.summary())
        else:
            out.print(f"[dim]{plain(READING)}[/]", highlight=False)
            for text in (found.note, "" if save is None else f"wrote {save}"):
                if text:
                    out.print(plain(text))
    solved = [rung for rung in found.rungs if rung.step.observers and rung.error is not None]
    failed = [rung for rung in found.rungs if rung.step.observers and rung.error is None]
    if failed and not solved and not found.stopped:
        raise ProblemError(f"No rung could be solved. The first: {failed[0].note}")
    raise typer.Exit(clock.exit_code(bool(found.stopped)))


def _nobody(_: Rung) -> None:
    """Sees nothing: the rows are printed together."""


def _printer(problem: Any, console: Console) -> Callable[[Rung], None]:
    """Prints each row when it is done. The head comes with the first, so that a refusal stands alone."""
    from optdp.single.ladder import HEAD, steps

    wide = max(len(HEAD[0]), *(len(step.label) for step in steps(problem)))
    begun: list[Rung] = []

    def line(cells: tuple[str, ...], note: str = "") -> None:
        name, *figures = map(plain, cells)
        shown = "  ".join(
            [name.ljust(wide), *(text.rjust(len(head)) for text, head in zip(figures, HEAD[1:], strict=True))]
        )
        console.print(f"{shown}  [dim]{plain(note)}[/]".rstrip() if note else shown, highlight=False)

    def row(rung: Rung) -> None:
        with work.held():
            if not begun:
                line(HEAD)
            begun.append(rung)
            line(rung.cells(), rung.note)

    return row
