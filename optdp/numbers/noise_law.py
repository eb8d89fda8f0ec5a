"""`SGDL(beta, q)` as an array of logarithms: by floats, which is quick, for searches; and by balls, for claims.

Full relative accuracy in the far tails is what matters. The recurrence of `optdp.numbers.sgdl` for the ratio
`r(x) = Pr[x+1] / Pr[x]`, written for `y = 1 - r`, is, downwards,

    y(x-1) = (k x + (x+1-beta) y(x)) / (x-1 + beta + k x + (x+1-beta) y(x)),      k = (1-q)^2 / q.

Nothing cancels by more than a small factor, and an error of `y` shrinks at every step, so that it may start from the
saddle point's guess far enough out. A step adds a few units of round-off `u` to the *relative* error of `y`, and leaves
what it had at most as it was: after `m` steps `log r` is within a few `u m y`. The sum of all `y` is at most that of
all `-log r`, so that `log Pr`, a sum of these, is within `32 u m (8 + |log Pr[reach]|)`: `error`, an account and not a
measurement (measured against balls it is below 1e-12). For `beta = 1` the law is `(1-q)/(1+q) q^|x|`, known to a few
units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.numbers.exact import precision
from optdp.numbers.sgdl import SGDL

Floats = NDArray[np.floating[Any]]

UNIT = 2.0**-53
SHORT = 20_000  # from this reach on laws are kept
PROVED, PROVED_BITS = 100_000, 96
"""How far a law is enclosed in balls, of so many bits; further out the account of the recurrence is what there is."""


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """Logarithms of `Pr[0], Pr[1], ...`, each within `error`; the law is symmetric."""

    log_p: Floats
    log_beyond: float  # above the logarithm of `Pr[> reach]`
    error: float

    @property
    def reach(self) -> int:
        return len(self.log_p) - 1

    @cached_property
    def log_tails(self) -> Floats:
        """Above the logarithm of `Pr[> x]` for `x = 0..reach`."""
        falling = np.logaddexp.accumulate(np.append(self.log_p[1:], self.log_beyond)[::-1])[::-1]
        return np.asarray(falling + self.error + UNIT * 4.0 * len(falling))

    def cut(self, reach: int) -> NoiseLaw:
        """The same law, known less far."""
        return NoiseLaw(self.log_p[: reach + 1], float(self.log_tails[reach]), self.error)

    def mean_absolute(self) -> float:
        """`E|X|`, by summing."""
        return float(2.0 * np.sum(np.arange(self.reach + 1) * np.exp(self.log_p)))


def noise_law(beta: Fraction, q: Fraction, reach: int) -> NoiseLaw:
    """The law of `SGDL(beta, q)` on `-reach..reach`; no noise at all for `beta = 0`.

    Long ones are cut from longer ones, which are kept: searches ask for one law with many reaches.
    """
    if reach < SHORT or beta in (0, 1):
        return _noise_law(beta, q, reach)
    return _kept_law(beta, q, math.ceil(2.0 ** (math.ceil(2.0 * math.log2(reach)) / 2.0))).cut(reach)


@lru_cache(maxsize=8)
def _kept_law(beta: Fraction, q: Fraction, reach: int) -> NoiseLaw:
    return _noise_law(beta, q, reach)


def _noise_law(beta: Fraction, q: Fraction, reach: int) -> NoiseLaw:
    if beta == 0:
        return NoiseLaw(np.append(0.0, np.full(reach, -np.inf)), -math.inf, 0.0)
    a = -log_of(q)
    if beta == 1:
        log_p = math.log(float((1 - q) / (1 + q))) - a * np.arange(reach + 1.0)
        error = 8.0 * UNIT * (2.0 + float(np.max(np.abs(log_p))))
        return NoiseLaw(log_p, float(log_p[-1]) - a - math.log(-math.expm1(-a)) + error, error)
    logs = _log_ratios(float(beta), float((1 - q) ** 2 / q), a, reach)
    log_p = np.concatenate(([0.0], np.cumsum(logs[:-1])))
    largest = max(math.exp(logs[-1]), math.exp(-a))  # all later ratios lie between this one and q
    log_beyond = float(log_p[-1]) + math.log(largest) - math.log1p(-largest)
    peak = float(np.max(log_p))
    total = math.log(2.0 * float(np.sum(np.exp(log_p - peak))) - math.exp(-peak)) + peak
    outside = float(np.logaddexp(0.0, math.log(2.0) + log_beyond - total))  # what the total leaves out
    steps = reach + 8.0 + _steps(float(beta), a, reach + 1)
    error = 32.0 * UNIT * steps * (8.0 + abs(float(log_p[-1]))) + outside
    return NoiseLaw(log_p - total, log_beyond - total, error)


def proved_law(beta: Fraction, q: Fraction, reach: int) -> NoiseLaw:
    """The same by ball arithmetic: what claims are made from."""
    if beta in (0, 1) or reach > PROVED:
        return noise_law(beta, q, reach)
    law = SGDL(beta, q)
    with precision(PROVED_BITS):
        balls = law.balls(0, reach)
        log_p = np.array([float(value.log()) for value in balls])
        largest = law.tail_ratio(reach)[1].upper()
        log_beyond = float((balls[-1] * largest / (1 - largest)).log().upper())
    return NoiseLaw(log_p, math.nextafter(log_beyond, math.inf), 4.0 * UNIT * float(np.max(np.abs(log_p)) + 1.0))


def log_ratio(beta: Fraction, q: Fraction, x: int) -> float:
    """`log Pr[x+1]/Pr[x]` for one `x >= 0`."""
    b, k, a = float(beta), float((1 - q) ** 2 / q), -log_of(q)
    top = x + 1 + _steps(b, a, x + 1)
    y = _guess(b, a, top)
    for place in range(top, x, -1):
        above = k * place + (place + 1.0 - b) * y
        y = above / (place - 1.0 + b + above)
    return math.log1p(-y)


def _log_ratios(beta: float, k: float, a: float, reach: int) -> Floats:
    """`log Pr[x+1]/Pr[x]` for `x = 0..reach`.

    Many stretches go down side by side if that is faster: a step of all of them costs as much as 50 by themselves.
    """
    before = _steps(beta, a, reach + 1)
    length = max(math.isqrt(reach), before // 4, 64)
    stretches = -(-(reach + 1) // length)
    if (length + before) * (50.0 + stretches / 20.0) > reach + before:
        return _one_by_one(beta, k, a, reach, before)
    tops = length * np.arange(1, stretches + 1)
    before = max(before, *(_steps(beta, a, int(top)) for top in tops[:: max(1, stretches // 64)]))
    x = tops + float(before)
    y = np.array([_guess(beta, a, int(top)) for top in x])
    found = np.empty((length, stretches))
    for step in range(length + before):
        above = k * x + (x + 1.0 - beta) * y
        whole = x - 1.0 + beta + above
        y = above / whole
        if step >= before:
            near, far = np.log1p(-np.minimum(y, 0.5)), np.log((x - 1.0 + beta) / whole)
            found[length - 1 - step + before] = np.where(y < 0.5, near, far)
        x -= 1.0
    return np.asarray(found.T.ravel()[: reach + 1])


def _one_by_one(beta: float, k: float, a: float, reach: int, before: int) -> Floats:
    top = reach + 1 + before
    y = _guess(beta, a, top)
    found = [0.0] * (reach + 1)
    for x in range(top, 0, -1):
        above = k * x + (x + 1.0 - beta) * y
        whole = x - 1.0 + beta + above
        y = above / whole
        if x - 1 <= reach:
            found[x - 1] = math.log1p(-y) if y < 0.5 else math.log((x - 1.0 + beta) / whole)
    return np.array(found)


def _steps(beta: float, a: float, top: int) -> int:
    """How many steps above `top` make a guess good: each shrinks its error by this factor, or more further up."""
    start = _guess(beta, a, top)
    shrink = abs(top + 1.0 - beta) / (top - 1.0 + beta) * (1.0 - start) ** 2
    return min(10**6, 8 + math.ceil(42.0 / max(1e-9, -math.log(max(shrink, 1e-30)))))


def _guess(beta: float, a: float, x: int) -> float:
    """The ratio at the saddle point."""
    heavy = max(beta, 1.0)
    upper = x * math.cosh(a) + math.sqrt((x * math.sinh(a)) ** 2 + heavy * heavy) if a < 300 else 2.0 * x * math.cosh(a)
    return -math.expm1(-min(a, math.log(upper / (x + heavy))))


def log_of(q: Fraction) -> float:
    """`log q`, accurately also near one."""
    return math.log1p(float(q - 1)) if q > Fraction(1, 2) else math.log(q.numerator / q.denominator)
