"""Round trips, the digest, the layout, and writing that is whole or not at all."""

import hashlib
import json
import os
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optdp.errors import ArtifactError, ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.single.format import Artifact, from_json, read, to_json, write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(st.text(), JSON, max_size=4)


@st.composite
def artifacts(draw: st.DrawFn) -> Artifact:
    denominator = 1 << draw(st.sampled_from([0, 1, 7, 8, 62, 63, 64, 128, 1000, 4096]))
    first = draw(st.integers(-(2**53), 2**53 - 5))
    low = draw(st.integers(-(2**53), 2**53 - 5))
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        outputs = draw(st.lists(st.integers(low, low + 5), min_size=1, max_size=6, unique=True))
        cuts = draw(st.lists(st.integers(1, denominator), max_size=len(outputs) - 1, unique=True))
        ends = sorted({*cuts, denominator})
        weights = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        rows.append(tuple(zip(sorted(outputs)[: len(weights)], weights, strict=True)))
    q = draw(st.none() | st.fractions(Fraction(1, 2**80), 1 - Fraction(1, 2**80)))
    outside = draw(st.sampled_from(["error", "clamp", *(["geometric"] if q else [])]))
    tables = [draw(TABLES) for _ in range(3)]
    return Artifact((first, first + len(rows) - 1), (low, low + 5), denominator, tuple(rows), outside, q, *tables)


@given(artifacts())
@settings(deadline=None)
def test_files_give_back_what_was_written(artifact: Artifact) -> None:
    assert from_json(to_json(artifact)) == artifact


@given(artifacts())
@settings(deadline=None)
def test_the_digest_is_that_of_the_canonical_json(artifact: Artifact) -> None:
    document = json.loads(to_json(artifact))
    stated = document.pop("sha256")
    spelled = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert stated == artifact.sha256 == hashlib.sha256(spelled.encode()).hexdigest()


def test_the_digest_is_the_same_in_ten_years(sample: Artifact) -> None:
    assert sample.sha256 == "7593de01c6f810e57375aa3ec0a03485de6f0dc7269cbc644b08a49003940f2c"


def test_the_document_is_as_the_design_says(sample: Artifact) -> None:
    document = json.loads(to_json(sample))
    assert document == {
        "format": "optdp/noise-matrix",
        "version": 1,
        "inputs": [2, 4],
        "outputs": [-1, 3],
        "denominator": str(1 << 70),
        "weights": [[list(pair) for pair in row] for row in sample.rows],
        "outside": "geometric",
        "tail": {"law": "geometric", "q": ["3", "4"]},
        "problem": sample.problem,
        "claim": sample.claim,
        "provenance": sample.provenance,
        "sha256": sample.sha256,
    }


def test_one_line_for_each_key_and_row(sample: Artifact) -> None:
    lines = to_json(sample).decode("ascii").splitlines()
    assert len(lines) == 1 + 11 + 1 + len(sample.rows) + 2
    assert lines[1] == '"format": "optdp/noise-matrix",'
    assert lines[13] == f"[[-1,{(1 << 70) - 5}],[0,5]],"


def test_equal_content_gives_equal_bytes_whatever_the_order_of_keys(sample: Artifact, tmp_path: Path) -> None:
    turned = replace(sample, claim=dict(reversed(sample.claim.items())), sha256="")
    assert turned == sample
    write(sample, tmp_path / "a.json")
    once = (tmp_path / "a.json").read_bytes()
    write(turned, tmp_path / "a.json")
    assert (tmp_path / "a.json").read_bytes() == once


@pytest.mark.parametrize("name", ["a.json", "a", "a.optdp"])
def test_files(sample: Artifact, tmp_path: Path, name: str) -> None:
    write(sample, tmp_path / name)
    assert read(tmp_path / name) == sample
    assert read(str(tmp_path / name)) == sample
    assert os.listdir(tmp_path) == [name]


def test_an_artifact_is_a_copy_in_plain_types(sample: Artifact) -> None:
    claim: dict[str, Any] = {"list": (1, 2)}
    rows = tuple(tuple((np.int64(s), np.uint64(1)) for s in (0, 1)) for _ in range(2))
    made = Artifact((np.int64(0), 1), (0, 1), 2, rows, "error", None, {}, claim, {})  # type: ignore[arg-type]
    claim["list"] = "changed"
    assert made.claim == {"list": [1, 2]}
    assert {type(number) for row in made.rows for pair in row for number in pair} == {int}
    assert from_json(to_json(made)) == made


def test_a_changed_artifact_is_not_written(sample: Artifact, tmp_path: Path) -> None:
    changed = replace(sample, claim={"epsilon": "0.01"})
    with pytest.raises(ArtifactError, match="digest"):
        write(changed, tmp_path / "a.json")
    assert not os.listdir(tmp_path)
    write(replace(changed, sha256=""), tmp_path / "a.json")
    assert read(tmp_path / "a.json").claim == {"epsilon": "0.01"}


@pytest.mark.parametrize(
    "change",
    [
        {"denominator": 3},
        {"denominator": 0},
        {"denominator": 1 << 4097},
        {"denominator": 1 << 50_000},
        {"q": Fraction(0)},
        {"q": Fraction(1)},
        {"q": Fraction(5, 4)},
        {"q": Fraction(1, 3**5000)},
        {"q": None},
        {"outside": "wrap"},
        {"rows": ()},
        {"rows": (((0, 1.5),),)},
        {"rows": ((0, 1),)},
        {"inputs": (4, 2)},
        {"claim": {"epsilon": float("nan")}},
        {"claim": {"epsilon": Fraction(1, 2)}},
        {"claim": {1: "a", "1": "b"}},
        {"claim": {"n": 10**1300}},
        {"claim": {"n": 10**5000}},
        {"provenance": {"text": "\ud800"}},
    ],
)
def test_what_could_not_be_read_back_is_not_made(sample: Artifact, change: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError) as caught:
        replace(sample, sha256="", **change)
    assert "\n" not in str(caught.value)


def test_deep_and_circular_tables_are_not_made(sample: Artifact) -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"deeper": deep}
    circle: dict[str, Any] = {}
    circle["self"] = circle
    for table in (deep, circle):
        with pytest.raises(ArtifactError):
            replace(sample, sha256="", problem=table)
    assert replace(sample, sha256="", problem=deep["deeper"]["deeper"]).problem


def test_the_matrix_draws(sample: Artifact) -> None:
    matrix = sample.matrix(last=9)
    assert isinstance(matrix, NoiseMatrix)
    assert matrix.rows == sample.rows
    assert matrix.row(9) is None
    assert len(matrix.sample(4, 20, seed=1)) == 20


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_write_leaves_nothing(
    sample: Artifact,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    error: BaseException,
) -> None:
    def fail(*_: Any) -> None:
        raise error

    name = "a.json"
    monkeypatch.setattr(os, failing, fail)
    expected = ProblemError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        write(sample, tmp_path / name)
    if expected is ProblemError:
        assert str(caught.value) == f"cannot write {tmp_path / name}: no space left on device"
    assert not os.listdir(tmp_path)

    monkeypatch.undo()
    write(sample, tmp_path / name)
    before = (tmp_path / name).read_bytes()
    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(expected):
        write(replace(sample, claim={}, sha256=""), tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == before


def test_the_folder_is_synced_and_may_be_unable_to(
    sample: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []

    def fsync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        if synced[-1]:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    write(sample, tmp_path / "a.json")
    assert synced == [False, True]
    assert read(tmp_path / "a.json") == sample


def test_the_mode_is_that_of_the_umask(sample: Artifact, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(sample, tmp_path / "a.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640


def test_a_link_stays_a_link(sample: Artifact, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "a.json").symlink_to(tmp_path / "there" / "real.json")
    write(sample, tmp_path / "a.json")
    assert (tmp_path / "a.json").is_symlink()
    assert read(tmp_path / "there" / "real.json") == sample


def test_what_cannot_be_written(sample: Artifact, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder.json").mkdir()
    for path in (
        tmp_path / "no" / "such" / "a.json",
        tmp_path / "file" / "a.json",
        tmp_path / "folder.json",
        tmp_path / "pipe.json",
        tmp_path / ("long" * 100),
        "/dev/null",
        f"{tmp_path}/zero\0byte",
        f"{tmp_path}/no/line\nbreak",
    ):
        with pytest.raises(ProblemError, match=r"^cannot write ") as caught:
            write(sample, path)
        assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.json", "pipe.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_an_unwritable_folder(sample: Artifact, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ProblemError, match="permission denied"):
        write(sample, tmp_path / "a.json")


def test_a_folder_that_refuses_new_files(sample: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ProblemError, match=r"^cannot write .*a\.json: permission denied$"):
        write(sample, tmp_path / "a.json")
