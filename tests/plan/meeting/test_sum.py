"""The secure sum between real processes: right sums, one error at every party when something is wrong, no hang."""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import random
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optdp import ProblemError
from optdp.extras import install
from optdp.plan.meeting import engine
from optdp.plan.meeting.opening import SHARE
from optdp.plan.meeting.roster import Place
from optdp.plan.meeting.sum import secure_sum
from tests.plan.meeting.crew import LARGE, OTHER_PLAN, PLAN, Crew, errors

if not importlib.util.find_spec("mpyc"):  # not imported here: MPyC would read the command line of pytest
    pytest.skip("the secure sum needs MPyC, which is not installed", allow_module_level=True)


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
    parties, places = crew.call(3), crew.places(3)
    for k in range(10):
        for i, party in enumerate(parties):
            party.ask(**crew.job((-3) ** k * (i + 1), i, places))
    for k in range(10):
        assert [(party.answer() or {}).get("sum") for party in parties] == [6 * (-3) ** k] * 3


def test_all_shares_are_needed_to_open(crew: Crew) -> None:
    """Values are shared with degree m - 1, and then any m - 1 shares look the same whatever the value is."""
    for m in (2, 3):
        for answer in crew.add([1] * m):
            assert answer
            assert answer["degrees"] == [m - 1]
    mpyc = engine.load_mpyc()
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
    answers = crew.add([1, 2, 3], plan=[OTHER_PLAN if i == odd else PLAN for i in range(3)])
    for i, text in enumerate(errors(answers, "ArtifactError")):
        named = {j for j in range(3) if f"party {j} has another plan" in text}
        assert named == ({odd} if i != odd else {0, 1, 2} - {odd})


def test_another_plan_is_reported_to_a_party_that_comes_later(crew: Crew) -> None:
    parties, places = crew.call(3), crew.places(3)
    for i in (0, 1):
        parties[i].ask(**crew.job(1, i, places, plan=OTHER_PLAN if i == 0 else PLAN))
    time.sleep(0.7)
    parties[2].ask(**crew.job(1, 2, places))
    texts = errors([party.answer() for party in parties], "ArtifactError")
    assert "party 0 has another plan" in texts[1]
    assert "party 0 has another plan" in texts[2]


def test_another_bound_or_list_of_parties(crew: Crew) -> None:
    texts = errors(crew.add([1, 2, 3], bound=[5, 5, 6]), "ArtifactError")
    assert all("party 2 has another computation or version (sum 1 bound 6" in text for text in texts[:2])
    places = crew.places(3)
    parties = crew.call(2)
    parties[0].ask(**crew.job(1, 0, places))
    parties[1].ask(**crew.job(1, 1, places[:2]))
    texts = errors([party.answer() for party in parties], "ArtifactError")
    assert "party 1 has another list of parties" in texts[0]
    assert "party 0 has another list of parties" in texts[1]


def test_a_party_that_never_comes(crew: Crew) -> None:
    parties, places = crew.call(3), crew.places(3)
    for i in (0, 2):
        parties[i].ask(**crew.job(1, i, places, timeout=1.5))
    answers = [parties[i].answer() for i in (0, 2)]
    for text in errors(answers, "SolverError"):
        assert "party 1" in text
        assert "released" not in text


@pytest.mark.parametrize("place", ["waiting", "sharing", "opening"])
def test_a_party_that_is_killed(crew: Crew, place: str) -> None:
    parties, places = crew.call(3), crew.places(3)
    for i in (0, 1) if place == "waiting" else (0, 1, 2):
        parties[i].ask(
            **crew.job(1, i, places, **({"act": ["signal", "SIGKILL", place]} if i == 1 and place != "waiting" else {}))
        )
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
    parties, places = crew.call(3), crew.places(3)
    for i, party in enumerate(parties):
        act = ["signal", "SIGSTOP", "opening"] if i == 2 else ["hurried", SHARE, 4]
        party.ask(**crew.job(1, i, places, act=act))
    answers = [party.answer() for party in parties[:2]]
    crew.replace(parties[2])
    for text, answer in zip(errors(answers, "SolverError"), answers, strict=True):
        assert answer is not None
        assert "party 2" in text
        assert ("released" in text) == ("opening" in answer["events"])
    assert any(answer is not None and "opening" in answer["events"] for answer in answers)


@pytest.mark.parametrize("when", ["opening", "result"])
def test_a_record_that_cannot_be_written(crew: Crew, when: str) -> None:
    """Before the opening this party shows nothing; after it, it says that the result is out, and the others name it."""
    parties, places = crew.call(3), crew.places(3)
    for i, party in enumerate(parties):
        party.ask(**crew.job(1, i, places, **({"act": ["full_disk", when]} if i == 1 else {})))
    answers = [party.answer() for party in parties]
    (own,) = errors(answers[1:2], "ProblemError")
    assert "no space left" in own
    assert ("Count the result as released" in own) == (when == "result")
    for text, answer in zip(errors([answers[0], answers[2]], "SolverError"), (answers[0], answers[2]), strict=True):
        assert answer is not None
        assert "party 1 stopped" in text
        assert ("Count the result as released" in text) == ("opening" in answer["events"])
        assert when == "result" or not any(type(event) is int for event in answer["events"])


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
    parties, places = crew.call(3), crew.places(3)
    ports = [place.port for place in places]
    away = [places[0], Place("127.0.0.2", ports[1], places[1].fingerprint), places[2]]
    own = [places[0], Place("some.example", ports[1], places[1].fingerprint), places[2]]
    parties[1].ask(**crew.job(4, 1, own, listen="127.0.0.2"))
    parties[2].ask(**crew.job(5, 2, away))
    end = time.monotonic() + 60
    while not (listeners(ports[1]) and listeners(ports[2])) and time.monotonic() < end:
        time.sleep(0.05)
    assert listeners(ports[1]) == {"0200007F"}
    assert listeners(ports[2]) == {"0100007F"}
    parties[0].ask(**crew.job(3, 0, away))
    assert [(party.answer() or {}).get("sum") for party in parties] == [12] * 3
    assert not any(listeners(port) for port in ports)


def test_a_port_in_use(crew: Crew) -> None:
    places = crew.places(2)
    message = r"must be able to listen on .* Found the port in use"
    with (
        socket.create_server(("127.0.0.1", places[1].port)),
        pytest.raises(ProblemError, match=message),
    ):
        sum_of(crew, 1, 1, places, timeout=5)


def sum_of(crew: Crew, value: int, party: int, places: list[Place], **others: Any) -> int:
    return secure_sum(
        value, **{"party": party, "places": places, "key": crew.keys[party], "plan": PLAN, "run": "r", "bound": 5,
                  **others}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"places": [0]}, "at least 2 parties"),
        ({"places": []}, "at least 2 parties"),
        ({"host": ""}, "where the others reach"),
        ({"host": "0.0.0.0"}, "where the others reach"),
        ({"host": "[::]"}, "where the others reach"),
        ({"host": "a b"}, "where the others reach"),
        ({"host": "::1"}, "where the others reach"),
        ({"port": 0}, "port must be"),
        ({"port": 70000}, "port must be"),
        ({"places": [0, 0]}, "own"),
        ({"party": 2}, "from 0 to 1"),
        ({"party": -1}, "from 0 to 1"),
        ({"key": 1}, "Found that of party 1"),
        ({"key": 5}, "not in the list"),
        ({"value": 6}, "between -5 and 5"),
        ({"bound": -1}, "at least 0"),
        ({"run": "a/b"}, "letters, digits"),
        ({"run": ""}, "letters, digits"),
        ({"timeout": 0}, "above 0"),
        ({"timeout": float("nan")}, "above 0"),
        ({"host": "example.org"}, "loopback address only"),
        ({"host": "10.0.0.1"}, "loopback address only"),
        ({"listen": "everywhere"}, "IP address of an interface"),
    ],
)
def test_what_makes_no_sense_is_refused(crew: Crew, changes: dict[str, Any], message: str) -> None:
    places = crew.places(2)
    host, port = changes.pop("host", "localhost"), changes.pop("port", places[0].port)
    places[0] = Place(host, port, places[0].fingerprint)
    arguments = {"value": 1, "party": 0, "places": [0, 1], "key": 0} | changes
    arguments |= {"places": [places[i] for i in arguments["places"]], "key": crew.keys[arguments["key"]]}
    with pytest.raises(ProblemError, match=message) as caught:
        sum_of(crew, **arguments)
    assert "Found" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_mpyc(crew: Crew, missing: Callable[..., None]) -> None:
    engine.load_mpyc.cache_clear()
    missing("mpyc")
    with pytest.raises(ProblemError, match="^aggregate needs MPyC: " + re.escape(install("mpc"))):
        sum_of(crew, 1, 0, crew.places(2))
    engine.load_mpyc.cache_clear()


def test_mpyc_leaves_the_process_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    def state() -> tuple[Any, ...]:
        theirs = {name: loaded for name, loaded in sys.modules.items() if name.split(".")[0] == "mpyc"}
        return list(sys.argv), dict(os.environ), list(logging.getLogger().handlers), theirs, random.getstate()

    before = state()
    engine.load_mpyc.cache_clear()
    assert engine.load_mpyc() is engine.load_mpyc()
    assert engine.load_mpyc().finfields.find_prime_root(67)[0].bit_length() == 67  # a prime is looked for
    assert state() == before
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
