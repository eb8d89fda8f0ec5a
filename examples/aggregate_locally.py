"""Three offices add up their reports. Can it be done so that nobody, not even one of them, sees a single report?

Each office is a process of its own here, with a key of its own, and reads only its own file. They meet on loopback
ports over TLS, split their reports into random shares, and open nothing but the sum. Between machines use
`optdp party-key` and `optdp aggregate`.
"""

import socket
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from optdp import MultiLTE, Population, solve
from optdp.artifact import OpenedParty, open_artifact
from optdp.plan.aggregate import join
from optdp.plan.meeting.keys import create_key, read_key
from optdp.plan.meeting.roster import Place

COUNTS = (11, 8, 10)  # what the offices counted; each knows its own


def free_ports(number):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [place.getsockname()[1] for place in held]
    for place in held:
        place.close()
    return ports


def take_part(file, count, places, key):
    """What one office does: it opens its own file, draws its report and adds it to the others'."""
    member = open_artifact(file, OpenedParty).member
    return join(member, count, run="2026-11", places=places, key=read_key(key))


def main():
    if find_spec("mpyc") is None or find_spec("cryptography") is None:
        print("no secure sum: MPyC and cryptography are not installed (pip install 'optdp[mpc]')")
        sys.exit(0)
    plan = solve(MultiLTE([Population.binomial(20, "0.5")] * 3, epsilon="0.5", method="joint"))
    with TemporaryDirectory() as place, ProcessPoolExecutor(3, get_context("spawn")) as offices:
        folder = Path(place) / "plan"
        plan.save(folder)
        keys = [create_key(Path(place) / f"party-{i}.pem") for i in range(3)]  # each office makes its own
        places = [Place("localhost", port, key.fingerprint) for port, key in zip(free_ports(3), keys, strict=True)]
        running = [
            offices.submit(take_part, folder / f"party-{i}.json", count, places, keys[i].path)
            for i, count in enumerate(COUNTS)
        ]
        opened = {office.result().total for office in running}
    print(f"every office opened the same sum: {len(opened) == 1}")
    print(f"{sum(COUNTS)} people are away, the offices publish {opened.pop()} (mean error {plan.mae:.2f})")


if __name__ == "__main__":
    main()
