"""Messages in files: a line of JSON for each, with the name of the design that it was made by.

A client's line is `{"design": NAME, "message": 17}`, with a list of two for two coordinates. The shuffler's file says
what is left when names and order are off. Of randomized response that is how often each message came: `{"design": NAME,
"message": 3, "times": 120}`, the smallest first. Of sums with metric privacy it is less: the bits of all messages are
shuffled together, so that only their number is left, `{"design": NAME, "messages": 100, "ones": 1234}`. The analyst
takes the shuffler's file; of randomized response also lines of clients, in whatever order a shuffler left them.

What was shuffled in parts is refused, as sums or counts of some of the people hide less than those of all.

Files are read line by line. A fault is counted and the first is named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ArtifactError
from optdp.files.atomic import name_of
from optdp.numbers.exact import shown
from optdp.shuffle.client import Response
from optdp.shuffle.format import Deployed

LONGEST = 1000
"""Bytes of a line, at most."""
Tally = dict[str, Any]
"""What is left of all messages: `messages` (how many), and `ones` or `counts`."""
_PARTS = "what is left of some people gives away more than is claimed: shuffle all messages together"


def head(design: Deployed) -> str:
    """How a client's line begins."""
    return f'{{"design": "{design.name}", "message": '


def spelled(design: Deployed, messages: NDArray[np.int64]) -> str:
    """A client's lines; a row of several coordinates for each message."""
    start, values = head(design), messages.tolist()
    if messages.ndim > 1:
        return "".join(f"{start}{json.dumps(row)}}}\n" for row in values)
    return "".join(f"{start}{value}}}\n" for value in values)


def collected(design: Deployed, path: str | Path) -> Tally:
    """What the shuffler keeps of the clients' messages."""
    return _read(design, path, False)


def received(design: Deployed, path: str | Path) -> Tally:
    """What the analyst gets from the shuffler's file."""
    return _read(design, path, True)


def shuffled(design: Deployed, tally: Tally) -> Iterator[str]:
    """The lines of the shuffler's file."""
    if isinstance(design.client, Response):
        counts = tally["counts"]
        for value in np.flatnonzero(counts).tolist():
            yield f'{{"design": "{design.name}", "message": {value}, "times": {int(counts[value])}}}\n'
    else:
        ones = tally["ones"]
        said = ones[0] if len(ones) == 1 else ones
        yield f'{{"design": "{design.name}", "messages": {tally["messages"]}, "ones": {json.dumps(said)}}}\n'


def check_count(design: Deployed, tally: Tally) -> None:
    """A claim is for n people of whom some may stay away: with another number of messages it is not this one."""
    found, least = tally["messages"], design.honest
    if least <= found <= design.n:
        return
    if found < least:
        means = (
            f"Fewer people add less noise, so that epsilon = {design.claim['epsilon']} is not proved of these messages"
        )
        remedy = (
            f"Collect {least - found:,} more, or solve with honest = the number that you can count on, and collect "
            "again."
        )
    else:
        means = "The claim is of a set of n messages, one from each person; somebody may have sent two"
        remedy = "Find out which are too many."
    wanted = f"n = {design.n:,}" if least == design.n else f"{least:,} to {design.n:,}"
    raise ArtifactError(f"The design is for {wanted} messages. Found {found:,}. {means}. {remedy}")


# ---------------------------------------------------------------------- reading


class _WrongError(Exception):
    """Why a line is no message."""


def _read(design: Deployed, path: str | Path, analyst: bool) -> Tally:
    """The sums over all lines; a fault in any of them, and the number of faults, is an ArtifactError."""
    add, tally = (_response if isinstance(design.client, Response) else _sums)(design, analyst)
    faults, first = 0, ""
    lines, start = 0, head(design).encode()
    try:
        with Path(path).open("rb") as file:
            while line := file.readline(LONGEST + 1):
                lines += 1
                try:
                    text = line[len(start) : -2]
                    if (
                        line.startswith(start)
                        and line.endswith(b"}\n")
                        and text.isdigit()
                        and text.isascii()
                        and len(text) < 18
                    ):
                        add({"message": int(text)})
                    else:
                        add(_parsed(line, design))
                except _WrongError as error:
                    faults += 1
                    first = first or f"line {lines}: {error}"
                    while line and not line.endswith(b"\n"):  # the rest of one that is too long
                        line = file.readline(LONGEST + 1)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot read {name_of(path)}: {getattr(error, 'strerror', None) or error}.") from None
    if faults:
        many = f"{faults:,} line{'s' * (faults > 1)} of {lines:,} that {'are' if faults > 1 else 'is'} not"
        raise ArtifactError(f"Every line of {name_of(path)} must be a message of this design. Found {many}; {first}.")
    return tally()


def _parsed(line: bytes, design: Deployed) -> dict[str, Any]:
    if len(line) > LONGEST:
        raise _WrongError(f"longer than {LONGEST} bytes")
    try:
        found = json.loads(line.decode(), object_pairs_hook=_table)
    except (ValueError, RecursionError):
        raise _WrongError(f"no JSON: {shown(line[:60].decode(errors='replace'))}") from None
    if not isinstance(found, dict) or "design" not in found:
        raise _WrongError("it names no design")
    if found["design"] != design.name:
        raise _WrongError(f"made by another design, {shown(found['design'])} and not {design.name}")
    del found["design"]
    return found


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a key twice")
    return table


def _whole(value: Any, name: str, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _WrongError(f"{name} must be a whole number from 0 to {most:,}, not {shown(value)}")
    return value


def _keys(found: dict[str, Any], *allowed: set[str]) -> None:
    if found.keys() not in allowed:
        raise _WrongError(f"the keys must be design, {', '.join(sorted(allowed[0]))}")


def _response(design: Deployed, analyst: bool) -> tuple[Callable[[dict[str, Any]], None], Callable[[], Tally]]:
    most = design.client.largest
    counts = np.zeros(most + 1, np.int64)
    single: bool | None = None
    allowed = ({"message"}, {"message", "times"}) if analyst else ({"message"},)

    def add(found: dict[str, Any]) -> None:
        nonlocal single
        _keys(found, *allowed)
        message, alone = _whole(found["message"], "message", most), "times" not in found
        times = 1 if alone else _whole(found["times"], "times", design.n)
        if alone != (alone if single is None else single) or (not alone and counts[message]):
            raise _WrongError(f"the message is counted elsewhere, too, and {_PARTS}")
        single = alone
        counts[message] += times

    return add, lambda: {"messages": int(counts.sum()), "counts": counts}


def _sums(design: Deployed, analyst: bool) -> tuple[Callable[[dict[str, Any]], None], Callable[[], Tally]]:
    sides, most = design.client.dimensions, design.client.largest
    ones, count = [0] * sides, 0

    def each(value: Any, name: str, limit: int) -> list[int]:
        listed = value if isinstance(value, list) and sides > 1 else [value]
        if len(listed) != sides:
            raise _WrongError(f"{name} must be {sides} whole numbers")
        return [_whole(entry, name, limit) for entry in listed]

    def add(found: dict[str, Any]) -> None:
        nonlocal count
        if analyst and found.keys() == {"message"}:
            raise _WrongError("not shuffled, so that only local_epsilon protects it: run `optdp shuffle` first")
        _keys(found, {"messages", "ones"} if analyst else {"message"})
        if analyst:
            if count:
                raise _WrongError(f"a second sum, and {_PARTS}")
            people = _whole(found["messages"], "messages", 10**12)
            values = each(found["ones"], "ones", most * people)
        else:
            people, values = 1, each(found["message"], "message", most)
        count += people
        for i, value in enumerate(values):
            ones[i] += value

    return add, lambda: {"messages": count, "ones": ones}
