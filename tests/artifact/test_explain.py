"""What `verify --explain` shows is what enumeration with fractions finds, and what the certificate says."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from optdp import MultiLTE, NoiseMatrix, Population, SingleLTE, certify, solve
from optdp.plan.certify import certify_plan
from optdp.plan.explain import explain_plan
from optdp.plan.solve import PlanSolution
from optdp.single.explain import Sight, explain
from optdp.single.format import Artifact, write
from tests.artifact.hostile_files import answer
from tests.exact_checker import Checked, conditionals
from tests.exact_plan_checker import CheckedPlan, Law, total_law

TINY = Fraction(1, 10**30)


def matrix_of(random: Random, last: int, q: Fraction | None, outside: str = "error", full: bool = False) -> NoiseMatrix:
    """Random rows; with `full` every output can come from every input."""
    first, final = (0, last) if outside == "error" else (1, last - 1)
    low, high = (0, last) if outside != "geometric" else (first, final)
    rows = []
    for _ in range(first, final + 1):
        places = range(low, high + 1) if full else sorted(random.sample(range(low, high + 1), random.randint(1, 3)))
        cuts = sorted(random.sample(range(1, 64), len(places) - 1))
        rows.append(tuple(zip(places, (b - a for a, b in itertools.pairwise([0, *cuts, 64])), strict=True)))
    return NoiseMatrix((first, final), (low, high), 64, tuple(rows), q, outside, last)  # type: ignore[arg-type]


def checked(problem: SingleLTE, matrix: NoiseMatrix, path: Path) -> Checked:
    """The second checker's view of a matrix."""
    artifact = Artifact(
        matrix.inputs, matrix.outputs, matrix.denominator, matrix.rows, matrix.outside, matrix.q, problem.spec(), {}, {}
    )
    write(artifact, path)
    return Checked(path)


def likelihoods(view: Checked, outputs: range, last: int) -> list[dict[int, Fraction]]:
    """`Pr[s|x]` for every input and every output of a range that reaches into the tails."""
    table = view.table(last)
    for x, row in enumerate(table):
        if view.q is not None:
            row |= {s: view.geometric(x, s) for s in outputs if not view.low <= s <= view.high}
    return table


def same(sight: Sight, large: Fraction, small: Fraction) -> None:
    """A sight has these two probabilities, and their quotient."""
    for found, wanted in zip(sight.probabilities, (large, small), strict=True):
        assert abs(found - wanted) <= wanted * TINY
    if small == 0:
        assert sight.quotient is None
    else:
        assert sight.quotient is not None
        assert 0 <= sight.quotient - large / small <= TINY * (large / small)


def quotient(one: Fraction, other: Fraction) -> Fraction | float:
    large, small = max(one, other), min(one, other)
    return 1 if large == 0 else math.inf if small == 0 else large / small


POPULATIONS = [
    Population.binomial(4, "1/3"),
    Population.iid(2, ["1/2", "1/4", "1/4"]),
    Population.independent([["1/2", "1/2"], ["1/5", "4/5"], ["1/2", "1/4", "1/4"]]),
]


@pytest.mark.parametrize("people", POPULATIONS)
@pytest.mark.parametrize("adjacency", ["unit", "all"])
@pytest.mark.parametrize("q", [None, Fraction(2, 3)])
@pytest.mark.parametrize("outside", ["error", "clamp", "geometric"])
@pytest.mark.parametrize("full", [False, True])
def test_the_worst_output_is_the_one_that_enumeration_finds(
    people: Population, adjacency: str, q: Fraction | None, outside: str, full: bool, tmp_path: Path
) -> None:
    if outside == ("geometric" if q is None else "clamp"):  # there is no such table
        return
    random = Random(f"{people.spec} {adjacency} {q} {outside} {full}")
    tail = "none" if q is None else "geometric"
    problem = SingleLTE(people, "0.5", tail=tail, adjacency=adjacency)  # type: ignore[arg-type]
    for number in range(2):
        matrix = matrix_of(random, people.last, q, outside, full)
        view = checked(problem, matrix, tmp_path / f"{number}.json")
        outputs = range(-3, people.last + 4)
        table = likelihoods(view, outputs, people.last)
        found = explain(problem, matrix)
        # Under the prior: every kind of person, every step, every output.
        crowds, _ = conditionals(dict(people.spec))
        cases = {}
        for person in crowds:
            given = [
                {s: sum((p * row.get(s, 0) for p, row in zip(law, table, strict=True)), Fraction(0)) for s in outputs}
                for law in person
            ]
            for i, j in itertools.combinations(range(len(person)), 2):
                if adjacency == "all" or j == i + 1:
                    cases |= {(len(cases), i, j, s): (given[i][s], given[j][s]) for s in outputs}
        for worst, places in ((found.worst, outputs), (found.in_table, range(view.low, view.high + 1))):
            pairs = {key: pair for key, pair in cases.items() if key[3] in places and max(pair)}
            largest = max(quotient(*pair) for pair in pairs.values())
            assert (math.inf if worst.sight.quotient is None else worst.sight.quotient) == pytest.approx(largest)
            w, other = worst.contributions
            at = [
                (pair if i == w else pair[::-1])
                for (_, i, j, s), pair in pairs.items()
                if s == worst.sight.output and {i, j} == {w, other} and quotient(*pair) == largest
            ]
            assert at
            same(worst.sight, *min(at, key=lambda pair: abs(pair[0] - worst.sight.probabilities[0])))
        certificate = certify(problem, matrix)
        assert found.worst.sight.epsilon == certificate.epsilon
        # Without the prior: adjacent inputs.
        reach = people.largest if adjacency == "all" else 1
        rows = {
            (x, y, s): (table[x].get(s, Fraction(0)), table[y].get(s, Fraction(0)))
            for x in range(people.last + 1)
            for y in range(people.last + 1)
            if 0 < abs(x - y) <= reach
            for s in outputs
        }
        largest = max(quotient(*pair) for pair in rows.values())
        same(found.ordinary.sight, *rows[*found.ordinary.inputs, found.ordinary.sight.output])
        assert quotient(*found.ordinary.sight.probabilities) == pytest.approx(largest)
        if largest == math.inf:  # of the outputs that tell for certain the likeliest
            telling = max(max(pair) for pair in rows.values() if min(pair) == 0)
            assert abs(found.ordinary.sight.probabilities[0] - telling) < TINY
        if certificate.ordinary_epsilon is None or found.ordinary.sight.epsilon is None:
            assert certificate.ordinary_epsilon is found.ordinary.sight.epsilon is None
        else:
            assert abs(certificate.ordinary_epsilon - found.ordinary.sight.epsilon) < TINY


def test_people_who_are_not_independent_are_looked_at_between_the_tails() -> None:
    """The sum is 5 if the person says no, and 0 or 10 if yes: geometric noise gives it away at 5."""
    no, yes = [0] * 5 + [1] + [0] * 5, ["1/2", *[0] * 9, "1/2"]
    total = ["1/4", 0, 0, 0, 0, "1/2", 0, 0, 0, 0, "1/4"]
    geometric = solve(SingleLTE(Population.binomial(10, "0.5"), "0.3", method="geometric"))
    people = Population.from_conditionals([[no, yes]], total)
    problem = SingleLTE(people, "0.3", tail="none")
    found = explain(problem, geometric.mechanism).worst
    assert (found.sight.output, found.sight.tail, found.contributions) == (5, "", (0, 1))
    assert float(found.sight.epsilon or 0) == pytest.approx(1.5)


@pytest.mark.parametrize("tail", ["geometric", "none"])
def test_a_solved_problem(tail: str) -> None:
    """The optimum is tight both in the tail, where noise has the ratio q, and in the table."""
    solution = solve(SingleLTE(Population.binomial(30, "0.2"), "0.4", fallback_epsilon="1.5", tail=tail))  # type: ignore[arg-type]
    found = explain(solution.problem, solution.mechanism)
    assert found.worst.sight.epsilon == solution.certificate.epsilon
    assert (found.worst.sight.tail != "") == (tail == "geometric")
    assert found.in_table.sight.tail == ""
    assert float(found.in_table.sight.epsilon or 0) == pytest.approx(0.4, rel=1e-6)
    assert found.ordinary.sight.limit == Fraction(3, 2)
    assert abs((found.ordinary.sight.epsilon or 0) - (solution.certificate.ordinary_epsilon or 0)) < TINY
    assert json.loads(json.dumps(found.document()))["worst"]["limit"] == "0.4"


# ---------------------------------------------------------------------- plans


@pytest.fixture(scope="module")
def plan() -> PlanSolution:
    """Three parties that differ, of whom two are honest, and a second world."""
    parties = [Population.binomial(2, "1/2"), Population.iid(1, ["1/2", "1/4", "1/4"]), Population.binomial(2, "1/3")]
    worlds = [[Population.binomial(2, "2/5"), *parties[1:]]]
    return solve(MultiLTE(parties, "1", honest=2, f=[1, 1, 2], also=worlds, method="joint"))  # type: ignore[return-value]


def test_the_worst_aggregate_is_the_one_that_enumeration_finds(plan: PlanSolution, tmp_path: Path) -> None:
    problem, random = plan.problem, Random(5)
    tables = list(plan.tables)
    for turn in range(4):
        plan.save(tmp_path / "plan")
        view = CheckedPlan(tmp_path / "plan")
        if turn:  # other tables for the same problem: the second checker gets them as they are
            last = [party.last for party in problem.parties]
            tables = [matrix_of(random, size, None, full=turn < 3) for size in last]
            for seen, table in zip(view.tables, tables, strict=True):
                assert isinstance(table, NoiseMatrix)
                seen.first, seen.last, seen.denominator = *table.inputs, table.denominator
                seen.low, seen.high, seen.rows = *table.outputs, [dict(row) for row in table.rows]
        found = explain_plan(problem, tables)
        worst = found.worst
        assert worst is not None
        certificate = certify_plan(problem, tables)  # type: ignore[arg-type]
        assert worst.sight.epsilon == certificate.epsilon
        # The probabilities there, from the second checker's laws.
        world = view.worlds[worst.world]
        others = [view.tables[j].report(world[j].total) for j in worst.honest if j != worst.party]
        laws: list[Law] = [
            total_law([view.tables[worst.party].report(law), *others])
            for law in (world[worst.party].secrets[worst.person][w] for w in worst.contributions)
        ]
        same(worst.sight, *(Fraction(law.at(worst.sight.output), law.denominator) for law in laws))
        for i, (own, ratio) in enumerate(zip(found.ordinary, [t.ordinary(t.last) for t in view.tables], strict=True)):
            x, y = own.inputs
            pair = [
                Fraction(view.tables[i].row(z).get(own.sight.output, 0), view.tables[i].denominator) for z in (x, y)
            ]
            same(own.sight, *pair)
            assert (own.sight.quotient is None) == (ratio is None)
            assert ratio is None or abs((own.sight.quotient or 0) - ratio) < TINY * ratio


@pytest.mark.parametrize("method", ["divisible", "geometric"])
def test_shares_of_noise(method: str) -> None:
    """Both probabilities are those of the contracted input with geometric noise, by adding up fractions."""
    people = Population.binomial(6, "1/2")
    solution = solve(MultiLTE([people, people], "1", method=method))  # type: ignore[arg-type]
    found = explain_plan(solution.problem, solution.tables)  # type: ignore[attr-defined]
    worst = found.worst
    assert worst is not None
    assert found.ordinary == ()
    assert worst.sight.epsilon == solution.certificate.epsilon
    noise = solution.tables[worst.party]  # type: ignore[attr-defined]
    chances = []
    for w in worst.contributions:
        law = [Fraction(0)] * w + [Fraction(math.comb(5, k), 32) for k in range(6)] + [Fraction(0)] * (1 - w)
        chance = Fraction(0)
        for x, mass in enumerate(law):
            for y, weight in noise.contracted(x):
                share = Fraction(weight, noise.contraction_denominator)
                distance = abs(worst.sight.output - noise.factor * y)
                chance += mass * share * (1 - noise.q) / (1 + noise.q) * noise.q**distance
        chances.append(chance)
    same(replace(worst.sight, quotient=(worst.sight.quotient or 0) / worst.spread), *chances)
    assert worst.honest == (0, 1)


def test_a_quotient_beyond_all_floats_is_shown(tmp_path: Path) -> None:
    problem, large = SingleLTE(Population.binomial(1, "0.5"), "1", tail="none"), 1 << 4000
    rows = (((0, large - 1), (1, 1)), ((0, 1), (1, large - 1)))
    honest = solve(problem).artifact()
    write(replace(honest, denominator=large, rows=rows, sha256=""), tmp_path / "a.json")
    for more in ([], ["--json"]):
        found = answer(0, "", ["verify", str(tmp_path / "a.json"), "--explain", *more])
        assert found.code == 1
        assert "epsilon" in found.words
