"""The command `aggregate`: take part in the secure sum of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optdp.cli.arguments import AsJson, whole_number
from optdp.cli.printing import err, print_json
from optdp.errors import ArtifactError


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
    from optdp.artifact import OpenedParty, open_artifact
    from optdp.files.atomic import name_of
    from optdp.plan.aggregate import join
    from optdp.plan.format import party_file

    if listen is not None:
        err.print(
            "[yellow]connections are plain TCP: whoever reads all traffic of a party learns its report. "
            "Use a VPN or tunnels.[/]"
        )
    truth, addresses = whole_number(value), [item.strip() for item in parties.split(",")]
    path = plan / party_file(party)
    member = open_artifact(path, OpenedParty).member
    if member.party != party:
        raise ArtifactError(f"{name_of(path)}: this is the file of party {member.party}, not of party {party}.")
    found = join(member, truth, addresses, timeout, listen)
    if as_json:
        print_json({"party": party, "aggregate": found.total, "average": found.average, "plan": found.identity})
    else:
        print(found.total if found.divisor == 1 else f"{found.total}  (average {found.average:.6g})")
