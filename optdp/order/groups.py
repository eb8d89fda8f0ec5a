"""Who is shuffled with whom: one group of records for each record, or groups that are given (E, section 2.2).

Groups are kept as one long array of members and where each group starts, never as a table of all pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.numbers.exact import check_whole, shown
from optdp.objects import Public

Whole = NDArray[np.int64]
LARGEST_N = 10**7
LARGEST_MEMBERS = 4 * 10**7
"""The most members of all groups together: a search of so many takes some 3 GB, and minutes."""
FILES = ("points", "graph", "data", "file")
"""The entries of a file's [groups] that name another file."""
CHUNK = 1_000_000
"""How many members are looked at in one go."""


@dataclass(frozen=True, eq=False)
class Groups(Public):
    """Who is shuffled with whom: groups of the records `0..n-1`. Make them with `Groups.of`.

    Parameters
    ----------
    n : int
        How many records there are.
    starts, members : arrays of int
        Group `g` is `members[starts[g]:starts[g+1]]`, increasing, without repetition.
    points : array, optional
        Where the records are, for orders that follow a curve through them.

    Examples
    --------
    >>> from optdp import Groups
    >>> groups = Groups.of([[0, 1], [1, 2, 3]], n=4)
    >>> groups
    Groups(n=4, groups=2, members=5)
    >>> groups[1].tolist()
    [1, 2, 3]
    """

    n: int
    starts: Whole
    members: Whole
    points: NDArray[np.float64] | None = None

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
        members = np.concatenate([np.sort(group) for group in listed]) if listed else np.zeros(0, np.int64)
        return cls(n, starts_of([len(group) for group in listed]), members.astype(np.int64), points)

    def __repr__(self) -> str:
        return f"Groups(n={self.n}, groups={len(self)}, members={len(self.members)})"

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
    def parts(self) -> tuple[int, Whole]:
        """How many parts there are that no group joins, and in which of them every record is."""
        from scipy.sparse import csgraph, csr_array  # verifying an order does without

        some = self.sizes > 0
        first = np.zeros(len(self), dtype=np.int64)
        first[some] = self.members[self.starts[:-1][some]]
        joined = csr_array((np.ones(len(self.members)), (first[self.owners], self.members)), shape=(self.n, self.n))
        count, part = csgraph.connected_components(joined, directed=False)
        return int(count), part.astype(np.int64)

    @cached_property
    def digest(self) -> str:
        """What names these groups: SHA-256 of `n`, the starts and the members, as little-endian 64-bit numbers."""
        sums = hashlib.sha256(self.n.to_bytes(8, "little"))
        for numbers in (self.starts, self.members):
            sums.update(np.ascontiguousarray(numbers, dtype="<i8").data)
        return sums.hexdigest()

    def taken(self, which: Whole) -> Groups:
        """Some of the groups, in an order, perhaps repeatedly."""
        sizes = self.sizes[which]
        check_members(int(sizes.sum()))
        members = np.empty(int(sizes.sum()), dtype=np.int64)
        starts = starts_of(sizes)
        for start, stop in chunks(sizes):
            some = runs(self.starts[which[start:stop]], sizes[start:stop])
            members[starts[start] : starts[stop]] = self.members[some]
        return Groups(self.n, starts, members, self.points)


def check_members(count: int) -> None:
    """Refuse groups that are too large together."""
    if count > LARGEST_MEMBERS:
        raise ProblemError(
            f"All groups together may have {LARGEST_MEMBERS:,} members. Found {count:,} or more. "
            "Take a smaller radius or fewer hops, or each different group once."
        )


def starts_of(sizes: Any) -> Whole:
    """Where groups of these sizes start, and where the last one ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))


def runs(starts: Whole, sizes: Whole) -> Whole:
    """The numbers `starts[i] .. starts[i]+sizes[i]-1`, for one `i` after the other."""
    ends = np.cumsum(sizes)
    shifts: Whole = np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)
    return shifts


def chunks(sizes: Whole) -> Iterator[tuple[int, int]]:
    """Runs of groups that have together about CHUNK members, or one group if that has more."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        yield start, stop
        start = stop


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
