"""Reports about what has no files of its own, and what problems say of themselves for people: title and names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optdp import (
    KRR,
    Amplification,
    KRRCount,
    MetricShuffle,
    MultiLTE,
    Population,
    ProblemError,
    RealSum,
    ShuffleHistogram,
    SingleLTE,
    load,
    solve,
    verify,
    verify_plan,
)
from optdp.kinds import KINDS
from optdp.recheck import recheck
from optdp.report.protocol import report
from optdp.report.report import report as report_of
from tests.command_line import Done
from tests.report.reading import parsed
from tests.shuffle.test_deployed import forged

TITLE = "A <survey>"
PROBLEMS: dict[str, Callable[[], Any]] = {
    "amplification": lambda: Amplification(KRR(4), n=500, eps0=1, delta="1e-5", title=TITLE),
    "krr-count": lambda: KRRCount(n=100, n_x0=20, k=4, eps0=1, delta="1e-3", title=TITLE),
    "metric-shuffle": lambda: MetricShuffle("geo", n=50, k=5, delta="1e-3", epsilon=1, max_distance=3, title=TITLE),
    "shuffle-histogram": lambda: ShuffleHistogram(labels=["a&b", "c"], n=500, epsilon=1, delta="1e-5", title=TITLE),
    "real-sum": lambda: RealSum(n=500, epsilon=1, delta="1e-5", title=TITLE),
}  # fmt: skip

PLAN = """
title = "Infections in three hospitals"
kind = "multi-lte"
epsilon = "0.5"
method = "geometric"
names = ["St. Mary", "North <b>", "Riverside"]
parties = [{kind = "binomial", n = 8, p = "0.3"}, {kind = "binomial", n = 8, p = "0.3"},
           {kind = "binomial", n = 6, p = "0.3"}]
"""


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_page_for_each_kind_without_files(name: str) -> None:
    problem = PROBLEMS[name]()
    made = report(problem, "file.toml")
    assert made == report(problem, "file.toml")
    page, text = parsed(made), made.decode()
    (heading,) = page.all("h1")
    assert heading.text == TITLE
    assert not [element for element in page.all() if "style" in element.attributes]
    said = " ".join(element.text for element in page.all("p"))
    assert problem.meaning[:60] in said
    assert f"{solve(problem).value:.9g}"[:6] in text.partition("The figures")[2]
    assert ("optdp run file.toml" in text) == bool(KINDS[name].run)
    drawn = [figure.attributes["id"] for figure in page.all("figure")]
    assert drawn == [which for which in solve(problem).pictures if which != "bounds"]


def test_every_kind_has_a_report() -> None:
    assert {name for name, kind in KINDS.items() if kind.run or not kind.target} == PROBLEMS.keys()
    with pytest.raises(ProblemError, match=r"made of what solve wrote: optdp solve a\.toml --out"):
        report(SingleLTE(Population.binomial(5, "0.3"), 1), "a.toml")


def test_a_report_from_a_problem_file(tmp_path: Path, command: Callable[..., Done]) -> None:
    place = tmp_path / "survey.toml"
    place.write_text('title = "Five answers"\nkind = "shuffle-histogram"\nk = 5\nn = 800\nepsilon = 1\ndelta = 1e-5\n')
    assert command("report", place).code == 0
    assert "<h1>Five answers</h1>" in (tmp_path / "survey.html").read_text()
    assert command("report", place, "--out", place).code == 2
    assert command("report", place, "--title", "Mine").code == 0
    assert "<h1>Mine</h1>" in (tmp_path / "survey.html").read_text()


def test_title_and_names_reach_the_report(tmp_path: Path) -> None:
    place = tmp_path / "plan.toml"
    place.write_text(PLAN)
    problem = load(place)
    assert problem.title == "Infections in three hospitals"
    assert problem == problem.changed(title="", names=())  # what is asked is the same
    solve(problem).save(tmp_path / "plan")
    assert verify_plan(tmp_path / "plan").problem.names == ("St. Mary", "North <b>", "Riverside")
    assert recheck(tmp_path / "plan").status == "PASS"
    page = parsed(report_of(tmp_path / "plan"))
    assert page.all("h1")[0].text == "Infections in three hospitals"
    cells = [element.text for element in page.all("td")]
    assert cells.index("St. Mary, North <b>") < cells.index("Riverside")  # alike, one row of the priors
    assert {"St. Mary", "North <b>", "Riverside"} <= set(cells)
    solve(SingleLTE(Population.binomial(5, "0.3"), 1, title="Five people")).save(tmp_path / "a.json")
    assert verify(tmp_path / "a.json").problem.title == "Five people"
    assert parsed(report_of(tmp_path / "a.json")).all("h1")[0].text == "Five people"


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", " "], "ab"])
def test_names_are_one_for_each_party(names: Any) -> None:
    with pytest.raises(ProblemError, match="names must"):
        MultiLTE([Population.binomial(4, "0.2")] * 2, epsilon=1, names=names)


def test_a_page_about_the_file_of_a_protocol(tmp_path: Path, command: Callable[..., Done]) -> None:
    """What stands there was recomputed from the file, and a file whose claim does not hold has no page."""
    place = tmp_path / "design.json"
    solve(RealSum(n=60, epsilon=1, delta="1e-3")).save(place)
    claim = json.loads(place.read_text())["claim"]
    assert command("report", place).code == 0
    page = parsed((tmp_path / "design.html").read_bytes())
    said = {element.text for element in page.all("td")}
    assert {claim["mse"], f"epsilon {claim['local_epsilon']}, delta 0"} <= said
    assert command("report", place, "--out", place).code == 2
    document = json.loads(place.read_text())
    document["claim"] |= {"epsilon": "0.5"}
    forged(document, place)
    assert command("report", place, "--out", tmp_path / "forged.html").code == 1
    assert not (tmp_path / "forged.html").exists()
