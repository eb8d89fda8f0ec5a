"""Plans whose guarantee holds for a range of priors: each table against brute force over people, in fractions."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pytest

from optdp import (
    CertificateError,
    MultiLTE,
    Observer,
    Population,
    ProblemError,
    SingleLTE,
    load,
    open_artifact,
    solve,
    verify_plan,
)
from optdp.mechanism.matrix import NoiseMatrix
from optdp.plan.methods import refusal
from optdp.plan.products import worst_products
from optdp.plan.solve import PlanSolution
from tests.checkers import both_agree
from tests.exact_checker import exp_below

Rows = Sequence[dict[int, Fraction]]


def rows_of(table: Any) -> Rows:
    assert isinstance(table, NoiseMatrix)
    return [{s: Fraction(w, table.denominator) for s, w in row} for row in table.rows]


def law_of(chances: Sequence[Fraction]) -> list[Fraction]:
    """The law of how many of independent people contribute 1."""
    law = [Fraction(1)]
    for p in chances:
        law = [(1 - p) * a + p * b for a, b in zip([*law, 0], [0, *law], strict=True)]
    return law


def seen(rows: Rows, law: Sequence[Fraction], shift: int) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for x, chance in enumerate(law):
        for s, value in rows[x + shift].items():
            found[s] = found.get(s, Fraction(0)) + chance * value
    return {s: value for s, value in found.items() if value}


def added(one: dict[int, Fraction], other: dict[int, Fraction]) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for (s, a), (t, b) in product(one.items(), other.items()):
        found[s + t] = found.get(s + t, Fraction(0)) + a * b
    return found


def quotient(one: dict[int, Fraction], other: dict[int, Fraction]) -> Fraction:
    assert one.keys() == other.keys()
    return max(max(one[s] / other[s], other[s] / one[s]) for s in one)


def crowds(n: int, low: Fraction, high: Fraction, known: int) -> Iterator[list[Fraction]]:
    """Every way in which the others of a person may be: each at an end, but for up to `known`, who are 0 or 1."""
    for sure in range(known + 1):
        for chosen in combinations(range(n - 1), sure):
            ends = [(Fraction(0), Fraction(1)) if j in chosen else (low, high) for j in range(n - 1)]
            yield from map(list, product(*ends))


SIZES = (4, 3)
LOW, HIGH = Fraction(1, 5), Fraction(2, 5)


@pytest.fixture(scope="module", params=[(0, "0.7"), (1, "0.7"), (2, "1.3")])
def small(request: pytest.FixtureRequest) -> tuple[PlanSolution, int]:
    known, epsilon = request.param
    parties = [Population.binomial(n, "0.3") for n in SIZES]
    observer = Observer(between=(LOW, HIGH), known=known)
    return solve(MultiLTE(parties, epsilon, method="alone", observer=observer)), known


def test_every_table_alone_is_private_at_every_vertex(small: tuple[PlanSolution, int]) -> None:
    plan, known = small
    limit = 1 / exp_below(-plan.problem.epsilon)
    for n, table, own in zip(SIZES, plan.tables, plan.certificate.epsilons, strict=True):
        rows, worst = rows_of(table), Fraction(1)
        for others in crowds(n, LOW, HIGH, known):
            law = law_of(others)
            worst = max(worst, quotient(seen(rows, law, 0), seen(rows, law, 1)))
        assert worst <= limit
        assert own is not None
        assert worst <= 1 / exp_below(-own) <= worst * (1 + Fraction(1, 10**9))  # nothing was missed, nothing made up


def test_whoever_sees_the_sum_learns_no_more(small: tuple[PlanSolution, int]) -> None:
    """People anywhere in the range, and the sum of both reports, or what is left when the other party tells its own."""
    plan, known = small
    limit, draw = 1 / exp_below(-plan.problem.epsilon), random.Random(7)
    tables = [rows_of(table) for table in plan.tables]

    def somewhere(n: int, sure: int) -> list[Fraction]:
        return [Fraction(draw.randint(0, 1)) if j < sure else LOW + (HIGH - LOW) * draw.randint(0, 64) / 64
                for j in range(n)]  # fmt: skip

    for _ in range(60):
        for own in (0, 1):
            law = law_of(somewhere(SIZES[own] - 1, min(draw.randint(0, known), SIZES[own] - 1)))
            one, two = seen(tables[own], law, 0), seen(tables[own], law, 1)
            assert quotient(one, two) <= limit
            rest = seen(tables[1 - own], law_of(somewhere(SIZES[1 - own], draw.randint(0, SIZES[1 - own]))), 0)
            assert quotient(added(one, rest), added(two, rest)) <= limit


def test_the_error_is_that_of_the_sum(small: tuple[PlanSolution, int]) -> None:
    plan, _ = small
    mae = mse = Fraction(0)
    laws = [law_of([Fraction(3, 10)] * n) for n in SIZES]
    for (x, a), (y, b) in product(*map(enumerate, laws)):
        for (s, c), (t, d) in product(*(rows_of(table)[z].items() for table, z in zip(plan.tables, (x, y)))):  # noqa: B905
            mae += a * b * c * d * abs(s + t - x - y)
            mse += a * b * c * d * (s + t - x - y) ** 2
    assert float(plan.certificate.mae) == pytest.approx(float(mae), rel=1e-12)
    assert plan.certificate.mae >= mae
    assert float(plan.certificate.mse) == pytest.approx(float(mse), rel=1e-12)
    assert plan.lower_bound is not None
    assert plan.lower_bound <= mae


def test_the_bound_is_that_of_everybody_together(small: tuple[PlanSolution, int]) -> None:
    plan, known = small
    whole = solve(
        SingleLTE(
            Population.binomial(sum(SIZES), "0.3"), plan.problem.epsilon, tail="none", never_worse=False,
            observer=Observer(between=(LOW, HIGH), known=known),
        )
    )  # fmt: skip
    assert plan.lower_bound is not None
    assert float(plan.lower_bound) == pytest.approx(whole.mae, rel=1e-5)


def test_files_are_judged_alike_and_forged_tables_refused(small: tuple[PlanSolution, int], tmp_path: Path) -> None:
    plan, known = small
    plan.save(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0
    trusting = solve(MultiLTE(plan.problem.parties, plan.problem.epsilon, method="alone"))  # for the exact priors
    for tables in (trusting.tables, (plan.tables[0], trusting.tables[1])):
        dataclasses.replace(plan, tables=tables).save(tmp_path / "forged")
        with pytest.raises(CertificateError, match="epsilon of the people of party"):
            verify_plan(tmp_path / "forged")
        assert both_agree(tmp_path / "forged") == 1
    less = dataclasses.replace(plan.certificate, mae=plan.certificate.mae * Fraction(999, 1000))
    dataclasses.replace(plan, certificate=less).save(tmp_path / "boast")
    assert both_agree(tmp_path / "boast") == 1
    wide = plan.problem.changed(observer=Observer(between=(LOW / 2, HIGH), known=known))
    dataclasses.replace(plan, problem=wide).save(tmp_path / "wide")  # the same tables, said to hold for more
    assert both_agree(tmp_path / "wide") == 1


def test_the_worst_world_is_shown(small: tuple[PlanSolution, int], tmp_path: Path) -> None:
    plan, known = small
    plan.save(tmp_path / "plan")
    worst = open_artifact(tmp_path / "plan").explain().document()["worst"]  # type: ignore[union-attr]
    party, rows = worst["party"], rows_of(plan.tables[worst["party"]])
    highest = max(
        max(one[s] / two[s], two[s] / one[s])
        for others in crowds(SIZES[party], LOW, HIGH, known)
        for one, two in [(seen(rows, law_of(others), 0), seen(rows, law_of(others), 1))]
        for s in one
        if s == worst["output"]
    )
    assert worst["seen"] == "report"
    assert "at 0.4" in worst["others"]
    assert float(worst["quotient"]) == pytest.approx(float(highest), rel=1e-9)
    assert plan.certificate.epsilon is not None
    assert float(worst["epsilon"]) == pytest.approx(float(plan.certificate.epsilon), rel=1e-9)


def test_weights_contributions_and_an_observer_for_each(tmp_path: Path) -> None:
    """A weighted sum: a step of a person with a smaller weight gives away less."""
    parties = [Population.binomial(4, "0.3"), Population.iid(3, ["0.5", "0.3", "0.2"])]
    ends = [["0.6", "0.2", "0.2"], ["0.4", "0.4", "0.2"]]
    observers = [Observer(between=("0.2", "0.4"), known=1), Observer(between=ends)]
    plan = solve(MultiLTE(parties, "0.8", f=[-3, 2], observer=observers, objective="mse"))
    assert plan.lower_bound is not None  # people differ, but are as the observers hold possible
    assert 0 < plan.lower_bound <= plan.certificate.mse
    outputs = [{s for row in rows_of(table) for s in row} for table in plan.tables]
    assert all(s % 3 == 0 and s <= 0 for s in outputs[0])
    assert all(s % 2 == 0 and s >= 0 for s in outputs[1])
    first = rows_of(plan.tables[0])
    step = 1 / exp_below(-Fraction(8, 10) * 3 / 4)  # Delta is 4: a person of the second party moves the sum by 4
    for others in crowds(4, Fraction(1, 5), Fraction(2, 5), 1):
        assert quotient(seen(first, law_of(others), 0), seen(first, law_of(others), 1)) <= step
    second, step = rows_of(plan.tables[1]), 1 / exp_below(-Fraction(8, 10) * 2 / 4)
    laws = [[Fraction(v) for v in end] for end in ends]
    for one, two in product(laws, laws):
        law = [sum((one[a] * two[y - a] for a in range(3) if 0 <= y - a < 3), Fraction(0)) for y in range(5)]
        for w in (0, 1):
            assert quotient(seen(second, law, w), seen(second, law, w + 1)) <= step
    plan.save(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0
    stated = json.loads((tmp_path / "plan" / "plan.json").read_text())["problem"]
    assert [party["observer"] for party in stated["parties"]] == [one.spec() for one in observers]


def test_everybody_else_known_is_ordinary_privacy(tmp_path: Path) -> None:
    parties = [Population.binomial(3, "0.3"), Population.binomial(5, "0.3")]
    plan = solve(MultiLTE(parties, 1, observer=Observer(known="all")))
    limit = 1 / exp_below(Fraction(-1))
    for table in plan.tables:
        rows = rows_of(table)
        assert all(quotient(one, two) <= limit for one, two in pairwise(rows))
    plan.save(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0


TEXT = """
kind = "multi-lte"
epsilon = "0.5"
[observer]
between = ["0.2", "0.4"]
[[parties]]
kind = "binomial"
n = 5
p = "0.3"
[[parties]]
kind = "binomial"
n = 6
p = "0.3"
[parties.observer]
between = ["0.1", "0.5"]
known = 2
"""


def test_a_partys_own_observer_wins(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(TEXT)
    problem = load(tmp_path / "a.toml")
    assert isinstance(problem, MultiLTE)
    common, own = Observer(between=("0.2", "0.4")), Observer(between=("0.1", "0.5"), known=2)
    assert problem.observers == (common, own)
    same = MultiLTE(problem.parties, "0.5", observer=[common, own])
    assert problem == same
    assert problem != same.changed(observer=common)
    assert problem.changed(epsilon="0.7").observers == (common, own)


def test_the_belief_may_lie_outside_with_a_warning() -> None:
    parties = [Population.binomial(3, "0.3"), Population.binomial(4, "0.1")]
    plan = solve(MultiLTE(parties, 1, observer=Observer(between=("0.2", "0.4"))))
    assert "party 1: the population lies outside the observer's range" in plan.remarks


BAD = [
    ({"observer": Observer(between=("0.2", "0.4"), known=4)}, "party 1: known must be at most .*, 3"),
    ({"observer": Observer(between=("0.2", "0.4"), epsilon=1)}, "All observers of a plan have its epsilon"),
    ({"observer": Observer(known=1), "method": "joint"}, "none of them known. Use method = .alone"),
    ({"observer": Observer(margin="0.1"), "method": "joint", "honest": 1}, "needs honest parties only"),
    ({"observer": Observer(margin="0.1"), "method": "divisible"}, 'An observer is for method = "joint", "alone"'),
    ({"observer": [Observer(known=1)]}, "one for each of the 2 parties"),
    ({"observer": "0.2"}, "observer must be one Observer"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), BAD)
def test_what_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemError, match=said) as caught:
        MultiLTE([Population.binomial(5, "0.3"), Population.binomial(4, "0.3")], 1, **options)
    assert "\n" not in str(caught.value)


def test_dependent_people_and_ranges_upside_down_are_refused(tmp_path: Path) -> None:
    others = Population.from_others(["0.5", "0.5"])
    with pytest.raises(ProblemError, match=r"party 1: .*needs independent people"):
        MultiLTE([Population.binomial(5, "0.3"), others], 1, observer=Observer(between=("0.2", "0.4")))
    careful = Population.binomial(5, "0.3").conservative("0.5")
    with pytest.raises(ProblemError, match=r"party 0: .*conservative"):
        MultiLTE([careful, careful], 1, observer=Observer(known=1))
    (tmp_path / "a.toml").write_text(TEXT.replace('["0.1", "0.5"]', '["0.5", "0.1"]'))
    with pytest.raises(ProblemError, match="the smaller one first"):
        load(tmp_path / "a.toml")
    also = '[[also]]\n[[also.parties]]\nkind = "binomial"\nn = 5\np = "0.2"\nobserver = {known = 1}\n'
    (tmp_path / "b.toml").write_text(TEXT + also + also.partition("\n")[2].replace("n = 5", "n = 6"))
    with pytest.raises(ProblemError, match="cannot have an observer"):
        load(tmp_path / "b.toml")


# ---------------------------------------------------------------------- joint plans


Range = tuple[Fraction, Fraction]


def everywhere(ranges: Sequence[tuple[int, Range]], own: int) -> Iterator[list[list[Fraction]]]:
    """For a person of party `own`: all others of all parties, each at an end, one of every order of them."""
    choices = []
    for i, (n, (low, high)) in enumerate(ranges):
        others = n - (i == own)
        choices.append([[high] * k + [low] * (others - k) for k in range(others + 1)])
    yield from map(list, product(*choices))


def sums(tables: Sequence[Rows], people: Sequence[Sequence[Fraction]], own: int, shift: int) -> dict[int, Fraction]:
    found = {0: Fraction(1)}
    for i, (rows, chances) in enumerate(zip(tables, people, strict=True)):
        found = added(found, seen(rows, law_of(chances), shift if i == own else 0))
    return found


def full_rows(table: Any, last: int) -> Rows:
    """The rows of all inputs; those beyond the table's are served by the nearest one."""
    rows, first = rows_of(table), table.inputs[0]
    return [rows[min(max(x - first, 0), len(rows) - 1)] for x in range(last + 1)]


TENTH = Fraction(1, 10)
JOINT: list[tuple[list[tuple[int, str]], Any, list[Range], str]] = [
    ([(4, "0.3"), (3, "0.3")], Observer(between=(LOW, HIGH)), [(LOW, HIGH)] * 2, "0.7"),
    (
        [(3, "0.3"), (2, "0.2"), (3, "0.5")],
        [Observer(between=(LOW, HIGH)), None, Observer(margin="0.1")],
        [(LOW, HIGH), (LOW, LOW), (4 * TENTH, 6 * TENTH)],
        "1",
    ),
]


@pytest.fixture(scope="module", params=JOINT)
def joint(request: pytest.FixtureRequest) -> tuple[PlanSolution, list[tuple[int, Range]]]:
    people, observer, ranges, epsilon = request.param
    plan = solve(MultiLTE([Population.binomial(n, p) for n, p in people], epsilon, observer=observer))
    return plan, [(n, ends) for (n, _), ends in zip(people, ranges, strict=True)]


def test_the_sum_is_private_at_every_product_of_vertices(joint: tuple[PlanSolution, Any]) -> None:
    plan, ranges = joint
    assert (plan.problem.method, plan.engine) == ("joint", "together")
    tables = [full_rows(table, n) for table, (n, _) in zip(plan.tables, ranges, strict=True)]
    for own, epsilon in enumerate(plan.certificate.epsilons):
        worst = max(
            quotient(sums(tables, people, own, 0), sums(tables, people, own, 1)) for people in everywhere(ranges, own)
        )
        assert worst <= 1 / exp_below(-plan.problem.epsilon)
        assert epsilon is not None
        assert worst <= 1 / exp_below(-epsilon) <= worst * (1 + Fraction(1, 10**9))


def test_the_sum_is_private_for_people_anywhere_in_the_range(joint: tuple[PlanSolution, Any]) -> None:
    plan, ranges = joint
    limit, draw = 1 / exp_below(-plan.problem.epsilon), random.Random(3)
    tables = [full_rows(table, n) for table, (n, _) in zip(plan.tables, ranges, strict=True)]
    for _ in range(60):
        for own in range(len(ranges)):
            people = [[low + (high - low) * draw.randint(0, 64) / 64 for _ in range(n - (i == own))]
                      for i, (n, (low, high)) in enumerate(ranges)]  # fmt: skip
            assert quotient(sums(tables, people, own, 0), sums(tables, people, own, 1)) <= limit


def test_a_joint_plan_is_better_than_tables_that_are_private_alone(joint: tuple[PlanSolution, Any]) -> None:
    plan, _ = joint
    alone = solve(plan.problem.changed(method="alone"))
    assert plan.mae < alone.mae
    assert plan.lower_bound is None or plan.lower_bound <= plan.certificate.mae
    assert "all parties must be honest" in plan.summary()["meaning"]


def test_joint_files_are_judged_alike_and_forged_ones_refused(joint: tuple[PlanSolution, Any], tmp_path: Path) -> None:
    plan, _ = joint
    plan.save(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0
    worst = open_artifact(tmp_path / "plan").explain().document()["worst"]
    shown = Fraction(worst["epsilon"])
    assert plan.certificate.epsilon is not None
    assert float(shown) == pytest.approx(float(plan.certificate.epsilon), rel=1e-9)
    trusting = solve(MultiLTE(plan.problem.parties, plan.problem.epsilon, method="joint"))  # for the exact priors
    if isinstance(trusting.tables[0], NoiseMatrix):
        dataclasses.replace(plan, tables=trusting.tables).save(tmp_path / "forged")
        assert both_agree(tmp_path / "forged") == 1
    wide = plan.problem.changed(observer=Observer(between=(LOW / 4, HIGH * 2)))
    dataclasses.replace(plan, problem=wide).save(tmp_path / "wide")
    assert both_agree(tmp_path / "wide") == 1
    shares = solve(plan.problem.changed(method="geometric", observer=None))
    dataclasses.replace(shares, problem=plan.problem).save(tmp_path / "shares")
    assert both_agree(tmp_path / "shares") == 2


def test_reports_that_floats_cannot_hold_are_computed() -> None:
    """A report with a chance of about 2^-400 that tells more than any other, and one that only some inputs have."""
    problem = MultiLTE([Population.binomial(3, "0.3")] * 2, 1, observer=Observer(between=(LOW, HIGH)))
    unit, rare = 1 << 400, (1, 3, 9, 27)
    rows = tuple(((0, unit // 2), (1, unit // 2 - w), (2, w)) for w in rare)
    table = NoiseMatrix((0, 3), (0, 2), unit, rows, None, "clamp", 3)
    ranges = [(3, (LOW, HIGH))] * 2
    for found in worst_products(problem, [table, table]):
        worst = max(
            quotient(sums([rows_of(table)] * 2, people, 0, 0), sums([rows_of(table)] * 2, people, 0, 1))
            for people in everywhere(ranges, 0)
        )
        assert found.above == worst == 3
        assert found.one < Fraction(1, 1 << 390)
    sharp = NoiseMatrix((0, 3), (0, 2), unit, (rows[0], rows[0], rows[0], ((0, unit),)), None, "clamp", 3)
    silent = NoiseMatrix((0, 0), (0, 0), 1, (((0, 1),),), None, "clamp", 3)
    never = NoiseMatrix((0, 3), (0, 1), 1, (((0, 1),), ((0, 1),), ((0, 1),), ((1, 1),)), None, "clamp", 3)
    assert worst_products(problem, [never, silent])[0].epsilon is None
    assert worst_products(problem, [never, silent])[1].above == 1
    assert worst_products(problem, [sharp, silent])[0].above is not None


def test_a_plan_that_says_nothing_gives_nothing_away() -> None:
    """Every product is as bad as any other: then the quotient is bounded."""
    problem = MultiLTE([Population.binomial(60, "0.3")] * 2, 1, observer=Observer(between=(LOW, HIGH)))
    table = NoiseMatrix((0, 0), (0, 1), 3, (((0, 1), (1, 2)),), None, "clamp", 60)
    for found in worst_products(problem, [table, table]):
        assert found.epsilon is not None
        assert 0 <= found.epsilon < Fraction(1, 10**12)


FAR: list[tuple[list[Population], dict[str, Any], str]] = [
    ([Population.binomial(5, "0.3")] * 4, {}, "two or three parties. Found 4"),
    ([Population.binomial(5, "0.3")] * 2, {"fallback_epsilon": 3}, "no fallback"),
    ([Population.binomial(5, "0.3")] * 2, {"f": [1, 2]}, "no coefficients"),
    ([Population.binomial(700, "0.3")] * 3, {}, "2,000,000 products of vertices"),
    ([Population.independent([["0.7", "0.3"], ["0.6", "0.4"]])] * 2, {}, "people of one kind"),
]


@pytest.mark.parametrize(("parties", "options", "why"), FAR)
def test_out_of_reach_each_party_is_private_alone_and_the_reason_is_said(
    parties: list[Population], options: dict[str, Any], why: str
) -> None:
    observer = Observer(between=("0.2", "0.5"))
    problem = MultiLTE(parties, 1, observer=observer, **options)
    assert why in problem.apart
    assert why in refusal(problem, "joint")
    assert refusal(problem, "alone") == ""
    with pytest.raises(ProblemError, match=why):
        MultiLTE(parties, 1, observer=observer, method="joint", **options)
