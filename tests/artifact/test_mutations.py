"""Bytes that were flipped, lost, doubled or mixed up: all refused, also where the content stays the same."""

from __future__ import annotations

from pathlib import Path

from tests.artifact.mutations import tally


def test_no_mutation_is_accepted(tmp_path: Path) -> None:
    found = tally(tmp_path, 1, 1000)
    assert found["refused"] == 1000
    assert found["messages of more than one line"] == 0
