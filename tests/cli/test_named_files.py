"""Files that a problem or an order names lie in its folder or below it; no error shows what stands in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optdp
from optdp import ArtifactError, ProblemError
from optdp.order.format import verify_order
from optdp.recheck import Refused, recheck
from optdp.recheck.__main__ import main as recheck_main
from optdp.report.report import report
from tests.artifact.forgeries import sealed
from tests.command_line import Done

SECRET = "root:x:0:0,9f3b-secret"
ORDER = 'kind = "order-shuffle"\nalpha = 1\nordering = "rcm"\n[groups]\n'
POINTS = ORDER + 'points = "NAME"\ncolumns = ["x"]\nradius = 1\n'
AMPLIFY = 'kind = "amplification"\nn = 1000\ndelta = 1e-6\n'
CHANNEL = 'randomizer = { kind = "channel", csv = "NAME" }\n'
NAMING = {
    "points": POINTS,
    "graph": ORDER + 'graph = "NAME"\n',
    "data": ORDER + 'data = "NAME"\ncolumn = "x"\n',
    "file": ORDER + 'file = "NAME"\n',
    "study": POINTS.replace("NAME", "x.csv") + '[study]\ndata = "NAME"\ncolumn = "x"\nepsilon = 1\n',
    "channel": AMPLIFY + CHANNEL,
    "series": AMPLIFY
    + 'randomizer = { kind = "k-rr", k = 2, gamma = 0.5 }\n[sweep]\nover = "n"\nvalues = [1000]\n[[sweep.series]]\n'
    + CHANNEL,
}
"""How a file is named, in every place where one can be."""
FILES = {
    "graph": "from,to\n0,1\n",
    "file": "[[0, 1]]",
    "channel": "0.6,0.4\n0.4,0.6\n",
    "series": "0.6,0.4\n0.4,0.6\n",
}


def named(text: str, name: str) -> str:
    return text.replace("NAME", name)


@pytest.fixture
def call(command: Callable[..., Done]) -> Callable[..., Done]:
    return command


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of problems, beside one that is none of their business."""
    home = tmp_path / "home"
    (home / "below").mkdir(parents=True)
    (tmp_path / "away").mkdir()
    (home / "x.csv").write_text("x\n1\n2\n5\n")
    return home


def ways_out(home: Path, name: str) -> list[str]:
    """Names for a file in `away`: in full, by steps, by a link to it and by a link to its folder."""
    away = home.parent / "away"
    for link, target in ((home / f"link-{name}", away / name), (home / "door", away)):
        if not link.is_symlink():
            link.symlink_to(target)
    return [str(away / name), f"../away/{name}", f"below/../../away/{name}", f"link-{name}", f"door/{name}"]


@pytest.mark.parametrize("key", NAMING)
def test_a_problem_reads_nothing_outside_its_folder(key: str, home: Path, call: Callable[..., Done]) -> None:
    text = FILES.get(key, "x\n1\n2\n5\n")
    (home.parent / "away" / "named").write_text(text)
    (home / "below" / "named").write_text(text)
    command = ("curve", "--out", home / "c.csv") if key == "series" else ("solve",)
    for name in ways_out(home, "named"):
        (home / "p.toml").write_text(named(NAMING[key], name))
        call(command[0], home / "p.toml", *command[1:]).refused("in its own folder or below it")
        said = call(command[0], home / "p.toml", *command[1:]).err
        assert "--allow-outside" in said
        assert name in said
        with pytest.raises(ProblemError, match="allow_outside=True"):
            optdp.load(home / "p.toml")
        assert optdp.load(home / "p.toml", allow_outside=True) is not None
    assert call(command[0], home / "p.toml", *command[1:], "--allow-outside").code == 0
    (home / "inner").symlink_to(home / "below")
    for name in ("below/named", "./below/../below/named", "inner/named", str(home / "below" / "named")):
        (home / "p.toml").write_text(named(NAMING[key], name))
        assert optdp.load(home / "p.toml") is not None
    (home.parent / "way").symlink_to(home)
    assert optdp.load(home.parent / "way" / "p.toml") is not None, "the folder itself may be reached by a link"


def test_a_neighbour_whose_name_begins_alike_is_outside(home: Path) -> None:
    (home.parent / "homely").mkdir()
    (home.parent / "homely" / "x.csv").write_text("x\n1\n2\n")
    (home / "p.toml").write_text(named(POINTS, "../homely/x.csv"))
    with pytest.raises(ProblemError, match="in its own folder or below"):
        optdp.load(home / "p.toml")


def test_compare_run_sweep_and_curve_ask_too(home: Path, call: Callable[..., Done]) -> None:
    (home.parent / "away" / "x.csv").write_text("x\n1\n2\n5\n")
    (home / "p.toml").write_text(named(POINTS, "../away/x.csv"))
    for command in (
        ("compare", home / "p.toml"),
        ("run", home / "p.toml", "--data", home / "x.csv", "--column", "x", "--out", home / "e.json"),
        ("sweep", home / "p.toml", "--grid", "alpha=1,2", "--out", home / "s.csv", "--workers", 0),
        ("curve", home / "p.toml", "--out", home / "c.csv"),
    ):
        call(*command).refused("--allow-outside")
        assert "--allow-outside" not in call(*command, "--allow-outside").err
    (home / "p.toml").write_text(named(POINTS, "x.csv"))
    grid = ("sweep", home / "p.toml", "--grid", "groups.points=x.csv,../away/x.csv", "--out", home / "s.csv")
    call(*grid, "--workers", 0).refused("--allow-outside")
    done = call(*grid, "--workers", 0, "--allow-outside")
    assert done.code == 0, done
    assert (home / "s.csv").read_text().count("optimal") == 2
    spec = {"kind": "order-shuffle", "alpha": 1, "ordering": "rcm"}
    groups = {"points": str(home.parent / "away" / "x.csv"), "columns": ["x"], "radius": 1}
    rows = optdp.sweep(spec | {"groups": groups}, {"alpha": [1]}, workers=0)
    assert [row["status"] for row in rows] == ["optimal"], "a mapping is the caller's own"
    (home / "p.toml").write_text(named(POINTS, "x.csv") + '[sweep]\nover = "groups.points"\nvalues = ["0.5"]\n')
    call("curve", home / "p.toml", "--out", home / "c.csv").refused("which names a file")


def test_listing_problems_reads_nothing(home: Path, call: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "own").mkdir()
    (home / "own" / "p.toml").write_text('title = "outside"\n' + named(POINTS, "/no/such/file"))
    monkeypatch.setattr("optdp.library.FOLDER", home)
    done = call("problems")
    assert done.code == 0, done
    assert "outside" in done.out


def test_an_order_reads_nothing_outside_its_folder(home: Path, call: Callable[..., Done]) -> None:
    away = home.parent / "away"
    (home / "p.toml").write_text(named(POINTS, "x.csv"))
    assert call("solve", home / "p.toml", "--out", home / "order.json").err == ""
    done = call("solve", home / "p.toml", "--out", away / "order.json")
    assert done.code == 0
    assert "use --allow-outside" in " ".join(done.err.split())
    held = json.loads((home / "order.json").read_text())
    (away / "x.csv").write_text("x\n1\n2\n5\n")
    orders = [away / "order.json"]
    for i, name in enumerate(ways_out(home, "x.csv")):
        groups = held["problem"]["groups"] | {"points": name}
        orders.append(home / f"order-{i}.json")
        document = {**held, "problem": held["problem"] | {"groups": groups}}
        rest = json.loads(sealed(document))
        orders[-1].write_text(json.dumps(rest, sort_keys=True, separators=(",", ":")) + "\n")
    for order in orders:
        with pytest.raises(ProblemError, match="in its own folder or below it"):
            verify_order(order)
        with pytest.raises(Refused, match="--allow-outside"):
            recheck(order)
        with pytest.raises(ProblemError, match="--allow-outside"):
            report(order)
        assert recheck_main([str(order)]) == 2
        assert verify_order(order, allow_outside=True).artifact.n == 3
        assert recheck(order, allow_outside=True).status == "PASS"
        assert recheck_main(["--allow-outside", str(order)]) == 0
        assert b"<html" in report(order, allow_outside=True)
    order, key = orders[0], home / "key.pem"
    answers = ("--data", home / "x.csv", "--column", "x", "--out", home / "z.csv")
    for command in (
        ("verify", order), ("verify", order, "--recheck"), ("report", order, "--out", home / "r.html"),
        ("sign", order, "--key", key, "--create-key"), ("shuffle", order, *answers),
    ):  # fmt: skip
        call(*command).refused("--allow-outside")
        assert call(*command, "--allow-outside").code == 0


def test_an_artifact_names_no_files(home: Path, tmp_path: Path) -> None:
    """The problem in a noise matrix's file is a stranger's too."""
    (home / "secret").write_text(SECRET + "\n")
    problem = optdp.SingleLTE(optdp.Population.binomial(3, "0.5"), "1")
    optdp.solve(problem).save(tmp_path / "a.json")
    held = json.loads((tmp_path / "a.json").read_text())
    groups = {"points": str(home / "secret"), "columns": ["x"], "radius": "1"}
    spec = {"kind": "order-shuffle", "alpha": "1", "groups": groups}
    (tmp_path / "b.json").write_bytes(sealed(held | {"problem": spec}))
    with pytest.raises(ArtifactError) as caught:
        optdp.verify(tmp_path / "b.json")
    assert "kind must be 'single-lte' here" in str(caught.value)
    assert "9f3b" not in str(caught.value)


@pytest.mark.parametrize("key", NAMING)
@pytest.mark.parametrize(
    "text",
    [
        f"{SECRET}\n", f"x\n{SECRET}\n", f"x\n1\n{SECRET}\n", f"x,x\n{SECRET}\n", f"from,to\n0,1\n{SECRET}\n",
        f'["{SECRET}"]', f'{{"{SECRET}": 1}}', f'[["{SECRET}"]]', f'"{SECRET}"',
        f'{{"n": "{SECRET}", "groups": [[0]]}}',
        f"0.5,0.5\n{SECRET}\n", f"{SECRET}\n0,1\n", f'x\n"{SECRET}',
    ],
    ids=map(str, range(13)),
)  # fmt: skip
def test_what_stands_in_a_file_is_not_shown(key: str, text: str, home: Path, call: Callable[..., Done]) -> None:
    (home / "named").write_text(text)
    (home / "p.toml").write_text(named(NAMING[key], "named"))
    command: tuple[Any, ...] = ("curve", home / "p.toml", "--out", home / "c.csv")
    done = call(*command) if key == "series" else call("solve", home / "p.toml", "--json")
    said = done.err + done.out
    if done.code:
        assert done.code == 2
        assert len(done.err.strip().splitlines()) == 1
        assert "named" in said or "row" in said or "group" in said
    for piece in ("x:0:0", "9f3b", "❌"):
        assert piece not in said, said


def test_what_stands_in_the_groups_of_an_order_is_not_shown(home: Path, call: Callable[..., Done]) -> None:
    (home / "g.json").write_text("[[0, 1], [1, 2]]")
    for key, name in (("points", "x.csv"), ("file", "g.json")):
        (home / "p.toml").write_text(named(NAMING[key], name))
        before = (home / name).read_text()
        assert call("solve", home / "p.toml", "--out", home / "order.json").code == 0
        for text in (f"x\n{SECRET}\n", f"{SECRET}\n", f'["{SECRET}"]', f'[["{SECRET}"]]', f'{{"{SECRET}": 1}}'):
            (home / name).write_text(text)
            done = call("verify", home / "order.json")
            assert done.code == 2
            with pytest.raises(Refused) as caught:
                recheck(home / "order.json")
            for piece in ("x:0:0", "9f3b"):
                assert piece not in done.err + str(caught.value)
        (home / name).write_text(before)
