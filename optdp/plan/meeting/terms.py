"""The terms of a meeting: what all parties must have alike, and what must be right before anybody is met."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optdp.errors import ProblemError
from optdp.plan.meeting.keys import Key
from optdp.plan.meeting.roster import Place, check_roster, digest_of, interface_of

LONGEST = 30 * 24 * 3600.0
"""The longest timeout, in seconds."""
_KIND = "optdp meeting 2"
_TERMS = {"work": "another computation or version", "plan": "another plan", "run": "another run",
          "parties": "another list of parties"}  # fmt: skip
_TERM = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,255}")


@dataclass(frozen=True)
class Agreement:
    """What all parties must agree on before anything is computed."""

    plan: str
    """The plan's identity."""
    run: str
    """Which release this is, such as 2026-11."""
    work: str
    """The computation, its parameters and its version."""

    def terms(self, places: Sequence[Place]) -> dict[str, str]:
        """All that must be alike, with the list of keys."""
        return {**vars(self), "parties": digest_of(places)}


def checked(
    agreement: Agreement, party: int, places: Sequence[Place], key: Key, timeout: float, listen: str | None
) -> tuple[list[Place], str]:
    """The list of parties and the address to listen on, if this party can go to the meeting with what it has."""
    places = check_roster(places)
    m = len(places)
    for right, rule, found, advice in (
        (0 <= party < m, f"party must be from 0 to {m - 1}", party, "Give the place of this party in the list"),
        (all(_TERM.fullmatch(text) for text in vars(agreement).values()),
         "The plan's identity and the run must be letters, digits, dots and dashes", "others", "Use another name"),
        (0 < timeout <= LONGEST, f"timeout must be a number of seconds above 0 and at most {LONGEST:,.0f} (30 days)",
         timeout, "Give one such as 60"),
    ):  # fmt: skip
        if not right:
            raise ProblemError(f"{rule}. Found {found}. {advice}.")
    if places[party].fingerprint != key.fingerprint:
        whose = [j for j, place in enumerate(places) if place.fingerprint == key.fingerprint]
        found = f"that of party {whose[0]}" if whose else "one that is not in the list"
        raise ProblemError(
            f"The key must be that of party {party} in the list of parties. Found {found}. Give the right key, or put "
            "its fingerprint into the list of every party."
        )
    return places, interface_of(places[party].host, listen)


def greeting(terms: Mapping[str, str], me: int, to: int, nonce: str) -> bytes:
    """What a party says first: its terms, who it is, to whom it speaks, and a fresh random word."""
    return json.dumps([_KIND, dict(terms), me, to, nonce]).encode()


def read_greeting(said: bytes, terms: Mapping[str, str], me: int, peer: int) -> tuple[str, dict[str, str]]:
    """The other side's random word, and what it has that is not what this party has: names of terms, in words.

    ValueError if it cannot be read.
    """
    try:
        kind, theirs, sender, to, nonce = json.loads(said)
    except (TypeError, RecursionError):
        raise ValueError from None
    right = kind == _KIND and isinstance(theirs, dict) and theirs.keys() == terms.keys() and isinstance(nonce, str)
    if not right or not all(isinstance(text, str) for text in theirs.values()):
        raise ValueError
    if not re.fullmatch("[0-9a-f]{64}", nonce):
        raise ValueError
    other = {name: words + _shown(name, theirs, terms) for name, words in _TERMS.items() if theirs[name] != terms[name]}
    if not other and (sender, to) != (peer, me):
        other = {"parties": _TERMS["parties"]}
    return nonce, other


def _shown(name: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """Both values of a term, as far as a message may show them."""
    if name == "parties":
        return ""
    few = 12 if name == "plan" else 64
    return f" ({re.sub('[^A-Za-z0-9 ._-]', '?', theirs[name][:few])}, here {ours[name][:few]})"
