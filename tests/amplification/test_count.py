"""What one count tells: the vectors of the corrections, Corollary 1 by brute force, round trips, bad input."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

from optdp import KRRCount, ProblemError, solve
from optdp.loading import built
from optdp.numbers.exact import ball, precision


def divergence(n: int, held: int, k: int, eps0: Fraction, epsilon: Fraction, back: bool = False) -> arb:
    """The hockey-stick divergence of the two counts, person by person in 300 bits: no formula of the paper's."""
    with precision(300):
        p, gain = ball(eps0).exp(), ball(epsilon).exp()
        true, false = p / (p + k - 1), 1 / (p + k - 1)
        law = [arb(1)]
        for i in range(n - 1):
            law = joined(law, true if i < held else false)
        first, second = joined(law, true), joined(law, false)
        if back:
            first, second = second, first
        return sum(((a - gain * b).max(arb(0)) for a, b in zip(first, second, strict=True)), arb(0))


def joined(law: list[arb], chance: arb) -> list[arb]:
    return [a * (1 - chance) + b * chance for a, b in zip([*law, arb(0)], [arb(0), *law], strict=True)]


@pytest.mark.parametrize(
    ("eps0", "values"),
    [
        (1, (8.969e-5, 9.932e-26, 0.0)),
        (2, (6.147e-3, 2.606e-8, 2.698e-18, 9.668e-32, 0.0)),
        (3, (2.757e-2, 2.555e-4, 1.034e-7, 7.679e-12, 3.112e-17, 5.196e-26)),
    ],
)
def test_the_vectors_of_the_corrections(eps0: int, values: tuple[float, ...]) -> None:
    for epsilon, value in zip(("0.1", "0.5", "1", "1.5", "2", "2.5"), values, strict=False):
        found = solve(KRRCount(n=100, n_x0=80, k=10, eps0=eps0, epsilon=epsilon))
        assert found.unknown == "delta"
        assert found.method == "count"
        assert found.value == pytest.approx(value, rel=1e-3, abs=0)
        assert found.lower is not None
        assert found.lower <= found.value <= found.lower * (1 + 1e-12)


def test_the_divergence_of_two_counts() -> None:
    rng = random.Random(1)
    for _ in range(40):
        n, k = rng.randint(2, 60), rng.randint(2, 12)
        held, eps0 = rng.randint(0, n - 1), Fraction(rng.randint(10, 500), 100)
        epsilon = eps0 * Fraction(rng.randint(1, 99), 100)
        found = solve(KRRCount(n, held, k, eps0=eps0, epsilon=epsilon))
        rows = {row.method: row.value for row in found.bounds}
        for prefix, back in (("count", False), ("count-reverse", True)):
            exact = divergence(n, held, k, eps0, epsilon, back)
            low, high = rows[f"{prefix}-lower"], rows[prefix]
            assert low is not None
            assert high is not None
            with precision(300):
                assert not exact > ball(Fraction(high))
                assert not exact < ball(Fraction(low))
                assert exact.overlaps(ball(Fraction(high))) or high <= float(exact.upper()) * (1 + 1e-12) or exact == 0


def test_theorem_1_is_one_way_and_the_way_back_is_told_apart() -> None:
    """The way back may be worse: it stands in the table and in the note."""
    worse = 0
    for n, held, k, eps0, epsilon in ((10, 0, 2, 1, "0.3"), (20, 3, 2, 2, "0.5"), (10, 9, 2, 1, "0.3")):
        forth = divergence(n, held, k, Fraction(eps0), Fraction(epsilon))
        back = divergence(n, held, k, Fraction(eps0), Fraction(epsilon), back=True)
        found = solve(KRRCount(n, held, k, eps0=eps0, epsilon=epsilon))
        rows = {row.method: row.value for row in found.bounds}
        worse += bool(back > forth)
        assert rows["count-reverse"] == pytest.approx(float(back.mid()), rel=1e-9)
        assert found.value == pytest.approx(float(forth.mid()), rel=1e-9)  # C, Theorem 1: from x0 to x1
        assert "way back" in found.note
    assert worse


def test_corollary_1_takes_the_worst_value() -> None:
    rng = random.Random(2)
    for _ in range(12):
        counts = [rng.randint(0, 12) for _ in range(rng.randint(2, 6))]
        counts[0] += 2
        n, k = sum(counts), len(counts)
        eps0, epsilon = Fraction(rng.randint(50, 300), 100), Fraction(rng.randint(1, 40), 100)
        found = solve(KRRCount(counts=counts, eps0=eps0, epsilon=epsilon))
        every = [float(divergence(n, count - 1, k, eps0, epsilon).mid()) for count in counts if count]
        assert found.value == pytest.approx(max(every), rel=1e-9)
        assert found.value >= max(every) * (1 - 1e-12)
    assert solve(KRRCount(counts=[80, 20], k=2, eps0=1, epsilon="0.1")).value > 0


@pytest.mark.parametrize(("n", "held", "k"), [(100, 80, 10), (50, 0, 2), (1000, 500, 3), (2, 1, 2)])
def test_epsilon_and_eps0_and_back(n: int, held: int, k: int) -> None:
    delta = Fraction(1, 10**4)
    found = solve(KRRCount(n, held, k, eps0=1, delta=delta))
    assert 0 <= found.value <= 1.0000001
    with precision(300):
        assert not divergence(n, held, k, Fraction(1), Fraction(found.value)) > ball(delta)
        assert found.lower is not None
        if found.lower > 0:
            assert not divergence(n, held, k, Fraction(1), Fraction(found.lower)) < ball(delta)
        assert found.lower <= found.value <= found.lower + 1e-9
        local = solve(KRRCount(n, held, k, epsilon="0.2", delta=delta))
        assert local.value >= 0.2 * (1 - 1e-15)
        assert not divergence(n, held, k, Fraction(local.value), Fraction(1, 5)) > ball(delta)
        assert local.lower is not None
        if local.lower < 40:
            assert not divergence(n, held, k, Fraction(local.lower), Fraction(1, 5)) < ball(delta)


def test_a_tiny_epsilon_keeps_its_promise_too() -> None:
    found = solve(KRRCount(10, 5, 2, epsilon="1e-9", delta="1e-12"))
    with precision(300):
        assert not divergence(10, 5, 2, Fraction(found.value), Fraction(1, 10**9)) > ball(Fraction(1, 10**12))


def test_many_people_and_tiny_deltas() -> None:
    found = solve(KRRCount(10**6, 5 * 10**5, 10, eps0=2, epsilon="0.02"))
    assert 0 < found.value < 1
    assert found.lower is not None
    assert found.value <= found.lower * (1 + 1e-12)
    sharp = solve(KRRCount(1000, 800, 10, eps0=2, epsilon="0.5"))
    exact = divergence(1000, 800, 10, Fraction(2), Fraction(1, 2))
    assert sharp.value < 1e-50
    assert sharp.value == pytest.approx(float(exact.mid()), rel=1e-11, abs=0)


BASE: dict[str, Any] = {"n": 100, "n_x0": 80, "k": 10, "eps0": "1", "epsilon": "0.1"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": 1}, "n must"),
        ({"n": 100.0}, "n must"),
        ({"n": True}, "n must"),
        ({"n": "100"}, "n must"),
        ({"n": 10**16}, "n must"),
        ({"n_x0": -1}, "n_x0"),
        ({"n_x0": 100}, "n_x0"),
        ({"n_x0": None}, "n_x0"),
        ({"k": 1}, "k must"),
        ({"k": None}, "k must"),
        ({"k": 2.0}, "k must"),
        ({"eps0": 0}, "eps0"),
        ({"eps0": -1}, "eps0"),
        ({"eps0": math.nan}, "eps0"),
        ({"eps0": math.inf}, "eps0"),
        ({"eps0": True}, "eps0"),
        ({"eps0": "x"}, "eps0"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1, "epsilon": None}, "delta"),
        ({"delta": 0, "epsilon": None}, "delta"),
        ({"delta": "nan", "epsilon": None}, "delta"),
        ({"delta": "1e-6"}, "Leave out exactly one"),
        ({"epsilon": None}, "Leave out exactly one"),
        ({"counts": [80, 20]}, "Leave them out"),
        ({"counts": [], "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": [5], "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": [5, -1], "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": [5, 1.0], "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": [5, True], "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": [1, 0], "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": [5, 5], "n": None, "n_x0": None, "k": 3}, "counts"),
        ({"counts": "ab", "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": [1] * 10_001, "n": None, "n_x0": None, "k": None}, "counts"),
        ({"counts": 5, "n": None, "n_x0": None, "k": None}, "counts"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_bad_input(changes: dict[str, Any], words: str) -> None:
    given = BASE | changes
    with pytest.raises(ProblemError, match=words):
        KRRCount(**given)
    with pytest.raises(ProblemError):
        built({"kind": "krr-count"} | {name: value for name, value in given.items() if value is not None})
