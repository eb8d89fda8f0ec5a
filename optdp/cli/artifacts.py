"""The commands that use an artifact: sample, export, report, sign, aggregate, audit."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from optdp.cli.terminal import AllowOutside, AsJson, err, out, plain, print_json, progress, whole_number
from optdp.errors import ArtifactError, ProblemError
from optdp.files.atomic import check_apart, check_writable, name_of

if TYPE_CHECKING:
    from optdp.artifact import Opened
    from optdp.audit import Audit, Sampler
    from optdp.audit.external import Command


def sample(
    artifact: Annotated[Path, typer.Argument(help="An artifact that `optdp solve --out` wrote.")],
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


def export(
    artifact: Annotated[Path, typer.Argument(help="An artifact, one party's file, or the folder of a plan.")],
    to: Annotated[str, typer.Option(help="python, c, js, sql (samplers), csv, npz or parquet (the table).")],
    save: Annotated[
        Path, typer.Option("--out", "-o", help="The folder to write to; for csv, npz and parquet also a file.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write a verified artifact as a sampler that needs no optdp, or as a table.

    For example:  optdp export sick-leave.json --to c --out sampler
    """
    from optdp.export import chosen, write
    from optdp.export.subject import subjects

    target = chosen(to)
    found = subjects(artifact)
    written = write(found, target, save)
    for warning in dict.fromkeys(subject.warning for subject in found if subject.warning):
        err.print(f"[yellow]{plain(warning)}[/]")
    tested = [path for path in written if target.test and path.name != "sampler.h"]
    tests = [target.test.format(shlex.quote(str(path.parent)), shlex.quote(str(path))) for path in tested]
    if as_json:
        print_json(
            {
                "target": to,
                "written": [str(path) for path in written],
                "sha256": [subject.artifact.sha256 for subject in found],
                "test": tests,
                "warning": "; ".join(dict.fromkeys(subject.warning for subject in found if subject.warning)),
            }
        )
        return
    for path in written:
        out.print(plain(f"wrote {name_of(path)}"), highlight=False)
    for test in tests:
        if test.isprintable():
            out.print(plain(f"next: {test}"), highlight=False)


def report(
    artifact: Annotated[Path, typer.Argument(help="An artifact, the folder of a plan, or an order.")],
    save: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the page here; by default beside the artifact, as .html.")
    ] = None,
    title: Annotated[str, typer.Option(help="What it is for, as the page's heading.")] = "",
    allow_outside: AllowOutside = False,
) -> None:
    """Make one self-contained HTML page about a verified artifact: what is promised, under which assumptions, pictures.

    For example:  optdp report sick-leave.json -o report.html --title "Sick leave in our offices"
    """
    from optdp.artifact import open_artifact
    from optdp.files.atomic import write_bytes
    from optdp.report.report import REPORTED
    from optdp.report.report import report as make

    target = default_page(artifact) if save is None else save
    check_writable(target)
    with progress() as say:
        say("verifying, measuring and drawing")
        found = open_artifact(artifact, *REPORTED, allow_outside=allow_outside, check=False)
        check_apart(target, {f"the file {place.name} that is read": place for place in found.files})
        page = make(found, title.strip()[:200])
    write_bytes(target, page)
    out.print(plain(f"wrote {target}: {len(page) / 1000:,.0f} kB, one file that loads nothing else"))


def default_page(artifact: Path) -> Path:
    """`a.json` and the folder `a/` become `a.html`."""
    place = artifact if artifact.name not in ("", ".", "..") else artifact.resolve()
    if not place.name:
        raise ProblemError("--out must be given for what has no name of its own. Found none.")
    if place.suffix.lower() == ".json":
        return place.with_suffix(".html")
    return place.with_name(f"{place.name}.html")


def sign(
    artifact: Annotated[
        Path, typer.Argument(help="An artifact, the folder of a plan, or an order, that `solve --out` wrote.")
    ],
    key: Annotated[
        Path,
        typer.Option(
            "--key", "-k", help="The private key: a PEM file, Ed25519; OPTDP_KEY_PASSWORD opens an encrypted one."
        ),
    ],
    new_key: Annotated[
        bool, typer.Option("--create-key", help="Make the private key first, and its public key beside it.")
    ] = False,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Verify an artifact and sign its digest; writes the signature beside it, with .sig after its name.

    For example:  optdp sign a.json --key private.pem --create-key
    """
    from optdp.artifact import OpenedMatrix, OpenedOrder, OpenedPlan, open_artifact
    from optdp.files import signature

    digest = open_artifact(artifact, OpenedMatrix, OpenedPlan, OpenedOrder, allow_outside=allow_outside).sha256
    public = signature.create_key(key) if new_key else None
    written = signature.sign(artifact, digest, key)
    shown = artifact.parent / written.name if artifact.name else written
    if as_json:
        made = {"public_key": str(public)} if public is not None else {}
        print_json({"file": str(artifact), "signature": str(shown), "sha256": digest, **made})
        return
    if public is not None:
        out.print(f"wrote {plain(key)}, the private key: keep it to yourself")
        out.print(f"wrote {plain(public)}, the public key: hand it to whoever verifies")
    out.print(f"wrote {plain(shown)}")
    print(f"  sha256  {digest}")


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


COLOURS = {"refuted": "bold red", "does not follow its table": "bold red"}


def audit(
    artifact: Annotated[
        Path, typer.Argument(help="An artifact, the folder of a plan, or one party's file, that `solve --out` wrote.")
    ],
    samples: Annotated[
        int, typer.Option("--samples", "-n", help="Draws for each secret, at least 100; 40,000,000 inputs in all.")
    ] = 1_000_000,
    command: Annotated[
        str,
        typer.Option(
            help="A sampler to test instead of optdp's: './sampler {input} {count}' prints so many integers; without "
            "the two it reads inputs and prints an integer for each, one a line. For a plan's folder also {party}."
        ),
    ] = "",
    timeout: Annotated[float, typer.Option(help="Seconds that the command may take in all.")] = 600.0,
    seed: Annotated[int | None, typer.Option(help="Repeatable draws, for tests only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw from a sampler and try to refute what the artifact claims; exit 1 if it is, or if its table is not followed.

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
        err.print("[yellow]a seeded audit can be repeated, and passed on purpose: do not rely on it[/]")
    if as_json:
        print_json({"file": str(artifact), "command": command or None} | found.summary())
    else:
        _show_audit(artifact, found)
    if found.failed:
        raise typer.Exit(1)


def _samplers(found: Opened, command: Command) -> Sampler | list[Sampler]:
    """The command, or of a plan one for each party."""
    from optdp.artifact import OpenedPlan

    if not isinstance(found, OpenedPlan):
        return command
    if not any("{party}" in word for word in command.words):
        raise ProblemError("--command must have {party} for the folder of a plan. Found it without.")
    return [replace(command, words=tuple(command.filled(party=i))) for i in range(len(found.plan.tables))]


def _show_audit(artifact: Path, found: Audit) -> None:
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
