"""Bytes that were flipped, lost, doubled or mixed up: refused, unless they say the same in other white space."""

from __future__ import annotations

from pathlib import Path

from tests.artifact.mutations import tally


def test_no_mutation_is_accepted(tmp_path: Path) -> None:
    found = tally(tmp_path, 1, 1000)
    assert found["accepted, other content"] == 0
    assert found["messages of more than one line"] == 0
    assert found["refused"] > 950
