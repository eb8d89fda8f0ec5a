"""The common secret word of a plan: every party contributes, nobody chooses, and only the parties know it.

Each party commits to its contribution, 62 random bits; when all have the same commitments of all, each opens its own.
The word is the exclusive or of all contributions. So it is uniform if one party's contribution is, and nobody could
choose a contribution after seeing another. A party whose opening does not fit its commitment is named. The messages
travel between the parties alone, as all of a meeting do.

A second attempt of a run has the same word. Contributions and commitments are those of the first attempt, and a party
opens nothing before it has recorded the commitments of all others: one that breaks off once it knows the others'
contributions cannot come back with another one of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

from optdp.mechanism.cuts import WORD
from optdp.plan.meeting.meeting import FaultError, Meeting
from optdp.plan.meeting.opening import NONCE, Opening

WORD_COMMIT, WORD_VIEW, WORD_OPEN = 7, 8, 9
_SIZE = 8


@dataclass(frozen=True)
class Contribution:
    """What a party brings to a common word, besides its contribution, and what it makes of the word."""

    look_up: Callable[[int], int]
    """The report that a word stands for."""
    salt: str
    """Secret, and the same in every attempt of a run: the random part of the commitment is made of it."""
    known: Sequence[str] | None = None
    """The commitments of all parties in an earlier attempt of this run."""
    on_committed: Callable[[list[str]], object] = lambda _: None
    """Called with the commitments of all parties before anything is opened; to be recorded."""


async def common_word(meeting: Meeting, contribution: int, word: Contribution) -> int:
    """The word of this run, to which this party contributes 62 random bits."""
    hidden = hashlib.sha256(f"common word {word.salt}".encode("ascii")).digest()
    assert len(hidden) == NONCE

    def agreed(commitments: Sequence[bytes]) -> None:
        found = [commitment.hex() for commitment in commitments]
        for j, (now, before) in enumerate(zip(found, word.known or found, strict=True)):
            if now != before:
                raise FaultError(
                    j, "has another contribution to the common word than in an earlier attempt of this run (without "
                    "its record a party must begin another run)",
                )  # fmt: skip
        word.on_committed(found)

    about = ["common word", meeting.terms["plan"], meeting.terms["run"]]
    opening = Opening("contribution to the common word", (WORD_COMMIT, WORD_VIEW, WORD_OPEN), about)
    found = await opening.secrets(meeting, hidden + contribution.to_bytes(_SIZE, "little"), agreed)
    parts = [int.from_bytes(secret[NONCE:], "little") for secret in found]
    for j, part in enumerate(parts):
        if part >= 1 << WORD:
            raise FaultError(j, f"contributes more than {WORD} bits to the common word")
    return reduce(xor, parts)
