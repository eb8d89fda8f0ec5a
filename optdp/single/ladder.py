"""The error of one problem against what the observer may know: from exactly the prior to everybody else.

Only the observer changes from rung to rung. Who is counted, and so what the error is measured under, is the problem's
own, and so are epsilon, a fallback, tail, objective, `never_worse` and adjacency; every rung is solved to its optimum
(`method = "lp"`). Privacy against somebody who may know more is privacy against somebody who may know less, so that
along one range the errors never fall. Two rows are for comparison: geometric noise, and nothing published at all, which
is the best guess without data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from optdp import work
from optdp.errors import OptdpError, ProblemError
from optdp.numbers.exact import decimal_down, decimal_up, show, shown
from optdp.objects import Public
from optdp.people.observer import Observer
from optdp.people.population import Population
from optdp.pictures.pictured import Pictured
from optdp.sheet import Cell, Listing, Sheet
from optdp.single.alternatives import best_guess
from optdp.single.problem import SingleLTE
from optdp.single.solve import solve_single
from optdp.work import Progress, reporting

SHARES = (Fraction(1, 10), Fraction(1, 2))
"""How far the two ranges reach around the belief, as a part of it."""
KNOWN = tuple(Fraction(percent, 100) for percent in (1, 5, 10, 25))
"""How many of the others are known exactly, as a part of them."""
HEAD = ("what the observer may know", "mean error", "lower bound", "way to nothing")
READING = (
    "Errors are those under your own prior, rounded up; lower bounds are proved. 0 % is the exact prior, 100 % is "
    "publishing nothing."
)
NO_BETTER = "no better than publishing nothing"
MOST_PLACES = 12
"""The longest decimal, with its point, that an end of a range keeps as it is."""


@dataclass(frozen=True)
class Step:
    """A rung before it is solved; one without observers is for comparison."""

    name: str
    observers: tuple[Observer, ...] = ()
    yours: bool = False

    @property
    def label(self) -> str:
        """The name, and whether this is what the problem itself asks for."""
        return f"{self.name} (yours)" if self.yours else self.name


@dataclass(frozen=True, repr=False)
class Rung(Public):
    """One observer, and the least error against it."""

    step: Step
    error: float | None = None
    """The objective's mean error under the problem's prior; None if the rung was not solved."""
    lower_bound: float | None = None
    """Proved: no mechanism that the rung admits has a smaller error."""
    share: float | None = None
    """How much of the way from the exact prior, 0, to nothing published, 1."""
    status: str = ""
    note: str = ""
    seconds: float = 0.0
    told = ("label", "error", "lower_bound", "share", "note")

    @property
    def label(self) -> str:
        return self.step.label

    def cells(self) -> tuple[str, str, str, str]:
        """The row as it is shown: errors are rounded up, bounds down."""
        share = "-" if self.share is None else f"{100 * self.share:.0f} %"
        return self.label, _figure(self.error, decimal_up), _figure(self.lower_bound, decimal_down), share

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "name": self.step.name,
            "yours": self.step.yours,
            "observers": [one.spec() for one in self.step.observers],
            "error": self.error,
            "lower_bound": self.lower_bound,
            "share": self.share,
            "status": self.status,
            "seconds": round(self.seconds, 4),
            "note": self.note,
        }


@dataclass(frozen=True, repr=False)
class Ladder(Pictured, Public):
    """The rungs that were solved, from the least knowledge to the most, and what they are compared with."""

    problem: SingleLTE
    rungs: tuple[Rung, ...]
    missing: tuple[Step, ...] = ()
    """What was not reached."""
    stopped: str = ""
    """Why not."""
    told = ("rungs", "stopped")
    drawing = "optdp.single.pictures:rungs"

    @property
    def note(self) -> str:
        """What is missing, in words."""
        if not self.stopped:
            return ""
        return f"{self.stopped}; not done: {'; '.join(step.label for step in self.missing) or 'nothing'}"

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        problem = self.problem
        return {
            "problem": "; ".join(prior.describe for prior in problem.populations),
            "epsilon": show(problem.epsilon),
            "objective": problem.objective,
            "rows": [rung.summary() for rung in self.rungs],
            "missing": [step.name for step in self.missing],
            "status": "interrupted" if self.stopped else "complete",
            "note": self.note,
        }

    def sheet(self) -> Sheet:
        """What a person is shown."""
        rows = tuple((*rung.cells(), Cell(rung.note, "dim")) for rung in self.rungs)
        facts = (
            ("problem", "; ".join(prior.describe for prior in self.problem.populations)),
            ("epsilon", show(self.problem.epsilon)),
        )
        return Sheet(facts, (Listing((*HEAD, ""), rows),), (READING, *([self.note] if self.note else [])))


def ladder(
    problem: SingleLTE,
    progress: Progress | bool = False,
    deadline: float | None = None,
    seen: Callable[[Rung], object] = lambda _: None,
) -> Ladder:
    """How the error grows with what an observer may know.

    Parameters
    ----------
    problem : SingleLTE
        Who is counted and what is asked for; its own observer, if it names one, is a rung of its own. With a total it
        is the problem with the epsilon that was found for each release.
    progress : bool or callable, optional
        True prints to standard error; a function is called with a text.
    deadline : float, optional
        Seconds after which it ends with the rungs that are done.
    seen : callable, optional
        Is called with each rung, in their order, as soon as it is done.

    Returns
    -------
    Ladder
        Its `rungs`, each with `label`, `error`, `lower_bound`, `share` and `note`. One that cannot be solved has no
        error, and a note that says why. Interrupted (Ctrl-C, or after `deadline` seconds), those so far.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, ladder
    >>> for rung in ladder(SingleLTE(Population.binomial(10, "0.2"), epsilon=1)).rungs:
    ...     print(f"{rung.label:34} {rung.error:.4f}")
    exactly the prior (yours)          0.2875
    between 0.18 and 0.22              0.3439
    between 0.1 and 0.3                0.4262
    between 0.1 and 0.3, 1 known       0.5618
    between 0.1 and 0.3, 2 known       0.6219
    everybody else: ordinary privacy   0.8509
    geometric noise                    0.8509
    nothing published                  0.9664
    """
    if not isinstance(problem, SingleLTE):
        raise ProblemError(f"A ladder of observers is for a SingleLTE. Found {shown(problem)}.")
    with reporting(progress) as say:
        return _climbed(problem.settled, say, deadline, seen)


def steps(problem: SingleLTE) -> tuple[Step, ...]:
    """The rungs of a problem, from the least knowledge to the most, and then what they are compared with."""
    several = len(problem.populations) > 1
    own = problem.observers
    found: list[tuple[tuple[Observer, ...], str]]
    found = [((Observer(),), "one of the stated priors" if several else "exactly the prior")]
    found += [((one,), _name(one)) for one in _between(problem)]
    if own not in [watched for watched, _ in found] and own != (Observer(known="all"),):
        found.append((own, "; ".join(_name(one) for one in own)))
    found.sort(key=lambda rung: _reach(rung[0]))
    found.append(((Observer(known="all"),), "everybody else: ordinary privacy"))
    rungs = [Step(name, watched, watched == own) for watched, name in found]
    return (*rungs, Step("geometric noise"), Step("nothing published"))


# ---------------------------------------------------------------------- which rungs there are


def _between(problem: SingleLTE) -> Iterator[Observer]:
    """Those who know more than the prior and less than everybody."""
    prior = problem.populations[0]
    if len(problem.populations) > 1 or not prior.laws or "conservative" in prior.spec:
        return
    around = ranges(prior)
    yield from around
    own = [one for one in problem.observers if one.between is not None or one.margin is not None]
    widest = own[0] if own else around[-1] if around else Observer()
    others = prior.size - 1
    for known in sorted({round(share * others) for share in KNOWN} - {0}):
        yield Observer(widest.between, widest.margin, known)


def ranges(prior: Population) -> list[Observer]:
    """Two ranges around a belief, the wider one last; none unless people are independent and contribute 0 or 1.

    Examples
    --------
    >>> from optdp import Population
    >>> ranges(Population.binomial(100, "0.1"))
    [Observer(between 0.09 and 0.11), Observer(between 0.05 and 0.15)]
    """
    if not prior.laws or prior.largest > 1:
        return []
    if len(prior.laws) > 1:
        mean = sum((law[1] * count for law, count in prior.laws), Fraction(0)) / prior.size
        return [_around(prior, _decimal(mean * share, math.ceil)) for share in SHARES] if mean else []
    p = prior.laws[0][0][1]
    ends = [
        (_decimal(p * (1 - share), math.floor), _decimal(min(p * (1 + share), Fraction(1)), math.ceil))
        for share in SHARES
    ]
    return [Observer(between=pair) for pair in ends if pair[0] < pair[1]]


def _around(prior: Population, margin: Fraction) -> Observer:
    """A margin around each kind of people; where these are too many to look at, one range for all of them."""
    one = Observer(margin=margin)
    try:
        one.worlds(prior)
    except ProblemError:
        chances = [law[1] for law, _ in prior.laws]
        low, high = max(min(chances) - margin, Fraction(0)), min(max(chances) + margin, Fraction(1))
        return Observer(between=(_decimal(low, math.floor), _decimal(high, math.ceil)))
    return one


def _decimal(value: Fraction, rounded: Callable[[Fraction], int]) -> Fraction:
    """A short decimal: the value itself if it is one, else three digits of it."""
    text = show(value)
    if value == 0 or (len(text) <= MOST_PLACES and "/" not in text):
        return value
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 2)
    return min(rounded(value / unit) * unit, Fraction(1))


def _name(one: Observer) -> str:
    more = "" if one.epsilon is None else f" at epsilon {show(one.epsilon)}"
    if one.known == "all":
        return f"everybody else{more}"
    ground = "the prior"
    if one.between is not None:
        low, high = one.between
        ground = f"between {show(low[1])} and {show(high[1])}" if len(low) == 2 else "between the two stated laws"
    elif one.margin is not None:
        ground = f"within {show(one.margin)} of the prior"
    return ground + (f", {one.known:,} known" if one.known else "") + more


def _reach(watched: Sequence[Observer]) -> tuple[float, Fraction]:
    """How much the first of these observers knows: how many people, and then how wide a range it comes with."""
    one = watched[0]
    known = math.inf if one.known == "all" else one.known
    if one.between is not None:
        return known, sum((abs(a - b) for a, b in zip(*one.between, strict=True)), Fraction(0))
    return known, 4 * (one.margin or Fraction(0))


# ---------------------------------------------------------------------- solving them


def _climbed(problem: SingleLTE, say: Progress, deadline: float | None, seen: Callable[[Rung], object]) -> Ladder:
    *rungs, geometric, nothing = steps(problem)
    guess, most = best_guess(problem)
    solved: dict[Step, Rung] = {}
    done: list[Rung] = []
    stopped = ""

    def keep(rung: Rung) -> None:
        exact = solved.get(rungs[0])
        done.append(_placed(rung, None if exact is None else exact.error, most))
        seen(done[-1])

    try:
        with work.deadline(deadline):
            for number, step in enumerate(sorted([*rungs, geometric], key=_effort), start=1):
                place = f"{number} of {len(rungs) + 1}, {step.label}"
                say(place)
                rung = (_solved if step.observers else _geometric)(problem, step, _within(place, say))
                if rung.status != "interrupted":
                    solved[step] = rung
                while len(done) < len(rungs) and rungs[len(done)] in solved:  # shown in the order of knowledge
                    keep(solved[rungs[len(done)]])
                if rung.status == "interrupted" or work.stopped() is not None:
                    raise work.stopped() or work.Stopped
    except KeyboardInterrupt as stop:
        stopped = stop.why if isinstance(stop, work.Stopped) else "interrupted"
    with work.held(later=False):
        if problem.tail == "geometric":  # then it takes no time
            solved.setdefault(geometric, _geometric(problem, geometric))
        missing = [step for step in (*rungs, geometric) if step not in solved]
        for step in (*rungs, geometric)[len(done) :]:
            if step in solved:
                keep(solved[step])
        keep(Rung(nothing, most, status="computed", note=f"the best guess without data: {guess:,}"))
    return Ladder(problem, tuple(done), tuple(missing), stopped if missing else "")


def _effort(step: Step) -> int:
    """Known people take longest, the more the longer; they come last, so that a deadline leaves both ends."""
    known = step.observers[0].known if step.observers else "all"
    return 1 if known == "all" else 0 if known == 0 else 1 + known


def _within(place: str, say: Progress) -> Progress:
    return lambda text: say(f"{place}: {text}")


def _solved(problem: SingleLTE, step: Step, say: Progress) -> Rung:
    try:
        given = problem.changed(observer=step.observers, method="lp")
        found = solve_single(given, progress=say)
    except OptdpError as error:
        return Rung(step, status="failed", note=" ".join(str(error).split()))
    bound = None if found.lower_bound is None else float(found.lower_bound)
    note = found.note or ("" if found.status == "optimal" else found.status)
    return Rung(step, found.value, bound, status=found.status, note=note, seconds=found.seconds)


def _geometric(problem: SingleLTE, step: Step, say: Progress = work.silent) -> Rung:
    """Geometric noise, which is private whatever anybody knows; without tails it is clamped."""
    if problem.tail == "geometric":
        return Rung(step, float(problem.baseline), status="baseline")
    try:
        found = solve_single(problem.changed(observer=None, method="geometric"), progress=say)
    except OptdpError as error:
        return Rung(step, status="failed", note=" ".join(str(error).split()))
    return Rung(step, found.value, status="baseline", note="clamped", seconds=found.seconds)


def _placed(rung: Rung, least: float | None, most: float) -> Rung:
    """A rung with its place between the exact prior and nothing published."""
    if rung.error is None:
        return rung
    share = (rung.error - least) / (most - least) if least is not None and least < most else None
    if rung.step.name == "nothing published" or rung.error < most:
        return replace(rung, share=share)
    return replace(rung, share=share, note="; ".join(filter(None, (NO_BETTER, rung.note))))


def _figure(value: float | None, rounded: Callable[[Fraction, int], str]) -> str:
    if value is None:
        return "-"
    if 0 < value < 1e-3:
        return f"{value:.2e}"
    whole, _, rest = rounded(Fraction(value), 4).partition(".")
    return f"{int(whole):,}.{rest:0<4}"
