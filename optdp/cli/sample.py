"""The command `sample`: draw releases from a verified table."""

from __future__ import annotations

from typing import Annotated

import typer

from optdp.cli.arguments import ArtifactPath, AsJson
from optdp.cli.printing import err, print_json


def sample(
    artifact: ArtifactPath,
    value: Annotated[int, typer.Option("--input", "-x", help="The true sum.")],
    count: Annotated[int, typer.Option("--count", "-n", help="How many independent releases.", min=1)] = 1,
    seed: Annotated[int | None, typer.Option(help="Repeatable draws, for tests only: they are NOT private.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw releases of one input (A, Remark 8) with the operating system's secure randomness and integers only."""
    from optdp.artifact import OpenedMatrix, OpenedParty, open_artifact

    found = open_artifact(artifact, OpenedMatrix, OpenedParty)
    if isinstance(found, OpenedParty):
        draws = found.member.table.sample(value, count, seed)
        err.print("[yellow]one party's report: private only inside the secure sum of its plan; do not publish it[/]")
    else:
        draws = found.verified.matrix.sample(value, count, seed)
    if seed is not None:
        err.print("[yellow]seeded draws can be predicted: they are not private[/]")
    if as_json:
        print_json({"input": value, "outputs": draws, "private": seed is None})
    else:
        print("\n".join(map(str, draws)))
    if count > 1:
        err.print("[dim]epsilon covers one release: publish only one of these draws for the same data[/]")
