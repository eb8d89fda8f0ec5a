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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from optdp.amplification.calibrate import LARGEST_EPSILON, LARGEST_N
from optdp.amplification.family import LARGEST_EPS0
from optdp.amplification.problem import Amplification, positive, small
from optdp.amplification.randomizers import KRR
from optdp.amplification.solve import point
from optdp.errors import ProblemError
from optdp.math.exact import Number, check_whole, down, show, shown
from optdp.math.gaussian import gaussian_sigma
from optdp.shuffle.estimators import ESTIMATORS
from optdp.shuffle.gamma import deployed, eps0_of, gamma_of, private_gamma, promised_delta, promised_epsilon, worthwhile
from optdp.shuffle.histogram_protocol import HistogramProtocol

LARGEST_BINS = 10**7
Progress = Callable[[str], None]
_MEANING = (
    "Everybody sends one randomized value through a shuffler. Who sees them all, but not who sent which, learns no "
    "more than (epsilon, delta)-DP allows, neighbours differing in one person's value. It needs an honest shuffler, "
    "and that all n people randomize as they should; without the shuffler each message is private with local_epsilon "
    "only."
)


@dataclass(frozen=True, init=False)
class ShuffleHistogram:
    """`n` people hold one of `k` values each, `0..k-1` or `labels`; wanted is how many hold each.

    Of `epsilon`, `delta` and `eps0` the one left out is found; without `eps0` the largest that keeps the promise.
    """

    k: int
    n: int
    epsilon: Fraction | None
    delta: Fraction | None
    eps0: Fraction | None
    labels: tuple[str, ...] | None
    estimator: str
    kind: ClassVar[str] = "shuffle-histogram"
    meaning: ClassVar[str] = _MEANING

    def __init__(
        self,
        k: int | None = None,
        n: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        eps0: Number | None = None,
        labels: Sequence[str] | None = None,
        estimator: str = "likelihood",
    ) -> None:
        names = _names(labels)
        if k is None and names is None:
            raise ProblemError("Either k or labels must be given. Found neither.")
        k = k if k is not None or names is None else len(names)
        check_whole(k, "k", 2, LARGEST_BINS)
        check_whole(n, "n", 2, LARGEST_N)
        if names is not None and len(names) != k:
            raise ProblemError(f"There must be a label for each of the {k} values. Found {len(names)} labels.")
        if estimator not in ESTIMATORS:
            raise ProblemError(f"estimator must be one of {', '.join(ESTIMATORS)}. Found {shown(estimator)}.")
        values = {
            "k": k,
            "n": n,
            "epsilon": positive(epsilon, "epsilon", LARGEST_EPSILON),
            "delta": small(delta),
            "eps0": positive(eps0, "eps0", LARGEST_EPS0),
            "labels": names,
            "estimator": estimator,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if len(self._missing()) != 1:
            found = " and ".join(self._missing()) or "none"
            raise ProblemError(f"One of epsilon, delta, eps0 must be left out: it is what is found. Missing: {found}.")

    def _missing(self) -> list[str]:
        return [name for name in ("eps0", "epsilon", "delta") if getattr(self, name) is None]

    @property
    def unknown(self) -> str:
        """What is found."""
        return self._missing()[0]

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "eps0": self.eps0}
        found: dict[str, Any] = {"n": self.n, "k": self.k}
        found |= {name: show(value) for name, value in numbers.items() if value is not None}
        return found | {"estimator": self.estimator}


@dataclass(frozen=True, kw_only=True)
class HistogramSolution:
    """The protocol and its figures; standard errors are in people, for equal shares."""

    problem: ShuffleHistogram
    gamma: Fraction
    epsilon: float
    delta: float
    lower: float | None
    """Some data set breaks every smaller epsilon at this delta."""
    standard_error: float
    gaussian_sigma: float
    seconds: float
    status: str
    note: str

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

    def protocol(self) -> HistogramProtocol:
        given = self.problem
        return HistogramProtocol(given.n, given.k, self.gamma, given.labels, given.estimator)

    def privacy(self) -> dict[str, Any]:
        """What is promised, and to whom."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "lower": self.lower,
            "local_epsilon": self.eps0,
            "meaning": self.problem.meaning,
        }

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        sigma = self.gaussian_sigma
        return {
            "kind": self.problem.kind,
            "status": self.status,
            "unknown": self.unknown,
            "n": self.problem.n,
            "parameters": {"eps0": self.eps0, "gamma": float(self.gamma), "k": self.problem.k},
            "epsilon": self.epsilon,
            "delta": self.delta,
            "lower": self.lower,
            "standard_error": self.standard_error,
            "expected_tv": self.expected_tv,
            "central": {"sigma": sigma, "standard_error": sigma, "expected_tv": self.central_tv},
            "bits_per_user": (self.problem.k - 1).bit_length(),
            "local_epsilon": self.eps0,
            "given": self.problem.figures(),
            "seconds": round(self.seconds, 4),
            "note": self.note,
            "meaning": self.problem.meaning,
        }


def solve_histogram(problem: ShuffleHistogram, progress: Progress = lambda _: None) -> HistogramSolution:
    """The best protocol for `problem`."""
    begin = time.perf_counter()
    progress("gamma")
    n, k = problem.n, problem.k
    gamma, epsilon, delta = _designed(problem)
    progress("lower bound")
    promise = max(delta, 1e-300)
    below = point(Amplification(KRR(k, float(gamma)), n=n, delta=promise), "lower")
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


def _designed(problem: ShuffleHistogram) -> tuple[Fraction, float, float]:
    """Gamma, and the epsilon and delta that are promised for it."""
    n, k = problem.n, problem.k
    if problem.eps0 is None:
        assert problem.epsilon is not None
        assert problem.delta is not None
        gamma, _ = private_gamma(n, k, problem.epsilon, problem.delta)
        return gamma, float(problem.epsilon), float(problem.delta)
    gamma = deployed(gamma_of(down(problem.eps0), k) * (1.0 + 2.0**-48))
    if problem.epsilon is None:
        assert problem.delta is not None
        return gamma, promised_epsilon(n, k, gamma, problem.delta), float(problem.delta)
    return gamma, float(problem.epsilon), worthwhile(promised_delta(n, k, gamma, problem.epsilon), problem.epsilon)


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
