"""Plans of several entities on the command line, and the secure sum among real processes."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optdp import MultiLTE, Population, SeededMaps, solve
from optdp.plan.meeting.keys import read_key
from optdp.plan.meeting.roster import read_roster
from tests.command_line import in_process
from tests.loopback import made_keys, wait_for, write_places
from tests.spelling import as_written

ROOT = Path(__file__).resolve().parents[2]
needs_mpyc = pytest.mark.skipif(not importlib.util.find_spec("mpyc"), reason="the secure sum needs MPyC")

HEAD = 'kind = "multi-lte"\nepsilon = "0.5"\n'
ONE = '[[parties]]\nkind = "binomial"\nn = 4\np = "0.5"\n'
OTHER = '[[parties]]\nkind = "binomial"\nn = 3\np = "0.5"\n'
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
Done = subprocess.CompletedProcess[str]
Places = Callable[[int], Path]
UNVERIFIED = "the plan was not verified: some of its files are not in the folder"


def optdp(*args: object, cwd: Path = ROOT) -> Done:
    return in_process(*args, cwd=cwd)


def together(*commands: Sequence[object]) -> list[Done]:
    return [optdp(*command) for command in commands]


def check_refusal(done: Done, code: int, words: str) -> None:
    assert done.returncode == code, done
    assert words in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stdout == ""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `two.toml` and the plan `two` that the command line made of it, `three` and `other`."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "two.toml").write_text(HEAD + 'method = "joint"\n' + ONE + OTHER)
    done = optdp("solve", folder / "two.toml", "--out", folder / "two")
    assert done.returncode == 0, done.stderr
    assert "party-0.json" not in done.stderr
    assert "2 parties, 2 assumed honest" in done.stdout
    assert "2 party files" in done.stdout
    assert "teach about any person" in done.stdout
    people = [Population.binomial(2, "0.5"), Population.binomial(3, "0.4"), Population.binomial(2, "0.3")]
    solve(MultiLTE(people, "1", method="geometric")).save(folder / "three")
    solve(MultiLTE(people[:2], "2", method="geometric")).save(folder / "other")
    return folder


# ---------------------------------------------------------------------- solve, verify, sample


def test_figures(home: Path) -> None:
    plan = home / "two"
    verified = optdp("verify", plan, "--json")
    solved, shown = together(("solve", home / "two.toml", "--json"), ("verify", plan))
    for done in (solved, verified, shown):
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    figures = json.loads(solved.stdout)
    keys = {"mae", "baseline_mae", "lower_bound", "certified_epsilon"}
    assert keys | {"parties", "epsilon", "gap", "status", "honest", "seconds", "meaning"} <= figures.keys()
    assert 0 < figures["lower_bound"] <= figures["mae"] < figures["baseline_mae"]
    assert 0.49 < float(figures["certified_epsilon"]) <= 0.5
    assert len(figures["parties"]) == 2
    for party in figures["parties"]:
        assert keys | {"ordinary_epsilon"} <= party.keys()
        assert 0 <= party["lower_bound"] <= party["mae"]
        assert float(party["certified_epsilon"]) <= 0.5
    again = json.loads(verified.stdout)
    assert keys | {"parties", "plan", "lower_bound_proved"} <= again.keys()
    assert again["status"] == "verified"
    assert again["lower_bound_proved"]
    assert again["mae"] == pytest.approx(figures["mae"], rel=1e-3)
    assert again["baseline_mae"] == figures["baseline_mae"]
    assert again["plan"] == json.loads((plan / "plan.json").read_text())["plan"]
    assert [float(party["certified_epsilon"]) <= 0.5 for party in again["parties"]] == [True, True]
    assert "verified" in shown.stdout
    assert again["plan"] in shown.stdout


def test_a_party_file_alone(home: Path, tmp_path: Path) -> None:
    shutil.copy(home / "two" / "party-0.json", tmp_path)
    alone = tmp_path / "party-0.json"
    verified, exported, sampled, seeded, beyond, folder = together(
        ("verify", alone),
        ("export", alone, "--to", "csv", "--out", tmp_path / "a.csv"),
        ("sample", alone, "--input", 2, "--count", 20),
        ("sample", alone, "--input", 2, "--seed", 3, "--json"),
        ("sample", alone, "--input", 5),
        ("sample", home / "two", "--input", 1),
    )
    check_refusal(verified, 2, "party-0.json is one party's file of a plan, which is private only as a whole")
    assert exported.returncode == 0
    assert "private only inside the secure sum" in exported.stderr
    assert sampled.returncode == 0
    low, high = json.loads(alone.read_text())["outputs"]
    draws = [int(line) for line in sampled.stdout.split()]
    assert len(draws) == 20
    assert all(low <= draw <= high for draw in draws)
    assert "one party's report: private only inside the secure sum" in sampled.stderr
    assert "publish only one" in sampled.stderr
    assert seeded.returncode == 0
    assert json.loads(seeded.stdout)["private"] is False
    assert "not private" in seeded.stderr
    check_refusal(beyond, 2, "0..4")
    check_refusal(folder, 2, "is the folder of a plan. Give a noise matrix or one party's file of a plan")


def test_tampered_plans(home: Path, tmp_path: Path) -> None:
    """Exit 2 and the file's name for what is no plan; exit 1 for a plan whose digests fit and whose claim does not."""
    import hashlib

    def digest(value: Any) -> str:
        return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    copies = {name: shutil.copytree(home / "two", tmp_path / name) for name in ("missing", "swapped", "cut", "claim")}
    (copies["missing"] / "party-1.json").unlink()
    first, second = (copies["swapped"] / f"party-{i}.json" for i in (0, 1))
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    whole = (copies["cut"] / "plan.json").read_text()
    (copies["cut"] / "plan.json").write_text(whole[: len(whole) // 2])
    document = json.loads(whole)
    document.pop("sha256")
    document["claim"]["epsilon"] = "0.4"
    (copies["claim"] / "plan.json").write_bytes(as_written({**document, "sha256": digest(document)}))
    (tmp_path / "empty").mkdir()
    claim = optdp("verify", copies.pop("claim"))
    missing, swapped, cut, empty = together(*(("verify", copy) for copy in (*copies.values(), tmp_path / "empty")))
    check_refusal(missing, 2, "missing/party-1.json is missing: the plan has 2 parties")
    check_refusal(swapped, 2, "swapped/party-0.json: this is the file of party 1, not of party 0")
    check_refusal(cut, 2, "cut/plan.json")
    check_refusal(claim, 1, "The claim epsilon <= 0.4 does not hold")
    check_refusal(empty, 2, "empty/plan.json")


BAD: dict[str, tuple[str, str]] = {
    "no parties": (HEAD, "parties is missing"),
    "empty": (HEAD + "parties = []\n", "2 to 1000 populations"),
    "one party": (HEAD + ONE, "2 to 1000 populations"),
    "honest 0": (HEAD + "honest = 0\n" + ONE + OTHER, "1 to 2"),
    "honest 3": (HEAD + "honest = 3\n" + ONE + OTHER, "1 to 2"),
    "units": (HEAD + ONE + 'unit = "e-mails"\n' + OTHER + 'unit = "days"\n', "the same unit"),
    "one unit": (HEAD + ONE + 'unit = "e-mails"\n' + OTHER, "the same unit"),
    "f": (HEAD + "f = [1]\n" + ONE + OTHER, "one integer for each"),
    "unknown": (HEAD + 'colour = "red"\n' + ONE + OTHER, "colour"),
}


def test_bad_problems(tmp_path: Path) -> None:
    commands = []
    for name, (text, _) in BAD.items():
        (tmp_path / f"{name}.toml").write_text(text)
        commands.append(("solve", tmp_path / f"{name}.toml", "--out", tmp_path / "plan"))
    for done, (_, words) in zip(together(*commands), BAD.values(), strict=True):
        check_refusal(done, 2, words)
    assert not (tmp_path / "plan").exists()


def test_bad_targets(home: Path, tmp_path: Path) -> None:
    problem = home / "two.toml"
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    mixed = shutil.copytree(home / "two", tmp_path / "mixed")
    (mixed / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to(home / "two")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    commands = [
        ("solve", problem, "--out", tmp_path / "file"),
        ("solve", problem, "--out", tmp_path / "full"),
        ("solve", problem, "--out", mixed),
        ("solve", problem, "--out", tmp_path / "link"),
        ("solve", problem, "--out", tmp_path / "no" / "where"),
        ("solve", problem, "--backend", "cvxpy:NOBODY", "--out", tmp_path / "new"),
    ]
    expected = (
        "A plan is written to a folder",
        "other files",
        "other files",
        "A plan is written to a folder",
        "Cannot write to the folder",
        "highs",
    )
    for done, words in zip(together(*commands), expected, strict=True):
        check_refusal(done, 2, words)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "link", "mixed"]


def test_an_earlier_plan_is_replaced(home: Path, tmp_path: Path) -> None:
    target = shutil.copytree(home / "three", tmp_path / "plan")
    problem = tmp_path / "geometric.toml"
    problem.write_text(HEAD + 'method = "geometric"\n' + ONE + OTHER)
    done = optdp("solve", problem, "--out", target)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in target.iterdir()) == ["party-0.json", "party-1.json", "plan.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["geometric.toml", "plan"]
    assert optdp("verify", target).returncode == 0


# ---------------------------------------------------------------------- aggregate


@pytest.fixture(scope="module")
def keys(home: Path) -> Path:
    """A folder with three keys."""
    folder = home / "keys"
    folder.mkdir()
    made_keys(folder, 3)
    return folder


@pytest.fixture
def places(keys: Path, tmp_path: Path) -> Callable[[int], Path]:
    """A list of so many parties, at new ports."""
    return lambda m: write_places(tmp_path / f"parties-{m}.toml", [read_key(keys / f"party-{i}.pem") for i in range(m)])


SAYS_WHEN_IT_MEETS = (
    "import sys; from optdp.plan.meeting.meeting import Meeting as M; usual = M._compare\n"
    "def compare(self, peer, hello): usual(self, peer, hello); print('met', peer, file=sys.stderr, flush=True)\n"
    "M._compare = compare; from optdp.cli.main import main; main()"
)
"""The command line, which tells with which parties it has exchanged greetings."""


class Parties:
    """`optdp aggregate` as processes, all of which are gone afterwards."""

    def __init__(self, keys: Path, state: Path) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        self.keys, self.state = keys, state

    def start(
        self, plan: Path, party: int, value: int, places: Path, *more: object, program: Sequence[str] = ("-m", "optdp")
    ) -> int:
        state = self.state / f"state-{party}"
        command = [
            sys.executable, *program, "aggregate", str(plan), "--party", str(party), "--input", str(value),
            "--key", str(self.keys / f"party-{party}.pem"), "--run", "2026-11", "--parties", str(places),
            "--state", str(state), *map(str, more),
        ]  # fmt: skip
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT, cwd=ROOT,
        )  # fmt: skip
        self.processes.append(process)
        return len(self.processes) - 1

    def end(self, which: int, within: float = 250.0) -> Done:
        process = self.processes[which]
        stdout, stderr = process.communicate(timeout=within)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture
def parties(keys: Path, tmp_path: Path) -> Iterator[Parties]:
    crew = Parties(keys, tmp_path)
    yield crew
    for process in crew.processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


@needs_mpyc
@pytest.mark.parametrize(("name", "inputs"), [("two", [2, 3]), ("three", [1, 2, 0])])
def test_everybody_prints_the_same_sum(
    home: Path, parties: Parties, places: Places, tmp_path: Path, name: str, inputs: list[int]
) -> None:
    """Each party has a folder with nothing but its own file."""
    listed = places(len(inputs))
    for i, value in enumerate(inputs):
        own = tmp_path / f"home-{i}"
        own.mkdir()
        shutil.copy(home / name / f"party-{i}.json", own)
        parties.start(own, i, value, listed, "--timeout", 600, *(["--json"] if i == 0 else []))
    answers = [parties.end(i) for i in range(len(inputs))]
    for answer in answers:
        assert answer.returncode == 0, answer
    assert [answer.stderr.strip() for answer in answers] == ["", *[UNVERIFIED] * (len(inputs) - 1)]
    figures = json.loads(answers[0].stdout)
    assert figures.keys() == {"party", "aggregate", "average", "plan", "run", "plan_verified", "opened_before"}
    assert not figures["plan_verified"]
    assert figures["plan"] == json.loads((home / name / "plan.json").read_text())["plan"]
    assert {int(answer.stdout) for answer in answers[1:]} == {figures["aggregate"]}


@needs_mpyc
def test_a_common_word_is_agreed_on(parties: Parties, places: Places, tmp_path: Path) -> None:
    """The sum is one that some word gives; what is kept of an opened run is given again."""
    plan = solve(MultiLTE([Population.binomial(4, "0.5")] * 3, "0.5", method="seeded"))
    plan.save(tmp_path / "seeded")
    inputs, listed = [3, 0, 2], places(3)
    tables = [table for table in plan.tables if isinstance(table, SeededMaps)]
    possible = {
        sum(table.maps[table.choices[cell]][x] for table, x in zip(tables, inputs, strict=True))
        for cell in range(len(tables[0].cuts))
    }
    for i, value in enumerate(inputs):
        parties.start(tmp_path / "seeded", i, value, listed, "--timeout", 600)
    answers = [parties.end(i) for i in range(3)]
    assert [answer.returncode for answer in answers] == [0, 0, 0], answers
    (total,) = {int(answer.stdout) for answer in answers}
    assert total in possible
    again = parties.end(parties.start(tmp_path / "seeded", 1, 0, listed, "--timeout", 5))
    assert int(again.stdout) == total


def check_failure(answer: Done, code: int, *words: str) -> None:
    assert answer.returncode == code, answer
    assert answer.stdout == ""
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
    for word in words:
        assert word in answer.stderr, answer.stderr


@needs_mpyc
def test_a_party_that_never_comes(home: Path, parties: Parties, places: Places) -> None:
    listed = places(3)
    for i in (0, 1):
        parties.start(home / "three", i, 1, listed, "--timeout", 3)
    for i in (0, 1):
        check_failure(parties.end(i), 3, "party 2", "within 3 seconds")


@needs_mpyc
def test_a_party_that_is_killed(home: Path, parties: Parties, places: Places) -> None:
    listed = places(3)
    parties.start(home / "three", 0, 1, listed, "--timeout", 600)
    parties.start(home / "three", 1, 1, listed, "--timeout", 600, program=("-c", SAYS_WHEN_IT_MEETS))
    said = parties.processes[1].stderr
    assert said is not None
    assert said.readline() == "met 0\n"  # who is called greets first: so party 0 has met it
    parties.processes[1].send_signal(signal.SIGKILL)
    check_failure(parties.end(0), 3, "party 1", "stopped, or its connection was lost")
    assert parties.end(1).returncode == -signal.SIGKILL


@needs_mpyc
def test_a_party_that_is_told_to_end(home: Path, parties: Parties, places: Places, tmp_path: Path) -> None:
    listed = places(2)
    parties.start(home / "two", 0, 1, listed, "--timeout", 600)
    wait_for(read_roster(listed)[0].port)
    (record,) = (tmp_path / "state-0").iterdir()
    drawn = record.read_bytes()
    parties.processes[0].send_signal(signal.SIGTERM)
    check_failure(parties.end(0), 143, "ended by SIGTERM; what was drawn is recorded: start the same run again")
    assert record.read_bytes() == drawn


@needs_mpyc
def test_a_file_of_another_plan(home: Path, parties: Parties, places: Places) -> None:
    listed = places(2)
    parties.start(home / "two", 0, 2, listed, "--timeout", 600)
    parties.start(home / "other", 1, 2, listed, "--timeout", 600)
    for i in (0, 1):
        check_failure(parties.end(i), 2, f"party {1 - i} has another plan", "before any share is sent")


@needs_mpyc
def test_a_run_has_one_report_and_one_opening(home: Path, parties: Parties, places: Places, tmp_path: Path) -> None:
    """A run that failed is made again with the same report; another input is refused; an opened one meets nobody."""
    listed, state = places(2), tmp_path / "state-0"
    parties.start(home / "two", 0, 2, listed, "--timeout", 1)
    check_failure(parties.end(0), 3, "party 1")
    (record,) = state.iterdir()
    drawn = json.loads(record.read_text())
    assert (drawn["state"], drawn["run"], record.stat().st_mode & 0o777) == ("drawn", "2026-11", 0o600)
    parties.start(home / "two", 0, 3, listed, "--timeout", 1)
    check_failure(parties.end(1), 2, "was started with another input")
    assert json.loads(record.read_text()) == drawn
    for i, value in enumerate((2, 3)):
        parties.start(home / "two", i, value, listed, "--timeout", 600)
    answers = [parties.end(i) for i in (2, 3)]
    assert [answer.returncode for answer in answers] == [0, 0]
    opened = json.loads(record.read_text())
    assert (opened["state"], opened["report"], opened["aggregate"]) == ("opened", None, int(answers[0].stdout))
    parties.start(home / "two", 0, 2, listed, "--timeout", 1)  # the other one is not there
    again = parties.end(4)
    assert (again.returncode, again.stdout) == (0, answers[0].stdout)
    assert "was finished before; shown from the record" in again.stderr


@needs_mpyc
def test_a_run_is_recorded_in_a_ledger_once(home: Path, keys: Path, places: Places, tmp_path: Path) -> None:
    """Before anything is sent, at the ordinary epsilon of the party's own table; what is too much is not begun."""
    book, listed, state = tmp_path / "book.jsonl", places(2), tmp_path / "state"
    epsilon = Fraction(json.loads((home / "two" / "party-0.json").read_text())["claim"]["ordinary_epsilon"])
    total = str(float(epsilon * 3 / 2))
    assert optdp("ledger", "open", book, "--epsilon", total).returncode == 0

    def take_part(plan: Path, run: str) -> Done:
        return optdp("aggregate", plan, "--party", 0, "-x", 2, "--key", keys / "party-0.pem", "--run", run, "--parties",
                     listed, "--state", state, "--timeout", 0.5, "--ledger", book)  # fmt: skip

    wrong = keys / "party-1.pem"
    for odd in (
        ["--run", "a b"],
        ["--run", "r", "-x", 99],
        ["--run", "r", "--key", wrong],
        ["--run", "r", "--timeout", 0],
    ):
        given = {"--party": 0, "-x": 2, "--key": keys / "party-0.pem", "--parties": listed, "--state": state}
        given |= {"--timeout": 0.5, "--ledger": book} | dict(zip(odd[::2], odd[1::2], strict=True))
        refused = optdp("aggregate", home / "two", *(word for pair in given.items() for word in pair))
        assert refused.returncode == 2, refused
    assert json.loads(optdp("ledger", "show", book, "--json").stdout)["entries"] == []
    for _ in range(2):  # nobody else is there, and the second attempt costs nothing
        check_refusal(take_part(home / "two", "2026-11"), 3, "party 1")
        shown = json.loads(optdp("ledger", "show", book, "--json").stdout)
        assert len(shown["entries"]) == 1
        assert Fraction(shown["entries"][0]["epsilon"]) <= epsilon
    check_refusal(take_part(home / "two", "2026-12"), 1, "Nothing was recorded")
    assert len(list(state.iterdir())) == 1
    shutil.rmtree(state)  # without its record a second attempt draws another report
    check_refusal(take_part(home / "two", "2026-11"), 1, "Nothing was recorded")
    shutil.copy(home / "two" / "party-0.json", tmp_path)
    check_refusal(take_part(tmp_path, "2026-12"), 2, "--ledger needs the whole plan")


def test_party_key_refuses_a_host_that_no_list_may_have(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "[::]", "a b", "", 'x", port = 1}#'):
        check_refusal(optdp("party-key", "--out", tmp_path / "key.pem", "--host", host), 2, "where the others reach")
    assert list(tmp_path.iterdir()) == []


def test_party_key(tmp_path: Path) -> None:
    path = tmp_path / "party-0.pem"
    made, again = together(
        ("party-key", "--out", path, "--host", "office.example", "--port", 9007), ("party-key", "--out", path)
    )
    assert made.returncode == 0, made.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    line = made.stdout.strip().splitlines()[-1]
    found = tomllib.loads(f"parties = [\n{line}\n]")["parties"]
    assert found == [{"host": "office.example", "port": 9007, "fingerprint": read_key(path).fingerprint}]
    check_refusal(again, 2, "exists already. Choose another name")
    path.chmod(0o644)
    refused = optdp("aggregate", tmp_path, "--party", 0, "-x", 1, "--key", path, "--run", "r", "--parties", path)
    assert refused.returncode == 2


@needs_mpyc
def test_bad_arguments(home: Path, keys: Path, places: Places, tmp_path: Path) -> None:
    """No message says the input."""
    plan, two, three, far = home / "two", places(2), places(3), "7" * 7
    shutil.copy(plan / "party-1.json", tmp_path / "party-0.json")
    text = two.read_text()
    bad = {
        "twice": text.replace(read_key(keys / "party-1.pem").fingerprint, read_key(keys / "party-0.pem").fingerprint),
        "away": text.replace("localhost", "example.org"),
        "unknown": text.replace("port =", "door ="),
        "no toml": text + "]",
        "no key": text.replace('fingerprint = "', 'fingerprint = "x'),
    }
    for name, content in bad.items():
        (tmp_path / f"{name}.toml").write_text(content)
    shutil.copy(keys / "party-0.pem", tmp_path / "open.pem")
    (tmp_path / "open.pem").chmod(0o644)

    def given(party: int, value: object = 3, listed: Path = two, **more: object) -> tuple[object, ...]:
        options = {"key": keys / f"party-{party}.pem", "run": "r", "state": tmp_path / "state", "timeout": 1} | more
        return ("--party", party, f"--input={value}", "--parties", listed,
                *(part for name, option in options.items() for part in (f"--{name}", option)))  # fmt: skip

    cases: list[tuple[tuple[object, ...], int, str]] = [
        ((plan, *given(0, listed=three)), 2, "the 2 parties of the plan. Found 3"),
        ((plan, *given(0, far)), 2, "0..4"),
        ((plan, *given(1, f"-{far}")), 2, "0..3"),
        ((plan, *given(2)), 2, "party-2.json"),
        ((plan, *given(0, listed=tmp_path / "twice.toml")), 2, "a key of its own"),
        ((plan, *given(0, listed=tmp_path / "away.toml")), 2, "loopback"),
        ((plan, *given(0, listed=tmp_path / "unknown.toml")), 2, "host, port and fingerprint"),
        ((plan, *given(0, listed=tmp_path / "no toml.toml")), 2, "must be TOML"),
        ((plan, *given(0, listed=tmp_path / "no key.toml")), 2, "64 hexadecimal digits"),
        ((plan, *given(0, listed=tmp_path / "none.toml")), 2, "cannot read"),
        ((plan, *given(0, key=keys / "party-1.pem")), 2, "Found that of party 1"),
        ((plan, *given(0, key=keys / "party-2.pem")), 2, "not in the list"),
        ((plan, *given(0, key=two)), 2, "chmod 600"),
        ((plan, *given(0, key=tmp_path / "open.pem")), 2, "chmod 600"),
        ((plan, *given(0, run="a/b")), 2, "--run must be"),
        ((plan, *given(0, timeout=0)), 2, "above 0"),
        ((tmp_path, *given(0)), 2, "file of party 1, not of party 0"),
        ((tmp_path / "none", *given(0)), 2, "cannot read"),
    ]
    for done, (_, code, words) in zip(together(*(("aggregate", *args) for args, _, _ in cases)), cases, strict=True):
        check_refusal(done, code, words)
        assert far not in done.stderr


# ---------------------------------------------------------------------- the law of the sum

WORKER = """
import json, sys
from optdp.artifact import open_artifact
from optdp.plan.aggregate import join
from optdp.plan.meeting.keys import read_key
from optdp.plan.meeting.roster import read_roster

for line in sys.stdin:
    job = json.loads(line)
    runs, member = job.pop("runs"), open_artifact(job.pop("file")).member
    key, lists = read_key(job.pop("key")), [read_roster(path) for path in job.pop("lists")]
    for turn in range(runs):
        found = join(member, **job, run=f"run-{turn}", places=lists[turn % len(lists)], key=key)
        print(found.total, flush=True)
"""
RUNS = 150
ALARM = 1e-6
"""How often the test may fail by chance."""


def read_lines(process: subprocess.Popen[bytes], count: int, within: float) -> list[str]:
    assert process.stdout is not None
    end, data = time.monotonic() + within, b""
    while data.count(b"\n") < count:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"{data.count(bytes([10]))} of {count} sums within {within} s"
        more = os.read(process.stdout.fileno(), 65536)
        assert more, "the worker ended early"
        data += more
    return data.decode().split()


def exact_law(plan: Path, inputs: Sequence[int]) -> dict[int, Fraction]:
    """The law of the sum of independent draws from the rows of the inputs, from the text of the files."""
    law = {0: Fraction(1)}
    for i, x in enumerate(inputs):
        table = json.loads((plan / f"party-{i}.json").read_text())
        first, last = table["inputs"]
        row = table["weights"][min(max(x, first), last) - first]
        total: dict[int, Fraction] = {}
        for s, chance in law.items():
            for t, weight in row:
                total[s + t] = total.get(s + t, Fraction(0)) + chance * Fraction(weight, int(table["denominator"]))
        law = total
    return law


def tail(n: int, p: float, count: int) -> float:
    """How likely a binomial is so far from its mean, on the side where `count` is."""
    if p <= 0 or p >= 1:
        return float(count == n * p)
    chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    return sum(chances[count:]) if count > n * p else sum(chances[: count + 1])


@needs_mpyc
def test_the_law_of_the_sum(tmp_path: Path) -> None:
    """Every value and every initial range of values is as frequent as the rows say, by exact binomial tails."""
    plan, inputs = tmp_path / "plan", [0, 3]  # another pair of inputs would be noticed
    solve(MultiLTE([Population.binomial(2, "0.5"), Population.binomial(3, "0.4")], "1", method="joint")).save(plan)
    law = exact_law(plan, inputs)
    assert max(law.values()) < Fraction(9, 10)
    assert sum(law.values()) == 1
    keys = made_keys(tmp_path, 2)
    lists = [str(write_places(tmp_path / f"parties-{k}.toml", keys)) for k in range(4)]
    processes = []
    try:
        for i, value in enumerate(inputs):
            process = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                env=ENVIRONMENT, cwd=ROOT,
            )  # fmt: skip
            processes.append(process)
            job = {"file": str(plan / f"party-{i}.json"), "value": value, "lists": lists, "timeout": 200, "runs": RUNS,
                   "key": str(keys[i].path)}  # fmt: skip
            assert process.stdin is not None
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.close()
        sums = [[int(line) for line in read_lines(process, RUNS, 200)] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
            assert process.stdout is not None
            process.stdout.close()
    assert sums[0] == sums[1]
    assert len(set(sums[0])) > 1
    limit = ALARM / (4 * len(law))  # two sides, two kinds of events
    for s in law:
        assert tail(RUNS, float(law[s]), sums[0].count(s)) > limit
        below = float(sum(chance for t, chance in law.items() if t <= s))
        assert tail(RUNS, min(below, 1.0), sum(t <= s for t in sums[0])) > limit
    assert all(law.get(s, 0) > 0 for s in sums[0])
