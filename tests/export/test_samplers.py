"""Each sampler by itself: it builds, tests itself, draws by the table's law, and says what it is."""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from scipy.stats import chi2

from optdp import NoiseMatrix, ProblemError
from optdp.export import TARGETS, export, write
from optdp.export.sampler import harmless
from optdp.export.subject import Subject, of_table
from optdp.single.format import Artifact
from tests.export.languages import WARNINGS, fresh_releases, load, need, run
from tests.export.matrices import matrices, table

Command = Callable[[Path], list[object]]


def python_command(folder: Path) -> list[object]:
    return [sys.executable, "-I", "-S", folder / "sampler.py"]


def c_command(folder: Path) -> list[object]:
    made = run(need("gcc"), *WARNINGS, "-DSAMPLER_MAIN", "-o", folder / "sampler", folder / "sampler.c")
    assert made.returncode == 0, made.stderr
    return [folder / "sampler"]


def js_command(folder: Path) -> list[object]:
    return [need("node"), folder / "sampler.mjs"]


PROGRAMS: dict[str, Command] = {"python": python_command, "c": c_command, "js": js_command}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[NoiseMatrix], list[object]]:
    """The command of a sampler in one of the languages."""

    def made(matrix: NoiseMatrix) -> list[object]:
        export(matrix, request.param, tmp_path)
        return PROGRAMS[request.param](tmp_path)

    return made


def test_the_command_line(program: Callable[[NoiseMatrix], list[object]]) -> None:
    matrix = matrices()["clamped tail"]
    command = program(matrix)
    digest = of_table(matrix).artifact.sha256
    assert run(*command, "--self-test").stdout == f"ok {digest}\n"
    assert len([int(line) for line in run(*command, 3, 700).stdout.split()]) == 700
    assert len(run(*command, 3).stdout.split()) == 1
    assert len(run(*command, input="3\n0\n 9 \r\n").stdout.split()) == 3
    assert len(run(*command, input="3\n4").stdout.split()) == 2
    assert run(*command, input="").stdout == ""
    for wrong in ("10", "-1", "3.5", "x", "", "99999999999999999999999999", "1_0", "٣"):
        refused = run(*command, input=f"3\n{wrong}\n3\n")
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), (wrong, refused)
        assert not wrong or wrong not in refused.stderr.replace("0 to 9", ""), "an input is a secret"
    assert run(*command, "1", "2", "3").returncode == 2


def test_an_input_without_a_row_is_refused(program: Callable[[NoiseMatrix], list[object]]) -> None:
    command = program(table((2, 4), (0, 8), 16, None, "error", 9))
    assert run(*command, 4).returncode == 0
    assert [run(*command, x).returncode for x in (1, 5)] == [2, 2]


# ---------------------------------------------------------------------- the law


def p_value(counts: Counter[int], law: dict[int, Fraction]) -> float:
    """Of Pearson's test; what is rare is put together."""
    total, statistic, cells, rest, seen = counts.total(), 0.0, 0, 1.0, 0
    for s, probability in law.items():
        if total * probability >= 20:
            expected = float(total * probability)
            statistic, cells = statistic + (counts[s] - expected) ** 2 / expected, cells + 1
            rest, seen = rest - float(probability), seen + counts[s]
    others = total - seen
    if total * rest >= 5:
        statistic, cells = statistic + (others - total * rest) ** 2 / (total * rest), cells + 1
    else:
        assert others <= 60
    return float(chi2.sf(statistic, cells - 1)) if cells > 1 else 1.0


def law(matrix: NoiseMatrix, x: int) -> dict[int, Fraction]:
    """`Pr[s|x]` from the definition, in rational numbers."""
    first, final = matrix.inputs
    row = dict(matrix.rows[min(max(x, first), final) - first])
    alone = matrix.outside == "geometric" and not first <= x <= final
    low, high = matrix.outputs
    if matrix.q is None:
        return {s: Fraction(weight, matrix.denominator) for s, weight in row.items()}
    q = matrix.q.limit_denominator(10**9)  # nearly the same noise, far shorter numbers
    noise = {s: (1 - q) / (1 + q) * q ** abs(s - x) for s in range(x - 60, x + 61)}
    mass = 1 - sum(p for s, p in noise.items() if s < low or s > high)
    inside = {s: Fraction(weight, matrix.denominator) * mass for s, weight in row.items()}
    return noise if alone else {s: p for s, p in noise.items() if s < low or s > high} | inside


CASES = [("clamped", 1), ("clamped tail", 9), ("alone", 4), ("alone", 11), ("tail", 1)]


def test_many_draws_follow_the_law(program: Callable[[NoiseMatrix], list[object]]) -> None:
    for name, x in CASES:
        matrix = matrices()[name]
        drawn = Counter(map(int, run(*program(matrix), x, 100_000).stdout.split()))
        assert drawn.total() == 100_000
        assert p_value(drawn, law(matrix, x)) > 1e-6, (name, x)


def test_many_draws_of_the_database_follow_the_law(tmp_path: Path) -> None:
    for name, x in CASES[1:4]:
        matrix = matrices()[name]
        drawn = fresh_releases(matrix, x, 20_000, tmp_path)
        assert None not in drawn
        assert p_value(drawn, law(matrix, x)) > 1e-6, (name, x)


def test_the_test_of_the_law_can_fail() -> None:
    matrix = matrices()["alone"]
    wrong = Counter(matrices()["clamped tail"].sample(4, 100_000, seed=1))
    assert p_value(wrong, law(matrix, 4)) < 1e-6


def test_missing_words_and_wrong_inputs_give_null(tmp_path: Path) -> None:
    matrix = matrices()["alone"]
    (path,) = export(matrix, "sql", tmp_path)
    base = sqlite3.connect(":memory:")
    base.executescript(path.read_text())
    slots = matrix.drawing.slots
    requests = [(i, 4) for i in range(slots + 2)] + [(90, 13), (91, -1), (92, None)]
    base.executemany("INSERT INTO optdp_requests VALUES (?, ?)", requests)
    for i, _ in requests:
        words = [(i, place, 0) for place in range(slots) if place != i]  # request i has no word at place i
        base.executemany("INSERT INTO optdp_words VALUES (?, ?, ?)", words)
    released = dict(base.execute("SELECT id, released FROM optdp_released"))
    assert [released[i] for i in range(slots)] == [None] * slots
    assert released[slots] is not None
    assert [released[i] for i in (90, 91, 92)] == [None] * 3
    for word in (-1, 1 << 62, 0.5, "abc", None):
        with pytest.raises(sqlite3.IntegrityError):
            base.execute("INSERT INTO optdp_words VALUES (99, 0, ?)", (word,))
    base.close()


def test_what_sqlite_takes_for_an_integer_gives_null_or_is_not_looked_at(tmp_path: Path) -> None:
    """Columns of SQLite take values of any type: no half number is released, and no odd place counts as a word."""
    matrix = matrices()["alone"]
    slots, limbs = matrix.drawing.slots, matrix.drawing.limbs
    beyond = slots - 2  # the last digit
    (path,) = export(matrix, "sql", tmp_path)
    base = sqlite3.connect(":memory:")
    base.executescript(path.read_text())
    inputs = [2.5, "abc", b"4", 1e300, float("nan"), "4x", "", -0.5]
    base.executemany("INSERT INTO optdp_requests VALUES (?, ?)", [*enumerate(inputs), (50, 4), (51, "4"), (52, 4)])
    for i in (*range(len(inputs)), 50, 51):
        for place in (*range(slots), *(beyond + slots * j for j in (1, 2, 3))):
            word = 5 if place < slots and place != beyond else (1 << 62) - 1  # beyond its last cut
            base.execute("INSERT INTO optdp_words VALUES (?, ?, ?)", (i, place, word))
    asked = "SELECT id, released FROM optdp_released WHERE id <> 52"
    for place in (
        "x",
        0.5,
        b"0",
        -limbs,
        (1 << 63) - 1 - (-1 - slots * limbs) % limbs,
        slots * limbs + 0.5,
        slots * limbs + limbs,
    ):  # the last leaves a gap
        base.execute("INSERT INTO optdp_words VALUES (50, ?, 5)", (place,))
        assert set(dict(base.execute(asked)).values()) == {None}, place
    for i in (*range(len(inputs)), 50, 51):
        base.execute("INSERT INTO optdp_words VALUES (?, ?, 5)", (i, slots * limbs))
    released = dict(base.execute(asked))
    assert {i for i, s in released.items() if s is not None} == {50, 51}
    assert released[50] == released[51] > matrix.outputs[1]
    base.execute("DELETE FROM optdp_words WHERE id = 50 AND place = ?", (slots - 1,))
    assert dict(base.execute(asked))[50] is None, "the row's word must be there even if the noise leaves the table"
    base.close()


def test_the_work_of_the_database_is_linear(tmp_path: Path) -> None:
    """Steps of SQLite's machine, for ten times as many requests; also if no first word decides, or none is there."""
    matrix = matrices()["digits"]
    (path,) = export(matrix, "sql", tmp_path)
    for words in ([5] * 4, [5, 5, (1 << 62) - 1, 5], [5, 5, 5]):
        steps = []
        for count in (300, 3000):
            base = sqlite3.connect(":memory:")
            base.executescript(path.read_text())
            base.executemany("INSERT INTO optdp_requests VALUES (?, 2)", [(i,) for i in range(count)])
            lines = ((i, place, word) for i in range(count) for place, word in enumerate(words))
            base.executemany("INSERT INTO optdp_words VALUES (?, ?, ?)", lines)
            ticks: list[int] = []
            base.set_progress_handler(lambda ticks=ticks: ticks.append(1), 100)  # type: ignore[misc]
            found = base.execute("SELECT COUNT(*), COUNT(released) FROM optdp_released").fetchone()
            base.close()
            assert found == (count, count if words == [5] * 4 else 0)
            steps.append(len(ticks))
        assert steps[0] > 100
        assert steps[1] < 11 * steps[0], words


# ---------------------------------------------------------------------- the self test


def changed(text: str, count: int) -> list[str]:
    """The text with one digit of one integer of its tables changed, for so many integers all over them."""
    start, end = text.index("---- begin of the tables"), text.index("---- end of the tables")
    lines = re.compile(r"(?://|#(?!define)|/\*|--).*|'[^']*'|[A-Z_a-z]\w*")  # comments, text and names are no integers
    spots = set(range(start, end))
    for match in lines.finditer(text, text.index("\n", start), end):
        spots -= set(range(*match.span()))
    found = [m for m in re.finditer(r"[0-9]+", text) if m.start() in spots]
    assert len(found) > 100
    chosen = [*found[:: max(1, len(found) // count)], found[0], found[-1]]
    result = []
    for i, match in enumerate(chosen):
        place = match.start() + i % len(match[0])
        result.append(text[:place] + str(int(text[place]) % 9 + 1) + text[place + 1 :])
    return result


def test_a_changed_integer_fails_the_self_test_in_python(tmp_path: Path) -> None:
    for name in ("long", "bare"):
        (path,) = export(matrices()[name], "python", tmp_path)
        assert load(path)["self_test"]() == of_table(matrices()[name]).artifact.sha256
        for text in changed(path.read_text(), 150):
            path.write_text(text)
            with pytest.raises((RuntimeError, SyntaxError)):
                load(path)["self_test"]()


def test_a_changed_integer_fails_the_self_test_in_sqlite(tmp_path: Path) -> None:
    (path,) = export(matrices()["alone"], "sql", tmp_path)

    def problems(text: str) -> list[object]:
        base = sqlite3.connect(":memory:")
        try:
            base.executescript(text)
            return base.execute("SELECT * FROM optdp_self_test").fetchall()
        except sqlite3.Error as error:
            return [error]
        finally:
            base.close()

    assert problems(path.read_text()) == []
    for text in changed(path.read_text(), 60):
        assert problems(text)


@pytest.mark.parametrize(("language", "name"), [("c", "sampler.c"), ("js", "sampler.mjs")])
def test_a_changed_integer_fails_the_self_test_elsewhere(language: str, name: str, tmp_path: Path) -> None:
    export(matrices()["long"], language, tmp_path)
    compiler = [need("gcc"), "-std=c99", "-O0", "-w", "-DSAMPLER_MAIN", "-o", tmp_path / "sampler"]
    for text in changed((tmp_path / name).read_text(), 14):
        (tmp_path / name).write_text(text)
        if language == "js":
            assert run(need("node"), tmp_path / name, "--self-test").returncode == 1
        elif run(*compiler, tmp_path / name).returncode == 0:
            assert run(tmp_path / "sampler", "--self-test").returncode == 1


@pytest.mark.parametrize("language", ["python", "js"])
def test_a_changed_digest_fails_the_self_test(language: str, tmp_path: Path) -> None:
    (path,) = export(matrices()["bare"], language, tmp_path)
    digest = of_table(matrices()["bare"]).artifact.sha256
    path.write_text(path.read_text().replace(digest, digest[::-1]))
    command = python_command(tmp_path) if language == "python" else js_command(tmp_path)
    assert run(*command, "--self-test").returncode == 1


# ---------------------------------------------------------------------- what a sampler is


def test_samplers_use_integers_and_secure_randomness_alone(tmp_path: Path) -> None:
    for language in ("python", "c", "js", "sql"):
        export(matrices()["solved"], language, tmp_path / language)
    python, c, js = ((tmp_path / name).read_text() for name in ("python/sampler.py", "c/sampler.c", "js/sampler.mjs"))
    for word in ("float", "double", "malloc", "calloc", "alloca", "rand", "exp", "log", "pow"):
        assert not re.search(rf"\b{word}\b", c), word
    assert "getrandom" in c
    assert "Math.random" not in js
    assert not re.search(r"\bBigInt\b|[0-9]n\b|Math\.(exp|log|pow)", js)
    imported = {m[1].split(".")[0] for m in re.finditer(r"^(?:import|from) (\S+)", python, re.MULTILINE)}
    assert imported <= sys.stdlib_module_names | {"__future__"}
    assert not re.search(r"\brandom\b\.|\bfloat\b|\bmath\b", python)


def test_equal_tables_give_equal_samplers(tmp_path: Path) -> None:
    for language in ("python", "c", "js", "sql"):
        one, two = (export(matrices()["tail"], language, tmp_path / f"{language}-{name}") for name in ("one", "two"))
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


HOSTILE = (
    "*/ int main(void) { return 7; } /*",
    '""" + __import__("os").system("false") + """',
    "'; DROP TABLE optdp_rows; --",
    "line\nbreak\r\nagain\x85and\u2028again\x0c",
    "ends with a backslash \\",
    "??/ trigraph ??/",
    "@DIGEST@ @HEAD@ `${process.exit(7)}`",
    "</script> \x00 \ud800 \u202e",
)


@pytest.mark.parametrize("language", ["python", "c", "js", "sql"])
def test_no_text_breaks_out_of_a_comment(language: str, tmp_path: Path) -> None:
    matrix = matrices()["tail"]
    plain = of_table(matrix)
    subject = replace(plain, claims=lambda: HOSTILE)
    paths = write([subject], TARGETS[language], tmp_path)
    clean = write([replace(plain, claims=lambda: ())], TARGETS[language], tmp_path / "clean")
    for path, other in zip(paths, clean, strict=True):
        text = path.read_text(encoding="ascii")
        assert text.endswith(other.read_text().split("\n\n", 2)[-1]), "only the head differs"
    if language == "sql":
        base = sqlite3.connect(":memory:")
        base.executescript(paths[0].read_text())
        assert base.execute("SELECT * FROM optdp_self_test").fetchall() == []
        base.close()
    else:
        assert run(*PROGRAMS[language](tmp_path), "--self-test").returncode == 0


def test_harmless_text_stays_readable() -> None:
    assert harmless("epsilon 0.3, p = 1/10") == "epsilon 0.3, p = 1/10"
    assert all(32 <= ord(sign) < 127 for text in HOSTILE for sign in harmless(text))


def test_what_no_sampler_can_hold_is_refused(tmp_path: Path) -> None:
    row = (((0, 1),),)
    for matrix in (
        NoiseMatrix((0, 0), (0, 0), 1, row, 1 - Fraction(1, 1 << 50), "geometric", 5),
        NoiseMatrix((0, 0), (0, 0), 1, row, Fraction(1, 1 << 200), "geometric", 5),
        NoiseMatrix((0, 0), (1 << 50, 1 << 50), 1, (((1 << 50, 1),),), None, "clamp", 5),
        NoiseMatrix((0, 0), (0, 0), 1, row, None, "clamp", 1 << 50),
    ):
        with pytest.raises(ProblemError, match="Exported samplers need"):
            export(matrix, "python", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_denominator_as_large_as_the_format_allows(tmp_path: Path) -> None:
    matrix = table((0, 2), (0, 20), 4096, Fraction(1, 2), "error", None, 20)
    for language, command in PROGRAMS.items():
        export(matrix, language, tmp_path / language)
        assert run(*command(tmp_path / language), "--self-test").returncode == 0, language
    (path,) = export(matrix, "sql", tmp_path)
    base = sqlite3.connect(":memory:")
    base.executescript(path.read_text())
    assert base.execute("SELECT COUNT(*), COUNT(released) > 90 FROM optdp_test_released").fetchone()[1] == 1
    assert base.execute("SELECT * FROM optdp_self_test").fetchall() == []
    base.close()


def test_nothing_is_drawn_from_an_artifact_without_its_problem(tmp_path: Path) -> None:
    bare = Artifact((0, 0), (0, 0), 1, (((0, 1),),), "clamp", None, {}, {}, {})
    with pytest.raises(ProblemError, match="problem"):
        export(bare, "c", tmp_path)


def test_subjects_are_plain_data(tmp_path: Path) -> None:
    subjects: Sequence[Subject] = [of_table(matrices()["bare"])]
    assert subjects[0].folder == ""
    assert [path.name for path in write(subjects, TARGETS["c"], tmp_path / "new")] == ["sampler.c", "sampler.h"]


def test_a_browser_runs_the_module(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser_path is None:
        pytest.skip("no chromium is installed")
    (path,) = export(matrices()["digits"], "js", tmp_path)
    page_text = "<script type=module>import * as s from 'http://sampler.test/s.mjs'; window.sampler = s</script>"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.route("**/s.mjs", lambda route: route.fulfill(body=path.read_text(), content_type="text/javascript"))
        page.route("**/page", lambda route: route.fulfill(body=page_text, content_type="text/html"))
        page.goto("http://sampler.test/page")
        page.wait_for_function("window.sampler")
        assert page.evaluate("sampler.selfTest()") == of_table(matrices()["digits"]).artifact.sha256
        assert len(page.evaluate("sampler.releaseMany(Array(5000).fill(2))")) == 5000
        browser.close()
    assert errors == []
