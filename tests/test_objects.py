"""Public objects behave: they can be pickled and copied at any time, and show themselves in one line."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optdp
from optdp import (
    KRR,
    SGDL,
    Amplification,
    Channel,
    Gaussian,
    Generic,
    Groups,
    KRRCount,
    Laplace,
    Ledger,
    MetricShuffle,
    MultiLTE,
    Observer,
    OrderShuffle,
    Population,
    RealSum,
    ShuffleHistogram,
    SingleLTE,
    Source,
    Total,
    solve,
)
from optdp.pictures.chart import Bars, Chart

CROWD = Population.binomial(60, "0.1")
SMALL = Population.iid(6, ["0.5", "0.3", "0.2"])
FEW = Population.binomial(2, "0.5")
PAIR = (Population.binomial(6, "0.1"), Population.binomial(5, "0.2"))

PEOPLE: dict[str, Callable[[], Any]] = {
    "binomial": lambda: Population.binomial(30, "1/3"),
    "closed form": lambda: Population.binomial(20_000, "0.1"),
    "iid": lambda: SMALL,
    "independent": lambda: Population.independent([["0.5", "0.5"], ["0.2", "0.3", "0.5"]]),
    "counts": lambda: Population.from_counts([10, 5, 1]),
    "samples": lambda: Population.from_samples(np.array([0, 1, 1, 2]), 10),
    "others": lambda: Population.from_others(["0.25", "0.5", "0.25"], 2),
    "conditionals": lambda: Population.from_conditionals(
        [[["0.5", "0.5", "0"], ["0", "0.5", "0.5"]]], ["0.25", "0.5", "0.25"]
    ),
    "conservative": lambda: CROWD.conservative("0.5"),
    "observer": lambda: Observer(("0.05", "0.15"), known=5),
    "observer between laws": lambda: Observer((["0.5", "0.3", "0.2"], ["0.2", "0.3", "0.5"])),
}
PROBLEMS: dict[str, Callable[[], Any]] = {
    "additive": lambda: SingleLTE(Population.binomial(20, "0.3"), epsilon=1, form="additive"),
    "single": lambda: SingleLTE(CROWD, epsilon="0.3"),
    "single with a fallback": lambda: SingleLTE(CROWD, epsilon="0.3", fallback_epsilon=2),
    "single without tails": lambda: SingleLTE(SMALL, epsilon="0.5", tail="none"),
    "single, geometric": lambda: SingleLTE(SMALL, epsilon="0.5", method="geometric"),
    "single, several priors": lambda: SingleLTE([CROWD, Population.binomial(60, "0.2")], epsilon="0.5"),
    "single, watched": lambda: SingleLTE(SMALL, epsilon="0.5", observer=Observer(known=2)),
    "single, over time": lambda: SingleLTE(SMALL, epsilon="0.2", releases=12, total=Total(4, "1e-6")),
    "plan": lambda: MultiLTE(PAIR, epsilon="0.5", honest=1, method="joint"),
    "plan, divisible": lambda: MultiLTE(PAIR, epsilon="0.5", honest=1, method="divisible"),
    "plan, geometric": lambda: MultiLTE(PAIR, epsilon="0.5", honest=1, method="geometric"),
    "plan, with a common word": lambda: MultiLTE((FEW, FEW), epsilon="0.8", method="seeded"),
    "plan, drawn inside": lambda: MultiLTE((FEW, FEW, FEW), epsilon="0.8", method="inside"),
    "amplification": lambda: Amplification(KRR(10), eps0=2, n=1000, delta="1e-6"),
    "amplification of a channel": lambda: Amplification(
        Channel.of([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), n=1000, delta="1e-6"
    ),
    "count": lambda: KRRCount(n=1000, n_x0=100, k=10, eps0=2, delta="1e-6"),
    "histogram": lambda: ShuffleHistogram(k=5, n=1000, epsilon=1, delta="1e-6"),
    "metric": lambda: MetricShuffle("geo", n=200, k=20, delta="1e-4", epsilon="0.2"),
    "real sum": lambda: RealSum(n=1000, epsilon=1, delta="1e-6"),
    "order": lambda: OrderShuffle(Groups.of([[0, 1, 2], [2, 3]], 5), alpha=1),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "maps": lambda: optdp.SeededMaps((0, 1), (0, 2), 4, (1, 4), (0, 1), ((0, 1), (2, 2)), 3),
    "a total": lambda: Total(4, "1e-6"),
    "sgdl": lambda: SGDL("1/3", "0.6"),
    "a source": lambda: Source(),
    "a source with a seed": lambda: Source(7),
    "groups": lambda: Groups.of([range(start, start + 50) for start in range(200)], 250),
    "k-rr": lambda: KRR(10),
    "k-rr by gamma": lambda: KRR(10, 0.2),
    "any randomizer": lambda: Generic(),
    "laplace": lambda: Laplace(),
    "gaussian": lambda: Gaussian(sigma=2.0),
    "a ledger": lambda: Ledger(Path("a.jsonl"), Fraction(4), Fraction(1, 10**6), False, "", "", (), "0" * 64),
    "a channel": lambda: Channel.of(np.full((40, 40), 0.5 / 40) + 0.5 * np.eye(40)),
}
EVERYTHING = PEOPLE | PROBLEMS | OTHERS

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "cloudpickle": lambda thing: pickle.loads(pytest.importorskip("cloudpickle").dumps(thing)),
}


@pytest.fixture(scope="module")
def solutions() -> dict[str, Any]:
    return {name: solve(make()) for name, make in PROBLEMS.items()}


def parts(solution: Any) -> list[Any]:
    """What a solution hands out: tables and certificates."""
    tables = [*getattr(solution, "tables", ()), *filter(None, [getattr(solution, "mechanism", None)])]
    return tables + list(filter(None, [getattr(solution, "certificate", None)]))


def used(thing: Any) -> dict[str, Any]:
    """What an object does, by everything that leaves something behind in it; equal for objects that behave alike."""
    found: dict[str, Any] = {"repr": repr(thing)}
    if hasattr(thing, "_repr_html_"):
        found["html"] = thing._repr_html_()
    if hasattr(thing, "to_array"):
        found["array"] = thing.to_array().tolist()
    if hasattr(thing, "probability"):
        found["sample"] = [thing.sample(x, size, seed=5) for x in (0, thing.last) for size in (3, 300)]
        found["chances"] = [thing.probability(0, s).str(20) for s in range(4)]
    if hasattr(thing, "summary"):
        found["summary"] = thing.summary()
        found["parts"] = [used(part) for part in parts(thing)]
    if isinstance(thing, SGDL):
        found["draws"], found["law"] = thing.sample(50, seed=5), [thing.pmf(x) for x in range(5)]
    if isinstance(thing, Groups):
        found["groups"] = [thing.digest, thing.sizes.tolist(), thing.owners.tolist(), thing.parts[1].tolist()]
    if isinstance(thing, Channel):
        found["channel"] = thing.array.tolist(), thing.own_eps0
    if isinstance(thing, Population):
        found["people"] = thing.spec, thing.size, thing.largest, thing.describe
    if hasattr(thing, "spec") and callable(thing.spec):
        found["spec"] = thing.spec()
    return found


def test_every_public_class_is_here(solutions: dict[str, Any]) -> None:
    there = [make() for make in EVERYTHING.values()]
    there += [part for solution in solutions.values() for part in (solution, *parts(solution))]
    public = {name for name in optdp.__all__ if inspect.isclass(getattr(optdp, name))}
    errors = {name for name in public if issubclass(getattr(optdp, name), Exception)}
    assert public - errors - {type(thing).__name__ for thing in there} == set()


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", EVERYTHING)
def test_objects_can_be_copied(name: str, way: str) -> None:
    thing = EVERYTHING[name]()
    fresh = COPIES[way](thing)
    before = used(thing)
    assert used(fresh) == before
    again = COPIES[way](thing)  # now that it has been used
    assert used(again) == before
    assert type(again) is type(thing)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_can_be_copied(name: str, way: str, solutions: dict[str, Any], tmp_path: Path) -> None:
    solution = solutions[name]
    fresh = COPIES[way](solution)
    before = used(solution)
    again = COPIES[way](solution)
    assert used(fresh) == used(again) == before
    for part in parts(solution):
        assert COPIES[way](part) == part
    if hasattr(solution, "save"):
        written = [_saved(one, tmp_path / which) for one, which in ((solution, "before"), (again, "after"))]
        assert written[0] == written[1]


def _saved(solution: Any, path: Path) -> dict[str, bytes]:
    solution.save(path if hasattr(solution, "tables") else path.with_suffix(".json"))
    files = sorted(path.iterdir()) if path.is_dir() else [path.with_suffix(".json")]
    return {file.name.replace("before", "").replace("after", ""): file.read_bytes() for file in files}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_cached_is_not_pickled(name: str, solutions: dict[str, Any]) -> None:
    fresh = COPIES["pickle"](solutions[name])
    size = len(pickle.dumps(fresh))
    used(fresh)
    assert len(pickle.dumps(fresh)) < 1.2 * size


def test_a_copied_source_goes_on_where_it_was() -> None:
    source = Source(7)
    source.words(5)
    for way in ("pickle", "deepcopy", "cloudpickle"):
        one, other = COPIES[way](source), COPIES[way](source)
        assert one.words(10).tolist() == other.words(10).tolist()
    assert Source().secure
    assert copy.deepcopy(Source()).secure


@pytest.mark.parametrize("name", [name for name in optdp.__all__ if name.endswith("Error")])
def test_errors_travel(name: str) -> None:
    error = getattr(optdp, name)("epsilon must be larger than 0. Found -1.")
    assert str(COPIES["pickle"](error)) == str(error)


def shows_itself(thing: Any) -> None:
    text = repr(thing)
    assert len(text) < 300, text
    assert "\n" not in text
    assert " object at 0x" not in text
    assert text.startswith(type(thing).__name__ + "(")


@pytest.mark.parametrize("name", EVERYTHING)
def test_objects_show_themselves_in_one_line(name: str) -> None:
    shows_itself(EVERYTHING[name]())


@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_show_themselves(name: str, solutions: dict[str, Any]) -> None:
    solution = solutions[name]
    for thing in (solution, *parts(solution)):
        shows_itself(thing)
    assert repr(solution.status) in repr(solution)
    html = solution._repr_html_()
    assert html.startswith("<div")
    assert "optdp" in html
    assert "<script" not in html


@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_draw_themselves(name: str, solutions: dict[str, Any]) -> None:
    """Every picture of every kind: on the axes that are given, and with its own numbers."""
    figure = pytest.importorskip("matplotlib.figure")
    solution = solutions[name]
    assert solution.pictures
    for which, make in list(solution.pictures.items())[-5:]:
        ax = figure.Figure().add_subplot()
        assert solution.plot(which, ax=ax) is ax
        assert ax.get_xlabel()
        picture = make()
        if isinstance(picture, Bars):
            assert [bar.get_width() for bar in ax.patches] == [value for _, value in picture.rows if value is not None]
        elif isinstance(picture, Chart):
            curves = [curve for curve in picture.curves if curve.style != "area"]
            for line, curve in zip(ax.lines, curves, strict=False):
                seen = curve.values > 0 if picture.log else np.isfinite(curve.values)
                assert np.array_equal(line.get_ydata()[seen], curve.values[seen])
        else:
            assert float(ax.images[0].get_array().max()) == pytest.approx(picture.dense().max())
    assert "<svg" in solution._repr_html_()


@pytest.mark.parametrize(
    "name", [name for name in PROBLEMS if name.startswith(("additive", "single", "plan")) and name != "single, watched"]
)
def test_what_is_opened_again_behaves(name: str, solutions: dict[str, Any], tmp_path: Path) -> None:
    """What `open_artifact`, `verify` and `explain` return, before and after it was asked for what it keeps."""
    solutions[name].save(tmp_path / "a.json")
    opened = optdp.open_artifact(tmp_path / "a.json", check=False)
    again = optdp.open_artifact(tmp_path / "a.json")
    for thing in (opened, again, again.verified, again.explain()):  # type: ignore[attr-defined]
        shows_itself(thing)
        assert thing._repr_html_().startswith("<div")
        for copied in (way(thing) for way in COPIES.values()):
            assert repr(copied) == repr(thing)
            if isinstance(thing, type(opened)):
                assert repr(copied.verified.certificate) == repr(again.verified.certificate)


def test_the_ladder_behaves() -> None:
    found = optdp.ladder(SingleLTE(Population.binomial(5, "0.3"), epsilon=1))
    shows_itself(found)
    for copied in (way(found) for way in COPIES.values()):
        assert copied.summary() == found.summary()
        assert copied._repr_html_() == found._repr_html_()


def test_the_numbers_that_a_person_wants(solutions: dict[str, Any]) -> None:
    single = solutions["single"]
    assert f"mae={single.mae:.6g}" in repr(single)
    assert f"baseline_mae={single.baseline_mae:.6g}" in repr(single)
    assert "ordinary_epsilon=infinite" in repr(single)
    assert "ordinary_epsilon=infinite" in repr(single.certificate)
    assert "ordinary_epsilon=2" in repr(solutions["single with a fallback"])
    assert f"value={solutions['amplification'].value:.6g}" in repr(solutions["amplification"])
    assert repr(CROWD) == "Population(binomial: 60 people, p = 0.1, contributions 0..1)"
    assert "denominator=2**" in repr(single.mechanism)


def test_a_notebook_is_told_nothing_it_would_run() -> None:
    population = Population.binomial(10, "0.5")
    problem = ShuffleHistogram(k=2, n=10, epsilon=1, delta="1e-3", labels=["<script>", "b"])
    assert "<script>" not in problem._repr_html_()
    assert "&lt;script&gt;" in problem._repr_html_()
    assert "10 people" in repr(population)
