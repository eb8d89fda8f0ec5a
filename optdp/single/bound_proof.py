"""A lower bound of the optimum, proved from stored dual prices with integers that are rounded to the safe side.

The program is that of `optdp.single.problem`. For **any** `z >= 0` (prices of the caps), `u >= 0` (of privacy) and
`v >= 0` (of a fallback) every feasible table costs at least

    sum over x of y(x)  -  sum over x of z(x) cap(x)  +  constant,
    y(x) = min over s of  cost(x) |x-s|^p + z(x) |x-s| + sum over j of gaps[j](x) u(j, s)
                          + c(x) (sum over x' of v(x, x', s) - e^f v(x', x, s)),

because the rows of the table sum to one (weak duality). With `c(x)` the mass that geometric tails leave to the table,

    cost(x) = prior(x) c(x),     cap(x) = (2q/(1-q^2) - tail(x)) / c(x),
    gaps[j](x) = c(x) (Pr[x|w] - e^eps Pr[x|w'])     for every step w, w' in both ways,

and `constant` what the tails cost; `v(x, x', s)` prices `r(x, s) <= e^f r(x', s)`, for inputs up to `D` apart with
adjacency "all", and with unit steps for neighbours at `f/D`. So prices may be rounded in any way, and no error analysis
is needed: they are taken as multiples of powers of two, `cost` and `gaps` are rounded down, caps up, and all sums are
of integers. As `y(x)` may be as small as the likelihood of `x`, each input has a unit of its own.

Of most outputs the minimum never hears: over a block of outputs the sum is at least its distance part at the nearest
of them, plus each gap times the smallest price of the block (the largest, if the gap is negative).

**Inputs without a row** (very many people). The bound is against the program with a row for every input and outputs
`0..last`. There `c(x)` has grown by a known factor of at most 2, so that with `z` scaled alike a negative `y(x)` grows
by that factor, and in `cap(x)` and `constant` only the tails outside `0..last` count. Outputs outside the window have
`u = 0` and are at least one step beyond its edge. An input without a row has
`y(x) >= - sum over j of |gaps[j](x)| max u(j, .)`; in all at most `e^eps (missing(w) + missing(w')) max u(j, .)`
for each `j`, with `missing` the mass of such inputs, and once more if the edge rows serve them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from operator import mul

from flint import arb

from optdp.errors import ArtifactError
from optdp.numbers.exact import ball, ceil_scaled, floor_scaled, precision
from optdp.single.certify import mixed_prior, tail_error
from optdp.single.laws import Laws, Sight, some_sights
from optdp.single.problem import SingleLTE
from optdp.single.window import choose_shape
from optdp.work.account import left, spend

BITS = 128
"""Prices are multiples of `2^-BITS`; the numbers of an input have so many bits below their largest."""
SUM_BITS = 192
"""The sum over inputs is of multiples of `2^-SUM_BITS`."""
BLOCK = 32
MOST_WORK = 20_000_000
"""The most products of a gap and a price that are computed; about three seconds."""
WORK = 5
"""How many of them make a step, where steps are counted."""


@dataclass(frozen=True)
class FilePrices:
    """A dual point as a file has it: `z[x]` for every input with a row, `u[j][s]` for every constraint and output.

    `v` has a line for every pair of adjacent inputs, with a price for every output; none without a fallback. With
    observers in doubt, `at[j]` says what the line `u[j]` prices: observer, vertex, two shifts, and which way.
    """

    z: list[float]
    u: list[list[float]]
    v: list[list[float]] = field(default_factory=list)
    at: list[tuple[int, int, int, int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class _Row:
    """The numbers of one input, as integers of a unit `2^-unit`: what every output costs there."""

    unit: int
    cost: int
    z: int
    gaps: list[int]
    mass: int
    """`c(x)`, rounded down."""
    grown: int
    """`e^f c(x)`, rounded up."""


def proved_bound(problem: SingleLTE, prices: FilePrices) -> Fraction | None:
    """A number that is at most the optimum of `problem`; None if to compute it would take too long."""
    with precision():
        shape = choose_shape(problem)
        size = shape.inputs[1] - shape.inputs[0] + 1
        prices, sights = _placed(problem, prices, size) if problem.watched else (prices, None)
        laws = Laws.build(problem, shape, sights=sights)
        spend(size * (10 + 8 * len(laws.steps)), "the lower bound")
        if prices.at or len(prices.z) != size or [len(line) for line in prices.u] != [size] * (2 * len(laws.steps)):
            raise ArtifactError("The stored prices must fit the problem. The file was changed.")
        chain = _Chain.of(problem, prices.v, size)
        # Where no cap is asked for there is nothing to price.
        z = [max(Fraction(price), Fraction(0)) for price in prices.z] if problem.never_worse else [Fraction(0)] * size
        columns = _Columns([[max(int(Fraction(price) * 2**BITS), 0) for price in line] for line in prices.u])
        power, whole, total = 1 if problem.objective == "mae" else 2, shape.outside == "error", 0
        rows = list(_rows(problem, laws, z, chain.growth))
        growth = [ceil_scaled(factor, BITS) for factor in shape.growth]
        for x, row in enumerate(rows):
            least = columns.least(row, x, power, chain.at(x, row))
            if least is None:
                return None
            if not whole:
                edge = min([x] * (shape.inputs[0] > 0) + [size - 1 - x] * (shape.inputs[1] < shape.last)) + 1
                least = min(least, row.cost * edge**power + row.z * edge << BITS)
                if least < 0:
                    least = -(-least * growth[x] >> BITS) - 1
            total += _shifted(least, SUM_BITS - row.unit - BITS)
        taken = _caps(problem, laws, rows) if problem.never_worse else arb(0)
        given = _constant(problem, laws) - (arb(0) if whole else _beyond(laws, columns))
        total += floor_scaled(given - taken, SUM_BITS)
    return Fraction(max(total, 0), 1 << SUM_BITS)


def _placed(problem: SingleLTE, prices: FilePrices, size: int) -> tuple[FilePrices, list[Sight]]:
    """The prices with two lines for each sight that any line prices, and these sights."""
    right = len(set(prices.at)) == len(prices.at) == len(prices.u)
    if not right or any(len(line) != size for line in prices.u):
        raise ArtifactError("The stored prices must fit the problem. The file was changed.")
    sights = sorted({place[:4] for place in prices.at})
    for observer, vertex, one, other in sights:
        worlds = problem.worlds[observer] if 0 <= observer < len(problem.worlds) else None
        if worlds is None or not 0 <= vertex < worlds.size:
            raise ArtifactError("The stored prices must be of worlds of the problem's observers. The file was changed.")
        if (one, other) not in worlds.place(vertex)[0].pairs(problem.adjacency == "all"):
            raise ArtifactError("The stored prices must be of secrets that are adjacent. The file was changed.")
    if not sights:
        sights = some_sights(problem)[:1]
    lines = [[0.0] * size for _ in range(2 * len(sights))]
    where = {sight: i for i, sight in enumerate(sights)}
    for place, line in zip(prices.at, prices.u, strict=True):
        if place[4] not in (0, 1):
            raise ArtifactError("The stored prices must be of one way or the other. The file was changed.")
        lines[2 * where[place[:4]] + place[4]] = line
    return FilePrices(prices.z, lines, prices.v), sights


class _Columns:
    """The prices of privacy, and what those of a block of outputs take off at most."""

    def __init__(self, u: Sequence[list[int]]) -> None:
        self.u, self.work, self.most = u, 0.0, min(MOST_WORK, WORK * left())
        self.likely = 0
        """Where the minimum of the input before was: close to the next one, so that most blocks are passed over."""
        self.outputs = len(u[0])
        self.blocks = [range(start, min(start + BLOCK, self.outputs)) for start in range(0, self.outputs, BLOCK)]
        self.smallest = [[min(line[block.start : block.stop]) for line in u] for block in self.blocks]
        self.largest = [[max(line[block.start : block.stop]) for line in u] for block in self.blocks]
        self.peaks = [max(line) for line in u]
        self.priced = [[line for line, peak in enumerate(block) if peak] for block in self.largest]
        """The lines that price anything in a block."""
        self.least_of: dict[tuple[bool, ...], _Least] = {}

    def least(self, row: _Row, x: int, power: int, chain: list[int] | None) -> int | None:
        """`y(x)`, in units of `2^-(unit + BITS)`; None if the work is more than is allowed."""
        cost, z, gaps = row.cost << BITS, row.z << BITS, row.gaps
        if chain is not None:  # whatever each output is priced at, there is no passing over
            self.work += self.outputs * (len(gaps) + 4)
            if self.work > self.most:
                return None
            values = [value + cost * abs(x - s) ** power + z * abs(x - s) for s, value in enumerate(chain)]
            for gap, line in zip(gaps, self.u, strict=True):
                values = [value + gap * price for value, price in zip(values, line, strict=True)]
            return int(min(values))
        away, likely = abs(x - self.likely), self.likely
        best: int = cost * away**power + z * away
        best += sum(gap * line[likely] for gap, line in zip(gaps, self.u, strict=True))
        bounds, home, each = self._bounds(gaps), x // BLOCK, 1 + len(gaps)
        ways = (bounds.onward, range(home, len(self.blocks))), (bounds.back, range(home - 1, -1, -1))
        for beyond, places in ways:
            for k in places:  # outwards from x
                block = self.blocks[k]
                near = max(block.start - x, x - block.stop + 1, 0)
                own = cost * near**power + z * near
                self.work += 2 * each
                if self.work > self.most:
                    return None
                if own + sum(map(mul, gaps, beyond[k])) >= best:
                    break  # no block from here on is better
                if own + sum(map(mul, gaps, bounds.here[k])) >= best:
                    continue
                values = [cost * abs(x - s) ** power + z * abs(x - s) for s in block]
                for j in self.priced[k]:
                    gap, prices = gaps[j], self.u[j][block.start : block.stop]
                    if gap:
                        values = [value + gap * price for value, price in zip(values, prices, strict=True)]
                self.work += len(block) * (1 + len(self.priced[k]))
                found = min(values)
                if found < best:
                    best, self.likely = found, block.start + values.index(found)
        return best

    def _bounds(self, gaps: Sequence[int]) -> _Least:
        """The prices of each block, and of all blocks from it on, with which gaps of these signs take off most."""
        signs = tuple(gap > 0 for gap in gaps)
        if signs not in self.least_of:
            self.work += 3 * len(signs) * len(self.blocks)
            here = [
                [small if up else large for up, small, large in zip(signs, *sizes, strict=True)]
                for sizes in zip(self.smallest, self.largest, strict=True)
            ]

            def further(one: list[int], other: list[int]) -> list[int]:
                return [min(a, b) if up else max(a, b) for up, a, b in zip(signs, one, other, strict=True)]

            onward = list(accumulate(reversed(here), further))[::-1]
            self.least_of[signs] = _Least(here, onward, list(accumulate(here, further)))
        return self.least_of[signs]


@dataclass(frozen=True)
class _Chain:
    """The prices of a fallback: of `r(x, s) <= e^f r(x+d, s)` by `d`, then by `x`, and after these of the converse."""

    growth: arb | None
    """`e^f`, or `e^(f/D)` with unit steps; None if there is nothing to price."""
    out: list[list[int]]
    """For each input and output, the prices of what the input may not exceed."""
    into: list[list[int]]
    """Those of what may not exceed the input."""

    @staticmethod
    def of(problem: SingleLTE, v: Sequence[Sequence[float]], size: int) -> _Chain:
        if not v or problem.chain_epsilon is None:
            return _Chain(None, [], [])
        reach, share = (problem.largest, 1) if problem.adjacency == "all" else (1, problem.largest)
        pairs = [(x, x + far) for far in range(1, min(reach, size - 1) + 1) for x in range(size - far)]
        if [len(line) for line in v] != [size] * (2 * len(pairs)):
            raise ArtifactError("The stored prices must fit the problem. The file was changed.")
        spend(2.0 * len(pairs) * size, "the lower bound")
        out, into = [[0] * size for _ in range(size)], [[0] * size for _ in range(size)]
        for (x, y), line in zip([*pairs, *((y, x) for x, y in pairs)], v, strict=True):
            found = [max(int(Fraction(price) * 2**BITS), 0) for price in line]
            out[x] = [a + b for a, b in zip(out[x], found, strict=True)]
            into[y] = [a + b for a, b in zip(into[y], found, strict=True)]
        return _Chain(ball(problem.chain_epsilon / share).exp(), out, into)

    def at(self, x: int, row: _Row) -> list[int] | None:
        """What the chain adds at each output, in units of `2^-(unit + BITS)`."""
        if self.growth is None:
            return None
        return [row.mass * a - row.grown * b for a, b in zip(self.out[x], self.into[x], strict=True)]


@dataclass(frozen=True)
class _Least:
    """For gaps of certain signs: the prices of each block, of it and all later ones, of it and all earlier ones."""

    here: list[list[int]]
    onward: list[list[int]]
    back: list[list[int]]


def _rows(problem: SingleLTE, laws: Laws, z: Sequence[Fraction], growth: arb | None) -> Iterator[_Row]:
    """The numbers of each input, `cost` and `gaps` rounded down."""
    first, last = laws.shape.inputs
    costs = [a * b for a, b in zip(mixed_prior(problem, first, last), laws.shape.masses, strict=True)]
    steps = [(laws.weights[step.one], laws.weights[step.other], laws.exponentials[step.epsilon]) for step in laws.steps]
    for x, (cost, price) in enumerate(zip(costs, z, strict=True)):
        pairs = [(one[x], other[x], e) for one, other, e in steps]
        gaps = [gap for a, b, e in pairs for gap in (a - e * b, b - e * a)]
        unit = BITS - max((_magnitude(value) for value in (cost, *gaps) if value != 0), default=0)
        lowered = [floor_scaled(gap, unit) for gap in gaps]
        mass, grown = 0, 0
        if growth is not None:
            mass = floor_scaled(laws.shape.masses[x], unit)
            grown = -floor_scaled(-growth * laws.shape.masses[x], unit)
        yield _Row(unit, max(floor_scaled(cost, unit), 0), _shifted_fraction(price, unit), lowered, mass, grown)


def _caps(problem: SingleLTE, laws: Laws, rows: Sequence[_Row]) -> arb:
    """`sum of z(x) cap(x)`, with `z` as the rows have it."""
    shape, limit, total = laws.shape, ball(problem.cap), arb(0)
    for x, (row, mass) in enumerate(zip(rows, shape.masses, strict=True), start=shape.inputs[0]):
        if row.z:
            total += ball(row.z) * arb(2) ** -row.unit * (limit - tail_error(shape.whole, x, 1)) / mass
    return total


def _constant(problem: SingleLTE, laws: Laws) -> arb:
    """What the tails outside `0..last` cost, whatever the table."""
    shape, power = laws.shape, 1 if problem.objective == "mae" else 2
    prior = mixed_prior(problem, *shape.inputs)
    return sum((chance * tail_error(shape.whole, x, power) for x, chance in enumerate(prior, shape.inputs[0])), arb(0))


def _beyond(laws: Laws, columns: _Columns) -> arb:
    """The most that inputs without a row take off."""
    missing = [arb(1) - sum(secret.law.balls(*laws.shape.inputs), arb(0)) for secret in laws.secrets]
    total = arb(0)
    for k, step in enumerate(laws.steps):
        peak = ball(columns.peaks[2 * k] + columns.peaks[2 * k + 1]) * arb(2) ** -BITS
        total += 2 * peak * laws.exponentials[step.epsilon] * (missing[step.one] + missing[step.other])
    return total


def _magnitude(value: arb) -> int:
    """The smallest `k`, or one next to it, with `|value| <= 2^k`."""
    mantissa, exponent = value.mid().man_exp()
    return int(mantissa).bit_length() + int(exponent)


def _shifted(value: int, bits: int) -> int:
    """`value 2^bits`, rounded down."""
    return value << bits if bits >= 0 else value >> -bits


def _shifted_fraction(value: Fraction, bits: int) -> int:
    """`value 2^bits`, rounded down."""
    scaled = value * Fraction(2) ** bits
    return scaled.numerator // scaled.denominator
