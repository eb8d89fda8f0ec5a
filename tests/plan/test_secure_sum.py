"""The secure sum between real processes: right sums, one error at every party when something is wrong, no hang."""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from optdp import ProblemError
from optdp.plan import secure_sum as module
from optdp.plan.secure_sum import secure_sum
from tests.loopback import free_addresses

if not importlib.util.find_spec("mpyc"):  # not imported here: MPyC would read the command line of pytest
    pytest.skip("the secure sum needs MPyC, which is not installed", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
PLAN = "0123456789abcdef" * 4
OTHER_PLAN = "fedcba9876543210" * 4
LARGE = 2**62

# One party: a job per line in, an answer per line out. `act` makes it fail at a certain place.
WORKER = """
import json, os, signal, sys, time
from optdp.plan import secure_sum as module
from optdp.errors import OptdpError

usual = module.Meeting.add
mpyc = module.load_mpyc()
split, degrees = mpyc.thresha.random_split, []
mpyc.thresha.random_split = lambda field, s, t, m: degrees.append(t) or split(field, s, t, m)
sys.argv = ["optdp", "aggregate", "--help", "-M3", "--VERSION"]

def acting(act):
    send = lambda *ignored: os.kill(os.getpid(), getattr(signal, act[0]))
    async def add(self, value):
        if act[1] == "sharing":
            send()
        self.rt.output = send
        return await usual(self, value)
    return add

print("{}", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    act = job.pop("act", None)
    module.Meeting.add = acting(act) if act else usual
    try:
        answer = {"sum": module.secure_sum(**job), "degrees": degrees}
    except OptdpError as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    print(json.dumps(answer), flush=True)
    degrees.clear()
"""


class Party:
    """A process that takes part in one sum after the other."""

    def __init__(self, log: Path) -> None:
        self.log = log
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, env=environment, cwd=ROOT, bufsize=0,
            )  # fmt: skip
        self.read, self.open_jobs = b"", 1  # the first answer says that the process is ready

    def ask(self, **job: Any) -> None:
        assert self.process.stdin is not None
        self.open_jobs += 1
        self.process.stdin.write(json.dumps(job).encode() + b"\n")

    def answer(self, within: float = 40.0) -> dict[str, Any] | None:
        """The next answer; None if the process ended."""
        assert self.process.stdout is not None
        end = time.monotonic() + within
        while b"\n" not in self.read:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no answer within {within} s: {self.log.read_text()}"
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                self.process.wait(10)
                return None
            self.read += data
        line, self.read = self.read.split(b"\n", 1)
        self.open_jobs -= 1
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class Crew:
    """As many parties as asked for; those that died, or that a failed test left at work, are replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.parties, self.count = folder, list[Party](), itertools.count()

    def call(self, m: int) -> list[Party]:
        for party in [party for party in self.parties if party.open_jobs or party.process.poll() is not None]:
            self.replace(party)
        new = [Party(self.folder / f"{next(self.count)}.txt") for _ in range(m - len(self.parties))]
        self.parties += new
        for party in new:
            assert party.answer() == {}
        return self.parties[:m]

    def replace(self, party: Party) -> None:
        """Do without a party; the next call starts a new one."""
        party.end()
        self.parties.remove(party)

    def add(self, values: list[int], **common: Any) -> list[dict[str, Any] | None]:
        """One sum; `common` may have a list with one entry for each party."""
        parties = self.call(len(values))
        addresses = free_addresses(len(values))
        for i, (party, value) in enumerate(zip(parties, values, strict=True)):
            own = {key: given[i] if isinstance(given, list) else given for key, given in common.items()}
            party.ask(**job(value, i, addresses, **own))
        return [party.answer() for party in parties]


def job(value: int, party: int, addresses: list[str], **others: Any) -> dict[str, Any]:
    return {"value": value, "party": party, "addresses": addresses, "session": PLAN, "bound": LARGE, "timeout": 20,
            **others}  # fmt: skip


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    crew = Crew(tmp_path_factory.mktemp("parties"))
    yield crew
    for party in crew.parties:
        party.end()
    for log in crew.folder.iterdir():
        assert log.read_text() == ""  # nothing was ever written to stderr; stdout had only answers


def errors(answers: list[dict[str, Any] | None], kind: str) -> list[str]:
    for answer in answers:
        assert answer is not None
        assert answer.get("error") == kind, answer
        assert "\n" not in answer["text"]
    return [answer["text"] for answer in answers if answer]


@pytest.mark.parametrize(
    "values",
    [
        [5, -7],
        [LARGE, LARGE],
        [3, -4, 11],
        [-LARGE] * 3,
        [LARGE, -LARGE, 1, 0, -5],
        [LARGE] * 5,
    ],
)
def test_every_party_gets_the_sum(crew: Crew, values: list[int]) -> None:
    answers = crew.add(values)
    assert [answer and answer["sum"] for answer in answers] == [sum(values)] * len(values)


def test_small_bounds(crew: Crew) -> None:
    for bound in (0, 1):
        answers = crew.add([-bound] * 3, bound=bound)
        assert [answer and answer["sum"] for answer in answers] == [-3 * bound] * 3


def test_many_sums_in_a_row(crew: Crew) -> None:
    parties, addresses = crew.call(3), free_addresses(3)
    for k in range(10):
        for i, party in enumerate(parties):
            party.ask(**job((-3) ** k * (i + 1), i, addresses))
    for k in range(10):
        assert [(party.answer() or {}).get("sum") for party in parties] == [6 * (-3) ** k] * 3


def test_all_shares_are_needed_to_open(crew: Crew) -> None:
    """Values are shared with degree m - 1, and then any m - 1 shares look the same whatever the value is."""
    for m in (2, 3):
        for answer in crew.add([1] * m):
            assert answer
            assert answer["degrees"] == [m - 1]
    mpyc = module.load_mpyc()
    p, m = 5, 3
    seen = []
    for secret in (0, 3):
        draws = iter([c for pair in itertools.product(range(p), repeat=m - 1) for c in pair])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mpyc.thresha.secrets, "randbelow", lambda _, draws=draws: next(draws))
            splits = [mpyc.thresha.random_split(mpyc.finfields.GF(p), [secret], m - 1, m) for _ in range(p ** (m - 1))]
        seen.append([sorted((s[i][0], s[j][0]) for s in splits) for i, j in itertools.combinations(range(m), 2)])
    assert seen[0] == seen[1] == [sorted(itertools.product(range(p), repeat=2))] * 3


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_another_plan_stops_every_party(crew: Crew, odd: int) -> None:
    answers = crew.add([1, 2, 3], session=[OTHER_PLAN if i == odd else PLAN for i in range(3)])
    for i, text in enumerate(errors(answers, "ArtifactError")):
        named = {j for j in range(3) if f"party {j} has another plan" in text}
        assert named == ({odd} if i != odd else {0, 1, 2} - {odd})


def test_another_plan_is_reported_to_a_party_that_comes_later(crew: Crew) -> None:
    parties, addresses = crew.call(3), free_addresses(3)
    for i in (0, 1):
        parties[i].ask(**job(1, i, addresses, session=OTHER_PLAN if i == 0 else PLAN))
    time.sleep(0.7)
    parties[2].ask(**job(1, 2, addresses))
    texts = errors([party.answer() for party in parties], "ArtifactError")
    assert "party 0 has another plan" in texts[1]
    assert "party 0 has another plan" in texts[2]


def test_another_bound_or_list_of_parties(crew: Crew) -> None:
    texts = errors(crew.add([1, 2, 3], bound=[5, 5, 6]), "ArtifactError")
    assert all("party 2 has another bound" in text for text in texts[:2])
    addresses = free_addresses(3)
    parties = crew.call(2)
    parties[0].ask(**job(1, 0, addresses))
    parties[1].ask(**job(1, 1, addresses[:2]))
    texts = errors([party.answer() for party in parties], "ArtifactError")
    assert "party 1 has another list of parties" in texts[0]
    assert "party 0 has another list of parties" in texts[1]


def test_a_party_that_never_comes(crew: Crew) -> None:
    parties, addresses = crew.call(3), free_addresses(3)
    for i in (0, 2):
        parties[i].ask(**job(1, i, addresses, timeout=1.5))
    answers = [parties[i].answer() for i in (0, 2)]
    for text in errors(answers, "SolverError"):
        assert "party 1" in text
        assert "released" not in text


@pytest.mark.parametrize("place", ["waiting", "sharing", "opening"])
def test_a_party_that_is_killed(crew: Crew, place: str) -> None:
    parties, addresses = crew.call(3), free_addresses(3)
    for i in (0, 1) if place == "waiting" else (0, 1, 2):
        parties[i].ask(**job(1, i, addresses, **({"act": ["SIGKILL", place]} if i == 1 and place != "waiting" else {})))
    if place == "waiting":
        time.sleep(0.7)
        parties[1].process.kill()
        texts = errors([parties[0].answer()], "SolverError")
    else:
        texts = errors([parties[i].answer() for i in (0, 2)], "SolverError")
    assert parties[1].answer() is None
    for text in texts:
        assert "party 1" in text
        assert place == "opening" or "released" not in text


def test_a_party_that_freezes(crew: Crew) -> None:
    parties, addresses = crew.call(3), free_addresses(3)
    for i, party in enumerate(parties):
        party.ask(**job(1, i, addresses, timeout=2, **({"act": ["SIGSTOP", "opening"]} if i == 2 else {})))
    texts = errors([party.answer() for party in parties[:2]], "SolverError")
    crew.replace(parties[2])
    assert all("party 2" in text and "released" in text for text in texts)


def listeners(port: int) -> set[str]:
    """The addresses that anybody listens on at a port, as the system writes them."""
    found = set()
    for name in ("tcp", "tcp6"):
        table = Path("/proc/net", name)
        for line in table.read_text().splitlines()[1:] if table.exists() else []:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.split(":")[1], 16) == port:
                found.add(local.split(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the list of listeners from Linux")
def test_listens_on_loopback_only_and_not_for_long(crew: Crew) -> None:
    """Also: what strangers send to the port does no harm."""
    parties, addresses = crew.call(3), free_addresses(3)
    ports = [int(address.split(":")[1]) for address in addresses]
    elsewhere = {**job(4, 1, [addresses[0], f"some.example:{ports[1]}", addresses[2]]), "listen": "127.0.0.2"}
    parties[1].ask(**elsewhere)
    parties[2].ask(**job(5, 2, [addresses[0], f"127.0.0.2:{ports[1]}", addresses[2]]))
    end = time.monotonic() + 10
    while not (listeners(ports[1]) and listeners(ports[2])) and time.monotonic() < end:
        time.sleep(0.05)
    assert listeners(ports[1]) == {"0200007F"}
    assert listeners(ports[2]) == {"0100007F"}
    junk = [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 50000, b"\x01" + bytes(11), b"[1]"]
    junk += [(1).to_bytes(8, "little") + len(text).to_bytes(4, "little") + text for text in (b"[", b"[1,2,3,4,5,6]")]
    strangers = []
    for data in junk:
        strangers.append(socket.create_connection(("127.0.0.1", ports[2]), timeout=5))
        try:
            strangers[-1].sendall(data)
        except ConnectionError:
            continue
    parties[0].ask(**job(3, 0, [addresses[0], f"127.0.0.2:{ports[1]}", addresses[2]]))
    assert [(party.answer() or {}).get("sum") for party in parties] == [12] * 3
    assert not any(listeners(port) for port in ports)
    for stranger in strangers:
        stranger.close()


def test_a_port_in_use() -> None:
    addresses = free_addresses(2)
    message = r"must be able to listen on .* Found the port in use"
    with (
        socket.create_server(("127.0.0.1", int(addresses[1].split(":")[1]))),
        pytest.raises(ProblemError, match=message),
    ):
        secure_sum(1, party=1, addresses=addresses, session=PLAN, bound=5, timeout=5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"addresses": ["localhost:9001"]}, "at least 2 parties"),
        ({"addresses": []}, "at least 2 parties"),
        ({"addresses": ["localhost", "localhost:9002"]}, "host:port"),
        ({"addresses": [":9001", "localhost:9002"]}, "host:port"),
        ({"addresses": ["localhost:0", "localhost:9002"]}, "host:port"),
        ({"addresses": ["localhost:70000", "localhost:9002"]}, "host:port"),
        ({"addresses": ["::1:9001", "localhost:9002"]}, "host:port"),
        ({"addresses": ["0.0.0.0:9001", "localhost:9002"]}, "host:port"),
        ({"addresses": ["a b:9001", "localhost:9002"]}, "host:port"),
        ({"addresses": ["localhost:9001", "127.0.0.1:9001"]}, "address of its own"),
        ({"party": 2}, "from 0 to 1"),
        ({"party": -1}, "from 0 to 1"),
        ({"value": 6}, "between -5 and 5"),
        ({"bound": -1}, "at least 0"),
        ({"session": "plan"}, "hex digest"),
        ({"timeout": 0}, "above 0"),
        ({"timeout": float("nan")}, "above 0"),
        ({"addresses": ["example.org:9001", "localhost:9002"]}, "loopback address only"),
        ({"addresses": ["10.0.0.1:9001", "localhost:9002"]}, "loopback address only"),
        ({"listen": "everywhere"}, "IP address of an interface"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {**job(1, 0, ["localhost:9001", "[::1]:9002"]), "bound": 5, **changes}
    with pytest.raises(ProblemError, match=message) as caught:
        secure_sum(**arguments)
    assert "Found" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_mpyc(missing: Callable[..., None]) -> None:
    module.load_mpyc.cache_clear()
    missing("mpyc")
    with pytest.raises(ProblemError, match=r'^aggregate needs MPyC: pip install "optdp\[mpc\]"$'):
        secure_sum(**job(1, 0, ["localhost:9001", "localhost:9002"]))
    module.load_mpyc.cache_clear()


def test_mpyc_leaves_the_process_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    def state() -> tuple[Any, ...]:
        theirs = {name: loaded for name, loaded in sys.modules.items() if name.split(".")[0] == "mpyc"}
        return list(sys.argv), dict(os.environ), list(logging.getLogger().handlers), theirs

    before = state()
    module.load_mpyc.cache_clear()
    assert module.load_mpyc() is module.load_mpyc()
    assert state() == before
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
