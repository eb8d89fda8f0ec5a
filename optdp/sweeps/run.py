"""sweep(problem, grid): solve every point of a grid, go on where an interrupted run stopped, write one table.

`solve_left` is the engine of sweeps and of curves alike: points, whoever solves them, and a journal that keeps them.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import optdp.work as work
from optdp import library
from optdp.errors import ProblemError, SolverError
from optdp.extras import install
from optdp.files.atomic import check_apart, write_bytes
from optdp.files.models import named_file
from optdp.kinds import KINDS
from optdp.loading import beside, load_file, named, names_file, validated
from optdp.numbers.exact import shown
from optdp.sweeps.grid import Grid, Value, base_of, check_keys, put
from optdp.sweeps.pool import Finished, Row, Task, cluster_pool, dask_is_here, local_pool, solved_here
from optdp.sweeps.table import WRITERS, Journal, Rows, check_out, journal, rows_of
from optdp.work import Progress, Stopped, reporting

Say = Callable[[str], None]
Pool = AbstractContextManager[Callable[[Iterable[Task]], Finished]]
"""Whoever solves points, while the context lasts."""


@dataclass(frozen=True)
class Points:
    """What is to be solved: the problem, the folder in which the files that it names lie (unless they are allowed
    outside of it), and the grid."""

    base: Mapping[str, Any]
    folder: Path
    grid: Grid
    allow_outside: bool

    def spec(self, point: Mapping[str, Value]) -> dict[str, Any]:
        """The problem at a point; files are named in full, for workers may be elsewhere."""
        data = put(self.base, point)
        beside(data, self.folder, self.allow_outside)
        return data

    @property
    def digest(self) -> str:
        """What makes two sweeps the same: problem, grid, the content of the files that they name, optdp's version."""
        known = {"problem": self.base, "grid": self.grid.values, "optdp": version("optdp"), "files": self.digests}
        return hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()

    @property
    def digests(self) -> dict[str, str]:
        """The files that problem and grid name, and their digests."""
        words = {part[key] for part, key in named(self.base)}
        kind = KINDS[self.base["kind"]]
        words |= {str(value) for key, values in self.grid.values.items() if names_file(kind, key) for value in values}
        found = {}
        for word in sorted(words):
            place = self.folder / word
            if "\0" not in word and len(word) < 4096 and os.path.isfile(place):
                with place.open("rb") as file:
                    found[word] = hashlib.file_digest(file, "sha256").hexdigest()
        return found


@dataclass(frozen=True)
class Swept:
    """The rows of a sweep, and how they came about."""

    rows: Rows
    kept: int
    """How many points an earlier run had finished."""
    seconds: float

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row["status"] == "failed"]


class Interrupted(KeyboardInterrupt):
    """A signal or the deadline, with how far the sweep is."""

    def __init__(self, done: int, points: int, stop: Stopped) -> None:
        super().__init__(done, points)
        self.done, self.points, self.why, self.exit_code = done, points, stop.why, stop.exit_code


def sweep(
    problem: Any,
    grid: Mapping[str, Iterable[Any]],
    out: str | Path | None = None,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    fresh: bool = False,
    allow_outside: bool = False,
    progress: Progress | bool = False,
    deadline: float | None = None,
) -> Rows:
    """Solve a problem at every point of a grid.

    Parameters
    ----------
    problem : str, Path, mapping or problem
        A problem file or a name, the content of a file as a mapping, or a problem such as SingleLTE.
    grid : mapping
        Keys of the problem's file (`"population.p"`) with lists of values.
    out : str or Path, optional
        Write the table there (.parquet, .csv, .jsonl); an interrupted sweep continues where it stopped.
    scheduler : str, optional
        The address of a dask cluster that solves the points.
    workers : int, optional
        Processes on this machine; 0 solves all points in this process and needs no dask.
    fresh : bool
        Start over instead of continuing.
    allow_outside : bool
        Whether the files that a problem file or its grid name may lie outside the problem file's folder.
    progress : bool or callable
        True prints to standard error how far it is; a function is called with a text.
    deadline : float, optional
        Seconds after which a sweep that is not complete raises SolverError; what is done is kept.

    Returns
    -------
    list of dict
        A row for each point, in the order of the grid: the grid's values, `status`, `seconds`, the figures of the
        solution, `sha256` of its artifact, and `error`. A point that cannot be solved has the status "failed".

    Examples
    --------
    >>> from optdp import Population, SingleLTE, sweep
    >>> rows = sweep(SingleLTE(Population.binomial(10, "0.1"), epsilon=1), {"epsilon": ["0.5", "1"]}, workers=0)
    >>> [round(row["mae"], 2) for row in rows]
    [1.18, 0.46]
    """
    place = None if out is None else Path(out)
    plan = plan_of(problem, Grid.of(grid), allow_outside)
    clock = work.Clock.of(deadline)
    try:
        with reporting(progress) as say, work.deadline(clock):
            return run(plan, place, scheduler, workers, fresh, say).rows
    except (Interrupted, work.DeadlineReached) as stopped:
        if not clock.rung:
            raise
        if isinstance(stopped, work.DeadlineReached):
            raise SolverError(stopped.advice) from None
        kept = "The same call continues from there." if place is not None and stopped.done else "Allow more time."
        raise SolverError(f"{stopped.why}; {stopped.done:,} of {stopped.points:,} points are done. {kept}") from None


def plan_of(problem: Any, grid: Grid, allow_outside: bool = False) -> Points:
    """The problem and the grid, keys checked."""
    folder = Path.cwd()
    if isinstance(problem, str | os.PathLike):
        path = Path(os.path.abspath(library.place(problem)))
        data, folder = load_file(path, allow_outside=allow_outside).data, path.parent
    elif isinstance(problem, Mapping):
        data, allow_outside = problem, True
    elif callable(getattr(problem, "spec", None)):
        data = problem.spec()
    else:
        raise ProblemError(
            "A sweep needs a problem file, its content as a mapping, or a SingleLTE or MultiLTE. "
            f"Found {shown(problem)}."
        )
    validated(data)
    base = base_of(data)
    check_keys(base, grid)
    kind = KINDS[base["kind"]]
    for value in (value for key, values in grid.values.items() if names_file(kind, key) for value in values):
        named_file(folder, str(value), allow_outside)
    return Points(base, folder, grid, allow_outside)


def run(
    plan: Points,
    out: Path | None,
    scheduler: str | None = None,
    workers: int | None = None,
    fresh: bool = False,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
) -> Swept:
    """Solve what is not yet solved, then write the table and remove the journal."""
    if scheduler is not None and workers is not None:
        raise ProblemError("--workers is for this machine, and a cluster has its own. Found --scheduler as well.")
    if workers is not None and workers < 0:
        raise ProblemError(f"--workers must be 0 or more. Found {workers}.")
    if out is not None:
        check_out(out)
        check_apart(out, {f"the file {name}": plan.folder / name for name in plan.digests})
    begin, points = time.perf_counter(), len(plan.grid)
    with journal(out, "" if out is None else plan.digest, points, fresh) as book:
        kept = len(book.done)
        if kept < points:
            left = ((i, plan.spec(point)) for i, point in enumerate(plan.grid) if i not in book.done)
            solve_left(left, _pool(scheduler, workers, points - kept, warn), book, points, say)
        with work.held(later=False):
            rows = rows_of(plan.grid, book.done)
            if out is not None:
                write_bytes(out, WRITERS[out.suffix](rows))
                book.remove()
    return Swept(rows, kept, time.perf_counter() - begin)


def solve_left(left: Iterable[Task], pool: Pool, book: Journal, points: int, say: Say) -> None:
    """Solve what is left of so many points, and keep each as it comes; raises Interrupted with how far it is."""
    try:
        say("starting")
        with pool as solved:
            begin, before = time.perf_counter(), len(book.done)
            failed = sum(row["status"] == "failed" for row in book.done.values())
            say(_progress(before, points, failed, 0.0))
            for point, row in solved(left):
                if row["status"] == "interrupted":  # the best so far is not what this point's row should say
                    raise KeyboardInterrupt
                with work.held():
                    book.add(point, row)
                failed += row["status"] == "failed"
                pace = (time.perf_counter() - begin) / (len(book.done) - before)
                say(_progress(len(book.done), points, failed, pace))
    except KeyboardInterrupt as stop:
        told = stop if isinstance(stop, Stopped) else work.stopped() or Stopped()
        raise Interrupted(len(book.done), points, told) from None


def _progress(done: int, points: int, failed: int, pace: float) -> str:
    left = f", about {work.duration(pace * (points - done))} left" if pace else ""
    return f"{done:,} of {points:,} points{f', {failed:,} failed' if failed else ''}{left}"


def _pool(scheduler: str | None, workers: int | None, points: int, warn: Say) -> Pool:
    if scheduler is not None:
        return cluster_pool(scheduler, warn)
    if workers is None and not dask_is_here():
        warn(f"dask is not installed: one point after another, in this process. Every core: {install('dask')}")
        workers = 0
    return nullcontext(solved_here) if workers == 0 else local_pool(workers, points)
