"""Every backend is a row, whatever it does."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from optdp import MultiLTE, Population, ProblemError, SingleLTE, compare, solve
from optdp.comparison import measure
from optdp.comparison.rows import Row
from optdp.comparison.run import Settings, compare_all, parse_options
from optdp.numbers.exact import precision
from optdp.programs import backends
from optdp.single.lp import formulate
from tests.comparison import toys
from tests.processes import runs

PROBLEM = SingleLTE(Population.binomial(8, "0.3"), "0.5", tail="none")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Row]]:
    """What became of each toy, with a real backend before and after."""
    home = tmp_path_factory.mktemp("toys")
    (home / "sitecustomize.py").write_text("from tests.comparison.toys import register\nregister()\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "BACKENDS", backends.BACKENDS)
        toys.register()
        patch.setenv("PYTHONPATH", f"{home}{os.pathsep}{toys.HERE}")
        patch.setenv("TOYS", str(home))
        names = ["highs", *(f"toy-{toy.__name__}" for toy in toys.TOYS), "highs-simplex"]
        found = list(compare_all({"p": PROBLEM}, names, Settings(timeout=15.0, memory=3.0), lambda _: None))
        child = int((home / "child").read_text())
        assert [row.backend for row in found] == names
        yield {row.backend.removeprefix("toy-"): row for row in found}
    assert not runs(child)


@pytest.mark.parametrize(
    ("name", "status", "note"),
    [
        ("hangs", "timeout", "no answer within 15 s"),
        ("crashes", "crashed", "ended by SIGSEGV: about to fall"),
        ("eats", "memory", "out of memory"),
        ("raises", "crashed", "ended with exit code 1: ZeroDivisionError: [red]of all things"),
        ("ends", "crashed", "ended with exit code 7"),
        ("forgets", "failed", "The solver must give a solution"),
        ("denies", "infeasible", "Infeasible!"),
    ],
)
def test_what_goes_wrong_is_a_row(rows: dict[str, Row], name: str, status: str, note: str) -> None:
    row = rows[name]
    assert (row.status, row.certified_epsilon, row.mae) == (status, None, None)
    assert note in row.note
    assert row.epsilon == "0.5"
    assert row.limit == 15.0


def test_what_a_solver_prints_is_never_taken_for_an_answer(rows: dict[str, Row]) -> None:
    row, honest = rows["prints"], rows["highs-simplex"]
    assert (row.status, row.mae, row.certified_epsilon, row.gap) == (
        honest.status, honest.mae, honest.certified_epsilon, honest.gap,
    )  # fmt: skip


def test_optimal_is_said_of_what_is_proved(rows: dict[str, Row]) -> None:
    """The toy's table is private, and by far not the best."""
    row, ours = rows["boasts"], rows["highs"]
    assert row.theirs == "Optimal!"
    assert row.status in ("feasible", "limit")
    assert row.mae is not None
    assert ours.mae is not None
    assert row.mae > ours.mae
    if row.gap is not None:
        assert row.bound_by == "highs"
        assert row.gap > 1e-3


def test_a_row_says_what_solve_says(rows: dict[str, Row]) -> None:
    row, solution = rows["highs"], solve(PROBLEM)
    assert (row.status, row.mae) == ("optimal", solution.mae)
    assert row.certified_epsilon == solution.summary()["certified_epsilon"]
    assert row.lower_bound == float(solution.lower_bound or 0)
    assert (row.repeats, row.kind, row.unknowns) == (1, "single-lte", 81)
    assert row.memory is not None
    assert row.memory > 10


def test_sizes_are_those_of_the_program() -> None:
    with precision():
        for problem in (
            PROBLEM, SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), 1, "3", adjacency="all"),
            SingleLTE(Population.binomial(6, "0.5"), "0.3", "2"),
        ):  # fmt: skip
            lp = formulate(problem)
            found, program = measure.size_of(lp), lp.to_program()
            assert (found["rows"], found["unknowns"]) == program.matrix.shape
            assert found["entries"] == program.matrix.count_nonzero()


def test_residuals_are_those_of_the_arrays() -> None:
    """A damaged answer, looked at in two ways."""
    with precision():
        for problem in (PROBLEM, SingleLTE(Population.binomial(6, "0.5"), "0.3", "2")):
            lp = formulate(problem)
            program = lp.to_program()
            answer = backends.find("highs").solve(program)
            assert answer.x is not None
            for place, size in ((0, 1e-3), (5, -1e-2), (-1, 0.5)):
                x = answer.x.copy()
                x[place] += size
                draft = measure.pose(lp, "plain").read(x, None, "optimal")
                found = measure._looked_at(lp, draft)["primal_residual"]
                assert found == pytest.approx(measure.residuals(program, x, None).primal, rel=1e-6)


def test_broken_rows_are_counted() -> None:
    """The identity breaks every row in which one of two neighbouring secrets has an output that the other lacks."""
    with precision():
        lp = formulate(PROBLEM)
        size = len(lp.inputs)
        draft = measure.pose(lp, "plain").read(measure.np.eye(size).ravel(), None, "optimal")
        worst = measure.raw_epsilon(lp, draft)
        one, other = lp.weights
        allowed = measure.math.exp(0.5)
        assert measure.violated(lp, draft) == int(((one > allowed * other) | (other > allowed * one)).sum())
        assert worst is None  # nobody is 0, so an output of 0 tells that a secret of 1 is wrong


def test_bad_settings_are_one_line() -> None:
    for bad in ({"repeat": 0}, {"timeout": 0.0}, {"memory": -1.0}, {"form": "dual"}):
        with pytest.raises(ProblemError, match="must be"):
            Settings(**bad)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="magic"):
        list(compare(PROBLEM, ["magic"]))
    for text in ("a", "=1", "a=", "magic:a=1"):
        with pytest.raises(ProblemError, match=r"NAME=VALUE|Unknown backend"):
            parse_options([text])
    assert parse_options(["a=1", "clarabel:b=1e-3", "clarabel:c=off", "d=true"]) == {
        "": {"a": 1, "d": True}, "clarabel": {"b": 1e-3, "c": "off"},
    }  # fmt: skip


def test_an_option_that_a_solver_does_not_take_is_a_row() -> None:
    (row,) = compare(PROBLEM, ["highs-simplex"], options={"no_such_option": 1})
    assert row.status == "failed"
    assert "no_such_option" in row.note
    assert len(row.note.splitlines()) == 1


def test_a_plan_is_solved_through_the_backend() -> None:
    plan = MultiLTE([Population.binomial(3, "0.5")] * 2, "0.5", method="geometric")
    (row,) = compare({"plan": plan}, ["highs"], timeout=120)
    assert (row.problem, row.kind, row.theirs) == ("plan", "multi-lte", solve(plan).status)
    assert row.mae == solve(plan).mae
    assert row.raw_epsilon is None
