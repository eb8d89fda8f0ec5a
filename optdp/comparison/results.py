"""Files of rows: `.parquet`, or `.jsonl`, which needs nothing. Several are read as one.

Both hold the heads of their runs, the format and its version, the number of rows, and a SHA-256 of it all: a file that
was cut or changed is refused. In JSON lines that is the first line; in Parquet it is the entry `optdp` of the metadata.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from optdp.comparison.rows import KINDS, OPTIONAL, Head, Row
from optdp.errors import ArtifactError, ProblemError
from optdp.extras import install
from optdp.files.atomic import name_of, read_bytes
from optdp.files.canonical import parse

FORMAT, VERSION = "optdp/comparison", 1
MOST = 200_000
"""Rows of a file."""
LONGEST = 4000
"""Characters of a text in a row."""


@dataclass(frozen=True)
class Results:
    """Rows with the heads of the runs that they are of."""

    heads: tuple[Head, ...]
    rows: tuple[Row, ...]

    @staticmethod
    def merged(parts: Iterable[Results]) -> Results:
        """All rows once, in the order of the files."""
        heads: dict[str, Head] = {}
        rows: dict[Row, None] = {}
        for part in parts:
            heads |= {head.run: head for head in part.heads}
            rows |= dict.fromkeys(part.rows)
        return Results(tuple(heads.values()), tuple(rows))


def digest(heads: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """Of the content, whatever the file's form."""
    text = json.dumps([heads, rows], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _header(heads: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "heads": heads, "rows": len(rows), "sha256": digest(heads, rows)}


# ---------------------------------------------------------------------------------------------------------- writing


def as_jsonl(results: Results) -> bytes:
    """The header, and a line for each row."""
    heads, rows = [asdict(head) for head in results.heads], [row.summary() for row in results.rows]
    lines = [_header(heads, rows), *rows]
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode()


def as_parquet(results: Results) -> bytes:
    """A column for each figure."""
    pa, parquet = _pyarrow()
    heads, rows = [asdict(head) for head in results.heads], [row.summary() for row in results.rows]
    types = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    columns = {name: pa.array([row[name] for row in rows], types[kind]) for name, kind in KINDS.items()}
    table = pa.table(columns).replace_schema_metadata({b"optdp": json.dumps(_header(heads, rows)).encode()})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


WRITERS: dict[str, Callable[[Results], bytes]] = {".parquet": as_parquet, ".jsonl": as_jsonl}


def check_out(out: Path) -> None:
    """Refuse before a long run what could not be written after it."""
    if out.suffix not in WRITERS:
        raise ProblemError(f"--out must end in {' or '.join(WRITERS)}. Found {out.name!r}.")
    if out.suffix == ".parquet":
        _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ProblemError(
            f"Parquet needs pyarrow: {install('parquet')}. Or use .jsonl, which needs nothing."
        ) from None


# ---------------------------------------------------------------------------------------------------------- reading


def is_results(path: Path) -> bool:
    """Whether a file is meant as one of results, by its name."""
    return path.suffix in WRITERS


def read(path: Path) -> Results:
    """The rows of a file, or one line that says what is wrong with it."""
    data = read_bytes(path)
    header, rows = _from_parquet(data, path) if path.suffix == ".parquet" else _from_jsonl(data, path)
    name = name_of(path)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ArtifactError(f"{name} holds no results of optdp compare. Give a file that compare --out wrote.")
    if header.get("version") != VERSION:
        found = str(header.get("version"))[:20]
        raise ArtifactError(f"{name} is of version {found} of its format; this optdp reads {VERSION}. Compare again.")
    heads = header.get("heads")
    if len(rows) != header.get("rows") or not isinstance(heads, list):
        raise ArtifactError(f"{name} was cut or changed: it says {header.get('rows')} rows. Found {len(rows):,}.")
    try:
        whole = digest(heads, rows)
    except ValueError:
        whole = ""
    if whole != header.get("sha256"):
        raise ArtifactError(f"{name} was cut or changed: its digest does not fit. Compare again.")
    try:
        return Results(tuple(map(_head, heads)), tuple(map(_row, rows)))
    except (TypeError, ValueError):
        raise ArtifactError(f"{name} was not written by optdp compare: a row has another form.") from None


def _from_jsonl(data: bytes, path: Path) -> tuple[Any, list[Any]]:
    try:
        lines = [parse(line) for line in data.split(b"\n") if line.strip()]
    except ArtifactError as error:
        raise ArtifactError(f"{name_of(path)} was cut, or holds no results of optdp compare: {error}") from None
    if not lines or not data.endswith(b"\n"):
        raise ArtifactError(f"{name_of(path)} was cut, or holds no results of optdp compare.")
    return lines[0], lines[1:]


def _from_parquet(data: bytes, path: Path) -> tuple[Any, list[Any]]:
    pa, parquet = _pyarrow()
    foreign = ArtifactError(f"{name_of(path)} was cut, or holds no results of optdp compare.")
    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        header = parse((file.schema_arrow.metadata or {}).get(b"optdp", b"null"))
        if file.metadata.num_rows > MOST or file.metadata.num_columns > 2 * len(KINDS):
            raise foreign
        return header, file.read().to_pylist() if isinstance(header, dict) else []
    except (pa.ArrowException, OSError, ValueError, ArtifactError, MemoryError):
        raise foreign from None


def _head(given: Any) -> Head:
    """A head, all of it checked: it is printed and drawn."""
    if set(given) != {field.name for field in fields(Head)}:
        raise ValueError
    words = {field.name for field in fields(Head) if field.type == "str"}
    figures = [given[name] for name in ("memory", "repeat", "cores", "timeout", "allowed")]
    good = all(isinstance(given[name], str) and len(given[name]) <= LONGEST for name in words)
    good = good and all(value is None or _is(value, "float") for value in figures)
    versions = given["versions"]
    if not good or not isinstance(versions, dict) or not all(isinstance(one, str) for one in versions.values()):
        raise ValueError
    return Head(**given)


def _row(given: Any) -> Row:
    if set(given) != set(KINDS):
        raise ValueError
    for name, kind in KINDS.items():
        if not (_is(given[name], kind) or (given[name] is None and name in OPTIONAL)):
            raise ValueError
    for name in ("raw_epsilon", "certified_epsilon"):
        if given[name] not in (None, "infinite"):
            float(given[name])
    return Row(**given)


def _is(value: Any, kind: str) -> bool:
    if kind == "str":
        return isinstance(value, str) and len(value) <= LONGEST
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63 if isinstance(value, int) else kind == "float" and math.isfinite(value)
