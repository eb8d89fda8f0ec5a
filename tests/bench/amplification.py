"""What shuffling buys: optdp's values and times beside the numerical peers, each measured in the same run.

The peers are transcriptions of two published algorithms (`amplification_peers`): clones numerically (Feldman, McMillan
and Talwar 2021) and the variation-ratio reduction (Wang et al. 2024). A curve of 100 points is one line of
`optdp curve`; it is compared with one point of a peer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from optdp import KRR, Amplification, Generic, Laplace, solve
from optdp.amplification.bounds import BOUNDS, leader
from optdp.amplification.calibrate import answer
from optdp.amplification.randomizers import Randomizer
from optdp.amplification.solve import point
from tests.bench.amplification_peers import clones_numeric, variation_ratio

POINTS = [(10**4, "2", "1e-6"), (10**5, "4", "1e-6"), (10**6, "4", "1e-8")]
RANDOMIZERS: dict[str, Randomizer] = {"generic": Generic(), "10-RR": KRR(10), "Laplace": Laplace(), "2-RR": KRR(2)}


def timed(run: Callable[[], float]) -> tuple[float, float]:
    begin = time.perf_counter()
    value = run()
    return value, time.perf_counter() - begin


def amplification(quick: bool) -> None:
    """Values and times at the reference points, then the curve."""
    console = Console(width=150)
    table = Table(
        "people", "randomizer", "variation ratio", "s", "clones", "s", "optdp", "lower", "best, s", "table, s",
        "ratio to v.r.", "ratio to clones", title="epsilon of shuffled reports",
    )  # fmt: skip
    chosen = POINTS[:1] if quick else POINTS
    for n, eps0, delta in chosen:
        clones, clones_time = timed(lambda n=n, e=eps0, d=delta: clones_numeric(n, float(e), float(d)))  # type: ignore[misc]
        for name, randomizer in RANDOMIZERS.items():
            ratios = randomizer.ratios(float(eps0))
            assert ratios is not None
            peer, peer_time = timed(
                lambda n=n, r=ratios, d=delta: variation_ratio(n, r.p, r.beta, r.q, float(d))  # type: ignore[misc]
            )
            problem = Amplification(randomizer, eps0, n, delta)
            best, best_time = timed(lambda problem=problem: _best(problem))  # type: ignore[misc]
            begin = time.perf_counter()
            solution = solve(problem)
            whole = time.perf_counter() - begin
            assert math.isclose(best, solution.value, rel_tol=1e-6)
            table.add_row(
                f"{n:,}", name, f"{peer:.6f}", f"{peer_time:.2f}", f"{clones:.6f}", f"{clones_time:.2f}",
                f"{solution.value:.6f}", f"{solution.lower:.6f}", f"{best_time:.3f}", f"{whole:.3f}",
                f"{peer_time / best_time:.0f}x", f"{clones_time / best_time:.0f}x",
            )  # fmt: skip
    console.print(table)
    _curve(console, 10**4 if quick else 10**6)


def _best(problem: Amplification) -> float:
    """`method = "best"` without the bounds that it is proved to beat."""
    question = problem.question()
    found = answer(BOUNDS[leader(question.setting)], problem.unknown, question)
    assert found is not None
    return found


def _curve(console: Console, largest: int) -> None:
    """A hundred points up to `largest` people against one point of each peer."""
    eps0, delta, count = 4.0, 1e-8, 100
    ratios = Generic().ratios(eps0)
    peer = timed(lambda: variation_ratio(largest, ratios.p, ratios.beta, ratios.q, delta))[1]
    clones = timed(lambda: clones_numeric(largest, eps0, delta))[1]
    places = [round(1000 * (largest / 1000) ** (i / (count - 1))) for i in range(count)]
    begin = time.perf_counter()
    for n in places:
        point(Amplification(Generic(), "4", n, "1e-8"), "upper")
    seconds = time.perf_counter() - begin
    table = Table("what", "seconds", title=f"a curve of {count} points up to {largest:,} people")
    table.add_row("optdp, all of them", f"{seconds:.2f}")
    table.add_row("variation ratio, one point", f"{peer:.2f}")
    table.add_row("clones, one point", f"{clones:.2f}")
    console.print(table)
