"""Closed forms of privacy amplification: delta of `n` shuffled eps0-LDP reports as a function of epsilon.

Every bound is an upper bound of the hockey-stick divergence of order `e^epsilon` between the shuffled reports on two
neighbouring data sets, rounded up, or `None` where its theorem does not hold. Where it holds, it is 0 from
`epsilon = eps0` on, since shuffling is post-processing, and 1 where the formula exceeds 1. A value at one epsilon holds
at every larger one, also where the formula grows again (Hoeffding's and Theorem 6 do for few people).

The blanket bounds (B, section 5) are `E[L_1 + ... + L_M]_+ / (gamma n)` with `M ~ Bin(n, gamma)` (B, Lemma 8, with its
prefactor corrected from `1/gamma^n`). `E L = 1 - e^epsilon = -a`; `L` has a known range and second moment. A tail bound
`E[L_1 + ... + L_m]_+ <= A e^(-m E)` sums to `A (1 - gamma + gamma e^-E)^n / (gamma n)`, which falls as gamma grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

ROUNDING = 1e-13
"""Relative rounding error that is granted to every logarithm and exponent; they come from a few dozen operations."""
SMALLEST = 1e-304  # no positive bound is reported smaller than this, so that none is lost to underflow
SMALLEST_EPS0, LARGEST_EPS0 = 1e-100, 100.0  # where floating point neither underflows nor overflows on the way


def _applies(epsilon: float, eps0: float, n: float) -> bool:
    """Whether the arguments make sense, and floating point can carry them."""
    return epsilon >= 0 and 1 <= n < math.inf and (0 <= eps0 <= epsilon or SMALLEST_EPS0 <= eps0 <= LARGEST_EPS0)


def _from_zero_to_eps0(form: Callable[..., float]) -> Callable[..., float | None]:
    """A form for `epsilon < eps0`: from there on delta is 0, and None where the arguments (or k) make no sense."""

    @wraps(form)
    def bound(epsilon: float, eps0: float, n: float, k: int | None = None) -> float | None:
        if not _applies(epsilon, eps0, n) or not (k is None or 2 <= k < math.inf):
            return None
        return 0.0 if epsilon >= eps0 else form(epsilon, eps0, n, *(() if k is None else (k,)))

    return bound


def krr_similarity(eps0: float, k: int) -> float:
    """Total variation similarity `gamma = k/(e^eps0 + k - 1)` of k-ary randomized response (B, Lemma 6)."""
    return k / (math.expm1(eps0) + k)


def laplace_similarity(eps0: float) -> float:
    """Total variation similarity `gamma = e^(-eps0/2)` of the Laplace mechanism on [0, 1] (B, Lemma 6)."""
    return math.exp(-eps0 / 2)


def generic_range(epsilon: float, eps0: float, gamma: float = 1.0) -> tuple[float, float]:
    """`gamma e^-eps0 (1 - e^(epsilon + 2 eps0)) <= L <= gamma e^eps0 (1 - e^(epsilon - 2 eps0))` (B, Lemma 9)."""
    low = -gamma * math.exp(-eps0) * math.expm1(epsilon + 2 * eps0)
    return low, -gamma * math.exp(eps0) * math.expm1(epsilon - 2 * eps0)


def generic_second_moment(epsilon: float, eps0: float, gamma: float | None = None) -> float:
    """`E L^2 <= gamma e^eps0 (e^(2 epsilon) + 1) - 2 gamma^2 e^(epsilon - 2 eps0)` (B, Lemma 9).

    Without gamma: `e^eps0 (e^(2 epsilon) + 1) - 2 e^(epsilon - 3 eps0)`, which holds for every gamma. The first term
    has `gamma <= 1`; the second stands for `2 E[mu_x mu_x' / omega^2] e^epsilon >= 2 gamma^2 e^epsilon`, and `gamma^2
    >= e^(-2 eps0)`.
    """
    spread = 2 * math.sinh(epsilon / 2) ** 2  # cosh(epsilon) - 1
    if gamma is None:
        return 2 * math.exp(epsilon + eps0) * (spread - math.expm1(-4 * eps0))
    return 2 * gamma * math.exp(epsilon + eps0) * (spread - math.expm1(math.log(gamma) - 3 * eps0))


def krr_range(epsilon: float, eps0: float, k: int) -> tuple[float, float]:
    """`-(1 - gamma) k e^epsilon <= L - gamma (1 - e^epsilon) <= (1 - gamma) k` (B, Lemma 12).

    That is `gamma (1 - e^(epsilon + eps0)) <= L <= gamma (e^eps0 - e^epsilon)`.
    """
    gamma = krr_similarity(eps0, k)
    return -gamma * math.expm1(epsilon + eps0), gamma * math.exp(epsilon) * math.expm1(eps0 - epsilon)


def krr_second_moment(epsilon: float, eps0: float, k: int) -> float:
    """`E L^2 = gamma (2 - gamma) (1 - e^epsilon)^2 + (1 - gamma)^2 k (1 + e^(2 epsilon))` (B, Lemma 12)."""
    gamma, rest = krr_similarity(eps0, k), math.expm1(eps0) / (math.expm1(eps0) + k)
    return gamma * (1 + rest) * math.expm1(epsilon) ** 2 + rest**2 * k * (1 + math.exp(2 * epsilon))


def laplace_range(epsilon: float, eps0: float) -> tuple[float, float]:
    """`e^(-eps0/2) (1 - e^(epsilon + eps0)) <= L <= e^(eps0/2) (1 - e^(epsilon - eps0))` (B, Lemma 13)."""
    return -math.exp(-eps0 / 2) * math.expm1(epsilon + eps0), -math.exp(eps0 / 2) * math.expm1(epsilon - eps0)


def laplace_second_moment(epsilon: float, eps0: float) -> float:
    """`E L^2 <= (e^(2 epsilon) + 1)/3 (2/s + s^2) - 2 e^epsilon (2 s - s^2)`, `s = e^(-eps0/2)` (B, Lemma 13).

    Exact for the inputs 0 and 1. Written as `e^epsilon (4 (1-s)^2 (1+2s)/(3s) + 2/3 (cosh(epsilon) - 1) (2/s + s^2))`,
    in which nothing cancels.
    """
    s, spread = math.exp(-eps0 / 2), 2 * math.sinh(epsilon / 2) ** 2
    still = 4 * math.expm1(-eps0 / 2) ** 2 * (1 + 2 * s) / (3 * s)
    return math.exp(epsilon) * (still + 2 / 3 * spread * (2 / s + s * s))


@_from_zero_to_eps0
def hoeffding_generic(epsilon: float, eps0: float, n: float) -> float:
    """B, Lemmas 7 to 10, for every eps0-LDP randomizer: `gamma <= 1` in the range, `gamma >= e^-eps0` in the sum.

    So the authors' published code evaluates it. `theorem_6` treats the two gammas together and is smaller.
    """
    return _hoeffding(epsilon, generic_range(epsilon, eps0), math.exp(-eps0), n)


@_from_zero_to_eps0
def hoeffding_krr(epsilon: float, eps0: float, n: float, k: int) -> float:
    """B, Lemmas 6, 8, 10 and 12: k-ary randomized response."""
    return _hoeffding(epsilon, krr_range(epsilon, eps0, k), krr_similarity(eps0, k), n)


@_from_zero_to_eps0
def hoeffding_laplace(epsilon: float, eps0: float, n: float) -> float:
    """B, Lemmas 6, 8, 10 and 13: the Laplace mechanism on [0, 1]."""
    return _hoeffding(epsilon, laplace_range(epsilon, eps0), laplace_similarity(eps0), n)


@_from_zero_to_eps0
def theorem_6(epsilon: float, eps0: float, n: float) -> float:
    """B, Theorem 6: `X^2/(4 n a) e^(-C n min(e^-eps0, a^2/X^2))` for every eps0-LDP randomizer.

    `X = (e^epsilon + 1)(e^eps0 - e^-eps0)`, `C = 1 - e^-2`. From Lemma 10 with the range `gamma X` and
    `1 - e^(-2u) >= C min(1, u)`: the exponent is at least `C n min(gamma, a^2/(gamma X^2))`.
    """
    a, spread = math.expm1(epsilon), 2 * math.sinh(eps0)
    if a == 0:
        return 1.0
    rate = min(math.exp(-eps0), (math.tanh(epsilon / 2) / spread) ** 2)
    return _rounded(2 * math.log((a + 2) * spread) - math.log(4 * a) - math.log(n), n * math.expm1(-2) * rate)


@_from_zero_to_eps0
def bennett_generic(epsilon: float, eps0: float, n: float) -> float:
    """B, Lemmas 7, 8, 9, 11 (corrected), for every eps0-LDP randomizer: moments for every gamma, the sum at `e^-eps0`.

    So the authors' published code evaluates it. `bennett_generic_sharp` treats the gammas together and is smaller.
    """
    high, moment = generic_range(epsilon, eps0)[1], generic_second_moment(epsilon, eps0)
    return _bennett(epsilon, high, moment, math.exp(-eps0), n)


@_from_zero_to_eps0
def bennett_generic_sharp(epsilon: float, eps0: float, n: float) -> float:
    """B, Lemmas 7, 8, 9 and 11 (corrected) with `gamma = e^-eps0` throughout, which is the worst gamma.

    With `b = gamma B` and `c = gamma D`, `D` falling in gamma, the bound is `B/(n log(1 + a B/D)) (1 - gamma (1 -
    e^(-K/gamma)))^n`, `K = D phi(a B/D)/B^2`. `D phi(u/D)` falls in `D`, so that `K` grows with gamma, and `gamma (1 -
    e^(-K/gamma))` grows with both: every factor falls in gamma, and Lemma 7 says `gamma >= e^-eps0`.
    """
    gamma = math.exp(-eps0)
    high, moment = generic_range(epsilon, eps0, gamma)[1], gamma * generic_second_moment(epsilon, eps0)
    return _bennett(epsilon, high, moment, gamma, n)


@_from_zero_to_eps0
def bennett_krr(epsilon: float, eps0: float, n: float, k: int) -> float:
    """B, Lemmas 6, 8, 11 (corrected) and 12: k-ary randomized response."""
    high, moment = krr_range(epsilon, eps0, k)[1], krr_second_moment(epsilon, eps0, k)
    return _bennett(epsilon, high, moment, krr_similarity(eps0, k), n)


@_from_zero_to_eps0
def bennett_laplace(epsilon: float, eps0: float, n: float) -> float:
    """B, Lemmas 6, 8, 11 (corrected) and 13: the Laplace mechanism on [0, 1]."""
    high, moment = laplace_range(epsilon, eps0)[1], laplace_second_moment(epsilon, eps0)
    return _bennett(epsilon, high, moment, laplace_similarity(eps0), n)


def erlingsson(epsilon: float, eps0: float, n: float) -> float | None:
    """B, Theorem 4 (Erlingsson et al., SODA 2019): `epsilon = 12 eps0 sqrt(log(1/delta)/n)`, solved for delta.

    For `eps0 < 1/2`, `n >= 1000` and `delta < 1/100` only.
    """
    if not _applies(epsilon, eps0, n) or not eps0 < 0.5 or not n >= 1000:
        return None
    if epsilon >= eps0:
        return 0.0
    delta = _rounded(0.0, -n * (epsilon / (12 * eps0)) ** 2)
    return delta if delta < 0.01 else None


def clones(epsilon: float, eps0: float, n: float) -> float | None:
    """Feldman, McMillan, Talwar (FOCS 2021), Theorem 3.1, solved for delta: with `p = e^eps0`,

        e^epsilon = 1 + (p-1)/(p+1) (8 sqrt(p log(4/delta)/n) + 8 p/n)   for `p <= n/(16 log(2/delta))`.

    The condition keeps delta at or above `2 e^(-n/(16 p))`; a larger delta than needed is valid too.
    """
    if not _applies(epsilon, eps0, n):
        return None
    return _clones(epsilon, eps0, n / math.exp(min(eps0, LARGEST_EPS0)))


def stronger_clones(epsilon: float, eps0: float, n: float) -> float | None:
    """Feldman, McMillan, Talwar (SODA 2023), the closed form, solved for delta: with `p = e^eps0`,

        e^epsilon = 1 + (p-1) (4 sqrt(2 log(4/delta)/((p+1) n)) + 4/n)   for `p + 1 <= n/(8 log(2/delta))`.

    The article's own proof that its pair of multinomials dominates every eps0-LDP randomizer has an error (see the
    errata of arXiv 2208.04591). For one randomizer that everybody uses it follows from B, Lemma 8. The pair is the
    blanket bound of binary randomized response, `Z = p - e^epsilon` or `1 - p e^epsilon` with probability `1/(p+1)`
    each, else 0. A cell of any blanket has `Z = u - e^epsilon v` with `u, v` in [1, p] and weight `w`; put the weights
    `w (p u - v)/(p^2 - 1)` and `w (p v - u)/(p^2 - 1)` on those two values, and take from, or give to, 0 what is
    missing. The mean stays, the mass only moves outwards, and `E[Z_1 + ... + Z_n]_+` is convex in the law of `Z`.
    """
    if not _applies(epsilon, eps0, n):
        return None
    return _clones(epsilon, eps0, 2 * n / (math.exp(min(eps0, LARGEST_EPS0)) + 1))


def theorem_1(epsilon: float, n: float, k: int, gamma: float) -> float | None:
    """B, Theorem 1, solved for delta: `2 e^(-c epsilon^2/14)`, `c = gamma (n-1)/k`, as long as `c >= 27/epsilon`."""
    if not 0 < epsilon <= 1 or not 0 < gamma < 1 or not 1 < n < math.inf or not 1 <= k < math.inf:
        return None
    c = gamma * (n - 1) / k
    return _rounded(math.log(2), -c * epsilon * epsilon / 14) if c * epsilon * (1 - ROUNDING) >= 27 else None


def _rounded(log_factor: float, exponent: float) -> float:
    """`e^(log_factor + exponent)`, rounded up, at most 1."""
    exponent = max(exponent, -1e6)
    total = log_factor + exponent + ROUNDING * (10 + abs(log_factor) - exponent)
    return 1.0 if total >= 0 else max(math.exp(total), SMALLEST)


def _hoeffding(epsilon: float, limits: tuple[float, float], gamma: float, n: float) -> float:
    """B, Lemma 10: `E[L_1 + ... + L_m]_+ <= b^2/(4a) e^(-2 m a^2/b^2)`, `b` the width of the range."""
    a, b = math.expm1(epsilon), limits[1] - limits[0]
    if a == 0:
        return 1.0
    decay = math.log1p(gamma * math.expm1(-2 * (a / b) ** 2))
    return _rounded(2 * math.log(b) - math.log(4 * a) - math.log(gamma) - math.log(n), n * decay)


def _bennett(epsilon: float, high: float, moment: float, gamma: float, n: float) -> float:
    """B, Lemma 11, corrected: `E[L_1 + ... + L_m]_+ <= b/log(1 + u) e^(-(m c/b^2) phi(u))`, `u = a b/c`.

    Here `L <= b` and `E L^2 <= c`. Proof: Bennett gives `Pr[L_1 + ... + L_m > t] <= e^(-(m c/b^2) phi(u + t b/(m c)))`;
    phi is convex with `phi' = log(1 + u)`, so that the tail is at most its value at 0 times `e^(-t log(1 + u)/b)`; this
    has the integral `b/log(1 + u)`. (The lemma as printed divides by `a m` besides, and is then too small.)
    """
    u = math.expm1(epsilon) * high / moment
    if u == 0:
        return 1.0
    decay = math.log1p(gamma * math.expm1(-moment / high * _phi(u) / high))
    return _rounded(math.log(high) - math.log(math.log1p(u)) - math.log(gamma) - math.log(n), n * decay)


def _phi(u: float) -> float:
    """`(1+u) log(1+u) - u`; for small `u` its series `u^2/2 - u^3/6 + u^4/12 - ...`."""
    if u > 0.1:
        return (1 + u) * math.log1p(u) - u
    return u * u * math.fsum((-u) ** j / ((j + 1) * (j + 2)) for j in range(16))


def _clones(epsilon: float, eps0: float, mean: float) -> float | None:
    """`e^epsilon - 1 = 8 tanh(eps0/2) (sqrt(log(4/delta)/mean) + 1/mean)` for `log(2/delta) <= mean/16`.

    Both theorems read so, with `mean` the expected number of clones. The root is rounded down.
    """
    least = math.log(2) - mean / 16
    if least > 0:
        return None
    if epsilon >= eps0:
        return 0.0
    root = math.expm1(epsilon) / (8 * math.tanh(eps0 / 2)) * (1 - ROUNDING) - (1 + ROUNDING) / mean
    return max(_rounded(math.log(2), -mean / 16), _rounded(2 * math.log(2), -mean * root * root) if root > 0 else 1.0)
