"""What shuffling buys: the question, and a row of its answer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import field, frozen
from pydantic import StrictInt, StrictStr

from optdp.amplification.bounds import BOUNDS, Setting
from optdp.amplification.calibrate import LARGEST_EPSILON, LARGEST_N, Question
from optdp.amplification.family import LARGEST_EPS0, Randomizer, described
from optdp.amplification.files import AnyRandomizer
from optdp.amplification.randomizers import KRR
from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entry
from optdp.numbers.exact import Number, check_whole, down, show, shown, to_fraction, up

if TYPE_CHECKING:
    from optdp.amplification.solve import AmplificationSolution  # noqa: F401  # what its problems are solved by


@dataclass(frozen=True)
class Row:
    """What one bound says of the unknown. `why` tells why it says nothing."""

    method: str
    side: str
    value: float | None
    applicable: bool
    why: str
    source: str


SMALLEST_DELTA = Fraction(1, 10**300)
_MEANING = (
    "What n shuffled reports give away to somebody who sees them all but not who sent which: (epsilon, delta)-DP for "
    "every data set, neighbours differing in one person's value. It needs an honest shuffler, and that all n people "
    "randomize as they should."
)


def positive(value: Number | None, name: str, most: float) -> Fraction | None:
    """An exact number above 0, if it is given."""
    if value is None:
        return None
    exact = to_fraction(value, name)
    if not Fraction(1, 10**9) <= exact <= most:
        raise ProblemError(f"{name} must be between 1e-9 and {most:g}. Found {value}.")
    return exact


def small(delta: Number | None) -> Fraction | None:
    """A probability of failure, if it is given."""
    if delta is None:
        return None
    exact = to_fraction(delta, "delta")
    if not SMALLEST_DELTA <= exact < 1:
        raise ProblemError(f"delta must be at least 1e-300 and below 1. Found {delta}.")
    return exact


def local(value: Number | None) -> Fraction | None:
    """A given eps0."""
    return positive(value, "eps0", LARGEST_EPS0)


def central(value: Number | None) -> Fraction | None:
    """A given epsilon."""
    return positive(value, "epsilon", LARGEST_EPSILON)


@frozen(eq=False, repr=False)
class Amplification(Problem["AmplificationSolution"]):
    """`n` people send one report each through a shuffler. Of `eps0`, `n`, `delta`, `epsilon` the one left out is found.

    Parameters
    ----------
    randomizer : how each person randomizes, such as `KRR(10)`. For k-RR `k` may be left out instead, and the largest k
        for a given gamma is found (for a given eps0 the smallest k from 3 on: there more values hide better).
    eps0, n, delta, epsilon : local epsilon, people, probability of failure, epsilon of the shuffled reports.
    method : "best", the smallest proved upper bound, or the name of one bound.
    rounds : in how many rounds the same people report.

    Examples
    --------
    >>> from optdp import KRR, Amplification
    >>> Amplification(KRR(10), eps0=2, n=10_000, delta="1e-6").unknown
    'epsilon'
    """

    kind: ClassVar[str] = "amplification"
    meaning: ClassVar[str] = _MEANING

    randomizer: Randomizer = field(metadata=entry(AnyRandomizer))
    eps0: Fraction | None = field(default=None, converter=local, metadata=entry(Exact | None))
    n: int | None = field(default=None, metadata=entry(StrictInt | None))
    delta: Fraction | None = field(default=None, converter=small, metadata=entry(Exact | None))
    epsilon: Fraction | None = field(default=None, converter=central, metadata=entry(Exact | None))
    method: str = field(default="best", metadata=entry(StrictStr))
    rounds: int = field(default=1, metadata=entry(StrictInt))

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.randomizer, Randomizer):
            raise ProblemError(f"randomizer must be one of optdp's, such as KRR(10). Found {shown(self.randomizer)}.")
        if self.n is not None:
            check_whole(self.n, "n", 2, LARGEST_N)
        check_whole(self.rounds, "rounds", 1, 100_000)
        if self.method != "best" and (self.method not in BOUNDS or BOUNDS[self.method].side != "upper"):
            names = ", ".join(name for name, bound in BOUNDS.items() if bound.side == "upper")
            raise ProblemError(f"method must be best or one of {names}. Found {self.method!r}.")
        asked = self._missing()
        if self.randomizer.own_eps0 is not None and self.eps0 is not None:
            raise ProblemError(f"eps0 follows from this {self.randomizer.kind} randomizer. Leave it out.")
        if not asked:
            raise ProblemError("One of epsilon, delta, eps0, n must be left out: it is what is found. Found all given.")
        if len(asked) > 1:
            raise ProblemError(f"Only one may be left out, the one that is found. Found {' and '.join(asked)} missing.")
        if self.rounds > 1 and self.method != "best":
            raise ProblemError("With rounds the method is best. Leave method out.")
        if self.rounds > 1 and asked[0] not in ("epsilon", "delta"):
            raise ProblemError(f"With rounds only epsilon or delta can be found. Found {asked[0]} missing.")

    def _missing(self) -> list[str]:
        given = {"epsilon": self.epsilon, "delta": self.delta, "n": self.n}
        if self.randomizer.own_eps0 is None:
            given["eps0"] = self.eps0
        asked = [name for name, value in given.items() if value is None]
        if isinstance(self.randomizer, KRR) and self.randomizer.k == 0:
            asked.append("k")
        return asked

    @property
    def unknown(self) -> str:
        """What is found."""
        return self._missing()[0]

    def question(self, side: str = "upper") -> Question:
        """The same in floats, each rounded so that an upper bound promises less, or a lower bound excludes less."""
        above, below = (up, down) if side == "upper" else (down, up)
        own = self.randomizer.own_eps0
        if own is not None:
            eps0 = own if side == "upper" else own * (1.0 - 2.0**-48)
        else:
            eps0 = 1.0 if self.eps0 is None else above(self.eps0)
        epsilon = 1.0 if self.epsilon is None else below(self.epsilon)
        if self.eps0 is not None and self.epsilon is not None and self.epsilon >= self.eps0:
            epsilon = max(epsilon, eps0)  # rounding must not put epsilon below eps0
        setting = Setting(self.randomizer, eps0, 2 if self.n is None else self.n)
        return Question(setting, epsilon, 0.5 if self.delta is None else below(self.delta))

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        given = {"eps0": self.eps0, "delta": self.delta, "epsilon": self.epsilon}
        found: dict[str, Any] = {name: show(value) for name, value in given.items() if value is not None}
        more = {"n": self.n, "rounds": self.rounds if self.rounds > 1 else None}
        return (
            {"randomizer": described(self.randomizer)} | found | {name: v for name, v in more.items() if v is not None}
        )
