"""What one person's device does: whole numbers in, random words in, one message out, by integers alone.

A word has 62 bits. Two of them are a number `u` of 124 bits, and `below(m) = floor(u m / 2^124)` is a number of
`0..m-1` that has at least `floor(2^124 / m)` of the `2^124` cases. Every message takes the same number of words.

- **Rounding.** Values are whole multiples of `1/grain` of a step: `t = grain j + r` becomes `j + 1` if
  `below(grain) < r`, and `j` otherwise.
- **Response** (B, Algorithms 1 and 2): if a word is less than `blank` the message is `below(values)`, otherwise the
  true one.
- **Flips** (D, RR-Shuffle): bit `i` is one if `i < x`, flipped if its word is less than `flip`; the message is the
  number of ones.
- **Padded** (D, Geo-Shuffle and its kin): `clamp(c + x + N, 0, largest + 2c)`. `N` is drawn by `u` from the weights of
  `0, 1, -1, 2, -2, ..`, which sum to `2^124`.

**What rounding to integers costs.** Let every person's deployed law be at least `1 - eta` times the ideal one, for
every value and every message: `R'(x, y) >= (1-eta) R(x, y)`. Then `R' = (1-eta) R + eta V`: with probability `1 - eta`
a person does as the ideal says. So for any function of all `n` messages, and with `P, Q` the ideal laws of two data
sets and `P', Q'` the deployed ones, `P' <= (1-eta)^n P + 1 - (1-eta)^n` on every event, and `Q' >= (1-eta)^n Q`. If `P
<= e^L Q + delta` on every event, then `P' <= e^L Q' + delta + n eta`. Nothing is added to `L`, and `n eta` to delta.
`lacking` is such an `eta`, proved from the integers of the file.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.numbers.exact import lower_fraction, precision
from optdp.numbers.sgdl import SGDL
from optdp.shuffle.metric.released import log_of
from optdp.work.account import spend

Words = NDArray[np.uint64]
Whole = NDArray[np.int64]

WORD, FINE = 62, 124
ALL = 1 << FINE
"""How many numbers two words make; the weights of a law sum to this."""
GRID = 1 << 22
"""Probabilities of one word are multiples of so much of 2^62, which floats hold exactly."""
LIMB = 31  # two words are multiplied by four limbs of so many bits
FINE_GRAIN = 1 << 32
"""Real numbers are read as multiples of so small a part of a step."""
WIDEST = 1 << 17
"""How far the noise may reach with more than a chance of 2^-124."""
BITS = 320  # of the balls that enclose the ideal law


def below(m: int, high: Words, low: Words) -> Words:
    """`floor(u m / 2^124)` for `u = high 2^62 + low`, by limbs of 31 bits; `m` is at most 2^32."""
    mask, shift, factor = np.uint64((1 << LIMB) - 1), np.uint64(LIMB), np.uint64(m)
    carry: Words = np.zeros(len(high), np.uint64)
    for limb in (low & mask, low >> shift, high & mask, high >> shift):
        carry = (limb * factor + carry) >> shift
    return carry


@dataclass(frozen=True)
class Rounding:
    """Values `0..largest` in steps of `1/grain`."""

    largest: int
    """The largest value, in steps; the largest input is `grain` times that."""
    grain: int

    @property
    def words(self) -> int:
        return 2 if self.grain > 1 else 0

    def rounded(self, values: Whole, words: Words) -> Whole:
        """Whole steps."""
        if self.grain == 1:
            return values
        up = below(self.grain, words[:, 0], words[:, 1]) < (values % self.grain).astype(np.uint64)
        found: Whole = values // self.grain + up
        return found


@dataclass(frozen=True)
class Response:
    """Randomized response on `values` values, `0..values-1`."""

    values: int
    blank: int
    """The probability of a uniform answer, times 2^62."""
    grain: int = 1
    law: ClassVar[str] = "response"
    dimensions: ClassVar[int] = 1

    @property
    def rounding(self) -> Rounding:
        return Rounding(self.values - 1, self.grain)

    @property
    def gamma(self) -> Fraction:
        return Fraction(self.blank, 1 << WORD)

    @property
    def inputs(self) -> int:
        """The largest input."""
        return (self.values - 1) * self.grain

    @property
    def largest(self) -> int:
        """The largest message."""
        return self.values - 1

    @property
    def words(self) -> int:
        """How many words a message takes."""
        return self.rounding.words + 3

    def messages(self, values: Whole, words: Words) -> Whole:
        """Everybody's message; a row of words for each."""
        first = self.rounding.words
        true = self.rounding.rounded(values, words)
        uniform = below(self.values, words[:, first + 1], words[:, first + 2]).astype(np.int64)
        return np.where(words[:, first] < np.uint64(self.blank), uniform, true)

    def chance(self, x: int, y: int) -> Fraction:
        """`Pr[y | x]` of whole `x`, exactly."""
        cases = -(-((y + 1) << FINE) // self.values) + (-(y << FINE) // self.values)  # u with floor(u m / 2^124) = y
        return self.gamma * Fraction(cases, ALL) + (1 - self.gamma) * (x == y)

    @property
    def lacking(self) -> Fraction:
        """The least likely uniform answer has `floor(2^124/m)` cases, and so does every law at least in proportion."""
        return 1 - Fraction(self.values * (ALL // self.values), ALL)

    @property
    def local_ratio(self) -> Fraction:
        """How many times likelier a message is for one value than for another, at most; exactly."""
        least = self.gamma * Fraction(ALL // self.values, ALL)
        return 1 + (1 - self.gamma) / least

    def fields(self) -> dict[str, Any]:
        return {"law": self.law, "values": self.values, "blank": str(self.blank), "grain": self.grain}


@dataclass(frozen=True)
class Flips:
    """`bits` bits, each flipped with the same probability; `dimensions` numbers of ones."""

    bits: int
    flip: int
    """The probability, times 2^62."""
    dimensions: int
    law: ClassVar[str] = "flips"
    grain: ClassVar[int] = 1
    lacking: ClassVar[Fraction] = Fraction(0)

    @property
    def inputs(self) -> int:
        return self.bits

    @property
    def largest(self) -> int:
        return self.bits

    @property
    def words(self) -> int:
        return self.bits

    @property
    def chance(self) -> Fraction:
        """Of a flip."""
        return Fraction(self.flip, 1 << WORD)

    def messages(self, values: Whole, words: Words) -> Whole:
        ones = np.arange(self.bits) < values[:, None]
        return np.asarray((ones ^ (words < np.uint64(self.flip))).sum(axis=1, dtype=np.int64))

    def fields(self) -> dict[str, Any]:
        return {"law": self.law, "bits": self.bits, "flip": str(self.flip), "dimensions": self.dimensions}


@dataclass(frozen=True)
class Padded:
    """Noise close to `SGDL(beta, q)`, padded and clamped."""

    mechanism: str
    k: int
    grain: int
    padding: int
    dimensions: int
    beta: Fraction
    q: Fraction
    weights: tuple[int, ...]
    """Of the noise 0, 1, 2, ..; -x has the weight of x. Past the last of them all weights are 1, up to `reach`."""
    law: ClassVar[str] = "padded"

    @classmethod
    def of(
        cls, mechanism: str, k: int, grain: int, padding: int, dimensions: int, beta: Fraction, q: Fraction
    ) -> Padded:
        """The deployed law: every weight off the middle rounded up, and what is left over in the middle."""
        blank = cls(mechanism, k, grain, padding, dimensions, beta, q, ())
        with precision(BITS):
            ideal = blank._ideal(min(blank.reach, _width(q)))
            above = [_ceiling(value) for value in ideal[1:]]
        while above and above[-1] == 1:
            above.pop()
        rest = blank.reach - len(above)
        middle = ALL - 2 * (sum(above) + rest)
        if middle <= 0:
            raise ProblemError(
                f"The noise must leave most messages near the value. Found it over {blank.reach:,} steps."
            )
        return cls(mechanism, k, grain, padding, dimensions, beta, q, (middle, *above))

    @property
    def steps(self) -> int:
        """The largest value, in steps."""
        return -(-self.k // self.grain)

    @property
    def rounding(self) -> Rounding:
        return Rounding(self.steps, self.grain)

    @property
    def reach(self) -> int:
        """Noise of this size or more is all the same: every message is clamped."""
        return self.steps + self.padding

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def largest(self) -> int:
        return self.steps + 2 * self.padding

    @property
    def words(self) -> int:
        return self.rounding.words + 2

    def weight(self, x: int) -> int:
        size = abs(x)
        return 0 if size > self.reach else self.weights[size] if size < len(self.weights) else 1

    @cached_property
    def cuts(self) -> list[int]:
        """The sums of the weights of 0, 1, -1, 2, -2, ..."""
        each = [self.weight(x) for x in range(1, self.reach + 1)]
        return list(accumulate((half for weight in each for half in (weight, weight)), initial=self.weights[0]))

    @cached_property
    def _first(self) -> Words:
        return np.array([cut >> WORD for cut in self.cuts], np.uint64)

    def noise(self, high: Words, low: Words) -> Whole:
        """How many cuts are at most `u`; the first word decides, unless a cut begins with it."""
        place = np.searchsorted(self._first, high, side="left")
        tied = np.flatnonzero(self._first[np.minimum(place, len(self._first) - 1)] == high)
        found = place.astype(np.int64)
        for i in tied:
            found[i] = bisect_right(self.cuts, int(high[i]) << WORD | int(low[i]))
        return np.where(found % 2 == 1, (found + 1) // 2, -(found // 2))

    def messages(self, values: Whole, words: Words) -> Whole:
        first = self.rounding.words
        noise = self.noise(words[:, first], words[:, first + 1])
        padded = self.rounding.rounded(values, words) + noise + self.padding
        return np.asarray(np.clip(padded, 0, self.largest))

    @cached_property
    def lacking(self) -> Fraction:
        """Of one message, with all its coordinates and their rounding.

        The ideal law, clamped to `-reach..reach`, falls on both sides for `beta <= 1`: where a weight of 1 is enough,
        it is enough further out.
        """
        with precision(BITS):
            worst = arb(1)
            count = len(self.weights)
            for x, value in enumerate(self._ideal(min(self.reach, count))):
                worst = worst.min(arb(fmpz(self.weight(x))) / (value * ALL))
            if count < self.reach:
                worst = worst.min(1 / (self._clamped() * ALL))
            noise = max(Fraction(0), 1 - lower_fraction(worst, 2 * FINE))
        rounding = Fraction(self.grain, ALL) if self.grain > 1 else Fraction(0)
        return self.dimensions * (noise + rounding)

    def _ideal(self, last: int) -> list[arb]:
        """Enclosures of the ideal law at `0..last`, that of `reach` with all that lies beyond."""
        spend(40.0 * last, "the law of the noise")
        values = SGDL(self.beta, self.q).balls(0, last)
        return values if last < self.reach else [*values[:-1], self._clamped()]

    def _clamped(self) -> arb:
        return SGDL(self.beta, self.q).cdf_ball(-self.reach)

    def fields(self) -> dict[str, Any]:
        return {
            "law": self.law, "mechanism": self.mechanism, "k": self.k, "grain": self.grain, "padding": self.padding,
            "dimensions": self.dimensions, "beta": str(self.beta), "q": str(self.q),
            "weights": list(map(str, self.weights)),
        }  # fmt: skip


Client = Response | Flips | Padded


def described(client: Client) -> Mapping[str, Any]:
    """What a person may want to know of it, without the weights."""
    return {name: value for name, value in client.fields().items() if name != "weights"}


def _ceiling(value: arb) -> int:
    whole = (value * ALL).upper().ceil().unique_fmpz()
    if whole is None:
        raise ArithmeticError("The law of the noise could not be enclosed.")
    return max(1, int(whole))


def _width(q: Fraction) -> int:
    """From where on a weight of 1 is enough, also for all that lies beyond."""
    least = float(1 - q)
    width = math.ceil((FINE * math.log(2.0) - math.log(least)) / -log_of(q)) + 2
    if width > WIDEST:
        raise ProblemError(
            f"Deployed noise must reach no further than {WIDEST:,} steps. Found {width:,}. Count in larger units."
        )
    return width
