"""Exact draws of the laws that optdp deploys, whole arrays at once, from the bits of a `Source`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.numbers.exact import ball, check_whole, floor_scaled, precision, shown, to_fraction
from optdp.numbers.sgdl import SGDL, SOURCE_BITS, ExactNegativeBinomial, looked_up
from optdp.numbers.source import Source

CHUNK = 1 << 20  # how many draws are made at a time, to bound the memory
LARGEST = 1 << 16  # the most trials of one binomial table; more trials are the sum of several draws
ROUNDS = 1024  # honest bits reject a draw that often less than once in 2^1000 draws


def bernoulli(source: Source, p: Fraction, size: int) -> NDArray[np.bool_]:
    """`size` independent events of probability `p`, any rational.

    `U < p` is decided by the first bits in which the two differ: eight, and where these are equal 64 more at a time.
    """
    digit, rest = divmod(_probability(p, "p") * 256, 1)
    drawn = _bytes(source, _size(size))
    found = drawn < digit
    tied = np.flatnonzero(drawn == digit)
    for _ in range(SOURCE_BITS // 64):
        if not len(tied) or not rest:
            return found
        digit, rest = divmod(rest * 2**64, 1)
        words = source.words(len(tied))
        found[tied] = words < digit
        tied = tied[words == digit]
    raise _not_random()


def bernoulli_each(source: Source, p: NDArray[np.float64]) -> NDArray[np.bool_]:
    """An event for each probability in `p`, where a float is the binary fraction that it is."""
    p = np.asarray(p, dtype=np.float64)
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)).ravel())
    if len(wrong):
        raise ProblemError(f"Probabilities must lie between 0 and 1. Found {p.ravel()[wrong[0]]}.")
    found = np.empty(p.size, np.bool_)
    for start in range(0, p.size, CHUNK):
        found[start : start + CHUNK] = _events(source, p.ravel()[start : start + CHUNK])
    return found.reshape(p.shape)


def _events(source: Source, p: NDArray[np.float64]) -> NDArray[np.bool_]:
    """`bernoulli` with floats: to scale one up by a power of two, and to take its whole part off, are both exact."""
    scaled = np.ldexp(p, 8)
    digit = np.floor(scaled)
    rest, drawn = scaled - digit, _bytes(source, len(p))
    found = drawn < digit
    tied = np.flatnonzero((drawn == digit) & (rest > 0))
    while len(tied):  # a float has less than 1100 bits
        scaled = np.ldexp(rest[tied], 64)
        digit = np.floor(scaled)
        rest[tied] = scaled - digit
        words = source.words(len(tied))
        found[tied] = words < digit.astype(np.uint64)
        tied = tied[(words == digit.astype(np.uint64)) & (rest[tied] > 0)]
    return found


def uniform_below(source: Source, m: int, size: int) -> NDArray[np.int64]:
    """`size` uniform numbers from `0..m-1`; words of the last, incomplete run of `m` are drawn again."""
    check_whole(m, "m", 1, 2**63 - 1)
    whole = (1 << 64) // m * m

    def below(count: int) -> NDArray[np.int64]:
        words = source.words(count)
        for _ in range(ROUNDS):
            again = np.flatnonzero(words >= whole)
            if not len(again):
                return (words % np.uint64(m)).astype(np.int64)
            words[again] = source.words(len(again))
        raise _not_random()

    return _chunked(below, size)


def negative_binomial(source: Source, beta: Fraction, q: Fraction, size: int) -> NDArray[np.int64]:
    """`size` draws of `Pr[k] = (1-q)^beta C(beta+k-1, k) q^k`."""
    law = _negative_binomial(to_fraction(beta, "beta"), to_fraction(q, "q"))
    return _chunked(lambda count: law.draws(source.words(count), source.bits), size)


def sgdl(source: Source, beta: Fraction, q: Fraction, size: int) -> NDArray[np.int64]:
    """`size` draws of `SGDL(beta, q)`: differences of two negative binomials."""
    return negative_binomial(source, beta, q, size) - negative_binomial(source, beta, q, size)


def binomial(source: Source, trials: NDArray[np.int64], p: Fraction) -> NDArray[np.int64]:
    """For each entry of `trials` how many of so many events of probability `p` happen.

    A sum of independent binomials is binomial: each binary digit of the number of trials is one draw from the table of
    its power of two, so that a handful of draws does for any number.
    """
    share, trials = _probability(p, "p"), _counts(trials, "trials", 10**9)
    found = np.zeros(len(trials), np.int64)
    if share in (0, 1):
        return trials * int(share)
    width = 1
    while width <= min(LARGEST, trials.max(initial=0)):
        times = trials // width if width == LARGEST else trials // width % 2
        while len(members := np.flatnonzero(times)):
            found[members] += _binomial(width, share).draws(source, len(members))
            times[members] -= 1
        width *= 2
    return found


def flipped_counts(source: Source, ones: NDArray[np.int64], k: int, flip: Fraction) -> NDArray[np.int64]:
    """Every user has `k` bits, of which `ones[i]` are one; each bit is flipped with probability `flip`.

    Returns how many ones each user has afterwards: it is all that is left of the bits once they are shuffled.
    """
    check_whole(k, "k", 0, 10**9)
    ones = _counts(ones, "ones", k)
    return ones - binomial(source, ones, flip) + binomial(source, k - ones, flip)


class FiniteLaw:
    """Exact draws of a law on `0..m` by inversion: `cdf()` encloses every `F(j)` at the precision in force.

    The table holds the first 64 bits of a lower bound of each `F(j)`, as those of `ExactNegativeBinomial` do.
    """

    def __init__(self, cdf: Callable[[], list[arb]]) -> None:
        self.cdf = cdf
        with precision(128):
            values, most = cdf(), (1 << 64) - 1
            if not all(value.rad() < arb(2) ** -66 for value in values):
                raise ArithmeticError("The thresholds of a table could not be enclosed.")
            thresholds = [min(max(floor_scaled(value, 64), 0), most) for value in values]
        self.table = np.maximum.accumulate(np.array(thresholds, np.uint64))

    def draws(self, source: Source, size: int) -> NDArray[np.int64]:
        def look(count: int) -> NDArray[np.int64]:
            words = source.words(count)
            place, sure = looked_up(self.table, words)
            found = place.astype(np.int64)
            for i in np.flatnonzero(~sure):
                found[i] = self._closer(int(words[i]), source)
            return found

        return _chunked(look, size)

    def _closer(self, u: int, source: Source) -> int:
        """The draw for a `U` that starts with the 64 bits `u`, with more bits until one place is left for it."""
        for width in range(128, SOURCE_BITS + 1, 64):
            u = u << 64 | source.bits(64)
            with precision(width + 64):
                low, high = (arb(fmpz(end)) * arb(2) ** -width for end in (u, u + 1))
                values = [arb(0), *self.cdf()]
                values[-1] = arb(1)
                above = next(j for j, value in enumerate(values) if value >= high)
                if values[above - 1] <= low:
                    return above - 1
        raise _not_random()


@lru_cache(maxsize=64)
def _binomial(trials: int, p: Fraction) -> FiniteLaw:
    def cdf() -> list[arb]:
        odds, values = ball(p / (1 - p)), [ball(1 - p) ** trials]
        for j in range(trials):
            values.append(values[-1] * odds * (trials - j) / (j + 1))
        return list(accumulate(values))

    return FiniteLaw(cdf)


@lru_cache(maxsize=16)
def _negative_binomial(beta: Fraction, q: Fraction) -> ExactNegativeBinomial:
    law = SGDL(beta, q)  # which refuses what is out of reach
    return ExactNegativeBinomial(law.beta, law.q)


def _chunked(draw: Callable[[int], NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    found = np.empty(_size(size), np.int64)
    for start in range(0, size, CHUNK):
        part = found[start : start + CHUNK]
        part[:] = draw(len(part))
    return found


def _bytes(source: Source, size: int) -> NDArray[np.uint8]:
    return source.words(-(-size // 8)).astype("<u8", copy=False).view(np.uint8)[:size]


def _size(size: int) -> int:
    check_whole(size, "size", 0, 10**12)
    return size


def _probability(p: Fraction, name: str) -> Fraction:
    value = to_fraction(p, name)
    if not 0 <= value <= 1:
        raise ProblemError(f"{name} must lie between 0 and 1. Found {shown(p)}. Write a probability.")
    return value


def _counts(values: NDArray[np.int64], name: str, most: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ProblemError(f"{name} must be a list of whole numbers. Found {shown(values)}.")
    if array.size and not 0 <= array.min() <= array.max() <= most:
        raise ProblemError(f"{name} must be from 0 to {most:,}. Found {array.min()} to {array.max()}.")
    return array.astype(np.int64)


def _not_random() -> ProblemError:
    return ProblemError("Random bits must be random. Found a source whose bits decide nothing. Replace the source.")
