"""Opening shares: commit, compare, reveal, check.

Each party first sends a commitment to its share: the SHA-256 of the meeting, its number, a random word of 32 bytes and
the share. Then all say what commitments they have from everybody. Only when all have the same ones does anybody reveal.
So nobody can choose a share after having seen another one, everybody opens the same value, and whoever reveals another
share than it had committed to, or none, is named by all to whom it did so.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optdp.files.canonical import canonical
from optdp.plan.meeting.meeting import FaultError, Meeting

COMMIT, VIEW, SHARE = 4, 5, 6
NONCE = 32
"""The bytes of the random word in a commitment."""


@dataclass(frozen=True)
class Opening:
    """What parties open together, each its own secret."""

    what: str
    """What a secret is called."""
    labels: tuple[int, int, int]
    """Of the commitments, of the list of all commitments, and of the secrets."""
    about: Any
    """What the secrets are for: a commitment counts for nothing else."""

    def commitment(self, party: int, secret: bytes) -> bytes:
        """The commitment of a party to its secret, which begins with random bytes."""
        about = canonical([self.about, party]).encode("ascii")
        return hashlib.sha256(hashlib.sha256(about).digest() + secret).digest()

    async def secrets(
        self, meeting: Meeting, own: bytes, on_agreed: Callable[[Sequence[bytes]], object]
    ) -> list[bytes]:
        """The secrets of all parties, in their order.

        `on_agreed` is called with all commitments when all have the same ones, before anything is revealed.
        """
        commit, view, reveal = self.labels
        commitments = {meeting.me: self.commitment(meeting.me, own)}
        meeting.broadcast(commit, commitments[meeting.me])
        commitments |= await meeting.collect(commit, 32)
        await _compare(meeting, view, commitments)
        on_agreed([commitments[j] for j in range(meeting.m)])
        meeting.broadcast(reveal, own)
        found = {meeting.me: own} | await meeting.collect(reveal, len(own))
        for j, secret in sorted(found.items()):
            if not hmac.compare_digest(self.commitment(j, secret), commitments[j]):
                raise FaultError(j, f"opens another {self.what} than it had committed to")
        return [found[j] for j in range(meeting.m)]


async def opened(meeting: Meeting, share: Any) -> list[int]:
    """The shares of all parties, in their order; `share` is this one's, an element of a prime field of MPyC."""
    field = type(share)
    secret = secrets.token_bytes(NONCE) + int(share.value).to_bytes(field.byte_length, "little")
    this_meeting = [meeting.terms, [meeting.nonces[j] for j in range(meeting.m)]]
    opening = Opening("share", (COMMIT, VIEW, SHARE), this_meeting)
    found = await opening.secrets(meeting, secret, lambda _: meeting.begin_opening())
    shares = [int.from_bytes(secret[NONCE:], "little") for secret in found]
    for j, value in enumerate(shares):
        if value >= field.modulus:
            raise FaultError(j, "opens what is no share")
    return shares


async def _compare(meeting: Meeting, label: int, commitments: dict[int, bytes]) -> None:
    """All must have the same commitments, and the same words of all in their greetings."""
    view = b"".join(bytes.fromhex(meeting.nonces[j]) + commitments[j] for j in range(meeting.m))
    meeting.broadcast(label, view)
    for j, other in (await meeting.collect(label, len(view))).items():
        for k in range(meeting.m):
            if other[64 * k : 64 * k + 64] != view[64 * k : 64 * k + 64]:
                if k in (j, meeting.me):
                    raise FaultError(j, "does not repeat what was said")
                raise FaultError(j, f"was told something else by party {k} than this party was, or says so")
