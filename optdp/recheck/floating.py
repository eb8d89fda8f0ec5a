"""Numbers that span thousands of binary orders: two integers and an exponent, with the truth between them.

`(low, high, e)` says `low 2^e <= truth <= high 2^e`. Every truth is at least 0, so that sums and products keep their
ends, and each step rounds `low` down and `high` up. Integers are cut to `WIDTH` bits and more: a step widens an
enclosure by less than `2^(2-WIDTH)` of its value. Steps are counted in millions, and what is left is right to more than
GUARD bits.

**A binomial law** has `b(k) = C(n,k) f1^k f0^(n-k)`, up to a factor that does not matter:

    b(k+1) / b(k) = (n-k) f1 / ((k+1) f0).

That falls with `k`. So `b` rises to its mode and falls after it, and what lies beyond some `B` after the mode is at
most `b(B) r / (1-r)`, with `r < 1` this quotient at `B`; the same from the mode downwards, with the inverse quotients.
We begin with 1 at the mode. All that is cut off on a side stands as one number `(0, bound, e)` next to the last that is
kept: nearer to the mode than it was, and with 0 as its lower end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .laws import Law
from .verdict import GUARD, MOST_BITS, spend

Number = tuple[int, int, int]
WIDTH = GUARD + 64
CUT = 4 * GUARD
"""What is below `2^-CUT` of the largest may be cut off."""
ZERO: Number = (0, 0, 0)


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
