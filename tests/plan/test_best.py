"""The best of all methods: what it picks, what it says of the others, and what it never writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from optdp import MultiLTE, Observer, Population, load, open_artifact, solve
from optdp.errors import ArtifactError
from optdp.plan import methods
from optdp.plan.format import plan_files
from optdp.plan.methods import METHODS, SOONEST, refusal
from optdp.plan.parties import parties_of
from optdp.plan.simultaneous import is_small
from optdp.single.format import to_json
from tests.shared import shared_solution

TINY = [Population.binomial(2, "0.4"), Population.binomial(1, "0.4")]
SMALL = [Population.binomial(4, "0.4"), Population.binomial(3, "0.4")]


@pytest.mark.parametrize("options", [{}, {"honest": 1}, {"objective": "mse"}, {"f": [2, -1]}, {"fallback_epsilon": 2}])
def test_no_method_is_better(options: dict) -> None:
    best = shared_solution(MultiLTE(SMALL, 1, method="best", **options))
    assert [one.method for one in best.tried] == list(METHODS)
    for one in best.tried:
        problem = best.problem.changed(method="best")
        if one.value is None:
            assert one.note
            continue
        alone = shared_solution(problem.changed(method=one.method))
        assert one.value == alone.value >= best.value * (1 - 1e-8)
        assert refusal(problem, one.method) == ""
    assert best.problem.method in METHODS
    assert best.value == next(one.value for one in best.tried if one.method == best.problem.method)


def test_the_table_says_what_each_is_worth() -> None:
    best = shared_solution(MultiLTE(SMALL, 1, method="best", fallback_epsilon=2))
    rows = {row["method"]: row for row in best.summary()["methods"]}
    assert rows["geometric"]["value"] is None
    assert "fallback_epsilon" in rows["geometric"]["note"]
    assert all(row["assumes"] and row["protects"] for row in rows.values())
    (listing,) = [listing for listing in best.sheet().listings if listing.head[0] == "method"]
    assert [getattr(row[0], "text", row[0]) for row in listing.rows] == list(METHODS)


def test_an_observer_leaves_what_keeps_it() -> None:
    best = shared_solution(MultiLTE(SMALL, 1, method="best", observer=Observer(between=("0.3", "0.5"))))
    values = {one.method: one.value for one in best.tried}
    assert values["geometric"] is None
    assert values["divisible"] is None
    assert best.value == min(values["joint"], values["alone"])


def test_files_say_the_method_that_was_chosen(tmp_path: Path) -> None:
    best = shared_solution(MultiLTE(SMALL, 1, method="best"))
    best.save(tmp_path / "plan")
    found = json.loads((tmp_path / "plan" / "plan.json").read_bytes())["problem"]["method"]
    assert found == best.problem.method != "best"
    _, members = plan_files(shared_solution(MultiLTE(SMALL, 1, method="joint")))
    member = members[0]
    forged = type(member)(
        **{name: getattr(member, name) for name in ("inputs", "outputs", "denominator", "rows", "outside", "q")},
        problem=dict(member.problem) | {"method": "best"}, claim=member.claim, provenance=member.provenance,
    )  # fmt: skip
    (tmp_path / "party-0.json").write_bytes(to_json(forged))
    with pytest.raises(ArtifactError, match="by which method"):
        open_artifact(tmp_path / "party-0.json")


def test_a_file_may_ask_for_the_best(tmp_path: Path) -> None:
    place = tmp_path / "plan.toml"
    place.write_text(
        'kind = "multi-lte"\nepsilon = "1"\nmethod = "best"\n'
        + '[[parties]]\nkind = "binomial"\nn = 3\np = "0.4"\n' * 2
    )
    assert load(place).method == "best"


def _ended_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(problem: MultiLTE, progress: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(METHODS, name, replace(METHODS[name], solve=stop))


@pytest.mark.parametrize("name", ["seeded", "joint"])
def test_an_interrupt_leaves_the_best_so_far(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _ended_in(name, monkeypatch)
    best = solve(MultiLTE(TINY, 1))
    assert best.status == "interrupted"
    place = SOONEST.index(name)
    values = {one.method: one.value for one in best.tried if one.value is not None}
    assert values.keys() == {*SOONEST[:place]} - {"inside"}  # which needs three parties
    assert all(one.note == "interrupted" for one in best.tried if one.method in SOONEST[place:])
    assert best.value == min(values.values())
    best.certificate.check(best.problem)


def test_an_interrupt_before_anything_is_found_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _ended_in("joint", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        solve(MultiLTE(SMALL, 1, fallback_epsilon=2))


def test_what_takes_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def long(_: MultiLTE) -> float:
        return 2 * methods.ALLOWED

    for name in ("joint", "seeded"):
        monkeypatch.setitem(METHODS, name, replace(METHODS[name], seconds=long))
    best = solve(MultiLTE(TINY, 1))
    notes = {one.method: one.note for one in best.tried}
    assert best.problem.method in ("alone", "divisible")
    assert "5 min" in notes["joint"]
    assert "5 min" in notes["seeded"]
    for name in ("alone", "divisible"):
        monkeypatch.setitem(METHODS, name, replace(METHODS[name], seconds=long))
    _ended_in("joint", monkeypatch)
    assert solve(MultiLTE(TINY, 1)).problem.method == "seeded"  # nothing but geometric noise would be left


def test_whom_each_method_protects_from_is_said_of_this_problem() -> None:
    def said(problem: MultiLTE) -> dict[str, str]:
        return {name: way.protects(problem) for name, way in METHODS.items()}

    some = said(MultiLTE([SMALL[0]] * 3, 1, honest=2))
    assert all("also any one party" in some[name] for name in ("geometric", "divisible", "joint", "inside"))
    every = said(MultiLTE(SMALL, 1))
    assert all("but from no party" in every[name] for name in ("geometric", "divisible", "joint", "seeded", "inside"))
    assert "all other parties" in every["alone"]
    assert "what the observer may know" in said(MultiLTE(SMALL, 1, observer=Observer(between=("0.3", "0.5"))))["joint"]


def test_only_a_few_parties_move_all_tables_at_once() -> None:
    def small(count: int) -> bool:
        problem = MultiLTE([Population.binomial(2, "0.5")] * count, "0.5")
        return is_small(problem, parties_of(problem, [0] * count))

    assert small(5)
    assert not small(12)
    assert not small(40)
    pair = MultiLTE([Population.binomial(8, "0.5")] * 3, "0.1")
    assert is_small(pair, parties_of(pair, [0] * 3))
    assert not is_small(pair, parties_of(pair, [30] * 3))  # every entry is in hundreds of comparisons
