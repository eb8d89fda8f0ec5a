"""Addresses on this machine for parties that are real processes, and their keys."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from optdp.plan.meeting.keys import Key, create_key

taken: set[int] = set()


def free_addresses(m: int) -> list[str]:
    """Ports on loopback below those that the system gives to outgoing connections."""
    ports: list[int] = []
    while len(ports) < m:
        port = random.SystemRandom().randrange(15000, 32000)
        with socket.socket() as trial:
            if port not in taken and trial.connect_ex(("127.0.0.1", port)) != 0:
                taken.add(port)
                ports.append(port)
    return [f"localhost:{port}" for port in ports]


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
