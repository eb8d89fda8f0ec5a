"""Arguments that several commands share, and how they are checked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from optdp.errors import ProblemError

ProblemPath = Annotated[Path, typer.Argument(help="A problem file (TOML). `optdp problems` lists some.")]
ArtifactPath = Annotated[Path, typer.Argument(help="An artifact that `optdp solve --out` wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def whole_number(text: str) -> int:
    """The number, or the first line of standard input for `-`: arguments can be read by other users of a machine."""
    given = sys.stdin.readline(100).strip() if text == "-" else text
    try:
        return int(given)
    except ValueError:
        raise ProblemError("--input must be a whole number, or - to read it. Found something else.") from None


def check_apart(save: Path, others: Mapping[str, Path]) -> None:
    """Refuse to write over what is read."""
    for name, other in others.items():
        try:
            same = os.path.exists(save) and os.path.exists(other) and os.path.samefile(save, other)
        except OSError as error:
            raise ProblemError(f"--out must be a name that can be written: {error.strerror}.") from None
        if same:
            raise ProblemError(f"--out must be a file of its own. Found that it is {name}. Choose another name.")


def check_writable(path: Path) -> None:
    """Refuse before a long solve what could not be written after it."""
    folder = path.parent
    try:
        if path.is_dir():
            raise ProblemError(f"--out must be a file. Found the folder {path}.")
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise ProblemError(f"--out must lie in a folder that can be written. Found {folder}.")
    except OSError as error:
        raise ProblemError(f"--out must be a name that can be written: {error.strerror}.") from None
