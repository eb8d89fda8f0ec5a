"""The file of a ledger: JSON lines, each of which names the digest of the one before.

The first line is the head (`format` "optdp/ledger", `version` 1, the total), then comes one line for each entry, and
the last line is the seal: how many entries there are, the digest of the line before, and a signature of that digest or
none. A new entry takes the seal's place, and a new seal follows. The file is replaced as a whole, so that a crash
leaves it as it was or as it shall be.

A line that was changed has another digest than the next one says; so has the line before one that was removed or moved.
A file that was cut has no seal. What cannot be found without a signature: a file that somebody made anew, digests and
all. What cannot be found by looking at the file alone, even with one: that it was replaced by an earlier state of
itself. Whoever kept a later receipt, the digest of an entry's line, finds that too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.files.atomic import name_of, read_bytes
from optdp.files.canonical import canonical, parse, shown
from optdp.numbers import composition
from optdp.numbers.exact import show, to_fraction
from optdp.objects import Public
from optdp.work.account import EffortError

FORMAT, SEAL, VERSION = "optdp/ledger", "optdp/ledger-seal", 1
HEAD_KEYS = {"format", "version", "epsilon", "delta", "planned", "note", "time"}
ENTRY_KEYS = {"number", "artifact", "epsilon", "count", "about", "sum", "time", "previous"}
SEAL_KEYS = {"format", "version", "entries", "last", "public_key", "signature"}
MOST_ENTRIES, MOST_BYTES, MOST_COUNT = 10_000, 32 * 1024 * 1024, 1_000_000
LONGEST = 200
"""Characters of a note."""
_TIME = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z")
_HEX = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True)
class Entry(Public):
    """One line of a ledger: what was released."""

    number: int
    artifact: str
    """The SHA-256 digest that the artifact states."""
    epsilon: Fraction
    """The ordinary epsilon of one release."""
    count: int
    about: str
    time: str
    sum: Fraction
    """The epsilons of all releases up to this entry."""
    receipt: str
    """The digest of the line, which depends on all lines before it."""


@dataclass(frozen=True)
class Seal:
    """The last line."""

    last: str
    public_key: str | None
    signature: str | None


@dataclass(frozen=True)
class Chain:
    """What a file says, checked line by line."""

    lines: tuple[bytes, ...]
    """The head and the entries."""
    head: Mapping[str, Any]
    entries: tuple[Entry, ...]
    seal: Seal


def digest(line: bytes) -> str:
    """The digest of a line, without its end."""
    return sha256(line).hexdigest()


def spelled(table: Mapping[str, Any]) -> bytes:
    """A line, without its end."""
    return canonical(dict(table)).encode("ascii")


def sealed(lines: Sequence[bytes], public_key: str | None, signature: str | None) -> bytes:
    """The whole file: these lines, and the seal."""
    seal = {
        "format": SEAL, "version": VERSION, "entries": len(lines) - 1, "last": digest(lines[-1]),
        "public_key": public_key, "signature": signature,
    }  # fmt: skip
    return b"".join(line + b"\n" for line in (*lines, spelled(seal)))


def remark(text: object, name: str) -> str:
    """A note of one line."""
    if not isinstance(text, str) or not text.isprintable() or len(text) > LONGEST:
        raise ProblemError(f"{name} must be one line of at most {LONGEST} characters. Found {shown(text)}.")
    return text


def read(path: str | Path) -> Chain:
    """The ledger in a file: CertificateError if it was changed or cut, ArtifactError if it is none."""
    name = name_of(path)
    data = read_bytes(path, MOST_BYTES)
    *lines, rest = data.split(b"\n")
    if len(lines) > MOST_ENTRIES + 2:
        raise ArtifactError(f"A ledger may have {MOST_ENTRIES:,} entries. Found more in {name}. Do not use the file.")
    head = _table(lines[0] if lines else rest)
    seal = _table(lines[-1] if lines else b"")
    is_head, is_seal = head.get("format") == FORMAT, seal.get("format") == SEAL
    if not is_head and not is_seal and canonical(FORMAT)[:-1].encode() not in data:
        raise ArtifactError(f"{name} is not a ledger. Give a file that `optdp ledger open` began.")
    if is_head and is_seal and head.get("version") == seal.get("version") != VERSION:
        raise ArtifactError(f"A ledger must have version {VERSION}. Found {shown(head.get('version'))} in {name}.")
    if not is_seal or rest:
        raise CertificateError(f"{name} was cut or added to: its last line is not its seal. {_REMEDY}")
    try:
        return _chain(lines, head, seal)
    except _WrongError as wrong:
        raise CertificateError(f"{name} was changed: {wrong}. {_REMEDY}") from None


_REMEDY = "Go back to a copy that `optdp ledger show` accepts, and do not release anything on this one."


class _WrongError(Exception):
    """What is wrong with a ledger."""


def _chain(lines: list[bytes], head: dict[str, Any], seal: dict[str, Any]) -> Chain:
    tables = [head, *(_table(line) for line in lines[1:-1])]
    for number, (line, table) in enumerate(zip(lines, (*tables, seal), strict=True), 1):
        _check(bool(table) and spelled(table) == line, f"line {number} is not as optdp writes it")
    digests = [digest(line) for line in lines[:-1]]
    stated = [*(table.get("previous") for table in tables[1:]), seal.get("last")]
    for number, (found, said) in enumerate(zip(digests, stated, strict=True), 1):
        _check(found == said, f"line {number} is not the one that line {number + 1} was written after")
    for table in (head, seal):
        version = table.get("version")
        _check(type(version) is int and version == VERSION, "the first and the last line must have version 1")
    _check(head.keys() == HEAD_KEYS, "the first line is not as optdp writes it")
    _check(type(head["planned"]) is bool and _is(_TIME, head["time"]), "the first line is not as optdp writes it")
    try:
        composition.total_of(_number(head["epsilon"]), _number(head["delta"]))
        remark(head["note"], "note")
        entries = _entries(tables[1:], digests[1:])
    except ProblemError as error:
        raise _WrongError(str(error).rstrip(".")) from None
    _check(seal.keys() == SEAL_KEYS and seal["entries"] == len(entries), "the seal is not as optdp writes it")
    key, signature = seal["public_key"], seal["signature"]
    signed = _is(_HEX, key) and _is(_HEX, signature) and (len(key), len(signature)) == (64, 128)
    _check(signed or (key is None and signature is None), "the seal is not as optdp writes it")
    return Chain(tuple(lines[:-1]), head, tuple(entries), Seal(seal["last"], key, signature))


def _entries(tables: Sequence[Mapping[str, Any]], receipts: Sequence[str]) -> list[Entry]:
    found: list[Entry] = []
    total = Fraction(0)
    for number, (table, receipt) in enumerate(zip(tables, receipts, strict=True), 1):
        where = f"entry {number} is not as optdp writes it"
        _check(table.keys() == ENTRY_KEYS and table["number"] == number, where)
        count, artifact = table["count"], table["artifact"]
        _check(type(count) is int and 1 <= count <= MOST_COUNT, where)
        _check(_is(_HEX, artifact) and len(artifact) == 64 and _is(_TIME, table["time"]), where)
        epsilon = _number(table["epsilon"])
        _check(epsilon >= 0, where)
        total += count * epsilon
        _check(_number(table["sum"]) == total, f"the sum in entry {number} is wrong")
        about = remark(table["about"], "about")
        found.append(Entry(number, artifact, epsilon, count, about, table["time"], total, receipt))
    return found


def _table(line: bytes) -> dict[str, Any]:
    """The table that a line spells; empty if it spells none."""
    try:
        found = parse(line, 100) if len(line) < 20 * LONGEST else None
    except EffortError:
        raise
    except ArtifactError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(text: Any) -> Fraction:
    _check(isinstance(text, str), "a number is not a decimal in text")
    value = to_fraction(text, "a number")
    _check(show(value) == text, "a number is not spelled as optdp does")
    return value


def _is(pattern: re.Pattern[str], text: Any) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def _check(holds: bool, words: str) -> None:
    if not holds:
        raise _WrongError(words)
