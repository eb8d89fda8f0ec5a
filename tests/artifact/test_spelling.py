"""No byte of a file may be another, even where its content stays the same."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optdp import MultiLTE, Population, SingleLTE, solve
from optdp.artifact import open_artifact
from optdp.errors import ArtifactError
from optdp.loading import load
from optdp.order.problem import OrderShuffle
from optdp.recheck import Refused, recheck
from optdp.single.format import from_json, to_json
from tests.shared import shared_solution

SPACES = (b" ", b"\t", b"\n", b"\r")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan and an order."""
    folder = tmp_path_factory.mktemp("spelled")
    shared_solution(MultiLTE([Population.binomial(2, "0.5")] * 2, "1", method="joint")).save(folder / "plan")
    (folder / "groups.json").write_text("[[0, 1, 2], [2, 3]]")
    (folder / "order.toml").write_text(
        'kind = "order-shuffle"\nalpha = "1"\nordering = "rcm"\n[groups]\nfile = "groups.json"\n'
    )
    problem = load(folder / "order.toml")
    assert isinstance(problem, OrderShuffle)
    solve(problem).save(folder / "order.json")
    return folder


def single() -> bytes:
    return to_json(solve(SingleLTE(Population.binomial(1, "0.5"), "1")).artifact())


def outside_strings(data: bytes) -> list[int]:
    """The places before which white space changes nothing but the bytes."""
    inside, found = False, []
    for place, sign in enumerate(data):
        if not inside and (
            place == 0 or data[place - 1 : place + 1].strip(b' \n,:[]{}"') != data[place - 1 : place + 1]
        ):
            found.append(place)
        inside ^= sign == ord('"')  # no string of these files has a quote in it
    return [*found, len(data)]


def respelled(data: bytes) -> list[bytes]:
    """The same content in other bytes: a space more or less at every place, other escapes, other keys' order."""
    content, found = json.loads(data), []
    for number, place in enumerate(outside_strings(data)):
        found.append(data[:place] + SPACES[number % 4] + data[place:])
    found += [data[:i] + data[i + 1 :] for i, sign in enumerate(data) if sign in b" \n"]
    found += [data[:i] + b"\t" + data[i + 1 :] for i, sign in enumerate(data) if sign in b" \n"]
    found += [data.replace(b"format", b"f\\u006frmat", 1), data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data]
    same = []
    for changed in found:
        try:
            same += [changed] if json.loads(changed) == content else []
        except ValueError:
            continue
    assert len(same) > 50
    return same


def refused(data: bytes, read: Callable[[bytes], Any]) -> str:
    with pytest.raises(ArtifactError) as caught:
        read(data)
    return str(caught.value)


def test_a_single_table_in_other_bytes_is_refused() -> None:
    data = single()
    from_json(data)
    for changed in respelled(data):
        refused(changed, from_json)
    assert "Every byte" in refused(data[:-1], from_json)


def test_plans_and_orders_in_other_bytes_are_refused(home: Path) -> None:
    places: dict[Path, Callable[[], Any]] = {
        home / "plan" / "plan.json": lambda: open_artifact(home / "plan"),
        home / "order.json": lambda: open_artifact(home / "order.json"),
    }
    for path, read in places.items():
        data = path.read_bytes()
        read()
        for changed in (*respelled(data)[::7], data[:-1], data + b"\n"):
            path.write_bytes(changed)
            with pytest.raises(ArtifactError):
                read()
            with pytest.raises(Refused):
                recheck(home / "plan" if path.name == "plan.json" else path)
        path.write_bytes(data)


def test_what_another_printer_of_json_writes_is_refused(home: Path, tmp_path: Path) -> None:
    """Pretty or on one line, by both checkers: in one helpful line."""
    ways: list[dict[str, Any]] = [
        {}, {"indent": 2}, {"indent": "\t"}, {"indent": 4, "sort_keys": True}, {"separators": (",", ":")},
        {"indent": 0}, {"ensure_ascii": False},
    ]  # fmt: skip
    (tmp_path / "groups.json").write_bytes((home / "groups.json").read_bytes())
    for data in (single(), (home / "order.json").read_bytes()):
        for way in ways:
            path = tmp_path / "a.json"
            path.write_bytes(json.dumps(json.loads(data), **way).encode() + b"\n")
            if path.read_bytes() == data:  # an order is compact
                continue
            with pytest.raises(ArtifactError, match=r"Every byte .* one that another tool has reformatted"):
                open_artifact(path)
            with pytest.raises(Refused, match="Every byte must be as optdp wrote it"):
                recheck(path)


def test_spelling_takes_no_more_memory_than_the_file() -> None:
    """A file that begins as if it were indented by much, and nests much."""
    document = json.loads(single())
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    document["provenance"] = {"x": [deep] * 5000}
    body = {key: value for key, value in document.items() if key != "sha256"}
    document["sha256"] = hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    text = json.dumps(document, separators=(",", ":")).encode()
    wrong = b"{\n        " + text[1:]
    tracemalloc.start()
    assert "Every byte" in refused(wrong, from_json)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60 * len(wrong)
