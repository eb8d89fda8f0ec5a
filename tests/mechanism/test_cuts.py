"""Cuts: against exact fractions, word by word, down to ties; the parts of geometric noise against its law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optdp import ProblemError
from optdp.mechanism import cuts
from optdp.mechanism.cuts import LIMBS, WORD, Cuts, NoiseCuts, of_noise, of_row

WHOLE = 2**WORD


def reader(words: Sequence[int], then: int = 0) -> Callable[[int], int]:
    """The given words, then the same word for ever."""
    return lambda j: words[j] if j < len(words) else then


def number(words: Sequence[int]) -> Fraction:
    return sum((Fraction(word, WHOLE ** (j + 1)) for j, word in enumerate(words)), Fraction(0))


def widths(found: Cuts) -> list[Fraction]:
    """The length of each cell between cuts, as the kept words have it."""
    ends = [Fraction(0), *map(number, found.places), Fraction(1)]
    return [b - a for a, b in pairwise(ends)]


@pytest.mark.parametrize("weights", [(8,), (1, 6, 1), (3, 0, 5), (128, 1, 127), (1,) * 64])
def test_a_row_is_its_table_over_all_words(weights: tuple[int, ...]) -> None:
    denominator = sum(weights)
    shift = WORD - denominator.bit_length() + 1
    found = of_row(weights, denominator)
    seen = Counter(found.index(reader([u << shift])) for u in range(denominator))
    assert [seen[k] for k in range(len(weights))] == list(weights)


@given(
    st.lists(st.integers(1, 2**70), min_size=1, max_size=6), st.lists(st.integers(0, WHOLE - 1), min_size=3, max_size=3)
)
def test_a_row_of_several_words_is_compared_as_a_number(parts: list[int], words: list[int]) -> None:
    weights = [*parts, 2**140 - sum(parts)]
    found = of_row(weights, 2**140)
    assert found.words == 3
    ends = [sum(weights[: k + 1]) for k in range(len(weights))]
    for tried in (words, [*found.places[0][:2], words[2]], list(found.places[0])):
        if tried[0] < WHOLE:
            assert found.index(reader(tried)) == sum(Fraction(end, 2**140) <= number(tried) for end in ends)


RATIOS = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(19, 20), max_denominator=2**64)


@settings(max_examples=60)
@given(RATIOS, st.lists(st.integers(0, WHOLE - 1), min_size=2, max_size=2))
def test_a_digit_counts_the_powers_above_a_number(q: Fraction, words: list[int]) -> None:
    """`G >= k` if and only if `1 - q^k <= U`."""
    (digit,) = of_noise(q).digits
    for first in ((words[0],), (words[0] % 7,), (digit.first[0],), (digit.first[-1],)):
        tried = [*first, words[1]]
        k = digit.index(reader(tried))
        assert k == len(digit.places) or number(tried) < 1 - q ** (k + 1)
        assert k == 0 or 1 - q**k <= number(tried)


@pytest.mark.parametrize("q", [Fraction(2, 3), Fraction(1, 2), Fraction(7, 8), Fraction(123456789, 2**32)])
def test_ties_are_decided_by_further_words(q: Fraction) -> None:
    noise = of_noise(q)
    count = len(noise.digits[0].places)
    exact_cuts = [1 - q ** (k + 1) for k in range(count)]
    for k in (0, 1, 2, count // 2, count - 1):
        exact, place = exact_cuts[k], noise.digits[0].places[k]
        for known in (1, 2, LIMBS, LIMBS + 2):
            start = int(exact * WHOLE**known)
            for next_word in (0, int(exact * WHOLE ** (known + 1)) % WHOLE, WHOLE - 1):
                value = start * WHOLE + next_word
                words = [value // WHOLE ** (known - j) % WHOLE for j in range(known + 1)]
                assert words[: min(known, LIMBS)] == list(place[: min(known, LIMBS)])
                found = noise.digits[0].index(reader(words, then=1))
                drawn = number(words)
                assert found == sum(cut <= drawn for cut in exact_cuts)


def laplace(q: Fraction, e: int) -> Fraction:
    return (1 - q) / (1 + q) * q ** abs(e)


def law(noise: NoiseCuts) -> dict[int, Fraction]:
    """The law of the noise as the kept words have it, without the draws that start again."""
    found: Counter[int] = Counter()
    negative = widths(noise.sign)
    ends = [len(digit.places) for digit in noise.digits]
    cells = [widths(digit) for digit in noise.digits]
    for digits in product(*(range(end + 1) for end in ends)):
        if digits[-1] == ends[-1]:
            continue
        chance = Fraction(1)
        for cell, digit in zip(cells, digits, strict=True):
            chance *= cell[digit]
        size = sum(digit * noise.base**i for i, digit in enumerate(digits))
        found[size] += chance * negative[0]
        found[-1 - size] += chance * negative[1]
    return found


@pytest.mark.parametrize("q", [Fraction(1, 3), Fraction(1, 2), Fraction(14, 15), Fraction(2**40 - 1, 2**60)])
@pytest.mark.parametrize("longest", [2, 6, 2048])
def test_sign_and_digits_make_geometric_noise(q: Fraction, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every probability is the discrete Laplace law's but for what 248 bits cannot show."""
    monkeypatch.setattr(cuts, "LONGEST", longest)
    noise = of_noise(q)
    found = law(noise)
    assert set(found) == set(range(-noise.reach, noise.reach))
    for e, chance in found.items():
        assert abs(chance / laplace(q, e) - 1) <= noise.blur < Fraction(1, 2**100)
    beyond = 1 - sum(found.values())
    assert 0 < beyond < Fraction(1, 2**61)


def test_few_and_short_tables_for_every_ratio() -> None:
    for digits, q in (
        (1, Fraction(3, 4)),
        (2, Fraction(999, 1000)),
        (5, 1 - Fraction(1, 2**40)),
        (1, Fraction(1, 2**140)),
    ):
        noise = of_noise(q)
        assert len(noise.digits) == digits
        assert max(len(digit.places) for digit in noise.digits) <= cuts.LONGEST
    with pytest.raises(ProblemError, match="1-q"):
        of_noise(1 - Fraction(1, 2**80))
