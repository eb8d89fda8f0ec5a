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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from scipy.fft import irfft, next_fast_len, rfft

from optdp.errors import ProblemError
from optdp.numbers.divergence import Floats, Moved, Pair
from optdp.numbers.exact import ball, precision, upper_fraction
from optdp.numbers.noise_law import UNIT, NoiseLaw, noise_law, proved_law
from optdp.numbers.ordered import dot, slide
from optdp.numbers.sgdl import SGDL

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

    At most `changed` people differ. Without a padding (`c = None`) nobody clamps, and the law is that of the noise: a
    curator's, or a limit.
    """

    def __init__(self, shares: Shares, c: int | None, furthest: int, delta: float, changed: int | None = None) -> None:
        self.shares, self.changed = shares, min(shares.n, furthest if changed is None else changed)
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
        self.lost += self.changed * t + 0.5 * n * n * t * t + 8.0 * UNIT  # the last for round-off below
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
