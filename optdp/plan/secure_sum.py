"""A secure sum: m parties add up their integers over TCP with MPyC, and nothing but the sum is opened.

What is hidden, and from whom: each party splits its value with Shamir's scheme of degree m - 1, so that the shares of
all m parties are needed to open anything. Up to m - 1 parties that follow the protocol and put together all they saw
learn the sum, what follows from it and their own values, and nothing else. So m - 1 parties always learn the value of
the last one, as the sum less their own; with two parties, each learns the value of the other. What the sum must not
show about a value has to be hidden by noise in it before it comes here.

What is not promised: a party that does not follow the protocol can change the sum. The connections are plain TCP: who
reads all that a party sends and receives learns its value, and who can reach the port can make the sum fail or pose as
a party. Between machines, lay the connections through a VPN or SSH tunnels. When a run fails while the sum is being
opened, some parties may have seen the sum; the error then says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import importlib
import ipaddress
import json
import logging
import math
import operator
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from optdp.errors import ArtifactError, OptdpError, ProblemError, SolverError

_one_at_a_time = threading.Lock()  # MPyC keeps its runtime in global variables


def secure_sum(
    value: int,
    *,
    party: int,
    addresses: Sequence[str],
    session: str,
    bound: int,
    timeout: float = 60.0,
    listen: str | None = None,
) -> int:
    """Return the sum of the values of all parties; the value of this one leaves the process only as random shares.

    `addresses` has "host:port" of every party, in one order for all; `party` is the place of this one, from 0. All
    must give the same `session` (a hex digest of what they agreed on) and `bound` (the largest size of a value): these
    are compared before any share is sent. Listens on the loopback address, unless `listen` names another one. Returns
    or raises within `timeout` seconds; when one party fails, so does every other that does not have the sum yet.
    """
    end = time.monotonic() + timeout
    value, bound = operator.index(value), operator.index(bound)  # no NumPy integer, which would wrap
    places = read_addresses(addresses)
    m = len(places)
    for right, rule, found, advice in (
        (m >= 2, "A secure sum needs at least 2 parties", f"{m} addresses", "Give that of each party"),
        (0 <= party < m, f"party must be from 0 to {m - 1}", party, "Give the place of this party in the addresses"),
        (0 <= bound < 2**128, "bound must be at least 0 and below 2^128", bound, "Take it from the plan"),
        (abs(value) <= bound, f"A value must lie between {-bound} and {bound}", "another", "Use the table of the plan"),
        (re.fullmatch("[0-9a-f]{8,256}", session), "session must be a hex digest", "another text", "Use the plan's"),
        (0 < timeout < math.inf, "timeout must be a number of seconds above 0", timeout, "Give one such as 60"),
    ):
        if not right:
            raise ProblemError(f"{rule}. Found {found}. {advice}.")
    interface = interface_of(places[party][0], listen)
    runtime = load_mpyc()
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ProblemError(
            "secure_sum must be called where no event loop runs. Found a running one. Use asyncio.to_thread."
        )
    if not _one_at_a_time.acquire(blocking=False):
        raise ProblemError("A process can be in one sum at a time. Found one under way. Start a process per party.")
    try:
        return asyncio.run(Meeting(runtime, party, places, session, bound, timeout, end).run(value, interface))
    except (OSError, RuntimeError, ValueError) as error:  # among them: MPyC stops the loop at a share it cannot read
        raise SolverError(
            f"The secure sum must run to its end. Found: {error} Check that all parties run the same version of optdp "
            "and of MPyC, and start all of them again."
        ) from None
    finally:
        _one_at_a_time.release()


def read_addresses(addresses: Sequence[str]) -> list[tuple[str, int]]:
    """The host and the port of every party."""
    places: list[tuple[str, int]] = []
    for i, text in enumerate(addresses):
        found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+)):([0-9]{1,5})", text.strip().lower())
        host = (found[1] or found[2]) if found else ""
        if not found or not 1 <= int(found[3]) <= 65535 or host in ("0.0.0.0", "::"):
            raise ProblemError(
                f"An address must be host:port, where the others reach the party. Found {text[:80]!r} for party {i}. "
                "Write one such as localhost:9001, with a port from 1 to 65535."
            )
        place = ("127.0.0.1" if host == "localhost" else host, int(found[3]))
        if place in places:
            raise ProblemError(
                f"Every party must have an address of its own. Found {text!r} for parties {places.index(place)} and "
                f"{i}. Give each its own port."
            )
        places.append(place)
    return places


def interface_of(host: str, listen: str | None) -> str:
    """The address to listen on: `listen` if given, else that of this party if it is a loopback address."""
    address = host if listen is None else "127.0.0.1" if listen == "localhost" else listen
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(address).is_loopback or listen is not None:
            return address
    if listen is not None:
        raise ProblemError(
            f"listen must be the IP address of an interface of this machine. Found {listen[:80]!r}. "
            "Write one such as 0.0.0.0, which means every interface."
        )
    raise ProblemError(
        f"A party listens on the loopback address only, unless told otherwise. Found {host} as the host of this party. "
        "Say where to listen (0.0.0.0 is every interface), or use localhost and SSH tunnels."
    )


def look_up(host: str, port: int, ips: list[str]) -> None:
    """Add what the host's name stands for; nothing if nobody knows it."""
    with contextlib.suppress(OSError, UnicodeError):
        ips.extend(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


_HELLO, _STOP, _DONE = 1, 2, 3  # labels of our own messages; MPyC labels its own with 64-bit hashes
_KIND = "optdp secure sum 1"
_MOST_BYTES = 16384  # that one party may send in one sum; it sends less than 1000
_GRACE = 2.0  # seconds left to hear from the other parties once one of them is known to be in trouble
_SMALLEST_FIELD = 2**64


def _names(parties: Iterable[int]) -> str:
    return " and ".join(f"party {j}" for j in sorted(parties))


class Link(asyncio.Protocol):
    """One connection; an exchanger of MPyC cuts its bytes into labelled messages."""

    def __init__(self, exchanger: Any, on_open: Callable[[Link], None] | None) -> None:
        self.exchanger, self.on_open, self.room = exchanger, on_open, _MOST_BYTES
        self.lost: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.exchanger.transport = transport
        if self.on_open:
            self.on_open(self)

    def data_received(self, data: bytes) -> None:
        self.room -= len(data)
        try:
            if self.room < 0:
                raise ValueError("too many bytes")
            self.exchanger.data_received(data)
        except Exception:  # whatever a stranger makes MPyC trip over
            self.exchanger.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(b"")

    def arrival(self, label: int) -> asyncio.Future[bytes]:
        """The message with a label, once it is here; to be asked for once."""
        found = self.exchanger.receive(label)
        if isinstance(found, asyncio.Future):
            return found
        here: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        here.set_result(found)
        return here


class Meeting:
    """One sum, as seen by one party: all meet and compare what they agreed on, then share, then open."""

    def __init__(
        self, mpyc: Any, me: int, places: list[tuple[str, int]], session: str, bound: int, timeout: float, end: float
    ) -> None:
        self.mpyc, self.me, self.places, self.m = mpyc, me, places, len(places)
        self.session, self.bound, self.timeout, self.end = session, bound, timeout, end
        self.links: dict[int, Link] = {}  # to the parties that have said who they are
        self.every_link: list[Link] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.done: dict[int, asyncio.Future[bytes]] = {}  # the sum as a party has it
        self.why: dict[int, str] = {}  # what came of calling a party
        self.differs: dict[int, str] = {}  # what a party has that is not what this one has
        self.gone: set[int] = set()
        self.told: dict[int, tuple[str, list[int]]] = {}  # by a party that stopped: the reason, and whom it is about
        self.opening = False

    async def run(self, value: int, interface: str) -> int:
        loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        options = self.mpyc.mpyc._get_arg_parser().parse_args([])
        # The shares are only added up and opened, for which MPyC takes any degree below m.
        options.threshold, options.no_log, options.no_prss = self.m - 1, True, True
        parties = [self.mpyc.Party(j, *place) for j, place in enumerate(self.places)]
        self.rt = self.mpyc.asyncoro.runtime = self.mpyc.sectypes.runtime = self.mpyc.Runtime(self.me, parties, options)
        loop.set_exception_handler(lambda loop, context: None)  # MPyC's prints to stdout
        server = await self.listen(interface)
        try:
            for j in range(self.me + 1, self.m):
                self.start(self.call(j))
            await self.until(lambda: len(self.links) == self.m - 1)
            server.close()
            missing = set(range(self.m)) - {self.me, *self.links}
            if missing or self.trouble():
                raise self.verdict(missing)
            adding = loop.create_task(self.add(value))
            adding.add_done_callback(lambda _: self.news.set())
            await self.until(lambda: adding.done() or self.trouble())
            if not adding.done():
                raise self.verdict(j for j, link in self.links.items() if self.awaits(link))
            total = adding.result()
            for link in self.links.values():
                link.exchanger.send(_DONE, str(total).encode())
            await self.until(lambda: all(done.done() for done in self.done.values()) or self.trouble())
            missing = {j for j, done in self.done.items() if not done.done()}
            if missing:
                raise self.verdict(missing)
            others = [j for j, done in self.done.items() if done.result() != str(total).encode()]
            if others:
                raise SolverError(
                    f"All parties must open the same sum. Found another one at {_names(others)}. Count the sum as "
                    "released, and check that all parties run the same version of optdp."
                )
            return total
        finally:
            server.close()
            for task in self.tasks:
                task.cancel()
            for link in self.every_link:
                if link.exchanger.transport:
                    link.exchanger.transport.close()
            await asyncio.sleep(0)

    async def listen(self, interface: str) -> asyncio.Server:
        port = self.places[self.me][1]
        try:
            return await asyncio.get_running_loop().create_server(
                lambda: self.link(lambda link: self.start(self.greet(link))), interface, port
            )
        except OSError as error:
            found = "the port in use" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0).lower()
            raise ProblemError(
                f"Party {self.me} must be able to listen on {interface}:{port}. Found {found}. "
                "Give all parties another address for it, or free this one."
            ) from None

    def link(self, on_open: Callable[[Link], None] | None = None) -> Link:
        self.every_link.append(Link(self.mpyc.asyncoro.MessageExchanger(self.rt, -1), on_open))
        return self.every_link[-1]

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    def trouble(self) -> bool:
        return bool(self.differs or self.gone or self.told)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition holds or the time is up."""
        with contextlib.suppress(TimeoutError):
            while not reached():
                self.news.clear()
                async with asyncio.timeout_at(self.end):
                    await self.news.wait()

    async def call(self, peer: int) -> None:
        """Connect to a party with a higher number, again and again until it is there."""
        loop, (host, port), ips, asking = asyncio.get_running_loop(), self.places[peer], list[str](), threading.Thread()
        with contextlib.suppress(ValueError):
            ips.append(str(ipaddress.ip_address(host)))
        while peer not in self.links:
            if not ips and not asking.is_alive():
                self.why[peer] = "its name is not known"
                # A thread that nobody waits for: a name server that does not answer must not hold up the end.
                asking = threading.Thread(target=look_up, args=(host, port, ips), daemon=True)
                asking.start()
            for ip in ips:
                try:
                    transport, link = await loop.create_connection(self.link, ip, port)
                except OSError as error:
                    refused = isinstance(error, ConnectionRefusedError)
                    self.why[peer] = "nobody listens there" if refused else os.strerror(error.errno or 0).lower()
                    continue
                if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
                    transport.abort()  # TCP can connect a port to itself
                    continue
                self.why[peer] = "it does not say what it should"
                await self.greet(link, peer)
                break
            await asyncio.sleep(0.05)

    async def greet(self, link: Link, expected: int | None = None) -> None:
        """Exchange and compare what was agreed on; the caller speaks first."""
        if expected is not None:
            link.exchanger.send(_HELLO, self.hello(expected))
        hello = link.arrival(_HELLO)
        await asyncio.wait({hello, link.lost}, return_when=asyncio.FIRST_COMPLETED)
        try:
            kind, session, m, bound, peer, to = json.loads(hello.result())
            placed = m == self.m and to == self.me and (expected == peer or (expected is None and 0 <= peer < self.me))
            peer = peer if expected is None else expected
            if kind != _KIND or peer not in range(10000) or peer in (self.me, *self.links):
                raise ValueError("a stranger, or a party that is here already")
        except (ValueError, TypeError, RecursionError, asyncio.InvalidStateError):
            if expected is not None:
                self.why[expected] = "it hangs up; is another program there, or was a party started twice?"
            link.exchanger.transport.abort()
            return
        if expected is None:
            link.exchanger.send(_HELLO, self.hello(peer))
        if session != self.session:
            theirs = re.sub("[^0-9a-f]", "?", str(session)[:12])
            self.differs[peer] = f"another plan (digest {theirs}, here {self.session[:12]})"
        elif bound != self.bound:
            self.differs[peer] = "another bound"
        elif not placed:
            self.differs[peer] = "another list of parties"
        if peer < self.m:
            self.links[peer], self.done[peer] = link, link.arrival(_DONE)
            self.done[peer].add_done_callback(lambda _: self.news.set())
            link.arrival(_STOP).add_done_callback(functools.partial(self.on_stop, peer))
            link.lost.add_done_callback(functools.partial(self.on_lost, peer))
        if not placed:  # then there may be no such thing as all parties to wait for
            self.hurry()
        self.news.set()

    def hello(self, to: int) -> bytes:
        return json.dumps([_KIND, self.session, self.m, self.bound, self.me, to]).encode()

    def hurry(self) -> None:
        """The sum has failed: leave a little time to learn through whom."""
        self.end = min(self.end, time.monotonic() + _GRACE)
        self.news.set()

    def on_stop(self, peer: int, message: asyncio.Future[bytes]) -> None:
        with contextlib.suppress(ValueError, TypeError, RecursionError, asyncio.CancelledError):
            reason, parties = json.loads(message.result())
            parties = [j for j in parties if type(j) is int and 0 <= j < self.m]
            if parties and reason in ("differs", "gone", "late"):
                self.told[peer] = (reason, parties)
        self.hurry()

    def on_lost(self, peer: int, _: object) -> None:
        if not self.done[peer].done():
            self.gone.add(peer)
            self.hurry()

    def awaits(self, link: Link) -> bool:
        """Whether MPyC waits for a message of a party."""
        waiting = [label for label, found in link.exchanger.buffers.items() if isinstance(found, asyncio.Future)]
        return not {_STOP, _DONE}.issuperset(waiting)

    async def add(self, value: int) -> int:
        """Share the value, add up the shares of all parties, open the sum."""
        most = self.m * self.bound
        number = self.rt.SecFld(min_order=max(2 * most + 1, _SMALLEST_FIELD))
        order = int(number.field.order)
        for j, link in self.links.items():
            self.rt.parties[j].protocol = link.exchanger
        shares = self.rt.sum(self.rt.input(number(value % order)))
        await self.rt.gather(shares)
        self.opening = True
        opened = int(await self.rt.output(shares)) % order
        total = opened if opened <= most else opened - order
        if total < -most:
            raise SolverError(
                f"A sum of {self.m} values must lie between {-most} and {most}. Found another one. Some party did not "
                "follow the protocol: count the sum as released, and check that all run the same version of optdp."
            )
        return total

    def verdict(self, missing: Iterable[int]) -> OptdpError:
        """The error of this party, once the others have been told whom it is about."""
        told = {reason: (teller, parties) for teller, (reason, parties) in self.told.items()}
        gone = self.gone - self.told.keys()
        if self.differs:
            reason, parties = "differs", sorted(self.differs)
            found = " and ".join(f"party {j} has {what}" for j, what in sorted(self.differs.items()))
        elif "differs" in told:
            reason, (teller, parties) = "differs", told["differs"]
            found = f"party {teller} reports that {_names(parties)} differs from it"
        elif gone:
            reason, parties = "gone", sorted(gone)
            found = f"{_names(parties)} stopped, or its connection was lost"
        elif told:
            reason, (teller, parties) = next(iter(told.items()))
            found = f"party {teller} {'lost' if reason == 'gone' else 'did not hear in time from'} {_names(parties)}"
        else:
            reason, parties = "late", sorted(missing) or [self.me]
            calls = {j: f" ({why})" for j, why in self.why.items() if j not in self.links}
            found = "no answer in time from " + " and ".join(f"party {j}{calls.get(j, '')}" for j in parties)
        for link in self.links.values():
            if not link.lost.done():
                link.exchanger.send(_STOP, json.dumps([reason, parties]).encode())
        if reason == "differs":
            return ArtifactError(
                f"All parties must have the same plan before any share is sent. Found: {found}. "
                "Give all of them the same plan and the same list of parties, and start all of them again."
            )
        seen = " Count the sum as released: some parties may have seen it." if self.opening else ""
        return SolverError(
            f"All parties must be there within {self.timeout:g} seconds and stay to the end. Found: {found}. "
            f"Check that each runs and can be reached, and start all of them again.{seen}"
        )


@functools.cache
def load_mpyc() -> Any:
    """MPyC's module `runtime`: a copy of our own, so that its global state is nobody else's.

    When imported as usual, MPyC reads the command line, sends its log to stdout, may change the event loop policy and
    makes a global runtime. It does none of this where it thinks that its documentation is being built. NumPy is of no
    use here, and MPyC 0.11 calls a part of it that is to be removed.
    """

    def take_out() -> dict[str, Any]:
        names = [name for name, module in sys.modules.items() if name.split(".")[0] == "mpyc" and module is not None]
        return {name: sys.modules.pop(name) for name in names}

    settings = {"READTHEDOCS": "True", "MPYC_NONUMPY": "1"}
    argv, before, root = sys.argv, {name: os.environ.get(name) for name in settings}, logging.getLogger()
    quiet = logging.NullHandler()  # while the root logger has a handler, nobody adds another one to it
    others = take_out()
    try:
        os.environ.update(settings)
        sys.argv = argv[:1]
        root.addHandler(quiet)
        return importlib.import_module("mpyc.runtime")
    except ImportError:
        raise ProblemError('aggregate needs MPyC: pip install "optdp[mpc]"') from None
    finally:
        root.removeHandler(quiet)
        sys.argv = argv
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})
        take_out()
        sys.modules.update(others)
