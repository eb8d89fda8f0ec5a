"""JSON as an artifact may have it: UTF-8, no key twice, nothing infinite, nothing needlessly deep or huge."""

from __future__ import annotations

import json
import math
import re
import reprlib
from array import array
from collections import Counter
from collections.abc import Iterable, Set
from itertools import accumulate
from typing import Any, NoReturn

from optdp.errors import ArtifactError
from optdp.work.account import spend

MAX_DIGITS = 1300
"""Decimal digits of an integer; 2^4096 has 1,234."""

MAX_VALUES = 3_000_000
"""Values of a file, each of which takes a hundred times its length in memory; the largest table has nearly so many."""

MAX_DEPTH = 40
"""Brackets that may be open at once."""

_DIGEST = re.compile(r"[0-9a-f]{64}")

shown = reprlib.repr
"""A value in a message: on one line, and short."""

_ZEROS = bytes.maketrans(b"0123456789", b"0" * 10)
_NOT_BRACKETS = bytes(i for i in range(256) if i not in b"[]{}")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
# Matches from every quote on, closed or not, so that the search never goes back over what it has read.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def parse(data: bytes, most: int = MAX_VALUES) -> Any:
    """The value that `data` spells, of at most `most` values; whatever is wrong with it is an ArtifactError."""
    if data.startswith(b"PK"):
        raise ArtifactError(
            "An artifact must be JSON. Found an archive; .npz files are exports, which optdp does not read back. "
            "Give the .json file that `optdp solve --out` wrote."
        )
    if max(data.count(b","), 2 * (data.count(b"[") + data.count(b"{"))) > most:  # before any of them takes memory
        raise ArtifactError(
            f"JSON may hold at most {most:,} values. Found more, so optdp did not write it. Do not use it."
        )
    lists = 3 * data.count(b"[[") + 6 * data.count(b"{")  # each row of a table, and each table of names
    spend(data.count(b",") + lists + len(data) / 100, "what stands in it")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArtifactError(
            f"An artifact must be UTF-8 text. Found byte {data[error.start]:#04x} at {error.start}. "
            "Give the file that optdp wrote."
        ) from None
    if depth(data) > MAX_DEPTH:
        raise ArtifactError(
            f"JSON may nest at most {MAX_DEPTH} brackets. Found more, so optdp did not write it. Do not use it."
        )
    hooks: dict[str, Any] = {} if longest_ok(data) else {"parse_int": _integer}
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite, **hooks)
        if b"\\ud" in data or b"\\uD" in data:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise ArtifactError(
            f"An artifact must be JSON. Found: {error.msg} (line {error.lineno}, column {error.colno}). "
            "The file was cut off or changed; copy it again."
        ) from None
    except UnicodeEncodeError:
        raise ArtifactError("Text must be Unicode. Found half a character. Do not use the file.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ArtifactError(
            f"JSON must be of a size that can be read. Found {type(error).__name__}. Do not use the file."
        ) from None
    return value


def canonical(value: Any) -> str:
    """The one spelling of `value`: sorted keys, no spaces, ASCII."""
    return _spelled(value, (",", ":"))


def friendly(value: Any) -> str:
    """As canonical, with spaces for the eye."""
    return _spelled(value, (", ", ": "))


def normal(value: Any) -> Any:
    """`value` as it will be read back: a copy, tuples as lists; refused if reading would refuse it."""
    return parse(canonical(value).encode("ascii"))


def depth(data: bytes) -> int:
    """How many brackets are open at once, at most, outside strings."""
    steps = _STRING.sub(b"", data).translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(array("b", steps), initial=0))


def longest_ok(data: bytes) -> bool:
    """Whether no run of digits is longer than MAX_DIGITS; then integers need not be looked at singly."""
    return b"0" * (MAX_DIGITS + 1) not in data.translate(_ZEROS)


def _spelled(value: Any, separators: tuple[str, str]) -> str:
    try:
        return json.dumps(value, sort_keys=True, separators=separators, ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"An artifact holds what JSON can say: text, finite numbers, lists and tables. Found: {error}. "
            "Write other values as text."
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ArtifactError(f"Each key may occur once. Found {shown(twice)} twice. Do not use the file.")
    return table


def _constant(name: str) -> NoReturn:
    raise ArtifactError(f"Numbers must be finite. Found {name}. Do not use the file.")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ArtifactError(f"Numbers must be finite. Found {shown(text)}. Do not use the file.")
    return value


def _integer(text: str) -> int:
    digits = len(text) - text.startswith("-")
    if digits > MAX_DIGITS:
        raise ArtifactError(f"An integer may have at most {MAX_DIGITS} digits. Found {digits}. Do not use the file.")
    return int(text)


def refused(rule: str, found: str, remedy: str = "Get the file as optdp wrote it.") -> ArtifactError:
    """Why a file is not accepted."""
    return ArtifactError(f"{rule}. Found {found}. {remedy}")


def check_head(document: Any, form: str, keys: Set[str], what: str, remedy: str) -> dict[str, Any]:
    """A table of this format, version 1, with these keys and no others."""
    stated = document.get("format") if isinstance(document, dict) else document
    if not isinstance(document, dict) or stated != form:
        raise refused(f'format must be "{form}"', shown(stated), remedy)
    version = document.get("version")
    if type(version) is not int or version != 1:
        raise refused("version must be 1", shown(version), "Use the optdp that wrote it.")
    if document.keys() != keys:
        extra, lacking = document.keys() - keys, keys - document.keys()
        found = f"unknown {shown(sorted(extra))}" if extra else f"no {', '.join(sorted(lacking))}"
        raise refused(f"{what} must have exactly its {len(keys)} keys", found)
    for name in ("problem", "claim", "provenance"):
        if name in keys and not isinstance(document[name], dict):
            raise refused(f"{name} must be a table", shown(document[name]))
    return document


def check_digest(stated: Any, digest: str) -> None:
    """The digest that a file states must be that of its content."""
    if not isinstance(stated, str) or not _DIGEST.fullmatch(stated):
        raise refused("sha256 must be 64 hexadecimal digits", shown(stated))
    if stated != digest:
        raise refused("sha256 must be the digest of the content", "another", "The file was changed or cut off.")


def check(data: bytes, pieces: Iterable[str]) -> None:
    """Refuse bytes that are not the pieces, one after another, that optdp writes for what was read from them."""
    place = 0
    for piece in pieces:
        raw = piece.encode("ascii")
        if not data.startswith(raw, place):
            break
        place += len(raw)
    else:
        if place == len(data):
            return
    raise ArtifactError(
        "Every byte of a file must be as optdp wrote it. Found the right content, but other spaces, line breaks, "
        "escapes or order of keys. Get the original file, not one that another tool has reformatted."
    )
