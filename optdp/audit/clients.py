"""What is drawn to audit a client of a shuffle protocol: messages of a few values, and what one gives away by itself.

An arm is a value. The law of its messages follows from the integers of the file, and for two arms the log-quotient of a
message is claimed to be at most `local_epsilon` (per unit of their distance, for sums with metric privacy; the delta of
rounding beside it, about 1e-34, is far below what draws can tell). Flipped bits are claimed bit by bit: a unit changes
one of them, and its quotient is at most `(1-f)/f`. What all messages together give away cannot be seen in the messages
of one client: `verify` proves it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from optdp.audit.experiment import MOST_CELLS, Arm, Compared, Floats, Inputs, Integers, Space, Trial
from optdp.audit.external import Command
from optdp.errors import ProblemError
from optdp.numbers.exact import log_upper, shown, up
from optdp.numbers.source import Source
from optdp.shuffle.analysis import messages_of
from optdp.shuffle.client import ALL, WORD, Flips, Padded, Response
from optdp.shuffle.format import Deployed
from optdp.shuffle.messages import head

LONG = 20_000
"""More bits than this are drawn with few ones or few zeros only: the law of others takes long."""


def client_trial(design: Deployed) -> Trial:
    """Everything that is claimed of one message."""
    client = design.client
    if client.largest > MOST_CELLS // 8:
        raise ProblemError(
            f"An audit tells at most {MOST_CELLS // 8:,} messages apart. Found {client.largest:,}. Audit a design with "
            "fewer."
        )
    values = _values(client)
    arms = tuple(Arm(f"the value is {text_of(design, x)}", _always(x), _law(client, x)) for x in values)
    if isinstance(client, Flips):
        each, claim = Fraction(up(log_upper((1 - client.chance) / client.chance))), "epsilon of one bit"
    else:
        each, claim = Fraction(design.claim["local_epsilon"]), "epsilon of one message"
    pairs = {*pairwise(range(len(values))), (0, len(values) - 1)}
    far = [1 if isinstance(client, Response) else values[j] - values[i] for i, j in sorted(pairs)]
    compared = tuple(
        Compared(pair, each * d, Fraction(1), claim if d == 1 else f"{claim}, at distance {d}")
        for pair, d in zip(sorted(pairs), far, strict=True)
    )
    return Trial(Space(0, client.largest), arms, compared)


@dataclass(frozen=True)
class Client:
    """Messages of optdp's own client; of two coordinates the first and the second in turn."""

    design: Deployed
    source: Source

    def __call__(self, inputs: Integers) -> Integers:
        client, found = self.design.client, np.empty(len(inputs), dtype=np.int64)
        sides, rows = client.dimensions, max(1, (1 << 22) // (client.words * client.dimensions))
        for start in range(0, len(inputs), rows):
            part = inputs[start : start + rows]
            words = self.source.words(len(part) * client.words * sides) >> np.uint64(64 - WORD)
            sent = messages_of(self.design, np.stack([part] * sides, axis=1), words.reshape(len(part), -1))
            found[start : start + rows] = _in_turn(sent)
        return found


@dataclass(frozen=True)
class ClientCommand(Command):
    """Another program as a client: `{input}` is a value as people give it, `{place}` the number of a label, from 0."""

    design: Deployed | None = None

    def named(self, x: int) -> dict[str, object]:
        assert self.design is not None
        return {"input": text_of(self.design, x), "place": x}

    @property
    def longest(self) -> int:
        return 120

    def read(self, data: bytes, count: int, name: str) -> Integers:
        """The messages of `count` lines of JSON."""
        assert self.design is not None
        lines, start = data.split(b"\n"), head(self.design).encode()
        if lines.pop() or len(lines) != count:
            raise ProblemError(f"--command must print {count:,} lines, a message each. Found {len(lines):,} of {name}.")
        sides, most = self.design.client.dimensions, self.design.client.largest
        found = np.empty((count, sides), dtype=np.int64)
        for i, line in enumerate(lines):
            sent = _message(line.removeprefix(start).removesuffix(b"}")) if line.startswith(start) else None
            sent = [sent] if sides == 1 else sent
            if not isinstance(sent, list) or [type(y) for y in sent] != [int] * sides or not 0 <= min(sent) <= most:
                raise ProblemError(
                    f"--command must print messages of the design, from 0 to {most:,}. Found "
                    f"{shown(line[:80].decode('utf-8', 'replace'))} of {name}."
                )
            found[i] = np.minimum(sent, most + 1)
        return _in_turn(found if sides > 1 else found[:, 0])


def client_command(command: Command, design: Deployed) -> ClientCommand:
    """The command of a client, which takes a value and how many messages to make."""
    words = command.words
    if not any("{count}" in word for word in words):
        raise ProblemError("--command must have both {input} and {count} for a client. Found neither.")
    return ClientCommand(words, command.timeout, design)


def text_of(design: Deployed, x: int) -> str:
    """A value, by its place among the inputs of a client, as a person gives it; both coordinates are alike."""
    data, client = design.data, design.client
    if data.get("labels") is not None:
        return str(data["labels"][x])
    if "low" in data:
        low, high = Fraction(data["low"]), Fraction(data["high"])
        return repr(float(low + (high - low) * Fraction(x, client.inputs)))
    return ",".join([str(x)] * client.dimensions)


def _message(text: bytes) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _in_turn(sent: NDArray[np.int64]) -> Integers:
    return sent if sent.ndim == 1 else sent[np.arange(len(sent)), np.arange(len(sent)) % sent.shape[1]]


def _always(x: int) -> Inputs:
    return lambda source, count: np.full(count, x, dtype=np.int64)


def _values(client: Response | Flips | Padded) -> list[int]:
    """The ends, their neighbours and the middle; of finer values also one between two steps."""
    top, grain = client.inputs, client.grain
    found = {0, top, min(grain, top), top // 2 // grain * grain, max(0, top - grain)}
    if grain > 1:
        found |= {min(top, grain // 2), min(top, top // 2 // grain * grain + grain // 4)}
    if isinstance(client, Flips) and client.bits > LONG:
        found -= {top // 2}
    return sorted(found)


def _law(client: Response | Flips | Padded, x: int) -> Floats:
    """`Pr[bin | x]`, the first and the last bin for messages that there are not."""
    law = np.zeros(client.largest + 3)
    for step, chance in _steps(client, x):
        law[1:-1] += chance * _exact(client, step)
    return law


def _steps(client: Response | Flips | Padded, x: int) -> Iterator[tuple[int, float]]:
    """The whole steps to which a value is rounded, and how likely each is."""
    step, rest = divmod(x, client.grain)
    above = Fraction(-(-(rest << 124) // client.grain), ALL)  # of all u with floor(u grain / 2^124) < rest
    yield step, float(1 - above)
    if rest:
        yield step + 1, float(above)


def _exact(client: Response | Flips | Padded, x: int) -> Floats:
    if isinstance(client, Flips):
        f = float(client.chance)
        ones = binom.pmf(np.arange(x + 1), x, 1.0 - f)
        return np.convolve(ones, binom.pmf(np.arange(client.bits - x + 1), client.bits - x, f))
    if isinstance(client, Response):
        law = np.full(client.values, float(client.gamma) / client.values)
        law[x] += float(1 - client.gamma)
        return law
    weights = [client.weight(y - x - client.padding) for y in range(client.largest + 1)]
    every = client.reach
    weights[0] = sum(client.weight(z) for z in range(-every, -x - client.padding + 1))
    weights[-1] = ALL - sum(weights[:-1])
    return np.array([float(Fraction(weight, ALL)) for weight in weights])
