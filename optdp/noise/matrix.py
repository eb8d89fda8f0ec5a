"""NoiseMatrix: the integer table that is deployed, and how to draw from it.

Without a tail `Pr[s|x] = weight / denominator`. With one (A, Remark 8): draw `e` from the discrete Laplace law
`Pr[e] = (1-q)/(1+q) q^|e|`; if `x+e` lies outside `outputs`, release it; otherwise draw from the row of `x`.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import index
from random import Random
from typing import Literal

import numpy as np
import numpy.typing as npt
from flint import arb

from optdp.errors import ProblemError
from optdp.math.exact import ball

Row = tuple[tuple[int, int], ...]
Outside = Literal["error", "clamp", "geometric"]
Bits = Callable[[int], int]

TABLE = 4096
"""Thresholds kept for geometric noise; a draw beyond them starts again from there (the law has no memory)."""


@dataclass(frozen=True)
class NoiseMatrix:
    """A row of `(output, weight)` for each input of `inputs`; the weights of a row sum to `denominator`."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    denominator: int
    rows: tuple[Row, ...]
    q: Fraction | None = None
    outside: Outside = "error"
    last: int = 0
    """The largest input that exists; inputs are `0..last`."""

    @cached_property
    def ratio(self) -> arb:
        """`q` as a ball (of the precision in force when it is first asked for)."""
        return ball(self.q) if self.q is not None else arb(0)

    def row(self, x: int) -> Row | None:
        """The table row that serves input `x`; None if `x` gets plain geometric noise."""
        if not 0 <= x <= self.last:
            raise ProblemError(f"An input must lie in 0..{self.last}. Found {x}.")
        first, final = self.inputs
        if first <= x <= final:
            return self.rows[x - first]
        if self.outside == "clamp":
            return self.rows[0 if x < first else -1]
        if self.outside == "geometric":
            return None
        raise ProblemError(f"The table has rows for the inputs {first}..{final} only. Found {x}.")

    def inside_mass(self, x: int) -> arb:
        """`c(x)`: the probability that geometric noise leaves `x` within `outputs` (1 without a tail)."""
        if self.q is None:
            return arb(1)
        q, (low, high) = self.ratio, self.outputs
        if low <= x <= high:
            return 1 - (q ** (high - x + 1) + q ** (x - low + 1)) / (1 + q)
        near, far = (low - x, high - x + 1) if x < low else (x - high, x - low + 1)
        return (q**near - q**far) / (1 + q)

    def probability(self, x: int, s: int) -> arb:
        """A ball around `Pr[s|x]`."""
        row = self.row(x)
        low, high = self.outputs
        if row is None or (self.q is not None and not low <= s <= high):
            if self.q is None:
                return arb(0)
            q = ball(self.q)
            return (1 - q) / (1 + q) * q ** abs(x - s)
        weight = dict(row).get(s, 0)
        return self.inside_mass(x) * weight / self.denominator

    def to_array(self) -> npt.NDArray[np.float64]:
        """`Pr[s|x]` in floating point for each row and each `s` in `outputs`. For looking, not for claims."""
        low, high = self.outputs
        table = np.zeros((len(self.rows), high - low + 1))
        for i, row in enumerate(self.rows):
            mass = float(self.inside_mass(self.inputs[0] + i).mid())
            for s, weight in row:
                table[i, s - low] = mass * (weight / self.denominator)
        return table

    # ------------------------------------------------------------------ sampling

    def sample(self, x: int, size: int = 1, seed: int | None = None) -> list[int]:
        """`size` independent releases of input `x`, drawn with integers only.

        Randomness comes from the operating system. A `seed` makes the draws repeatable, for tests: they are then
        **not private**.
        """
        if size < 0:
            raise ProblemError(f"size must be at least 0. Found {size}.")
        bits: Bits = secrets.randbits if seed is None else Random(seed).getrandbits
        x = index(x)
        row, (low, high) = self.row(x), self.outputs
        if self.q is None:
            return list(self._from_row(row or (), size, bits))
        noise = self._geometric
        released = [x + noise.draw(bits) - noise.draw(bits) for _ in range(size)]
        if row is None:
            return released
        inside = [i for i, s in enumerate(released) if low <= s <= high]
        for i, s in zip(inside, self._from_row(row, len(inside), bits), strict=True):
            released[i] = s
        return released

    def _from_row(self, row: Row, size: int, bits: Bits) -> Iterator[int]:
        ends = list(accumulate(weight for _, weight in row))
        width = self.denominator.bit_length() - 1
        return (row[bisect_right(ends, bits(width))][0] for _ in range(size))

    @cached_property
    def _geometric(self) -> ExactGeometric:
        assert self.q is not None
        return ExactGeometric(self.q)


class ExactGeometric:
    """`Pr[g] = (1-q) q^g` for rational `q`, exactly, by comparing a lazily drawn uniform number with the powers of `q`.

    `g >= k` if and only if `U < q^k`. The first 64 bits of `U` decide unless they equal those of `q^k`; then more bits
    are drawn and compared with more bits of the exact power.
    """

    def __init__(self, q: Fraction) -> None:
        self.q = q
        self.falling: list[int] = []  # minus the first 64 bits of q^k for k = 1, 2, ..., so that the list increases
        low, guard = 1 << 192, 1 << 16  # q^k lies in [low, low + guard) / 2^192: each step errs by less than one unit
        for k in range(1, TABLE + 1):
            low = low * q.numerator // q.denominator
            top = low >> 128
            if (low + guard) >> 128 != top:
                top = self.power(k, 64)
            self.falling.append(-top)
            if top == 0:
                break

    def power(self, k: int, bits: int) -> int:
        """The first `bits` bits of `q^k`, exactly."""
        return int((self.q.numerator**k << bits) // self.q.denominator**k)

    def draw(self, bits: Bits) -> int:
        """One exact draw."""
        base = 0
        while True:
            u = bits(64)
            k = bisect_right(self.falling, -u - 1)  # the powers that are surely above U
            if k < len(self.falling) and self.falling[k] == -u:
                k = self._closer(u, k, bits)
            if k < len(self.falling):
                return base + k
            base += k

    def _closer(self, u: int, k: int, bits: Bits) -> int:
        """How many powers lie above `U`, whose first 64 bits `u` equal those of power `k + 1`; `k` surely do."""
        width = 64
        while True:
            u, width = (u << 64) | bits(64), width + 64
            while k < len(self.falling) and self.power(k + 1, width) > u:
                k += 1
            if k == len(self.falling) or self.power(k + 1, width) < u:
                return k
