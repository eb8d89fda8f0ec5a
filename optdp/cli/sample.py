"""The command `sample`: draw releases from a verified table."""

from __future__ import annotations

from typing import Annotated

import typer

from optdp.cli.arguments import ArtifactPath, AsJson, Seed, whole_number
from optdp.cli.printing import err, print_json


def sample(
    artifact: ArtifactPath,
    value: Annotated[int, typer.Option("--input", "-x", help="The true sum.")],
    count: Annotated[int, typer.Option("--count", "-n", help="How many independent releases.", min=1)] = 1,
    seed: Seed = None,
    word: Annotated[
        str | None,
        typer.Option(help="The secret word that all parties of a seeded plan share; - reads it from standard input."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw releases for one input, exactly: with integers only, and the operating system's secure randomness."""
    from optdp.artifact import OpenedMatrix, OpenedParty, open_artifact
    from optdp.errors import ProblemError
    from optdp.mechanism.seeded_maps import SeededMaps
    from optdp.plan.format import check_drawn

    found = open_artifact(artifact, OpenedMatrix, OpenedParty)
    maps = isinstance(found, OpenedParty) and isinstance(found.member.table, SeededMaps)
    if maps != (word is not None):
        raise ProblemError(
            'A party of a plan with method = "seeded" needs --word, the word that all parties share. Found none.'
            if maps
            else '--word is only for the parties of a plan with method = "seeded". Leave it out.'
        )
    if isinstance(found, OpenedParty):
        table = found.member.table
        check_drawn(found.member.problem)
        if isinstance(table, SeededMaps):
            draws = [table.report(value, whole_number(word or ""))]
        else:
            draws = table.sample(value, count, seed)
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
