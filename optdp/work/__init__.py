"""How long work may take: estimates before it begins, deadlines, and signals that end it.

Long work says beforehand how long it takes (`announce`), and what cannot end is refused at once. While it runs it may
be ended from outside: by Ctrl-C, by SIGTERM, or by a deadline. All three raise a KeyboardInterrupt, which every search
answers with the best that it has so far. It is told once: what follows rounds, certifies and writes that best. A second
signal ends the process at once.

What is being done is told to a `Progress`. On stderr it becomes plain lines, for logs, where nothing can be drawn over:
nothing in the first seconds; then the latest text when it has changed, but not too often; and a sign of life while one
call takes long. A thread of its own prints them. A notebook shows the same below the cell.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, TextIO

from optdp.errors import ProblemError
from optdp.work.notebook import Shown, shower

Progress = Callable[[str], None]  # is told what is being done


def silent(_: str) -> None:
    """Tells nobody."""


LOG = logging.getLogger("optdp")  # hears estimates at INFO and what is being done at DEBUG
LOG.addHandler(logging.NullHandler())

LONGEST = 3600.0  # seconds that work may take without a deadline; what is estimated to take longer is refused
WORTH_SAYING = 3.0  # seconds from which on an estimate is told


class Stopped(KeyboardInterrupt):
    """Work is ended from outside; `exit_code` is what the command line returns."""

    exit_code = 130
    why = "interrupted"


class Terminated(Stopped):
    """SIGTERM: somebody wants this process to end."""

    exit_code = 143
    why = "ended by SIGTERM"


class DeadlineReached(Stopped):
    """The time that the user gave is over: the best so far is what was asked for."""

    exit_code = 0

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(seconds)
        self.why = f"the deadline of {seconds:g} s was reached"
        self.advice = f"{self.why} before there was an answer. Allow more time, or ask for less."


# ------------------------------------------------------------------------------------------------------------- signals


class _Signals:
    """What has been signalled to this process, while `signals()` listens."""

    told: Stopped | None = None  # the first signal that came
    pending: Stopped | None = None  # one that came while signals were held, and is raised after that
    holds = 0
    certifying = 0


_state = _Signals()
_KINDS: dict[int, type[Stopped]] = {signal.SIGINT: Stopped, signal.SIGTERM: Terminated}


@contextmanager
def signals(at_once: Callable[[], object] = lambda: None) -> Iterator[None]:
    """A context in which SIGTERM is answered as Ctrl-C is: the first ends the work, a second one the process.

    `at_once` is called before a second signal ends the process. A signal that is ignored on entry stays ignored: shells
    start jobs in the background so, and whoever did it wants it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def answer(number: int, _: FrameType | None) -> None:
        if _state.told is not None:
            at_once()
            os._exit(128 + number)
        _state.told = _KINDS[number]()
        _raise(_state.told)

    before: dict[int, Any] = {}
    for number in _KINDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, answer)
    _state.told = _state.pending = None
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        _state.told = _state.pending = None


def _raise(stop: Stopped) -> None:
    """End what is running, or whatever runs after what may not be ended."""
    if _state.holds:
        _state.pending = stop
    else:
        raise stop


class _Held:
    def __init__(self, later: bool) -> None:
        self.later = later

    def __enter__(self) -> None:
        _state.holds += 1

    def __exit__(self, *_: object) -> None:
        _state.holds -= 1
        if not _state.holds and _state.pending is not None:
            stop, _state.pending = _state.pending, None
            if self.later:
                raise stop


def held(later: bool = True) -> _Held:
    """A context that neither a first signal nor the deadline cuts short; they are raised when it is left.

    For the few lines in which an exception would leave something behind; with `later=False`, when nothing is raised
    afterwards, for showing and writing what a search has found.
    """
    return _Held(later)


@contextmanager
def certifying() -> Iterator[None]:
    """A context that rounds and certifies what a search has found: without it all of that would be lost.

    A first signal does not cut it short, nor does the deadline until as much time has passed again.
    """
    _state.certifying += 1
    try:
        with held(later=False):
            clock = _clock.get()
            if clock is not None and clock.rung:
                clock.again()
            yield
    finally:
        _state.certifying -= 1


def stopped() -> Stopped | None:
    """What ended the work, if anything did: a signal, or else the deadline."""
    clock = _clock.get()
    if _state.told is not None:
        return _state.told
    return DeadlineReached(clock.seconds) if clock is not None and clock.rung else None


# ----------------------------------------------------------------------------------------------------------- deadlines


class Clock:
    """When work must end, and whether it was told so."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        self.rung = self.timed = self.left = False

    @classmethod
    def of(cls, seconds: float | None) -> Clock:
        """A deadline as a user gives it; None is none."""
        if seconds is not None and not 0 < seconds < math.inf:
            raise ProblemError(f"A deadline must be a number of seconds above 0. Found {seconds}.")
        return cls(math.inf if seconds is None else seconds)

    def ring_after(self, seconds: float) -> None:
        if self.timed:
            signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 1e-3), 1e8))

    def again(self) -> None:
        """Ring once more, after as much time."""
        self.ring_after(self.seconds)

    def exit_code(self, interrupted: bool) -> int:
        """What a command returns that has shown what it has, be it the best so far."""
        if _state.told is not None:
            return _state.told.exit_code
        return Stopped.exit_code if interrupted and not self.rung else 0


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def deadline(seconds: float | Clock | None) -> Iterator[Clock]:
    """A context whose work ends after so many seconds, with the best so far: `with deadline(10): solve(problem)`.

    In the main thread a timer ends it wherever it is. In other threads it ends at the next `check`. Of one deadline
    within another the earlier one counts. Whoever answers the end brings the clock, as it may ring at once.
    """
    clock, outer = seconds if isinstance(seconds, Clock) else Clock.of(seconds), _clock.get()
    if clock.seconds == math.inf or (outer is not None and not outer.rung and outer.end <= clock.end):
        yield clock
        return
    token = _clock.set(clock)
    timed = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    before = signal.signal(signal.SIGALRM, _ring) if timed else None
    try:
        clock.timed = timed
        clock.again()
        yield clock
    finally:
        clock.left = True  # before any call, so that no ring of this clock raises here or is taken for the outer one's
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        _clock.reset(token)
        if timed and outer is not None and not outer.rung:
            outer.ring_after(outer.end - time.monotonic())


def _ring(_: int, __: FrameType | None) -> None:
    clock = _clock.get()
    if clock is None or clock.left:
        return
    if clock.rung:
        if _state.certifying:
            raise DeadlineReached(clock.seconds)
        return
    clock.rung = True
    if _state.certifying:
        clock.again()
    if _state.told is None:  # else the best so far is on its way
        _raise(DeadlineReached(clock.seconds))


def remaining() -> float:
    """Seconds until the deadline; infinite without one, or once it has been told."""
    clock = _clock.get()
    return math.inf if clock is None or clock.rung else max(clock.end - time.monotonic(), 0.0)


def check() -> None:
    """End here if the deadline is over. It is told once: what follows rounds and certifies the best so far."""
    clock = _clock.get()
    if clock is not None and not clock.rung and not _state.holds and time.monotonic() >= clock.end:
        clock.rung = True
        raise DeadlineReached(clock.seconds)


# ----------------------------------------------------------------------------------------------------------- estimates

_say: ContextVar[Progress | None] = ContextVar("say", default=None)


@contextmanager
def listening(progress: Progress) -> Iterator[Progress]:
    """A context in which `say` tells `progress`."""
    token = _say.set(progress)
    try:
        yield progress
    finally:
        _say.reset(token)


def say(text: str) -> None:
    """Tell whoever listens what is being done."""
    LOG.debug(text)
    progress = _say.get()
    if progress is not None:
        progress(text)


def announce(seconds: float, what: str, fits: str, progress: Progress | None = None) -> None:
    """Say before it begins that `what` takes about so many seconds; refuse what would take hours.

    `fits` says what can be solved instead. With a deadline everything is begun, as it will end.
    """
    if seconds > LONGEST and _clock.get() is None:
        raise ProblemError(f"{what} would take about {duration(seconds)}. {fits}")
    expect(seconds, what, progress)


def expect(seconds: float, what: str, progress: Progress | None = None) -> None:
    """Say before it begins that `what` takes about so many seconds, if that is worth saying."""
    if seconds > WORTH_SAYING:
        listener = progress or _say.get() or (lambda _: None)
        text = f"{what}: about {duration(seconds)}"
        LOG.info(text)
        getattr(listener, "estimate", listener)(text)


def check_memory(size: float, what: str, fits: str) -> None:
    """Refuse before it begins what needs so many bytes, if this machine has less."""
    there = memory()
    if size > there:
        raise ProblemError(
            f"{what} would need about {size / 1e9:,.1f} GB of memory. Found {there / 1e9:,.1f} GB. {fits}"
        )


def memory() -> float:
    """The memory of this machine in bytes, or what this process may have of it."""
    try:
        there = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return math.inf
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return min(there, float(file.read()))  # "max" is no number
    except (OSError, ValueError):
        return there


def duration(seconds: float) -> str:
    """A time in words: 12 s, 3 min, 2.5 h, 40 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:,.0f} days"


# --------------------------------------------------------------------------------------------------------------- lines

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
    """A `Progress` that prints to stderr until the context is left; in a notebook it shows itself below the cell."""
    display = shower()
    if display is None and sys.stderr is None:
        yield lambda _: None
        return
    printer = Lines(sys.stderr) if display is None else Shown(display)
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
