"""The sum of everybody's number, one message each (B, Algorithms 2 and 3), with the best k and gamma there are.

A number `x` in [0, 1] is rounded at random to `xk = j + f -> j + Ber(f)` in `0..k`, so that its mean is kept, and goes
through randomized response on these `k+1` values: with probability gamma a uniform one is sent. From the sum of the
messages `y` the analyzer takes `(sum y/k - n gamma/2) / (1 - gamma)`, which is unbiased. The program is

    minimise    MSE(k, gamma) = n/(1-gamma)^2  max over x of Var[y/k]
    subject to  n shuffled messages of randomized response on k+1 values being (epsilon, delta)-DP.

`optdp.shuffle.summation` has the error, exactly, and the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from pydantic import StrictInt

from optdp.amplification.calibrate import LARGEST_N
from optdp.amplification.problem import Amplification, central, given, missing, small
from optdp.amplification.randomizers import KRR
from optdp.amplification.solve import point
from optdp.errors import ProblemError
from optdp.files.data import real_numbers
from optdp.files.models import Exact, Problem, entry
from optdp.kind import at
from optdp.numbers.divergence import gaussian_sigma
from optdp.numbers.draws import bernoulli, bernoulli_each, uniform_below
from optdp.numbers.exact import Number, check_whole, is_boolean, show, shown, there, to_fraction
from optdp.numbers.source import Source
from optdp.outcome import Outcome
from optdp.sheet import Cell, Sheet, between, figure
from optdp.shuffle import SAVE
from optdp.shuffle import turnout as turnouts
from optdp.shuffle.gamma import check_messages, check_rows, deployed, eps0_of, private_gamma, promised
from optdp.shuffle.honest import fewest, fewest_of_two, response_meaning, words
from optdp.shuffle.honest import honest as _honest
from optdp.shuffle.summation import LARGEST_K, Tuning, best_k, least_n, lower_mse, mse, theorem_1, theorem_3
from optdp.work import Progress, silent


def meaning(everybody: bool) -> str:
    """What is promised, and on what assumptions: that everybody randomizes, or some do."""
    return response_meaning("one whole number", "number", everybody)


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
    """The sum, or the average, of one number in [low, high] from each of `n` people.

    Given `n`, `epsilon` and `delta`, the best `k` and `gamma` are computed; `k` may be given. With `k`, `gamma` leave
    out `epsilon` or `delta` to have it computed. `average_mse` is the wanted mean squared error of the average: without
    `n`, the smallest n that reaches it is computed (the error of the sum grows with n, that of the average falls).

    Parameters
    ----------
    n : how many people there are.
    epsilon, delta : the privacy of the shuffled messages.
    k, gamma : messages are `0..k`, and with probability gamma a uniform one is sent.
    low, high : what numbers people may hold.
    average_mse : the wanted mean squared error of the average.
    honest : how many people randomize as stated at least, a share (0.8) or a number; the others may stay away, send
        anything, and tell. Left out, all of them must.
    title : what files and reports call it.

    Examples
    --------
    >>> from optdp import RealSum
    >>> RealSum(epsilon=1, delta="1e-6", average_mse="1e-4").unknown
    'n'
    """

    kind: ClassVar[str] = "real-sum"

    n: int | None = field(
        default=None, metadata=entry(StrictInt | None, "Leave it out to have the least n for average_mse found.")
    )
    epsilon: Fraction | None = field(default=None, converter=central, metadata=entry(Exact | None))
    delta: Fraction | None = field(default=None, converter=small, metadata=entry(Exact | None))
    k: int | None = field(
        default=None, metadata=entry(StrictInt | None, "Messages are 0..k; left out, the best k is found.")
    )
    gamma: Fraction | None = field(
        default=None, converter=_share, metadata=entry(Exact | None, "The probability of a uniform message; needs k.")
    )
    low: Fraction = field(default=Fraction(0), converter=_low, metadata=entry(Exact))
    high: Fraction = field(default=Fraction(1), converter=_high, metadata=entry(Exact))
    average_mse: Fraction | None = field(
        default=None,
        converter=_mse,
        metadata=entry(Exact | None, "The mean squared error of the average that is wanted."),
    )
    honest: Fraction | None = field(
        default=None, kw_only=True, converter=_honest,
        metadata=entry(Exact | None, "So many people randomize as stated at least: a share, such as 0.8, or a number."),
    )  # fmt: skip

    def __attrs_post_init__(self) -> None:
        if self.n is not None:
            check_whole(self.n, "n", 2, LARGEST_N)
            fewest_of_two(self.honest, self.n)
        elif self.honest is not None and self.honest > 1:
            raise ProblemError("honest must be a share, such as 0.8, where n is to be found.")
        if self.k is not None:
            check_whole(self.k, "k", 1, LARGEST_K)
        if not self.low < self.high:
            raise ProblemError(f"low must be below high. Found {show(self.low)} and {show(self.high)}.")
        if self.average_mse is not None and self.average_mse <= 0:
            raise ProblemError(f"average_mse must be above 0. Found {show(self.average_mse)}.")
        if self.gamma is not None and self.k is None:
            raise ProblemError("gamma needs a k. Give k too, or leave gamma out to have both computed.")
        asked = missing(self, "n", "epsilon", "delta")
        if self.gamma is None:
            if asked == ["n"] and self.average_mse is None:
                raise ProblemError("Give n, or give average_mse to have n computed. Found neither.")
            if asked not in ([], ["n"]):
                raise ProblemError(
                    f"Give epsilon and delta. Found {' and '.join(asked)} missing. One of them is computed only if k "
                    "and gamma are given."
                )
        elif len(asked) != 1 or asked == ["n"]:
            raise ProblemError(
                "With k and gamma, give n and leave out either epsilon or delta, which is then computed. "
                f"Left out: {' and '.join(asked) or 'none'}."
            )

    @property
    def meaning(self) -> str:
        """What is promised, and on what assumptions."""
        return meaning(self.honest is None)

    @property
    def unknown(self) -> str:
        """What is found."""
        return next(iter(missing(self, "n", "epsilon", "delta")), "mse")

    @property
    def width(self) -> Fraction:
        return self.high - self.low

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        whole = {name: value for name, value in (("n", self.n), ("k", self.k)) if value is not None}
        return whole | given(self, "epsilon", "delta", "gamma", "average_mse", "low", "high", "honest")


@dataclass(frozen=True, kw_only=True, repr=False)
class RealSumSolution(Outcome):
    """The protocol and its figures; mean squared errors are of the sum, in the units of [low, high]."""

    problem: RealSum
    n: int
    k: int
    gamma: Fraction
    epsilon: float
    delta: float
    lower_epsilon: float | None  # some data set breaks every smaller epsilon at this delta
    mse: float
    lower_mse: float  # no single-message protocol that is (epsilon, delta)-DP is below
    theorem_3: float
    theorem_1: Tuning | None
    printed: Tuning | None
    central_mse: float
    told = ("status", "n", "k", "epsilon", "delta", "mse", "lower_mse", "central_mse")
    drawing = "optdp.shuffle.pictures:of_real_sum"

    @property
    def value(self) -> float:
        return self.mse

    @property
    def unknown(self) -> str:
        return self.problem.unknown

    @property
    def local_epsilon(self) -> float:
        return eps0_of(self.gamma, self.k + 1)

    @property
    def bits_per_user(self) -> int:
        return self.k.bit_length()

    @property
    def theorem_1_mse(self) -> float | None:
        return None if self.theorem_1 is None else self.theorem_1.mse * float(self.problem.width) ** 2

    @cached_property
    def turnout(self) -> turnouts.Turnout:
        """Epsilon against the number of people who randomize as stated, the deployed numbers as they are."""
        return turnouts.of_responses(self.n, self.fewest, self.k + 1, self.gamma, Fraction(self.delta))

    @property
    def fewest(self) -> int:
        """How many people must randomize as stated."""
        return fewest(self.problem.honest, self.n)

    def save(self, path: str | Path) -> None:
        """Write the protocol's artifact, atomically."""
        at(SAVE)(self, path)

    def protocol(self) -> RealSumProtocol:
        return RealSumProtocol(self.n, self.k, self.gamma, self.problem.low, self.problem.high)

    def privacy(self) -> dict[str, Any]:
        """What is promised, and to whom."""
        return {
            "epsilon": self.epsilon, "delta": self.delta, "lower": self.lower_epsilon,
            "local_epsilon": self.local_epsilon, "meaning": self.problem.meaning,
        }  # fmt: skip

    def sheet(self) -> Sheet:
        """The protocol, between what the paper's constants give and what nobody can pass."""
        lines = {
            "MSE of the sum": self.mse,
            "Theorem 1's constants": self.theorem_1_mse,
            "lower bound": self.lower_mse,
            "by a curator": self.central_mse,
        }
        known = {name: value for name, value in lines.items() if value}
        low, high = min(known.values()), max(known.values())
        bars = [
            (name, Cell(f"{value:12.6g}", "good" if value is self.mse else "other", between(value, low, high)))
            for name, value in known.items()
        ]
        facts = self.facts(
            ("deploy", Cell(f"k = {self.k}, gamma = {float(self.gamma):.9g}", "strong")),
            ("epsilon, delta", f"{figure(self.epsilon)}, {self.delta:g}"),
            ("without the shuffler", f"{figure(self.local_epsilon)}  (delta 0)"),
            *bars,
            ("bits per user", str(self.bits_per_user)),
            ("who must take part", words(self.n, self.fewest)),
        )
        return Sheet(facts, (turnouts.listing(self.turnout, self.fewest),), meaning=self.problem.meaning)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        scale = float(self.problem.width) ** 2
        printed = None if self.printed is None else self.printed.mse * scale
        rmse = math.sqrt(self.mse)
        return {
            "kind": self.problem.kind, "status": self.status, "unknown": self.unknown, "n": self.n,
            "parameters": {"k": self.k, "gamma": float(self.gamma), "eps0": self.local_epsilon},
            "epsilon": self.epsilon, "delta": self.delta, "lower": self.lower_epsilon, "mse": self.mse,
            "rmse": rmse, "mae": math.sqrt(2.0 / math.pi) * rmse, "average_mse": self.mse / self.n**2,
            "average_rmse": rmse / self.n, "theorem_1_mse": self.theorem_1_mse, "printed_mse": printed,
            "ratio_to_theorem_1": None if self.theorem_1_mse is None else self.mse / self.theorem_1_mse,
            "lower_mse": self.lower_mse, "theorem_3_mse": self.theorem_3,
            "ratio_to_lower": self.mse / self.lower_mse if self.lower_mse else None,
            "central": {"mse": self.central_mse, "mechanism": "analytic Gaussian"},
            "bits_per_user": self.bits_per_user, "local_epsilon": self.local_epsilon,
            "turnout": turnouts.summary(self.turnout),
            "given": self.problem.figures(), "seconds": round(self.seconds, 4), "note": self.note,
            "meaning": self.problem.meaning,
        }  # fmt: skip


def solve_real_sum(problem: RealSum, backend: str = "", progress: Progress = silent) -> RealSumSolution:
    """The best protocol for `problem`."""
    begin = time.perf_counter()
    n, k, gamma, epsilon, delta = _designed(problem, progress)
    scale = float(problem.width) ** 2
    value = mse(n, k, float(gamma)) * scale
    if problem.average_mse is not None and value / n**2 > problem.average_mse:
        least = _least_n(problem, progress)
        raise ProblemError(
            f"average_mse = {float(problem.average_mse):g} must be reached by n people. Found n = {n:,}, which reach "
            f"{value / n**2:.3g}. The least n is {least:,}."
        )
    progress("lower bound of the error")
    promise = max(delta, 1e-300)
    most = (math.nextafter(epsilon, math.inf), math.nextafter(promise, 1.0))
    beneath = (lower_mse(n, *most) * scale, theorem_3(n, *most) * scale)
    progress("lower bound of epsilon")
    below = point(Amplification(KRR(k + 1, float(gamma)), n=fewest(problem.honest, n), delta=promise), "lower")
    everybody = fewest(problem.honest, n) == n  # the paper's constants are for that
    return RealSumSolution(
        problem=problem, n=n, k=k, gamma=gamma, epsilon=epsilon, delta=delta,
        lower_epsilon=below, mse=value, lower_mse=beneath[0],
        theorem_3=beneath[1], theorem_1=theorem_1(n, epsilon, promise) if everybody else None,
        printed=theorem_1(n, epsilon, promise, printed=True) if everybody else None,
        central_mse=gaussian_sigma(epsilon, promise) ** 2 * scale, seconds=time.perf_counter() - begin, status="solved",
        note=_note(n, value, scale),
    )  # fmt: skip


def _designed(problem: RealSum, progress: Progress) -> tuple[int, int, Fraction, float, float]:
    """n, k, gamma, and the epsilon and delta that are promised for them."""
    if problem.gamma is not None:
        n, k, gamma = there(problem.n), there(problem.k), problem.gamma
        least = fewest(problem.honest, n)
        return n, k, gamma, *promised(least, k + 1, gamma, problem.epsilon, problem.delta, progress)
    epsilon, delta = there(problem.epsilon), there(problem.delta)
    n = _least_n(problem, progress) if problem.n is None else problem.n
    k = problem.k or best_k(n, epsilon, delta, problem.honest, progress=progress).k
    return n, k, private_gamma(fewest(problem.honest, n), k + 1, epsilon, delta, progress), float(epsilon), float(delta)


def _least_n(problem: RealSum, progress: Progress) -> int:
    wanted = there(problem.epsilon), there(problem.delta), there(problem.average_mse)
    return least_n(*wanted, problem.width, problem.k, problem.honest, progress)


def _note(n: int, value: float, scale: float) -> str:
    if value > n**2 / 4.0 * scale:
        return "too few people: who answers with the middle of the range, and asks nobody, errs less"
    return "mae is that of a normal error of this size; the other errors are exact"


@dataclass(frozen=True)
class RealSumEstimate:
    """What the server learns: the sum and the average, unbiased, with standard errors that hold for any data."""

    n: int
    total: float
    standard_error: float

    @property
    def average(self) -> float:
        return self.total / self.n

    @property
    def average_standard_error(self) -> float:
        return self.standard_error / self.n

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "n": self.n, "sum": self.total, "standard_error": self.standard_error, "average": self.average,
            "average_standard_error": self.average_standard_error,
            "meaning": "unbiased; the standard errors are the largest over all data, so that they hold for these",
        }  # fmt: skip


@dataclass(frozen=True)
class RealSumProtocol:
    """B, Algorithms 2 and 3, for `n` people with numbers in [low, high]."""

    n: int
    k: int
    gamma: Fraction
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    columns: ClassVar[int] = 1

    def read(self, columns: Sequence[Sequence[str]], names: Sequence[str], clip: bool) -> npt.NDArray[np.float64]:
        """The numbers of a table with one column; they must be as many as the design is for."""
        values = np.asarray(real_numbers(columns[0], names[0], float(self.low), float(self.high), clip), dtype=float)
        check_rows(len(values), self.n)
        return values

    def randomize(self, values: npt.ArrayLike, source: Source) -> npt.NDArray[np.int64]:
        """Everybody's message (Algorithm 2); each may be made alone, on somebody's own device."""
        if np.asarray(values).dtype.kind == "b" or is_boolean(values):
            raise ProblemError("Values must be a list of finite numbers. Found True or False among them.")
        scaled = (np.asarray(values, dtype=float) - float(self.low)) * (self.k / float(self.high - self.low))
        if scaled.ndim != 1 or not np.isfinite(scaled).all():
            raise ProblemError("Values must be a list of finite numbers. Found something else.")
        slack = 1e-9 * self.k
        wrong = np.flatnonzero((scaled < -slack) | (scaled > self.k + slack))
        if len(wrong):
            raise ProblemError(
                f"Values must be from {float(self.low):g} to {float(self.high):g}. Found {len(wrong)} outside, first "
                f"at position {wrong[0]}. Clip them, or widen the range."
            )
        scaled = np.clip(scaled, 0.0, self.k)
        steps = np.minimum(np.floor(scaled), self.k - 1.0)
        rounded = steps.astype(np.int64) + bernoulli_each(source, scaled - steps)
        blank = bernoulli(source, self.gamma, len(rounded))
        return np.where(blank, uniform_below(source, self.k + 1, len(rounded)), rounded)

    def shuffle(self, messages: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The messages in sorted order.

        A set with repetitions is all that is left: it gives away exactly what a random order does, and needs no bits.
        """
        return np.sort(check_messages(messages, self.k + 1))

    def analyze(self, messages: npt.ArrayLike) -> RealSumEstimate:
        """The sum without the bias of the random answers (Algorithm 3)."""
        found = check_messages(messages, self.k + 1)
        check_rows(len(found), self.n)
        reported = Fraction(int(found.sum()), self.k)
        unbiased = (reported - self.n * self.gamma / 2) / (1 - self.gamma)
        width = self.high - self.low
        error = float(width) * math.sqrt(mse(self.n, self.k, float(self.gamma)))
        return RealSumEstimate(self.n, float(self.n * self.low + width * unbiased), error)
