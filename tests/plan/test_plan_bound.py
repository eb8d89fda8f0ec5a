"""The lower bound for every plan: against programs written out naively, against plans, and against forged prices."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

import optdp.plan.bound as bound
from optdp import MultiLTE, Observer, Population, solve
from optdp.errors import ArtifactError
from optdp.numbers.exact import precision
from optdp.plan.bound_proof import BlockPrices, PlanPrices, additive, parse, proved
from optdp.plan.certificate import bounding
from optdp.plan.format import digest, spelled
from optdp.plan.solve import PlanSolution
from optdp.recheck import recheck
from optdp.recheck.verdict import Failed, Refused
from optdp.single.solve import solve_single
from optdp.work import silent
from tests.checkers import both_agree

HALF = Population.binomial


def floats(law: Any) -> list[float]:
    return [weight / law.denominator for weight in law.weights]


def written_out(problem: MultiLTE, margin: int, mean: bool = True) -> float:
    """The least error of a release with outputs up to `margin` beyond the true sums that hides everybody.

    With `mean`, its mean given all sums must be a sum of functions of one each. More outputs can only lower it.
    """
    inputs = list(itertools.product(*(range(population.last + 1) for population in problem.parties)))
    targets = [sum(f * x for f, x in zip(problem.f, key, strict=True)) for key in inputs]
    outputs = list(range(min(targets) - margin, max(targets) + margin + 1))
    totals = [floats(population.total) for population in problem.parties]

    def chances(laws: Sequence[Sequence[float]]) -> list[float]:
        return [math.prod(law[x] for law, x in zip(laws, key, strict=True)) for key in inputs]

    size, count = len(outputs), len(inputs) * len(outputs)
    free = [(i, x) for i, population in enumerate(problem.parties) for x in range(population.last + 1)] if mean else []
    power = 1 if problem.objective == "mae" else 2
    prior = chances(totals)
    cost = [p * abs(s - t) ** power for p, t in zip(prior, targets, strict=True) for s in outputs] + [0.0] * len(free)
    steps = []
    for i, population in enumerate(problem.parties):
        grow = math.exp(problem.step_epsilon(i))
        for person in population.people:
            laws = [chances([*totals[:i], floats(law), *totals[i + 1 :]]) for law in person.conditionals]
            for one, other in itertools.pairwise(laws):
                steps += [[a - grow * b for a, b in zip(*pair, strict=True)] for pair in ((one, other), (other, one))]
    below = lil_matrix((len(steps) * size, count + len(free)))
    for k, gaps in enumerate(steps):
        for j, gap in enumerate(gaps):
            for s in range(size):
                below[k * size + s, j * size + s] = gap
    equal = lil_matrix((len(inputs) * (2 if mean else 1), count + len(free)))
    for j, key in enumerate(inputs):
        for s, output in enumerate(outputs):
            equal[j, j * size + s] = 1
            if mean:
                equal[len(inputs) + j, j * size + s] = output
        for place, (i, x) in enumerate(free):
            if key[i] == x:
                equal[len(inputs) + j, count + place] = -1
    right = [1.0] * len(inputs) + [0.0] * (len(inputs) if mean else 0)
    limits = [(0, None)] * count + [(None, None)] * len(free)
    found = linprog(cost, below.tocsr(), np.zeros(below.shape[0]), equal.tocsr(), right, limits, method="highs")
    assert found.status == 0
    return float(found.fun)


def best_seeded(problem: MultiLTE, reach: int) -> float:
    """The least error of two parties with a common seed, over all pairs of maps with outputs up to `reach` outside."""
    sizes = [population.last + 1 for population in problem.parties]
    maps = [list(itertools.product(range(-reach, size + reach), repeat=size)) for size in sizes]
    totals = [floats(population.total) for population in problem.parties]
    lowest, width = -2 * reach, sum(sizes) + 4 * reach
    grow, cost, columns = math.exp(problem.epsilon), [], []
    for one, other in itertools.product(*maps):
        cells = [(x, y, one[x] + other[y]) for x in range(sizes[0]) for y in range(sizes[1])]
        cost.append(sum(totals[0][x] * totals[1][y] * abs(s - x - y) for x, y, s in cells))
        column = []
        for i in range(2):
            for law in (problem.parties[i].people[0].conditionals,):
                given = np.zeros((2, width))
                for x, y, s in cells:
                    own, beside = ((x, totals[1][y]), (y, totals[0][x]))[i]
                    for w in range(2):
                        given[w, s - lowest] += floats(law[w])[own] * beside
                column += [given[0] - grow * given[1], given[1] - grow * given[0]]
        columns.append(np.concatenate(column))
    rules = np.array(columns).T
    found = linprog(cost, rules, np.zeros(len(rules)), np.ones((1, len(cost))), [1.0], (0, None), method="highs")
    assert found.status == 0
    return float(found.fun)


def proved_bound(problem: MultiLTE) -> float:
    with precision():
        found = bound.plan_bound(problem, silent)
    assert not isinstance(found, str)
    return float(found[0])


# ---------------------------------------------------------------------- its size


@pytest.mark.parametrize(("n", "known"), [(2, 0.4662), (4, 0.41845), (6, 0.4007), (12, 0.2771), (25, 0.1206)])
def test_two_offices(n: int, known: float) -> None:
    assert proved_bound(MultiLTE([HALF(n, "0.5")] * 2, "0.5", method="joint")) >= known


def test_it_is_reached_by_two_people_with_a_common_seed() -> None:
    problem = MultiLTE([HALF(2, "0.5")] * 2, "0.5", method="joint")
    least = best_seeded(problem, 1)
    assert proved_bound(problem) <= least
    assert proved_bound(problem) == pytest.approx(least, rel=1e-4)


TINY = [
    MultiLTE([HALF(3, "0.3"), HALF(2, "0.6")], "0.5", method="joint"),
    MultiLTE([HALF(3, "0.3"), HALF(2, "0.6")], "0.8", objective="mse", method="joint"),
    MultiLTE([Population.iid(2, ["0.5", "0.3", "0.2"]), HALF(3, "0.5")], "1", method="joint"),
    MultiLTE([HALF(2, "0.5"), HALF(3, "0.2")], "1", f=[2, -1], method="joint"),
    MultiLTE([Population.independent([["0.5", "0.5"], ["0.9", "0.1"]]), HALF(3, "0.4")], "0.7", method="joint"),
    MultiLTE([Population.from_others(["0.25", "0.5", "0.25"]), HALF(2, "0.5")], "0.7", method="joint"),
    MultiLTE([HALF(2, "0.5"), HALF(1, "0.5"), HALF(1, "0.3")], "1", method="joint"),
]


@pytest.mark.parametrize("problem", TINY, ids=range(len(TINY)))
def test_it_is_the_optimum_of_the_program_written_out(problem: MultiLTE) -> None:
    least = written_out(problem, math.ceil(6 * problem.sensitivity / problem.epsilon))
    found = proved_bound(problem)
    assert found <= least * (1 + 1e-7)
    assert found >= least * (1 - 1e-2)  # prices end at the window


@pytest.mark.parametrize("problem", TINY, ids=range(len(TINY)))
def test_one_block_holds_for_whatever_sees_all_data(problem: MultiLTE) -> None:
    """Nothing is said of means; what is hidden is less than everybody."""
    layout = list(bound.layouts(problem))[-1]
    prices = bound.priced(problem, layout)
    assert prices is not None
    assert prices.holds_for == "whatever sees all data"
    assert 0 < float(proved(problem, prices)) <= written_out(problem, 0, mean=False) * (1 + 1e-7)


def test_people_alike_in_one_block_are_one_entity() -> None:
    problem = MultiLTE([HALF(5, "0.3"), HALF(7, "0.3")], "0.5", method="joint")
    whole = bounding(problem)
    assert whole is not None
    prices = bound.priced(problem, list(bound.layouts(problem))[-1])
    assert prices is not None
    assert float(proved(problem, prices)) == pytest.approx(solve_single(whole).mae, rel=2e-3)
    assert proved(problem, prices) <= solve_single(whole).certificate.mae


def some_problem(rng: random.Random) -> MultiLTE:
    """A small problem of any kind."""
    parties = []
    for _ in range(rng.choice([2, 2, 2, 3])):
        kind = rng.randrange(4)
        p = Fraction(rng.randint(5, 95), 100)
        if kind == 0:
            parties.append(HALF(rng.randint(1, 6), p))
        elif kind == 1:
            parties.append(Population.iid(rng.randint(1, 3), [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]))
        elif kind == 2:
            parties.append(Population.independent([[1 - p, p], ["0.5", "0.5"], ["0.8", "0.2"]]))
        else:
            parties.append(HALF(4, p).conservative("0.5"))
    f = [rng.choice([1, 1, 1, -1, 2]) for _ in parties]
    epsilon = rng.choice(["0.3", "0.7", "1.5"])
    objective: Any = rng.choice(["mae", "mae", "mse"])
    method: Any = rng.choice(["joint", "divisible", "alone", "geometric"])
    return MultiLTE(
        parties, epsilon, f=f, objective=objective, method=method, honest=rng.randint(1, len(parties))
    )  # fmt: skip


MINUTES = (25, 41)
"""What these draw takes a minute, and tells no more than the others."""


@pytest.mark.parametrize(
    "seed",
    [0, 1, 3, 4, 6, 7, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 80) if seed not in MINUTES)],
)
def test_no_plan_is_below(seed: int, tmp_path: Path) -> None:
    problem = some_problem(random.Random(seed))
    solution = solve(problem)
    value = solution.certificate.mae if problem.objective == "mae" else solution.certificate.mse
    assert solution.lower_bound is not None, solution.note
    assert solution.lower_bound <= value
    for layout in bound.layouts(problem):  # also the coarser ones
        if layout.entries > bound.SMALL:
            continue
        prices = bound.priced(problem, layout)
        assert prices is not None
        assert proved(problem, prices) <= value
    solution.save(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0


def test_a_range_of_observers_only_asks_for_more() -> None:
    """The bound of one entity against the observer, or that of blocks with the belief: whichever is larger."""
    parties = [HALF(4, "0.3"), HALF(5, "0.3")]
    plain = MultiLTE(parties, "0.5", method="joint")
    watched = MultiLTE(parties, "0.5", observer=Observer(between=("0.2", "0.4")), method="alone")
    assert proved_bound(watched) >= proved_bound(plain) - 1e-9
    outside = MultiLTE(parties, "0.5", observer=Observer(between=("0.4", "0.5")), method="alone")
    assert not isinstance(bound.plan_bound(outside, silent), str)  # all are alike: one entity
    unlike = [Observer(between=("0.4", "0.5")), Observer()]
    reason = bound.plan_bound(MultiLTE(parties, "0.5", observer=unlike, method="alone"), silent)
    assert reason == "a population lies outside its observer's range"


# ---------------------------------------------------------------------- how large it may be


def test_blocks_become_fewer_until_the_program_is_small() -> None:
    problem = MultiLTE([HALF(20, "0.5")] * 3, "0.5", method="joint")
    sizes = [(len(layout.parties), layout.entries) for layout in bound.layouts(problem)]
    assert [size for size, _ in sizes] == [3, 2, 1]
    assert sizes[0][1] > bound.MOST_ENTRIES > sizes[1][1] > sizes[2][1]
    chosen = bound.best_layout(problem)
    assert chosen is not None
    assert sorted(map(len, chosen.parties)) == [1, 2]


def test_alike_parties_are_merged_first() -> None:
    parties = [HALF(9, "0.5"), HALF(3, "0.1"), HALF(9, "0.5"), HALF(3, "0.2")]
    merged = list(bound.layouts(MultiLTE(parties, "0.5", method="joint")))[1]
    assert (0, 2) in merged.parties


def test_a_thousand_parties_are_put_into_blocks_at_once() -> None:
    parties = [HALF(2, "0.5")] * 500 + [HALF(1, "0.1")] * 500
    layouts = list(bound.layouts(MultiLTE(parties, "1", method="joint")))
    assert len(layouts[0].parties) == 4
    assert sorted(i for group in layouts[0].parties for i in group) == list(range(1000))
    assert layouts[-1].parties == (tuple(range(1000)),)


def test_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound, "MOST_ENTRIES", 10)
    solution = solve(MultiLTE([HALF(3, "0.3"), HALF(2, "0.6")], "0.5", method="geometric"))
    assert solution.lower_bound is None
    assert "no lower bound: its program would be too large" in solution.note


# ---------------------------------------------------------------------- prices


def test_any_prices_prove_something_true(tmp_path: Path) -> None:
    """Weak duality, and the two checkers find the same: also for prices that nobody would choose."""
    rng = random.Random(5)
    for problem in TINY[:6]:
        least = written_out(problem, math.ceil(6 * problem.sensitivity / problem.epsilon))
        good = bound.priced(problem, next(iter(bound.layouts(problem))))
        assert good is not None
        solution = solve(problem.changed(method="geometric"))
        found = []
        for scale in (0.01, 0.1, 0.3, 1.0):
            prices = shaken(good, rng, scale)
            found.append(float(proved(problem, prices)))
            assert found[-1] <= least * (1 + 1e-7)
            claimed = replace(solution, prices=prices, lower_bound=max(Fraction(0), proved(problem, prices)))
            claimed = replace(claimed, lower_bound=max(Fraction(0), there(claimed) - Fraction(1, 10**12)))
            claimed.save(tmp_path / "plan")
            assert both_agree(tmp_path / "plan") == 0
            replace(claimed, lower_bound=there(claimed) + Fraction(1, 10**6)).save(tmp_path / "plan")
            assert both_agree(tmp_path / "plan") == 1
        assert found[0] > 0


def there(solution: PlanSolution) -> Fraction:
    assert solution.lower_bound is not None
    return solution.lower_bound


def shaken(prices: PlanPrices, rng: random.Random, scale: float) -> PlanPrices:
    """Other prices of the same form."""

    def line(text: str) -> str:
        return " ".join(f"{float(price) * (1 + scale * rng.uniform(-1, 1)):.6g}" for price in text.split())

    blocks = tuple(replace(one, y=tuple(map(line, one.y))) for one in prices.blocks)
    numbers = [int(number) for number in prices.mean.split()]
    # centring can triple a number with two blocks: stay far enough from 1
    mean = " ".join(str(round(number * (1 - scale / 2) * (1 + scale * rng.uniform(-0.2, 0)))) for number in numbers)
    return replace(prices, blocks=blocks, mean=mean)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bound") / "plan"
    solve(MultiLTE([HALF(4, "0.5"), HALF(3, "0.3")], "0.5", method="divisible")).save(folder)
    return folder


def forged(plan: Path, place: Path, change: Any) -> Path:
    """A folder whose `plan.json` has other prices, and is right in form."""
    document = json.loads((plan / "plan.json").read_text())
    change(document["provenance"]["prices"], document["claim"])
    document["sha256"] = digest(document)
    place.mkdir()
    for file in plan.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    (place / "plan.json").write_text("".join(spelled(document)))
    return place


FORGED = {
    "claim": lambda prices, claim: claim.update(lower_bound=str(Fraction(claim["lower_bound"]) + Fraction(1, 10**8))),
    "above the error": lambda prices, claim: claim.update(lower_bound="100"),
    "negative price": lambda prices, claim: prices["blocks"][0]["y"].__setitem__(0, "-1 " * 40),
    "not a number": lambda prices, claim: prices["blocks"][0]["y"].__setitem__(0, "nan"),
    "short": lambda prices, claim: prices["blocks"][0]["y"].__setitem__(0, "1 2"),
    "no rules": lambda prices, claim: prices["blocks"][0].update(y=[]),
    "other rules": lambda prices, claim: prices["blocks"][0].update(rules="none"),
    "a party twice": lambda prices, claim: prices["blocks"][1].update(parties=[0]),
    "a party more": lambda prices, claim: prices["blocks"][1].update(parties=[1, 2]),
    "no party": lambda prices, claim: prices["blocks"][1].update(parties=[]),
    "true is no party": lambda prices, claim: prices["blocks"][1].update(parties=[True]),
    "states outside": lambda prices, claim: prices["blocks"][1].update(states=[0, 4]),
    "states before": lambda prices, claim: prices["blocks"][1].update(states=[-1, 3]),
    "a smaller core": lambda prices, claim: (prices["blocks"][1].update(states=[1, 2]), prices.update(mean="")),
    "no outputs": lambda prices, claim: prices.update(outputs=[3, 2]),
    "many outputs": lambda prices, claim: prices.update(outputs=[0, 1 << 39]),
    "other outputs": lambda prices, claim: prices.update(outputs=[end + 3 for end in prices["outputs"]]),
    "a large mean": lambda prices, claim: prices.update(mean=" ".join(["9999999", "-9999999"] * 10)),
    "no mean": lambda prices, claim: prices.update(mean=""),
    "a short mean": lambda prices, claim: prices.update(mean="1 2 3"),
    "a broken mean": lambda prices, claim: prices.update(mean="1.5 2"),
    "another key": lambda prices, claim: prices.update(more=1),
    "a list": lambda prices, claim: prices.update(blocks={"parties": [0, 1]}),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_prices_are_refused_by_both(plan: Path, name: str, tmp_path: Path) -> None:
    assert both_agree(plan) == 0
    place = forged(plan, tmp_path / "forged", FORGED[name])
    assert both_agree(place) in (1, 2)
    with pytest.raises((Refused, Failed)):
        recheck(place)


def test_a_release_drawn_from_all_data_has_one_block() -> None:
    """Its mean need not be additive, so that only what holds for whatever sees all data bounds it."""
    problem = TINY[0]
    assert additive(problem)
    inside: Any = SimpleNamespace(method="inside", parties=problem.parties)
    assert not additive(inside)


def test_prices_read_back(plan: Path) -> None:
    stored = json.loads((plan / "plan.json").read_text())["provenance"]["prices"]
    assert parse(stored).document() == stored
    with pytest.raises(ArtifactError, match="Every party must be in one block"):
        proved(TINY[0], PlanPrices((BlockPrices((0,), "mean", (0, 1), ("", "")),), (0, 1), ""))
    assert proved(TINY[0], PlanPrices((BlockPrices((0, 1), "mean", (0, 1), ("", "")),), (0, 1), "")) == 0


def test_a_claim_without_prices_is_refused(plan: Path, tmp_path: Path) -> None:
    place = forged(plan, tmp_path / "forged", lambda prices, claim: prices.clear())
    assert both_agree(place) in (1, 2)
