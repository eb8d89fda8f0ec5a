"""Progress in logs: when a line is due by a made-up clock, and what real processes print."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

import optdp
from optdp import ProblemError
from optdp.cli import printing
from optdp.work import BEAT, GAP, LONGEST, QUIET, Lines, Pace, announce, check_memory, deadline, duration, listening
from tests.processes import started, struck


def printed(said: dict[float, str], until: float, estimates: dict[float, str] | None = None) -> list[tuple[float, str]]:
    """The lines of a run in which texts are said at these times, looked at four times a second."""
    pace, found, now = Pace(0.0), [], 0.0
    while now <= until:
        if now in said:
            pace.text = said[now]
        if now in (estimates or {}):
            pace.estimates.append((estimates or {})[now])
        found += [(now, line) for line in pace.due(now)]
        now += 0.25
    return found


def test_quick_work_is_silent() -> None:
    assert printed({i / 4: f"step {i}" for i in range(12)}, QUIET - 0.25) == []


def test_changes_are_told_but_not_too_often() -> None:
    found = printed({i / 4: f"step {i}" for i in range(400)}, 60.0)
    times = [now for now, _ in found]
    assert times[0] == QUIET
    assert {b - a for a, b in pairwise(times)} == {GAP}
    assert found[1] == (8.0, "working: step 32; 8 s")


def test_one_long_call_gives_signs_of_life() -> None:
    found = printed({0.0: "a long call"}, 80.0)
    assert found[0] == (QUIET, "working: a long call; 3 s")
    assert [line for _, line in found[1:3]] == ["still: a long call; 18 s", "still: a long call; 33 s"]
    times = [now for now, _ in found]
    assert {b - a for a, b in pairwise(times)} == {BEAT}


def test_an_estimate_is_told_however_soon_something_else_is_said() -> None:
    found = printed({0.25: "next"}, 4.0, {0.0: "all of it: about 40 s"})
    assert [line for _, line in found] == ["estimate: all of it: about 40 s", "working: next; 3 s"]


class Jammed(io.StringIO):
    """A stream that was closed at the other end, or that nobody reads."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.fails, self.blocked, self.goes_on = fails, threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        if self.fails:
            raise BrokenPipeError
        self.blocked.set()
        self.goes_on.wait()
        return len(text)


def test_a_closed_stream_does_no_harm() -> None:
    lines = Lines(Jammed(fails=True), clock=iter([0.0, *[100.0] * 10**6]).__next__)
    lines.thread.join()  # it has given up
    lines("more")
    lines.close()


def test_nothing_is_printed_after_the_end_even_if_nobody_reads() -> None:
    stream, now = Jammed(fails=False), [0.0]
    lines = Lines(stream, clock=lambda: now[0])
    now[0] = 100.0
    stream.blocked.wait()
    lines("after")
    lines.close()
    stream.goes_on.set()
    lines.thread.join()
    assert stream.getvalue() == ""  # the one that was begun has no text here, and no other came


def test_a_call_that_blocks_is_reported(tmp_path: Path) -> None:
    """From the thread of the lines, while the main thread is in a call of C; and nothing on stdout but JSON."""
    script = (
        "import time, optdp.work as p, optdp.single.solve as s\n"
        "p.QUIET = p.GAP = p.BEAT = p.LOOK = 0.02\nhonest = s.repair\n"
        "def slow(*args):\n    time.sleep(1.0)\n    return honest(*args)\n"
        "s.repair = slow\nfrom optdp.cli.main import main\nmain()\n"
    )
    (tmp_path / "p.toml").write_text(
        'kind = "single-lte"\nepsilon = 1\n[population]\nkind = "binomial"\nn = 9\np = 0.5\n'
    )
    ended = struck(started(["solve", tmp_path / "p.toml", "--json"], script), "never")
    assert ended.code == 0
    assert json.loads(ended.out)["status"] == "optimal"
    assert "still: repairing and certifying" in ended.err
    assert ended.said == ""
    quiet = struck(started(["--quiet", "solve", tmp_path / "p.toml", "--json"], script), "never")
    assert (quiet.code, quiet.err) == (0, "")


def test_stderr_may_be_closed(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(
        'kind = "single-lte"\nepsilon = 1\n[population]\nkind = "binomial"\nn = 9\np = 0.5\n'
    )
    line = f'exec "{sys.executable}" -m optdp solve "{tmp_path / "p.toml"}" --json 2>&-'
    surroundings = {name: value for name, value in os.environ.items() if name != "OPTDP_QUIET"}
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, env=surroundings)
    assert json.loads(done.stdout)["status"] == "optimal"


def test_python_takes_a_function_or_true(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    problem = optdp.SingleLTE(optdp.Population.binomial(20, "0.5"), "0.5")
    optdp.solve(problem, progress=said.append)
    assert "formulating" in said
    assert "repairing and certifying" in said
    monkeypatch.setattr("optdp.work.QUIET", 0.0)
    monkeypatch.setattr("optdp.work.GAP", 0.0)
    monkeypatch.setattr("optdp.work.LOOK", 0.0)
    optdp.solve(optdp.SingleLTE(optdp.Population.binomial(3000, "0.5"), "0.02"), progress=True)
    assert "working: " in capsys.readouterr().err
    optdp.solve(problem)
    assert capsys.readouterr().err == ""
    rows = optdp.sweep(problem, {"epsilon": ["0.3", "0.4"]}, workers=0, progress=said.append)
    assert len(rows) == 2
    assert any(text.startswith("2 of 2 points") for text in said)
    list(optdp.compare(problem, ["highs"], progress=said.append))
    assert "highs: 1 of 1 backends" in said


def test_a_terminal_shows_what_is_done_and_how_long_it_has_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("optdp.cli.printing.time.monotonic", lambda: now[0])
    shown = printing._Shown()
    shown("sweep 2, party 1 [red]")
    console = Console(file=io.StringIO(), width=100)
    for seconds in (0.0, 41.0):
        now[0] = 100.0 + seconds
        console.print(shown)
    shown.estimate("all of it: about 40 s")
    console.print(shown)
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "sweep 2, party 1 [red]  0 s",
        "sweep 2, party 1 [red]  41 s",
        "sweep 2, party 1 [red]  41 s  all of it: about 40 s",
    ]


def test_what_cannot_end_is_refused_at_once_unless_there_is_a_deadline() -> None:
    said: list[str] = []
    with listening(said.append):
        announce(1.0, "this", "That fits.")
        announce(100.0, "this", "That fits.")
        with pytest.raises(ProblemError, match=r"this would take about 2\.0 h\. That fits\."):
            announce(2 * LONGEST, "this", "That fits.")
        with deadline(1000):
            announce(2 * LONGEST, "this", "That fits.")
    assert said == ["this: about 2 min", "this: about 2.0 h"]
    check_memory(1.0, "this", "That fits.")
    with pytest.raises(ProblemError, match=r"this would need about 1,000,000\.0 GB of memory\. Found .* That fits\."):
        check_memory(1e15, "this", "That fits.")
    assert [duration(seconds) for seconds in (1, 89, 90, 7200, 2e6)] == ["1 s", "89 s", "2 min", "2.0 h", "23 days"]


def test_the_logger_hears_estimates_and_steps(caplog: pytest.LogCaptureFixture) -> None:
    problem = optdp.SingleLTE(optdp.Population.binomial(10, "0.1"), epsilon="0.5")
    heard: list[str] = []
    with caplog.at_level("DEBUG", logger="optdp"):
        optdp.solve(problem, progress=heard.append)
        announce(5.0, "a long search", "Ask for less.")
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "optdp"]
    assert ("DEBUG", "formulating") in told
    assert [text for level, text in told if level == "DEBUG"] == heard
    assert told[-1] == ("INFO", "a long search: about 5 s")


def test_nobody_is_bothered_by_a_logger_without_a_handler() -> None:
    code = "import optdp; optdp.solve(optdp.SingleLTE(optdp.Population.binomial(5, '0.1'), epsilon=1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
