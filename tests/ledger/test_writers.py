"""Several writers of one ledger, and writers that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from optdp import Ledger
from optdp.ledger.lock import WAITING, alone
from tests.processes import started

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

WRITER = """
import sys
from optdp import Ledger, open_artifact
from optdp.artifact import OpenedMatrix
path, artifact, name, number = sys.argv[1:]
opened = open_artifact(artifact, OpenedMatrix)
print("ready", flush=True)
sys.stdin.readline()
for i in range(int(number)):
    Ledger.read(path).add(opened, about=f"{name} {i}")
"""
"""Adds so many entries as soon as it is told to."""

KILLED = """
import json, os, signal, sys
from pathlib import Path
from optdp import Ledger, open_artifact
from optdp.artifact import OpenedMatrix
from optdp.files import atomic
from optdp.ledger import book, lock
path, artifact = Path(sys.argv[1]), sys.argv[2]
opened = open_artifact(artifact, OpenedMatrix)
watched, found = {atomic.__file__, book.__file__, lock.__file__}, {"before": 0, "after": 0, "left": 0}

def child(line):
    seen = 0
    def trace(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename not in watched:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    ledger = Ledger.read(path)
    sys.settrace(trace)
    ledger.add(opened)
    os._exit(0)

start = path.read_bytes()
for line in range(1, 10_000):
    path.write_bytes(start)
    entries = len(Ledger.read(path).entries)
    if (pid := os.fork()) == 0:
        try:
            child(line)
        finally:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    now = len(Ledger.read(path).entries)  # whole, or this raises
    if status == 0:
        assert now == entries + 1
        break
    assert os.WIFSIGNALED(status) and now in (entries, entries + 1)
    found["after" if now > entries else "before"] += 1
    found["left"] += len(os.listdir(path.parent)) - 1
    Ledger.read(path).add(opened)  # nobody holds the lock any more, and what was left behind goes
    assert os.listdir(path.parent) == [path.name]
print(json.dumps(found))
"""
"""Kills an addition at every line of the modules that write."""


def test_two_writers_lose_nothing(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "ward.jsonl"
    Ledger.create(path, 100)
    script = [sys.executable, "-c", WRITER, str(path), str(artifacts / "tenth.json")]
    writers = [
        subprocess.Popen([*script, name, "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in ("one", "other")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("\n", timeout=120)
        assert writer.returncode == 0
    ledger = Ledger.read(path)
    assert [entry.number for entry in ledger.entries] == list(range(1, 41))
    for name in ("one", "other"):
        mine = [entry.about for entry in ledger.entries if entry.about.startswith(f"{name} ")]
        assert mine == [f"{name} {i}" for i in range(20)]
    assert float(ledger.spent) == pytest.approx(4, abs=1e-9)
    assert os.listdir(tmp_path) == [path.name]


def test_of_two_that_fit_alone_but_not_together_one_is_refused(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "ward.jsonl"
    Ledger.create(path, "2.05")
    script = [sys.executable, "-c", WRITER, str(path), str(artifacts / "tenth.json")]
    writers = [
        subprocess.Popen(
            [*script, name, "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name in ("one", "other")
    ]
    said = [writer.communicate("\n", timeout=120)[1] for writer in writers]
    assert any("above the total of 2.05" in text for text in said)
    assert len(Ledger.read(path).entries) == 20


def test_one_waits_until_the_other_is_done(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "ward.jsonl"
    Ledger.create(path, 100)
    with alone(path, lambda _: None):
        running = started(["ledger", "add", path, artifacts / "tenth.json"])
        assert running.stderr is not None
        assert any(WAITING in line for line in running.stderr)
        assert running.poll() is None
        assert Ledger.read(path).entries == ()  # to read needs no lock
    running.communicate(timeout=60)
    assert running.returncode == 0
    assert len(Ledger.read(path).entries) == 1


def test_killed_at_every_line(tmp_path: Path, artifacts: Path) -> None:
    """The ledger is as before or as after; the next one goes on, and nothing is left behind."""
    path = tmp_path / "ward.jsonl"
    Ledger.create(path, 1000)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(artifacts / "tenth.json")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["before"] > 30
    assert found["after"] > 5
    assert found["left"] > 5


def test_a_crash_while_a_ledger_is_begun_leaves_none(tmp_path: Path) -> None:
    """Its name is given last, and never to two."""
    Ledger.create(tmp_path / "a", 1)
    done = subprocess.run(
        [
            sys.executable, "-c",
            "import os, signal, sys; from optdp import Ledger\n"
            "os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
            "Ledger.create(sys.argv[1], 1)",
            str(tmp_path / "b"),
        ], check=False,
    )  # fmt: skip
    assert done.returncode == -9
    assert not (tmp_path / "b").exists()
    Ledger.create(tmp_path / "b", 1)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_ledger_that_cannot_be_written_is_left_alone(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "ward.jsonl"
    Ledger.create(path, 1)
    before = path.read_bytes()
    code = (
        "import os, sys; from optdp import Ledger\n"
        "def full(*_): raise OSError(28, 'No space left on device')\n"
        "os.fsync = full\n"
        "try: Ledger.read(sys.argv[1]).add(sys.argv[2])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(artifacts / "tenth.json")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("ProblemError cannot write")
    assert "no space left" in done.stdout
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
