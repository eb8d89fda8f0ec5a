"""Laws on the integers, and polynomials, which multiply where independent numbers add.

Weights and priors are integers over common denominators, and sums and products of them are exact. Products of many
reports would become too long: they are enclosed by two integers over one denominator, one not above the truth and one
not below. Every term is positive, so that enclosures stay as narrow as their terms. Polynomials are multiplied as two
long integers (Kronecker), in decimal if those are very long.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .verdict import GUARD, MOST_BITS, must, spend

_PRINTED = 4000
"""Python prints and reads integers of so many digits, whatever its settings."""
_INEXACT = [decimal.Inexact, decimal.Rounded, decimal.InvalidOperation, decimal.Overflow, decimal.Subnormal]


@dataclass(frozen=True)
class Law:
    """Enclosures of a law on the integers from `first`: `below[k]/unit <= Pr[first + k] <= above[k]/unit`.

    Exact if both are the same list.
    """

    first: int
    below: Sequence[int]
    above: Sequence[int]
    unit: int

    def shifted(self, by: int) -> Law:
        return Law(self.first + by, self.below, self.above, self.unit)

    @property
    def exact(self) -> bool:
        return self.below is self.above

    def items(self) -> Iterator[tuple[int, int]]:
        """The possible values and their integers, of an exact law."""
        return ((x, weight) for x, weight in enumerate(self.below, start=self.first) if weight)

    def moment(self, power: int) -> Fraction:
        """An upper bound of the mean of `|value|^power`."""
        return Fraction(sum(w * abs(k) ** power for k, w in enumerate(self.above, start=self.first)), self.unit)


def exact_law(weights: Sequence[int], unit: int, first: int = 0) -> Law:
    return Law(first, weights, weights, unit)


POINT = exact_law([1], 1)


def common_unit(law: Sequence[Fraction], name: str) -> int:
    unit = 1
    for value in law:
        unit = math.lcm(unit, value.denominator)
        must(unit.bit_length() <= MOST_BITS, f"{name} must have a common denominator below 2^{MOST_BITS}", law[:2])
    spend(len(law), unit.bit_length())
    return unit


def integer_law(law: Sequence[Fraction]) -> Law:
    unit = common_unit(law, "a law")
    return exact_law([value.numerator * (unit // value.denominator) for value in law], unit)


def powered(f: Sequence[int], n: int) -> list[int]:
    """The coefficients of `f(z)^n = g(z)`, `f(0) != 0`: `f g' = n f' g` gives them one after the other."""
    d = len(f) - 1
    spend(n * d * d, n * sum(f).bit_length())
    g = [f[0] ** n]
    for k in range(1, n * d + 1):
        total = sum(((n + 1) * i - k) * f[i] * g[k - i] for i in range(1, min(d, k) + 1) if f[i])
        g.append(total // (k * f[0]))
    return g


def divided(product: Sequence[int], f: Sequence[int]) -> list[int]:
    """The coefficients of `product(z) / f(z)`, a polynomial with integer coefficients, `f(0) != 0`."""
    spend(len(product) * len(f), product[0].bit_length() + max(product).bit_length())
    g: list[int] = []
    for k in range(len(product) - len(f) + 1):
        known = sum(f[i] * g[k - i] for i in range(1, min(len(f) - 1, k) + 1) if f[i])
        g.append((product[k] - known) // f[0])
    return g


def multiplied(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The product of two polynomials with coefficients of at least 0, as one product of two long numbers."""
    if len(a) == 1 or len(b) == 1:
        return [x * y for x in a for y in b]
    bits = (sum(a) * max(b)).bit_length()
    digits = bits * 30103 // 100000 + 1
    if digits <= _PRINTED and min(len(a), len(b)) * digits > 10_000:
        return _multiplied_in_decimal(a, b, digits)
    width = bits // 8 + 1
    short, long = sorted((len(a) * width // 4 + 1, len(b) * width // 4 + 1))
    spend(long // short + 1, 30 * 2000 * 3 ** (short // 70).bit_length())  # Karatsuba's method
    x, y = (int.from_bytes(b"".join(v.to_bytes(width, "little") for v in values), "little") for values in (a, b))
    size = len(a) + len(b) - 1
    data = (x * y).to_bytes(size * width, "little")
    return [int.from_bytes(data[k : k + width], "little") for k in range(0, size * width, width)]


def _multiplied_in_decimal(a: Sequence[int], b: Sequence[int], digits: int) -> list[int]:
    """The same with so many decimal digits for each coefficient: `decimal` multiplies long numbers in less time.

    No coefficient of the product is longer. With room for all digits the product is exact; were it not, that would be
    an error.
    """
    size = len(a) + len(b) - 1
    spend(size * digits // 4 + 1, 0)
    context = decimal.Context(prec=size * digits + 1, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=_INEXACT)
    x, y = (context.create_decimal("".join([f"{value:0{digits}d}" for value in values])) for values in (a, b))
    text = f"{context.multiply(x, y):f}".rjust(size * digits, "0")
    return [int(text[k : k + digits]) for k in range(0, size * digits, digits)]


def convolved(one: Law, other: Law) -> Law:
    """The law of the sum of two independent numbers."""
    below = multiplied(one.below, other.below)
    above = below if one.exact and other.exact else multiplied(one.above, other.above)
    return Law(one.first + other.first, below, above, one.unit * other.unit)


def shortened(law: Law, relative: bool) -> Law:
    """The law over a power of two, if that is shorter: each value right to GUARD bits, or all to `2^-(GUARD/2)`."""
    bits = GUARD // 2
    if relative:
        bits = GUARD + law.unit.bit_length() - min((w for w in law.below if w), default=law.unit).bit_length()
    if bits + 64 > law.unit.bit_length():
        return law
    spend(2 * len(law.above), law.unit.bit_length() * 2)
    below = [(w << bits) // law.unit for w in law.below]
    above = [-((-w << bits) // law.unit) for w in law.above]
    return Law(law.first, below, above, 1 << bits)
