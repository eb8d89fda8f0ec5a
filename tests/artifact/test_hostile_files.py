"""Files that were made to harm: every command answers in one line, within half a gigabyte; `tests/bench` times it."""

from __future__ import annotations

from tests.artifact import hostile_files
from tests.artifact.hostile_files import FAMILIES, Answer


def test_every_family_is_answered() -> None:
    found = list(hostile_files.answers(3, 3 * len(FAMILIES)))
    assert {answer.family for answer in found} == {family.__name__ for family in FAMILIES}
    assert [answer for answer in found if not _answered(answer)] == []
    assert len(found) == 3 * len(FAMILIES)
    assert sum(answer.code > 0 for answer in found) > 0.9 * len(found)


def test_by_the_program_itself() -> None:
    found = list(hostile_files.through_the_program(3, [0, 6, 13, 17, 22, 24, 25, 27, 31, 34]))
    for answer in found:
        assert _answered(answer), answer


def _answered(answer: Answer) -> bool:
    return answer.code in (0, 1, 2, 3) and answer.megabytes < hostile_files.MEGABYTES and "\n" not in answer.words
