"""Entities that design alone: the figures, the laws that must stay, and the certificate against brute force."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optdp.plan.divisible_certify
from optdp import SGDL, ArtifactError, CertificateError, MultiLTE, Population, ProblemError, SharedNoise, solve
from optdp.numbers.exact import log_upper, precision
from optdp.plan.contraction import (
    DENOMINATOR,
    ContractionLP,
    CouplingLP,
    aggregate_error,
    basis,
    best_table,
    integer_rows,
    scaled,
    settled,
)
from optdp.plan.divisible import SharedPlan, design, geometric
from optdp.plan.divisible_certify import ErrorLaw, certify_shared, leak_of
from optdp.plan.parties import Entity

BIN = Population.binomial


def problem_of(name: str) -> MultiLTE:
    unequal = Population.independent([["0.5", "0.5"]] * 4 + [["0.8", "0.2"]] * 3)
    return {
        "two": lambda: MultiLTE([BIN(8, "0.5")] * 2, "0.8", method="joint"),
        "unequal parties": lambda: MultiLTE([BIN(8, "0.5"), BIN(5, "0.3")], "0.7", method="joint"),
        "unequal people": lambda: MultiLTE([unequal, BIN(5, "0.3")], "0.8", method="joint"),
        "D = 2": lambda: MultiLTE([Population.iid(4, ["0.3", "0.4", "0.3"])] * 2, "1.2", method="joint"),
        "two of three": lambda: MultiLTE(
            [BIN(6, "0.5"), BIN(6, "0.5"), BIN(4, "0.4")], "0.8", honest=2, method="joint"
        ),
        "weighted": lambda: MultiLTE([BIN(6, "0.5"), BIN(5, "0.4")], "1", f=[2, -1], method="joint"),
        "mse": lambda: MultiLTE([BIN(8, "0.5")] * 2, "0.8", objective="mse", method="joint"),
        "dependent": lambda: MultiLTE(
            [Population.from_conditionals([[["0.5", "0.3", "0.2"], ["0.2", "0.3", "0.5"]]], ["0.35", "0.3", "0.35"])]
            * 2,
            "1",
            method="joint",
        ),
    }[name]()


NAMES = ("two", "unequal parties", "unequal people", "D = 2", "two of three", "weighted", "mse", "dependent")


@lru_cache(maxsize=64)
def planned(name, contraction):
    problem = problem_of(name)
    return problem, design(problem, contraction)


def wide_table(noise: SharedNoise, reach: int) -> np.ndarray:
    """`Pr[s|x]` for `-reach..reach`, from the definition of a release; independent of the certificate's code."""
    outputs = range(-reach, reach + 1)
    with precision(96):
        values = [float(noise.noise.ball(k)) for k in range(4 * reach)]
    table = np.zeros((noise.last + 1, len(outputs)))
    low, high = noise.outputs
    for x in range(noise.last + 1):
        base = np.zeros(len(outputs))
        for y, weight in noise.contracted(x):
            base += [float(Fraction(weight, noise.contraction_denominator)) * values[abs(s - noise.factor * y)]
                     for s in outputs]  # fmt: skip
        row = noise.row(x)
        if row is not None:
            inside = slice(low + reach, high + reach + 1)
            mass, base[inside] = base[inside].sum(), 0.0
            for s, weight in row:
                base[s + reach] = mass * (weight / noise.denominator)
        table[x] = base
    return table


def brute_force(problem: MultiLTE, plan, reach: int):
    """Epsilons and mean errors from wide cut convolutions; what is cut is below `q^(reach/2)`."""
    tables = [wide_table(noise, reach) for noise in plan.parties]
    priors = [np.array([float(v) for v in p.total.balls(0, p.last)]) for p in problem.parties]
    reports = [prior @ table for prior, table in zip(priors, tables, strict=True)]
    epsilons = []
    for i, population in enumerate(problem.parties):
        worst = 0.0
        for rest in combinations([j for j in range(len(tables)) if j != i], problem.honest - 1):
            around = np.ones(1)
            for j in rest:
                around = np.convolve(around, reports[j])
            middle = slice(reach * problem.honest - reach // 3, reach * problem.honest + reach // 3)
            for person in population.people:
                laws = np.array([[float(v) for v in law.balls(0, law.last)] for law in person.conditionals])
                seen = [np.convolve(law @ tables[i], around)[middle] for law in laws]
                for one, other in pairwise(seen):
                    worst = max(worst, np.abs(np.log(one / other)).max())
        epsilons.append(worst * problem.sensitivity / abs(problem.f[i]))
    total, centre = np.ones(1), 0
    for f, prior, table in zip(problem.f, priors, tables, strict=True):
        law = np.zeros(4 * reach + 1)
        for x, (chance, row) in enumerate(zip(prior, table, strict=True)):
            start = reach - f * x
            law[start : start + 2 * reach + 1] += chance * row
        total, centre = np.convolve(total, law), centre + 2 * reach
    errors = np.abs(np.arange(len(total)) - centre)
    return epsilons, float(errors @ total), float(errors**2 @ total)


# ---------------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("n", "epsilon", "strength", "coupled", "contracted", "level_one", "best"),
    [(50, "0.3", 0.2, 2.43, 2.24, 1.92, 0.74), (25, "0.5", 0.3, 1.375, 1.13, 0.972, 0.365)],
)
def test_the_figures_of_two_parties(n, epsilon, strength, coupled, contracted, level_one, best):
    problem = MultiLTE([BIN(n, "0.5")] * 2, epsilon, method="divisible")
    entity = Entity.of(problem, 0)
    program, table = best_table(entity, settled(scaled(entity, strength), entity.mode) / DENOMINATOR)
    assert aggregate_error(entity, program.error_law(table)) < contracted
    for contraction, level, bound in (("none", None, coupled), ("optimal", 1, level_one), ("optimal", None, best)):
        plan = design(problem, contraction, level=level)
        assert plan.certificate.epsilon <= problem.epsilon
        assert plan.certificate.mae < bound
        assert plan.certificate.mae > bound - 0.02
    assert best < contracted < coupled < geometric(problem).certificate.mae


def test_many_parties_share_their_noise():
    problem = MultiLTE([BIN(20, "0.5")] * 10, "0.5", method="joint")
    plan = design(problem)
    assert plan.certificate.epsilon <= problem.epsilon
    assert plan.certificate.mae < 0.64
    assert plan.level < 1.3


def test_equal_parties_are_designed_once():
    problem = MultiLTE([BIN(8, "0.5"), BIN(5, "0.3"), BIN(8, "0.5")], "0.8", method="joint")
    plan = design(problem, "none")
    assert plan.parties[0] is plan.parties[2]
    assert plan.parties[0] != plan.parties[1]


# ---------------------------------------------------------------------- the certificate


@pytest.mark.parametrize("contraction", ["optimal", "scaled", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_the_certificate_holds_against_brute_force(name, contraction):
    problem, plan = planned(name, contraction)
    found = plan.certificate
    reach = 60 + math.ceil(30 / -math.log(plan.parties[0].q))
    epsilons, mae, mse = brute_force(problem, plan, reach)
    assert found.epsilon <= problem.epsilon
    for real, claimed in zip(epsilons, found.epsilons, strict=True):
        assert real <= float(claimed) + 1e-9
    assert mae == pytest.approx(float(found.mae), rel=1e-8)
    assert mse == pytest.approx(float(found.mse), rel=1e-7)
    assert mae <= float(found.mae) * (1 + 1e-12)
    baseline = geometric(problem).certificate
    assert (found.mse <= baseline.mse) if problem.objective == "mse" else (found.mae <= baseline.mae)


def test_the_epsilon_is_nearly_reached_without_a_contraction():
    problem, plan = planned("two", "none")
    epsilons, _, _ = brute_force(problem, plan, 120)
    assert epsilons[0] == pytest.approx(0.8, abs=1e-5)


def test_dependent_people_are_not_taken_for_independent():
    tied = [["0.9", "0.05", "0.05"], ["0.05", "0.05", "0.9"]]
    problem = MultiLTE([Population.from_conditionals([tied], ["0.475", "0.05", "0.475"])] * 2, "0.5", method="joint")
    with pytest.raises(CertificateError, match="epsilon"):
        geometric(problem)
    assert design(problem).certificate.epsilon <= problem.epsilon


def test_the_laws_of_the_outputs_stay():
    for name in NAMES[:6]:
        problem, plan = planned(name, "none")
        for population, noise in zip(problem.parties, plan.parties, strict=True):
            assert noise.rows
            with precision():
                leak = leak_of(population, noise)
            assert 1 <= leak.spread < 1 + 1e-7
            bare = replace(noise, inputs=(0, -1), outputs=(0, -1), rows=())
            law = np.array([float(v) for v in population.people[0].conditionals[0].balls(0, population.last)])
            assert law @ wide_table(noise, 40) == pytest.approx(law @ wide_table(bare, 40), rel=1e-7)


def test_a_contraction_that_moves_neighbours_apart_is_refused():
    problem, plan = planned("two", "none")
    rows = tuple(((min(max(2 * x - 4, 0), 8), DENOMINATOR),) for x in range(9))
    bad = SharedNoise(8, plan.parties[0].q, Fraction(1, 2), 1, rows, DENOMINATOR)
    certificate = certify_shared(problem, [bad, bad])
    assert certificate.epsilon > Fraction(9, 10)
    assert brute_force(problem, SharedPlan((bad, bad), certificate, "none"), 120)[0][0] > 0.9
    with pytest.raises(CertificateError, match="party 0"):
        certificate.check(problem)


def test_a_tampered_table_is_refused():
    problem, plan = planned("two", "none")
    noise = plan.parties[0]
    rows = list(noise.rows)
    (s, weight), *others = rows[4]
    t, second = others[0]
    rows[4] = ((s, weight - weight // 2), (t, second + weight // 2), *others[1:])
    with pytest.raises(CertificateError, match="epsilon"):
        certify_shared(problem, [replace(noise, rows=tuple(rows)), noise]).check(problem)
    rows[4] = ((s, weight - 1), *others)
    with pytest.raises(ArtifactError, match="sum to its denominator"):
        certify_shared(problem, [replace(noise, rows=tuple(rows)), noise])
    for change, message in (
        ({"q": noise.q / 2}, "add up to geometric noise"),
        ({"beta": Fraction(1, 3)}, "add up to geometric noise"),
        ({"last": 7, "contraction": None}, "row for each of its inputs|has the inputs"),
        ({"factor": 2}, "has the inputs"),
        ({"inputs": (0, 3)}, "row for each of its inputs"),
        ({"outputs": (2, 3)}, "increasing places"),
        ({"denominator": 3}, "power of two"),
        ({"outputs": (-(10**9), 10**9)}, "at most"),
    ):
        with pytest.raises((ArtifactError, CertificateError), match=message):
            certify_shared(problem, [noise, replace(noise, **change)])
    with pytest.raises(ArtifactError, match="one part for each"):
        certify_shared(problem, [noise])


# ---------------------------------------------------------------------- geometric noise


def test_shares_of_geometric_noise():
    problem = MultiLTE([BIN(10**6, "0.5")] * 3, "0.5", f=[1, 2, -2], method="joint")
    plan = geometric(problem)
    found = plan.certificate
    assert found.mae == problem.baseline_mae
    assert found.mse == 2 * problem.q / (1 - problem.q) ** 2
    assert found.epsilon == log_upper(1 / problem.q**2)
    assert found.epsilon <= problem.epsilon
    part = SGDL(Fraction(1, 3), problem.q)
    with precision():
        assert float(found.ordinary[1]) == pytest.approx(2 * math.log(part.pmf(0) / part.pmf(1)))
    some = geometric(MultiLTE([BIN(10, "0.5")] * 4, "0.5", honest=2, method="joint")).certificate
    total = SGDL(2, geometric(MultiLTE([BIN(10, "0.5")] * 4, "0.5", method="joint")).parties[0].q)
    assert float(some.mae) == pytest.approx(float(total.mean_absolute()), rel=1e-12)
    assert some.mse == total.variance


# ---------------------------------------------------------------------- programs


@given(st.integers(2, 12), st.data())
def test_settled_rows_never_move_apart(last, data):
    rows = data.draw(st.lists(st.lists(st.floats(0, 1), min_size=last + 1, max_size=last + 1),
                              min_size=last + 1, max_size=last + 1))  # fmt: skip
    table = np.array(rows) + 1e-6
    weights = settled(table / table.sum(axis=1, keepdims=True), data.draw(st.integers(0, last)))
    sums = np.cumsum(weights.astype(object), axis=1)
    assert (weights >= 0).all()
    assert (sums[:, -1] == DENOMINATOR).all()
    assert (sums[1:] <= sums[:-1]).all()
    assert (sums[:-1, :-1] <= sums[1:, 1:]).all()


def test_a_settled_contraction_stays_as_it_is():
    entity = Entity.of(problem_of("two"), 0)
    weights = settled(scaled(entity, 0.25), entity.mode)
    assert np.allclose(weights / DENOMINATOR, scaled(entity, 0.25), atol=1e-15)
    assert integer_rows(settled(np.eye(9), 4)) is None
    with precision():
        bad = SharedNoise(8, entity.noise.q, Fraction(1, 2), 1, integer_rows(weights), DENOMINATOR)
        leak = leak_of(problem_of("two").parties[0], bad)
    assert leak.quotient == pytest.approx(entity.quotient(scaled(entity, 0.25)), rel=1e-12)
    assert leak.quotient <= 1 / entity.noise.q


@pytest.mark.parametrize("name", ["two", "unequal people", "D = 2", "weighted"])
def test_arrays_and_cvxpy_state_the_same_program(name):
    from optdp.plan.models import contraction_model, coupling_model
    from optdp.programs.highs import solve_highs

    entity = Entity.of(problem_of(name), 0, Fraction(3, 2))
    moved = settled(scaled(entity, 0.4), entity.mode) / DENOMINATOR
    coupling, contraction = CouplingLP.of(entity, moved, entity.own_cost), ContractionLP.of(entity, 1e-9, 1e-4)
    for program, model in ((coupling, coupling_model(coupling)), (contraction, contraction_model(contraction))):
        model.solve(solver="CLARABEL")
        answer = solve_highs(program.to_program())
        assert answer.objective == pytest.approx(model.value, rel=1e-5)


def test_secrets_that_others_imply_are_recognised():
    entity = Entity.of(problem_of("unequal people"), 0)
    assert len(entity.laws) == 4
    assert len(basis(entity.laws, entity.importance)) == 3  # two kinds share the law of the sum


def test_what_cannot_be_designed_is_said():
    with pytest.raises(ProblemError, match="contraction must be one of"):
        design(problem_of("two"), "strong")
    with pytest.raises(ProblemError, match="level must be at least 1"):
        design(problem_of("two"), "optimal", level="0.5")
    with pytest.raises(ProblemError, match="inputs up to"):
        design(MultiLTE([BIN(3000, "0.5")] * 2, "0.5", method="joint"))
    with pytest.raises(ProblemError, match="too wide"):
        design(MultiLTE([BIN(8, "0.5")] * 2, "0.00001", method="joint"), "none")


# ---------------------------------------------------------------------- drawing


@pytest.mark.parametrize("name", ["two", "weighted"])
def test_draws_follow_the_stated_law(name):
    _, plan = planned(name, "optimal")
    noise = plan.parties[0]
    size, x = 20_000, 3
    draws = noise.sample(x, size, seed=7)
    assert draws == noise.sample(x, size, seed=7)
    counts = {s: draws.count(s) for s in set(draws)}
    with precision():
        for s in range(min(draws), max(draws) + 1):
            chance = float(noise.probability(x, s))
            assert abs(counts.get(s, 0) - size * chance) < 5 * math.sqrt(size * chance + 1)
        low, high = noise.outputs
        assert float(sum(noise.probability(x, s) for s in range(low, high + 1))) == pytest.approx(
            float(noise.inside_mass(x))
        )
    assert len(noise.sample(x, 3)) == 3
    with pytest.raises(ProblemError, match=r"0\.\."):
        noise.sample(99)
    with pytest.raises(ProblemError, match="size"):
        noise.sample(1, -1)


# ---------------------------------------------------------------------- many parties, and ends before the end


def test_a_sum_that_is_cut_is_the_whole_sum(monkeypatch):
    """The error of many alike parties against laws that are never cut on the way, and against floats."""
    problem = MultiLTE([BIN(6, "0.5")] * 12, "0.9", method="joint")
    noise = design(problem, "none").parties
    found = certify_shared(problem, noise).mae
    with precision():
        law = ErrorLaw.of(problem.parties[0], noise[0], 400)
        floats = np.array([float(value) for value in law.inside])
    whole = np.ones(1)
    for _ in range(12):
        whole = np.convolve(whole, floats)
    middle = len(whole) // 2
    assert float(found) == pytest.approx(float(np.abs(np.arange(-middle, middle + 1)) @ whole), rel=1e-9)
    monkeypatch.setattr(optdp.plan.divisible_certify, "WIDE", 1e6)
    uncut = certify_shared(problem, noise).mae
    assert 0 <= found - uncut < Fraction(1, 10**15)
    monkeypatch.setattr(optdp.plan.divisible_certify, "WIDE", 2.0)
    assert found <= certify_shared(problem, noise).mae < found * Fraction(3, 2)


def test_a_thousand_alike_parties_are_looked_at_once():
    few, many = (MultiLTE([BIN(3, "0.5") for _ in range(m)], "1", method="divisible") for m in (10, 1000))
    for problem in (few, many):
        plan = design(problem, "none", level=1)
        assert plan.certificate.epsilon <= problem.epsilon
        assert len(set(plan.certificate.epsilons)) == 1
        assert plan.certificate.mae <= problem.baseline_mae


@pytest.mark.parametrize("word", ["level 2.", "level", "tables"])
def test_interrupted_a_level_that_was_tried_is_taken(word):
    """The best level so far, be it the first one; while its tables are made, the baseline."""
    problem = MultiLTE([BIN(12, "0.5")] * 2, "0.5", method="divisible")
    told: list[str] = []

    def progress(text: str) -> None:
        told.append(text)
        if word in text and sum(word in line for line in told) == 1:
            raise KeyboardInterrupt

    solution = solve(problem, progress=progress)
    solution.certificate.check(problem)
    assert solution.status == "interrupted"
    if word == "tables":
        assert solution.certificate.mae == problem.baseline_mae
    else:
        assert solution.certificate.mae < problem.baseline_mae
