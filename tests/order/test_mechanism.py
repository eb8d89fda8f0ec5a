"""What the shuffle promises, against enumeration of all permutations with exact rationals."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from optdp.errors import ProblemError
from optdp.numbers.source import Source
from optdp.order.mechanism import (
    Groups,
    alpha_for,
    alpha_of,
    alpha_of_local_noise,
    paper_sensitivity,
    ratio,
    sensitivities,
    sensitivity,
    width,
)
from optdp.order.sampling import check_order, shuffled


def kendall(word: tuple[int, ...]) -> int:
    return sum(a > b for a, b in itertools.combinations(word, 2))


def hamming(word: tuple[int, ...]) -> int:
    return sum(k != value for k, value in enumerate(word))


DISTANCES = {"kendall": kendall, "hamming": hamming}


def moved(group: tuple[int, ...], n: int) -> list[dict[int, int]]:
    """All ways in which the members of a group exchange what they hold."""
    return [dict(zip(group, other, strict=True)) for other in itertools.permutations(group)]


def brute_force_sensitivity(group: tuple[int, ...], order: list[int], distance: str) -> int:
    """The largest change of the distance when the numbers of a group's records are exchanged in a word."""
    place = {record: position for position, record in enumerate(order)}
    members = tuple(place[record] for record in group)
    measure, n = DISTANCES[distance], len(order)
    worst = 0
    for word in itertools.permutations(range(n)):
        values = [measure(tuple(change.get(value, value) for value in word)) for change in moved(members, n)]
        worst = max(worst, max(values) - min(values))
    return worst


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_sensitivity_is_that_of_all_permutations(n: int, distance: str) -> None:
    """Every group of up to six records, in the order as it is: relabelling covers all other orders."""
    if n == 6 and distance == "hamming":
        pytest.skip("five are enough for a number that is the group's size")
    order = list(range(n))
    for size in range(1, n + 1):
        for group in itertools.combinations(range(n), size):
            found = int(sensitivities(Groups.of([group], n), np.array(order), distance)[0])
            if n < 6 or group[0] == 0:  # shifting a group moves nothing: with six, those that begin at 0
                assert found == brute_force_sensitivity(group, order, distance), (group, distance)


def test_an_order_relabels_the_records() -> None:
    draw = random.Random(4)
    for _ in range(20):
        order = draw.sample(range(5), 5)
        group = tuple(sorted(draw.sample(range(5), draw.randint(2, 4))))
        found = sensitivity(Groups.of([group], 5), np.array(order))
        assert found == brute_force_sensitivity(group, order, "kendall")


def released_law(
    order: list[int], values: tuple[str, ...], q: Fraction, distance: str
) -> dict[tuple[str, ...], Fraction]:
    """The exact law of what is released, by going through all words."""
    n, measure = len(order), DISTANCES[distance]
    law: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    total = Fraction(0)
    for word in itertools.permutations(range(n)):
        weight = q ** measure(word)
        total += weight
        released = [""] * n
        for k in range(n):
            released[order[k]] = values[order[word[k]]]
        law[tuple(released)] += weight
    return {outcome: weight / total for outcome, weight in law.items()}


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
@pytest.mark.parametrize("seed", range(6))
def test_the_worst_ratio_is_alpha_exactly(seed: int, distance: str) -> None:
    """Records of a group exchange their values: with different values the worst log-ratio is `-Delta log q`."""
    draw = random.Random(seed)
    n = draw.choice([3, 4, 5])
    order = draw.sample(range(n), n)
    group = tuple(sorted(draw.sample(range(n), draw.randint(2, min(n, 4)))))
    groups, q = Groups.of([group], n), Fraction(draw.randint(1, 9), 10)
    values = tuple("abcde"[:n])
    first = released_law(order, values, q, distance)
    worst = Fraction(1)
    for change in moved(group, n):
        other = released_law(order, tuple(values[change.get(i, i)] for i in range(n)), q, distance)
        worst = max(worst, *(first[outcome] / other[outcome] for outcome in first))
    largest = sensitivity(groups, np.array(order), distance)
    assert worst == q**-largest  # exactly: rationals
    assert float(alpha_of(q, largest)) == pytest.approx(math.log(worst), abs=1e-12)
    assert alpha_of(q, largest) >= 0


@pytest.mark.parametrize("seed", range(4))
def test_equal_values_give_away_no_more(seed: int) -> None:
    draw = random.Random(seed)
    order, group = draw.sample(range(4), 4), (0, 2, 3)
    q, values = Fraction(1, 3), ("a", "b", "a", "b")
    first = released_law(order, values, q, "kendall")
    largest = sensitivity(Groups.of([group], 4), np.array(order))
    for change in moved(group, 4):
        other = released_law(order, tuple(values[change.get(i, i)] for i in range(4)), q, "kendall")
        assert all(first[outcome] <= q**-largest * other[outcome] for outcome in first)


def test_the_example_of_the_paper() -> None:
    """E, section 5.7: the order, the sampled sequence and what is released; the group {4, 5, 7}."""
    order = np.array([5, 2, 3, 8, 4, 1, 6, 7]) - 1
    sampled = np.array([3, 2, 5, 4, 8, 1, 7, 6]) - 1
    place = np.argsort(order)
    word = place[sampled]
    values = np.array([f"y{i}" for i in range(1, 9)])
    released = np.empty(8, dtype=values.dtype)
    released[order] = values[order[word]]
    assert released.tolist() == ["y1", "y2", "y5", "y8", "y3", "y7", "y6", "y4"]
    groups = Groups.of([[3, 4, 6]], 8)
    assert (width(groups, order), paper_sensitivity(groups, order), sensitivity(groups, order)) == (7, 28, 13)


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_shuffled_has_the_exact_law(distance: str) -> None:
    order, q, values = [2, 0, 3, 1], Fraction(1, 2), ("a", "b", "c", "d")
    law = released_law(order, values, q, distance)
    source, runs = Source(11), 20_000
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for _ in range(runs):
        counts[tuple(shuffled(np.array(values), np.array(order), q, source, distance).tolist())] += 1
    statistic = sum((counts[outcome] - runs * float(p)) ** 2 / (runs * float(p)) for outcome, p in law.items())
    freedom = len(law) - 1
    assert statistic < freedom + 6 * math.sqrt(2 * freedom)


def test_a_deployed_ratio_promises_no_more_than_was_asked() -> None:
    for alpha in ("0.001", "1", "7.5"):
        for largest in (1, 13, 26_531, 10**9):
            q = ratio(Fraction(alpha), largest)
            assert alpha_of(q, largest) <= Fraction(alpha)
            assert float(alpha_of(q, largest)) == pytest.approx(float(alpha), rel=1e-7)


def test_other_groups_and_local_noise() -> None:
    """Theorem 5.5 and Lemma 5.2."""
    order, groups = np.arange(6), Groups.of([[0, 1], [0, 1, 2, 3]], 6)
    q = ratio(Fraction(1), sensitivity(groups, order))
    pair = Groups.of([[4, 5]], 6)
    assert float(alpha_for(pair, order, q)) == pytest.approx(1 / sensitivity(groups, order), rel=1e-9)
    assert alpha_of_local_noise(Fraction(1, 2), groups) == 2


def test_extremes_and_refusals() -> None:
    assert ratio(Fraction(1), 0) == 0
    assert alpha_of(Fraction(0), 0) == 0
    with pytest.raises(ProblemError, match="nothing is promised"):
        alpha_of(Fraction(0), 3)
    for order in ([0, 0, 1], [0, 1], [0, 1, 3], [[0, 1, 2]]):
        with pytest.raises(ProblemError):
            check_order(np.array(order), 3)
    with pytest.raises(ProblemError, match=r"0\.\.2"):
        Groups.of([[0, 5]], 3)
    with pytest.raises(ProblemError, match="once"):
        Groups.of([[0, 0]], 3)
    same = shuffled(np.array([3, 1, 2]), np.array([2, 0, 1]), Fraction(0), Source(1))
    assert same.tolist() == [3, 1, 2]
