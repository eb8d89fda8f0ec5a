"""Commands of optdp, and what they answered."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent


def in_process(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """What `optdp` does with these arguments, in this process: a new one takes a second or two to begin.

    A signal from outside, say of a time limit on all tests, ends the tests: it is not taken for the command's answer.
    """
    from optdp import work
    from optdp.cli import main, printing

    listen, told = work.signals, []

    @contextlib.contextmanager
    def overheard(**given: Any) -> Iterator[None]:
        with listen(**given):
            try:
                yield
            finally:
                told.append(work.stopped())

    said = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    line = ["optdp", *map(str, arguments)]
    with (
        contextlib.chdir(cwd), contextlib.redirect_stdout(said[0]), contextlib.redirect_stderr(said[1]),
        patch.object(sys, "argv", line), patch.object(printing.out, "_width", 200),
        patch.object(printing.err, "_width", 1000), patch.object(work, "signals", overheard),
    ):  # fmt: skip
        try:
            main.main()
            code = 0
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    if any(told):
        raise KeyboardInterrupt("A signal came from outside.")
    out, err = (stream.buffer.getvalue().decode() for stream in said)  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(line, code, out, err)


class Done(NamedTuple):
    code: int
    out: str
    err: str

    def refused(self, words: str, code: int = 2) -> None:
        """One line on stderr that says the words, nothing on stdout, no traceback."""
        assert self.code == code, self
        assert words in self.err
        assert len(self.err.strip().splitlines()) == 1, self.err
        assert self.err.startswith("optdp: ")
        assert "Traceback" not in self.err
        assert self.out == ""
