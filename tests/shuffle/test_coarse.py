"""Coarse messages: every step of the proof in docs/mathematics.md by enumeration, and the loss by brute force."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from optdp import MetricShuffle, solve
from optdp.numbers.divergence import least_loss
from optdp.numbers.exact import geometric_ratio
from optdp.shuffle.metric.coarse import Coarse, _Law, quanta
from optdp.shuffle.metric.released import Released, Shares
from tests.shuffle import brute_force


def _ways(total: int, people: int, most: int) -> Iterator[tuple[int, ...]]:
    """All ways in which so many people move by so much in all."""
    for each in combinations_with_replacement(range(min(total, most) + 1), people):
        if sum(each) == total:
            yield each


def _quanta(parts: tuple[int, ...], quantum: int) -> list[Fraction]:
    """The law of how many quanta roundings move when people move by `parts`, from multiples of `Q` on."""
    law = [Fraction(1)]
    for part in parts:
        low, rest = divmod(part, quantum)
        longer = [Fraction(0)] * (len(law) + low + 1)
        for j, chance in enumerate(law):
            longer[j + low] += chance * Fraction(quantum - rest, quantum)
            longer[j + low + 1] += chance * Fraction(rest, quantum)
        law = longer
    return law


def _coarse(n: int, k: int, quantum: int, furthest: int, beta: Fraction = Fraction(1), eps: str = "1") -> Coarse:
    shares = Shares(n, beta, geometric_ratio(Fraction(eps)))
    c = shares.padding(Fraction(1, 10**9))
    return Coarse(Released(shares, c, quanta(furthest, quantum, 1e-4), 1e-4, min(n, furthest)), k, quantum)


@pytest.mark.parametrize(("n", "k", "quantum"), [(1, 7, 3), (2, 5, 2), (3, 4, 2), (3, 6, 3), (4, 4, 4), (9, 3, 3)])
def test_the_widest_law_is_among_those_that_are_looked_at(n: int, k: int, quantum: int) -> None:
    """For every way to spread a distance and every convex function `(y-j)_+`, of which all others are made."""
    coarse, top = _coarse(n, k, quantum, n * k), -(-k // quantum) * quantum
    for distance in range(1, min(n * k, 9) + 1):
        widest = [np.concatenate((np.zeros(whole), law)) for whole, law in coarse.roundings(distance)]
        for parts in _ways(distance, n, top):
            mine = _quanta(parts, quantum)
            for stop in range(distance + 1):
                value = float(sum((j - stop) * chance for j, chance in enumerate(mine) if j > stop))
                most = max(sum((j - stop) * chance for j, chance in enumerate(law) if j > stop) for law in widest)
                assert value <= most * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("quantum", [2, 3])
def test_one_of_both_data_sets_is_at_multiples(quantum: int) -> None:
    """Two people with any noise: no two data sets lose more than two as far apart one of which is at multiples."""
    draw = random.Random(quantum)
    for _ in range(3):
        noise = np.array([draw.random() ** 3 for _ in range(4)], dtype=np.longdouble)
        laws = [np.array(_quanta((x,), quantum) + [0] * (2 - x // quantum), dtype=np.longdouble)
                for x in range(2 * quantum + 1)]  # fmt: skip
        sets = list(product(range(2 * quantum + 1), repeat=2))
        rows = np.array([np.convolve(brute_force.sum_law(laws, values), noise) for values in sets])
        every, some = (dict.fromkeys(range(4 * quantum + 1), 0.0) for _ in range(2))
        for i, values in enumerate(sets):
            losses = brute_force.least_losses(np.broadcast_to(rows[i], rows.shape), rows, 0.05)
            for j, after in enumerate(sets):
                distance = abs(values[0] - after[0]) + abs(values[1] - after[1])
                every[distance] = max(every[distance], float(losses[j]))
                if all(x % quantum == 0 for x in values) or all(x % quantum == 0 for x in after):
                    some[distance] = max(some[distance], float(losses[j]))
        most = 0.0
        for distance, loss in every.items():
            most = max(most, some[distance])
            assert loss <= most * (1 + 1e-12)


def test_convex_functions_above_and_below() -> None:
    """For random falling laws: convex, on the right side of the law everywhere, and equal to one that is convex."""
    draw = random.Random(3)
    for _ in range(20):
        law = np.sort([draw.random() ** 4 for _ in range(12)])[::-1].copy()
        found = _Law(np.log(law), np.log(law), 5)
        above = found.majorant
        assert (np.diff(above, 2) >= -1e-9).all()
        assert (np.diff(above) <= 1e-9).all()
        assert (above >= law[np.abs(np.arange(-5, 12))] * (1 - 1e-15)).all()
        for z in range(1, 12):  # straight up from z
            line = law[z] + found.rates[z - 1] * np.arange(20)
            assert (line >= [law[min(abs(z - y), 11)] for y in range(20)]).all()
        for steps in (0.0, 0.4, 1.0, 2.7, 15.0):
            below = found._least(np.full(12, steps))
            for z in range(12):
                rest = np.append(law[z:], np.zeros(20))
                least = min(  # the lowest chord across the place
                    float(rest[i] + (rest[j] - rest[i]) * (steps - i) / (j - i))
                    for i in range(math.floor(steps) + 1) for j in range(math.floor(steps) + 1, 18)
                )  # fmt: skip
                assert least * (1 - 1e-8) - 1e-15 <= below[z] <= least * (1 + 1e-12)
    plain = np.exp(-0.3 * np.arange(12.0))
    assert _Law(np.log(plain), np.log(plain), 0).majorant == pytest.approx(plain, rel=1e-8)


CASES = [
    ("geo", 3, 5, 3, "0.7", "1e-3"), ("geo", 2, 8, 5, "0.5", "1e-2"), ("sgdl", 3, 4, 2, "1.2", "1e-4"),
    ("sgdl", 2, 7, 4, "1", "1e-5"), ("hybrid", 3, 4, 4, "0.9", "1e-3"), ("geo", 1, 9, 4, "0.4", "1e-3"),
    ("hybrid", 2, 6, 5, "2", "1e-6"), ("geo", 4, 3, 2, "1.5", "1e-4"),
]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "n", "k", "quantum", "noise", "delta"), CASES)
def test_close_to_brute_force(mechanism: str, n: int, k: int, quantum: int, noise: str, delta: str) -> None:
    """All pairs of data sets, with a padding that hardly truncates: never below, at most 1.1 times, mostly the same."""
    more = {"beta": "0.6"} if mechanism == "hybrid" else {}
    beta = {"geo": Fraction(1), "sgdl": Fraction(1, n)}.get(mechanism, Fraction(3, 5))
    c = Shares(n, beta, geometric_ratio(Fraction(noise))).padding(Fraction(delta) / 10**5)
    given: dict[str, Any] = {"eps_geo": noise, "quantum": quantum, "c": c, "max_distance": n * k} | more
    found = solve(MetricShuffle(mechanism, n, k, delta, **given))
    assert found.design.shares is not None
    laws = brute_force.padded_laws(k, c, found.design.shares.beta, found.design.shares.q, quantum)
    claims, factors = dict(found.profile), []
    for distance, truth in brute_force.losses_by_distance(laws, n, float(delta)).items():
        assert truth * (1 - 1e-9) <= distance * claims[distance] <= truth * 1.1
        factors.append(distance * claims[distance] / truth)
    assert np.median(factors) < 1.02


FEWER = [
    (3, 2, 4, 2, "1", "0.7", 1e-2, "1e-9"), (3, 1, 4, 3, "3/5", "1", 0.03, "3e-3"), (2, 1, 7, 4, "1", "2", 0.1, "0.05"),
    (4, 2, 3, 2, "1/2", "1.5", 1e-3, "1e-4"), (4, 3, 4, 4, "1/3", "0.7", 0.1, "1e-3"),
    (3, 1, 5, 2, "1/7", "2", 0.1, "1e-2"),
]  # fmt: skip


@pytest.mark.parametrize(("n", "fewest", "k", "quantum", "beta", "noise", "delta", "share"), FEWER)
def test_fewer_who_add_noise_by_brute_force(
    n: int, fewest: int, k: int, quantum: int, beta: str, noise: str, delta: float, share: str
) -> None:
    """All pairs of data sets of so many people or more, also if they truncate: never below; close if no more move."""
    shares = Shares(fewest, Fraction(beta), geometric_ratio(Fraction(noise)), proved=True)
    c, furthest = shares.padding(Fraction(share)), n * k
    released = Released(shares, c, quanta(furthest, quantum, delta), delta, min(n, furthest))
    coarse, factors = Coarse(released, k, quantum), []
    laws = brute_force.padded_laws(k, c, shares.beta, shares.q, quantum)
    for people in range(fewest, n + 1):
        for distance, truth in brute_force.losses_by_distance(laws, people, delta).items():
            claim = coarse.loss(int(distance), delta)
            assert truth * (1 - 1e-9) <= claim
            if people == fewest and distance <= fewest and Fraction(share) < Fraction(delta) / 10**6:
                assert claim <= truth * 1.05
            if truth:
                factors.append(claim / truth)
    assert min(factors) < 3


@pytest.mark.parametrize(("mechanism", "noise", "quantum", "far"), [
    ("geo", "2", 10, (1, 2, 7, 10, 50, 99, 100, 230, 1000)), ("geo", "0.5", 100, (1, 3, 30, 99, 400)),
    ("sgdl", "1", 10, (1, 2, 10)),
])  # fmt: skip
def test_a_hundred_people(mechanism: str, noise: str, quantum: int, far: tuple[int, ...]) -> None:
    """At most 3% above a pair of data sets that people may have: as many as possible who move by the same."""
    n, k, delta = 100, 1000, 1e-6
    beta = Fraction(1) if mechanism == "geo" else Fraction(1, n)
    shares = Shares(n, beta, geometric_ratio(Fraction(noise)), proved=True)
    c, furthest = shares.padding(Fraction(1, 10**13)), max(far)
    released = Released(shares, c, quanta(furthest, quantum, delta), delta, min(n, furthest))
    coarse, free = Coarse(released, k, quantum), np.exp(released.full.log_p)
    law = np.concatenate((free[:0:-1], free))
    for distance in far:
        truth, movers = 0.0, min(n, distance)
        for whole in {0, (distance // quantum) // 2, max(0, distance // quantum - 1)}:
            rest = distance - quantum * whole
            if rest <= movers * (quantum - 1):
                low, some = divmod(rest, movers)
                moves = np.zeros(whole + 1)
                moves[whole] = 1.0
                for i in range(movers):
                    chance = (low + (i < some)) / quantum
                    moves = np.convolve(moves, [1.0 - chance, chance])
                moved = np.convolve(law, moves)[: len(law)]
                truth = max(truth, least_loss([(moved, law)], 0.0, delta), least_loss([(law, moved)], 0.0, delta))
        assert truth * (1 - 1e-6) <= coarse.loss(distance, delta) <= 1.03 * truth
