"""Samplers of a party's share of noise: the law, cell by cell and by chance, and where they stop."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from optdp import ProblemError, SharedNoise
from optdp.export import export
from optdp.export.subject import of_table
from optdp.mechanism.cuts import END, LIMBS
from optdp.numbers.exact import precision
from tests.export.languages import LANGUAGES, Draw, fresh_releases, load, run
from tests.export.shares import shares
from tests.export.test_samplers import PROGRAMS, changed, p_value


def law(share: SharedNoise, x: int, far: int = 80) -> dict[int, Fraction]:
    """`Pr[s|x]` as `SharedNoise` defines it, in floating point."""
    centre = share.factor * x
    with precision():
        found = {s: Fraction(float(share.probability(x, s))) for s in range(centre - far, centre + far + 1)}
    assert 0.999999 < sum(found.values()) < 1.000001
    return found


CASES = [("small", 5), ("table alone", 3), ("solved", 2)]


@pytest.mark.parametrize("language", PROGRAMS)
def test_many_draws_follow_the_law(language: str, tmp_path: Path) -> None:
    for name, x in CASES:
        share = shares()[name]
        export(share, language, tmp_path)
        drawn = Counter(map(int, run(*PROGRAMS[language](tmp_path), x, 100_000).stdout.split()))
        assert drawn.total() == 100_000
        assert p_value(drawn, law(share, x)) > 1e-6, (name, x)


def test_many_draws_of_the_database_follow_the_law(tmp_path: Path) -> None:
    name, x = CASES[0]
    drawn = fresh_releases(shares()[name], x, 100_000, tmp_path)
    assert None not in drawn
    assert p_value(drawn, law(shares()[name], x)) > 1e-6


def test_the_test_of_the_law_can_fail() -> None:
    share = shares()["small"]
    wrong = Counter(replace(share, beta=Fraction(3, 5)).sample(5, 100_000, seed=1))
    assert p_value(wrong, law(share, 5)) < 1e-6


def test_the_reports_of_all_parties_add_up_to_geometric_noise(tmp_path: Path) -> None:
    """Three thirds of the noise, drawn by samplers, against the closed form of the whole."""
    share = shares()["plain"]
    assert share.beta == Fraction(1, 3)
    (path,) = export(share, "python", tmp_path)
    drawn = load(path)["release_many"]([2] * 150_000)
    sums = Counter(sum(three) - 6 for three in zip(drawn[::3], drawn[1::3], drawn[2::3], strict=True))
    q = share.q.limit_denominator(10**9)
    assert p_value(sums, {e: (1 - q) / (1 + q) * q ** abs(e) for e in range(-60, 61)}) > 1e-6


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_small_denominators(language: str, tmp_path: Path) -> None:
    """2^14 cells of the row, then of the contraction, the noise being fixed: the counts are the weights."""
    share, x = shares()["small"], 5
    assert (share.denominator, share.contraction_denominator) == (1 << 14, 1 << 14)
    row, contracted, noise = share.row(x), share.contracted(x), share.drawing.noise
    assert row is not None
    assert noise is not None
    assert min(len(row), len(contracted)) > 3
    assert all(share.outputs[0] <= share.factor * y <= share.outputs[1] for y, _ in contracted)
    cells = [cell << 48 for cell in range(1 << 14)]
    inside = [(x, {0: 0, 1: 0, 2: END // 3, 3: u}) for u in cells]
    far, down = noise.digits[0].first[49] + 1, END - 1  # the size 50, and a minus before it
    outside = [(x, {0: down, 1: far, 2: u + (1 << 48) - 1, 3: 0}) for u in cells]
    drawn = [d.released for d in LANGUAGES[language](share, [*inside, *outside], tmp_path)]
    assert Counter(drawn[: 1 << 14]) == dict(row)
    assert Counter(drawn[1 << 14 :]) == {share.factor * y - 50: weight for y, weight in contracted}


@pytest.mark.parametrize("language", LANGUAGES)
def test_beyond_the_last_cut_nothing_is_released(language: str, tmp_path: Path) -> None:
    """Whatever the input and the other words; a little below, there is a report again."""
    for name in ("plain", "small", "wide"):
        share, chance = shares()[name], random.Random(name)
        slots, last = share.drawing.slots, LIMBS - 1
        draws: list[Draw] = []
        for below in (0, 1):
            for x in range(share.last + 1):
                words = {place: chance.getrandbits(62) for place in range(slots)}
                words |= {1 + slots * j: END - 1 - below * (j == last) * (3 << 30) for j in range(LIMBS)}
                draws.append((x, words))
        found = [d.released for d in LANGUAGES[language](share, draws, tmp_path / name)]
        half = share.last + 1
        assert found[:half] == [None] * half
        assert None not in found[half:]
        noise = share.drawing.noise
        assert noise is not None
        assert all(abs(s) > len(noise.digits[0].places) // 2 for s in found[half:] if s is not None)


def test_words_of_a_restart_do_not_decide_a_share(tmp_path: Path) -> None:
    """A share has a memory: words at the places where a digit would start again are not looked at."""
    share = shares()["plain"]
    slots, limbs = share.drawing.slots, share.drawing.limbs
    words = dict.fromkeys(range(slots), 5) | {1 + slots * j: END - 1 for j in range(LIMBS)}
    more = words | {slots * limbs + place: 7 for place in range(3 * limbs)}
    for language, drawn in LANGUAGES.items():
        assert [d.released for d in drawn(share, [(2, words), (2, more)], tmp_path / language)] == [None, None]


def test_a_changed_integer_fails_the_self_test(tmp_path: Path) -> None:
    share = shares()["small"]
    (path,) = export(share, "python", tmp_path)
    assert load(path)["self_test"]() == of_table(share).artifact.sha256
    for text in changed(path.read_text(), 60):
        path.write_text(text)
        with pytest.raises((RuntimeError, SyntaxError)):
            load(path)["self_test"]()
    (path,) = export(share, "sql", tmp_path)
    for text in changed(path.read_text(), 30):
        base = sqlite3.connect(":memory:")
        try:
            base.executescript(text)
            assert base.execute("SELECT * FROM optdp_self_test").fetchall()
        except sqlite3.Error:
            pass
        finally:
            base.close()


def test_noise_that_is_too_wide_is_refused(tmp_path: Path) -> None:
    wide = SharedNoise(3, 1 - Fraction(1, 1000), Fraction(1, 2))
    for language in ("python", "c", "js", "sql"):
        with pytest.raises(ProblemError, match=r"may have 131,072 cuts.*Found 172,50"):
            export(wide, language, tmp_path)
    assert not list(tmp_path.iterdir())
