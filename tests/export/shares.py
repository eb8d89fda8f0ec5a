"""Shares of noise of every sort that samplers must draw from alike."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from itertools import pairwise

from optdp import MultiLTE, Population, SharedNoise, solve
from optdp.mechanism.matrix import Row
from optdp.numbers.exact import geometric_ratio


def rows(count: int, places: tuple[int, int], bits: int, longest: int = 7) -> tuple[Row, ...]:
    """Rows of different lengths with random weights, tiny ones among them."""
    chance = random.Random(repr((count, places, bits)))
    found: list[Row] = []
    for i in range(count):
        marks = {chance.randrange(1, 1 << chance.randint(3, bits)) for _ in range(i % longest)}
        ends = [0, *sorted(marks), 1 << bits]
        where = sorted(chance.sample(range(places[0], places[1] + 1), len(ends) - 1))
        found.append(tuple(zip(where, (b - a for a, b in pairwise(ends)), strict=True)))
    return tuple(found)


@cache
def shares() -> dict[str, SharedNoise]:
    """By name; the last come from the solver, the others are made to be awkward."""
    half, third = Fraction(1, 2), Fraction(1, 3)
    office = Population.binomial(6, "0.5")
    solved = solve(MultiLTE((office, office), "1", method="divisible")).tables[0]
    assert isinstance(solved, SharedNoise)
    return {
        "plain": SharedNoise(9, geometric_ratio(Fraction("0.7")), third),
        "weighted": SharedNoise(9, Fraction(1, 2), half, -3),
        "contracted": SharedNoise(8, Fraction(3, 5), half, 1, rows(9, (0, 8), 16), 1 << 16),
        "small": SharedNoise(
            6, Fraction(1, 2), half, 2, rows(7, (0, 6), 14), 1 << 14, (1, 6), (-3, 15), 1 << 14, rows(6, (-3, 15), 14)
        ),
        "table alone": SharedNoise(
            7, Fraction(2, 5), third, -1, None, 1, (0, 5), (-9, 3), 1 << 62, rows(6, (-9, 3), 62)
        ),
        "long": SharedNoise(
            6, Fraction(4, 7), third, 1, rows(7, (0, 6), 62), 1 << 62, (0, 6), (-4, 9), 1 << 128, rows(7, (-4, 9), 128)
        ),
        "long contraction": SharedNoise(
            6, Fraction(1, 9), Fraction(2, 3), 1, rows(7, (0, 6), 300), 1 << 300, (0, 6), (0, 9), 8, rows(7, (0, 9), 3)
        ),
        "wide": SharedNoise(12, geometric_ratio(Fraction("0.03")), Fraction(1, 40), 1, rows(13, (0, 12), 62), 1 << 62),
        "whole": SharedNoise(
            6, Fraction(1, 2), Fraction(1), -2, rows(7, (0, 6), 62), 1 << 62, (1, 5), (-9, 3), 8, rows(5, (-9, 3), 3)
        ),
        "solved": solved,
    }
