"""Draws of the Mallows shuffle, exact given ideal bits: a million records in about a second (E, section 2.3).

A word `W` is a permutation of the positions `0..n-1` of the reference order: the value at position `W[k]` goes to
position `k`. Its law is `Pr[W] ~ q^d(W)`, `q = e^-theta`, where `d` counts inversions (Kendall) or places `W[k] != k`
(Hamming). `q = 1` is the uniform shuffle, `q = 0` leaves everything in place. docs/mathematics.md proves what follows.

Kendall. Insert the values `0, 1, ..` one after the other, value `i` with `V_i` in `0..i` of the earlier ones behind it.
The `V_i` are independent with `Pr[V_i = v] ~ q^v`: a geometric number modulo `i + 1`. It is drawn by its digits, which
are independent: for `G = 2^s H + L`, `H` is geometric of ratio `q^(2^s)`, and `L` of ratio `q`, cut off at `2^s`. Hence
a `q` however near to one needs a few short tables only. A digit of ratio `e^M` on `0..m-1`, or on all whole numbers, is
drawn by inversion of

    F(v) = (1 - e^(M (v+1))) / (1 - e^(M m)):    it is floor(log(1 - U (1 - e^(M m))) / M).

Hamming. A word is a set of places that is held and a uniform shuffle of the rest. The number held has `Pr[k] ~
z^k / k!` on `0..n`, `z = (1-q)/q`, a Poisson law cut off at `n`. Given the number, the set is uniform.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, fmpz

from optdp.errors import ProblemError
from optdp.numbers.draws import CHUNK, ROUNDS
from optdp.numbers.exact import Number, ball, check_whole, floor_scaled, precision, shown, to_fraction
from optdp.numbers.sgdl import SOURCE_BITS, looked_up
from optdp.numbers.source import Source
from optdp.order.mechanism import LARGEST_N, Whole

DIGIT_BITS = 10
"""The most bits of one digit: the longest table of a digit that is cut off has `2^DIGIT_BITS` entries."""
SMALL = 8
"""Up to this width two blocks are merged by comparing all pairs."""


def kendall_word(source: Source, n: int, q: Number) -> Whole:
    """A word with `Pr[W] ~ q^inversions`."""
    share = checked_ratio(n, q)
    if share == 1:
        return uniform_word(source, n)
    if share == 0:
        return np.arange(n, dtype=np.int64)
    return word_of(insertions(source, n, share))


def hamming_word(source: Source, n: int, q: Number) -> Whole:
    """A word with `Pr[W] ~ q^(number of k with W[k] != k)`."""
    share = checked_ratio(n, q)
    word = np.arange(n, dtype=np.int64)
    if share == 0:
        return word
    moved = uniform_word(source, n)[held_number(source, n, share) :]
    word[np.sort(moved)] = moved
    return word


def uniform_word(source: Source, n: int) -> Whole:
    """Any word alike: the order of independent words of 64 bits, all drawn again if two are equal."""
    check_whole(n, "n", 1, LARGEST_N)
    for _ in range(ROUNDS):
        keys = source.words(n)
        found = np.argsort(keys)
        sorted_keys = keys[found]
        if n == 1 or (sorted_keys[1:] != sorted_keys[:-1]).all():
            return found.astype(np.int64, copy=False)
    raise _not_random()


# ------------------------------------------------------------------------------------------------- Kendall
def insertions(source: Source, n: int, q: Fraction) -> Whole:
    """Independent `V_0, V_1, .., V_(n-1)` with `Pr[V_i = v] ~ q^v` on `0..i`, for `0 < q < 1`."""
    found = np.empty(n, np.int64)
    for start in range(0, n, CHUNK):
        part = found[start : start + CHUNK]
        bounds = np.arange(start + 1, start + len(part) + 1, dtype=np.int64)
        part[:] = 0
        for digit in _digits(q):
            part <<= digit.bits
            part += digit.draws(source, bounds)
            part %= bounds
    return found


class Digit:
    """A digit of a geometric number: `Pr[v] ~ (q^(2^shift))^v` on `0..2^bits-1`, or with `bits = 0` on `0, 1, 2, ..`.

    The table holds the first 64 bits of a lower bound of each `F(v)`; they decide but for the rarest of draws.
    """

    def __init__(self, q: Fraction, shift: int, bits: int) -> None:
        self.q, self.shift, self.bits = q, shift, bits
        most, table = (1 << 64) - 1, list[int]()
        with precision(128):
            log_ratio, mass = self._law()
            while not table or table[-1] < most:
                value = -(log_ratio * (len(table) + 1)).expm1() / mass
                if not value.rad() < arb(2) ** -66:
                    raise ArithmeticError("The thresholds of a table could not be enclosed.")
                table.append(min(max(floor_scaled(value, 64), 0), most))
        self.table = np.maximum.accumulate(np.array(table, np.uint64))

    def draws(self, source: Source, bounds: Whole) -> Whole:
        """A digit for each entry of `bounds`; one that is beyond the table is taken modulo its bound."""
        words = source.words(len(bounds))
        place, sure = looked_up(self.table, words)
        found = place.astype(np.int64, copy=False)
        for i in np.flatnonzero(~sure):
            found[i] = self.closer(int(words[i]), source) % int(bounds[i])
        return found

    def closer(self, u: int, source: Source) -> int:
        """The digit for a `U` that starts with the 64 bits `u`: with more bits, until only one is left."""
        for width in range(128, SOURCE_BITS + 1, 64):
            u = u << 64 | source.bits(64)
            with precision(width + 64):
                log_ratio, mass = self._law()
                uniform = arb(fmpz(2 * u + 1), 1) * arb(2) ** -(width + 1)
                digit = ((-uniform * mass).log1p() / log_ratio).max(arb(0)).floor().unique_fmpz()
            if digit is not None:
                return int(digit)
        raise _not_random()

    def _law(self) -> tuple[arb, arb]:
        """`M` and `1 - e^(M m)`, both with small relative error, however near to one `q` is."""
        log_q = ball(self.q - 1).log1p() if self.q > Fraction(1, 2) else ball(self.q).log()
        log_ratio = log_q * arb(2) ** self.shift
        return log_ratio, -(log_ratio * (1 << self.bits)).expm1() if self.bits else arb(1)


@lru_cache(maxsize=16)
def _digits(q: Fraction) -> list[Digit]:
    """The digits of a geometric number of ratio `q`, the highest first: its own ratio is `e^(-1/64)` at most."""
    gap = 1 - q
    low = max(0, gap.denominator.bit_length() - gap.numerator.bit_length() - 5)
    count = -(-low // DIGIT_BITS)
    cuts = [low * part // count for part in range(count, -1, -1)] if count else []
    return [Digit(q, low, 0), *(Digit(q, shift, end - shift) for end, shift in pairwise(cuts))]


def word_of(code: Whole) -> Whole:
    """The word with `code[i]` smaller values behind value `i`, in `O(n log n)`.

    From the largest value down, each takes the free place with so many free places behind it. A block of values is
    known by the places it takes among those free before it, counted from the end, sorted: `a_0 < a_1 < ..`. The next
    block's place `b` is, before the first, `b + #{j: a_j - j <= b}`; thus two blocks are merged into one.
    """
    places, items = code[::-1].copy(), np.arange(len(code), dtype=np.int64)[::-1].copy()
    for start, rows, left, right in _levels(len(code)):
        block, shape = slice(start, start + rows * (left + right)), (rows, left + right)
        part = places[block].reshape(shape)
        passed = _passed(part[:, :left] - np.arange(left), part[:, left:])
        at = passed + np.arange(right) + (np.arange(rows) * (left + right))[:, None]
        first = np.ones(part.size, np.bool_)
        first[at] = False
        for array, behind in ((places, part[:, left:] + passed), (items, items[block].reshape(shape)[:, left:])):
            merged = np.empty(part.size, np.int64)
            merged[at] = behind
            merged[first] = array[block].reshape(shape)[:, :left].ravel()
            array[block] = merged
    return items[::-1].copy()


def _levels(n: int) -> list[tuple[int, int, int, int]]:
    """The merges of neighbouring blocks until one is left: where, of how many pairs, and how wide both are."""
    found, width = list[tuple[int, int, int, int]](), 1
    while width < n:
        rows, rest = divmod(n, 2 * width)
        found += [(0, rows, width, width)] if rows else []
        found += [(n - rest, 1, width, rest - width)] if rest > width else []
        width *= 2
    return found


def _passed(left: Whole, right: Whole) -> Whole:
    """For each entry of `right` how many entries of the same row of `left` are at most that; rows are sorted."""
    rows, width = left.shape
    if width <= SMALL:
        found: Whole = np.zeros(right.shape, np.int64)
        for j in range(width):
            found += left[:, j : j + 1] <= right
        return found
    first = np.arange(rows, dtype=np.int64)[:, None]
    span = max(int(left[:, -1].max()), int(right[:, -1].max())) + 1
    place = np.searchsorted((left + first * span).ravel(), (right + first * span).ravel(), side="right")
    found = place.reshape(right.shape) - first * width
    return found


# ------------------------------------------------------------------------------------------------- Hamming
def held_number(source: Source, n: int, q: Fraction) -> int:
    """How many places are held: `Pr[k] ~ z^k / k!` on `0..n`, `z = (1-q)/q`, by inversion."""
    z, u = (1 - q) / q, 0
    if z == 0:
        return 0
    for width in range(64, SOURCE_BITS + 1, 64):
        u = u << 64 | source.bits(64)
        with precision(width + 64):
            window = _held(n, z, width)
            scale, below = arb(2) ** width / window.total, window.before
            for k, weight in enumerate(window.weights, window.first):
                if not below * scale <= arb(fmpz(u)):
                    break
                below += weight
                if below * scale >= arb(fmpz(u + 1)):
                    return k
    raise _not_random()


@lru_cache(maxsize=16)
def _held(n: int, z: Fraction, width: int) -> Window:
    return Window(lambda k: ball(z) / (k + 1), min(n, int(z)), n, width + 16)


class Window:
    """Weights `w(k)` on `0..n` with falling ratios `w(k+1)/w(k)`, relative to the one at the mode, in balls.

    They are listed from `first` on as long as they matter: with ratios that fall, what is left out on a side where the
    next ratio is `r < 1` is at most `w r / (1-r)` of the last weight `w` that is listed. It is `2^-bits` at most, and
    enclosed in `before` and `beyond`.
    """

    def __init__(self, ratio: Callable[[int], arb], mode: int, n: int, bits: int) -> None:
        least = arb(2) ** -bits
        up, down = [arb(1)], [arb(1)]
        self.before, self.beyond = arb(0), arb(0)
        for k in range(mode, n):
            step = ratio(k)
            if step < 1 and (rest := up[-1] * step / (1 - step)) < least:
                self.beyond = arb(0).union(rest)
                break
            up.append(up[-1] * step)
        for k in range(mode - 1, -1, -1):
            step = 1 / ratio(k)
            if step < 1 and (rest := down[-1] * step / (1 - step)) < least:
                self.before = arb(0).union(rest)
                break
            down.append(down[-1] * step)
        self.first = mode - len(down) + 1
        self.weights = [*down[:0:-1], *up]
        self.total = sum(self.weights, self.before + self.beyond)


# ------------------------------------------------------------------------------------------------- the release
WORDS = {"kendall": kendall_word, "hamming": hamming_word}
"""How a word is drawn, by the distance."""


def shuffled(values: Any, order: Whole, q: Fraction, source: Source, distance: str = "kendall") -> Any:
    """The values as they are released, an array like the one given; secure bits unless the source has a seed.

    Shuffle the answers of a local randomizer, not the truth: this hides who said what within groups, nothing else.
    """
    given = np.asarray(values)
    check_order(order, len(given))
    word = WORDS[distance](source, len(given), q)
    released = np.empty_like(given)
    released[order] = given[order[word]]
    return released


def check_order(order: Any, n: int) -> None:
    """An order holds every record once."""
    check_whole(n, "The number of values", 1)
    found = np.asarray(order)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) != n:
        raise ProblemError(f"An order must hold as many records as there are values, {n:,}. Found {found.size:,}.")
    seen = np.zeros(n, dtype=bool)
    inside = (found >= 0) & (found < n)
    seen[found[inside]] = True
    if not seen.all():
        raise ProblemError(f"An order must hold every record once. Found record {int(np.argmin(seen))} missing.")


# ------------------------------------------------------------------------------------------------- refusals
def checked_ratio(n: int, q: Number) -> Fraction:
    """`q` as a rational, once it and `n` are found to be of use."""
    check_whole(n, "n", 1, LARGEST_N)
    share = to_fraction(q, "q")
    if not 0 <= share <= 1:
        raise ProblemError(f"q must lie between 0 and 1. Found {shown(q)}. Write e^-theta of a theta from 0 on.")
    return share


def _not_random() -> ProblemError:
    return ProblemError("Random bits must be random. Found a source whose bits decide nothing. Replace the source.")
