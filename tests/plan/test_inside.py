"""Plans whose release is drawn inside: the certificate against enumeration, the files, and what is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pytest

from optdp import MultiLTE, Observer, Population, SingleLTE, epsilon_under, errors_by_total, open_artifact, solve
from optdp.audit import audit
from optdp.errors import ArtifactError, CertificateError, OptdpError, ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.plan.format import write_plan
from optdp.plan.merged import coalitions_of, refusal
from optdp.plan.solve import PlanSolution
from optdp.recheck import Failed, Refused, recheck

BIN = Population.binomial
Law = tuple[Fraction, ...]
Person = Sequence[Law]
"""The laws between which a person's own lies; one if it is known exactly."""


def person(*laws: Sequence[Any]) -> Person:
    return [tuple(Fraction(value) for value in law) for law in laws]


def coin(*chances: Any) -> Person:
    return person(*([1 - Fraction(p), Fraction(p)] for p in chances))


def convolve(one: Sequence[Fraction], other: Sequence[Fraction]) -> list[Fraction]:
    found = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            found[i + j] += a * b
    return found


def quotients(table: NoiseMatrix, parties: Sequence[Sequence[Person]], size: int, known: int) -> Iterator[Any]:
    """For every coalition of `size` parties, all that its people may contribute, every person outside, everybody who
    may be known besides and all that they may contribute, and everybody else at any end: the largest quotient of two
    neighbouring contributions of that person over all outputs; None if it is infinite. People are taken one by one."""
    weights = [dict(table.row(x) or ()) for x in range(table.last + 1)]
    for coalition in combinations(range(len(parties)), size):
        inside = [one for i in coalition for one in parties[i]]
        outside = [one for i, people in enumerate(parties) if i not in coalition for one in people]
        for k, victim in enumerate(outside):
            others = outside[:k] + outside[k + 1 :]
            for seen in combinations(range(len(others)), min(known, len(others))):
                held = [*inside, *(others[j] for j in seen)]
                doubtful = [one for j, one in enumerate(others) if j not in seen]
                sums = {sum(what) for what in product(*(range(len(one[0])) for one in held))}
                for choice in set(product(*doubtful)):
                    base = [Fraction(1)]
                    for law in choice:
                        base = convolve(base, law)
                    for shift in sums:
                        yield from _steps(weights, base, shift, len(victim[0]))


def _steps(weights: Sequence[dict[int, int]], base: Sequence[Fraction], shift: int, secrets: int) -> Iterator[Any]:
    columns = []
    for w in range(secrets):
        column: dict[int, Fraction] = {}
        for y, chance in enumerate(base):
            for s, weight in weights[shift + w + y].items() if chance else ():
                column[s] = column.get(s, Fraction(0)) + chance * weight
        columns.append(column)
    for one, other in pairwise(columns):
        if one.keys() != other.keys():
            yield None
            continue
        yield max(max(one[s] / other[s], other[s] / one[s]) for s in one)


D2 = ["0.5", "0.3", "0.2"]
CASES: dict[str, tuple[list[Population], list[list[Person]], dict[str, Any]]] = {
    "everybody honest": ([BIN(2, "0.5"), BIN(3, "0.5"), BIN(1, "0.5")], [[coin("0.5")] * n for n in (2, 3, 1)], {}),
    "one coalition each": (
        [BIN(2, "0.5"), BIN(3, "0.5"), BIN(1, "0.5")], [[coin("0.5")] * n for n in (2, 3, 1)], {"honest": 2},
    ),
    "people that differ": (
        [BIN(3, "0.5"), BIN(2, "0.2"), BIN(2, "0.2"), BIN(1, "0.5")],
        [[coin("0.5")] * 3, [coin("0.2")] * 2, [coin("0.2")] * 2, [coin("0.5")]], {"honest": 3},
    ),
    "a party of all kinds": (
        [Population.independent([["0.5", "0.5"], ["0.9", "0.1"]]), BIN(2, "0.5"), BIN(2, "0.3")],
        [[coin("0.5"), coin("0.1")], [coin("0.5")] * 2, [coin("0.3")] * 2], {"honest": 2},
    ),
    "larger contributions": (
        [Population.iid(2, D2), BIN(2, "0.4"), Population.iid(1, D2)],
        [[person(D2)] * 2, [coin("0.4")] * 2, [person(D2)]], {"honest": 2, "objective": "mse"},
    ),
    "two together": ([BIN(1, "0.4")] * 5, [[coin("0.4")]] * 5, {"honest": 3}),
    "a fallback": ([BIN(2, "0.5")] * 3, [[coin("0.5")] * 2] * 3, {"honest": 2, "fallback_epsilon": 2}),
    "a range": (
        [BIN(2, "0.5")] * 3, [[coin("0.4", "0.6")] * 2] * 3, {"honest": 2, "observer": Observer(("0.4", "0.6"))},
    ),
    "a range and one known": (
        [BIN(2, "0.5"), BIN(1, "0.3"), BIN(2, "0.3")],
        [[coin("0.4", "0.6")] * 2, [coin("0.2", "0.4")], [coin("0.2", "0.4")] * 2],
        {"honest": 2, "observer": Observer(margin="0.1", known=1)},
    ),
    "known to all": ([BIN(2, "0.5")] * 3, [[coin("0.5")] * 2] * 3, {"observer": Observer(known=1)}),
}  # fmt: skip


@pytest.fixture(scope="module")
def plans() -> dict[str, PlanSolution]:
    return {name: solve(MultiLTE(people, "0.8", method="inside", **more)) for name, (people, _, more) in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_coalition_and_everything_it_may_hold(name: str, plans: dict[str, PlanSolution], tmp_path: Path) -> None:
    """Epsilon is the largest over all coalitions, inputs, people and ends, one by one; smaller coalitions see less."""
    plan, (_, people, more) = plans[name], CASES[name]
    problem, (table, *others) = plan.problem, plan.tables
    assert all(other == table for other in others)
    known = more["observer"].known if "observer" in more else 0
    largest = Fraction(1)
    for size in range(len(people) - problem.honest + 1):
        found = list(quotients(table, people, size, known))
        assert None not in found
        assert max(found) >= largest * (1 - Fraction(1, 10**9)) or size == 0
        largest = max(largest, *found)
    assert plan.certificate.epsilon is not None
    worst = math.log(largest) * problem.sensitivity
    assert float(plan.certificate.epsilon) == pytest.approx(worst, abs=1e-9)
    assert plan.certificate.epsilon <= Fraction("0.8")
    assert plan.status == "optimal"
    assert plan.gap is not None
    assert plan.gap < 1e-6
    _errors(plan, people, "observer" in more)
    plan.save(tmp_path / "plan")
    verified = open_artifact(tmp_path / "plan").verified
    assert verified.certificate == plan.certificate
    assert verified.bound_proved
    second = recheck(tmp_path / "plan")
    assert second.status == "PASS"
    assert not second.unchecked
    assert float(second.figures["epsilon"] or 0) == pytest.approx(worst, abs=1e-9)
    assert float(second.figures["mae"] or 0) == pytest.approx(plan.mae, abs=1e-12)
    explained = open_artifact(tmp_path / "plan").explain()
    assert explained.worst is not None
    assert float(explained.worst.sight.epsilon or 9) == pytest.approx(worst, abs=1e-9)


def _errors(plan: PlanSolution, people: Sequence[Sequence[Person]], ranged: bool) -> None:
    """The error under the populations, person by person."""
    law, table = [Fraction(1)], plan.tables[0]
    for population in plan.problem.parties:
        for own, count in population.laws:
            for _ in range(count):
                law = convolve(law, own)
    assert ranged or len(law) == 1 + sum(len(one[0]) - 1 for party in people for one in party)
    for power, found in ((1, plan.certificate.mae), (2, plan.certificate.mse)):
        errors = (
            chance * sum(weight * abs(s - x) ** power for s, weight in table.row(x) or ()) / table.denominator
            for x, chance in enumerate(law)
        )
        assert float(found) == pytest.approx(float(sum(errors)), rel=1e-12)


def test_the_error_of_one_entity_with_everything() -> None:
    """3 x Bin(17, .5) at epsilon .5 is within 1e-4 of the optimum of the merged population."""
    parties = [BIN(17, "0.5")] * 3
    whole = solve(SingleLTE(BIN(51, "0.5"), "0.5", tail="none", never_worse=False))
    plan = solve(MultiLTE(parties, "0.5", method="inside"))
    assert whole.lower_bound is not None
    assert 0 <= plan.mae - float(whole.lower_bound) <= 1e-4
    watched = solve(MultiLTE(parties, "0.5", method="inside", honest=2))
    known = solve(SingleLTE(BIN(51, "0.5"), "0.5", tail="none", never_worse=False, observer=Observer(known=17)))
    assert known.lower_bound is not None
    assert abs(watched.mae - float(known.lower_bound)) <= 1e-4
    assert plan.mae < watched.mae < solve(MultiLTE(parties, "0.5", method="geometric", honest=2)).mae


def test_a_table_that_forgets_the_coalitions_is_found_out(plans: dict[str, PlanSolution], tmp_path: Path) -> None:
    """What is private against whoever sees the release is not private against a party that knows its people."""
    trusting, wary = plans["everybody honest"], plans["one coalition each"]
    forged = replace(wary, tables=trusting.tables)
    with pytest.raises((CertificateError, ArtifactError)):
        _checked(forged, tmp_path / "plan")
    with pytest.raises(Failed):
        recheck(tmp_path / "plan")


def _checked(solution: PlanSolution, folder: Path) -> Any:
    write_plan(solution, folder)
    return open_artifact(folder).verified


def test_forged_plans(plans: dict[str, PlanSolution], tmp_path: Path) -> None:
    """Tables that were changed: accepted only if enumeration says that epsilon holds; both checkers agree."""
    rng, accepted, turns = random.Random(17), 0, 20
    for turn in range(turns):
        name = rng.choice(["one coalition each", "people that differ", "larger contributions"])
        plan, people = plans[name], CASES[name][1]
        rows, table = [dict(row) for row in plan.tables[0].rows], plan.tables[0]
        for _ in range(rng.choice([1, 1, 3])):
            x = rng.randrange(len(rows))
            s, to = rng.choice(list(rows[x])), rng.randrange(table.last + 1)
            moved = max(1, rows[x][s] >> rng.choice([0, 1, 5, 20, 40, 60]))
            rows[x][s] -= moved
            rows[x][to] = rows[x].get(to, 0) + moved
            rows[x] = {s: weight for s, weight in rows[x].items() if weight}
        changed = replace(table, rows=tuple(tuple(sorted(row.items())) for row in rows))
        folder = tmp_path / str(turn)
        some = [changed, *plan.tables[1:]] if turn % 10 == 0 else [changed] * len(plan.tables)
        try:
            _checked(replace(plan, tables=tuple(some)), folder)
        except OptdpError:
            with pytest.raises((Failed, Refused)):
                recheck(folder)
            continue
        accepted += 1
        assert recheck(folder).status == "PASS"
        found = list(quotients(changed, people, len(people) - plan.problem.honest, 0))
        assert None not in found
        assert math.log(max(found)) * plan.problem.sensitivity <= 0.8 + 1e-12
    assert accepted < turns


@pytest.mark.parametrize(
    "change",
    [{"honest": 3}, {"method": "joint"}, {"method": "alone"}, {"epsilon": "0.7"}, {"parties": [BIN(2, "0.5")] * 3}],
)
def test_another_problem_is_refused(change: dict[str, Any], plans: dict[str, PlanSolution], tmp_path: Path) -> None:
    """A plan under the name of another problem: with more trust, another method, a smaller epsilon, other people."""
    plan = plans["one coalition each"]
    forged = replace(plan, problem=plan.problem.changed(**change))
    if change == {"honest": 3}:  # that is true, and the bound of the harder program is none of this one
        with pytest.raises(OptdpError):
            _checked(forged, tmp_path / "plan")
        return
    with pytest.raises(OptdpError):
        _checked(forged, tmp_path / "plan")
    with pytest.raises((Failed, Refused)):
        recheck(tmp_path / "plan")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"parties": [BIN(2, "0.5")] * 2}, "three parties or more, and more than half of them honest.* Found 2 parties"),
    ({"parties": [BIN(2, "0.5")] * 4, "honest": 2}, "Found 4 parties, 2 of them honest"),
    ({"f": [1, 2, 1]}, r"plain sum, without coefficients f. Found f = \[1, 2, 1\]"),
    ({"parties": [BIN(2, "0.5"), BIN(2, "0.5"), Population.from_others(["0.5", "0.5"])]}, "independent people"),
    ({"parties": [BIN(4, "0.5").conservative("0.5")] * 3}, "independent people"),
    ({"observer": [Observer(known=1), None, None]}, "one observer, who is watching everybody"),
    ({"also": [[BIN(2, "0.4")] * 3], "honest": 2}, "has one world"),
    ({"parties": [BIN(2000, "0.5")] * 3}, "totals up to 5,000. Found 6,000"),
    ({"observer": Observer(known=9)}, "known must be at most the number of the others"),
    ({"observer": Observer(known=1, epsilon=2)}, "epsilon"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "match"), REFUSED)
def test_what_does_not_fit_is_refused_at_once(change: dict[str, Any], match: str) -> None:
    options: dict[str, Any] = {"parties": [BIN(2, "0.5")] * 3, "epsilon": 1, "method": "inside"} | change
    with pytest.raises(ProblemError, match=match) as caught:
        MultiLTE(**options)
    assert "\n" not in str(caught.value)


def test_coalitions_that_are_alike_are_looked_at_once() -> None:
    alike = MultiLTE([BIN(2, "0.5")] * 9, 1, method="inside", honest=5)
    assert coalitions_of(alike) == [(8,)]
    two = MultiLTE([BIN(1, "0.5"), BIN(2, "0.5"), BIN(3, "0.3")], 1, method="inside", honest=2)
    assert coalitions_of(two) == [(0, 3), (1, 0), (2, 0)]
    assert refusal(two) == ""
    with pytest.raises(ProblemError, match="may have 5,000 coalitions that differ"):  # 17 over 8
        MultiLTE([BIN(1, f"0.{k + 10}") for k in range(17)], 1, method="inside", honest=9)


def test_worlds_that_differ(plans: dict[str, PlanSolution]) -> None:
    """The real epsilon where people are otherwise, by enumeration, coalitions included; errors by total add up."""
    plan = plans["one coalition each"]
    world = [BIN(2, "0.4"), BIN(3, "0.4"), BIN(1, "0.4")]
    people = [[coin("0.4")] * n for n in (2, 3, 1)]
    found = list(quotients(plan.tables[0], people, 1, 0))
    real = epsilon_under(plan, world)
    assert float("inf" if real is None else real) == pytest.approx(math.log(max(found)), abs=1e-9)
    fewer = epsilon_under(plan, [BIN(2, "0.5"), BIN(2, "0.5"), BIN(1, "0.5")])
    found = list(quotients(plan.tables[0], [[coin("0.5")] * n for n in (2, 2, 1)], 1, 0))
    assert float("inf" if fewer is None else fewer) == pytest.approx(math.log(max(found)), abs=1e-9)
    rows = errors_by_total(plan)
    assert sum(row.probability * row.error for row in rows) == pytest.approx(plan.mae, abs=1e-9)


def test_audit_of_the_whole_plan(plans: dict[str, PlanSolution], tmp_path: Path) -> None:
    plans["one coalition each"].save(tmp_path / "plan")
    assert not audit(tmp_path / "plan", samples=2000, seed=1).failed

    def honest(inputs: Any) -> Any:
        return inputs  # without any noise

    assert audit(tmp_path / "plan", samples=2000, sampler=honest, seed=1).failed
    with pytest.raises(ProblemError, match="Give its folder"):
        audit(tmp_path / "plan" / "party-0.json")
