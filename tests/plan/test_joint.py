"""Joint plans against exact rational arithmetic, against the definition by enumeration, and against other solvers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog

import optdp.plan.block
import optdp.plan.methods
import optdp.single.solve
from optdp import (
    CertificateError,
    MultiLTE,
    NoiseMatrix,
    PlanSolution,
    Population,
    ProblemError,
    SingleLTE,
    certify,
    epsilon_under,
    solve,
    verify_plan,
)
from optdp.plan.block import TableProgram, improve
from optdp.plan.certificate import bounding
from optdp.plan.certify import certify_plan
from optdp.plan.joint import PlanDraft, descend, multisets
from optdp.plan.parties import parties_of
from optdp.plan.starts import MOST_PRODUCTS, Size, starts
from optdp.work.account import Effort
from tests.checkers import agrees
from tests.exact_plan_checker import CheckedPlan, exp_bounds, prior

Array = npt.NDArray[np.float64]
TINY = Fraction(1, 10**15)
NEARLY = 1 - Fraction(1, 10**12)


def checked(solution: PlanSolution, folder: Path) -> CheckedPlan:
    """Hold every figure of a plan of finite tables against exact fractions, from the files alone."""
    solution.save(folder)
    truth, certificate, problem = CheckedPlan(folder), solution.certificate, solution.problem
    assert verify_plan(folder).certificate == certificate
    agrees(folder, certificate)
    for i, ratio in enumerate(truth.quotients()):
        assert truth.keeps(i, ratio), f"party {i} does not keep epsilon"
        found = certificate.epsilons[i]
        assert found is not None
        assert truth.keeps(i, ratio, found)
        assert ratio == 1 or truth.exceeds(i, ratio, found * NEARLY)
        alone = certificate.ordinary[i]
        if problem.fallback_epsilon is not None:
            assert truth.ordinary(i, problem.fallback_epsilon)
        if alone is None:
            assert truth.tables[i].ordinary(problem.parties[i].last) is None
        elif alone:
            assert truth.ordinary(i, alone)
            assert not truth.ordinary(i, alone * NEARLY)
    figures = [(truth.mean(1), certificate.mae), (truth.mean(2), certificate.mse)]
    for exact, claimed in [*figures, *zip(truth.own_mae(), certificate.own_mae, strict=True)]:
        assert exact <= claimed <= exact + TINY
    assert Fraction(truth.plan["claim"]["mae"]) >= truth.mean(1)
    return truth


def finite(solution: PlanSolution) -> list[NoiseMatrix]:
    tables = [table for table in solution.tables if isinstance(table, NoiseMatrix)]
    assert len(tables) == len(solution.tables), solution.note
    return tables


def value(solution: PlanSolution) -> tuple[Fraction, Fraction]:
    """The objective, and that of geometric noise."""
    certificate, problem = solution.certificate, solution.problem
    if problem.objective == "mae":
        return certificate.mae, problem.baseline_mae
    return certificate.mse, problem.baseline_mse


# ---------------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("m", "n", "p", "epsilon", "most"),
    [
        (2, 25, "0.5", "0.5", 0.2145),
        (2, 12, "0.5", "0.5", 0.435),
        (3, 20, "0.5", "0.5", 0.195),
        (2, 50, "0.1", "0.3", 0.88),
        (5, 10, "0.5", "0.5", 0.30),
    ],
)
def test_figures_to_hold(m, n, p, epsilon, most, tmp_path):
    solution = solve(MultiLTE([Population.binomial(n, p)] * m, epsilon, method="joint"))
    assert solution.status == "local optimum"
    truth = checked(solution, tmp_path / "plan")
    assert truth.mean(1) <= most
    assert solution.lower_bound is not None
    assert 0 < solution.lower_bound <= truth.mean(1) <= solution.problem.baseline_mae
    assert verify_plan(tmp_path / "plan").bound_proved


# ---------------------------------------------------------------------- random problems


def random_law(random: Random, size: int) -> list[Fraction]:
    weights = [random.choice([1, random.randint(1, 9), random.randint(1, 1000)]) for _ in range(size)]
    if random.random() < 0.15:
        weights[random.randrange(size)] = 0
    return [Fraction(weight, sum(weights)) for weight in weights] if any(weights) else random_law(random, size)


def random_party(random: Random) -> list[Population]:
    """A population and another one with the same inputs and contributions."""
    kind = random.choice(["binomial", "binomial", "iid", "independent", "counts", "others"])
    n, largest = random.randint(1, 6), random.choice([1, 1, 2])
    if kind == "binomial":
        return [Population.binomial(n, random.choice(["1/2", "0.1", "0.97", "1e-3", "1/3"])) for _ in range(2)]
    if kind == "iid":
        return [Population.iid(1 + n // 2, random_law(random, largest + 1)) for _ in range(2)]
    if kind == "counts":
        tallies = [[random.randint(0, 30) for _ in range(largest + 1)] for _ in range(2)]
        return [Population.from_counts(tally, 1 + n // 2) for tally in tallies]
    if kind == "independent":
        return [
            Population.independent([random_law(random, 2)] * 2 + [random_law(random, largest + 1)] * (1 + n // 3))
            for _ in range(2)
        ]
    return [Population.from_others(random_law(random, n), random_law(random, largest + 1)) for _ in range(2)]


def random_plan(seed: int) -> MultiLTE:
    """Problem number `seed`."""
    random = Random(seed)
    m = random.choice([2, 2, 2, 3, 3, 4])
    pairs = [random_party(random) for _ in range(m)]
    epsilon = Fraction(random.choice([1, 3, 5, 10, 20, 40]), 10)
    return MultiLTE(
        [pair[0] for pair in pairs],
        epsilon,
        honest=random.choice([m, m, random.randint(1, m)]),
        objective=random.choice(["mae", "mae", "mse"]),
        fallback_epsilon=epsilon * random.choice([2, 4]) if random.random() < 0.25 else None,
        f=[random.choice([1, 1, 2, -1, -3]) for _ in range(m)] if random.random() < 0.4 else None,
        also=[[pair[1] for pair in pairs]] if random.random() < 0.25 else [],
        method="joint",
    )


@pytest.mark.parametrize(
    "seed",
    [0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 14, 18, 20, 22, 23, 39],  # all kinds of them, and those that do not take long
)
def test_random_problems(seed, tmp_path):
    problem = random_plan(seed)
    solution = solve(problem)
    assert solution.status == "local optimum", solution.note
    found, most = value(solution)
    assert found <= most or problem.fallback_epsilon is not None
    assert checked(solution, tmp_path / "plan").private()


def test_a_secret_beyond_the_likely_inputs(tmp_path):
    parties = [Population.binomial(3, "0.7"), Population.from_others(["0.01", "0.02", "0.03", "0.64", "0.3"], [0, 1])]
    solution = solve(MultiLTE(parties, "0.5", method="joint"))
    assert solution.status == "local optimum"
    checked(solution, tmp_path / "plan")


# ---------------------------------------------------------------------- the definition, by enumeration


def people(population: Population) -> list[tuple[Fraction, ...]]:
    return [law for law, count in population.laws for _ in range(count)]


def aggregates(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], honest: Sequence[int], who: tuple[int, int], w: int
) -> dict[int, Fraction]:
    """`Pr[S | person who contributes w]`, where S is the sum over the honest, over all that anybody may contribute."""
    crowd = [(i, k, law) for i in honest for k, law in enumerate(people(problem.parties[i]))]
    inputs: dict[tuple[int, ...], Fraction] = {}
    for data in itertools.product(*(range(len(law)) for _, _, law in crowd)):
        chance = Fraction(1)
        for (i, k, law), given in zip(crowd, data, strict=True):
            chance *= law[given] if (i, k) != who else int(given == w)
        key = tuple(sum(v for (i, _, _), v in zip(crowd, data, strict=True) if i == j) for j in honest)
        inputs[key] = inputs.get(key, Fraction(0)) + chance
    found: dict[int, Fraction] = {}
    for key, chance in inputs.items():
        rows = [tables[j].row(x) or () for j, x in zip(honest, key, strict=True)]
        for reports in itertools.product(*rows):
            weight = Fraction(math.prod(weight for _, weight in reports))
            total = sum(s for s, _ in reports)
            found[total] = found.get(total, Fraction(0)) + chance * weight
    return {s: value for s, value in found.items() if value}


@pytest.mark.parametrize(("honest", "f"), [(1, (2, -1)), (2, (1, 1))])
def test_the_definition_itself(honest, f):
    parties = [
        Population.independent([["0.5", "0.5"], ["0.3", "0.7"], ["0.2", "0.3", "0.5"]]),
        Population.independent([["0.4", "0.6"], ["0.1", "0.9"]]),
    ]
    problem = MultiLTE(parties, 1, honest=honest, f=f, method="joint")
    solution = solve(problem)
    tables = finite(solution)
    for i, population in enumerate(parties):
        worst = Fraction(1)
        for chosen in itertools.combinations(range(2), honest):
            if i not in chosen:
                continue
            for k, law in enumerate(people(population)):
                for w in range(len(law) - 1):
                    one, other = (aggregates(problem, tables, chosen, (i, k), v) for v in (w, w + 1))
                    assert one.keys() == other.keys()
                    worst = max([worst, *(max(one[s] / other[s], other[s] / one[s]) for s in one)])
        found = solution.certificate.epsilons[i]
        assert found is not None
        share = Fraction(abs(f[i]), max(2 * abs(f[0]), abs(f[1])))
        assert exp_bounds(found * NEARLY * share)[1] < worst <= exp_bounds(found * share)[0]
        assert worst <= exp_bounds(problem.epsilon * share)[0]


def test_one_honest_party_is_private_alone():
    parties = [Population.binomial(6, "0.5"), Population.iid(3, ["0.2", "0.3", "0.5"])]
    problem = MultiLTE(parties, "0.8", honest=1, f=[-3, 1], method="joint")
    solution = solve(problem)
    for i, (table, population) in enumerate(zip(finite(solution), parties, strict=True)):
        share = Fraction(abs(problem.f[i]) * population.largest, 3)
        alone = SingleLTE(population, problem.epsilon * share, tail="none", never_worse=False)
        found, claimed = certify(alone, table).epsilon, solution.certificate.epsilons[i]
        assert found is not None
        assert claimed is not None
        assert found <= alone.epsilon
        assert abs(found - claimed * share) < TINY


# ---------------------------------------------------------------------- faults


@cache
def small_plan() -> PlanSolution:
    return solve(MultiLTE([Population.binomial(6, "0.5"), Population.binomial(4, "0.3")], "0.7", method="joint"))


def with_row(table: NoiseMatrix, i: int, row: dict[int, int]) -> NoiseMatrix:
    rows = [*table.rows[:i], tuple(sorted((s, weight) for s, weight in row.items() if weight)), *table.rows[i + 1 :]]
    return replace(table, rows=tuple(rows))


def faults() -> dict[str, NoiseMatrix]:
    """Tables of party 0 that are not those of the plan."""
    table = finite(small_plan())[0]
    swapped = dict(table.rows[3])
    likely = max(swapped, key=swapped.__getitem__)
    moved = {**swapped, likely: swapped[likely] // 2}
    moved[likely + 1] += swapped[likely] - moved[likely]
    *others, last = map(dict, table.rows)
    top = max(last)
    for row in others:
        row[0] += row.pop(top, 0)
    return {
        "half of a likely weight moved by one": with_row(table, 3, moved),
        "two rows exchanged": replace(table, rows=(*table.rows[:2], table.rows[3], table.rows[2], *table.rows[4:])),
        "an output left to one row": replace(table, rows=tuple(tuple(sorted(row.items())) for row in [*others, last])),
    }


@pytest.mark.parametrize("name", faults())
def test_a_changed_row_is_caught(name, tmp_path):
    plan = small_plan()
    tables = (faults()[name], finite(plan)[1])
    certificate = certify_plan(plan.problem, tables)
    with pytest.raises(CertificateError, match="epsilon of the people of party"):
        certificate.check(plan.problem)
    replace(plan, tables=tables, certificate=certificate).save(tmp_path / "plan")
    assert not CheckedPlan(tmp_path / "plan").private()
    with pytest.raises(CertificateError):
        verify_plan(tmp_path / "plan")


def test_the_smallest_weight_moved_is_still_measured(tmp_path):
    plan = small_plan()
    table = finite(plan)[0]
    row = dict(table.rows[0])
    row[0] -= 1
    row[1] += 1
    tables = (with_row(table, 0, row), finite(plan)[1])
    checked(replace(plan, tables=tables, certificate=certify_plan(plan.problem, tables)), tmp_path / "plan")


@pytest.mark.parametrize("spread", [False, True])
def test_supports_that_tell_secrets_apart(spread):
    """A party that reports its sum as it is, beside one that says the same or anything."""
    plan = small_plan()
    one = NoiseMatrix((0, 6), (0, 6), 4, tuple(((x, 4),) for x in range(7)), None, "clamp", 6)
    even = tuple((s, 1) for s in range(-1, 3))
    rows = tuple(even if spread else ((x, 4),) for x in range(5))
    other = NoiseMatrix((0, 4), (-1, 4), 4, rows, None, "clamp", 4)
    certificate = certify_plan(plan.problem, (one, other))
    assert certificate.epsilons[0] is None
    assert certificate.epsilon is None
    if spread:
        assert certificate.epsilons[1] is not None
        assert certificate.epsilons[1] < TINY
    with pytest.raises(CertificateError, match="Found infinite"):
        certificate.check(plan.problem)


# ---------------------------------------------------------------------- worlds


def worst_in(truth: CheckedPlan, world: Sequence[Population]) -> list[Fraction | None]:
    return truth.quotients([[prior(dict(population.spec)) for population in world]])


def test_the_world_as_it_was_thought(tmp_path):
    plan = small_plan()
    assert epsilon_under(plan, plan.problem.parties) == plan.certificate.epsilon
    plan.save(tmp_path / "plan")
    assert epsilon_under(verify_plan(tmp_path / "plan"), plan.problem.parties) == plan.certificate.epsilon


def test_another_world(tmp_path):
    plan = small_plan()
    plan.save(tmp_path / "plan")
    truth = CheckedPlan(tmp_path / "plan")
    worlds = [
        [Population.binomial(6, "0.2"), Population.binomial(4, "0.6")],
        [Population.binomial(6, "0.5"), Population.independent([["0.9", "0.1"]] * 2 + [["0.2", "0.8"]] * 2)],
        [Population.binomial(5, "0.5"), Population.binomial(2, "0.3")],
    ]
    seen = []
    for world in worlds:
        found = epsilon_under(plan, world)
        assert found is not None
        assert found != plan.certificate.epsilon
        ratios = worst_in(truth, world)
        assert all(truth.keeps(i, ratio, found) for i, ratio in enumerate(ratios))
        assert any(truth.exceeds(i, ratio, found * NEARLY) for i, ratio in enumerate(ratios))
        seen.append(found)
    assert epsilon_under(plan, worlds) == max(seen)


def test_a_world_with_larger_contributions(tmp_path):
    plan = small_plan()
    plan.save(tmp_path / "plan")
    world = [Population.iid(3, ["0.25", "0.5", "0.25"]), Population.iid(2, ["0.5", "0.3", "0.2"])]
    found = epsilon_under(plan, world)
    assert found is not None
    for ratio in worst_in(CheckedPlan(tmp_path / "plan"), world):
        assert ratio is not None
        assert ratio <= exp_bounds(found / 2)[0]  # two steps make a whole contribution


@pytest.mark.parametrize(
    ("honest", "also"),
    [
        (2, [("0.3", "0.3"), ("0.6", "0.1")]),
        (1, [("0.3", "0.3")]),
    ],
)
def test_robust_designs_hold_in_every_world(honest, also, tmp_path):
    parties = [Population.binomial(5, "0.5"), Population.binomial(4, "0.4")]
    worlds = [[Population.binomial(5, p), Population.binomial(4, q)] for p, q in also]
    problem = MultiLTE(parties, "0.6", honest=honest, also=worlds, method="joint")
    solution = solve(problem)
    assert solution.status == "local optimum", solution.note
    truth = checked(solution, tmp_path / "plan")
    for world in problem.worlds:
        found = epsilon_under(solution, world)
        assert found is not None
        assert found <= problem.epsilon
        assert all(truth.keeps(i, ratio, found) for i, ratio in enumerate(worst_in(truth, world)))
    narrow = solve(MultiLTE(parties, "0.6", honest=honest, method="joint"))
    real = epsilon_under(narrow, worlds)
    assert real is None or real > problem.epsilon
    assert narrow.mae < solution.mae


# ---------------------------------------------------------------------- fallback


def test_fallback(tmp_path):
    parties = [Population.binomial(5, "0.5"), Population.iid(2, ["0.3", "0.3", "0.4"])]
    values = []
    for fallback in ("4", "1.2"):
        problem = MultiLTE(parties, 1, fallback_epsilon=fallback, method="joint")
        solution = solve(problem)
        truth = checked(solution, tmp_path / f"plan-{fallback}")
        assert all(truth.ordinary(i, Fraction(fallback)) for i in range(2))
        values.append(solution.mae)
    free = solve(MultiLTE(parties, 1, method="joint"))
    assert any(found is None or found > 4 for found in free.certificate.ordinary)
    assert free.mae < values[0] < values[1]


# ---------------------------------------------------------------------- interrupts


class Stop:
    """Progress that is interrupted, once, the moment it says what it waits for."""

    def __init__(self, word: str, after: int = 0) -> None:
        self.word, self.left = word, after

    def __call__(self, text: str) -> None:
        if self.word in text:
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("word", "after"),
    [("party 0: a first", 0), ("truth", 0), ("sweep", 9), ("certifying", 0)],
)
def test_interrupted(word, after, tmp_path):
    problem = MultiLTE([Population.binomial(8, "0.5"), Population.binomial(5, "0.4")], "0.7", method="joint")
    solution = solve(problem, progress=Stop(word, after))
    assert solution.status == "interrupted"
    solution.certificate.check(problem)
    assert solution.certificate.mae <= problem.baseline_mae
    if word in ("party 0: a first", "party 1: a first", "truth"):
        assert "interrupted" in solution.note
    else:
        checked(solution, tmp_path / "plan")


def test_interrupted_at_the_bound():
    solution = solve(small_plan().problem, progress=Stop("bound"))
    assert solution.lower_bound is None
    assert solution.certificate == small_plan().certificate


def test_interrupted_while_it_is_certified_nothing_is_lost():
    """One interrupt ends a search, and what was found is certified all the same; a second one ends that too."""
    problem = small_plan().problem
    stopped = solve(problem, progress=Stop("certifying"))
    assert (stopped.status, stopped.certificate) == ("interrupted", small_plan().certificate)

    def impatient(text: str) -> None:
        if "sweep" in text or "certifying" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(problem, progress=impatient)


def test_interrupted_within_a_first_table(monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(optdp.single.solve, "_designed", interrupted)
    assert solve(small_plan().problem).status == "interrupted"


# ---------------------------------------------------------------------- blocks


def tiny_problem(also: str = "", fallback: str | None = None) -> MultiLTE:
    parties = [Population.binomial(3, "0.4"), Population.iid(2, ["0.2", "0.5", "0.3"]), Population.binomial(2, "0.7")]
    other = [Population.binomial(3, "0.01"), Population.iid(2, ["0.3", "0.5", "0.2"]), Population.binomial(2, "0.1")]
    worlds = {"": [], "all": [other], "first": [[other[0], *parties[1:]]]}[also]
    return MultiLTE(parties, "0.9", honest=2, f=[1, -2, 1], also=worlds, fallback_epsilon=fallback, method="joint")


def random_draft(problem: MultiLTE, seed: int) -> PlanDraft:
    """Random tables with every entry well above zero."""
    random = np.random.default_rng(seed)
    parties = parties_of(problem, [2] * len(problem.parties))
    tables = [random.dirichlet(np.ones(len(p.reports)), len(p.targets)) for p in parties]
    return PlanDraft(tuple(parties), tuple(0.9 * t + 0.1 / t.shape[1] for t in tables), problem.honest)


def floats(law: object) -> list[float]:
    return [float(law.fraction(x)) for x in range(law.last + 1)]  # type: ignore[attr-defined]


def brute_excess(problem: MultiLTE, draft: PlanDraft, i: int) -> float:
    """The largest log-quotient of an aggregate of any honest set with party `i`, as a multiple of what is allowed."""
    worst = 0.0
    for world in problem.worlds:
        totals = [np.array(floats(p.total)) @ t for p, t in zip(world, draft.tables, strict=True)]
        for chosen in itertools.combinations(range(len(world)), problem.honest):
            for j in chosen if i in chosen else ():
                for person in world[j].people:
                    laws = [np.array(floats(law)) @ draft.tables[j] for law in person.conditionals]
                    for k in chosen:
                        if k != j:
                            laws = [np.convolve(law, totals[k]) for law in laws]
                    for one, other in itertools.pairwise(laws):
                        steepest = float(np.abs(np.log(one / other)).max())
                        worst = max(worst, steepest / float(problem.step_epsilon(j)))
    if problem.fallback_epsilon is not None:
        table = draft.tables[i]
        steps = np.abs(np.log(table[1:] / table[:-1])).max() * problem.parties[i].largest
        worst = max(worst, float(steps) / float(problem.fallback_epsilon))
    return worst


def brute_error(problem: MultiLTE, draft: PlanDraft, power: int) -> float:
    """The mean error of the aggregate by enumeration of all inputs and reports."""
    total = 0.0
    sizes = [range(population.last + 1) for population in problem.parties]
    for inputs in itertools.product(*sizes):
        chance = math.prod(float(p.total.fraction(x)) for p, x in zip(problem.parties, inputs, strict=True))
        target = sum(factor * x for factor, x in zip(problem.f, inputs, strict=True))
        law, low = np.ones(1), 0
        for party, table, x in zip(draft.parties, draft.tables, inputs, strict=True):
            law, low = np.convolve(law, table[x]), low + party.outputs[0]
        total += chance * float(law @ np.abs(low + np.arange(len(law)) - target) ** power)
    return total


@pytest.mark.parametrize(
    ("also", "fallback"),
    [
        ("", None),
        ("", "1"),
        ("", "50"),
        ("all", None),
        pytest.param("first", None),
    ],
)
def test_a_block_sees_what_it_should(also, fallback):
    problem = tiny_problem(also, fallback)
    for seed, power in ((1, 1), (2, 2)):
        draft = random_draft(problem, seed)
        truth = brute_error(problem, draft, power)
        assert draft.error(power) == pytest.approx(truth, rel=1e-12)
        for i, table in enumerate(draft.tables):
            block = draft.block(i, power)
            assert block.objective(table) == pytest.approx(truth, rel=1e-12)
            assert block.excess(table) == pytest.approx(brute_excess(problem, draft, i), rel=1e-12)


def test_a_search_ends_after_the_same_work_everywhere():
    """The work is the same in every run, and less work gives the first steps of the whole descent."""
    problem = MultiLTE([Population.binomial(6, "0.5"), Population.binomial(5, "0.4")], "1", method="joint")
    alone = [SingleLTE(p, "0.9", tail="none", never_worse=False) for p in problem.parties]
    tables = [solve(single).mechanism for single in alone]
    attempt = next(starts(problem, lambda _: tables))
    runs = []
    for most in (math.inf, math.inf, None):
        effort = Effort(most=runs[0][0] * 0.7 if most is None else most)
        plans = descend(attempt, problem, lambda _: None, effort)
        steps = [[table.tobytes() for table in plan.tables] for plan in plans]
        runs.append((effort.spent, steps))
    (spent, whole), again, (less, part) = runs
    assert again == (spent, whole)
    assert 0 < less < spent
    assert 0 < len(part) < len(whole)
    assert part == whole[: len(part)]


def test_the_limits_of_work(monkeypatch):
    problem = tiny_problem()
    best = solve(problem)
    assert best.status == "local optimum"
    monkeypatch.setattr(optdp.plan.methods, "MORE_TRIES", 0)
    one_start = solve(problem)
    assert one_start.status == "local optimum"
    assert best.mae <= one_start.mae
    monkeypatch.setattr(optdp.plan.methods, "DESCENT", 1)
    cut = solve(problem)
    assert (cut.status, cut.mae >= one_start.mae, cut.mae <= cut.baseline_mae) == ("work limit", True, True)
    block, table = private_blocks(problem)[0]
    assert improve(block, table, 1e-7, 1e-6) is not None
    monkeypatch.setattr(optdp.plan.block, "MOST_WORK", (100, 0))
    assert improve(block, table, 1e-7, 1e-6) is None


def private_blocks(problem: MultiLTE) -> list[tuple[TableProgram, Array]]:
    """For each party its program and its table in a plan whose tables are private alone."""
    alone = []
    for i, population in enumerate(problem.parties):
        own = problem.step_epsilon(i) * population.largest * Fraction(9, 10)
        alone.append(solve(SingleLTE(population, own, tail="none", never_worse=False)).mechanism)
    draft = next(starts(problem, lambda _: alone)).start
    return [(draft.block(i, 1), draft.tables[i]) for i in range(len(alone))]


@pytest.mark.parametrize("fallback", [None, "2"])
def test_improved_tables(fallback):
    floor, slack = 1e-7, 1e-6
    for block, table in private_blocks(tiny_problem(fallback=fallback)):
        found = improve(block, table, floor, slack)
        assert found is not None
        assert found.sum(axis=1) == pytest.approx(1, abs=1e-12)
        assert found.min() >= floor / found.shape[1] * (1 - 1e-6)
        assert block.excess(table) <= 1 - slack
        assert block.excess(found) <= 1
        assert block.objective(found) <= block.objective(table) * (1 + 2e-6)
        again = improve(block, found, floor, slack)
        assert again is not None
        assert block.objective(again) == pytest.approx(block.objective(found), rel=5e-6)


@pytest.mark.parametrize(("fallback", "floor"), [(None, 1e-4), ("2", 1e-7)])
def test_improved_tables_are_optimal(fallback, floor):
    from optdp.plan.models import block_model

    slack = 1e-6
    for block, table in private_blocks(tiny_problem(fallback=fallback)):
        once = improve(block, table, floor, slack, patience=1e-9)
        assert once is not None
        found = improve(block, once, floor, slack, patience=1e-9)
        assert found is not None
        program, r = block_model(block, floor, slack)
        program.solve(solver="CLARABEL")
        assert program.status == "optimal"
        assert block.objective(np.array(r.value)) == pytest.approx(program.value, rel=1e-9)
        assert block.objective(found) == pytest.approx(program.value, rel=1e-6)


# ---------------------------------------------------------------------- many parties


def test_multisets_are_the_distinct_choices():
    things = [0, 0, 0, 4, 4, 7]
    for size in range(len(things) + 1):
        found = [tuple(sorted(Counter(choice).elements())) for choice in multisets(Counter(things), size)]
        assert len(found) == len(set(found))
        assert set(found) == set(itertools.combinations(things, size))


@pytest.mark.parametrize("honest", [3, 4])
def test_alike_parties_are_seen_as_if_they_were_not(honest):
    """A block of parties that share a table is that of the same parties with copies of it."""
    problem = MultiLTE(
        [Population.binomial(3, "0.4")] * 3 + [Population.binomial(2, "0.7")], "0.9", honest=honest, method="joint"
    )
    draft = random_draft(problem, 3)
    shared = draft.replaced([0, 2], draft.tables[0])
    copied = PlanDraft(shared.parties, tuple(table.copy() for table in shared.tables), honest)
    assert (len(set(shared.kinds)), len(set(copied.kinds))) == (3, 4)
    assert shared.error() == pytest.approx(copied.error(), rel=1e-12)
    assert shared.excess == pytest.approx(copied.excess, rel=1e-12)
    for i in range(4):
        assert shared.block(i, 1).excess(shared.tables[i]) == pytest.approx(brute_excess(problem, copied, i), rel=1e-12)


def test_many_parties(tmp_path):
    """Ten parties of two people: far better than shares of noise, and the exact checker says the same."""
    problem = MultiLTE([Population.binomial(2, "0.5")] * 10, "1", method="joint")
    solution = solve(problem)
    truth = checked(solution, tmp_path / "plan")
    assert truth.mean(1) < problem.baseline_mae / 2
    assert solution.lower_bound <= truth.mean(1)
    design_alone = solve(MultiLTE(problem.parties, "1", method="divisible"))
    assert truth.mean(1) < design_alone.certificate.mae


def test_too_many_entries_are_refused_before_anything_is_computed():
    said: list[str] = []
    with pytest.raises(ProblemError, match="entries in all tables"):
        solve(
            MultiLTE([Population.binomial(10**6, "0.5")] * 40, "0.1", fallback_epsilon=1, method="joint"),
            progress=said.append,
        )
    assert said == []


def test_too_many_to_be_planned_together_design_alone():
    """The first that is heard of is the level of their shares of noise, and no first table."""
    parties = [Population.binomial(20 + i, Fraction(1, 2)) for i in range(100)]
    problem = MultiLTE(parties, "1", method="joint")
    assert Size.of(problem).products > MOST_PRODUCTS
    solution = solve(problem, progress=Stop("level"))
    assert (solution.status, solution.engine) == ("interrupted", "shares")


# ---------------------------------------------------------------------- the bound


def best_for_all_inputs(problem: MultiLTE) -> float:
    """The least error of an entity that is told every party's sum and hides everybody: a bound for every plan."""
    sizes = [range(population.last + 1) for population in problem.parties]
    inputs = list(itertools.product(*sizes))
    targets = [sum(factor * x for factor, x in zip(problem.f, key, strict=True)) for key in inputs]
    outputs = np.arange(min(targets), max(targets) + 1)
    shape = (len(inputs), len(outputs))

    def chances(laws: Sequence[list[float]]) -> Array:
        return np.array([math.prod(law[x] for law, x in zip(laws, key, strict=True)) for key in inputs])

    totals = [floats(population.total) for population in problem.parties]
    costs = chances(totals)[:, None] * np.abs(outputs[None, :] - np.array(targets)[:, None])
    rows = []
    for i, population in enumerate(problem.parties):
        grow = math.exp(problem.step_epsilon(i))
        for person in population.people:
            laws = [chances([*totals[:i], floats(law), *totals[i + 1 :]]) for law in person.conditionals]
            for one, other in itertools.pairwise(laws):
                for s in range(len(outputs)):
                    for a, b in ((one, other), (other, one)):
                        row = np.zeros(shape)
                        row[:, s] = a - grow * b
                        rows.append(row.ravel())
    sums = np.kron(np.eye(len(inputs)), np.ones(len(outputs)))
    found = linprog(
        costs.ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(len(inputs)), (0, None), method="highs"
    )
    assert found.status == 0
    return float(found.fun)


def test_alike_people_merge():
    half = [Population.binomial(3, "0.3"), Population.iid(5, ["0.7", "0.3"]), Population.independent([["0.7", "0.3"]])]
    whole = bounding(MultiLTE(half, "0.5", method="joint"))
    assert whole is not None
    assert whole.epsilon == Fraction(1, 2)
    assert not whole.never_worse
    (population,) = whole.populations
    expected = Population.binomial(9, "0.3")
    assert (population.total, population.people) == (expected.total, expected.people)


@pytest.mark.parametrize(
    ("parties", "f", "epsilon"),
    [
        ([Population.binomial(3, "0.5"), Population.binomial(2, "0.5")], (1, 1), "0.5"),
        ([Population.binomial(4, "0.5"), Population.binomial(3, 0)], (1, 1), "0.2"),
        ([Population.iid(2, ["0.2", "0.6", "0.2"]), Population.iid(2, ["0.2", "0.6", "0.2"])], (1, 1), "1"),
        ([Population.binomial(2, "0.5"), Population.iid(1, ["0.3", "0.5", "0.2"])], (1, -1), "0.5"),
    ],
)
def test_the_bound_is_one(parties, f, epsilon):
    problem = MultiLTE(parties, epsilon, f=f, method="joint")
    solution = solve(problem)
    least = best_for_all_inputs(problem)
    assert least <= solution.mae * (1 + 1e-9)
    assert solution.lower_bound is not None
    assert float(solution.lower_bound) <= solution.mae
    whole = bounding(problem)
    if whole is not None:
        assert float(solve(whole).lower_bound or 0) <= least * (1 + 1e-9)


def test_a_plan_below_the_bound():
    """People who never contribute cost a plan nothing, but the entity that sees the total alone has to hide them."""
    solution = solve(MultiLTE([Population.binomial(10, "0.5"), Population.binomial(10, 0)], "0.5", method="joint"))
    assert (solution.lower_bound or 0) <= solution.certificate.mae


@pytest.mark.parametrize(
    "parties",
    [
        [Population.binomial(10, "0.5"), Population.binomial(2, "1e-6")],
        [Population.iid(3, ["0.5", "0.3", "0.2"])] * 2,
        [Population.from_others(["0.5", "0.5"])] * 2,
    ],
)
def test_where_totals_do_not_tell_all(parties: list[Population]) -> None:
    """One entity on totals is no bound here: for the first a plan is better than the best matrix on totals."""
    problem = MultiLTE(parties, "0.5", method="joint")
    assert bounding(problem) is None
    solution = solve(problem)
    assert solution.lower_bound is not None
    assert 0 < solution.lower_bound <= solution.certificate.mae
    if parties[0].last == 10:
        people = [["0.5", "0.5"]] * 10 + [["0.999999", "0.000001"]] * 2
        totals = solve(SingleLTE(Population.independent(people), "0.5", tail="none", never_worse=False))
        assert totals.lower_bound is not None
        assert solution.mae < float(totals.lower_bound)
