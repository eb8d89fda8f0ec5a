"""The commands about shuffle protocols as a user meets them: solve, run, compare; and one line for every refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optdp import MetricShuffle, RealSum, ShuffleHistogram, solve
from tests.command_line import Done

ROOT = Path(__file__).resolve().parents[2]
GEO = ROOT / "problems" / "paper-d" / "geo-shuffle.toml"

METRIC = 'kind = "metric-shuffle"\nmechanism = "geo"\nn = 40\nk = 9\ndelta = 1e-3\nepsilon = 0.5\n'
HISTOGRAM = 'kind = "shuffle-histogram"\nn = 40\nk = 3\ndelta = 1e-2\nepsilon = 1\n'
LABELS = HISTOGRAM.replace("k = 3", 'labels = ["red", "blue"]')
SUM = 'kind = "real-sum"\nn = 40\nepsilon = 1\ndelta = 1e-2\nlow = -2\nhigh = 2\n'


def process(*args: object, cwd: Path = ROOT) -> Done:
    found = subprocess.run(
        [sys.executable, "-m", "optdp", *map(str, args)], capture_output=True, text=True, cwd=cwd, check=False,
        env={**os.environ, "COLUMNS": "200"}, timeout=100,
    )  # fmt: skip
    return Done(found.returncode, found.stdout, found.stderr)


@pytest.fixture
def optdp(command: Callable[..., Done]) -> Callable[..., Done]:
    return command


class Folder:
    """A folder with a problem and data, which knows what is new in it."""

    def __init__(self, path: Path) -> None:
        self.path, self.out = path, path / "estimate.json"

    def problem(self, text: str) -> Path:
        (self.path / "p.toml").write_text(text)
        return self.path / "p.toml"

    def data(self, content: str | bytes | list[Any], name: str = "x") -> Path:
        if isinstance(content, list):
            content = f"{name}\n" + "".join(f"{cell}\n" for cell in content)
        (self.path / "values.csv").write_bytes(content.encode() if isinstance(content, str) else content)
        return self.path / "values.csv"

    def untouched(self) -> None:
        """Nothing was written, not even for a while."""
        assert {path.name for path in self.path.iterdir()} <= {"p.toml", "values.csv", "sub"}

    def estimate(self) -> dict[str, Any]:
        def refuse(name: str) -> float:
            raise AssertionError(name)

        found: dict[str, Any] = json.loads(self.out.read_text(), parse_constant=refuse)
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# --------------------------------------------------------------------------------------------------- what a user types


def test_the_commands_that_a_user_types(tmp_path: Path) -> None:
    """In processes of their own: solve, solve --json, run."""
    done = process("solve", GEO)
    assert done.code == 0, done.err
    for words in ("eps_geo", "c = 13", "without the shuffler", "bits per user", "1,026", "never the source of a claim"):
        assert words in done.out
    done = process("solve", GEO, "--json")
    figures = json.loads(done.out)
    assert done.err == ""
    assert {"parameters", "profile", "local_epsilon", "mae", "bits_per_user"} <= figures.keys()
    assert figures["parameters"].keys() == {"eps_geo", "c"}
    assert figures["profile"][0][0] == 1
    assert 0.199 < figures["profile"][0][1] <= 0.2
    values = [7 * i % 1001 for i in range(100)]
    (tmp_path / "values.csv").write_text("name,x\n" + "".join(f"p{i},{x}\n" for i, x in enumerate(values)))
    done = process("run", GEO, "--data", "values.csv", "--column", "x", "--out", "estimate.json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.err == ""
    found = json.loads((tmp_path / "estimate.json").read_text())
    assert abs(found["estimate"]["sum"] - sum(values)) < 12 * figures["rmse"]
    assert found["estimate"]["mae"] == figures["mae"]
    assert found["private"] is True
    assert found["privacy"]["epsilon"] == figures["epsilon"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["estimate.json", "values.csv"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (METRIC, MetricShuffle("geo", 40, 9, "1e-3", "0.5")),
        (HISTOGRAM, ShuffleHistogram(3, 40, 1, "1e-2")),
        (LABELS, ShuffleHistogram(None, 40, 1, "1e-2", labels=["red", "blue"])),
        (SUM, RealSum(40, 1, "1e-2", low=-2, high=2)),
    ],
    ids=["metric", "histogram", "labels", "sum"],
)
def test_solve_prints_what_python_finds(text: str, expected: Any, optdp: Any, folder: Folder) -> None:
    path = folder.problem(text)
    plain, done = optdp("solve", path), optdp("solve", path, "--json")
    assert plain.code == done.code == 0
    assert "deploy" in plain.out
    figures = json.loads(done.out)
    summary = json.loads(json.dumps(solve(expected).summary(), allow_nan=False))
    assert {k: v for k, v in figures.items() if k != "seconds"} == {k: v for k, v in summary.items() if k != "seconds"}


def run(optdp: Any, folder: Folder, text: str, data: Any, *more: object, column: str = "x") -> Done:
    found: Done = optdp(
        "run", folder.problem(text), "--data", folder.data(data), "--column", column, "--out", folder.out, *more
    )
    return found


def test_run_a_metric_shuffle(optdp: Any, folder: Folder) -> None:
    done = run(optdp, folder, METRIC, [i % 10 for i in range(40)], "--seed", 1)
    assert done.code == 0
    assert "not private" in done.err
    assert "written" in done.out
    first = folder.estimate()
    assert first["private"] is False
    assert "not private" in first["note"]
    assert first["kind"] == "metric-shuffle"
    estimate = first["estimate"]
    assert abs(estimate["sum"] - 180) < 10 * estimate["rmse"]
    assert estimate["average"] == estimate["sum"] / 40
    run(optdp, folder, METRIC, [i % 10 for i in range(40)], "--seed", 1)
    assert folder.estimate() == first
    run(optdp, folder, METRIC, [i % 10 for i in range(40)], "--seed", 2)
    assert folder.estimate() != first
    done = run(optdp, folder, METRIC, [i % 10 for i in range(40)], "--seed", 1, "--json")
    assert json.loads(done.out) == first == folder.estimate()


def test_run_without_a_seed_is_private_and_does_not_repeat(optdp: Any, folder: Folder) -> None:
    found = []
    for _ in range(2):
        text = HISTOGRAM.replace("n = 40", "n = 2000")
        done = run(optdp, folder, text, [i % 3 for i in range(2000)])
        assert done.code == 0
        assert done.err == ""
        found.append(folder.estimate())
        assert found[-1]["private"] is True
        assert found[-1]["note"] == ""
    assert found[0]["estimate"] != found[1]["estimate"]
    assert found[0]["privacy"] == found[1]["privacy"]


def test_run_a_histogram_with_and_without_labels(optdp: Any, folder: Folder) -> None:
    values = [0] * 1500 + [1] * 400 + [2] * 100
    done = run(optdp, folder, HISTOGRAM.replace("n = 40", "n = 2000"), values, "--seed", 4)
    assert done.code == 0, done.err
    bins = folder.estimate()["estimate"]["bins"]
    assert [entry["value"] for entry in bins] == ["0", "1", "2"]
    for entry, held in zip(bins, (1500, 400, 100), strict=True):
        assert abs(entry["inversion"] - held) < 5 * entry["standard_error"]
    names = ["red"] * 1200 + ["blue"] * 800
    done = run(optdp, folder, LABELS.replace("n = 40", "n = 2000"), names, "--seed", 4)
    assert done.code == 0, done.err
    red, blue = folder.estimate()["estimate"]["bins"]
    assert (red["value"], blue["value"]) == ("red", "blue")
    assert abs(red["inversion"] - 1200) < 5 * red["standard_error"]


def test_run_a_sum(optdp: Any, folder: Folder) -> None:
    values = [-2, 2, 0.25, -1.125, 1e-3] * 400
    done = run(optdp, folder, SUM.replace("n = 40", "n = 2000"), values, "--seed", 4)
    assert done.code == 0, done.err
    estimate = folder.estimate()["estimate"]
    assert abs(estimate["sum"] - sum(values)) < 5 * estimate["standard_error"]
    assert estimate["average"] == pytest.approx(estimate["sum"] / 2000)


def test_run_in_two_dimensions(optdp: Any, folder: Folder) -> None:
    path = folder.problem(METRIC + "dimensions = 2\n")
    data = folder.data("x,y\n" + "".join(f"{i % 10},{i % 4}\n" for i in range(40)))
    base = ("run", path, "--data", data, "--out", folder.out)
    optdp(*base, "--column", "x").refused("--column must be given twice. Found it once")
    optdp(*base, "--column", "x", "--column", "x").refused("Columns must be named, each by a name of its own")
    folder.untouched()
    done = optdp(*base, "--column", "x", "--column", "y", "--seed", 3)
    assert done.code == 0, done.err
    estimate = folder.estimate()["estimate"]
    for found, true in zip(estimate["sum"], (180, 60), strict=True):
        assert abs(found - true) < 10 * estimate["rmse"]
    one = folder.problem(METRIC)
    optdp("run", one, *base[2:], "--column", "x", "--column", "y").refused("--column must be given once")


def test_clip(optdp: Any, folder: Folder) -> None:
    """Values outside are moved to the nearest end: the same messages as if they had been there."""
    assert run(optdp, folder, METRIC, [-3, 50] * 20, "--clip", "--seed", 5).code == 0
    moved = folder.estimate()
    assert run(optdp, folder, METRIC, [0, 9] * 20, "--seed", 5).code == 0
    assert folder.estimate() == moved
    assert run(optdp, folder, SUM, [-1e9, 3] * 20, "--clip", "--seed", 5).code == 0
    moved = folder.estimate()
    assert run(optdp, folder, SUM, [-2, 2] * 20, "--seed", 5).code == 0
    assert folder.estimate() == moved


# ------------------------------------------------------------------------------------------------------------- compare


def test_compare(optdp: Any, folder: Folder) -> None:
    path = folder.problem(METRIC.replace('"geo"', '"hybrid"') + "local_epsilon = 2\n")
    done = optdp("compare", path)
    assert done.code == 0, done.err
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    for name in ("rr", "geo", "sgdl", "hybrid", "geo-local", "geo-central"):
        assert name in lines
    assert "nothing is hidden" in lines["geo-central"]
    rows = json.loads(optdp("compare", path, "--json").out)["rows"]
    assert [row["mechanism"] for row in rows] == ["rr", "geo", "sgdl", "hybrid", "geo-local", "geo-central"]
    for row in rows:
        assert max(epsilon for _, epsilon in row["profile"]) <= 0.5 * (1 + 1e-12)
        assert (row["local_epsilon"] is None) == (row["mechanism"] == "geo-central")


@pytest.mark.parametrize(
    "text",
    [
        METRIC.replace("n = 40\n", "") + 'mae = 0.5\nquery = "average"\n',
        METRIC.replace("epsilon = 0.5\n", "eps_geo = 1\n"),
    ],
    ids=["no n", "no epsilon"],
)
@pytest.mark.parametrize("option", [(), ("--json",)], ids=["table", "json"])
def test_compare_of_what_is_not_given(text: str, option: tuple[str, ...], optdp: Any, folder: Folder) -> None:
    """Without n, or without epsilon: a table, or a line that says what is missing; no empty one, no traceback."""
    done = optdp("compare", folder.problem(text), *option)
    if done.code == 0:
        assert "geo" in done.out
    else:
        done.refused("")


def test_compare_is_not_for_the_others(optdp: Any, folder: Folder) -> None:
    for text in (HISTOGRAM, SUM):
        optdp("compare", folder.problem(text)).refused(
            "compare is for single-lte, multi-lte, metric-shuffle and order-shuffle"
        )


# ------------------------------------------------------------------------------------------------------- problem files


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (METRIC + "colour = 1\n", "colour"),
        (METRIC + 'noise = "geo"\n', "noise"),
        (METRIC.replace("n = 40", "n = 40.0"), "n"),
        (METRIC.replace("n = 40", 'n = "40"'), "n"),
        (METRIC.replace("n = 40", "n = true"), "n"),
        (METRIC.replace("n = 40", "n = 0"), "n must"),
        (METRIC.replace("n = 40\n", ""), "n is missing"),
        (METRIC.replace("k = 9", "k = [9]"), "k"),
        (METRIC.replace("k = 9\n", ""), "k is missing"),
        (METRIC.replace('"geo"', '"geometric"'), "geo-central"),
        (METRIC.replace('"geo"', "3"), "mechanism"),
        (METRIC.replace("1e-3", "0"), "delta must"),
        (METRIC.replace("1e-3", "nan"), "delta"),
        (METRIC.replace("1e-3", "true"), "delta"),
        (METRIC.replace("delta = 1e-3\n", ""), "delta is missing"),
        (METRIC.replace("epsilon = 0.5", "epsilon = inf"), "epsilon"),
        (METRIC.replace("epsilon = 0.5", 'epsilon = "much"'), "epsilon"),
        (METRIC.replace("epsilon = 0.5\n", ""), "epsilon is missing"),
        (METRIC + "p = 0.1\n", "geo has no parameter p"),
        (METRIC + "max_distance = 0\n", "max_distance"),
        (METRIC + 'shuffler = "gone"\n', "honest, compromised"),
        (METRIC + 'mae = 0.01\nquery = "average"\n', "The least n is"),
        (HISTOGRAM + "colour = 1\n", "colour"),
        (HISTOGRAM.replace("k = 3", "k = 1"), "k must"),
        (HISTOGRAM.replace("k = 3\n", ""), "k or labels"),
        (HISTOGRAM + 'estimator = "guess"\n', "estimator"),
        (HISTOGRAM + 'labels = ["a", "a", "b"]\n', "twice"),
        (HISTOGRAM.replace("n = 40", "n = 4.5"), "n"),
        (HISTOGRAM.replace("epsilon = 1\n", ""), "Left out"),
        (SUM + "colour = 1\n", "colour"),
        (SUM.replace("high = 2", "high = -2"), "low must be below high"),
        (SUM.replace("n = 40\n", ""), "average_mse"),
        (SUM + "gamma = 0.5\n", "gamma needs a k"),
        (SUM.replace("n = 40", 'n = "x"'), "n"),
    ],
)
def test_bad_problems_are_one_line(text: str, words: str, optdp: Any, folder: Folder) -> None:
    optdp("solve", folder.problem(text)).refused(words)
    run(optdp, folder, text, [1] * 40).refused(words)
    folder.untouched()


def test_n_too_small_names_the_least(optdp: Any, folder: Folder) -> None:
    """And that n does, where one less does not."""
    text = METRIC + 'mae = 0.04\nquery = "average"\n'
    done = optdp("solve", folder.problem(text))
    done.refused("n is too small for a mean absolute error of 0.04. Found n = 40")
    least = int(done.err.split("The least n is ")[1].rstrip(".\n").replace(",", ""))
    assert optdp("solve", folder.problem(text.replace("n = 40", f"n = {least}"))).code == 0
    optdp("solve", folder.problem(text.replace("n = 40", f"n = {least - 1}"))).refused(f"The least n is {least}.")
    found = json.loads(optdp("solve", folder.problem(text.replace("n = 40\n", "")), "--json").out)
    assert found["n"] == least
    assert found["mae"] <= 0.04


@pytest.mark.parametrize(
    "text",
    [
        METRIC + "eps_geo = 3\n",
        METRIC.replace('"geo"', '"rr"') + "p = 0.01\n",
        METRIC.replace('"geo"', '"sgdl"') + "c = 1\n",
        METRIC + "c = 0\n",
    ],
    ids=["geo", "rr", "sgdl", "infeasible"],
)
def test_a_guarantee_that_does_not_hold_exits_1(text: str, optdp: Any, folder: Folder) -> None:
    optdp("solve", folder.problem(text)).refused("epsilon", code=1)
    run(optdp, folder, text, [1] * 40).refused("epsilon", code=1)
    folder.untouched()


# ---------------------------------------------------------------------------------------------------------------- data


@pytest.mark.parametrize(
    ("text", "data", "words"),
    [
        (METRIC, [1] * 38 + [10, -1], "between 0 and 9. Found 2 values outside, the first in row 40"),
        (METRIC, [1] * 39 + [10], "Found 1 value outside, the first in row 41"),
        (METRIC, [1.5] + [1] * 39, "whole number in every row. Found 1 value that is not, the first in row 2"),
        (METRIC, ["nan"] * 2 + [1] * 38, "Found 2 values that are not, the first in row 2"),
        (METRIC, ["inf"] + [1] * 39, "whole number"),
        (METRIC, ["one"] + [1] * 39, "the first in row 2"),
        (METRIC, ['""'] + [1] * 39, "in row 2"),
        (METRIC, ["1_0"] + [1] * 39, "the first in row 2"),
        (METRIC, ["0x5"] + [1] * 39, "the first in row 2"),
        (METRIC, ["9" * 400] + [1] * 39, "row 2"),
        (METRIC, [1] * 39, "n = 40 people. Found 39 row"),
        (METRIC, [1] * 41, "n = 40 people. Found 41 row"),
        (METRIC, [], "nothing below the header"),
        (METRIC, "", "header"),
        (METRIC, "y\n" + "1\n" * 40, "must have the column 'x'. Found 1 with other names"),
        (METRIC, "x,x\n" + "1,1\n" * 40, "one name for columns 1 and 2"),
        (METRIC, "x,y\n" + "1,1\n" * 20 + "1\n" + "1,1\n" * 19, "2 cells, as the header has. Found 1 in row 22"),
        (METRIC, "x\n" + "1\n" * 20 + "\n" + "1\n" * 19, "row 22"),
        (METRIC, b"x\n" + b"1\n" * 39 + b"\x00\n", "zero byte"),
        (METRIC, b"x\n" + b"1\n" * 39 + b"\xff\n", "UTF-8"),
        (METRIC, "x\n1\n".encode("utf-16"), "UTF-8"),
        (METRIC, 'x\n"1\n' + "1\n" * 39, "CSV"),
        (HISTOGRAM, [0] * 39 + [3], "between 0 and 2. Found 1 value outside, the first in row 41"),
        (HISTOGRAM, [0.5] * 40, "Found 40 values that are not, the first in row 2"),
        (HISTOGRAM, ["nan"] * 40, "whole number"),
        (HISTOGRAM, [0] * 12, "n = 40 people. Found 12 row"),
        (
            LABELS,
            ["red"] * 39 + ["green"],
            "one of red, blue in every row. Found 1 value that is not, the first in row 41",
        ),
        (LABELS, ["red"] * 39, "n = 40 people. Found 39 row"),
        (SUM, [0] * 39 + [2.5], "between -2.0 and 2.0. Found 1 value outside, the first in row 41"),
        (SUM, ["nan"] + [0] * 39, "finite number"),
        (SUM, ["-inf"] + [0] * 39, "finite number"),
        (SUM, ["a"] + [0] * 39, "the first in row 2"),
        (SUM, [0] * 3, "n = 40 people. Found 3 row"),
    ],
)
def test_bad_data_is_one_line(text: str, data: Any, words: str, optdp: Any, folder: Folder) -> None:
    run(optdp, folder, text, data).refused(words)
    folder.untouched()
    if data in (["nan"] * 2 + [1] * 38, [1] * 39, ["-inf"] + [0] * 39):  # clipping helps none of these
        run(optdp, folder, text, data, "--clip").refused("")
        folder.untouched()


def test_bad_data_leaves_an_old_estimate_alone(optdp: Any, folder: Folder) -> None:
    folder.out.write_text("old")
    run(optdp, folder, METRIC, [99] * 40).refused("outside")
    assert folder.out.read_text() == "old"
    assert run(optdp, folder, METRIC, [9] * 40).code == 0
    assert folder.estimate()["kind"] == "metric-shuffle"


def test_bad_paths_and_options(optdp: Any, folder: Folder) -> None:
    problem, data, sub = folder.problem(METRIC), folder.data([1] * 40), folder.path / "sub"
    sub.mkdir()
    before = data.read_bytes()
    base = ("run", problem, "--data", data, "--column", "x")
    link = folder.path / "sub" / "link.csv"
    link.symlink_to(data)
    for args, words in (
        ((*base, "--out", folder.path / "no" / "e.json"), "to the folder"),
        ((*base, "--out", sub), "must be a file. "),
        ((*base, "--out", data), "--out would overwrite --data"),
        ((*base, "--out", link), "--out would overwrite"),
        ((*base, "--out", problem), "would overwrite the problem"),
        ((*base, "--out", folder.path / ("e" * 300)), "--out must be a name that can be written"),
        (("run", problem, "--data", sub, "--column", "x", "--out", folder.out), "regular file"),
        (("run", problem, "--data", folder.path / "none.csv", "--column", "x", "--out", folder.out), "none.csv"),
        (("run", sub, "--data", data, "--column", "x", "--out", folder.out), "regular file"),
        (("run", folder.path / "none.toml", "--data", data, "--column", "x", "--out", folder.out), "none.toml"),
        (("run", problem, "--data", data, "--column", "z", "--out", folder.out), "must have the column 'z'"),
        (("run", problem, "--data", data, "--column", "", "--out", folder.out), "column"),
        (("run", problem, "--data", data, "--out", folder.out), "--column"),
        (("run", problem, "--column", "x", "--out", folder.out), "--data"),
        (base, "--out"),
        ((*base, "--out", folder.out, "--seed", -1), "seed"),
        ((*base, "--out", folder.out, "--seed", 2**64), "seed"),
        ((*base, "--out", folder.out, "--seed", "x"), "seed"),
        ((*base, "--out", folder.out, "--colour", "x"), "--colour"),
    ):
        optdp(*args).refused(words)
        folder.untouched()
        assert [path.name for path in sub.iterdir()] == ["link.csv"]
        assert data.read_bytes() == before
        assert problem.read_text() == METRIC


def test_run_is_for_protocols_only(optdp: Any, folder: Folder) -> None:
    text = 'kind = "amplification"\neps0 = 1\nn = 40\ndelta = 1e-3\n[randomizer]\nkind = "k-rr"\nk = 4\n'
    run(optdp, folder, text, [1] * 40).refused(
        "run is for metric-shuffle, shuffle-histogram and real-sum. Found kind amplification."
    )
    folder.untouched()


def test_refusals_are_the_same_in_a_process_of_its_own(folder: Folder) -> None:
    args = ("run", folder.problem(METRIC), "--data", folder.data([1] * 38 + [10, -1]), "--column", "x")
    process(*args, "--out", folder.out).refused("Found 2 values outside, the first in row 40. Use --clip")
    folder.untouched()


def test_an_interrupted_write_leaves_nothing(optdp: Any, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    run(optdp, folder, METRIC, [1] * 40).refused("no space left on device")
    folder.untouched()
