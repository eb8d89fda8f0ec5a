"""The command line: arguments and printing; no mathematics."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from optdp.arguments import ArtifactPath, AsJson, ProblemPath, check_apart, check_writable, whole_number
from optdp.audit_command import audit
from optdp.errors import OptdpError, ProblemError
from optdp.export_command import export
from optdp.math.effort import PATIENCE, limited
from optdp.order_commands import shuffle
from optdp.printing import decimal, err, out, print_json, progress, show_plan, show_solution
from optdp.report_command import report
from optdp.run_command import run
from optdp.shuffle_commands import amplify, answer, compare_shuffled, curve
from optdp.sign_command import sign
from optdp.sweep_command import sweep
from optdp.verify_command import verify

_UsageError: Any = typer.BadParameter.__base__
"""What the arguments' parser raises."""

app = typer.Typer(
    help="Describe your deployment; optdp finds the best private mechanism, proves what it gives away, and hands you "
    "the tables to deploy.\n\nStart here:  optdp solve problems/use-cases/sick-leave.toml --out sick-leave.json",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(version("optdp"))
        raise typer.Exit


READERS = ("verify", "sample", "export", "report", "sign", "audit", "aggregate", "shuffle")
"""Commands that open files which somebody else may have made: they ask for a limited amount of work."""


@app.callback()
def _options(
    context: typer.Context,
    patience: Annotated[
        float,
        typer.Option(
            envvar="OPTDP_PATIENCE",
            help="Seconds of work that a file may ask for before it is refused; 1 suits files of strangers.",
        ),
    ] = PATIENCE,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    if context.invoked_subcommand in READERS:
        context.with_resource(limited(patience))  # until the command has ended


@app.command()
def solve(
    problem: ProblemPath,
    save: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the artifact here (.json or .npz); for several entities a folder."),
    ] = None,
    backend: Annotated[str, typer.Option(help="Who solves the program; `optdp kinds` lists the backends.")] = "highs",
    as_json: AsJson = False,
) -> None:
    """Find the best mechanism, prove its epsilon, and write the files to deploy."""
    from optdp.artifact.plan import check_target
    from optdp.noise.multi import MultiLTE
    from optdp.noise.single import SingleLTE
    from optdp.problem import load
    from optdp.solution import Solution
    from optdp.solution import solve as find

    given = load(problem)
    if not isinstance(given, SingleLTE | MultiLTE):
        if save is not None:
            check_apart(save, {"the problem": problem})
        answer(given, as_json, save)
        return
    if save is not None:
        (check_target if isinstance(given, MultiLTE) else check_writable)(save)
    with progress(as_json) as say:
        solution = find(given, backend=backend, progress=say)
    if save is not None:
        solution.save(save)
    if as_json:
        print_json(solution.summary())
    elif isinstance(solution, Solution):
        show_solution(solution, save)
    else:
        show_plan(solution, save)
    if solution.status == "interrupted":
        raise typer.Exit(130)


app.command()(amplify)
app.command()(run)
app.command()(shuffle)
app.command()(curve)
app.command()(audit)
app.command()(sign)
app.command()(sweep)
app.command()(verify)
app.command()(report)


@app.command()
def sample(
    artifact: ArtifactPath,
    value: Annotated[int, typer.Option("--input", "-x", help="The true sum.")],
    count: Annotated[int, typer.Option("--count", "-n", help="How many independent releases.", min=1)] = 1,
    seed: Annotated[int | None, typer.Option(help="Repeatable draws, for tests only: they are NOT private.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw releases of one input (A, Remark 8) with the operating system's secure randomness and integers only."""
    from optdp.artifact.plan import is_party, open_party
    from optdp.artifact.verify import verify as check

    if is_party(artifact):
        draws = open_party(artifact).table.sample(value, count, seed)
        err.print("[yellow]one party's report: private only inside the secure sum of its plan; do not publish it[/]")
    else:
        draws = check(artifact).matrix.sample(value, count, seed)
    if seed is not None:
        err.print("[yellow]seeded draws can be predicted: they are not private[/]")
    if as_json:
        print_json({"input": value, "outputs": draws, "private": seed is None})
    else:
        print("\n".join(map(str, draws)))
    if count > 1:
        err.print("[dim]epsilon covers one release: publish only one of these draws for the same data[/]")


@app.command()
def aggregate(
    plan: Annotated[Path, typer.Argument(help="The plan's folder; a party needs only its own file of it.")],
    party: Annotated[int, typer.Option(help="Which party this is, from 0.", min=0)],
    value: Annotated[
        str,
        typer.Option("--input", "-x", help="The true sum of this party's people; - reads it from standard input."),
    ],
    parties: Annotated[str, typer.Option(help="host:port of every party in order, with commas between.")],
    timeout: Annotated[float, typer.Option(help="Seconds that the others may take in all.")] = 60.0,
    listen: Annotated[
        str | None, typer.Option(help="The address to listen on if it is not loopback, such as 0.0.0.0.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw this party's report and run the secure sum with the other parties: only the aggregate is opened."""
    from optdp.deploy import join

    if listen is not None:
        err.print(
            "[yellow]connections are plain TCP: whoever reads all traffic of a party learns its report. "
            "Use a VPN or tunnels.[/]"
        )
    found = join(plan, party, whole_number(value), [item.strip() for item in parties.split(",")], timeout, listen)
    if as_json:
        print_json({"party": party, "aggregate": found.total, "average": found.average, "plan": found.identity})
    else:
        print(found.total if found.divisor == 1 else f"{found.total}  (average {found.average:.6g})")


app.command()(export)


@app.command()
def compare(
    problem: ProblemPath,
    backends: Annotated[str, typer.Option(help="Names with commas between; all by default.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds that each backend may take.")] = 600.0,
    as_json: AsJson = False,
) -> None:
    """Give every backend the same program: time, objective, and the real epsilon before and after repair.

    Of a metric shuffle every mechanism is compared: epsilon, epsilon without the shuffler, error, bits for each user.
    """
    from dataclasses import asdict

    from optdp.noise.single import SingleLTE
    from optdp.problem import load
    from optdp.solvers.compare import compare as race

    if not timeout > 0:
        raise ProblemError(f"--timeout must be larger than 0. Found {timeout}.")
    names = [name.strip() for name in backends.split(",") if name.strip()] or None
    rows = []
    with progress(as_json) as say:
        given = load(problem)
        if given.kind == "metric-shuffle":
            compare_shuffled(given, as_json, say)
            return
        if not isinstance(given, SingleLTE):
            raise ProblemError(
                "compare is for kind single-lte (backends) and metric-shuffle (mechanisms). Others are not."
            )
        for row in race(given, names, timeout):
            say(f"{row.backend} done")
            rows.append(row)
    if as_json:
        print_json({"rows": [asdict(row) for row in rows]})
        return
    table = Table("backend", "status", "seconds", "raw value", "raw eps", "MAE", "eps", "gap", box=None)
    for row in rows:
        figures = (row.seconds, row.raw_objective, row.raw_epsilon, row.mae, row.certified_epsilon, row.gap)
        shown = ["-" if f is None else decimal(f)[:9] if isinstance(f, str) else f"{f:.4g}" for f in figures]
        table.add_row(row.backend, row.status, *shown)
    out.print(table)
    out.print("[dim]raw: as the solver returned it; MAE and eps: after repair, certified[/]")
    for row in rows:
        if row.note:
            out.print(f"[dim]{row.backend}: {row.note}[/]")


@app.command()
def problems(as_json: AsJson = False) -> None:
    """List the problem files of the instance library."""
    from optdp.problem import library, load_file

    listed = []
    for path in library():
        file = load_file(path)
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        listed.append({"file": str(shown), "kind": file.data["kind"], "title": file.title, "source": file.source})
    if as_json:
        print_json({"problems": listed})
        return
    table = Table("file", "what it is", "source", box=None)
    table.columns[0].overflow = "fold"
    for item in listed:
        table.add_row(item["file"], item["title"], item["source"])
    out.print(table)


@app.command()
def kinds(as_json: AsJson = False) -> None:
    """List the kinds of problem, and the backends that can solve them here."""
    from optdp.noise.engines import backends
    from optdp.problem import KINDS

    if as_json:
        print_json({"kinds": {name: kind.purpose for name, kind in KINDS.items()}, "backends": backends()})
        return
    for name, kind in KINDS.items():
        out.print(f"[bold]{name}[/]  {kind.purpose}")
    out.print(f"backends: {', '.join(backends())}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of problem files."""
    from optdp.problem import schema as describe

    print_json(describe())


def main() -> None:
    """The entry point: one line for every refusal, and its exit code."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except _UsageError as error:
        if not sys.argv[1:]:
            error.show()
            sys.exit(2)
        said, place = _plain(error.format_message()).rstrip("."), getattr(error, "ctx", None)
        command = getattr(place, "command_path", "optdp")
        err.print(f"[bold red]optdp:[/] {said}. See: {command} --help.", highlight=False)
        sys.exit(2)
    except OptdpError as error:
        err.print(f"[bold red]optdp:[/] {_plain(error)}", highlight=False)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        err.print("[bold red]optdp:[/] interrupted; nothing was written", highlight=False)
        sys.exit(130)
    except MemoryError:
        err.print("[bold red]optdp:[/] out of memory; use a smaller problem", highlight=False)
        sys.exit(2)


def _plain(error: object) -> str:
    from rich.markup import escape

    return escape(" ".join(str(error).split()))


if __name__ == "__main__":
    main()
