"""Rigorous integrals across a strip: probabilities from a generating function with full relative accuracy."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import flint
from flint import acb, arb, fmpz

from optdp.errors import ProblemError
from optdp.numbers.exact import ball, floor_scaled, precision

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def across(log_base: Callable[[acb, bool], acb], beta: Fraction, x: int, start: arb, goal: int, beyond: bool) -> arb:
    """`1/(2 pi i) ∫ e^(beta log_base(w) - x w) [/ (e^w - 1)] dw` across the strip `|Im w| <= pi`, through `start`.

    The integrand has period `2 pi i` and is real on the real axis, so that the upper half of a path is enough. For
    small beta the path leans to the right, where `e^(-x w)` falls; for large beta the power falls along the upright.
    """
    power, lean = ball(beta), acb(0.5 if beta < 64 else 0, 1)
    peak = log_base(acb(start), True).real * power - x * start  # not a number unless `start` is left of `a`

    def integrand(t: acb, analytic: bool) -> acb:
        w = start + lean * t
        value = (log_base(w, analytic) * power - w * x - peak).exp()
        return value / (w.exp() - 1) if beyond else value

    small = arb(2) ** -goal
    total = acb.integral(integrand, 0, arb.pi(), rel_tol=small, abs_tol=small**2, eval_limit=10**6, depth_limit=10**4)
    return (total * lean).imag * peak.exp() / arb.pi()


Bits = Callable[[int], int]

SUM = 1 << 12  # the most terms that are added up where an integral would do
SOURCE_BITS = 1024  # the most bits of one uniform number; honest bits need that many less than once in 2^900 draws
SINGLE, BLOCK, KEPT = 1 << 16, 1 << 14, 1 << 8
"""The longest law with one table of thresholds; else the length of a table, and how many are kept."""


class ExactNegativeBinomial:
    """`Pr[k] = (1-q)^beta C(beta+k-1, k) q^k`, exactly, by comparing a lazily drawn uniform `U` with enclosed `F(k)`.

    The draw is the smallest `k` with `U < F(k)`. Tables hold the first 64 bits of a lower bound of each `F(k)`, which
    decide unless those of `U` equal them or come right after; then more bits are drawn. A short law is one table; a
    long one is cut into tables around its mean, made when a draw falls into them.
    """

    def __init__(self, beta: Fraction, q: Fraction) -> None:
        self.beta, self.q = beta, q
        mean, scale = float(beta * q / (1 - q)), 1 / float(1 - q)
        spread = math.sqrt(mean * scale)
        last = math.ceil(mean + 10 * spread + 48 * scale)  # what is beyond, or below `first`, is about 2^-64
        self.first = 0 if last <= SINGLE else max(0, math.floor(mean - 10 * spread))
        self.width = last + 1 if last <= SINGLE else BLOCK
        self.count = (last - self.first) // self.width + 1
        self.tables: dict[int, array[int]] = {}
        self.ends: dict[int, tuple[int, arb]] = {}

    def below(self, k: int) -> arb:
        """`F(k)`, with about the precision in force as absolute accuracy: the sum, or one minus the integral for
        `Pr[> k]` right of its pole at zero, or minus the integral left of it.
        """
        if k < SUM:
            return sum(negative_binomial_balls(self.beta, self.q, 0, k), arb(0)) if k >= 0 else arb(0)
        goal = flint.ctx.prec
        with precision(goal + 96 + 2 * k.bit_length()):
            q, heavy = ball(self.q), ball(max(self.beta, Fraction(1)))
            saddle, near = -(q * (1 + heavy / (k + 1))).log(), ((1 - q) / (heavy * q).sqrt()).min(-q.log() / 2)
            start = (saddle if abs(saddle) > near else near).mid()

            def log_base(w: acb, analytic: bool) -> acb:
                return -((1 - q * w.exp()) / (1 - q)).log(analytic=analytic)

            value = across(log_base, self.beta, k, start, goal + 32, beyond=True)
            if not value.rad() < arb(2) ** (16 - goal):
                raise ArithmeticError(f"The cdf at {k} could not be enclosed.")
            return 1 - value if start > 0 else -value

    def draw(self, bits: Bits) -> int:
        """One exact draw."""
        u = bits(64)
        block = bisect_left(range(self.count), u - 1, key=self._end) if self.count > 1 else 0
        table = self.tables.get(block) or self._fill(block) if block < self.count else array("Q")
        place = bisect_left(table, u - 1)
        k = self.first + block * self.width + place
        if place < len(table) and table[place] > u and (k > self.first or k == 0):
            return k
        return self._closer(u, k if k > self.first else 0, bits)

    def draws(self, words: NDArray[np.uint64], bits: Bits) -> NDArray[np.int64]:
        """For each word what `draw` makes of it as the first 64 bits of `U`; the words of a table go together."""
        import numpy as np

        found = np.empty(len(words), np.int64)
        for block, members in self._members(words):
            table = self.tables.get(block) or self._fill(block) if block < self.count else array("Q")
            place, sure = looked_up(np.array(table, np.uint64), words[members])
            k = found[members] = self.first + block * self.width + place
            for i in np.flatnonzero(~sure | ((k == self.first) & (k > 0))):
                least = int(k[i]) if k[i] > self.first else 0
                found[members[i]] = self._closer(int(words[members[i]]), least, bits)
        return found

    def _members(self, words: NDArray[np.uint64]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """The tables that are needed, each with the places of its words: `bisect_left` for all words at once."""
        import numpy as np

        parts = [(0, self.count if self.count > 1 else 0, np.arange(len(words)))]
        while parts:
            low, high, members = parts.pop()
            if low == high and len(members):
                yield low, members
            elif len(members):
                half = (low + high) // 2
                beyond = np.maximum(words[members], 1) - 1 > self._end(half)
                parts += [(half + 1, high, members[beyond]), (low, half, members[~beyond])]

    def _end(self, block: int) -> int:
        """The first 64 bits of the last `F(k)` of a block."""
        if block not in self.ends:
            with precision(96):
                value = self.below(self.first + (block + 1) * self.width - 1)
                self.ends[block] = max(0, floor_scaled(value, 64)), value
        return self.ends[block][0]

    def _fill(self, block: int) -> array[int]:
        """The table of a block, up to where the 64 bits are all ones."""
        if len(self.tables) >= KEPT:
            self.tables.clear()
        start, most = self.first + block * self.width, (1 << 64) - 1
        table = array("Q")
        with precision(96):
            total = self.ends[block - 1][1] if block - 1 in self.ends else self.below(start - 1)
            for value in negative_binomial_balls(self.beta, self.q, start, start + self.width - 1):
                total += value
                table.append(min(max(floor_scaled(total, 64), 0), most))
                if table[-1] == most:
                    break
        if not total.rad() < arb(2) ** -66:
            raise ArithmeticError("The thresholds of a table could not be enclosed.")
        self.tables[block] = table
        return table

    def _closer(self, u: int, least: int, bits: Bits) -> int:
        """The draw, at least `least`, for a `U` that starts with the 64 bits `u`: with more bits, until all of the
        interval in which `U` lies is in one place.
        """
        for width in range(128, SOURCE_BITS + 1, 64):
            u = (u << 64) | bits(64)
            if u + 1 == 1 << width:
                continue  # the interval reaches one, which no F(k) does
            with precision(width + 64):
                low, high = (arb(fmpz(end)) * arb(2) ** -width for end in (u, u + 1))
                wrong, k, step = least - 1, least, 1  # becomes: not proved that U < F(wrong), proved that U < F(k)
                while not self.below(k) >= high:
                    wrong, k, step = k, k + step, 2 * step
                while k - wrong > 1:
                    half = (wrong + k) // 2
                    wrong, k = (wrong, half) if self.below(half) >= high else (half, k)
                if self.below(k - 1) <= low:
                    return k
        raise ProblemError(f"Random bits must be random. Found {SOURCE_BITS} that decide nothing. Replace the source.")


def looked_up(table: NDArray[np.uint64], words: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The place of the first threshold that may be above each word, and whether it surely is: a threshold is the first
    64 bits of a lower bound that is at most half a unit of those bits too low.
    """
    import numpy as np

    place = np.searchsorted(table, np.maximum(words, 1) - 1)
    return place, np.append(table, np.uint64(0))[place] > words


def negative_binomial_balls(beta: Fraction, q: Fraction, first: int, last: int) -> list[arb]:
    """Enclosures of `(1-q)^beta C(beta+k-1, k) q^k` for `k = first..last`, by the ratios `q (beta+k) / (k+1)`."""
    with precision(flint.ctx.prec + 64 + 2 * (last + 1).bit_length()):  # the logarithms of factorials cancel
        b, ratio = ball(beta), ball(q)
        log_choose = (b + first).lgamma() - b.lgamma() - arb(first + 1).lgamma() if first else arb(0)
        values = [(log_choose + b * (1 - ratio).log() + first * ratio.log()).exp()]
        for k in range(first, last):
            values.append(values[-1] * ratio * (b + k) / (k + 1))
    return values
