"""What an observer of one count learns (C, Theorem 1, Corollary 1): exact, and not the histogram's guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import field, frozen
from pydantic import StrictInt

from optdp.amplification.family import LARGEST_EPS0
from optdp.amplification.problem import Row, central, local, small
from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entry
from optdp.numbers.counts import LARGEST, CountSetting, Enclosure, count_delta
from optdp.numbers.exact import Number, check_whole, down, show, shown, up
from optdp.numbers.roots import edge

if TYPE_CHECKING:
    from optdp.amplification.solve import AmplificationSolution  # noqa: F401  # what its problems are solved by

_MEANING = (
    "What somebody learns about one person who sees only how many shuffled reports name x0, in this one data set. Who "
    'sees the whole histogram learns more: for that, and over all data sets, use kind = "amplification".'
)
_SOURCE = "C, Theorem 1"


def _histogram(given: Sequence[int] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list | tuple):
        raise ProblemError(f"counts must be a list of whole numbers. Found {shown(given)}.")
    for count in given:
        check_whole(count, "Every entry of counts", 0)
    if len(given) > 10_000:
        raise ProblemError(f"counts must have at most 10,000 entries. Found {len(given)}.")
    check_whole(sum(given), "The sum of counts", 2, LARGEST)
    check_whole(len(given), "The number of counts", 2)
    return tuple(given)


@frozen(eq=False, repr=False)
class KRRCount(Problem["AmplificationSolution"]):
    """`n` people answer by `k`-ary randomized response; `n_x0` of the other `n-1` hold `x0`, and so may the person.

    Parameters
    ----------
    n, n_x0, k : how many people, how many of the others hold x0, and how many values there are.
    eps0, epsilon, delta : of these the one left out is found.
    counts : how many people hold each value, instead of `n`, `n_x0` and `k`: then the worst of its values is taken for
        x0 (C, Corollary 1).

    Examples
    --------
    >>> from optdp import KRRCount
    >>> KRRCount(1000, 300, 4, eps0=1, delta="1e-6").unknown
    'epsilon'
    """

    kind: ClassVar[str] = "krr-count"
    meaning: ClassVar[str] = _MEANING

    _n: int | None = field(default=None, metadata=entry(StrictInt | None))
    n_x0: int | None = field(default=None, eq=False, metadata=entry(StrictInt | None))
    _k: int | None = field(default=None, metadata=entry(StrictInt | None))
    eps0: Fraction | None = field(default=None, converter=local, metadata=entry(Exact | None))
    epsilon: Fraction | None = field(default=None, converter=central, metadata=entry(Exact | None))
    delta: Fraction | None = field(default=None, converter=small, metadata=entry(Exact | None))
    counts: tuple[int, ...] | None = field(
        default=None,
        eq=False,
        converter=_histogram,
        metadata=entry(list[StrictInt] | None, "People holding each value, instead of n and n_x0."),
    )

    def _asked(self) -> dict[str, Any]:
        return super()._asked() | {"held": self.held}

    def __attrs_post_init__(self) -> None:
        if self.counts is None:
            check_whole(self._n, "n", 2, LARGEST)
            check_whole(self._k, "k", 2)
            check_whole(self.n_x0, "n_x0", 0, self.n - 1)
        elif self._n is not None or self.n_x0 is not None:
            raise ProblemError("counts already says n and n_x0. Leave them out.")
        elif self._k is not None and self._k != len(self.counts):
            raise ProblemError(
                f"counts must have an entry for each of the k values. Found {len(self.counts)} for k = {self._k}."
            )
        if len(self._missing()) != 1:
            found = " and ".join(self._missing()) or "none"
            raise ProblemError(f"One of epsilon, delta, eps0 must be left out: it is what is found. Missing: {found}.")

    @property
    def n(self) -> int:
        """How many people there are."""
        return sum(self.counts) if self.counts is not None else self._n or 0

    @property
    def k(self) -> int:
        """How many values there are."""
        return len(self.counts) if self.counts is not None else self._k or 0

    @property
    def held(self) -> tuple[int, ...]:
        """How many others hold x0, for each x0 that is looked at."""
        if self.counts is not None:
            return tuple(sorted({count - 1 for count in self.counts if count > 0}))
        return (self.n_x0 or 0,)

    def _missing(self) -> list[str]:
        given = {"delta": self.delta, "epsilon": self.epsilon, "eps0": self.eps0}
        return [name for name, value in given.items() if value is None]

    @property
    def unknown(self) -> str:
        return self._missing()[0]

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        given = {"eps0": self.eps0, "epsilon": self.epsilon, "delta": self.delta}
        numbers = {name: show(value) for name, value in given.items() if value is not None}
        held = self.held[0] if len(self.held) == 1 else list(self.held)
        return {"n": self.n, "n_x0": held, "k": self.k} | numbers

    def worst(self, eps0: Number, epsilon: Number, reverse: bool = False) -> Enclosure:
        """The exact delta of the worst x0, between two floats; `reverse` from x1 to x0."""
        found = [count_delta(CountSetting(self.n, held, eps0, self.k), epsilon, reverse) for held in set(self.held)]
        return Enclosure(max(one.lower for one in found), max(one.upper for one in found))


def solve_count(problem: KRRCount) -> tuple[tuple[Row, ...], float, float, str]:
    """The rows of its table, what is promised, what is known from below, and a note."""
    value, lower = _value(problem, "upper", False), _value(problem, "lower", False)
    back, back_lower = _value(problem, "upper", True), _value(problem, "lower", True)
    there, return_ = f"{_SOURCE}, from x0 to x1", f"{_SOURCE}, from x1 to x0"
    rows = (
        Row("count", "upper", value, True, "", there),
        Row("count-lower", "lower", lower, True, "", there),
        Row("count-reverse", "upper", back, True, "", return_),
        Row("count-reverse-lower", "lower", back_lower, True, "", return_),
    )
    worse = back < value if problem.unknown == "eps0" else back > value
    note = "count-reverse is the way back, from another value to x0"
    return rows, value, lower, f"{note}: here it gives away more" if worse else note


def _value(problem: KRRCount, side: str, reverse: bool) -> float:
    """From the upper end of the enclosure what keeps the promise, from the lower end what breaks it."""
    pick: Callable[[Enclosure], float] = (lambda e: e.upper) if side == "upper" else (lambda e: e.lower)
    if problem.unknown == "delta":
        assert problem.eps0 is not None
        assert problem.epsilon is not None
        return pick(problem.worst(problem.eps0, problem.epsilon, reverse))
    assert problem.delta is not None
    delta = down(problem.delta) if side == "upper" else up(problem.delta)

    def excess(found: Enclosure) -> float:
        return pick(found) - delta if side == "upper" else delta - pick(found)

    if problem.unknown == "epsilon":
        eps0 = problem.eps0
        assert eps0 is not None
        kept, broken = (up(eps0), 0.0) if side == "upper" else (0.0, up(eps0))
        return _crossing(lambda epsilon: excess(problem.worst(eps0, epsilon, reverse)), kept, broken)
    epsilon = problem.epsilon
    assert epsilon is not None
    low, high = down(epsilon), LARGEST_EPS0
    kept, broken = (low, high) if side == "upper" else (high, low)
    return _crossing(lambda eps0: excess(problem.worst(eps0, epsilon, reverse)), kept, broken)


def _crossing(excess: Callable[[float], float], kept: float, broken: float) -> float:
    """Where the promise ends; an end itself if it is kept, or broken, all the way."""
    if excess(kept) > 0.0:
        return kept
    return broken if excess(broken) <= 0.0 else edge(excess, kept, broken)
