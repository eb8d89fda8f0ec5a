"""Parties that are real processes, their keys, and ways to misbehave."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from optdp.plan.meeting.keys import Key, create_key
from optdp.plan.meeting.roster import Place
from tests.loopback import free_addresses

ROOT = Path(__file__).resolve().parents[3]
PLAN = "0123456789abcdef" * 4
OTHER_PLAN = "fedcba9876543210" * 4
LARGE = 2**62

# One party: a job per line in, an answer per line out. `act` makes it misbehave.
WORKER = """
import asyncio, json, os, signal, sys, time
from optdp.plan.meeting import links, meeting as module, opening, sum as sums
from optdp.plan.meeting.engine import load_mpyc
from optdp.plan.meeting.keys import read_key
from optdp.plan.meeting.roster import Place
from optdp.errors import OptdpError, ProblemError

mpyc = load_mpyc()
split, degrees = mpyc.thresha.random_split, []
mpyc.thresha.random_split = lambda field, s, t, m: degrees.append(t) or split(field, s, t, m)
sys.argv = ["optdp", "aggregate", "--help", "-M3", "--VERSION"]
usual = {name: getattr(module.Meeting, name) for name in ("run", "broadcast", "_hello", "begin_opening", "_compare")}
usual_send = links.Link.send
usual_add = sums.add
usual_grace, failing = module._GRACE, []
told, under_way = [], []

def time_is_up(*_):
    # the test says so, before the meeting, during it or after it
    told.append(True)
    for meeting, loop in under_way:
        loop.call_soon_threadsafe(end_at, meeting, time.monotonic())

signal.signal(signal.SIGUSR1, time_is_up)

def change(data, at=-1):
    data = bytearray(data)
    data[at] ^= 1
    return bytes(data)

def restore():
    for name, function in usual.items():
        setattr(module.Meeting, name, function)
    sums.add, module._GRACE = usual_add, usual_grace
    links.Link.send = usual_send
    failing.clear()

def record(what, when):
    if when in failing:
        raise ProblemError("cannot write r.json: no space left on device")
    events.append(what)

def end_at(meeting, when):
    meeting.end = when
    meeting.news.set()

def act_patient(words=None):
    # waits until it is told that the time is up, or until a call has failed with these words, however slow the machine
    async def watch(meeting):
        while not any(words in why for why in meeting.why.values()):
            await asyncio.sleep(0.02)
        end_at(meeting, time.monotonic())
    async def run(self, *given):
        under_way.append((self, asyncio.get_running_loop()))
        watching = asyncio.ensure_future(watch(self)) if words else None
        if told:
            self.end = time.monotonic()
        try:
            return await usual["run"](self, *given)
        finally:
            under_way.clear()
            if watching:
                watching.cancel()
    module.Meeting.run = run

def act_hurried(at, seconds, grace=None):
    # has so many seconds left once it has sent a message with this label, or, if that is 0, begins to share
    module._GRACE = grace or usual_grace
    def broadcast(self, label, payload):
        usual["broadcast"](self, label, payload)
        if label == at:
            end_at(self, time.monotonic() + seconds)
    async def add(meeting, value, bound):
        if at == 0:
            end_at(meeting, time.monotonic() + seconds)
        return await usual_add(meeting, value, bound)
    module.Meeting.broadcast, sums.add = broadcast, add

def act_full_disk(when):
    failing.append(when)

def act_size():
    # shares that are too short
    def send(self, label, payload):
        usual_send(self, label, payload if label in links.OWN else payload[:-1])
    links.Link.send = send

def act_signal(name, place):
    send = lambda: os.kill(os.getpid(), getattr(signal, name))
    if place == "sharing":
        async def add(meeting, value, bound):
            send()
            return await usual_add(meeting, value, bound)
        sums.add = add
    else:
        module.Meeting.begin_opening = lambda self: send()

def act_label(label, what, only=None):
    # what: "withhold", "change", "short", "twice"; to one party only, or to all
    def broadcast(self, at, payload):
        for j, link in self.links.items():
            if at != label or (only is not None and j != only):
                link.send(at, payload)
            elif what == "change":
                link.send(at, change(payload))
            elif what == "short":
                link.send(at, payload[:-1])
            elif what == "twice":
                link.send(at, payload)
                link.send(at, payload)
    module.Meeting.broadcast = broadcast

def act_lie(label, only, reason, about):
    # keeps something back from one party, and says that it is about another
    def broadcast(self, at, payload):
        for j, link in self.links.items():
            if at == label and j == only:
                link.send(module.STOP, json.dumps([reason, about]).encode())
            elif at != module.STOP or j != only:  # and says nothing else to that one
                link.send(at, payload)
    module.Meeting.broadcast = broadcast

def act_hello(text):
    module.Meeting._hello = lambda self, to: text.encode()

def act_instead(what):
    # in place of its shares
    async def add(meeting, value, bound):
        for link in meeting.links.values():
            if what == "garbage":
                link.transport.write(b"\\x17\\x03\\x03\\x00\\x20" + bytes(32))
            elif what == "much":
                for label in range(1000, 1040):
                    link.send(label, bytes(1000))
            elif what == "slow":
                link._tls.write((99).to_bytes(8, "little"))  # a message that does not end
                link._flush()
        await asyncio.sleep(1000)
    sums.add = add

print("{}", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    told.clear()
    act = job.pop("act", None)
    restore()
    if act:
        globals()["act_" + act[0]](*act[1:])
    job["key"], job["places"] = read_key(job["key"]), [Place(*place) for place in job["places"]]
    events = []
    hooks = {"on_opening": lambda: record("opening", "opening"), "on_result": lambda sum: record(sum, "result")}
    try:
        answer = {"sum": sums.secure_sum(**job, **hooks), "degrees": degrees}
    except OptdpError as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    print(json.dumps({**answer, "events": events}), flush=True)
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

    def time_is_up(self) -> None:
        """Ends the wait of one that is patient."""
        self.process.send_signal(signal.SIGUSR1)

    def answer(self, within: float = 120.0) -> dict[str, Any] | None:
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
        self.keys: list[Key] = [create_key(folder / f"key-{i}.pem") for i in range(7)]  # the last ones are strangers'

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

    def places(self, m: int) -> list[Place]:
        return [Place("localhost", int(address.split(":")[1]), self.keys[i].fingerprint)
                for i, address in enumerate(free_addresses(m))]  # fmt: skip

    def in_turn(self, *parties: Party) -> list[Party]:
        """Them, with one first that has an answer."""
        ready, _, _ = select.select([party.process.stdout for party in parties], [], [], 120)
        return sorted(parties, key=lambda party: party.process.stdout not in ready)

    def job(self, value: int, party: int, places: list[Place], **others: Any) -> dict[str, Any]:
        listed = [[place.host, place.port, place.fingerprint] for place in places]
        return {"value": value, "party": party, "places": listed, "key": str(self.keys[party].path), "plan": PLAN,
                "run": "2026-11", "bound": LARGE, "timeout": 60, **others}  # fmt: skip

    def add(self, values: list[int], **common: Any) -> list[dict[str, Any]]:
        """One sum; `common` may have a list with one entry for each party."""
        parties, places = self.call(len(values)), self.places(len(values))
        for i, (party, value) in enumerate(zip(parties, values, strict=True)):
            own = {key: given[i] if isinstance(given, list) else given for key, given in common.items()}
            party.ask(**self.job(value, i, places, **own))
        return [party.answer() or {} for party in parties]

    def finish(self) -> None:
        for party in self.parties:
            party.end()
        for log in self.folder.glob("*.txt"):
            assert not log.read_text(), log.read_text()  # nothing was ever written to stderr; stdout had only answers


def errors(answers: list[dict[str, Any] | None], kind: str | None = None) -> list[str]:
    """The texts, each of one line."""
    for answer in answers:
        assert answer is not None
        assert answer.get("error"), answer
        assert kind is None or answer["error"] == kind, answer
        assert "\n" not in answer["text"]
    return [answer["text"] for answer in answers if answer]
