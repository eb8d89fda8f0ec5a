"""Exports keep every number and every rule."""

import csv
import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from optdp.artifact.export import EXPORTS, export
from optdp.artifact.format import Artifact, read
from optdp.errors import ProblemError
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


@pytest.mark.parametrize("target", EXPORTS)
def test_a_bare_matrix_keeps_its_rules(target: str, tmp_path: Path) -> None:
    matrix = NoiseMatrix((1, 2), (0, 1), 4, (((0, 1), (1, 3)), ((1, 4),)), Fraction(1, 2), "clamp", last=7)
    EXPORTS[target](matrix, tmp_path / "m.npz")
    if target == "npz":
        found = read(tmp_path / "m.npz")
        assert found.matrix(last=found.provenance["last"]) == matrix
    else:
        meta = json.loads((tmp_path / "m.npz.meta.json").read_text())
        assert (meta["outside"], meta["provenance"]) == ("clamp", {"last": 7})


def test_an_unknown_target_is_told_the_known_ones(sample: Artifact, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="csv, npz"):
        export(sample, "xlsx", tmp_path / "a.xlsx")


@pytest.mark.parametrize("target", EXPORTS)
def test_an_export_that_cannot_be_written(sample: Artifact, target: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="cannot write"):
        export(sample, target, tmp_path / "no" / "folder")
