"""A solver in a thread of its own: while it runs, Python answers no signal in the thread that called it."""

from __future__ import annotations

import _thread
import contextvars
import math
import threading
from collections.abc import Callable
from typing import TypeVar

import optdp.work as work

LOOK = 0.2
"""Seconds between two looks at the deadline, where no signal tells of it."""
GRACE = 2.0
"""Seconds that a solver has to end when it is told to, if it may not listen; then it is left to itself."""
Found = TypeVar("Found")


def aside(call: Callable[[], Found], cancel: Callable[[], object] | None = None) -> Found:
    """What `call()` returns or raises, unless a signal or the deadline ends the wait for it first.

    `cancel` tells the solver to end, which is then waited for. Without it the solver has a moment to end by itself;
    its thread ends with the process at the latest, and what it finds is lost. That costs a tenth of a millisecond. In
    threads that no signal reaches and that have no deadline the call is made as it is.
    """
    if threading.current_thread() is not threading.main_thread() and work.remaining() == math.inf:
        return call()
    done = threading.Event()
    found: list[Found] = []
    failed: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found.append(context.run(call))
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    with work.held():
        _thread.start_new_thread(run, ())
    try:
        while not done.wait(LOOK):
            work.check()
    except BaseException:
        with work.held():
            if cancel is None:
                done.wait(GRACE)
            else:
                cancel()
                done.wait()
        raise
    if failed:
        raise failed[0]
    return found[0]
