"""The problems that come with optdp are found by name, wherever one is."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from optdp import ProblemError, library, load, load_problem
from tests.command_line import Done

ROOT = Path(__file__).resolve().parents[1]


def test_every_problem_has_a_name_of_its_own() -> None:
    found = library.problems()
    assert set(found.values()) == {path for path in (ROOT / "problems").glob("*/*.toml") if path.parent.name != "sets"}
    assert {"sick-leave", "paper-a/example-1", "paper-d/geo-shuffle"} <= set(found)
    for name, path in found.items():
        assert library.place(name) == path
        assert library.place(f"{path.parent.name}/{path.stem}") == path


def test_a_name_is_as_short_as_can_be_told_apart() -> None:
    assert library.place("example-1") == library.place("paper-a/example-1")
    with pytest.raises(ProblemError, match="Say which: paper-c/figure3, paper-d/figure3"):
        library.place("figure3")


def test_a_file_wins_over_a_name_and_a_folder_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sick-leave").mkdir()
    assert load_problem("sick-leave").spec() == load(library.FOLDER / "use-cases/sick-leave.toml").spec()
    Path("sick-leave").rmdir()
    Path("sick-leave").write_text('kind = "krr-count"\nn = 10\nn_x0 = 8\nk = 4\neps0 = 0.5\nepsilon = 0.1\n')
    assert load_problem("sick-leave").kind == "krr-count"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("sick-leav", "Did you mean sick-leave, "),
        ("sick-leave.toml", "Did you mean sick-leave, "),
        ("problems/use-cases/bank-transfer.toml", "Did you mean bank-transfers?"),
        ("zzz", "called zzz. `optdp problems` lists the names"),
        ("", "called ''."),
        ("a\x1b[31m\nb", "called a?[31m?b."),
        ("../use-cases/sick-leave", "No file and no problem"),
        ("sets/smoke", "No file and no problem"),
        ("x" * 100_000, "No file and no problem"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    asked: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Done]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("solve", asked)
    done.refused(words)
    assert len(done.err) < 600
    with pytest.raises(ProblemError, match="No file and no problem"):
        load_problem(asked)


@pytest.mark.parametrize(
    "command_line",
    [
        ("solve", "sick-leave", "--json"),
        ("formulate", "paper-a/example-1"),
        ("compare", "paper-d/geo-shuffle", "--json"),
        ("curve", "paper-c/table1", "--out", "c.csv"),
        ("sweep", "sick-leave", "--grid", "population.n=4,5", "--workers", "0", "--out", "s.csv"),
        ("run", "paper-d/geo-shuffle", "--data", "x.csv", "--column", "x", "--out", "e.json"),
    ],
)
def test_commands_take_names_anywhere(
    command_line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Done]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("x\n" + "7\n" * 100)
    done = command(*command_line)
    assert done.code == 0, done


def test_help_points_to_a_problem_that_is_there(command: Callable[..., Done]) -> None:
    for words in command("--help"), command("observers", "--help"):
        named = re.findall(r"optdp (?:solve|observers) (\S+) --out", " ".join(words.out.split()))
        assert named
        assert set(named) <= set(library.problems())


def test_the_wheel_has_them_and_needs_no_clone(tmp_path: Path) -> None:
    """The package as it is unpacked, without the repository beside it."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    zipfile.ZipFile(wheel).extractall(tmp_path / "there")
    (metadata,) = (tmp_path / "there").glob("*.dist-info/METADATA")
    shown = metadata.read_text()
    assert "# optdp" in shown
    assert not re.findall(r"\]\((?!https?://)", shown), "an index has no files beside README.md"
    code = "from optdp import library; print(library.FOLDER, len(library.problems()), *library.sets())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "there", capture_output=True, text=True, check=True
    )
    folder, number, *sets = done.stdout.split()
    assert folder == str(tmp_path / "there" / "optdp" / "problems")
    assert int(number) == len(library.problems())
    assert set(sets) == set(library.sets())
