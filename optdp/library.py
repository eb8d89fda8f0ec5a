"""The problems that come with optdp, by name: `sick-leave`, `paper-a/example-1`.

They are installed with the package; in a clone they are its folder `problems/`. A name is the last parts of a path
there, without `.toml`, as many as are needed to tell it from others. The lists in `sets` are no problems.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from optdp.errors import ProblemError

FOLDER = next(
    filter(Path.is_dir, (home / "problems" for home in Path(__file__).resolve().parents[:2])), Path("problems")
)
SETS = "sets"
COMMON = "use-cases"
"""The folder whose problems are listed by their own name alone."""


def problems() -> dict[str, Path]:
    """The files, by the names under which they are listed."""
    files = [path for path in FOLDER.glob("*/*.toml") if path.parent.name != SETS]
    return {_listed(path): path for path in sorted(files, key=lambda path: (path.parent.name != COMMON, path))}


def sets() -> dict[str, Path]:
    """The files of the problem sets, and of their checksums."""
    return {path.stem: path for path in sorted((FOLDER / SETS).glob("*.toml"))}


def place(given: str | os.PathLike[str]) -> Path:
    """The file that is meant by the path of a file or by the name of a problem; a file wins."""
    text = os.fspath(given)
    if os.path.isfile(text):
        return Path(text)
    asked = tuple(text.split("/"))
    found = [path for path in problems().values() if _parts(path)[-len(asked) :] == asked]
    if len(found) == 1:
        return found[0]
    if found:
        raise ProblemError(f"Several problems are called {text}. Say which: {', '.join(map(_listed, found))}.")
    if os.path.lexists(text):
        return Path(text)  # whoever reads it says what is wrong with it
    raise ProblemError(f"No file and no problem is called {_short(text)}. {_advice(text)}")


def _parts(path: Path) -> tuple[str, str]:
    return path.parent.name, path.stem


def _listed(path: Path) -> str:
    folder, stem = _parts(path)
    return stem if folder == COMMON else f"{folder}/{stem}"


def _short(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text[:200]) or "''"


def _advice(text: str) -> str:
    names = problems()
    by_stem = {path.stem: name for name, path in names.items()}
    asked = text.removesuffix(".toml")
    near = get_close_matches(asked, names) + get_close_matches(asked.rpartition("/")[2], by_stem)
    meant = list(dict.fromkeys(by_stem.get(name, name) for name in near))[:3]
    more = "`optdp problems` lists the names, and `optdp init` writes a file to start from."
    if not meant:
        return more
    return f"Did you mean {' or '.join(filter(None, (', '.join(meant[:-1]), meant[-1])))}? {more}"
