"""What a party remembers of a run: the one report that it drew for a plan and a run, and how far the run went.

    drawn  ->  opening  ->  opened

A record is written before anything is sent. A run that failed is made again with the report that was drawn the first
time, from the same input: a second attempt tells nobody anything that the first one did not. An opened run keeps the
aggregate and forgets the report; nobody is met for it again. A record changes while its run is under way through that
run alone, so that two processes cannot open one run.

Records lie in a folder that only their owner can read, beside the key: `party-0.runs` for `party-0.pem`. They hold the
report, which is nearly the input, until the run is opened. Whoever deletes a record makes the next attempt a new
release, with noise of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optdp.errors import ArtifactError, ProblemError
from optdp.files import canonical
from optdp.files.atomic import name_of, read_bytes, write_bytes, write_new

FORMAT, VERSION = "optdp/run", 1
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_COMMITMENT = re.compile("[0-9a-f]{64}")
STATES = ("drawn", "opening", "opened")
_KEYS = {"format", "version", "plan", "party", "run", "state", "salt", "input", "report", "commitments", "aggregate"}


@dataclass
class Run:
    """One run of a plan, as its file says."""

    path: Path
    plan: str
    party: int
    run: str
    state: str
    salt: str
    input: str
    """The SHA-256 of the salt and the input: tells another input, and does not hide this one from who reads it."""
    report: int | None
    commitments: list[str] | None = None
    """Those of all parties to their contributions, where the plan has a common word."""
    aggregate: int | None = None

    def committed(self, commitments: list[str]) -> Run:
        """Record what all parties have committed to, before anybody opens it."""
        self._check()
        return self._now(commitments=commitments)

    def opening(self) -> Run:
        """Record that shares are about to be revealed."""
        self._check()
        return self._now(state="opening")

    def opened(self, aggregate: int) -> Run:
        """Record what was opened, and forget the report."""
        return self._now(state="opened", aggregate=aggregate, report=None, commitments=None, salt="", input="")

    def _check(self) -> None:
        if _read(self.path) != self:
            raise ArtifactError(
                f"{name_of(self.path)} changed during the run. Only one process at a time may take part in a run."
            )

    def _now(self, **changes: Any) -> Run:
        changed = replace(self, **changes)
        write_bytes(self.path, _spelled(changed), mode=0o600)
        vars(self).update(vars(changed))
        return self


def folder_beside(key: Path) -> Path:
    """Where the records of the party with this key lie, unless told otherwise: beside the file, not beside a link."""
    key = Path(os.path.realpath(key)) if key.is_symlink() else key
    return key.with_name((key.stem if key.suffix == ".pem" else key.name) + ".runs")


def check_name(run: str) -> None:
    """Refuse what cannot name a run."""
    if not RUN.fullmatch(run):
        raise ProblemError(
            f"--run must be a name of at most 64 letters, digits, dots and dashes. Found {canonical.shown(run)}. "
            "Write one such as 2026-11."
        )


def place_of(folder: Path, plan: str, party: int, run: str) -> Path:
    """Where the record of a run lies, if there is one."""
    check_name(run)
    return folder / f"{run}-{plan[:16]}-{party}.json"


def begin(folder: Path, plan: str, party: int, run: str, value: int, draw: Callable[[], int]) -> Run:
    """The record of a run. A new one is written with a report that `draw` makes; an old one must have the same input.

    The input of a run that was opened is not looked at.
    """
    path = place_of(folder, plan, party, run)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ProblemError(f"cannot write {name_of(folder)}: {(error.strerror or str(error)).lower()}") from None
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        raise ProblemError(
            f"Other users can open {name_of(folder)}, the folder for records of runs. Make it accessible to you alone "
            "(chmod 700), or give another folder (--state)."
        )
    if not os.path.lexists(path):
        salt = secrets.token_hex(16)
        made = Run(path, plan, party, run, "drawn", salt, _mark(salt, value), draw())
        try:
            write_new(path, _spelled(made), mode=0o600)
        except ProblemError:
            if not os.path.lexists(path):  # otherwise another process was faster, and its report is the one
                raise
    found = _read(path)
    if (found.plan, found.party, found.run) != (plan, party, run):
        raise ArtifactError(f"{name_of(path)} is the record of another run, plan or party. Put the right one back.")
    if found.state != "opened" and found.input != _mark(found.salt, value):
        raise ProblemError(
            f"Run {run} of this plan was started with another input. Give the same input again, or start a new run, "
            "which is another release."
        )
    if found.state != "opened" and not os.access(folder, os.W_OK):
        raise ProblemError(f"cannot write {name_of(folder)}: permission denied")
    return found


def _mark(salt: str, value: int) -> str:
    return hashlib.sha256(f"{salt} {value}".encode("ascii")).hexdigest()


def _spelled(run: Run) -> bytes:
    document = {"format": FORMAT, "version": VERSION, **{k: v for k, v in vars(run).items() if k != "path"}}
    return canonical.canonical(document).encode("ascii") + b"\n"


def _read(path: Path) -> Run:
    try:
        document: Any = canonical.parse(read_bytes(path, 1 << 16))
        remedy = "Put back the record that optdp wrote."
        canonical.check_head(document, FORMAT, _KEYS, "A record of a run", remedy)
        texts = [document[name] for name in ("plan", "run", "state", "salt", "input")]
        numbers = [document[name] for name in ("report", "aggregate")]
        opened = document["state"] == "opened"
        right = all(isinstance(text, str) for text in texts) and document["state"] in STATES
        right = right and type(document["party"]) is int
        right = right and [number is None for number in numbers] == [opened, not opened]
        right = right and all(number is None or type(number) is int for number in numbers)
        listed = document["commitments"]
        right = right and (listed is None or (isinstance(listed, list) and not opened))
        right = right and all(isinstance(one, str) and _COMMITMENT.fullmatch(one) for one in listed or [])
        if not right:
            raise canonical.refused("A record must be as optdp writes it", "another", remedy)
    except ArtifactError as error:
        raise ArtifactError(f"{name_of(path)}: {error}") from None
    return Run(path, **{name: document[name] for name in _KEYS - {"format", "version"}})
