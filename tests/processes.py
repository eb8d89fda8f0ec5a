"""optdp in processes of their own, which are sent signals when they say something."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

EAGER = "import optdp.work as p; p.QUIET = p.GAP = 0.0; p.LOOK = 0.01; from optdp.cli.main import main; main()"
"""The command line, which tells all that it does at once."""


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """What stderr says besides progress."""
        return "".join(line for line in self.err.splitlines(True) if not re.match(r"(working|still|estimate): ", line))


def started(
    args: Sequence[object], script: str = EAGER, ignored: Sequence[signal.Signals] = ()
) -> subprocess.Popen[str]:
    """The command in a session of its own; signals are as a terminal has them, but for those ignored."""

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    surroundings = {name: value for name, value in os.environ.items() if name != "OPTDP_QUIET"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=surroundings, preexec_fn=prepare,
    )  # fmt: skip


def struck(running: subprocess.Popen[str], when: str, *blows: signal.Signals) -> Ended:
    """Send the signals, one after the other, each when a line of stderr says `when` (once more)."""
    assert running.stderr is not None
    assert running.stdout is not None
    printed: list[str] = []
    reader = threading.Thread(target=lambda: printed.append(running.stdout.read()))  # type: ignore[union-attr]
    reader.start()
    said, left = [], list(blows)
    for line in running.stderr:
        said.append(line)
        if left and re.search(when, line):
            running.send_signal(left.pop(0))
    reader.join()
    running.stdout.close()
    running.stderr.close()
    return Ended(running.wait(), "".join(printed), "".join(said))


def runs(pid: int) -> bool:
    """Whether a process runs; it may take a moment to be gone."""
    for _ in range(600):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.1)
    return True


def left_behind(session: int) -> list[str]:
    """The processes of a session that do not end with its first."""
    for _ in range(600):
        if not (found := _running(session)):
            break
        time.sleep(0.1)
    return found


def _running(session: int) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = place.read_text().rpartition(")")
        except OSError:
            continue
        fields = tail.split()
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(head)
    return found
