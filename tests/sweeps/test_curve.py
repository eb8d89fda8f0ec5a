"""Curves: every point is a solved problem, what is ready is written, and pictures are well-formed."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from optdp import KRR, Amplification, KRRCount, ProblemError, solve
from optdp.extras import install
from optdp.loading import load_file
from optdp.sweeps import curve as curves
from optdp.sweeps.curve import Curve, sweep, write_csv, write_picture
from tests.command_line import in_process

ROOT = Path(__file__).resolve().parents[2]
HEAD = 'title = "A curve"\nkind = "amplification"\neps0 = 1\ndelta = 1e-6\nn = 1000\n'
KRR4 = '[randomizer]\nkind = "k-rr"\nk = 4\n'
SWEEP = '[sweep]\nover = "n"\nfrom = 100\nto = 10000\npoints = 3\n'


def optdp(*args: object, **more: str) -> subprocess.CompletedProcess[str]:
    if not more:
        return in_process(*args)
    return subprocess.run(
        [sys.executable, "-m", "optdp", *map(str, args)], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "COLUMNS": "200", **more}, timeout=100,
    )  # fmt: skip


def write(folder: Path, text: str) -> Path:
    (folder / "p.toml").write_text(text)
    return folder / "p.toml"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_holds_what_single_solves_give(tmp_path: Path) -> None:
    done = optdp("curve", write(tmp_path, HEAD + KRR4 + SWEEP), "--out", tmp_path / "c.csv")
    assert done.returncode == 0, done.stderr
    rows = read(tmp_path / "c.csv")
    assert [row["n"] for row in rows] == ["100", "1000", "10000"]
    for row in rows:
        one = solve(Amplification(KRR(4), eps0=1, n=int(row["n"]), delta="1e-6"))
        assert float(row["value"]) == pytest.approx(one.value, rel=1e-3)
        assert float(row["value"]) >= one.value * (1 - 1e-9)  # less effort, never a better promise
        assert one.lower is not None
        assert float(row["lower"]) == pytest.approx(one.lower, rel=1e-2)
        assert float(row["lower"]) < float(row["value"])


@pytest.mark.parametrize("unknown", ["epsilon", "delta", "eps0", "n"])
def test_every_unknown_agrees_with_solve(unknown: str, tmp_path: Path) -> None:
    given = {"epsilon": "0.3", "delta": "1e-6", "eps0": "1", "n": "1000"}
    del given[unknown]
    over = "epsilon" if unknown != "epsilon" else "eps0"
    text = 'kind = "amplification"\n' + "".join(f"{name} = {value}\n" for name, value in given.items())
    text += KRR4 + f'[sweep]\nover = "{over}"\nvalues = ["0.2", "0.4"]\n'
    found = sweep(load_file(write(tmp_path, text)))
    assert found.unknown == unknown
    for place, value in zip(found.places, found.lines["value"], strict=True):
        numbers = {name: int(one) if name == "n" else one for name, one in given.items()} | {over: str(place)}
        assert value == pytest.approx(solve(Amplification(KRR(4), **numbers)).value, rel=2e-3)  # type: ignore[arg-type]


def test_what_solve_answers_a_curve_draws(tmp_path: Path) -> None:
    """With two people and a tiny delta eps0 = epsilon is the answer; a curve must not leave it out."""
    text = 'kind = "amplification"\nn = 2\ndelta = 1e-30\nepsilon = 0.5\n' + KRR4
    found = sweep(load_file(write(tmp_path, text + '[sweep]\nover = "n"\nvalues = [2]\n')))
    answer = solve(Amplification(KRR(4), n=2, delta="1e-30", epsilon="0.5")).value
    assert found.lines["value"][0] == pytest.approx(answer, rel=1e-3)


def test_points_override_ties_and_series(tmp_path: Path) -> None:
    text = HEAD + KRR4 + SWEEP + 'tie = { delta = "n^-2" }\n'
    text += 'series = [{ label = "four" }, { label = "two, \\"quoted\\"", randomizer = { kind = "k-rr", k = 2 } }, '
    text += '{ label = "bennett", method = "bennett-k-rr" }, { label = "below", show = "lower" }]\n'
    file = load_file(write(tmp_path, text))
    found = sweep(file, points=2)
    assert found.places == (100.0, 10_000.0)
    assert list(found.lines) == ["four", 'two, "quoted"', "bennett", "below"]
    for i, (n, delta) in enumerate(((100, "1e-4"), (10_000, "1e-8"))):
        four = solve(Amplification(KRR(4), eps0=1, n=n, delta=delta))
        two = solve(Amplification(KRR(2), eps0=1, n=n, delta=delta))
        assert found.lines["four"][i] == pytest.approx(four.value, rel=1e-3)
        assert found.lines['two, "quoted"'][i] == pytest.approx(two.value, rel=1e-3)
        table = {row.method: row.value for row in four.bounds}
        assert found.lines["bennett"][i] == pytest.approx(table["bennett-k-rr"], rel=1e-9)
        below = found.lines["below"][i]
        assert below is not None
        assert below < four.value
    write_csv(found, tmp_path / "c.csv")
    assert read(tmp_path / "c.csv")[1]['two, "quoted"'] == repr(found.lines['two, "quoted"'][1])
    for bad in (1, 0, -3, 10_001, 10**9):
        with pytest.raises(ProblemError, match="points"):
            sweep(file, points=bad)


def test_a_tie_to_a_nested_number(tmp_path: Path) -> None:
    text = HEAD + KRR4 + SWEEP + 'tie = { "randomizer.k" = "n^(1/2)" }\n'
    found = sweep(load_file(write(tmp_path, text)), points=2)
    for n, k, value in zip((100, 10_000), (10, 100), found.lines["value"], strict=True):
        assert value == pytest.approx(solve(Amplification(KRR(k), eps0=1, n=n, delta="1e-6")).value, rel=1e-3)


def test_counts_have_curves(tmp_path: Path) -> None:
    text = 'kind = "krr-count"\nn = 100\nn_x0 = 80\nk = 10\neps0 = 1\nepsilon = 0.1\n'
    text += '[sweep]\nover = "epsilon"\nvalues = ["0.1", "0.5", 2]\n'
    found = sweep(load_file(write(tmp_path, text)))
    assert found.lines["value"][0] == solve(KRRCount(100, 80, 10, eps0=1, epsilon="0.1")).value
    assert found.lines["value"][2] == 0.0
    write_csv(found, tmp_path / "c.csv")
    assert float(read(tmp_path / "c.csv")[1]["value"]) == pytest.approx(9.932e-26, rel=1e-3)


def test_no_answer_is_an_empty_cell(tmp_path: Path) -> None:
    text = (
        HEAD.replace("eps0 = 1", "eps0 = 6").replace("1e-6", "1e-30")
        + KRR4
        + '[sweep]\nover = "n"\nvalues = [2, 100000]\n'
    )
    done = optdp("curve", write(tmp_path, text), "--out", tmp_path / "c.csv")
    assert done.returncode == 0, done.stderr
    rows = read(tmp_path / "c.csv")
    assert rows[0]["value"] == ""
    assert 0 < float(rows[1]["value"]) < 6
    assert "no answer" in done.stdout


def test_interrupted_what_is_ready_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    honest = curves._Figures.__call__

    def stopping(*args: object) -> dict[str, Any]:
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(curves._Figures, "__call__", stopping)
    found = sweep(load_file(write(tmp_path, HEAD + KRR4 + SWEEP)))
    assert found.interrupted
    first, second, third = found.lines["value"]
    assert first is not None
    assert second is not None
    assert third is None
    write_csv(found, tmp_path / "c.csv")
    assert [row["value"] for row in read(tmp_path / "c.csv")] == [repr(first), repr(second), ""]
    write_picture(found, tmp_path / "c.svg")
    ElementTree.parse(tmp_path / "c.svg")


def test_interrupted_within_a_named_bound_stops_the_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the lower bounds of one point are computed ends the whole sweep, not only this point."""
    from dataclasses import replace

    from optdp.amplification.bounds import BOUNDS

    calls = []

    def stop(*_: object) -> float:
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setitem(BOUNDS, "data-set", replace(BOUNDS["data-set"], log_delta=stop))
    series = 'series = [{ label = "bennett", method = "bennett-k-rr" }]\n'
    found = sweep(load_file(write(tmp_path, HEAD + KRR4 + SWEEP + series)))
    assert len(calls) <= 1
    assert found.interrupted or not calls


def test_interrupted_command_writes_and_exits_130(tmp_path: Path) -> None:
    write(tmp_path, HEAD + KRR4 + SWEEP)
    script = (
        "import sys\nfrom optdp.cli.main import main\nfrom optdp.sweeps import curve\n"
        "honest, calls = curve._Figures.__call__, []\n"
        "def stopping(*args):\n    calls.append(1)\n    if len(calls) == 2:\n        raise KeyboardInterrupt\n"
        "    return honest(*args)\n"
        "curve._Figures.__call__ = stopping\n"
        f"sys.argv = ['optdp', 'curve', {str(tmp_path / 'p.toml')!r}, '--out', {str(tmp_path / 'c.csv')!r}]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    values = [row["value"] for row in read(tmp_path / "c.csv")]
    assert float(values[0]) > 0
    assert values[1:] == ["", ""]


LINES = {"a": (0.1, 0.2, None), 'b < & > "c"': (1e-30, 0.0, 3.0)}


def drawn(title: str = "A title", lines: dict[str, tuple[float | None, ...]] = LINES) -> Curve:
    return Curve(title, "n", "epsilon", (1.0, 10.0, 100.0), lines, True, True)


def test_svg_is_well_formed_and_always_the_same(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one.svg", "two.svg"):
        write_picture(drawn("5 < 6 & more"), tmp_path / name)
    root = ElementTree.parse(tmp_path / "one.svg").getroot()
    assert root.tag.endswith("svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    text = HEAD + KRR4 + SWEEP
    path = write(tmp_path, text)
    made = []
    for name in ("three.svg", "four.svg"):
        done = optdp("curve", path, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_other_pictures(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_picture(drawn(), tmp_path / f"c.{ending}")
    magic = {"png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert (tmp_path / f"c.{ending}").read_bytes().startswith(magic)


@pytest.mark.parametrize("text", ["a $x^{ b$", r"$\foo{$", "$", "100 $ and 200 $", "_hidden", "\U0001f600", "a\nb"])
def test_any_text_can_be_drawn(text: str, tmp_path: Path) -> None:
    """Titles and labels are text, not a formula language: nothing in them stops a picture."""
    pytest.importorskip("matplotlib")
    write_picture(drawn(text, {text: (0.1, 0.2, 0.3)}), tmp_path / "c.svg")
    ElementTree.parse(tmp_path / "c.svg")


def test_nothing_to_draw(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for lines in ({"a": (None, None, None)}, {"a": (0.0, 0.0, 0.0)}):
        write_picture(drawn("none", lines), tmp_path / "c.svg")  # type: ignore[arg-type]
        ElementTree.parse(tmp_path / "c.svg")


def test_without_matplotlib_there_is_one_helpful_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ProblemError, match=re.escape(install("plot")) + ".*csv"):
        write_picture(drawn(), tmp_path / "c.svg")
    assert not (tmp_path / "c.svg").exists()
    write_csv(drawn(), tmp_path / "c.csv")
    assert len(read(tmp_path / "c.csv")) == 3


def test_without_matplotlib_at_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError('hidden')\n")
    path = write(tmp_path, HEAD + KRR4 + SWEEP)
    done = optdp("curve", path, "--out", tmp_path / "c.svg", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert install("plot") in done.stderr


@pytest.mark.parametrize("name", ["c", "c.txt", "c.SVG.bak", "c.json", ".csv"])
def test_bad_endings(name: str, tmp_path: Path) -> None:
    done = optdp("curve", write(tmp_path, HEAD + KRR4 + SWEEP), "--out", tmp_path / name)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert ".csv, .svg" in done.stderr
    assert not (tmp_path / name).exists()


def test_bad_files_and_places(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + KRR4 + SWEEP)
    (tmp_path / "folder.csv").mkdir()
    for args, words in (
        ((tmp_path / "none.toml", "--out", tmp_path / "c.csv"), "none.toml"),
        ((path, "--out", tmp_path / "no" / "c.csv"), "folder"),
        ((path, "--out", tmp_path / "folder.csv"), "folder"),
        ((path, "--out", tmp_path / "c.csv", "--points", 10**9), "points"),
        ((ROOT / "problems" / "paper-b" / "krr10.toml", "--out", tmp_path / "c.csv"), "[sweep]"),
        ((ROOT / "problems" / "use-cases" / "sick-leave.toml", "--out", tmp_path / "c.csv"), "[sweep]"),
    ):
        done = optdp("curve", *args)
        assert done.returncode == 2, (args, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert words in done.stderr
    assert not (tmp_path / "c.csv").exists()


def test_a_csv_beside_the_file_also_in_a_series(tmp_path: Path) -> None:
    """A channel's csv lies beside the problem file, whoever names it."""
    (tmp_path / "law.csv").write_text("0.6,0.4\n0.4,0.6\n")
    text = 'kind = "amplification"\ndelta = 1e-6\nn = 100\n[randomizer]\nkind = "channel"\ncsv = "law.csv"\n'
    text += '[sweep]\nover = "n"\nvalues = [100]\nseries = [{ label = "a" }, '
    text += '{ label = "b", randomizer = { kind = "channel", csv = "law.csv" } }]\n'
    found = sweep(load_file(write(tmp_path, text)))
    assert found.lines["a"] == found.lines["b"]
