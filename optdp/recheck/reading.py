"""Files: strict JSON in the one spelling of optdp, the digest, and what the heads of all files have in common."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

from .verdict import LONG_BYTES, MOST_BYTES, Refused, must, printable, spend

_ZEROS = bytes.maketrans(b"0123456789", b"0" * 10)


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file that is not too large."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise Refused(f"{printable(path)}: must be a regular file of at most {most:,} bytes.")
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise Refused(f"{printable(path)}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    must(len(data) <= most, "A file must hold still while it is read", len(data))
    spend(len(data) // 10, 0)
    return data


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The table that a file of JSON holds; an order may be longer than others."""
    data = read_bytes(path, LONG_BYTES if _says_order(path) else MOST_BYTES)
    try:
        if data.startswith(b"PK"):
            raise Refused("An archive (.npz) is an export, which nobody reads back. Give the .json that `solve` wrote.")
        document = strict_json(data)
        must(isinstance(document, dict), "It must be a JSON object", document)
        _check_spelling(data, document)
        return dict(document)
    except Refused as error:
        raise Refused(f"{printable(path)}: {error}") from None


_LINES = {
    "optdp/noise-matrix": "format version inputs outputs denominator outside tail claim problem provenance sha256",
    "optdp/seeded-maps": ("format version inputs outputs denominator cuts choices claim problem provenance sha256"),
    "optdp/plan": "format version plan claim problem provenance parties sha256",
    "optdp/order": "",
    "optdp/shuffle": "format version kind people client data claim provenance sha256",
}
"""The keys that have a line of their own, in their order; an order is one line."""


def _check_spelling(data: bytes, document: Mapping[str, Any]) -> None:
    """Refuse the right content in other bytes than optdp writes; an unknown format or key is refused elsewhere.

    Lines of keys have spaces after commas and colons. The weights of a table, or maps, follow without spaces, a line
    a row.
    """
    keys = _LINES.get(str(document.get("format")))
    name = "maps" if document.get("format") == "optdp/seeded-maps" else "weights"
    rows = document.get(name)
    if keys is None or (keys and document.keys() - {name} != set(keys.split())) or not isinstance(rows, list | None):
        return
    wanted = canonical(document) + b"\n"
    if keys:
        lines = [f'"{key}": {json.dumps(document[key], sort_keys=True)}' for key in keys.split()]
        if rows is not None:
            lines.append(f'"{name}": [\n' + ",\n".join(canonical(row).decode("ascii") for row in rows) + "\n]")
        wanted = ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")
    if data != wanted:
        raise Refused("Every byte must be as optdp wrote it. Found the right content in another spelling.")


def _says_order(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file says near its start that it is an order."""
    try:
        if not os.path.isfile(path):  # to open a pipe would wait for whoever writes to it
            return False
        with open(path, "rb") as file:
            return b'"optdp/order"' in file.read(4096)
    except (OSError, ValueError):
        return False


def strict_json(data: bytes) -> Any:
    """The value that the bytes spell: UTF-8, no key twice, nothing infinite, deep or huge."""
    try:
        short = b"0" * 1301 not in data.translate(_ZEROS)  # then no integer need be looked at alone
        hook = None if short else _integer
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_table, parse_constant=_constant, parse_int=hook)
        rest = value  # long lists of integers are looked at where they are used
        if isinstance(value, dict):
            rest = {key: inner for key, inner in value.items() if key not in ("weights", "order", "groups", "maps")}
        if not isinstance(value, list):
            _shallow(rest, 40)
            json.dumps(rest, ensure_ascii=False, allow_nan=False).encode("utf-8")  # half a character, or 1e999
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"It must be whole JSON. Found {type(error).__name__}: {str(error)[:80]!r}.") from None
    return value


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise Refused("a key must stand once in a table.")
    return table


def _constant(text: str) -> None:
    raise Refused(f"numbers must be finite. Found {text}.")


def _integer(text: str) -> int:
    if len(text) > 1300 + text.startswith("-"):
        raise Refused(f"an integer may have 1300 digits. Found {len(text)}.")
    return int(text)


def _shallow(value: Any, left: int) -> None:
    if isinstance(value, dict | list):
        if left == 0:
            raise Refused("brackets may be nested 40 deep. Found more.")
        for item in value.values() if isinstance(value, dict) else value:
            _shallow(item, left - 1)


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical({key: value for key, value in document.items() if key != "sha256"})).hexdigest()


def is_digest(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def check_head(document: Mapping[str, Any], form: str, keys: str) -> None:
    """Format, version, keys and digest, which both kinds of files have."""
    must(document.get("format") == form, f'format must be "{form}"', document.get("format"))
    version = document.get("version")
    must(type(version) is int and version == 1, "version must be 1", version)
    must(document.keys() == set(keys.split()), f"The keys must be {keys}", sorted(document))
    for name in {"problem", "claim", "provenance"} & document.keys():
        must(isinstance(document[name], dict), f"{name} must be a table", document[name])
    stated = document["sha256"]
    must(is_digest(stated) and stated == digest(document), "sha256 must be the digest of the content", stated)
