"""Noise that does not depend on the input: against brute force with fractions, and against SciPy."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb, exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from optdp import AddedNoise, Population, ProblemError, SingleLTE, Solution, certify, epsilon_under, load, solve, verify
from optdp.artifact import open_artifact
from optdp.audit import audit
from optdp.export import TARGETS, export
from optdp.numbers.exact import geometric_ratio, precision
from optdp.numbers.pmf import BinomialPmf, ExactPmf
from optdp.report.report import report
from optdp.single import added
from optdp.single.added import PersonKind
from optdp.single.explain import explain
from optdp.work.account import limited
from tests.artifact.forgeries import sealed
from tests.checkers import agrees, both_agree
from tests.exact_checker import exp_below

Law = list[Fraction]


def laws_of_others(population: Population) -> Iterator[tuple[Law, int]]:
    """For each kind of person the law of what all others contribute, person by person, and the largest contribution."""
    people = [law for law, count in population.laws for _ in range(count)]
    for own in dict.fromkeys(law for law in people):
        rest = list(people)
        rest.remove(own)
        total: Law = [Fraction(1)]
        for law in rest:
            found = [Fraction(0)] * (len(total) + len(law) - 1)
            for i, a in enumerate(total):
                for j, b in enumerate(law):
                    found[i + j] += a * b
            total = found
        yield total, len(own) - 1


def law_of(document: dict[str, Any], far: int) -> dict[int, Fraction]:
    """The noise of a file up to `far`, from its integers."""
    q = Fraction(*map(int, document["tail"]["q"]))
    reach, denominator = document["outputs"][1], int(document["denominator"])
    tails = {e: (1 - q) / (1 + q) * q ** abs(e) for e in range(-far, far + 1)}
    inside = 1 - 2 * q ** (reach + 1) / (1 + q)
    weights = dict(document["weights"][0])
    return tails | {e: inside * Fraction(weights.get(e, 0), denominator) for e in range(-reach, reach + 1)}


def worst_quotient(document: dict[str, Any], population: Population, every: bool) -> Fraction:
    """The largest quotient of two adjacent contributions, at every output up to where nothing changes any more."""
    reach, worst = document["outputs"][1], Fraction(0)
    for others, largest in laws_of_others(population):
        span = len(others) + reach + largest + 3
        noise = law_of(document, 2 * span)
        seen = [
            sum((chance * noise[t - x] for x, chance in enumerate(others) if chance), Fraction(0))
            for t in range(-span, span + 1)
        ]
        for d in range(1, (largest if every else 1) + 1):
            for one, other in zip(seen, seen[d:], strict=False):
                worst = max(worst, one / other, other / one)
    return worst


def random_problem(chance: random.Random) -> SingleLTE:
    def law(size: int) -> list[Fraction]:
        parts = [chance.randint(1, 9) for _ in range(size)]
        return [Fraction(part, sum(parts)) for part in parts]

    sort = chance.choice(["binomial", "iid", "two kinds", "two priors"])
    n = chance.randint(2, 7)
    more: dict[str, Any] = {"adjacency": chance.choice(["unit", "all"]), "objective": chance.choice(["mae", "mse"])}
    population: Any = Population.binomial(n + 4, Fraction(chance.randint(1, 9), 10))
    if sort == "iid":
        population = Population.iid(n, law(3))
    elif sort == "two kinds":
        population = Population.independent([law(2)] * n + [law(3)] * 2)
    elif sort == "two priors":
        population = [Population.binomial(n + 4, "0.2"), Population.binomial(n + 4, "0.6")]
    epsilon = Fraction(chance.randint(4, 25), 10)
    if chance.random() < 0.4:
        more["fallback_epsilon"] = 2 * epsilon
    return SingleLTE(population, epsilon, form="additive", never_worse=chance.random() < 0.7, **more)


@pytest.mark.parametrize("seed", range(24))
def test_the_certificate_is_what_fractions_say(seed: int, tmp_path: Path) -> None:
    problem = random_problem(random.Random(seed))
    solution = solve(problem)
    found, path = solution.certificate, tmp_path / "a.json"
    assert solution.status == "optimal"
    solution.save(path)
    agrees(path, verify(path).certificate)
    document = json.loads(path.read_text())
    worst = max(worst_quotient(document, prior, problem.adjacency == "all") for prior in problem.populations)
    assert worst < exp_below(problem.epsilon / problem.steps)
    assert found.epsilon is not None
    assert float(found.epsilon) == pytest.approx(log(worst) * problem.steps, abs=1e-12)
    noise = law_of(document, 600)
    reach = problem.largest if problem.adjacency == "all" else 1
    pairs = [(noise[e], noise[e + d]) for d in range(1, reach + 1) for e in range(-300, 300)]
    if any(min(pair) == 0 < max(pair) for pair in pairs):
        assert found.ordinary_epsilon is None
        assert problem.fallback_epsilon is None
    else:
        most = max(max(a / b, b / a) for a, b in pairs)
        assert float(found.ordinary_epsilon or 0) == pytest.approx(log(most) * problem.largest / reach, abs=1e-12)
    for power, stated in ((1, found.mae), (2, found.mse)):
        error = sum(float(value) * abs(e) ** power for e, value in noise.items())
        assert float(stated) == pytest.approx(error, rel=1e-12)
    assert found.never_worse == (found.mae <= problem.cap)
    least = solution.lower_bound
    assert least is not None
    value = found.mae if problem.objective == "mae" else found.mse
    assert least <= value
    if problem.fallback_epsilon is None and problem.objective == "mae":  # the bound knows nothing of more
        assert float(value - least) <= 1e-3 * float(value)


def least_error(others: Law, epsilon: float, far: int) -> float:
    """The least mean error of any noise up to `far`, by SciPy: probabilities as they are, one row for each output."""
    e = np.arange(-far, far + 1)
    seen = np.zeros((len(others) + 2 * far, len(e)))
    for i in range(len(e)):
        seen[i : i + len(others), i] = [float(chance) for chance in others]
    seen = np.vstack([np.zeros(len(e)), seen, np.zeros(len(e))])
    rows = np.vstack([seen[1:] - exp(epsilon) * seen[:-1], seen[:-1] - exp(epsilon) * seen[1:]])
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    keep = np.zeros((2, len(seen) - 1), dtype=bool)
    keep[:, len(others) : -len(others)] = True  # noise without tails ends somewhere, which no rule allows there
    keep = keep.ravel()
    found = linprog(np.abs(e), rows[keep], np.zeros(keep.sum()), np.ones((1, len(e))), [1.0], method="highs")
    return float(found.fun)


@pytest.mark.parametrize(("n", "p", "epsilon"), [(8, "0.3", "1"), (12, "0.5", "0.8"), (20, "0.2", "1.5")])
def test_no_noise_has_a_smaller_error(n: int, p: str, epsilon: str) -> None:
    """SciPy leaves out what far tails must keep, and so must not be above the error, nor below the proved bound."""
    solution = solve(SingleLTE(Population.binomial(n, p), epsilon, form="additive"))
    chance = Fraction(p)
    others = [comb(n - 1, k) * chance**k * (1 - chance) ** (n - 1 - k) for k in range(n)]
    least = least_error(others, float(epsilon), 40)
    assert solution.lower_bound is not None
    assert float(solution.lower_bound) - 1e-4 <= least <= float(solution.certificate.mae) + 1e-6
    assert float(solution.certificate.mae) == pytest.approx(least, abs=2e-3)


@pytest.mark.parametrize(("n", "p", "error"), [(100, "0.1", 2.139), (200, "0.1", 1.354), (100, "0.5", 0.937)])
def test_figures_to_hold(n: int, p: str, error: float, tmp_path: Path) -> None:
    solution = solve(SingleLTE(Population.binomial(n, p), "0.3", form="additive"))
    assert solution.certificate.mae <= error + 1e-3
    assert solution.gap is not None
    assert solution.gap < 1e-5
    solution.save(tmp_path / "a.json")
    assert both_agree(tmp_path / "a.json") == 0


# ---------------------------------------------------------------------- very many people


def test_a_million_people(tmp_path: Path) -> None:
    solution = solve(SingleLTE(Population.binomial(1_000_000, "0.001"), "0.1", form="additive"))
    assert solution.status == "optimal"
    assert 0.05 < float(solution.certificate.mae) < 0.06
    solution.save(tmp_path / "a.json")
    assert both_agree(tmp_path / "a.json") == 0


@pytest.mark.parametrize(("n", "p", "epsilon"), [(3000, "0.1", "0.3"), (3000, "0.5", "0.15"), (2500, "0.99", "0.6")])
def test_what_is_cut_off_changes_nothing(n: int, p: str, epsilon: str) -> None:
    """The law of very many people, followed near the likely sums alone, against the same law written out."""
    chance = Fraction(p)
    noise = solve(SingleLTE(Population.binomial(n, p), epsilon, form="additive")).mechanism
    assert isinstance(noise, AddedNoise)
    bottom = chance.denominator
    one, zero = chance.numerator, bottom - chance.numerator
    weights = tuple(comb(n - 1, k) * one**k * zero ** (n - 1 - k) for k in range(n))
    worst = []
    with limited(), precision():
        for law in (BinomialPmf(n - 1, chance, 0, n - 1), ExactPmf(weights, bottom ** (n - 1))):
            seen = added.seen_by(PersonKind(0, 0, law, range(1, 2)), noise)
            inside = max(float(abs((a / b).log())) for _, _, a, b in seen.pairs())
            worst.append((seen.span.last - seen.span.first, inside, float(seen.beyond(noise.ratio).log())))
    (short, near, beyond), (long, all_of_it, end) = worst
    assert short < long
    assert max(near, beyond) == pytest.approx(max(all_of_it, end), abs=1e-14)
    assert all_of_it <= float(epsilon)


def test_tails_that_fall_too_fast_are_found_out() -> None:
    """Near the likely sums nothing is wrong: what lies beyond them decides."""
    problem = SingleLTE(Population.binomial(1_000_000, "0.1"), "0.3", form="additive")
    steep = AddedNoise(problem.last, geometric_ratio(Fraction(1, 2)), 40, 2, ((0, 2),))
    found = certify(problem, steep)
    assert found.epsilon is not None
    assert float(found.epsilon) == pytest.approx(0.5, abs=1e-12)


# ---------------------------------------------------------------------- what it is good for


def test_more_spread_is_as_private() -> None:
    """Whatever independent number is added to what the others contribute; with less of it, it is not."""
    chance = random.Random(5)
    problem = SingleLTE(Population.binomial(40, "0.1"), "0.4", form="additive")
    noise = solve(problem).mechanism
    assert isinstance(noise, AddedNoise)
    wide = replace(noise, last=200)
    others = next(law for law, _ in laws_of_others(problem.populations[0]))
    for _ in range(8):
        parts = [chance.choice([0, 0, 1, 5]) for _ in range(chance.randint(1, 60))] + [1]
        more = [Fraction(part, sum(parts)) for part in parts]
        world = [Fraction(0)] * (len(others) + len(more) - 1)
        for i, j in product(range(len(others)), range(len(more))):
            world[i + j] += others[i] * more[j]
        seen = epsilon_under(problem, wide, Population.from_others(world))
        assert seen is not None
        assert seen <= problem.epsilon
    fewer = epsilon_under(problem, wide, Population.binomial(30, "0.1"))
    assert fewer is not None
    assert fewer > Fraction("0.45")


def test_the_noise_does_not_depend_on_the_input(tmp_path: Path) -> None:
    noise = solve(SingleLTE(Population.binomial(40, "0.5"), 1, form="additive")).mechanism
    assert isinstance(noise, AddedNoise)
    draws = {x: np.array(noise.sample(x, 200_000, seed=7)) - x for x in (0, 3, 40)}
    assert (draws[0] == draws[3]).all()
    assert (draws[0] == draws[40]).all()
    column = noise.sample(np.array([40, 0, 7] * 500), seed=7) - np.array([40, 0, 7] * 500)
    assert (column == draws[0][: len(column)]).all()
    law = noise.to_array()
    seen = np.bincount(np.clip(draws[0], -noise.reach, noise.reach) + noise.reach, minlength=len(law))
    likely = law * len(draws[0]) > 20
    rest = len(draws[0]) - seen[likely].sum()
    expected = np.append(law[likely], 1 - law[likely].sum()) * len(draws[0])
    assert stats.chisquare(np.append(seen[likely], rest), expected).pvalue > 1e-4
    assert [noise.sample(5, seed=seed)[0] for seed in range(4)] == [
        5 + noise.sample(0, seed=seed)[0] for seed in range(4)
    ]
    for wrong in (-1, 41):
        with pytest.raises(ProblemError, match=r"An input must lie in 0\.\.40"):
            noise.sample(wrong)
        with pytest.raises(ProblemError, match=r"An input must lie in 0\.\.40"):
            noise.sample([3, wrong])


# ---------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def solved() -> Solution:
    return solve(SingleLTE(Population.binomial(30, "0.2"), "0.5", form="additive", fallback_epsilon=2))


def test_a_file_holds_the_mechanism(solved: Solution, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    solved.save(path)
    again = verify(path)
    assert again.matrix == solved.mechanism
    assert again.bound_proved
    assert again.certificate.ordinary_epsilon is not None
    assert again.certificate.ordinary_epsilon <= 2
    assert solved.summary()["engine"] == "additive"
    assert "knows less" in solved.summary()["meaning"]
    assert both_agree(path) == 0


def spoil(change: str, document: dict[str, Any]) -> None:
    row = document["weights"][0]
    if change == "weights":
        middle = next(i for i, (e, _) in enumerate(row) if e == 0)
        row[middle][1], row[0][1] = row[0][1], row[middle][1]
    elif change == "hole":
        taken = row.pop(len(row) // 2 + 3)
        row[len(row) // 2][1] += taken[1]
    elif change == "steep":
        document["tail"]["q"] = ["1", "2"]
    elif change == "bound":
        document["claim"]["lower_bound"] = document["claim"]["mae"]
    elif change == "cheap bound":
        document["provenance"]["prices"]["u"] = " ".join("0.0" for _ in document["provenance"]["prices"]["at"])
    elif change == "another rule":
        document["provenance"]["prices"]["at"][0][2] = 2
    elif change == "rule far away":
        document["provenance"]["prices"]["at"][0][1] = 10**9
    elif change == "error":
        document["claim"]["mae"] = "0.5"
    elif change == "geometric":
        document["tail"]["law"] = "geometric"
    elif change == "table":
        document["problem"].pop("form")
    elif change == "lopsided":
        document["outputs"][0] -= 1
    elif change == "two rows":
        document["inputs"][1], document["weights"] = 1, [row, row]


CHANGES = [
    "weights",
    "hole",
    "steep",
    "bound",
    "cheap bound",
    "another rule",
    "rule far away",
    "error",
    "geometric",
    "table",
    "lopsided",
]


@pytest.mark.parametrize("change", [*CHANGES, "two rows"])
def test_both_checkers_refuse_what_was_changed(change: str, solved: Solution, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    solved.save(path)
    document = json.loads(path.read_text())
    spoil(change, document)
    path.write_bytes(sealed(document))
    assert both_agree(path) != 0


def test_where_epsilon_is_reached(solved: Solution) -> None:
    """The worst output has the quotient that brute force finds, and its probabilities are those of the file."""
    problem, noise = solved.problem, solved.mechanism
    found = explain(problem, noise)
    worst = found.worst
    others = next(law for law, _ in laws_of_others(problem.populations[0]))
    assert isinstance(noise, AddedNoise)
    for contribution, stated in zip(worst.contributions, worst.sight.probabilities, strict=True):
        s = worst.sight.output - contribution
        exact = sum(float(chance) * float(noise.noise(s - x)) for x, chance in enumerate(others))
        assert float(stated) == pytest.approx(exact, rel=1e-12)
    assert worst.sight.epsilon == solved.certificate.epsilon
    assert found.ordinary.sight.epsilon == solved.certificate.ordinary_epsilon
    assert {*found.ordinary.inputs} == {0, 1}


def test_reports_and_exports(solved: Solution, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    solved.save(path)
    page = report(path).decode()
    assert "The noise has the same distribution for every true sum" in page
    assert "heatmap" not in page.split("<script")[0]
    assert "added noise" in (tmp_path / "x").joinpath(export(path, "python", tmp_path / "x")[0].name).read_text()
    for target in TARGETS:
        assert export(path, target, tmp_path / target)
    assert "optdp: Solution" in solved._repr_html_()
    for refused in (lambda: audit(path, 1000), solved.to_pld, solved.to_opendp):
        with pytest.raises(ProblemError, match="needs a table with a row for each input"):
            refused()


# ---------------------------------------------------------------------- what is refused, and what is nothing


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('tail = "none"', 'needs tail = "geometric"'),
        ('method = "shifting"', 'with method = "lp"'),
        ("observer = { known = 1 }", "Leave it out and give the people who are in doubt"),
        ('observer = { between = ["0.1", "0.3"] }', "Leave it out and give the people who are in doubt"),
    ],
)
def test_one_line_says_what_is_wrong(more: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    population = '[population]\nkind = "binomial"\nn = 20\np = "0.2"\n'
    path.write_text(f'kind = "single-lte"\nepsilon = "1"\nform = "additive"\n{more}\n{population}')
    with pytest.raises(ProblemError, match=said) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_one_person_alone_gets_geometric_noise(tmp_path: Path) -> None:
    for largest in (1, 3):
        law = [Fraction(1, largest + 1)] * (largest + 1)
        solution = solve(SingleLTE(Population.iid(1, law), 1, form="additive"))
        assert solution.status == "baseline"
        assert float(solution.certificate.mae) == pytest.approx(float(solution.problem.cap), rel=1e-15)
        solution.save(tmp_path / "a.json")
        assert both_agree(tmp_path / "a.json") == 0
        assert open_artifact(tmp_path / "a.json").claim["never_worse"]
