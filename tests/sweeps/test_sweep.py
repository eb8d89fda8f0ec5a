"""Sweeps: exact grids, rows that are what solve finds, journals that survive anything, and real dask clusters."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import optdp
from optdp import ProblemError, load
from optdp.extras import install
from optdp.loading import built
from optdp.sweeps.grid import Grid
from optdp.sweeps.plot import curve_of
from optdp.sweeps.table import journal, rows_of
from tests.command_line import Done

PROBLEM = """kind = "single-lte"
title = "a few people"
epsilon = 0.3
[population]
kind = "binomial"
n = 12
p = 0.5
"""


@pytest.fixture
def call(command: Callable[..., Done]) -> Any:
    """`optdp sweep` in this process."""
    return partial(command, "sweep")


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "p.toml").write_text(PROBLEM)
    return tmp_path / "p.toml"


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "optdp", "sweep", *map(str, args)]


def surroundings(**more: str) -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"} | more


def without_seconds(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(file)]


# --------------------------------------------------------------------------------------------------------------- grids


def values(text: str) -> tuple[Any, ...]:
    (found,) = Grid.parse([text]).values.values()
    return found


def test_an_even_grid_is_exact() -> None:
    assert values("epsilon=0.1:1:10") == ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", 1)
    assert values("n=10:40:4") == (10, 20, 30, 40)
    assert values("p=0:1:4") == (0, "1/3", "2/3", 1)
    assert values("p=1:0.5:3") == (1, "0.75", "0.5")
    assert values("p=0.3:0.3:1") == ("0.3",)


def test_even_steps_are_equal_and_end_where_they_should() -> None:
    draw = random.Random(7)
    for _ in range(50):
        first, last = (f"{draw.uniform(-5, 5):.{draw.randint(0, 12)}f}" for _ in range(2))
        count = draw.randint(2, 60)
        places = [Fraction(place) for place in values(f"x={first}:{last}:{count}")]
        assert len(places) == count
        assert (places[0], places[-1]) == (Fraction(first), Fraction(last))
        assert len({after - before for before, after in pairwise(places)}) == 1


def test_a_logarithmic_grid_is_rounded_to_six_digits() -> None:
    assert values("epsilon=log:0.01:10:7") == ("0.01", "0.0316228", "0.1", "0.316228", 1, "3.16228", 10)
    assert values("n=log:100:100000:4") == (100, 1000, 10000, 100000)
    assert values("n=log:1:4:30") == (1, 2, 3, 4)
    places = [float(Fraction(place)) for place in values("x=log:0.003:700:40")]
    quotient = (700 / 0.003) ** (1 / 39)
    assert all(after / before == pytest.approx(quotient, rel=2e-5) for before, after in pairwise(places))


def test_lists_keep_what_was_written() -> None:
    assert values("p=0.10, 1e-3,1/3 ,7") == ("0.10", "1e-3", "1/3", 7)
    assert values("method=lp,shifting") == ("lp", "shifting")
    assert values("never_worse=true,false") == (True, False)


def test_the_last_key_moves_fastest() -> None:
    grid = Grid.parse(["epsilon=1,2", "method=lp,shifting", "population.n=3"])
    assert len(grid) == 4
    assert [tuple(point.values()) for point in grid] == [
        (1, "lp", 3), (1, "shifting", 3), (2, "lp", 3), (2, "shifting", 3),
    ]  # fmt: skip


def test_floats_of_python_are_the_binary_fractions_that_they_are() -> None:
    import numpy as np

    (found,) = Grid.of({"x": [0.1, Fraction(1, 3), "0.1", np.int64(4), np.float64(0.5)]}).values.values()
    assert [Fraction(value) for value in found] == [Fraction(0.1), Fraction(1, 3), Fraction(1, 10), 4, Fraction(1, 2)]


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (["epsilon"], "key=values"), (["epsilon="], "key=values"), (["=1"], "key=values"),
        (["epsilon=1:2"], "first:last:count"), (["epsilon=1:2:3:4"], "first:last:count"),
        (["epsilon=1:2:x"], "count of 2 or more"), (["epsilon=1:2:1"], "count of 2 or more"),
        (["epsilon=1:2:0"], "count of 2 or more"), (["epsilon=a:2:3"], "decimal or a fraction"),
        (["epsilon=log:0:1:3"], "must be positive"), (["epsilon=1,,2"], "between its commas"),
        (["epsilon=1", "epsilon=2"], "two of 'epsilon'"), (["epsilon=1:2:1000001"], "1,000,000 points"),
        (["epsilon=1:2:1001", "population.p=0.1:0.2:1000"], "1,001 x 1,000 = 1,001,000"),
        (["epsilno=1"], "Unknown key 'epsilno'"), (["population.q=1"], "Unknown key 'population.q'"),
        (["parties.0.n=1"], "Unknown key 'parties.0.n'"), (["population.p.x=1"], "Unknown key 'population.p.x'"),
        (["population=1"], "a whole table at 'population'"),
        (["population.n.0=1"], "Unknown key 'population.n.0'"), (["title=a,b"], "Found 'title'"),
        (["kind=multi-lte"], "Found 'kind'"), (["population..p=1"], "'population..p'"),
        (["epsilon=" + "9" * 5000], "a number or a word"), (["epsilon=1e5000:2:3"], "exponent"),
    ],
)  # fmt: skip
def test_refused_before_any_work(grid: list[str], words: str, call: Any, problem: Path) -> None:
    options = [part for text in grid for part in ("--grid", text)]
    call(problem, *options, "--out", problem.parent / "s.csv").refused(words)
    assert [path.name for path in problem.parent.iterdir()] == ["p.toml"]


def test_refused_outputs_and_places(call: Any, problem: Path) -> None:
    folder, grid = problem.parent, ("--grid", "epsilon=1")
    call(problem, *grid, "--out", folder / "s.xlsx").refused(".parquet, .csv, .jsonl")
    call(problem, *grid, "--out", folder / "no" / "s.csv").refused("to the folder")
    call(problem, *grid, "--out", folder / "s.csv", "--scheduler", "nonsense").refused("tcp://host:8786")
    call(problem, *grid, "--out", folder / "s.csv", "--scheduler", "tcp://a:1", "--workers", 2).refused("--workers is")
    call(folder / "none.toml", *grid, "--out", folder / "s.csv").refused("No file and no problem")
    assert [path.name for path in folder.iterdir()] == ["p.toml"]


def test_a_missing_extra_is_one_line(call: Any, problem: Path, missing: Callable[..., None]) -> None:
    grid, folder = ("--grid", "epsilon=1"), problem.parent
    missing("distributed")
    call(problem, *grid, "--out", folder / "s.csv", "--workers", 2).refused(install("dask"))
    missing("pyarrow")
    call(problem, *grid, "--out", folder / "s.parquet").refused(install("parquet"))
    assert [path.name for path in folder.iterdir()] == ["p.toml"]
    assert call(problem, *grid, "--out", folder / "s.csv", "--workers", 0).err == ""
    done = call(problem, *grid, "--out", folder / "t.csv")
    assert (done.code, len(done.err.splitlines())) == (0, 1)
    assert "in this process" in done.err
    assert without_seconds(folder / "t.csv") == without_seconds(folder / "s.csv")


def test_a_grid_of_backends(call: Any, problem: Path) -> None:
    out, grid = problem.parent / "s.csv", ("-g", "population.n=5,6", "-g", "backend=highs,scipy", "--workers", 0)
    done = call(problem, *grid, "--out", out, "--plot", problem.parent / "s.svg")
    assert done.code == 0, done
    rows = without_seconds(out)
    assert [(row["backend"], row["solution.backend"]) for row in rows] == [("highs", "highs"), ("scipy", "scipy")] * 2
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        assert float(one["mae"]) == pytest.approx(float(other["mae"]), rel=1e-5)
        assert float(other["certified_epsilon"]) <= 0.3
    assert (problem.parent / "s.svg").read_bytes().startswith(b"<?xml")
    found = curve_of([{**row, "population.n": int(row["population.n"]), "mae": float(row["mae"])} for row in rows],
                     ["population.n", "backend"], "p", "")  # fmt: skip
    assert (found.over, found.unknown, found.places) == ("population.n", "mae", (5.0, 6.0))
    assert found.lines["backend = scipy"] == tuple(float(row["mae"]) for row in rows[1::2])
    call(problem, "-g", "backend=magic", "-o", out).refused("magic")
    other = 'kind = "amplification"\nn = 1000\neps0 = 2\ndelta = 1e-6\nrandomizer = {kind = "k-rr", k = 10}\n'
    (problem.parent / "q.toml").write_text(other)
    call(problem.parent / "q.toml", "-g", "backend=highs", "-o", out).refused("single-lte and multi-lte")


def test_pictures_are_refused_before_any_work(call: Any, problem: Path) -> None:
    grid, folder = ("-g", "epsilon=1,2", "--workers", 0, "-o", problem.parent / "s.csv"), problem.parent
    call(problem, *grid, "--plot", folder / "s.txt").refused(".svg, .png, .pdf")
    call(problem, *grid, "--plot", folder / "no" / "s.svg").refused("to the folder")
    assert [path.name for path in folder.iterdir()] == ["p.toml"]
    done = call(problem, *grid, "--plot", folder / "s.svg", "--show", "nothing")
    assert done.code == 2
    assert "column of numbers" in done.err
    assert (folder / "s.csv").exists()


# ---------------------------------------------------------------------------------------------------------------- rows

BINOMIAL = {"kind": "binomial", "n": 8, "p": "0.5"}
KINDS: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    "single-lte": (
        {"epsilon": "0.3", "population": BINOMIAL},
        {"epsilon": ["0.5", 1], "population.n": [6, 9], "method": ["lp", "geometric"]},
    ),
    "multi-lte": (
        {"epsilon": "0.5", "parties": [dict(BINOMIAL), dict(BINOMIAL)], "method": "geometric"},
        {"parties.1.n": [5, 6], "epsilon": ["0.5", "0.7"]},
    ),
    "amplification": (
        {"randomizer": {"kind": "k-rr", "k": 4}, "eps0": 1, "n": 1000, "delta": "1e-6"},
        {"randomizer.k": [2, 3], "method": ["bennett-k-rr"]},
    ),
    "krr-count": (
        {"counts": [30, 30, 40], "eps0": 1, "epsilon": "0.1"}, {"epsilon": ["0.1", "0.2"], "counts.2": [40, 41]},
    ),
    "metric-shuffle": (
        {"mechanism": "geo", "n": 40, "k": 9, "delta": "1e-3", "epsilon": "0.5"}, {"epsilon": ["0.4", "0.5"]},
    ),
    "shuffle-histogram": ({"n": 40, "k": 3, "delta": "1e-2", "epsilon": 1}, {"k": [2, 3], "epsilon": [1]}),
    "real-sum": ({"n": 40, "epsilon": 1, "delta": "1e-2"}, {"n": [20], "high": [1, "2.5"]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_what_solve_finds(kind: str) -> None:
    """Every figure of `summary()` that is one number or word, of every kind of problem, at every point."""
    base, grid = KINDS[kind]
    rows = optdp.sweep({"kind": kind, **base}, grid, workers=0)
    assert len(rows) == len(list(Grid.of(grid)))
    assert len({tuple(row) for row in rows}) == 1
    for row, point in zip(rows, Grid.of(grid), strict=True):
        spec = json.loads(json.dumps({"kind": kind, **base}))
        for key, value in point.items():
            place: Any = spec
            *path, last = (int(step) if step.isdigit() else step for step in key.split("."))
            for step in path:
                place = place[step]
            place[last] = value
            assert row[key] == float(Fraction(value)) if last != "method" else row[key] == value
        summary = optdp.solve(built(spec)).summary()
        assert row["status"] == summary["status"]
        assert row["error"] is None
        for name, value in summary.items():
            if isinstance(value, str | int | float) and name not in ("kind", "status", "seconds", "meaning"):
                assert row[f"solution.{name}" if name in grid else name] == value
        for name, value in summary.get("parameters", {}).items():
            assert row[f"parameters.{name}"] == value


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    for kind in ("single-lte", "multi-lte"):
        spec = {"kind": kind, **KINDS[kind][0]}
        (row,) = optdp.sweep(spec, {"epsilon": ["0.6"]}, workers=0)
        optdp.solve(built(spec | {"epsilon": "0.6"})).save(tmp_path / kind)
        file = tmp_path / kind / "plan.json" if kind == "multi-lte" else tmp_path / kind
        assert row["sha256"] == json.loads(file.read_text())["sha256"]


def test_orders_and_the_files_beside_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files lie beside the problem, wherever the sweep is started, also those that a grid names."""
    folder = tmp_path / "problem"
    folder.mkdir()
    (folder / "a.json").write_text("[[0, 1, 2], [2, 3]]")
    (folder / "b.json").write_text("[[0, 5], [1, 2, 3, 4]]")
    text = 'kind = "order-shuffle"\nalpha = 2\nordering = "bfs"\n[groups]\nfile = "a.json"\n'
    (folder / "p.toml").write_text(text)
    (folder / "q.toml").write_text(text.replace("a.json", "b.json"))
    monkeypatch.chdir(tmp_path)
    rows = optdp.sweep("problem/p.toml", {"groups.file": ["a.json", "b.json"], "alpha": [1, 2]}, workers=0)
    assert [row["error"] for row in rows] == [None] * 4
    assert [row["n"] for row in rows] == [4, 4, 6, 6]
    for row, name in ((rows[1], "p.toml"), (rows[3], "q.toml")):
        summary = optdp.solve(load(folder / name)).summary()
        assert (row["sensitivity"], row["theta"]) == (summary["sensitivity"], summary["theta"])
    (folder / "a.csv").write_text("a\n")
    with pytest.raises(ProblemError, match="would overwrite the file"):
        optdp.sweep("problem/p.toml", {"groups.file": ["a.csv"]}, folder / "a.csv", workers=0)
    assert (folder / "a.csv").read_text() == "a\n"


def test_problems_of_python() -> None:
    problem = optdp.SingleLTE(optdp.Population.binomial(8, "0.5"), epsilon="0.3")
    (row,) = optdp.sweep(problem, {"epsilon": ["0.5"]}, workers=0)
    assert row["mae"] == optdp.solve(optdp.SingleLTE(optdp.Population.binomial(8, "0.5"), epsilon="0.5")).mae
    for wrong in (3, optdp.RealSum(40, 1, "1e-2"), {"kind": "nonsense"}, {}):
        with pytest.raises(ProblemError):
            optdp.sweep(wrong, {"epsilon": [1]}, workers=0)
    for grid in ({}, {"epsilon": []}, {"epsilon": "1"}, {"epsilon": 1}, {"epsilon": [None]}):
        with pytest.raises(ProblemError):
            optdp.sweep(problem, grid, workers=0)  # type: ignore[arg-type]


def test_a_failed_point_is_a_row_and_the_sweep_goes_on(call: Any, problem: Path) -> None:
    out = problem.parent / "s.csv"
    done = call(problem, "-g", "epsilon=-1,0.5", "-g", "method=lp,fancy", "-o", out, "--workers", 0, "--json")
    assert done.code == 0
    assert json.loads(done.out)["failed"] == 3
    rows = without_seconds(out)
    assert [row["status"] for row in rows] == ["failed", "failed", "optimal", "failed"]
    assert "epsilon must be larger than 0" in rows[0]["error"]
    assert "Found 'fancy'" in rows[3]["error"]
    assert rows[0]["mae"] == rows[2]["error"] == ""
    done = call(problem, "-g", "epsilon=-1,0.5", "-o", out, "--workers", 0)
    assert (done.code, "1 failed" in done.out, "1 of 2 points failed" in done.err) == (0, True, True)
    done = call(problem, "-g", "epsilon=-1,-2", "-o", out, "--workers", 0)
    assert done.code == 2
    assert "All 2 points failed" in done.err
    assert len(without_seconds(out)) == 2


def test_every_file_holds_the_same_rows(call: Any, problem: Path) -> None:
    pytest.importorskip("pyarrow")
    grid = ("-g", "epsilon=-1,0.5,1/3", "-g", "tail=geometric,none", "-g", "population.n=6", "--workers", 0)
    tables = {}
    for name in ("s.csv", "s.jsonl", "s.parquet"):
        assert call(problem, *grid, "-o", problem.parent / name).code == 0
    with (problem.parent / "s.csv").open(newline="") as file:
        tables["csv"] = list(csv.DictReader(file))
    tables["jsonl"] = [json.loads(line) for line in (problem.parent / "s.jsonl").read_text().splitlines()]
    done = subprocess.run(
        [sys.executable, "-c", READ_PARQUET, problem.parent / "s.parquet"], capture_output=True, text=True, check=True,
        env=surroundings(), timeout=100,
    )  # fmt: skip
    tables["parquet"], types, polars = json.loads(done.stdout)
    assert polars in (None, tables["parquet"])
    expected = {"epsilon": "double", "tail": "string", "population.n": "int64", "mae": "double", "never_worse": "bool"}
    assert {name: types[name] for name in expected} == expected
    assert types["certified_epsilon"] == types["error"] == types["sha256"] == "string"
    assert len(tables["csv"]) == len(tables["jsonl"]) == len(tables["parquet"]) == 6
    assert tables["parquet"][2]["epsilon"] == 0.5
    for texts, row, typed in zip(tables["csv"], tables["jsonl"], tables["parquet"], strict=True):
        assert list(texts) == list(row) == list(typed)
        for name, text in texts.items():
            if name != "seconds":
                assert row[name] == typed[name]
                plain = row[name] is None or isinstance(row[name], bool | str)
                assert text == ({None: "", True: "true", False: "false"}.get(row[name], row[name]) if plain else text)
                assert plain or float(text) == row[name]


READ_PARQUET = """
import json, sys
import pyarrow.parquet
table = pyarrow.parquet.read_table(sys.argv[1])
try:
    import polars
    other = polars.read_parquet(sys.argv[1]).to_dicts()
except ImportError:
    other = None
print(json.dumps([table.to_pylist(), {field.name: str(field.type) for field in table.schema}, other]))
"""


def test_rows_do_not_depend_on_who_finished_first() -> None:
    grid = Grid.parse(["epsilon=1,2,3,4"])
    done = {
        i: {"status": "s", "seconds": 0.0, "figures": {f"f{i}": i, "g": 1}, "sha256": None, "error": None}
        for i in range(4)
    }
    first = json.dumps(rows_of(grid, done))
    for seed in range(10):
        order = random.Random(seed).sample(range(4), 4)
        assert json.dumps(rows_of(grid, {i: done[i] for i in order})) == first


# ------------------------------------------------------------------------------------------------------------- journal


def test_a_journal_cut_anywhere_keeps_every_whole_line(tmp_path: Path) -> None:
    out = tmp_path / "s.csv"
    place = tmp_path / "s.csv.partial.jsonl"
    row = {"status": "optimal", "seconds": 0.1, "figures": {"x": 1.5}, "sha256": None, "error": None}
    with journal(out, "digest", 9, False) as book:
        for i in (3, 0, 7):
            book.add(i, row | {"seconds": i / 8})
    whole = place.read_bytes()
    for cut in range(len(whole) + 1):
        place.write_bytes(whole[:cut])
        with journal(out, "digest", 9, False) as book:
            kept = max(whole[:cut].count(b"\n") - 1, 0)
            assert list(book.done) == [3, 0, 7][:kept]
            for i in (3, 0, 7)[kept:]:
                book.add(i, row | {"seconds": i / 8})
        assert place.read_bytes() == whole
    place.write_bytes(whole.replace(b'"point": 0', b'"point": 9'))
    with pytest.raises(ProblemError, match="line 3"), journal(out, "digest", 9, False):
        pass


def test_another_sweep_is_not_mixed_in(call: Any, problem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another grid, problem or version is refused with what to do; `--fresh` starts again."""
    out, grid = problem.parent / "s.csv", ("-g", "epsilon=0.5,0.6,0.7", "--workers", 0)
    place = problem.parent / "s.csv.partial.jsonl"

    def stopped_after_two(tasks: Any) -> Iterator[Any]:
        from optdp.sweeps.pool import solve_point

        for count, (i, spec) in enumerate(tasks):
            if count == 2:
                raise KeyboardInterrupt
            yield i, solve_point(spec)

    with monkeypatch.context() as patch:
        patch.setattr("optdp.sweeps.run.solved_here", stopped_after_two)
        call(problem, *grid, "-o", out).refused("2 of 3 points are done", 130)
    assert not out.exists()
    before = place.read_bytes()
    call(problem, "-g", "epsilon=0.5,0.6,0.8", "--workers", 0, "-o", out).refused("--fresh")
    problem.write_text(PROBLEM.replace("12", "13"))
    call(problem, *grid, "-o", out).refused("another sweep")
    problem.write_text(PROBLEM.replace("a few people", "another title"))
    with monkeypatch.context() as patch:
        patch.setattr("optdp.sweeps.run.version", lambda _: "99")
        call(problem, *grid, "-o", out).refused("another sweep")
    with journal(out, json.loads(before.splitlines()[0])["digest"], 3, False):
        call(problem, *grid, "-o", out).refused("Another sweep is writing")
    assert place.read_bytes() == before
    done = call(problem, *grid, "-o", out, "--json")
    assert (done.code, json.loads(done.out)["kept"]) == (0, 2)
    place.write_bytes(before)
    done = call(problem, *grid, "-o", out, "--json", "--fresh")
    assert (done.code, json.loads(done.out)["kept"]) == (0, 0)
    assert not place.exists()


@pytest.mark.parametrize(("blow", "workers"), [("SIGINT", 2), ("SIGKILL", 1), ("SIGINT", 0)])
def test_goes_on_where_it_was_stopped(blow: str, workers: int, problem: Path) -> None:
    """Finished points keep the seconds that they took the first time: they were not solved again."""
    if workers:
        pytest.importorskip("distributed")
    out = problem.parent / "s.csv"
    place = problem.parent / "s.csv.partial.jsonl"
    problem.write_text(PROBLEM.replace("12", "80"))
    line = command(problem, "-g", "epsilon=0.1:1:8", "-g", "population.p=0.1,0.5", "-o", out, "--workers", workers)
    running = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=surroundings()
    )
    while running.poll() is None and not (place.exists() and place.read_bytes().count(b"\n") > 4):
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT) if blow == "SIGINT" else running.kill()  # a terminal tells all processes
    said = running.communicate(timeout=60)
    lines = place.read_text().splitlines()
    assert not out.exists()
    if blow == "SIGINT":
        assert running.returncode == 130
        assert said[0] == ""
        told = re.fullmatch(r"optdp: interrupted; (\d+) of 16 points are done; .* continues from there\n", said[1])
        assert told is not None, said
        assert int(told[1]) in (len(lines) - 1, len(lines) - 2)  # it may come while a line is written
    finished = {found["point"]: found["row"] for found in map(json.loads, lines[1:]) if "point" in found}
    assert 4 <= len(finished) < 16
    deadline = time.monotonic() + 30
    while _alive(running.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _alive(running.pid)  # no worker outlives the sweep
    done = subprocess.run(
        [*line[:-1], "0"], capture_output=True, text=True, timeout=200, check=True, env=surroundings()
    )
    assert f"16 points, {len(finished)} of them from before, 0 failed" in done.stdout
    assert not place.exists()
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(float(rows[i]["seconds"]) == row["seconds"] for i, row in finished.items())
    once = optdp.sweep(problem, {"epsilon": Grid.parse(["e=0.1:1:8"]).values["e"], "population.p": ["0.1", "0.5"]},
                       problem.parent / "once.csv", workers=0)  # fmt: skip
    assert len(once) == 16
    assert without_seconds(out) == without_seconds(problem.parent / "once.csv")


def _alive(session: int) -> bool:
    """Whether a process of the session is left."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            return True
    return False


DEADLY = """
import os, time
from optdp.sweeps import pool

def solve_point(spec):
    time.sleep(0.05)
    if spec["deadly"]:
        os._exit(1)
    return {"status": "solved", "error": None}

if __name__ == "__main__":
    pool.solve_point = solve_point
    with pool.local_pool(2, 8) as solved:
        for point, row in solved((i, {"deadly": i == 2}) for i in range(8)):
            print(point, row["status"], row["error"])
"""


@pytest.mark.slow
def test_a_point_that_ends_its_worker_fails_alone(tmp_path: Path) -> None:
    """As a system out of memory would end it; points that were with it are solved after all."""
    pytest.importorskip("distributed")
    (tmp_path / "deadly.py").write_text(DEADLY)
    done = subprocess.run(
        [sys.executable, tmp_path / "deadly.py"], capture_output=True, text=True, timeout=200, check=True,
        env=surroundings(PYTHONPATH=str(Path(optdp.__file__).resolve().parent.parent)),
    )  # fmt: skip
    expected = [
        f"{i} solved None" if i != 2 else "2 failed its worker died of it: too little memory?" for i in range(8)
    ]
    assert sorted(done.stdout.splitlines()) == expected


# ------------------------------------------------------------------------------------------------------- real clusters


class Cluster:
    """A dask scheduler and workers as processes of their own, on ports of the system's choice."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, list[subprocess.Popen[bytes]]()
        file = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)
        deadline = time.monotonic() + 60
        while not (file.exists() and file.read_text().endswith("}")) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]

    def worker(self, **more: str) -> None:
        options = ("--no-dashboard", "--nthreads", 1, "--no-nanny", "--host", "127.0.0.1")
        self._start("worker", self.address, *options, "--local-directory", self.folder, **more)

    def _start(self, *args: object, **more: str) -> None:
        line = [sys.executable, "-m", "dask", *map(str, args)]
        self.processes.append(
            subprocess.Popen(line, cwd=self.folder, env=surroundings(**more), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        )  # fmt: skip

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait(30)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    (tmp_path / "cluster").mkdir()
    made = Cluster(tmp_path / "cluster")
    yield made
    made.close()


def test_a_real_cluster_finds_the_same(cluster: Cluster, problem: Path) -> None:
    """Two workers, one of which says that it has another HiGHS: a warning, and the same rows as without a cluster."""
    other = problem.parent / "other" / "highspy-9.9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: highspy\nVersion: 9.9.9\n")
    root = Path(optdp.__file__).resolve().parent.parent
    cluster.worker(PYTHONPATH=str(root))
    cluster.worker(PYTHONPATH=f"{other.parent}{os.pathsep}{root}")
    _wait_for_workers(cluster.address, 2)
    grid = ("-g", "epsilon=-1,0.3,0.5,0.7", "-g", "population.n=9,10,11", "-o")
    there = subprocess.run(
        command(problem, *grid, problem.parent / "there.csv", "--scheduler", cluster.address),
        capture_output=True, text=True, timeout=200, check=False, env=surroundings(),
    )  # fmt: skip
    assert there.returncode == 0, there.stderr
    assert "12 points, 3 failed" in there.stdout
    assert "workers have highspy 9.9.9" in there.stderr
    assert len(there.stderr.splitlines()) == 2  # that, and the number of failed points
    optdp.sweep(problem, {"epsilon": [-1, "0.3", "0.5", "0.7"], "population.n": [9, 10, 11]},
                problem.parent / "here.csv", workers=0)  # fmt: skip
    assert without_seconds(problem.parent / "there.csv") == without_seconds(problem.parent / "here.csv")
    cluster.close()
    gone = subprocess.run(
        command(problem, *grid, problem.parent / "gone.csv", "--scheduler", cluster.address),
        capture_output=True, text=True, timeout=200, check=False, env=surroundings(COLUMNS="400"),
    )  # fmt: skip
    Done(gone.returncode, gone.stdout, gone.stderr).refused("Is it running?")
    assert not list(problem.parent.glob("gone.csv*"))


def _wait_for_workers(address: str, count: int) -> None:
    code = f"from distributed import Client; Client({address!r}, timeout=60).wait_for_workers({count}, timeout=60)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=surroundings(), capture_output=True)
