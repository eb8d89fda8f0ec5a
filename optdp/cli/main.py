"""The command line: arguments and printing; no mathematics."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer

from optdp import work
from optdp.cli import ledger, printing
from optdp.cli.aggregate import aggregate, party_key
from optdp.cli.amplify import amplify
from optdp.cli.arguments import (
    Once,
)
from optdp.cli.audit import audit
from optdp.cli.compare import compare
from optdp.cli.curve import curve
from optdp.cli.export import export
from optdp.cli.formulate import formulate
from optdp.cli.init import init
from optdp.cli.lists import kinds, problems, schema
from optdp.cli.observers import observers
from optdp.cli.order import shuffle
from optdp.cli.printing import err, plain
from optdp.cli.protocol import analyze, randomize
from optdp.cli.report import report
from optdp.cli.run import run
from optdp.cli.sample import sample
from optdp.cli.sign import sign
from optdp.cli.solve import solve
from optdp.cli.sweep import sweep
from optdp.cli.verify import verify
from optdp.errors import OptdpError, SolverError
from optdp.work.account import PATIENCE, limited

_UsageError: Any = typer.BadParameter.__base__
"""What the arguments' parser raises."""


class _EndedError(Exception):
    """Stands for a KeyboardInterrupt, of which typer makes a silent exit."""


class _Commands(Once):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise _EndedError(stop) from None


app = typer.Typer(
    cls=_Commands,
    help="Describe your deployment; optdp finds the best private mechanism, proves what it reveals, and hands you "
    "the tables to deploy.\n\nStart here:  optdp solve sick-leave --out sick-leave.json\n\n"
    "For a problem of your own:  optdp init",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(version("optdp"))
        raise typer.Exit


READERS = ("verify", "sample", "export", "report", "sign", "audit", "aggregate", "shuffle", "ledger",
           "randomize", "analyze")  # fmt: skip
"""Commands that open files which somebody else may have made: they ask for a limited amount of work."""


@app.callback()
def _options(
    context: typer.Context,
    patience: Annotated[
        float,
        typer.Option(
            envvar="OPTDP_PATIENCE",
            help="Refuse files that need more than this many seconds of work; use 1 for files from strangers.",
        ),
    ] = PATIENCE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", envvar="OPTDP_QUIET", help="Do not show progress.")] = False,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    printing.quiet = quiet
    if context.invoked_subcommand in READERS:
        context.with_resource(limited(patience))  # until the command has ended


app.command()(init)
app.command()(solve)
app.command()(amplify)
app.command()(run)
app.command()(randomize)
app.command()(shuffle)
app.command()(analyze)
app.command()(curve)
app.command()(audit)
app.command()(sign)
app.add_typer(ledger.app, name="ledger")
app.command()(sweep)
app.command()(verify)
app.command()(report)
app.command()(sample)
app.command("party-key")(party_key)
app.command()(aggregate)
app.command()(export)


app.command()(compare)
app.command()(formulate)
app.command()(observers)


app.command()(problems)
app.command()(kinds)
app.command()(schema)


def main() -> None:
    """The entry point: one line for every refusal, and its exit code."""
    with work.signals(at_once=err.show_cursor):
        _main()


def _main() -> None:
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except _UsageError as error:
        if not sys.argv[1:]:
            error.show()
            sys.exit(2)
        said, place = _line(error.format_message()).rstrip("."), getattr(error, "ctx", None)
        command = getattr(place, "command_path", "optdp")
        sentence = said if said.endswith("?") else f"{said}."
        err.print(f"[bold red]optdp:[/] {sentence} See: {plain(command)} --help.", highlight=False)
        sys.exit(2)
    except OptdpError as error:
        err.print(f"[bold red]optdp:[/] {_line(error)}", highlight=False)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (_EndedError, KeyboardInterrupt) as error:
        stop = error.args[0] if isinstance(error, _EndedError) else error
        if isinstance(stop, work.DeadlineReached):
            err.print(f"[bold red]optdp:[/] {stop.advice}", highlight=False)
            sys.exit(SolverError.exit_code)
        why = stop.why if isinstance(stop, work.Stopped) else "interrupted"
        err.print(f"[bold red]optdp:[/] {why}; nothing was written", highlight=False)
        sys.exit(stop.exit_code if isinstance(stop, work.Stopped) else 130)
    except MemoryError:
        err.print("[bold red]optdp:[/] out of memory; use a smaller problem", highlight=False)
        sys.exit(2)


def _line(error: object) -> str:
    """What went wrong in one line."""
    return plain(" ".join(str(error).split()))
