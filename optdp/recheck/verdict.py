"""What a check can end with, and how much work, memory and precision it may take."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


class Refused(Exception):  # noqa: N818
    """The file is at fault, or asks for more than this checker does (exit code 2)."""


class Failed(Exception):  # noqa: N818
    """A claim does not hold (exit code 1)."""


@dataclass(frozen=True)
class Findings:
    """What was recomputed. Epsilons and errors are upper bounds; None is infinite, or nothing is proved of it."""

    status: str
    kind: str
    figures: Mapping[str, Fraction | bool | None]
    unchecked: tuple[str, ...]
    sha256: str
    """The digest of what was read."""


MOST_BYTES, LONG_BYTES = 64 * 1024 * 1024, 256 * 1024 * 1024
"""The longest file, and the longest one of an order or of its groups."""
MOST_WORK = 20_000_000_000
"""How many steps on digits of 30 bits one check may take: about a minute."""
MOST_MEMORY = 4_000_000_000
"""How many bits the laws of one prior may take."""
MOST_BITS = 1 << 18
"""The longest enclosures of powers of `q`, and the longest common denominator of one person's law."""
GUARD = 400
"""Bits to which enclosures are right, relative to the smallest number that matters."""
work: ContextVar[list[int]] = ContextVar("work")


def spend(times: int, bits: int) -> None:
    """Account for `times` operations of a long integer with a short one, before they are done."""
    spent = work.get()
    spent[0] += times * (bits // 30 + 200)
    if spent[0] > MOST_WORK:
        raise Refused(
            "This checker does up to about a minute of work. Found more people, outputs, parties or members of groups "
            "than that. Use optdp verify."
        )


def printable(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return name if name.isprintable() else repr(name)


def shown(value: Any) -> str:
    """As much of a value as a line may show."""
    text = reprlib.repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def must(condition: bool, rule: str, found: Any) -> None:
    if not condition:
        raise Refused(f"{rule}. Found {shown(found)}.")
