"""Every byte of a file counts: no byte may be changed, dropped or added, not even a space.

The digest speaks of a file's content. Its bytes must be those that optdp writes for that content, or those that a
common JSON printer (`json.dumps` of Python, `jq`) writes: on one line with or without spaces, or indented, with one new
line at its end or none, the keys in any order. Of each file exactly one such spelling comes into question, by how it
begins; it is compared piece by piece, so that it never takes more memory than the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from optdp.errors import ArtifactError

MOST = 8 << 20
"""Bytes of a file that another printer may have spelled."""

Spelling = Callable[[Any], Iterable[str]]
"""What optdp writes for a document, in pieces."""

_OPENING = re.compile(rb'\{(?:\n([ \t]{0,8}))?"(?:[^"\\]|\\.){0,100}":( ?)')


def check(data: bytes, document: Any, own: Spelling) -> None:
    """Refuse bytes that are no spelling of `document`, which was read from them."""
    if not _is_spelled(data, own(document)) and not _is_printed(data, document, own):
        raise ArtifactError(
            "Every byte of a file must be as it was written. Found the right content with other spaces, new lines "
            "or escapes. The file was changed; copy it again."
        )


def _is_spelled(data: bytes, pieces: Iterable[str]) -> bool:
    """Whether `data` is the pieces one after another."""
    place = 0
    for piece in pieces:
        raw = piece.encode()
        if not data.startswith(raw, place):
            return False
        place += len(raw)
    return place == len(data)


def _is_printed(data: bytes, document: Any, own: Spelling) -> bool:
    """Whether another printer has spelled `data`; what is optdp's but for the new line at its end was cut."""
    opening = _OPENING.match(data)
    if opening is None or len(data) > MOST:
        return False
    indent, space = opening[1], opening[2].decode()
    separators = (",", ": ") if indent is not None else ("," + space, ":" + space)
    printer = json.JSONEncoder(
        indent=None if indent is None else indent.decode(),
        separators=separators,
        ensure_ascii=data.isascii(),
        allow_nan=False,
    )
    cut = _is_spelled(data + b"\n", own(document))
    return not cut and _is_spelled(data.removesuffix(b"\n"), printer.iterencode(document))
