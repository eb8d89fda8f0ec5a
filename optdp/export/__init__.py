"""The artifact for other tools and languages. A target makes files from a `Subject`, and is one line in TARGETS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from optdp.artifact import files
from optdp.artifact.format import Artifact
from optdp.errors import ProblemError
from optdp.export import c, js, python, sql, tables
from optdp.export.subject import Subject, of_table, subjects
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.shared_noise import SharedNoise


@dataclass(frozen=True)
class Target:
    """One form of an export."""

    make: Callable[[Subject], dict[str, bytes]]
    """The files by their names, the one that matters first: it is written last."""
    suffix: str = ""
    """If a file may be named instead of a folder: what its name ends with."""
    test: str = ""
    """The command that tests what was written to a folder."""


TARGETS = {
    "python": Target(python.sampler, test="python {0}/sampler.py --self-test"),
    "c": Target(
        c.sampler,
        test="cc -std=c99 -O2 -DSAMPLER_MAIN -o {0}/sampler {0}/sampler.c && {0}/sampler --self-test",
    ),
    "js": Target(js.sampler, test="node {0}/sampler.mjs --self-test"),
    "sql": Target(
        sql.sampler, test="{{ cat {0}/sampler.sql; echo 'SELECT * FROM optdp_self_test;'; }} | sqlite3 :memory:"
    ),
    "csv": Target(tables.csv, ".csv"),
    "npz": Target(tables.npz, ".npz", test="optdp verify {1}"),
    "parquet": Target(tables.parquet, ".parquet"),
}
"""The targets, in the order in which they are listed."""


def export(source: str | Path | Artifact | NoiseMatrix | SharedNoise, target: str, out: str | Path) -> list[Path]:
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
    """Write every subject: all files are made before the first is written."""
    one_file = bool(target.suffix) and out.suffix == target.suffix and not out.is_dir()
    if one_file and len(found) > 1:
        raise ProblemError(f"The export of a plan must go to a folder. Found the file {files.name_of(out)}.")
    contents: dict[Path, bytes] = {}
    for subject in found:
        for name, data in target.make(subject).items():
            beside = name.replace(f"matrix{target.suffix}", out.name, 1)
            contents[out.parent / beside if one_file else out / subject.folder / name] = data
    if not one_file:
        for folder in dict.fromkeys((out, *(path.parent for path in contents))):
            _make(folder)
    for path in reversed(contents):
        files.write_bytes(path, contents[path])
    return list(contents)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProblemError(
            f"--out must be a folder that can be made. Found {files.name_of(folder)}: {reason}."
        ) from None
