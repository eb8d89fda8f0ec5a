"""Orders verified: in a process without a solver, against brute force, and against the second checker's groups."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp import load, solve
from optdp.errors import ArtifactError, ProblemError
from optdp.order.format import verify_order
from optdp.order.mechanism import Groups, dispersion, measured, ratio, sensitivity, width
from optdp.order.sources import EARTH, SLACK, from_column, from_graph, from_points, kilometres, unit_vector
from optdp.recheck import Refused, recheck
from optdp.recheck.groups import near_numbers, near_points
from optdp.recheck.verdict import work
from tests.order.test_mechanism import brute_force_sensitivity
from tests.order.test_order_files import forge
from tests.spelling import as_written

ABSENT = (
    "scipy.optimize", "networkx", "pandas", "polars", "pyarrow", "sklearn", "highspy", "cvxpy", "matplotlib", "opendp",
    "dp_accounting", "dask",
)  # fmt: skip

LOGIC = {
    "optdp.errors", "optdp.files.data", "optdp.files.models", "optdp.numbers", "optdp.numbers.exact",
    "optdp.work", "optdp.work.account", "optdp.files", "optdp.files.atomic",
    "optdp.files.canonical", "optdp.order", "optdp.order.alphabet", "optdp.order.format",
    "optdp.order.mechanism", "optdp.order.sources",
    "optdp.order.problem",
}  # fmt: skip
"""What the verdict about an order may rest on."""

OPENING = (
    "optdp.artifact", "optdp.kind", "optdp.sheet", "optdp.single", "optdp.plan", "optdp.mechanism", "optdp.people",
    "optdp.numbers",
)  # fmt: skip
"""What is loaded to open any file, whatever it turns out to be."""

SHELL = {
    "optdp", "optdp.cli", "optdp.extras", "optdp.library", "optdp.objects", "optdp.files.signature", "optdp.shuffle",
    "optdp.work.notebook",
}  # fmt: skip
"""The command line, besides the modules of `optdp.cli`."""

SOURCES = {
    "points": 'points = "places.csv"\ncolumns = ["x", "y"]\nradius = "0.2"',
    "globe": 'points = "places.csv"\ncolumns = ["x", "y"]\nradius = 20\nmetric = "haversine"',
    "graph": 'graph = "edges.csv"\nhops = 2\nn = 40',
    "labels": 'data = "places.csv"\ncolumn = "city"',
    "numbers": 'data = "places.csv"\ncolumn = "x"\nwithin = "0.05"',
    "lists": 'file = "groups.json"',
}
PROBLEM = 'kind = "order-shuffle"\nalpha = "0.7"\ndistance = "{}"\nordering = "as-is"\nbudget = 1\n[groups]\n{}\n'

WITHOUT = """
import json, sys
for name in {absent!r}:
    sys.modules[name] = None
from optdp.cli.main import main
for arguments in {calls!r}:
    sys.argv = ["optdp", "verify", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
names = sorted(name for name, module in sys.modules.items() if module is not None)
if sys.platform == "linux":  # where getrusage counts the memory of whoever started the process as its own
    with open("/proc/self/status") as status:
        most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
else:
    import resource
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([names, most]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An order for every source of groups, and the files that it needs."""
    folder, draw = tmp_path_factory.mktemp("orders"), random.Random(11)
    rows = [f"{draw.random():.3f},{draw.random():.3f},{draw.choice(['Bern', 'Ulm', ''])}" for _ in range(40)]
    (folder / "places.csv").write_text("\n".join(["x,y,city", *rows, *rows[:9]]) + "\n")
    edges = [f"{draw.randrange(40)},{draw.randrange(38)}" for _ in range(30)]
    (folder / "edges.csv").write_text("\n".join(["from,to", *edges]) + "\n")
    lists = [draw.sample(range(40), draw.randrange(6)) for _ in range(30)]
    (folder / "groups.json").write_text(json.dumps({"n": 40, "groups": lists}))
    for name, groups in SOURCES.items():
        (folder / f"{name}.toml").write_text(PROBLEM.format("hamming" if name == "lists" else "kendall", groups))
        solve(load(folder / f"{name}.toml")).save(folder / f"{name}.json")  # type: ignore[union-attr]
    return folder


def alone(*calls: list[str]) -> tuple[list[dict[str, Any]], set[str], float]:
    """What `optdp verify` printed in one process without a solver, the modules that it loaded, and the MB it took."""
    code = WITHOUT.format(absent=ABSENT, calls=calls)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr[-2000:]
    printed = [json.loads("{" + text) for text in ("\n" + done.stdout).split("\n{")[1:]]
    names, kilobytes = json.loads(done.stderr.splitlines()[-1])
    return printed, set(names), kilobytes / (1024 if sys.platform == "linux" else 1024**2)


def test_orders_verify_without_a_solver(home: Path) -> None:
    pytest.importorskip("cryptography")
    from optdp.files.signature import create_key, sign

    create_key(home / "key.pem")
    for name in SOURCES:
        sign(home / f"{name}.json", json.loads((home / f"{name}.json").read_text())["sha256"], home / "key.pem")
    calls = [[str(home / f"{name}.json"), "--json", "--key", str(home / "key.pub.pem")] for name in SOURCES]
    printed, loaded, _ = alone(*calls)
    assert not loaded & set(ABSENT)
    ours = {name for name in loaded if name.split(".")[0] == "optdp"}
    assert {name for name in ours - LOGIC - SHELL if not name.startswith(("optdp.cli.", *OPENING))} == set()
    for name, figures in zip(SOURCES, printed, strict=True):
        problem: Any = load(home / f"{name}.toml")
        order = np.array(json.loads((home / f"{name}.json").read_text())["order"])
        assert figures["status"] == "verified"
        assert figures["signature"].startswith("valid")
        assert figures["groups"] == problem.groups.digest
        assert figures["sensitivity"] == sensitivity(problem.groups, order, problem.distance) > 0
        assert figures["width"] == width(problem.groups, order)
        found = verify_order(home / f"{name}.json", problem.groups)
        assert found.groups.digest == problem.groups.digest
        assert recheck(home / f"{name}.json").figures["sensitivity"] == figures["sensitivity"]
        assert found.artifact.order.tolist() == order.tolist()


@pytest.mark.slow
def test_a_hundred_thousand_points_with_thirty_neighbours(home: Path, tmp_path: Path) -> None:
    """Within 512 MB. The order of a small problem is made one of these points, sorted: that needs no solver."""
    points = np.random.default_rng(2).random((100_000, 2)).round(6)
    (tmp_path / "places.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in points.tolist()))
    groups, order = from_points(points, 0.0098), np.argsort(points[:, 0], kind="stable")
    assert 2_900_000 < len(groups.members) < 3_100_000
    largest = sensitivity(groups, order)
    q = ratio(Fraction("0.7"), largest)
    document = json.loads((home / "points.json").read_text())
    document["problem"]["groups"]["radius"] = "0.0098"
    document["claim"] |= {
        "sensitivity": largest, "width": width(groups, order), "q": [str(q.numerator), str(q.denominator)],
        "theta": repr(dispersion(q)),
    }  # fmt: skip
    (tmp_path / "order.json").write_bytes(as_written(document))
    forge(tmp_path / "order.json", n=100_000, order=order.tolist(), groups=groups.digest)
    (figures,), _, megabytes = alone([str(tmp_path / "order.json"), "--json"])
    assert figures["sensitivity"] == largest
    assert megabytes < 512


# -------------------------------------------------------------------------------------------------- sensitivity


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_sensitivity_and_width_by_all_permutations(distance: str) -> None:
    draw = random.Random(distance)
    for n in (1, 2, 3, 4, 5, 5, 5, 5):
        order = draw.sample(range(n), n)
        lists = [sorted(draw.sample(range(n), draw.randint(0, n))) for _ in range(3)]
        groups = Groups.of(lists, n)
        wanted = max(brute_force_sensitivity(tuple(group), order, distance) for group in lists)
        spread = max((abs(order.index(a) - order.index(b)) for one in lists for a in one for b in one), default=0)
        assert measured(groups, np.array(order), distance) == (wanted, spread)
        assert (sensitivity(groups, np.array(order), distance), width(groups, np.array(order))) == (wanted, spread)


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_sensitivity_of_larger_groups(distance: str) -> None:
    """Against the definition with its non-members counted one by one, and against the arrays."""
    draw = random.Random(5)
    for n in (30, 31, 200):
        order = draw.sample(range(n), n)
        lists = [draw.sample(range(n), size) for size in (0, 1, 2, 3, 8, 9, n // 2, n)]
        groups = Groups.of(lists, n)
        counted = []
        for group in lists:
            at = sorted(map(order.index, group))
            others = set(range(at[0], at[-1])) - set(at) if at else set()
            moved = sum(2 * min(sum(g < q for g in at), sum(g > q for g in at)) for q in others)
            counted.append(math.comb(len(at), 2) + moved if distance == "kendall" else len(at) * (len(at) > 1))
        assert measured(groups, np.array(order), distance)[0] == max(counted)
        assert sensitivity(groups, np.array(order), distance) == max(counted)


# -------------------------------------------------------------------------------------------------- groups


@pytest.fixture(autouse=True)
def _counted() -> Iterator[None]:
    """The second checker counts its work."""
    token = work.set([0])
    yield
    work.reset(token)


def lists(groups: Groups) -> list[list[int]]:
    return [groups[i].tolist() for i in range(len(groups))]


def second_opinion(points: Any, radius: float, globe: bool = False) -> list[list[int]]:
    """The groups that the second checker makes: its own grid, Python's floats, no numpy."""
    return near_points([tuple(row) for row in (np.asarray(points, dtype=float) + 0.0).tolist()], radius, globe)


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("radius", ["0", "0.1", "0.3", "0.5", "9"])
def test_points_by_exact_arithmetic(dimension: int, radius: str) -> None:
    """Decimals on a coarse grid, so that many are at the radius exactly: all of them belong to the group."""
    draw = random.Random(dimension)
    rows = [[Fraction(draw.randrange(-7, 8), 10) for _ in range(dimension)] for _ in range(90)]
    square = Fraction(radius) ** 2
    wanted = [
        [j for j, there in enumerate(rows) if sum((a - b) ** 2 for a, b in zip(here, there, strict=True)) <= square]
        for here in rows
    ]
    places = [[float(x) for x in row] for row in rows]
    assert lists(from_points(places, float(radius))) == wanted == second_opinion(places, float(radius))


@pytest.mark.parametrize("scale", [1e-170, 1e-158, 1e-9, 1.0, 1e9, 4e149])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_points_of_every_size(scale: float, dimension: int) -> None:
    random_points = np.random.default_rng(dimension).normal(0, 0.2, (200, dimension)).clip(-1, 1) * scale
    random_points[:20] = random_points[20:40]
    random_points[40:50] *= 1e-6
    for radius in (0.0, 1e-7 * scale, 0.03 * scale, 0.5 * scale):
        assert lists(from_points(random_points, radius)) == second_opinion(random_points, radius), radius


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.5, 300.0, 5_000.0, 19_000.0, 20_015.0, 30_000.0])
def test_places_on_the_globe(radius: float) -> None:
    draw = np.random.default_rng(3)
    places = np.stack([draw.uniform(-90, 90, 200), draw.uniform(-180, 360, 200)], axis=1)
    places[:50] = places[50:100] + draw.normal(0, 0.003, (50, 2))
    places[100:140] = [[a, b] for a in (-90, -89.999999, 89.999999, 90) for b in range(-180, 180, 36)]
    places[140:150] = -places[150:160] + [[0, 180]]
    places = places.clip(-90, [90, 360])
    assert lists(from_points(places, radius, "haversine")) == second_opinion(places, radius, globe=True)


@pytest.mark.parametrize("machine", ["this", "above", "below"])
def test_rounding_decides_alike(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Radii at which some pair is at the limit to the last bit, and one bit to each side; some machines round worse."""
    if machine != "this":
        for name in ("arctan2", "cos", "sin"):
            monkeypatch.setattr(np, name, rounded_badly(getattr(np, name), math.inf if machine == "above" else 0.0))
    draw = random.Random(8)
    for _ in range(40):
        globe = [(draw.uniform(-90, 90), draw.uniform(-180, 180)) for _ in range(6)]
        globe += [(min(90.0, a + draw.gauss(0, 1e-4)), b) for a, b in globe]
        here, there = draw.sample(globe, 2)
        at = kilometres(unit_vector(*here), unit_vector(*there)) - SLACK * EARTH
        space = [(draw.random(), draw.random(), draw.random()) for _ in range(12)]
        apart = math.dist(*draw.sample(space, 2))
        for towards in (0.0, at, math.inf):
            radius = max(0.0, math.nextafter(at, towards))
            assert lists(from_points(globe, radius, "haversine")) == second_opinion(globe, radius, globe=True)
            limit = math.nextafter(apart, towards)
            radius = limit - SLACK * (limit + math.hypot(*np.max(space, axis=0)))
            assert lists(from_points(space, radius)) == second_opinion(space, radius)


def rounded_badly(function: Any, towards: float) -> Any:
    """The same function, off by four units in the last place, as fast libraries have it."""

    def call(*args: Any) -> Any:
        found = function(*args)
        for _ in range(4):
            found = np.nextafter(found, towards)
        return found

    return call


@pytest.mark.parametrize("within", [None, 0.0, 0.1, 0.3, 50.0])
@pytest.mark.parametrize("once", [False, True])
def test_columns(within: float | None, once: bool) -> None:
    draw = random.Random(2)
    tenths = [draw.randrange(-30, 30) for _ in range(150)]
    values = [tenth / 10 for tenth in tenths]
    far = 0 if within is None else round(10 * within)
    found = lists(from_column(values, within, once))
    listed = sorted(set(tenths)) if once else tenths
    assert found == [[j for j, b in enumerate(tenths) if abs(a - b) <= far] for a in listed]
    if once:
        assert found == near_numbers(values, within or 0.0)


@pytest.mark.parametrize("once", [False, True])
def test_labels(once: bool) -> None:
    """In the order of their code points, whatever they are."""
    draw = random.Random(3)
    labels = [draw.choice(["", "a", "A", "é", "\U0001f600", "\uffff", "aa", " a", "ß", "10", "9"]) for _ in range(60)]
    wanted = [[j for j, b in enumerate(labels) if a == b] for a in (sorted(set(labels)) if once else labels)]
    assert lists(from_column(labels, None, once)) == wanted == lists(from_column(np.array(labels), None, once))


@pytest.mark.parametrize("hops", [1, 2, 3, 99])
def test_graphs(hops: int) -> None:
    draw = random.Random(hops)
    for n, count in ((1, 3), (2, 1), (40, 30), (40, 60), (25, 300)):
        edges = [(draw.randrange(n), draw.randrange(n)) for _ in range(count)]
        apart = np.full((n, n), np.inf)
        np.fill_diagonal(apart, 0)
        for a, b in edges:
            apart[a, b] = apart[b, a] = min(apart[a, b], 1)
        for k in range(n):  # Floyd and Warshall
            apart = np.minimum(apart, apart[:, k, None] + apart[None, k])
        assert lists(from_graph(edges, hops, n)) == [np.flatnonzero(row <= hops).tolist() for row in apart]


# -------------------------------------------------------------------------------------------------- refusals


def test_another_number_of_records_is_refused_before_groups_are_made(home: Path, tmp_path: Path) -> None:
    for name, changed in (("graph", {"n": 10_000_000}), ("lists", {"n": 39}), ("points", {"n": 7})):
        document = json.loads((home / f"{name}.json").read_text())
        (tmp_path / "order.json").write_bytes(as_written(document))
        for file in ("edges.csv", "groups.json", "places.csv"):
            (tmp_path / file).write_bytes((home / file).read_bytes())
        forge(tmp_path / "order.json", problem__groups=document["problem"]["groups"] | changed)
        if name == "points":  # their number is that of the rows
            assert verify_order(tmp_path / "order.json").artifact.n == 49
            continue
        with pytest.raises(ArtifactError, match=f"must be of the order's 40 records. Found n = {changed['n']}"):
            verify_order(tmp_path / "order.json")


POINTS = {"points": "d.csv", "columns": ["x", "y"], "radius": 1}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("x,y\n1,2\n", {}),
        ("x,y\n1,2\n", {"points": "d.csv", "file": "d.csv"}),
        ("x,y\n1,2\n", {"points": "d.csv"}),
        ("x,y\n1,2\n", {"points": "none.csv", "columns": ["x"], "radius": 1}),
        ("x,y\n1,2\n1,nan\n", POINTS),
        ("x,y\n1,1e200\n", POINTS),
        ("x,y\n1,2\n", POINTS | {"radius": -1}),
        ("x,y\n1,2\n", POINTS | {"radius": "1e200"}),
        ("x,y\n1,2\n", POINTS | {"metric": "manhattan"}),
        ("x,y\n1,2\n-91,5\n", POINTS | {"metric": "haversine"}),
        ("x,y\n1,361\n", POINTS | {"metric": "haversine"}),
        ("x,y\n1,361\n", POINTS | {"metric": "haversine", "columns": ["x"]}),
        ("x,y\n1,2\n", {"data": "d.csv"}),
        ("x,y\n1,2\n", {"data": "d.csv", "column": "z"}),
        ("x,y\n1,2\n1,a\n", {"data": "d.csv", "column": "y", "within": 1}),
        ("x,y\n1,2\n1,1e200\n", {"data": "d.csv", "column": "y", "within": 1}),
        ("x,y\n1,2\n", {"data": "d.csv", "column": "y", "within": -1}),
        ("x,y\n1,2\n0,-1\n", {"graph": "d.csv"}),
        ("x,y\n1,2\n0,5\n", {"graph": "d.csv", "n": 5}),
        ("x,y\n1,2\n", {"graph": "d.csv", "n": 0}),
        ("x,y\n1,2\n", {"graph": "d.csv", "hops": 0}),
        ("1,2\n2,3\n", {"graph": "d.csv"}),
        ("[[0, 0]]", {"file": "d.csv"}),
        ("[[0, 9]]", {"file": "d.csv", "n": 5}),
        ("[[]]", {"file": "d.csv", "n": 0}),
        ("nothing", {"file": "d.csv"}),
    ],
)
def test_both_checkers_refuse_such_groups(text: str, spec: dict[str, Any], home: Path, tmp_path: Path) -> None:
    """Before any groups are made: nothing is said of their digest."""
    (tmp_path / "d.csv").write_text(text)
    (tmp_path / "order.json").write_bytes((home / "points.json").read_bytes())
    forge(tmp_path / "order.json", problem__groups=spec)
    with pytest.raises((ProblemError, ArtifactError)) as here:
        verify_order(tmp_path / "order.json")
    assert "digest" not in str(here.value)
    assert "\n" not in str(here.value)
    with pytest.raises(Refused) as there:
        recheck(tmp_path / "order.json")
    assert "made for" not in str(there.value)
