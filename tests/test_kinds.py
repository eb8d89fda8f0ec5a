"""A kind is known in one place: whoever adds one adds a room and a line, and everything else works."""

from __future__ import annotations

import ast
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import optdp
from optdp.cli.main import main
from optdp.kinds import KINDS, find, problem_class
from optdp.loading import load_file, schema
from optdp.outcome import Outcome
from optdp.sweeps.curve import sweep as curve
from tests.command_line import Done
from tests.toy import TOY, Toy

ROOT = Path(optdp.__file__).parent
ROOMS = {name: kind.problem.split(".")[1] for name, kind in KINDS.items()}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(KINDS, "toy", TOY)
    path = tmp_path / "toy.toml"
    path.write_text('kind = "toy"\ntitle = "a toy"\nsize = 21\n[sweep]\nover = "size"\nvalues = [1, 2, 5]\n')
    return path


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(*args: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["optdp", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        return Done(int(end.value.code or 0), shown.out, " ".join(shown.err.split()))

    return run


def test_a_new_kind_is_solved_shown_swept_and_drawn(toy: Path, tmp_path: Path, call: Callable[..., Done]) -> None:
    problem = optdp.load(toy)
    assert problem == Toy(21)
    assert optdp.solve(problem).value == 42
    done = call("solve", toy)
    assert (done.code, "twice" in done.out, "42" in done.out) == (0, True, True)
    assert json.loads(call("solve", toy, "--json").out)["value"] == 42
    assert "twice a number" in call("kinds").out
    assert [row["value"] for row in optdp.sweep(toy, {"size": [3, 4]}, workers=0)] == [6, 8]
    assert curve(load_file(toy)).lines == {"value": (2.0, 4.0, 10.0)}
    assert call("curve", toy, "--out", tmp_path / "c.csv").code == 0
    assert "Toy" in json.dumps(schema())


def test_what_a_new_kind_cannot_do_is_said(toy: Path, tmp_path: Path, call: Callable[..., Done]) -> None:
    assert "has no tables to write" in call("solve", toy, "--out", tmp_path / "x.json").err
    assert (
        "compare is for single-lte, multi-lte, metric-shuffle and order-shuffle. Found kind toy."
        in call("compare", toy).err
    )
    toy.write_text('kind = "toy"\nsize = 1\nweight = 2\n')
    assert "Unknown key 'weight'" in call("solve", toy).err


def test_the_solver_shows_its_log(capfd: pytest.CaptureFixture[str]) -> None:
    problem = optdp.SingleLTE(optdp.Population.binomial(12, "0.3"), epsilon=1, tail="none")
    optdp.solve(problem)
    assert "HiGHS" not in "".join(capfd.readouterr())
    optdp.solve(problem, verbose=True)
    assert "HiGHS" in capfd.readouterr().err


@pytest.mark.parametrize("name", KINDS)
def test_every_home_is_there(name: str) -> None:
    kind = KINDS[name]
    for ability in ("problem", "solve", "target", "run", "measure", "compare", "compared", "point"):
        if getattr(kind, ability):
            assert callable(find(kind, ability))
            assert ability in ("measure", "compare", "compared") or f"optdp.{ROOMS[name]}." in getattr(kind, ability)
    assert problem_class(kind).kind == name


@pytest.mark.parametrize("name", KINDS)
def test_problems_are_declared_once(name: str) -> None:
    """What Python takes and what a file takes are the same entries, and every entry is told to be one or is not."""
    known = attrs.fields(problem_class(KINDS[name]))
    assert known
    assert "__init__" not in ast.dump(ast.parse(Path(ROOT, *find_module(name)).read_text())).split("ClassDef")[0]
    assert pickle.loads(pickle.dumps(problem_class(KINDS[name]))) is problem_class(KINDS[name])


def find_module(name: str) -> list[str]:
    *path, last = KINDS[name].problem.partition(":")[0].removeprefix("optdp.").split(".")
    return [*path, f"{last}.py"]


def test_nobody_else_asks_what_kind_it_is() -> None:
    """No isinstance on a problem or a solution outside the room of its kind, and no list of kinds."""
    classes = {problem_class(kind).__name__: ROOMS[name] for name, kind in KINDS.items()}
    for kind in KINDS.values():
        find(kind, "solve")  # its solution is known then
    classes |= {one.__name__: one.__module__.split(".")[1] for one in every(Outcome) if one.__module__ != "tests.toy"}
    assert len(classes) > 2 * len(KINDS) - 2
    asked = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in calls("isinstance")
        for name in ast.walk(node.args[1])
        if isinstance(name, ast.Name) and name.id in classes and path.relative_to(ROOT).parts[0] != classes[name.id]
    ]
    assert not asked
    listing = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
        if len({node.value for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Constant) and node.value in ROOMS}) > 1
    ]  # fmt: skip
    assert set(listing) <= {
        "amplification/__init__.py",
        "amplification/problem.py",
        "shuffle/__init__.py",
        "recheck/devices.py",
        "recheck/shuffle.py",
        "recheck/single.py",
    }


def every(base: type[Any]) -> set[type[Any]]:
    return {base} | {made for below in base.__subclasses__() for made in every(below)}


def calls(name: str) -> Iterator[tuple[Path, ast.Call]]:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield path, node
