"""Who is shuffled with whom: one group of records for each record, or groups that are given (E, section 2.2).

Groups are kept as one long array of members and where each group starts, never as a table of all pairs.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.mallows.plain_groups import FILES as FILES
from optdp.mallows.plain_groups import LARGEST_N as LARGEST_N
from optdp.mallows.plain_groups import PlainGroups
from optdp.math.exact import check_whole, shown

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of the records `0..n-1`: group `g` is `members[starts[g]:starts[g+1]]`, increasing, without repetition."""

    n: int
    starts: Whole
    members: Whole
    points: NDArray[np.float64] | None = None
    """Where the records are, if that is known: for orders that follow a curve through them."""

    @classmethod
    def of(cls, groups: Iterable[Sequence[int]], n: int, points: Any = None) -> Groups:
        """Groups given one by one."""
        check_whole(n, "n", 1, LARGEST_N)
        listed = [_records(group, number) for number, group in enumerate(groups)]
        for number, group in enumerate(listed):
            if group.size and (group.min() < 0 or group.max() >= n):
                wrong = int(group[(group < 0) | (group >= n)][0])
                raise ProblemError(f"Groups must name records 0..{n - 1}. Found {wrong} in group {number}.")
            if len(np.unique(group)) < len(group):
                raise ProblemError(f"A group must name a record once. Found one twice in group {number}.")
        starts = np.concatenate(([0], np.cumsum([len(group) for group in listed]))).astype(np.int64)
        members = np.concatenate([np.sort(group) for group in listed]) if listed else np.zeros(0, np.int64)
        return cls(n, starts, members.astype(np.int64), points)

    @classmethod
    def of_plain(cls, plain: PlainGroups) -> Groups:
        """The same groups as arrays."""
        return cls(plain.n, np.array(plain.starts, np.int64), np.array(plain.members, np.int64))

    def plain(self) -> PlainGroups:
        """The same groups without numpy."""
        starts, members = array("q", self.starts.tobytes()), array("i", self.members.astype(np.int32).tobytes())
        return PlainGroups(self.n, starts, members)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, group: int) -> Whole:
        return self.members[self.starts[group] : self.starts[group + 1]]

    @cached_property
    def sizes(self) -> Whole:
        return np.diff(self.starts)

    @cached_property
    def owners(self) -> Whole:
        """The group of every entry of `members`."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)

    @cached_property
    def digest(self) -> str:
        """What names these groups: SHA-256 of `n`, the starts and the members, as little-endian 64-bit numbers."""
        sums = hashlib.sha256(np.int64(self.n).astype("<i8").tobytes())
        sums.update(self.starts.astype("<i8").tobytes())
        sums.update(self.members.astype("<i8").tobytes())
        return sums.hexdigest()


def _records(group: Any, number: int) -> NDArray[Any]:
    """The record numbers of a group, as they are given."""
    try:
        found = np.asarray(group)
    except ValueError:
        found = np.zeros((0, 0))
    if found.ndim == 1 and not found.size:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ProblemError(f"A group must be a list of record numbers. Found {shown(group)} as group {number}.")
    return found
