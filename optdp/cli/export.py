"""The command `export`: a verified artifact as a sampler in another language, or as a table for other tools."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from optdp.cli.arguments import AsJson, completed
from optdp.cli.printing import err, out, plain, print_json
from optdp.files.atomic import name_of


def _targets() -> Iterable[str]:
    from optdp.export import TARGETS

    return TARGETS


def export(
    artifact: Annotated[
        Path, typer.Argument(help="An artifact, one party's file, a plan's folder, or a shuffle protocol.")
    ],
    to: Annotated[
        str,
        typer.Option(
            help="A sampler: python, c, js or sql; or the table: csv, npz or parquet.",
            autocompletion=completed(_targets),
        ),
    ],
    save: Annotated[
        Path, typer.Option("--out", "-o", help="The folder to write to; for csv, npz and parquet it may be a file.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write a verified artifact as a sampler that needs no optdp, or as a table.

    For example:  optdp export sick-leave.json --to c --out sampler
    """
    from optdp.export import chosen, write
    from optdp.export.subject import Protocol, subjects

    target = chosen(to)
    found = subjects(artifact)
    written = write(found, target, save)
    for warning in dict.fromkeys(subject.warning for subject in found if subject.warning):
        err.print(f"[yellow]{plain(warning)}[/]")
    test = target.client_test if any(isinstance(subject, Protocol) for subject in found) else target.test
    tested = [path for path in written if test and path.suffix != ".h"]
    tests = [test.format(shlex.quote(str(path.parent)), shlex.quote(str(path))) for path in tested]
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
