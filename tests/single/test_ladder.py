"""The ladder of observers: its rungs, that errors never fall as knowledge grows, and that the figures are `solve`'s."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest

from optdp import Observer, Population, ProblemError, SingleLTE, Solution, ladder, solve
from optdp.people import observer
from optdp.single import ladder as rooms
from optdp.single.alternatives import best_guess
from optdp.single.ladder import NO_BETTER, Ladder, Rung, steps
from optdp.single.solve import solve_single
from tests.command_line import Done

FEW = Population.binomial(14, "0.2")
DIFFER = Population.independent([["0.5", "0.5"]] * 4 + [["0.7", "0.3"]] * 5)
THREE = Population.iid(8, ["0.5", "0.3", "0.2"])
ALL = Observer(known="all")
PROBLEMS: dict[str, SingleLTE] = {
    "tails": SingleLTE(FEW, epsilon="0.7"),
    "no tails": SingleLTE(FEW, epsilon="0.7", tail="none", never_worse=False),
    "mse": SingleLTE(FEW, epsilon="0.7", tail="none", objective="mse"),
    "own range": SingleLTE(FEW, epsilon="0.7", tail="none", observer=Observer(("0.05", "0.4"), known=1)),
    "people differ": SingleLTE(DIFFER, epsilon="0.7", tail="none", never_worse=False),
    "larger contributions": SingleLTE(THREE, epsilon=1, tail="none", adjacency="all"),
    "a fallback": SingleLTE(FEW, epsilon="0.7", fallback_epsilon=2, tail="none"),
}


@pytest.fixture(scope="module")
def climbed() -> dict[str, Ladder]:
    return {name: ladder(problem) for name, problem in PROBLEMS.items()}


def names(problem: SingleLTE) -> list[str]:
    return [step.label for step in steps(problem)]


def within(one: Observer, other: Observer) -> bool:
    """Whether somebody like `other` may know all that somebody like `one` may."""
    if other.known == "all" or one.exact:
        return True
    if one.known == "all" or one.known > other.known:
        return False
    if one.between is not None and other.between is not None:
        return other.between[0][1] <= one.between[0][1] and one.between[1][1] <= other.between[1][1]
    if one.between is None and other.between is None:
        return (one.margin or 0) <= (other.margin or 0)
    return False


@pytest.mark.parametrize("name", PROBLEMS)
def test_errors_never_fall_as_knowledge_grows(name: str, climbed: dict[str, Ladder]) -> None:
    rungs = [rung for rung in climbed[name].rungs if rung.step.observers]
    compared = 0
    for i, less in enumerate(rungs):
        for more in rungs[i + 1 :]:
            if within(less.step.observers[0], more.step.observers[0]):
                assert less.error is not None
                assert more.error is not None
                assert more.error >= less.error * (1 - 1e-6)
                if less.lower_bound is not None:  # proved, so without any tolerance
                    assert more.error >= less.lower_bound
                compared += 1
    assert compared >= len(rungs) - 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_figures_are_those_of_solve(name: str, climbed: dict[str, Ladder]) -> None:
    problem = PROBLEMS[name]
    for rung in climbed[name].rungs[:-2]:
        found: Solution = solve(
            SingleLTE(
                problem.populations, epsilon=problem.epsilon, fallback_epsilon=problem.fallback_epsilon,
                tail=problem.tail, never_worse=problem.never_worse, objective=problem.objective,
                adjacency=problem.adjacency, observer=rung.step.observers,
            )
        )  # fmt: skip
        assert rung.error == found.value
        assert rung.lower_bound == (None if found.lower_bound is None else float(found.lower_bound))
        assert rung.status == found.status


def test_the_rungs_of_a_share() -> None:
    assert names(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3")) == [
        "exactly the prior (yours)",
        "between 0.09 and 0.11",
        "between 0.05 and 0.15",
        "between 0.05 and 0.15, 1 known",
        "between 0.05 and 0.15, 5 known",
        "between 0.05 and 0.15, 10 known",
        "between 0.05 and 0.15, 25 known",
        "everybody else: ordinary privacy",
        "geometric noise",
        "nothing published",
    ]


def test_the_problems_own_observers_are_marked() -> None:
    given = Population.binomial(100, "0.1")

    def mine(*watched: Observer) -> list[str]:
        return [name for name in names(SingleLTE(given, epsilon="0.3", observer=watched)) if "yours" in name]

    assert mine(Observer(("0.05", "0.15"))) == ["between 0.05 and 0.15 (yours)"]
    assert mine(Observer(("0.05", "0.15"), known=5)) == ["between 0.05 and 0.15, 5 known (yours)"]
    assert mine(ALL) == ["everybody else: ordinary privacy (yours)"]
    assert mine(Observer(("0.08", "0.12")), Observer(known="all", epsilon=2)) == [
        "between 0.08 and 0.12; everybody else at epsilon 2 (yours)"
    ]
    own = names(SingleLTE(given, epsilon="0.3", observer=Observer(("0.08", "0.12"), known=7)))
    assert own[3:8] == [f"between 0.08 and 0.12, {known}" for known in ("1 known", "5 known", "7 known (yours)",
                                                                        "10 known", "25 known")]  # fmt: skip


@pytest.mark.parametrize(
    ("p", "ends"),
    [
        ("0.1", [("0.09", "0.11"), ("0.05", "0.15")]),
        ("0.8", [("0.72", "0.88"), ("0.4", "1")]),
        ("1", [("0.9", "1"), ("0.5", "1")]),
        ("1/3", [("0.3", "0.367"), ("0.166", "0.5")]),
        ("1/7000", [("0.000128", "0.000158"), ("0.0000714", "0.000215")]),
        ("0", []),
    ],
)
def test_ranges_are_short_decimals_around_the_belief(p: str, ends: list[tuple[str, str]]) -> None:
    found = rooms.ranges(Population.binomial(50, p))
    assert [one.spec()["between"] for one in found] == [list(pair) for pair in ends]
    for one in found:
        assert one.between is not None
        assert one.between[0][1] <= Fraction(p) <= one.between[1][1]


def test_where_no_range_can_be_stated() -> None:
    """Larger contributions have known people only; people that depend on each other neither."""
    assert names(SingleLTE(Population.iid(21, ["0.5", "0.3", "0.2"]), epsilon=1))[1:4] == [
        "the prior, 1 known", "the prior, 2 known", "the prior, 5 known",
    ]  # fmt: skip
    laws = (["0.6", "0.2", "0.2"], ["0.3", "0.3", "0.4"])
    watched = SingleLTE(Population.iid(21, ["0.5", "0.3", "0.2"]), epsilon=1, observer=Observer(laws))
    assert names(watched)[1:3] == ["between the two stated laws (yours)", "between the two stated laws, 1 known"]
    bare = ["exactly the prior (yours)", "everybody else: ordinary privacy", "geometric noise", "nothing published"]
    assert names(SingleLTE(Population.from_others(["0.25", "0.5", "0.25"]), epsilon=1)) == bare
    assert names(SingleLTE(Population.binomial(40, "0.1").conservative("0.5"), epsilon=1)) == bare
    assert names(SingleLTE(DIFFER, epsilon=1))[1:4] == [
        "within 0.0389 of the prior", "within 0.195 of the prior", "within 0.195 of the prior, 1 known",
    ]  # fmt: skip


def test_many_kinds_of_people_have_one_range_for_all() -> None:
    crowd = Population.independent([["0.9", "0.1"]] * 60 + [["0.8", "0.2"]] * 60 + [["0.7", "0.3"]] * 60)
    with pytest.raises(ProblemError, match="one range for all kinds"):
        SingleLTE(crowd, epsilon=1, observer=Observer(margin="0.02"))
    assert names(SingleLTE(crowd, epsilon=1))[1:4] == [
        "between 0.08 and 0.32", "between 0 and 0.4", "between 0 and 0.4, 2 known",
    ]  # fmt: skip


@pytest.mark.parametrize("objective", ["mae", "mse"])
def test_nothing_published_is_the_best_constant(objective: Any) -> None:
    n, p = 30, Fraction(13, 100)
    law = [comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]
    power = 1 if objective == "mae" else 2
    costs = [sum(chance * abs(x - c) ** power for x, chance in enumerate(law)) for c in range(n + 1)]
    guess, error = best_guess(SingleLTE(Population.binomial(n, p), epsilon=1, objective=objective))
    assert costs[guess] == min(costs)
    assert error == pytest.approx(float(min(costs)), rel=1e-12)


def test_very_many_people_are_guessed_near_their_mean() -> None:
    """The mean absolute deviation of a binomial is nearly that of a normal law, sqrt(2/pi) standard deviations."""
    guess, error = best_guess(SingleLTE(Population.binomial(10**6, "0.1"), epsilon=1))
    assert guess == 10**5
    assert error == pytest.approx(300 * 0.7978846, rel=1e-4)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_way_from_the_exact_prior_to_nothing(name: str, climbed: dict[str, Ladder]) -> None:
    rungs = climbed[name].rungs
    least, most = rungs[0].error, rungs[-1].error
    assert least is not None
    assert most is not None
    assert (rungs[0].share, rungs[-1].share) == (0.0, 1.0)
    for rung in rungs:
        assert rung.error is not None
        assert rung.share == pytest.approx((rung.error - least) / (most - least))
        assert (NO_BETTER in rung.note) == (rung.error >= most and rung is not rungs[-1])


def test_what_is_no_better_than_nothing_says_so() -> None:
    """Geometric tails at a small epsilon are wrong by 20 people; there are only 8."""
    found = ladder(SingleLTE(Population.binomial(8, "0.1"), epsilon="0.05"))
    assert all(NO_BETTER in rung.note for rung in found.rungs[:-1])
    assert NO_BETTER not in found.rungs[-1].note
    assert {rung.share for rung in found.rungs} == {None}


def test_a_rung_that_cannot_be_solved_says_why_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "MOST_PLACES", 10)
    found = ladder(SingleLTE(FEW, epsilon="0.7", tail="none"))
    failed = [rung for rung in found.rungs if rung.error is None]
    assert [rung.label for rung in failed] == names(found.problem)[1:-3]
    assert all("probabilities together" in rung.note and "\n" not in rung.note for rung in failed)
    assert found.rungs[-3].error == solve(SingleLTE(FEW, epsilon="0.7", tail="none", observer=ALL)).value
    assert found.stopped == ""


def stopping(after: int) -> Callable[..., Solution]:
    """A solver that is interrupted in one of its problems."""
    asked: list[SingleLTE] = []

    def run(problem: SingleLTE, *rest: Any, **named: Any) -> Solution:
        asked.append(problem)
        found = solve_single(problem, *rest, **named)
        return found if len(asked) <= after else replace(found, status="interrupted")

    return run


@pytest.mark.parametrize(("tail", "left"), [("geometric", 4), ("none", 3)])
def test_interrupted_what_is_done_is_kept(tail: Any, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "solve_single", stopping(after=2))
    seen: list[Rung] = []
    found = ladder(SingleLTE(FEW, epsilon="0.7", tail=tail), seen=seen.append)
    assert tuple(seen) == found.rungs
    assert len(found.rungs) == left  # clamped noise is a table of its own, which takes time
    assert [rung.label for rung in found.rungs][:2] == names(found.problem)[:2]
    assert found.rungs[-1].share == 1.0
    assert found.missing[0].label == "between 0.1 and 0.3"
    assert found.summary()["status"] == "interrupted"
    assert "interrupted; not done: between 0.1 and 0.3; " in found.note


def test_known_people_come_last_but_are_shown_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a deadline leaves both ends of the ladder."""
    monkeypatch.setattr(rooms, "solve_single", stopping(after=4))
    seen: list[Rung] = []
    found = ladder(SingleLTE(FEW, epsilon="0.7"), seen=seen.append)
    assert tuple(seen) == found.rungs
    every = names(found.problem)
    assert [rung.label for rung in found.rungs] == [*every[:3], *every[-3:]]
    assert [step.label for step in found.missing] == every[3:-3]


def test_interrupted_at_once_there_is_no_way_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "solve_single", stopping(after=0))
    found = ladder(SingleLTE(FEW, epsilon="0.7"))
    assert [(rung.label, rung.share) for rung in found.rungs] == [
        ("geometric noise", None),
        ("nothing published", None),
    ]


def test_a_deadline_ends_it() -> None:
    found = ladder(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3"), deadline=0.2)
    assert "the deadline of 0.2 s was reached" in found.note
    assert found.missing
    assert found.rungs[-1].step.name == "nothing published"


def test_another_kind_is_refused() -> None:
    with pytest.raises(ProblemError, match="SingleLTE"):
        ladder("sick-leave.toml")  # type: ignore[arg-type]


# ---------------------------------------------------------------------- the command

TEXT = """title = "Who is <b>away</b>"
kind = "single-lte"
epsilon = "0.7"
population = { kind = "binomial", n = 8, p = "0.2" }
observer = { between = ["0.15", "0.3"] }
"""


def test_the_command(tmp_path: Path, command: Callable[..., Done]) -> None:
    file = tmp_path / "away.toml"
    file.write_text(TEXT)
    shown = command("observers", file)
    assert shown.code == 0, shown.err
    assert "between 0.15 and 0.3 (yours)" in shown.out
    told = json.loads(command("observers", file, "--json").out)
    given = SingleLTE(Population.binomial(8, "0.2"), epsilon="0.7", observer=Observer(("0.15", "0.3")))
    fresh = ladder(given)
    assert [row["error"] for row in told["rows"]] == [rung.error for rung in fresh.rungs]
    assert [row["observers"] for row in told["rows"] if row["yours"]] == [[{"between": ["0.15", "0.3"]}]]
    lines = shown.out.splitlines()
    for line, rung in zip(lines[1:], fresh.rungs, strict=False):
        assert line.startswith(rung.label)
        assert rung.cells()[1] in line.split()


def test_bad_input_is_one_line(tmp_path: Path, command: Callable[..., Done]) -> None:
    other = Path(__file__).parents[2] / "problems" / "paper-a" / "two-offices-small.toml"
    command("observers", other).refused("observers is for single-lte. Found kind multi-lte.")
    command("observers", tmp_path / "none.toml").refused("none.toml")
    file = tmp_path / "away.toml"
    file.write_text(TEXT)
    command("observers", file, "--out", tmp_path / "a.txt").refused("--out must end in .html")
    command("observers", file, "--out", tmp_path / "none" / "a.html").refused("Cannot write to the folder")
    command("observers", file, "--deadline", "0").refused("deadline")


def test_interrupted_the_page_is_still_written(
    tmp_path: Path, command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "away.toml"
    file.write_text(TEXT)
    monkeypatch.setattr(rooms, "solve_single", stopping(after=1))
    done = command("observers", file, "--out", tmp_path / "a.html")
    assert done.code == 130
    assert "interrupted; not done" in done.out
    assert "interrupted; not done" in (tmp_path / "a.html").read_text()
