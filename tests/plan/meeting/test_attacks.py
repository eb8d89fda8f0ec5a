"""Who attacks a meeting gets no report, and every honest party ends with one line that names whom.

Strangers are scripts here; parties that misbehave are real processes with real keys (`crew`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import secrets
import select
import socket
import ssl
import struct
import threading
import time
from typing import Any

import pytest

from optdp.plan.meeting.keys import Key
from optdp.plan.meeting.meeting import HELLO, STOP
from optdp.plan.meeting.opening import COMMIT, SHARE, VIEW
from optdp.plan.meeting.roster import Place, digest_of
from tests.loopback import wait_for
from tests.plan.meeting.crew import LARGE, OTHER_PLAN, PLAN, Crew, errors

if not importlib.util.find_spec("mpyc"):
    pytest.skip("the secure sum needs MPyC, which is not installed", allow_module_level=True)


def dial(key: Key, place: Place) -> ssl.SSLSocket:
    """A connection as a party with this key would make it."""
    return key.caller(place.fingerprint).wrap_socket(connected(place))


def connected(place: Place) -> socket.socket:
    return socket.create_connection(("127.0.0.1", place.port), timeout=60)


def frame(label: int, payload: bytes) -> bytes:
    return struct.pack("<qI", label, len(payload)) + payload


def heard(connection: socket.socket, seconds: float = 60.0) -> bytes:
    """Everything that comes until the other side hangs up, or for so long."""
    data, end = b"", time.monotonic() + seconds
    connection.settimeout(0.1)
    while time.monotonic() < end:
        with contextlib.suppress(TimeoutError, ssl.SSLWantReadError):
            try:
                more = connection.recv(65536)
            except (ssl.SSLError, ConnectionError):
                return data
            if not more:
                return data
            data += more
    return data


def labels(data: bytes) -> list[int]:
    found = []
    while data:
        label, size = struct.unpack_from("<qI", data)
        found.append(label)
        data = data[12 + size :]
    return found


def hello(me: int, to: int, places: list[Place], plan: str = PLAN, run: str = "2026-11") -> bytes:
    terms = {"plan": plan, "run": run, "work": f"sum 1 bound {LARGE}", "parties": digest_of(places)}
    return frame(HELLO, json.dumps(["optdp meeting 2", terms, me, to, secrets.token_hex(32)]).encode())


# ---------------------------------------------------------------------- strangers


def test_one_attacker_who_poses_as_all_others_gets_nothing(crew: Crew) -> None:
    """The attack that was found: who knew the plan's digest posed as parties 0 and 1 and was sent party 2's report."""
    (victim,), places = crew.call(1), crew.places(3)
    victim.ask(**crew.job(7, 2, places, act=["patient"]))
    wait_for(places[2].port)
    for attacker in (crew.keys[5], crew.keys[6]):  # keys of its own
        said = b""
        with contextlib.suppress(ssl.SSLError, ConnectionError), dial(attacker, places[2]) as line:
            line.sendall(hello(0, 2, places))
            said = line.recv(1000)  # in TLS 1.3 the refusal comes here
        assert said == b""
    for words in (hello(0, 2, places), b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 50000):  # no TLS at all
        with connected(places[2]) as plain, contextlib.suppress(ConnectionError):
            plain.sendall(words)
            assert PLAN.encode() not in heard(plain, 60.0 if words else 0.3)
    victim.time_is_up()
    (answer,) = [victim.answer()]
    assert answer
    assert "opening" not in answer["events"]
    (text,) = errors([answer], "SolverError")
    assert "no answer in time from party 0 and party 1" in text


def test_one_party_that_poses_as_another_too_gets_nothing(crew: Crew) -> None:
    """Party 0 has a key. With it it is party 0, whatever it says, and one time only."""
    (victim,), places = crew.call(1), crew.places(3)
    victim.ask(**crew.job(7, 2, places, act=["patient"]))
    wait_for(places[2].port)
    with dial(crew.keys[0], places[2]) as first, dial(crew.keys[0], places[2]) as second:
        first.sendall(hello(0, 2, places))
        said = first.recv(65536)
        with contextlib.suppress(OSError):
            second.sendall(hello(1, 2, places))
        assert set(labels(heard(second))) <= {HELLO}
        victim.time_is_up()
        assert labels(said + heard(first)) == [HELLO, STOP]
        (text,) = errors([victim.answer()], "SolverError")
        assert "party 1" in text
        assert "party 0" not in text


def test_claiming_the_number_of_another_party(crew: Crew) -> None:
    (victim,), places = crew.call(1), crew.places(3)
    victim.ask(**crew.job(7, 2, places))
    wait_for(places[2].port)
    with dial(crew.keys[0], places[2]) as line:
        line.sendall(hello(1, 2, places))
        assert labels(heard(line)) == [HELLO, STOP]
        (text,) = errors([victim.answer()], "ArtifactError")
    assert "party 0 has another list of parties" in text


@pytest.mark.parametrize("version", ["TLSv1_2", "no certificate", "plain"])
def test_less_than_mutual_tls_1_3_is_refused(crew: Crew, version: str) -> None:
    (victim,), places = crew.call(1), crew.places(2)
    victim.ask(**crew.job(7, 1, places, act=["patient"]))
    wait_for(places[1].port)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version == "TLSv1_2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(crew.keys[0].path)
    plain = connected(places[1])
    if version == "plain":
        with plain:
            plain.sendall(hello(0, 1, places))
            assert PLAN.encode() not in heard(plain)
    else:
        said = b""
        with plain, contextlib.suppress(ssl.SSLError, ConnectionError), context.wrap_socket(plain) as line:
            line.sendall(hello(0, 1, places))
            said = line.recv(1000)
        assert said == b""
    victim.time_is_up()
    (text,) = errors([victim.answer()], "SolverError")
    assert "party 0" in text


def test_nothing_is_said_before_the_caller_is_known_to_be_welcome(crew: Crew) -> None:
    """A false party 1 has the address, not the key: party 0 calls it and says nothing of the plan."""
    (victim,), places = crew.call(1), crew.places(2)
    heard_there: list[bytes] = []
    with socket.create_server(("127.0.0.1", places[1].port)) as server:
        server.settimeout(60)
        victim.ask(**crew.job(7, 0, places, act=["patient"]))
        context = crew.keys[5].listener([crew.keys[0].fingerprint])
        line, _ = server.accept()
        line.settimeout(60)
        with line, contextlib.suppress(ssl.SSLError, OSError):
            inner = context.wrap_socket(line, server_side=True)
            heard_there.append(heard(inner))
        victim.time_is_up()
        (text,) = errors([victim.answer()], "SolverError")
    assert heard_there in ([], [b""])
    assert "party 1 (another key answers there)" in text


def test_what_was_recorded_cannot_be_played_again(crew: Crew) -> None:
    """Whoever sits between two parties sees TLS. Played to party 1 again, its bytes open nothing."""
    parties, places = crew.call(2), crew.places(2)
    between = crew.places(2)[0].port
    recorded = bytearray()

    def pass_on(server: socket.socket) -> None:
        here, _ = server.accept()
        with here, connected(places[1]) as there:
            other = {here: there, there: here}
            while True:
                for one in select.select(list(other), [], [])[0]:
                    try:
                        data = one.recv(65536)
                    except ConnectionError:  # a party that is done may close before it has read everything
                        return
                    if one is here:
                        recorded.extend(data)
                    if not data:
                        return
                    with contextlib.suppress(ConnectionError):
                        other[one].sendall(data)

    parties[1].ask(**crew.job(5, 1, places))
    wait_for(places[1].port)
    with socket.create_server(("127.0.0.1", between)) as server:
        server.settimeout(60)
        thread = threading.Thread(target=pass_on, args=(server,), daemon=True)  # nobody waits for it where this fails
        thread.start()
        parties[0].ask(**crew.job(3, 0, [places[0], Place("localhost", between, places[1].fingerprint)]))
        assert [(party.answer() or {}).get("sum") for party in parties] == [8, 8]
        thread.join(60)
        assert not thread.is_alive()
    assert len(recorded) > 500
    assert PLAN.encode() not in recorded
    parties[1].ask(**crew.job(5, 1, places, act=["patient"]))
    wait_for(places[1].port)
    with connected(places[1]) as line, contextlib.suppress(OSError):
        line.sendall(bytes(recorded))
        heard(line)
    parties[1].time_is_up()
    (answer,) = [parties[1].answer()]
    (text,) = errors([answer], "SolverError")
    assert answer is not None
    assert answer["events"] == []
    assert "no answer in time from party 0" in text


def test_300_idle_connections(crew: Crew) -> None:
    parties, places = crew.call(3), crew.places(3)
    parties[2].ask(**crew.job(5, 2, places))
    wait_for(places[2].port)
    with contextlib.ExitStack() as idle:
        for _ in range(300):
            idle.enter_context(connected(places[2]))
        for i in (0, 1):
            parties[i].ask(**crew.job(i, i, places))
        assert [(party.answer() or {}).get("sum") for party in parties] == [6] * 3


# ---------------------------------------------------------------------- parties that have other things


def test_another_run(crew: Crew) -> None:
    answers = crew.add([1, 2, 3], run=["2026-11", "2026-11", "2026-10"])
    for text in errors(answers[:2], "ArtifactError"):
        assert "party 2 has another run (2026-10, here 2026-11)" in text
    (text,) = errors(answers[2:], "ArtifactError")
    assert "party 0 has another run" in text
    assert all(answer["events"] == [] for answer in answers)


def test_another_plan(crew: Crew) -> None:
    answers = crew.add([1, 2], plan=[PLAN, OTHER_PLAN])
    for i, text in enumerate(errors(answers, "ArtifactError")):
        assert f"party {1 - i} has another plan" in text


def test_another_order_of_the_parties(crew: Crew) -> None:
    """Two keys have changed places in one party's list."""
    parties, places = crew.call(3), crew.places(3)
    swapped = [Place(places[i].host, places[i].port, places[2 - i].fingerprint) for i in range(3)]
    for i in (0, 1, 2):
        parties[i].ask(**crew.job(1, i, swapped if i == 1 else places, timeout=4))
    texts = errors([party.answer() for party in parties])
    assert all("party 1" in text for text in (texts[0], texts[2]))
    assert "party 0" in texts[1] or "party 2" in texts[1]


def test_another_key(crew: Crew) -> None:
    """Party 1 made itself a new key, and only its own list has it."""
    parties, places = crew.call(2), crew.places(2)
    parties[0].ask(**crew.job(1, 0, places, act=["patient", "another key answers there"]))
    renewed = [places[0], Place("localhost", places[1].port, crew.keys[5].fingerprint)]
    parties[1].ask(**crew.job(1, 1, renewed, act=["patient"], key=str(crew.keys[5].path)))
    answers = [parties[0].answer()]
    parties[1].time_is_up()
    texts = errors([*answers, parties[1].answer()], "SolverError")
    assert "party 1 (another key answers there)" in texts[0]
    assert "party 0" in texts[1]


# ---------------------------------------------------------------------- parties that do not follow the protocol

FAULTS: dict[str, tuple[list[Any], str, bool | None]] = {
    "greets with garbage": (["hello", "\x00\xff{["], "cannot read", False),
    "greets with a number": (["hello", "7"], "cannot read", False),
    "greets with deep brackets": (["hello", "[" * 1500], "cannot read", False),
    "breaks TLS": (["instead", "garbage"], "breaks its encryption", False),
    "sends too much": (["instead", "much"], "sends too much", False),
    "sends a share of another size": (["size"], "sends what is no share", False),
    "commits twice": (["label", COMMIT, "twice"], "says the same thing twice", False),
    "cuts its commitment": (["label", COMMIT, "short"], "sends what cannot be read", False),
    "tells one party another commitment": (["label", COMMIT, "change", 0], "party 2", False),
    "tells one party another view": (["label", VIEW, "change", 0], "party 2 does not repeat", None),
    "changes its share": (["label", SHARE, "change"], "opens another share than it had committed to", True),
    "changes its share to one party": (["label", SHARE, "change", 0], "another share than it had committed", True),
    "cuts its share": (["label", SHARE, "short"], "sends what cannot be read", True),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_party_that_does_not_follow_the_protocol_is_named(crew: Crew, name: str) -> None:
    act, words, released = FAULTS[name]
    parties, places = crew.call(3), crew.places(3)
    for i, party in enumerate(parties):
        party.ask(**crew.job(i, i, places, **({"act": act} if i == 2 else {})))
    answers = [party.answer() for party in parties]
    texts = errors(answers[:2], "SolverError")
    assert all("party 2" in text for text in texts)
    assert any(words in text for text in texts)
    for text, answer in zip(texts, answers[:2], strict=True):
        assert answer is not None
        assert ("Count the result as released" in text) == ("opening" in answer["events"])
        assert released is None or ("opening" in answer["events"]) == released


@pytest.mark.parametrize(
    ("label", "only", "released"),
    [(COMMIT, None, False), (VIEW, None, False), (SHARE, None, True), (SHARE, 0, True)],
)
def test_what_is_withheld_is_named(crew: Crew, label: int, only: int | None, released: bool) -> None:
    """Also by the parties to whom it was not withheld: they wait for the others' word that all have the result."""
    parties, places = crew.call(3), crew.places(3)
    for i, party in enumerate(parties):
        act = ["label", label, "withhold", only] if i == 2 else ["hurried", label, 4]
        party.ask(**crew.job(i, i, places, act=act))
    answers = [party.answer() for party in parties][:2]
    for text, answer in zip(errors(answers, "SolverError"), answers, strict=True):
        assert answer is not None
        assert "party 2" in text
        assert ("Count the result as released" in text) == ("opening" in answer["events"])
    assert any(answer is not None and "opening" in answer["events"] for answer in answers) == released


@pytest.mark.parametrize("about", [0, 1])
def test_who_withholds_and_blames_another_is_named_too(crew: Crew, about: int) -> None:
    """Party 2 keeps its share from party 0 and says that party 1, or party 0 itself, was late."""
    parties, places = crew.call(3), crew.places(3)
    for i, party in enumerate(parties):
        act = ["lie", SHARE, 0, "late", [about]] if i == 2 else ["hurried", SHARE, 4]
        party.ask(**crew.job(i, i, places, act=act))
    answers = [party.answer() for party in parties]
    (text,) = errors(answers[:1], "SolverError")
    said, _, own = text.partition("this party was waiting for")
    assert f"party 2 did not hear in time from party {about}" in said
    assert "party 2" in own


@pytest.mark.parametrize("label", [COMMIT, VIEW, SHARE])
def test_who_waits_for_a_victim_learns_whom_that_one_waits_for(crew: Crew, label: int) -> None:
    """Party 2 keeps something from party 0, and party 1, which waits for party 0, is the first whose time is up."""
    parties, places = crew.call(3), crew.places(3)
    for i, party in enumerate(parties):
        act = {1: {"act": ["hurried", label, 6, 5]}, 2: {"act": ["label", label, "withhold", 0]}}
        party.ask(**crew.job(i, i, places, **act.get(i, {}), timeout=600))
    answers = [party.answer() for party in parties][:2]
    for text, answer in zip(errors(answers, "SolverError"), answers, strict=True):
        assert answer is not None
        assert "party 2" in text
        assert ("Count the result as released" in text) == ("opening" in answer["events"])


def test_a_party_that_is_slow(crew: Crew) -> None:
    """It begins a message and does not end it."""
    parties, places = crew.call(3), crew.places(3)
    for i, party in enumerate(parties):
        party.ask(**crew.job(i, i, places, act=["instead", "slow"] if i == 2 else ["hurried", 0, 4]))
    for text in errors([party.answer() for party in parties][:2], "SolverError"):
        assert "party 2" in text
        assert "released" not in text


def test_the_same_party_twice(crew: Crew) -> None:
    """Started twice with another port: the others talk to one of them, and the other one is told."""
    parties, places = crew.call(3), crew.places(2)
    parties[1].ask(**crew.job(2, 1, places))
    wait_for(places[1].port)
    again = [Place("localhost", crew.places(1)[0].port, places[0].fingerprint), places[1]]
    for party, listed in ((parties[0], places), (parties[2], again)):
        party.ask(**crew.job(1, 0, listed, act=["patient"]))
    assert (parties[1].answer() or {}).get("sum") == 3
    first, other = crew.in_turn(parties[0], parties[2])
    found = [first.answer() or {}]
    if "sum" in found[0]:  # the other one may try until its time is up
        other.time_is_up()
    met, refused = sorted([*found, other.answer() or {}], key=lambda answer: "error" in answer)
    assert met.get("sum") == 3
    (text,) = errors([refused], "SolverError")
    assert "party 1" in text
