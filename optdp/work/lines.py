"""What is being done and how far it is, as plain lines on stderr: for logs, where nothing can be drawn over.

Nothing in the first seconds; then the latest text when it has changed, but not too often; and a sign of life while one
call takes long. A thread of its own prints them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from optdp.work import LOG, Progress, listening

QUIET, GAP, BEAT = 3.0, 5.0, 15.0
"""Seconds before the first line, between two lines at least, and between two lines at most."""
LOOK = 0.25  # seconds between two looks at what is to be printed


def elapsed(seconds: float) -> str:
    """How long it has taken, so that it can be seen to go on."""
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


class Pace:
    """Which line is due at which time, without any clock of its own."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.printed = begin + QUIET - GAP  # when the last line was due
        self.text, self.shown = "working", ""
        self.estimates: list[str] = []

    def due(self, now: float) -> list[str]:
        """The lines to print now."""
        if now < self.begin + QUIET or now < self.printed + GAP:
            return []
        lines, self.estimates = [f"estimate: {text}" for text in self.estimates], []
        passed = elapsed(now - self.begin)
        if self.text != self.shown:
            lines.append(f"working: {self.text}; {passed}")
        elif now >= self.printed + BEAT:
            lines.append(f"still: {self.text}; {passed}")
        if lines:
            self.printed, self.shown = now, self.text
        return lines


class Lines:
    """Prints to a stream; called with a text it is a `Progress`. Nothing is printed after `close`."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.clock, self.pace = stream, clock, Pace(clock())
        self.ended = threading.Event()
        self.printing = threading.Lock()
        self.thread = threading.Thread(target=self._watch, name="optdp-progress", daemon=True)
        self.thread.start()

    def __call__(self, text: str) -> None:
        self.pace.text = " ".join(text.split())

    def estimate(self, text: str) -> None:
        """Kept until it has been printed, whatever is said after it."""
        self.pace.estimates.append(" ".join(text.split()))
        self(text)

    def close(self) -> None:
        """No line is begun after this; one that nobody reads is not waited for."""
        self.ended.set()
        if self.printing.acquire(timeout=1.0):
            self.printing.release()

    def _watch(self) -> None:
        while not self.ended.wait(LOOK):
            with self.printing:
                try:
                    for line in () if self.ended.is_set() else self.pace.due(self.clock()):
                        self.stream.write(line + "\n")
                        self.stream.flush()
                except (OSError, ValueError):  # closed: nobody listens
                    return


@contextmanager
def lines() -> Iterator[Progress]:
    """A `Progress` that prints to stderr until the context is left."""
    if sys.stderr is None:
        yield lambda _: None
        return
    printer = Lines(sys.stderr)
    try:
        yield printer
    finally:
        printer.close()


@contextmanager
def reporting(progress: Progress | bool) -> Iterator[Progress]:
    """What a caller of Python may give: a function that takes a text, True for lines on stderr, or False."""
    if progress is True:
        with lines() as say, listening(say):
            yield Logged(say)
    elif progress is False:
        yield Logged(lambda _: None)
    else:
        with listening(progress):
            yield progress if isinstance(progress, Logged) else Logged(progress)


class Logged:
    """A `Progress` that the logger `optdp` hears as well."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.estimate = progress, getattr(progress, "estimate", progress)

    def __call__(self, text: str) -> None:
        LOG.debug(text)
        self.progress(text)
