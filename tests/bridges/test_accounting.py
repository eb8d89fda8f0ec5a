"""The privacy loss distribution of a table: never below the truth in fractions, and close to it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optdp import CertificateError, NoiseMatrix, Population, ProblemError, SingleLTE, solve
from optdp.bridges import accounting
from optdp.bridges.accounting import corners, dominating_pair, pld, pld_from
from optdp.extras import install
from tests.bridges.tables import divergence, exact_epsilon, neighbours, table

pytest.importorskip("dp_accounting")
from dp_accounting.pld import privacy_loss_distribution as peer

COARSE = 1e-3


def factor(epsilon: float) -> Fraction:
    """At least `e^epsilon`, and hardly more: the divergence there is at most that at `e^epsilon`."""
    return Fraction(math.exp(epsilon)) * (1 + Fraction(1, 1 << 50))


def randomized_response(epsilon: float, step: float = COARSE) -> Any:
    top = math.ceil(epsilon / step)
    return peer.PrivacyLossDistribution.create_from_rounded_probability(corners(step, [top], [0.0]), 0.0, step)


@pytest.mark.parametrize("seed", range(30))
def test_delta_is_that_of_the_worst_pair(seed: int) -> None:
    matrix, largest = table(seed), 1 + seed % 3
    found = pld(matrix, largest, COARSE)
    pairs = list(neighbours(matrix, largest))
    end = float(exact_epsilon(matrix, largest))
    for share in (0.0, 0.1, 0.35, 0.5, 0.8, 0.99, 1.01):
        epsilon = share * end
        truth = max(divergence(one, other, factor(epsilon)) for one, other in pairs)
        delta = found.get_delta_for_epsilon(epsilon)
        assert delta >= truth
        if matrix.outside == "clamp" and matrix.q is not None:  # inputs beside the table count by their noise alone
            truth = max(truth, divergence(*noise_alone(matrix.q, largest), factor(epsilon)))
        assert delta <= float(truth) + COARSE  # a corner between two losses of the grid is cut


def noise_alone(q: Fraction, distance: int) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    span = range(-60, 60)
    one = {s: (1 - q) / (1 + q) * q ** abs(s) for s in span}
    return one, {s: (1 - q) / (1 + q) * q ** abs(s - distance) for s in span}


@pytest.mark.parametrize("seed", [0, 11, 16])
def test_a_finer_grid_is_closer(seed: int) -> None:
    matrix = table(seed)
    coarse, fine = pld(matrix, 1, 1e-2), pld(matrix, 1, 1e-4)
    pairs = list(neighbours(matrix, 1))
    for epsilon in (0.0, 0.123456, 0.7):
        truth = float(max(divergence(one, other, factor(epsilon)) for one, other in pairs))
        assert truth <= fine.get_delta_for_epsilon(epsilon) <= coarse.get_delta_for_epsilon(epsilon) * (1 + 1e-9)


def adaptive(matrix: NoiseMatrix, largest: int, alpha: Fraction) -> Fraction:
    """Two releases, the neighbours of the second chosen after the first: the worst that can happen."""
    pairs = list(neighbours(matrix, largest))
    worst = Fraction(0)
    for one, other in pairs:
        total = Fraction(0)
        for s, p in one.items():
            total += max(
                sum((max(Fraction(0), p * a - alpha * other[s] * then[t]) for t, a in first.items()), Fraction(0))
                for first, then in pairs
            )
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize("seed", range(4))
def test_two_releases_are_never_below_the_worst_that_can_happen(seed: int) -> None:
    rows = table(6 * seed + 3).rows[:3]  # without tails
    outputs = (rows[0][0][0], rows[0][-1][0])
    matrix = NoiseMatrix((0, len(rows) - 1), outputs, 1 << 10, rows, None, "error", len(rows) - 1)
    single, twice = pld(matrix, 1, COARSE), pld(matrix, 1, COARSE).self_compose(2)
    both = single.compose(pld(matrix, 1, COARSE))
    end = 2 * float(exact_epsilon(matrix, 1))
    for share in (0.0, 0.2, 0.5, 0.75, 0.95):
        truth = adaptive(matrix, 1, factor(share * end))
        for composed in (twice, both):
            delta = composed.get_delta_for_epsilon(share * end)
            assert truth <= delta
        assert delta <= randomized_response(end / 2).self_compose(2).get_delta_for_epsilon(share * end) + 1e-9


@pytest.mark.parametrize(("largest", "epsilon"), [(1, "0.3"), (4, "1")])
def test_geometric_noise_is_the_discrete_laplace_mechanism(largest: int, epsilon: str) -> None:
    people = Population.iid(12, ["0.5", *[f"{Fraction(1, 2 * largest)}"] * largest])
    solution = solve(SingleLTE(people, epsilon, method="geometric"))
    ours = solution.to_pld()
    theirs = peer.from_discrete_laplace_mechanism(float(epsilon) / largest, sensitivity=largest)
    for k in (1, 2, 16):
        mine, other = ours.self_compose(k), theirs.self_compose(k)
        for share in (0.0, 0.1, 0.5, 0.9):
            alike(mine, other, share * k * float(epsilon))
    for other in (
        peer.from_laplace_mechanism(2.0),
        peer.from_gaussian_mechanism(3.0),
        peer.from_discrete_laplace_mechanism(0.4),
    ):
        for at in (0.1, 0.5, 1.0):
            alike(ours.compose(other), theirs.compose(other), at)


def alike(ours: Any, theirs: Any, epsilon: float) -> None:
    """Ours may be below: the peer rounds negative losses up by a whole step, and a little adds up over 16 releases."""
    delta, expected = ours.get_delta_for_epsilon(epsilon), theirs.get_delta_for_epsilon(epsilon)
    assert 0.99 * expected - 1e-9 <= delta <= (1 + 1e-6) * expected + 1e-9


def binomial(k: int, epsilon: float, at: float) -> float:
    """Delta of `k` releases by randomized response, from the number of times that the truth was told."""
    p = 1 / (1 + math.exp(-epsilon))
    return sum(
        math.comb(k, j) * p**j * (1 - p) ** (k - j) * max(0.0, -math.expm1(at - epsilon * (2 * j - k)))
        for j in range(k + 1)
    )


def test_many_releases_of_a_count_with_geometric_noise_are_a_binomial() -> None:
    solution = solve(SingleLTE(Population.binomial(12, "0.5"), "0.3", method="geometric"))
    composed = solution.to_pld().self_compose(16)
    for at in (0.0, 0.5, 2.5, 4.3):
        truth = binomial(16, 0.3, at)
        assert truth - 1e-14 <= composed.get_delta_for_epsilon(at) <= truth * (1 + 1e-7) + 1e-14


def test_a_large_contribution_is_far_below_randomized_response() -> None:
    people = Population.iid(8, ["0.5", "0.2", "0.15", "0.1", "0.05"])
    solution = solve(SingleLTE(people, "0.5", fallback_epsilon=2))
    ordinary = solution.certificate.ordinary_epsilon
    assert ordinary is not None
    ours, bound = solution.to_pld(), randomized_response(float(ordinary), 1e-4)
    assert "whole profile" in ours.optdp_note
    assert ours.get_delta_for_epsilon(1.0) < 0.75 * bound.get_delta_for_epsilon(1.0)
    assert ours.self_compose(50).get_epsilon_for_delta(1e-6) < 0.95 * bound.self_compose(50).get_epsilon_for_delta(1e-6)


def test_nothing_is_lost_to_infinity() -> None:
    found = pld(table(5), 1)
    assert found.get_epsilon_for_delta(0.0) <= float(exact_epsilon(table(5), 1)) + 1e-4
    assert found._pmf_remove._infinity_mass == 0.0


def test_a_pair_is_its_own_mirror_image_and_has_mass_one() -> None:
    pair = dominating_pair(table(4), 2, COARSE)
    assert sum(pair.masses.values()) == pytest.approx(1.0, abs=1e-9)
    for index, mass in pair.masses.items():
        assert pair.masses[-index] == pytest.approx(mass * math.exp(-index * COARSE), rel=1e-9)


def test_a_large_table_gets_its_epsilon_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "TERMS", 10)
    matrix = table(7)
    found = pld(matrix, 1, COARSE)
    assert "randomized response" in found.optdp_note
    expected = randomized_response(float(exact_epsilon(matrix, 1)) + 1e-12)
    assert found.get_delta_for_epsilon(0.1) == pytest.approx(expected.get_delta_for_epsilon(0.1), abs=1e-9)


def test_fewer_losses_are_still_never_below(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = table(8)
    fine = pld(matrix, 2, COARSE)
    monkeypatch.setattr(accounting, "POINTS", 1)
    monkeypatch.setattr(accounting, "FEWEST", 20)
    few = pld(matrix, 2, COARSE)
    assert "21 losses" in few.optdp_note
    for epsilon in (0.0, 0.2, 0.5, 1.1):
        assert few.get_delta_for_epsilon(epsilon) >= fine.get_delta_for_epsilon(epsilon) * (1 - 1e-9)


def test_inputs_that_tell_nothing_lose_nothing() -> None:
    same = NoiseMatrix((0, 2), (0, 1), 4, (((0, 1), (1, 3)),) * 3, None, "error", 2)
    assert pld(same, 1).get_delta_for_epsilon(0.0) < 1e-9


def test_an_infinite_ordinary_epsilon_is_refused() -> None:
    solution = solve(SingleLTE(Population.binomial(12, "0.3"), "0.5"))
    with pytest.raises(CertificateError, match=r"ordinary epsilon is infinite.*fallback_epsilon"):
        solution.to_pld()


@pytest.mark.parametrize("step", [0, -1e-4, 2, math.nan, "fine", 1e-8])
def test_a_useless_discretization_is_refused(step: Any) -> None:
    with pytest.raises(ProblemError, match="discretization must be"):
        pld(table(1), 1, step)


def test_a_file_is_verified_first(tmp_path: Path) -> None:
    solution = solve(SingleLTE(Population.binomial(12, "0.3"), "0.5", fallback_epsilon=1))
    file = tmp_path / "count.json"
    solution.save(file)
    assert pld_from(file).get_delta_for_epsilon(0.2) == solution.to_pld().get_delta_for_epsilon(0.2)


def test_without_dp_accounting_the_extra_is_named(missing: Callable[..., None]) -> None:
    missing("dp_accounting.pld.pld_pmf")
    with pytest.raises(ProblemError, match=re.escape(install("accounting"))):
        pld(table(1))
