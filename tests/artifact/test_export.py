"""Exports keep every number and every rule."""

import csv
import json
import os
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optdp.artifact.format import Artifact, read
from optdp.errors import ProblemError
from optdp.export import export
from optdp.noise.matrix import NoiseMatrix


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


def test_npz_is_the_artifact(sample: Artifact, tmp_path: Path) -> None:
    export(sample, "npz", str(tmp_path / "a.npz"))
    assert read(tmp_path / "a.npz") == sample


def test_npz_also_has_the_probabilities_as_floats(sample: Artifact, tmp_path: Path) -> None:
    export(sample, "npz", tmp_path)
    with np.load(tmp_path / "matrix.npz", allow_pickle=False) as archive:
        found = archive["row_probabilities"].tolist()
    assert found == [weight / sample.denominator for row in sample.rows for _, weight in row]


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
    with pytest.raises(ProblemError, match=re.escape("pip install 'optdp[parquet]'")):
        export(sample, "parquet", tmp_path)


def test_a_bare_matrix_keeps_its_rules(tmp_path: Path) -> None:
    matrix = NoiseMatrix((1, 2), (0, 1), 4, (((0, 1), (1, 3)), ((1, 4),)), Fraction(1, 2), "clamp", last=7)
    export(matrix, "npz", tmp_path / "m.npz")
    found = read(tmp_path / "m.npz")
    assert found.matrix(last=found.provenance["last"]) == matrix
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
    with pytest.raises(ProblemError, match="must be a folder that can be made"):
        export(sample, target, tmp_path / "no" / "folder")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ProblemError, match="must be a folder that can be made"):
        export(sample, target, tmp_path / "file")


def test_other_files_of_a_folder_are_left_alone(sample: Artifact, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "matrix.csv").write_text("old")
    export(sample, "csv", tmp_path)
    export(sample, "npz", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["matrix.csv", "matrix.csv.meta.json", "matrix.npz", "notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "matrix.csv").read_text().startswith("input,output")
