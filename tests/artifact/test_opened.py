"""Every command reads each file once, parses it once, and recomputes its claims once; other kinds are refused."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import optdp.cli.main
from optdp import Ledger, MultiLTE, Population, SingleLTE, solve
from optdp.artifact import Opened, OpenedMatrix, OpenedOrder, OpenedParty, OpenedPlan, open_artifact
from optdp.errors import ArtifactError
from optdp.loading import load
from optdp.order import format as orders
from optdp.plan import format as plans
from optdp.single import verify as singles
from tests.shared import shared_solution

_watched: list[Counter[str]] = []
"""The counter that notes which files are opened, if anybody counts."""


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched and event == "open" and isinstance(arguments[0], str | os.PathLike):
        _watched[0][os.path.realpath(arguments[0])] += 1


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("opened")))
    solve(SingleLTE(Population.binomial(8, "0.5"), "0.5")).save(folder / "table.json")
    shared_solution(MultiLTE([Population.binomial(3, "0.5"), Population.binomial(2, "0.4")], "1", method="joint")).save(
        folder / "plan"
    )
    few = Population.binomial(2, "0.5")
    shared_solution(MultiLTE([few, few], "0.8", method="seeded")).save(folder / "seeded")
    shared_solution(MultiLTE([few, few, few], "0.8", method="inside")).save(folder / "inside")
    (folder / "groups.json").write_text('{"n":4,"groups":[[0,1,2],[2,3]]}')
    (folder / "order.toml").write_text(
        'kind = "order-shuffle"\nalpha = "1"\nordering = "rcm"\n[groups]\nfile = "groups.json"\n'
    )
    solve(load(folder / "order.toml")).save(folder / "order.json")  # type: ignore[call-overload]
    (folder / "answers.csv").write_text("y\n1\n0\n1\n1\n")
    return folder


class Counted:
    """How often each file was opened and parsed, and how often claims were recomputed."""

    def __init__(self, files: list[Path]) -> None:
        self.texts = {path.read_text(): path.name for path in files}
        self.opened: Counter[str] = Counter()
        self.parsed: Counter[str] = Counter()
        self.verified = 0


@pytest.fixture(scope="module", autouse=True)
def _hook() -> None:
    sys.addaudithook(_note)


@pytest.fixture
def counted(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    found = Counted([home / name for name in FILES])
    loads = json.loads

    def parse(text: Any, *more: Any, **options: Any) -> Any:
        found.parsed[found.texts.get(text if isinstance(text, str) else text.decode(), "another")] += 1
        return loads(text, *more, **options)

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def measure(*given: Any, **options: Any) -> Any:
            found.verified += 1
            return real(*given, **options)

        return measure

    monkeypatch.setattr(json, "loads", parse)
    for room, name in ((singles, "certify"), (plans, "certify_tables"), (orders, "measured")):
        monkeypatch.setattr(room, name, counting(getattr(room, name)))
    _watched.append(found.opened)
    yield found
    _watched.clear()


PLAN, SEEDED, INSIDE = (
    (f"{folder}/plan.json", *(f"{folder}/party-{i}.json" for i in range(parties)))
    for folder, parties in (("plan", 2), ("seeded", 2), ("inside", 3))
)
ORDER = ("order.json", "groups.json")
FILES = ("table.json", *PLAN, *SEEDED, *INSIDE, *ORDER)
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], int]] = {
    "verify": (("verify", "table.json"), FILES[:1], 1),
    "explain": (("verify", "table.json", "--explain"), FILES[:1], 1),
    "sample": (("sample", "table.json", "-x", "3"), FILES[:1], 1),
    "export": (("export", "table.json", "--to", "c", "-o", "OUT"), FILES[:1], 1),
    "export npz": (("export", "table.json", "--to", "npz", "-o", "OUT"), FILES[:1], 1),
    "report": (("report", "table.json", "-o", "OUT"), FILES[:1], 1),
    "audit": (("audit", "table.json", "-n", "100"), FILES[:1], 1),
    "sign": (("sign", "table.json", "-k", "OUT", "--create-key"), FILES[:1], 1),
    "plan: verify": (("verify", "plan"), PLAN, 1),
    "plan: explain": (("verify", "plan", "--explain"), PLAN, 1),
    "plan: export": (("export", "plan", "--to", "python", "-o", "OUT"), PLAN, 1),
    "plan: report": (("report", "plan", "-o", "OUT"), PLAN, 1),
    "plan: audit": (("audit", "plan", "-n", "100"), PLAN, 1),
    "plan: audit a command": (("audit", "plan", "-n", "100", "--command", "echo {party}"), PLAN, 1),
    "plan: sign": (("sign", "plan", "-k", "OUT", "--create-key"), PLAN, 1),
    "party: sample": (("sample", "plan/party-0.json", "-x", "1"), PLAN[1:2], 0),
    "party: export": (("export", "plan/party-0.json", "--to", "js", "-o", "OUT"), PLAN[1:2], 0),
    "party: audit": (("audit", "plan/party-0.json", "-n", "100"), PLAN[1:2], 0),
    "party: aggregate": (
        ("aggregate", "plan", "--party", "0", "-x", "1", "--key", "none", "--run", "r", "--parties", "none"),
        PLAN,
        1,
    ),
    **{
        f"{folder}: {' '.join((command, *more[:1]))}": ((command, folder, *more), files, 1)
        for folder, files in (("seeded", SEEDED), ("inside", INSIDE))
        for command, *more in (
            ("verify",),
            ("verify", "--explain"),
            ("report", "-o", "OUT"),
            ("audit", "-n", "100"),
        )
    },
    "ledger": (("ledger", "add", "LEDGER", "table.json"), FILES[:1], 1),
    "plan: ledger": (("ledger", "add", "LEDGER", "plan"), PLAN, 1),
    "order: verify": (("verify", "order.json"), ORDER, 1),
    "order: sign": (("sign", "order.json", "-k", "OUT", "--create-key"), ORDER, 1),
    "order: report": (("report", "order.json", "-o", "OUT"), ORDER, 1),
    "order: shuffle": (("shuffle", "order.json", "-d", "answers.csv", "-c", "y", "-o", "OUT"), ORDER, 1),
}
"""The command, the files that it reads, and how often it must recompute claims."""


@pytest.mark.parametrize("name", COMMANDS)
def test_each_file_is_read_parsed_and_verified_once(
    name: str, home: Path, counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, files, times = COMMANDS[name]
    if command[0] == "sign":
        pytest.importorskip("cryptography")
    monkeypatch.chdir(home)
    Ledger.create(tmp_path / "ledger.jsonl", 4)
    places = {"OUT": str(tmp_path / "out"), "LEDGER": str(tmp_path / "ledger.jsonl")}
    given = [places.get(part, part) for part in command]
    monkeypatch.setattr(sys, "argv", ["optdp", "--quiet", *given])
    with pytest.raises(SystemExit) as ended:
        optdp.cli.main.main()
    refused = {
        "party: aggregate": 2,
        "plan: audit a command": 2,
        "ledger": 1,
        "plan: ledger": 1,
    }  # after the files were opened
    assert ended.value.code == refused.get(name, 0)
    names = {str(home / file): file for file in FILES}
    assert {names[path]: count for path, count in counted.opened.items() if path in names} == dict.fromkeys(files, 1)
    once = {Path(file).name: 1 for file in files}
    assert {file: count for file, count in counted.parsed.items() if file != "another"} == once
    assert counted.verified == times


def test_what_it_is_and_what_it_claims(home: Path) -> None:
    kinds: dict[str, type[Opened]] = {
        "table.json": OpenedMatrix, "plan": OpenedPlan, "plan/party-1.json": OpenedParty, "order.json": OpenedOrder,
    }  # fmt: skip
    for name, kind in kinds.items():
        found = open_artifact(home / name)
        assert type(found) is kind
        document = json.loads((home / name / "plan.json" if name == "plan" else home / name).read_bytes())
        assert (found.sha256, found.claim) == (document["sha256"], document["claim"])
        assert found.verified is found.verified
        assert open_artifact(found, kind) is found
        for other in set(kinds.values()) - {kind}:
            with pytest.raises(ArtifactError, match=f"is {found.noun}.*Give {other.noun}"):
                open_artifact(home / name, other)
            with pytest.raises(ArtifactError, match=f"is {found.noun}"):
                open_artifact(found, other)
    assert [path.name for path in open_artifact(home / "plan").files] == ["plan.json", "party-0.json", "party-1.json"]
    assert [path.name for path in open_artifact(home / "order.json").files] == ["order.json", "groups.json"]
    with pytest.raises(ArtifactError, match="Give the plan's folder"):
        open_artifact(home / "plan" / "plan.json")
