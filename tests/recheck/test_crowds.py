"""Very many people: laws that are enclosed against laws that are written out, and both checkers on large problems."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from pathlib import Path
from random import Random
from typing import Any

import pytest

from optdp import MultiLTE, Population, SingleLTE, solve
from optdp.mechanism.shared_noise import SharedNoise
from optdp.plan.divisible_certify import certify_shared
from optdp.plan.solve import PlanSolution
from optdp.recheck import laws, recheck
from optdp.recheck.laws import Number, binomial, multiplied
from optdp.recheck.verdict import work
from tests.artifact import forgeries
from tests.checkers import agrees, both_agree
from tests.recheck.test_recheck import SINGLE

HAIR = Fraction(1, 10**100)


@pytest.fixture
def enclosed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every population were too large to be written out."""
    monkeypatch.setattr("optdp.recheck.priors.WIDE", -1)


def ends(number: Number) -> tuple[Fraction, Fraction]:
    low, high, e = number
    return low * Fraction(2) ** e, high * Fraction(2) ** e


@pytest.mark.parametrize("name", SINGLE)
def test_enclosed_laws_give_the_figures_of_laws_that_are_written_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve(SINGLE[name]).save(tmp_path / "a.json")
    written = recheck(tmp_path / "a.json").figures
    monkeypatch.setattr("optdp.recheck.priors.WIDE", -1)
    found = recheck(tmp_path / "a.json").figures
    assert found.keys() == written.keys()
    for key, value in written.items():
        other = found[key]
        if value is None or other is None or isinstance(value, bool):
            assert value is other
        else:
            assert value - Fraction(1, 2**150) <= other <= value + HAIR, key


@pytest.mark.usefixtures("enclosed")
def test_both_judge_forged_artifacts_alike(tmp_path: Path) -> None:
    random, codes, path = Random(21), [0, 0, 0], tmp_path / "a.json"
    every = forgeries.originals()
    for turn in range(200):
        path.write_bytes(forgeries.sealed(forgeries.forged(every, turn, random)))
        codes[both_agree(path)] += 1
    assert min(codes) > 10


@pytest.mark.usefixtures("enclosed")
def test_an_input_that_makes_no_difference_gives_nothing_away(tmp_path: Path) -> None:
    """Every row is the same: epsilon is 0, and to claim that is no lie, whatever was rounded."""
    path = tmp_path / "a.json"
    solve(SINGLE["no tail"]).save(path)
    document = forgeries.originals()[1]
    forgeries.modest(document, Random(0))
    document["weights"] = [document["weights"][0]] * len(document["weights"])
    document["claim"]["epsilon"] = "0"
    path.write_bytes(forgeries.sealed(document))
    assert both_agree(path) == 0


@pytest.mark.parametrize(
    "problem",
    [
        SingleLTE(Population.binomial(10_000, "0.1"), "0.3"),
        SingleLTE(Population.binomial(10_000, "0.123456"), "1", objective="mse", never_worse=False),
        SingleLTE(Population.binomial(10_000, "0.1").conservative("0.3"), "0.3"),
        SingleLTE(Population.binomial(6000, "0.1"), "0.3", tail="none", never_worse=False),
        SingleLTE(Population.binomial(100_000, "0.1"), "0.3"),
    ],
    ids=["ten thousand", "squared", "conservative", "clamped", "a hundred thousand"],
)
def test_large_problems(problem: SingleLTE, tmp_path: Path) -> None:
    solution = solve(problem)
    solution.save(tmp_path / "a.json")
    agrees(tmp_path / "a.json", solution.certificate)


def test_shares_of_noise_for_very_many_people(tmp_path: Path) -> None:
    solve(MultiLTE([Population.binomial(10**6, "0.1")] * 3, "0.5", method="geometric", honest=2)).save(tmp_path / "p")
    assert both_agree(tmp_path / "p") == 0


def test_a_squared_error_that_is_a_whole_number_may_be_claimed(tmp_path: Path) -> None:
    """Two offices of two people, q = 1/2, every input moved to 1: noise 2 q/(1-q)^2 = 4, and twice the variance 1/2."""
    problem = MultiLTE([Population.binomial(2, "0.5")] * 2, "3", method="divisible", contraction="none")
    noise = (SharedNoise(2, Fraction(1, 2), Fraction(1, 2), 1, (((1, 2),),) * 3, 2),) * 2
    certificate = certify_shared(problem, noise)
    assert certificate.mse == 5
    PlanSolution(
        problem=problem, tables=noise, certificate=certificate, lower_bound=None, status="designed alone", note="",
        backend="highs", engine="shares", seconds=0.0,
    ).save(tmp_path / "plan")  # fmt: skip
    assert both_agree(tmp_path / "plan") == 0
    assert recheck(tmp_path / "plan").figures["mse"] == 5


# ---------------------------------------------------------------------- the law, the product


@pytest.mark.parametrize(("n", "f0", "f1"), [(0, 1, 1), (1, 3, 1), (50, 1, 1), (50, 9, 1), (80, 1, 999), (61, 2, 7)])
@pytest.mark.parametrize("kept", [None, range(20, 25), range(-5, 3), range(40, 200)])
def test_a_binomial_law_is_enclosed_and_so_is_what_was_cut(
    n: int, f0: int, f1: int, kept: range | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laws, "CUT", 20)
    token = work.set([0])
    law = binomial(n, f0, f1, kept)
    work.reset(token)
    exact = [Fraction(comb(n, k) * f1**k * f0 ** (n - k)) for k in range(n + 1)]
    truth = [value / max(exact) for value in exact]
    first, last = law.first, law.first + len(law.numbers) - 1
    assert first >= 0
    assert last <= n
    for k, number in enumerate(law.numbers, start=first):
        low, high = ends(number)
        beyond = sum(truth[: k + 1]) if k == first else sum(truth[k:])
        if low == 0:  # all that was cut off on this side
            assert k in (first, last)
            assert kept is not None
            assert k not in kept
            assert beyond <= high <= 3 * beyond
        else:
            assert low <= truth[k] <= high <= low * (1 + Fraction(1, 2**440))
    if kept is None:
        assert (first, last) == (0, n)
        assert all(number[0] for number in law.numbers)
    low, high = ends(law.unit)
    assert low <= sum(truth) <= high


def test_products_in_decimal_are_products() -> None:
    """Long ones, among them zeros, against one product of integers at a time."""
    random, token = Random(22), work.set([0])
    for _ in range(12):
        size, bits = random.choice([(60, 900), (200, 300), (33, 2000), (2, 12_000)])
        a: list[int] = [random.choice([0, 1, random.getrandbits(bits)]) for _ in range(size)]
        b: list[int] = [random.choice([0, 1, random.getrandbits(bits)]) for _ in range(random.randrange(2, 2 * size))]
        found: list[Any] = [0] * (len(a) + len(b) - 1)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                found[i + j] += x * y
        assert multiplied(a, b) == found
    work.reset(token)
