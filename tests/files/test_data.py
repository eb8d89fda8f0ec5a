"""Users' data: what is read, what is refused in one line, and the command that runs a protocol on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from optdp import ProblemError
from optdp.cli.run import run
from optdp.files import data as data_module
from optdp.files.data import labels, read_columns, real_numbers, whole_numbers


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "values.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises(ProblemError) as caught:
        call(*args)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400
    return message


# -------------------------------------------------------------------------------------------------- columns


def test_columns_are_read_by_name(tmp_path: Path) -> None:
    text = '\ufeffage, city ,"note, long"\r\n31,Bern,"a ""quoted"" word"\r\n 7 ,Genf,"two\nlines"\r\n\r\n\r\n'
    path = written(tmp_path, text)
    assert read_columns(path, ["city", "age"]) == {"city": ["Bern", "Genf"], "age": ["31", " 7 "]}
    assert read_columns(path, ["note, long"]) == {"note, long": ['a "quoted" word', "two\nlines"]}
    assert list(read_columns(path, ["city", "age"])) == ["city", "age"]
    assert read_columns(written(tmp_path, "x\n1\n2"), ["x"]) == {"x": ["1", "2"]}
    assert read_columns(written(tmp_path, "x,y\n,\n"), ["y"]) == {"y": [""]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "begin with a header line"),
        ("\n\n", "begin with a header line"),
        ("x,y\n", "nothing below the header"),
        ("x,y\n\n\n", "nothing below the header"),
        ("a,b\n1,2\n", "must have the column 'x'. Found 2 with other names in"),
        (",".join(f"c{i}" for i in range(500)) + "\n", "Found 500 with other names"),
        ("x,y,x\n1,2,3\n", "one name for columns 1 and 3"),
        ("x,y\n1,2\n3\n", "2 cells, as the header has. Found 1 in row 3"),
        ("x,y\n1,2\n3,4,5\n", "Found 3 in row 3"),
        ("x\n1\n\n2\n", "Found 0 in row 3"),
        ("x\n1\n\n\n2,3\n", "Found 0 in row 3"),
        ("x\n1\0\n", "a zero byte"),
        (b"x\n1\xff\n", "UTF-8"),
        ("x\n1\n".encode("utf-16"), "UTF-8"),
        ('x\n1\n"2\n3\n', "after row 2"),
        ('x\n1\n"2"3\n', "after row 2"),
        ("x\n" + "9" * 200_000 + "\n", "after row 1"),
        ("x" * 1000 + "\n\x1b[31m\n", "must have the column 'x'"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, text: str | bytes, words: str) -> None:
    assert words in refusal(read_columns, written(tmp_path, text), ["x"])


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Not a regular file" in refusal(read_columns, tmp_path, ["x"])
    assert "No such file" in refusal(read_columns, tmp_path / "none.csv", ["x"])
    assert "Not a regular file" in refusal(read_columns, Path("/dev/zero"), ["x"])
    path = written(tmp_path, "x\n1\n")
    assert "each by a name of its own" in refusal(read_columns, path, ["x", " x"])
    assert "each by a name of its own" in refusal(read_columns, path, [])
    monkeypatch.setattr(data_module, "LARGEST_DATA", 3)
    assert "must be smaller than" in refusal(read_columns, path, ["x"])


# ---------------------------------------------------------------------------------------------------- cells


def test_whole_numbers() -> None:
    found = whole_numbers(["0", "12", " 12.0 ", "1e2", "+7", "-0"], "x", 0, 100, False)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 12, 12, 100, 7, 0]
    exact = [str(2**53 - 1), str(1 - 2**53)]
    assert whole_numbers(exact, "x", 1 - 2**53, 2**53 - 1, False).tolist() == [2**53 - 1, 1 - 2**53]
    assert whole_numbers(["-5", "5000", "1e300", "7"], "x", 0, 1000, True).tolist() == [0, 1000, 1000, 7]
    assert whole_numbers([], "x", 0, 1, False).tolist() == []


def test_numbers_outside_are_named() -> None:
    cells = ["5"] * 15 + ["1200", "-1", "10", "1001"]
    assert refusal(whole_numbers, cells, "x", 0, 1000, False) == (
        "x must be between 0 and 1000. Found 3 values outside, the first in row 17. "
        "Use --clip to move them to the nearest bound."
    )
    assert "Found 1 value outside, the first in row 2" in refusal(whole_numbers, ["2"], "x", 0, 1, False)
    for text in (str(2**53), str(2**53 + 1), "9" * 30):
        assert "1 value outside" in refusal(whole_numbers, [text], "x", 0, 2**53 - 1, False)
    assert "Found 2 values outside, the first in row 3" in refusal(
        real_numbers, ["1", "1.01", "-1e-300"], "x", 0.0, 1.0, False
    )


@pytest.mark.parametrize("cell", ["12.5", "nan", "", " ", "inf", "-inf", "1e400", "abc", "1_000", "0x10", "1,5", "1/2"])
@pytest.mark.parametrize("clip", [False, True])
def test_what_is_not_a_whole_number_is_refused(cell: str, clip: bool) -> None:
    message = refusal(whole_numbers, ["1", "2", cell, cell, "3"], "age", 0, 10, clip)
    assert message == (
        "age must be a whole number in every row. Found 2 values that are not, the first in row 4. Correct the data."
    )
    if cell != "12.5":
        assert "a finite number in every row" in refusal(real_numbers, ["1", "2", cell], "age", 0, 10, clip)


def test_real_numbers() -> None:
    found = real_numbers(["0.25", "1e-3", "-0.0"], "x", 0.0, 1.0, False)
    assert found.dtype == np.float64
    assert found.tolist() == [0.25, 1e-3, 0.0]
    assert not np.signbit(found).any()
    assert real_numbers(["-2.5", "0.5", "1e300"], "x", -1.0, 1.0, True).tolist() == [-1.0, 0.5, 1.0]


def test_labels() -> None:
    assert labels(["b", "a", "b"], "city", ["a", "b"]).tolist() == [1, 0, 1]
    assert labels([], "city", ["a"]).tolist() == []
    message = refusal(labels, ["a", "x" * 300 + "\n", "b", "A"], "city", ["a", "b"])
    assert message == (
        "city must be one of a, b in every row. Found 2 values that are not, the first in row 3. Correct the data."
    )
    assert "and 92 others" in refusal(labels, [""], "city", [str(i) for i in range(100)])
    assert "must differ" in refusal(labels, ["a"], "city", ["a", "a"])


def test_ends_are_checked() -> None:
    assert "in order" in refusal(whole_numbers, ["1"], "x", 2, 1, False)
    assert "below 2^53" in refusal(whole_numbers, ["1"], "x", 0, 2**53, False)
    assert "finite" in refusal(real_numbers, ["1"], "x", 0.0, float("inf"), False)


# ------------------------------------------------------------------------------------------------ the command


@dataclass(frozen=True)
class Sum:
    """A protocol, a solution and a problem in one, as plain as can be: everybody adds a fair coin."""

    kind: str = "real-sum"
    columns: int = 1
    n: int = 3
    status: str = "solved"

    def figures(self) -> dict[str, Any]:
        return {"n": self.n, "epsilon": "1"}

    def privacy(self) -> dict[str, Any]:
        return {"epsilon": "1", "delta": "0"}

    def protocol(self) -> Sum:
        return self

    def read(self, columns: list[list[str]], names: list[str], clip: bool) -> Any:
        if len(columns[0]) != self.n:
            raise ProblemError(f"Data must have {self.n} rows. Found {len(columns[0])}.")
        return [whole_numbers(cells, name, 0, 9, clip) for cells, name in zip(columns, names, strict=True)]

    def randomize(self, values: Any, source: Any) -> Any:
        return sum(values) + source.bits(1)

    def shuffle(self, messages: Any) -> Any:
        return np.sort(messages)

    def analyze(self, released: Any) -> Any:
        @dataclass(frozen=True)
        class Found:
            total: int
            seen: list[int]

            def summary(self) -> dict[str, Any]:
                return {"sum": self.total, "seen": self.seen, "of": {"a": 1.5, "b": "[x]"}}

        return Found(int(released.sum()), [int(value) for value in released] * 5)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The command with `Sum` for every problem; the options after those that are always there."""
    app = typer.Typer()
    app.command()(run)

    def call(text: str, *options: object, problem: Sum | None = None, out: str = "estimate.json") -> Any:
        given = Sum() if problem is None else problem
        monkeypatch.setattr("optdp.loading.load", lambda _, allow_outside: given)
        monkeypatch.setattr("optdp.kinds.solve", lambda problem, progress: problem)
        path = written(tmp_path, text)
        args = ["steps-shuffled", "--data", path, "--out", tmp_path / out, *options]
        return CliRunner().invoke(app, [str(arg) for arg in args])

    return call


def test_run_writes_an_estimate(command: Any, tmp_path: Path) -> None:
    done = command("x\n1\n2\n3\n", "--column", "x")
    assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "estimate.json").read_text())
    assert document["estimate"]["sum"] in (6, 9)
    assert document | {"estimate": 0} == {
        "format": "optdp/estimate", "version": 1, "kind": "real-sum", "problem": {"n": 3, "epsilon": "1"},
        "estimate": 0, "privacy": {"epsilon": "1", "delta": "0"}, "private": True, "note": "",
    }  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["estimate.json", "values.csv"]
    assert "not private" not in done.output


def test_seeded_runs_repeat_and_say_so(command: Any, tmp_path: Path) -> None:
    runs = []
    for _ in range(2):
        done = command("x\n1\n2\n3\n", "--column", "x", "--seed", 7, "--json")
        assert done.exit_code == 0, done.output
        assert "not private" in done.stderr
        runs.append(json.loads(done.stdout))
        assert json.loads((tmp_path / "estimate.json").read_text()) == runs[-1]
    assert runs[0] == runs[1]
    assert not runs[0]["private"]
    assert "not private" in runs[0]["note"]


@pytest.mark.parametrize(
    ("text", "options", "problem", "words"),
    [
        (
            "x\n1\n2\n30\n",
            ["--column", "x"],
            Sum(),
            "between 0 and 9. Found 1 value outside, the first in row 4",
        ),
        ("x\n1\n2\n", ["--column", "x"], Sum(), "must have 3 rows"),
        ("x\n1\n2\n3\n", ["--column", "y"], Sum(), "must have the column 'y'"),
        ("x,y\n1,2\n", ["--column", "x", "--column", "y"], Sum(), "must be given once. Found it twice"),
        ("x,y\n1,2\n", ["--column", "x"], Sum(columns=2), "must be given twice. Found it once"),
        (
            "x\n1\n",
            ["--column", "x"],
            Sum(kind="single-lte"),
            "run is for metric-shuffle, shuffle-histogram and",
        ),
        ("x\n1\n", ["--column", "x", "--seed", "-1"], Sum(), "seed must be from 0"),
    ],
)
def test_run_refuses_before_it_writes(
    command: Any, tmp_path: Path, text: str, options: list[str], problem: Sum, words: str
) -> None:
    done = command(text, *options, problem=problem)
    assert isinstance(done.exception, ProblemError)
    assert words in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["values.csv"]


def test_run_keeps_its_hands_off(command: Any, tmp_path: Path) -> None:
    good = "x\n1\n2\n3\n"
    assert "would overwrite" in str(command(good, "--column", "x", out="values.csv").exception)
    assert (tmp_path / "values.csv").read_text() == good
    assert "Cannot write to the folder" in str(command(good, "--column", "x", out="no/where.json").exception)
    assert "must be a file" in str(command(good, "--column", "x", out=".").exception)
    assert command(good, "--column", "x", problem=Sum(status="interrupted")).exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["values.csv"]
    clipped = command("x\n1\n2\n30\n", "--column", "x", "--clip")
    assert clipped.exit_code == 0, clipped.output
    assert "real-sum: n = 3, epsilon = 1" in clipped.output
    assert "(15 values)" in clipped.output
    assert "b: [x]" in clipped.output
