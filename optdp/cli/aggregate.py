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
    save: Annotated[Path, typer.Option("--out", "-o", help="The file to write, which must be new.")],
    host: Annotated[str, typer.Option(help="Where the other parties reach this one.")] = "localhost",
    port: Annotated[int, typer.Option(help="The port on which it listens.", min=1, max=65535)] = 9001,
    as_json: AsJson = False,
) -> None:
    """Make the key of one party, and print its line for parties.toml.

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
    out.print(f"wrote {plain(save)}, the private key: keep it to yourself")
    print(f"  fingerprint  {made.fingerprint}")
    print("for parties.toml, between `parties = [` and `]`:")
    print(f"  {line}")


def aggregate(
    plan: Annotated[Path, typer.Argument(help="The plan's folder. With all its files the plan is verified first.")],
    party: Annotated[int, typer.Option(help="Which party this is, from 0.", min=0)],
    value: Annotated[
        str,
        typer.Option("--input", "-x", help="The true sum of this party's people; - reads it from standard input."),
    ],
    key: Annotated[Path, typer.Option("--key", "-k", help="This party's key, which `optdp party-key` made.")],
    run: Annotated[
        str, typer.Option(help="Which release this is, such as 2026-11: the same at all parties, and never used again.")
    ],
    parties: Annotated[
        Path | None,
        typer.Option(help="Where the parties are, and their fingerprints; parties.toml in the plan's folder if not."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="The folder with this party's records of runs; beside the key if not given.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Record the run in this ledger of `optdp ledger open`, before anything is sent."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that the others may take in all.")] = 60.0,
    listen: Annotated[
        str | None, typer.Option(help="The address to listen on if it is not loopback, such as 0.0.0.0.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw this party's report and run the secure sum with the other parties: only the aggregate is opened.
    Of a plan with method = "inside", draw the release together with them: only the release is opened.

    All parties start it at about the same time, with the same run. Connections are TLS 1.3 with the keys in
    parties.toml. The report is drawn once for each run and recorded: if a run fails, start it again with the same name
    and the same input. A run that was opened is not opened again; its aggregate is shown from the record.

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
        err.print("[dim]the plan is not verified: its folder has not all of its files[/]")

    def record() -> None:
        if ledger is not None and whole is not None:
            Ledger.read(ledger).add_run(whole, party, run)

    try:
        found = join(member, truth, run=run, places=places, key=own, state=state, timeout=timeout, listen=listen,
                     before_report=record)  # fmt: skip
    except KeyboardInterrupt as stop:
        why, code = (stop.why, stop.exit_code) if isinstance(stop, work.Stopped) else ("interrupted", 130)
        err.print(f"[bold red]optdp:[/] {why}; what was drawn is on record: start the same run again", highlight=False)
        raise typer.Exit(code) from None
    if as_json:
        print_json(
            {"party": party, "aggregate": found.total, "average": found.average, "plan": found.identity,
             "run": run, "plan_verified": whole is not None, "opened_before": found.again}
        )  # fmt: skip
        return
    if found.again:
        err.print(f"[dim]run {plain(run)} was opened before; nobody was met[/]")
    print(found.total if found.divisor == 1 else f"{found.total}  (average {found.average:.6g})")
