"""The table itself for other tools: CSV, arrays of numpy (`.npz`) and Parquet. optdp reads none of them back.

`probability` is weight/denominator, for reading; the weights are exact. With a tail it is the probability given that
the noise stayed within `outputs`. A contraction is a second table of the same form: `output` is where it takes `input`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from itertools import accumulate
from typing import Any

import numpy as np

from optdp.errors import ProblemError
from optdp.export.subject import Subject
from optdp.files import canonical
from optdp.mechanism.matrix import Row
from optdp.single import format
from optdp.single.format import Artifact

HEADER = "input,output,weight,denominator,probability"
Rows = tuple[Sequence[Row], int, int]
"""Rows, the input of the first, and their denominator."""


def csv(subject: Subject) -> dict[str, bytes]:
    """A line for each entry, and `.meta.json` with everything but the weights."""
    artifact = subject.artifact
    described = ",\n".join(f'"{key}": {canonical.friendly(value)}' for key, value in format.fields(artifact).items())
    return {
        **{f"matrix.csv{part}": _lines(*rows) for part, rows in _tables(artifact, "csv")},
        "matrix.csv.meta.json": f"{{\n{described}\n}}\n".encode("ascii"),
    }


def _tables(artifact: Artifact, suffix: str) -> Iterator[tuple[str, Rows]]:
    """The tables of an artifact, each with what its file's name ends with."""
    yield "", (artifact.rows, artifact.inputs[0], artifact.denominator)
    share = artifact.share
    if share is not None and share.contraction is not None:
        yield f".contraction.{suffix}", (share.contraction, 0, share.contraction_denominator)


def _lines(rows: Sequence[Row], first: int, denominator: int) -> bytes:
    bottom, digits = Decimal(denominator), Context(prec=17)
    lines = [HEADER]
    for x, row in enumerate(rows, first):
        for s, weight in row:
            lines.append(f"{x},{s},{weight},{denominator},{digits.divide(Decimal(weight), bottom)}")
    return ("\n".join(lines) + "\n").encode("ascii")


def npz(subject: Subject) -> dict[str, bytes]:
    """Arrays that `numpy.load(path, allow_pickle=False)` opens; `fields` is the JSON of everything but the weights.

    Row i is the entries `row_pointers[i]` to `row_pointers[i+1]` of `row_outputs`, `row_weights` (big-endian bytes, a
    line for each entry) and `row_probabilities`.
    """
    artifact = subject.artifact
    entries = [entry for row in artifact.rows for entry in row]
    width = (artifact.denominator.bit_length() + 7) // 8
    weights = b"".join(weight.to_bytes(width, "big") for _, weight in entries)
    arrays: dict[str, Any] = {
        "fields": np.frombuffer(canonical.canonical(format.fields(artifact)).encode("ascii"), np.uint8),
        "row_pointers": np.fromiter(accumulate(map(len, artifact.rows), initial=0), "<i8"),
        "row_outputs": np.array([s for s, _ in entries], "<i8"),
        "row_weights": np.frombuffer(weights, np.uint8).reshape(len(entries), width),
        "row_probabilities": np.array([weight / artifact.denominator for _, weight in entries], "<f8"),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return {"matrix.npz": buffer.getvalue()}


def parquet(subject: Subject) -> dict[str, bytes]:
    """Columns `input`, `output`, `weight` (decimal text) and `probability`; all else is the metadata of the file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ProblemError("Parquet needs pyarrow. Install it: pip install 'optdp[parquet]'.") from None
    fields = {key: _text(value) for key, value in format.fields(subject.artifact).items()}
    found = {}
    for part, (rows, first, denominator) in _tables(subject.artifact, "parquet"):
        entries = [(x, s, w) for x, row in enumerate(rows, first) for s, w in row]
        columns = {
            "input": pa.array([x for x, _, _ in entries], pa.int64()),
            "output": pa.array([s for _, s, _ in entries], pa.int64()),
            "weight": pa.array([str(weight) for _, _, weight in entries], pa.string()),
            "probability": pa.array([weight / denominator for _, _, weight in entries], pa.float64()),
        }
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns, metadata=fields), buffer)
        found[f"matrix.parquet{part}"] = buffer.getvalue()
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
