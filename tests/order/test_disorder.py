"""The share of pairs that a shuffle reverses, against all words of few records and against drawn words of many."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest

from optdp import Groups, OrderShuffle, Source, solve
from optdp.cli.printing import show
from optdp.order.format import verify_order
from optdp.order.mechanism import NEAR_UNIFORM, near_uniform, reversed_pairs
from optdp.order.sampling import WORDS
from optdp.report.order import page
from tests.order.words import crossed


@cache
def words(n: int) -> list[tuple[int, int]]:
    """Of every word its inversions, and how many numbers are not in their place."""
    return [
        (sum(a > b for a, b in combinations(word, 2)), sum(a != i for i, a in enumerate(word)))
        for word in permutations(range(n))
    ]


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7])
def test_against_all_words(distance: str, n: int) -> None:
    """In rational numbers, for shuffles from nearly uniform to nearly none."""
    for power in (1, 2, 7, 30, 60):
        for q in (Fraction(1, 2**power), 1 - Fraction(1, 2**power), Fraction(power, power + 1)):
            weights = [(q ** (pair[distance == "hamming"]), pair[0]) for pair in words(n)]
            expected = sum(weight * reverse for weight, reverse in weights) / sum(weight for weight, _ in weights)
            share = float(expected / math.comb(n, 2))
            assert reversed_pairs(n, -math.log(q), distance) == pytest.approx(share, abs=2e-12), (n, q)


@pytest.mark.parametrize(
    ("distance", "n", "theta"),
    [
        ("kendall", 40, 0.01), ("kendall", 400, 0.02), ("kendall", 3000, 0.0005), ("kendall", 3000, 0.4),
        ("hamming", 40, 3.0), ("hamming", 400, 5.5), ("hamming", 400, 7.0), ("hamming", 3000, 8.0),
    ],
)  # fmt: skip
def test_against_drawn_words(distance: str, n: int, theta: float) -> None:
    source, q, pairs = Source(7), Fraction(math.exp(-theta)), math.comb(n, 2)
    drawn = np.array([crossed(WORDS[distance](source, n, q)) / pairs for _ in range(400)])
    spread = 5 * drawn.std() / math.sqrt(len(drawn)) + 1e-9
    assert abs(drawn.mean() - reversed_pairs(n, theta, distance)) < spread


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_from_none_to_half(distance: str) -> None:
    for n in (2, 3, 10, 1000, 10**5):
        shares = [reversed_pairs(n, 2.0**e, distance) for e in range(-60, 10)]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] == pytest.approx(0.5, abs=1e-9)
        assert shares[-1] == reversed_pairs(n, math.inf, distance) == 0
    assert reversed_pairs(1, 0.5, distance) == 0


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_solutions_say_how_much_of_the_order_is_left(
    distance: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = Groups.of([[i, i + 1] for i in range(19)], 20)
    for alpha in ("0.01", "1", "5"):
        found = solve(OrderShuffle(groups, alpha, distance, "rcm"))
        figures = json.loads(json.dumps(found.summary()))
        assert figures["reversed_pairs"] == found.reversed_pairs == reversed_pairs(20, found.theta, distance)
        assert figures["note"] == near_uniform(found.reversed_pairs)
        assert bool(figures["note"]) == (found.reversed_pairs > NEAR_UNIFORM) == ("uniform" in figures["note"])
        show(found.sheet())
        said = capsys.readouterr().out
        assert f"{100 * found.reversed_pairs:.3g} %  (by a uniform shuffle 50 %)" in said
        assert ("hardly any trend" in " ".join(said.split())) == bool(figures["note"])
        assert f"{100 * found.reversed_pairs:.3g} %" in found._repr_html_()
        found.save(tmp_path / "order.json")
        html = page(verify_order(tmp_path / "order.json", groups), "order.json").decode()
        assert f"reverses {100 * found.reversed_pairs:.3g} % of all pairs of records; a uniform shuffle" in html
        assert ("hardly any trend is left" in html) == bool(figures["note"])
    assert solve(OrderShuffle(groups, "0.01", distance, "rcm")).note
    assert not solve(OrderShuffle(groups, "20", distance, "rcm")).note
