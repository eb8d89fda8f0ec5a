"""The walks that docs/architecture.md tells are those that the commands take, step after step."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import optdp
from optdp.cli.main import main

ROOT = Path(optdp.__file__).parent
PAGE = ROOT.parent / "docs" / "architecture.md"
CLINIC = ROOT.parent / "problems" / "use-cases"
AMPLIFY = "amplify --randomizer k-rr --k 10 --eps0 2 --n 10000 --delta 1e-6"
NOT_HERE = {"single/core", "single/cuts", "single/chain", "amplification/catalogue", "amplification/counts"}
"""Of several engines the first that accepts is taken; other randomizers have bounds of their own."""


def walks() -> dict[str, list[list[str]]]:
    """What the page names for each command, step by step."""
    text = PAGE.read_text(encoding="utf-8").partition("## Walks")[2].partition("\n## ")[0]
    parts = re.split(r"^`optdp ([^`]+)`$", text, flags=re.MULTILINE)[1:]
    return {
        command: [named(line) for line in steps.splitlines() if re.match(r"\d\. ", line)]
        for command, steps in zip(parts[::2], parts[1::2], strict=True)
    }


def named(step: str) -> list[str]:
    """The modules and rooms that a step names; after `single/core` `pairs` is one of the same room."""
    found, room = [], ""
    for word in re.findall(r"`([a-z_/]+)(?:\.solve)?`", step):
        name = f"{room}/{word}" if "/" not in word and (ROOT / room / f"{word}.py").exists() and room else word
        assert (ROOT / name).is_dir() or (ROOT / f"{name}.py").exists(), f"the page names {name}, which is not there"
        room = name.rpartition("/")[0]
        found.append(name)
    return found


def visited(*arguments: object) -> list[str]:
    """The modules of which something is called, in the order of the first calls; not what runs on import."""
    prefix, seen, depth = f"{ROOT}/", dict[str, None](), 0

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        code = frame.f_code
        if code.co_name == "<module>":
            depth += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not depth and code.co_filename.startswith(prefix):
            seen.setdefault(code.co_filename.removeprefix(prefix).removesuffix(".py").removesuffix("/__init__"))

    sys.argv = ["optdp", *map(str, arguments)]
    sys.setprofile(look)
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.setprofile(None)
    assert not end.value.code
    return list(seen)


def test_the_walks_are_walked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["optdp"])
    monkeypatch.chdir(tmp_path)
    told = walks()
    commands = {
        "solve sick-leave.toml --out a.json": ("solve", "sick-leave", "--out", "a.json"),
        "verify a.json": ("verify", "a.json"),
        "export a.json --to python --out sampler": ("export", "a.json", "--to", "python", "--out", "sampler"),
        AMPLIFY: AMPLIFY.split(),
        "shuffle order.json --data survey.csv --column answer --out shuffled.csv": (
            "shuffle", "order.json", "--data", CLINIC / "staff-survey.csv", "--column", "would_recommend",
            "--out", "shuffled.csv", "--allow-outside",
        ),
    }  # fmt: skip
    assert commands.keys() < told.keys()
    optdp.solve(optdp.load_problem("staff-survey")).save("order.json")
    for command, arguments in commands.items():
        way = visited(*arguments)
        places = [[first(way, name) for name in step if name not in NOT_HERE] for step in told[command]]
        missing = {name for step in told[command] for name in step if first(way, name) == len(way)}
        assert missing <= NOT_HERE, (command, missing)
        begin = [step[0] for step in places]
        assert begin == sorted(begin), (command, begin)


def first(way: list[str], name: str) -> int:
    """When a module is first visited, or any of a room; at the end if never."""
    return next((place for place, one in enumerate(way) if f"{one}/".startswith(f"{name}/")), len(way))
