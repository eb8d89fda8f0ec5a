"""The table of an artifact, once every rule of the format is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from .fields import positive, quotient_of
from .reading import check_head, digest
from .verdict import must

Row = Sequence[tuple[int, int]]
"""Pairs (output, weight); in a file they are lists."""


@dataclass(frozen=True)
class Table:
    """Rows of integers over a power of two for the inputs `first..final`, and what goes with them."""

    first: int
    final: int
    low: int
    high: int
    denominator: int
    rows: Sequence[Row]
    outside: str
    tail: Mapping[str, Any] | None
    q: Fraction | None
    bare: str
    """The digest of the table alone."""

    @cached_property
    def columns(self) -> dict[int, tuple[list[int], list[int]]]:
        """For each output that a row reaches the numbers of these rows and their weights."""
        found: dict[int, tuple[list[int], list[int]]] = {}
        for i, row in enumerate(self.rows):
            for s, weight in row:
                if s not in found:
                    found[s] = ([], [])
                found[s][0].append(i)
                found[s][1].append(weight)
        return found

    @cached_property
    def entries(self) -> int:
        return sum(map(len, self.rows))

    def served(self, x: int) -> int | None:
        """The number of the row that serves input `x`; None if it gets noise alone."""
        if self.first <= x <= self.final:
            return x - self.first
        return None if self.outside == "geometric" else 0 if x < self.first else len(self.rows) - 1


def read_table(document: Mapping[str, Any]) -> Table:
    """The table of a document that keeps every rule of the format."""
    keys = "format version inputs outputs denominator outside tail claim problem provenance sha256 weights"
    check_head(document, "optdp/noise-matrix", keys)
    ends = []
    for name in ("inputs", "outputs"):
        pair = document[name]
        right = isinstance(pair, list) and [type(end) for end in pair] == [int, int]
        must(right and -(2**53) <= pair[0] <= pair[1] <= 2**53, f"{name} must be [first, last] within 2^53", pair)
        ends.append(pair)
    (first, final), (low, high) = ends
    denominator = positive(document["denominator"], "denominator")
    must(denominator.bit_count() == 1, "denominator must be a power of two", document["denominator"])
    outside, tail, rows = document["outside"], document["tail"], document["weights"]
    must(outside in ("error", "clamp", "geometric"), "outside must be error, clamp or geometric", outside)
    must(outside != "geometric" or tail is not None, 'outside = "geometric" needs a tail', tail)
    must(isinstance(rows, list) and len(rows) == final - first + 1, "weights must have a row for each input", rows)
    for row in rows:
        check_row(row, low, high, denominator)
    q = None
    if tail is not None:
        laws = {"geometric": {"law", "q"}}
        laws["sgdl"] = {*laws["geometric"], "beta", "factor", "contraction", "contraction_denominator"}
        law = tail.get("law") if isinstance(tail, dict) else None
        right = isinstance(law, str) and law in laws and tail.keys() == laws[law]
        must(right, "tail must be null, geometric noise or a share of it", tail)
        q = quotient_of(tail["q"], "q")
        must(q < 1, "q must lie between 0 and 1", tail["q"])
    bare = {**document, "problem": {}, "claim": {}, "provenance": {}}
    return Table(first, final, low, high, denominator, rows, outside, tail, q, digest(bare))


def check_row(row: Any, low: int, high: int, denominator: int) -> None:
    shape = isinstance(row, list) and row and all(type(pair) is list and len(pair) == 2 for pair in row)
    must(bool(shape), "A row must be a list of pairs [output, weight]", row)
    must(all(type(s) is int and type(weight) is int for s, weight in row), "A row must hold integers only", row)
    must(all(one[0] < two[0] for one, two in pairwise(row)), "The outputs of a row must increase", row)
    must(low <= row[0][0] and row[-1][0] <= high, f"A row must stay within {low}..{high}", row)
    must(min(weight for _, weight in row) > 0, "Weights must be positive", row)
    must(sum(weight for _, weight in row) == denominator, "A row must sum to the denominator", row)
