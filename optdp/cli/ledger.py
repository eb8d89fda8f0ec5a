"""The commands `ledger open`, `ledger add` and `ledger show`: what was released, and what is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optdp.cli.arguments import ArtifactPath, AsJson, Once
from optdp.cli.printing import out, plain, print_json, progress
from optdp.cli.printing import show as show_sheet

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="A ledger, as created by `optdp ledger open`.")]
PrivateKey = Annotated[
    Path | None,
    typer.Option("--key", "-k", help="Sign the ledger with this private key (Ed25519, a PEM file)."),
]

app = typer.Typer(
    cls=Once,
    help="Record releases over time, show how much of a total is spent, and refuse a release that would exceed it.",
    add_completion=False,
)


@app.command("open")
def begin(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="The file to write; it must not exist yet.")],
    epsilon: Annotated[str, typer.Option(help="The total epsilon for all releases together.")],
    delta: Annotated[str, typer.Option(help="The delta of the total; with 0, epsilons simply add up.")] = "0",
    planned: Annotated[
        bool,
        typer.Option(
            "--planned",
            help="Promise that all releases, their artifacts and number, are fixed before the first. Then less is "
            "spent.",
        ),
    ] = False,
    note: Annotated[str, typer.Option(help="What the ledger is for.")] = "",
    key: PrivateKey = None,
    as_json: AsJson = False,
) -> None:
    """Start a ledger with a total.

    For example:  optdp ledger open ward.jsonl --epsilon 4 --delta 1e-6
    """
    from optdp.ledger.book import Ledger

    made = Ledger.create(ledger, epsilon, delta, planned=planned, note=note, key=key)
    if as_json:
        print_json(made.summary())
        return
    out.print(f"wrote {plain(ledger)}")
    print(f"  receipt  {made.receipt}")


@app.command()
def add(
    ledger: LedgerPath,
    artifact: ArtifactPath,
    count: Annotated[int, typer.Option("--count", "-n", help="How many releases to record.")] = 1,
    about: Annotated[str, typer.Option(help='What is released, such as "March 2026".')] = "",
    key: PrivateKey = None,
    as_json: AsJson = False,
) -> None:
    """Record a release before you make it; it is refused, with exit code 1, if it would exceed the total.

    For example:  optdp ledger add ward.jsonl ward.json --about "March 2026"
    """
    from optdp.ledger.book import Ledger

    with progress() as say:
        now = Ledger.read(ledger).add(artifact, count, about, key=key, progress=say)
    if as_json:
        print_json(now.summary())
        return
    show_sheet(now.sheet(few=True))


@app.command()
def show(
    ledger: LedgerPath,
    key: Annotated[
        Path | None, typer.Option("--key", "-k", help="Check that this public key (PEM) signed the ledger.")
    ] = None,
    receipt: Annotated[
        str | None, typer.Option(help="A receipt that `add` printed: check that the ledger still has that line.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every line of a ledger, and show what was released and how much is spent.

    For example:  optdp ledger show ward.jsonl
    """
    from optdp.ledger.book import Ledger

    found = Ledger.read(ledger, key=key, receipt=receipt)
    if as_json:
        print_json(found.summary())
        return
    show_sheet(found.sheet())
