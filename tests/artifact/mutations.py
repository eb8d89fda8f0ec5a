"""Files that were changed by accident: what can happen to bytes, and the things that it happens to."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from optdp import MultiLTE, Population, SingleLTE, solve, verify, verify_plan
from optdp.errors import OptdpError
from optdp.loading import load
from optdp.order.format import verify_order
from optdp.order.problem import OrderShuffle
from optdp.single.format import read
from tests.shared import shared_solution

ORDER = 'kind = "order-shuffle"\nalpha = "1"\nordering = "rcm"\n[groups]\nn = 6\nfile = "groups.json"\n'


@dataclass(frozen=True)
class Material:
    """A saved thing: the files that may be changed, what opens them, and what they mean to whoever reads them."""

    files: tuple[Path, ...]
    open: Callable[[], Any]
    meaning: Callable[[Path], Any]


def material(folder: Path) -> list[Material]:
    """Single tables, plans of both methods, an order; all small, all with every feature of a file."""
    found = []
    singles = [
        SingleLTE(Population.binomial(9, "0.5"), "0.5"),
        SingleLTE(Population.iid(4, ["0.5", "0.3", "0.2"]), "1", fallback_epsilon="4", tail="none", objective="mse"),
        SingleLTE(Population.binomial(3000, "0.001"), "1"),
    ]
    for i, single in enumerate(singles):
        path = folder / f"single-{i}.json"
        solve(single).save(path)
        found.append(Material((path,), lambda path=path: verify(path), read))  # type: ignore[misc]
    people = [Population.binomial(4, "0.5"), Population.binomial(3, "0.4")]
    for method in ("joint", "divisible"):
        place = folder / method
        shared_solution(MultiLTE(people, "1", method=method)).save(place)
        files = tuple(sorted(place.iterdir()))
        found.append(Material(files, lambda place=place: verify_plan(place), _content))  # type: ignore[misc]
    (folder / "groups.json").write_text("[[0, 1, 2], [2, 3], [4, 5], [1, 5]]")
    (folder / "order.toml").write_text(ORDER)
    order = folder / "order.json"
    problem = load(folder / "order.toml")
    assert isinstance(problem, OrderShuffle)
    solve(problem).save(order)
    found.append(Material((order,), lambda: verify_order(order), _content))
    return found


def _content(path: Path) -> Any:
    return json.loads(path.read_bytes())


# ---------------------------------------------------------------------- what happens to bytes


def flip(data: bytearray, random: Random, _: bytes) -> None:
    for _turn in range(random.choice([1, 1, 1, 2, 5])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def overwrite(data: bytearray, random: Random, _: bytes) -> None:
    data[random.randrange(len(data))] = random.choice([*b' \t\n0123456789",:[]{}-.e\\/', random.randrange(256)])


def insert(data: bytearray, random: Random, _: bytes) -> None:
    place = random.randrange(len(data) + 1)
    signs = random.choice([b' \t\n0123456789",:[]{}-+.eE\\', bytes(range(256))])
    data[place:place] = bytes(random.choice(signs) for _turn in range(random.choice([1, 1, 2, 8])))


def delete(data: bytearray, random: Random, _: bytes) -> None:
    start, stop = _span(data, random)
    del data[start:stop]


def duplicate(data: bytearray, random: Random, _: bytes) -> None:
    start, stop = _span(data, random)
    data[stop:stop] = data[start:stop]


def swap(data: bytearray, random: Random, _: bytes) -> None:
    size = random.choice([1, 1, 2, 8, 64])
    one, other = (random.randrange(max(1, len(data) - size)) for _turn in range(2))
    data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]


def truncate(data: bytearray, random: Random, _: bytes) -> None:
    del data[random.randrange(len(data)) :]


def zero(data: bytearray, random: Random, _: bytes) -> None:
    start, stop = _span(data, random)
    data[start:stop] = bytes(stop - start)


def splice(data: bytearray, random: Random, other: bytes) -> None:
    """The beginning of this one, and from there on the other."""
    cut = random.randrange(len(data))
    data[cut:] = other[random.choice([cut, random.randrange(len(other))]) :]


def transplant(data: bytearray, random: Random, other: bytes) -> None:
    """A piece of the other one in the middle of this one."""
    start, stop = _span(data, random)
    data[start:stop] = other[start:stop]


def digit(data: bytearray, random: Random, _: bytes) -> None:
    """A number that is another number: the change that is easiest to miss."""
    places = [i for i, sign in enumerate(data) if sign in b"0123456789"]
    if places:
        data[random.choice(places)] = random.choice(b"0123456789")


MUTATIONS = (flip, overwrite, insert, delete, duplicate, swap, truncate, zero, splice, transplant, digit)


def _span(data: bytearray, random: Random) -> tuple[int, int]:
    start = random.randrange(len(data))
    return start, start + random.choice([1, 1, 2, 4, 16, 64, 512, 4096])


def mutated(data: bytes, random: Random, other: bytes) -> bytes:
    """`data` with one or two things happened to it, so that it is not the same bytes."""
    changed = bytearray(data)
    while bytes(changed) == data:
        for _turn in range(random.choice([1, 1, 1, 2])):
            if changed:
                random.choice(MUTATIONS)(changed, random, other)
    return bytes(changed)


# ---------------------------------------------------------------------- how many are accepted


def tally(folder: Path, seed: int, count: int) -> Counter[str]:
    """How many of `count` mutations were refused, accepted as the same content, or accepted though they changed it."""
    random, found = Random(seed), Counter[str]()
    things = material(folder)
    every = [path for thing in things for path in thing.files]
    data = {path: path.read_bytes() for path in every}
    means = {path: thing.meaning(path) for thing in things for path in thing.files}
    for thing in things:
        thing.open()
    for _turn in range(count):
        thing = random.choice(things)
        path = random.choice(thing.files)
        changed = mutated(data[path], random, data[random.choice(every)])
        path.unlink()  # to write over a file takes some file systems long
        path.write_bytes(changed)
        try:
            thing.open()
        except OptdpError as error:
            found["refused"] += 1
            found["messages of more than one line"] += not str(error).isprintable()
        else:
            same = thing.meaning(path) == means[path]
            found["accepted, the same content" if same else "accepted, other content"] += 1
        finally:
            path.write_bytes(data[path])
    shutil.rmtree(folder, ignore_errors=True)
    return found
