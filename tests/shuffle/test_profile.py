"""Profiles: the joint divergence in the plane, point by point, and what any profile must keep."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdp import MetricShuffle, solve
from optdp.numbers.divergence import Pair
from optdp.shuffle.metric import profile
from tests.shuffle import brute_force

laws = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=6)


def _pair(points: list[tuple[int, int]], lost: float) -> Pair:
    with np.errstate(divide="ignore"):
        u, w = (np.log(np.array(side, dtype=float) / 90) for side in zip(*points, strict=True))
    return Pair(u, w, lost)


@given(laws, laws, st.floats(0, 6), st.sampled_from([0.0, 0.001, 0.1]))
def test_two_releases_at_once(
    one: list[tuple[int, int]], other: list[tuple[int, int]], loss: float, lost: float
) -> None:
    """The joint divergence is that of the product, point by point; what either gives up is given up with all of it."""
    second = _pair(other, lost / 2)
    found = profile._both(_pair(one, lost), second, profile._curve(second))(loss)
    inside = sum(max(u * v - math.exp(loss) * w * z, 0.0) for (u, w), (v, z) in product(one, other)) / 90**2
    mass, beside = sum(u for u, _ in one) / 90, sum(u for u, _ in other) / 90
    given_up = lost * (beside + lost / 2) + mass * lost / 2
    assert found == pytest.approx(inside + given_up, rel=1e-9, abs=1e-12)
    assert found >= (inside + given_up) * (1 - 1e-12) - 1e-14


def test_shifts_in_the_plane() -> None:
    shifts = profile.shifts_within(5)
    assert shifts[:4] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert {(4, 3), (5, 0)} <= set(shifts)
    assert all(dx >= dy >= 0 and dx * dx + dy * dy <= 25 for dx, dy in shifts)
    assert len(shifts) == sum(1 for dx in range(1, 6) for dy in range(dx + 1) if dx * dx + dy * dy <= 25)


PROBLEMS = [
    {"mechanism": "geo", "n": 50, "eps_geo": "0.5", "max_distance": 60},
    {"mechanism": "geo", "n": 3, "eps_geo": "0.5", "c": 2, "max_distance": 9},
    {"mechanism": "sgdl", "n": 10, "eps_geo": "1", "c": 25, "max_distance": 40},
    {"mechanism": "hybrid", "n": 10, "beta": "0.3", "eps_geo": "1", "max_distance": 40},
    {"mechanism": "rr", "n": 10, "p": "0.3", "max_distance": 60},
    {"mechanism": "geo", "n": 20, "eps_geo": "0.5", "quantum": 3, "max_distance": 30},
    {"mechanism": "geo", "n": 20, "eps_geo": "0.5", "dimensions": 2, "max_distance": 10},
    {"mechanism": "geo", "n": 1, "eps_geo": "3", "c": 4, "dimensions": 2, "max_distance": 5},
    {"mechanism": "sgdl", "n": 2, "eps_geo": "1", "c": 0, "dimensions": 2, "max_distance": 5},
    {"mechanism": "rr", "n": 3, "p": "0.3", "dimensions": 2, "max_distance": 10},
    {"mechanism": "geo-local", "n": 3, "eps_geo": "0.3", "dimensions": 2, "max_distance": 10},
    {"mechanism": "geo-central", "n": 3, "eps_geo": "0.3", "dimensions": 2, "max_distance": 10},
]


@pytest.mark.parametrize("given", PROBLEMS, ids=lambda given: "-".join(str(value) for value in given.values()))
def test_losses_rise_with_the_distance(given: dict[str, object]) -> None:
    """Data sets that are further apart may move as little as nearer ones, so that no loss is below a nearer one's;
    equal lengths have one loss; no figure is no number.
    """
    found = solve(MetricShuffle(k=5, delta="1e-4", **given)).profile
    losses = [distance * epsilon for distance, epsilon in found]
    assert not any(math.isnan(loss) for loss in losses)
    assert all(after >= before * (1 - 1e-13) for before, after in pairwise(losses) if before < math.inf)
    assert all(after == math.inf for before, after in pairwise(losses) if before == math.inf)
    by_length: dict[float, set[float]] = {}
    for (distance, _), loss in zip(found, losses, strict=True):
        by_length.setdefault(distance, set()).add(loss)
    assert all(len(each) == 1 for each in by_length.values())


def test_geometric_noise_for_everybody_in_the_plane() -> None:
    """One person moves by (4, 3), another by (2, 0): seven apart, and the loss is that of nine steps."""
    noise = 0.3
    found = dict(solve(MetricShuffle("geo-local", 2, 10, eps_geo="0.3", max_distance=7, dimensions=2)).profile)
    assert 7 * found[7.0] >= 9 * noise * (1 - 1e-12)
    assert 5 * found[5.0] >= 7 * noise * (1 - 1e-12)


def test_the_honest_loss_is_never_above_that_of_all_messages() -> None:
    """With a padding so short that truncation alone spends delta, the messages themselves still hide eps_geo a unit."""
    found = solve(MetricShuffle("geo", 100, 10, "1e-6", eps_geo="0.2", c=20, max_distance=5))
    assert found.epsilon == pytest.approx(0.2, rel=1e-9)
    assert found.epsilon >= 0.2
    assert found.epsilon <= found.local_epsilon * (1 + 1e-12)


@pytest.mark.parametrize("c", [0, 1, 3])
@pytest.mark.parametrize(
    ("mechanism", "more"),
    [("geo", {}), ("sgdl", {}), ("hybrid", {"beta": "0.6"}), ("geo", {"quantum": 2}), ("sgdl", {"quantum": 3})],
)
def test_the_cap_holds_for_every_pair_of_data_sets(mechanism: str, more: dict[str, Any], c: int) -> None:
    """Three people, delta as good as zero, so that nothing but the cap is left; all pairs of data sets."""
    solution = solve(MetricShuffle(mechanism, 3, 3, "1e-12", eps_geo="0.7", c=c, max_distance=6, **more))
    design = solution.design
    assert design.shares is not None
    laws = brute_force.padded_laws(3, c, design.shares.beta, design.shares.q, design.quantum)
    truth = brute_force.losses_by_distance(laws, 3, 1e-12)
    found = dict(solution.profile)
    for distance, loss in truth.items():
        if distance <= 6:
            assert loss <= distance * found[distance] * (1 + 1e-9)
            assert found[distance] <= solution.local_epsilon * (1 + 1e-12)
    assert max(truth[d] / d for d in (1, 2)) > 0.5 * solution.epsilon


def test_the_cap_in_the_plane_counts_steps() -> None:
    """At distance 5 people may take (4, 3): seven steps, each hidden by eps_geo."""
    solution = solve(MetricShuffle("geo", 50, 9, "1e-9", eps_geo="0.3", c=1, max_distance=5, dimensions=2))
    found = dict(solution.profile)
    assert 5 * found[5.0] == pytest.approx(7 * 0.3, rel=1e-9)
    assert found[1.0] == pytest.approx(0.3, rel=1e-9)
    assert solution.local_epsilon == pytest.approx(0.3 * math.sqrt(2), rel=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [("geo", {"eps_geo": "0.8", "c": 9}), ("sgdl", {"eps_geo": "1", "c": 9}), ("geo", {"eps_geo": "1", "quantum": 3}),
     ("rr", {"p": "0.4"}), ("sgdl", {"eps_geo": "1", "c": 1}), ("geo", {"eps_geo": "2", "unit": 2, "max_distance": 2})],
)  # fmt: skip
def test_moves_beyond_those_that_are_promised(mechanism: str, more: dict[str, Any]) -> None:
    """One person of three moves by more than max_distance: all such pairs of data sets, by brute force."""
    n, k, delta = 3, 6, 1e-3
    found = solve(MetricShuffle(mechanism, n, k, "1e-3", **more))
    design, furthest = found.design, found.problem.max_distance
    if design.flip is not None:
        laws = brute_force.flipped_laws(k, design.flip)
    else:
        assert design.shares is not None
        laws = brute_force.padded_laws(k, design.c or 0, design.shares.beta, design.shares.q, design.quantum)
    assert [distance for distance, _ in found.further] == [d for d in (2, 4, 6) if d > furthest]
    for distance, epsilon in found.further:
        truth = 0.0
        for others in product(range(0, k + 1, design.step), repeat=n - 1):
            for x in range(0, k + 1 - int(distance), design.step):
                one, other = (brute_force.sum_law(laws, [y, *others])[None] for y in (x, x + int(distance)))
                truth = max(
                    truth, *(float(brute_force.least_losses(*pair, delta)[0]) for pair in ((one, other), (other, one)))
                )
        assert truth * (1 - 1e-9) <= distance * epsilon
        assert epsilon <= found.local_epsilon * (1 + 1e-9) or mechanism == "rr"
    assert solve(MetricShuffle("geo", n, k, "1e-3", eps_geo="1", max_distance=k)).further == ()


def test_moves_beyond_in_the_plane() -> None:
    """One message alone limits them: seven steps of eps_geo at (4, 3)."""
    found = solve(MetricShuffle("geo", 20, 5, "1e-4", eps_geo="0.5", max_distance=2, dimensions=2))
    far, epsilon = found.further[-1]
    assert far == pytest.approx(math.hypot(5, 5))
    assert far * epsilon == pytest.approx(0.5 * 10, rel=1e-9)
