"""The same problem gives the same bytes: in another process, with other threads, cores and hash seeds."""

from __future__ import annotations

from pathlib import Path

from tests.twenty_problems import PROBLEMS, contents, started


def test_twenty_problems_twice(tmp_path: Path) -> None:
    assert len(PROBLEMS) == 20
    runs = [started(tmp_path / "one", 1, 0, cores=1), started(tmp_path / "two", 2, 4711)]
    for run in runs:
        _, said = run.communicate(timeout=280)
        assert run.returncode == 0, said
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert one.keys() == two.keys()
    assert len(one) > 20
    assert [name for name in one if one[name] != two[name]] == []
