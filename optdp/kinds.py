"""Every kind of problem that optdp solves, and the one verb: `solve(problem)`.

`KINDS` is the one list. Whoever needs something of a kind asks for it here (`find`), and it is imported then.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import optdp.amplification
import optdp.order
import optdp.plan
import optdp.shuffle
import optdp.single
from optdp import work
from optdp.errors import ProblemError, SolverError
from optdp.files.models import Problem
from optdp.kind import Kind, at
from optdp.numbers.exact import shown
from optdp.programs.program import Options, verbosely
from optdp.programs.statement import Statement, named
from optdp.work import Progress, reporting

KINDS: dict[str, Kind] = {
    kind.name: kind
    for room in (optdp.single, optdp.plan, optdp.shuffle, optdp.order, optdp.amplification)
    for kind in room.KINDS
}
"""To add a kind, add it to its room's KINDS."""

S = TypeVar("S")


def find(kind: Kind, ability: str) -> Any:
    """What does something with a kind of problem: `find(kind, "solve")`."""
    home: str = getattr(kind, ability)
    if not home:
        able = [other.name for other in KINDS.values() if getattr(other, ability)]
        raise ProblemError(f"{ability} is for {' and '.join(filter(None, (', '.join(able[:-1]), able[-1])))}. "
                           f"Found kind {kind.name}.")  # fmt: skip
    return at(home)


def kind_of(problem: Problem[Any]) -> Kind:
    """The kind of a problem."""
    kind = KINDS.get(str(getattr(problem, "kind", None)))
    if kind is None:
        raise ProblemError(f"solve needs a problem of optdp's, such as SingleLTE. Found {shown(problem)}.")
    return kind


def formulate(problem: Problem[Any]) -> list[Statement]:
    """The linear programs that solve a problem, as they are stated; the specification comes first.

    Parameters
    ----------
    problem : such as a `SingleLTE`, or what `load` returned.

    Returns
    -------
    list of Statement
        Each with its `name`, what it is, its size, `program()` (sparse arrays) and `model()` (a CVXPY problem).

    Examples
    --------
    >>> from optdp import Population, SingleLTE
    >>> from optdp.kinds import formulate
    >>> [statement.name for statement in formulate(SingleLTE(Population.binomial(8, "0.3"), epsilon=1))]
    ['plain', 'core', 'pairs']
    """
    found: list[Statement] = find(kind_of(problem), "formulate")(problem)
    return found


def stated(problem: Problem[Any], which: str = "") -> Statement:
    """One of the linear programs of a problem by its name; without a name the specification."""
    return named(formulate(problem), which)


def problem_class(kind: Kind) -> type[Problem[Any]]:
    """The class of a kind's problems."""
    found: type[Problem[Any]] = find(kind, "problem")
    return found


def solve(
    problem: Problem[S],
    backend: str = "highs",
    progress: Progress | bool = False,
    deadline: float | None = None,
    verbose: bool = False,
    options: Options | None = None,
) -> S:
    """Find the best certified mechanism, plan, protocol or bound for a problem of any kind.

    If interrupted (Ctrl-C), it returns the best that is certified so far, perhaps the baseline; `status` says so.

    Parameters
    ----------
    problem : such as a `SingleLTE`, or what `load` returned.
    backend : the solver of linear programs; `optdp kinds` lists those installed.
    progress : is called with what is being done; True prints it to stderr, or shows it below a notebook's cell.
    deadline : seconds after which it ends as if interrupted; a kind that has no best so far raises SolverError.
    verbose : whether the solver of linear programs prints its own log.
    options : what goes to that solver as it stands, by its own names.

    Returns
    -------
    The solution of the problem's kind, with `status`, `summary()` and, where there is something to deploy, `save()`.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, solve
    >>> solution = solve(SingleLTE(Population.binomial(20, "0.5"), epsilon=1))
    >>> solution.status, solution.mae < solution.baseline_mae
    ('optimal', True)
    """
    from optdp.programs.backends import find as find_backend
    from optdp.programs.backends import solving

    kind = kind_of(problem)
    run = find(kind, "solve")
    if not kind.linear and (options or find_backend(backend).name != "highs"):
        able = " and ".join(other.name for other in KINDS.values() if other.linear)
        raise ProblemError(f"Backends and their options are for {able}. Found kind {kind.name}: leave them out.")
    shown = verbosely(verbose) if verbose else nullcontext()
    clock = work.Clock.of(deadline)
    try:
        with reporting(progress) as say, work.deadline(clock), shown, solving(backend, options):
            found: Any = run(problem, find_backend(backend).name, say)
            stop = work.stopped()
            if stop is not None and found.status == "interrupted":
                found = replace(found, note="; ".join(filter(None, (f"{stop.why}: the best so far", found.note))))
            answer: S = found
            return answer
    except work.DeadlineReached as reached:
        if not clock.rung:  # whoever set it answers it
            raise
        raise SolverError(reached.advice) from None
