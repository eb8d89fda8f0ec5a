"""Tables of every sort that samplers must draw from alike."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from itertools import pairwise

from optdp import NoiseMatrix, Population, SingleLTE, solve
from optdp.mechanism.matrix import Outside, Row
from optdp.numbers.exact import geometric_ratio


def table(
    inputs: tuple[int, int],
    outputs: tuple[int, int],
    bits: int,
    q: Fraction | None = None,
    outside: Outside = "error",
    last: int | None = None,
    longest: int = 9,
) -> NoiseMatrix:
    """Rows of different lengths with random weights, tiny ones among them."""
    chance = random.Random(repr((inputs, outputs, bits, q, outside)))
    rows: list[Row] = []
    for i in range(inputs[1] - inputs[0] + 1):
        length = [1, longest][i] if i < 2 else chance.randint(1, longest)
        marks = {chance.randrange(1, 1 << chance.randint(3, bits)) for _ in range(length - 1)}
        ends = [0, *sorted(marks), 1 << bits]
        places = sorted(chance.sample(range(outputs[0], outputs[1] + 1), len(ends) - 1))
        rows.append(tuple(zip(places, (b - a for a, b in pairwise(ends)), strict=True)))
    return NoiseMatrix(inputs, outputs, 1 << bits, tuple(rows), q, outside, inputs[1] if last is None else last)


@cache
def matrices() -> dict[str, NoiseMatrix]:
    """By name; the largest comes from the solver, the others are made to be awkward."""
    tiny = geometric_ratio(Fraction("0.001"))
    return {
        "bare": table((0, 2), (0, 8), 16),
        "tail": table((0, 2), (-3, 8), 16, Fraction(1, 2)),
        "clamped": table((2, 6), (-2, 11), 62, None, "clamp", 9),
        "clamped tail": table((2, 6), (1, 11), 62, geometric_ratio(Fraction(1)), "clamp", 9),
        "alone": table((3, 5), (0, 9), 62, geometric_ratio(Fraction("0.3")), "geometric", 12),
        "digits": table((1, 4), (-40, 60), 62, tiny, "geometric", 30, 40),
        "long": table((0, 3), (-5, 20), 100, tiny, "clamp", 7, 20),
        "longer": table((0, 3), (-5, 20), 400, Fraction(3, 4), "error", None, 20),
        "long and bare": table((0, 3), (0, 20), 100, None, "error", None, 20),
        "solved": solve(SingleLTE(Population.binomial(100, "0.1"), "0.3")).mechanism,
    }
