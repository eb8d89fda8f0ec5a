"""Who the parties are: `parties.toml`, with where each can be reached and the fingerprint of its key.

    parties = [
      {host = "office-0.example", port = 9001, fingerprint = "3d40..."},
      {host = "office-1.example", port = 9001, fingerprint = "fc51..."},
    ]

The order is that of the plan. Everybody needs the same fingerprints in the same order, which is compared when they
meet; hosts and ports may differ, as an office may have one name inside and another outside.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optdp.errors import ArtifactError, ProblemError
from optdp.files.atomic import name_of, read_bytes
from optdp.files.canonical import shown
from optdp.plan.meeting.keys import is_key

FILE = "parties.toml"
MAX_BYTES = 1 << 20
_HOST = re.compile(r"\[([0-9a-f:.]+)\]|([a-z0-9][a-z0-9._-]{0,252})")


@dataclass(frozen=True)
class Place:
    """One party: where it listens, and its key."""

    host: str
    port: int
    fingerprint: str


def read_roster(path: str | Path) -> list[Place]:
    """The parties in a file, in their order."""
    name = name_of(path)
    try:
        document = tomllib.loads(read_bytes(path, MAX_BYTES).decode())
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{name} must be TOML. Found: {' '.join(str(error).split())[:200]}") from None
    entries = document.get("parties")
    if document.keys() != {"parties"} or not isinstance(entries, list):
        raise ArtifactError(f"{name} must list the parties: parties = [..]. Add the lines that party-key printed.")
    try:
        return check_roster([_place(i, entry) for i, entry in enumerate(entries)])
    except ProblemError as error:
        raise ArtifactError(f"{name}: {error}") from None


def _place(i: int, entry: Any) -> Place:
    if not isinstance(entry, dict) or entry.keys() != {"host", "port", "fingerprint"}:
        found = ", ".join(map(str, entry)) if isinstance(entry, dict) else shown(entry)
        raise ProblemError(f"A party has host, port and fingerprint. Found {found[:200]} for party {i}.")
    host, port, fingerprint = entry["host"], entry["port"], entry["fingerprint"]
    if not isinstance(host, str) or type(port) is not int or not isinstance(fingerprint, str):
        raise ProblemError(f"host and fingerprint are texts and port is a number. Found others for party {i}.")
    return Place(host, port, fingerprint)


def check_roster(places: Sequence[Place]) -> list[Place]:
    """The same parties, their hosts spelled alike; each must have an address and a key of its own."""
    if len(places) < 2:
        raise ProblemError(f"There must be at least 2 parties. Found {len(places)}. Give all parties of the plan.")
    checked: list[Place] = []
    for i, place in enumerate(places):
        host = check_host(place.host, f"party {i}")
        if not 1 <= place.port <= 65535:
            raise ProblemError(f"port must be from 1 to 65535. Found {shown(place.port)} for party {i}.")
        if not is_key(place.fingerprint):
            raise ProblemError(
                f"fingerprint must be 64 hexadecimal digits that party-key printed. Found {shown(place.fingerprint)} "
                f"for party {i}."
            )
        place = Place("127.0.0.1" if host == "localhost" else host, place.port, place.fingerprint)
        for j, other in enumerate(checked):
            if (other.host, other.port) == (place.host, place.port):
                raise ProblemError(f"Every party must have an address of its own. Found that of {j} again for {i}.")
            if other.fingerprint == place.fingerprint:
                raise ProblemError(f"Every party must have a key of its own. Found that of party {j} again for {i}.")
        checked.append(place)
    return checked


def check_host(text: str, whose: str) -> str:
    """A host, spelled as others compare it."""
    found = _HOST.fullmatch(text.strip().lower())
    host = (found[1] or found[2]) if found else ""
    if not found or host == "0.0.0.0" or not set(host) - set(":0"):
        raise ProblemError(
            f"host must be where the others reach a party. Found {shown(text)} for {whose}. "
            'Write one such as "localhost", "10.0.0.7" or "[fd00::7]".'
        )
    return host


def digest_of(places: Sequence[Place]) -> str:
    """What all must agree on: the keys, in their order."""
    return hashlib.sha256(" ".join(place.fingerprint for place in places).encode("ascii")).hexdigest()


def interface_of(host: str, listen: str | None) -> str:
    """The address to listen on: `listen` if given, else that of this party if it is a loopback address."""
    address = host if listen is None else "127.0.0.1" if listen == "localhost" else listen
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(address).is_loopback or listen is not None:
            return address
    if listen is not None:
        raise ProblemError(
            f"--listen must be the IP address of an interface of this machine. Found {listen[:80]!r}. "
            "Write one such as 0.0.0.0, which means every interface."
        )
    raise ProblemError(
        f"A party listens on the loopback address only, unless told otherwise. Found {host} as the host of this party. "
        "Say where to listen: --listen 0.0.0.0 is every interface."
    )
