"""Three offices add up their reports. Can it be done so that nobody, not even one of them, sees a single report?

Each office is a process of its own here and reads only its own file. They meet on loopback ports, split their reports
into random shares, and open nothing but the sum. Between machines use `optdp aggregate`.
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

COUNTS = (11, 8, 10)  # what the offices counted; each knows its own


def free_ports(number):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [place.getsockname()[1] for place in held]
    for place in held:
        place.close()
    return ports


def take_part(file, count, addresses):
    """What one office does: it opens its own file, draws its report and adds it to the others'."""
    return join(open_artifact(file, OpenedParty).member, count, addresses)


def main():
    if find_spec("mpyc") is None:
        print("no secure sum: MPyC is not installed (pip install 'optdp[mpc]')")
        sys.exit(0)
    plan = solve(MultiLTE([Population.binomial(20, "0.5")] * 3, epsilon="0.5"))
    addresses = [f"localhost:{port}" for port in free_ports(3)]
    with TemporaryDirectory() as place, ProcessPoolExecutor(3, get_context("spawn")) as offices:
        folder = Path(place) / "plan"
        plan.save(folder)
        running = [
            offices.submit(take_part, folder / f"party-{i}.json", count, addresses) for i, count in enumerate(COUNTS)
        ]
        opened = {office.result().total for office in running}
    print(f"every office opened the same sum: {len(opened) == 1}")
    print(f"{sum(COUNTS)} people are away, the offices publish {opened.pop()} (mean error {plan.mae:.2f})")


if __name__ == "__main__":
    main()
