"""The artifact for other tools and languages. A target makes files from a `Subject`, and is one line in TARGETS.

Samplers have modules of their own. Here is the table itself: CSV, arrays of numpy (`.npz`) and Parquet, none of which
optdp reads back. `probability` is weight/denominator, for reading; the weights are exact. With a tail it is the
probability given that the noise stayed within `outputs`. A contraction is a second table of the same form: `output` is
where it takes `input`.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from optdp.artifact import Opened
from optdp.errors import ProblemError
from optdp.export import sql
from optdp.export.client import c_client, js_client, python_client
from optdp.export.sampler import c_sampler, js_sampler, python_sampler
from optdp.export.subject import Protocol, Subject, of_table, subjects
from optdp.extras import install
from optdp.files import atomic, canonical
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix, Row
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.shuffle.format import Deployed
from optdp.single import format
from optdp.single.format import Artifact

HEADER = "input,output,weight,denominator,probability"
Rows = tuple[Sequence[Row], int, int]
"""Rows, the input of the first, and their denominator."""


def csv(subject: Subject) -> dict[str, bytes]:
    """A line for each entry, and `.meta.json` with everything but the weights."""
    artifact = _weights(subject)
    described = ",\n".join(f'"{key}": {canonical.friendly(value)}' for key, value in format.fields(artifact).items())
    return {
        **{f"matrix.csv{part}": _lines(*rows) for part, rows in _tables(artifact, "csv")},
        "matrix.csv.meta.json": f"{{\n{described}\n}}\n".encode("ascii"),
    }


def _weights(subject: Subject) -> Artifact:
    """The artifact of a table; maps of a common word have none that anybody may draw from."""
    if not isinstance(subject.artifact, Artifact):
        raise ProblemError(
            "Maps of a common word are no table of weights. Export a sampler (python, c, js or sql), or read the maps "
            "from the party's JSON."
        )
    return subject.artifact


def _tables(artifact: Artifact, suffix: str) -> Iterator[tuple[str, Rows]]:
    """The tables of an artifact, each with what its file's name ends with."""
    yield "", (artifact.rows, artifact.inputs[0], artifact.denominator)
    share = artifact.share
    if isinstance(share, format.Share) and share.contraction is not None:
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
    artifact = _weights(subject)
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
        raise ProblemError(f"Parquet needs pyarrow. Install it: {install('parquet')}.") from None
    artifact = _weights(subject)
    fields = {key: _text(value) for key, value in format.fields(artifact).items()}
    found = {}
    for part, (rows, first, denominator) in _tables(artifact, "parquet"):
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


# ---------------------------------------------------------------------- targets


@dataclass(frozen=True)
class Target:
    """One form of an export."""

    make: Callable[[Subject], dict[str, bytes]]
    """The files by their names, the one that matters first."""
    suffix: str = ""
    """If a file may be named instead of a folder: what its name ends with."""
    test: str = ""
    """The command that tests what was written to a folder."""
    files: str = ""
    """The pattern of their names: the folder of an earlier export has no others."""
    client: Callable[[Deployed], dict[str, bytes]] | None = None
    """What makes the client of a shuffle protocol instead."""
    client_test: str = ""
    """The command that tests it."""
    mark: bytes = b"optdp"
    """What the beginning of the first file of an earlier export has."""


TARGETS = {
    "python": Target(
        python_sampler,
        test="python {0}/sampler.py --self-test",
        files=r"(sampler|client)\.py",
        client=python_client,
        client_test="python {0}/client.py --self-test",
    ),
    "c": Target(
        c_sampler,
        test="cc -std=c99 -O2 -DSAMPLER_MAIN -o {0}/sampler {0}/sampler.c && {0}/sampler --self-test",
        files=r"(sampler|client)(\.[ch])?",
        client=c_client,
        client_test="cc -std=c99 -O2 -DCLIENT_MAIN -o {0}/client {0}/client.c && {0}/client --self-test",
    ),
    "js": Target(
        js_sampler,
        test="node {0}/sampler.mjs --self-test",
        files=r"(sampler|client)\.mjs",
        client=js_client,
        client_test="node {0}/client.mjs --self-test",
    ),
    "sql": Target(
        sql.sampler,
        test="{{ cat {0}/sampler.sql; echo 'SELECT * FROM optdp_self_test;'; }} | sqlite3 :memory:",
        files=r"sampler\.sql",
    ),
    "csv": Target(csv, ".csv", files=r"matrix\.csv(\.contraction\.csv|\.meta\.json)?", mark=HEADER.encode()),
    "npz": Target(npz, ".npz", files=r"matrix\.npz", mark=b"PK"),
    "parquet": Target(parquet, ".parquet", files=r"matrix\.parquet(\.contraction\.parquet)?", mark=b"PAR1"),
}
"""The targets, in the order in which they are listed."""


def export(
    source: str | Path | Opened | Artifact | NoiseMatrix | AddedNoise | SharedNoise | SeededMaps,
    target: str,
    out: str | Path,
) -> list[Path]:
    """Write `source` in the form named `target`, and say which files were written.

    `source` is a file that `solve` wrote or a plan's folder, whose claims are verified first, or a table about which
    nothing is claimed. `out` is a folder, made if it is not there; of tables it may be a file with their suffix.
    """
    tables = (Artifact, NoiseMatrix, AddedNoise, SharedNoise, SeededMaps)
    found = [of_table(source)] if isinstance(source, tables) else subjects(source)
    return write(found, chosen(target), Path(out))


def chosen(target: str) -> Target:
    """The target of a name."""
    if target not in TARGETS:
        raise ProblemError(f"The export target must be one of {', '.join(TARGETS)}. Found {target!r}.")
    return TARGETS[target]


def made(subject: Subject | Protocol, target: Target) -> dict[str, bytes]:
    """The files of one subject."""
    if isinstance(subject, Subject):
        return target.make(subject)
    if target.client is None:
        able = ", ".join(name for name, other in TARGETS.items() if other.client)
        raise ProblemError(f"A shuffle protocol is exported as a client: {able}. Take one of these.")
    return target.client(subject.artifact)


def write(found: Sequence[Subject | Protocol], target: Target, out: Path) -> list[Path]:
    """Write every subject: all files are made before the first is written, and are there together or not at all.

    Several files get a folder of their own, which takes its place in one step. One file may go into any folder.
    """
    one_file = bool(target.suffix) and out.suffix == target.suffix and not out.is_dir()
    if one_file and len(found) > 1:
        raise ProblemError(f"The export of a plan must go to a folder. Found the file {atomic.name_of(out)}.")
    if one_file:
        files = made(found[0], target)
        contents = {
            out.with_name(name.replace(f"matrix{target.suffix}", out.name, 1)): data for name, data in files.items()
        }
        _write_beside(out, contents)
        return list(contents)
    names = {
        f"{subject.folder}/{name}".lstrip("/"): data
        for subject in found
        for name, data in made(subject, target).items()
    }
    if len(names) > 1 or not os.path.lexists(out):
        first = next(iter(names))
        atomic.check_folder(out, "an export of this form", lambda folder: _is_earlier(folder, target, first))
        atomic.write_folder(out, names)
    else:
        atomic.write_bytes(out / next(iter(names)), *names.values())
    return [out / name for name in names]


def _write_beside(out: Path, contents: dict[Path, bytes]) -> None:
    """A table as a file among others, with what belongs to it beside: the table is there only when all of that is."""
    place = Path(os.path.realpath(out))
    if len(contents) > 1 and place.is_file():
        try:
            place.unlink()  # an earlier table must not stand beside what describes the new one
        except OSError as error:
            raise ProblemError(f"cannot write {atomic.name_of(out)}: {error.strerror}.") from None
    for path, data in reversed(contents.items()):
        atomic.write_bytes(path, data)


def _is_earlier(folder: Path, target: Target, first: str) -> bool:
    """Whether a folder holds an earlier export of this form and nothing else."""
    if not atomic.holds_only(folder, re.compile(target.files)):
        return False
    try:
        with (folder / first).open("rb") as file:
            return target.mark in file.read(8192)
    except OSError:
        return False
