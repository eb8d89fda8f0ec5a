"""Exports keep every number and every rule."""

import csv
import json
import os
import re
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp.artifact import open_artifact
from optdp.errors import ArtifactError, ProblemError
from optdp.export import export
from optdp.extras import install
from optdp.mechanism.matrix import NoiseMatrix
from optdp.recheck import Refused, recheck
from optdp.single.format import Artifact, to_json, write


def test_csv_and_its_companion_hold_the_whole_artifact(sample: Artifact, tmp_path: Path) -> None:
    export(sample, "csv", tmp_path / "table.csv")
    assert sorted(os.listdir(tmp_path)) == ["table.csv", "table.csv.meta.json"]
    with open(tmp_path / "table.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["input", "output", "weight", "denominator", "probability"]
    rows: dict[int, list[tuple[int, int]]] = {}
    for line in lines:
        rows.setdefault(int(line["input"]), []).append((int(line["output"]), int(line["weight"])))
        exact = Fraction(int(line["weight"]), int(line["denominator"]))
        assert abs(Fraction(line["probability"]) / exact - 1) < Fraction(1, 10**16)
    meta = json.loads((tmp_path / "table.csv.meta.json").read_text())
    assert meta["outside"] == "geometric"
    assert meta["tail"] == {"law": "geometric", "q": ["3", "4"]}
    rebuilt = Artifact(
        tuple(meta["inputs"]),
        tuple(meta["outputs"]),
        int(meta["denominator"]),
        tuple(tuple(rows[x]) for x in sorted(rows)),
        meta["outside"],
        Fraction(*map(int, meta["tail"]["q"])),
        meta["problem"],
        meta["claim"],
        meta["provenance"],
        meta["sha256"],
    )
    assert rebuilt == sample


def test_a_tiny_probability_is_not_shown_as_zero(tmp_path: Path) -> None:
    matrix = NoiseMatrix((0, 0), (0, 1), 1 << 4096, (((0, (1 << 4096) - 1), (1, 1)),))
    export(matrix, "csv", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[2].endswith("E-1234")


def opened_by_numpy(path: Path) -> tuple[dict[str, Any], list[list[tuple[int, int]]], list[float]]:
    """The fields, the rows and the floats of an exported `.npz`."""
    with np.load(path, allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    assert {name: array.dtype.str for name, array in arrays.items()} == {
        "fields": "|u1", "row_pointers": "<i8", "row_outputs": "<i8", "row_weights": "|u1", "row_probabilities": "<f8",
    }  # fmt: skip
    weights = [int.from_bytes(line.tobytes(), "big") for line in arrays["row_weights"]]
    entries = list(zip(arrays["row_outputs"].tolist(), weights, strict=True))
    rows = [entries[start:end] for start, end in pairwise(arrays["row_pointers"].tolist())]
    return json.loads(arrays["fields"].tobytes()), rows, arrays["row_probabilities"].tolist()


def test_npz_holds_the_whole_artifact(sample: Artifact, tmp_path: Path) -> None:
    export(sample, "npz", str(tmp_path / "a.npz"))
    fields, rows, floats = opened_by_numpy(tmp_path / "a.npz")
    assert fields | {"weights": [[list(entry) for entry in row] for row in rows]} == json.loads(to_json(sample))
    assert floats == [weight / sample.denominator for row in sample.rows for _, weight in row]


def test_equal_tables_give_equal_archives(sample: Artifact, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        export(sample, "npz", tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_npz_is_not_read_back(sample: Artifact, tmp_path: Path) -> None:
    export(sample, "npz", tmp_path / "a.npz")
    with pytest.raises(ArtifactError, match="npz files are exports, which optdp does not read back"):
        open_artifact(tmp_path / "a.npz")
    with pytest.raises(Refused, match=r"npz. is an export, which nobody reads back"):
        recheck(tmp_path / "a.npz")
    with pytest.raises(ProblemError, match=r"optdp export a\.json --to npz"):
        write(sample, tmp_path / "b.npz")
    assert os.listdir(tmp_path) == ["a.npz"]


def test_parquet_holds_the_whole_artifact(sample: Artifact, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert export(sample, "parquet", tmp_path / "t.parquet") == [tmp_path / "t.parquet"]
    table = parquet.read_table(tmp_path / "t.parquet")
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("input", "int64"), ("output", "int64"), ("weight", "string"), ("probability", "double"),
    ]  # fmt: skip
    entries = [(x, s, str(w), w / sample.denominator) for x, row in enumerate(sample.rows, 2) for s, w in row]
    assert list(zip(*table.to_pydict().values(), strict=True)) == entries
    meta = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert (meta["denominator"], meta["sha256"]) == (str(sample.denominator), sample.sha256)
    assert json.loads(meta["tail"]) == {"law": "geometric", "q": ["3", "4"]}
    assert json.loads(meta["provenance"]) == sample.provenance


def test_a_missing_pyarrow_is_one_helpful_line(
    sample: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ProblemError, match=re.escape(install("parquet"))):
        export(sample, "parquet", tmp_path)


def test_a_bare_matrix_keeps_its_rules(tmp_path: Path) -> None:
    matrix = NoiseMatrix((1, 2), (0, 1), 4, (((0, 1), (1, 3)), ((1, 4),)), Fraction(1, 2), "clamp", last=7)
    export(matrix, "npz", tmp_path / "m.npz")
    fields, rows, _ = opened_by_numpy(tmp_path / "m.npz")
    assert tuple(map(tuple, rows)) == matrix.rows
    assert (fields["inputs"], fields["outputs"], fields["tail"]["q"]) == ([1, 2], [0, 1], ["1", "2"])
    export(matrix, "csv", tmp_path / "m.csv")
    meta = json.loads((tmp_path / "m.csv.meta.json").read_text())
    assert (meta["outside"], meta["provenance"]) == ("clamp", {"last": 7})


def test_an_unknown_target_is_told_the_known_ones(sample: Artifact, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="python, c, js, sql, csv, npz, parquet"):
        export(sample, "xlsx", tmp_path / "a.xlsx")


@pytest.mark.parametrize("target", ["csv", "npz"])
def test_an_export_that_cannot_be_written(sample: Artifact, target: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="cannot write"):
        export(sample, target, tmp_path / "no" / f"table.{target}")
    with pytest.raises(ProblemError, match="Cannot write to the folder"):
        export(sample, target, tmp_path / "no" / "folder")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ProblemError, match=r"written to a folder|not a directory"):
        export(sample, target, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "in the way"


def test_other_files_of_a_folder_are_left_alone(sample: Artifact, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "matrix.npz").write_text("old")
    export(sample, "npz", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["matrix.npz", "notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "matrix.npz").read_bytes().startswith(b"PK")
    with pytest.raises(ProblemError, match="earlier export of this form"):  # two files, whole or not at all
        export(sample, "csv", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["matrix.npz", "notes.txt"]
