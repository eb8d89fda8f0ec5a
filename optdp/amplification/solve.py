"""From a question about shuffling to its answer: the best proved value, every bound beside it, and what no analysis
can go below.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from optdp.amplification.bounds import BOUNDS, COARSE, FINE, MIDDLE, Bound, approximate, capped, leader, told
from optdp.amplification.calibrate import LARGEST_EPSILON, Question, answer
from optdp.amplification.compose import composed_delta, composed_epsilon
from optdp.amplification.problem import Amplification, BoundRow, KRRCount
from optdp.amplification.randomizers import LARGEST_EPS0
from optdp.errors import ProblemError
from optdp.numbers.exact import Number, check_between, down, there, up
from optdp.numbers.roots import edge
from optdp.outcome import Outcome
from optdp.sheet import Cell, Listing, Sheet, between, figure
from optdp.work import Progress, silent

LOWER = 1 << 15  # what is spent on a lower bound


@dataclass(frozen=True, kw_only=True, repr=False)
class AmplificationSolution(Outcome):
    """The guarantee of shuffled reports. The truth lies between `value`, which is proved, and `lower`, which some data
    set violates.

    Parameters
    ----------
    problem : Amplification or KRRCount
        The problem; `problem.unknown` names what `value` is.
    value : float
        The best proved bound.
    method : str
        Where it comes from.
    lower : float or None
        What some data set violates, so that no analysis can go beyond it.
    bounds : tuple of BoundRow
        All bounds, with the reason why where one does not apply.
    status, note, seconds
        How it was found.

    Examples
    --------
    >>> from optdp import Amplification, KRR, solve
    >>> found = solve(Amplification(KRR(10), eps0=2, n=1000, delta="1e-6"))
    >>> found.unknown, round(found.lower, 4), round(found.value, 4)
    ('epsilon', 0.2726, 0.2728)
    """

    problem: Amplification | KRRCount
    value: float
    method: str
    lower: float | None
    bounds: tuple[BoundRow, ...]
    status: str
    note: str
    seconds: float
    told = ("status", "unknown", "value", "lower", "method")
    drawing = "optdp.amplification.pictures:pictures"

    @property
    def unknown(self) -> str:
        return self.problem.unknown

    @property
    def lower_bound(self) -> float | None:
        """What no analysis can go below."""
        return self.lower

    def sheet(self) -> Sheet:
        """The answer, and a bar for every bound, from what is excluded to what is promised."""
        given = ", ".join(f"{name} = {value}" for name, value in self.problem.figures().items())
        facts: list[tuple[str, Cell | str]] = [
            ("problem", f"{given}; {self.unknown} is found"),
            (self.unknown, Cell(figure(self.value), "strong", after=f"  ({self.method})")),
        ]
        if self.lower is not None and self.lower > 0:
            facts.append(("limit of any analysis", f"{figure(self.lower)}  (a data set breaks it)"))
        facts.append(("status", f"{self.status}, {self.seconds:.2f} s"))
        if self.note:
            facts.append(("note", self.note))
        numbers = [row.value for row in self.bounds if row.value]
        low, high = min(numbers, default=1.0), max(numbers, default=1.0)
        rows = tuple(
            (
                Cell(row.method, "strong" if row.method == self.method else ""), row.side, figure(row.value),
                Cell("", "good" if row.side == "upper" else "other", between(row.value, low, high))
                if row.value > 0 else "",
                Cell(row.source, "dim"),
            )
            for row in self.bounds if row.value is not None
        )  # fmt: skip
        listing = (Listing(("bound", "side", self.unknown, "", "source"), rows),) if self.bounds else ()
        silent = ", ".join(row.method for row in self.bounds if row.value is None)
        remarks = (f"not for this problem: {silent}  (--json tells why)",) if silent else ()
        return Sheet(tuple(facts), listing, remarks, self.problem.meaning)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "kind": self.problem.kind, "status": self.status, "unknown": self.unknown, "value": self.value,
            "method": self.method, "lower": self.lower, "bounds": [asdict(row) for row in self.bounds],
            "given": self.problem.figures(), "seconds": round(self.seconds, 4), "note": self.note,
            "meaning": self.problem.meaning,
        }  # fmt: skip


def solve_counted(problem: KRRCount, backend: str = "", progress: Progress = silent) -> AmplificationSolution:
    """What an observer of one count learns, both ways."""
    begin = time.perf_counter()
    rows = []
    for name, reverse, way in (("count", False, "from x0 to x1"), ("count-reverse", True, "from x1 to x0")):
        for side, suffix in (("upper", ""), ("lower", "-lower")):
            value = _counted(problem, side, reverse)
            rows.append(BoundRow(f"{name}{suffix}", side, value, True, "", f"Paper C, Theorem 1, {way}"))
    forth, lower, back = (row.value or 0.0 for row in rows[:3])
    worse = back < forth if problem.unknown == "eps0" else back > forth
    note = "count-reverse is the way back, from another value to x0" + (": here it reveals more" if worse else "")
    return AmplificationSolution(
        problem=problem, value=forth, method="count", lower=lower, bounds=tuple(rows), status="solved", note=note,
        seconds=time.perf_counter() - begin,
    )  # fmt: skip


def _counted(problem: KRRCount, side: str, reverse: bool) -> float:
    """From the upper end of the enclosure what keeps the promise, from the lower end what breaks it."""
    upper = side == "upper"

    def end(eps0: Number, epsilon: Number) -> float:
        found = problem.worst(eps0, epsilon, reverse)
        return found.upper if upper else found.lower

    if problem.delta is None:
        return end(there(problem.eps0), there(problem.epsilon))
    delta = down(problem.delta) if upper else up(problem.delta)
    if problem.epsilon is None:
        eps0 = there(problem.eps0)
        kept, broken = up(eps0), 0.0
    else:
        epsilon = problem.epsilon
        kept, broken = down(epsilon), LARGEST_EPS0

    def excess(x: float) -> float:
        found = end(eps0, x) if problem.epsilon is None else end(x, epsilon)
        return found - delta if upper else delta - found

    if not upper:
        kept, broken = broken, kept
    if excess(kept) > 0.0:
        return kept
    return broken if excess(broken) <= 0.0 else edge(excess, kept, broken)


def solve_shuffled(problem: Amplification, backend: str = "", progress: Progress = silent) -> AmplificationSolution:
    """The best of all bounds; interrupted (Ctrl-C), the best of those that are ready, if there is one."""
    begin = time.perf_counter()
    if problem.rounds > 1:
        return _composed(problem, progress, begin)
    rows: list[BoundRow] = []
    status = "solved"
    try:
        _fill(rows, problem, progress)
    except KeyboardInterrupt:
        status = "interrupted"
        if not any(row.side == "upper" and row.value is not None for row in rows):
            raise
    order = {name: i for i, name in enumerate(BOUNDS)}
    rows.sort(key=lambda row: order[row.method])
    best = _best(problem, rows)
    if best is None:
        best = _without_shuffling(problem)
    lower = _most(problem, [row.value for row in rows if row.side == "lower" and row.value is not None])
    note = _note(problem)
    return AmplificationSolution(
        problem=problem, value=best[0], method=best[1], lower=lower, bounds=tuple(rows), status=status, note=note,
        seconds=time.perf_counter() - begin,
    )  # fmt: skip


def point(problem: Amplification, side: Literal["upper", "lower"]) -> float | None:
    """One point of a curve: the best proved value, or the lower bound, to four digits or more."""
    question = problem.question(side)
    if problem.rounds > 1:
        return solve_shuffled(problem).value if side == "upper" else None
    chosen = leader(question.setting) if problem.method == "best" else problem.method
    names = [chosen] if side == "upper" else [name for name, bound in BOUNDS.items() if bound.side == side]
    rows = [_row(name, BOUNDS[name], problem, question, MIDDLE) for name in names]
    if side == "upper":
        best = _best(problem, rows)
        if best is None and problem.unknown == "eps0":
            best = _without_shuffling(problem)
        return None if best is None else best[0]
    values = [row.value for row in rows if row.side == "lower" and row.value is not None]
    return _most(problem, values)


def profile(problem: Amplification, epsilons: Sequence[float]) -> list[tuple[float, float, float]]:
    """The privacy profile: the bounds between which delta lies, for each epsilon.

    Parameters
    ----------
    problem : Amplification
        The setting. What it says of epsilon and delta is ignored.
    epsilons : sequence of float
        Where to look.

    Returns
    -------
    list of (epsilon, lower, upper)
        Some data set violates every delta below `lower`; `upper` is proved.

    Examples
    --------
    >>> from optdp import Amplification, KRR, profile
    >>> for epsilon, lower, upper in profile(Amplification(KRR(10), eps0=2, n=1000, delta="1e-6"), [0.2, 0.3]):
    ...     print(epsilon, f"{lower:.1e} {upper:.1e}")
    0.2 5.2e-05 5.2e-05
    0.3 1.7e-07 1.8e-07
    """
    question, beneath = problem.question(), problem.question("lower")
    if problem.unknown in ("eps0", "n", "k"):
        raise ProblemError(f"A profile needs the whole setting. Found {problem.unknown} missing.")
    upper = BOUNDS[leader(question.setting)]
    lowers = [bound for bound in BOUNDS.values() if bound.side == "lower" and not bound.fits(question.setting)]
    found = []
    for epsilon in epsilons:
        check_between(epsilon, "epsilon", 0.0, LARGEST_EPSILON)
        under = replace(beneath, epsilon=epsilon)
        below = max((answer(bound, "delta", under, MIDDLE) or 0.0 for bound in lowers), default=0.0)
        above = answer(upper, "delta", replace(question, epsilon=epsilon), MIDDLE)
        found.append((epsilon, below, 1.0 if above is None else above))
    return found


def _most(problem: Amplification, lowers: list[float]) -> float | None:
    """The strongest of the lower bounds."""
    return None if not lowers else (min if rising(problem) else max)(lowers)


def rising(problem: Amplification) -> bool:
    """Whether more of the unknown is better: a larger eps0 or, for a fixed gamma, a larger k."""
    return problem.unknown == "eps0" or (problem.unknown == "k" and problem.eps0 is None)


def _fill(rows: list[BoundRow], problem: Amplification, progress: Progress) -> None:
    """Closed forms first, then the leader, then the lower bounds, then those that the leader is proved to beat."""
    question = problem.question()
    if problem.method != "best":
        rows.append(
            _row(problem.method, told(BOUNDS[problem.method], problem.method, progress), problem, question, FINE)
        )
        chosen = [name for name, bound in BOUNDS.items() if bound.side == "lower"]
        first: list[str] = []
        closed: list[str] = []
    else:
        first = [leader(question.setting)]
        closed = [name for name, bound in BOUNDS.items() if bound.grid == 0]
        chosen = [name for name in ("data-set", "binary-exact-lower") if name not in first]
        chosen += [name for name in BOUNDS if name not in (*first, *closed, *chosen)]
    for name in (*closed, *first, *chosen):
        bound = told(BOUNDS[name], name, progress)
        spent = FINE if name in first else LOWER if bound.side == "lower" else COARSE
        rows.append(_row(name, bound, problem, problem.question(bound.side), spent))


def _row(name: str, bound: Bound, problem: Amplification, question: Question, grid: int) -> BoundRow:
    why = bound.fits(question.setting)
    value = None
    if not why:
        value = answer(bound, problem.unknown, question, grid)
        if value is None:
            why = "gives no guarantee here" if bound.side == "upper" else "rules nothing out here"
        elif problem.unknown in ("n", "k"):
            value = int(value)
    return BoundRow(name, bound.side, value, not bound.fits(question.setting) and value is not None, why, bound.source)


def _best(problem: Amplification, rows: list[BoundRow]) -> tuple[float, str] | None:
    """The best value, and who says so: of several that agree the one that is proved to be the best."""
    found = [(row.value, row.method) for row in rows if row.side == "upper" and row.value is not None]
    if not found:
        return None
    value = (max if rising(problem) else min)(value for value, _ in found)
    names = [name for other, name in found if other == value]
    first = leader(problem.question().setting)
    return value, first if first in names else names[0]


def _without_shuffling(problem: Amplification) -> tuple[float, str]:
    """What holds, or which limit was reached, where no bound gives an answer."""
    unknown, question = problem.unknown, problem.question()
    if problem.method != "best":
        why = BOUNDS[problem.method].fits(question.setting) or "it gives no guarantee here"
        raise ProblemError(f'The bound {problem.method} does not apply: {why}. Use method = "best".')
    if unknown == "eps0" and not approximate(question.setting):
        return question.epsilon, "local"
    if unknown == "epsilon":
        limit = f"eps0 = {question.setting.eps0:g}" if capped(question.setting) else f"{LARGEST_EPSILON:g}"
        raise ProblemError(
            f"No epsilon below {limit} reaches this delta: shuffling {problem.n} reports proves nothing here. "
            "Take more people, a larger delta or a smaller eps0."
        )
    if unknown == "n":
        raise ProblemError("Not even 10,000,000,000 people reach this delta at this epsilon. Take a smaller eps0.")
    raise ProblemError(f"No {unknown} reaches this epsilon and delta. Take more people, or a larger epsilon or delta.")


def _note(problem: Amplification) -> str:
    if problem.unknown == "k" and problem.eps0 is not None:
        return "for a fixed eps0 every larger k is private as well; the largest k exists for a fixed gamma"
    return ""


def _composed(problem: Amplification, progress: Progress, begin: float) -> AmplificationSolution:
    question = problem.question()
    progress(f"{problem.rounds} rounds")
    if problem.unknown == "epsilon":
        value = composed_epsilon(question.setting, problem.rounds, question.delta)
    else:
        value = composed_delta(question.setting, problem.rounds, question.epsilon)
    name = leader(question.setting)
    return AmplificationSolution(
        problem=problem, value=value, method=name, lower=None, bounds=(), status="solved",
        note=f"{problem.rounds} rounds composed by the privacy loss distribution of {name}",
        seconds=time.perf_counter() - begin,
    )  # fmt: skip
