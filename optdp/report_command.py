"""The command that makes a page for people to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from optdp.arguments import check_apart, check_writable
from optdp.errors import ProblemError
from optdp.printing import out, progress


def report(
    artifact: Annotated[Path, typer.Argument(help="An artifact, the folder of a plan, or an order.")],
    save: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the page here; by default beside the artifact, as .html.")
    ] = None,
    title: Annotated[str, typer.Option(help="What it is for, as the page's heading.")] = "",
) -> None:
    """Make one self-contained HTML page about a verified artifact: what is promised, under which assumptions, pictures.

    For example:  optdp report sick-leave.json -o report.html --title "Sick leave in our offices"
    """
    from optdp.artifact.files import write_bytes
    from optdp.page.report import report as make
    from optdp.page.report import sources

    target = default_page(artifact) if save is None else save
    check_writable(target)
    check_apart(target, {f"the file {place.name} that is read": place for place in sources(artifact)})
    with progress(False) as say:
        say("verifying, measuring and drawing")
        page = make(artifact, title.strip()[:200])
    write_bytes(target, page)
    out.print(escape(f"wrote {target}: {len(page) / 1000:,.0f} kB, one file that loads nothing else"))


def default_page(artifact: Path) -> Path:
    """`a.json` and the folder `a/` become `a.html`."""
    place = artifact if artifact.name not in ("", ".", "..") else artifact.resolve()
    if not place.name:
        raise ProblemError("--out must be given for what has no name of its own. Found none.")
    if place.suffix.lower() in (".json", ".npz"):
        return place.with_suffix(".html")
    return place.with_name(f"{place.name}.html")
