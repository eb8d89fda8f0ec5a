"""Two published numerical bounds of privacy amplification, transcribed as they work, to be compared with side by side.

- Clones: V. Feldman, A. McMillan, K. Talwar, "Hiding Among the Clones" (FOCS 2021), section 3, with the search of their
  published program: epsilon is bisected, the number of clones is walked in steps away from its mean, and each step is
  charged the larger divergence of its ends.
- Variation ratio: S. Wang et al., "Privacy Amplification via Shuffling: Unified, Simplified, and Tightened" (VLDB
  2024), the numerical upper bound: epsilon is bisected, the expectation over the number of clones is left to scipy.

Both call scipy's binomial law value by value, which is what their users wait for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

Floats = NDArray[np.float64]


def clones_numeric(n: int, eps0: float, delta: float, iterations: int = 10, step: int = 100) -> float:
    """An epsilon for which `n` shuffled eps0-LDP reports are (epsilon, delta)-DP, by the clones of 2021.

    The number of clones is `C ~ Bin(n-1, e^-eps0)`; each is a fair coin, and the victim adds 0 or 1, the one with
    probability `e^eps0/(e^eps0 + 1)`, the other with the rest. The search begins at the closed form where it holds.
    """
    high, low = eps0, 0.0
    if eps0 < math.log(n / (16 * math.log(4 / delta))):
        p = math.exp(eps0)
        high = math.log1p((p - 1) / (p + 1) * (8 * math.sqrt(p * math.log(4 / delta) / n) + 8 * p / n))
    for _ in range(iterations):
        middle = (low + high) / 2
        if _clones_delta(n, eps0, middle, delta, step) < delta:
            high = middle
        else:
            low = middle
    return high


def variation_ratio(n: int, p: float, beta: float, q: float, delta: float, iterations: int = 20) -> float:
    """An epsilon for which `n` shuffled reports of `(p, beta)`-variation, `q`-ratio laws are (epsilon, delta)-DP.

    With `alpha = beta/(p-1)` and `r = alpha p/q` each other message is of type 0 or 1 with probability `r` each, else
    of type 2; the victim's is of type 0, 1 with probability `p alpha`, `alpha` (or the other way round), else 2. Any
    eps0-LDP randomizer has `p = q = e^eps0`, `beta = (p-1)/(p+1)`.
    """
    alpha = beta / (p - 1)
    r = alpha * p / q
    tolerance = max(1e-19, min(1e-14, delta / n / 10))
    low, high = 0.0, math.log(p)
    for _ in range(iterations):
        middle = (low + high) / 2
        if variation_ratio_delta(middle, n, p, alpha, r, tolerance) + tolerance * n > delta:
            low = middle
        else:
            high = middle
    return high


def variation_ratio_delta(epsilon: float, n: int, p: float, alpha: float, r: float, tolerance: float = 1e-14) -> float:
    """The divergence of the pair at `epsilon`: an expectation over the number `C ~ Bin(n-1, 2r)` of types 0 and 1.

    Given `c` messages of the types 0 and 1, of which `a` are of type 0, the first law is more than `e^epsilon` times as
    likely as the second exactly if `a` is above a threshold that is linear in `c`; the victim counts too.
    """
    e = math.exp(epsilon)
    rest = 1 - alpha - p * alpha
    per_rest = rest / (1 - 2 * r) if rest > 1e-15 else 0.0

    def threshold(c: Floats) -> Floats:
        above = (p * e - 1) * alpha / r * c + (e - 1) * per_rest * (n - c)
        return np.ceil(above / (alpha / r * (p - 1) * (e + 1)))

    def tails(c: Floats, least: Floats) -> Floats:
        return np.array([1 - binom.cdf(at - 1, count, 0.5) for at, count in zip(least, c, strict=True)])

    def given(c: Floats) -> Floats:
        with_victim, without = threshold(c + 1), threshold(c)
        as_zero, as_one, as_rest = tails(c, with_victim - 1), tails(c, with_victim), tails(c, without)
        return (p - e) * alpha * as_zero + (1 - p * e) * alpha * as_one + (1 - e) * rest * as_rest

    return float(
        binom.expect(given, args=(n - 1, 2 * r), lb=0, ub=n - 1, tolerance=tolerance, maxcount=n, chunksize=32)
    )


def _clones_delta(n: int, eps0: float, epsilon: float, enough: float, step: int) -> float:
    """An upper bound of the clones' divergence; cut short once it passes `enough`, or once what is left is smaller."""
    share = math.exp(-eps0)
    forth, back, used = 0.0, 0.0, 0.0
    for first, last in _outwards((n - 1) * share, step, n - 1):
        mass = binom.cdf(last, n - 1, share) - binom.cdf(first, n - 1, share) + binom.pmf(first, n - 1, share)
        if max(forth, back) > enough:
            return enough
        if 1 - used < min(forth, back):
            return max(forth, back) + 1 - used
        ends = [_one_step(c, epsilon, eps0) for c in (last, first)]
        forth += mass * max(end[0] for end in ends)
        back += mass * max(end[1] for end in ends)
        used += mass
    return max(forth, back)


def _outwards(mean: float, step: int, largest: int) -> Iterator[tuple[int, int]]:
    """Intervals of `step` integers, alternately above and below the mean, until they cover `0..largest`."""
    middle = math.ceil(mean)
    for k in range(largest // step + 1):
        first = middle + k * step
        if first <= largest:
            yield first, min(first + step - 1, largest)
        last = middle - k * step - 1
        if last >= 0:
            yield max(last - step + 1, 0), last


def _one_step(c: int, epsilon: float, eps0: float) -> tuple[float, float]:
    """The two divergences given `c` clones: one cutoff of the count for each direction."""
    e, p = math.exp(epsilon), math.exp(eps0)
    stay, move = p / (p + 1), 1 / (p + 1)
    odds = (stay - e * move) / (e * stay - move)

    def laws(cutoff: float) -> tuple[float, float]:
        first = stay * binom.cdf(cutoff, c, 0.5) + move * binom.cdf(cutoff - 1, c, 0.5)
        second = move * binom.cdf(cutoff, c, 0.5) + stay * binom.cdf(cutoff - 1, c, 0.5)
        return first, second

    first, second = laws((c + 1) * odds / (1 + odds))
    forth = first - e * second
    first, second = laws((c + 1) / (1 + odds))
    return forth, (1 - second) - e * (1 - first)
