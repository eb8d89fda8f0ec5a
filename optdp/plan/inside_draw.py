"""Draw from a table inside a secure computation: nobody sees an input, the total, or the noise; opened is the release.

Each of `m` parties shares (Shamir, degree `t = (m-1)//2`, a prime field) the unit vector of its input, a 1 at the place
`x_i`, and `k` random bits, where `2^k` is the table's denominator. Then, on shares:

    e = e_1 * .. * e_m                 the convolution of the unit vectors: the unit vector of the total
    word = word_1 xor .. xor word_m    uniform on 0..2^k-1 if one party's bits are, and known to nobody
    release                            the output between whose cuts the word lies, in the row of the total

The cuts of a row are the partial sums of its weights, `cut <= word` for as many of them as there are outputs below the
release; so the release has exactly the table's law, whatever the field. Everything that is looked up in the table is
linear in `e` with public coefficients, and costs no communication: every bit of a cut, and every output. The place
among the cuts is found by a binary search. A node `u` of the search is a unit vector too; the bits of its cut are inner
products with `u`, compared with the bits of the word from pairs of neighbouring bits upwards.

What is hidden, and from whom. Products of shares are shared again at once (`schur_prod`), which shows nothing to any
`t` parties, whatever they can compute. No masked value is opened, so that nothing is only statistically hidden; the
one thing that is ever opened is the release, once. All parties must follow the protocol. One that does not can spoil
the release, and by sharing a vector that is no unit vector can make it depend on the others' inputs in other ways than
the table's. An input within its range that is not the true one is no attack on the others' privacy: the certificate
holds for all of them. Connections must be private, as those of a meeting are (`plan.meeting`), or they show the shares.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import nmod_poly

from optdp.errors import SolverError
from optdp.mechanism.matrix import NoiseMatrix

Shares = npt.NDArray[np.int64]

PRIME = 2**30 - 35
"""The field: products of two elements fit into 64 bits, and sums of some billions of them once they are reduced."""
CHUNK = 1 << 20
"""How many bytes of cuts are looked up at a time."""
BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)
"""The bits of each byte: shares are added up by bytes first, of which there are fewer."""


@dataclass(frozen=True)
class SearchTable:
    """A finite table, laid out for a binary search: of every row the same number of cuts, a power of two less one.

    Rows with fewer outputs begin with cuts at 0, which lie below every word: their first outputs are never reached.
    """

    table: NoiseMatrix

    @cached_property
    def bits(self) -> int:
        """Those of a word."""
        return self.table.denominator.bit_length() - 1

    @cached_property
    def depth(self) -> int:
        """How many cuts a word is compared with."""
        return (max(map(len, self.table.rows)) - 1).bit_length()

    @cached_property
    def cuts(self) -> npt.NDArray[np.uint8]:
        """The bytes of each cut of each row, the most significant first."""
        width, count = -(-self.bits // 8), (1 << self.depth) - 1
        lines = []
        for row in self.table.rows:
            sums = list(accumulate(weight for _, weight in row[:-1]))
            lines.append(b"".join(cut.to_bytes(width, "big") for cut in [0] * (count - len(sums)) + sums))
        return np.frombuffer(b"".join(lines), np.uint8).reshape(len(lines), count, width)

    @cached_property
    def outputs(self) -> Shares:
        """The outputs of each row, from the first output of the table on."""
        count, low = 1 << self.depth, self.table.outputs[0]
        rows = [[s - low for s, _ in row] for row in self.table.rows]
        return np.array([[row[0]] * (count - len(row)) + row for row in rows], np.int64)

    def looked_up(self, total: Shares, level: int) -> Shares:
        """Shares of the bits of all cuts of one level, a row for each, from those of the total's unit vector."""
        step, width = 1 << (self.depth - level), self.cuts.shape[2]
        chosen, found = self.cuts[:, step // 2 - 1 :: step], []
        size = max(1, CHUNK // (len(total) * width))
        for start in range(0, chosen.shape[1], size):
            part = chosen[:, start : start + size].reshape(len(total), -1)
            places = part + 256 * np.arange(part.shape[1])
            shares = np.repeat(total, part.shape[1]).astype(float)  # whole numbers, whose sums stay below 2^53
            by_byte = np.bincount(places.ravel(), shares, 256 * part.shape[1]).astype(np.int64) % PRIME
            found.append(by_byte.reshape(-1, 256) @ BYTES % PRIME)
        bits: Shares = np.concatenate(found).reshape(chosen.shape[1], 8 * width)[:, -self.bits :]
        return bits

    def rows_of(self, total: Shares) -> Shares:
        """The unit vector of the row that serves the total: inputs without a row are served by the nearest."""
        first, last = self.table.inputs
        own = total[first : last + 1].copy()
        own[0] += total[:first].sum()
        own[-1] += total[last + 1 :].sum()
        reduced: Shares = own % PRIME
        return reduced


async def draw(
    rt: Any,
    search: SearchTable,
    sizes: Sequence[int],
    value: int,
    word: int | None = None,
    opened: Callable[[Any], Awaitable[int]] | None = None,
) -> int:
    """Take part in drawing one release.

    Parameters
    ----------
    rt : the MPyC runtime of this party, connected, with threshold `(m-1)//2`.
    search : the table of the total.
    sizes : the largest input of each party.
    value : this party's input.
    word : this party's random bits, by default fresh ones; the same input and bits again give the same release.
    opened : opens this party's share of the release; by default as MPyC does.
    """
    field, me, bits = rt.SecFld(modulus=PRIME).field, rt.pid, search.bits
    if not 0 <= value <= sizes[me]:
        raise ValueError("an input out of its range")
    word = secrets.randbits(bits) if word is None else word
    width = max(sizes) + 1
    given = [int(x == value) for x in range(width)] + [word >> b & 1 for b in reversed(range(bits))]

    async def reshared(values: Shares) -> Shares:
        """The same secrets, shared again with degree `t`: products have twice that."""
        shares = [field(value) for value in values.tolist()]
        return _numbers(await rt.schur_prod(shares, [field(1)] * len(shares)))

    shared = [_numbers(own) for own in await rt.input([field(value) for value in given])]
    parts = [(own[: size + 1], own[width:]) for own, size in zip(shared, sizes, strict=True)]
    while len(parts) > 1:  # neighbours are joined, all pairs at once
        pairs = list(zip(parts[::2], parts[1::2], strict=False))
        totals = [_convolved(a, b) for (a, _), (b, _) in pairs]
        mixed = await reshared(np.concatenate([*totals, *(a * b % PRIME for (_, a), (_, b) in pairs)]))
        *ends, _ = np.split(mixed, np.cumsum([*map(len, totals), *[bits] * len(pairs)]))
        joined = [
            (unit, (a + b - 2 * both) % PRIME)
            for unit, both, ((_, a), (_, b)) in zip(ends[: len(pairs)], ends[len(pairs) :], pairs, strict=True)
        ]
        parts = joined + parts[2 * len(pairs) :]
    ((total, chance),) = parts
    row = search.rows_of(total)
    node = np.ones(1, np.int64)
    for level in range(search.depth):
        cut = search.looked_up(row, level)
        cut = cut[0] if level == 0 else await reshared((node[:, None] * cut % PRIME).sum(0) % PRIME)
        below = await _less(chance, cut, reshared)
        right = (await reshared(node * (1 - below) % PRIME)) if level else (1 - below) % PRIME
        node = np.stack([(node - right) % PRIME, right], axis=1).ravel()
    leaves = np.tensordot(row, search.outputs, 1) % PRIME
    release = await reshared((node * leaves % PRIME).sum(keepdims=True) % PRIME)
    share = field(int(release[0]))
    found = int(await (rt.output(share) if opened is None else opened(share)))
    low, high = search.table.outputs
    if low + found > high:
        raise SolverError(
            f"The release must lie in {low}..{high}. Found another one. Some party did not follow the protocol: count "
            "it as released, and check that all run the same version of optdp."
        )
    return low + found


async def _less(word: Shares, cut: Shares, reshared: Callable[[Shares], Awaitable[Shares]]) -> Shares:
    """Whether the word is less than the cut, both given by their bits, the most significant first."""
    both = await reshared(word * cut % PRIME)
    less, same = (cut - both) % PRIME, (1 - word - cut + 2 * both) % PRIME
    while len(less) > 1:
        pairs = len(less) // 2
        left = same[: 2 * pairs : 2]
        lower = np.concatenate([left * less[1 : 2 * pairs : 2] % PRIME, left * same[1 : 2 * pairs : 2] % PRIME])
        lower = await reshared(lower)
        less = np.concatenate([(less[: 2 * pairs : 2] + lower[:pairs]) % PRIME, less[2 * pairs :]])
        same = np.concatenate([lower[pairs:], same[2 * pairs :]])
    return less


def _numbers(shares: Sequence[Any]) -> Shares:
    return np.array([int(share.value) for share in shares], np.int64)


def _convolved(one: Shares, other: Shares) -> Shares:
    product = nmod_poly(one.tolist(), PRIME) * nmod_poly(other.tolist(), PRIME)
    found = np.zeros(len(one) + len(other) - 1, np.int64)
    values = [int(value) for value in product.coeffs()]
    found[: len(values)] = values
    return found


def traffic(search: SearchTable, sizes: Sequence[int]) -> int:
    """At most so many bytes go from one party to another."""
    parties, total, bits, leaves = len(sizes), sum(sizes) + 1, search.bits, 1 << search.depth
    numbers = max(sizes) + 1 + bits + (parties.bit_length() + 1) * (total + parties * bits)
    numbers += search.depth * 6 * bits + 2 * leaves
    messages = 2 + parties.bit_length() + search.depth * (4 + bits.bit_length()) + 2
    return 8 * numbers + 32 * messages + 4096
