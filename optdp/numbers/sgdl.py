"""The symmetric generalized discrete Laplace law: geometric noise, cut into independent shares.

`SGDL(beta, q)` is the law of the difference of two independent negative binomials,
`Pr[NB = k] = (1-q)^beta C(beta+k-1, k) q^k`. `beta = 1` is geometric noise `(1-q)/(1+q) q^|x|`, and for equal `q` the
law of a sum has the sum of the betas, so that `n` parties who each draw from `beta = 1/n` add geometric noise together.

With `q = e^-a` the generating function at `z = e^w` is `P(w) = ((cosh a - 1) / (cosh a - cosh w))^beta`, and for a path
across the strip `|Im w| <= pi` that meets the real axis between `0` and `a`

    Pr[x] = 1/(2 pi i) ∫ P(w) e^(-x w) dw,      Pr[> x] = 1/(2 pi i) ∫ P(w) e^(-x w) / (e^w - 1) dw.

Through the saddle point hardly anything cancels, so that far tails come out with full relative accuracy; python-flint
integrates with a proved error.
"""

from __future__ import annotations

import math
import random
import secrets
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import flint
from flint import acb, arb, fmpz

from optdp.errors import ProblemError
from optdp.numbers.exact import Number, ball, floor_scaled, log_of, precision, show, to_fraction
from optdp.objects import Public
from optdp.work.account import spend

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


FLOAT_BITS = 96  # precision behind the functions that answer with floats
TIE_BITS = 1024  # where the comparison of a quantile gives up: only a deliberate tie gets this far


@dataclass(frozen=True, init=False)
class SGDL(Public):
    """Geometric noise in shares: the difference of two independent negative binomials.

    If `n` parties each draw from `SGDL("1/n", q)`, the sum of their draws is geometric noise of ratio `q`.

    Parameters
    ----------
    beta : number
        The share; 1 is geometric noise.
    q : number
        The ratio, usually `e^-epsilon`.

    Examples
    --------
    >>> from optdp import SGDL
    >>> share = SGDL(1, "0.5").share(4)
    >>> share
    SGDL(beta=0.25, q=0.5)
    >>> (share + share + share + share).variance == SGDL(1, "0.5").variance
    True
    >>> round(share.pmf(0), 4), share.quantile("0.99")
    (0.7194, 3)
    """

    beta: Fraction
    q: Fraction

    def __init__(self, beta: Number, q: Number) -> None:
        object.__setattr__(self, "beta", to_fraction(beta, "beta"))
        object.__setattr__(self, "q", to_fraction(q, "q"))
        if not Fraction(1, 10**9) <= self.beta <= 10**7:
            raise ProblemError(f"beta must lie between 1e-9 and 1e7. Found {beta}. Choose how many share.")
        if not Fraction(1, 10**100) <= self.q <= 1 - Fraction(1, 10**9):
            raise ProblemError(f"q must lie between 1e-100 and 1 - 1e-9. Found {q}. Write e^-epsilon.")

    def share(self, n: int) -> SGDL:
        """The law of which `n` independent draws sum to this one."""
        if _whole(n, "n") < 1:
            raise ProblemError(f"n must be at least 1. Found {n}. Write how many parties share the noise.")
        return SGDL(self.beta / n, self.q)

    def plus(self, other: SGDL) -> SGDL:
        """The law of the sum of independent draws from both."""
        if self.q != other.q:
            raise ProblemError(f"Laws that are added must have one q. Found {show(self.q)} and {show(other.q)}.")
        return SGDL(self.beta + other.beta, self.q)

    __add__ = plus

    @property
    def variance(self) -> Fraction:
        """`2 beta q / (1-q)^2`, exactly."""
        return 2 * self.beta * self.q / (1 - self.q) ** 2

    def mean_absolute(self) -> arb:
        """`E|X|`: the recurrence of `_column`, summed over `x >= 1`, is
        `(1-q)^2 sum over x >= 1 of x Pr[x] = q (beta Pr[0] - (1 - beta) Pr[1])`.
        """
        with precision(flint.ctx.prec + 96):  # the difference cancels if q is near one
            zero, one = self._column(0, 1)
            value = ball(2 * self.q / (1 - self.q) ** 2) * (ball(self.beta) * zero - ball(1 - self.beta) * one)
        return +value

    def ball(self, x: int) -> arb:
        """An enclosure of `Pr[x]`, as good relative to its size as the precision in force."""
        return self._accurate(abs(_whole(x)), beyond=False)

    def balls(self, first: int, last: int) -> list[arb]:
        """Enclosures for `first..last`, far quicker than one by one."""
        first, last = _whole(first), _whole(last)
        if last < first:
            return []
        low = max(first, -last, 0)
        column = self._column(low, max(-first, last))
        return [column[abs(x) - low] for x in range(first, last + 1)]

    def cdf_ball(self, x: int) -> arb:
        """An enclosure of `Pr[<= x]`; by symmetry `Pr[> x]` is `cdf_ball(-1 - x)`, accurate in its own tail."""
        x = _whole(x)
        return 1 - self._accurate(x, beyond=True) if x >= 0 else self._accurate(-1 - x, beyond=True)

    def tail_ratio(self, x: int) -> tuple[arb, arb]:
        """Bounds on `Pr[y+1] / Pr[y]` for every `y >= x >= 0`: the ratio at `x` itself, and its limit `q`.

        `beta <= 1`: `C(beta+k-1, k)` is the `k`th moment of a law on `[0, 1]`, so that `Pr[y]` is the `y`th moment of
        a measure on `[0, q]`: log-convex, the ratio rises to `q`. `beta >= 1`: both negative binomials are
        log-concave, hence so is their difference: the ratio falls to `q`.
        """
        if _whole(x) < 0:
            raise ProblemError(f"x must not be negative. Found {x}. The law is symmetric: take -x.")
        here, after = self._column(x, x + 1)
        return (after / here, ball(self.q)) if self.beta <= 1 else (ball(self.q), after / here)

    def pmf(self, x: Any) -> Any:
        """`Pr[x]` as a float, or as an array for an array of integers."""
        return self._floats(x, False, lambda value, _: float(value))

    def log_pmf(self, x: Any) -> Any:
        """`log Pr[x]`, also where `Pr[x]` is below every float."""
        return self._floats(x, False, lambda value, _: float(value.log()))

    def cdf(self, x: Any) -> Any:
        """`Pr[<= x]`, accurate also where it is tiny."""
        return self._floats(x, True, lambda value, mirrored: float(value if mirrored else 1 - value))

    def sf(self, x: Any) -> Any:
        """`Pr[> x]`, accurate also where it is tiny."""
        return self._floats(x, True, lambda value, mirrored: float(1 - value if mirrored else value))

    def quantile(self, p: Number) -> int:
        """The smallest `x` with `Pr[<= x] >= p`, decided exactly."""
        level = to_fraction(p, "p")
        if not 0 < level < 1:
            raise ProblemError(f"p must lie strictly between 0 and 1. Found {p}. Write 0.5 for the median.")
        low, high = -1, 0  # to become: not reached, reached
        step = 1 + math.isqrt(math.ceil(self.variance))
        while not self._reaches(high, level):
            low, high, step = high, high + step, 2 * step
        while self._reaches(low, level):
            low, high, step = low - step, low, 2 * step
        return low + 1 + bisect_left(range(low + 1, high), True, key=lambda x: self._reaches(x, level))

    def sample(self, size: int, seed: int | Bits | None = None) -> list[int]:
        """`size` exact draws. A `seed` makes them repeatable, for tests: such draws are **not private**.

        In place of a seed, a function that returns so many random bits may be given.
        """
        if _whole(size, "size") < 0:
            raise ProblemError(f"size must not be negative. Found {size}. Write how many draws.")
        bits = seed if callable(seed) else secrets.randbits if seed is None else random.Random(seed).getrandbits
        draw = self._sampler.draw
        return [draw(bits) - draw(bits) for _ in range(size)]

    @cached_property
    def _sampler(self) -> ExactNegativeBinomial:
        return ExactNegativeBinomial(self.beta, self.q)

    def _reaches(self, x: int, level: Fraction) -> bool:
        """Whether `Pr[<= x] >= level`.

        For whole beta and `q = n/d`, `2 (beta-1)! (n+d)^(2 beta - 1) d^x Pr[> x]` is an integer: a difference that is
        proved to be small against that is zero.
        """
        edge, target = (x, 1 - level) if x >= 0 else (-1 - x, level)
        n, d = self.q.numerator, self.q.denominator
        grid = 2 * float(self.beta) * (math.log2(self.beta + 1) + (n + d).bit_length()) + edge * d.bit_length() + 2
        bits = 64
        while bits <= TIE_BITS:
            with precision(bits):
                gap = self._accurate(edge, beyond=True) - ball(target)
                if gap > 0 or gap < 0:
                    return bool(gap < 0) == (x >= 0)
                if self.beta.denominator == 1 and grid + target.denominator.bit_length() < bits - 8:
                    return True
            bits *= 2
        raise ProblemError(f"p must differ from every value of the cdf. Found one as near as 2^-{TIE_BITS}. Change p.")

    def _accurate(self, x: int, beyond: bool) -> arb:
        """`Pr[x]` or `Pr[> x]` for `x >= 0`: with more working bits until the relative accuracy is there."""
        goal, fall = flint.ctx.prec, -2.9 * x * log_of(self.q)
        if self.beta <= 1 and (not beyond or (x < SUM and fall < 400)):
            with precision(goal + 64 + (int(fall) if fall < 400 else 0)):  # what cancels, where something does
                value = (1 + self.ball(0)) / 2 - sum(self._column(0, x), arb(0)) if beyond else self._short(x)
            if value.rel_accuracy_bits() >= goal:
                return +value
        for extra in (64, 256, 1024):
            with precision(goal + extra + 2 * x.bit_length()):
                value = self._integral(x, goal + extra // 2, beyond)
            if value.rel_accuracy_bits() >= goal:
                return +value
        raise ArithmeticError(f"The probability of {x} could not be enclosed.")

    def _short(self, x: int) -> arb:
        """`(1-q)^(2 beta) q^x C(beta+x-1, x) 2F1(beta, beta+x; x+1; q^2)` after Pfaff: quick, and often accurate."""
        b, q = ball(self.beta), ball(self.q)
        log_lead = (b + x).lgamma() - b.lgamma() - arb(x + 1).lgamma() + b * ((1 - q) / (1 + q)).log() + x * q.log()
        return log_lead.exp() * (q * q / (q * q - 1)).hypgeom_2f1(b, 1 - b, x + 1)

    def _integral(self, x: int, goal: int, beyond: bool) -> arb:
        """The integral at the top, through the saddle point, where `beta sinh w = x (cosh a - cosh w)`; with a beta of
        at least one there, so that the path keeps away from the singularity at `a`.
        """
        q, heavy = ball(self.q), ball(max(self.beta, Fraction(1)))
        a = -q.log()
        cosh, least, plain = a.cosh(), (a / 2).sinh() ** 2, bool(a > 0.5)
        start = ((x * cosh + (x * x * a.sinh() ** 2 + heavy**2).sqrt()) / (x + heavy)).log()
        if beyond:  # not too near the pole at zero
            start = start.max(((1 - q) / (2 * heavy * q).sqrt()).min(a / 2))

        def log_base(w: acb, analytic: bool) -> acb:
            if plain:
                return -((cosh - w.cosh()) / (2 * least)).log(analytic=analytic)
            product = ((a + w) / 2).sinh() * ((a - w) / 2).sinh()  # the same, where the difference would cancel
            return -(product / least).log(analytic=analytic)

        return across(log_base, self.beta, x, start.mid(), goal, beyond)

    def _column(self, low: int, high: int) -> list[arb]:
        """`Pr[low..high]` for `0 <= low`, by the recurrence that `P'/P` gives, downwards:
        `(x-1+beta) Pr[x-1] = (q + 1/q) x Pr[x] - (x+1-beta) Pr[x+1]`.

        As a map of the ratio at `x` to that at `x-1` it holds the ratio once, and an error of it shrinks at every step.
        """
        goal = flint.ctx.prec
        for extra in (32, 256, 1024):
            spend(2000 + 3.0 * (high - low + 1), "the law of shared noise")
            with precision(goal + extra + 2 * (high - low + 1).bit_length()):
                values = [self.ball(high)]
                ratio = self.ball(high + 1) / values[0] if high > low else arb(0)
                beta, pull = ball(self.beta), ball(self.q + 1 / self.q)
                for x in range(high, low, -1):
                    step = (pull * x - (x + 1 - beta) * ratio) / (x - 1 + beta)
                    values.append(values[-1] * step)
                    ratio = 1 / step
            if values[-1].rel_accuracy_bits() >= goal:
                return [+value for value in reversed(values)]
        spend(2000.0 * (high - low + 1), "the law of shared noise")
        return [self.ball(x) for x in range(low, high + 1)]

    def _floats(self, x: Any, beyond: bool, finish: Callable[[arb, bool], float]) -> Any:
        """`finish(ball of Pr[|x|], x < 0)`, or with `beyond` of `Pr[> x]`, where negative `x` is mirrored to `-1 - x`.

        The points that lie near each other are served by one run of the recurrence.
        """
        many = hasattr(x, "ravel") and not isinstance(x, Integral)  # an array; one number of numpy is none
        if many and x.dtype.kind not in "iu":
            raise ProblemError(f"x must hold integers. Found an array of {x.dtype}. Round it first.")
        points = [int(value) for value in x.ravel()] if many else [_whole(x)]
        places = [(-1 if beyond else 0) - value if value < 0 else value for value in points]
        table: dict[int, arb] = {}
        with precision(FLOAT_BITS):
            wanted = sorted(set(places))
            edges = [i for i in range(1, len(wanted)) if wanted[i] - wanted[i - 1] > 256]
            for i, j in zip([0, *edges], [*edges, len(wanted)], strict=True):
                if i < j:
                    column = self._column(wanted[i], wanted[j - 1])
                    if beyond:
                        total = self._accurate(wanted[j - 1], beyond=True)
                        for k in range(len(column) - 1, -1, -1):
                            column[k], total = total, total + column[k]
                    table.update((place, column[place - wanted[i]]) for place in wanted[i:j])
            found = [finish(table[place], value < 0) for place, value in zip(places, points, strict=True)]
        if not many:
            return found[0]
        import numpy as np

        return np.array(found, dtype=np.float64).reshape(x.shape)


def _whole(x: Any, name: str = "x") -> int:
    if isinstance(x, bool) or not isinstance(x, Integral) or abs(int(x)) >= 1 << 64:
        raise ProblemError(f"{name} must be a whole number below 2^64. Found {x!r:.40}. Round it first.")
    return int(x)
