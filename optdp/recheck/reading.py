"""Files: strict JSON, the digest, and what the head of an artifact and that of a plan have in common."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

from .verdict import MOST_BYTES, Refused, must, printable, shown, spend


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object of a regular file: UTF-8, no key twice, nothing infinite, deep or huge."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise Refused(f"{printable(path)}: must be a regular file of at most {MOST_BYTES:,} bytes.")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Refused(f"{printable(path)}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    spend(len(data) // 10, 0)
    if data[:2] == b"PK":
        raise Refused(f"{printable(path)}: this checker reads JSON. Found a .npz file. Use optdp verify.")
    try:
        document = json.loads(
            data.decode("utf-8"), object_pairs_hook=_table, parse_constant=_constant, parse_int=_integer
        )
        if not isinstance(document, dict):
            raise Refused(f"must be a JSON object. Found {shown(document)}.")
        rest = {key: value for key, value in document.items() if key != "weights"}
        _shallow(rest, 40)
        json.dumps(rest, ensure_ascii=False, allow_nan=False).encode("utf-8")  # half a character, or 1e999
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(
            f"{printable(path)}: must be whole JSON. Found {type(error).__name__}: {str(error)[:80]!r}."
        ) from None
    except Refused as error:
        raise Refused(f"{printable(path)}: {error}") from None
    return document


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


def _is_digest(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def check_head(document: Mapping[str, Any], form: str, keys: str) -> None:
    """Format, version, keys and digest, which both kinds of files have."""
    must(document.get("format") == form, f'format must be "{form}"', document.get("format"))
    version = document.get("version")
    must(type(version) is int and version == 1, "version must be 1", version)
    must(document.keys() == set(keys.split()), f"The keys must be {keys}", sorted(document))
    for name in ("problem", "claim", "provenance"):
        must(isinstance(document[name], dict), f"{name} must be a table", document[name])
    stated = document["sha256"]
    must(_is_digest(stated) and stated == digest(document), "sha256 must be the digest of the content", stated)
