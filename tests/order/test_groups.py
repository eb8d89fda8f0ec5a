"""Groups against the table of all pairs, which small inputs allow; and what is refused, with its row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from optdp.errors import ProblemError
from optdp.order.mechanism import Groups, sensitivity
from optdp.order.sources import (
    EARTH,
    column_csv,
    edges_csv,
    from_column,
    from_graph,
    from_lists,
    from_points,
    points_csv,
)
from optdp.work.account import EffortError, limited


def lists(groups: Groups) -> list[list[int]]:
    return [groups[i].tolist() for i in range(len(groups))]


def near(apart: np.ndarray, radius: float) -> list[list[int]]:
    return [np.flatnonzero(row <= radius).tolist() for row in apart]


def great_circle(places: np.ndarray) -> np.ndarray:
    """Vincenty's formula for the sphere, which no angle is bad for."""
    a, b = np.radians(places).T
    d = b[:, None] - b[None, :]
    x = np.cos(a)[None, :] * np.sin(d)
    y = np.cos(a)[:, None] * np.sin(a)[None, :] - np.sin(a)[:, None] * np.cos(a)[None, :] * np.cos(d)
    z = np.sin(a)[:, None] * np.sin(a)[None, :] + np.cos(a)[:, None] * np.cos(a)[None, :] * np.cos(d)
    return EARTH * np.arctan2(np.hypot(x, y), z)


@pytest.fixture(params=[7, 10**6])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all is looked at in one go or in many changes nothing."""
    monkeypatch.setattr("optdp.order.mechanism.CHUNK", request.param)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.0, 0.05, 0.3, 9.0])
def test_points(dimension: int, radius: float) -> None:
    points = np.random.default_rng(dimension).random((150, dimension))
    points[100:] = points[np.random.default_rng(5).integers(0, 100, 50)]
    groups = from_points(points, radius)
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    assert lists(groups) == near(apart, radius)
    assert np.array_equal(groups.points, points)
    once = from_points(points, radius, once=True)
    assert len(once) == 100
    assert {tuple(group) for group in lists(once)} == {tuple(group) for group in lists(groups)}


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("radius", [0.0, 0.5, 300.0, 5_000.0, 19_000.0, 30_000.0])
def test_haversine(radius: float) -> None:
    random = np.random.default_rng(3)
    places = np.stack([random.uniform(-90, 90, 120), random.uniform(-180, 360, 120)], axis=1)
    places[:20] = places[20:40] + random.normal(0, 0.003, (20, 2))
    assert lists(from_points(places, radius, "haversine")) == near(great_circle(places), radius + 1e-11)


def test_haversine_at_its_edges() -> None:
    degree = math.pi * EARTH / 180
    line = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 359.0]])
    assert lists(from_points(line, degree, "haversine")) == [[0, 1, 3], [0, 1, 2], [1, 2], [0, 3]]
    assert lists(from_points(line, degree * (1 - 1e-12), "haversine")) == [[0], [1], [2], [3]]
    same = [[90.0, 0.0], [90.0, 77.0], [0.0, 180.0], [0.0, -180.0], [-90.0, 3.0]]
    assert lists(from_points(same, 0.0, "haversine")) == [[0, 1], [0, 1], [2, 3], [2, 3], [4]]
    poles = [[90.0, 0.0], [-90.0, 50.0], [-89.999999, 50.0]]
    half = math.pi * EARTH
    assert lists(from_points(poles, half - 1e-6, "haversine")) == [[0, 2], [1, 2], [0, 1, 2]]
    assert lists(from_points(poles, half, "haversine")) == [[0, 1, 2]] * 3
    metres = np.array([[48.0, 11.0], [48.0 + 0.0009 / degree, 11.0], [48.0 + 0.0011 / degree, 11.0]])
    assert lists(from_points(metres, 0.001, "haversine")) == [[0, 1], [0, 1, 2], [1, 2]]


def test_decimals_at_the_radius_belong_to_the_group() -> None:
    """0.8 - 0.7 is more than 0.1 as a float, yet nobody means that."""
    tenths = np.arange(11) / 10
    wanted = [[j for j in range(11) if abs(i - j) <= 1] for i in range(11)]
    assert lists(from_points(tenths[:, None], 0.1)) == wanted
    assert lists(from_column(tenths, 0.1)) == wanted
    assert lists(from_points(np.stack([tenths, -tenths], axis=1), 0.1 * math.sqrt(2))) == wanted


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("within", [0.0, 1.0, 2.5, 100.0])
def test_column(within: float) -> None:
    values = np.random.default_rng(1).integers(-20, 20, 200)
    groups = from_column(values, within)
    assert lists(groups) == near(np.abs(values[:, None] - values[None, :]), within)
    assert sensitivity(groups, np.argsort(values)) == max(m * (m - 1) // 2 for m in groups.sizes)


def test_labels() -> None:
    labels = ["b", "a", "b", "", "a", "b"]
    assert lists(from_column(labels)) == [[0, 2, 5], [1, 4], [0, 2, 5], [3], [1, 4], [0, 2, 5]]
    assert sorted(lists(from_column(labels, once=True))) == [[0, 2, 5], [1, 4], [3]]
    assert lists(from_column([1.5, 2.0, 1.5])) == [[0, 2], [1], [0, 2]]


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("hops", [1, 2, 3, 50])
def test_graph(hops: int) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.gnm_random_graph(120, 130, seed=4)
    steps = dict(networkx.all_pairs_shortest_path_length(graph, cutoff=hops))
    wanted = [sorted(steps[i]) for i in range(120)]
    assert lists(from_graph(graph, hops)) == wanted
    edges = [*graph.edges, (3, 3), *[(b, a) for a, b in graph.edges]]
    assert lists(from_graph(edges, hops, 120)) == wanted


def test_graph_without_edges() -> None:
    assert lists(from_graph([], 3, 4)) == [[0], [1], [2], [3]]
    assert lists(from_graph([(0, 3), (3, 0), (2, 2)])) == [[0, 3], [1], [2], [0, 3]]


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, True, "1"])
def test_radius(bad: float) -> None:
    with pytest.raises(ProblemError, match="The radius must be a number"):
        from_points([[0.0], [1.0]], bad)
    with pytest.raises(ProblemError, match="The distance within a group must be"):
        from_column([0.0, 1.0], bad)


@pytest.mark.parametrize(
    ("points", "metric", "message"),
    [
        ([[0.0, 1.0], [math.nan, 0.0]], "euclidean", r"finite.* Found \[nan, 0.0\] for record 1"),
        ([[0.0, -math.inf]], "euclidean", "for record 0"),
        ([[0.0, 1e200]], "euclidean", "below 1e150"),
        ([[0.0, 0.0], [90.5, 0.0]], "haversine", r"Latitudes must be from -90 to 90.*\[90.5, 0.0\] for record 1"),
        ([[0.0, 361.0]], "haversine", "longitudes"),
        ([[0.0, 1.0, 2.0]], "haversine", "a latitude and a longitude"),
        ([], "euclidean", "a row of coordinates for each record"),
        ([1.0, 2.0], "euclidean", "a row of coordinates for each record"),
        ([[1.0], [1.0, 2.0]], "euclidean", "as many for each record"),
        ([["x"]], "euclidean", "must be numbers"),
        ([[1.0]], "manhattan", "must be euclidean or haversine. Found 'manhattan'"),
    ],
)
def test_points_that_are_nowhere(points: list[list[float]], metric: str, message: str) -> None:
    with pytest.raises(ProblemError, match=message) as refused:
        from_points(points, 1.0, metric)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("edges", "n", "message"),
    [
        ([(0, 1), (1, 7)], 5, "records 0..4. Found 1 and 7 as edge 1"),
        ([(0, -1)], None, "Found 0 and -1"),
        ([(0, 1, 2)], 5, "pairs of record numbers"),
        ([(0, 1), (2,)], 5, "pairs of record numbers"),
        ([(0.5, 1)], 5, "pairs of record numbers"),
        ([("a", "b")], 5, "pairs of record numbers"),
        ([(0, 1)], 0, "n must be from 1"),
    ],
)
def test_edges_that_lead_nowhere(edges: list[tuple[int, int]], n: int | None, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        from_graph(edges, 1, n)


def test_hops() -> None:
    for hops in (0, -1, 1.0, True):
        with pytest.raises(ProblemError, match="hops must be"):
            from_graph([(0, 1)], hops)  # type: ignore[arg-type]


def test_groups_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optdp.order.mechanism.LARGEST_MEMBERS", 1000)
    points = np.random.default_rng(0).random((100, 1))
    line = np.arange(100.0)[:, None]
    same = np.zeros(100)
    star = [(0, i) for i in range(1, 100)]
    for build in (
        lambda: from_points(points, 1.0),
        lambda: from_points(line, 6.0),
        lambda: from_points(same[:, None], 0.0),
        lambda: from_points(np.zeros((100, 4)), 0.0),
        lambda: from_column(points[:, 0], 1.0),
        lambda: from_column(same, 1.0),
        lambda: from_column(same),
        lambda: from_column(["a"] * 100),
        lambda: from_graph(star, 2),
        lambda: from_graph([(i, j) for i in range(40) for j in range(i)]),
    ):
        with pytest.raises(ProblemError, match="may have 1,000 members"):
            build()
    assert lists(from_column(same, once=True)) == [list(range(100))]
    assert lists(from_column(["a"] * 100, once=True)) == [list(range(100))]
    assert len(from_points(line, 4.0).members) == 880


def test_a_sample_foresees_groups_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits to the last member is built, however uneven; far too many are refused by an estimate that is near."""
    draw = np.random.default_rng(5)
    even, dense = draw.random((600, 2)), draw.normal(size=(600, 2)) ** 3
    periodic = np.where(np.arange(600) % 5 == 0, 0.0, 1e3 * np.arange(600.0))[:, None]
    hub = [(0, i) for i in range(1, 200)] + [(i, i + 1) for i in range(200, 599)]
    tree = [(i, (i - 1) // 3) for i in range(1, 600)]
    builds: list[Callable[[], Groups]] = [
        lambda: from_points(even, 0.2),
        lambda: from_points(dense, 0.2),
        lambda: from_points(np.repeat(dense[:100], 6, axis=0), 0.2),
        lambda: from_points(periodic, 1.0),
        lambda: from_graph(hub, 2, 600),
        lambda: from_graph(tree, 4, 600),
    ]
    for build in builds:
        monkeypatch.undo()
        known = len(build().members)
        monkeypatch.setattr("optdp.order.mechanism.LARGEST_MEMBERS", known)
        assert len(build().members) == known
        monkeypatch.setattr("optdp.order.mechanism.LARGEST_MEMBERS", known - 1)
        with pytest.raises(ProblemError, match="Found"):
            build()
    for build, share in ((builds[0], 0.6), (builds[5], 0.45)):
        monkeypatch.undo()
        known = len(build().members)
        monkeypatch.setattr("optdp.order.mechanism.LARGEST_MEMBERS", int(share * known))
        with pytest.raises(ProblemError, match="Found about") as refusal:
            build()
        about = float(str(refusal.value).split("about ")[1].split(". ")[0].replace(",", ""))
        assert about == pytest.approx(known, rel=0.1)


def test_work_is_counted_before_it_is_done() -> None:
    """A file that asks for all pairs of very many places, or for very many steps in a graph, is refused at once."""
    draw = np.random.default_rng(0)
    crowd, spread = draw.random((200_000, 2)), draw.random((200_000, 9))
    star = [(0, i) for i in range(1, 3_000)]
    with limited(1.0):
        for build in (
            lambda: from_points(crowd, 0.5),
            lambda: from_points(spread, 0.4),
            lambda: from_points(crowd[:, :1], 0.5),
            lambda: from_column(crowd[:, 0], 0.001),
            lambda: from_graph(star, 3),
        ):
            with pytest.raises(EffortError, match="the limit is about 1"):
                build()


def test_points_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text("name,x,y\na,1,2\nb, 3.5 ,-4\n")
    assert points_csv(path, ["x", "y"]).tolist() == [[1, 2], [3.5, -4]]
    assert column_csv(path, "y").tolist() == [2, -4]
    assert column_csv(path, "name", numbers=False).tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "metric", "message"),
    [
        ("x,y\n1,2\n1,nan\n", "euclidean", "y must be a finite number in every row.*row 3"),
        ("x,y\ninf,2\n1,2\n", "euclidean", "x must be a finite number.*row 2"),
        ("x,y\n1,\n", "euclidean", "y must be a finite number.*row 2"),
        ("x,y\n1,1e200\n", "euclidean", "below 1e150. Found another in row 2"),
        ("x,y\n1,2\n2,3\n-91,5\n", "haversine", "Latitudes must be .* Found another in row 4"),
        ("x\n1\n", "euclidean", "must have the column 'y'"),
        ("x,y\n", "euclidean", "Found nothing below the header"),
        ("", "euclidean", "must begin with a header"),
    ],
)
def test_points_of_a_bad_file(text: str, metric: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text(text)
    with pytest.raises(ProblemError, match=message) as refused:
        points_csv(path, ["x", "y"], metric)
    assert "\n" not in str(refused.value)


def test_edges_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("from,to\n0,1\n1,0\n2,2\n1,4\n")
    edges, n = edges_csv(path)
    assert n == 5
    assert lists(from_graph(edges, 1, n)) == [[0, 1], [0, 1, 4], [2], [3], [1, 4]]
    assert edges_csv(path, 9)[1] == 9
    path.write_text("weight,a,b\n0.5,1,2\n")
    assert edges_csv(path, columns=["a", "b"])[0].tolist() == [[1, 2]]
    with pytest.raises(ProblemError, match=r"must have two columns. Found 3"):
        edges_csv(path)


@pytest.mark.parametrize(
    ("text", "n", "message"),
    [
        ("from,to\n0,1\n0,7\n", 5, "records 0..4. Found another in row 3"),
        ("from,to\n0,-1\n", None, "Found another in row 2"),
        ("from,to\n0,1\n0,x\n", None, "to must be a whole number in every row.*row 3"),
        ("from,to\n0,1.5\n", None, "to must be a whole number"),
        ("from,to\n0,nan\n", None, "to must be a whole number"),
        ("from,to\n0,99999999999\n", None, "Found another in row 2"),
        ("from,to\n0,1\n1\n", None, "Every row must have 2 cells"),
        ("0,1\n1,2\n", None, "must begin with a header. Found"),
        ("from,to\n", None, "Found nothing below the header"),
        ("", None, "must have two columns. Found 0"),
        ("from,to\n0,1\n", 0, "n must be from 1"),
    ],
)
def test_edges_of_a_bad_file(text: str, n: int | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(ProblemError, match=message) as refused:
        edges_csv(path, n)
    assert "\n" not in str(refused.value)


def test_edges_of_no_file(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="No such file"):
        edges_csv(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"fr\xe9,to\n0,1\n")
    with pytest.raises(ProblemError, match="UTF-8"):
        edges_csv(tmp_path / "latin.csv")


def test_lists(tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    path.write_text("[[3, 1], [], [0]]")
    assert lists(from_lists(path)) == [[1, 3], [], [0]]
    assert from_lists(path).n == 4
    assert from_lists(path, 9).n == 9
    path.write_text(json.dumps({"n": 6, "groups": [[3, 1]]}))
    assert from_lists(path).n == 6
    with pytest.raises(ProblemError, match=r"must be of 5 records. Found n = 6"):
        from_lists(path, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a JSON file"),
        ("[[1, 2], [NaN]]", "Numbers must be finite"),
        ("[" * 99 + "]" * 99, "JSON may nest"),
        ('{"n": 3, "n": 4, "groups": []}', "Each key may occur once"),
        ("[]", "must be a list of lists"),
        ("7", "must be a list of lists"),
        ('{"groups": {}}', "must be a list of lists"),
        ('{"n": 3}', "must say groups"),
        ('{"n": 3, "groups": [[1]], "more": 1}', "must say groups"),
        ('{"n": 0, "groups": [[1]]}', "n must be a whole number from 1"),
        ('{"n": "3", "groups": [[1]]}', "n must be a whole number"),
        ("[[0], 1]", "must be a list of records. Found something else as group 1"),
        ('{"n": 3, "groups": [[0], [1, 3]]}', r"records 0..2. Found something else in group 1"),
        ("[[0], [-1]]", "Found something else in group 1"),
        ("[[0], [true]]", "Found something else in group 1"),
        ("[[0], [1.0]]", "Found something else in group 1"),
        ("[[0], [" + "9" * 400 + "]]", "in group 1"),
        ("[[0], [2, 1, 2]]", "name a record once. Found one twice in group 1"),
    ],
)
def test_bad_lists(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    path.write_text(text)
    with pytest.raises(ProblemError, match=message) as refused:
        from_lists(path)
    assert "\n" not in str(refused.value)
    with pytest.raises(ProblemError):
        from_lists(tmp_path / "none.json")
