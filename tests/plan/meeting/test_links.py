"""What comes over a connection: random bytes, broken TLS and malformed messages end it, and never raise.

A listening side and a calling side are joined in memory, so that thousands of tries take seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import ssl
import struct
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from optdp.plan.meeting import links, meeting
from optdp.plan.meeting.keys import Key, create_key, fingerprint_of, is_key, read_key
from optdp.plan.meeting.links import Link
from optdp.plan.meeting.meeting import HELLO, STOP, FaultError, Meeting
from optdp.plan.meeting.opening import COMMIT, SHARE, VIEW, Opening
from optdp.plan.meeting.roster import Place
from optdp.plan.meeting.terms import Agreement


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.over = bytearray(), False

    def write(self, data: Any) -> None:
        self.sent += data

    def take(self) -> bytes:
        data = bytes(self.sent)
        self.sent.clear()
        return data

    def is_closing(self) -> bool:
        return self.over

    def close(self) -> None:
        self.over = True

    abort = close


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[Key]:
    folder = tmp_path_factory.mktemp("keys")
    return [create_key(folder / f"{i}.pem") for i in range(3)]


def accept(_: Link, __: str) -> bool:
    return True


def joined(one: ssl.SSLContext, other: ssl.SSLContext, allowance: int = 4096) -> tuple[Link, Link]:
    """A caller and a listener that have shaken hands, or tried to."""
    caller, listener = Link(one, True, allowance, accept), Link(other, False, allowance, accept)
    ends = connected(caller, listener)
    for _ in range(5):
        listener.data_received(ends[0].take())
        caller.data_received(ends[1].take())
    return caller, listener


def connected(caller: Link, listener: Link) -> tuple[Wire, Wire]:
    ends = Wire(), Wire()
    caller.connection_made(ends[0])
    listener.connection_made(ends[1])
    return ends


def pass_on(one: Link, other: Link) -> None:
    assert isinstance(one.transport, Wire)
    other.data_received(one.transport.take())


def test_two_parties_know_each_other(keys: list[Key]) -> None:
    async def go() -> None:
        caller, listener = joined(
            keys[0].caller(keys[1].fingerprint), keys[1].listener([keys[2].fingerprint, keys[0].fingerprint])
        )
        assert caller.fingerprint == keys[1].fingerprint
        assert listener.fingerprint == keys[0].fingerprint
        for size in (0, 1, 3000):
            caller.send(size + 100, bytes(size))
            pass_on(caller, listener)
            assert listener.receive(size + 100) == bytes(size)

    asyncio.run(go())


def test_a_message_longer_than_a_record_of_tls(keys: list[Key]) -> None:
    async def go() -> None:
        caller, listener = joined(
            keys[0].caller(keys[1].fingerprint), keys[1].listener([keys[0].fingerprint]), allowance=1 << 20
        )
        text = random.Random(1).randbytes(300_000)
        caller.send(77, text)
        pass_on(caller, listener)
        assert listener.receive(77) == text

    asyncio.run(go())


@pytest.mark.parametrize("which", ["caller", "listener", "both"])
def test_another_key_is_refused(keys: list[Key], which: str) -> None:
    async def go() -> None:
        wanted = keys[2].fingerprint
        caller, listener = joined(
            keys[0].caller(wanted if which != "caller" else keys[1].fingerprint),
            keys[1].listener([wanted if which != "listener" else keys[0].fingerprint]),
        )
        assert not listener.fingerprint
        assert not listener.known.result()
        assert caller.lost.done()
        assert "key" in caller.refused

    asyncio.run(go())


def test_a_key_that_another_key_has_signed_is_not_that_key(keys: list[Key], tmp_path: Path) -> None:
    """Who holds a pinned key cannot hand its place to another: the key itself must be shown."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from optdp.plan.meeting import keys as module

    signer = serialization.load_pem_private_key(keys[0].path.read_bytes(), None)
    other = Ed25519PrivateKey.generate()
    lent = module._certificate("optdp party", keys[0].fingerprint, other.public_key(), signer, False)
    pem = serialization.Encoding.PEM
    data = other.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "lent.pem").write_bytes(data + lent.public_bytes(pem))
    fake = Key(tmp_path / "lent.pem", other.public_key().public_bytes_raw().hex())
    pinned = {keys[0].fingerprint}

    async def go() -> None:
        caller = Link(fake.caller(keys[1].fingerprint), True, 4096, accept)
        listener = Link(keys[1].listener(list(pinned)), False, 4096, lambda _, found: found in pinned)
        ends = connected(caller, listener)
        for _ in range(5):
            listener.data_received(ends[0].take())
            caller.data_received(ends[1].take())
        assert not listener.fingerprint
        assert listener.lost.done()

    asyncio.run(go())


@pytest.mark.parametrize("years", [(1990, 1991), (2900, 2901)])
def test_a_pinned_key_does_not_expire(keys: list[Key], tmp_path: Path, years: tuple[int, int]) -> None:
    """Dates in a certificate that the key signed itself say nothing: who is pinned is welcome, whatever clocks say."""
    from cryptography.hazmat.primitives import serialization

    from optdp.plan.meeting import keys as module

    private = serialization.load_pem_private_key(keys[0].path.read_bytes(), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FOREVER", tuple(datetime(year, 1, 1) for year in years))
        dated = module._certificate("optdp party", keys[0].fingerprint, private.public_key(), private, False)
    pem = serialization.Encoding.PEM
    data = private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "dated.pem").write_bytes(data + dated.public_bytes(pem))
    key = Key(tmp_path / "dated.pem", keys[0].fingerprint)

    async def go() -> None:
        for one, other in ((key, keys[1]), (keys[1], key)):
            caller, listener = joined(one.caller(other.fingerprint), other.listener([one.fingerprint]))
            assert (caller.fingerprint, listener.fingerprint) == (other.fingerprint, one.fingerprint)

    asyncio.run(go())


def test_shares_of_another_size_than_ours_are_none(keys: list[Key]) -> None:
    """Whichever side was faster."""

    async def go(faster: bool) -> str:
        caller, listener = joined(keys[0].caller(keys[1].fingerprint), keys[1].listener([keys[0].fingerprint]))
        if faster:
            caller.send(1 << 40, bytes(3))
            pass_on(caller, listener)
        listener.send(1 << 40, bytes(4))
        if not faster:
            caller.send(1 << 40, bytes(3))
            pass_on(caller, listener)
        return listener.fault

    for faster in (True, False):
        assert asyncio.run(go(faster)) == "sends what is no share"


@pytest.mark.parametrize("odd", [None, 7, [], ["a"], {}, True])
def test_terms_are_texts(keys: list[Key], odd: Any) -> None:
    met = in_meeting(keys)
    for name in met.terms:
        met._compare(0, json.dumps(["optdp meeting 2", met.terms | {name: odd}, 0, 1, "0" * 64]).encode())
        assert (met.faults.pop(0), met.differs, met.agreed) == (
            "sends what this version of optdp cannot read",
            {},
            set(),
        )


def test_what_is_no_key(keys: list[Key], tmp_path: Path) -> None:
    assert not is_key("0" * 63)
    assert not is_key("A" * 64)
    assert fingerprint_of(None) == ""
    assert read_key(keys[0].path).fingerprint == keys[0].fingerprint
    data = keys[0].path.read_bytes()
    swapped = (
        data.split(b"-----BEGIN CERT")[0] + b"-----BEGIN CERT" + keys[1].path.read_bytes().split(b"-----BEGIN CERT")[1]
    )
    for content in (b"", b"x", data[:100], data.split(b"-----BEGIN CERT")[0], swapped):
        path = tmp_path / "bad.pem"
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(Exception, match="party-key"):
            read_key(path)


# ---------------------------------------------------------------------- fuzzing


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Bytes cut, changed, doubled or made up."""
    way = dice.randrange(6)
    where = dice.randrange(len(data) + 1)
    if way == 0:
        return data[:where]
    if way == 1 and data:
        changed = bytearray(data)
        for _ in range(dice.randint(1, 8)):
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        return bytes(changed)
    if way == 2:
        return data[:where] + dice.randbytes(dice.randint(1, 40)) + data[where:]
    if way == 3:
        return dice.randbytes(dice.randint(0, 3000))
    if way == 4:
        return data + data
    return bytes([22, 3, dice.randrange(5), *dice.randbytes(2)]) + dice.randbytes(dice.randint(0, 600))


def frames(dice: random.Random, m: Meeting) -> bytes:
    """Messages that are nearly right: labels, sizes, JSON, terms."""
    parts = []
    for _ in range(dice.randint(1, 4)):
        terms: Any = {**m.terms}
        hello: list[Any] = ["optdp meeting 2", terms, 0, 1, "0" * 64]
        odd: list[Any] = [None, 5, -1, 1e300, "", "\x00", [], {}, "g" * 64, "0" * 64, True, [[[]]], 10**400]
        way = dice.randrange(8)
        if way == 0:
            hello[dice.randrange(5)] = dice.choice(odd)
        elif way == 1:
            terms[dice.choice([*terms])] = dice.choice(odd)
        elif way == 2:
            del terms[dice.choice([*terms])]
        elif way == 3:
            terms["more"] = 1
        elif way == 4:
            hello = hello[: dice.randrange(5)]
        payload = json.dumps(hello).encode()
        if way == 5:
            payload = damaged(payload, dice)
        elif way == 6:
            payload = dice.choice([b"[" * 5000, b"{" * 900, b"9" * 5000, b'"\\ud800"', b"\xff\xfe", b"NaN", b""])
        label = dice.choice([HELLO, HELLO, HELLO, STOP, 3, 4, 5, 6, 0, -1, dice.getrandbits(62)])
        size = dice.choice([len(payload)] * 6 + [0, 1, len(payload) + 1, 1 << 31, (1 << 32) - 1])
        parts.append(struct.pack("<qI", label, size) + payload)
    return b"".join(parts)


def in_meeting(keys: list[Key]) -> Meeting:
    places = [Place("localhost", 7001 + i, keys[i].fingerprint) for i in range(2)]
    met = Meeting(None, 1, places, keys[1], Agreement("ab" * 32, "r", "sum 1 bound 5"), 1, 4096, 5.0, 1e18)
    met.news = asyncio.Event()
    return met


async def one_try(keys: list[Key], caller: ssl.SSLContext, listener: ssl.SSLContext, dice: random.Random) -> str:
    """One caller against one listener; says how it ended."""
    met = in_meeting(keys)
    met.context = listener
    victim = met._stranger()
    attacker = Link(caller, True, 1 << 20, accept)
    ends = Wire(), Wire()
    attacker.connection_made(ends[0])
    victim.connection_made(ends[1])
    stage = dice.randrange(4)
    if stage == 0:  # before TLS
        victim.data_received(damaged(ends[0].take(), dice))
    else:
        for turn in range(3):
            data = ends[0].take()
            victim.data_received(damaged(data, dice) if stage == 1 and turn == dice.randrange(3) else data)
            attacker.data_received(ends[1].take())
    await asyncio.sleep(0)
    if stage > 1:
        await asyncio.sleep(0)
        if stage == 2:
            attacker._tls.write(frames(dice, met))
            attacker._flush()
            victim.data_received(ends[0].take())
        else:
            victim.data_received(damaged(b"\x17\x03\x03\x00\x40" + dice.randbytes(64), dice))
    for _ in range(4):
        await asyncio.sleep(0)
    assert not any(task.done() and not task.cancelled() and task.exception() for task in met.tasks)
    said = bytearray()
    with contextlib.suppress(ssl.SSLError):
        attacker._incoming.write(ends[1].take())
        while data := attacker._tls.read(65536):
            said += data
    met.closed = True
    for task in met.tasks:
        task.cancel()
    victim.close()
    attacker.close()
    await asyncio.sleep(0)
    if not victim.fingerprint:
        assert not said
        return "unknown"
    return "agreed" if met.agreed else "refused" if met.faults or met.differs else "waiting"


@pytest.mark.parametrize("tries", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_malformed_frames(keys: list[Key], tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to end is seen, nothing raises, and who has shown no key is told nothing."""
    monkeypatch.setattr(links, "HANDSHAKE_SECONDS", 600.0)
    caller, listener = keys[0].caller(keys[1].fingerprint), keys[1].listener([keys[0].fingerprint])
    dice, seen = random.Random(tries), Counter[str]()

    async def go() -> None:
        raised: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        for _ in range(tries):
            seen[await one_try(keys, caller, listener, dice)] += 1
        assert raised == []

    asyncio.run(go())
    assert seen.keys() >= {"unknown", "refused", "waiting"}
    assert seen["unknown"] > tries / 10
    assert seen["refused"] > tries / 10


class Heard(Link):
    """A link whose messages are given and taken as they are, without TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context, False, 4096, accept)
        self.fingerprint, self.said = "known", dict[int, bytes]()

    def send(self, label: int, payload: bytes) -> None:
        self.said[label] = payload

    def hear(self, data: bytes) -> None:
        self._bytes += data
        self._cut()


async def one_opening(keys: list[Key], context: ssl.SSLContext, dice: random.Random) -> str:
    """Party 0 spoils one of its three messages of an opening, or none; says how that ended for party 1."""
    met, link = in_meeting(keys), Heard(context)
    met.links[0], met.nonces[0] = link, "11" * 32
    opening = Opening("share", (COMMIT, VIEW, SHARE), ["fuzz", dice.getrandbits(30)])
    own, theirs = dice.randbytes(40), dice.randbytes(40)
    agreed: list[Any] = []
    task = asyncio.ensure_future(opening.secrets(met, own, agreed.append))
    await asyncio.sleep(0)
    mine = opening.commitment(0, theirs)
    view = bytes.fromhex(met.nonces[0]) + mine + bytes.fromhex(met.nonce) + link.said[COMMIT]
    spoilt = dice.randrange(4)
    for place, (label, payload) in enumerate([(COMMIT, mine), (VIEW, view), (SHARE, theirs)]):
        right = struct.pack("<qI", label, len(payload)) + payload
        link.hear(right if place != spoilt else damaged(right, dice))
        for _ in range(6):
            await asyncio.sleep(0)
        if SHARE in link.said:  # only who had the same commitments is shown anything
            assert len(agreed) == 1
            assert agreed[0] == [mine, link.said[COMMIT]]
            assert spoilt >= 2 or link._seen >= {COMMIT, VIEW}
    try:
        if not task.done():
            return "waiting" if not link.fault else "hung up"
        assert task.result() == [theirs, own]
        return "opened"
    except FaultError as fault:
        return f"named {fault.party}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("tries", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_malformed_openings(keys: list[Key], tries: int) -> None:
    """Whatever a party sends in place of its commitment, its list or its share, it sees no share too early."""
    context, dice, seen = keys[1].listener([keys[0].fingerprint]), random.Random(tries), Counter[str]()

    async def go() -> None:
        for _ in range(tries):
            seen[await one_opening(keys, context, dice)] += 1

    asyncio.run(go())
    assert seen.keys() == {"waiting", "hung up", "opened", "named 0"}
    assert min(seen.values()) > tries / 50


async def hung_up(met: Meeting, found: list[Link]) -> None:
    for task in met.tasks:
        task.cancel()
    for link in found:
        link.close()
    await asyncio.sleep(0)


def test_strangers_do_not_pile_up(keys: list[Key]) -> None:
    """Only so many connections without a key are kept; the oldest goes first."""

    async def go() -> None:
        met = in_meeting(keys)
        met.context = keys[1].listener([keys[0].fingerprint])
        found = []
        for _ in range(300):
            found.append(met._stranger())
            found[-1].connection_made(Wire())
        alive = [not link.lost.done() for link in found]
        assert alive == [False] * (300 - meeting._MOST_STRANGERS) + [True] * meeting._MOST_STRANGERS
        assert len(met.every_link) <= meeting._MOST_STRANGERS + 1
        await hung_up(met, found)

    asyncio.run(go())


def test_who_shows_a_key_and_says_nothing_does_not_pile_up(keys: list[Key]) -> None:
    """A party could hold all connections of another one, so that a third does not get through and is named."""

    async def go() -> None:
        met = in_meeting(keys)
        met.context = keys[1].listener([keys[0].fingerprint])
        found = []
        for _ in range(3 * meeting._MOST_SILENT):
            caller, listener = Link(keys[0].caller(keys[1].fingerprint), True, 4096, accept), met._stranger()
            ends = Wire(), Wire()
            caller.connection_made(ends[0])
            listener.connection_made(ends[1])
            for _ in range(5):
                listener.data_received(ends[0].take())
                caller.data_received(ends[1].take())
                await asyncio.sleep(0)
            assert listener.fingerprint == keys[0].fingerprint
            found.append(listener)
        alive = [not link.lost.done() for link in found]
        assert alive == [False] * (2 * meeting._MOST_SILENT) + [True] * meeting._MOST_SILENT
        met.closed = True
        await hung_up(met, found)

    asyncio.run(go())


def test_who_shows_no_key_is_hung_up_on(keys: list[Key], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "HANDSHAKE_SECONDS", 0.05)

    async def go() -> None:
        link, wire = Link(keys[1].listener([keys[0].fingerprint]), False, 4096, accept), Wire()
        link.connection_made(wire)
        assert await asyncio.wait_for(link.known, 10) is False
        assert wire.over

    asyncio.run(go())
