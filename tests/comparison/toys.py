"""Backends that do what none should: known to the processes of a comparison through `sitecustomize`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from optdp.programs import backends
from optdp.programs.highs import solve_highs
from optdp.programs.program import Answer, LinearProgram, Options

SMALL = 30
"""Unknowns of a program on which they behave: that of the warm-up."""
HERE = Path(__file__).resolve().parents[2]


def behaving(program: LinearProgram, toy: str, options: Options) -> Answer:
    run: Callable[[LinearProgram, Options], Answer] = globals()[toy]
    return run(program, options) if len(program.cost) > SMALL else solve_highs(program)


def hangs(*_: object) -> Answer:
    """With a child that nobody would wait for."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    Path(os.environ["TOYS"], "child").write_text(str(child.pid))
    time.sleep(1000)
    raise AssertionError


def crashes(*_: object) -> Answer:
    print("about to fall", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def eats(*_: object) -> Answer:
    kept = []
    while True:
        kept.append(np.empty(1 << 26))


def raises(*_: object) -> Answer:
    raise ZeroDivisionError("[red]of all things")


def prints(program: LinearProgram, _: Options) -> Answer:
    """To every stream that it knows, and what looks like an answer."""
    for _ in range(2000):
        print('{"row": {"status": "optimal", "mae": 0.0, "certified_epsilon": "0"}}')
        os.write(1, b'{"last": true}\n')
        os.write(2, b"x" * 1000 + b"\n")
    assert sys.stdin.read() == ""
    return solve_highs(program)


def forgets(program: LinearProgram, _: Options) -> Answer:
    found = solve_highs(program)
    assert found.x is not None
    return replace(found, x=found.x * np.nan, duals=None)


def denies(program: LinearProgram, _: Options) -> Answer:
    return replace(solve_highs(program), status="infeasible", said="Infeasible!", x=None, duals=None)


def boasts(program: LinearProgram, _: Options) -> Answer:
    """Everybody gets the same row, which is private and useless, and is called optimal."""
    size = round(len(program.cost) ** 0.5)
    table = np.zeros((size, size))
    table[:, size // 2] = 1.0
    return Answer(table.ravel(), None, 0.0, "optimal", "Optimal!")


def ends(*_: object) -> Answer:
    os._exit(7)


TOYS = (hangs, crashes, eats, raises, prints, forgets, denies, boasts, ends)


def register() -> None:
    """Add them to the backends of this process."""
    home = f"{__name__}:behaving"
    made = [backends.Backend(f"toy-{toy.__name__}", home, toy.__name__, "numpy", "none") for toy in TOYS]
    backends.BACKENDS = (*backends.BACKENDS, *made)
