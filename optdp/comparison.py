"""The same program for every backend, side by side: time, objective, and the real epsilon of what each returned.

Each backend runs in a process of its own, because some solvers' libraries cannot share one.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from optdp.errors import OptdpError
from optdp.files.models import from_spec
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import precision
from optdp.sheet import Listing, Sheet, decimal
from optdp.single.bound import NO_DUALS, Draft, lower_bound
from optdp.single.certify import certify, epsilon_of
from optdp.single.engines import backends as all_backends
from optdp.single.engines import engine
from optdp.single.lp import NoiseLP, formulate
from optdp.single.problem import SingleLTE
from optdp.single.repair import repair
from optdp.work import Clock, Progress, duration, reporting

RAW_BITS = 1074
"""Floats are multiples of 2^-1074: a solver's answer is measured as the numbers it is."""


@dataclass(frozen=True)
class Row:
    """What one backend did. Epsilons are strings because they may be "infinite"."""

    backend: str
    status: str
    seconds: float | None = None
    """Formulating, solving, repairing and certifying."""
    raw_objective: float | None = None
    """What the solver's own numbers cost."""
    raw_epsilon: str | None = None
    """The real epsilon of the solver's own numbers, before repair."""
    mae: float | None = None
    """After repair."""
    certified_epsilon: str | None = None
    """After repair."""
    gap: float | None = None
    """How far the objective is at most from the optimum, as a part of it; None without duals to prove it."""
    note: str = ""

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return asdict(self)


def compare(
    problem: SingleLTE,
    backends: Sequence[str] | None = None,
    timeout: float | None = None,
    progress: Progress | bool = False,
    deadline: float | None = None,
) -> Iterator[Row]:
    """Solve one problem with every backend, each in a process of its own.

    Parameters
    ----------
    problem : SingleLTE
        What to solve.
    backends : sequence of str, optional
        Names such as "highs" or "cvxpy:clarabel"; by default all that are installed.
    timeout : float, optional
        Seconds for each backend.
    progress : bool or callable, optional
        True prints to standard error; a function is called with a text.
    deadline : float, optional
        Seconds in all: the backend that runs then is ended, and no other is begun.

    Returns
    -------
    iterator of Row
        One row for each backend as it finishes; one that fails or takes too long is a row that says so.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, compare
    >>> for row in compare(SingleLTE(Population.binomial(10, "0.1"), epsilon=1), ["highs"]):
    ...     print(row.backend, row.status, f"{row.mae:.4f}")
    highs optimal 0.4571
    """
    chosen = list(backends) if backends is not None else all_backends()
    for name in chosen:
        engine(name)  # an unknown name is an error before anything runs
    clock = Clock.of(deadline)
    with reporting(progress) as say:
        for number, name in enumerate(chosen):
            most = "" if timeout is None else f", each for {duration(timeout)} at most"
            say(f"{name}: {number + 1} of {len(chosen)} backends{most}")
            left = max(clock.end - time.monotonic(), 0.0)
            wait = min(math.inf if timeout is None else timeout, left)
            row = _ended_after(problem, name, None if wait == math.inf else wait)
            if row is None and wait == left:
                yield Row(name, "interrupted", note=f"the deadline of {clock.seconds:g} s was reached")
                return
            yield row or Row(name, "timeout", note=f"no answer within {timeout:g} s")


def _ended_after(problem: SingleLTE, backend: str, seconds: float | None) -> Row | None:
    """What a backend does in a process of its own; None if it takes too long. The process has ended in any case."""
    request = json.dumps({"problem": problem.spec(), "backend": backend})
    posix = os.name == "posix"
    watched, mine = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "optdp.comparison", *([str(watched)] if posix else [])],
            input=request, capture_output=True, text=True, timeout=seconds, check=False,
            pass_fds=[watched] if posix else (),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    finally:
        os.close(watched)
        os.close(mine)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Row(backend, "failed", note=f"exit {done.returncode}: {reason}")
    return Row(**json.loads(lines[-1]))


def _end_with_parent(watched: int) -> None:
    """End when the other end of the pipe is closed: whoever asked is gone, and nobody reads the answer."""
    os.read(watched, 1)
    os._exit(1)


def run_one(problem: SingleLTE, backend: str) -> Row:
    """Solve with one backend, in this process, and measure what it returned before and after repair."""
    run = engine(backend)
    with precision():
        begin = time.perf_counter()
        lp = formulate(problem)
        draft = run(lp, lambda _: None)
        matrix = repair(lp, draft)
        certificate = certify(problem, matrix)
        seconds = time.perf_counter() - begin
        bound = None if draft.prices is None else float(lower_bound(lp, draft.prices))
        value = float(certificate.mae if problem.objective == "mae" else certificate.mse)
        return Row(
            backend, draft.status, seconds, draft.objective(lp), _shown(raw_epsilon(lp, draft)),
            float(certificate.mae), _shown(None if certificate.epsilon is None else float(certificate.epsilon)),
            None if bound is None else (value - bound) / value if value else 0.0, NO_DUALS if bound is None else "",
        )  # fmt: skip


def raw_epsilon(lp: NoiseLP, draft: Draft) -> float | None:
    """The real epsilon of a draft's floats, taken as the numbers they are (negative ones as zero); None: infinite."""
    first = int(lp.inputs[0])
    rows: list[dict[int, int]] = [{} for _ in lp.inputs]
    for x, s, value in zip(draft.rows.tolist(), draft.cols.tolist(), draft.values.tolist(), strict=True):
        if value > 0:
            numerator, denominator = value.as_integer_ratio()
            rows[x][first + s] = rows[x].get(first + s, 0) + numerator * ((1 << RAW_BITS) // denominator)
    shape = lp.shape
    table = tuple(tuple(sorted(row.items())) for row in rows)
    matrix = NoiseMatrix(shape.inputs, shape.outputs, 1 << RAW_BITS, table, shape.q, "error", shape.last)
    found = epsilon_of(matrix, lp.laws)
    return None if found is None else float(found)


def _shown(epsilon: float | None) -> str:
    return "infinite" if epsilon is None else f"{epsilon:.12g}"


def _worker(request: Mapping[str, Any]) -> Row:
    backend, problem = str(request["backend"]), from_spec(SingleLTE, request["problem"])
    try:
        return run_one(problem, backend)
    except OptdpError as error:
        return Row(backend, "failed", note=str(error))


def sheet(rows: Sequence[Row]) -> Sheet:
    """One line for each backend."""
    listed = []
    for row in rows:
        figures = (row.seconds, row.raw_objective, row.raw_epsilon, row.mae, row.certified_epsilon, row.gap)
        shown = ["-" if f is None else decimal(f)[:9] if isinstance(f, str) else f"{f:.4g}" for f in figures]
        shown[-1] = "no duals" if row.gap is None and row.mae is not None else shown[-1]
        listed.append((row.backend, row.status, *shown))
    head = ("backend", "status", "seconds", "raw value", "raw eps", "MAE", "eps", "gap")
    remarks = ["raw: as the solver returned it; MAE and eps: after repair, certified"]
    remarks += [f"{row.backend}: {row.note}" for row in rows if row.note]
    return Sheet((), (Listing(head, tuple(listed)),), tuple(remarks))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all processes; the first of them decides
    if sys.argv[1:]:
        threading.Thread(target=_end_with_parent, args=(int(sys.argv[1]),), daemon=True).start()
    print(json.dumps(asdict(_worker(json.load(sys.stdin)))))
