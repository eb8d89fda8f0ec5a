"""Exported samplers: draws a second on one core beside OpenDP's discrete Laplace noise, and whether they keep the law.

Times are of the processor, not of the clock, and of drawing alone: each program draws in a loop of its own. A peer adds
geometric noise of the same epsilon to the same inputs; it is OpenDP if that is installed, else a loop over `secrets`.
"""

from __future__ import annotations

import math
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import chi2

from optdp import NoiseMatrix, Population, SingleLTE, solve
from optdp.export import export

console = Console(width=150)

C = """#include "sampler.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int count, char **arguments)
{
    long draws = count > 1 ? atol(arguments[1]) : 0;
    static int64_t x[1 << 16], released[1 << 16];
    clock_t begin;
    for (int i = 0; i < 1 << 16; i++)
        x[i] = i % 101;
    begin = clock();
    for (long done = 0; done < draws; done += 1 << 16)
        if (sampler_release_many(x, released, 1 << 16) != SAMPLER_OK)
            return 1;
    printf("%.9f\\n", (double)(clock() - begin) / CLOCKS_PER_SEC);
    return 0;
}
"""
JS = """import { releaseMany } from "./sampler.mjs";
const draws = Number(process.argv[2]), inputs = Array.from({ length: 1 << 16 }, (_, i) => i % 101);
releaseMany(inputs);
const begin = process.cpuUsage();
for (let done = 0; done < draws; done += 1 << 16) releaseMany(inputs);
const used = process.cpuUsage(begin);
console.log((used.user + used.system) / 1e6);
"""
PYTHON = """import sys, time
from sampler import release_many
draws, inputs = int(sys.argv[1]), [i % 101 for i in range(1 << 16)]
begin = time.process_time()
for done in range(0, draws, 1 << 16):
    release_many(inputs)
print(time.process_time() - begin)
"""


def samplers(quick: bool) -> None:
    """Rates, and a chi-square test of each language."""
    matrix = solve(SingleLTE(Population.binomial(100, "0.1"), "0.3")).mechanism
    peer_name, peer = _peer()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        rates = {
            "C, release_many": _c(matrix, folder, quick),
            "JavaScript, releaseMany": _js(matrix, folder, quick),
            "Python alone, release_many": _python(matrix, folder, quick),
            "optdp, mechanism.sample of an array": _library(matrix, quick),
            "SQLite, one SELECT": _sqlite_rate(matrix, folder, 5_000 if quick else 50_000),
        }
        table = Table("sampler", "draws a second", f"against {peer_name}", "wanted", title="samplers, n=100, eps .3")
        for name, rate in rates.items():
            wanted = {"C, release_many": "5,000,000", "optdp, mechanism.sample of an array": "500,000"}.get(name, "")
            table.add_row(
                name,
                "not installed" if rate is None else f"{rate:,.0f}",
                "" if rate is None else f"{rate / peer:,.1f}x",
                wanted,
            )
        table.add_row(peer_name, f"{peer:,.0f}", "1x", "")
        console.print(table)
        _laws(matrix, folder, 100_000 if quick else 1_000_000)


def _peer() -> tuple[str, float]:
    draws = 50_000
    try:
        import opendp.prelude as dp
    except ImportError:
        begin = time.process_time()
        for _ in range(draws):
            _laplace_by_secrets()
        return "a loop over secrets", draws / (time.process_time() - begin)
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    noise = dp.m.make_laplace(*space, scale=1 / 0.3)
    inputs = [i % 101 for i in range(draws)]
    begin = time.process_time()
    noise(inputs)
    return "OpenDP's make_laplace of a vector", draws / (time.process_time() - begin)


def _laplace_by_secrets() -> int:
    """What a programmer would write: geometric noise by trials, each against 62 bits."""
    q = int(math.exp(-0.3) * 2**62)
    size = 0
    while secrets.randbits(62) < q:
        size += 1
    return size if secrets.randbits(1) else -size


def _timed(command: list[object], draws: int) -> float:
    done = subprocess.run([*map(str, command), str(draws)], check=True, capture_output=True, text=True)
    return (-(-draws // (1 << 16)) << 16) / float(done.stdout)


def _c(matrix: NoiseMatrix, folder: Path, quick: bool) -> float | None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    export(matrix, "c", folder)
    (folder / "bench.c").write_text(C)
    sources = [folder / "bench.c", folder / "sampler.c"]
    subprocess.run([compiler, "-std=c99", "-O2", "-o", folder / "bench", *sources], check=True)
    subprocess.run(
        [compiler, "-std=c99", "-O2", "-DSAMPLER_MAIN", "-o", folder / "sampler", folder / "sampler.c"], check=True
    )
    return _timed([folder / "bench"], 2_000_000 if quick else 20_000_000)


def _js(matrix: NoiseMatrix, folder: Path, quick: bool) -> float | None:
    if shutil.which("node") is None:
        return None
    export(matrix, "js", folder)
    (folder / "bench.mjs").write_text(JS)
    return _timed(["node", folder / "bench.mjs"], 500_000 if quick else 5_000_000)


def _python(matrix: NoiseMatrix, folder: Path, quick: bool) -> float:
    export(matrix, "python", folder)
    (folder / "bench.py").write_text(PYTHON)
    return _timed([sys.executable, folder / "bench.py"], 1 << 16 if quick else 500_000)


def _library(matrix: NoiseMatrix, quick: bool) -> float:
    inputs = np.arange(500_000 if quick else 4_000_000, dtype=np.int64) % 101
    matrix.sample(inputs[:1000])
    begin = time.process_time()
    matrix.sample(inputs)
    return len(inputs) / (time.process_time() - begin)


def _sqlite(matrix: NoiseMatrix, folder: Path, inputs: list[int]) -> tuple[list[int], float]:
    (path,) = export(matrix, "sql", folder)
    base = sqlite3.connect(":memory:")
    base.executescript(path.read_text())
    base.executemany("INSERT INTO optdp_requests VALUES (?, ?)", enumerate(inputs))
    words = ((i, place, secrets.randbits(62)) for i in range(len(inputs)) for place in range(matrix.drawing.slots))
    base.executemany("INSERT INTO optdp_words VALUES (?, ?, ?)", words)
    begin = time.process_time()
    released = [s for (s,) in base.execute("SELECT released FROM optdp_released")]
    seconds = time.process_time() - begin
    base.close()
    return released, seconds


def _sqlite_rate(matrix: NoiseMatrix, folder: Path, draws: int) -> float:
    return draws / _sqlite(matrix, folder, [i % 101 for i in range(draws)])[1]


def _laws(matrix: NoiseMatrix, folder: Path, draws: int) -> None:
    """Pearson's test of so many draws of one input, in every language."""
    x = 5
    ways: dict[str, Callable[[], list[int]]] = {
        "C": lambda: _printed([folder / "sampler", x, draws]),
        "JavaScript": lambda: _printed(["node", folder / "sampler.mjs", x, draws]),
        "Python alone": lambda: _printed([sys.executable, folder / "sampler.py", x, draws]),
        "SQLite": lambda: _sqlite(matrix, folder, [x] * draws)[0],
        "optdp": lambda: matrix.sample(x, draws),
    }
    table = Table("sampler", "draws", "p of chi-square", "below 1e-6 would fail", title=f"the law of input {x}")
    for name, way in ways.items():
        try:
            found = Counter(way())
        except FileNotFoundError:
            table.add_row(name, "0", "not installed", "")
            continue
        p = _p_value(found, matrix, x)
        table.add_row(name, f"{found.total():,}", f"{p:.4f}", "holds" if p > 1e-6 else "FAILS")
    console.print(table)


def _printed(command: list[object]) -> list[int]:
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def _p_value(counts: Counter[int], matrix: NoiseMatrix, x: int) -> float:
    total, statistic, cells, rest, others = counts.total(), 0.0, 0, 1.0, counts.total()
    for s in range(x - 200, x + 200):
        expected = total * float(matrix.probability(x, s).mid())
        if expected >= 20:
            statistic, cells = statistic + (counts[s] - expected) ** 2 / expected, cells + 1
            rest, others = rest - expected / total, others - counts[s]
    if total * rest >= 5:
        statistic, cells = statistic + (others - total * rest) ** 2 / (total * rest), cells + 1
    return float(chi2.sf(statistic, cells - 1))
