"""Small tables of every shape, and their laws from the definition, in fractions."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random

from optdp import NoiseMatrix

SPAN = 60
"""How far noise is written out; with q at most 3/5 less than 1e-13 is left."""


def row(random: Random, low: int, high: int, bits: int = 10) -> tuple[tuple[int, int], ...]:
    """A random row without zeros."""
    weights = [random.choice([1, random.randint(1, 8), random.randint(1, 60)]) for _ in range(low, high + 1)]
    weights[random.randrange(len(weights))] += (1 << bits) - sum(weights)
    return tuple(zip(range(low, high + 1), weights, strict=True))


def table(seed: int) -> NoiseMatrix:
    """Table number `seed`: with a tail or none, rows for all inputs or some, outputs around them or beside them."""
    random = Random(seed)
    last = random.randint(2, 7)
    outside = ("error", "clamp", "geometric")[seed % 3]
    q = None if outside == "error" and seed % 2 else Fraction(random.randint(1, 3), 5)
    if outside == "clamp" and random.random() < 0.4:
        q = None
    first, final = (0, last) if outside == "error" else sorted((random.randint(0, last), random.randint(0, last)))
    low = random.randint(-2, 2) + first
    high = max(low, final + random.randint(-2, 2))
    rows = tuple(row(random, low, high) for _ in range(first, final + 1))
    return NoiseMatrix((first, final), (low, high), 1 << 10, rows, q, outside, last)


def law(matrix: NoiseMatrix, x: int) -> dict[int, Fraction]:
    """What comes out for `x`: noise first, and where it stays inside, the row. Cut off far away."""
    served = matrix.row(x)
    low, high = matrix.outputs
    if matrix.q is None:
        assert served is not None
        return {s: Fraction(weight, matrix.denominator) for s, weight in served}
    q, chances = matrix.q, dict.fromkeys(range(low, high + 1), Fraction(0))
    for s in range(min(low, 0) - SPAN, max(high, matrix.last) + SPAN + 1):
        mass = (1 - q) / (1 + q) * q ** abs(s - x)
        if served is None or not low <= s <= high:
            chances[s] = chances.get(s, Fraction(0)) + mass
        else:
            for output, weight in served:
                chances[output] += mass * Fraction(weight, matrix.denominator)
    return chances


def neighbours(matrix: NoiseMatrix, largest: int) -> Iterator[tuple[dict[int, Fraction], dict[int, Fraction]]]:
    """The laws of all pairs of inputs at most `largest` apart, in both orders."""
    laws = [law(matrix, x) for x in range(matrix.last + 1)]
    for x, one in enumerate(laws):
        for y, other in enumerate(laws):
            if 0 < abs(x - y) <= largest:
                yield one, other


def divergence(one: dict[int, Fraction], other: dict[int, Fraction], factor: Fraction) -> Fraction:
    """The hockey-stick divergence."""
    return sum((max(Fraction(0), p - factor * other[s]) for s, p in one.items()), Fraction(0))


def logarithm(value: Fraction) -> Fraction:
    """Within 1e-45."""
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def exact_epsilon(matrix: NoiseMatrix, distance: int) -> Fraction:
    """The largest log-quotient of inputs at most so far apart, by looking at every output."""
    return logarithm(max(one[s] / other[s] for one, other in neighbours(matrix, distance) for s in one))
