"""One party's maps of a common secret word, and the cells of the word.

The word is uniform on `0..denominator-1`. It lies in cell `c` if `cuts[c-1] <= word < cuts[c]`, and then the party
reports `maps[choices[c]][x - first]` of its input `x`; inputs before the first and after the last are taken as these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .fields import list_of, positive
from .reading import check_head, digest
from .verdict import must, spend


@dataclass(frozen=True)
class Maps:
    """The maps of one party."""

    first: int
    final: int
    low: int
    high: int
    denominator: int
    cuts: Sequence[int]
    choices: Sequence[int]
    maps: Sequence[Sequence[int]]
    bare: str
    """The digest of the maps alone."""
    outside: str = "clamp"
    tail: Mapping[str, Any] | None = None

    def of(self, cell: int, x: int) -> int:
        """What is reported of an input."""
        return self.maps[self.choices[cell]][min(max(x, self.first), self.final) - self.first]

    @property
    def weights(self) -> list[int]:
        """How many words lie in each cell."""
        return [end - start for start, end in pairwise((0, *self.cuts))]


def read_maps(document: Mapping[str, Any]) -> Maps:
    """The maps of a document that keeps every rule of the format."""
    keys = "format version inputs outputs denominator cuts choices claim problem provenance sha256 maps"
    check_head(document, "optdp/seeded-maps", keys)
    (first, final), (low, high) = _ends(document["inputs"]), _ends(document["outputs"])
    denominator = positive(document["denominator"], "denominator")
    must(denominator & (denominator - 1) == 0, "denominator must be a power of two", denominator)
    must(2 <= denominator <= 1 << 62, "denominator must be 2 to 2^62", denominator)
    cuts = [positive(cut, "a cut") for cut in list_of(document["cuts"], "cuts", 1)]
    rising = all(a < b for a, b in pairwise((0, *cuts))) and cuts[-1] == denominator
    must(rising, "cuts must increase up to the denominator", document["cuts"][-1])
    choices, maps = list_of(document["choices"], "choices", 1), list_of(document["maps"], "maps", 1)
    spend(len(choices) + len(maps) * (final - first + 1), 200)
    right = len(choices) == len(cuts) and all(type(choice) is int for choice in choices)
    must(right and list(dict.fromkeys(choices)) == list(range(len(maps))), "choices must name every map", choices)
    for values in maps:
        right = isinstance(values, list) and len(values) == final - first + 1
        must(right and all(type(value) is int for value in values), "A map must have a report for each input", values)
        must(low <= min(values) and max(values) <= high, f"Reports must lie in {low}..{high}", values)
    must(len({tuple(values) for values in maps}) == len(maps), "Every map must stand once", len(maps))
    bare = digest({**document, "problem": {}, "claim": {}, "provenance": {}})
    return Maps(first, final, low, high, denominator, cuts, choices, maps, bare)


def _ends(pair: Any) -> tuple[int, int]:
    right = isinstance(pair, list) and [type(value) for value in pair] == [int, int]
    must(right and -(2**53) <= pair[0] <= pair[1] <= 2**53, "Ends must be [first, last] within 2^53", pair)
    return pair[0], pair[1]
