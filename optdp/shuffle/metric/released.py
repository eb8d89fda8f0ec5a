"""What the sum of padded shares gives away, proved point by point (D, sections 4 and 5, with the truncation exact).

Each of `n` people adds noise `N_i` of law `SGDL(beta, q)`, shifts by the padding `c` and clamps to `0..k+2c`; the
shuffled unary messages say the same as their sum. Let `t = Pr[|N_i| > c]`. Tell the reader who exceeded `c`, and what
they sent: more than is released. Data sets at distance `d` differ in at most `m = min(d, n)` people.

- If somebody of these exceeded (at most `m t`), nothing is claimed.
- Otherwise nobody who differs was clamped, and the others' sum, given that they did not exceed, is hidden by
  `g_v(s) = Pr[N_1 + .. + N_v = s, no |N_i| > c]` of those who did not: `v = n` of them, or `v = n - 1` with one
  exceeder (at most `n t`), or fewer (at most `n^2 t^2 / 2`, given up).

(Sums that do not move at all, as when one goes up and another down, are told apart by `m t` at most, which is part of
what every pair gives up.) So the truncation costs `m t` and little more, not the `n t` of D's Proposition 3; but `g`,
not the untruncated law `f`, is what hides. Bonferroni's inequalities bracket it, with convolutions of positive terms
that keep relative accuracy:

    f_v - r1 <= g_v <= f_v - r1 + r2,    r1(s) = v sum over |j| > c of f_1(j) f_{v-1}(s-j),    r2 likewise for two.

(Conditioning on "nobody exceeded" and then using the untruncated law, as D does for SGDL-Shuffle, is not valid: given
that nobody exceeded, ratios are no longer bounded by e^epsilon. At c as small as D's delta allows the difference is
small at distance 1 and ruins the claim at large distances.)

**The noise**, `SGDL(beta, q)`, is an array of logarithms: by floats, quickly, for searches; by balls, for claims.
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

import numpy as np
from flint import arb
from scipy.fft import irfft, next_fast_len, rfft

from optdp.errors import ProblemError
from optdp.numbers.divergence import Floats, Moved, Pair
from optdp.numbers.exact import ball, precision, upper_fraction
from optdp.numbers.ordered import dot, slide
from optdp.numbers.sgdl import SGDL

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


DEEP = -600.0  # logarithms of probabilities below this count as zero where that is safe
DIRECT = 3e7
"""Products of a convolution that is done term by term; a larger one is done by FFT, with its absolute error added."""
WIDEST = 1_500_000  # how far the noise may reach that is looked at point by point
NEGLIGIBLE = 1e-7  # the part of delta that may be spent on what lies outside of the window


@dataclass(frozen=True)
class Shares:
    """The noise of `n` people, `SGDL(beta, q)` each."""

    n: int
    beta: Fraction
    q: Fraction
    proved: bool = False  # whether its laws are enclosed in balls, as a claim needs; a search does without

    @property
    def total(self) -> Fraction:
        return self.n * self.beta

    @property
    def deviation(self) -> float:
        """The standard deviation of all noise together."""
        return math.sqrt(2.0 * float(self.total) * float(self.q)) / float(1 - self.q)

    def law(self, people: int, reach: int) -> NoiseLaw:
        return (proved_law if self.proved else noise_law)(people * self.beta, self.q, reach)

    @cached_property
    def own(self) -> SGDL:
        return SGDL(self.beta, self.q)

    def exceeding(self, c: int) -> Fraction:
        """Not below the probability that anybody's noise exceeds `c`."""
        with precision():
            return upper_fraction(self._exceeding(c))

    def _exceeding(self, c: int) -> arb:
        tail = 2 * self.own.cdf_ball(-1 - c)
        return -(self.n * (-tail).log1p()).expm1()

    def padding(self, share: Fraction) -> int:
        """The smallest `c` with `Pr[anybody's |N_i| > c] <= share`, decided by balls."""
        reach = 64
        level = math.log(-math.expm1(math.log1p(-float(share)) / self.n) / 2.0)
        while (law := self.law(1, reach)).log_tails[-1] > level:
            reach *= 2
        c = int(np.argmax(law.log_tails <= level + 1e-6))
        while not self._keeps(c, share):
            c += 1
        while c > 0 and self._keeps(c - 1, share):
            c -= 1
        return c

    def _keeps(self, c: int, share: Fraction) -> bool:
        for bits in (64, 256, 1024):
            with precision(bits):
                gap = self._exceeding(c) - ball(share)
                if gap > 0 or gap <= 0:
                    return bool(gap <= 0)
        return False


class Released:
    """The sum of `n` padded shares: pairs that dominate its laws on data sets whose sums are up to `furthest` apart.

    At most `changed` people differ. Where these may be more than the `n` who surely add noise, all who differ do, and
    what `n` of them hide is a bound (`optdp.shuffle.honest`). Without a padding (`c = None`) nobody clamps, and the law
    is that of the noise: a curator's, or a limit.
    """

    def __init__(self, shares: Shares, c: int | None, furthest: int, delta: float, changed: int | None = None) -> None:
        self.shares, self.changed = shares, min(shares.n, furthest) if changed is None else changed
        self.full, self.window = _window(shares, math.log(delta * NEGLIGIBLE), furthest)
        reach, self.furthest = self.full.reach, furthest
        self.lost = 2.0 * math.exp(float(self.full.log_tails[self.window]))
        self.high = self.full.log_p + self.full.error
        self.low = self.full.log_p - self.full.error
        self.apart: tuple[Floats, Floats] | None = None
        if c is not None:
            self._truncate(c, reach)

    def pair(self, distance: int) -> Pair:
        """What dominates two data sets whose sums are `distance` apart."""
        pair = _shifted(self.high, self.low, self.window, distance, self.lost)
        if self.apart is None:
            return pair
        return pair.plus(_shifted(*self.apart, self.window, distance, 0.0))

    @cached_property
    def moved(self) -> Moved:
        """The same for every distance."""
        laws = [(self.high, self.low)] + ([] if self.apart is None else [self.apart])
        return Moved(laws, self.window, self.furthest, self.lost)

    def _truncate(self, c: int, reach: int) -> None:
        """Bracket the laws of the shares that do not exceed `c`, and count what is given up."""
        n, full = self.shares.n, self.full
        deepest = max(float(full.log_p[-1]), DEEP)
        own, top = _own(self.shares, c, deepest - float(full.log_p[0]) - math.log(1e3 * n))
        exceed = np.exp(own.log_p[c + 1 :] + own.error)
        left = math.exp(float(own.log_tails[top]))  # of one side, beyond what is convolved
        t = min(1.0, 2.0 * math.exp(float(own.log_tails[c])))
        slack = 2.0 * own.error + 16.0 * UNIT * (top + 64)
        rest = self.shares.law(n - 1, reach + top)
        surely, perhaps = _spread_by(exceed, c, rest, reach, left, slack)
        surely, perhaps = n * surely, n * perhaps
        self.lost += (
            self.changed * t + 0.5 * max(n, self.changed) ** 2 * t * t + 8.0 * UNIT
        )  # the last for round-off below
        if n > 1:
            _, inner = _spread_by(exceed, c, self.shares.law(n - 2, reach + 2 * top), reach + top, left, slack)
            surely = surely - 0.5 * n * (n - 1) * _spread_once_more(exceed, c, inner, reach, left)
            if n > self.changed and t:
                weight = math.log((n - self.changed) * t)
                others = rest.log_p[: reach + 1]
                low = _less(others - rest.error, (n - 1) * inner[: reach + 1]) + weight - slack
                self.apart = others + rest.error + weight, low
                self.lost += n * t * 2.0 * math.exp(float(rest.log_tails[self.window]))
        self.high = np.where(self.high > DEEP, _less(self.high, np.maximum(surely, 0.0)), self.high)
        self.low = _less(self.low, perhaps)


def _less(log_p: Floats, taken: Floats) -> Floats:
    """The logarithm of `p - taken`; minus infinity where nothing is left, or is too small to tell."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left = log_p + np.log1p(-np.minimum(taken * np.exp(-log_p), 1.0))
    return np.where(log_p > DEEP, left, -np.inf)


def _shifted(high: Floats, low: Floats, window: int, distance: int, lost: float) -> Pair:
    places = np.arange(-window, window + 1)
    return Pair(high[np.abs(places)], low[np.abs(places - distance)], lost)


def _window(shares: Shares, level: float, furthest: int) -> tuple[NoiseLaw, int]:
    """The law of all noise, and how far it reaches, all but `e^level` of it; the law is known `furthest` beyond."""
    scale = 1.0 / float(1 - shares.q)
    guess = 16 + math.ceil(1.1 * max(shares.deviation * math.sqrt(-2.0 * level), -level * scale / shares.n))
    if guess > WIDEST:
        raise ProblemError(
            f"The noise of all people together may reach over {WIDEST:,} units. Found {guess:,}. Count in larger "
            f"units: with {math.ceil(guess / WIDEST):,} of yours in one, divide k and max_distance by that, and "
            "multiply epsilon by it."
        )
    while (law := shares.law(shares.n, guess + furthest)).log_tails[guess] > level:
        guess += guess // 2
    window = int(np.argmax(law.log_tails <= level))
    return law.cut(window + furthest), window


def _own(shares: Shares, c: int, level: float) -> tuple[NoiseLaw, int]:
    """One person's law, as far as it must be convolved."""
    reach = c + 32
    while (law := shares.law(1, reach)).log_tails[-1] > level:
        reach = c + 2 * (reach - c)
    top = max(c + 1, int(np.argmax(law.log_tails <= level)))
    return law.cut(top), top


def _spread_by(exceed: Floats, c: int, law: NoiseLaw, reach: int, left: float, slack: float) -> tuple[Floats, Floats]:
    """Lower and upper bounds on `sum over |j| > c of f_1(j) law(s-j)` for `s = 0..reach`; `slack` is that of `f_1`."""
    values = np.exp(law.log_p)
    found, wrong = _convolved(exceed, c, values, reach)
    slack += 2.0 * law.error + 1e-9
    return np.maximum(found * (1.0 - slack) - wrong, 0.0), found * (1.0 + slack) + wrong + 2.0 * left * float(values[0])


def _spread_once_more(exceed: Floats, c: int, upper: Floats, reach: int, left: float) -> Floats:
    found, wrong = _convolved(exceed, c, upper, reach)
    return np.asarray(found * (1.0 + 1e-9) + wrong + 2.0 * left * float(np.max(upper)))


def _convolved(exceed: Floats, c: int, values: Floats, reach: int) -> tuple[Floats, float]:
    """`sum over j > c of exceed(j) (values(|s-j|) + values(|s+j|))` for `s = 0..reach`, and its absolute error."""
    top = c + len(exceed)
    whole = np.concatenate((values[reach + top : 0 : -1], values[: reach + top + 1]))  # -reach-top .. reach+top
    kernel = np.zeros(2 * top + 1)
    kernel[: top - c], kernel[top + c + 1 :] = exceed[::-1], exceed
    if len(exceed) * len(whole) <= DIRECT:
        side = slide(whole[: len(whole) - top - c - 1], exceed)  # s = -reach..reach, from the left
        return side[reach:] + side[reach::-1], 1e-300
    size = next_fast_len(len(whole) + len(kernel) - 1, real=True)
    both = irfft(rfft(whole, size) * rfft(kernel, size), size)[2 * top + reach : len(whole)]
    wrong = 64.0 * UNIT * math.log2(len(whole)) * math.sqrt(dot(whole, whole) * dot(kernel, kernel))
    return np.maximum(both, 0.0), wrong
