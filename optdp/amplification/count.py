"""What an observer of one count learns (C, Theorem 1, Corollary 1): exact, and not the histogram's guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from optdp.amplification.calibrate import LARGEST_EPSILON
from optdp.amplification.family import LARGEST_EPS0
from optdp.amplification.problem import positive, small
from optdp.amplification.rows import Row
from optdp.errors import ProblemError
from optdp.math.counts import LARGEST, CountSetting, Enclosure, count_delta
from optdp.math.exact import Number, check_whole, down, show, shown, up
from optdp.math.roots import edge

_MEANING = (
    "What somebody learns about one person who sees only how many shuffled reports name x0, in this one data set. Who "
    'sees the whole histogram learns more: for that, and over all data sets, use kind = "amplification".'
)
_SOURCE = "C, Theorem 1"


@dataclass(frozen=True, init=False)
class KRRCount:
    """`n` people answer by `k`-ary randomized response; `n_x0` of the other `n-1` hold `x0`, and so may the person.

    Of `epsilon`, `delta` and `eps0` the one left out is found. Instead of `n` and `n_x0` a histogram `counts` may be
    given, how many people hold each value: then the worst of its values is taken for `x0` (C, Corollary 1).
    """

    n: int
    k: int
    held: tuple[int, ...]
    """How many others hold x0, for each x0 that is looked at."""
    eps0: Fraction | None
    epsilon: Fraction | None
    delta: Fraction | None
    kind: ClassVar[str] = "krr-count"
    meaning: ClassVar[str] = _MEANING

    def __init__(
        self,
        n: int | None = None,
        n_x0: int | None = None,
        k: int | None = None,
        eps0: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        counts: Sequence[int] | None = None,
    ) -> None:
        if counts is not None:
            n, k, held = _histogram(n, n_x0, k, counts)
        else:
            check_whole(n, "n", 2, LARGEST)
            check_whole(k, "k", 2)
            assert isinstance(n, int)
            check_whole(n_x0, "n_x0", 0, n - 1)
            assert isinstance(n_x0, int)
            held = (n_x0,)
        values = {
            "n": n,
            "k": k,
            "held": held,
            "eps0": positive(eps0, "eps0", LARGEST_EPS0),
            "epsilon": positive(epsilon, "epsilon", LARGEST_EPSILON),
            "delta": small(delta),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if len(self._missing()) != 1:
            found = " and ".join(self._missing()) or "none"
            raise ProblemError(f"One of epsilon, delta, eps0 must be left out: it is what is found. Missing: {found}.")

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


def _histogram(n: int | None, n_x0: int | None, k: int | None, given: object) -> tuple[int, int, tuple[int, ...]]:
    if n is not None or n_x0 is not None:
        raise ProblemError("counts already says n and n_x0. Leave them out.")
    if not isinstance(given, list | tuple):
        raise ProblemError(f"counts must be a list of whole numbers. Found {shown(given)}.")
    counts: Sequence[int] = given
    for count in counts:
        check_whole(count, "Every entry of counts", 0)
    if len(counts) > 10_000:
        raise ProblemError(f"counts must have at most 10,000 entries. Found {len(counts)}.")
    check_whole(sum(counts), "The sum of counts", 2, LARGEST)
    if k is not None and k != len(counts):
        raise ProblemError(f"counts must have an entry for each of the k values. Found {len(counts)} for k = {k}.")
    check_whole(len(counts), "The number of counts", 2)
    return sum(counts), len(counts), tuple(sorted({count - 1 for count in counts if count > 0}))


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
