"""A row of the table of bounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What one bound says of the unknown. `why` tells why it says nothing."""

    method: str
    side: str
    value: float | None
    applicable: bool
    why: str
    source: str
