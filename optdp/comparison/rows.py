"""What is known of one backend on one problem, and of the machine and the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

ENDED = ("optimal", "feasible", "infeasible", "limit", "failed")
"""Our words for what a solver says of its answer."""
BROKEN = ("timeout", "memory", "crashed", "interrupted")
"""What became of its process instead."""
ONE_ENTITY = "single-lte"
"""The kind whose rows have a solver's own table to look at."""
STAGES = ("formulate", "build", "solve", "repair", "certify")


@dataclass(frozen=True)
class Row:
    """One backend on one problem. Seconds are the median of the repeats; a spread is the longest less the shortest.

    Epsilons are text because they may be "infinite"; what was not reached, or has no meaning, is None.
    """

    problem: str
    backend: str
    status: str
    """One of ENDED or BROKEN. "optimal" is said of what is proved to be within a millionth of the optimum."""
    theirs: str = ""
    """The solver's own word."""
    note: str = ""
    """Why there is no answer, or what to know of it, in one line."""
    version: str = ""
    """Of the solver."""
    options: str = ""
    """As they were given: "feastol=1e-9 presolve=off"."""
    form: str = ""
    """The linear program that it was given: "plain" as it stands, or "core", which is scaled. Empty: its own."""
    kind: str = ""
    digest: str = ""
    """Of the problem, so that rows of other files are of the same one."""
    epsilon: str = ""
    """What was asked for; of an order `alpha`."""
    unknowns: int | None = None
    """Of the plain program, and its rows and entries."""
    rows: int | None = None
    entries: int | None = None
    repeats: int = 0
    warm_up: float | None = None
    """Seconds to load the solver, to solve a program of two people, and for a first run if it is short."""
    seconds: float | None = None
    """All of it: formulating, building, solving, repairing, certifying."""
    seconds_spread: float | None = None
    cpu: float | None = None
    """The same in seconds of all processors together: less depends on what else the machine does."""
    formulate: float | None = None
    formulate_spread: float | None = None
    build: float | None = None
    """Handing the arrays to the solver."""
    build_spread: float | None = None
    solve: float | None = None
    solve_spread: float | None = None
    repair: float | None = None
    repair_spread: float | None = None
    certify: float | None = None
    certify_spread: float | None = None
    iterations: int | None = None
    objective: float | None = None
    """What the solver's own numbers cost."""
    primal_residual: float | None = None
    """The most by which they miss a row of the program, or are below 0."""
    dual_residual: float | None = None
    """The most by which its prices are not those of a dual solution; None without prices."""
    raw_epsilon: str | None = None
    """The real epsilon of the solver's own numbers, taken as the floats that they are (negative ones as 0)."""
    violated: int | None = None
    """How many privacy constraints they break."""
    smallest: float | None = None
    """The smallest positive of them, and the largest."""
    largest: float | None = None
    value: float | None = None
    """The objective after repair; all that follows is certified."""
    mae: float | None = None
    certified_epsilon: str | None = None
    lower_bound: float | None = None
    """No table costs less: proved by the backend's own prices, or by those that `bound_by` names."""
    bound_by: str = ""
    gap: float | None = None
    """How far the value is at most from the optimum, as a part of it."""
    repair_cost: float | None = None
    """How much dearer repair made it, as a part of the value; negative where the numbers cost too little."""
    memory: float | None = None
    """The most memory of the process, in MB, with all of Python in it."""
    limit: float | None = None
    """The seconds that a repeat was allowed."""
    run: str = ""
    """Which head it belongs to."""

    @property
    def who(self) -> str:
        """The backend with its options: what a column of a comparison is about."""
        return f"{self.backend} {self.options}".rstrip()

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return asdict(self)


KINDS = {field.name: str(field.type).removesuffix(" | None") for field in fields(Row)}
"""The type of each column: str, int or float; of numbers all may be None, and the two epsilons."""
OPTIONAL = frozenset(field.name for field in fields(Row) if str(field.type).endswith(" | None"))


@dataclass(frozen=True)
class Head:
    """The machine and the settings of a run: nothing that names its owner."""

    date: str
    """In UTC, to the minute."""
    machine: str
    """Such as "Linux x86_64"."""
    cpu: str
    cores: int
    blas: str
    """The library and kernel that numpy computes with."""
    memory: float
    """Of the machine, in GB."""
    versions: Mapping[str, str]
    """Of Python, optdp, and what solves."""
    commit: str
    """Of optdp, if it runs from a git checkout."""
    repeat: int
    timeout: float | None
    allowed: float | None
    """GB that each backend may take."""
    sets: str = ""
    """The problem set, if it was one."""
    status: str = "complete"
    """Or "interrupted": then the rows are those that were ready."""
    run: str = ""
    """A name for the run, made of all of this."""


def number(text: str | None) -> float | None:
    """An epsilon as a float: infinite ones, and none."""
    return None if text is None else float("inf") if text == "infinite" else float(text)
