"""Pictures: what is drawn are the numbers that were found, no line hides another, and matplotlib is an extra."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from optdp import Population, ProblemError, SingleLTE, solve, sweep
from optdp.extras import install
from optdp.html import Html
from optdp.numbers.exact import precision
from optdp.pictures.chart import Bars, Chart, Level, PlottedCurve, ticks
from optdp.pictures.svg import LEFT, RIGHT, WIDE, svg
from optdp.single.certify import mixed_prior
from optdp.single.solve import Solution
from optdp.sweeps.curve import Curve
from tests.toy import Toy, solve_toy

SAME = np.array([1.0, 2.0, 4.0])


@pytest.fixture(scope="module")
def solution() -> Solution:
    return solve(SingleLTE(Population.binomial(12, "0.3"), epsilon=1))


def lines_of(drawn: Html) -> list[ElementTree.Element]:
    return [path for path in ElementTree.fromstring(drawn).iter("path") if "L" in path.get("d", "")]


def test_the_pictures_of_a_mechanism_are_its_numbers(solution: Solution) -> None:
    errors = solution.pictures["errors"]()
    with precision():
        prior = [float(value.mid()) for value in mixed_prior(solution.problem, 0, 12)]
    assert errors.along.tolist() == list(range(13))
    assert np.dot(prior, errors.curves[0].values) == pytest.approx(solution.mae, rel=1e-9)
    assert errors.curves[1].values == pytest.approx(prior)
    quotients = solution.pictures["quotients"]()
    bound = math.exp(1) * (1 + 1e-9)
    for curve in quotients.curves:
        known = curve.values[np.isfinite(curve.values)]
        assert len(known) > 12
        assert known.max() <= bound
        assert known.min() >= 1 / bound
    heat = solution.pictures["matrix"]().dense()
    assert heat.sum(axis=1) == pytest.approx(np.ones(13), abs=1e-2)  # but for the tails beyond the picture
    bounds = dict(solution.pictures["bounds"]().rows)
    assert solution.lower_bound is not None
    assert bounds["this mechanism"] == solution.mae
    assert bounds["no mechanism is below (proved)"] == float(solution.lower_bound)
    assert bounds["geometric noise"] == solution.baseline_mae
    assert bounds["without data"] == solution.no_data_mae
    assert len(bounds) == 5


def test_no_line_hides_another() -> None:
    """Lines that coincide: those on top are thinner and have dashes, so that what is below them is seen."""
    matplotlib = pytest.importorskip("matplotlib.figure")
    same = Chart(0, [PlottedCurve(f"line {i}", SAME) for i in range(4)], "x", "y")
    drawn = lines_of(svg(same))[:4]
    assert len({path.get("d") for path in drawn}) == 1
    widths = [float(path.get("stroke-width", "0")) for path in drawn]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 4
    assert drawn[0].get("stroke-dasharray") is None
    assert len({path.get("stroke-dasharray") for path in drawn}) == 4
    ax = matplotlib.Figure().add_subplot()
    Curve("t", "x", "y", (1.0, 2.0, 3.0), {f"line {i}": (1.0, 2.0, 4.0) for i in range(4)}, False, False).plot(ax=ax)
    assert [line.get_linewidth() for line in ax.lines] == widths
    assert [line.get_zorder() for line in ax.lines] == sorted(line.get_zorder() for line in ax.lines)
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in ax.lines}) == 4


@pytest.mark.parametrize("values", [SAME, np.zeros(3), np.full(3, np.nan), np.array([1e-300, 1.0, 1e300])])
@pytest.mark.parametrize("log", [True, False])
def test_any_numbers_can_be_drawn(values: np.ndarray, log: bool) -> None:
    chart = Chart(3, [PlottedCurve("<b>", values)], "x & y", "z", (Level(2.0, "level"),), log)
    drawn = svg(chart)
    assert drawn == svg(chart)
    tree = ElementTree.fromstring(drawn)
    assert "nan" not in drawn
    assert "<b>" in "".join(tree.itertext())
    for path in lines_of(drawn):
        xs = [float(part.split()[0]) for part in path.get("d", "")[1:].replace("M", "L").split("L") if " " in part]
        assert all(LEFT - 1 <= x <= WIDE - RIGHT + 1 for x in xs)


@pytest.mark.parametrize(("low", "high", "log"), [(0, 1, False), (-3, 12, False), (1e-9, 1, True), (0.7, 1.4, True)])
def test_ticks_are_round_and_within(low: float, high: float, log: bool) -> None:
    found = ticks(low, high, log)
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))
    assert low <= found[0] * (1 + 1e-9) + 1e-9
    assert found[-1] <= high * (1 + 1e-9)
    assert all(len(f"{value:g}") <= 6 for value in found)


def test_bars_say_what_is_infinite() -> None:
    bars = Bars((("a", 1.0), ("b", None), ("c", 0.0), ("d", 100.0)), "size", log=True)
    assert bars.lengths() == pytest.approx([0.08, 1.0, 0.0, 1.0])
    assert "infinite" in svg(bars)
    assert Bars((("a", 2.0), ("b", 1.0)), "size").lengths() == [1.0, 0.5]


def test_names_of_pictures(solution: Solution) -> None:
    with pytest.raises(ProblemError, match=r"no picture 'error' of this\. Choose one of: matrix, errors, quotients"):
        solution.plot("error")
    toy = solve_toy(Toy(3), "", print)
    assert "<svg" in toy._repr_html_()
    pytest.importorskip("matplotlib.figure")
    assert [bar.get_width() for bar in toy.plot().patches] == [6.0, 3.0]


def test_without_matplotlib(solution: Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ProblemError, match=re.escape(install("plot"))):
        solution.plot()
    assert "<svg" in solution._repr_html_()  # a notebook needs none


def test_a_sweep_draws_each_figure(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib.figure")
    problem = {"kind": "single-lte", "epsilon": 1, "population": {"kind": "binomial", "n": 6, "p": "0.3"}}
    rows = sweep(problem, {"epsilon": ["0.5", "1", "2"], "population.n": [4, 6]}, workers=0)
    assert rows.keys == ("epsilon", "population.n")
    assert isinstance(rows, list)
    assert next(iter(rows.pictures)) == "mae"
    for which in ("mae", "baseline_mae"):
        ax = rows.plot(which, ax=matplotlib.Figure().add_subplot())
        drawn = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
        for size in (4, 6):
            wanted = [row[which] for row in rows if row["population.n"] == size]
            assert drawn[f"population.n = {size}"] == wanted
    html = rows._repr_html_()
    assert html.count("<tr>") == 1 + len(rows)
    assert "<svg" in html
