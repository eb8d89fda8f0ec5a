"""What the page shows is what exact arithmetic gives, rounded to the safe side."""

from __future__ import annotations

import json
import math
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from optdp import Population, SingleLTE, solve, verify, verify_plan
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.sgdl import SGDL
from optdp.pictures.chart import LEAST
from optdp.report import plan, single
from optdp.report import words as figures
from optdp.report.variations import variations
from optdp.single import heat
from tests.report.reading import cells, data_of, exact, parsed

getcontext().prec = 60


def number(text: str) -> Decimal:
    plain, *scale = text.replace(",", "").split(" ")
    if plain.startswith("10^"):
        return Decimal(10) ** int(plain[3:])
    return Decimal(plain) * {"million": 10**6, "billion": 10**9, "trillion": 10**12, "": 1}["".join(scale)]


@pytest.mark.parametrize(
    "epsilon", ["1e-6", "0.01", "0.05", "0.0953", "0.3", "1", "2", "4.6", "7.5", "14", "25", "99.5"]
)
def test_odds_factors_are_rounded_up_and_close(epsilon: str) -> None:
    true, shown = Decimal(epsilon).exp(), number(figures.odds_factor(Fraction(epsilon)))
    assert shown >= true
    assert shown <= true * (Decimal("1.01") if true < 10**15 else 10)


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "5"])
@pytest.mark.parametrize("before", ["0.01", "0.1", "0.5"])
def test_beliefs_enclose_those_of_bayes(epsilon: str, before: str) -> None:
    factor, chance = Decimal(epsilon).exp(), Decimal(before)
    odds = chance / (1 - chance)
    least, most = (
        number(text.removesuffix(" %")) / 100 for text in figures.belief(Fraction(before), Fraction(epsilon))
    )
    low, high = (o / (1 + o) for o in (odds / factor, odds * factor))
    assert least <= low
    assert high <= most
    assert low - least <= Decimal("0.001")
    assert most - high <= Decimal("0.001")


def test_errors_are_not_made_to_look_better() -> None:
    assert figures.less(Fraction("0.9436"), Fraction("3.2838")) == "71 % below geometric noise"
    assert figures.less(Fraction("0.99999"), Fraction(1)) == "less than 1 % below geometric noise"
    assert figures.less(Fraction(1), Fraction(1)) == "not below geometric noise"
    assert figures.less(Fraction(1, 10**9), Fraction(1)) == "99.99 % below geometric noise"
    assert Fraction(figures.at_most(Fraction(1, 3 * 10**7))) >= Fraction(1, 3 * 10**7)


MATRICES = {
    "tail": SingleLTE(Population.binomial(12, "0.3"), "0.5"),
    "none": SingleLTE(Population.binomial(9, "0.5"), "0.5", tail="none"),
    "fallback": SingleLTE(Population.binomial(8, "0.4"), "0.3", fallback_epsilon=1),
    "geometric": SingleLTE(Population.binomial(25, "0.2"), "0.4", method="geometric"),
    "iid": SingleLTE(Population.iid(6, ["0.5", "0.3", "0.2"]), "1", adjacency="all"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_every_cell_of_the_map_is_the_probability(name: str) -> None:
    solution = solve(MATRICES[name])
    drawn = heat.of_matrix(solution.mechanism, solution.problem.populations[0])
    assert not drawn.binned
    found = cells(drawn.json())
    for (i, j), value in found.items():
        true = exact(solution.mechanism, drawn.rows[0] + i, drawn.columns[0] + j)
        assert value == pytest.approx(float(true), rel=1e-6, abs=1e-37)
    assert drawn.dense() == pytest.approx(
        np.array([[found[i, j] for j in range(drawn.shape[1])] for i in range(drawn.shape[0])]), rel=1e-6
    )


def test_clamped_inputs_show_the_row_that_serves_them() -> None:
    rows = (((3, 1), (4, 1)), ((4, 2),), ((4, 1), (5, 1)))
    matrix = NoiseMatrix((3, 5), (3, 5), 2, rows, None, "clamp", 9)
    drawn = heat.of_matrix(matrix, Population.binomial(9, "0.5"))
    assert drawn.rows == (0, 9)
    for (i, j), value in cells(drawn.json()).items():
        assert value == float(exact(matrix, i, drawn.columns[0] + j))


def test_large_tables_are_binned_and_said_to_be() -> None:
    size, q = 1100, Fraction(9, 10)
    row = lambda x: tuple((s, 1) for s in range(size)) if x % 2 else ((x, size),)  # noqa: E731
    matrix = NoiseMatrix((0, size - 1), (0, size - 1), size, tuple(map(row, range(size))), q, "error", size - 1)
    drawn = heat.of_matrix(matrix, Population.binomial(size - 1, "0.5"))
    assert drawn.binned
    assert len(json.dumps(drawn.json())) < 3_000_000
    found, (down, across) = cells(drawn.json()), drawn.step
    for i, j in ((0, 0), (0, 5), (60, 80), (100, 101), (drawn.shape[0] - 1, drawn.shape[1] - 1)):
        inputs = range(down * i, min(size, down * (i + 1)))
        outputs = [drawn.columns[0] + across * j + k for k in range(across)]
        outputs = [s for s in outputs if s <= drawn.columns[1]]
        mean = sum(float(matrix.probability(x, s).mid()) for x in inputs for s in outputs) / len(inputs)
        assert found[i, j] == pytest.approx(mean if mean >= LEAST else 0.0, rel=1e-5)
    assert f"stands for {down} inputs and {across} outputs" in figures.caption_of(drawn, size - 1)


def test_maps_of_shared_noise() -> None:
    contraction = tuple(((max(x - 1, 0), 1), (min(x + 1, 4), 3)) if 0 < x < 4 else ((2, 4),) for x in range(5))
    noise = SharedNoise(
        4, Fraction(3, 5), Fraction(1, 2), 2, contraction, 4, (1, 2), (1, 4), 8, (((1, 3), (4, 5)), ((2, 8),))
    )
    noise.check()
    drawn = heat.of_shared(noise, Population.binomial(4, "0.5"))
    law = SGDL("1/2", "3/5")
    for (i, j), value in cells(drawn.json()).items():
        s = drawn.columns[0] + j
        base = lambda t, row=contraction[i]: sum(w / 4 * law.pmf(t - 2 * y) for y, w in row)  # noqa: E731
        true = base(s)
        if i in (1, 2) and 1 <= s <= 4:
            true = sum(base(t) for t in range(1, 5)) * dict(noise.rows[i - 1]).get(s, 0) / 8
        assert value == pytest.approx(true if true >= LEAST else 0.0, rel=1e-5)


def binomial(n: int, p: Fraction, x: int) -> Fraction:
    return math.comb(n, x) * p**x * (1 - p) ** (n - x) if 0 <= x <= n else Fraction(0)


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages") / "twenty.json"
    solve(SingleLTE(Population.binomial(20, "0.5"), "0.3", tail="none", fallback_epsilon=4)).save(place)
    return place


def test_errors_and_quotients_are_those_of_bayes(twenty: Path) -> None:
    found = verify(twenty)
    data = data_of(single.page(found, twenty.name))
    p = Fraction(1, 2)
    errors, prior = (curve["values"] for curve in data["errors"]["curves"])
    assert data["errors"]["first"] == 0
    for x in range(21):
        assert errors[x] == pytest.approx(
            float(sum(abs(s - x) * exact(found.matrix, x, s) for s in range(21))), rel=1e-5
        )
        assert prior[x] == pytest.approx(float(binomial(20, p, x)), rel=1e-5)
    (level,) = data["errors"]["levels"]
    q = math.exp(-0.3)
    assert level["value"] == pytest.approx(2 * q / (1 - q * q), rel=1e-9)
    (curve,) = data["quotients"]["curves"]
    for s in range(21):
        given = [sum(binomial(19, p, x - w) * exact(found.matrix, x, s) for x in range(21)) for w in (0, 1)]
        assert curve["values"][s] == pytest.approx(float(given[0] / given[1]), rel=1e-5)
    assert [level["value"] for level in data["quotients"]["levels"]] == pytest.approx([math.exp(0.3), math.exp(-0.3)])


def test_other_priors_are_measured_and_rounded_up(twenty: Path) -> None:
    found = verify(twenty)
    page = parsed(single.page(found, twenty.name))
    shown = {}
    for row in page.one(id="others").all("tr"):
        name, value = row.children[0].words, row.children[1].words
        shown[name.strip()] = Decimal(value.split("(")[0].strip())
    for words, n, share in (("the probability is 0.4, not 0.5", 20, "0.4"), ("there are 18 people, not 20", 18, "0.5")):
        p, worst = Fraction(share), Fraction(1)
        for s in range(21):
            one, two = (sum(binomial(n - 1, p, x - w) * exact(found.matrix, x, s) for x in range(21)) for w in (0, 1))
            worst = max(worst, one / two, two / one)
        true = (Decimal(worst.numerator) / Decimal(worst.denominator)).ln()
        assert true <= shown[words] <= true + Decimal("0.0002")
    assert Decimal(shown["as stated"]) == Decimal("0.3")
    assert len(shown) == 14


KINDS = [
    Population.binomial(10, "0.3"),
    Population.binomial(10, "0.3").conservative("0.5"),
    Population.iid(8, ["0.5", "0.25", "0.25"]),
    Population.from_counts([5, 3, 2], n=9),
    Population.independent([["0.9", "0.1"]] * 5 + [["0.5", "0.25", "0.25"]] * 4),
    Population.independent([["0.9", "0.1"]] * 5 + [["0.5", "0.25", "0.25"]] * 4).conservative("0.5"),
    Population.binomial(1, "0.5"),
    Population.binomial(5, "0"),
]


@pytest.mark.parametrize("population", KINDS, ids=lambda population: population.describe)
def test_variations_are_other_worlds_within_reach(population: Population) -> None:
    found = variations(population)
    assert len({item.key for item in found}) == len(found)
    assert {item.key for item in variations(population, brief=True)} <= {item.key for item in found}
    for item in found:
        assert item.population.last <= population.last
        assert item.population.largest <= population.largest
        if item.key not in ("full",) and population.size > 1 and population.spec.get("p") != "0":
            assert item.population.total != population.total


def test_priors_given_as_a_whole_have_no_variations() -> None:
    assert variations(Population.from_others(["0.5", "0.5"])) == []


def test_thinned_curves_keep_the_extremes() -> None:
    from optdp.pictures.chart import MOST_POINTS, Chart, PlottedCurve

    values = np.sin(np.arange(3 * MOST_POINTS) / 7.0) + 2
    values[12345] = np.nan
    chart = Chart(0, (PlottedCurve("a", values),), "x", "y").json()
    assert len(chart["curves"][0]["values"]) <= MOST_POINTS
    assert max(chart["curves"][0]["values"]) == pytest.approx(np.nanmax(values), rel=1e-5)
    (curve,) = Chart(0, (PlottedCurve("a", 10.0**values),), "x", "y", log=True).json()["curves"]
    assert all(b is not None for b in curve["values"])
    assert [a for a, b in pairwise(curve["values"]) if a == b == 0] == []


def test_the_plan_page_says_what_the_plan_claims(tmp_path: Path) -> None:
    from optdp import MultiLTE

    solve(MultiLTE([Population.binomial(5, "0.5")] * 2, "0.5", method="joint")).save(tmp_path / "plan")
    found = verify_plan(tmp_path / "plan")
    page = plan.page(found, "plan", found.problem.spec())
    data = data_of(page)
    assert {"heat-0", "totals"} <= data.keys()
    for i, table in enumerate(found.tables):
        drawn = data[f"heat-{i}"] if f"heat-{i}" in data else data["heat-0"]
        for (row, column), value in cells(drawn).items():
            x, s = drawn["rows"][0] + row, drawn["columns"][0] + column
            assert value == pytest.approx(float(exact(table, x, s)), rel=1e-6)
    words = " ".join(parsed(page).words.split())
    for text in ("2 of 2", found.identity, "secure sum", "Party 1", figures.at_most(found.certificate.mae)):
        assert text in words
