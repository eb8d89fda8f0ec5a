"""Errors of the sum of numbers in [0, 1], one message each: the least of B's protocol, and what nobody can go below.

With `t = xk`, `Var[y] = (1-g) f(1-f) - g(1-g) t(k-t) + g k(2k+1)/6 - g^2 k^2/4`. Its largest value is in the first (and
last) step, where `t = f`: at `t = (1-gk)/(2(1-g))` if `gk < 1`, else at 0. So

    max Var[y] = 1/4 + g k(k-1)/3  if gk <= 1,    g k(2k+1)/6 - g^2 k^2/4  else,

exactly; the paper bounds it by `k^2 ((1-g)/(4k^2) + g/2)`. For each k the least gamma is that of `gamma.least_gamma`:
about `c(k+1)/n` with a `c` that hardly depends on k. The search moves k to the best one for the last `c`, and then to
its neighbours until both are worse.

Theorem 2 takes gamma from Theorem 1 instead; that is computed too, with its own best k and the same exact MSE.

**What no single-message protocol can go below** (B, section 4.2), in numbers. Any analyzer is at best the sum of
posterior means, so that for people with independent `X` the mean squared error is at least `n E[(R(X) - X)^2]` for a
randomizer `R` into [0, 1] whose shuffled reports are (epsilon, delta)-DP (Lemmas 1, 2).
Let `X` be uniform on `k` points a distance `h` apart, `S(b)` the points nearest to `b`, and `p_ab = Pr[R(a) in S(b)]`.

**Privacy.** How many reports lie in `S(b)` must be private for the data sets `a^n` and `(b, a^(n-1))`. With
`N ~ Bin(n-1, p)`, `p = p_ab`, `s = p_bb`, both divergences of `N + Ber(p)` and `N + Ber(s)` are at most delta. Let
`q(eta)` be a number below which no `p` does this with `s = 1 - eta`. Then `p_ab >= q(1 - p_bb)` for every `a`:

- The divergences do not fall as `s >= p` grows: `Ber(s)` is a mixture of `Ber(s')` and `Ber(p)` for `p <= s <= s'`, and
  they are convex and vanish at `s = p`.
- They do not rise as `p` grows: turning each report outside of `S(b)` into one inside with probability `t` takes `p, s`
  to `p + (1-p) t, s + (1-s) t`; the divergence does not rise by that, nor by `s` going back to what it was.

The likelihood ratio is monotone in the count, so that for every `t` (and the best `t` reaches it)

    divergence of N + Ber(s) from N + Ber(p)  >=  (s - e^eps p) Pr[N = t-1] - (e^eps - 1) Pr[N >= t],
    divergence of N + Ber(p) from N + Ber(s)  >=  (e^eps s - p) Pr[N = t]   - (e^eps - 1) Pr[N <= t].

Lemma 5 of the paper is the second at `t = 0`, with its terms estimated. `q` is found in floats, and then proved in
balls.

**Error.** What leaves `S(a)` errs by at least `h/2`, what goes from `a` to `S(b)` by `d_ab = |a-b| - h/2` or more. Of
every `d_ab^2` take the part `w (h/2)^2`, `0 <= w <= 1`, for having left, and the rest for where it went:
`sum_b p_ab d_ab^2 >= w (h/2)^2 (1 - p_aa) + sum_b q_b (d_ab^2 - w (h/2)^2)` with `q_b = q(1 - p_bb)`. So

    E[(R(X)-X)^2] >= (1/k) sum_b min over eta of [q(eta) M_b + w (h/2)^2 eta],
    M_b = sum over a != b of (d_ab^2 - w (h/2)^2),

and `lower_mse` takes the best k and w. `q` falls: between two values of eta it is not below that at the larger.

**Where the paper has a gap.** Its last step bounds `sum_b min{A_b, B_b}` (Lemma 4; `A_b` for what leaves `S(b)`, `B_b`
for what arrives) by `k min{A0, B0}`. But Lemma 5 gives `A_b >= A0` *or* `B_b >= B0` for each `b`, so that the smaller
may be 0: it is for a randomizer that always says the same. The theorem holds, with its constants, for `k >= 4`: by the
above with `w = 1` what leaves and what arrives add up, and `sum over u of u(u-1) >= (k^3-k)/48` does for Lemma 3, where
`u` runs through the distances in steps of `h`. (For `k = 2m` and `2m+1` this says `8(m-1) >= 2m+1`.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy.stats import binom

from optdp.amplification.calibrate import LARGEST_N
from optdp.errors import ProblemError
from optdp.numbers.exact import check_between, check_whole, precision, shown
from optdp.numbers.roots import edge, last_whole
from optdp.shuffle.gamma import least_gamma
from optdp.shuffle.honest import fewest
from optdp.work import Progress, silent

Array = npt.NDArray[np.float64]

LARGEST_K = 10**6
SAFE = 1.0 - 1e-9  # what a lower bound is multiplied with: more than the rounding of all its sums
SHARES = (0.0, *(1.0 - 0.93**i for i in range(1, 80)))  # values of eta at which `q` is computed
WEIGHTS = (1.0, 0.75, 0.5, 0.25)
BITS = 200


def mse(n: float, k: float | Array, gamma: float | Array) -> Any:
    """The largest mean squared error of the sum, over all data in [0, 1]: exact, for numbers or arrays."""
    k, gamma = np.asarray(k, dtype=float), np.asarray(gamma, dtype=float)
    steep = gamma * k <= 1.0
    often = gamma * k * (2.0 * k + 1.0) / 6.0 - (gamma * k) ** 2 / 4.0
    most = np.where(steep, 0.25 + gamma * k * (k - 1.0) / 3.0, often)
    found = n / (1.0 - gamma) ** 2 * most / k**2
    return float(found) if found.ndim == 0 else found


def printed_mse(n: float, k: float | Array, gamma: float | Array) -> Any:
    """B's bound of the same in the proof of Theorem 2: `n/(1-gamma)^2 ((1-gamma)/(4k^2) + gamma/2)`."""
    return n / (1.0 - gamma) ** 2 * ((1.0 - gamma) / (4.0 * k**2) + gamma / 2.0)


@dataclass(frozen=True)
class Tuning:
    """A `k`, its gamma in floats, and the mean squared error of the sum of numbers in [0, 1]."""

    k: int
    gamma: float
    mse: float


def theorem_1(n: int, epsilon: float, delta: float, k: int | None = None, printed: bool = False) -> Tuning | None:
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
    return Tuning(int(ks[best]), least * (int(ks[best]) + 1), float(values[best]))


@lru_cache(maxsize=4096)
def at(n: int, k: int, epsilon: Fraction, delta: Fraction, honest: Fraction | None = None) -> Tuning:
    """The least gamma for one k."""
    gamma = least_gamma(max(2, fewest(honest, n)), k + 1, epsilon, delta)
    return Tuning(k, gamma, mse(n, k, gamma))


def best_k(
    n: int,
    epsilon: Fraction,
    delta: Fraction,
    honest: Fraction | None = None,
    start: int = 0,
    progress: Progress = silent,
) -> Tuning:
    """The k with the least error, by the search of the module's text; `start` is a guess."""

    def tried(k: int) -> Tuning:
        progress(f"trying k = {k:,} for {n:,} people")
        return at(n, k, epsilon, delta, honest)

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


def least_n(
    epsilon: Fraction,
    delta: Fraction,
    wanted: Fraction,
    width: Fraction,
    given_k: int | None,
    honest: Fraction | None,
    progress: Progress,
) -> int:
    """The least number of people with which the average, of numbers from a range so wide, errs as little as wanted."""
    target = float(wanted / width**2) * (1.0 - 1e-9)
    k = given_k or 0

    def excess(n: int) -> float:
        nonlocal k
        progress(f"trying {n:,} people")
        chosen = at(n, given_k, epsilon, delta, honest) if given_k else None
        found = chosen or best_k(n, epsilon, delta, honest, k, progress)
        k = found.k
        return math.log(found.mse / n**2 / target)

    if (short := excess(LARGEST_N)) > 0.0:
        raise ProblemError(
            f"average_mse must be reached by {LARGEST_N:,} people. Found {shown(float(wanted))}; they reach "
            f"{float(wanted) * math.exp(short):.3g}. Take a larger one."
        )
    k = given_k or 0
    low, high, above = 1, 2, excess(2)
    while above > 0.0:
        low, high = high, min(LARGEST_N, max(high + 1, math.ceil(high * math.exp(min(above * 0.62, 3.0)))))
        above = excess(high)
    return high if high == 2 else last_whole(excess, high, low)


def theorem_3(n: int, epsilon: float, delta: float) -> float:
    """B, Theorem 3, with the constants of its proof and the best k from 4 on."""
    _check(n, epsilon, delta)
    if delta >= 0.5:
        return 0.0
    k = np.arange(4, 12 + 4 * math.ceil(n ** (1 / 3)), dtype=float)
    leaves = math.exp(-epsilon) / (8.0 * k**3)
    arrives = (0.5 - delta) / n / 48.0 * (1.0 - k**-2.0)
    return float((n * k * np.minimum(leaves, arrives)).max()) * SAFE


def lower_mse(n: int, epsilon: float, delta: float) -> float:
    """The best lower bound of the worst-case mean squared error of the sum: all constants computed."""
    _check(n, epsilon, delta)
    q = _arrivals(n, epsilon, delta)

    def value(k: int) -> float:
        return _mean_error(k, q) * n

    most = math.ceil(math.log2(4.0 * n ** (1 / 3) + 4.0))
    k = max((2**power for power in range(1, most + 1)), key=value)
    low, high = max(2, k // 2), 2 * k  # every k is a bound, so that a search need not find the best
    while high - low > 12:
        third = (high - low) // 3
        low, high = (low + third, high) if value(low + third) < value(high - third) else (low, high - third)
    return max(theorem_3(n, epsilon, delta), *(value(found) for found in range(low, high + 1))) * SAFE


def least_arrival(n: int, epsilon: float, delta: float, eta: float) -> float:
    """A `q` such that no `p < q` is private with `s = 1 - eta`: proved, and nearly the largest such number."""
    _check(n, epsilon, delta)
    stay = math.nextafter(1.0 - eta, 0.0)
    low, high = math.log(1e-6 / n), math.log(stay)
    if _best(n, math.exp(low), stay, epsilon)[0] <= delta:
        return 0.0
    found = math.exp(edge(lambda power: delta - _best(n, math.exp(power), stay, epsilon)[0], low, high, 1e-11))
    for retreat in (1e-9, 1e-7, 1e-5, 1e-3, 1e-1):
        tried = found * (1.0 - retreat)
        if _breaks(n, tried, stay, epsilon, delta):
            return tried
    return 0.0


@lru_cache(maxsize=256)
def _arrivals(n: int, epsilon: float, delta: float) -> tuple[float, ...]:
    """`q` at every one of SHARES, made to fall."""
    found = [least_arrival(n, epsilon, delta, eta) for eta in SHARES]
    return tuple(np.maximum.accumulate(found[::-1])[::-1].tolist())


def _mean_error(k: int, q: tuple[float, ...]) -> float:
    """The lower bound of `E[(R(X)-X)^2]` for `k` points `0, h, ..., 1`."""
    h = 1.0 / (k - 1)
    squares = np.concatenate(([0.0], np.cumsum((np.arange(1, k) * h - 0.5 * h) ** 2)))
    far = squares + squares[::-1]  # the sum of d_ab^2
    best = 0.0
    for weight in WEIGHTS:
        part = weight * (0.5 * h) ** 2
        arrives = np.array([*q[1:], 0.0])[:, None] * (far - (k - 1) * part)
        best = max(best, float((arrives + part * np.array(SHARES)[:, None]).min(axis=0).mean()))
    return best


def _best(n: int, p: float, s: float, epsilon: float) -> tuple[float, int, bool]:
    """The larger divergence in floats, its threshold, and whether it is that of low counts."""
    gain, others = math.exp(epsilon), n - 1
    found = (0.0, 0, False)
    if s > gain * p:  # counts with Pr[N = t-1] / Pr[N = t] above the odds
        odds = (gain * (1.0 - p) - (1.0 - s)) / (s - gain * p)
        t = math.ceil(odds * n * p / (1.0 - p + odds * p))
        if 1 <= t <= n:
            seen, beyond = float(binom.pmf(t - 1, others, p)), float(binom.sf(t - 1, others, p))
            found = max(found, ((s - gain * p) * seen - (gain - 1.0) * beyond, t, False))
    if gain * (1.0 - s) < 1.0 - p:  # counts with it below the odds
        odds = ((1.0 - p) - gain * (1.0 - s)) / (gain * s - p)
        t = min(others, math.floor(odds * n * p / (1.0 - p + odds * p)))
        seen, beyond = float(binom.pmf(t, others, p)), float(binom.cdf(t, others, p))
        found = max(found, ((gain * s - p) * seen - (gain - 1.0) * beyond, t, True))
    return found


def _breaks(n: int, p: float, s: float, epsilon: float, delta: float) -> bool:
    """Whether a divergence is proved to be above delta, in balls: then so it is for every smaller `p`."""
    if p > s:
        return False
    with precision(BITS):
        share, stay, gain = arb(p), arb(s), arb(epsilon).exp()
        _, t, low = _best(n, p, s, epsilon)
        if low:
            value = (gain * stay - share) * _mass(n - 1, t, share) - (gain - 1) * _tail(n - 1, t, share, -1)
        else:
            value = (stay - gain * share) * _mass(n - 1, t - 1, share) - (gain - 1) * _tail(n - 1, t, share, 1)
        return bool(value > arb(delta))


def _mass(n: int, t: int, p: arb) -> arb:
    if not 0 <= t <= n:
        return arb(0)
    return arb.bin_uiui(n, t) * p**t * (1 - p) ** (n - t)


def _tail(n: int, t: int, p: arb, way: int) -> arb:
    """A bound from above of `Pr[N >= t]` (way 1) or `Pr[N <= t]` (way -1): terms, then a geometric series."""
    if not 0 <= t <= n:
        outside = (t > n) if way > 0 else (t < 0)
        return arb(0) if outside else arb(1)
    term, total, odds = _mass(n, t, p), arb(0), p / (1 - p)
    tiny = term * arb(2) ** -60
    while True:
        total += term
        ratio = odds * (n - t) / (t + 1) if way > 0 else t / (odds * (n - t + 1))
        if ratio < arb(1) and term < tiny:
            return total + term * ratio / (1 - ratio)
        term, t = term * ratio, t + way
        if not 0 <= t <= n:
            return total


def _check(n: int, epsilon: float, delta: float) -> None:
    check_whole(n, "n", 2, 10**10)
    check_between(epsilon, "epsilon", 0.0, 60.0)
    check_between(delta, "delta", 0.0, 1.0)
    if not delta < 1.0:
        raise ProblemError(f"delta must be below 1. Found {delta}.")
