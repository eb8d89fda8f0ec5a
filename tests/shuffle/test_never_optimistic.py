"""No claimed loss lies below that of an actual pair of data sets: hundreds of random protocols, by brute force.

For each one the solution's profile is compared with `brute_force`, which convolves the actual messages, clamped and
rounded as they are sent, for all data sets of a few people, and takes the worst pair at every distance, both ways.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optdp import MetricShuffle, OptdpError, solve
from optdp.numbers.exact import geometric_ratio
from optdp.shuffle.metric.released import Shares
from optdp.shuffle.metric.solve import MetricSolution
from tests.shuffle import brute_force

ROUND_OFF = 1e-9


def _decimal(draw: random.Random, low: float, high: float) -> Fraction:
    """A number of four digits, its logarithm to base ten between two others."""
    return Fraction(f"{10 ** draw.uniform(low, high):.4g}")


def _noise(draw: random.Random, n: int, **more: Any) -> dict[str, Any]:
    """A mechanism with given noise and a padding about as long as delta asks for: sometimes too short to claim much."""
    name, noise = draw.choice(["geo", "sgdl", "hybrid"]), _decimal(draw, -0.5, 0.9)
    delta = _decimal(draw, -6, -1)
    beta = {"geo": Fraction(1), "sgdl": Fraction(1, n)}.get(
        name, max(Fraction(1, n), Fraction(draw.randint(1, 99), 100))
    )
    padding = Shares(n, beta, geometric_ratio(noise)).padding(delta)
    given = {"mechanism": name, "n": n, "delta": delta, "eps_geo": noise} | ({"beta": beta} if name == "hybrid" else {})
    return given | {"c": max(0, padding + draw.choice([-1, 0, 1, 1, 2, 4]))} | more


def _problem(kind: str, draw: random.Random) -> dict[str, Any]:
    """A protocol; of some only so many people are counted on, at random."""
    given = _everybody(kind, draw)
    if given["n"] > 1 and draw.random() < 0.4:
        given["honest"] = Fraction(draw.randint(1, given["n"] - 1), given["n"])
    return given


def _everybody(kind: str, draw: random.Random) -> dict[str, Any]:
    n, k = draw.randint(1, 4), draw.randint(1, 3)
    if kind == "noise":
        return _noise(draw, n, k=k, max_distance=draw.choice([1, 2, n * k, n * k + 3]))
    if kind == "coarse":
        n, k = draw.randint(1, 3), draw.randint(2, 6)
        return _noise(draw, n, k=k, quantum=draw.randint(2, min(k, 4)), max_distance=draw.choice([1, 3, n * k]))
    if kind == "plane":
        n = draw.randint(1, 2)
        return _noise(draw, n, k=draw.randint(1, 3 - n), dimensions=2, max_distance=draw.choice([1, 2, 4, 5]))
    flips = {"mechanism": "rr", "n": n, "k": k, "delta": _decimal(draw, -6, -1), "p": _decimal(draw, -3, -0.001)}
    if kind == "flips":
        return flips | {"max_distance": draw.choice([1, n * k, n * k + 2])}
    if kind == "flips in the plane":
        return flips | {"n": draw.randint(1, 2), "k": draw.randint(1, 2), "dimensions": 2, "max_distance": 3}
    name, epsilon = draw.choice(["geo", "sgdl", "hybrid", "rr"]), _decimal(draw, -0.4, 0.6)
    given = {"mechanism": name, "n": n, "k": k, "delta": _decimal(draw, -6, -1), "epsilon": epsilon}
    if name == "hybrid":
        given["local_epsilon"] = epsilon * Fraction(draw.randint(105, 400), 100)
    return given | {"max_distance": draw.choice([1, 2, n * k])}


def _truth(found: MetricSolution) -> dict[float, float]:
    """The worst losses of the deployed protocol, at every distance at which there are data sets: of all numbers of
    people that are counted on, as the messages of the others are known.
    """
    design, delta = found.design, float(found.problem.delta)
    if design.flip is not None:
        laws = brute_force.flipped_laws(design.k, design.flip)
    else:
        assert design.shares is not None
        assert design.c is not None
        laws = brute_force.padded_laws(design.k, design.c, design.shares.beta, design.shares.q, design.quantum)
    points = [(x, y) for x in range(design.k + 1) for y in range(design.k + 1)]
    how: tuple[Any, ...] = () if design.dimensions == 1 else (brute_force.euclidean, points)
    worst: dict[float, float] = {}
    for people in range(design.fewest, design.n + 1):
        for distance, loss in brute_force.losses_by_distance(laws, people, delta, *how).items():
            worst[distance] = max(worst.get(distance, 0.0), loss)
    return worst


def _compare(found: MetricSolution) -> list[float]:
    """Check every distance; how far the claims are above the truth, as parts of them.

    In the plane distances are sums of lengths: the claim is that of the longest length in the profile below.
    """
    gaps, claims = [], [(distance, distance * epsilon) for distance, epsilon in found.profile]
    assert not any(math.isnan(loss) for _, loss in claims)
    for distance, truth in _truth(found).items():
        if distance <= found.problem.max_distance:
            longest = max(length for length, _ in claims if length <= distance + 1e-8)
            claim = min(loss for length, loss in claims if length == longest)
            assert claim >= truth * (1 - ROUND_OFF) - 1e-13, (found.problem, found.design, distance, claim, truth)
            if truth > 0:
                gaps.append(1 - truth / claim)
    return gaps


@pytest.mark.parametrize(
    ("kind", "count", "typical"),
    [("noise", 90, 0.05), ("coarse", 40, 0.7), ("plane", 30, 0.2), ("flips", 40, 1e-9), ("flips in the plane", 15, 0.2),
     ("calibrated", 35, 0.02)],
)  # fmt: skip
def test_random_protocols(kind: str, count: int, typical: float) -> None:
    """250 protocols: never below the truth, and half of the finite claims within a stated part of it."""
    draw, gaps, solved = random.Random(kind), [], 0
    while solved < count:
        given = _problem(kind, draw)
        if given.get("c", 0) > (12 if kind == "plane" else 30):
            continue
        try:
            found = solve(MetricShuffle(**given))
        except OptdpError:  # nothing is claimed
            continue
        solved += 1
        if kind == "calibrated":
            assert found.epsilon <= float(given["epsilon"]) * (1 + 2**-49)
            assert found.truncation <= given["delta"]
        if (found.c or 0) <= 40:
            gaps += _compare(found)
    assert np.median([gap for gap in gaps if gap < 1]) <= typical


@pytest.mark.parametrize(("mechanism", "more"), [
    ("geo", {}), ("sgdl", {}), ("hybrid", {"beta": "3/4"}), ("geo", {"dimensions": 2}),
])  # fmt: skip
def test_tight_with_long_paddings(mechanism: str, more: dict[str, Any]) -> None:
    """Without clamping worth mentioning the claim is the truth, to a millionth."""
    found = solve(MetricShuffle(mechanism, 2, 2, "1e-3", eps_geo="1.5", c=16, max_distance=2, **more))
    gaps = _compare(found)
    assert gaps
    assert max(gaps) < 1e-6


@pytest.mark.parametrize(
    ("c", "delta", "tight"), [(13, 1e-2, 0.05), (16, 1e-4, 0.06), (20, 1e-4, 2e-3), (30, 1e-4, 1e-5)]
)
def test_a_hundred_people(c: int, delta: float, tight: float) -> None:
    """n = 100, eps_geo = .8, k = 20: extreme data sets by exact convolution, at distances 1 to 20."""
    k, n = 20, 100
    found = solve(MetricShuffle("geo", n, k, Fraction(str(delta)), eps_geo="0.8", c=c, max_distance=20))
    assert found.design.shares is not None
    laws = brute_force.padded_laws(k, c, Fraction(1), found.design.shares.q)
    claims = {int(distance): distance * epsilon for distance, epsilon in found.profile}
    worst = dict.fromkeys((1, 2, 10, 20), 0.0)
    for values in ([0] * n, [k] * n, [0] * 50 + [k] * 50, [k // 2] * n, [1] + [0] * 99):
        rest = brute_force.sum_law(laws, values[20:])  # nobody of these moves
        law = np.convolve(rest, brute_force.sum_law(laws, values[:20]))
        for distance in worst:
            step = [x + 1 if x < k else x - 1 for x in values]
            jump = values[0] + distance if values[0] + distance <= k else values[0] - distance
            others = [step[:distance] + values[distance:20]] + ([[jump, *values[1:20]]] if jump >= 0 else [])
            for other in others:
                moved = np.convolve(rest, brute_force.sum_law(laws, other))
                both = brute_force.least_losses(np.array([law, moved]), np.array([moved, law]), delta)
                worst[distance] = max(worst[distance], float(both.max()))
    for distance, truth in worst.items():
        assert truth * (1 - ROUND_OFF) <= claims[distance] <= truth * (1 + tight)


@pytest.mark.parametrize("given", [
    {"mechanism": "sgdl", "epsilon": "0.5", "max_distance": 2}, {"mechanism": "rr", "p": "0.3", "max_distance": 2},
    {"mechanism": "geo", "eps_geo": "0.8", "max_distance": 2},
])  # fmt: skip
def test_without_the_shuffler_of_one_message(given: dict[str, Any]) -> None:
    """A compromised shuffler sees each message: for one person who moves the profile is never below the truth."""
    found = solve(MetricShuffle(n=20, k=3, delta="1e-4", shuffler="compromised", **given))
    design = found.design
    if design.flip is not None:
        laws = brute_force.flipped_laws(3, design.flip)
    else:
        assert design.shares is not None
        laws = brute_force.padded_laws(3, design.c or 0, design.shares.beta, design.shares.q)
    for distance, loss in brute_force.losses_by_distance(laws, 1, 1e-4).items():
        if distance <= 2:
            assert distance * dict(found.profile)[distance] >= loss * (1 - ROUND_OFF)
    pure = brute_force.losses_by_distance(laws, 1, found.local_delta)
    assert found.local_epsilon >= max(loss / distance for distance, loss in pure.items() if distance <= 2) * (
        1 - ROUND_OFF
    )


@pytest.mark.parametrize("quantum", [2, 3])
@pytest.mark.parametrize("mechanism", ["geo", "sgdl"])
def test_local_epsilon_of_coarse_messages(mechanism: str, quantum: int) -> None:
    """`log(1 + (e^local - 1)/Q)` holds with delta zero, clamped and rounded, and is reached at whole quanta."""
    found = solve(MetricShuffle(mechanism, 4, 6, "1e-3", eps_geo="1", c=12, quantum=quantum, max_distance=6))
    assert found.design.shares is not None
    laws = brute_force.padded_laws(6, 12, found.design.shares.beta, found.design.shares.q, quantum)
    truth = brute_force.losses_by_distance(laws, 1, 0.0)
    each = max(loss / distance for distance, loss in truth.items())
    assert each * (1 - ROUND_OFF) <= found.local_epsilon <= each * (1 + 1e-9)
