"""Edges of monotone conditions, where the true edge is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from optdp.numbers.roots import XTOL, edge, last_whole, narrowed

Shape = Callable[[float], float]

SHAPES: dict[str, Shape] = {
    "line": lambda d: d,
    "cube": lambda d: d**3,
    "steep": lambda d: math.copysign(abs(d) ** 0.1, d),
    "flat": lambda d: math.copysign(abs(d) ** 9, d),
    "exponential": lambda d: math.expm1(min(30.0 * d, 600.0)),
    "step": lambda d: 1.0 if d > 0 else -1.0,
    "small step": lambda d: 1e-9 if d > 0 else -1e5,
    "nothing below": lambda d: d if d > 0 else -math.inf,
    "nothing far below": lambda d: d if d > -0.1 else -math.inf,
    "plateau of zeros": lambda d: max(d, 0.0) if d > -0.25 else d,
    "stairs": lambda d: math.ceil(d * 8.0) / 8.0 if d > 0 else math.floor(d * 8.0) / 8.0,
}


def cases(seed: int, count: int) -> list[tuple[float, float, float]]:
    """The kept end, the true edge and the broken end, in either order and of many sizes."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        size = 10 ** rng.uniform(-3, 3)
        kept, broken = sorted((rng.uniform(-1, 1) * size, rng.uniform(-1, 1) * size))
        if broken - kept < 1e-3 * size:
            continue
        true = kept + (broken - kept) * rng.choice([rng.random(), 1e-6, 1 - 1e-6, 0.5])
        found.append((-kept, -true, -broken) if rng.random() < 0.5 else (kept, true, broken))
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_edge_is_kept_and_near(name: str) -> None:
    for kept, true, broken in cases(1, 150):
        toward = math.copysign(1.0, broken - kept)
        seen: dict[float, float] = {}

        def excess(x: float, toward: float = toward, true: float = true, seen: dict[float, float] = seen) -> float:
            seen[x] = SHAPES[name]((x - true) * toward)
            return seen[x]

        if not excess(kept) <= 0.0 < excess(broken):
            continue
        for xtol in (XTOL, 1e-6):
            found = edge(excess, kept, broken, xtol)
            assert excess(found) <= 0.0
            assert found in seen
            assert min(kept, broken) <= found <= max(kept, broken)
            short = (true - found) * toward  # what is left to the true edge
            room = 4.0 * max(xtol, abs(true) * 2.0**-49)
            if name == "plateau of zeros":  # any of its points is a root
                room += 0.25
            assert short >= 0.0
            assert short <= room, f"{name}: {short} from {kept} to {broken}"


def test_edge_at_an_end() -> None:
    assert edge(lambda x: x, 0.0, 1.0) == 0.0
    assert edge(lambda x: 1.0 if x > 0 else -1.0, 0.0, 1.0) <= 2 * XTOL
    assert edge(lambda x: 1.0 if x > 0 else -math.inf, 0.0, 1.0) <= 2 * XTOL
    found = edge(lambda x: -1.0 if x < 1.0 else 1.0, 0.0, 1.0)
    assert 1.0 - 4 * XTOL <= found < 1.0


@pytest.mark.parametrize("name", ["line", "cube", "exponential", "steep", "step", "stairs", "nothing far below"])
def test_narrowed_ends_are_on_their_sides(name: str) -> None:
    rng = random.Random(2)
    for kept, true, broken in cases(3, 150):
        toward = math.copysign(1.0, broken - kept)

        def excess(x: float, toward: float = toward, true: float = true) -> float:
            return max(SHAPES[name]((x - true) * toward), -1e6)

        if not excess(kept) <= 0.0 < excess(broken):
            continue
        guess = true + (rng.random() - 0.5) * 1e-3 * abs(broken - kept)
        guess = min(max(guess, min(kept, broken)), max(kept, broken))
        slope = toward * 10 ** rng.uniform(-2, 2)
        inside, outside = narrowed(excess, guess, slope, kept, broken)
        assert excess(inside) <= 0.0 < excess(outside)
        assert (outside - inside) * toward > 0.0
        assert min(kept, broken) <= min(inside, outside)
        assert max(inside, outside) <= max(kept, broken)


def test_narrowed_is_close_for_a_good_slope() -> None:
    for kept, true, broken in cases(4, 150):
        toward = math.copysign(1.0, broken - kept)
        inside, outside = narrowed(lambda x, t=true, s=toward: 3.0 * s * (x - t), true, 3.0 * toward, kept, broken)
        assert abs(outside - inside) <= 100.0 * max(XTOL, 1e-9 * abs(true))


@pytest.mark.parametrize("seed", range(3))
def test_last_whole_is_the_last(seed: int) -> None:
    """Exactly so below ten million, and to one in ten million above, on the side that keeps."""
    rng = random.Random(seed)
    for _ in range(200):
        low, high = sorted(rng.sample(range(-(10 ** rng.randint(1, 12)), 10 ** rng.randint(1, 12)), 2))
        true = rng.randint(low, high - 1)
        asked = []

        def excess(x: int, true: int = true, asked: list[int] = asked) -> float:
            asked.append(x)
            return math.inf if x > true else -math.inf

        found = last_whole(excess, low, high)
        assert 0 <= true - found <= (abs(found) // 10**7 if abs(found) >= 10**7 else 0)
        assert len(asked) <= 2 + math.log2(high - low)
        found = last_whole(lambda x, t=true: -1.0 if x > t else 1.0, high, low)
        assert 0 <= found - (true + 1) <= (abs(found) // 10**7 if abs(found) >= 10**7 else 0)


def test_last_whole_of_neighbours() -> None:
    assert last_whole(lambda x: 0.0, 4, 5) == 4
    assert last_whole(lambda x: 1.0, 5, 4) == 5
