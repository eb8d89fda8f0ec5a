"""Cuts: a finite law as increasing marks in the unit interval, written in whole words of 62 bits.

A draw from a law with the cumulative probabilities `c_1 <= c_2 <= ..` is the number of cuts that lie at or below a
uniform `U`. Both are compared word by word, as numbers in base 2^62: the first word nearly always decides. Words have
62 bits because that many fit into the signed integers of every database and, in two halves, of every browser.

Geometric noise `Pr[e] = (1-q)/(1+q) q^|e|` needs no long table and no loop of trials, because it falls into
independent parts:

    e = G with probability 1/(1+q), otherwise e = -1-G           Pr[G] = (1-q) q^G
    G = d_0 + base d_1 + base^2 d_2 + ..                         the digits of G are independent:
    Pr[d_i >= k] = (Q^k - Q^base) / (1 - Q^base)                 with Q = q^(base^i), for all but the last digit
    Pr[d_top >= k] = Q^k                                         for the last, which has no end

The last digit is cut off where `Q^k < 2^-62`; a draw beyond starts that digit again from there (the law has no memory).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from flint import arb

from optdp.errors import ProblemError
from optdp.math.exact import ball, ceil_scaled, floor_scaled, precision

WORD = 62
"""Bits of a random word."""
LIMBS = 4
"""Words that are kept of a cut of the noise, whose digits have no end."""
LONGEST = 2048
"""Cuts of one digit of the noise, at most; beyond that there is one digit more."""
END = 1 << WORD
"""A mark that no word reaches."""

Place = tuple[int, ...]
"""A number of the unit interval in base 2^62, the first word first."""


@dataclass(frozen=True)
class Cuts:
    """Increasing cuts, each of the same number of words."""

    places: tuple[Place, ...]
    finer: Callable[[int, int], int] | None = None
    """`finer(k, words)` is the k-th cut in so many words as one integer, if its digits go on; None if they do not."""

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The first word of each cut."""
        return tuple(place[0] for place in self.places)

    @cached_property
    def marks(self) -> Any:
        """The first words as a numpy array."""
        import numpy as np

        return np.array(self.first, dtype=np.uint64)

    @property
    def words(self) -> int:
        """Words of a cut."""
        return len(self.places[0])

    def index(self, word: Callable[[int], int]) -> int:
        """How many cuts lie at or below `U`, whose words are `word(0)`, `word(1)`, ..; what decides is asked for."""
        u = word(0)
        k = bisect_right(self.first, u)
        if (self.words == 1 and self.finer is None) or k == 0 or self.first[k - 1] != u:
            return k
        number = tuple(word(j) for j in range(self.words))
        k = bisect_right(self.places, number)
        if self.finer is None or k == 0 or self.places[k - 1] != number:
            return k
        return k if self._at_most(k - 1, word) else k - 1

    def _at_most(self, k: int, word: Callable[[int], int]) -> bool:
        """Whether cut `k`, whose kept words are those of `U`, lies at or below it: look at further words of both."""
        assert self.finer is not None
        words = self.words
        while True:
            words += 1
            last, cut = word(words - 1), self.finer(k, words) % END
            if last != cut:
                return cut < last


def of_row(weights: Sequence[int], denominator: int) -> Cuts:
    """The cuts of a table row, whose weights sum to `denominator`, a power of two; the last is the end of all."""
    bits = denominator.bit_length() - 1
    words = max(1, -(-bits // WORD))
    up = words * WORD - bits
    return Cuts(tuple(_place(end << up, words) for end in accumulate(weights)))


@dataclass(frozen=True)
class NoiseCuts:
    """Geometric noise as one sign and the digits of `G`."""

    q: Fraction
    sign: Cuts
    """One cut: below it `e = G`, above it `e = -1-G`."""
    digits: tuple[Cuts, ...]
    base: int

    @property
    def reach(self) -> int:
        """`G` is smaller than this but for a chance below 2^-62."""
        return int(len(self.digits[-1].places) * self.base ** (len(self.digits) - 1))

    @cached_property
    def blur(self) -> Fraction:
        """How far a probability moves, relatively, if draws that the kept words leave open are not made at all.

        Each such draw lies in one of the cells of width 2^-248 at a cut. A cell between two cuts has lost at most two
        of them, and the sum of all has lost one for each cut.
        """
        worst = Fraction(0)
        for cuts in (self.sign, *self.digits):
            ends = [0, *(_number(place) for place in cuts.places), 1 << (WORD * LIMBS)]
            least = min(b - a for a, b in pairwise(ends))
            worst += Fraction(2, least - 1) + Fraction(len(cuts.places) + 1, 1 << (WORD * LIMBS))
        return worst


def of_noise(q: Fraction) -> NoiseCuts:
    """The cuts of geometric noise."""
    reach = _power_below(q, 1)
    count = 1
    while reach > LONGEST**count:
        count += 1
    if reach >= 1 << 60:
        raise ProblemError(f"The q of geometric noise must leave 1-q at least 2^-54. Found 1-q = {float(1 - q):.3g}.")
    base = 1 if count == 1 else 1 << math.ceil(math.log2(reach) / count)
    digits = [_digit(q, base**i, base) for i in range(count - 1)]
    top = base ** (count - 1)
    digits.append(_digit(q, top, None, _power_below(q, top)))
    share = Fraction(q.denominator, q.denominator + q.numerator)
    sign = _cuts(1, lambda k, bits: (share.numerator << bits) // share.denominator)
    return NoiseCuts(q, sign, tuple(digits), base)


def _power_below(q: Fraction, step: int) -> int:
    """The smallest `k` with `q^(step k) < 2^-62`."""
    with precision(192):
        logarithm = -ball(q).log() / arb(2).log() * step
        k = max(1, ceil_scaled(WORD / logarithm, 0) - 2)
        while not logarithm * k > WORD:
            k += 1
        return k


def _digit(q: Fraction, step: int, base: int | None, end: int = 0) -> Cuts:
    """`Pr[digit < k] = (1 - Q^k) / (1 - Q^base)` with `Q = q^step`, or `1 - Q^k` without a base, for `k = 1, 2, ..`."""

    def cut(k: int, bits: int) -> int:
        power, whole = step * (k + 1), None if base is None else step * base
        for guard in (128, 1024, 8192):
            with precision(bits + guard):
                ratio = ball(q)
                value = 1 - ratio**power
                if whole is not None:
                    value /= 1 - ratio**whole
                low, high = floor_scaled(value, bits), ceil_scaled(value, bits)
            if high == low + 1:
                return low
        exact = 1 - q**power if whole is None else (1 - q**power) / (1 - q**whole)  # a dyadic number, so of few digits
        return (exact.numerator << bits) // exact.denominator

    return _cuts(end if base is None else base - 1, cut)


def _cuts(count: int, cut: Callable[[int, int], int]) -> Cuts:
    def finer(k: int, words: int) -> int:
        return cut(k, words * WORD)

    return Cuts(tuple(_place(finer(k, LIMBS), LIMBS) for k in range(count)), finer)


def _place(number: int, words: int) -> Place:
    if number >> (WORD * words):
        return (END, *(0,) * (words - 1))
    return tuple(_split(number, words))


def _split(number: int, words: int) -> Iterator[int]:
    for j in reversed(range(words)):
        yield (number >> (WORD * j)) % END


def _number(place: Place) -> int:
    value = 0
    for word in place:
        value = value << WORD | word
    return value
