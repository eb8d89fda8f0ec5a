"""What a shuffle leaves to a set of records: `(eta, delta)`-preservation (E, section 5.10).

A set `S` of `s` of the `n` records is preserved if, with probability at least `1-delta`, at least `eta s` of the values
placed at its positions come from `S`. Let `Y` be the number of values that leave `S`, and `t = n - s`.

Hamming, exactly. With `z = (1-q)/q` everything factors (docs/mathematics.md, "What a set keeps"):

    Pr[Y = j] ~ b_s(j) b_t(j),    b_s(j) = sum over i of z^i / i! C(s-i, j) = [x^s] e^(zx) x^j / (1-x)^(j+1).

Differentiating the series gives `(j+2) b(j+2) = (s-j) b(j) + (s-2j-2-z) b(j+1)`: read upwards as long as the last
coefficient is positive, and downwards from there on, nothing cancels. The likelihood ratio of `Y` for two values of `z`
is monotone: a larger `theta` never preserves less, and bisection finds the smallest that is enough.

Kendall, by simulation. Of `R` independent shuffles let `X_(1) <= .. <= X_(R)` be how many values stayed in `S`. The
largest `r` with `Pr[Bin(R, delta) <= r-1] <= 1 - confidence` makes `X_(r)` a lower bound, whatever the law (Clopper and
Pearson).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from flint import arb
from scipy import stats

from optdp.errors import ProblemError
from optdp.numbers.exact import (
    Number,
    ball,
    check_whole,
    geometric_ratio,
    precision,
    shown,
    to_fraction,
    upper_fraction,
)
from optdp.numbers.source import Source
from optdp.order.mechanism import Whole
from optdp.order.sampling import Window, checked_ratio, kendall_word

EXACT = 60
"""Up to so many records probabilities are rationals, beyond they are rounded up from balls."""
BITS, SMALLEST = 192, Fraction("1e-300")
STEPS, FINEST, COARSEST = 16, -30, 6
"""Kendall's theta is sought among `2^(e/STEPS)` from `2^FINEST` to `2^COARSEST = 64`, with which anything moves with
probability `n e^-64 / (1 - e^-64)` at most: less than any delta that a simulation can speak of."""


# ------------------------------------------------------------------------------------------------- Hamming
def hamming_preservation(n: int, size: int, q: Number, delta: Number) -> Fraction:
    """The largest `eta` with which any `size` records are `(eta, delta)`-preserved, proved."""
    law = Leaving(n, size, checked_ratio(n, q))
    return Fraction(size - law.most(_risk(delta)), size)


def hamming_failure(n: int, size: int, q: Number, eta: Number) -> Fraction:
    """The smallest `delta` for an `eta`: exactly up to 60 records, else at least that and equal to 30 digits."""
    law = Leaving(n, size, checked_ratio(n, q))
    return law.beyond(size - _wanted(eta, size))


def hamming_theta(n: int, size: int, eta: Number, delta: Number, digits: int = 6) -> float:
    """The smallest `theta` that preserves any `size` records: enough, and by bisection to so many digits."""
    checked_ratio(n, 1)
    check_whole(size, "size", 1, n)
    check_whole(digits, "digits", 1, 12)
    risk, gone = _risk(delta), size - _wanted(eta, size)

    def enough(theta: float) -> bool:
        return Leaving(n, size, geometric_ratio(Fraction(theta))).beyond(gone) <= risk

    if enough(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 10**-digits * high:
        half = (low + high) / 2
        low, high = (low, half) if enough(half) else (half, high)
    return high


class Leaving:
    """The law of `Y`, the number of values that leave a set of `size` records, for the Hamming distance."""

    def __init__(self, n: int, size: int, q: Fraction) -> None:
        check_whole(size, "size", 1, n)
        self.top = min(size, n - size) if q else 0
        self.tails: list[arb | Fraction] = []
        """`Pr[Y > c]` for `c` from 0 on, as long as it is positive."""
        z = (1 - q) / q if q else Fraction(0)
        if n <= EXACT:
            whole = [_exact(size, j, z) * _exact(n - size, j, z) for j in range(self.top + 1)]
            sums = list(accumulate(reversed(whole)))
            self.tails += [Fraction(tail, sums[-1]) for tail in sums[-2::-1]]
        elif self.top:
            with precision(BITS):
                pairs = zip(coefficients(size, self.top, z), coefficients(n - size, self.top, z), strict=True)
                parts = list(accumulate(a * b for a, b in reversed(list(pairs))))
                self.tails += [part / parts[-1] for part in parts[-2::-1]]

    def beyond(self, most: int) -> Fraction:
        """`Pr[Y > most]`, rounded up if it is not exact."""
        value = self.tails[most] if most < self.top else Fraction(0)
        if isinstance(value, Fraction):
            return value
        with precision(BITS):
            return min(upper_fraction(value, 1024), Fraction(1))

    def most(self, risk: Fraction) -> int:
        """The smallest `c` with `Pr[Y > c] <= risk`."""
        return bisect_left(range(self.top), True, key=lambda c: self.beyond(c) <= risk)


def _exact(size: int, j: int, z: Fraction) -> int:
    """`b(j)` times `size!` and the power `size` of the denominator of `z`."""
    up, down = z.numerator, z.denominator
    return sum(
        up**i * down ** (size - i) * math.perm(size, size - i) * math.comb(size - i, j) for i in range(size - j + 1)
    )


def coefficients(size: int, top: int, z: Fraction) -> list[arb]:
    """`b(0), .., b(top)` by the recurrence, upwards and downwards to where its coefficient changes sign."""
    found = [arb(0)] * (top + 1)
    for j in {0, min(1, top), max(top - 1, 0), top}:
        found[j] = _summed(size, j, z)
    turn = min(max((size - 2 - z) // 2, -1), top)  # the last j with a coefficient that is not negative
    last = ball(size - 2 - z)
    for j in range(min(turn + 1, top - 3)):
        found[j + 2] = ((size - j) * found[j] + (last - 2 * j) * found[j + 1]) / (j + 2)
    for j in range(top - 2, max(turn + 2, 1), -1):
        found[j] = ((j + 2) * found[j + 2] + (2 * j - last) * found[j + 1]) / (size - j)
    return found


def _summed(size: int, j: int, z: Fraction) -> arb:
    """`b(j)` as the sum of its terms `z^i / i! C(size-i, j)` around the largest: their ratios fall."""

    def ratio(i: int) -> arb:
        return ball(z) * (size - i - j) / ((i + 1) * (size - i))

    def falls(i: int) -> bool:
        return z.numerator * (size - i - j) <= z.denominator * (i + 1) * (size - i)

    mode = bisect_left(range(size - j), True, key=falls)
    rest = arb(size - mode + 1).lgamma() - arb(size - mode - j + 1).lgamma() - arb(j + 1).lgamma()
    most: arb = ball(z) ** mode * (rest - arb(mode + 1).lgamma()).exp()
    return most * Window(ratio, mode, size - j, BITS).total


# ------------------------------------------------------------------------------------------------- Kendall
@dataclass(frozen=True)
class Preserved:
    """What `runs` shuffles say of `eta`: the share that all but `delta` of them kept, and a lower bound."""

    eta: Fraction
    lower: Fraction
    """With probability `confidence`, over the simulation, the set is `(lower, delta)`-preserved."""
    delta: Fraction
    confidence: Fraction
    runs: int


def kendall_preservation(
    positions: Sequence[int] | Whole,
    n: int,
    q: Number,
    delta: Number,
    runs: int = 1000,
    source: Source | None = None,
    confidence: Number = "0.99",
) -> Preserved:
    """How well the records at `positions` of the order are preserved; by default with secure bits."""
    risk, trust = _risk(delta), _risk(confidence, "confidence")
    kept, size = kendall_kept(positions, n, q, runs, source)
    place = _place(runs, risk, 1 - trust)
    worst = max(0, 2 * size - n)  # whatever the shuffle
    lower = max(worst, int(kept[place - 1])) if place else worst
    return Preserved(Fraction(int(kept[int(risk * runs)]), size), Fraction(lower, size), risk, trust, runs)


def kendall_failure(
    positions: Sequence[int] | Whole,
    n: int,
    q: Number,
    eta: Number,
    runs: int = 1000,
    source: Source | None = None,
    confidence: Number = "0.99",
) -> tuple[float, float]:
    """The share of shuffles that keep less than `eta` of the set, and Clopper and Pearson's upper bound of `delta`."""
    trust = _risk(confidence, "confidence")
    kept, size = kendall_kept(positions, n, q, runs, source)
    failed = int((kept < _wanted(eta, size)).sum())
    return failed / runs, float(stats.beta.ppf(float(trust), failed + 1, runs - failed)) if failed < runs else 1.0


def kendall_theta(
    positions: Sequence[int] | Whole,
    n: int,
    eta: Number,
    delta: Number,
    runs: int = 1000,
    source: Source | None = None,
    confidence: Number = "0.99",
) -> float:
    """A smallest `theta` of which the simulation shows, with that confidence, that it preserves the set.

    Bisection over powers of `2^(1/16)`; the confidence is shared out over all steps, hence it holds for the last one.
    """
    risk, trust = _risk(delta), _risk(confidence, "confidence")
    wanted = _wanted(eta, len(_positions(positions, n)))
    check_whole(runs, "runs", 1, 10**9)
    powers = range(STEPS * FINEST, STEPS * COARSEST + 1)
    doubt = (1 - trust) / (len(powers).bit_length() + 1)
    place = _place(runs, risk, doubt)
    if not place:
        least = math.ceil(math.log(doubt) / math.log1p(-float(risk)))
        raise ProblemError(f"runs must be at least {least:,} for this delta and confidence. Found {runs:,}.")

    def enough(theta: float) -> bool:
        kept, size = kendall_kept(positions, n, geometric_ratio(Fraction(theta)), runs, source)
        return max(2 * size - n, int(kept[place - 1])) >= wanted

    if enough(0.0):
        return 0.0
    found = bisect_left(powers[:-1], True, key=lambda power: enough(2 ** (power / STEPS)))
    return float(2 ** (powers[found] / STEPS))


def kendall_kept(
    positions: Sequence[int] | Whole, n: int, q: Number, runs: int, source: Source | None
) -> tuple[Whole, int]:
    """For each of `runs` shuffles how many values at `positions` come from there, sorted; and how many positions."""
    share, chosen = checked_ratio(n, q), _positions(positions, n)
    check_whole(runs, "runs", 1, 10**9)
    bits = source or Source()
    inside = np.zeros(n, np.bool_)
    inside[chosen] = True
    kept = np.array([inside[kendall_word(bits, n, share)[chosen]].sum() for _ in range(runs)], np.int64)
    return np.sort(kept), len(chosen)


def _place(runs: int, risk: Fraction, doubt: Fraction) -> int:
    """The largest `r` with `Pr[Bin(runs, risk) <= r-1] <= doubt`; 0 if there is none."""
    return bisect_left(range(runs), True, key=lambda r: bool(stats.binom.cdf(r, runs, float(risk)) > float(doubt)))


# ------------------------------------------------------------------------------------------------- what is asked
def _wanted(eta: Number, size: int) -> int:
    """How many of `size` values an `eta` asks for."""
    share = _decimal(eta, "eta")
    if not 0 <= share <= 1:
        raise ProblemError(f"eta must lie between 0 and 1. Found {shown(eta)}. Write a share of the set.")
    return math.ceil(share * size)


def _risk(value: Number, name: str = "delta") -> Fraction:
    share = _decimal(value, name)
    if not SMALLEST <= share < 1:
        raise ProblemError(f"{name} must be from 1e-300 to below 1. Found {shown(value)}. Write a probability.")
    return share


def _decimal(value: Number, name: str) -> Fraction:
    """A float is the decimal that it prints as: of ten records, `0.9` asks for nine."""
    return to_fraction(repr(value) if isinstance(value, float) and math.isfinite(value) else value, name)


def _positions(positions: object, n: int) -> Whole:
    chosen = np.array(positions)
    if chosen.ndim != 1 or not chosen.size or chosen.dtype.kind not in "iu":
        raise ProblemError(f"positions must be a list of whole numbers. Found {shown(positions)}. Name one or more.")
    wrong = chosen[(chosen < 0) | (chosen >= n)]
    if len(wrong):
        raise ProblemError(f"positions must be from 0 to {n - 1:,}. Found {wrong[0]}.")
    if len(np.unique(chosen)) < len(chosen):
        raise ProblemError(f"positions must name each place once. Found {len(chosen)} with one that is repeated.")
    return chosen.astype(np.int64)
