"""The table of a sweep: rows in the order of the grid, the columns of all of them, the files that it becomes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from optdp.errors import ProblemError
from optdp.files.atomic import check_writable
from optdp.sweeps.grid import Grid, column

Row = dict[str, Any]
LAST = ("sha256", "error")


def rows_of(grid: Grid, done: Mapping[int, Mapping[str, Any]]) -> list[Row]:
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
    rows = []
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


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ProblemError(
            "Parquet needs pyarrow: pip install 'optdp[parquet]'. Or write .csv or .jsonl, which need nothing."
        ) from None


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
