"""compare: every backend on every problem, each in a process of its own; a row as each of them is done."""

from __future__ import annotations

import hashlib
import json
import math
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from optdp.comparison.process import Spoken, spoken
from optdp.comparison.rows import ONE_ENTITY, Row
from optdp.comparison.statistics import OURS
from optdp.errors import ProblemError
from optdp.files.models import Problem
from optdp.kinds import KINDS, kind_of
from optdp.numbers.exact import show, shown
from optdp.programs.backends import find, installed
from optdp.programs.program import Option
from optdp.programs.solver_options import option_of
from optdp.work import Clock, Progress, duration, reporting

STARTING, WARMING, MEASURING = 120.0, 30.0, 60.0
"""Seconds for what is not the backend's own work, or no repeat: to load optdp; to load the solver and solve a program
of two people; to find the real epsilon of what it returned. The last two are longer if a repeat may be longer."""
MOST_REPEATS = 1000
FORMS = ("plain", "core")
"""The programs of one entity that a solver can be given; `optdp.single.posed`."""
WORKER = "optdp.comparison.worker"


@dataclass(frozen=True)
class Settings:
    """How a comparison is run. Options are by backend; those under "" are for all."""

    repeat: int = 1
    timeout: float | None = None
    memory: float | None = None
    """GB of address space for each backend; None: no limit."""
    options: Mapping[str, Mapping[str, Option]] = field(default_factory=dict)
    form: str = "plain"

    def __post_init__(self) -> None:
        if not 1 <= self.repeat <= MOST_REPEATS:
            raise ProblemError(f"--repeat must be in 1..{MOST_REPEATS:,}. Found {self.repeat}.")
        if self.form not in FORMS:
            raise ProblemError(f"--form must be {' or '.join(FORMS)}. Found {shown(self.form)}.")
        for name, value in (("--timeout", self.timeout), ("--memory", self.memory)):
            if value is not None and not 0 < value < math.inf:
                raise ProblemError(f"{name} must be larger than 0. Found {value}.")

    def options_of(self, backend: str) -> dict[str, Option]:
        """What goes to that backend."""
        return {**self.options.get("", {}), **self.options.get(backend, {})}


def parse_options(texts: Sequence[str]) -> dict[str, dict[str, Option]]:
    """`feastol=1e-9` for all backends, `clarabel:max_iter=50` for one."""
    found: dict[str, dict[str, Option]] = {}
    for text in texts:
        whole, value = option_of(text)
        backend, _, name = whole.rpartition(":")
        found.setdefault(find(backend).name if backend else "", {})[name] = value
    return found


def compare(
    problem: Problem[Any] | Mapping[str, Problem[Any]],
    backends: Sequence[str] | None = None,
    timeout: float | None = None,
    progress: Progress | bool = False,
    deadline: float | None = None,
    *,
    options: Mapping[str, Option] | None = None,
    repeat: int = 1,
    memory: float | None = None,
    form: str = "plain",
) -> Iterator[Row]:
    """Give every backend the same linear program, each in a process of its own.

    Parameters
    ----------
    problem : SingleLTE or MultiLTE, or a mapping of names to several of them
        What to solve.
    backends : sequence of str, optional
        Names such as "highs" or "clarabel"; by default all that are installed.
    timeout : float, optional
        Seconds for each repeat.
    progress : bool or callable, optional
        True prints to standard error; a function is called with a text.
    deadline : float, optional
        Seconds in all: the backend that runs then is ended, and no other is begun.
    options : mapping, optional
        What goes to the solvers as it stands, by their own names.
    repeat : int
        How many times each is run after it has warmed up.
    memory : float, optional
        GB that each may take.
    form : str
        Which linear program of one entity the solvers are given: "plain", as it stands, or "core", which is scaled.

    Returns
    -------
    iterator of Row
        One row for each backend as it finishes; one that fails, crashes or takes too long is a row that says so.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, compare
    >>> for row in compare(SingleLTE(Population.binomial(10, "0.1"), epsilon=1), ["highs"]):
    ...     print(row.backend, row.status, f"{row.mae:.4f}")
    highs optimal 0.4571
    """
    problems = problem if isinstance(problem, Mapping) else {"": problem}
    settings = Settings(repeat, timeout, memory, {"": dict(options or {})}, form)
    chosen = backends_of(backends)
    clock = Clock.of(deadline)
    with reporting(progress) as say:
        yield from compare_all(problems, chosen, settings, say, clock)


def backends_of(names: Sequence[str] | None) -> list[str]:
    """The backends of these names, or all that are installed; an unknown name is an error before anything runs."""
    chosen = [backend.name for backend in installed()] if names is None else [find(name).name for name in names]
    return list(dict.fromkeys(chosen))


def compare_all(
    problems: Mapping[str, Problem[Any]],
    backends: Sequence[str],
    settings: Settings,
    say: Progress,
    clock: Clock | None = None,
) -> Iterator[Row]:
    """Problem after problem, and each by every backend."""
    clock = clock or Clock.of(None)
    for problem in problems.values():
        check(problem)
    total = len(problems) * len(backends)
    for number, (name, problem) in enumerate(problems.items()):
        for place, backend in enumerate(backends):
            which = number * len(backends) + place + 1
            several = f"{name}, " if len(problems) > 1 else ""
            most = "" if settings.timeout is None else f", each for {duration(settings.timeout)} at most"
            say(f"{several}{backend}: {which} of {total} {'runs' if several else 'backends'}{most}")
            row = one(name, problem, backend, settings, clock)
            yield row
            if row.status == "interrupted":
                return


def check(problem: Problem[Any]) -> None:
    """Refuse what has no linear program that every backend could be given."""
    kind = kind_of(problem)
    if not kind.measure:
        able = [other.name for other in KINDS.values() if other.measure or other.compare]
        raise ProblemError(f"compare is for {', '.join(able[:-1])} and {able[-1]}. Found kind {kind.name}.")


def promised(problem: Any) -> Fraction:
    """The epsilon of a problem, or what stands in its place."""
    found: Fraction = problem.alpha if hasattr(problem, "alpha") else problem.epsilon
    return found


def given(problem: Any) -> dict[str, Any]:
    """The problem as a process is told it: as a file says it; groups, which a file only points to, as they are."""
    if callable(problem.spec):
        found: dict[str, Any] = problem.spec()
        return found
    groups = problem.groups
    lists = [groups[i].tolist() for i in range(len(groups))]
    return {**problem.figures(), "kind": problem.kind, "groups": {"n": groups.n, "lists": lists}}


def one(name: str, problem: Problem[Any], backend: str, settings: Settings, clock: Clock) -> Row:
    """One backend on one problem; whatever happens is in the row."""
    spec = given(problem)
    options = settings.options_of(backend)
    plans = kind_of(problem).name != ONE_ENTITY
    begun = Row(
        problem=name or str(getattr(problem, "kind", "")), backend=backend, status="failed", kind=kind_of(problem).name,
        version=find(backend).version or "", epsilon=show(promised(problem)),
        options=" ".join(f"{key}={value}" for key, value in sorted(options.items())),
        digest=hashlib.sha256(json.dumps(spec, sort_keys=True, default=str).encode()).hexdigest()[:16],
        limit=settings.timeout, form="" if plans or backend == OURS else settings.form,
    )  # fmt: skip
    request = {
        "problem": spec, "backend": backend, "options": options, "repeat": settings.repeat, "form": settings.form,
        "memory": None if settings.memory is None else settings.memory * 1e9,
    }  # fmt: skip
    with spoken(WORKER, request) as worker:
        row = _heard(worker, begun, settings, clock)
    seen = max(row.memory or 0.0, worker.memory or 0.0)
    return replace(row, memory=round(seen, 1) if seen else None)


def _heard(worker: Spoken, row: Row, settings: Settings, clock: Clock) -> Row:
    """The row as far as the worker tells it, and what became of the worker otherwise."""
    repeat = math.inf if settings.timeout is None else settings.timeout
    phase, limit = "to load", STARTING
    while True:
        left = max(clock.end - time.monotonic(), 0.0)
        try:
            said = worker.answer(None if min(limit, left) == math.inf else min(limit, left))
        except TimeoutError:
            if left <= limit:
                return replace(row, status="interrupted", note=f"the deadline of {clock.seconds:g} s was reached")
            if phase == "measuring":
                return replace(row, note=_joined(row.note, f"its real epsilon was not found within {limit:g} s"))
            return replace(row, status="timeout", note=f"no answer {phase} within {limit:g} s".replace("  ", " "))
        if said is None:
            return _broken(worker, row)
        if "last" in said:
            worker.ended()
            return row
        figures = said.get("row", {})
        row = replace(row, **figures) if figures else row
        if "loaded" in said:
            phase, limit = "to a program of two people", max(WARMING, repeat if repeat < math.inf else 0.0)
        elif row.repeats < settings.repeat:
            phase, limit = "", repeat
        else:
            phase, limit = "measuring", max(MEASURING, repeat)


def _broken(worker: Spoken, row: Row) -> Row:
    """It ended without its last word."""
    code, words = worker.ended(), worker.last_words()
    told = f": {words}" if words else ""
    if row.status == "memory":
        return row
    if "MemoryError" in words or "bad_alloc" in words or "cannot allocate memory" in words.lower():
        return replace(row, status="memory", note=_line(f"out of memory{told}"))
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return replace(row, status="crashed", note=_line(f"ended by {name}{told}"))
    return replace(row, status="crashed", note=_line(f"ended with exit code {code}{told}"))


def _line(text: str) -> str:
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(shown.split())[:300]


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
