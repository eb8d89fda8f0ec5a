"""Addresses on this machine for parties that are real processes."""

from __future__ import annotations

import random
import socket

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
