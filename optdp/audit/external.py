"""A sampler that is another program: its outputs are read with a limit of size and of time, and checked.

With `{input}` and `{count}` in the command it is run once for each distinct input and prints `count` integers. Without
either it is started once; the inputs go to its standard input, one a line, and it prints one integer a line.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.numbers.exact import shown

DIGITS = 20
"""Signs of one integer, at most: those of 64 bits."""
CHUNK = 1 << 16
KEPT = 2000
"""How much is kept of what a command says on standard error."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Command:
    """A command as a sampler."""

    words: tuple[str, ...]
    timeout: float = 600.0
    """Seconds that all of its runs may take together."""

    @staticmethod
    def parse(text: str, timeout: float = 600.0) -> Command:
        """A command line, split as a shell would, but run without one."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise ProblemError(f"--command must be a command line. Found {shown(text)}: {error}.") from None
        if not words or "\0" in text:
            raise ProblemError("--command must be a command line. Found an empty one, or a zero byte.")
        if ("{input}" in text) != ("{count}" in text):
            raise ProblemError(
                "--command must have both {input} and {count}, or neither (then the inputs are written to its "
                "standard input). Found one of them."
            )
        if not 0 < timeout <= 1e6:
            raise ProblemError(f"--timeout must be larger than 0 and at most 1,000,000. Found {timeout}.")
        return Command(words, timeout)

    def filled(self, **values: object) -> list[str]:
        """The words with what stands for the placeholders."""
        words = list(self.words)
        for name, value in values.items():
            words = [word.replace("{" + name + "}", str(value)) for word in words]
        return words

    @property
    def longest(self) -> int:
        """Bytes of an output, at most."""
        return DIGITS + 2

    def named(self, x: int) -> dict[str, object]:
        """What stands for the placeholders of an input."""
        return {"input": x}

    def read(self, data: bytes, count: int, name: str) -> Integers:
        """What was printed."""
        return _integers(data, count, name)

    def __call__(self, inputs: Integers) -> Integers:
        """One output for each input."""
        deadline = time.monotonic() + self.timeout
        if not any("{input}" in word for word in self.words):
            with tempfile.TemporaryFile() as given:
                for start in range(0, len(inputs), CHUNK):
                    given.write("".join(f"{x}\n" for x in inputs[start : start + CHUNK].tolist()).encode("ascii"))
                given.seek(0)
                return self._run(list(self.words), given.fileno(), len(inputs), deadline)
        outputs = np.empty(len(inputs), dtype=np.int64)
        order = np.argsort(inputs, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(inputs[order])) + 1) if len(inputs) else ():
            words = self.filled(**self.named(int(inputs[group[0]])), count=len(group))
            outputs[group] = self._run(words, subprocess.DEVNULL, len(group), deadline)
        return outputs

    def _run(self, words: list[str], given: int, count: int, deadline: float) -> Integers:
        name = shown(" ".join(words))
        try:
            process = subprocess.Popen(
                words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ProblemError(f"--command must be a program that runs. Found {name}: {reason}.") from None
        with process:
            try:
                data, said = _printed(process, count * self.longest + 64, count, name, deadline)
                code = process.wait(max(deadline - time.monotonic(), 0.01))
            except BaseException as error:  # also when interrupted from the keyboard
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # its own group: nothing of it outlives the audit
                if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
                    raise ProblemError(
                        f"--command must be done within --timeout {self.timeout:g} s. Found {name} still running."
                    ) from None
                raise
        if code:
            last = said.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise ProblemError(f"--command must exit with 0. Found {code} of {name}: {_plain(*last)}")
        return self.read(data, count, name)


def _printed(
    process: subprocess.Popen[bytes], most: int, count: int, name: str, deadline: float
) -> tuple[bytes, bytes]:
    """What it prints until `deadline`, no more than `count` outputs need; and the end of what it says of errors."""
    data, said = bytearray(), bytearray()
    with selectors.DefaultSelector() as waiting:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            waiting.register(stream, selectors.EVENT_READ)
        while waiting.get_map():
            left = deadline - time.monotonic()
            ready = waiting.select(left) if left > 0 else []
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                got = os.read(key.fd, CHUNK)
                if not got:
                    waiting.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    said = (said + got)[-KEPT:]
                else:
                    data += got
                    if len(data) > most:
                        raise ProblemError(
                            f"--command must print {count:,} outputs. Found more output than they need from {name}."
                        )
    return bytes(data), bytes(said)


def _integers(data: bytes, count: int, name: str) -> Integers:
    found = data.split()
    odd = data.translate(None, b"0123456789+- \t\r\n")
    if not odd and len(found) == count and max(map(len, found), default=0) <= DIGITS:
        with contextlib.suppress(ValueError, OverflowError):
            return np.array(found, dtype=f"S{DIGITS}").astype(np.int64)
    if len(found) != count:
        raise ProblemError(f"--command must print {count:,} integers. Found {len(found):,} from {name}.")
    wrong = next((item for item in found if not _is_integer(item)), b"")
    raise ProblemError(f"--command must print integers of 64 bits. Found {_plain(wrong.decode('utf-8', 'replace'))}.")


def _is_integer(item: bytes) -> bool:
    digits = item.removeprefix(b"-") if item.startswith(b"-") else item.removeprefix(b"+")
    return digits.isdigit() and len(item) <= DIGITS and -(2**63) <= int(item) < 2**63


def _plain(*lines: str) -> str:
    text = lines[0] if lines else "it says nothing. Run it by hand to see why"
    return "".join(sign if sign.isprintable() else "?" for sign in text[:120])
