"""Python in a process of its own that may do anything: hang, crash, print, eat memory, or be ended with whoever asked.

What it says comes back as JSON, one value a line, over a pipe that nothing else in the process knows: its standard
output and standard error are read as a log, of which the end is kept. Its standard input tells it that whoever asked
is gone: then it ends, with all processes that it began.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from optdp.work import held

LOG = 4096
"""How much is kept of what it prints."""
LONGEST = 1 << 24
"""The longest line that is taken for an answer."""
PATIENCE = 5.0
"""Seconds that a process may take to end after its last word, or to be told of as ended."""
_PR_SET_PDEATHSIG = 1


@dataclass
class Spoken:
    """A process that speaks; see `spoken`."""

    process: subprocess.Popen[bytes]
    lines: queue.Queue[bytes | None] = field(default_factory=queue.Queue)
    log: bytearray = field(default_factory=bytearray)
    memory: float | None = None
    """The most memory that it was seen to have, in MB."""
    readers: list[threading.Thread] = field(default_factory=list)
    gone: bool = False
    """Whether all that it began has been ended too."""

    def answer(self, seconds: float | None) -> Any:
        """The next thing that it says; None if it ended without, TimeoutError if it says nothing for so long."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = 0.2 if end is None else min(0.2, max(end - time.monotonic(), 0.0))
            try:
                line = self.lines.get(timeout=left)
            except queue.Empty:
                self._look()
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError from None
                continue
            try:
                return None if line is None else json.loads(line)
            except ValueError:
                return None

    def ended(self) -> int:
        """Its exit code, negative for a signal; it has closed its pipe."""
        self._wait(PATIENCE)
        return self._end()

    def last_words(self) -> str:
        """The last line that it printed."""
        text = bytes(self.log).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)

    def listen(self) -> None:
        """Read what it says and prints from now on."""
        for target, pipe, place in (
            (_read_lines, self.process.stdout, self.lines), (_read_log, self.process.stderr, self.log),
        ):  # fmt: skip
            reader = threading.Thread(target=target, args=(pipe, place), daemon=True)
            reader.start()
            self.readers.append(reader)

    def tell(self, request: object) -> None:
        """The one line that it waits for."""
        assert self.process.stdin is not None
        data, sent = json.dumps(request).encode() + b"\n", 0
        with suppress(OSError):  # it has ended already, which is found when it should answer
            while sent < len(data):
                sent += self.process.stdin.write(data[sent:]) or 0

    def close(self) -> None:
        """End it and all that it began."""
        self._end()
        for reader, pipe in zip(self.readers, (self.process.stdout, self.process.stderr), strict=True):
            reader.join(PATIENCE)
            if not reader.is_alive() and pipe is not None:
                pipe.close()
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()

    def _look(self) -> None:
        if (found := peak_memory(self.process.pid)) is not None:
            self.memory = max(found, self.memory or 0.0)

    def _end(self) -> int:
        """End it and all that it began."""
        with held():
            self._look()
            if self.gone:
                pass
            elif os.name == "posix":
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
            self.gone = True
            return self.process.wait()


@contextmanager
def spoken(module: str, request: object) -> Iterator[Spoken]:
    """`python -m module` with this request; it and all that it began have ended when the context is left."""
    found: Spoken | None = None
    try:
        with held():  # a signal is raised when this is left, and then there is something to end
            process = subprocess.Popen(
                [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                process_group=0 if os.name == "posix" else None, bufsize=0,
            )  # fmt: skip
            found = Spoken(process)
            found.listen()
        found.tell(request)
        yield found
    finally:
        if found is not None:
            found.close()


def _read_lines(pipe: BinaryIO, lines: queue.Queue[bytes | None]) -> None:
    rest = b""
    with suppress(OSError, ValueError):
        while (part := pipe.read(65536)) and len(rest) < LONGEST:
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                lines.put(line)
    lines.put(None)


def _read_log(pipe: BinaryIO, log: bytearray) -> None:
    with suppress(OSError, ValueError):
        while part := pipe.read(65536):
            log += part
            del log[:-LOG]


# ----------------------------------------------------------------------------------------------- in the process itself


def speaking(answer: Callable[[Any, Callable[[object], None]], None]) -> None:
    """The whole of such a process: `answer(request, say)`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asked decides
    heard, told = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    _end_with_parent()
    with open(heard, "rb", buffering=0) as given:
        text = b""
        while not text.endswith(b"\n"):
            part = given.read(65536)
            if not part:
                return
            text += part
        threading.Thread(target=_watch, args=(heard,), daemon=True).start()
        writing = threading.Lock()

        def say(value: object) -> None:
            data = json.dumps(value).encode() + b"\n"
            with writing:
                while data:
                    data = data[os.write(told, data) :]

        answer(json.loads(text), say)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # what solvers do when an interpreter ends is no part of what they did


def _end_with_parent() -> None:
    """Linux ends it with its parent even in the middle of a call that holds the interpreter's lock."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(heard: int) -> None:
    with suppress(OSError):
        while os.read(heard, 65536):
            pass
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def peak_memory(process: int | str = "self") -> float | None:
    """The most memory that a process had so far, in MB, where the system tells.

    Not what `wait4` tells of it, which begins with the memory of whoever started it.
    """
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e3
    return None


def limit_memory(size: float) -> None:
    """No more than so many bytes of address space, for this process and those that it begins."""
    if os.name == "posix":
        resource: Any = import_module("resource")
        with suppress(ValueError, OSError):  # a system without such limits, or a lower one already
            resource.setrlimit(resource.RLIMIT_AS, (int(size), int(size)))
