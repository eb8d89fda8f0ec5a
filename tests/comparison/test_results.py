"""Files of results come back as they were written, or are refused in one line."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdp.comparison import results, sets
from optdp.comparison.machine import head
from optdp.comparison.results import Results
from optdp.comparison.rows import KINDS, OPTIONAL, Row
from optdp.errors import ArtifactError, OptdpError, ProblemError
from optdp.kinds import kind_of
from optdp.single.problem import SingleLTE
from tests.command_line import Done

HEAD = head(2, 60.0, None, "small")
SMALL = Results(
    (HEAD,),
    (
        Row("a", "highs", "optimal", seconds=0.1, raw_epsilon="infinite", note="ä|<b>", run=HEAD.run),
        Row("a", "scs", "timeout", limit=60.0, run=HEAD.run),
        Row("b", "highs", "optimal", iterations=3, certified_epsilon="0.3", run=HEAD.run),
    ),
)
FORMS = list(results.WRITERS)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = {"str": texts, "int": st.integers(-(2**62), 2**62), "float": st.floats(allow_nan=False, allow_infinity=False)}


@st.composite
def any_row(draw: st.DrawFn) -> Row:
    chosen = {
        name: draw(st.none() | VALUES[kind] if name in OPTIONAL else VALUES[kind]) for name, kind in KINDS.items()
    }
    epsilons = st.sampled_from([None, "infinite", "0.3", "1e-9"])
    return Row(**chosen | {"raw_epsilon": draw(epsilons), "certified_epsilon": draw(epsilons)})


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    if request.param == ".parquet":
        pytest.importorskip("pyarrow")
    return str(request.param)


def test_what_is_written_is_read(form: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / f"r{form}"

    @given(st.lists(any_row(), max_size=4))
    def check(rows: list[Row]) -> None:
        wanted = Results((HEAD,), tuple(rows))
        path.write_bytes(results.WRITERS[form](wanted))
        assert results.read(path) == wanted

    check()


def test_both_forms_say_the_same_digest(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    stated = json.loads(results.as_jsonl(SMALL).splitlines()[0])["sha256"]
    assert stated.encode() in results.as_parquet(SMALL)


def test_every_cut_and_every_changed_byte_is_refused(form: str, tmp_path: Path) -> None:
    """Or else says the same: bytes of a parquet file that nobody reads."""
    data, path = results.WRITERS[form](SMALL), tmp_path / f"r{form}"
    for size in {0, 1, 50, len(data) // 2, len(data) - 1, *(data.index(b"\n") + k for k in (0, 1) if b"\n" in data)}:
        path.write_bytes(data[:size])
        with pytest.raises(OptdpError) as refused:
            results.read(path)
        assert "\n" not in str(refused.value)
    for place in range(0, len(data), max(1, len(data) // 100)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            assert results.read(path) == SMALL
        except ArtifactError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "optdp/sweep-journal"}, "holds no results"),
        ({"rows": 2}, "cut or changed"),
        ({"heads": {}}, "cut or changed"),
        ({"sha256": "0" * 64}, "digest"),
    ],
)
def test_another_header_is_refused(change: dict[str, object], words: str, tmp_path: Path) -> None:
    first, *rest = results.as_jsonl(SMALL).splitlines(True)
    (tmp_path / "r.jsonl").write_bytes(json.dumps(json.loads(first) | change).encode() + b"\n" + b"".join(rest))
    with pytest.raises(ArtifactError, match=words):
        results.read(tmp_path / "r.jsonl")


@pytest.mark.parametrize("change", [{"mae": "0"}, {"mae": True}, {"backend": 3}, {"raw_epsilon": "x"}, {"more": 1}])
def test_a_row_of_another_form_is_refused_though_its_digest_fits(change: dict[str, object], tmp_path: Path) -> None:
    lines = [json.loads(line) for line in results.as_jsonl(SMALL).splitlines()]
    lines[1] |= change
    lines[0]["sha256"] = results.digest(lines[0]["heads"], lines[1:])
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ArtifactError, match="another form"):
        results.read(tmp_path / "r.jsonl")


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    for name, data in (
        ("a.jsonl", b"[]\n"),
        ("b.jsonl", b"{" * 99 + b"\n"),
        ("c.jsonl", b"\xff\n"),
        ("d.parquet", b"PAR1"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ArtifactError):
            results.read(tmp_path / name)
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "e.parquet")
    with pytest.raises(ArtifactError, match="holds no results"):
        results.read(tmp_path / "e.parquet")


def test_files_are_merged_and_rows_counted_once() -> None:
    other = replace(HEAD, run="other")
    more = Results((other,), (replace(SMALL.rows[0], run="other"),))
    merged = Results.merged([SMALL, more, SMALL])
    assert merged.heads == (HEAD, other)
    assert merged.rows == (*SMALL.rows, *more.rows)


def test_the_head_names_nobody() -> None:
    import getpass
    import platform

    text = str(HEAD)
    assert platform.node() not in text or len(platform.node()) < 4
    assert "/" not in re.sub(r"\d+/\d+", "", text)
    assert getpass.getuser() not in text or getpass.getuser() in ("root", "user")
    assert re.fullmatch(r"([0-9a-f]{12}( with changes)?)?", HEAD.commit)


# ------------------------------------------------------------------------------------------------------------ the sets


def test_every_set_is_whole() -> None:
    assert {"smoke", "small", "paper", "hard"} <= set(sets.names())
    for name in sets.names():
        found = sets.problem_set(name)
        assert found.title
        assert found.about.endswith(".")
        for member in found.members:
            assert member.why.endswith(".")
            assert kind_of(member.problem).measure


def test_the_checksums_are_those_of_the_programs() -> None:
    """Of those that take a moment; `python -m tests.comparison.checksums` writes all of them."""
    kept, seen = sets.checksums(), 0
    assert set(kept) <= {member.name for member in sets.every_member()}
    for member in (*sets.problem_set("smoke").members, *sets.problem_set("small").members):
        problem = member.problem
        if isinstance(problem, SingleLTE):
            assert sets.checksum(problem) == kept[member.name], member.name
            seen += 1
    assert seen >= 10


def test_a_checksum_is_that_of_the_file_that_formulate_writes(command: Callable[..., Done], tmp_path: Path) -> None:
    done = command("formulate", "problems/paper-a/example-1.toml", "--to", "mps", "--out", tmp_path / "p.mps")
    assert done.code == 0, done
    assert hashlib.sha256((tmp_path / "p.mps").read_bytes()).hexdigest() == sets.checksums()["example-1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 1\n", "another form"),
        ('title="a"\nabout="b"\nproblem=[]\n', "another form"),
        ('title="a"\nabout="b"\n[[problem]]\nfile="../../../etc/passwd"\nwhy="c"\n', "another form"),
        ('title="a"\nabout="b"\n[[problem]]\nfile="../p.toml"\nwhy="c"\nmore=1\n', "another form"),
        ("title", "is not a problem set"),
    ],
)
def test_bad_sets_are_one_line(text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "bad.toml").write_text(text)
    monkeypatch.setattr("optdp.library.FOLDER", tmp_path)
    with pytest.raises(ProblemError, match=words):
        sets.problem_set("bad")
    with pytest.raises(ProblemError, match="There are: bad"):
        sets.problem_set("../../x")


def test_the_command_refuses_in_one_line(command: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_bytes(results.as_jsonl(SMALL)[:-9])
    (tmp_path / "good.jsonl").write_bytes(results.as_jsonl(SMALL))
    (tmp_path / "p.toml").touch()
    for words, *arguments in (
        ("one of the three",),
        ("Unknown problem set 'none'", "--set", "none"),
        ("cut off or changed", tmp_path / "cut.jsonl"),
        ("both problem files and files of results", tmp_path / "good.jsonl", tmp_path / "p.toml"),
        (".html or .md", tmp_path / "good.jsonl", "--report", tmp_path / "a.pdf"),
        (".parquet or .jsonl", "--set", "smoke", "--out", tmp_path / "a.csv"),
        ("would overwrite", tmp_path / "good.jsonl", "--out", tmp_path / "good.jsonl"),
        ("--repeat must be", "--set", "smoke", "--repeat", 0),
        ("NAME=VALUE", "--set", "smoke", "--option", "x"),
    ):
        command("compare", *arguments).refused(words)
