"""Probability mass functions on `0..last` with exact values.

`ExactPmf` holds integers over a common denominator. `BinomialPmf` is the closed form for very many people, where the
integers would fill the memory: its values are balls that enclose the exact rationals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Protocol

from flint import arb, fmpz

from optdp.errors import ProblemError
from optdp.numbers.exact import ball, precision
from optdp.work.account import spend

STEPS = 400_000  # the most terms of a closed form that are added one by one
WRITTEN_OUT = "laws of the sum"
DENOMINATOR_BITS = 100_000  # the longest common denominator of a law that a user writes


class Pmf(Protocol):
    """What the rest of optdp asks of a distribution on `0..last`."""

    @property
    def last(self) -> int: ...

    @property
    def mode(self) -> int:
        """A likeliest value, or one next to it."""

    def balls(self, first: int, last: int) -> list[arb]:
        """Enclosures of the probabilities of `first..last`; zero outside `0..self.last`."""

    def geometric_sum(self, edge: int, q: arb, upwards: bool) -> arb:
        """`sum over x beyond edge of Pr[x] q^|x - edge|`, beyond meaning `x > edge` (upwards) or `x < edge`."""

    def power_mean(self, q: arb) -> arb:
        """`E[q^X]`: what geometric tails see of the distribution."""


@dataclass(frozen=True)
class ExactPmf:
    """Weights over a common denominator; they sum to it exactly."""

    weights: tuple[int, ...]
    denominator: int

    @staticmethod
    def from_fractions(values: Sequence[Fraction]) -> ExactPmf:
        denominator = common_denominator(values)
        return ExactPmf(tuple(int(value * denominator) for value in values), denominator)

    @property
    def last(self) -> int:
        return len(self.weights) - 1

    @property
    def mode(self) -> int:
        return max(range(len(self.weights)), key=self.weights.__getitem__)

    def fraction(self, x: int) -> Fraction:
        return Fraction(self.weights[x], self.denominator) if 0 <= x <= self.last else Fraction(0)

    def shifted(self, by: int, last: int) -> ExactPmf:
        """The distribution of `X + by`, stated on `0..last`."""
        weights = (0,) * by + self.weights + (0,) * (last - by - self.last)
        return ExactPmf(weights, self.denominator)

    def balls(self, first: int, last: int) -> list[arb]:
        spend((last - first + 1) * self._steps, WRITTEN_OUT)
        scale = arb(1) / arb(fmpz(self.denominator))
        return [
            arb(fmpz(self.weights[x])) * scale if 0 <= x <= self.last and self.weights[x] else arb(0)
            for x in range(first, last + 1)
        ]

    def geometric_sum(self, edge: int, q: arb, upwards: bool) -> arb:
        total = arb(0)
        near = max(edge, -1) if upwards else min(edge, self.last + 1)
        inputs = range(self.last, near, -1) if upwards else range(0, near)
        spend(len(inputs) * self._steps, WRITTEN_OUT)
        for x in inputs:  # Horner, from the far end towards the edge
            total = (total + arb(fmpz(self.weights[x]))) * q
        return total * q ** abs(edge - near) / arb(fmpz(self.denominator))

    @cached_property
    def _steps(self) -> float:
        """What one of the weights takes."""
        return 2 + self.denominator.bit_length() / 5000

    def power_mean(self, q: arb) -> arb:
        spend(len(self.weights) * self._steps, WRITTEN_OUT)
        total = arb(0)
        for weight in reversed(self.weights):
            total = total * q + arb(fmpz(weight))
        return total / arb(fmpz(self.denominator))


@dataclass(frozen=True)
class BinomialPmf:
    """`shift + Bin(n, p)` stated on `0..last`, never written out as a whole."""

    n: int
    p: Fraction
    shift: int
    last: int

    @property
    def mode(self) -> int:
        return int(self.n * self.p) + self.shift

    def _at(self, k: int) -> arb:
        n, p = arb(self.n), ball(self.p)
        log_choose = (n + 1).lgamma() - arb(k + 1).lgamma() - arb(self.n - k + 1).lgamma()
        return (log_choose + k * p.log() + (self.n - k) * (1 - p).log()).exp()

    @cached_property
    def _odds(self) -> Fraction:
        return self.p / (1 - self.p)

    def balls(self, first: int, last: int) -> list[arb]:
        low, high = max(first - self.shift, 0), min(last - self.shift, self.n)
        if low > high:
            return [arb(0)] * (last - first + 1)
        spend(last - first + 2 * (high - low), WRITTEN_OUT)
        odds = ball(self._odds)
        with precision(448):  # the logarithms of huge factorials cancel, and the recursion loses a bit a step
            values = [self._at(low)]
            for k in range(low, high):
                values.append(values[-1] * odds * (self.n - k) / (k + 1))
        before = low + self.shift - first
        return [arb(0)] * before + values + [arb(0)] * (last - first + 1 - before - len(values))

    def geometric_sum(self, edge: int, q: arb, upwards: bool) -> arb:
        """Beyond the mode the terms fall ever faster, so that a geometric series bounds the rest."""
        step = 1 if upwards else -1
        k = edge - self.shift + step
        k = max(k, 0) if upwards else min(k, self.n)
        if not 0 <= k <= self.n:
            return arb(0)
        total, odds, steps = arb(0), ball(self._odds), 0
        leaning = odds * q if upwards else odds / q
        ahead = (self.n * leaning / (1 + leaning) - k) * step  # until there the terms only grow
        if ahead > STEPS:
            raise self._far(edge)
        spend(100, WRITTEN_OUT)
        term = self._at(k) * q ** abs(k + self.shift - edge)
        while 0 <= k <= self.n:
            total += term
            ratio = (q * odds * (self.n - k) / (k + 1)) if upwards else (q * k / (odds * (self.n - k + 1)))
            steps += 1
            if steps % 1000 == 0:
                spend(4000, WRITTEN_OUT)
            if steps > STEPS:
                raise self._far(edge)
            if ratio < 1 and term < total * arb(2) ** -400:
                rest = term * ratio / (1 - ratio)
                return total + rest * arb(0.5, 0.5)
            term *= ratio
            k += step
        return total

    def _far(self, edge: int) -> ProblemError:
        return ProblemError(
            f"A sum over {self.n:,} people must start near the likely values. Found {edge:,}, too far away."
        )

    def power_mean(self, q: arb) -> arb:
        p = ball(self.p)
        return q**self.shift * (1 - p + p * q) ** self.n


def common_denominator(values: Sequence[Fraction]) -> int:
    """The least common denominator; refused if it is so long that exact arithmetic would take forever."""
    denominator = 1
    for value in values:
        denominator = lcm(denominator, value.denominator)
        if denominator.bit_length() > DENOMINATOR_BITS:
            raise ProblemError(
                f"Probabilities must have a common denominator of at most {DENOMINATOR_BITS:,} bits. "
                "Found a longer one. Write decimals of one length."
            )
    return denominator


def excess_over_one(values: Sequence[Fraction]) -> Fraction:
    """How far `values` are from summing to one (signed)."""
    denominator = common_denominator(values)
    return Fraction(sum(value.numerator * (denominator // value.denominator) for value in values), denominator) - 1
