"""Deadlines and signals: the best so far, written whole, by the exit code that is promised; nothing is left behind."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import optdp
from optdp import Groups, ProblemError, SolverError
from optdp.comparison.results import read
from optdp.order.mechanism import sensitivity
from optdp.work import (
    Clock,
    DeadlineReached,
    Stopped,
    Terminated,
    certifying,
    check,
    deadline,
    held,
    remaining,
    signals,
    stopped,
)
from tests.processes import EAGER, Ended, left_behind, started, struck

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc who is left")

SINGLE = 'kind = "single-lte"\nepsilon = "0.002"\n[population]\nkind = "binomial"\nn = 20000\np = "0.5"\n'
CORE = """kind = "single-lte"
epsilon = "0.3"
[population]
kind = "iid"
n = 400
pmf = ["0.35", "0.3", "0.2", "0.1", "0.05"]
"""
FALLBACK = """kind = "single-lte"
epsilon = "0.3"
fallback_epsilon = 2
[population]
kind = "binomial"
n = 150
p = "0.5"
"""
PARTY = '[[parties]]\nkind = "binomial"\nn = {n}\np = "0.4"\n'
PLAN = 'kind = "multi-lte"\nepsilon = "0.2"\n' + "".join(PARTY.format(n=n) for n in (60, 50, 40, 30))
POINTS = """kind = "order-shuffle"
alpha = 1
budget = 100000
[groups]
points = "points.csv"
columns = ["x", "y"]
radius = 30
"""
METRIC = """kind = "metric-shuffle"
mechanism = "hybrid"
n = 3000
k = 1000
epsilon = "0.1"
delta = "1e-6"
max_distance = 900
local_epsilon = 1
"""
AMPLIFIED = """kind = "amplification"
eps0 = 2
delta = 1e-6
n = 5000000
randomizer = { kind = "k-rr", k = 10 }
"""

LATE = "optdp: the deadline of 0.3 s was reached before there was an answer. Allow more time, or ask for less.\n"
ENDLESS = (
    "import time, optdp.shuffle.metric.solve as m\n"
    "def endless(problem, progress):\n    while True:\n        progress('looking')\n        time.sleep(0.01)\n"
    "m.calibrate = endless\n" + EAGER.replace("; ", "\n")
)
"""The command line, which looks for the noise of a metric shuffle forever."""
KINDS = {
    "single": (SINGLE, "inputs, round"),
    "core": (CORE, "inputs that matter"),
    "fallback": (FALLBACK, "iteration 1"),
    "plan": (PLAN, "sweep 1 of"),
    "order": (POINTS, "descent, round 50"),
}
"""Problems that take minutes, and what they say once there is something to keep."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "metric": METRIC,
        "amplified": AMPLIFIED,
        **{name: text for name, (text, _) in KINDS.items()},
    }.items():
        (tmp_path / f"{name}.toml").write_text(text)
    rows = [f"{(i * 7919) % 1000},{(i * 104729) % 1009}" for i in range(1500)]
    (tmp_path / "points.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    return tmp_path


def is_whole(ended: Ended, folder: Path, before: set[str], name: str) -> None:
    """What was written verifies, and there is nothing else."""
    assert {place.name for place in folder.iterdir()} - before == {name}
    checked = started(["verify", folder / name])
    assert struck(checked, "never").code == 0
    assert "the best so far" in ended.out


def names(folder: Path) -> set[str]:
    return {place.name for place in folder.iterdir()}


@pytest.mark.parametrize(
    ("kind", "blow"),
    [*((kind, signal.SIGTERM) for kind in KINDS), *((kind, signal.SIGINT) for kind in ("single", "core", "order"))],
)
def test_a_signal_leaves_the_best_so_far(kind: str, blow: signal.Signals, folder: Path) -> None:
    code, why = {signal.SIGTERM: (143, "ended by SIGTERM"), signal.SIGINT: (130, "interrupted")}[blow]
    before, name = names(folder), "plan" if kind == "plan" else "found.json"
    running = started(["solve", folder / f"{kind}.toml", "--out", folder / name])
    ended = struck(running, KINDS[kind][1], blow)
    assert ended.code == code, ended
    assert ended.said == ""
    assert f"{why}: the best so far" in ended.out
    is_whole(ended, folder, before, name)
    assert left_behind(running.pid) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_deadline_leaves_the_best_so_far(kind: str, folder: Path) -> None:
    """Its timer rings when there is something to keep: for that the test need not know how fast the machine is."""
    before, name = names(folder), "plan" if kind == "plan" else "found.json"
    running = started(["solve", folder / f"{kind}.toml", "--out", folder / name, "--deadline", 90000, "--json"])
    ended = struck(running, KINDS[kind][1], signal.SIGALRM)
    assert ended.code == 0, ended
    assert ended.said == ""
    figures = json.loads(ended.out)
    assert figures["status"] == "interrupted"
    assert "the deadline of 90000 s was reached: the best so far" in figures["note"]
    is_whole(ended, folder, before, name)


@pytest.mark.parametrize(("args", "code", "said"), [
    (["--deadline", "0.3"], 3, LATE),
    (["TERM"], 143, "optdp: ended by SIGTERM; nothing was written\n"),
    (["INT"], 130, "optdp: interrupted; nothing was written\n"),
])  # fmt: skip
def test_where_there_is_no_best_so_far_one_line_says_so(args: list[str], code: int, said: str, folder: Path) -> None:
    blows = [signal.Signals[f"SIG{args[0]}"]] if len(args) == 1 else []
    running = started(["solve", folder / "metric.toml", *(args if not blows else [])], ENDLESS)
    ended = struck(running, "looking", *blows)
    assert (ended.code, ended.said, ended.out) == (code, said, "")
    data, out = folder / "points.csv", folder / "estimate.json"
    line = ["run", folder / "metric.toml", "-d", data, "-c", "x", "-o", out, *(args if not blows else [])]
    ended = struck(started(line, ENDLESS), "looking", *blows)
    assert (ended.code, ended.said, ended.out) == (code, said, "")
    assert not out.exists()


def test_a_second_signal_ends_at_once(folder: Path) -> None:
    """The first comes while there is something to certify, which never ends here."""
    stuck = (
        "import time, optdp.single.solve as s\nfrom optdp.work import say\n"
        "def stuck(*_):\n    while True:\n        time.sleep(0.1)\n        say(f'stuck {time.time()}')\n"
        "s.repair = stuck\n" + EAGER.replace("; ", "\n")
    )
    (folder / "small.toml").write_text(SINGLE.replace("20000", "30").replace("0.002", "0.3"))
    out = folder / "found.json"
    running = started(["solve", folder / "small.toml", "--out", out], stuck)
    ended = struck(running, "stuck", signal.SIGTERM, signal.SIGTERM)
    assert (ended.code, ended.said, ended.out) == (143, "", "")
    assert not out.exists()


def test_a_signal_that_the_parent_ignores_stays_ignored(folder: Path) -> None:
    """As of jobs that a shell starts in the background: SIGINT does nothing, SIGTERM works."""
    out = folder / "found.json"
    running = started(["solve", folder / "order.toml", "--out", out], ignored=[signal.SIGINT])
    ended = struck(running, "descent, round", signal.SIGINT, signal.SIGINT, signal.SIGTERM)
    assert ended.code == 143
    assert "ended by SIGTERM: the best so far" in ended.out


@pytest.mark.parametrize("blow", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_compare_ends_its_children(blow: signal.Signals, folder: Path) -> None:
    running = started(["compare", folder / "core.toml", "--backends", "highs,highs-ipm"])
    ended = struck(running, "highs: 1 of 2", blow)
    assert left_behind(running.pid) == []
    if blow == signal.SIGKILL:
        return
    why = "interrupted" if blow == signal.SIGINT else "ended by SIGTERM"
    assert (ended.code, ended.said) == (128 + blow, f"optdp: {why}; nothing was written\n")


def test_compare_keeps_the_rows_that_are_ready(folder: Path) -> None:
    (folder / "small.toml").write_text(SINGLE.replace("20000", "30").replace("0.002", "0.3"))
    kept = folder / "rows.jsonl"
    running = started(["compare", folder / "small.toml", "--backends", "highs,highs-ipm", "--json", "--out", kept])
    ended = struck(running, "highs-ipm: 2 of 2", signal.SIGTERM)
    assert ended.code == 143
    found = json.loads(ended.out)
    assert [row["backend"] for row in found["rows"]] == ["highs"]
    assert found["rows"][0]["status"] == "optimal"
    assert [row.summary() for row in read(kept).rows] == found["rows"]
    assert read(kept).heads[0].status == "interrupted"
    assert (found["status"], found["note"]) == ("interrupted", "ended by SIGTERM: not all were tried")
    problem = optdp.SingleLTE(optdp.Population.iid(400, ["0.35", "0.3", "0.2", "0.1", "0.05"]), "0.3")
    rows = list(optdp.compare(problem, ["highs", "highs-ipm"], deadline=1.0))
    assert [(row.backend, row.status) for row in rows] == [("highs", "interrupted")]
    assert "deadline of 1 s" in rows[0].note


def test_a_curve_keeps_its_points(folder: Path) -> None:
    """Its third point never ends."""
    swept = '[sweep]\nover = "n"\nvalues = [1000, 2000, 3000, 10000000000]\n'
    (folder / "curve.toml").write_text(AMPLIFIED + swept)
    stuck = (
        "import time, optdp.sweeps.curve as c\nfrom optdp.work import say\nfound = c._Figures.__call__\n"
        "def figure(self, task):\n    while task['problem']['n'] == 3000:\n"
        "        say('stuck')\n        time.sleep(0.01)\n"
        "    return found(self, task)\n"
        "c._Figures.__call__ = figure\n" + EAGER.replace("; ", "\n")
    )
    running = started(["curve", folder / "curve.toml", "--out", folder / "c.csv"], stuck)
    ended = struck(running, "stuck", signal.SIGTERM)
    assert ended.code == 143
    assert "ended by SIGTERM: the points so far" in ended.out
    lines = (folder / "c.csv").read_text().splitlines()
    assert len(lines) == 5
    assert all(float(line.split(",")[1]) > 0 for line in lines[1:3])
    running = started(["curve", folder / "curve.toml", "--out", folder / "d.csv", "--deadline", 0.001])
    ended = struck(running, "never")
    assert (ended.code, ended.out) == (3, "")
    assert not (folder / "d.csv").exists()


def test_a_sweep_with_a_deadline_goes_on(folder: Path) -> None:
    """Again and again with the same command, until the table is there."""
    (folder / "small.toml").write_text(SINGLE.replace("20000", "60").replace("0.002", "0.3"))
    out = folder / "s.csv"
    line = ["sweep", folder / "small.toml", "-g", "epsilon=0.1:1:40", "-o", out, "--workers", 0]
    codes = []
    while not codes or codes[-1] == 3:
        assert not out.exists()
        seconds = 0.05 * 2 ** len(codes)
        ended = struck(started([*line, "--deadline", seconds]), "never")
        codes.append(ended.code)
        if ended.code == 3:
            assert re.fullmatch(
                r"optdp: the deadline of \S+ s was reached(;.* points are done;| before).*\n", ended.said
            )
    assert codes[-1] == 0
    assert len(codes) > 1
    assert len(out.read_text().splitlines()) == 41


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sweep_that_is_terminated_goes_on(workers: int, folder: Path) -> None:
    if workers:
        pytest.importorskip("distributed")
    (folder / "small.toml").write_text(SINGLE.replace("20000", "80").replace("0.002", "0.3"))
    out = folder / "s.csv"
    line = ["sweep", folder / "small.toml", "-g", "epsilon=0.1:1:30", "-o", out, "--workers", workers]
    running = started(line)
    ended = struck(running, "[3-9] of 30 points", signal.SIGTERM)
    assert ended.code == 143
    told = re.fullmatch(r"optdp: ended by SIGTERM; (\d+) of 30 points are done; .* continues from there\n", ended.said)
    assert told is not None, ended
    assert left_behind(running.pid) == []
    assert not out.exists()
    ended = struck(started([*line[:-1], 0]), "never")
    assert ended.code == 0
    assert f"30 points, {told[1]} of them from before, 0 failed" in ended.out


def test_python_has_deadlines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = optdp.SingleLTE(optdp.Population.binomial(20000, "0.5"), "0.002")
    optdp.solve(optdp.SingleLTE(optdp.Population.binomial(20, "0.5"), "0.5"))  # so that no module is loaded below
    found = optdp.solve(problem, deadline=0.2)
    assert found.status == "interrupted"
    assert found.note.startswith("the deadline of 0.2 s was reached: the best so far")
    assert found.certificate.epsilon is not None
    assert found.certificate.epsilon <= problem.epsilon
    metric = optdp.MetricShuffle(
        mechanism="hybrid", n=3000, k=1000, epsilon="0.1", delta="1e-6", max_distance=900, local_epsilon=1
    )
    monkeypatch.setattr("optdp.shuffle.metric.solve.calibrate", lambda *_: forever())
    with pytest.raises(SolverError, match=r"the deadline of 0\.1 s was reached"):
        optdp.solve(metric, deadline=0.1)
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ProblemError, match="A deadline must be a number of seconds above 0"):
            optdp.solve(problem, deadline=wrong)
    grid = {"epsilon": ["0.002", "0.003"]}
    with pytest.raises(SolverError, match="0 of 2 points are done"):
        optdp.sweep(problem, grid, workers=0, deadline=0.3)


def test_deadlines_hold_in_other_threads() -> None:
    """No timer rings there: HiGHS is asked to end, and searches look at the clock."""
    found: list[Any] = []

    def solve() -> None:
        problem = optdp.SingleLTE(optdp.Population.iid(400, ["0.35", "0.3", "0.2", "0.1", "0.05"]), "0.3")
        found.append(optdp.solve(problem, deadline=1.0))

    thread = threading.Thread(target=solve)
    thread.start()
    thread.join()
    assert found[0].status == "interrupted"


def forever() -> None:
    while True:
        check()


def test_of_two_deadlines_the_earlier_counts() -> None:
    with deadline(1000) as outer:
        inner = deadline(0.01)
        with pytest.raises(DeadlineReached), inner:
            forever()
        assert not outer.rung
        assert 0 < remaining() <= 1000
    with pytest.raises(DeadlineReached), deadline(0.01), deadline(1000):
        forever()
    assert remaining() == float("inf")


def test_what_is_held_is_told_later() -> None:
    done = []

    def hold() -> None:
        with held():
            signal.raise_signal(signal.SIGTERM)
            done.append("whole")
        done.append("never")

    with pytest.raises(Terminated), signals():
        hold()
    assert done == ["whole"]
    with signals():
        with held(later=False):
            signal.raise_signal(signal.SIGINT)
        assert isinstance(stopped(), Stopped)
    assert stopped() is None
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_deadline_that_rings_at_once_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is tried: what comes of it is an error like any other, unless the deadline is the caller's."""

    def rings(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGALRM)

    problem = optdp.SingleLTE(optdp.Population.binomial(20, "0.5"), "0.5")
    monkeypatch.setattr("optdp.programs.backends.solving", rings)
    monkeypatch.setattr("optdp.sweeps.run.run", rings)
    for call in (optdp.solve, lambda problem, **more: optdp.sweep(problem, {"epsilon": ["1"]}, workers=0, **more)):
        with pytest.raises(SolverError, match=r"the deadline of 1000 s was reached before there was an answer"):
            call(problem, deadline=1000)
        with pytest.raises(DeadlineReached), deadline(900):
            call(problem, deadline=1000)


def test_what_is_certified_may_take_as_long_again() -> None:
    """The deadline alone does not end it; a second one does."""
    rang = []

    def work(clock: Clock) -> None:
        with certifying():
            clock.seconds = 0.05  # the first ring comes when all is ready for it, the second one by the timer
            signal.raise_signal(signal.SIGALRM)
            rang.append(stopped())
            forever()

    with deadline(1000) as clock, pytest.raises(DeadlineReached):
        work(clock)
    assert [type(stop) for stop in rang] == [DeadlineReached]


def test_an_order_that_is_stopped_at_once_is_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = Groups.of([list({i, (i * 7) % 500, (i * 13) % 500}) for i in range(500)], 500)

    def measured(*args: Any) -> int:
        if stopped() is None:
            signal.raise_signal(signal.SIGTERM)
        return sensitivity(*args)

    monkeypatch.setattr("optdp.order.solve.sensitivity", measured)
    with signals():
        found = optdp.solve(optdp.OrderShuffle(groups, 1, budget=1000.0))
    assert found.status == "interrupted"
    assert found.note.startswith("ended by SIGTERM: the best so far")
    assert found.order.tolist() == list(range(500))
    assert found.sensitivity == sensitivity(groups, found.order)


def test_a_late_ring_of_an_inner_deadline_is_not_the_outer_one_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner deadline's timer may ring at any moment until it is disarmed, also while its context is being left."""
    disarm = signal.setitimer

    def rings_once_more(which: int, seconds: float) -> object:
        if seconds == 0:
            signal.raise_signal(signal.SIGALRM)
        return disarm(which, seconds)

    with deadline(1000) as outer:
        monkeypatch.setattr(signal, "setitimer", rings_once_more)
        with deadline(500) as inner:
            pass
        monkeypatch.undo()
        assert not inner.rung
        assert not outer.rung
        check()


def test_a_signal_to_the_tests_is_no_answer_of_a_command(
    command: Any, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """It ends the tests, as Ctrl-C does; a command that is ended by its own is one that is ended."""

    def struck(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("optdp.loading.load", struck)
    with pytest.raises(KeyboardInterrupt, match="from outside"):
        command("solve", folder / "metric.toml")
    monkeypatch.setattr("optdp.loading.load", ended)
    assert command("solve", folder / "metric.toml").code == 130


def test_a_large_table_that_is_stopped_early_is_no_matter_of_geometric_noise() -> None:
    """Clamped geometric noise is not written out at this size, so that there is no best so far."""
    watcher = optdp.Observer(between=("0.08", "0.12"))
    asked = optdp.SingleLTE(optdp.Population.binomial(1500, "0.1"), "0.3", tail="none", observer=watcher)
    with pytest.raises(SolverError, match="deadline"):
        optdp.solve(asked, deadline=1)
