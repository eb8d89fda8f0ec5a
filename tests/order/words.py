"""Distances of words, counted one by one."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence


def crossed(word: Sequence[int]) -> int:
    """How many pairs stand in the wrong order."""
    seen: list[int] = []
    total = 0
    for value in map(int, word):
        place = bisect(seen, value)
        total += len(seen) - place
        seen.insert(place, value)
    return total


def displaced(word: Sequence[int]) -> int:
    """How many numbers are not in their place."""
    return sum(place != value for place, value in enumerate(word))
