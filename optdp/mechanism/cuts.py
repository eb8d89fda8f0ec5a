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
A share of geometric noise has a memory: it is one long digit with another sign (`share_cuts`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from flint import arb

from optdp.errors import ProblemError
from optdp.numbers.exact import ball, ceil_scaled, floor_scaled, precision

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
    endless: bool = False
    """Whether more cuts follow in the last cell of the kept words, where the last place lies; `finer` knows them."""

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
        return self._closer(bisect_left(self.places, number), number, word)

    def _closer(self, k: int, number: Place, word: Callable[[int], int]) -> int:
        """How many cuts lie at or below `U` if cut `k` is the first with its kept words: look at further words."""
        assert self.finer is not None
        words, value = len(number), _number(number)
        while True:
            words, value = words + 1, value << WORD | word(words)
            cut = self.finer(k, words)
            while cut < value and (self.endless or k + 1 < len(self.places)):
                k += 1
                cut = self.finer(k, words)
            if cut != value:
                return k + (cut < value)


def words_of(denominator: int) -> int:
    """Words that hold every multiple of 1/`denominator`, a power of two."""
    return max(1, -(-(denominator.bit_length() - 1) // WORD))


def of_row(weights: Sequence[int], denominator: int, least: int = 1) -> Cuts:
    """The cuts of a table row, whose weights sum to `denominator`, a power of two; the last is the end of all.

    They have as many words as that takes, and at least so many.
    """
    bits, words = denominator.bit_length() - 1, max(words_of(denominator), least)
    up = words * WORD - bits
    return Cuts(tuple(place_of(end << up, words) for end in accumulate(weights)))


@dataclass(frozen=True)
class NoiseCuts:
    """Geometric noise, or a share of it, as one sign and the digits of its size `G`."""

    q: Fraction
    sign: Cuts
    """One cut: below it `e = G`, above it `e = origin - G`."""
    digits: tuple[Cuts, ...]
    base: int
    origin: int = -1
    """-1 for geometric noise; 0 for a share, whose size is `|e|`."""

    @property
    def restarts(self) -> bool:
        """Whether the last digit starts again beyond its cuts, as a law without memory may."""
        return not self.digits[-1].endless

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
    reach = power_below(q, 1)
    count = 1
    while reach > LONGEST**count:
        count += 1
    if reach >= 1 << 60:
        raise ProblemError(f"The q of geometric noise must leave 1-q at least 2^-54. Found 1-q = {float(1 - q):.3g}.")
    base = 1 if count == 1 else 1 << math.ceil(math.log2(reach) / count)
    digits = [_digit(q, base**i, base) for i in range(count - 1)]
    top = base ** (count - 1)
    digits.append(_digit(q, top, None, power_below(q, top)))
    share = Fraction(q.denominator, q.denominator + q.numerator)
    sign = first_cuts(1, lambda k, bits: (share.numerator << bits) // share.denominator)
    return NoiseCuts(q, sign, tuple(digits), base)


def power_below(q: Fraction, step: int, bits: int = WORD) -> int:
    """The smallest `k` with `q^(step k) < 2^-bits`."""
    with precision(192):
        logarithm = -ball(q).log() / arb(2).log() * step
        k = max(1, ceil_scaled(bits / logarithm, 0) - 2)
        while not logarithm * k > bits:
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

    return first_cuts(end if base is None else base - 1, cut)


def first_cuts(count: int, cut: Callable[[int, int], int]) -> Cuts:
    """Cuts whose digits do not end: `cut(k, bits)` is the k-th as a multiple of 2^-bits, rounded down."""

    def finer(k: int, words: int) -> int:
        return cut(k, words * WORD)

    return Cuts(tuple(place_of(finer(k, LIMBS), LIMBS) for k in range(count)), finer)


def place_of(number: int, words: int) -> Place:
    """A number as a multiple of 2^-62 to the power of `words`; one, or more, is a mark that no word reaches."""
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
