"""The table itself for other tools: CSV, the artifact as `.npz`, and Parquet.

`probability` is weight/denominator, for reading; the weights are exact. With a tail it is the probability given that
the noise stayed within `outputs`.
"""

from __future__ import annotations

import io
import json
from decimal import Context, Decimal
from typing import Any

from optdp.artifact import format, strict_json
from optdp.errors import ProblemError
from optdp.export.subject import Subject


def csv(subject: Subject) -> dict[str, bytes]:
    """A line for each entry, and `.meta.json` with everything but the weights."""
    artifact = subject.artifact
    bottom, digits = Decimal(artifact.denominator), Context(prec=17)
    lines = ["input,output,weight,denominator,probability"]
    for x, row in enumerate(artifact.rows, artifact.inputs[0]):
        for s, weight in row:
            share = digits.divide(Decimal(weight), bottom)
            lines.append(f"{x},{s},{weight},{artifact.denominator},{share}")
    described = ",\n".join(f'"{key}": {strict_json.friendly(value)}' for key, value in format.fields(artifact).items())
    return {
        "matrix.csv": ("\n".join(lines) + "\n").encode("ascii"),
        "matrix.csv.meta.json": f"{{\n{described}\n}}\n".encode("ascii"),
    }


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
    artifact = subject.artifact
    entries = [(x, s, w) for x, row in enumerate(artifact.rows, artifact.inputs[0]) for s, w in row]
    fields = {key: _text(value) for key, value in format.fields(artifact).items()}
    columns = {
        "input": pa.array([x for x, _, _ in entries], pa.int64()),
        "output": pa.array([s for _, s, _ in entries], pa.int64()),
        "weight": pa.array([str(weight) for _, _, weight in entries], pa.string()),
        "probability": pa.array([weight / artifact.denominator for _, _, weight in entries], pa.float64()),
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, metadata=fields), buffer)
    return {"matrix.parquet": buffer.getvalue()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
