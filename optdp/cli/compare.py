"""The command that gives every backend the same programs, and reads and shows what earlier runs found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import optdp.work as work
from optdp.cli.arguments import PROBLEM, AllowOutside, AsJson, Deadline
from optdp.cli.printing import out, plain, print_json, show, working
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable, write_bytes

if TYPE_CHECKING:
    from optdp.comparison.results import Results
    from optdp.comparison.rows import Row
    from optdp.comparison.run import Settings

LEAST_MEMORY, SHARE = 4.0, 0.8
"""GB of address space that a backend has at least, and which part of the machine's memory by default."""


def compare(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Problems, by file or name; or files of results, which are shown together.",
            show_default=False,
            **PROBLEM,
        ),
    ] = None,
    problem_set: Annotated[
        str, typer.Option("--set", help="A problem set: smoke, small, paper, hard.", metavar="NAME")
    ] = "",
    backends: Annotated[str, typer.Option(help="Names of backends, separated by commas; by default all.")] = "",
    repeat: Annotated[int, typer.Option(help="How often each backend solves each problem, after a warm-up.")] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds that each run may take.")] = 600.0,
    memory: Annotated[
        float | None,
        typer.Option(help="GB of address space for each backend, by default most of the machine's memory."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="name=value for all solvers, or backend:name=value; may be given several times."),
    ] = None,
    form: Annotated[str, typer.Option(help="For one entity, which program: plain, or core (scaled).")] = "plain",
    save: Annotated[Path | None, typer.Option("--out", "-o", help="Write the rows here: .parquet or .jsonl.")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a page (.html), or tables for documentation (.md), here.")
    ] = None,
    allow_outside: AllowOutside = False,
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """Give every backend the same program and compare: time, objective, and real epsilon before and after repair.

    For example:  optdp compare --set small --backends highs,clarabel --timeout 60 --out results.parquet

    For a metric shuffle, the mechanisms are compared: epsilon, epsilon without the shuffler, error, bits for each user.
    """
    from optdp.comparison.results import Results, is_results, read

    given = files or []
    if bool(given) == bool(problem_set):
        raise ProblemError("compare needs problem files, files of results, or --set NAME. Give one of the three.")
    _check_targets(save, report, given)
    if given and all(map(is_results, given)):
        _show(Results.merged(map(read, given)), save, report, as_json, "")
        return
    if any(map(is_results, given)):
        raise ProblemError("Found both problem files and files of results. Give only one of the two.")
    if (code := _of_mechanisms(given, allow_outside, deadline, as_json)) is not None:
        raise typer.Exit(code)
    settings = _settings(repeat, timeout, memory, option or [], form)
    names = [name.strip() for name in backends.split(",") if name.strip()] or None
    raise typer.Exit(_run(given, problem_set, names, settings, save, report, allow_outside, deadline, as_json))


def _settings(repeat: int, timeout: float, memory: float | None, option: list[str], form: str) -> Settings:
    from optdp.comparison.run import Settings, parse_options

    there = work.memory() / 1e9
    most = memory if memory is not None else max(SHARE * there, LEAST_MEMORY) if there < float("inf") else None
    return Settings(repeat, timeout, most, parse_options(option), form)


def _check_targets(save: Path | None, report: Path | None, given: list[Path]) -> None:
    from optdp.comparison.results import check_out

    if save is not None:
        check_out(save)
        check_writable(save)
    if report is not None:
        if report.suffix not in (".html", ".md"):
            raise ProblemError(f"--report must end in .html or .md. Found {report.name!r}.")
        check_writable(report)
    for target in filter(None, (save, report)):
        check_apart(target, {f"the file {place.name} that is read": place for place in given})


def _of_mechanisms(given: list[Path], allow_outside: bool, deadline: float | None, as_json: bool) -> int | None:
    """The comparison of mechanisms, of a kind that has one; None for any other."""
    from optdp.kinds import find
    from optdp.loading import load_file

    if len(given) != 1 or not (kind := load_file(given[0], allow_outside=allow_outside).kind).compare:
        return None
    with working(deadline) as (say, clock):
        say("reading the problem")
        rows = find(kind, "compare")(load_file(given[0], allow_outside=allow_outside).problem, say)
    with work.held(later=False):
        if as_json:
            print_json({"rows": [row.summary() for row in rows], "status": "complete", "note": ""})
        else:
            show(find(kind, "compared")(rows))
    return clock.exit_code(interrupted=False)


def _problems(given: list[Path], name: str, allow_outside: bool) -> dict[str, Any]:
    from optdp.comparison.sets import problem_set
    from optdp.loading import load

    if name:
        return {member.name: member.problem for member in problem_set(name).members}
    shown = [place.stem for place in given]
    if len(set(shown)) < len(shown):
        shown = [f"{place.parent.name}/{place.stem}" for place in given]
    if len(set(shown)) < len(shown):
        raise ProblemError("Problems must have different names. Found two of one. Rename a file.")
    return {word: load(place, allow_outside=allow_outside) for word, place in zip(shown, given, strict=True)}


def _run(
    given: list[Path],
    name: str,
    names: list[str] | None,
    settings: Settings,
    save: Path | None,
    report: Path | None,
    allow_outside: bool,
    deadline: float | None,
    as_json: bool,
) -> int:
    """Run, print each row as it is ready, and keep what there is; the exit code."""
    from optdp.comparison.machine import head
    from optdp.comparison.results import Results
    from optdp.comparison.run import backends_of, compare_all

    rows: list[Row] = []
    note = ""
    printed = _printer(as_json)
    with working(deadline) as (say, clock):
        say("reading the problems")
        problems = _problems(given, name, allow_outside)
        begun = head(settings.repeat, settings.timeout, settings.memory, name)
        try:
            for row in compare_all(problems, backends_of(names), settings, say, clock):
                with work.held():
                    rows.append(replace(row, run=begun.run))
                    printed(rows[-1], len(problems) > 1)
                    if save is not None:
                        _write(Results((replace(begun, status="interrupted"),), tuple(rows)), save)
        except KeyboardInterrupt:
            if not rows:  # what was appended before stays
                raise
            note = "interrupted: not all were tried"
        if (ended := work.stopped()) is not None:
            note = f"{ended.why}: not all were tried"
    with work.held(later=False):
        status = "interrupted" if note else "complete"
        _show(Results((replace(begun, status=status),), tuple(rows)), save, report, as_json, note, shown=True)
    return clock.exit_code(bool(note))


def _printer(as_json: bool) -> Callable[[Row, bool], None]:
    """Prints a row; in a terminal above the line that shows what is being done."""
    from rich.console import Console

    from optdp.comparison.tables import line

    stream: Any = None if out.is_terminal else sys.stdout  # the line of progress would take it for its own otherwise
    console = Console(file=stream, soft_wrap=True, emoji=False)
    begun: list[Row] = []

    def printed(row: Row, several: bool) -> None:
        if as_json:
            return
        if not begun:
            begun.append(row)
            console.print(f"[bold]{plain(line(None, several))}[/]", highlight=False)
        console.print(plain(line(row, several)), highlight=False)

    return printed


def _write(results: Results, save: Path) -> None:
    from optdp.comparison.results import WRITERS

    write_bytes(save, WRITERS[save.suffix](results))


def _show(
    results: Results, save: Path | None, report: Path | None, as_json: bool, note: str, shown: bool = False
) -> None:
    """Write and print rows; `shown`: each of them has been printed."""
    from optdp.comparison import tables

    if save is not None:
        _write(results, save)
    if report is not None:
        write_bytes(report, _page(results, report))
    rows, written = results.rows, [str(place) for place in (save, report) if place is not None]
    several = len({row.problem for row in rows}) > 1
    if as_json:
        print_json(_told(results, note, written))
        return
    if not shown:
        for row in (None, *rows):
            out.print(plain(tables.line(row, several)), highlight=False)
    for text in tables.remarks(rows, several):
        out.print(f"[dim]{plain(text)}[/]")
    if several:
        show(tables.summary(rows))
    for place in written:
        out.print(plain(f"wrote {place}"))
    if note:
        out.print(f"[yellow]{plain(note)}[/]")


def _page(results: Results, report: Path) -> bytes:
    from optdp.comparison.markdown import written
    from optdp.comparison.page import page

    return page(results) if report.suffix == ".html" else written(results, report)


def _told(results: Results, note: str, written: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    from optdp.comparison.tables import figures

    return {
        "rows": [row.summary() for row in results.rows],
        "heads": [asdict(head) for head in results.heads],
        "summary": figures(results.rows),
        "written": written,
        "status": "interrupted" if note or any(head.status != "complete" for head in results.heads) else "complete",
        "note": note,
    }
