"""Addresses on this machine for parties that are real processes, and their keys."""

from __future__ import annotations

import atexit
import socket
import sys
import time
from collections import deque
from pathlib import Path

from optdp.plan.meeting.keys import Key, create_key

MOST = 100
_held: deque[socket.socket] = deque()


def free_addresses(m: int) -> list[str]:
    """Ports on loopback that no other process is given: they are held here for a while, and nobody listens.

    A server, which may use an address again, can listen there all the same.
    """
    for _ in range(m):
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        _held.append(holder)
    found = [f"localhost:{holder.getsockname()[1]}" for holder in list(_held)[-m:]]
    release(0 if sys.platform != "linux" else MOST)  # elsewhere not even a server may share a port
    return found


@atexit.register
def release(kept: int = 0) -> None:
    """Let go of all ports but the last ones."""
    while len(_held) > kept:
        _held.popleft().close()


def wait_for(port: int, within: float = 100.0) -> None:
    """Until somebody listens there; a connection that says nothing does no harm."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens at {port} within {within:g} s")


def made_keys(folder: Path, m: int) -> list[Key]:
    """A key for each party: `party-0.pem` and so on."""
    return [create_key(folder / f"party-{i}.pem") for i in range(m)]


def write_places(path: Path, keys: list[Key]) -> Path:
    """A list of parties at free ports on loopback."""
    lines = [
        f'  {{host = "localhost", port = {address.split(":")[1]}, fingerprint = "{key.fingerprint}"}},\n'
        for address, key in zip(free_addresses(len(keys)), keys, strict=True)
    ]
    path.write_text("parties = [\n" + "".join(lines) + "]\n")
    return path
