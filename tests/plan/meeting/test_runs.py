"""What a party remembers of a run: one report, one input, one opening."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from optdp import ProblemError
from optdp.errors import ArtifactError
from optdp.plan.meeting.runs import begin, folder_beside

PLAN = "ab" * 32


@pytest.fixture
def draws() -> Iterator[int]:
    return count(100)


def test_one_report_for_a_run(tmp_path: Path, draws: Iterator[int]) -> None:
    folder = tmp_path / "party-0.runs"
    first = begin(folder, PLAN, 0, "2026-11", 7, lambda: next(draws))
    again = begin(folder, PLAN, 0, "2026-11", 7, lambda: next(draws))
    assert (first.report, again) == (100, first)
    assert begin(folder, PLAN, 0, "2026-11", 7, lambda: next(draws)).opening().report == 100
    assert begin(folder, PLAN, 0, "2026-11", 7, lambda: next(draws)).state == "opening"
    others = [(PLAN, 0, "2026-12"), ("cd" * 32, 0, "2026-11"), (PLAN, 1, "2026-11")]
    assert [begin(folder, *other, 7, lambda: next(draws)).report for other in others] == [101, 102, 103]


def test_another_input_is_refused_and_not_told(tmp_path: Path, draws: Iterator[int]) -> None:
    folder = tmp_path / "runs"
    begin(folder, PLAN, 0, "r", 77123, lambda: next(draws))
    with pytest.raises(ProblemError, match="was started with another input") as caught:
        begin(folder, PLAN, 0, "r", 77124, lambda: next(draws))
    assert "7712" not in str(caught.value)
    (path,) = folder.iterdir()
    assert "77123" not in path.read_text()


def test_an_opened_run_keeps_the_aggregate_and_forgets_the_report(tmp_path: Path, draws: Iterator[int]) -> None:
    folder = tmp_path / "runs"
    begin(folder, PLAN, 0, "r", 7, lambda: next(draws)).opening().opened(5)
    found = begin(folder, PLAN, 0, "r", 8, lambda: next(draws))
    assert (found.state, found.aggregate, found.report, found.salt, found.input) == ("opened", 5, None, "", "")
    assert next(draws) == 101


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_others_cannot_read_it(tmp_path: Path, draws: Iterator[int]) -> None:
    old = os.umask(0)
    try:
        folder = tmp_path / "runs"
        run = begin(folder, PLAN, 0, "r", 7, lambda: next(draws))
        assert stat.S_IMODE(run.path.stat().st_mode) == 0o600
        run.opening()
        assert stat.S_IMODE(run.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder.chmod(0o755)
        with pytest.raises(ProblemError, match="chmod 700"):
            begin(folder, PLAN, 0, "r", 7, lambda: next(draws))
    finally:
        os.umask(old)


@pytest.mark.parametrize("change", [
    {"state": "new"}, {"state": 1}, {"report": None}, {"report": 1.5}, {"report": True}, {"aggregate": 3},
    {"commitments": 1}, {"commitments": ["x"]},
    {"state": "opened"}, {"plan": "cd" * 32}, {"party": 1}, {"run": "s"}, {"version": 2}, {"format": "x"}, {"more": 1},
])  # fmt: skip
def test_a_changed_record_is_refused(tmp_path: Path, draws: Iterator[int], change: dict[str, object]) -> None:
    run = begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws))
    document = json.loads(run.path.read_text())
    run.path.write_text(json.dumps(document | change))
    with pytest.raises(ArtifactError, match="r-abab"):
        begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws))
    assert next(draws) == 101  # and nothing was drawn in its place


def test_two_processes_cannot_open_one_run(tmp_path: Path, draws: Iterator[int]) -> None:
    """Both have begun; the second one finds that the record is no longer the one that it knows."""
    one, other = (begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws)) for _ in range(2))
    one.opening()
    for step in (other.opening, lambda: other.committed(["ab" * 32] * 2)):
        with pytest.raises(ArtifactError, match="one process"):
            step()
    one.opened(5)
    with pytest.raises(ArtifactError, match="one process"):
        other.opening()
    assert begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws)).aggregate == 5


def test_a_record_that_is_gone_stops_its_run(tmp_path: Path, draws: Iterator[int]) -> None:
    run = begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws))
    run.path.unlink()
    with pytest.raises(ArtifactError, match="cannot read"):
        run.opening()
    assert not run.path.exists()


def test_what_all_had_committed_to_is_kept_until_the_run_is_opened(tmp_path: Path, draws: Iterator[int]) -> None:
    begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws)).committed(["ab" * 32, "cd" * 32])
    again = begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws))
    assert (again.report, again.commitments, again.state) == (100, ["ab" * 32, "cd" * 32], "drawn")
    assert again.opening().opened(3).commitments is None
    assert begin(tmp_path / "runs", PLAN, 0, "r", 7, lambda: next(draws)) == again


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "-x", "x" * 65, "é", "a\n"])
def test_names_of_runs(tmp_path: Path, draws: Iterator[int], name: str) -> None:
    with pytest.raises(ProblemError, match="--run must be"):
        begin(tmp_path / "runs", PLAN, 0, name, 7, lambda: next(draws))
    assert not (tmp_path / "runs").exists()


def test_where_records_lie() -> None:
    assert folder_beside(Path("a/party-0.pem")) == Path("a/party-0.runs")
    assert folder_beside(Path("a/key")) == Path("a/key.runs")


def test_a_link_to_a_key_does_not_make_records_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "party-0.pem").touch()
    (tmp_path / "link.pem").symlink_to(tmp_path / "here" / "party-0.pem")
    assert folder_beside(tmp_path / "link.pem") == tmp_path.resolve() / "here" / "party-0.runs"
