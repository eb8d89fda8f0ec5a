"""Shuffle protocols: calibration, claims and runs beside named peers and the papers' constants, in one run.

Peers of the calibration of Geo-Shuffle, which are what somebody would write without optdp:

- *convolution*: the law of the released noise from scipy's negative binomials, convolved by FFT (`NB(n) - NB(n)`), the
  hockey-stick divergence by a sum, epsilon by `brentq`, and `eps_geo` by bisection around it. It knows nothing of the
  truncation, and its rounding errors are absolute: no claim, but the same question.
- *dp-accounting*: Google's privacy loss distributions on the same pair of laws, pessimistic, with its own
  discretisation of losses; bisection around that. It knows nothing of the truncation either.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.stats import nbinom

from optdp import MetricShuffle, RealSum, compare_mechanisms, solve
from optdp.shuffle.metric.theorems import theorem_4_1, theorem_4_1_noise

console = Console(width=150)
DISCRETISED = 1e-5
"""The width of dp-accounting's loss buckets; its default of 1e-4 is coarser."""


def timed(run: Callable[[], float]) -> tuple[float, float]:
    begin = time.perf_counter()
    value = run()
    return value, time.perf_counter() - begin


def noise_law(n: float, eps_geo: float) -> NDArray[np.float64]:
    """`SGDL(n, e^-eps_geo)` by an FFT of scipy's negative binomials; tails below 1e-16 are cut off."""
    q = math.exp(-eps_geo)
    low, high = int(nbinom.ppf(1e-16, n, 1.0 - q)), int(nbinom.isf(1e-16, n, 1.0 - q))
    one = nbinom.pmf(np.arange(low, high + 1), n, 1.0 - q)
    return np.maximum(fftconvolve(one, one[::-1]), 0.0)


def convolution_epsilon(n: float, eps_geo: float, delta: float) -> float:
    """Epsilon at distance 1."""
    law = noise_law(n, eps_geo)
    here, there = np.append(law, 0.0), np.append(0.0, law)

    def excess(loss: float) -> float:
        return float(np.maximum(here - math.exp(loss) * there, 0.0).sum()) - delta

    return float(brentq(excess, 0.0, 20.0, xtol=1e-10)) if excess(0.0) > 0.0 else 0.0


def accounting_epsilon(n: float, eps_geo: float, delta: float, interval: float = DISCRETISED) -> float:
    """The same by dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    law = noise_law(n, eps_geo)
    places = np.arange(len(law))
    kept = law > 1e-30
    logs = np.log(law[kept])
    upper = dict(zip(places[kept].tolist(), logs.tolist(), strict=True))
    lower = {place + 1: value for place, value in upper.items()}
    found = pld.from_two_probability_mass_functions(
        lower, upper, pessimistic_estimate=True, value_discretization_interval=interval
    )
    return float(found.get_epsilon_for_delta(delta))


def calibrated(epsilon: Callable[[float, float, float], float], n: float, wanted: float, delta: float) -> float:
    """The largest eps_geo by bisection, to seven digits."""
    low, high = 1e-2, 20.0
    while high - low > 1e-7 * low:
        middle = (low + high) / 2.0
        low, high = (middle, high) if epsilon(n, middle, delta) <= wanted else (low, middle)
    return low


def deviation(n: float, eps_geo: float) -> float:
    return math.sqrt(2.0 * n * math.exp(-eps_geo)) / -math.expm1(-eps_geo)


def claims() -> None:
    """Epsilon at distance 1 for given noise: the paper's, ours, the best peer's."""
    table = Table(
        "n", "eps_geo", "delta", "Theorem 4.1", "optdp, c as found", "optdp, c = 60", "dp-accounting 1e-4",
        f"dp-accounting {DISCRETISED:g}", "convolution", title="epsilon of Geo-Shuffle at distance 1",
    )  # fmt: skip
    for n, eps_geo, delta in ((100, 0.8, 1e-4), (1000, 1.5, 1e-6), (10_000, 3.0, 1e-6)):
        given = MetricShuffle("geo", n, 1000, f"{delta:g}", eps_geo=f"{eps_geo:g}")
        table.add_row(
            f"{n:,}", f"{eps_geo:g}", f"{delta:g}", f"{theorem_4_1(n, eps_geo, delta):.6f}",
            f"{solve(given).epsilon:.6f}", f"{solve(given.changed(c=60)).epsilon:.6f}",
            f"{accounting_epsilon(n, eps_geo, delta, 1e-4):.6f}", f"{accounting_epsilon(n, eps_geo, delta):.6f}",
            f"{convolution_epsilon(n, eps_geo, delta):.6f}",
        )  # fmt: skip
    console.print(table)
    console.print("optdp pays for truncation and proves its figure; the peers do neither\n")


def noise() -> None:
    """What has to be added for an epsilon: Theorem 4.1 beside ours."""
    table = Table("n", "epsilon", "delta", "Theorem 4.1's deviation", "optdp's", "ratio", title="noise of Geo-Shuffle")
    for n in (50, 100, 1000, 10_000):
        for eps, delta in (("0.1", "1e-4"), ("0.5", "1e-4"), ("0.1", "1e-6"), ("0.5", "1e-6")):
            demanded = theorem_4_1_noise(n, float(eps), float(delta))
            assert demanded is not None
            theirs, ours = deviation(n, demanded), solve(MetricShuffle("geo", n, 1000, delta, eps)).rmse
            table.add_row(f"{n:,}", eps, delta, f"{theirs:.3f}", f"{ours:.3f}", f"{ours / theirs:.3f}")
    console.print(table)


def calibration(quick: bool) -> None:
    """From epsilon to eps_geo, in seconds, beside the peers."""
    n, wanted, delta = 10_000 if quick else 100_000, 0.2, 1e-6
    title = f"calibration of a metric shuffle, n = {n:,}, epsilon = {wanted:g}, delta = {delta:g}"
    table = Table("who", "eps_geo", "seconds", "optdp is faster by", title=title)
    given = MetricShuffle("geo", n, 100, "1e-6", "0.2")
    solve(given.changed(n=n // 2))
    ours, seconds = timed(lambda: solve(given).eps_geo or 0.0)
    table.add_row("optdp, with padding, certified", f"{ours:.6f}", f"{seconds:.3f}", "1")
    peers: dict[str, Callable[[float, float, float], float]] = {
        "convolution + bisection": convolution_epsilon,
        "dp-accounting + bisection": lambda m, e, d: accounting_epsilon(m, e, d, 1e-4),
    }
    for name, epsilon in peers.items():
        found, spent = timed(lambda epsilon=epsilon: calibrated(epsilon, n, wanted, delta))  # type: ignore[misc]
        table.add_row(name, f"{found:.6f}", f"{spent:.3f}", f"{spent / seconds:.1f}x")
    for mechanism, more in (("sgdl", {}), ("rr", {}), ("hybrid", {"local_epsilon": "7"})):
        solution, spent = timed(lambda m=mechanism, o=more: solve(given.changed(mechanism=m, **o)).mae)  # type: ignore[misc]
        table.add_row(f"optdp, {mechanism}", f"MAE {solution:.3f}", f"{spent:.3f}", "")
    console.print(table)


RUN = """
import json, resource, sys, time
import numpy as np
from optdp import MetricShuffle, solve
from optdp.numbers.source import Source
mechanism, n, more = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
begin = time.perf_counter()
solution = solve(MetricShuffle(mechanism, n, 100, "1e-6", "0.1", **more))
solved = time.perf_counter() - begin
values = np.random.default_rng(1).integers(0, 101, n)
protocol, begin = solution.protocol(), time.perf_counter()
messages = protocol.randomize(values, Source())
estimate = protocol.analyze(protocol.shuffle(messages))
ran = time.perf_counter() - begin
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([solved, ran, memory, estimate.sums[0] - int(values.sum()), solution.mae]))
"""


def runs(quick: bool) -> None:
    """Everybody's message with the operating system's bits, in a process of its own; then the command on a CSV."""
    n = 100_000 if quick else 1_000_000
    table = Table(
        "mechanism", "solved, s", "run, s", "peak MB", "error", "MAE", title=f"a run over {n:,} users, k = 100"
    )
    for mechanism in ("rr", "geo", "sgdl", "hybrid", "geo-local", "geo-central"):
        more = json.dumps({"local_epsilon": "8"} if mechanism == "hybrid" else {})
        done = subprocess.run(
            [sys.executable, "-c", RUN, mechanism, str(n), more], capture_output=True, text=True, check=True
        )
        solved, ran, memory, error, mae = json.loads(done.stdout)
        table.add_row(mechanism, f"{solved:.2f}", f"{ran:.2f}", f"{memory:.0f}", f"{error:.1f}", f"{mae:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        values = np.random.default_rng(1).integers(0, 101, n)
        (here / "v.csv").write_text("x\n" + "\n".join(map(str, values.tolist())) + "\n")
        (here / "p.toml").write_text(
            f'kind = "metric-shuffle"\nmechanism = "sgdl"\nn = {n}\nk = 100\ndelta = 1e-6\nepsilon = 0.1\n'
        )
        script = (
            "import resource, subprocess, sys\n"
            "command = [sys.executable, '-m', 'optdp', *sys.argv[1:]]\n"
            "subprocess.run(command, check=True, stdout=subprocess.DEVNULL)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)\n"
        )
        args = ["run", here / "p.toml", "--data", here / "v.csv", "--column", "x", "--out", here / "e.json"]
        begin = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, check=True)
        table.add_row(
            "optdp run, sgdl, a CSV", "", f"{time.perf_counter() - begin:.2f}", f"{float(done.stdout):.0f}", "", ""
        )
    console.print(table)


def sums() -> None:
    """Real summation: ours, Theorem 1's constants, the lower bound, a trusted curator."""
    table = Table(
        "n", "epsilon", "delta", "k", "MSE", "Theorem 1's", "ratio", "lower bound", "curator", "seconds",
        title="mean squared error of a sum of numbers in [0, 1]",
    )  # fmt: skip
    for n, eps, delta in (
        (10_000, "0.5", "1e-6"),
        (100_000, "0.5", "1e-6"),
        (100_000, "1", "1e-8"),
        (10**6, "0.2", "1e-8"),
    ):
        found = solve(RealSum(n, eps, delta))
        theirs = found.theorem_1_mse
        table.add_row(
            f"{n:,}", eps, delta, str(found.k), f"{found.mse:.4g}", "none" if theirs is None else f"{theirs:.4g}",
            "" if theirs is None else f"{found.mse / theirs:.3f}", f"{found.lower_mse:.4g}", f"{found.central_mse:.4g}",
            f"{found.seconds:.2f}",
        )  # fmt: skip
    console.print(table)


def hybrids() -> None:
    """What a stated local epsilon costs: from Geo-Shuffle to SGDL-Shuffle; then every mechanism at one promise."""
    given = MetricShuffle("hybrid", 1000, 100, "1e-6", "0.2", local_epsilon="3")
    title = "n = 1000, k = 100, delta = 1e-6, epsilon = 0.2"
    table = Table("wanted", "local epsilon", "beta", "eps_geo", "MAE", "bits per user", title=f"hybrids, {title}")
    for local in ("1", "2", "2.5", "3", "4", "5", "6", "7", "8"):
        found = solve(given.changed(local_epsilon=local))
        table.add_row(
            local, f"{found.local_epsilon:.4f}", f"{found.beta:.5f}", f"{found.eps_geo:.4f}", f"{found.mae:.3f}",
            f"{found.bits_per_user}",
        )  # fmt: skip
    console.print(table)
    table = Table("mechanism", "eps honest", "eps compromised", "MAE", "bits per user", title=title)
    for row in compare_mechanisms(given):
        table.add_row(
            row.problem.mechanism, f"{row.epsilon:.5f}", f"{row.local_epsilon:.4f}", f"{row.mae:.3f}",
            f"{row.bits_per_user}",
        )  # fmt: skip
    console.print(table)


def shuffle(quick: bool) -> None:
    """All of it."""
    claims()
    noise()
    calibration(quick)
    runs(quick)
    sums()
    hybrids()


if __name__ == "__main__":
    shuffle("--quick" in sys.argv)
