"""What may be asked of a metric shuffle: everything else is refused in one line, from Python and from files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from attrs import fields

from optdp import MetricShuffle, ProblemError, load
from optdp.loading import built, load_file
from optdp.shuffle.metric.problem import MECHANISMS

ROOT = Path(__file__).resolve().parent.parent.parent
GIVEN: dict[str, Any] = {"mechanism": "geo", "n": 100, "k": 50, "delta": "1e-4", "epsilon": "0.2"}


def refused(**more: Any) -> str:
    with pytest.raises(ProblemError) as caught:
        MetricShuffle(**(GIVEN | more))
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"mechanism": "laplace"}, "one of rr, geo, sgdl, hybrid, geo-local, geo-central. Found 'laplace'"),
        ({"mechanism": None}, "mechanism"),
        ({"mechanism": ["geo"]}, "mechanism"),
        ({"shuffler": "broken"}, "honest, compromised"),
        ({"query": "median"}, "sum, average"),
        ({"n": 0}, "n must"),
        ({"n": 10**7 + 1}, "n must"),
        ({"n": 10.0}, "n must"),
        ({"n": "10"}, "n must"),
        ({"n": True}, "n must"),
        ({"k": 0}, "k must"),
        ({"k": 10**6 + 1}, "k must"),
        ({"k": 2.5}, "k must"),
        ({"delta": "0"}, "delta must"),
        ({"delta": "-1e-4"}, "delta must"),
        ({"delta": "1"}, "delta must"),
        ({"delta": "1e-400"}, "delta must"),
        ({"delta": float("nan")}, "delta must"),
        ({"delta": "x"}, "delta must"),
        ({"delta": None}, "delta"),
        ({"epsilon": "0"}, "epsilon must"),
        ({"epsilon": "-1"}, "epsilon must"),
        ({"epsilon": "1000"}, "epsilon must"),
        ({"epsilon": float("inf")}, "epsilon must"),
        ({"epsilon": True}, "epsilon must"),
        ({"max_distance": 0}, "max_distance must"),
        ({"max_distance": 10**6}, "max_distance must"),
        ({"max_distance": 1.0}, "max_distance must"),
        ({"epsilon": "50", "max_distance": 1000}, "epsilon times max_distance"),
        ({"p": "0.1"}, "geo has no parameter p. Leave it out; it has eps_geo"),
        ({"beta": "0.1"}, "geo has no parameter beta"),
        ({"mechanism": "rr", "eps_geo": "1"}, "rr has no parameter eps_geo"),
        ({"mechanism": "rr", "p": "1"}, "p must"),
        ({"mechanism": "rr", "p": "0"}, "p must"),
        ({"mechanism": "rr", "c": 3}, "rr has no padding"),
        ({"mechanism": "geo-local", "c": 3}, "no padding"),
        ({"mechanism": "rr", "quantum": 2}, "quantum is for geo, sgdl and hybrid"),
        ({"mechanism": "geo-central", "quantum": 2}, "quantum is for"),
        ({"quantum": 51}, "quantum must"),
        ({"quantum": 0}, "quantum must"),
        ({"quantum": 2, "dimensions": 2}, "one dimension"),
        ({"dimensions": 3}, "dimensions must"),
        ({"dimensions": 0}, "dimensions must"),
        ({"c": -1}, "c must"),
        ({"c": 1.5}, "c must"),
        ({"eps_geo": "0"}, "eps_geo must"),
        ({"eps_geo": "1e9"}, "eps_geo must"),
        ({"local_epsilon": "1"}, "Only a hybrid takes local_epsilon"),
        ({"mechanism": "hybrid"}, "A hybrid needs local_epsilon"),
        ({"mechanism": "hybrid", "local_epsilon": "0"}, "local_epsilon must"),
        ({"mechanism": "hybrid", "beta": "2", "eps_geo": "1"}, "beta must"),
        ({"mechanism": "hybrid", "beta": "1/101", "eps_geo": "1"}, "at least 1/n"),
        ({"epsilon": None}, "epsilon is missing"),
        ({"mechanism": "hybrid", "epsilon": None, "beta": "0.5"}, "epsilon is missing"),
        ({"n": None}, "n is missing. Give n, or give epsilon and mae"),
        ({"n": None, "epsilon": None, "mae": "1", "eps_geo": "1"}, "n is missing"),
        ({"mae": "0"}, "mae must"),
        ({"mae": "-1"}, "mae must"),
    ],
)
def test_refusals(more: dict[str, Any], words: str) -> None:
    assert words in refused(**more)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_figures_read_back_as_the_problem(mechanism: str) -> None:
    noise: dict[str, Any] = {
        "rr": {"p": "0.01"}, "hybrid": {"beta": "1/3", "eps_geo": "0.7"},
    }.get(mechanism, {"eps_geo": "0.3"})  # fmt: skip
    wanted = {"local_epsilon": "2"} if mechanism == "hybrid" else {}
    coarse = mechanism in ("geo", "sgdl", "hybrid")
    given = GIVEN | {"mechanism": mechanism}
    several = [
        MetricShuffle(**given, **wanted),
        MetricShuffle(**given, **wanted, max_distance=7, shuffler="compromised", query="average", mae="3"),
        MetricShuffle(**(given | {"n": None}), **wanted, mae="1/3", query="average"),
        MetricShuffle(**(given | {"epsilon": None}), **noise),
        MetricShuffle(**given, **noise, dimensions=2),
        MetricShuffle(**given, **wanted, **({"quantum": 7, "c": 4} if coarse else {})),
    ]
    for problem in several:
        figures = problem.figures()
        assert MetricShuffle(**figures) == problem
        assert built({"kind": "metric-shuffle"} | figures) == problem
        assert None not in figures.values()


def test_numbers_are_exact_and_changes_are_checked() -> None:
    problem = MetricShuffle(**GIVEN)
    assert problem.delta == Fraction(1, 10**4)
    assert problem.epsilon == Fraction(1, 5)
    assert MetricShuffle(**(GIVEN | {"epsilon": 0.2})).epsilon == Fraction(0.2)
    other = problem.changed(n=7, epsilon="1/3")
    assert (other.n, other.epsilon) == (7, Fraction(1, 3))
    unchanged = {field.name for field in fields(type(problem))} - {"n", "epsilon"}
    assert all(getattr(other, name) == getattr(problem, name) for name in unchanged)
    with pytest.raises(ProblemError):
        problem.changed(n=0)
    assert problem == MetricShuffle(**GIVEN)
    assert hash(problem) == hash(MetricShuffle(**GIVEN))


def test_what_is_asked() -> None:
    assert MetricShuffle(**GIVEN).unknown == "mae"
    assert MetricShuffle(**(GIVEN | {"epsilon": None}), eps_geo=1).unknown == "epsilon"
    assert MetricShuffle(**GIVEN, eps_geo=1).unknown == "epsilon"
    assert MetricShuffle(**(GIVEN | {"n": None}), mae=1).unknown == "n"


def test_files(tmp_path: Path) -> None:
    path = ROOT / "problems" / "paper-d" / "geo-shuffle.toml"
    assert load(path) == MetricShuffle("geo", 100, 1000, "1e-4", "0.2", 1)
    file = tmp_path / "p.toml"
    file.write_text('kind = "metric-shuffle"\nmechanism = "hybrid"\nn = 9\nk = 4\ndelta = "1/1000"\nepsilon = 0.1\n'
                    'local_epsilon = "3/2"\nmax_distance = 5\nshuffler = "compromised"\nquery = "average"\n'
                    '[sweep]\nover = "n"\nvalues = [9, 10]\n')  # fmt: skip
    expected = MetricShuffle("hybrid", 9, 4, "1/1000", "0.1", 5, "compromised", local_epsilon="3/2", query="average")
    assert load_file(file).problem == expected
