"""The second checker on orders: sensitivities by enumeration, groups from every source, forged files, both checkers."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from optdp import solve
from optdp.loading import load
from optdp.order.problem import OrderShuffle
from optdp.recheck import recheck
from optdp.recheck.__main__ import main
from optdp.recheck.order import order_figures
from optdp.recheck.verdict import work
from tests.artifact import mutations
from tests.artifact.forgeries import sealed
from tests.checkers import both_agree, second_opinion
from tests.recheck.test_recheck import ODD, SINGLE, places


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def ordered(folder: Path, groups: str, distance: str = "kendall", ordering: str = "rcm", alpha: str = "1.5") -> Path:
    """Solve an order whose file has this table [groups]."""
    head = f'kind = "order-shuffle"\nalpha = "{alpha}"\nordering = "{ordering}"\ndistance = "{distance}"\n[groups]\n'
    (folder / "p.toml").write_text(head + groups)
    problem = load(folder / "p.toml")
    assert isinstance(problem, OrderShuffle)
    solve(problem).save(folder / "order.json")
    return folder / "order.json"


# ---------------------------------------------------------------------- the mathematics


def inversions(word: Sequence[int]) -> int:
    return sum(word[i] > word[j] for i in range(len(word)) for j in range(i + 1, len(word)))


def misplaced(word: Sequence[int]) -> int:
    return sum(k != number for k, number in enumerate(word))


@pytest.mark.parametrize(("distance", "count"), [("kendall", inversions), ("hamming", misplaced)])
def test_the_sensitivity_is_what_all_words_show(distance: str, count: Any) -> None:
    """Every word of five records, and every way in which the members' numbers can be exchanged in it."""
    n, order = 5, [3, 0, 4, 1, 2]
    words = {word: count(word) for word in permutations(range(n))}
    token = work.set([0])
    for bits in range(1 << n):
        group = [record for record in range(n) if bits >> record & 1]
        numbers = sorted(order.index(record) for record in group)
        worst = 0
        for image in permutations(numbers):
            swap = {**{k: k for k in range(n)}, **dict(zip(numbers, image, strict=True))}
            worst = max(worst, *(abs(d - words[tuple(swap[k] for k in word)]) for word, d in words.items()))
        found, width = order_figures([group], order, distance)
        assert found == worst
        assert width == (numbers[-1] - numbers[0] if numbers else 0)
    work.reset(token)


def test_an_order_by_hand(tmp_path: Path) -> None:
    """Three records in a row, q = 1/2: the group of the outer two has 1 + 2 = 3, so alpha is 3 log 2."""
    (tmp_path / "groups.json").write_text("[[0, 2]]")
    path = ordered(tmp_path, 'file = "groups.json"\nn = 3\n', alpha="2.07944154167983593")
    document = json.loads(path.read_bytes())
    document["order"] = [0, 1, 2]
    document["claim"] |= {
        "sensitivity": 3,
        "width": 2,
        "q": ["1", "2"],
        "theta": "0.6931471805599453",
    }
    path.write_bytes(sealed(document))
    assert both_agree(path) == 0  # 3 log 2 = 2.0794415416798359283
    alpha = recheck(path).figures["alpha"]
    assert alpha is not None
    assert math.isclose(alpha, 3 * math.log(2), rel_tol=1e-15)
    document["claim"]["alpha"] = document["problem"]["alpha"] = "2.07944154167983592"
    path.write_bytes(sealed(document))
    assert both_agree(path) == 1


# ---------------------------------------------------------------------- groups from every source


def scattered(random: Random, n: int, scale: float = 1.0) -> list[list[float]]:
    """Points of which many share a place, or lie on a lattice with distances of exactly the radius."""
    found = []
    for _ in range(n):
        kind = random.randrange(3)
        if kind == 0 and found:
            found.append(random.choice(found))
        elif kind == 1:
            found.append([random.randrange(6) * 0.1 * scale, random.randrange(6) * 0.1 * scale])
        else:
            found.append([random.random() * scale, random.random() * scale])
    return found


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
@pytest.mark.parametrize("radius", ["0", "0.1", "1/7", "0.3", "5"])
def test_points(radius: str, distance: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ["x", "label", " y "], [[x, "-", y] for x, y in scattered(Random(1), 80)])
    path = ordered(tmp_path, f'points = "a.csv"\ncolumns = ["x", "y"]\nradius = "{radius}"\n', distance)
    assert both_agree(path) == 0


@pytest.mark.parametrize("scale", [1e-170, 1e-9, 1e140])
def test_points_of_any_size_and_dimension(scale: float, tmp_path: Path) -> None:
    random = Random(2)
    for axes in (1, 3, 5):
        rows = [[random.gauss(0, scale) for _ in range(axes)] for _ in range(60)]
        names = [f"c{i}" for i in range(axes)]
        write_csv(tmp_path / "a.csv", names, [*rows, rows[0], [-0.0] * axes])
        spec = f'points = "a.csv"\ncolumns = {json.dumps(names)}\nradius = "{scale * axes / 2}"\n'
        assert both_agree(ordered(tmp_path, spec)) == 0


@pytest.mark.parametrize("radius", ["0", "1", "300", "10000", "20016", "50000"])
def test_places_on_the_globe(radius: str, tmp_path: Path) -> None:
    random = Random(3)
    rows = [[random.uniform(-90, 90), random.uniform(-180, 360)] for _ in range(60)]
    rows += [[90, 0], [90, 120], [-90, 7], [0, 180], [0, -180], [0, 0], [48.1, 11.5], [48.1001, 11.5001], [48.1, 11.5]]
    write_csv(tmp_path / "a.csv", ["lat", "lon"], rows)
    spec = f'points = "a.csv"\ncolumns = ["lat", "lon"]\nradius = "{radius}"\nmetric = "haversine"\n'
    assert both_agree(ordered(tmp_path, spec)) == 0


@pytest.mark.parametrize("within", [None, "0", "0.1", "2", "1e9"])
def test_columns(within: str | None, tmp_path: Path) -> None:
    random = Random(4)
    cells = [random.choice(["1", "1.0", " 2 ", "-0", "0", "1e1", "0.1", "0.2", "0.30000000000000004", "0.3"])
             for _ in range(60)]  # fmt: skip
    write_csv(tmp_path / "a.csv", ["v", "w"], [[cell, "é" if cell == "0" else ""] for cell in cells])
    rest = "" if within is None else f'within = "{within}"\n'
    for column in ("v", "w") if within is None else ("v",):
        assert both_agree(ordered(tmp_path, f'data = "a.csv"\ncolumn = "{column}"\n{rest}')) == 0


@pytest.mark.parametrize("hops", [1, 2, 3, 99])
def test_graphs(hops: int, tmp_path: Path) -> None:
    random = Random(5)
    edges = [[random.randrange(40), random.randrange(40)] for _ in range(45)]
    write_csv(tmp_path / "a.csv", ["from", "to"], [*edges, edges[0], edges[1][::-1], ["3.0", "3"]])
    for rest in ("", "n = 50\n"):
        assert both_agree(ordered(tmp_path, f'graph = "a.csv"\nhops = {hops}\n{rest}')) == 0


@pytest.mark.parametrize(
    "text", ["[[0, 1], [], [4, 2]]", '{"n": 7, "groups": [[6], [3, 1, 2]]}', '{"groups": [[5, 0]]}']
)
def test_lists(text: str, tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(text)
    assert both_agree(ordered(tmp_path, 'file = "g.json"\n')) == 0
    if '"n"' not in text:
        assert both_agree(ordered(tmp_path, 'file = "g.json"\nn = 9\n')) == 0


@pytest.mark.parametrize(
    "name",
    ["paper-e/example", "paper-e/lattice", "paper-e/hamming", "use-cases/clinic-visits", "use-cases/staff-survey"],
)
def test_the_orders_of_the_library(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "problems"
    shutil.copytree((Path(__file__).parents[2] / "problems" / name).parent, folder)
    problem = load(folder / f"{Path(name).name}.toml")
    assert isinstance(problem, OrderShuffle)
    quick = OrderShuffle(problem.groups, problem.alpha, problem.distance, "rcm", spec=problem.spec)
    solve(quick).save(folder / "order.json")
    assert both_agree(folder / "order.json") == 0


# ---------------------------------------------------------------------- forged, odd and changed


@pytest.fixture
def order(tmp_path: Path) -> Path:
    write_csv(tmp_path / "places.csv", ["x", "y"], scattered(Random(8), 40))
    return ordered(tmp_path, 'points = "places.csv"\ncolumns = ["x", "y"]\nradius = "0.2"\n')


def test_forged_orders(order: Path, tmp_path: Path) -> None:
    held = json.loads(order.read_bytes())
    claim = held["claim"]
    first, second, *rest = held["order"]
    for code, changes in (
        (1, {"order": held["order"][::2] + held["order"][1::2]}),
        (1, {"claim": claim | {"sensitivity": claim["sensitivity"] - 1}}),
        (1, {"claim": claim | {"sensitivity": claim["sensitivity"] + 1}}),
        (1, {"claim": claim | {"width": claim["width"] + 1}}),
        (1, {"claim": claim | {"q": ["0", "1"], "theta": None}}),
        (1, {"claim": claim | {"q": ["1", "2"]}}),
        (1, {"claim": claim | {"theta": None}}),
        (1, {"claim": claim | {"theta": str(float(claim["theta"]) * 1.00000001)}}),
        (0, {"claim": claim | {"theta": str(float(claim["theta"]) * 1.0000000001)}}),
        (1, {"claim": claim | {"alpha": "1.4999999"}, "problem": held["problem"] | {"alpha": "1.4999999"}}),
        (0, {"claim": claim | {"alpha": "9"}, "problem": held["problem"] | {"alpha": "9"}}),
        (0, {"claim": claim | {"q": ["1", "1"], "theta": "0"}}),
        (2, {"claim": claim | {"lower_bound": claim["sensitivity"]}}),
        (2, {"problem": held["problem"] | {"epsilon": "0.1"}}),
        (2, {"claim": claim | {"alpha": "9"}}),
        (2, {"claim": claim | {"q": ["2", "1"]}}),
        (2, {"claim": claim | {"more": 1}}),
        (2, {"groups": "0" * 64}),
        (2, {"order": [first, first, *rest]}),
        (2, {"order": [second, *rest]}),
        (2, {"order": [first, True, *rest]}),
        (2, {"n": 41}),
        (2, {"distance": "cayley"}),
        (2, {"version": 2}),
        (2, {"problem": {**held["problem"], "groups": {}}}),
        (2, {"problem": {**held["problem"], "groups": held["problem"]["groups"] | {"file": "g.json"}}}),
        (2, {"problem": {**held["problem"], "groups": held["problem"]["groups"] | {"radius": "0.25"}}}),
    ):
        order.write_bytes(sealed(held | changes))
        assert both_agree(order) == code, changes
        assert second_opinion(order)[0] == code, changes


def test_odd_values_anywhere(order: Path) -> None:
    random, held, codes = Random(9), order.read_bytes(), [0, 0, 0]
    for _ in range(400):
        document = json.loads(held)
        *way, last = random.choice(
            [place for place in places(document) if place and place[0] not in ("sha256", "order")]
        )
        inner = document
        for key in way:
            inner = inner[key]
        inner[last] = random.choice([value for value in ODD if value != "1/0" or last != "theta"])
        order.write_bytes(sealed(document))
        code, said, _ = second_opinion(order)
        assert said.isprintable()
        assert len(said) < 1000
        assert both_agree(order) == 0 or code
        codes[code] += 1
    assert codes[2] > 200


def test_changed_bytes_of_an_order_and_of_its_groups(tmp_path: Path) -> None:
    """Both read what is left of a file in the same way, or refuse it."""
    random, codes = Random(10), [0, 0, 0]
    (tmp_path / "g.json").write_text('{"n": 9, "groups": [[0, 1, 2], [2, 3], [4, 5], [1, 8]]}')
    write_csv(tmp_path / "e.csv", ["from", "to"], [[0, 1], [1, 2], [3, 4], [5, 6], [8, 7]])
    write_csv(tmp_path / "v.csv", ["v"], [["1"], ["2.5"], ["1"], ["-3"], ["0"], ["1e2"]])
    for spec, name in (
        ('file = "g.json"\n', "g.json"),
        ('graph = "e.csv"\n', "e.csv"),
        ('data = "v.csv"\ncolumn = "v"\n', "v.csv"),
        ('data = "v.csv"\ncolumn = "v"\nwithin = "1"\n', "v.csv"),
    ):
        path = ordered(tmp_path, spec)
        for file in (tmp_path / name, path):
            held = file.read_bytes()
            for _ in range(60):
                file.write_bytes(mutations.mutated(held, random, held))
                codes[both_agree(path)] += 1
            file.write_bytes(held)
        assert both_agree(path) == 0
    assert codes[2] > 300
    assert codes[0] > 5


# ---------------------------------------------------------------------- the commands


def test_the_command(order: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(order)]) == 0
    printed = capsys.readouterr().out
    claim = json.loads(order.read_bytes())["claim"]
    assert f"sensitivity                {claim['sensitivity']}\n" in printed
    assert "lower_bound" not in printed
    (order.parent / "places.csv").unlink()
    assert main([str(order)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_more_members_than_it_lists_are_refused_with_a_reason(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optdp.recheck.verdict.MOST_WORK", 100_000)
    code, said, _ = second_opinion(order)
    assert code == 2
    assert "optdp verify" in said


def test_verify_asks_the_second_checker_and_checks_the_signature(order: Path) -> None:
    """Of an order and of a table: both in one command, and each says so."""
    pytest.importorskip("cryptography")
    from tests.files.test_sign import optdp

    folder = order.parent
    solve(SINGLE["one person"]).save(folder / "a.json")
    for name in ("order.json", "a.json"):
        signed = optdp("sign", name, "--key", f"{name}.pem", "--create-key", cwd=folder)
        assert signed.returncode == 0, signed.stderr
        done = optdp("verify", name, "--key", f"{name}.pub.pem", "--recheck", "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["second_opinion"].startswith("agrees")
        assert "valid" in said["signature"]
