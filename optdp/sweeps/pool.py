"""One point solved, its figures as one flat row; and who solves the points: this process, dask's processes on this
machine, or the workers of a dask cluster. Each is an iterator over finished points in whatever order they finish.
"""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import optdp.work as work
from optdp.errors import OptdpError, ProblemError, SolverError
from optdp.extras import install
from optdp.kinds import solve
from optdp.loading import built
from optdp.numbers.exact import shown
from optdp.sweeps.grid import BACKEND

Row = dict[str, Any]
Task = tuple[int, dict[str, Any]]
Finished = Iterator[tuple[int, Row]]

IN_FLIGHT = 1000
"""Points that a cluster may hold at once: enough for it to spread and to grow, not the whole grid in its memory."""
COMPARED = ("optdp", "highspy", "numpy", "python-flint", "scipy")
"""Packages that figures depend on."""
PATIENCE = 10
"""Seconds to find a cluster and a worker."""
_ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx)://)?([^\s/:@\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")
_LEFT_OUT = ("kind", "status", "seconds", "meaning", "given")
_ALONE = threading.Lock()
"""The precision of exact arithmetic belongs to the whole process: one point at a time, however many threads it has."""
_IGNORE = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def solve_point(spec: Mapping[str, Any]) -> Row:
    """Solve a problem by the backend that is named beside it: `status`, `seconds`, `figures`, `sha256`, `error`.

    Whatever goes wrong is told in the row.
    """
    from threadpoolctl import threadpool_limits

    with _ALONE, threadpool_limits(1):
        begin = time.perf_counter()
        try:
            problem = {key: value for key, value in spec.items() if key != BACKEND}
            solution: Any = solve(built(problem), backend=str(spec.get(BACKEND, "highs")))
            summary = solution.summary()
            row: Row = {"status": summary["status"], "figures": dict(_flat(summary)), "sha256": solution.digest()}
            row["error"] = None
        except OptdpError as error:
            row = failed(str(error))
        except Exception as error:  # one point that breaks must not take the others with it
            row = failed(f"{type(error).__name__}: {error}")
        row["seconds"] = round(time.perf_counter() - begin, 4)
    return row


def failed(why: str) -> Row:
    """The row of a point that has no solution, and why, in one line."""
    text = " ".join(why.split())[:1000]
    said = "".join(sign if sign.isprintable() else "?" for sign in text)
    return {"status": "failed", "seconds": 0.0, "figures": {}, "sha256": None, "error": said}


def _flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every single figure, tables within tables by dotted names; lists are left out, and so is what is not finite."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            if prefix or name not in _LEFT_OUT:
                yield from _flat(value, f"{prefix}{name}.")
        elif (value is None or isinstance(value, str | int | float)) and (prefix or name not in _LEFT_OUT):
            yield prefix + name, None if isinstance(value, float) and not math.isfinite(value) else value


def solved_here(tasks: Iterable[Task], solved: Callable[[Mapping[str, Any]], Row] = solve_point) -> Finished:
    """One point after another, in this process."""
    for point, spec in tasks:
        row = solved(spec)
        if (stop := work.stopped()) is not None:  # whatever the row says, it may lack something
            raise stop
        yield point, row


@contextmanager
def local_pool(workers: int | None, points: int) -> Iterator[Callable[[Iterable[Task]], Finished]]:
    """Processes on this machine, one thread each."""
    dask, distributed = _dask()
    size = min(workers or import_module("dask.system").CPU_COUNT, points)
    settings = {
        "distributed.scheduler.worker-ttl": None,  # a worker that computes for long in one call is not lost
        "distributed.scheduler.allowed-failures": 0,  # points that a dying worker had are tried again alone
        "distributed.deploy.lost-worker-timeout": "1 day",  # a busy machine is slow to start another
    }
    with dask.config.set(settings), _quiet():
        try:
            security = distributed.Security.temporary()  # others of this machine cannot join in
        except ImportError:
            raise ProblemError(
                f"Local workers need cryptography. Install it: {install('dask')}. Or solve one after another: "
                "--workers 0."
            ) from None
        with ExitStack() as opened:
            try:
                with work.held(), _uninterrupted():
                    cluster = opened.enter_context(
                        distributed.LocalCluster(
                            n_workers=size, threads_per_worker=1, processes=True, host="127.0.0.1", protocol="tls",
                            security=security, dashboard_address=None, silence_logs=logging.CRITICAL, preload=[_IGNORE],
                        )
                    )  # fmt: skip
            except (RuntimeError, OSError) as error:
                raise SolverError(
                    f"dask's processes did not start ({type(error).__name__}). A script must call sweep under "
                    'if __name__ == "__main__":, for they read it again; or use workers = 0.'
                ) from None
            client = opened.enter_context(distributed.Client(cluster, security=security, set_as_default=False))
            yield lambda tasks: _solved(client, tasks, size)


@contextmanager
def cluster_pool(address: str, warn: Callable[[str], None]) -> Iterator[Callable[[Iterable[Task]], Finished]]:
    """The workers of a cluster that is already there."""
    _, distributed = _dask()
    where, rule = shown(address), "--scheduler must be the address of a dask scheduler, such as tcp://host:8786."
    if not _ADDRESS.fullmatch(address):
        raise ProblemError(f"{rule} Found {where}.")
    with _quiet():
        try:
            client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:
            raise ProblemError(
                f"{rule} Found none at {where} within {PATIENCE} s: {type(error).__name__}. Is it running?"
            ) from None
        with client:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise ProblemError(
                    f"The cluster at {where} has no workers. Start some: dask worker {address} --nthreads 1."
                ) from None
            _compare(client, warn)
            yield lambda tasks: _solved(client, tasks, IN_FLIGHT)


def _solved(client: Any, tasks: Iterable[Task], most: int, alone: bool = False) -> Finished:
    """Keep the workers busy, at most so many points at once.

    When a worker dies, every point that it had is suspected; which one ended it is told by trying each alone.
    """
    left, given, suspects = iter(tasks), dict[str, Task](), list[Task]()
    finished = import_module("distributed").as_completed(loop=client.loop)

    def submit() -> None:
        for task in left:
            future = client.submit(solve_point, task[1], pure=False)
            given[future.key] = task
            finished.add(future)
            return

    for _ in range(most):
        submit()
    for future in finished:
        if future.status == "lost" and client.status == "running":  # finished, but gone with its worker: solved again
            finished.add(future)
            continue
        row = _row(client, future)
        task = given.pop(future.key)
        future.release()
        submit()
        if row is None and not alone:
            suspects.append(task)
        else:
            yield task[0], row or failed("its worker died of it: too little memory?")
    if suspects:
        yield from _solved(client, suspects, 1, alone=True)


def _row(client: Any, future: Any) -> Row | None:
    """What came of a point; None if its worker died."""
    if future.status in ("finished", "error") and client.status == "running":
        try:
            found: Row = future.result()
            return found
        except Exception as error:  # what goes wrong in solving is in the row already: this is about the worker
            if client.status == "running":
                died = type(error).__name__ == "KilledWorker"
                return None if died else failed(f"{type(error).__name__}: {error}")
    raise SolverError("The cluster was lost. Run the same command to go on when it is back.")


def _compare(client: Any, warn: Callable[[str], None]) -> None:
    """Refuse workers without optdp; tell of other versions, and of threads that will idle."""
    found = client.get_versions(packages=list(COMPARED))["workers"]
    for name in COMPARED:
        here = _version(name)
        others = {str(worker["packages"].get(name)) for worker in found.values()} - {str(here)}
        if name == "optdp" and "None" in others:
            raise ProblemError(f"Every worker needs optdp {here}. Found one without. Install it there.")
        if others:
            warn(f"workers have {name} {', '.join(sorted(others))}, here it is {here}: figures may differ")
    if any(threads > 1 for threads in client.nthreads().values()):
        warn("a worker process solves one point at a time: start workers with --nthreads 1 --nworkers auto")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def needed(*names: str, otherwise: str) -> tuple[Any, ...]:
    """Modules of others, or what to do without them."""
    try:
        return tuple(map(import_module, names))
    except ImportError:
        raise ProblemError(otherwise) from None


def dask_is_here() -> bool:
    """Whether points can be spread over processes."""
    return find_spec("dask") is not None and find_spec("distributed") is not None


def _dask() -> tuple[Any, ...]:
    said = f"A sweep over several processes needs dask: {install('dask')}. Or solve one after another: --workers 0."
    return needed("dask", "distributed", otherwise=said)


@contextmanager
def _quiet() -> Iterator[None]:
    """dask's own log and warnings are about its machinery; what matters of them is said by us, in one line."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]  # each with its own level
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="distributed")
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL + 1)
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes started in here ignore Ctrl-C: a terminal sends it to all, and only the first should act on it."""
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        with suppress(TypeError):  # a handler that was not installed from Python
            signal.signal(signal.SIGINT, before)
