"""With the same words every language releases the same, and looks at as much whatever the input and the release."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp import AddedNoise, NoiseMatrix, ProblemError, SharedNoise
from optdp.export import export
from optdp.export.layout import FAR, RELEASED, STOPPED, layout, vectors
from optdp.mechanism.cuts import END
from tests.export.languages import LANGUAGES, Draw, load, need, run
from tests.export.matrices import matrices, table
from tests.export.shares import shares

AnyTable = NoiseMatrix | SharedNoise | AddedNoise
BINARIES = Path("/usr/lib/postgresql")


def added(bits: int, q: Fraction = Fraction(7, 10)) -> AddedNoise:
    """Noise for all inputs, with holes in its row, over so many bits."""
    weights = [(e, (abs(e) * 1319 + 3) << (bits - 16)) for e in (-6, -5, -2, 1, 4, 6)]
    rest = (1 << bits) - sum(weight for _, weight in weights)
    return AddedNoise(40, q, 6, 1 << bits, tuple(sorted([*weights, (0, rest)])))


def tables() -> dict[str, AnyTable]:
    """Single tables, parties' shares of noise and noise that is added, by names that folders may have."""
    found: dict[str, AnyTable] = {**matrices()}
    found |= {f"share {name}": share for name, share in shares().items()}
    found |= {f"added {bits}": added(bits) for bits in (16, 124)}
    return {name.replace(" ", "-"): made for name, made in found.items()}


def known(matrix: AnyTable, plain: int = 240) -> tuple[list[Draw], list[int | None]]:
    """Draws, a few hundred of them on rare paths, and what the library makes of them."""
    found = vectors(matrix.drawing, "agreement", plain, rare=250)
    assert {vector.outcome for vector in found} >= ({RELEASED} if matrix.q is None else {RELEASED, STOPPED})
    return [(v.x, v.words) for v in found], [v.released if v.outcome == RELEASED else None for v in found]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_words_give_the_same_releases(language: str, tmp_path: Path) -> None:
    count = 0
    for name, matrix in tables().items():
        draws, expected = known(matrix)
        found = [drawn.released for drawn in LANGUAGES[language](matrix, draws, tmp_path / name)]
        assert found == expected, name
        count += len(draws)
    assert count > 6000


@pytest.fixture(scope="module")
def server() -> Iterator[list[object]]:
    """A database server of its own: the start of a psql command that reaches it."""
    places = sorted(BINARIES.glob("[1-9][0-9]/bin"))
    if not places or not shutil.which("psql"):
        pytest.skip("PostgreSQL is not installed")
    user: list[object] = []
    if os.geteuid() == 0:
        if not shutil.which("runuser") or run("id", "postgres").returncode:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        user = ["runuser", "-u", "postgres", "--"]
    home = tempfile.mkdtemp(prefix="optdp-pg-", dir="/tmp")
    try:
        if user:
            shutil.chown(home, "postgres")
        made = run(*user, places[-1] / "initdb", "-D", f"{home}/d", "-U", "optdp", "-A", "trust", "-N", cwd="/")
        if made.returncode:
            pytest.skip(f"initdb fails here: {made.stderr.strip()[-200:]}")
        options = f"-c listen_addresses='' -c unix_socket_directories={home} -c fsync=off -c jit=off"
        control = [*user, places[-1] / "pg_ctl", "-D", f"{home}/d"]
        started = run(*control, "-w", "-o", options, "-l", f"{home}/log", "start", cwd="/")
        assert started.returncode == 0, started.stdout
        try:
            yield ["psql", "-h", home, "-U", "optdp", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qAt"]
        finally:
            run(*control, "-m", "immediate", "stop", cwd="/")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_postgresql_too(server: list[object], tmp_path: Path) -> None:
    for name, matrix in tables().items():
        draws, expected = known(matrix, 60)
        (path,) = export(matrix, "sql", tmp_path / name)
        loaded = run(*server, "-f", path)  # over the last one: it replaces what it made, and keeps the user's tables
        assert loaded.returncode == 0, loaded.stderr
        requests = "".join(f"{i}\t{x}\n" for i, (x, _) in enumerate(draws))
        words = "".join(f"{i}\t{p}\t{w}\n" for i, (_, given) in enumerate(draws) for p, w in given.items())
        script = (
            f"DELETE FROM optdp_requests;\nDELETE FROM optdp_words;\nCOPY optdp_requests FROM stdin;\n{requests}\\.\n"
            f"COPY optdp_words FROM stdin;\n{words}\\.\nSELECT problem FROM optdp_self_test;\n"
            "SELECT COALESCE(released::text, '-') FROM optdp_released ORDER BY id;\n"
        )
        done = run(*server, input=script)
        assert done.returncode == 0, done.stderr
        assert [None if line == "-" else int(line) for line in done.stdout.splitlines()] == expected, name
    # The words that the file's head says how to make: of 62 bits, all different, all bits used.
    text = path.read_text()
    start = text.index("INSERT INTO optdp_words (id, place, word)\n")
    recipe = text[start : text.index(" u;\n", start) + 4].replace("\n--", "\n")
    asked = "SELECT word FROM optdp_words;\nSELECT COUNT(released) FROM optdp_released;\n"
    done = run(*server, input=f"DELETE FROM optdp_words;\n{recipe}{asked}")
    assert done.returncode == 0, done.stderr
    *drawn, released = map(int, done.stdout.split())
    allowed = sum(0 <= x <= matrix.last for x, _ in draws)
    assert (len(drawn), released) == (len(draws) * matrix.drawing.slots, allowed)
    assert len(set(drawn)) == len(drawn)
    assert all(0 <= word < END for word in drawn)
    for bit in range(62):
        assert 0.4 < sum(word >> bit & 1 for word in drawn) / len(drawn) < 0.6, bit


def test_postgresql_looks_up_the_words_of_each_request_by_their_index(server: list[object], tmp_path: Path) -> None:
    """One pass over the requests, and no pass over the words, of tables that nobody has analysed: work is linear."""
    for name in ("digits", "longer", "share-small", "share-long"):
        matrix = tables()[name]
        (path,) = export(matrix, "sql", tmp_path / name)
        script = (
            "DROP VIEW IF EXISTS optdp_self_test, optdp_test_released, optdp_released;\n"
            "DROP VIEW IF EXISTS optdp_test_parts, optdp_parts, optdp_test_numbers, optdp_numbers;\n"
            f"DROP TABLE IF EXISTS optdp_requests, optdp_words;\n{path.read_text()}"
            f"INSERT INTO optdp_requests SELECT i, {matrix.inputs[0]} + i % {len(matrix.rows)}\n"
            "  FROM generate_series(1, 20000) i;\n"
            "INSERT INTO optdp_words SELECT i, p, i * 200000000000000::bigint + p\n"
            f"  FROM generate_series(1, 20000) i, generate_series(0, {matrix.drawing.slots - 1}) p;\n"
        )
        loaded = run(*server, input=script)
        assert loaded.returncode == 0, loaded.stderr
        for asked in ("", "WHERE id = 7"):
            plan = run(*server, "-c", f"EXPLAIN (COSTS OFF) SELECT id, released FROM optdp_released {asked}").stdout
            assert plan.count(" on optdp_requests ") == 1, plan
            assert plan.count(" on optdp_words ") > matrix.drawing.slots
            assert "Seq Scan on optdp_words " not in plan, plan
            assert ("Seq Scan on optdp_requests " in plan) == (not asked), plan
        done = run(*server, "-c", "SELECT COUNT(*), COUNT(released), COUNT(DISTINCT released) > 3 FROM optdp_released")
        assert done.stdout == "20000|20000|t\n"


@pytest.mark.parametrize("language", ["python", "c", "js"])
def test_words_and_looks_depend_on_neither_input_nor_release(language: str, tmp_path: Path) -> None:
    chance = random.Random(5)
    for name, matrix in tables().items():
        drawing = matrix.drawing
        lengths = {len(cuts.places) for cuts in (*drawing.rows, *drawing.moves)}
        assert len(lengths) > 1 or isinstance(matrix, AddedNoise) or not matrix.rows, (
            "rows of different lengths are the point"
        )
        first, final = drawing.inputs if drawing.outside == "error" else (0, drawing.last)
        draws: list[Draw] = []
        for x in range(first, final + 1):
            for _ in range(400 // (final - first + 1) + 4):
                words = [_any_word(chance) for _ in range(drawing.slots)]
                if not any(_is_rare(matrix, place, word) for place, word in enumerate(words)):
                    draws.append((x, dict(enumerate(words))))
        found = LANGUAGES[language](matrix, draws, tmp_path / name)
        assert all(drawn.released is not None for drawn in found)
        assert len({drawn.released for drawn in found}) > 3
        counted = {(drawn.words, drawn.looks) for drawn in found}
        assert len(counted) == 1, (name, counted)
        ((words_each, looks),) = counted
        assert words_each == drawing.slots
        assert looks >= layout(drawing).row_steps
        assert layout(drawing).rare >= 40


def _any_word(chance: random.Random) -> int:
    """Also words that chance would hardly bring: near both ends, where noise is small or very large."""
    return chance.choice((chance.getrandbits(62), chance.getrandbits(20), END - 1 - chance.getrandbits(50)))


def _is_rare(matrix: AnyTable, place: int, word: int) -> bool:
    """Whether a first word is equal to a cut's, or lies beyond the last cut of the last digit: chances below 2^-40."""
    drawing = matrix.drawing
    parts = [] if drawing.noise is None else [drawing.noise.sign, *drawing.noise.digits]
    if place < len(parts):
        beyond = place == len(parts) - 1 and word >= parts[place].first[-1]
        return beyond or word in parts[place].first
    return any(cuts.words > 1 and word in cuts.first for cuts in (*drawing.rows, *drawing.moves))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_a_small_denominator(language: str, tmp_path: Path) -> None:
    """2^16 cells, the lowest or the highest word of each: the counts are the weights of the table."""
    for name, end in (("bare", 0), ("tail", (1 << 46) - 1)):
        matrix = matrices()[name]
        slots = matrix.drawing.slots
        x = matrix.inputs[0] + 1
        low, high = matrix.outputs
        assert matrix.denominator == 1 << 16
        assert low <= x <= high
        inside = dict.fromkeys(range(slots - 1), 0)  # noise 0
        draws = [(x, {**inside, slots - 1: (cell << 46) + end}) for cell in range(1 << 16)]
        found = Counter(drawn.released for drawn in LANGUAGES[language](matrix, draws, tmp_path / name))
        assert found == dict(matrix.rows[1])


@pytest.mark.parametrize("language", ["python", "c", "js"])
def test_releases_beyond_all_bounds_are_the_bound(language: str, tmp_path: Path) -> None:
    """So many words of the largest size that the noise leaves what a browser can count: all say the same."""
    for matrix in (table((0, 2), (0, 8), 16, q := 1 - Fraction(1, 1 << 38)), added(16, q)):
        _beyond(matrix, language, tmp_path / type(matrix).__name__)


def _beyond(matrix: NoiseMatrix | AddedNoise, language: str, folder: Path) -> None:
    noise = matrix.drawing.noise
    assert noise is not None
    slots, limbs = matrix.drawing.slots, matrix.drawing.limbs
    restarts = FAR // noise.reach + 2
    assert restarts < 500
    words = dict.fromkeys(range(slots * limbs + limbs * (restarts - 1)), END - 1)
    words[len(words)] = 0
    draws: list[Draw] = [(2, words), (2, words | {0: 0})]
    assert matrix.drawing.draw(2, words.__getitem__) < -FAR
    assert [drawn.released for drawn in LANGUAGES[language](matrix, draws, folder)] == [-FAR, FAR]


# ---------------------------------------------------------------------- words and inputs that are none


TOO_LARGE = (1 << 62, (1 << 62) + 1, 1 << 63, (1 << 64) - 1)


def spoilt(matrix: AnyTable) -> list[Draw]:
    """Draws that release something, each with one of the words that it asks for made too large, early and late ones."""
    draws: list[Draw] = []
    for found in vectors(matrix.drawing, "spoilt", plain=4, rare=60):
        if found.outcome == RELEASED:
            places = {min(found.words), max(found.words)}
            draws += [
                (found.x, {**found.words, place: word})
                for place in places
                for word in TOO_LARGE
                if place in _asked(matrix, found.x, {**found.words, place: word})
            ]
    assert any(max(words) >= matrix.drawing.slots for _, words in draws) or matrix.drawing.limbs == 1
    return draws


def _asked(matrix: AnyTable, x: int, words: Mapping[int, int]) -> set[int]:
    """The places that every sampler looks at: the first of every slot, and those that ties lead to."""
    asked = set(range(matrix.drawing.slots))

    def word(place: int) -> int:
        asked.add(place)
        return words[place] % (1 << 62)

    with contextlib.suppress(KeyError):
        matrix.drawing.draw(x, word)
    return asked


@pytest.mark.parametrize("language", ["python", "c", "js"])
def test_a_word_of_more_than_62_bits_is_refused(language: str, tmp_path: Path) -> None:
    for name, matrix in tables().items():
        draws = spoilt(matrix)
        assert len(draws) > 50
        found = LANGUAGES[language](matrix, draws, tmp_path / name)
        assert [drawn.released for drawn in found] == [None] * len(draws), name


def test_the_library_and_sql_refuse_such_words_too(tmp_path: Path) -> None:
    for name, matrix in tables().items():
        for word in (*TOO_LARGE, -1, True):
            with pytest.raises(ProblemError, match="62 bits"):
                matrix.drawing.draw(matrix.last, lambda _, word=word: word)  # type: ignore[misc]
        (path,) = export(matrix, "sql", tmp_path / name)
        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            base.executescript(path.read_text())
            for word in (1 << 62, -1, 0.5, "x", (1 << 63) - 1):
                with pytest.raises(sqlite3.IntegrityError):
                    base.execute("INSERT INTO optdp_words VALUES (1, 0, ?)", (word,))


@pytest.mark.parametrize("word", [True, False, -1, 0.5, 3.0, "3", None, np.True_])
def test_words_are_whole_numbers(word: Any, tmp_path: Path) -> None:
    matrix = matrices()["clamped tail"]
    (path,) = export(matrix, "python", tmp_path / "python")
    with pytest.raises(ValueError, match="62 bits"):
        load(path)["draw"](3, lambda _: word)
    if word is not None and not isinstance(word, str | np.bool_):
        (path,) = export(matrix, "js", tmp_path / "js")
        half = str(word).lower()
        script = (
            f"import {{ draw }} from {json.dumps(path.as_uri())};\n"
            f"for (const word of [[{half}, 1], [1, {half}], [1], [1, 1, 1]]) {{\n"
            "  try { draw(3, () => word); console.log('released'); } catch (error) { console.log(error.name); }\n}\n"
        )
        (tmp_path / "try.mjs").write_text(script)
        said = run(need("node"), tmp_path / "try.mjs").stdout.split()
        whole = half == "3.0"  # for JavaScript it is 3
        assert said == ["released" if whole else "RangeError"] * 2 + ["RangeError"] * 2


@pytest.mark.parametrize("x", [True, False, np.True_, np.False_, 2.0, 2.5, "2", None, Fraction(2), Decimal(2), 10, -1])
def test_inputs_are_whole_numbers(x: Any, tmp_path: Path) -> None:
    """True counts as 1 for Python; as the input of a release it is a mistake."""
    matrix = matrices()["clamped tail"]
    (path,) = export(matrix, "python", tmp_path / "python")
    sampler = load(path)
    for call in (sampler["release"], lambda x: sampler["release_many"]([2, x]), lambda x: sampler["draw"](x, int)):
        with pytest.raises(ValueError, match="an input must be a whole number"):
            call(x)
    for sample in (matrix.sample, next(iter(shares().values())).sample):
        with pytest.raises(ProblemError):
            sample(x if x != 10 else 10**6)
    for column in ([2, x], (x,)):
        with pytest.raises(ProblemError):
            matrix.sample(column)
    if type(x) is bool:
        (path,) = export(matrix, "js", tmp_path / "js")
        script = f"import {{ release }} from {json.dumps(path.as_uri())};\nrelease({str(x).lower()});\n"
        (tmp_path / "try.mjs").write_text(script)
        assert "RangeError" in run(need("node"), tmp_path / "try.mjs").stderr
