"""The procedure of a draw: which words it looks at, and what it makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from optdp import NoiseMatrix, Source
from optdp.mechanism import columns, cuts
from optdp.mechanism.cuts import WORD
from optdp.numbers.exact import geometric_ratio, precision

Q = geometric_ratio(Fraction(3, 10))
ROWS = (((0, 8),), ((0, 1), (1, 6), (2, 1)), ((1, 3), (2, 5)))
SMALL = NoiseMatrix((0, 2), (0, 2), 8, ROWS, Q, "error", 2)
FINE = NoiseMatrix((0, 0), (0, 1), 2**100, (((0, 2**50 + 1), (1, 2**100 - 2**50 - 1)),), None, "error", 0)
TOP = 2**WORD - 1


def recorder(words: dict[int, int], fill: int = 0) -> tuple[Callable[[int], int], list[int]]:
    asked: list[int] = []

    def word(place: int) -> int:
        asked.append(place)
        return words.get(place, fill)

    return word, asked


def test_noise_that_leaves_the_table_is_released() -> None:
    drawing = SMALL.drawing
    digit = drawing.noise.digits[0].first if drawing.noise else ()
    five = digit[4] + 1  # just above the cut of 5
    assert drawing.slots == 3
    assert drawing.draw(1, recorder({0: 0, 1: five})[0]) == 1 + 5
    assert drawing.draw(1, recorder({0: TOP, 1: five})[0]) == 1 - 1 - 5


def test_noise_that_stays_is_replaced_by_the_row() -> None:
    drawing = SMALL.drawing
    eighth = 1 << (WORD - 3)
    releases = [drawing.draw(1, recorder({0: 0, 1: 0, 2: k * eighth})[0]) for k in range(8)]
    assert releases == [0, 1, 1, 1, 1, 1, 1, 2]


def test_the_last_digit_starts_again_at_the_places_that_are_said() -> None:
    drawing = SMALL.drawing
    assert drawing.noise is not None
    (digit,) = drawing.noise.digits
    seven = digit.first[6] + 1
    word, asked = recorder({0: 0, 1: TOP, 12: TOP, 16: seven}, fill=TOP)
    assert drawing.limbs == 4
    assert drawing.draw(2, word) == 2 + 2 * len(digit.places) + 7
    ties = {1 + 3 * j for j in (1, 2, 3)} | {12 + j for j in (1, 2, 3)}  # the first word of the last cut is all ones
    assert set(asked) == {0, 1, 12, 16} | ties


def test_a_tie_looks_at_the_next_words_of_its_slot_alone() -> None:
    drawing = FINE.drawing
    assert (drawing.slots, drawing.limbs) == (1, 2)
    cut = drawing.rows[0].places[0]
    for second, released in ((cut[1] - 1, 0), (cut[1], 1)):
        word, asked = recorder({0: cut[0], 1: second})
        assert drawing.draw(0, word) == released
        assert set(asked) == {0, 1}


class Chosen(Source):
    """Words of 62 bits in their order, each as the upper bits of a word of 64; then secure ones."""

    def __init__(self, words: list[int]) -> None:
        super().__init__()
        self.rest = list(words)

    def words(self, size: int) -> np.ndarray:
        given, self.rest = self.rest[:size], self.rest[size:]
        more = super().words(size - len(given))
        return np.concatenate([np.array([word << 2 for word in given], dtype=np.uint64), more])


@pytest.mark.parametrize("outside", ["clamp", "geometric"])
@pytest.mark.parametrize("longest", [4, 2048])
def test_arrays_draw_as_single_draws_do(outside: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words give the same releases, ties and new starts among them."""
    monkeypatch.setattr(cuts, "LONGEST", longest)
    matrix = NoiseMatrix((1, 3), (0, 2), 8, ROWS, Q, outside, 5)  # type: ignore[arg-type]
    drawing = matrix.drawing
    assert drawing.noise is not None
    rng = np.random.default_rng(5)
    inputs = rng.integers(0, 6, 400)
    table = [*drawing.noise.sign.first, *(mark for digit in drawing.noise.digits for mark in digit.first), 0]
    words = [
        [int(rng.integers(2**62)) if rng.random() < 0.8 else int(rng.choice(table)) for _ in range(drawing.slots)]
        for _ in inputs
    ]
    flat = [word for row in words for word in row]
    decided = 0
    released = columns.many(drawing, inputs, Chosen(flat))
    for x, row, found in zip(inputs.tolist(), words, released.tolist(), strict=True):
        asked: list[int] = []

        def word(place: int, row: list[int] = row, asked: list[int] = asked) -> int:
            asked.append(place)
            return row[place] if place < len(row) else 0

        single = drawing.draw(x, word)
        if max(asked) < drawing.slots:
            decided += 1
            assert single == found
    assert 50 < decided < 400


@pytest.mark.parametrize("longest", [4, 2048])
def test_wide_noise_follows_its_law(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "LONGEST", longest)
    q, size = Fraction(9, 10), 200_000
    matrix = NoiseMatrix((0, 0), (0, 0), 1, (((0, 1),),), q, "geometric", 1)
    draws = Counter(matrix.sample(1, size, seed=11))
    with precision():
        cells = [(float(matrix.probability(1, s)), draws[s]) for s in range(-40, 42)]
    rest = (1 - sum(p for p, _ in cells), size - sum(n for _, n in cells))
    expected, seen = zip(*[*cells, rest], strict=True)
    assert chisquare(seen, [size * p for p in expected]).pvalue > 1e-6


@pytest.mark.parametrize("x", [0, 1, 2])
def test_few_draws_are_the_first_of_many(x: int) -> None:
    assert SMALL.sample(x, 50, seed=9) == SMALL.sample(x, 500, seed=9)[:50]
