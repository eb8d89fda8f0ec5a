"""Where parties are reached, and where one listens: on the loopback address, unless it is told otherwise."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from collections.abc import Sequence

from optdp.errors import ProblemError


def read_addresses(addresses: Sequence[str]) -> list[tuple[str, int]]:
    """The host and the port of every party."""
    places: list[tuple[str, int]] = []
    for i, text in enumerate(addresses):
        found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+)):([0-9]{1,5})", text.strip().lower())
        host = (found[1] or found[2]) if found else ""
        if not found or not 1 <= int(found[3]) <= 65535 or host in ("0.0.0.0", "::"):
            raise ProblemError(
                f"An address must be host:port, where the others reach the party. Found {text[:80]!r} for party {i}. "
                "Write one such as localhost:9001, with a port from 1 to 65535."
            )
        place = ("127.0.0.1" if host == "localhost" else host, int(found[3]))
        if place in places:
            raise ProblemError(
                f"Every party must have an address of its own. Found {text!r} for parties {places.index(place)} and "
                f"{i}. Give each its own port."
            )
        places.append(place)
    return places


def interface_of(host: str, listen: str | None) -> str:
    """The address to listen on: `listen` if given, else that of this party if it is a loopback address."""
    address = host if listen is None else "127.0.0.1" if listen == "localhost" else listen
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(address).is_loopback or listen is not None:
            return address
    if listen is not None:
        raise ProblemError(
            f"listen must be the IP address of an interface of this machine. Found {listen[:80]!r}. "
            "Write one such as 0.0.0.0, which means every interface."
        )
    raise ProblemError(
        f"A party listens on the loopback address only, unless told otherwise. Found {host} as the host of this party. "
        "Say where to listen (0.0.0.0 is every interface), or use localhost and SSH tunnels."
    )


def look_up(host: str, port: int, ips: list[str]) -> None:
    """Add what the host's name stands for; nothing if nobody knows it."""
    with contextlib.suppress(OSError, UnicodeError):
        ips.extend(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
