"""One writer at a time: the others wait.

The lock is the kernel's and ends with the process, whatever ended it: nobody has to tidy up after a crash. It is on the
file itself. A writer replaces the file, so that whoever waited for the old one looks whether it is still there, and if
not waits for the new one. Windows cannot replace a file that is open; there the lock is on an empty file beside it.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from optdp.errors import ProblemError
from optdp.files.atomic import name_of

fcntl: Any = import_module("fcntl") if os.name == "posix" else None
msvcrt: Any = import_module("msvcrt") if os.name == "nt" else None
WAITING = "waiting for another writer of the ledger"
_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}


@contextmanager
def alone(path: str | Path, progress: Callable[[str], None]) -> Iterator[None]:
    """A context in which nobody else writes to this file, which exists."""
    place = os.path.realpath(path)
    lock = place if fcntl is not None else f"{place}.lock"
    flags = os.O_RDWR | (os.O_NONBLOCK if fcntl is not None else os.O_CREAT)
    while True:
        try:
            handle = os.open(lock, flags, 0o666)
        except (OSError, ValueError) as error:
            raise _refused(path, error) from None
        try:
            try:
                _take(handle, progress)
                still = os.path.samestat(os.fstat(handle), os.stat(lock))
            except FileNotFoundError:
                still = False
            except OSError as error:
                raise _refused(path, error) from None
            if still:
                yield
                return
        finally:
            os.close(handle)


def _take(handle: int, progress: Callable[[str], None]) -> None:
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(WAITING)
            fcntl.flock(handle, fcntl.LOCK_EX)
        return
    while True:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            return
        except OSError as error:
            if error.errno not in _BUSY:
                raise
        progress(WAITING)
        time.sleep(0.05)


def _refused(path: str | Path, error: OSError | ValueError) -> ProblemError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ProblemError(f"cannot write {name_of(path)}: {reason[:1].lower()}{reason[1:]}")
