"""The sum of everybody's number, one message each (B, Algorithms 2 and 3), with the best k and gamma there are.

A number `x` in [0, 1] is rounded at random to `xk = j + f -> j + Ber(f)` in `0..k`, so that its mean is kept, and goes
through randomized response on these `k+1` values: with probability gamma a uniform one is sent. From the sum of the
messages `y` the analyzer takes `(sum y/k - n gamma/2) / (1 - gamma)`, which is unbiased. The program is

    minimise    MSE(k, gamma) = n/(1-gamma)^2  max over x of Var[y/k]
    subject to  n shuffled messages of randomized response on k+1 values being (epsilon, delta)-DP.

With `t = xk`, `Var[y] = (1-g) f(1-f) - g(1-g) t(k-t) + g k(2k+1)/6 - g^2 k^2/4`. Its largest value is in the first (and
last) step, where `t = f`: at `t = (1-gk)/(2(1-g))` if `gk < 1`, else at 0. So

    max Var[y] = 1/4 + g k(k-1)/3  if gk <= 1,    g k(2k+1)/6 - g^2 k^2/4  else,

exactly; the paper bounds it by `k^2 ((1-g)/(4k^2) + g/2)`. For each k the least gamma is that of `gamma.least_gamma`:
about `c(k+1)/n` with a `c` that hardly depends on k. The search moves k to the best one for the last `c`, and then to
its neighbours until both are worse.

Theorem 2 takes gamma from Theorem 1 instead; that is computed too, with its own best k and the same exact MSE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from pydantic import StrictInt

from optdp.amplification.calibrate import LARGEST_N
from optdp.amplification.problem import central, small
from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entry
from optdp.numbers.exact import Number, check_whole, show, shown, to_fraction
from optdp.numbers.roots import last_whole
from optdp.shuffle.gamma import deployed, least_gamma
from optdp.work import Progress, silent

if TYPE_CHECKING:
    from optdp.shuffle.real_sum.solve import RealSumSolution  # noqa: F401  # what its problems are solved by

Array = npt.NDArray[np.float64]

LARGEST_K = 10**6
_MEANING = (
    "Everybody sends one whole number through a shuffler. Who sees them all, but not who sent which, learns no more "
    "than (epsilon, delta)-DP allows, neighbours differing in one person's number. It needs an honest shuffler, and "
    "that all n people randomize as they should; without the shuffler each message is private with local_epsilon only."
)


def _share(gamma: Number | None) -> Fraction | None:
    """A given gamma, on the grid of what is deployed."""
    if gamma is None:
        return None
    exact = to_fraction(gamma, "gamma")
    if not Fraction(1, 10**8) <= exact <= 1 - Fraction(1, 10**8):
        raise ProblemError(f"gamma must be from 1e-8 to 1 - 1e-8. Found {shown(gamma)}.")
    return deployed(exact)


def _end(value: Number, name: str) -> Fraction:
    exact = to_fraction(value, name)
    if abs(exact) > 10**15:
        raise ProblemError(f"{name} must be from -1e15 to 1e15. Found {shown(value)}.")
    return exact


def _low(value: Number) -> Fraction:
    return _end(value, "low")


def _high(value: Number) -> Fraction:
    return _end(value, "high")


def _mse(value: Number | None) -> Fraction | None:
    return None if value is None else to_fraction(value, "average_mse")


@frozen(eq=False, repr=False)
class RealSum(Problem["RealSumSolution"]):
    """`n` people hold a number in [low, high] each; wanted is their sum, or their average.

    Given `n`, `epsilon`, `delta` the best `k` and `gamma` are found; `k` may be given. With `k` and `gamma` given leave
    out `epsilon` or `delta`: it is found. `average_mse` is the mean squared error that is wanted of the average:
    without `n` the least n that reaches it is found (the error of the sum grows with n, that of the average falls).

    Parameters
    ----------
    n : how many people there are.
    epsilon, delta : the privacy of the shuffled messages.
    k, gamma : messages are `0..k`, and with probability gamma a uniform one is sent.
    low, high : what numbers people may hold.
    average_mse : the wanted mean squared error of the average.

    Examples
    --------
    >>> from optdp import RealSum
    >>> RealSum(epsilon=1, delta="1e-6", average_mse="1e-4").unknown
    'n'
    """

    kind: ClassVar[str] = "real-sum"
    meaning: ClassVar[str] = _MEANING

    n: int | None = field(
        default=None, metadata=entry(StrictInt | None, "Leave it out to have the least n for average_mse found.")
    )
    epsilon: Fraction | None = field(default=None, converter=central, metadata=entry(Exact | None))
    delta: Fraction | None = field(default=None, converter=small, metadata=entry(Exact | None))
    k: int | None = field(
        default=None, metadata=entry(StrictInt | None, "Messages are 0..k; left out, the best k is found.")
    )
    gamma: Fraction | None = field(
        default=None,
        converter=_share,
        metadata=entry(Exact | None, "The probability of a uniform message; needs k."),
    )
    low: Fraction = field(default=Fraction(0), converter=_low, metadata=entry(Exact))
    high: Fraction = field(default=Fraction(1), converter=_high, metadata=entry(Exact))
    average_mse: Fraction | None = field(
        default=None,
        converter=_mse,
        metadata=entry(Exact | None, "The mean squared error of the average that is wanted."),
    )

    def __attrs_post_init__(self) -> None:
        if self.n is not None:
            check_whole(self.n, "n", 2, LARGEST_N)
        if self.k is not None:
            check_whole(self.k, "k", 1, LARGEST_K)
        if not self.low < self.high:
            raise ProblemError(f"low must be below high. Found {show(self.low)} and {show(self.high)}.")
        if self.average_mse is not None and self.average_mse <= 0:
            raise ProblemError(f"average_mse must be above 0. Found {show(self.average_mse)}.")
        if self.gamma is not None and self.k is None:
            raise ProblemError("gamma is for one k. Found no k. Give k, or leave gamma out to have both found.")
        asked = [name for name in ("n", "epsilon", "delta") if getattr(self, name) is None]
        if self.gamma is None:
            if asked == ["n"] and self.average_mse is None:
                raise ProblemError("Either n or average_mse must be given. Found neither. With average_mse n is found.")
            if asked not in ([], ["n"]):
                raise ProblemError(
                    f"epsilon and delta must be given. Found {' and '.join(asked)} missing. Only with k and gamma "
                    "given one of them is found."
                )
        elif len(asked) != 1 or asked == ["n"]:
            raise ProblemError(
                "With k and gamma given n must be given and one of epsilon, delta left out: it is what is found. "
                f"Missing: {' and '.join(asked) or 'none'}."
            )

    @property
    def unknown(self) -> str:
        """What is found."""
        asked = [name for name in ("n", "epsilon", "delta") if getattr(self, name) is None]
        return asked[0] if asked else "mse"

    @property
    def width(self) -> Fraction:
        return self.high - self.low

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        numbers = {name: getattr(self, name) for name in ("epsilon", "delta", "gamma", "average_mse")}
        whole = {name: getattr(self, name) for name in ("n", "k")}
        shown_numbers = {name: show(value) for name, value in numbers.items() if value is not None}
        found: dict[str, Any] = {name: value for name, value in whole.items() if value is not None}
        return found | shown_numbers | {"low": show(self.low), "high": show(self.high)}


def mse(n: float, k: float | Array, gamma: float | Array) -> Any:
    """The largest mean squared error of the sum, over all data in [0, 1]: exact, for numbers or arrays."""
    k, gamma = np.asarray(k, dtype=float), np.asarray(gamma, dtype=float)
    steep = gamma * k <= 1.0
    often = gamma * k * (2.0 * k + 1.0) / 6.0 - (gamma * k) ** 2 / 4.0
    most = np.where(steep, 0.25 + gamma * k * (k - 1.0) / 3.0, often)
    found = n / (1.0 - gamma) ** 2 * most / k**2
    return float(found) if found.ndim == 0 else found


def worst_number(k: int, gamma: float) -> float:
    """The number in [0, 1] whose message varies most."""
    return max(0.0, 1.0 - gamma * k) / (2.0 * (1.0 - gamma)) / k


def printed_mse(n: float, k: float | Array, gamma: float | Array) -> Any:
    """B's bound of the same in the proof of Theorem 2: `n/(1-gamma)^2 ((1-gamma)/(4k^2) + gamma/2)`."""
    return n / (1.0 - gamma) ** 2 * ((1.0 - gamma) / (4.0 * k**2) + gamma / 2.0)


@dataclass(frozen=True)
class Chosen:
    """A `k`, its gamma in floats, and the mean squared error of the sum of numbers in [0, 1]."""

    k: int
    gamma: float
    mse: float


def theorem_1(n: int, epsilon: float, delta: float, k: int | None = None, printed: bool = False) -> Chosen | None:
    """The best k with gamma as Theorem 1 has it for k+1 values; None if it allows none, as for epsilon above 1."""
    if epsilon > 1.0:
        return None
    least = max(14.0 * math.log(2.0 / delta) / ((n - 1) * epsilon**2), 27.0 / ((n - 1) * epsilon))
    ks = np.arange(1, 20_000, dtype=float) if k is None else np.array([float(k)])
    ks = ks[least * (ks + 1.0) < 1.0]
    if not len(ks):
        return None
    values = (printed_mse if printed else mse)(n, ks, least * (ks + 1.0))
    best = int(np.argmin(values))
    return Chosen(int(ks[best]), least * (int(ks[best]) + 1), float(values[best]))


@lru_cache(maxsize=4096)
def at(n: int, k: int, epsilon: Fraction, delta: Fraction) -> Chosen:
    """The least gamma for one k."""
    gamma = least_gamma(n, k + 1, epsilon, delta)
    return Chosen(k, gamma, mse(n, k, gamma))


def best_k(n: int, epsilon: Fraction, delta: Fraction, start: int = 0, progress: Progress = silent) -> Chosen:
    """The k with the least error, by the search of the module's text; `start` is a guess."""

    def tried(k: int) -> Chosen:
        progress(f"trying k = {k:,} for {n:,} people")
        return at(n, k, epsilon, delta)

    if start < 2:
        rate = 4.0 * max(1.0, -math.log(float(delta))) / min(float(epsilon), 1.0) ** 2
        start = round((1.5 * n / rate) ** (1 / 3))
    here = tried(min(max(start, 2), LARGEST_K))
    for _ in range(6):
        moved = _best_for(n, here.gamma / (here.k + 1))
        if moved == here.k:
            break
        there = tried(moved)
        if there.mse >= here.mse:
            break
        here = there
    for way in (1, -1):
        while 1 <= here.k + way <= LARGEST_K and (there := tried(here.k + way)).mse < here.mse:
            here = there
    return here


def _best_for(n: int, rate: float) -> int:
    """The best k if `gamma = rate (k+1)`."""
    most = min(LARGEST_K, max(2, math.ceil(1.0 / rate) - 2), 4 * math.ceil((1.5 / rate) ** (1 / 3)) + 8)
    ks = np.arange(1, most + 1, dtype=float)
    gammas = rate * (ks + 1.0)
    values = np.where(gammas < 1.0, mse(n, ks, np.minimum(gammas, 1.0 - 1e-12)), math.inf)
    return int(ks[int(np.argmin(values))])


def least_n(problem: RealSum, progress: Progress = silent) -> int:
    """The least number of people with which the average is as accurate as wanted."""
    epsilon, delta, wanted = problem.epsilon, problem.delta, problem.average_mse
    assert epsilon is not None
    assert delta is not None
    assert wanted is not None
    target = float(wanted / problem.width**2) * (1.0 - 1e-9)
    k = problem.k or 0

    def excess(n: int) -> float:
        nonlocal k
        progress(f"trying {n:,} people")
        found = at(n, problem.k, epsilon, delta) if problem.k else best_k(n, epsilon, delta, k, progress)
        k = found.k
        return math.log(found.mse / n**2 / target)

    if (short := excess(LARGEST_N)) > 0.0:
        raise ProblemError(
            f"average_mse must be reached by {LARGEST_N:,} people. Found {shown(float(wanted))}; they reach "
            f"{float(wanted) * math.exp(short):.3g}. Take a larger one."
        )
    k = problem.k or 0
    low, high, above = 1, 2, excess(2)
    while above > 0.0:
        low, high = high, min(LARGEST_N, max(high + 1, math.ceil(high * math.exp(min(above * 0.62, 3.0)))))
        above = excess(high)
    return high if high == 2 else last_whole(excess, high, low)
