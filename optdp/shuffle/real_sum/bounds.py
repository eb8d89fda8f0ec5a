"""What no single-message protocol for the sum of numbers in [0, 1] can go below (B, section 4.2), in numbers.

Any analyzer is at best the sum of posterior means, so that for people with independent `X` the mean squared error is at
least `n E[(R(X) - X)^2]` for a randomizer `R` into [0, 1] whose shuffled reports are (epsilon, delta)-DP (Lemmas 1, 2).
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
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy.stats import binom

from optdp.errors import ProblemError
from optdp.numbers.exact import check_between, check_whole, precision
from optdp.numbers.roots import edge

Array = npt.NDArray[np.float64]

SAFE = 1.0 - 1e-9  # what a lower bound is multiplied with: more than the rounding of all its sums
SHARES = (0.0, *(1.0 - 0.93**i for i in range(1, 80)))  # values of eta at which `q` is computed
WEIGHTS = (1.0, 0.75, 0.5, 0.25)
BITS = 200


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
