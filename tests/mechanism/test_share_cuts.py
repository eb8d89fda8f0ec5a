"""The cuts of a share of noise: against the convolution of two negative binomials, beyond the last kept cut too."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from flint import fmpz_poly
from mpmath import mpf
from scipy.stats import chi2

from optdp import ProblemError, SharedNoise, Source
from optdp.mechanism.columns import many
from optdp.mechanism.cuts import END, LIMBS, WORD, of_noise
from optdp.mechanism.share_cuts import BITS, MOST, fits, of_share
from optdp.numbers.exact import geometric_ratio, precision
from tests.mechanism.test_cuts import reader

LAWS = [
    (Fraction(1, 2), Fraction(1, 2)),
    (Fraction(1, 3), Fraction(3, 5)),
    (Fraction(2, 3), Fraction(1, 9)),
    (Fraction(1, 40), geometric_ratio(Fraction("0.4"))),
    (Fraction(7, 8), geometric_ratio(Fraction("0.25"))),
]
CELL = Fraction(1, 1 << BITS)


@cache
def beyond(beta: Fraction, q: Fraction, last: int) -> tuple[list[Fraction], Fraction]:
    """`Pr[|e| > k]` for `k = 0..last`, and how wrong that may be: the law of X - Y as the product of two polynomials.

    Both laws are cut off where less than 2^-520 is left, and rounded to multiples of 2^-600; products are exact.
    """
    end, bits = last + 2 + math.ceil(520 * math.log(2) / -math.log(q)), 600
    with mpmath.workprec(bits + 60):
        mass = mpmath.power(1 - mpf(q.numerator) / q.denominator, mpf(beta.numerator) / beta.denominator)
        first = int(mpmath.floor(mass * mpf(2) ** bits))
    law, term = [first], Fraction(first)
    for k in range(end - 1):
        term = Fraction(math.floor(term * q * (beta + k) / (k + 1)))
        law.append(int(term))
    product = fmpz_poly(law) * fmpz_poly(law[::-1])  # the coefficient of end - 1 + d belongs to X - Y = d
    masses = [Fraction(int(product[end - 1 + d]), 1 << (2 * bits)) for d in range(end)]
    assert 0 <= 1 - masses[0] - 2 * sum(masses[1:]) < Fraction(1, 1 << 500)
    tails = list(accumulate(2 * mass for mass in reversed(masses)))[::-1]
    return tails[1 : last + 2], Fraction(1, 1 << 500)


@pytest.mark.parametrize(("beta", "q"), LAWS)
def test_the_kept_words_are_those_of_the_law(beta: Fraction, q: Fraction) -> None:
    noise = of_share(beta, q)
    (size,) = noise.digits
    kept = [sum(word << (WORD * (LIMBS - 1 - j)) for j, word in enumerate(place)) for place in size.places]
    assert kept == sorted(kept)
    assert kept[-1] == (1 << BITS) - 1 > kept[-2]
    tails, error = beyond(beta, q, len(kept) - 1)
    for k, number in enumerate(kept):
        assert math.floor((1 - tails[k] - error) / CELL) == math.floor((1 - tails[k] + error) / CELL) == number, k
    assert size.finer is not None
    for k in (0, 1, len(kept) // 2, len(kept) - 1):
        assert size.finer(k, LIMBS) == kept[k]
        assert size.finer(k, 6) >> (2 * WORD) == kept[k]
    assert noise.sign.places == ((END // 2, 0, 0, 0),)


def test_further_words_decide_what_the_kept_ones_leave_open() -> None:
    """In the cells of cuts that have the same kept words, and in the last cell, where the law goes on for ever."""
    ones = (END - 1,) * LIMBS
    for beta, q in (LAWS[4], LAWS[2]):
        (size,) = of_share(beta, q).digits
        assert size.finer is not None
        size = replace(size, finer=cache(size.finer))
        doubled = [place for place, count in Counter(size.places[:-1]).items() if count > 1]
        assert bool(doubled) == (q > Fraction(1, 2)), "cuts closer than 2^-248 are the point"
        tails, error = beyond(beta, q, len(size.places) + 90)
        for place in (*doubled[:2],) if doubled else (ones, size.places[5]):
            for more in ((0,), (END // 2, 7), (END - END // 1000,)):
                words = (*place, *more, 0)
                left = 1 - sum(Fraction(word, END ** (j + 1)) for j, word in enumerate(words))
                assert all(abs(tail - left) > error for tail in tails)
                expected = sum(tail >= left for tail in tails)
                assert expected < len(tails)
                assert size.index(reader(words)) == expected, (place, more)
        if not doubled:
            assert size.index(reader((*ones, END - 2, 5))) > len(size.places)


def test_the_whole_noise_is_geometric() -> None:
    assert of_share(Fraction(1), Fraction(1, 3)).digits[0].places == of_noise(Fraction(1, 3)).digits[0].places


def test_a_draw_is_undecided_less_than_once_in_2_to_the_230() -> None:
    assert Fraction(MOST + 1, 1 << BITS) < Fraction(1, 1 << 230)


def test_noise_that_is_too_wide_is_drawn_without_cuts() -> None:
    noise = SharedNoise(3, 1 - Fraction(1, 1000), Fraction(1, 2), 2)
    assert not fits(noise.beta, noise.q)
    with pytest.raises(ProblemError, match=r"may have 131,072 cuts.*optdp aggregate"):
        noise.drawing  # noqa: B018
    drawn = noise.sample(3, 200, seed=4)
    assert drawn == noise.sample(3, 200, seed=4)
    assert len(set(drawn)) > 100
    assert noise.sample(3, 0) == []


ROWS = (((0, 1), (2, 7)), ((1, 8),), ((0, 3), (1, 3), (2, 2)))
SHARE = SharedNoise(2, Fraction(2, 3), Fraction(1, 2), -2, ROWS, 8, (0, 1), (-4, 2), 8, (((-4, 1), (2, 7)), ((0, 8),)))


def test_arrays_are_drawn_as_single_ones_are() -> None:
    """Numpy's path and the one by one: the same words, the same reports."""
    inputs = np.array([2, 0, 1, 1, 0, 2] * 50)
    drawing = SHARE.drawing
    assert drawing.slots == 4
    words = (Source(3).words(len(inputs) * 4) >> np.uint64(2)).reshape(-1, 4).tolist()
    single = [drawing.draw(x, own.__getitem__) for x, own in zip(inputs.tolist(), words, strict=True)]
    assert many(drawing, inputs, Source(3)).tolist() == single


@pytest.mark.parametrize("x", [0, 1, 2])
def test_the_library_draws_by_the_law(x: int) -> None:
    size = 100_000
    drawn = Counter(SHARE.sample(x, size, seed=20 + x))
    with precision():
        law = {s: float(SHARE.probability(x, s)) for s in range(-40, 41)}
    cells = [(drawn[s], size * p) for s, p in law.items() if size * p > 20]
    cells.append((size - sum(n for n, _ in cells), size - sum(e for _, e in cells)))
    statistic = sum((n - e) ** 2 / e for n, e in cells)
    assert chi2.sf(statistic, len(cells) - 1) > 1e-6
