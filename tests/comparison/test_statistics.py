"""What rows say together, against counting by hand and the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from optdp.comparison import markdown, tables
from optdp.comparison.machine import head
from optdp.comparison.page import page
from optdp.comparison.results import Results, as_jsonl, read
from optdp.comparison.rows import Row
from optdp.comparison.statistics import Comparison, ratios, shifted_mean
from tests.command_line import Done


def row(problem: str, backend: str, seconds: float, **more: object) -> Row:
    """A good answer, unless `more` says otherwise."""
    good = Row(
        problem, backend, "optimal", kind="single-lte", digest=problem, epsilon="0.3", seconds=seconds, objective=2.0,
        primal_residual=0.0, raw_epsilon="0.3", value=2.0, mae=2.0, certified_epsilon="0.3", lower_bound=2.0, gap=0.0,
        entries=100, limit=60.0, repeats=1,
    )  # fmt: skip
    return replace(good, **more)  # type: ignore[arg-type]


ROWS = (
    row("a", "highs", 1.0),
    row("a", "fast", 0.5, raw_epsilon="infinite"),
    row("a", "loose", 0.1, value=2.002, gap=1e-3, lower_bound=1.9, objective=2.002, primal_residual=1e-5,
        raw_epsilon="0.3003"),
    row("b", "highs", 2.0),
    row("b", "fast", 8.0, raw_epsilon="0.30000001"),
    Row("b", "loose", "timeout", digest="b", epsilon="0.3", limit=60.0),
    row("c", "highs", 4.0),
    Row("c", "fast", "crashed", digest="c", epsilon="0.3", limit=60.0),
    Row("c", "loose", "infeasible", digest="c", epsilon="0.3", limit=60.0),
)  # fmt: skip
FOUND = Comparison(ROWS)


@pytest.mark.parametrize(
    ("who", "tolerance", "solved", "returned", "repaired"),
    [
        ("highs", 1e-9, 3, 3, 3), ("fast", 1e-9, 2, 0, 2), ("fast", 1e-6, 2, 1, 2), ("fast", 1e-3, 2, 1, 2),
        ("loose", 1e-6, 0, 0, 0), ("loose", 1.1e-3, 1, 1, 1),
    ],
)  # fmt: skip
def test_successes(who: str, tolerance: float, solved: int, returned: int, repaired: int) -> None:
    tests = (FOUND.solved, FOUND.private_as_returned, FOUND.private_after_repair)
    found = [round(3 * FOUND.rate(who, test, tolerance)) for test in tests]
    assert found == [solved, returned, repaired]


def test_the_optimum_is_the_best_bound_of_any_row() -> None:
    """The weak bound of the row itself does not count."""
    assert {FOUND.bounds[one] for one in ROWS if one.problem == "a"} == {2.0}


def test_plans_without_a_proved_optimum_are_done_within_a_hundredth_of_the_best() -> None:
    weak = {"kind": "multi-lte", "status": "feasible", "lower_bound": 1.5, "gap": 0.25}
    values = 2.0, 2.019, 2.021
    best, near, far = (row("p", who, 1.0, value=value, **weak) for who, value in zip("abc", values, strict=True))
    proved, behind = row("q", "a", 1.0, kind="multi-lte"), row("q", "b", 1.0, kind="multi-lte", value=2.019)
    infinite = row("p", "d", 1.0, value=1.9, **{**weak, "certified_epsilon": "infinite"})
    found = Comparison((best, near, far, infinite, proved, behind))
    done = [found.private_after_repair(one, 1e-6) for one in found.rows]
    assert done == [True, True, False, False, True, False]


def test_backends_with_other_problems_are_not_compared_in_silence() -> None:
    even, odd = FOUND.rows, (*FOUND.rows, row("d", "highs", 1.0))
    assert [Comparison(rows).uneven for rows in (even, odd)] == [False, True]
    pages = [page(Results((head(1, 60.0, None, ""),), rows)).decode() for rows in (even, odd)]
    assert ["Not every backend was given every problem" in text for text in pages] == [False, True]


def test_profiles_are_those_of_dolan_and_more() -> None:
    assert FOUND.profile("highs") == [1.0, 1.0, 2.0]
    assert FOUND.profile("fast") == [1.0, 4.0]
    assert FOUND.profile("loose") == []
    for who in FOUND.backends:
        for ratio in (1.0, 1.5, 2.0, 4.0, 100.0):
            share = 0
            for rows in FOUND.problems.values():
                done = {one.who: one.seconds for one in rows if FOUND.private_after_repair(one, 1e-6)}
                share += who in done and done[who] <= ratio * min(done.values())  # type: ignore[operator, type-var]
            assert share == sum(known <= ratio for known in FOUND.profile(who))


def test_means_count_the_limit_for_what_was_not_done() -> None:
    assert shifted_mean([4.0], 3.0) == pytest.approx(4.0)
    assert shifted_mean([1.0, 100.0], 0.0) == pytest.approx(10.0)
    wanted = ((0.5 + 0.01) * (8 + 0.01) * (60 + 0.01)) ** (1 / 3) - 0.01
    assert FOUND.mean_seconds("fast") == pytest.approx(wanted)
    assert Comparison((replace(ROWS[7], limit=None),)).mean_seconds("fast") is None


def test_ours_against_the_best_other() -> None:
    pairs = FOUND.against()
    assert [(one.problem, one.ratio, one.who) for one in pairs] == [
        ("a", 0.5, "fast"),
        ("b", 4.0, "fast"),
        ("c", None, ""),
    ]
    assert ratios(pairs) == {"geometric mean": pytest.approx(math.sqrt(2)), "least": 0.5}
    apart = Comparison((replace(ROWS[0], run="x"), replace(ROWS[1], run="y")))
    assert [one.ratio for one in apart.against()] == [None, None]


def test_where_all_others_ran_into_their_limit_ours_is_faster_by_more_than_that() -> None:
    """Not if one of them ended otherwise, nor if ours is not done."""
    ended = [replace(ROWS[5], backend=name, limit=limit) for name, limit in (("one", 60.0), ("other", 30.0))]
    mine = row("b", "highs", 2.0)
    pairs = Comparison((mine, *ended)).against()
    assert [(one.ratio, one.more, tables.times(one)) for one in pairs] == [(15.0, True, "> 15")]
    assert ratios(pairs) == {"geometric mean": pytest.approx(15), "least": 15}
    crashed = replace(ended[0], status="crashed")
    for rows in ((mine, crashed, ended[1]), (replace(mine, value=2.002), *ended), (mine,)):
        assert [(one.ratio, one.more) for one in Comparison(rows).against()] == [(None, False)]


def test_wrong_statuses_are_found() -> None:
    assert [one.backend for one in ROWS if FOUND.wrong(one)] == ["loose", "loose"]
    assert "says infeasible" in FOUND.wrong(ROWS[8])
    assert "says optimal" in FOUND.wrong(ROWS[2])


def test_problems_of_one_name_are_told_apart() -> None:
    other = replace(ROWS[0], digest="another")
    assert len(Comparison((ROWS[0], other)).problems) == 2


# ----------------------------------------------------------------------------------------------------- what shows them


@pytest.fixture(scope="module")
def whole() -> Results:
    begun = head(3, 60.0, 4.0, "small")
    names = [f"solver-{i}" for i in range(20)]
    many = [row("d | <b>[x]", name, 0.1 * (i + 1), theirs="*yes*_<i>", note="a\nb|c") for i, name in enumerate(names)]
    return Results((begun,), tuple(replace(one, run=begun.run) for one in (*ROWS, *many)))


def test_the_page_holds_what_the_rows_say(whole: Results) -> None:
    text = page(whole).decode()
    assert page(whole) == page(whole)
    for part in ("<b>[x]", "<i>", "http:", "https:"):
        assert part not in text.partition('id="data"')[0]
    assert text.count("<h3>") >= len(FOUND.problems) + 1
    for part in ("Performance profile", "solver-19", "Optimal"):
        assert part in text


def test_a_page_of_one_failed_row_is_whole() -> None:
    assert b"timeout" in page(Results((head(1, None, None, ""),), (ROWS[5],)))


def test_tables_for_the_documentation_replace_only_their_own(whole: Results, tmp_path: Path) -> None:
    path = tmp_path / "solvers.md"
    path.write_text(f"# Mine\n\n{markdown.BEGIN}\nold\n{markdown.END}\n\nMy words.\n")
    path.write_bytes(markdown.written(whole, path))
    text = path.read_text()
    assert text.startswith("# Mine\n\n<!--")
    assert text.endswith(f"{markdown.END}\n\nMy words.\n")
    assert "old" not in text
    assert markdown.written(whole, path) == text.encode()
    columns = {line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("| solver-")}
    assert len(columns) == 2, "of the summary, and of the problem"
    assert "<b>" not in text.replace("\\<b\\>", "")
    (tmp_path / "none.md").write_text("# Mine\n")
    with pytest.raises(markdown.ProblemError, match="must have one"):
        markdown.written(whole, tmp_path / "none.md")


def test_the_tables_of_the_documentation_are_those_of_its_results() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    found = Results.merged(read(path) for path in sorted(docs.glob("solvers-*.jsonl")))
    assert found.rows
    assert markdown.written(found, docs / "solvers.md") == (docs / "solvers.md").read_bytes()


def test_files_are_shown_in_every_form(whole: Results, tmp_path: Path, command: Callable[..., Done]) -> None:
    source, out = tmp_path / "r.jsonl", tmp_path / "page.html"
    source.write_bytes(as_jsonl(whole))
    done = command("compare", source, "--report", out)
    assert done.code == 0, done
    assert out.read_bytes() == page(whole)
    for name in ("solver-19", "geometric mean", "says infeasible"):
        assert name in done.out
    told = __import__("json").loads(command("compare", source, "--json").out)
    assert told["summary"]["backends"]["highs"]["solved"]["1e-06"] == 1.0
    assert told["summary"]["ratios"] == tables.figures(whole.rows)["ratios"]
    assert len(told["rows"]) == len(whole.rows)
