"""The command `audit`: try to refute what an artifact claims by drawing from a sampler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from optdp.cli.arguments import AsJson
from optdp.cli.printing import err, out, plain, print_json, progress
from optdp.errors import ProblemError

if TYPE_CHECKING:
    from optdp.artifact import Opened
    from optdp.audit import Audit, Sampler
    from optdp.audit.external import Command

COLOURS = {"refuted": "bold red", "does not follow its table": "bold red"}


def audit(
    artifact: Annotated[
        Path, typer.Argument(help="An artifact, a plan's folder, one party's file, or a shuffle protocol.")
    ],
    samples: Annotated[
        int,
        typer.Option("--samples", "-n", help="Draws for each secret, at least 100; at most 40,000,000 inputs in all."),
    ] = 1_000_000,
    command: Annotated[
        str,
        typer.Option(
            help="The sampler to test instead of optdp's: './sampler {input} {count}' prints that many integers; "
            "without the two placeholders it reads inputs and prints one integer for each, one per line. For a plan's "
            "folder also {party}; of a shuffle protocol the client."
        ),
    ] = "",
    timeout: Annotated[float, typer.Option(help="Seconds that the command may run in all.")] = 600.0,
    seed: Annotated[int | None, typer.Option(help="Make the draws repeatable; for tests only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw from a sampler to try to refute the artifact's claims; exit 1 if one is, or if its table is not followed.

    For example:  optdp audit a.json --samples 1000000 --command "./sampler {input} {count}"
    """
    from optdp.artifact import open_artifact
    from optdp.audit import audit as examine
    from optdp.audit.external import Command

    tested = Command.parse(command, timeout) if command else None
    with progress() as say:
        opened = open_artifact(artifact, check=False)
        found = examine(opened, samples, tested and _samplers(opened, tested), seed, say)
    if seed is not None:
        err.print("[yellow]a sampler that knows the seed can be made to pass: do not rely on a seeded audit[/]")
    if as_json:
        print_json({"file": str(artifact), "command": command or None} | found.summary())
    else:
        _show(artifact, found)
    if found.failed:
        raise typer.Exit(1)


def _samplers(found: Opened, command: Command) -> Sampler | list[Sampler]:
    """The command, or of a plan one for each party."""
    from optdp.artifact import OpenedPlan, OpenedShuffle
    from optdp.audit.clients import client_command

    if isinstance(found, OpenedShuffle):
        return client_command(command, found.deployed)
    if not isinstance(found, OpenedPlan) or found.plan.problem.method == "inside":
        return command
    if not any("{party}" in word for word in command.words):
        raise ProblemError("--command must contain {party} for a plan's folder. Found none.")
    return [replace(command, words=tuple(command.filled(party=i))) for i in range(len(found.plan.tables))]


def _show(artifact: Path, found: Audit) -> None:
    from optdp.audit import FAMILY, MEANING

    table = Table(show_header=False, box=None, padding=(0, 2))
    colour = COLOURS.get(found.verdict, "bold")
    table.add_row(f"[{colour}]{found.verdict}[/]", plain(artifact))
    for proved in found.proved:
        table.add_row(proved.claim, f"claimed: {float(proved.claimed):.9g}")
        table.add_row("", f"the samples prove at least eps >= {proved.bound:.6g}")
        table.add_row("  event", plain(f"output {proved.event}"))
        table.add_row("  hits", plain(f"{proved.hits[0]:,} if {proved.one}; {proved.hits[1]:,} if {proved.other}"))
    if found.misfit is None:
        table.add_row("law of the table", "no difference found")
    else:
        odd = found.misfit
        table.add_row(
            "law of the table",
            plain(
                f"not followed: output {odd.event} in {odd.hits:,} of {odd.draws:,} draws "
                f"({odd.hits / odd.draws:.6g}; by the table at most {odd.expected:.6g}) if {odd.arm}"
            ),
        )
    table.add_row(
        "draws", f"{found.draws:,}, {found.tests:,} tests, all together wrong at most once in {1 / FAMILY:,.0f}"
    )
    out.print(table)
    out.print(f"[dim]{MEANING[found.verdict]}. More: docs/audit.md[/]")
