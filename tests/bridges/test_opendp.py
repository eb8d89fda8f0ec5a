"""The measurement of a table: it releases what the table says, its map is proved, it chains and composes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from math import nextafter
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chi2

from optdp import (
    ArtifactError,
    CertificateError,
    NoiseMatrix,
    Population,
    ProblemError,
    SingleLTE,
    Solution,
    solve,
)
from optdp.bridges.opendp import in_context, measurement, measurement_from
from optdp.extras import install
from tests.bridges.tables import exact_epsilon, law, table

pytest.importorskip("opendp")
FEATURES = ("contrib", "honest-but-curious")


@pytest.fixture
def dp() -> Iterator[Any]:
    import opendp.prelude as dp

    dp.enable_features(*FEATURES)
    yield dp
    dp.disable_features(*FEATURES)


@pytest.fixture(scope="module")
def count() -> Solution:
    return solve(SingleLTE(Population.binomial(20, "0.3"), "0.5", fallback_epsilon=1))


def chi_square(released: list[int], chances: dict[int, Fraction]) -> float:
    """The chance of a worse fit; outputs that are expected less than ten times are put together."""
    size, counts = len(released), Counter(released)
    common = {s: float(p) * size for s, p in chances.items() if float(p) * size >= 10}
    rare = size - sum(common.values())
    statistic = sum((counts[s] - mean) ** 2 / mean for s, mean in common.items())
    others = sum(n for s, n in counts.items() if s not in common)
    statistic += (others - rare) ** 2 / rare if rare > 5 else 0.0
    return float(chi2.sf(statistic, max(len(common) - 1 + (rare > 5), 1)))


def test_releases_follow_the_row(dp: Any, count: Solution) -> None:
    matrix = count.mechanism
    release = count.to_opendp()
    chances = {s: Fraction(float(matrix.probability(6, s).mid())) for s in range(-40, 60)}
    assert chi_square([release(6) for _ in range(20_000)], chances) > 1e-6


@pytest.mark.parametrize(("x", "served"), [(-7, 0), (2**31 - 1, 5)])
def test_numbers_that_no_count_can_be_are_put_in_range(dp: Any, x: int, served: int) -> None:
    matrix = NoiseMatrix((0, 5), (0, 5), 64, tuple(uneven(i) for i in range(6)), None, "error", 5)
    release = measurement(matrix)
    assert chi_square([release(x) for _ in range(2_000)], law(matrix, served)) > 1e-6


def uneven(x: int) -> tuple[tuple[int, int], ...]:
    return tuple((s, 59 if s == x else 1) for s in range(6))


@pytest.mark.parametrize("seed", range(12))
def test_the_map_is_the_log_quotient_rounded_up(dp: Any, seed: int) -> None:
    matrix = table(seed)
    release = measurement(matrix, largest=2)
    assert release.map(0) == 0.0
    for distance in (1, 2):
        truth = exact_epsilon(matrix, distance)
        found = release.map(distance)
        assert Fraction(found) >= truth - Fraction(1, 10**40)
        if matrix.q is None:
            assert Fraction(nextafter(found, 0.0)) < truth + Fraction(1, 10**30)
    alone = measurement(matrix)
    unit = alone.map(1)
    for distance in (3, 7, 1000):
        assert release.map(distance) <= alone.map(distance) * (1 + 1e-15)
        assert alone.map(distance) == pytest.approx(distance * unit, rel=1e-15)
        assert Fraction(release.map(distance)) >= exact_epsilon(matrix, min(distance, matrix.last)) - Fraction(
            1, 10**40
        )


def test_a_negative_distance_is_refused(dp: Any, count: Solution) -> None:
    from opendp.mod import OpenDPException

    with pytest.raises(OpenDPException, match="not be negative"):
        count.to_opendp().map(-1)


def test_it_carries_the_ordinary_epsilon_not_the_one_under_the_prior(dp: Any, count: Solution) -> None:
    ordinary = count.certificate.ordinary_epsilon
    assert ordinary is not None
    assert Fraction(1, 2) < ordinary <= Fraction(count.to_opendp().map(1)) <= 1


def test_a_contribution_of_several_units_has_the_certified_epsilon(dp: Any) -> None:
    people = Population.iid(6, ["0.5", "0.3", "0.2"])
    solution = solve(SingleLTE(people, 1, fallback_epsilon=3, adjacency="all", never_worse=False))
    assert solution.certificate.ordinary_epsilon is not None
    found = solution.to_opendp().map(2)
    assert nextafter(found, 0.0) < solution.certificate.ordinary_epsilon <= Fraction(found)


def test_it_chains_after_a_count_and_after_a_sum(dp: Any, count: Solution) -> None:
    release = count.to_opendp()
    rows = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    after = dp.t.make_count(*rows) >> release
    people = ["ill"] * 6
    assert after.map(1) == release.map(1)
    assert after.map(3) == release.map(3)
    matrix = count.mechanism
    chances = {s: Fraction(float(matrix.probability(6, s).mid())) for s in range(-40, 60)}
    assert chi_square([after(people) for _ in range(1_000)], chances) > 1e-6
    flags = dp.vector_domain(dp.atom_domain(bounds=(0, 4))), dp.symmetric_distance()
    summed = flags >> dp.t.then_sum() >> release
    assert summed.map(1) == release.map(4)
    assert isinstance(summed([1, 4, 0, 1]), int)


def test_other_widths_of_numbers_are_asked_for(dp: Any, count: Solution) -> None:
    rows = dp.vector_domain(dp.atom_domain(T=bool)), dp.symmetric_distance()
    after = dp.t.make_count(*rows, TO="i64") >> count.to_opendp(T="i64")
    assert after.map(1) == count.to_opendp().map(1)


def test_it_composes_with_other_measurements(dp: Any, count: Solution) -> None:
    from opendp.mod import OpenDPException

    rows = dp.vector_domain(dp.atom_domain(T=bool)), dp.symmetric_distance()
    counted = dp.t.make_count(*rows)
    ours, theirs = counted >> count.to_opendp(), counted >> dp.m.then_laplace(scale=2.0)
    total = ours.map(1) + theirs.map(1)
    together = dp.c.make_composition([ours, theirs, ours])
    assert together.map(1) == pytest.approx(total + ours.map(1), rel=1e-12)
    assert together.map(1) >= total + ours.map(1) - 1e-12
    assert len(together([True] * 5)) == 3
    budget = [theirs.map(1), ours.map(1)]
    asked = dp.c.make_adaptive_composition(*rows, output_measure=dp.max_divergence(), d_in=1, d_mids=budget)
    assert asked.map(1) == pytest.approx(total, rel=1e-12)
    answers = asked([True] * 5)
    assert isinstance(answers(theirs), int)
    assert isinstance(answers(ours), int)
    with pytest.raises(OpenDPException):  # the budget is spent
        answers(ours)


def test_a_context_spends_its_budget_on_it(dp: Any, count: Solution) -> None:
    rows = dp.vector_domain(dp.atom_domain(T=bool))
    context = dp.Context.compositor(
        data=[True] * 6,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=2.0),
        split_evenly_over=2,
        domain=rows,
    )
    counted = dp.t.make_count(rows, dp.symmetric_distance())
    assert isinstance(context(counted >> count.to_opendp()), int)
    assert isinstance(context.query().count().laplace().release(), int)


def test_a_file_is_verified_first(dp: Any, count: Solution, tmp_path: Path) -> None:
    file = tmp_path / "count.json"
    count.save(file)
    assert measurement_from(file).map(1) == count.to_opendp().map(1)
    file.write_text(file.read_text(encoding="utf-8").replace('"0.5"', '"0.4"'), encoding="utf-8")
    with pytest.raises((ArtifactError, CertificateError)):
        measurement_from(file)


def test_an_infinite_ordinary_epsilon_is_refused(dp: Any) -> None:
    solution = solve(SingleLTE(Population.binomial(20, "0.3"), "0.5"))
    assert solution.certificate.ordinary_epsilon is None
    with pytest.raises(CertificateError, match=r"ordinary epsilon is infinite.*fallback_epsilon"):
        solution.to_opendp()


def test_who_has_not_agreed_is_told_what_to_say(count: Solution) -> None:
    with pytest.raises(ProblemError, match=r'enable_features\("contrib", "honest-but-curious"\)'):
        count.to_opendp()


def test_without_opendp_the_extra_is_named(count: Solution, missing: Callable[..., None]) -> None:
    missing("opendp.prelude")
    with pytest.raises(ProblemError, match=re.escape(install("opendp"))):
        count.to_opendp()


def test_a_query_of_a_context(dp: Any, count: Solution, tmp_path: Path) -> None:
    """It costs the ordinary epsilon, is refused where less is left, and comes after whole numbers alone."""
    in_context()
    in_context()  # twice does no harm

    def context(epsilon: float) -> Any:
        return dp.Context.compositor(
            data=["a"] * 7, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=epsilon),
            split_evenly_over=1, domain=dp.vector_domain(dp.atom_domain(T=str)),
        )  # fmt: skip

    count.save(tmp_path / "a.json")
    for given in (count, str(tmp_path / "a.json"), tmp_path / "a.json"):
        assert isinstance(context(1.0).query().count().optdp(given).release(), int)
    with pytest.raises(import_module("opendp.mod").OpenDPException, match="insufficient budget"):
        context(0.9).query().count().optdp(count).release()
    with pytest.raises(ProblemError, match="after a count or a sum of whole numbers"):
        context(1.0).query().optdp(count)
    with pytest.raises(CertificateError, match="ordinary epsilon is infinite"):
        context(1.0).query().count().optdp(solve(SingleLTE(Population.binomial(9, "0.3"), "0.5")))
