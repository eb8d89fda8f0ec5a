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
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from optdp.errors import ArtifactError, ProblemError

fcntl: Any = import_module("fcntl") if os.name == "posix" else None
_NAME = re.compile(r"\.optdp-[0-9a-f]{16}\.(tmp|old)")
_WRITTEN = re.compile(r"plan\.json|parties\.toml|party-[0-9]+\.json|(sampler|client)(\.[a-z]+)?|matrix(\.[a-z]+)+")
"""What optdp writes into folders: plans and exports, and the program that a sampler in C is compiled to."""
_OF_A_PARTY = re.compile(r"party-[0-9]+")
"""The folder of a party in the export of a plan."""
_TRIES = 20


@contextlib.contextmanager
def file_beside(target: Path, mode: int = 0o666) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file in the folder of `target`, locked and open for writing; removed at the end if it is still there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    for _ in range(_TRIES):
        path = _new_name(target)
        handle = os.open(path, flags, mode)
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


def holds_only(folder: Path, names: re.Pattern[str]) -> bool:
    """Whether there is nothing in a folder but files of these names, also in the folders of parties."""
    return all(
        holds_only(item, names)
        if _OF_A_PARTY.fullmatch(item.name) and item.is_dir() and not item.is_symlink()
        else names.fullmatch(item.name) is not None and item.is_file()
        for item in list(folder.iterdir())
    )


def remove_folder(folder: Path) -> None:
    """Delete a plan, an export or the beginning of one; what is somebody else's is kept, and its folder with it."""
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            for item in list(folder.iterdir()):
                if _OF_A_PARTY.fullmatch(item.name):
                    remove_folder(item)
                elif (_WRITTEN.fullmatch(item.name) and item.is_file()) or _NAME.fullmatch(item.name):
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


MAX_BYTES = 64 * 1024 * 1024
"""The largest file that is read."""

LONG_BYTES, LONG_VALUES = 256 * 1024 * 1024, 25_000_000
"""The same for lists of millions of records."""


def name_of(path: str | Path) -> str:
    """The path for a message of one line."""
    name = str(path)
    return name if name.isprintable() else repr(name)


def read_bytes(path: str | Path, most: int | None = None, mark: bytes | None = None) -> bytes:
    """The bytes of a regular file of at most `most`, or MAX_BYTES; LONG_BYTES if it has the `mark` near its start."""
    most = MAX_BYTES if most is None else most
    try:
        _regular(os.stat(path), path, LONG_BYTES if mark else most)  # to open a device may already do something
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:
            data = file.read(4096)
            size = _regular(os.fstat(file.fileno()), path, LONG_BYTES if mark and mark in data else most)
            data += file.read(max(size + 1 - len(data), 0))
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise ArtifactError(f"cannot read {name_of(path)}: {_reason(error)}") from None
    if len(data) != size:
        raise ArtifactError(f"{name_of(path)} changed while it was being read. Try again.")
    return data


def write_bytes(path: str | Path, data: bytes, *, keep_mode: bool = False, mode: int = 0o666) -> None:
    """Write to a temporary name in the same folder, sync, rename: a crash leaves the old file, or none.

    What a crash left behind under a temporary name is removed by the next one that writes into the folder.
    With `keep_mode` whoever could read or write the old file can do so with the new one; otherwise `mode` says who can.
    """
    try:
        target, old = Path(os.path.realpath(path)), None
        with contextlib.suppress(FileNotFoundError):
            old = os.stat(target).st_mode
            if not stat.S_ISREG(old):
                raise OSError(errno.EINVAL, "it exists and is not a regular file")
        with file_beside(target, mode) as (temporary, file):
            file.write(data)
            file.flush()
            if keep_mode and old is not None and os.name != "nt":
                os.fchmod(file.fileno(), stat.S_IMODE(old))
            os.fsync(file.fileno())
            if os.name == "nt":  # where an open file cannot be renamed
                file.close()
            os.replace(temporary, target)
        _sync_folder(target.parent)
        sweep(target.parent)
    except (OSError, ValueError) as error:
        raise ProblemError(f"cannot write {name_of(path)}: {_reason(error)}") from None


def write_new(path: str | Path, data: bytes, *, mode: int = 0o666) -> None:
    """As `write_bytes`, under a name that nothing has: a hard link, unlike a rename, never replaces anything."""
    try:
        target = Path(os.path.abspath(path))
        with file_beside(target, mode) as (temporary, file):
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.link(temporary, target)
        _sync_folder(target.parent)
        sweep(target.parent)
    except (OSError, ValueError) as error:
        raise ProblemError(f"cannot write {name_of(path)}: {_reason(error)}") from None


def check_folder(folder: Path, what: str, is_earlier: Callable[[Path], bool]) -> None:
    """Refuse a folder that `write_folder` must not or cannot replace: one that is not empty, nor an earlier one.

    `what` names what is to be written, such as "a plan"; `is_earlier` looks into a folder that is not empty.
    """
    earlier = what.removeprefix("a ").removeprefix("an ")
    try:
        with contextlib.suppress(FileNotFoundError):
            folder.lstat()
            if not folder.is_dir() or folder.is_symlink():
                raise ProblemError(f"{what.capitalize()} is written to a folder, and {name_of(folder)} is not one.")
            if not _replaceable(folder, is_earlier):
                raise ProblemError(
                    f"--out must be a new or empty folder, or an earlier {earlier}. {name_of(folder)} holds other "
                    "files. Choose another name."
                )
            if folder.is_mount() or folder.samefile(Path.cwd()) or not os.access(folder, os.W_OK):
                raise ProblemError(
                    f"--out must be a folder that can be replaced. {name_of(folder)} is read-only, mounted or the "
                    "current folder."
                )
        parent = folder.absolute().parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise ProblemError(f"Cannot write to the folder {name_of(parent)}: it is missing or read-only.")
    except (OSError, ValueError) as error:
        raise ProblemError(f"--out must be a name that can be written: {error}.") from None


def _replaceable(folder: Path, is_earlier: Callable[[Path], bool]) -> bool:
    while True:
        seen = folder.stat().st_ino
        found = not any(folder.iterdir()) or is_earlier(folder)
        if found or folder.stat().st_ino == seen:  # otherwise another writer replaced it meanwhile: look again
            return found


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into a folder of a temporary name and let it take the place of `folder`, an earlier one or none.

    Names may begin with a folder, as `party-0/sampler.c` does.
    Where the system can exchange two names in one step, a crash leaves the old folder or the new one. Elsewhere two
    renames follow each other, and a crash between them leaves both beside the place, under temporary names.
    """
    target = folder.absolute()
    try:
        with folder_beside(target) as temporary:
            for name, data in contents.items():
                (temporary / name).parent.mkdir(exist_ok=True)
                write_bytes(temporary / name, data)
            _sync_folder(temporary)
            while not _placed(temporary, target):
                pass
        _sync_folder(target.parent)
        sweep(target.parent)
    except OSError as error:
        raise ProblemError(f"cannot write {name_of(folder)}: {error.strerror or error}") from None


def _placed(temporary: Path, target: Path) -> bool:
    """Give a folder its name; False if another process was faster, and it must be tried again."""
    try:
        if not exchange(temporary, target):
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
            remove_folder(old)


def _regular(found: os.stat_result, path: str | Path, most: int) -> int:
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, socket or device"
        raise ArtifactError(f"{name_of(path)} is {kind}, not a regular file. Give the artifact's file itself.")
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


def check_apart(save: Path, others: Mapping[str, Path]) -> None:
    """Refuse to write over what is read."""
    for name, other in others.items():
        try:
            same = os.path.exists(save) and os.path.exists(other) and os.path.samefile(save, other)
        except OSError as error:
            raise ProblemError(f"--out must be a name that can be written: {error.strerror}.") from None
        if same:
            raise ProblemError(f"--out would overwrite {name}. Choose another name.")


def check_writable(path: Path) -> None:
    """Refuse before a long solve what could not be written after it."""
    folder = path.parent
    try:
        if path.is_dir():
            raise ProblemError(f"--out must be a file. {path} is a folder.")
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise ProblemError(f"Cannot write to the folder {folder}: it is missing or read-only.")
    except OSError as error:
        raise ProblemError(f"--out must be a name that can be written: {error.strerror}.") from None
