"""The command that makes a page for people to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optdp import library
from optdp.cli.arguments import AllowOutside
from optdp.cli.printing import out, plain, progress
from optdp.errors import ProblemError
from optdp.files.atomic import check_apart, check_writable


def report(
    artifact: Annotated[
        Path,
        typer.Argument(help="An artifact, a plan's folder, an order, or the problem of a shuffle protocol."),
    ],
    save: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the page here; by default next to the artifact, as .html.")
    ] = None,
    title: Annotated[str, typer.Option(help="The heading of the page, such as what the release is for.")] = "",
    allow_outside: AllowOutside = False,
) -> None:
    """Verify an artifact and write one self-contained HTML page: what is promised, on what assumptions, with charts.

    For a shuffle protocol, or for what shuffling buys, give the problem file: it is solved first.

    For example:  optdp report sick-leave.json -o report.html --title "Sick leave in our offices"
    """
    from optdp.artifact import open_artifact
    from optdp.files.atomic import write_bytes
    from optdp.loading import load
    from optdp.report.protocol import report as of_problem
    from optdp.report.report import REPORTED
    from optdp.report.report import report as make

    target = default_page(artifact) if save is None else save
    if not artifact.exists() and str(artifact) in library.problems():
        artifact = library.place(artifact)
    check_writable(target)
    with progress() as say:
        if artifact.suffix == ".toml":
            check_apart(target, {"the problem": artifact})
            page = of_problem(load(artifact, allow_outside=allow_outside), artifact.name, title.strip()[:200], say)
        else:
            say("verifying, measuring and drawing")
            found = open_artifact(artifact, *REPORTED, allow_outside=allow_outside, check=False)
            check_apart(target, {f"the file {place.name} that is read": place for place in found.files})
            page = make(found, title.strip()[:200])
    write_bytes(target, page)
    out.print(plain(f"wrote {target}: {len(page) / 1000:,.0f} kB, one file that loads nothing else"))


def default_page(artifact: Path) -> Path:
    """`a.json`, `a.toml` and the folder `a/` become `a.html`."""
    place = artifact if artifact.name not in ("", ".", "..") else artifact.resolve()
    if not place.name:
        raise ProblemError("This path has no name to call the page after. Say where to write it with --out.")
    if place.suffix.lower() in (".json", ".toml"):
        return place.with_suffix(".html")
    return place.with_name(f"{place.name}.html")
