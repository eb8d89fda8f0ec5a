"""The artifact for other tools and languages. A target makes files from a `Subject`, and is one line in TARGETS."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from optdp.artifact import Opened
from optdp.errors import ProblemError
from optdp.export import sql, tables
from optdp.export.sampler import c_sampler, js_sampler, python_sampler
from optdp.export.subject import Subject, of_table, subjects
from optdp.files import atomic
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.shared_noise import SharedNoise
from optdp.single.format import Artifact


@dataclass(frozen=True)
class Target:
    """One form of an export."""

    make: Callable[[Subject], dict[str, bytes]]
    """The files by their names, the one that matters first."""
    suffix: str = ""
    """If a file may be named instead of a folder: what its name ends with."""
    test: str = ""
    """The command that tests what was written to a folder."""
    files: str = ""
    """The pattern of their names: the folder of an earlier export has no others."""
    mark: bytes = b"optdp"
    """What the beginning of the first file of an earlier export has."""


TARGETS = {
    "python": Target(python_sampler, test="python {0}/sampler.py --self-test", files=r"sampler\.py"),
    "c": Target(
        c_sampler,
        test="cc -std=c99 -O2 -DSAMPLER_MAIN -o {0}/sampler {0}/sampler.c && {0}/sampler --self-test",
        files=r"sampler(\.[ch])?",
    ),
    "js": Target(js_sampler, test="node {0}/sampler.mjs --self-test", files=r"sampler\.mjs"),
    "sql": Target(
        sql.sampler,
        test="{{ cat {0}/sampler.sql; echo 'SELECT * FROM optdp_self_test;'; }} | sqlite3 :memory:",
        files=r"sampler\.sql",
    ),
    "csv": Target(
        tables.csv, ".csv", files=r"matrix\.csv(\.contraction\.csv|\.meta\.json)?", mark=tables.HEADER.encode()
    ),
    "npz": Target(tables.npz, ".npz", files=r"matrix\.npz", mark=b"PK"),
    "parquet": Target(tables.parquet, ".parquet", files=r"matrix\.parquet(\.contraction\.parquet)?", mark=b"PAR1"),
}
"""The targets, in the order in which they are listed."""


def export(
    source: str | Path | Opened | Artifact | NoiseMatrix | SharedNoise, target: str, out: str | Path
) -> list[Path]:
    """Write `source` in the form named `target`, and say which files were written.

    `source` is a file that `solve` wrote or a plan's folder, whose claims are verified first, or a table about which
    nothing is claimed. `out` is a folder, made if it is not there; of tables it may be a file with their suffix.
    """
    found = [of_table(source)] if isinstance(source, Artifact | NoiseMatrix | SharedNoise) else subjects(source)
    return write(found, chosen(target), Path(out))


def chosen(target: str) -> Target:
    """The target of a name."""
    if target not in TARGETS:
        raise ProblemError(f"The export target must be one of {', '.join(TARGETS)}. Found {target!r}.")
    return TARGETS[target]


def write(found: Sequence[Subject], target: Target, out: Path) -> list[Path]:
    """Write every subject: all files are made before the first is written, and are there together or not at all.

    Several files get a folder of their own, which takes its place in one step. One file may go into any folder.
    """
    one_file = bool(target.suffix) and out.suffix == target.suffix and not out.is_dir()
    if one_file and len(found) > 1:
        raise ProblemError(f"The export of a plan must go to a folder. Found the file {atomic.name_of(out)}.")
    if one_file:
        made = target.make(found[0])
        contents = {
            out.with_name(name.replace(f"matrix{target.suffix}", out.name, 1)): data for name, data in made.items()
        }
        _write_beside(out, contents)
        return list(contents)
    names = {
        f"{subject.folder}/{name}".lstrip("/"): data for subject in found for name, data in target.make(subject).items()
    }
    if len(names) > 1 or not os.path.lexists(out):
        first = next(iter(names))
        atomic.check_folder(out, "an export of this form", lambda folder: _is_earlier(folder, target, first))
        atomic.write_folder(out, names)
    else:
        atomic.write_bytes(out / next(iter(names)), *names.values())
    return [out / name for name in names]


def _write_beside(out: Path, contents: dict[Path, bytes]) -> None:
    """A table as a file among others, with what belongs to it beside: the table is there only when all of that is."""
    place = Path(os.path.realpath(out))
    if len(contents) > 1 and place.is_file():
        try:
            place.unlink()  # an earlier table must not stand beside what describes the new one
        except OSError as error:
            raise ProblemError(f"cannot write {atomic.name_of(out)}: {error.strerror}.") from None
    for path, data in reversed(contents.items()):
        atomic.write_bytes(path, data)


def _is_earlier(folder: Path, target: Target, first: str) -> bool:
    """Whether a folder holds an earlier export of this form and nothing else."""
    if not atomic.holds_only(folder, re.compile(target.files)):
        return False
    try:
        with (folder / first).open("rb") as file:
            return target.mark in file.read(8192)
    except OSError:
        return False
