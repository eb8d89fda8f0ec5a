"""The samplers of one table in every language, given the same words: what they release and what they look at."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from optdp import AddedNoise, NoiseMatrix, SharedNoise
from optdp.export import export
from optdp.single.format import Artifact

HERE = Path(__file__).parent
WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2"]

Table = NoiseMatrix | SharedNoise | AddedNoise | Artifact
Draw = tuple[int, Mapping[int, int]]
"""An input and the words of its draw by their places."""


@dataclass(frozen=True)
class Drawn:
    """What came of a draw: None if nothing was released; and how many words and entries were looked at, if known."""

    released: int | None
    words: int = -1
    looks: int = -1


def need(program: str) -> str:
    """The path of a program, or the test is skipped."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def run(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=250, **options
    )


def load(path: Path, **names: Any) -> dict[str, Any]:
    """The names that a Python sampler defines."""
    space: dict[str, Any] = {"__name__": "sampler"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space | names


class Counting(tuple[int, ...]):
    """A tuple that counts what is looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        Counting.looks += 1
        return super().__getitem__(place)


def by_python(table: Table, draws: Sequence[Draw], folder: Path) -> list[Drawn]:
    (path,) = export(table, "python", folder)
    space = load(path)
    for name in ("ROW_START", "ROW_CUTS", "VALUES", "NOISE_CUTS", "NOISE_START"):
        space["draw"].__globals__[name] = Counting(space[name])
    found = []
    for x, words in draws:
        asked: list[int] = []
        Counting.looks = 0

        def word(place: int, words: Mapping[int, int] = words, asked: list[int] = asked) -> int:
            asked.append(place)
            return words[place]

        try:
            released = space["draw"](x, word)
        except (ValueError, space["Undecided"]):
            released = None
        assert len(set(asked)) == len(asked)
        found.append(Drawn(released, len(asked), Counting.looks))
    return found


def by_c(table: Table, draws: Sequence[Draw], folder: Path) -> list[Drawn]:
    compiler = need("gcc")
    export(table, "c", folder)
    program = folder / "driver"
    made = run(compiler, *WARNINGS, f"-I{folder}", "-o", program, HERE / "driver.c")
    assert made.returncode == 0, made.stderr
    return _read(run(program, input=_lines(draws)))


def by_js(table: Table, draws: Sequence[Draw], folder: Path) -> list[Drawn]:
    node = need("node")
    (path,) = export(table, "js", folder)
    text = path.read_text()
    assert text.count("  return table[place];") == 1
    counting = path.with_name("counting.mjs")
    counting.write_text(text.replace("  return table[place];", "  globalThis.looks++;\n  return table[place];"))
    return _read(run(node, HERE / "driver.mjs", counting, input=_lines(draws)))


def fresh_releases(table: NoiseMatrix | SharedNoise | AddedNoise, x: int, count: int, folder: Path) -> Counter[Any]:
    """What SQLite releases of `count` requests of input `x` with words of secure randomness."""
    (path,) = export(table, "sql", folder)
    base = sqlite3.connect(":memory:")
    base.executescript(path.read_text())
    base.executemany("INSERT INTO optdp_requests VALUES (?, ?)", [(i, x) for i in range(count)])
    words = ((i, place, secrets.randbits(62)) for i in range(count) for place in range(table.drawing.slots))
    base.executemany("INSERT INTO optdp_words VALUES (?, ?, ?)", words)
    drawn = Counter(released for (released,) in base.execute("SELECT released FROM optdp_released"))
    base.close()
    return drawn


def by_sqlite(table: Table, draws: Sequence[Draw], folder: Path) -> list[Drawn]:
    (path,) = export(table, "sql", folder)
    with sqlite3.connect(":memory:") as base:
        base.executescript(path.read_text())
        assert base.execute("SELECT * FROM optdp_self_test").fetchall() == []
        base.executemany("INSERT INTO optdp_requests VALUES (?, ?)", [(i, x) for i, (x, _) in enumerate(draws)])
        base.executemany("INSERT INTO optdp_words VALUES (?, ?, ?)", _word_lines(draws))
        found = base.execute("SELECT released FROM optdp_released ORDER BY id").fetchall()
    base.close()
    return [Drawn(released) for (released,) in found]


LANGUAGES: dict[str, Callable[[Table, Sequence[Draw], Path], list[Drawn]]] = {
    "python": by_python,
    "c": by_c,
    "js": by_js,
    "sqlite": by_sqlite,
}


def _word_lines(draws: Sequence[Draw]) -> Iterable[tuple[int, int, int]]:
    return ((i, place, word) for i, (_, words) in enumerate(draws) for place, word in words.items())


def _lines(draws: Sequence[Draw]) -> str:
    return "".join(f"{x} {len(w)} {' '.join(f'{p} {u}' for p, u in w.items())}\n" for x, w in draws)


def _read(done: subprocess.CompletedProcess[str]) -> list[Drawn]:
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return [Drawn(None if released == "-" else int(released), int(w), int(k)) for released, w, k in lines]
