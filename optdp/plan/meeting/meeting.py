"""A meeting: all parties of a plan connect, know each other by key, agree on what they do, compute, and end together.

Each party connects to those after it in the list. When TLS has shown both sides that the other is who it should be, the
one that was called speaks first, and then the other: the plan, the run, the list of keys, and the computation. Only if
all of them agree is anything computed. A party that stops tells the others why and through whom, so that each of them
ends with one line that names a party.

A computation is a coroutine that is given the meeting, with MPyC's runtime in `rt`, and returns an integer. It calls
`begin_opening` before it sends anything from which a result could be seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import ipaddress
import json
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from optdp.errors import ArtifactError, OptdpError, ProblemError, SolverError
from optdp.plan.meeting.engine import load_mpyc
from optdp.plan.meeting.keys import Key
from optdp.plan.meeting.links import Link
from optdp.plan.meeting.roster import Place
from optdp.plan.meeting.terms import Agreement, checked, greeting, read_greeting

HELLO, STOP, DONE = 1, 2, 3  # labels of messages; those of an opening follow in `opening`
_GRACE = 2.0  # seconds left to hear from the other parties once one of them is known to be in trouble
_MOST_STRANGERS = 200  # connections that have shown no key yet; those that said nothing go first, the oldest of them
_AT_ONCE, _IN_LINE = 16, 512  # connections that are taken before others are listened to, and that wait for it
_MOST_SILENT = 4  # connections of one party that has shown its key and was not met on them; the oldest goes first

_one_at_a_time = threading.Lock()  # MPyC keeps its runtime in global variables


Work = Callable[["Meeting"], Coroutine[Any, Any, int]]


def meet(
    work: Work,
    *,
    agreement: Agreement,
    party: int,
    places: Sequence[Place],
    key: Key,
    threshold: int,
    allowance: int,
    timeout: float = 60.0,
    listen: str | None = None,
    on_opening: Callable[[], object] = lambda: None,
    on_result: Callable[[int], object] = lambda _: None,
) -> int:
    """Meet the other parties, do the work with them, and return what it opened.

    Parameters
    ----------
    work
        The computation.
    agreement
        What all must have alike.
    party, places, key
        The place of this party among all, from 0; where all are, and their keys; the key of this one.
    threshold
        The degree of MPyC's shares: so many parties together learn nothing from shares. MPyC multiplies below m / 2.
    allowance
        How many bytes each of the others may send.
    timeout
        The call returns or raises within so many seconds.
    listen
        The address to listen on, if that is not the loopback address.
    on_opening, on_result
        Called before anything is sent from which the result can be seen, and when it is known here.
    """
    end = time.monotonic() + timeout
    places, interface = checked(agreement, party, places, key, timeout, listen)
    mpyc = load_mpyc()
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ProblemError("A meeting must be held where no event loop runs. Found a running one. Use a thread.")
    if not _one_at_a_time.acquire(blocking=False):
        raise ProblemError("A process can be in one meeting at a time. Found one under way. Start one for each party.")
    meeting = Meeting(mpyc, party, places, key, agreement, threshold, allowance, timeout, end)
    meeting.on_opening, meeting.on_result = on_opening, on_result
    try:
        return asyncio.run(meeting.run(work, interface))
    except (OSError, RuntimeError, ValueError) as error:  # among them: MPyC stops the loop at a share it cannot read
        raise SolverError(
            f"The computation must run to its end. Found: {error} Some party sent what cannot be read. Check that all "
            f"parties run the same version of optdp and of MPyC, and start all of them again.{meeting.seen}"
        ) from None
    finally:
        _one_at_a_time.release()


def _look_up(host: str, port: int, ips: list[str]) -> None:
    """Add what the host's name stands for; nothing if nobody knows it."""
    with contextlib.suppress(OSError, UnicodeError):
        ips.extend(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _names(parties: Iterable[int]) -> str:
    return " and ".join(f"party {j}" for j in sorted(parties))


class FaultError(Exception):
    """Raised by a computation: a party did what no party does."""

    def __init__(self, party: int, what: str) -> None:
        super().__init__(what)
        self.party, self.what = party, what


class Meeting:
    """One meeting, as seen by one party."""

    def __init__(
        self, mpyc: Any, me: int, places: Sequence[Place], key: Key, agreement: Agreement, threshold: int,
        allowance: int, timeout: float, end: float,
    ) -> None:  # fmt: skip
        self.mpyc, self.me, self.places, self.m, self.key = mpyc, me, places, len(places), key
        self.threshold, self.allowance, self.timeout, self.end = threshold, allowance, timeout, end
        self.terms = agreement.terms(places)
        self.number = {place.fingerprint: j for j, place in enumerate(places) if j != me}
        self.nonce = secrets.token_hex(32)
        self.nonces: dict[int, str] = {me: self.nonce}
        self.links: dict[int, Link] = {}  # to the parties that have shown their key
        self.agreed: set[int] = set()  # of whom all terms are the same
        self.every_link: list[Link] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.done: dict[int, asyncio.Future[bytes]] = {}  # the result as a party has it
        self.why: dict[int, str] = {}  # what came of calling a party
        self.differs: dict[int, str] = {}  # what a party has that is not what this one has
        self.faults: dict[int, str] = {}
        self.gone: set[int] = set()
        self.told: dict[int, tuple[str, list[int]]] = {}  # by a party that stopped: the reason, and whom it is about
        self.opening = self.closed = self.finished = self.stopping = False
        self.on_opening: Callable[[], object] = lambda: None
        self.on_result: Callable[[int], object] = lambda _: None

    @property
    def others(self) -> set[int]:
        return set(range(self.m)) - {self.me}

    @property
    def seen(self) -> str:
        """What an error adds once shares were opened."""
        if self.finished:
            return " Count the result as released. This party has it; the same run shows it again."
        if not self.opening:
            return ""
        return (
            " Count the result as released: some parties may have seen it. To start the same run again gives nobody "
            "anything new; a run of another name is another release."
        )

    # ------------------------------------------------------------------ for computations

    def begin_opening(self) -> None:
        """To be called before anything is sent from which the result can be seen."""
        if not self.opening:
            self.on_opening()
            self.opening = True

    def broadcast(self, label: int, payload: bytes) -> None:
        for link in self.links.values():
            link.send(label, payload)

    async def collect(self, label: int, size: int) -> dict[int, bytes]:
        """What all others say under a label; a message of another size is a fault."""
        coming = {
            j: link.arrival(label) for j, link in sorted(self.links.items())
        }  # all at once: `waiting` looks there
        found = {j: await arrival for j, arrival in coming.items()}
        for j, payload in found.items():
            if len(payload) != size:
                raise FaultError(j, "sends what cannot be read")
        return found

    # ------------------------------------------------------------------ the course of a meeting

    async def run(self, work: Work, interface: str) -> int:
        loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        options = self.mpyc.mpyc._get_arg_parser().parse_args([])
        options.threshold, options.no_log, options.no_prss = self.threshold, True, True
        parties = [self.mpyc.Party(j, place.host, place.port) for j, place in enumerate(self.places)]
        self.rt = self.mpyc.asyncoro.runtime = self.mpyc.sectypes.runtime = self.mpyc.Runtime(self.me, parties, options)
        loop.set_exception_handler(lambda loop, context: None)  # MPyC's prints to stdout
        self.context = self.key.listener([self.places[j].fingerprint for j in self.others])
        server = await self._listen(interface)
        try:
            for j in range(self.me + 1, self.m):
                self._start(self._call(j))
            await self._until(lambda: self.links.keys() == self.others)
            server.close()
            if self.agreed != self.others or self._trouble():
                raise self._verdict(self.others - self.links.keys())
            for j, link in self.links.items():
                self.rt.parties[j].protocol = link
            working = loop.create_task(work(self))
            working.add_done_callback(lambda _: self.news.set())
            await self._settled(working.done, self._awaited)
            if not working.done():
                verdict = self._verdict(self._awaited())
                working.cancel()
                raise verdict
            result = self._result(working)
            self._keep(result)
            self.finished = True
            await self._part(str(result).encode())
            return result
        finally:
            self.closed = True
            server.close()
            for task in self.tasks:
                task.cancel()
            for link in self.every_link:
                link.close()
            await asyncio.sleep(0)

    def _result(self, working: asyncio.Task[int]) -> int:
        try:
            return working.result()
        except FaultError as fault:
            self.faults[fault.party] = fault.what
        raise self._verdict(())

    def _keep(self, result: int) -> None:
        """Have the result recorded; where that fails, others may have it all the same."""
        try:
            self.on_result(result)
        except OptdpError as error:
            raise type(error)(f"{error}{self.seen}") from None

    async def _part(self, result: bytes) -> None:
        """Part when all have the result, and the same one."""
        self.broadcast(DONE, result)
        await self._settled(lambda: not self._unfinished(), self._unfinished)
        if self._unfinished():
            raise self._verdict(self._unfinished())
        for j, done in self.done.items():
            if done.result() != result:
                self.faults[j] = "has another result"
        if self.faults:
            raise self._verdict(())

    def _trouble(self) -> bool:
        return bool(self.told) or self._seen_trouble()

    def _seen_trouble(self) -> bool:
        """Trouble that this party has seen itself."""
        return bool(self.differs or self.faults or self.gone - self.told.keys())

    def _awaited(self) -> set[int]:
        """The parties from which the computation waits for something."""
        return {j for j, link in self.links.items() if link.waiting() - {STOP, DONE}}

    def _unfinished(self) -> set[int]:
        """The parties that have not said that they have the result."""
        return {j for j, done in self.done.items() if not done.done()}

    async def _until(self, reached: Callable[[], bool], reserve: float = 0.0) -> None:
        """Wait until a condition holds or the time is up but for a reserve."""
        with contextlib.suppress(TimeoutError):
            while not reached():
                self.news.clear()
                async with asyncio.timeout_at(self.end - reserve):
                    await self.news.wait()

    async def _settled(self, reached: Callable[[], bool], missing: Callable[[], set[int]]) -> None:
        """Wait until a condition holds, or it is clear who is in the way.

        The one for whom this party waits may itself wait for another: so all tell each other in time, and what a party
        tells may be a lie, so that this one looks a little longer who is missing here.
        """
        await self._until(lambda: reached() or self._trouble(), min(_GRACE, self.timeout / 5))
        if not reached() and not self._seen_trouble():
            self._stop("late", sorted(missing()))
            await self._until(lambda: reached() or self._seen_trouble())

    def _stop(self, reason: str, parties: list[int]) -> None:
        """Tell the others, once, why this party stops and through whom."""
        if not self.stopping and parties:
            self.stopping = True
            self.broadcast(STOP, json.dumps([reason, parties]).encode())

    def _hurry(self) -> None:
        """The meeting has failed: leave a little time to learn through whom."""
        self.end = min(self.end, time.monotonic() + _GRACE)
        self.news.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    # ------------------------------------------------------------------ connecting

    async def _listen(self, interface: str) -> asyncio.Server:
        port = self.places[self.me].port
        try:
            server = await asyncio.get_running_loop().create_server(self._stranger, interface, port, backlog=_AT_ONCE)
            with server.sockets[0].dup() as same:
                same.listen(_IN_LINE)
            return server
        except OSError as error:
            found, advice = os.strerror(error.errno or 0).lower(), "Say with --listen at which address of this machine"
            if error.errno == errno.EADDRINUSE:
                found, advice = "the port in use", "Give all parties another port for it, or free this one"
            raise ProblemError(
                f"Party {self.me} must be able to listen on {interface}:{port}. Found {found}. {advice}."
            ) from None

    def _stranger(self) -> Link:
        """Somebody connects."""
        self.every_link = [link for link in self.every_link if not link.lost.done()]
        self.tasks = [task for task in self.tasks if not task.done()]
        strangers = sorted((link for link in self.every_link if not link.fingerprint), key=lambda link: not link.silent)
        for link in strangers[: max(0, len(strangers) - _MOST_STRANGERS + 1)]:
            link.fail("")
        link = Link(self.context, False, self.allowance, lambda link, found: found in self.number)
        self.every_link.append(link)
        self._start(self._answer(link))
        return link

    async def _answer(self, link: Link) -> None:
        if await link.known:
            peer = self.number[link.fingerprint]
            same = [other for other in self.every_link if other.fingerprint == link.fingerprint]
            silent = [other for other in same if not other.lost.done() and other is not self.links.get(peer)]
            for other in silent[:-_MOST_SILENT]:
                other.fail("")
            await self._greet(link, peer, speaks_first=True)

    async def _call(self, peer: int) -> None:
        """Connect to a party with a higher number, again and again until it is there."""
        place, ips, asking = self.places[peer], list[str](), threading.Thread()
        context = self.key.caller(place.fingerprint)
        with contextlib.suppress(ValueError):
            ips.append(str(ipaddress.ip_address(place.host)))
        while peer not in self.links:
            if not ips and not asking.is_alive():
                self.why[peer] = "its name is not known"
                # A thread that nobody waits for: a name server that does not answer must not hold up the end.
                asking = threading.Thread(target=_look_up, args=(place.host, place.port, ips), daemon=True)
                asking.start()
            for ip in ips:
                link = await self._connected(peer, context, ip, place.port)
                if link is not None:
                    await self._greet(link, peer, speaks_first=False)
                    break
            await asyncio.sleep(0.05)

    async def _connected(self, peer: int, context: ssl.SSLContext, ip: str, port: int) -> Link | None:
        """A connection on which the party has shown its key."""
        pin = self.places[peer].fingerprint
        link = Link(context, True, self.allowance, lambda link, found: found == pin)
        self.every_link.append(link)
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(lambda: link, ip, port)
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            self.why[peer] = "nobody listens there" if refused else os.strerror(error.errno or 0).lower()
            self.every_link.remove(link)
            return None
        if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
            link.fail("")  # TCP can connect a port to itself
        elif await link.known:
            return link
        else:
            self.why[peer] = link.refused or "it hangs up before it shows its key"
        return None

    async def _greet(self, link: Link, peer: int, speaks_first: bool) -> None:
        """Exchange and compare what was agreed on; both sides have shown their keys."""
        if peer in self.links:
            link.close()  # a party is here once
            return
        if speaks_first:
            link.send(HELLO, self._hello(peer))
        hello = link.arrival(HELLO)
        self.why[peer] = "it shows its key and says nothing"
        await asyncio.wait({hello, link.lost}, return_when=asyncio.FIRST_COMPLETED)
        if peer in self.links or self.closed or not hello.done():
            self.why[peer] = link.refused or "it hangs up; was a party started twice?"
            if link.fault:
                self._blame(peer, link.fault)
            link.close()
            return
        if not speaks_first:
            link.send(HELLO, self._hello(peer))
        self._compare(peer, hello.result())
        self.links[peer], self.done[peer] = link, link.arrival(DONE)
        self.done[peer].add_done_callback(lambda _: self.news.set())
        link.arrival(STOP).add_done_callback(functools.partial(self._on_stop, peer))
        link.lost.add_done_callback(functools.partial(self._on_lost, peer))
        self.news.set()

    def _hello(self, to: int) -> bytes:
        return greeting(self.terms, self.me, to, self.nonce)

    def _compare(self, peer: int, hello: bytes) -> None:
        try:
            nonce, other = read_greeting(hello, self.terms, self.me, peer)
        except ValueError:
            self._blame(peer, "sends what this version of optdp cannot read")
            return
        if not other:
            self.nonces[peer] = nonce
            self.agreed.add(peer)
            return
        self.differs[peer] = next(iter(other.values()))
        if "parties" in other:  # then there may be no such thing as all parties to wait for
            self._hurry()

    def _blame(self, peer: int, fault: str) -> None:
        self.faults.setdefault(peer, fault)
        self._hurry()

    def _on_stop(self, peer: int, message: asyncio.Future[bytes]) -> None:
        with contextlib.suppress(ValueError, TypeError, RecursionError, asyncio.CancelledError):
            reason, parties = json.loads(message.result())
            parties = sorted({j for j in parties if type(j) is int and 0 <= j < self.m})
            if parties and reason in _REPORTS:
                self.told[peer] = (reason, parties)
        self._hurry()

    def _on_lost(self, peer: int, _: object) -> None:
        if self.closed:
            return
        if self.links[peer].fault:
            self._blame(peer, self.links[peer].fault)
        elif not self.done[peer].done():
            self.gone.add(peer)
            self._hurry()

    # ------------------------------------------------------------------ how it ends

    def _verdict(self, missing: Iterable[int]) -> OptdpError:
        """The error of this party, once the others have been told whom it is about."""
        told = {reason: (teller, parties) for teller, (reason, parties) in self.told.items()}
        stories = [
            f"party {j} {_REPORTS[reason]} {_names(parties)}" for j, (reason, parties) in sorted(self.told.items())
        ]
        gone, missing = self.gone - self.told.keys(), sorted(missing)
        if self.faults:
            reason, parties = "fault", sorted(self.faults)
            found = " and ".join(f"party {j} {what}" for j, what in sorted(self.faults.items()))
        elif self.differs:
            reason, parties = "differs", sorted(self.differs)
            found = " and ".join(f"party {j} has {what}" for j, what in sorted(self.differs.items()))
        elif told.keys() & {"fault", "differs"}:
            reason = "fault" if "fault" in told else "differs"
            teller, parties = told[reason]
            found = f"party {teller} reports that {_names(parties)} {_REPORTS[reason]}"
        elif gone:
            reason, parties = "gone", sorted(gone)
            found = f"{_names(parties)} stopped, or its connection was lost"
        elif told:
            reason, (_, parties) = next(iter(told.items()))
            found = " and ".join(stories)
            if missing:  # what a party says of others need not be true
                found += f", and this party was waiting for {_names(missing)}"
        else:
            reason, parties = "late", missing or sorted(self.others - self.agreed) or [self.me]
            calls = {j: f" ({why})" for j, why in self.why.items() if j not in self.links}
            found = "no answer in time from " + " and ".join(f"party {j}{calls.get(j, '')}" for j in parties)
        self._stop(reason, list(parties))
        if reason == "differs":
            return ArtifactError(
                f"All parties must have the same plan, run and list before any share is sent. Found: {found}. "
                "Give all of them the same, and start all of them again."
            )
        if reason == "fault":
            return SolverError(
                f"Every party must follow the protocol. Found: {found}. Find out what runs there before you start "
                f"again.{self.seen}"
            )
        return SolverError(
            f"All parties must be there within {self.timeout:g} seconds and stay to the end. Found: {found}. "
            f"Check that each runs and can be reached, and start all of them again.{self.seen}"
        )


_REPORTS = {
    "fault": "does not follow the protocol",
    "differs": "differs from it",
    "gone": "lost",
    "late": "did not hear in time from",
}
"""How a party's reason to stop is told."""
