"""The bytes of a file as optdp spells them, made from what it says: for tests that change what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ORDER = (
    "format", "version", "inputs", "outputs", "denominator", "cuts", "choices", "outside", "tail", "plan", "claim",
    "problem", "provenance", "parties", "sha256", "weights", "maps",
)  # fmt: skip


def as_written(document: Mapping[str, Any]) -> bytes:
    """A table, maps or `plan.json`: a line for each key, and each row or map. An order: one line."""
    if document.get("format") == "optdp/order":
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    lines = []
    for key in sorted(document, key=lambda key: ORDER.index(key) if key in ORDER else len(ORDER)):
        value = document[key]
        if key in ("weights", "maps") and isinstance(value, list):
            rows = [json.dumps(row, sort_keys=True, separators=(",", ":")) for row in value]
            lines.append(f'"{key}": [\n' + ",\n".join(rows) + "\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
