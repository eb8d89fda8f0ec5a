"""Composition over rounds: the privacy loss of one round of shuffling, and what is left of privacy after many.

In every round `n` people report through the same shuffled randomizer. The same people may take part in all rounds, with
other values each time, and what is asked next may depend on what was seen. The randomness of the rounds is independent,
and every round is shuffled anew, so that nobody can link the messages of one person from round to round.

**Why one pair of laws stands for all.** Write `H(x) = D_x(P||Q)` for the hockey-stick divergence of order `x = e^eps`.
If in every round `H` of every pair of neighbours is at most that of one pair `(P, Q)`, then the divergence of all
rounds together, chosen adaptively, is at most that of the products of `P` and of `Q` (Zhu, Dong and Wang 2022,
Theorem 10; Dong, Roth and Su 2022). The privacy loss of a product is a sum, whose law dp-accounting finds.

**Which pair.** A bound `U(x) >= H(x)` is evaluated at some `x_i >= 1`. It holds for both orders of the neighbours, and
`D_(1/x)(P||Q) = 1 - 1/x + D_x(Q||P) / x`, so that it is known at the `1/x_i` too. `H` is convex and `H(0) = 1`: it lies
below every chord between points above it, so below their lower convex hull. `H` never grows: after the last point the
hull goes on flat. The hull is the divergence of a pair whose losses are at its corners: `Q` has there what the slope
gains, and `P` has `x` times that. What is left at the flat end, `P` has where `Q` has nothing.

The hull is its own mirror image under `H(x) -> 1 - x + x H(1/x)`, which maps lines to lines. So its slopes on either
side of 1 sum to `H(1) - 1`; they increase there if and only if the line of the right one is at most 1 at `x = -1`; and
the right half is the hull of the points with `x >= 1` and of the point `(-1, 1)`. The masses of the left half are
mirror images as well, `P(-loss) = Q(loss)`, so that all of them keep their relative accuracy.

**What is on the safe side.** The hull, as shown. Its masses, by a factor far above round-off. Truncation: dp-accounting
counts all that it cuts off as lost. Round-off of its FFT, which is absolute: with `s` the spectrum of the losses, `N`
its length and `u = 2^-53`, an error of `8 log2(N) u` in `s` becomes `T |s|^(T-1)` times that in its power, and the sum
of what that does to `N` probabilities is at most `sqrt(N)` times its 2-norm (as in `numbers.positive_part`); twice
that is added. Where delta is so small that it matters, the moments of the loss take over: for every `t > 0` it holds
that `(1 - e^(eps-l))_+ <= c e^(t (l-eps))` with `c = t^t / (1+t)^(1+t)`, so `delta <= c e^(-t eps) (E e^(t loss))^T`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len, rfft
from scipy.special import logsumexp

from optdp.amplification.bounds import BOUNDS, FINE, Bound, Setting, leader
from optdp.amplification.calibrate import LARGEST_EPSILON
from optdp.amplification.randomizers import Floats
from optdp.errors import ProblemError
from optdp.extras import install
from optdp.numbers.exact import check_between, check_whole
from optdp.numbers.roots import edge

TAIL = 1e-20  # what one round may reveal beyond the largest loss that is looked at
GRID = 1 << 13  # the FFTs of a pure randomizer's bound; others need the finest
NODES, FEW_NODES = 128, 48
"""Losses at which the bound is evaluated; few where it takes long, which costs up to 1% of epsilon."""
FINER = 4  # losses are closer together than on average by so much near zero, where most of the probability is
SAFE = 1.0 + 2.0**-32  # what every probability is raised by, for its round-off
TRUNCATED = 1e-4  # what truncation may add to delta, relative to it


@dataclass(frozen=True)
class Losses:
    """The privacy loss of one round: `step * index` with probability `mass`, endless with probability `beyond`."""

    step: float
    index: tuple[int, ...]
    mass: tuple[float, ...]
    beyond: float

    @cached_property
    def log_moments(self) -> tuple[Floats, Floats]:
        """Orders `t` and `log E e^(t loss)`, the endless loss left out."""
        losses = self.step * np.array(self.index)
        orders = np.geomspace(0.01, 300.0, 400) / losses.max()
        return orders, np.asarray(logsumexp(np.outer(orders, losses), axis=1, b=np.array(self.mass)[None, :]))


@dataclass(frozen=True)
class Composed:
    """The privacy loss of many rounds."""

    pmf: Any
    losses: Losses
    rounds: int

    def delta(self, epsilon: float) -> float:
        """An upper bound of delta."""
        sums = float(self.pmf.get_delta_for_epsilon(epsilon)) + self.round_off
        lost = -math.expm1(self.rounds * math.log1p(-self.losses.beyond))
        t, moment = self.losses.log_moments
        least = float((self.rounds * moment - t * epsilon + t * np.log(t) - (1.0 + t) * np.log1p(t)).min())
        return min(1.0, SAFE * min(sums, lost + math.exp(min(least, 0.0))))

    @cached_property
    def round_off(self) -> float:
        """How far the FFT may have moved a sum of probabilities."""
        if self.rounds == 1:  # nothing was convolved
            return 0.0
        length = next_fast_len(max(self.pmf.size, self.losses.index[-1] - self.losses.index[0] + 1))
        law = np.zeros(length)
        np.add.at(law, np.array(self.losses.index) % length, self.losses.mass)
        size = np.abs(rfft(law)) + 2.0**-40
        norm = math.sqrt(2.0 * float((size ** (2 * self.rounds - 2)).sum()))
        return 2.0**-53 * 16.0 * math.log2(length) * (self.rounds + 1) * norm


def privacy_loss(setting: Setting, discretization: float | None = None, tail: float = TAIL) -> Any:
    """A pessimistic privacy loss distribution of one round, to compose in dp-accounting with itself or others.

    It is a `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution` for people whose value changes. Only
    equal discretizations compose: give one to compose it with others. Beyond the losses that are looked at, at most
    `tail` is counted as lost.

    The bound is the leading one of the setting: all data sets of binary randomized response, the blanket, or any pure
    randomizer's. The first of them is slow (up to 10 s here), but its epsilons are some 20% below the blanket's.
    """
    module = _dp_accounting("privacy_loss_distribution")
    return module.PrivacyLossDistribution(_pmf(losses_of(setting, tail, discretization)))


def composed_epsilon(setting: Setting, rounds: int, delta: float) -> float:
    """An epsilon for several rounds of shuffling together, rounded up.

    Parameters
    ----------
    setting : Setting
        A randomizer, its eps0, and the number of people.
    rounds : int
        How often everybody reports.
    delta : float
        The delta of all rounds together.

    Returns
    -------
    float
        The rounds are (epsilon, delta)-DP together; infinite if no epsilon is found.

    Examples
    --------
    >>> from optdp import KRR, composed_epsilon
    >>> from optdp.amplification.bounds import Setting
    >>> round(composed_epsilon(Setting(KRR(10), eps0=1.0, n=10_000), rounds=10, delta=1e-6), 4)
    0.0803
    """
    check_between(delta, "delta", 1e-100, 1.0 - 2.0**-53)
    check_whole(rounds, "rounds", 1)
    wanted = 10.0 ** math.floor(math.log10(delta * TRUNCATED / rounds))
    composed = _composed(setting, rounds, min(TAIL, wanted), delta * TRUNCATED)
    local = rounds * setting.eps0 if _pure(setting) else math.inf
    most = rounds * composed.losses.step * composed.losses.index[-1]

    def excess(epsilon: float) -> float:
        return math.log(max(composed.delta(epsilon), 1e-300) / delta)

    if excess(0.0) <= 0.0:
        return 0.0
    if excess(most) > 0.0:
        return local
    return min(edge(excess, most, 0.0, 1e-10 * most), local)


def composed_delta(setting: Setting, rounds: int, epsilon: float) -> float:
    """A delta so that `rounds` rounds are (epsilon, delta)-DP together, rounded up; not below `rounds` times 1e-20."""
    if not 0.0 <= epsilon < math.inf:
        raise ProblemError(f"epsilon must be a number that is not negative. Found {epsilon}.")
    check_whole(rounds, "rounds", 1)
    if _pure(setting) and epsilon >= rounds * setting.eps0:
        return 0.0
    return _composed(setting, rounds, TAIL, 1e-15).delta(epsilon)


def _composed(setting: Setting, rounds: int, tail: float, truncated: float) -> Composed:
    losses = losses_of(setting, tail)
    return Composed(_pmf(losses).self_compose(rounds, truncated), losses, rounds)


def _dp_accounting(module: str) -> Any:
    """A module of dp-accounting, or one helpful line."""
    try:
        return importlib.import_module(f"dp_accounting.pld.{module}")
    except ImportError:
        raise ProblemError(f"Composition needs dp-accounting: {install('accounting')}.") from None


def _pmf(losses: Losses) -> Any:
    masses = dict(zip(losses.index, losses.mass, strict=True))
    return _dp_accounting("pld_pmf").create_pmf(masses, losses.step, losses.beyond, pessimistic_estimate=True)


def _pure(setting: Setting) -> bool:
    return not BOUNDS["stronger-clones"].fits(setting)


def _leading(setting: Setting) -> tuple[Bound, int, int]:
    """The bound of a round, its grid, and at how many losses it is evaluated."""
    name = leader(setting)
    if name == "binary-exact":
        return BOUNDS[name], FINE, FEW_NODES
    return (BOUNDS[name], GRID, NODES) if _pure(setting) else (BOUNDS[name], FINE, FEW_NODES)


@lru_cache(maxsize=64)
def losses_of(setting: Setting, tail: float = TAIL, discretization: float | None = None) -> Losses:
    """The privacy loss of one round, at multiples of `discretization` if that is given."""
    bound, grid, nodes = _leading(setting)
    local = setting.eps0 if _pure(setting) else math.inf

    def delta(epsilon: float) -> float:
        if epsilon >= local:
            return 0.0
        found = bound.log_delta(setting, epsilon, grid)
        return 1.0 if found is None else min(1.0, math.exp(found) * SAFE)

    most = min(local, LARGEST_EPSILON)
    if delta(most) >= 1.0:
        raise ProblemError("Nothing is known to be hidden: every message may tell who sent it. Use another randomizer.")
    reach = _reach(delta, most, tail) * (1.0 + 2.0**-50)
    unit = reach / (FINER * nodes) if discretization is None else discretization
    if not 1e-7 * reach < unit < math.inf:
        raise ProblemError(f"discretization must be a number above {1e-7 * reach:.1e} here. Found {discretization}.")
    # None at zero: the mirror image takes care of it, and a search over all data sets takes longest there.
    index = np.unique(np.ceil(math.ceil(reach / unit) * np.linspace(0.0, 1.0, nodes + 1)[1:] ** 1.5)).astype(np.int64)
    deltas = np.minimum.accumulate(np.array([delta(float(i) * unit) for i in index]))
    return _corners(unit, index, deltas)


def _reach(delta: Callable[[float], float], most: float, tail: float) -> float:
    """An epsilon from which on delta is at most `tail` above its least value, not much larger than needed."""
    enough, high = delta(most) + tail, most
    while high > 1e-15 and delta(high / 2.0) <= enough:
        high /= 2.0
    low = high / 2.0
    for _ in range(4):
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta(middle) <= enough else (middle, high)
    return high


def _corners(step: float, index: NDArray[np.int64], deltas: Floats) -> Losses:
    """The masses at the corners of the hull; `x - 1` is the coordinate, so that small losses stay apart."""
    x, y = np.append(-2.0, np.expm1(index * step)), np.append(1.0, deltas)
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1 and _slope(x, y, hull[-2], hull[-1]) >= _slope(x, y, hull[-1], i):
            hull.pop()
        hull.append(i)
    slopes = np.array([_slope(x, y, a, b) for a, b in pairwise(hull)] + [0.0])
    at = index[np.array(hull[1:]) - 1]
    second = np.diff(slopes) * SAFE
    first = second * np.exp(at * step)
    where, mass = np.concatenate((-at[::-1], at)), np.concatenate((second[::-1], first))
    used = (mass > 0.0) | (where == where[-1])
    return Losses(step, tuple(map(int, where[used])), tuple(map(float, mass[used])), float(deltas[-1]))


def _slope(x: Floats, y: Floats, a: int, b: int) -> float:
    return float((y[b] - y[a]) / (x[b] - x[a]))
