"""The page of a ladder: whole, safe, and with the figures of the ladder."""

from __future__ import annotations

import re

import pytest

from optdp import Observer, Population, SingleLTE, ladder
from optdp.report.ladder import WIDE, page
from optdp.single.ladder import Ladder
from tests.report.reading import data_of, parsed


@pytest.fixture(scope="module")
def found() -> Ladder:
    return ladder(SingleLTE(Population.binomial(8, "0.2"), epsilon="0.4", observer=Observer(("0.15", "0.3"))))


def test_the_page_is_whole_and_shows_every_rung(found: Ladder) -> None:
    made = page(found, "Who is <b>away</b>")
    root = parsed(made)  # every element is closed
    assert "Who is <b>away</b>" in root.words
    (figure,) = root.all(id="ladder")
    texts = [text.text for text in figure.all("text")]
    for rung in found.rungs:
        label, error, *_ = rung.cells()
        assert label in texts
        assert label in root.words
        assert error in root.words
    rows = root.all("tbody")[0].all("tr")
    assert [row.all("td")[1].text for row in rows] == [rung.cells()[1] for rung in found.rungs]
    assert [row.all("td")[3].text for row in rows] == [rung.cells()[3] for rung in found.rungs]


def test_bars_are_as_long_as_errors_are_large(found: Ladder) -> None:
    (figure,) = parsed(page(found)).all(id="ladder")
    bars = [float(bar.attributes["width"] or 0) for bar in figure.all("rect") if bar.attributes["class"] != "track"]
    errors = [rung.error or 0.0 for rung in found.rungs]
    assert len(bars) == len(errors)
    assert max(bars) <= WIDE
    whole = [(bar, error) for bar, error in zip(bars, errors, strict=True) if bar < WIDE]
    assert all(bar / error == pytest.approx(whole[0][0] / whole[0][1], rel=1e-2) for bar, error in whole)
    kinds = [bar.attributes["class"] for bar in figure.all("rect") if bar.attributes["class"] != "track"]
    assert kinds.count("compared") == 2


def test_it_loads_nothing_and_is_the_same_again(found: Ladder) -> None:
    made = page(found)
    assert made == page(found)
    assert not re.search(rb"(?:src|href)=\"(?!data:|#)", made)
    assert b'style="' not in made  # the policy of the page would drop it
    assert [row["error"] for row in data_of(made)["rows"]] == [rung.error for rung in found.rungs]


def test_a_page_without_a_single_solved_rung() -> None:
    problem = SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3")
    made = parsed(page(ladder(problem, deadline=0.001)))
    assert "the deadline of 0.001 s was reached" in made.words
    assert "nothing published" in made.words
