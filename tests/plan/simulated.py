"""Parties of a secure computation in one process: a copy of MPyC for each, joined by wires that can be listened to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from optdp.plan.meeting.engine import load_mpyc


@dataclass
class Wire:
    """What a party writes to another, which has it in the next turn of the loop."""

    other: Any
    written: list[bytes] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))
        asyncio.get_running_loop().call_soon(self.other.data_received, bytes(data))


@dataclass
class Simulated:
    """The runtimes of all parties, the wires between them, and what each party asked to open."""

    runtimes: list[Any]
    wires: dict[tuple[int, int], Wire]
    opened: list[list[Any]]

    async def run(self, part: Callable[[Any], Awaitable[int]]) -> list[int]:
        """What each party finds."""
        return list(await asyncio.gather(*(part(rt) for rt in self.runtimes)))


copies: list[Any] = []


def simulated(m: int) -> Simulated:
    """`m` parties with an honest majority; to be called where the loop runs."""
    while len(copies) < m:
        copies.append(load_mpyc.__wrapped__())
    runtimes = []
    for i, mpyc in enumerate(copies[:m]):
        options = mpyc.mpyc._get_arg_parser().parse_args([])
        options.threshold, options.no_log, options.no_prss = (m - 1) // 2, True, True
        rt = mpyc.Runtime(i, [mpyc.Party(j) for j in range(m)], options)
        mpyc.asyncoro.runtime = mpyc.sectypes.runtime = rt
        runtimes.append(rt)
    wires = {}
    ends = {(i, j): copies[i].asyncoro.MessageExchanger(runtimes[i], j) for i in range(m) for j in range(m) if i != j}
    for (i, j), end in ends.items():
        end.transport = wires[i, j] = Wire(ends[j, i])
        runtimes[i].parties[j].protocol = end
    found = Simulated(runtimes, wires, [[] for _ in runtimes])
    for rt, seen in zip(runtimes, found.opened, strict=True):
        rt.output = _listened(rt.output, seen)
    return found


def _listened(output: Callable[..., Any], seen: list[Any]) -> Callable[..., Any]:
    def listening(what: Any, *others: Any, **options: Any) -> Any:
        seen.append(what)
        return output(what, *others, **options)

    return listening


def numbers(written: Sequence[bytes], width: int = 4) -> list[int]:
    """The elements of the field in what was written, message by message."""
    found = []
    for data in written:
        assert len(data) == 12 + int.from_bytes(data[8:12], "little")
        body = data[12:]
        found += [int.from_bytes(body[k : k + width], "little") for k in range(0, len(body), width)]
    return found
