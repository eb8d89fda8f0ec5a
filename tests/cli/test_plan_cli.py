"""Plans of several entities on the command line, and the secure sum among real processes."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optdp import MultiLTE, Population, solve
from tests.command_line import in_process
from tests.loopback import free_addresses
from tests.spelling import as_written

ROOT = Path(__file__).resolve().parents[2]
needs_mpyc = pytest.mark.skipif(not importlib.util.find_spec("mpyc"), reason="the secure sum needs MPyC")

HEAD = 'kind = "multi-lte"\nepsilon = "0.5"\n'
ONE = '[[parties]]\nkind = "binomial"\nn = 4\np = "0.5"\n'
OTHER = '[[parties]]\nkind = "binomial"\nn = 3\np = "0.5"\n'
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
Done = subprocess.CompletedProcess[str]


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
    (folder / "two.toml").write_text(HEAD + ONE + OTHER)
    done = optdp("solve", folder / "two.toml", "--out", folder / "two")
    assert done.returncode == 0, done.stderr
    assert "party-0.json" not in done.stderr
    assert "2 parties, 2 surely honest" in done.stdout
    assert "2 party files" in done.stdout
    assert "belief about one person" in done.stdout
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
    "units": (HEAD + ONE + 'unit = "e-mails"\n' + OTHER + 'unit = "days"\n', "one unit"),
    "one unit": (HEAD + ONE + 'unit = "e-mails"\n' + OTHER, "one unit"),
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
        ("solve", problem, "--backend", "cvxpy:CLARABEL", "--out", tmp_path / "new"),
    ]
    expected = ("folder for a plan", "other files", "other files", "folder for a plan", "can be written", "highs")
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


def listening(address: str, within: float = 20.0) -> bool:
    """Whether somebody listens there soon; a connection that says nothing does no harm."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", int(address.split(":")[1]))) == 0:
                return True
        time.sleep(0.05)
    return False


class Parties:
    """`optdp aggregate` as processes, all of which are gone afterwards."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, plan: Path, party: int, value: int, addresses: Sequence[str], *more: object) -> int:
        command = [
            sys.executable, "-m", "optdp", "aggregate", str(plan), "--party", str(party), "--input", str(value),
            "--parties", ",".join(addresses), *map(str, more),
        ]  # fmt: skip
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT, cwd=ROOT,
        )  # fmt: skip
        self.processes.append(process)
        return len(self.processes) - 1

    def end(self, which: int, within: float = 45.0) -> Done:
        process = self.processes[which]
        stdout, stderr = process.communicate(timeout=within)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture
def parties() -> Iterator[Parties]:
    crew = Parties()
    yield crew
    for process in crew.processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


@needs_mpyc
@pytest.mark.parametrize(("name", "inputs"), [("two", [2, 3]), ("three", [1, 2, 0])])
def test_everybody_prints_the_same_sum(
    home: Path, parties: Parties, tmp_path: Path, name: str, inputs: list[int]
) -> None:
    """Each party has a folder with nothing but its own file."""
    addresses = free_addresses(len(inputs))
    for i, value in enumerate(inputs):
        own = tmp_path / f"home-{i}"
        own.mkdir()
        shutil.copy(home / name / f"party-{i}.json", own)
        parties.start(own, i, value, addresses, "--timeout", 40, *(["--json"] if i == 0 else []))
    answers = [parties.end(i) for i in range(len(inputs))]
    for answer in answers:
        assert answer.returncode == 0, answer
        assert answer.stderr == ""
    figures = json.loads(answers[0].stdout)
    assert figures.keys() == {"party", "aggregate", "average", "plan"}
    assert figures["plan"] == json.loads((home / name / "plan.json").read_text())["plan"]
    assert {int(answer.stdout) for answer in answers[1:]} == {figures["aggregate"]}


def check_failure(answer: Done, code: int, *words: str) -> None:
    assert answer.returncode == code, answer
    assert answer.stdout == ""
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
    for word in words:
        assert word in answer.stderr, answer.stderr


@needs_mpyc
def test_a_party_that_never_comes(home: Path, parties: Parties) -> None:
    addresses = free_addresses(3)
    for i in (0, 1):
        parties.start(home / "three", i, 1, addresses, "--timeout", 3)
    for i in (0, 1):
        check_failure(parties.end(i), 3, "party 2", "within 3 seconds")


@needs_mpyc
def test_a_party_that_is_killed(home: Path, parties: Parties) -> None:
    addresses = free_addresses(3)
    for i in (0, 1):
        parties.start(home / "three", i, 1, addresses, "--timeout", 40)
    assert listening(addresses[0])
    assert listening(addresses[1])
    time.sleep(1.5)  # the two have met
    parties.processes[1].send_signal(signal.SIGKILL)
    check_failure(parties.end(0, 30), 3, "party 1", "stopped, or its connection was lost")
    assert parties.end(1).returncode == -signal.SIGKILL


@needs_mpyc
def test_a_file_of_another_plan(home: Path, parties: Parties) -> None:
    addresses = free_addresses(2)
    parties.start(home / "two", 0, 2, addresses, "--timeout", 40)
    parties.start(home / "other", 1, 2, addresses, "--timeout", 40)
    for i in (0, 1):
        check_failure(parties.end(i), 2, f"party {1 - i} has another plan", "before any share is sent")


@needs_mpyc
def test_bad_arguments(home: Path, tmp_path: Path) -> None:
    """No message says the input."""
    plan, pair, far = home / "two", "localhost:7001,localhost:7002", "7" * 7
    shutil.copy(plan / "party-1.json", tmp_path / "party-0.json")
    cases: list[tuple[tuple[object, ...], int, str]] = [
        ((plan, "--party", 0, "--input", 3, "--parties", "localhost:7001"), 2, "2 addresses"),
        ((plan, "--party", 0, "--input", 3, "--parties", pair + ",localhost:7003"), 2, "2 addresses"),
        ((plan, "--party", 0, "--input", far, "--parties", pair), 2, "0..4"),
        ((plan, "--party", 1, f"--input=-{far}", "--parties", pair), 2, "0..3"),
        ((plan, "--party", 2, "--input", 3, "--parties", pair), 2, "party-2.json"),
        ((plan, "--party", 0, "--input", 3, "--parties", "localhost:7001,localhost:7001"), 2, "address of its own"),
        ((plan, "--party", 0, "--input", 3, "--parties", "example.org:7001,localhost:7002"), 2, "loopback"),
        ((plan, "--party", 0, "--input", 3, "--parties", pair, "--timeout", "0"), 2, "above 0"),
        ((tmp_path, "--party", 0, "--input", 3, "--parties", pair), 2, "file of party 1, not of party 0"),
        ((tmp_path / "none", "--party", 0, "--input", 3, "--parties", pair), 2, "cannot read"),
    ]
    for done, (_, code, words) in zip(together(*(("aggregate", *args) for args, _, _ in cases)), cases, strict=True):
        check_refusal(done, code, words)
        assert far not in done.stderr


# ---------------------------------------------------------------------- the law of the sum

WORKER = """
import json, sys
from optdp.artifact import open_artifact
from optdp.plan.aggregate import join

for line in sys.stdin:
    job = json.loads(line)
    runs, member = job.pop("runs"), open_artifact(job.pop("file")).member
    for turn in range(runs):
        job["addresses"] = job["pairs"][turn % len(job["pairs"])]
        found = join(member, **{key: value for key, value in job.items() if key != "pairs"})
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
    solve(MultiLTE([Population.binomial(2, "0.5"), Population.binomial(3, "0.4")], "1")).save(plan)
    law = exact_law(plan, inputs)
    assert max(law.values()) < Fraction(9, 10)
    assert sum(law.values()) == 1
    pairs = [free_addresses(2) for _ in range(4)]
    processes = []
    try:
        for i, value in enumerate(inputs):
            process = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                env=ENVIRONMENT, cwd=ROOT,
            )  # fmt: skip
            processes.append(process)
            job = {"file": str(plan / f"party-{i}.json"), "value": value, "pairs": pairs, "timeout": 30, "runs": RUNS}
            assert process.stdin is not None
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.close()
        sums = [[int(line) for line in read_lines(process, RUNS, 60)] for process in processes]
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
