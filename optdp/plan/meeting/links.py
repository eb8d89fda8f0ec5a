"""One connection between two parties: TLS 1.3, then messages, each with a label.

A message is a label (8 bytes, signed), a size (4 bytes) and so many bytes of content, as MPyC's are. Nothing is read as
a message before TLS has proved that the other side holds the key of a party. What the other side may send in all is
limited, so that nobody fills the memory. Each label comes once.

The bytes of TLS go through memory (`ssl.MemoryBIO`): so it is known at any time who has not shown a key yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import Callable

from optdp.plan.meeting.keys import fingerprint_of

HANDSHAKE_BYTES = 16384
"""What somebody may send before a key is shown; about 1500 are needed."""
HANDSHAKE_SECONDS = 10.0
_HEAD = struct.Struct("<qI")
OWN = range(1, 16)
"""Labels of our own messages; MPyC labels its own with 64-bit hashes."""


class Link(asyncio.Protocol):
    """One connection; to MPyC it is the `protocol` of a party.

    `on_known` is told when the other side has shown a key, with its fingerprint; it answers whether that is welcome.
    `fault` says what the other side did that no party does.
    """

    def __init__(
        self, context: ssl.SSLContext, calling: bool, allowance: int, on_known: Callable[[Link, str], bool]
    ) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=not calling)
        self._on_known, self._calling, self._allowance = on_known, calling, allowance
        self._room, self._bytes, self._seen = HANDSHAKE_BYTES, bytearray(), set[int]()
        self._sizes: dict[int, int] = {}
        self._here: dict[int, bytes] = {}
        self._awaited: dict[int, asyncio.Future[bytes]] = {}
        self.transport: asyncio.Transport | None = None
        self.fingerprint = ""
        self.refused = ""  # why TLS failed
        self.fault = ""
        self.known: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.lost: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    # ------------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE_SECONDS, self._too_slow)
        if self._calling:
            self._handshake()

    @property
    def silent(self) -> bool:
        """Whether the other side has said nothing yet."""
        return not self.fingerprint and self._room == HANDSHAKE_BYTES

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def data_received(self, data: bytes) -> None:
        if self.lost.done():
            return
        self._room -= len(data)
        if self._room < 0:
            self.fail("sends too much")
            return
        self._incoming.write(data)
        if not self.fingerprint:
            self._handshake()
        if self.fingerprint:
            self._read()

    def eof_received(self) -> bool:
        return False

    def close(self) -> None:
        """Say goodbye, and hang up once all is sent."""
        if self.transport is not None and not self.lost.done():
            if self.fingerprint:
                with contextlib.suppress(ssl.SSLError):
                    self._tls.unwrap()
            self._flush()
            self.transport.close()
        self._end()

    def fail(self, fault: str) -> None:
        """The other side does what no party does: hang up at once."""
        self.fault = self.fault or fault
        if self.transport is not None:
            self.transport.abort()
        self._end()

    def _end(self) -> None:
        if self.transport is not None:
            self._timer.cancel()
        for future, result in ((self.known, False), (self.lost, b"")):
            if not future.done():
                future.set_result(result)  # type: ignore[arg-type]

    def _too_slow(self) -> None:
        self.refused = "it shows no key"
        self.fail("")

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data and self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def _handshake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            another = isinstance(error, ssl.SSLCertVerificationError)
            told = "ALERT" in (error.reason or "")
            self.refused = "another key answers there" if another else "it refuses this key" if told else "no TLS there"
            self._flush()  # the alert that says why
            if self.transport is not None:
                self.transport.close()
            self._end()
            return
        self._flush()
        found = fingerprint_of(self._tls.getpeercert(binary_form=True))
        if self._tls.version() != "TLSv1.3" or not self._on_known(self, found):
            self.refused = "another key answers there"
            self.close()
            return
        self._timer.cancel()
        self.fingerprint, self._room = found, self._allowance
        self.known.set_result(True)

    def _read(self) -> None:
        try:
            while True:
                data = self._tls.read(65536)
                if not data:
                    break
                self._bytes += data
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            if not self._calling or "ALERT" not in (error.reason or ""):
                self.fail("breaks its encryption" if not isinstance(error, ssl.SSLZeroReturnError) else "")
            else:  # the listener looks at the caller's key after the caller has looked at the listener's
                self.refused = "it refuses this key"
                self.fail("")
            return
        self._flush()
        self._cut()

    # ------------------------------------------------------------------ messages

    def _cut(self) -> None:
        while len(self._bytes) >= _HEAD.size:
            label, size = _HEAD.unpack_from(self._bytes)
            if size > self._allowance:
                self.fail("sends too much")
                return
            if len(self._bytes) < _HEAD.size + size:
                return
            payload = bytes(self._bytes[_HEAD.size : _HEAD.size + size])
            del self._bytes[: _HEAD.size + size]
            if label in self._seen:
                self.fail("says the same thing twice")
                return
            self._seen.add(label)
            if not self._fits(label, payload):
                return
            waiting = self._awaited.pop(label, None)
            if waiting is None:
                self._here[label] = payload
            elif not waiting.done():
                waiting.set_result(payload)

    def _fits(self, label: int, payload: bytes) -> bool:
        """In a computation both sides send equally long messages under a label: others are no shares."""
        if len(payload) != self._sizes.get(label, len(payload)):
            self.fail("sends what is no share")
            return False
        return True

    def send(self, label: int, payload: bytes) -> None:
        """Send a message; nothing is sent on a connection that is lost."""
        if not self.lost.done() and self.fingerprint:
            data = memoryview(_HEAD.pack(label, len(payload)) + payload)
            with contextlib.suppress(ssl.SSLError):
                while data:
                    data = data[self._tls.write(data) :]
                self._flush()
        if label not in OWN:
            self._sizes[label] = len(payload)
            self._fits(label, self._here.get(label, payload))

    def receive(self, label: int) -> bytes | asyncio.Future[bytes]:
        """The message with a label, or a future of it: as MPyC asks for it, once."""
        if label in self._here:
            return self._here.pop(label)
        return self._awaited.setdefault(label, asyncio.get_running_loop().create_future())

    def arrival(self, label: int) -> asyncio.Future[bytes]:
        """The message with a label, once it is here; to be asked for once."""
        found = self.receive(label)
        if isinstance(found, asyncio.Future):
            return found
        here: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        here.set_result(found)
        return here

    def waiting(self) -> set[int]:
        """The labels that somebody waits for."""
        return {label for label, future in self._awaited.items() if not future.done()}
