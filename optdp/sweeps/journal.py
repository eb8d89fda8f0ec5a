"""The journal of a sweep: finished points, each safe on disk before the next is looked at.

Beside the output, `<out>.partial.jsonl`: the first line says which sweep it is of (the digest of problem, grid, the
files that they name, and optdp's version), and every further line is a point's number and its row. A last line that was
cut is dropped, and its point solved again.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optdp.errors import ProblemError
from optdp.files.atomic import name_of

FORMAT = "optdp/sweep-journal"


@dataclass
class Journal:
    """Finished points; without a handle they are kept in memory alone."""

    path: Path | None = None
    handle: int = -1
    done: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, point: int, row: dict[str, Any]) -> None:
        """Keep a finished point."""
        if self.handle >= 0:
            _append(self.handle, {"point": point, "row": row})
        self.done[point] = row

    def remove(self) -> None:
        """All is written elsewhere."""
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()


def journal_of(out: Path) -> Path:
    """Where the journal of an output lies."""
    return out.with_name(out.name + ".partial.jsonl")


@contextmanager
def journal(out: Path | None, digest: str, points: int, fresh: bool) -> Iterator[Journal]:
    """The journal of the sweep with this digest, with what an earlier run finished; refuses that of another sweep."""
    if out is None:
        yield Journal()
        return
    path = journal_of(out)
    try:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise ProblemError(f"A journal must be a regular file. Found another thing at {name_of(path)}.")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise ProblemError(f"cannot write {name_of(path)}: {error.strerror}") from None
    try:
        _lock(handle, path)
        done, end = ({}, 0) if fresh else _read(path, digest, points)
        os.ftruncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)
        if end == 0:
            _append(handle, {"format": FORMAT, "version": 1, "digest": digest, "points": points})
        book = Journal(path, handle, done)
        try:
            yield book
        finally:
            if not book.done:  # nothing to go on with
                book.remove()
    except OSError as error:
        raise ProblemError(f"cannot write {name_of(path)}: {error.strerror}") from None
    finally:
        os.close(handle)


def _append(handle: int, line: dict[str, Any]) -> None:
    data = (json.dumps(line, allow_nan=False) + "\n").encode()
    while data:
        data = data[os.write(handle, data) :]
    os.fsync(handle)


def _read(path: Path, digest: str, points: int) -> tuple[dict[int, dict[str, Any]], int]:
    """The finished points, and where the last whole line ends."""
    done: dict[int, dict[str, Any]] = {}
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n"):
                break
            found = _parsed(line)
            if number == 0:
                if found.get("format") != FORMAT:
                    raise ProblemError(f"{name_of(path)} is not a journal of a sweep. Move it away, or add --fresh.")
                if found.get("digest") != digest:
                    raise ProblemError(
                        f"{name_of(path)} holds finished points of another sweep: another problem, grid or version of "
                        "optdp. Finish that one, choose another --out, or throw them away: --fresh."
                    )
            else:
                point, row = found.get("point"), found.get("row")
                if (
                    type(point) is not int
                    or not 0 <= point < points
                    or not isinstance(row, dict)
                    or "status" not in row
                ):
                    raise ProblemError(f"{name_of(path)} was changed: line {number + 1}. Start again: --fresh.")
                done[point] = row
            end += len(line)
    return done, end


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _lock(handle: int, path: Path) -> None:
    """One sweep at a time, where the system can say so; the lock ends with the process, whatever ends that."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ProblemError(f"Another sweep is writing {name_of(path)}. Wait for it, or choose another --out.") from None
