"""A total for several releases: against SciPy, every course of events in fractions, and dp-accounting."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import exp, log
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from optdp import (
    CertificateError,
    Ledger,
    Observer,
    Population,
    ProblemError,
    SingleLTE,
    Solution,
    Total,
    ladder,
    load,
    solve,
    verify,
)
from optdp.numbers.composition import largest_each, optimal
from optdp.numbers.exact import decimal_up
from optdp.report import single
from optdp.single.over_time import OverTime, brief
from tests.artifact.forgeries import document_of, sealed
from tests.checkers import both_agree
from tests.command_line import in_process
from tests.exact_checker import exp_below

WARD = Population.binomial(20, "0.2")
PLAIN: dict[str, Any] = {"tail": "none", "never_worse": False}


def delta_of(each: float, releases: int, epsilon: float) -> float:
    """The hockey-stick divergence of the numbers of positive answers among `releases` randomized responses."""
    plus = 1 / (1 + exp(-each))
    total = 0.0
    for count in range(releases + 1):
        p, q = binom.pmf(count, releases, plus), binom.pmf(count, releases, 1 - plus)
        total += max(0.0, float(p - exp(epsilon) * q))
    return total


@pytest.mark.parametrize(
    ("releases", "epsilon", "delta"),
    [(1, 1, "0.01"), (2, "0.5", "1e-3"), (12, 4, "1e-6"), (12, 1, "1e-3"), (52, 4, "1e-6"), (365, 4, "1e-6"),
     (365, "0.1", "1e-5"), (1000, 10, "1e-6")],
)  # fmt: skip
def test_the_largest_epsilon_is_the_root(releases: int, epsilon: Any, delta: str) -> None:
    """SciPy: binomial laws and Brent's method. The two agree, and ten digits of ours is the most there is."""
    whole, small = Fraction(epsilon), Fraction(delta)
    found = largest_each(releases, whole, small)
    root = brentq(lambda e: delta_of(e, releases, float(whole)) - float(small), float(whole / releases), 50, xtol=1e-13)
    assert float(found) == pytest.approx(root, rel=1e-6)
    assert optimal({found: releases}, small) <= whole
    assert optimal({found * (1 + Fraction(2, 10**9)): releases}, small) > whole


@pytest.mark.parametrize("total", ["4.8", "1", "1/7", "1e-6", "300"])
def test_without_a_delta_it_is_the_total_divided(total: str) -> None:
    found = largest_each(12, Fraction(total), Fraction(0))
    assert Fraction(total) / 12 * (1 - Fraction(1, 10**9)) <= found <= Fraction(total) / 12
    assert largest_each(12, Fraction("4.8"), Fraction(0)) == Fraction("0.4")


def worst_delta(solution: Solution, releases: int, epsilon: Fraction) -> Fraction:
    """At least the delta of all releases, by enumeration: any two neighbouring sums each time, any outputs, exactly."""
    table = solution.mechanism
    law = [[Fraction(0)] * (table.last + 1) for _ in range(table.last + 1)]
    for x, row in enumerate(table.rows):
        for s, weight in row:
            law[x][s] = Fraction(weight, table.denominator)
    pairs = [(x, x + step) for x in range(table.last + 1) for step in (-1, 1) if 0 <= x + step <= table.last]
    factor, worst = exp_below(epsilon), Fraction(0)
    for way in product(pairs, repeat=releases):
        if list(way) != sorted(way):  # their order does not matter
            continue
        courses = [(Fraction(1), Fraction(1))]
        for x, other in way:
            courses = [(p * a, q * b) for p, q in courses for a, b in zip(law[x], law[other], strict=True) if a]
        worst = max(worst, sum((max(Fraction(0), p - factor * q) for p, q in courses), Fraction(0)))
    return worst


@pytest.mark.parametrize("given", [{}, {"epsilon": "0.3"}, {"epsilon": "0.3", "observer": Observer(known=1)}])
@pytest.mark.parametrize(("releases", "delta"), [(2, "0.05"), (3, "0.01")])
def test_no_course_of_events_exceeds_the_total(given: dict[str, Any], releases: int, delta: str) -> None:
    total = Total("1.5", delta)
    solution = solve(SingleLTE(Population.binomial(3, "0.4"), releases=releases, total=total, **given, **PLAIN))
    found = solution.over_time
    assert found is not None
    assert found.epsilon <= total.epsilon
    assert worst_delta(solution, releases, total.epsilon) <= total.delta
    if not given:  # then the bound is attained; under a prior a table may give away somewhat less
        assert worst_delta(solution, releases, found.epsilon * Fraction("0.999")) > total.delta


def test_the_epsilon_takes_the_place_of_the_fallback() -> None:
    plain = SingleLTE(WARD, releases=4, total=Total(2, "1e-6"), **PLAIN)
    each = largest_each(4, Fraction(2), Fraction("1e-6"))
    assert plain.epsilon == each > Fraction(1, 2)
    assert (plain.fallback_epsilon, plain.observers) == (None, (Observer(known="all"),))
    prior = SingleLTE(WARD, epsilon="0.3", releases=4, total=Total(2, "1e-6"), **PLAIN)
    assert (prior.epsilon, prior.fallback_epsilon, prior.observers) == (Fraction("0.3"), each, (Observer(),))
    assert prior.settled == SingleLTE(WARD, epsilon="0.3", fallback_epsilon=each, **PLAIN)
    assert plain.settled == SingleLTE(WARD, epsilon=each, observer=Observer(known="all"), **PLAIN)
    settled = prior.settled
    assert settled.settled is settled
    assert prior != prior.settled
    same = SingleLTE(WARD, epsilon="0.3", releases=4, total={"epsilon": 2, "delta": "1e-6"}, **PLAIN)
    assert same == prior
    assert hash(same) == hash(prior)
    assert prior.changed(releases=6).fallback_epsilon == largest_each(6, Fraction(2), Fraction("1e-6"))


FILE = """
kind = "single-lte"
tail = "none"
never_worse = false
releases = 6
total = {epsilon = 3, delta = 1e-6}
{more}
[population]
kind = "binomial"
n = 20
p = "0.2"
"""


@pytest.mark.parametrize("more", ["", 'epsilon = "0.2"'])
def test_from_the_file_to_the_ledger(more: str, tmp_path: Path) -> None:
    """What is designed for six releases is accepted by a planned ledger six times, and no seventh time."""
    path, out = tmp_path / "p.toml", tmp_path / "a.json"
    path.write_text(FILE.replace("{more}", more))
    problem = load(path)
    assert type(problem)(**{"population": WARD} | _given(problem)) == problem
    solution = solve(problem)
    solution.save(out)
    both_agree(out)
    assert verify(out).problem == problem.settled
    together = solution.summary()["over_time"]
    assert together["releases"] == 6
    assert Fraction(together["epsilon_each"]) == problem.each
    assert Fraction(together["certified_epsilon"]) <= 3
    report = single.page(verify(out), "a.json").decode()
    assert "6 numbers drawn from this table, also about the same people" in report
    assert ("If everyone else&#x27;s data are new every period" in report) == bool(more)
    said = in_process("verify", out, "--recheck", "--json")
    assert json.loads(said.stdout)["over_time"] == solution.artifact().claim["over_time"]
    ledger = Ledger.create(tmp_path / "l.jsonl", 3, "1e-6", planned=True)
    ledger = ledger.add(out, count=5).add(out)
    assert ledger.spent == pytest.approx(Fraction(together["certified_epsilon"]), abs=1e-15)
    with pytest.raises(CertificateError, match="would bring the epsilon spent"):
        ledger.add(out)


@pytest.mark.parametrize("seed", range(16))
def test_random_problems_keep_their_total_by_both_checkers_and_the_ledger(seed: int, tmp_path: Path) -> None:
    """Tails, objectives, contributions above 1, methods; with and without an epsilon under the prior."""
    random = Random(seed)
    largest, people = random.choice([1, 1, 2, 3]), random.randint(1, 12)
    crowd = Population.iid(people, [f"1/{largest + 1}"] * (largest + 1))
    releases = random.choice([1, 2, 5, 12, 100])
    total = Total(random.choice([1, 4, "0.5"]), random.choice([0, "1e-6", "0.01"]))
    given: dict[str, Any] = {
        "tail": random.choice(["none", "geometric"]), "never_worse": random.random() < 0.5,
        "objective": random.choice(["mae", "mse"]), "adjacency": random.choice(["unit", "all"]),
        "method": random.choice(["lp", "lp", "geometric"]), "releases": releases, "total": total,
    }  # fmt: skip
    if random.random() < 0.6:
        given["epsilon"] = SingleLTE(crowd, **given).epsilon * Fraction(random.randint(1, 3), 4)
    solution = solve(SingleLTE(crowd, **given))
    solution.save(tmp_path / "a.json")
    assert both_agree(tmp_path / "a.json") == 0
    ledger = Ledger.create(tmp_path / "l.jsonl", total.epsilon, total.delta, planned=True)
    spent = ledger.add(tmp_path / "a.json", count=releases).spent
    assert solution.over_time is not None
    assert spent == solution.over_time.epsilon <= total.epsilon


def test_a_ladder_has_the_epsilon_of_each_release() -> None:
    """The rung of ordinary privacy is the designed table; all others cost less."""
    problem = SingleLTE(Population.binomial(8, "0.3"), releases=4, total=Total(4, "1e-6"), **PLAIN)
    found = ladder(problem)
    errors = [rung.error for rung in found.rungs]
    assert None not in errors
    ordinary = next(rung for rung in found.rungs if rung.label.startswith("everybody else"))
    assert ordinary.error == pytest.approx(solve(problem).mae, rel=1e-6)
    assert errors.index(ordinary.error) > 2
    assert errors[0] < ordinary.error


def _given(problem: SingleLTE) -> dict[str, Any]:
    spec = problem.spec()
    return {key: value for key, value in spec.items() if key not in ("kind", "population")}


def test_the_words_say_what_holds_under_the_prior() -> None:
    total = Total(2, "1e-6")
    prior = solve(SingleLTE(WARD, epsilon="0.1", releases=4, total=total, **PLAIN))
    assert prior.over_time is not None
    assert "epsilon is 0.1 for one release against someone who knows the stated prior" in prior.over_time.meaning
    assert "0.4 for all of them" in prior.over_time.meaning
    assert "then only the total holds" in prior.over_time.meaning
    assert prior.over_time.meaning in prior.sheet().remarks
    plain = solve(SingleLTE(WARD, releases=4, total=total, **PLAIN))
    assert plain.over_time is not None
    assert "prior" not in plain.over_time.meaning
    assert solve(SingleLTE(WARD, epsilon=1)).over_time is None


@pytest.mark.parametrize("size", [Population.binomial(60, "0.2"), Population.iid(20, ["0.5", "0.3", "0.2"])])
@pytest.mark.parametrize(("releases", "total"), [(12, Total(4, "1e-6")), (52, Total(4, "1e-6"))])
def test_dp_accounting_composes_the_table_to_the_same(size: Population, releases: int, total: Total) -> None:
    """A peer: its figure is of the table's whole profile, and pessimistic by its grid."""
    pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    solution = solve(SingleLTE(size, releases=releases, total=total, **PLAIN))
    peer = solution.to_pld(1e-4).self_compose(releases).get_epsilon_for_delta(float(total.delta))
    assert solution.over_time is not None
    ours = float(solution.over_time.epsilon)
    assert peer <= ours * (1 + 1e-3)
    if size.largest == 1:
        assert peer == pytest.approx(ours, rel=1e-3)


def told(table: np.ndarray, chance: float, *, same: bool) -> float:
    """The largest log-quotient of two numbers about one person, the others being the same both times or drawn anew."""
    people = len(table) - 1
    others = binom.pmf(np.arange(people), people - 1, chance)
    laws = []
    for own in (0, 1):
        rows = table[own : own + len(others)]
        once = others @ rows
        laws.append(np.einsum("x,xs,xt->st", others, rows, rows) if same else np.outer(once, once))
    possible = np.maximum(*laws) > 1e-12
    return float(np.abs(np.log(laws[0][possible] / laws[1][possible])).max())


def test_what_the_words_say_of_fresh_data_is_so() -> None:
    """Two releases at 0.2 under the prior and 1 without it: 0.4 if the others' data are fresh, 0.62 if they stay."""
    risk = Observer(between=("0.1", "0.3"))
    solution = solve(SingleLTE(WARD, epsilon="0.2", observer=risk, releases=2, total=Total(2), **PLAIN))
    table = solution.mechanism.to_array()
    chances = np.linspace(0.1, 0.3, 9)
    assert max(told(table, p, same=False) for p in chances) <= 0.4 + 1e-9
    assert 0.6 < max(told(table, p, same=True) for p in chances) <= 2 + 1e-9


def test_long_numbers_are_short_in_sentences_and_rounded_up() -> None:
    """A float is the binary fraction that it is; only what people read is rounded, to the side of a larger delta."""
    total = Total(0.7, 1e-6)
    assert (total.epsilon, total.delta) == (Fraction(0.7), Fraction(1e-6))
    assert total.describe == "0.7 at delta 0.000001"
    assert total.spec()["delta"] == "999999999999999954748111825886258685613938723690807819366455078125e-72"
    for value in (Fraction(1, 3), Fraction(2, 3 * 10**50), Fraction(10**9 + 1, 10**15), Fraction("123456.78901234")):
        assert value <= Fraction(brief(value)) <= value * (1 + Fraction(1, 10**5))
        assert len(brief(value)) <= 14


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """An artifact for six releases of sums up to 40, of whom each person contributes 0, 1 or 2."""
    people = Population.iid(20, ["0.5", "0.3", "0.2"])
    return document_of(SingleLTE(people, epsilon="0.3", releases=6, total=Total(3, "1e-6"), **PLAIN))


CLAIMS = [(1, "0"), (1, "0.2"), (2, "1e-3"), (6, "1e-6"), (6, "0"), (17, "0.9"), (40, "1e-80"), (365, "1e-9"),
          (1500, "1e-12")]  # fmt: skip


@pytest.mark.parametrize(("releases", "delta"), CLAIMS)
def test_both_checkers_find_the_same_least_epsilon(
    releases: int, delta: str, document: dict[str, Any], tmp_path: Path
) -> None:
    """One adds up balls over the losses, the other integers over the number of right answers."""
    ordinary = Fraction(document["claim"]["ordinary_epsilon"])
    least = optimal({ordinary: releases}, Fraction(delta))
    for shift, code in ((Fraction(0), 0), (Fraction(releases, 10**18), 1)):
        epsilon = decimal_up(least - shift)
        if Fraction(epsilon) < 0:
            continue
        claim = {"releases": releases, "epsilon": epsilon, "delta": delta}
        path = tmp_path / f"{code}.json"
        path.write_bytes(sealed(document | {"claim": document["claim"] | {"over_time": claim}}))
        assert both_agree(path) == code


@pytest.mark.parametrize(
    ("change", "code"),
    [({"releases": 7}, 1), ({"delta": "1e-7"}, 1), ({"epsilon": "2.9"}, 1), ({"delta": "0"}, 1), ({"epsilon": "0"}, 1),
     ({"releases": 5}, 0), ({"delta": "1e-5"}, 0), ({"releases": 10_000, "epsilon": "1000"}, 1),
     ({"releases": 0}, 2), ({"releases": 10_001}, 2), ({"releases": True}, 2), ({"releases": "6"}, 2),
     ({"delta": "1"}, 2), ({"delta": "-1e-6"}, 2), ({"delta": 0}, 2), ({"epsilon": "1001"}, 2), ({"epsilon": "-1"}, 2),
     ({"epsilon": "infinite"}, 2), ({"epsilon": None}, 2), ({"more": 1}, 2)],
)  # fmt: skip
def test_forged_claims_are_refused_by_both(
    change: dict[str, Any], code: int, document: dict[str, Any], tmp_path: Path
) -> None:
    claim = document["claim"]["over_time"] | change
    path = tmp_path / "a.json"
    path.write_bytes(sealed(document | {"claim": document["claim"] | {"over_time": claim}}))
    assert both_agree(path) == code


def test_a_table_without_an_ordinary_epsilon_has_no_total(document: dict[str, Any], tmp_path: Path) -> None:
    bare = document_of(SingleLTE(WARD, epsilon="0.3", **PLAIN))
    assert bare["claim"]["ordinary_epsilon"] == "infinite"
    path = tmp_path / "a.json"
    path.write_bytes(sealed(bare | {"claim": bare["claim"] | {"over_time": document["claim"]["over_time"]}}))
    assert both_agree(path) == 1


BOTH = {"releases": 12, "total": Total(4, "1e-6")}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "epsilon is missing"),
        ({"releases": 12}, "must come with a total"),
        ({"releases": 12, "epsilon": "0.1"}, "must come with a total"),
        ({"total": Total(4)}, "Found no releases"),
        (BOTH | {"releases": 0}, "releases must be"),
        (BOTH | {"releases": -1}, "releases must be"),
        (BOTH | {"releases": 2.0}, "releases must be a whole number"),
        (BOTH | {"releases": True}, "releases must be a whole number"),
        (BOTH | {"releases": 10_001}, "releases must be"),
        (BOTH | {"total": 4}, "total must have an epsilon"),
        (BOTH | {"total": {"delta": "1e-6"}}, "total must have an epsilon"),
        (BOTH | {"total": {"epsilon": 4, "gamma": 1}}, "total must have an epsilon"),
        (BOTH | {"total": {"epsilon": 4, "delta": 1}}, "delta of total must be 0, or from 1e-100 to below 1"),
        (BOTH | {"total": {"epsilon": 4, "delta": "-1e-6"}}, "delta of total must be"),
        (BOTH | {"total": {"epsilon": 0}}, "epsilon of total must be above 0"),
        (BOTH | {"total": {"epsilon": "1e-12"}}, "What a total leaves for each release must be at least"),
        (BOTH | {"total": {"epsilon": 1000}, "releases": 1}, "What a total leaves for each release must be larger"),
        (BOTH | {"epsilon": 5}, "epsilon must be smaller than what the total leaves for each of"),
        (BOTH | {"epsilon": "0.34"}, "epsilon must be smaller than what the total leaves for each of"),
        (BOTH | {"epsilon": "0.1", "fallback_epsilon": 1}, "Found fallback_epsilon too"),
        (BOTH | {"fallback_epsilon": 1}, "Found fallback_epsilon too"),
        (BOTH | {"observer": Observer(known=2)}, "needs an epsilon"),
        (BOTH | {"observer": [Observer(known="all"), Observer(known="all", epsilon=1)]}, "needs an epsilon"),
        (BOTH | {"observer": Observer(known="all"), "epsilon": "0.1"}, 'observer with known = "all"'),
        (BOTH | {"epsilon": "0.1", "method": "shifting"}, "no fallback"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_a_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ProblemError) as refused:
        SingleLTE(WARD, **given)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_table_that_gives_away_more_is_not_certified() -> None:
    """The proof is of the table that is deployed: a certificate with a larger ordinary epsilon is refused."""
    problem = SingleLTE(WARD, epsilon="0.1", releases=12, total=Total(4, "1e-6"), **PLAIN)
    assert problem.each is not None
    assert OverTime.of(problem, problem.each) is not None
    for ordinary in (None, problem.each + Fraction(1, 10**8), Fraction(str(log(2)))):
        with pytest.raises(CertificateError, match="12 releases must have at most 4 at delta"):
            OverTime.of(problem, ordinary)
