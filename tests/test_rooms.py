"""The floor plan: imports go downwards, without a cycle, and rooms do not reach up."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import optdp

ROOT = Path(optdp.__file__).parent
FLOORS = (
    {"errors"},
    {"work", "library", "extras"},
    {"html", "objects", "sheet", "kind"},
    {"pictures"},
    {"numbers"},
    {"outcome", "programs", "files"},
    {"mechanism", "people"},
    {"single", "amplification", "order"},
    {"plan", "shuffle"},
    {"kinds"},
    {"loading"},
    {"artifact", "templates"},
    {"audit", "bridges", "export", "ledger", "report", "sweeps"},
    {"comparison"},
    {"cli"},
    {"__main__", "optdp"},
)
"""From the ground up; what is on one floor does not know of each other."""
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


@cache
def imports() -> list[tuple[str, str, bool]]:
    """Who imports whom, and whether only when it is needed; what is only for types does not count."""
    names = {path: module_of(path) for path in ROOT.rglob("*.py")}
    known, every = set(names.values()), []
    for path, name in names.items():
        tree = ast.parse(path.read_text())
        typing = {
            inner for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }  # fmt: skip
        for node in ast.walk(tree):
            if node in typing:
                continue
            found: list[str] = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found = [f"{node.module}.{a.name}" if f"{node.module}.{a.name}" in known else node.module
                         for a in node.names]  # fmt: skip
            every += [(name, other, node.col_offset > 0) for other in found if other in known]
    return every


def module_of(path: Path) -> str:
    return ".".join(("optdp", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def room_of(module: str) -> str:
    return module.split(".")[1] if module != "optdp" else "optdp"


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(module_of(path)) for path in ROOT.rglob("*.py")} - {"recheck"}
    assert rooms == FLOOR.keys(), "say in FLOORS where a new room stands"


def test_imports_go_downwards() -> None:
    wrong = {
        (one.removeprefix("optdp."), other.removeprefix("optdp."))
        for one, other, _ in imports()
        if room_of(one) != room_of(other) and "recheck" not in one + other and other != "optdp"
        and FLOOR[room_of(other)] >= FLOOR[room_of(one)]
    }  # fmt: skip
    assert not wrong


def test_there_is_no_cycle() -> None:
    graph = nx.DiGraph((one, other) for one, other, _ in imports() if other != "optdp" and one != "optdp")
    assert not list(nx.simple_cycles(graph))


def test_modules_are_imported_when_they_are_needed_in_few_places_only() -> None:
    late = {
        (one.removeprefix("optdp."), other.removeprefix("optdp."))
        for one, other, lazy in imports()
        if lazy and room_of(one) not in ("cli", "kinds") and "recheck" not in one
    }
    assert not late


def test_the_second_checker_stands_alone() -> None:
    """It imports the standard library, and nothing of optdp."""
    for path in (ROOT / "recheck").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 1 or (node.module or "").split(".")[0] in sys.stdlib_module_names | {"__future__"}


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import optdp", {"numpy", "scipy", "pydantic", "rich"}),
        ("from optdp import verify", {"highspy", "cvxpy", "networkx", "scipy"}),
    ],
)
def test_little_is_loaded(code: str, absent: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not absent & set(done.stdout.split())
