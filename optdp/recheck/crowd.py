"""One entity with very many people: the same quotients as in `entity`, of laws that are enclosed and not written out.

The probability of an output of the table is a sum over inputs. Inputs that have a row (or get the nearest one) are
taken one by one. Those that get noise alone lie left of the table, `x < first`, or right of it, and `first <= s <=
final`:

    sum over x < first of Pr[x] G(s-x) = G(0) q^(s-first) sum over x < first of Pr[x] q^(first-x),

and the same on the right. The two sums on the right-hand side are formed input by input, from the far end: `a <- (a +
Pr[x]) q`. What was cut off from a law stands at the end that is nearer to the table than it was, with 0 as its lower
end, which keeps this an enclosure.

An input `x` beyond the outputs has `c(x) = q^d (1 - q^(high-low+1)) / (1+q)`, `d` its distance to the nearest output;
one among them has a `c(x)` of at least `G(0)`, for which the bits that `entity` gives to noise near the table suffice.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from .entity import Entity
from .floating import ZERO, Number, Wide, added, largest_quotient, powers, times, trimmed
from .geometric import tail_quotient
from .priors import Prior
from .verdict import must, spend


def kept(entity: Entity) -> range | None:
    """The inputs of which a law must not be cut; None if it must not be cut at all."""
    table = entity.table
    if table.outside == "clamp":  # the errors of far inputs grow
        return None
    return range(max(0, table.first - 1), min(entity.last, table.final + 1) + 1)


def crowd_quotient(entity: Entity, prior: Prior, every: bool) -> Fraction | None:
    """The largest quotient of two adjacent secrets: a step apart, or `every` two."""
    table, q, worst = entity.table, entity.table.q, Fraction(1)
    if q is None and all(row == table.rows[0] for row in table.rows):
        return worst  # what is released does not depend on the input
    sums = Released(entity)
    for laws in prior.wide_people(kept(entity)):
        if q is not None:
            worst = max(worst, tail_quotient(q, len(laws) - 1 if every else 1))
        columns = [sums.of(law) for law in laws]
        for i, j in combinations(range(len(laws)), 2):
            if every or j == i + 1:
                for one, other in ((columns[i], columns[j]), (columns[j], columns[i])):
                    found = largest_quotient(one, other)
                    if found is None:
                        return None
                    worst = max(worst, found)
    return worst


def crowd_mean(law: Wide, errors: list[int], first: int, alone: int) -> Fraction:
    """At least the mean of the errors, those of inputs from `first` on, and `alone` of all others."""
    spend(4 * len(law.numbers), 2 * max(errors, default=1).bit_length())
    terms = []
    for x, (_, high, e) in enumerate(law.numbers, start=law.first):
        error = errors[x - first] if 0 <= x - first < len(errors) else alone
        terms.append((0, high * error, e))
    _, high, e = added(terms)
    low, _, f = law.unit
    must(low > 0, "A law must have a sum", low)
    shift = e - f
    return Fraction(high << max(0, shift), low << max(0, -shift))


class Released:
    """`Pr[s]` of the outputs of a table, for one law of the input after the other."""

    def __init__(self, entity: Entity) -> None:
        self.entity, table = entity, entity.table
        self.powers: list[Number] = []
        if table.q is not None:
            q, size = table.q, table.high - table.low + 1
            far = max(table.low, entity.last - table.high, 0) if table.outside == "clamp" else 0
            self.powers = powers(q, max(size, far))
            self.centre = times(self.powers[0], q.denominator - q.numerator, q.denominator + q.numerator)
            low, high, e = self.powers[size]
            one = 1 << max(0, -e)
            must(e <= 0, "q must be below 1", str(q)[:40])
            self.part = times((one - high, one - low, e), q.denominator, q.denominator + q.numerator)

    def mass(self, x: int) -> Number:
        """`c(x)`."""
        table, noise = self.entity.table, self.entity.noise
        if noise is None:
            return 1, 1, 0
        if table.low <= x <= table.high or table.outside != "clamp":
            return trimmed(*self.entity.mass(x), -noise.bits)
        low, high, e = self.powers[max(table.low - x, x - table.high)]
        return trimmed(low * self.part[0], high * self.part[1], e + self.part[2])

    def of(self, law: Wide) -> list[Number]:
        """For each of the outputs, times the unit of the law."""
        table = self.entity.table
        rows: list[list[Number]] = [[] for _ in table.rows]
        spend(4 * table.entries + 20 * len(law.numbers), 1000)
        q = table.q or Fraction(0)
        left = ZERO
        for x, number in enumerate(law.numbers, start=law.first):
            i = table.served(x)
            if i is not None:
                low, high, e = self.mass(x)
                rows[i].append(trimmed(low * number[0], high * number[1], e + number[2]))
            elif x < table.first:
                left = times(added((left, number)), q.numerator, q.denominator)
        right = ZERO
        for x in range(law.first + len(law.numbers) - 1, table.final, -1):
            if table.served(x) is not None or x < law.first:
                break
            right = times(added((right, law.numbers[x - law.first])), q.numerator, q.denominator)
        sums = [added(row) if row else ZERO for row in rows]
        found = []
        for s in self.entity.outputs:
            places, weights = table.columns.get(s, ((), ()))
            terms = [(sums[i][0] * w, sums[i][1] * w, sums[i][2]) for i, w in zip(places, weights, strict=True)]
            for side, distance in ((left, s - table.first), (right, table.final - s)):
                if side[1]:
                    low, high, e = self.powers[distance]
                    low, high, e = trimmed(low * side[0], high * side[1], e + side[2])
                    unit = table.denominator
                    terms.append(trimmed(low * self.centre[0] * unit, high * self.centre[1] * unit, e + self.centre[2]))
            found.append(added(terms) if terms else ZERO)
        return found
