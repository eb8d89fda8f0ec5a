"""Files that are there whole or not at all, and reading that nothing but a regular file can hold up."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from optdp.artifact import temporaries
from optdp.errors import ArtifactError, ProblemError

MAX_BYTES = 64 * 1024 * 1024
"""The largest file that is read, and the most that a `.npz` may say it unpacks to."""

LONG_BYTES, LONG_VALUES = 256 * 1024 * 1024, 25_000_000
"""The same for lists of millions of records."""


def name_of(path: str | Path) -> str:
    """The path for a message of one line."""
    name = str(path)
    return name if name.isprintable() else repr(name)


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The bytes of a regular file of at most `most`, or MAX_BYTES."""
    most = MAX_BYTES if most is None else most
    try:
        _regular(os.stat(path), path, most)  # before opening: to open a device may already do something
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:
            size = _regular(os.fstat(file.fileno()), path, most)
            data = file.read(size + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise ArtifactError(f"cannot read {name_of(path)}: {_reason(error)}") from None
    if len(data) != size:
        raise ArtifactError(f"A file must hold still while it is read. Found {name_of(path)} changing. Read it again.")
    return data


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write to a temporary name in the same folder, sync, rename: a crash leaves the old file, or none.

    What a crash left behind under a temporary name is removed by the next one that writes into the folder.
    """
    try:
        target = Path(os.path.realpath(path))
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(target).st_mode):
                raise OSError(errno.EINVAL, "it exists and is not a regular file")
        with temporaries.file_beside(target) as (temporary, file):
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":  # where an open file cannot be renamed
                file.close()
            os.replace(temporary, target)
        _sync_folder(target.parent)
        temporaries.sweep(target.parent)
    except (OSError, ValueError) as error:
        raise ProblemError(f"cannot write {name_of(path)}: {_reason(error)}") from None


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into a folder of a temporary name and let it take the place of `folder`, an earlier one or none.

    Where the system can exchange two names in one step, a crash leaves the old folder or the new one. Elsewhere two
    renames follow each other, and a crash between them leaves both beside the place, under temporary names.
    """
    target = folder.absolute()
    try:
        with temporaries.folder_beside(target) as temporary:
            for name, data in contents.items():
                write_bytes(temporary / name, data)
            while not _placed(temporary, target):
                pass
        _sync_folder(target.parent)
        temporaries.sweep(target.parent)
    except OSError as error:
        raise ProblemError(f"cannot write {name_of(folder)}: {error.strerror or error}") from None


def _placed(temporary: Path, target: Path) -> bool:
    """Give a folder its name; False if another process was faster, and it must be tried again."""
    try:
        if not temporaries.exchange(temporary, target):
            _in_two_steps(temporary, target)
    except FileNotFoundError:
        try:
            os.rename(temporary, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
    return True


def _in_two_steps(temporary: Path, target: Path) -> None:
    old = temporary.with_suffix(".old")
    try:
        os.rename(target, old)
        os.rename(temporary, target)
    except BaseException:  # also when interrupted from the keyboard
        if old.exists() and not target.exists():
            os.rename(old, target)
        raise
    finally:
        if target.exists():
            temporaries.remove_folder(old)


def _regular(found: os.stat_result, path: str | Path, most: int) -> int:
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, socket or device"
        raise ArtifactError(f"An artifact must be a regular file. Found {name_of(path)}: {kind}. Give the file itself.")
    if found.st_size > most:
        raise ArtifactError(
            f"An artifact may have {most:,} bytes. Found {found.st_size:,} in {name_of(path)}. "
            "Give the file that optdp wrote."
        )
    return found.st_size


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the file system can do that."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _reason(error: OSError | ValueError) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]
