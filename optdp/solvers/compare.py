"""The same program for every backend, side by side: time, objective, and the real epsilon of what each returned.

Each backend runs in a process of its own, because some solvers' libraries cannot share one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from optdp.errors import OptdpError, SolverError
from optdp.math.exact import precision
from optdp.noise.certify import certify, epsilon_of
from optdp.noise.draft import Draft
from optdp.noise.engines import backends as all_backends
from optdp.noise.engines import engine
from optdp.noise.lp import NoiseLP
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.single import SingleLTE

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
    note: str = ""


def compare(problem: SingleLTE, backends: Sequence[str] | None = None, timeout: float | None = None) -> Iterator[Row]:
    """One row for each backend, as they finish; a backend that fails or takes too long is a row that says so."""
    chosen = list(backends) if backends is not None else all_backends()
    for name in chosen:
        engine(name)  # an unknown name is an error before anything runs
    for name in chosen:
        request = json.dumps({"problem": problem.spec(), "backend": name})
        try:
            done = subprocess.run(
                [sys.executable, "-m", "optdp.solvers.compare"],
                input=request,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            yield Row(name, "timeout", note=f"no answer within {timeout:g} s")
            continue
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            yield Row(name, "failed", note=f"exit {done.returncode}: {reason}")
        else:
            yield Row(**json.loads(lines[-1]))


def run_one(problem: SingleLTE, backend: str) -> Row:
    """Solve with one backend, in this process, and measure what it returned before and after repair."""
    from optdp.noise.bound import lower_bound
    from optdp.noise.lp import formulate
    from optdp.noise.repair import repair

    run = engine(backend)
    with precision():
        begin = time.perf_counter()
        lp = formulate(problem)
        try:
            draft = run(lp, lambda _: None)
        except SolverError as error:
            return Row(backend, "failed", note=str(error))
        matrix = repair(lp, draft)
        certificate = certify(problem, matrix)
        seconds = time.perf_counter() - begin
        bound = None if draft.prices is None else float(lower_bound(lp, draft.prices))
        value = float(certificate.mae if problem.objective == "mae" else certificate.mse)
        return Row(
            backend,
            draft.status,
            seconds,
            draft.objective(lp),
            _shown(raw_epsilon(lp, draft)),
            float(certificate.mae),
            _shown(None if certificate.epsilon is None else float(certificate.epsilon)),
            None if bound is None else (value - bound) / value if value else 0.0,
        )


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
    from optdp.problem import from_spec

    backend, problem = str(request["backend"]), from_spec(request["problem"])
    assert isinstance(problem, SingleLTE)
    try:
        return run_one(problem, backend)
    except OptdpError as error:
        return Row(backend, "failed", note=str(error))


if __name__ == "__main__":
    print(json.dumps(asdict(_worker(json.load(sys.stdin)))))
