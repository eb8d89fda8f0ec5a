"""Laws on the integers, and polynomials, which multiply where independent numbers add.

Weights and priors are integers over common denominators, and sums and products of them are exact. Products of many
reports would become too long: they are enclosed by two integers over one denominator, one not above the truth and one
not below. Every term is positive, so that enclosures stay as narrow as their terms. Polynomials are multiplied as two
long integers (Kronecker), in decimal if those are very long.

**Very long laws** are of numbers that span thousands of binary orders: two integers and an exponent, with the truth
between them. `(low, high, e)` says `low 2^e <= truth <= high 2^e`. Every truth is at least 0, so that sums and products
keep their ends, and each step rounds `low` down and `high` up. Integers are cut to `WIDTH` bits and more: a step widens
an enclosure by less than `2^(2-WIDTH)` of its value. Steps are counted in millions, and what is left is right to more
than GUARD bits.

**A binomial law** has `b(k) = C(n,k) f1^k f0^(n-k)`, up to a factor that does not matter:

    b(k+1) / b(k) = (n-k) f1 / ((k+1) f0).

That falls with `k`. So `b` rises to its mode and falls after it, and what lies beyond some `B` after the mode is at
most `b(B) r / (1-r)`, with `r < 1` this quotient at `B`; the same from the mode downwards, with the inverse quotients.
We begin with 1 at the mode. All that is cut off on a side stands as one number `(0, bound, e)` next to the last that is
kept: nearer to the mode than it was, and with 0 as its lower end.
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

    def at(self, x: int) -> tuple[int, int]:
        """The probability of `x` of an exact law, its integer and the unit."""
        return (self.below[x - self.first] if 0 <= x - self.first < len(self.below) else 0), self.unit

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


Number = tuple[int, int, int]
WIDTH = GUARD + 64
CUT = 4 * GUARD
"""What is below `2^-CUT` of the largest may be cut off."""
ZERO: Number = (0, 0, 0)


# ---------------------------------------------------------------------- very long laws


@dataclass(frozen=True)
class Wide:
    """A law on the integers from `first`, times the number `unit`."""

    first: int
    numbers: Sequence[Number]
    unit: Number

    def shifted(self, by: int) -> Wide:
        return Wide(self.first + by, self.numbers, self.unit)


def trimmed(low: int, high: int, e: int) -> Number:
    """The same in about WIDTH bits."""
    spare = high.bit_length() - WIDTH
    if spare <= 64:
        return low, high, e
    return low >> spare, -(-high >> spare), e + spare


def added(terms: Sequence[Number]) -> Number:
    """Their sum."""
    if len(terms) == 1:
        return terms[0]
    top = max((high.bit_length() + e for _, high, e in terms if high), default=0)
    base, below, above = top - WIDTH - 64, 0, 0
    for low, high, e in terms:
        if not high:
            continue
        shift = e - base
        if shift >= 0:
            below += low << shift
            above += high << shift
        else:
            below += low >> -shift
            above -= -high >> -shift
    return below, above, base


def times(number: Number, top: int, bottom: int) -> Number:
    """`number top / bottom`."""
    low, high, e = number
    low, high = low * top, high * top
    spare = high.bit_length() - bottom.bit_length() - WIDTH
    if spare < 0:  # keep as many bits as there were
        low, high, e = low << -spare, high << -spare, e + spare
    return trimmed(low // bottom, -(-high // bottom), e)


def powers(q: Fraction, last: int) -> list[Number]:
    """`q^0 .. q^last`."""
    spend(4 * last, WIDTH + q.denominator.bit_length())
    found: list[Number] = [(1 << WIDTH, 1 << WIDTH, -WIDTH)]
    for _ in range(last):
        found.append(times(found[-1], q.numerator, q.denominator))
    return found


def widened(law: Law) -> Wide:
    """An exact law."""
    spend(len(law.below), law.unit.bit_length())
    return Wide(law.first, [trimmed(weight, weight, 0) for weight in law.below], trimmed(law.unit, law.unit, 0))


def binomial(n: int, f0: int, f1: int, kept: range | None) -> Wide:
    """Of `n` people with `Pr[1] = f1 / (f0 + f1)`, neither 0: all counts, or `kept` and those that matter at all."""
    mode = min(n, (n + 1) * f1 // (f0 + f1))
    size = 2 * WIDTH + 2 * (f0 + f1).bit_length()
    sides = []
    for up in (True, False):
        numbers: list[Number] = [(1 << WIDTH, 1 << WIDTH, -WIDTH)]
        k, end = mode, n if up else 0
        while k != end:
            spend(4, size)
            top, bottom = ((n - k) * f1, (k + 1) * f0) if up else (k * f0, (n - k + 1) * f1)
            here = numbers[-1]
            needed = kept is None or (k < kept[-1] if up else k > kept[0])
            if not needed and here[1].bit_length() + here[2] < -CUT and top < bottom:
                numbers.append(times((0, here[1], here[2]), top, bottom - top))
                break
            numbers.append(times(here, top, bottom))
            k += 1 if up else -1
        sides.append(numbers)
    above, below = sides
    numbers = below[:0:-1] + above
    return Wide(mode - len(below) + 1, numbers, added(numbers))


def largest_quotient(one: Sequence[Number], other: Sequence[Number]) -> Fraction | None:
    """At least 1 and every `one / other`; None if it is not proved to be finite, or larger than anybody would claim."""
    best, place = 1, 0  # best 2^place
    spend(2 * len(one), 4 * WIDTH)
    for (_, a, e), (b, _, f) in zip(one, other, strict=True):
        if not a:
            continue
        if b <= 0:
            return None
        bits = max(0, WIDTH + b.bit_length() - a.bit_length())
        found, at = -((-a << bits) // b), e - f - bits
        if at < -MOST_BITS:
            continue  # `found` has fewer bits than that: it is below 1
        if at > MOST_BITS:
            return None
        if (found << max(0, at - place)) > (best << max(0, place - at)):
            best, place = found, at
    return Fraction(best << max(0, place), 1 << max(0, -place))
