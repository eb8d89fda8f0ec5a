"""The table itself for other tools: CSV, the artifact as `.npz`, and Parquet.

`probability` is weight/denominator, for reading; the weights are exact. With a tail it is the probability given that
the noise stayed within `outputs`. A contraction is a second table of the same form: `output` is where it takes `input`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from typing import Any

from optdp.artifact import format, strict_json
from optdp.artifact.format import Artifact
from optdp.errors import ProblemError
from optdp.export.subject import Subject
from optdp.noise.matrix import Row

Rows = tuple[Sequence[Row], int, int]
"""Rows, the input of the first, and their denominator."""


def csv(subject: Subject) -> dict[str, bytes]:
    """A line for each entry, and `.meta.json` with everything but the weights."""
    artifact = subject.artifact
    described = ",\n".join(f'"{key}": {strict_json.friendly(value)}' for key, value in format.fields(artifact).items())
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
    lines = ["input,output,weight,denominator,probability"]
    for x, row in enumerate(rows, first):
        for s, weight in row:
            lines.append(f"{x},{s},{weight},{denominator},{digits.divide(Decimal(weight), bottom)}")
    return ("\n".join(lines) + "\n").encode("ascii")


def npz(subject: Subject) -> dict[str, bytes]:
    """The artifact itself as `.npz`, with the probabilities as floats beside the weights; `verify` takes it back."""
    return {"matrix.npz": format.to_npz(subject.artifact, probabilities=True)}


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
