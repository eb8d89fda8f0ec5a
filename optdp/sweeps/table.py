"""The rows of a sweep: the journal of finished points, and the table that they become.

The journal lies beside the output, `<out>.partial.jsonl`, and every point is safe on disk before the next is looked at.
Its first line says which sweep it is of (the digest of problem, grid, the files that they name, and optdp's version),
and every further line is a point's number and its row. A last line that was cut is dropped, and its point solved again.
"""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from optdp.errors import ProblemError
from optdp.extras import install
from optdp.files.atomic import check_writable, name_of
from optdp.kind import Home
from optdp.objects import short
from optdp.pictures.pictured import Pictured
from optdp.sheet import Listing, Sheet
from optdp.sweeps.grid import Grid, column
from optdp.sweeps.pool import Row, needed

LAST = ("sha256", "error")
QUIET = ("seconds", "note", "meaning", *LAST)
"""Columns that a notebook does not show."""
MOST_COLUMNS = 6
"""Figures that a notebook shows of a point."""


class Rows(Pictured, list[Row]):
    """The rows of a sweep: a list of mappings, which pandas and polars make tables of.

    Parameters
    ----------
    rows : the rows.
    keys : the keys of the grid, which are the first columns.
    """

    drawing: ClassVar[Home] = "optdp.sweeps.plot:of_rows"

    def __init__(self, rows: Iterable[Row] = (), keys: Sequence[str] = ()) -> None:
        super().__init__(rows)
        self.keys = tuple(keys)

    def sheet(self) -> Sheet:
        """What a person is shown: the grid, how each point ended, and what differs between the points."""
        first = (*self.keys, "status")
        others = [name for name in (self[0] if self else ()) if name not in (*first, *QUIET)]
        head = (*first, *[name for name in others if len({str(row[name]) for row in self}) > 1][:MOST_COLUMNS])
        rows = tuple(tuple("" if row[name] is None else short(row[name]) for name in head) for row in self)
        return Sheet((), (Listing(head, rows),))


def rows_of(grid: Grid, done: Mapping[int, Mapping[str, Any]]) -> Rows:
    """One flat row for each point; all rows have the same columns, None where a point has no such figure.

    First the grid's keys, then `status` and `seconds`, the figures as `optdp solve --json` has them, `sha256`, `error`.
    A figure with the name of a key of the grid is called `solution.<name>`.
    """
    shown = {key: column(values) for key, values in grid.values.items()}
    reserved = {*grid.values, "status", "seconds", *LAST}
    names: dict[str, str] = {}
    for i in range(len(grid)):
        for name in done[i]["figures"]:
            if name not in names:
                names[name] = f"solution.{name}" if name in reserved else name
    rows = Rows(keys=list(grid.values))
    for i, point in enumerate(grid):
        found = done[i]
        row: Row = {key: shown[key][value] for key, value in point.items()}
        row |= {"status": found["status"], "seconds": found["seconds"]}
        row |= {shown_name: found["figures"].get(name) for name, shown_name in names.items()}
        rows.append(row | {name: found[name] for name in LAST})
    return rows


def as_csv(rows: Sequence[Row]) -> bytes:
    """A header and a line for each row; nothing is an empty cell."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(rows[0])
    for row in rows:
        table.writerow([_cell(value) for value in row.values()])
    return text.getvalue().encode()


def as_jsonl(rows: Sequence[Row]) -> bytes:
    """One JSON object in each line."""
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


def as_parquet(rows: Sequence[Row]) -> bytes:
    """A Parquet file: whole numbers, doubles, truths and text, each column of one type."""
    pa, parquet = _pyarrow()
    columns = {name: _uniform([row[name] for row in rows]) for name in rows[0]}
    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string()}
    made = {name: pa.array(values, types[kind]) for name, (kind, values) in columns.items()}
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(made), sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


WRITERS: dict[str, Callable[[Sequence[Row]], bytes]] = {".parquet": as_parquet, ".csv": as_csv, ".jsonl": as_jsonl}
"""How a table is written, by the ending of its name."""


def check_out(out: Path) -> None:
    """Refuse before a long sweep what could not be written after it."""
    if out.suffix not in WRITERS:
        raise ProblemError(f"--out must end in {', '.join(WRITERS)}. Found {out.name!r}.")
    check_writable(out)
    if out.suffix == ".parquet":
        _pyarrow()


def _pyarrow() -> tuple[Any, ...]:
    said = f"Parquet needs pyarrow: {install('parquet')}. Or write .csv or .jsonl, which need nothing."
    return needed("pyarrow", "pyarrow.parquet", otherwise=said)


def _uniform(values: list[Any]) -> tuple[str, list[Any]]:
    """The one type of a column, and its values in that type; text if nothing else holds them all."""
    kinds = {type(value).__name__ for value in values if value is not None}
    if kinds == {"int"} and all(value is None or abs(value) < 2**63 for value in values):
        return "int", values
    if kinds and kinds <= {"int", "float"}:
        return "float", [None if value is None else float(value) for value in values]
    if kinds == {"bool"}:
        return "bool", values
    return "str", [None if value is None else _cell(value) for value in values]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


# ---------------------------------------------------------------------- the journal

FORMAT = "optdp/sweep-journal"


@dataclass
class Journal:
    """Finished points; without a handle they are kept in memory alone."""

    path: Path | None = None
    handle: int = -1
    done: dict[int, Row] = field(default_factory=dict)

    def add(self, point: int, row: Row) -> None:
        """Keep a finished point."""
        if self.handle >= 0:
            _append(self.handle, {"point": point, "row": row})
        self.done[point] = row

    def remove(self) -> None:
        """All is written elsewhere."""
        if self.path is not None:
            with suppress(FileNotFoundError):
                self.path.unlink()


@contextmanager
def journal(out: Path | None, digest: str, points: int, fresh: bool) -> Iterator[Journal]:
    """The journal of the sweep with this digest, with what an earlier run finished; refuses that of another sweep."""
    if out is None:
        yield Journal()
        return
    path = out.with_name(out.name + ".partial.jsonl")
    try:
        with suppress(FileNotFoundError):
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


def _read(path: Path, digest: str, points: int) -> tuple[dict[int, Row], int]:
    """The finished points, and where the last whole line ends."""
    done: dict[int, Row] = {}
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
                good = isinstance(row, dict) and "status" in row
                if not good or type(point) is not int or not 0 <= point < points:
                    raise ProblemError(f"{name_of(path)} was changed: line {number + 1}. Start again: --fresh.")
                done[point] = found["row"]
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
