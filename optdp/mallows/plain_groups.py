"""Groups in Python's own integers: all that verifying an order needs of them, without numpy."""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from optdp.errors import ProblemError
from optdp.math.effort import spend

LARGEST_N = 10**7
LARGEST_MEMBERS = 10**8
"""The most members of all groups together: 800 MB in arrays of numpy, half of that here."""
FILES = ("points", "graph", "data", "file")
"""The entries of a file's [groups] that name another file."""
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class PlainGroups:
    """As `Groups`: group `g` is `members[starts[g]:starts[g+1]]`, increasing, without repetition."""

    n: int
    starts: array[int]
    members: array[int]

    @classmethod
    def gathered(cls, n: int, groups: Iterable[Sequence[int]]) -> PlainGroups:
        """Groups that are right already, one after the other; refused as soon as they are too large together."""
        starts, members = array("q", [0]), array("i")
        for group in groups:
            check_members(len(members) + len(group), LARGEST_MEMBERS)
            spend(1 + 0.35 * len(group), "groups")
            members.extend(group)
            starts.append(len(members))
        return cls(n, starts, members)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[array[int]]:
        return (self.members[start:stop] for start, stop in pairwise(self.starts))

    @cached_property
    def digest(self) -> str:
        """What names these groups: SHA-256 of `n`, the starts and the members, as little-endian 64-bit numbers."""
        sums = hashlib.sha256(self.n.to_bytes(8, "little"))
        for numbers in (self.starts, self.members):
            for start in range(0, len(numbers), _BLOCK):
                block = array("q", numbers[start : start + _BLOCK])
                if sys.byteorder == "big":
                    block.byteswap()
                sums.update(block)
        return sums.hexdigest()


def check_members(count: int, most: int) -> None:
    """Refuse groups that are too large together."""
    if count > most:
        raise ProblemError(
            f"All groups together may have {most:,} members. Found {count:,} or more. "
            "Take a smaller radius or fewer hops, or each different group once."
        )
