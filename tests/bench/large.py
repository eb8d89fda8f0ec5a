"""Large but valid problem files of every kind, by the command line: an answer, a refusal, or at least signs of life.

For each file: the exit code, the CPU seconds, the seconds until something was said or it ended, the longest silence,
the peak memory, and the status or the last words. After the time limit a file is sent SIGTERM, and should end with what
it has (143); what has not ended half a minute later is killed (-9).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

console = Console(width=170)
SECONDS, QUICK, GRACE = 60.0, 15.0, 30.0


def single(population: str, epsilon: str = "0.3", more: str = "") -> str:
    return f'kind = "single-lte"\nepsilon = "{epsilon}"\n{more}\n{population}\n'


def binomial(n: int, p: str = "0.5") -> str:
    return f'[population]\nkind = "binomial"\nn = {n}\np = "{p}"'


def iid(n: int, *pmf: str) -> str:
    return f'[population]\nkind = "iid"\nn = {n}\npmf = {json.dumps(pmf)}'


def counts(*held: int) -> str:
    return f'[population]\nkind = "counts"\ncounts = {list(held)}'


def plan(parties: int, n: int, p: str = "0.1", more: str = "") -> str:
    one = f'[[parties]]\nkind = "binomial"\nn = {n}\np = "{p}"\n'
    return f'kind = "multi-lte"\nepsilon = "0.5"\n{more}\n' + one * parties


def metric(mechanism: str, n: int = 100, k: int = 1000, far: int = 1, more: str = "") -> str:
    return (
        f'kind = "metric-shuffle"\nmechanism = "{mechanism}"\nn = {n}\nk = {k}\ndelta = 1e-4\nepsilon = 0.2\n'
        f"max_distance = {far}\n{more}\n"
    )


def amplified(n: int, eps0: str = "2", k: int = 10, more: str = "delta = 1e-6") -> str:
    return f'kind = "amplification"\nn = {n}\neps0 = {eps0}\n{more}\nrandomizer = {{ kind = "k-rr", k = {k} }}\n'


def order(groups: str, budget: int = 20) -> str:
    return f'kind = "order-shuffle"\nalpha = 1\nbudget = {budget}\n[groups]\n{groups}\n'


PRIORS = "".join(f'[[population]]\nkind = "binomial"\nn = 400\np = "{0.2 + 0.012 * i:.3f}"\n' for i in range(50))

KINDS = '[population]\nkind = "independent"\n' + "".join(
    f'[[population.people]]\ncount = 5\npmf = ["{1 - k / 500:.3f}", "{k / 500:.3f}"]\n' for k in range(1, 201)
)
ASKED = 'randomizer = { kind = "k-rr", k = 1000 }\n'

FILES: dict[str, str] = {
    "binomial 1e5, eps .005": single(binomial(10**5), "0.005"),
    "binomial 1e6, eps .02": single(binomial(10**6), "0.02"),
    "binomial 1e6, eps .001": single(binomial(10**6), "0.001"),
    "binomial 1e6, eps 1": single(binomial(10**6), "1"),
    "binomial 1e6, p 1e-5": single(binomial(10**6, "0.00001")),
    "binomial 1e7, eps .3": single(binomial(10**7)),
    "binomial 1e7, eps .001": single(binomial(10**7), "0.001"),
    "binomial 1e8, eps .3": single(binomial(10**8)),
    "binomial 1e9, eps .5": single(binomial(10**9), "0.5"),
    "binomial 1e9, eps .0001": single(binomial(10**9), "0.0001"),
    "binomial 1e6, mse": single(binomial(10**6), "0.02", 'objective = "mse"'),
    "binomial 1e6, no tail": single(binomial(10**6), "0.02", 'tail = "none"'),
    "binomial 1e5, not capped": single(binomial(10**5), "0.01", "never_worse = false"),
    "shifting 1e5": single(binomial(10**5), "0.02", 'method = "shifting"'),
    "shifting 1e6": single(binomial(10**6), "0.02", 'method = "shifting"'),
    "added noise, 1e6": single(binomial(10**6, "0.001"), "0.1", 'form = "additive"'),
    "geometric 1e9": single(binomial(10**9), "0.1", 'method = "geometric"'),
    "fallback, n=1000": single(binomial(1000), "0.3", "fallback_epsilon = 2"),
    "fallback, n=1e5": single(binomial(10**5), "0.3", "fallback_epsilon = 2"),
    "fallback, all pairs": single(iid(60, "0.4", "0.3", "0.3"), "0.3", 'fallback_epsilon = 2\nadjacency = "all"'),
    "iid 2000 on 3 values": single(iid(2000, "0.5", "0.3", "0.2")),
    "iid 1e5 on 3 values": single(iid(10**5, "0.5", "0.3", "0.2")),
    "iid 400 on 5 values": single(iid(400, "0.35", "0.3", "0.2", "0.1", "0.05")),
    "iid 200 on 50 values": single(iid(200, *["0.02"] * 50)),
    "iid 1000 on 3, all pairs": single(iid(1000, "0.5", "0.3", "0.2"), "0.3", 'adjacency = "all"'),
    "counts to 1e6": single(counts(600_000, 400_000)),
    "counts to 1e9": single(counts(600_000_000, 400_000_000)),
    "counts to 1e9 on 3": single(counts(600_000_000, 300_000_000, 100_000_000)),
    "50 priors of n=400": single(PRIORS),
    "200 kinds of people": single(KINDS),
    "2 parties of 1000": plan(2, 1000),
    "2 parties of 1e5": plan(2, 10**5),
    "2 parties of 1e7": plan(2, 10**7),
    "20 parties of 100": plan(20, 100),
    "40 parties of 2": plan(40, 2, "0.5"),
    "100 parties of 50": plan(100, 50),
    "1000 parties of 5": plan(1000, 5),
    "10 parties, 5 honest": plan(10, 60, "0.3", "honest = 5"),
    "divisible, 100 of 1000": plan(100, 1000, "0.1", 'method = "divisible"'),
    "divisible, 1000 of 1e6": plan(1000, 10**6, "0.1", 'method = "divisible"'),
    "geometric plan, 1000 of 1e6": plan(1000, 10**6, "0.1", 'method = "geometric"'),
    "geo, k=20000, distance 1000": metric("geo", 1000, 20_000, 1000),
    "hybrid, k=20000, distance 1000": metric("hybrid", 1000, 20_000, 1000, "local_epsilon = 2"),
    "sgdl, k=20000, distance 1000": metric("sgdl", 1000, 20_000, 1000),
    "rr, k=20000, distance 1000": metric("rr", 1000, 20_000, 1000),
    "geo, n=1e6": metric("geo", 10**6),
    "rr, n=1e6": metric("rr", 10**6),
    "geo, two dimensions": metric("geo", 1000, 1000, 100, "dimensions = 2"),
    "how many people": metric("sgdl", far=50, more="mae = 20").replace("n = 100\n", ""),
    "amplification 1e6": amplified(10**6),
    "amplification 1e10": amplified(10**10),
    "amplification 1e15": amplified(10**15),
    "amplification, k=1e6": amplified(10**6, k=10**6),
    "amplification, eps0 20": amplified(10**6, "20"),
    "amplification, delta 1e-300": amplified(10**6, more="delta = 1e-300"),
    "amplification, eps0 asked": f'kind = "amplification"\nn = 1000000000\nepsilon = 0.01\ndelta = 1e-12\n{ASKED}',
    "krr-count 1e9": 'kind = "krr-count"\nn = 1000000000\nn_x0 = 800000000\nk = 10\neps0 = 0.5\nepsilon = 0.0001\n',
    "histogram 1e9 of 1e5": 'kind = "shuffle-histogram"\nn = 1000000000\nk = 100000\nepsilon = 0.5\ndelta = 1e-9\n',
    "real sum 1e9": 'kind = "real-sum"\nn = 1000000000\nepsilon = 0.5\ndelta = 1e-9\n',
    "real sum, average_mse 1e-12": 'kind = "real-sum"\naverage_mse = 1e-12\nepsilon = 0.5\ndelta = 1e-6\n',
    "order, 1e5 points": order('points = "1e5.csv"\ncolumns = ["x", "y"]\nradius = "0.01"'),
    "order, 1e5 points, dense": order('points = "1e5.csv"\ncolumns = ["x", "y"]\nradius = "0.05"'),
    "order, 1e6 points": order('points = "1e6.csv"\ncolumns = ["x", "y"]\nradius = "0.001"'),
    "order, graph of 1e5": order('graph = "edges.csv"\nhops = 1'),
    "order, graph of 1e5, 3 hops": order('graph = "edges.csv"\nhops = 3'),
    "order, column of 1e6": order('data = "1e6.csv"\ncolumn = "x"\nwithin = "0.00001"'),
}  # fmt: skip


class Run(NamedTuple):
    code: int
    cpu: float
    seconds: float
    first: float
    silence: float
    megabytes: float
    words: str


def data(folder: Path) -> None:
    """The CSV files that the orders are of."""
    for name, n in (("1e5", 10**5), ("1e6", 10**6)):
        points = np.random.default_rng(0).random((n, 2))
        np.savetxt(folder / f"{name}.csv", points, fmt="%.6f", delimiter=",", header="x,y", comments="")
    edges = np.random.default_rng(1).integers(10**5, size=(400_000, 2))
    np.savetxt(folder / "edges.csv", edges, fmt="%d", delimiter=",", header="from,to", comments="")


def run(path: Path, seconds: float) -> Run:
    """One file; what it says is timed as it comes."""
    begin = time.monotonic()
    surroundings = {name: value for name, value in os.environ.items() if name != "OPTDP_QUIET"}
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "optdp", "solve", str(path), "--json"], stdout=out, stderr=subprocess.PIPE,
            text=True, env=surroundings,
        )  # fmt: skip
        timers = [threading.Timer(seconds, child.send_signal, [signal.SIGTERM]),
                  threading.Timer(seconds + GRACE, child.kill)]  # fmt: skip
        for timer in timers:
            timer.start()
        peak = [0.0]
        watch = threading.Thread(target=_watch, args=(child.pid, peak), daemon=True)
        watch.start()
        times, words = [0.0], ""
        assert child.stderr is not None
        for line in child.stderr:
            times.append(time.monotonic() - begin)
            words = line.strip()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stderr.close()
        for timer in timers:
            timer.cancel()
        times.append(time.monotonic() - begin)
        out.seek(0)
        answer = out.read()
    if answer:
        figures = json.loads(answer)
        words = f"{figures['status']}: {figures.get('note') or ''}"
    silence = max(later - earlier for earlier, later in pairwise(times))
    cpu = used.ru_utime + used.ru_stime
    return Run(child.returncode, cpu, times[-1], times[1], silence, peak[0], words)


def _watch(child: int, peak: list[float]) -> None:
    """Keep the peak memory; what the system says at the end counts what the child had before it became itself."""
    while True:
        try:
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
            peak[0] = next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
        except (OSError, StopIteration):  # it has ended
            return
        time.sleep(0.1)


def chosen(quick: bool) -> Iterator[tuple[str, str]]:
    for number, (name, text) in enumerate(FILES.items()):
        if not quick or number % 3 == 0:
            yield name, text


def large(quick: bool) -> None:
    """Every file, one after the other."""
    table = Table(
        "file", "exit", "CPU s", "wall s", "first word", "silence", "MB", "status, or last words", title="large files"
    )
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        data(folder)
        for name, text in chosen(quick):
            (folder / "p.toml").write_text(text)
            found = run(folder / "p.toml", QUICK if quick else SECONDS)
            figures = (found.cpu, found.seconds, found.first, found.silence)
            row = (
                name,
                str(found.code),
                *(f"{figure:.1f}" for figure in figures),
                f"{found.megabytes:.0f}",
                found.words[:90],
            )
            console.print(escape("  ".join(row)), highlight=False)
            table.add_row(*map(escape, row))
    console.print(table)


if __name__ == "__main__":
    large(quick=False)
