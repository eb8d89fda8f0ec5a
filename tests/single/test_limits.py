"""What a short file can ask for is either done quickly or refused: against enumeration where there is a quick way."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from optdp import Population, ProblemError
from optdp.loading import built, load_file
from optdp.numbers.pmf import ExactPmf
from optdp.plan.certify import _sets, number_of_sets
from optdp.single.certify import _distances
from tests.exact_checker import convolve


def test_sets_of_honest_parties_are_those_of_all_combinations() -> None:
    """Of combinations with the same kinds of parties the first, and as many as the count says."""
    random = Random(1)
    for _ in range(200):
        kinds = [SimpleNamespace() for _ in range(random.randint(1, 4))]
        parties: list[Any] = [random.choice(kinds) for _ in range(random.randint(1, 8))]
        honest = random.randint(1, len(parties))
        first: dict[tuple[int, ...], tuple[int, ...]] = {}
        for chosen in itertools.combinations(range(len(parties)), honest):
            first.setdefault(tuple(sorted(id(parties[i]) for i in chosen)), chosen)
        assert sorted(_sets(honest, parties)) == sorted(first.values())
        sizes = [sum(party is kind for party in parties) for kind in kinds]
        assert number_of_sets(honest, sizes) == len(first)


def test_alike_parties_do_not_make_many_sets() -> None:
    """64 over 32 is 1.8e18: it would never end to look at them one by one."""
    one, other = SimpleNamespace(), SimpleNamespace()
    alike: list[Any] = [one] * 64
    assert list(_sets(32, alike)) == [tuple(range(32))]
    mixed: list[Any] = [one, other] * 500
    assert len(list(_sets(500, mixed))) == 501
    different: list[Any] = [SimpleNamespace() for _ in range(64)]
    with pytest.raises(ProblemError, match="different sets"):
        next(_sets(32, different))


def test_distances_are_sums_over_the_row() -> None:
    random = Random(2)
    for _ in range(100):
        outputs = sorted(random.sample(range(-20, 20), random.randint(1, 12)))
        row = tuple((s, random.randint(1, 10**20)) for s in outputs)
        away = _distances(row)
        for x in range(-25, 26):
            assert away(x) == (sum(w * abs(s - x) for s, w in row), sum(w * (s - x) ** 2 for s, w in row))


def test_the_sum_with_others_is_a_convolution() -> None:
    others, own = ["0.1", "0.2", "0.7"], ["0.5", "0.25", "0.25"]
    total = Population.from_others(others, own).total
    assert isinstance(total, ExactPmf)
    wanted = convolve([Fraction(v) for v in others], [Fraction(v) for v in own])
    assert [total.fraction(x) for x in range(5)] == wanted


def test_a_million_people_written_alike_are_read_once() -> None:
    spec = {"kind": "independent", "people": [{"count": 300_000, "pmf": ["0.5", "0.5"]}, {"pmf": ["1/2", "1/2"]}]}
    problem = built({"kind": "single-lte", "epsilon": "1", "population": spec})
    assert problem.populations[0].size == 300_001  # type: ignore[union-attr]
    with pytest.raises(ProblemError, match="person 1"):
        Population.independent([["0.5", "0.5"], ["0.5", "0.6"], ["0.5", "0.6"]])
    with pytest.raises(ProblemError, match="must be a number"):
        Population.independent([["0.5", "0.5"], [[1], 0]])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Population.from_others(["0.5", "0.5"], 9000),
        lambda: Population.iid(1, ["1/5000"] * 5000),
        lambda: Population.from_counts([1] * 20_000, 5),
    ],
)
def test_laws_that_would_fill_the_memory(make: Any) -> None:
    with pytest.raises(ProblemError, match=r"places|GB"):
        make()


def test_a_key_of_many_parts(tmp_path: Any) -> None:
    path = tmp_path / "p.toml"
    for text in ("a" + ".a" * 50_000 + " = 1\n", "[" + 'a . "b".' * 20_000 + "a]\n"):
        path.write_text(text)
        with pytest.raises(ProblemError, match="parts"):
            load_file(path)
    kind = 'kind = "single-lte"\nepsilon = "1"\n[population]\nkind = "binomial"\nn = 3\np = "0.5"\n'
    path.write_text('notes = "' + "See 1.2. And so on... " * 100 + '"\n' + kind)
    assert load_file(path).problem.kind == "single-lte"
