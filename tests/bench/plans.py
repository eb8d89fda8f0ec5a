"""Plans of several entities against the design they are to beat: block programs on a plain model, from shared noise.

The peer is the recipe of a joint plan in its plainest form: tables with outputs `-T..n+T`, a start from geometric
shares of a smaller epsilon (.9 and .1 of the noise for two parties, which ends lower than equal ones), one sweep after
another in CVXPY and HiGHS. Its answer is measured as it stands, without repair.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table

from optdp import SGDL, MultiLTE, Population, solve
from optdp.plan.bound import best_layout, priced
from optdp.plan.bound_proof import proved
from optdp.plan.joint import PlanDraft
from optdp.plan.models import block_model
from optdp.plan.parties import parties_of
from tests.loopback import made_keys, write_places

CASES: list[tuple[int, int, str, str, int]] = [
    (2, 2, "0.5", "0.5", 4),
    (2, 4, "0.5", "0.5", 6),
    (2, 6, "0.5", "0.5", 8),
    (2, 25, "0.5", "0.5", 14),
    (2, 12, "0.5", "0.5", 14),
    (3, 20, "0.5", "0.5", 14),
    (2, 50, "0.1", "0.3", 30),
    (5, 10, "0.5", "0.5", 14),
]
"""Parties, people in each, p, epsilon, and how far the peer's outputs leave the inputs."""


INSIDE = [(51, "0.5", 3), (51, "0.5", 2), (150, "0.5", 3), (150, "0.5", 2), (1000, "0.1", 3)]
"""People in all, epsilon, and how many of three parties are surely honest."""


def peer(problem: MultiLTE, margin: int, sweeps: int) -> tuple[float, float, float]:
    """Seconds, the error, and the real epsilon (in floating point) of the plain recipe."""
    begin = time.perf_counter()
    count = len(problem.parties)
    shares = [Fraction(9, 10), Fraction(1, 10)] if count == 2 else [Fraction(1, count)] * count
    q = Fraction(float(np.exp(-0.7 * float(problem.epsilon)))).limit_denominator(10**9)
    parties = parties_of(problem, [margin] * count)
    tables = []
    for party, share in zip(parties, shares, strict=True):
        gaps = np.subtract.outer(party.reports, party.targets).T.astype(int)
        noise = SGDL(share, q)
        table = np.asarray(noise.pmf(gaps), dtype=float)
        table[:, 0] = noise.cdf(gaps[:, 0])
        table[:, -1] = noise.sf(gaps[:, -1] - 1)
        tables.append(table / table.sum(axis=1, keepdims=True))
    plan = PlanDraft(tuple(parties), tuple(tables), problem.honest)
    for _ in range(sweeps):
        for i in range(count):
            model, r = block_model(plan.block(i, 1))
            with warnings.catch_warnings(), contextlib.suppress(cp.error.SolverError):
                warnings.simplefilter("ignore")
                model.solve(solver="HIGHS")
            if r.value is not None:
                table = np.maximum(r.value, 0)
                plan = plan.replaced([i], table / table.sum(axis=1, keepdims=True))
    seconds = time.perf_counter() - begin
    excess = max(plan.block(i, 1).excess(plan.tables[i]) for i in range(count))
    return seconds, plan.error(), excess * float(problem.epsilon)


def large_plans(quick: bool) -> None:
    """The plans of the library that take minutes: time, error and bound."""
    from optdp import library
    from optdp.loading import load_file

    table = Table("file", "people", "geometric", "optdp", "eps proved", "bound", "seconds")
    for path in library.problems().values():
        problem = load_file(path, allow_outside=True).problem
        if not isinstance(problem, MultiLTE) or sum(party.last for party in problem.parties) <= 2000 or quick:
            continue
        found = solve(problem)
        assert found.certificate.epsilon is not None
        table.add_row(
            path.stem,
            f"{sum(party.size for party in problem.parties):,}",
            f"{found.baseline_mae:.4f}",
            f"{found.mae:.4f}",
            f"{float(found.certificate.epsilon):.8f}",
            f"{float(found.lower_bound or 0):.6f}",
            f"{found.seconds:.0f}",
        )
    Console(width=150).print(table)


def plan_bounds(quick: bool) -> None:
    """The lower bound for every plan: its blocks and size, and the time to find it and to prove it again."""
    table = Table("m", "people", "p", "eps", "blocks", "entries", "bound", "seconds", "proof")
    for count, people, p, epsilon, _ in CASES[:2] if quick else [*CASES, (2, 50, "0.5", "0.5", 0)]:
        problem = MultiLTE([Population.binomial(people, p)] * count, epsilon, method="joint")
        layout = best_layout(problem)
        assert layout is not None
        begin = time.process_time()
        prices = priced(problem, layout)
        found = time.process_time()
        assert prices is not None
        bound = proved(problem, prices)
        table.add_row(
            str(count),
            str(people),
            p,
            epsilon,
            str(len(layout.parties)),
            f"{layout.entries:,.0f}",
            f"{float(bound):.6f}",
            f"{found - begin:.2f}",
            f"{time.process_time() - found:.2f}",
        )
    Console(width=150).print(table)


def inside(quick: bool) -> None:
    """Releases drawn inside, by three processes on this machine: the design, and one draw with starting Python."""
    table = Table(
        "people", "p", "eps", "honest", "geometric", "optdp", "bound", "design, s", "draw, s", "CPU of all, s"
    )
    for people, epsilon, honest in INSIDE[:3] if quick else INSIDE:
        sizes = [people // 3, people // 3, people - 2 * (people // 3)]
        plan = solve(MultiLTE([Population.binomial(n, "0.5") for n in sizes], epsilon, method="inside", honest=honest))
        with tempfile.TemporaryDirectory() as home:
            plan.save(Path(home) / "plan")
            write_places(Path(home) / "parties.toml", made_keys(Path(home), 3))
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-m", "optdp", "aggregate", f"{home}/plan", "--parties", f"{home}/parties.toml"]
            started = [
                subprocess.Popen(
                    [
                        *command,
                        "--party",
                        str(i),
                        "--input",
                        str(n // 2),
                        "--key",
                        f"{home}/party-{i}.pem",
                        "--run",
                        "1",
                    ],
                    stdout=subprocess.PIPE,
                )
                for i, n in enumerate(sizes)
            ]
            found = {process.communicate()[0] for process in started}
            seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        assert len(found) == 1
        table.add_row(
            str(people), "0.5", epsilon, str(honest), f"{plan.baseline_mae:.4f}", f"{plan.mae:.4f}",
            f"{float(plan.lower_bound or 0):.4f}", f"{plan.seconds:.2f}", f"{seconds:.1f}",
            f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f}",
        )  # fmt: skip
    Console(width=150).print(table)


def plans(quick: bool) -> None:
    """MAE and time of joint plans, with the proved bound, against the plain recipe."""
    table = Table(
        "m", "people", "p", "eps", "geometric", "optdp", "seconds", "eps proved", "bound", "peer", "seconds", "eps", "x"
    )
    for count, people, p, epsilon, margin in CASES[:2] if quick else CASES:
        problem = MultiLTE([Population.binomial(people, p)] * count, epsilon, method="joint")
        found = solve(problem)
        seconds, error, real = peer(problem, margin, 1 if quick else 2)
        assert found.certificate.epsilon is not None
        table.add_row(
            str(count),
            str(people),
            p,
            epsilon,
            f"{found.baseline_mae:.4f}",
            f"{found.mae:.4f}",
            f"{found.seconds:.1f}",
            f"{float(found.certificate.epsilon):.8f}",
            f"{float(found.lower_bound or 0):.4f}",
            f"{error:.4f}",
            f"{seconds:.1f}",
            f"{real:.4g}",
            f"{seconds / found.seconds:.0f}",
        )
    Console(width=150).print(table)
