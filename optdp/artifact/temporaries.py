"""Temporary names `.optdp-*.tmp`: held by a lock while their writer lives, and removed when it is found dead.

A writer that is killed cannot tidy up. The next one in the same folder does: whoever gets the lock of a temporary
knows that nobody writes to it. The lock is the kernel's (`flock`), so that it ends with the process, whatever ended it.
Where there are no such locks nothing is ever removed. Between the making of a name and its locking somebody may remove
it; therefore a writer looks again when it has the lock, and takes another name if the first is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any = import_module("fcntl") if os.name == "posix" else None
_NAME = re.compile(r"\.optdp-[0-9a-f]{16}\.(tmp|old)")
_IN_A_PLAN = re.compile(r"plan\.json|party-[0-9]+\.json")
_TRIES = 20


@contextlib.contextmanager
def file_beside(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file in the folder of `target`, locked and open for writing; removed at the end if it is still there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    for _ in range(_TRIES):
        path = _new_name(target)
        handle = os.open(path, flags, 0o666)
        try:
            with open(handle, "wb") as file:
                if _holds(handle, path):
                    yield path, file
                    return
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)
    raise OSError(errno.EAGAIN, "temporary files are removed as soon as they are made")


@contextlib.contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """A new folder in the folder of `target`, locked; at the end what optdp wrote into it is removed."""
    for _ in range(_TRIES):
        path = _new_name(target)
        path.mkdir()
        handle = None
        try:
            if fcntl is None:
                yield path
                return
            with contextlib.suppress(FileNotFoundError):
                handle = os.open(path, os.O_RDONLY)
            if handle is not None and _holds(handle, path):
                yield path
                return
        finally:
            if handle is not None:
                os.close(handle)
            remove_folder(path)
    raise OSError(errno.EAGAIN, "temporary folders are removed as soon as they are made")


def sweep(folder: Path) -> None:
    """Remove the temporaries of dead writers from a folder; what a living one holds stays, and so do other names."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for item in [Path(entry.path) for entry in found if _NAME.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_if_dead(item)


def is_ours(item: Path) -> bool:
    """Whether optdp wrote this file of a plan's folder, going by its name."""
    return _IN_A_PLAN.fullmatch(item.name) is not None and item.is_file()


def remove_folder(folder: Path) -> None:
    """Delete a plan or the beginning of one; a file that somebody else put there is kept, and its folder with it."""
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            for item in list(folder.iterdir()):
                if is_ours(item) or _NAME.fullmatch(item.name):
                    item.unlink()
            folder.rmdir()


def exchange(one: Path, other: Path) -> bool:
    """Let two names change places in one step; False where the system cannot. FileNotFoundError if one is missing."""
    if not sys.platform.startswith("linux"):
        return False
    swap, here = 2, -100  # RENAME_EXCHANGE, AT_FDCWD
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if renameat2(here, os.fsencode(one), here, os.fsencode(other), ctypes.c_uint(swap)) == 0:
        return True
    if ctypes.get_errno() == errno.ENOENT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return False


def _new_name(target: Path) -> Path:
    return target.parent / f".optdp-{secrets.token_hex(8)}.tmp"


def _holds(handle: int, path: Path) -> bool:
    """Lock a new temporary; False if somebody is removing it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody gets one, so that nobody removes anything
        return True
    return _is_at(handle, path)


def _is_at(handle: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    return False


def _remove_if_dead(item: Path) -> None:
    kind = os.lstat(item).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return
    if all(item.with_suffix(end).is_dir() for end in (".old", ".tmp")):
        return  # killed between two renames: the only copies of a plan, old and new, for whoever looks for them
    way = os.O_RDONLY if stat.S_ISDIR(kind) else os.O_RDWR  # some network file systems lock only what may be written
    handle = os.open(item, way | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(handle, item):
            return
        if stat.S_ISDIR(kind):
            remove_folder(item)
        else:
            os.unlink(item)
    finally:
        os.close(handle)
