"""Benchmarks: `make bench`, or `python -m tests.bench [names] [--quick]`.

Every speed is a ratio measured in one run against a named peer on the same problem. optdp's time is the whole of
formulating, solving, repairing and certifying; a peer's is what its user would wait for, building and solving.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from optdp import OptdpError, Population, SingleLTE, solve, verify
from optdp.comparison.measure import raw_epsilon
from optdp.numbers.exact import precision
from optdp.programs.backends import Chosen, find, installed
from optdp.single.lp import formulate
from optdp.single.posed import pose, solve_posed
from tests.bench.amplification import amplification
from tests.bench.audit import audit
from tests.bench.hostile import hostile
from tests.bench.large import large
from tests.bench.mutants import survivors
from tests.bench.observers import observers
from tests.bench.orders import orders
from tests.bench.plans import inside, large_plans, plan_bounds, plans
from tests.bench.samplers import samplers
from tests.bench.shuffle import shuffle
from tests.random_problems import problem as random_problem

console = Console(width=150)


def timed(run: Callable[[], object], repeats: int) -> float:
    """The median of so many runs, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def peer(problem: SingleLTE, solver: str) -> tuple[float, str]:
    """A backend on the plain program: seconds to build and solve it, and the real epsilon of what it returned."""
    begin = time.perf_counter()
    with precision():
        lp = formulate(problem)
        draft = solve_posed(pose(lp, "plain"), Chosen(find(solver)))
        seconds = time.perf_counter() - begin
        found = raw_epsilon(lp, draft)
    return seconds, "infinite" if found is None else f"{found:.10g}"


def plain_highs(problem: SingleLTE) -> float:
    """The plain program in highspy, from formulating to its answer, in seconds."""
    from optdp.programs.highs import solve_highs

    begin = time.perf_counter()
    with precision():
        lp = formulate(problem)
        solve_highs(lp.to_program())
    return time.perf_counter() - begin


def speed(quick: bool) -> None:
    """Against CVXPY's solvers at n=400, and the plain program in highspy at n=2000."""
    table = Table("problem", "who", "runs", "seconds", "optdp is faster by", "real epsilon", title="speed")
    problem = SingleLTE(Population.binomial(400, "0.5"), "0.3")
    solve(problem)
    ours = timed(lambda: solve(problem), 5)
    certified = solve(problem).certificate.epsilon
    table.add_row("n=400, eps .3", "optdp", "5", f"{ours:.4f}", "1", f"{float(certified or 0):.10g} (certified)")
    for name in ("highs-simplex", "piqp", "clarabel"):
        if name not in [backend.name for backend in installed()]:
            table.add_row("", name, "0", "not installed", "", "")
            continue
        repeats = 5 if name == "highs-simplex" else 1
        if quick and name == "clarabel":
            continue
        runs = [peer(problem, name) for _ in range(repeats)]
        theirs, found = statistics.median(seconds for seconds, _ in runs), runs[-1][1]
        table.add_row("", f"{name}, plain", str(repeats), f"{theirs:.3f}", f"{theirs / ours:.0f}x", found)
    if not quick:
        large = SingleLTE(Population.binomial(2000, "0.5"), "0.02")
        ours = timed(lambda: solve(large), 5)
        table.add_row("n=2000, eps .02", "optdp", "5", f"{ours:.3f}", "1", "")
        theirs = plain_highs(large)
        table.add_row("", "highspy, plain", "1", f"{theirs:.1f}", f"{theirs / ours:.0f}x", "")
    console.print(table)


def scale(quick: bool) -> None:
    """Very many people, a fallback, and general populations, each in a process of its own."""
    table = Table("problem", "seconds", "peak MB", "MAE", "proved gap", "engine", "entries", title="scale")
    d4 = ["0.35", "0.3", "0.2", "0.1", "0.05"]
    kinds = "+".join(f'[["{1 - k / 10:.1f}", "{k / 10:.1f}"]] * 40' for k in (1, 2, 3, 5, 7))
    five = "+".join(
        f"[{[str(v) for v in law]}] * 40"
        for law in (d4, d4[::-1], ["0.2"] * 5, ["0.6", "0.1", "0.1", "0.1", "0.1"], ["0.1", "0.2", "0.4", "0.2", "0.1"])
    )
    cases = [
        ("n=400, eps .3", 'Population.binomial(400, "0.5"), "0.3"'),
        ("n=2000, eps .02", 'Population.binomial(2000, "0.5"), "0.02"'),
        ("n=5000, eps .02", 'Population.binomial(5000, "0.5"), "0.02"'),
        ("n=20,000, eps .01", 'Population.binomial(20_000, "0.5"), "0.01"'),
        ("n=100,000, eps .02", 'Population.binomial(100_000, "0.5"), "0.02"'),
        ("n=100,000, eps .005", 'Population.binomial(100_000, "0.5"), "0.005"'),
        ("n=1,000,000, eps .02", 'Population.binomial(1_000_000, "0.5"), "0.02"'),
        ("n=1,000,000, eps .005", 'Population.binomial(1_000_000, "0.5"), "0.005"'),
        ("n=100, eps .3, fallback 2", 'Population.binomial(100, "0.5"), "0.3", "2"'),
        ("n=300, eps .3, fallback 2", 'Population.binomial(300, "0.5"), "0.3", "2"'),
        ("200 people, D=4, eps .3", f'Population.iid(200, {d4}), "0.3"'),
        ("200 people, D=4, eps .3, all pairs", f'Population.iid(200, {d4}), "0.3", adjacency="all"'),
        ("5 kinds of 40, D=1, eps .3", f'Population.independent({kinds}), "0.3"'),
        ("5 kinds of 40, D=4, eps .3", f'Population.independent({five}), "0.3"'),
    ]
    for name, call in cases[: 3 if quick else None]:
        script = (
            "import json, resource, time\n"
            "from optdp import Population, SingleLTE, solve\n"
            "import optdp.single.engines\n"
            f"begin = time.perf_counter(); solution = solve(SingleLTE({call}))\n"
            "print(json.dumps([time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,"
            " solution.mae, solution.gap, solution.engine, sum(map(len, solution.mechanism.rows))]))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        if done.returncode:
            table.add_row(name, done.stderr.strip().splitlines()[-1])
            continue
        seconds, memory, mae, gap, used, entries = json.loads(done.stdout)
        table.add_row(name, f"{seconds:.2f}", f"{memory:.0f}", f"{mae:.7g}", f"{gap:.1e}", used, f"{entries:,}")
    console.print(table)


def random(quick: bool) -> None:
    """Random problems: none above its target, none refused without a stated reason."""
    count = 200 if quick else 2000
    tally: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        for seed in range(count):
            problem = random_problem(10_000 + seed, small=seed % 2 == 0)
            try:
                solution = solve(problem)
            except OptdpError as error:
                tally["refused"] += 1
                reasons[str(error)[:80]] += 1
                continue
            solution.save(path)
            found = verify(path).certificate
            tally[solution.status] += 1
            tally["above target"] += found.epsilon is None or found.epsilon > problem.epsilon
            if problem.fallback_epsilon is not None:
                ordinary = found.ordinary_epsilon
                tally["above fallback"] += ordinary is None or ordinary > problem.fallback_epsilon
            tally["gap proved <= 1e-6"] += solution.gap is not None and solution.gap <= 1e-6
    table = Table("what", "how many", title=f"{count} random problems, {time.perf_counter() - begin:.0f} s")
    for name in ("above target", "above fallback", "refused"):
        table.add_row(name, str(tally.pop(name, 0)), style="bold")
    for name, number in sorted(tally.items()):
        table.add_row(name, str(number))
    for reason, number in reasons.items():
        table.add_row(f"refused: {reason}", str(number))
    console.print(table)


def deploy(quick: bool) -> None:
    """Verifying an artifact in a fresh process, and drawing from it."""
    table = Table("what", "figure", title="deployment, n=400, eps .3")
    solution = solve(SingleLTE(Population.binomial(400, "0.5"), "0.3"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        solution.save(path)
        command = [sys.executable, "-m", "optdp", "verify", str(path)]
        seconds = timed(lambda: subprocess.run(command, check=True, capture_output=True), 3)
        table.add_row("optdp verify, whole process", f"{seconds:.2f} s")
        table.add_row("size of the artifact", f"{path.stat().st_size / 1024:.0f} kB")
    draws = 300_000
    for x in (200, 100, 0):
        rate = draws / timed(lambda x=x: solution.mechanism.sample(x, draws), 1)  # type: ignore[misc]
        table.add_row(f"draws a second of input {x}, one call", f"{rate:,.0f}")
    console.print(table)


BENCHMARKS: dict[str, Callable[[bool], None]] = {
    "speed": speed,
    "scale": scale,
    "random": random,
    "deploy": deploy,
    "plans": plans,
    "large-plans": large_plans,
    "plan-bounds": plan_bounds,
    "inside": inside,
    "observers": observers,
    "large": large,
    "amplification": amplification,
    "shuffle": shuffle,
    "orders": orders,
    "samplers": samplers,
    "hostile": hostile,
    "audit": audit,
    "mutants": survivors,
}
ONLY_BY_NAME = ("mutants",)
"""What takes hours."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which; by default all but mutants")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    chosen = parser.parse_args()
    for name in chosen.names or [name for name in BENCHMARKS if name not in ONLY_BY_NAME]:
        BENCHMARKS[name](chosen.quick)
    console.print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
