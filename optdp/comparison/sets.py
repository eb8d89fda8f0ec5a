"""Problem sets: lists of problem files in the library's `sets/`, with checksums of the programs that they stand for.

    title = "Smoke"
    about = "..."
    [[problem]]
    file = "../paper-a/example-1.toml"
    why = "..."

A file may also be asked for at other values, which go where `optdp sweep --grid` would put them:

    at = { epsilon = "0.001" }

`checksums.toml` has the SHA-256 of what `optdp formulate --to mps` writes for each, up to two million entries: whoever
has the same sum has the same program.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optdp import library
from optdp.errors import ArtifactError, ProblemError
from optdp.files.atomic import name_of, read_bytes
from optdp.files.models import Problem
from optdp.kinds import formulate
from optdp.loading import beside, built, load_file
from optdp.numbers.exact import shown
from optdp.programs.formats import mps
from optdp.programs.statement import named
from optdp.sweeps.grid import base_of, put

CHECKSUMS = "checksums"
MOST = 1000
"""Problems of a set."""
MOST_ENTRIES = 2_000_000
"""Of a program with a checksum."""


@dataclass(frozen=True)
class Member:
    """One problem of a set."""

    name: str
    """Such as "example-1", or with values "example-1 epsilon=0.001"."""
    file: Path
    at: dict[str, Any]
    why: str

    @property
    def problem(self) -> Problem[Any]:
        """Read when it is asked for."""
        if not self.at:
            return load_file(self.file).problem
        data = put(base_of(load_file(self.file).data), self.at)
        beside(data, self.file.parent, allow_outside=False)
        return built(data)


@dataclass(frozen=True)
class ProblemSet:
    """A list of problems."""

    name: str
    title: str
    about: str
    members: tuple[Member, ...]


def names() -> list[str]:
    """The sets that are here."""
    return [name for name in library.sets() if name != CHECKSUMS]


def problem_set(name: str) -> ProblemSet:
    """The set of that name."""
    if name not in names():
        raise ProblemError(f"Unknown problem set {shown(name)}. There are: {', '.join(names())}.")
    path = library.sets()[name]
    data = _read(path)
    try:
        members = tuple(_member(path, entry) for entry in data["problem"])
        if not 0 < len(members) <= MOST or len({member.name for member in members}) < len(members):
            raise ValueError
        return ProblemSet(name, str(data["title"]), str(data["about"]), members)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ProblemError(
            f"A set has a title, what it is about, and 1 to {MOST:,} different problems, each with file and why. "
            f"Found another form in {name_of(path)}."
        ) from None


def _member(path: Path, entry: dict[str, Any]) -> Member:
    if not set(entry) <= {"file", "why", "at"}:
        raise ValueError
    file, at = (path.parent / entry["file"]).resolve(), dict(entry.get("at", {}))
    if not file.is_relative_to(path.parent.parent.resolve()):
        raise ValueError
    values = "".join(f" {key.rpartition('.')[2]}={value}" for key, value in at.items())
    return Member(f"{file.stem}{values}", file, at, str(entry["why"]))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(path).decode())
    except (ValueError, RecursionError, ArtifactError) as error:
        raise ProblemError(f"{name_of(path)} is not a problem set: {str(error).splitlines()[0]}.") from None


# ---------------------------------------------------------------------------------------------------------- checksums


def checksums() -> dict[str, str]:
    """The sums that are kept, by the name of the problem."""
    return {str(name): str(value) for name, value in _read(library.sets()[CHECKSUMS]).items()}


def checksum(problem: Problem[Any]) -> str:
    """Of its program, as `optdp formulate --to mps` writes it."""
    stated = named(formulate(problem))
    return hashlib.sha256(mps(stated.program(), stated.note)).hexdigest()


def summed(problem: Problem[Any], most: int = MOST_ENTRIES) -> bool:
    """Whether a program is small enough to have a checksum."""
    return named(formulate(problem)).entries <= most


def every_member() -> Iterator[Member]:
    """The problems of all sets, each once."""
    found: dict[str, Member] = {}
    for name in names():
        found |= {member.name: member for member in problem_set(name).members}
    yield from found.values()
