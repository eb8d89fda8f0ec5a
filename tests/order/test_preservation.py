"""Preservation: against all words of a few records, exact against enclosed laws, and simulation against both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import stats

from optdp.errors import ProblemError
from optdp.numbers.exact import geometric_ratio
from optdp.numbers.source import Source
from optdp.order import preservation
from optdp.order.preservation import (
    Leaving,
    hamming_failure,
    hamming_preservation,
    hamming_theta,
    kendall_failure,
    kendall_kept,
    kendall_preservation,
    kendall_theta,
)
from optdp.order.sampling import hamming_word
from tests.order.words import crossed, displaced

RATIOS = [Fraction(0), Fraction(1, 5), Fraction(9, 10), Fraction(1)]


def enumerated(chosen: Sequence[int], n: int, q: Fraction, distance: Callable[[Sequence[int]], int]) -> list[Fraction]:
    """The exact law of how many values at `chosen` places come from there."""
    weights = [Fraction(0)] * (len(chosen) + 1)
    for word in permutations(range(n)):
        weights[sum(word[place] in chosen for place in chosen)] += q ** distance(word)
    return [weight / sum(weights) for weight in weights]


# ------------------------------------------------------------------------------------------------- Hamming
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("q", RATIOS)
def test_hamming_is_what_all_words_say(n: int, q: Fraction) -> None:
    for size in range(1, n + 1):
        kept = enumerated(range(size), n, q, displaced)
        for most in range(size + 1):
            assert Leaving(n, size, q).beyond(most) == sum(kept[: size - most])
            assert hamming_failure(n, size, q, Fraction(size - most, size)) == sum(kept[: size - most])
        for risk in ("0.01", "0.2", "0.5", "0.9"):
            least = max(x for x in range(size + 1) if sum(kept[:x]) <= Fraction(risk))
            assert hamming_preservation(n, size, q, risk) == Fraction(least, size)


def test_hamming_does_not_ask_which_records() -> None:
    q = Fraction(1, 3)
    assert enumerated([1, 4], 5, q, displaced) == enumerated([0, 1], 5, q, displaced)


@pytest.mark.parametrize(
    ("n", "size", "q"),
    [
        (60, 20, Fraction(1)),
        (60, 20, Fraction(1, 10)),
        (60, 30, Fraction(1, 40)),
        (59, 50, Fraction(1, 100)),
        (50, 49, Fraction(1, 30)),
        (40, 1, Fraction(1, 5)),
        (40, 2, Fraction(1, 5)),
        (41, 3, Fraction(999, 1000)),
        (42, 4, Fraction(1, 1000)),
    ],
)
def test_balls_enclose_the_exact_law(monkeypatch: pytest.MonkeyPatch, n: int, size: int, q: Fraction) -> None:
    exact = Leaving(n, size, q)
    monkeypatch.setattr(preservation, "EXACT", 0)
    found = Leaving(n, size, q)
    for most in range(exact.top):
        assert 1 <= found.beyond(most) / exact.beyond(most) < 1 + Fraction(1, 10**30)
    assert found.beyond(exact.top) == 0


def test_a_uniform_shuffle_is_hypergeometric() -> None:
    law = Leaving(1000, 300, Fraction(1))
    exact = stats.hypergeom(1000, 700, 300).sf(np.arange(150, 250))
    assert np.allclose([float(law.beyond(c)) for c in range(150, 250)], exact, rtol=1e-9)


def test_hamming_of_many_records_is_what_is_drawn() -> None:
    n, size, q = 2000, 500, geometric_ratio(Fraction(7))
    source, law = Source(4), Leaving(n, size, q)
    left = [int((hamming_word(source, n, q)[:size] >= size).sum()) for _ in range(1000)]
    cuts = [law.most(Fraction(part, 10)) for part in (9, 7, 5, 3, 1)]
    for cut in cuts:
        share = float(law.beyond(cut))
        assert abs(np.mean(np.array(left) > cut) - share) < 5 * math.sqrt(share * (1 - share) / 1000)


def test_a_larger_theta_preserves_no_less() -> None:
    for most in (2, 7, 12):
        tails = [Leaving(50, 20, geometric_ratio(Fraction(k, 4))).beyond(most) for k in range(1, 24)]
        assert all(after < before for before, after in pairwise(tails))


@pytest.mark.parametrize(("n", "size", "eta"), [(40, 10, 0.9), (300, 60, 0.5), (1000, 10, "1")])
def test_hamming_theta_is_the_smallest(n: int, size: int, eta: float | str) -> None:
    theta = hamming_theta(n, size, eta, 0.05)
    share = Fraction(str(eta))
    assert hamming_preservation(n, size, geometric_ratio(Fraction(theta)), 0.05) >= share
    assert hamming_preservation(n, size, geometric_ratio(Fraction(theta * (1 - 1e-5))), 0.05) < share


def test_hamming_ends() -> None:
    assert hamming_theta(10, 10, 1, 0.01) == 0
    assert hamming_theta(10, 8, "0.75", 0.01) == 0  # two of ten cannot take more than two places
    assert hamming_preservation(1000, 100, 0, "1e-9") == 1
    assert hamming_preservation(10, 10, 1, "1e-9") == 1
    assert hamming_failure(10, 10, 1, 1) == 0
    assert hamming_failure(100, 10, 1, 0) == 0
    assert hamming_preservation(2, 1, 1, 0.5) == 1  # a tie, decided exactly
    assert hamming_failure(20, 10, "0.01", 0.9) == hamming_failure(20, 10, "0.01", "9/10")


# ------------------------------------------------------------------------------------------------- Kendall
@pytest.mark.parametrize("chosen", [[2, 3], [0, 5], [1, 2, 4, 5]])
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10)])
def test_kendall_agrees_with_all_words(chosen: list[int], q: Fraction) -> None:
    law, runs = enumerated(chosen, 6, q, crossed), 1500
    kept, size = kendall_kept(chosen, 6, q, runs, Source(8))
    assert size == len(chosen)
    seen, expected = np.bincount(kept, minlength=size + 1), np.array([float(p) for p in law]) * runs
    assert not seen[expected == 0].any()
    some = expected > 0
    assert stats.chisquare(seen[some], expected[some]).pvalue > 1e-3
    for delta in (Fraction(1, 20), Fraction(1, 4)):
        exact = Fraction(max(x for x in range(size + 1) if sum(law[:x]) <= delta), size)
        assert kendall_preservation(chosen, 6, q, delta, runs, Source(9)).lower <= exact
    truth = float(sum(law[:size]))
    share, upper = kendall_failure(chosen, 6, q, 1, runs, Source(8))
    assert abs(share - truth) < 5 * math.sqrt(truth * (1 - truth) / runs)
    assert share < upper < share + 0.1


def test_the_lower_bound_has_its_confidence() -> None:
    """Of 150 simulations about three in ten may be wrong at 0.7, and no more; the law is enumerated."""
    chosen, q, delta = [1, 2, 3], Fraction(4, 5), Fraction(1, 5)
    law = enumerated(chosen, 5, q, crossed)
    exact = Fraction(max(x for x in range(4) if sum(law[:x]) <= delta), 3)
    source = Source(6)
    wrong = sum(
        kendall_preservation(chosen, 5, q, delta, 40, source, confidence="0.7").lower > exact for _ in range(150)
    )
    assert wrong <= 0.3 * 150 + 3 * math.sqrt(150 * 0.21)


def test_few_runs_bound_nothing_but_what_is_sure() -> None:
    found = kendall_preservation(range(8), 10, Fraction(0), "0.01", runs=20)
    assert (found.eta, found.lower) == (1, Fraction(6, 8))
    assert kendall_preservation(range(8), 10, Fraction(0), "0.01", runs=459).lower == 1
    assert kendall_preservation(range(8), 10, Fraction(0), "0.01", runs=458).lower < 1
    assert kendall_failure(range(0, 40, 20), 40, 1, 1, 30, Source(2)) == (1.0, 1.0)
    assert kendall_failure(range(8), 10, 0, 1, 20) == (0.0, pytest.approx(1 - 0.01 ** (1 / 20)))


def test_neighbours_are_preserved_better_than_scattered_records() -> None:
    q = geometric_ratio(Fraction("0.1"))
    near = kendall_preservation(range(90, 110), 200, q, "0.05", 200, Source(1))
    far = kendall_preservation(range(0, 200, 10), 200, q, "0.05", 200, Source(1))
    assert near.lower > far.lower
    assert kendall_preservation(range(90, 110), 200, q, "0.05", 200, Source(1)) == near


def test_kendall_theta_preserves() -> None:
    chosen, n = range(20, 40), 60
    theta = kendall_theta(chosen, n, 0.8, 0.05, 300, Source(3))
    assert 0 < theta < 64
    assert kendall_preservation(chosen, n, geometric_ratio(Fraction(theta)), 0.05, 1000, Source(4)).eta >= Fraction(
        "0.8"
    )
    assert kendall_preservation(
        chosen, n, geometric_ratio(Fraction(theta / 1.5)), 0.05, 1000, Source(4)
    ).eta < Fraction("0.8")
    assert kendall_theta(range(8), 10, 0.75, 0.05, 300, Source(3)) == 0


# ------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hamming_preservation(5, 6, 1, 0.1), "size must be from 1 to 5"),
        (lambda: hamming_preservation(5, 0, 1, 0.1), "size must be from 1 to 5"),
        (lambda: hamming_preservation(5, 2, 2, 0.1), "q must lie"),
        (lambda: hamming_preservation(5, 2, 1, 0), "delta must be"),
        (lambda: hamming_preservation(5, 2, 1, 1), "delta must be"),
        (lambda: hamming_failure(5, 2, 1, 1.1), "eta must lie"),
        (lambda: hamming_failure(5, 2, 1, math.nan), "eta must be finite"),
        (lambda: hamming_theta(5, 7, 0.5, 0.1), "size must be"),
        (lambda: hamming_theta(500, 7, 0.5, "1e-400"), "delta must be"),
        (lambda: kendall_preservation([], 5, 1, 0.1), "Name one or more"),
        (lambda: kendall_preservation([0.5], 5, 1, 0.1), "whole numbers"),
        (lambda: kendall_preservation([5], 5, 1, 0.1), "from 0 to 4. Found 5"),
        (lambda: kendall_preservation([1, 1], 5, 1, 0.1), "repeated"),
        (lambda: kendall_preservation([1], 5, 1, 0.1, runs=0), "runs must be"),
        (lambda: kendall_preservation([1], 5, 1, 0.1, confidence=1), "confidence must be"),
        (lambda: kendall_theta([1], 5, 2, 0.1), "eta must lie"),
        (lambda: kendall_theta([1], 5, 1, 0.01, runs=100), "runs must be at least 697"),
    ],
)
def test_refuses(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        call()
