"""The commands `party-key` and `aggregate`: take part in the secure sum of a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from optdp import work
from optdp.cli.arguments import AsJson, whole_number
from optdp.cli.printing import err, out, plain, print_json
from optdp.errors import ArtifactError


def party_key(
    save: Annotated[Path, typer.Option("--out", "-o", help="The file to write; it must not exist yet.")],
    host: Annotated[str, typer.Option(help="The host name at which the other parties reach this one.")] = "localhost",
    port: Annotated[int, typer.Option(help="The port on which this party listens.", min=1, max=65535)] = 9001,
    as_json: AsJson = False,
) -> None:
    """Create one party's key, and print its line for parties.toml.

    Each party does this once, on its own machine, and sends the line to the others, who compare the fingerprint over
    another channel, such as the telephone. The lines of all parties, in the order of the plan, are parties.toml:

    parties = [ (one line for each party) ]

    For example:  optdp party-key --out party-0.pem --host office-0.example --port 9001
    """
    from optdp.plan.meeting.keys import create_key
    from optdp.plan.meeting.roster import check_host

    check_host(host, "this party")
    made = create_key(save)
    line = f"{{host = {json.dumps(host)}, port = {port}, fingerprint = {json.dumps(made.fingerprint)}}},"
    if as_json:
        print_json({"file": str(save), "fingerprint": made.fingerprint, "line": line})
        return
    out.print(f"wrote {plain(save)}, the private key: keep it secret")
    print(f"  fingerprint  {made.fingerprint}")
    print("for parties.toml, between `parties = [` and `]`:")
    print(f"  {line}")


def aggregate(
    plan: Annotated[Path, typer.Argument(help="The plan's folder. If it is complete, the plan is verified first.")],
    party: Annotated[int, typer.Option(help="Which party this is, from 0.", min=0)],
    value: Annotated[
        str,
        typer.Option("--input", "-x", help="The true sum of this party's people; - reads it from standard input."),
    ],
    key: Annotated[Path, typer.Option("--key", "-k", help="This party's key, from `optdp party-key`.")],
    run: Annotated[
        str, typer.Option(help="A name for this release, such as 2026-11: the same for all parties, and never reused.")
    ],
    parties: Annotated[
        Path | None,
        typer.Option(help="The parties' addresses and fingerprints; by default parties.toml in the plan's folder."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="The folder for this party's records of its runs; by default beside the key.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Record the run in this ledger (see `optdp ledger open`) before anything is sent."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the other parties, in all.")] = 60.0,
    listen: Annotated[
        str | None, typer.Option(help="The address to listen on, such as 0.0.0.0; by default loopback only.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw this party's report and add it to the others' by a secure sum, which reveals nothing but the aggregate.
    If the plan has method = "inside", the parties draw the release together, and nothing but the release is revealed.

    All parties start this command at about the same time, with the same --run. Connections are TLS 1.3 with the keys
    in parties.toml. The report is drawn once for each run and recorded: if a run fails, start it again with the same
    name and input. A finished run is not repeated; its aggregate is shown from the record.

    For example:  optdp aggregate plan --party 0 --input 11 --key party-0.pem --run 2026-11
    """
    from optdp.artifact import open_member
    from optdp.ledger.book import Ledger
    from optdp.plan.aggregate import join
    from optdp.plan.format import PLACES
    from optdp.plan.meeting.keys import read_key
    from optdp.plan.meeting.roster import read_roster

    truth = whole_number(value)
    member, whole = open_member(plan, party)
    places, own = read_roster(plan / PLACES if parties is None else parties), read_key(key)
    if ledger is not None and whole is None:
        raise ArtifactError("--ledger needs the whole plan, to prove an epsilon. Get all files of its folder.")
    if whole is None and not as_json:
        err.print("[dim]the plan was not verified: some of its files are not in the folder[/]")

    def record(known: bool) -> None:
        if ledger is not None and whole is not None:
            Ledger.read(ledger).add_run(whole, party, run, known=known)

    try:
        found = join(member, truth, run=run, places=places, key=own, state=state, timeout=timeout, listen=listen,
                     before_report=record)  # fmt: skip
    except KeyboardInterrupt as stop:
        why, code = (stop.why, stop.exit_code) if isinstance(stop, work.Stopped) else ("interrupted", 130)
        err.print(f"[bold red]optdp:[/] {why}; what was drawn is recorded: start the same run again", highlight=False)
        raise typer.Exit(code) from None
    if as_json:
        print_json(
            {"party": party, "aggregate": found.total, "average": found.average, "plan": found.identity,
             "run": run, "plan_verified": whole is not None, "opened_before": found.again}
        )  # fmt: skip
        return
    if found.again:
        err.print(f"[dim]run {plain(run)} was finished before; shown from the record[/]")
    print(found.total if found.divisor == 1 else f"{found.total}  (average {found.average:.6g})")
