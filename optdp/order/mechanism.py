"""Groups, what a Mallows shuffle promises to them, and how much of the order it leaves (E, docs/mathematics.md).

**Groups** say who is shuffled with whom: one for each record, or some that are given (E, section 2.2). They are kept as
one long array of members and where each group starts, never as a table of all pairs.

**Sensitivity**: how far one group can move the distance from the reference order, exactly. For Kendall's distance a
group with `m` members at positions `g_1 < .. < g_m` of the order has

    m (m-1) / 2  +  sum over non-members q between g_1 and g_m of 2 min(members before q, members after q).

Between `g_i` and `g_(i+1)` there are `g_(i+1) - g_i - 1` non-members with `i` members before and `m - i` after. Summed
by parts, `min(i-1, m-i+1) - min(i, m-i)` is -1 in the lower half of the positions, +1 in the upper half and 0 in the
middle, and the sum of `min(i, m-i)` is `floor(m^2 / 4)`. So it is

    m (m-1) / 2  +  2 (sum of the upper half  -  sum of the lower half  -  floor(m^2 / 4)).

For the Hamming distance it is `m` from two members on: all of them in place, or none.

**The promise**: a word is drawn with a probability proportional to `q^distance`, so that a group of sensitivity `Delta`
gets `alpha = -Delta log q`, computed in balls; `theta = -log q` is the dispersion.

**Disorder**: the expected share of pairs that a shuffle reverses, 1/2 for a uniform one. For Kendall's distance the
inversions that the `j`-th inserted number brings have the mean `1/(e^theta - 1) - j/(e^(j theta) - 1)`. With `g(x) =
1/(e^x - 1) - 1/x` that is `g(theta) - j g(j theta)`, in which nothing large cancels. For the Hamming distance let `f`,
`p` and `s` be the probabilities that one place holds its number, that two do, and that two swap. Of all pairs

    share = 1/2 - p/2 - (f - p)/3 + (1 - f)/(3 (n-1)) + s/6.

The weights of the words of `n` places add up to `Z(n) = n! q^n sum over j <= n of z^j / j!`, `z = (1-q)/q`, hence
`f = f(n) = Z(n-1)/Z(n)`, `p = f(n) f(n-1)` and `s = q^2 p`. The last term of the sum is the part `v(n)` of it, `1/v(n)
= 1 + n/z + n (n-1)/z^2 + ..`, and `f(n) = 1/((1-q) v(n-1) + q n)`.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.numbers.exact import ball, check_whole, precision, shown, upper_fraction
from optdp.objects import Public
from optdp.order.alphabet import narrowed

Whole = NDArray[np.int64]
Reals = NDArray[np.float64]
LARGEST_N = 10**7
LARGEST_MEMBERS = 4 * 10**7
"""The most members of all groups together: a search of so many takes some 3 GB, and minutes."""
FILES = ("points", "graph", "data", "file")
"""The entries of a file's [groups] that name another file."""
CHUNK = 1_000_000
"""How many members are looked at in one go."""
SAMPLE, GOLDEN = 200, (math.sqrt(5.0) - 1.0) / 2.0
"""How many groups are looked at to foresee how large all will be, and the ratio by which they are spread."""


@dataclass(frozen=True, eq=False)
class Groups(Public):
    """Who is shuffled with whom: groups of the records `0..n-1`. Create them with `Groups.of`.

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
    def firsts(self) -> Whole:
        """The first member of every group; 0 of an empty one."""
        first = np.zeros(len(self), dtype=np.int64)
        some = self.sizes > 0
        first[some] = self.members[self.starts[:-1][some]]
        return first

    @cached_property
    def side_by_side(self) -> int:
        """The sensitivity of the largest group if its members stand side by side: no order is below."""
        return int((self.sizes * (self.sizes - 1) // 2).max(initial=0))

    @cached_property
    def parts(self) -> tuple[int, Whole]:
        """How many parts there are that no group joins, and in which of them every record is."""
        from scipy.sparse import csgraph, csr_array  # verifying an order does without

        ends = self.firsts[self.owners], self.members
        joined = csr_array((np.ones(len(self.members)), ends), shape=(self.n, self.n))
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


def check_members(count: int, found: str = "") -> None:
    """Refuse groups that are too large together."""
    if count > LARGEST_MEMBERS:
        raise ProblemError(
            f"All groups together may have {LARGEST_MEMBERS:,} members. Found {found or f'{count:,} or more'}. "
            "Take a smaller radius or fewer hops, or each different group once."
        )


def foresee(groups: int, n: int, size: Callable[[int], int]) -> None:
    """Refuse at once what a sample says is too large, and not by chance: by more than six standard errors.

    The sample is the same each time, spread by the golden ratio, which keeps step with no period in the data.
    """
    if groups * n <= LARGEST_MEMBERS:
        return
    sizes: list[int] = []
    for one in dict.fromkeys(int(groups * (i * GOLDEN % 1.0)) for i in range(1, SAMPLE + 1)):
        sizes.append(size(one))
        check_members(sum(sizes))
        if len(sizes) >= SAMPLE // 4 and sum(sizes) > CHUNK:
            break
    if len(sizes) > 1:
        mean, error = statistics.fmean(sizes), statistics.stdev(sizes) / math.sqrt(len(sizes))
        check_members(int(groups * (mean - 6.0 * error)), f"about {_rounded(groups * mean):,}")


def _rounded(count: float) -> int:
    """To two digits."""
    return int(float(f"{count:.1e}"))


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


DISTANCES = ("kendall", "hamming")
MEANING = (
    "Order privacy: if the people of one group exchanged their answers among themselves, nothing that can be concluded "
    "from the release would be more than e^alpha times likelier or less likely. It hides who in a group said what, not "
    "what was said: randomize the answers first. It assumes an honest shuffler."
)
"""What is promised."""


def meaning(values: int | None) -> str:
    """What is promised of answers of so many different values."""
    return MEANING if values is None else f"{MEANING} It is for answers of at most {values:,} different values."


MOST_THETA = 700
"""The largest dispersion: beyond it nothing moves anyhow."""
NEAR_UNIFORM = 0.45
"""Above this share hardly any trend is left."""
_SERIES = (-1 / 2, 1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)
"""`g(x)` near 0: the first term, then the coefficients of `x`, `x^3`, `x^5`, .."""


# ------------------------------------------------------------------------------------------------- sensitivity
def sensitivities(groups: Groups, order: Whole, distance: str = "kendall", values: int | None = None) -> Whole:
    """The sensitivity of every group; `order[p]` is the record at position `p`.

    For answers of so many different `values` by Kendall's distance exactly for two, and an upper bound for more.
    """
    if distance == "hamming":
        return np.where(groups.sizes > 1, groups.sizes, 0)
    return narrowed(_kendall_sensitivities(groups, placed(groups, order)), groups.sizes, values)


def _kendall_sensitivities(groups: Groups, place: Whole) -> Whole:
    sizes, starts, ends = groups.sizes, groups.starts[:-1], groups.starts[1:]
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(place)))  # below 2^49: 4e7 members, 1e7 positions
    half = sizes // 2
    moved = (sums[ends] - sums[ends - half]) - (sums[starts + half] - sums[starts]) - sizes * sizes // 4
    found: Whole = sizes * (sizes - 1) // 2 + 2 * moved
    return found


def placed(groups: Groups, order: Whole) -> Whole:
    """The positions of all members, increasing within each group."""
    position = np.empty(groups.n, dtype=np.int64)
    position[order] = np.arange(groups.n, dtype=np.int64)
    first = groups.owners * groups.n  # one sort of whole numbers, many times as fast as one by two keys
    return np.sort(position[groups.members] + first) - first


def sensitivity(groups: Groups, order: Whole, distance: str = "kendall", values: int | None = None) -> int:
    """The largest of all groups."""
    return int(sensitivities(groups, order, distance, values).max(initial=0))


def width(groups: Groups, order: Whole) -> int:
    """How far apart members of a group stand at most (E, section 2.3)."""
    return int(widths(groups, placed(groups, order)).max(initial=0))


def widths(groups: Groups, place: Whole) -> Whole:
    """How far apart the members of each group stand, whose positions are `placed`."""
    some = groups.sizes > 0
    found = np.zeros(len(groups), dtype=np.int64)
    found[some] = place[groups.starts[1:][some] - 1] - place[groups.starts[:-1][some]]
    return found


def measured(groups: Groups, order: Whole, distance: str, values: int | None = None) -> tuple[int, int]:
    """The largest sensitivity of a group, and the width: what verifying recomputes."""
    place = placed(groups, order)
    if distance == "kendall":
        found = narrowed(_kendall_sensitivities(groups, place), groups.sizes, values)
    else:
        found = sensitivities(groups, order, distance)
    return int(found.max(initial=0)), int(widths(groups, place).max(initial=0))


def paper_sensitivity(groups: Groups, order: Whole) -> int:
    """E's bound for Kendall's distance, `w (w+1) / 2` of the width `w`: valid, and far too large."""
    wide = width(groups, order)
    return wide * (wide + 1) // 2


# ------------------------------------------------------------------------------------------------- the promise
def ratio(alpha: Fraction, largest: int) -> Fraction:
    """The rational `q`, just not below `e^(-alpha / largest)`; 0 if no group can move anything."""
    if not largest:
        return Fraction(0)
    theta = min(alpha / largest, Fraction(MOST_THETA))
    tiny = max(0, theta.denominator.bit_length() - theta.numerator.bit_length())
    bits = 64 + math.ceil(1.4427 * float(theta)) + tiny + largest.bit_length()
    with precision(bits + 128):
        return upper_fraction((-ball(theta)).exp(), bits)


def dispersion(q: Fraction) -> float:
    """`theta = -log q`, accurately also near one; infinite for 0."""
    if not q:
        return math.inf
    return -math.log1p(-float(1 - q)) + 0.0 if 2 * q > 1 else -math.log(q)


def alpha_of(q: Fraction, largest: int) -> Fraction:
    """The alpha of a deployed `q`, rounded up: `-largest log q`."""
    if largest == 0:
        return Fraction(0)
    if q == 0:
        raise ProblemError("Without randomness (q = 0) nothing is promised to groups of two or more.")
    with precision(2048):
        return max(Fraction(0), upper_fraction(-largest * ball(q).log(), 1024))


def alpha_for(
    groups: Groups, order: Whole, q: Fraction, distance: str = "kendall", values: int | None = None
) -> Fraction:
    """What the same shuffle promises to any other groups (E, Theorem 5.5)."""
    return alpha_of(q, sensitivity(groups, order, distance, values))


def alpha_of_local_noise(epsilon: Fraction, groups: Groups) -> Fraction:
    """What epsilon-LDP reports in their order promise: epsilon for each member of the largest group (E, Lemma 5.2)."""
    return epsilon * int(groups.sizes.max(initial=0))


# ------------------------------------------------------------------------------------------------- disorder
def reversed_pairs(n: int, theta: float, distance: str = "kendall") -> float:
    """The expected share of pairs of `n` answers that come out in the other order, to twelve places.

    It is from 0, for an infinite `theta`, to one half.
    """
    if n < 2 or math.isinf(theta):
        return 0.0
    share = _kendall_share(n, theta) if distance == "kendall" else _hamming_share(n, theta)
    return round(min(max(share, 0.0), 0.5), 12)


def near_uniform(share: float) -> str:
    """What to say of a share above `NEAR_UNIFORM`; nothing of others."""
    if share <= NEAR_UNIFORM:
        return ""
    return (
        f"the shuffle reverses {100 * share:.1f} % of all pairs, nearly as many as a uniform one (50 %): hardly any "
        "trend is left; use a larger alpha or smaller groups"
    )


def _kendall_share(n: int, theta: float) -> float:
    j = np.arange(1, n + 1, dtype=np.float64)
    means = _g(np.array([theta])) - j * _g(j * theta)
    return float(means.sum() / (n * (n - 1) / 2))


def _g(x: NDArray[np.float64]) -> NDArray[np.float64]:
    first, *others = _SERIES
    near = np.minimum(x, 0.2)
    series = first + sum(factor * near ** (2 * i + 1) for i, factor in enumerate(others))
    far = np.clip(x, 0.2, 700.0)
    return np.where(x < 0.2, series, 1 / np.expm1(far) - 1 / np.maximum(x, 0.2))


def _hamming_share(n: int, theta: float) -> float:
    held = _held(n, theta)
    both = held * _held(n - 1, theta)
    swapped = math.exp(-2 * theta) * both
    return 0.5 - both / 2 - (held - both) / 3 + (1 - held) / (3 * (n - 1)) + swapped / 6


def _held(n: int, theta: float) -> float:
    """The probability `f(n)` that a place is held."""
    return 1 / (-math.expm1(-theta) * _last_part(n - 1, theta) + math.exp(-theta) * n)


def _last_part(n: int, theta: float) -> float:
    """`v(n)`: by the series of its reciprocal, which ends, or grows beyond all bounds."""
    total = term = 1.0
    z = math.expm1(min(theta, 700.0))
    for i in range(n, 0, -1):
        term *= i / z if z else math.inf
        total += term
        if term < total * 1e-17:
            break
        if total > 1e290:
            return 0.0
    return 1 / total
