"""`kill -9` in the middle of a save: nothing torn, and nothing left after the next save."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from optdp.files import atomic
from tests.artifact.killing import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize(("way", "number"), [("lines", 9), ("random", 42), ("together", 1)])
def test_nothing_is_torn_and_nothing_stays(tmp_path: Path, way: str, number: int) -> None:
    found = run(tmp_path, way, number)
    assert found["killed"] >= (10 if way == "together" else 40)
    assert found["torn"] == found["left after the next save"] == found["words on stderr"] == 0
    if way == "together":
        assert found["failed saves"] == 0
        assert found["reads"] > 0
    else:
        assert found["new"] > 0
        assert found["left behind"] > 0
    if way == "random":  # there was always something to replace
        assert found["absent"] == 0


def test_only_the_temporaries_of_the_dead_are_removed(tmp_path: Path) -> None:
    """A lock keeps a file and a folder; other names, links, pipes and other people's files in them stay as they are."""
    dead, kept = ".optdp-0123456789abcdef.tmp", ".optdp-fedcba9876543210.tmp"
    (tmp_path / dead).write_text("x")
    folder = tmp_path / ".optdp-0000000000000000.tmp"
    folder.mkdir()
    for name in ("plan.json", "party-12.json", dead):
        (folder / name).write_text("x")
    (tmp_path / kept).mkdir()
    (tmp_path / kept / "notes.json").write_text("mine")
    (tmp_path / kept / "plan.json").write_text("x")
    others = [
        ".optdp-1.tmp",
        ".optdp-0123456789abcdef.tmp.bak",
        "optdp-0123456789abcdef.tmp",
        ".optdp-G123456789abcdef.tmp",
    ]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".optdp-2222222222222222.tmp").symlink_to(tmp_path / others[0])
    os.mkfifo(tmp_path / ".optdp-3333333333333333.tmp")
    with atomic.file_beside(tmp_path / "b") as (path, file), atomic.folder_beside(tmp_path / "c") as place:
        file.write(b"not ready")
        (place / "plan.json").write_text("not ready")
        atomic.write_bytes(tmp_path / "a.json", b"{}")
        held = {path.name, place.name}
        stay = {*others, kept, ".optdp-2222222222222222.tmp", ".optdp-3333333333333333.tmp", "a.json"}
        assert set(os.listdir(tmp_path)) == stay | held
        assert (place / "plan.json").exists()
    assert set(os.listdir(tmp_path)) == stay
    assert os.listdir(tmp_path / kept) == ["notes.json"]


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / ".optdp-0123456789abcdef.tmp"
    left.write_text("x")
    monkeypatch.setattr(atomic, "fcntl", None)
    atomic.write_bytes(tmp_path / "a.json", b"{}")
    atomic.write_folder(tmp_path / "plan", {"plan.json": b"{}"})
    assert sorted(os.listdir(tmp_path)) == [left.name, "a.json", "plan"]


def test_a_temporary_that_somebody_removes_at_once_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweeper between the making of a name and its lock."""
    usual = atomic._holds
    seen: list[Path] = []

    def late(handle: int, path: Path) -> bool:
        if len(seen) < 3:
            atomic.sweep(path.parent)
        seen.append(path)
        return usual(handle, path)

    monkeypatch.setattr(atomic, "_holds", late)
    atomic.write_bytes(tmp_path / "a.json", b"{}")
    assert len(seen) == 4
    seen.clear()
    atomic.write_folder(tmp_path / "plan", {"plan.json": b"{}"})
    assert sorted(os.listdir(tmp_path)) == ["a.json", "plan"]
    assert (tmp_path / "a.json").read_bytes() == b"{}"
    assert os.listdir(tmp_path / "plan") == ["plan.json"]


def test_killed_between_two_renames_the_only_copies_are_kept(tmp_path: Path) -> None:
    """Where names cannot change places: the old plan and the new one lie beside their place."""
    old, new = tmp_path / ".optdp-0123456789abcdef.old", tmp_path / ".optdp-0123456789abcdef.tmp"
    for folder in (old, new):
        folder.mkdir()
        (folder / "plan.json").write_text("x")
    (tmp_path / ".optdp-0123456789abcde0.old").mkdir()
    atomic.write_bytes(tmp_path / "a.json", b"{}")
    assert (old / "plan.json").exists()
    assert (new / "plan.json").exists()
    assert not (tmp_path / ".optdp-0123456789abcde0.old").exists()
