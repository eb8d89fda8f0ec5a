"""A histogram from shuffled randomized response (B, Algorithm 1; C), with as little randomness as the promise allows.

Given n, k, epsilon and delta the program is `gamma.private_gamma`: the least gamma that is proved to do. The error of
the estimated count of a value that `m` people hold, with `t = 1 - gamma + gamma/k` and `f = gamma/k`, is

    sqrt(m t(1-t) + (n-m) f(1-f)) / (1-gamma),

exactly, for inversion. The figures here are for equal shares, `m = n/k`; expected total variation distances are those
of normal errors, `(k/2) sqrt(2/pi) standard error / n`.

Beside it stands what somebody could do who is trusted with the data: Gaussian noise on every count with the same
epsilon and delta. When one person's value changes, two counts change by 1, so that the noise is `sqrt(2)` times that of
sensitivity 1, whose least standard deviation is a root (Balle and Wang 2018).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from pydantic import StrictInt, StrictStr

from optdp.amplification.calibrate import LARGEST_N
from optdp.amplification.problem import Amplification, central, check_one_missing, given, local, missing, small
from optdp.amplification.randomizers import KRR
from optdp.amplification.solve import point
from optdp.errors import ProblemError
from optdp.files.data import labels as known_labels
from optdp.files.data import whole_numbers
from optdp.files.models import Exact, Problem, entry
from optdp.kind import at
from optdp.numbers.divergence import gaussian_sigma
from optdp.numbers.draws import bernoulli, uniform_below
from optdp.numbers.exact import check_whole, down, is_boolean, shown, there
from optdp.numbers.source import Source
from optdp.outcome import Outcome
from optdp.sheet import Cell, Sheet, figure
from optdp.shuffle import SAVE
from optdp.shuffle import turnout as turnouts
from optdp.shuffle.estimators import ESTIMATORS, Array, KRRChannel, standard_errors
from optdp.shuffle.gamma import check_messages, check_rows, deployed, eps0_of, gamma_of, private_gamma, promised
from optdp.shuffle.honest import fewest, fewest_of_two, response_meaning, words
from optdp.shuffle.honest import honest as _honest
from optdp.work import Progress, silent

LARGEST_BINS = 10**7


def meaning(everybody: bool) -> str:
    """What is promised, and on what assumptions: that everybody randomizes, or some do."""
    return response_meaning("one randomized value", "value", everybody)


def _names(labels: Sequence[str] | None) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if isinstance(labels, str) or not all(str(label).strip() for label in labels):
        raise ProblemError(f"labels must be a list of texts that are not empty. Found {shown(labels)}.")
    names = tuple(str(label).strip() for label in labels)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ProblemError(f"Every label must be given once. Found {shown(twice)} twice.")
    return names


@frozen(eq=False, repr=False)
class ShuffleHistogram(Problem["HistogramSolution"]):
    """A histogram of the values of `n` people, each of whom holds one of `k` values: `0..k-1`, or `labels`.

    Parameters
    ----------
    k : how many values there are; left out if labels are given.
    n : how many people there are.
    epsilon, delta, eps0 : give two of them; the third is computed. eps0 is then the largest that keeps the promise.
    labels : the values, if they are not 0..k-1.
    estimator : "likelihood", "projection" or "inversion".
    honest : how many people randomize as stated at least, a share (0.8) or a number; the others may stay away, send
        anything, and tell. Left out, all of them must.
    title : what files and reports call it.

    Examples
    --------
    >>> from optdp import ShuffleHistogram
    >>> ShuffleHistogram(labels=["yes", "no"], n=1000, epsilon=1, delta="1e-6").k
    2
    """

    kind: ClassVar[str] = "shuffle-histogram"

    _k: int | None = field(
        default=None,
        metadata=entry(StrictInt | None, "How many values there are, 0..k-1; left out if labels are given."),
    )
    n: int = field(default=None, metadata=entry(StrictInt, required=True))
    epsilon: Fraction | None = field(default=None, converter=central, metadata=entry(Exact | None))
    delta: Fraction | None = field(default=None, converter=small, metadata=entry(Exact | None))
    eps0: Fraction | None = field(default=None, converter=local, metadata=entry(Exact | None))
    labels: tuple[str, ...] | None = field(
        default=None, converter=_names, metadata=entry(list[StrictStr] | None, "The values, if they are not 0..k-1.")
    )
    estimator: str = field(default="likelihood", metadata=entry(Literal["likelihood", "projection", "inversion"]))
    honest: Fraction | None = field(
        default=None, kw_only=True, converter=_honest,
        metadata=entry(Exact | None, "So many people randomize as stated at least: a share, such as 0.8, or a number."),
    )  # fmt: skip

    def __attrs_post_init__(self) -> None:
        if self._k is None and self.labels is None:
            raise ProblemError("Either k or labels must be given. Found neither.")
        check_whole(self.k, "k", 2, LARGEST_BINS)
        check_whole(self.n, "n", 2, LARGEST_N)
        if self.labels is not None and len(self.labels) != self.k:
            raise ProblemError(
                f"There must be a label for each of the {self.k} values. Found {len(self.labels)} labels."
            )
        if self.estimator not in ESTIMATORS:
            raise ProblemError(f"estimator must be one of {', '.join(ESTIMATORS)}. Found {shown(self.estimator)}.")
        check_one_missing(self, "eps0", "epsilon", "delta")
        fewest_of_two(self.honest, self.n)

    @property
    def k(self) -> int:
        """How many values there are."""
        return self._k if self._k is not None else len(self.labels or ())

    @property
    def meaning(self) -> str:
        """What is promised, and on what assumptions."""
        return meaning(self.honest is None)

    @property
    def unknown(self) -> str:
        """What is found."""
        return missing(self, "eps0", "epsilon", "delta")[0]

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        numbers = given(self, "epsilon", "delta", "eps0", "honest")
        return {"n": self.n, "k": self.k} | numbers | {"estimator": self.estimator}


@dataclass(frozen=True, kw_only=True, repr=False)
class HistogramSolution(Outcome):
    """The protocol and its figures; standard errors are in people, for equal shares."""

    problem: ShuffleHistogram
    gamma: Fraction
    epsilon: float
    delta: float
    lower: float | None  # some data set breaks every smaller epsilon at this delta
    standard_error: float
    gaussian_sigma: float
    told = ("status", "problem.n", "problem.k", "epsilon", "delta", "lower", "standard_error")
    drawing = "optdp.shuffle.pictures:of_histogram"

    @property
    def value(self) -> float:
        return self.standard_error

    @property
    def unknown(self) -> str:
        return self.problem.unknown

    @property
    def eps0(self) -> float:
        return eps0_of(self.gamma, self.problem.k)

    @property
    def expected_tv(self) -> float:
        """Expected total variation distance between the true shares and those of inversion."""
        return expected_tv(self.standard_error, self.problem.k, self.problem.n)

    @property
    def central_tv(self) -> float:
        """The same of the Gaussian mechanism."""
        return expected_tv(self.gaussian_sigma, self.problem.k, self.problem.n)

    @cached_property
    def turnout(self) -> turnouts.Turnout:
        """Epsilon against the number of people who randomize as stated, the deployed numbers as they are."""
        return turnouts.of_responses(self.problem.n, self.fewest, self.problem.k, self.gamma, Fraction(self.delta))

    @property
    def fewest(self) -> int:
        """How many people must randomize as stated."""
        return fewest(self.problem.honest, self.problem.n)

    def save(self, path: str | Path) -> None:
        """Write the protocol's artifact, atomically."""
        at(SAVE)(self, path)

    def protocol(self) -> HistogramProtocol:
        asked = self.problem
        return HistogramProtocol(asked.n, asked.k, self.gamma, asked.labels, asked.estimator)

    def privacy(self) -> dict[str, Any]:
        """What is promised, and to whom."""
        return {
            "epsilon": self.epsilon, "delta": self.delta, "lower": self.lower, "local_epsilon": self.eps0,
            "meaning": self.problem.meaning,
        }  # fmt: skip

    def sheet(self) -> Sheet:
        """Randomized response for a histogram, beside what a trusted curator could do."""
        worst, mine, curator = max(self.standard_error, self.gaussian_sigma), self.standard_error, self.gaussian_sigma
        facts = self.facts(
            ("deploy", Cell(f"gamma = {float(self.gamma):.9g}", "strong", after=f"  ({self.problem.k:,} values)")),
            ("epsilon, delta", f"{figure(self.epsilon)}, {self.delta:g}"),
            ("without the shuffler", f"{figure(self.eps0)}  (delta 0)"),
            ("error of a bin", Cell(figure(mine), "good", mine / worst)),
            ("by a curator", Cell(figure(curator), "other", curator / worst)),
            ("total variation", f"{figure(self.expected_tv)}  (by a curator {figure(self.central_tv)})"),
            ("who must take part", words(self.problem.n, self.fewest)),
        )
        return Sheet(facts, (turnouts.listing(self.turnout, self.fewest),), meaning=self.problem.meaning)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        sigma = self.gaussian_sigma
        return {
            "kind": self.problem.kind, "status": self.status, "unknown": self.unknown, "n": self.problem.n,
            "parameters": {"eps0": self.eps0, "gamma": float(self.gamma), "k": self.problem.k},
            "epsilon": self.epsilon, "delta": self.delta, "lower": self.lower,
            "standard_error": self.standard_error, "expected_tv": self.expected_tv,
            "central": {"sigma": sigma, "standard_error": sigma, "expected_tv": self.central_tv},
            "bits_per_user": (self.problem.k - 1).bit_length(), "local_epsilon": self.eps0,
            "turnout": turnouts.summary(self.turnout),
            "given": self.problem.figures(), "seconds": round(self.seconds, 4), "note": self.note,
            "meaning": self.problem.meaning,
        }  # fmt: skip


def solve_histogram(problem: ShuffleHistogram, backend: str = "", progress: Progress = silent) -> HistogramSolution:
    """The best protocol for `problem`."""
    begin = time.perf_counter()
    n, k, least = problem.n, problem.k, fewest(problem.honest, problem.n)
    gamma, epsilon, delta = _designed(problem, progress)
    progress("lower bound")
    promise = max(delta, 1e-300)
    below = point(Amplification(KRR(k, float(gamma)), n=least, delta=promise), "lower")
    return HistogramSolution(
        problem=problem, gamma=gamma, epsilon=epsilon, delta=delta, lower=below,
        standard_error=standard_error(n / k, n, k, float(gamma)),
        gaussian_sigma=math.sqrt(2.0) * gaussian_sigma(epsilon, promise), seconds=time.perf_counter() - begin,
        status="solved", note="standard errors are for equal shares; expected distances for normal errors",
    )  # fmt: skip


def standard_error(held: float, n: float, k: int, gamma: float) -> float:
    """Of the inverted count of a value that `held` people hold: exact, for the people who are there."""
    false = gamma / k
    true = 1.0 - gamma + false
    return math.sqrt(held * true * (1.0 - true) + (n - held) * false * (1.0 - false)) / (1.0 - gamma)


def expected_tv(error: float, k: int, n: float) -> float:
    """The expected total variation distance of shares whose counts have normal errors of this size."""
    return 0.5 * k * math.sqrt(2.0 / math.pi) * error / n


def _designed(problem: ShuffleHistogram, progress: Progress) -> tuple[Fraction, float, float]:
    """Gamma, and the epsilon and delta that are promised for it."""
    n, k = fewest(problem.honest, problem.n), problem.k
    if problem.eps0 is None:
        epsilon, delta = there(problem.epsilon), there(problem.delta)
        return private_gamma(n, k, epsilon, delta, progress), float(epsilon), float(delta)
    gamma = deployed(gamma_of(down(problem.eps0), k) * (1.0 + 2.0**-48))
    return gamma, *promised(n, k, gamma, problem.epsilon, problem.delta, progress)


@dataclass(frozen=True, eq=False)
class HistogramEstimate:
    """How many people hold each value, by every estimator; `counts` is that of the chosen one."""

    labels: tuple[str, ...] | None
    estimator: str
    reported: npt.NDArray[np.int64]  # how many messages name each value
    estimates: dict[str, Array]
    standard_errors: Array  # of the inverted counts, for the people who are there

    @property
    def counts(self) -> Array:
        return self.estimates[self.estimator]

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        names = self.labels or tuple(str(value) for value in range(len(self.reported)))
        bins = [
            {
                "value": name,
                "count": float(self.counts[i]),
                "standard_error": float(self.standard_errors[i]),
                "reported": int(self.reported[i]),
                **{other: float(counts[i]) for other, counts in self.estimates.items()},
            }
            for i, name in enumerate(names)
        ]
        return {
            "n": int(self.reported.sum()), "k": len(self.reported), "estimator": self.estimator, "bins": bins,
            "meaning": "count is by the estimator named; standard_error is that of inversion, which is unbiased",
        }  # fmt: skip


@dataclass(frozen=True)
class HistogramProtocol:
    """Randomized response of `n` people on `k` values, `0..k-1` or the labels in their order."""

    n: int
    k: int
    gamma: Fraction
    labels: tuple[str, ...] | None = None
    estimator: str = "likelihood"
    columns: ClassVar[int] = 1

    def read(self, columns: Sequence[Sequence[str]], names: Sequence[str], clip: bool) -> npt.NDArray[np.int64]:
        """The values of a table with one column; they must be as many as the design is for."""
        if self.labels is not None:
            values = known_labels(columns[0], names[0], self.labels)
        else:
            values = whole_numbers(columns[0], names[0], 0, self.k - 1, clip)
        check_rows(len(values), self.n)
        return np.asarray(values, dtype=np.int64)

    def randomize(self, values: npt.ArrayLike, source: Source) -> npt.NDArray[np.int64]:
        """Everybody's message (Algorithm 1); each may be made alone, on somebody's own device."""
        held = np.asarray(values)
        if held.ndim != 1 or held.dtype.kind not in "iu" or is_boolean(values):
            raise ProblemError("Values must be a list of whole numbers. Found something else.")
        wrong = np.flatnonzero((held < 0) | (held >= self.k))
        if len(wrong):
            raise ProblemError(
                f"Values must be from 0 to {self.k - 1}. Found {len(wrong)} outside, first {held[wrong[0]]} at "
                f"position {wrong[0]}. Clip them, or take a larger k."
            )
        blank = bernoulli(source, self.gamma, len(held))
        return np.where(blank, uniform_below(source, self.k, len(held)), held.astype(np.int64))

    def shuffle(self, messages: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The messages in sorted order.

        A set with repetitions is all that is left: it gives away exactly what a random order does, and needs no bits.
        """
        return np.sort(check_messages(messages, self.k))

    def analyze(self, messages: npt.ArrayLike) -> HistogramEstimate:
        """The estimated counts, by every estimator."""
        found = check_messages(messages, self.k)
        check_rows(len(found), self.n)
        reported = np.bincount(found, minlength=self.k)
        channel = KRRChannel(self.k, self.gamma)
        order = sorted(ESTIMATORS, key=lambda name: name != self.estimator)
        estimates = {name: self.n * ESTIMATORS[name](channel, reported) for name in order}
        errors = self.n * standard_errors(channel, reported)
        return HistogramEstimate(self.labels, self.estimator, reported, estimates, errors)
