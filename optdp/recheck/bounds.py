"""Lower bounds of the optimum, proved again from the prices in a file.

The program of one entity: `r(x, s) >= 0`
for the inputs and outputs `0..last`, of each input `sum over s of r(x, s) = c(x)`, the mass that geometric tails leave
(1 without tails); least is to be `sum of prior(x) |x-s|^p r(x, s)`, while

    sum over x of gap_j(x) r(x, s) <= 0         gap_j(x) = Pr[x|w] - e^eps Pr[x|w'], each step both ways, each output
    sum over s of |x-s| r(x, s) <= cap - tail(x)        `never_worse`: `cap` is the error of noise, `tail` that beyond
    r(x, s) <= e^f r(x', s)                             a fallback: of every two adjacent inputs, each output

For **any** prices `u_j(s) >= 0`, `z(x) >= 0` and `v(x, x', s) >= 0` of these, what is least is at least (weak duality)

    sum of c(x) min over s of (prior(x) |x-s|^p + z(x) |x-s| + sum of gap_j(x) u_j(s)
                               + sum over x' of v(x, x', s) - e^f v(x', x, s))  -  sum of z(x) (cap - tail(x))

and what the tails cost besides. So prices may be rounded at will, and the rest is rounded down. Prices of a fallback
may be left out: it only asks for more. Adjacent are inputs up to `D` apart if every two contributions are a step, else
neighbours, with `f/D` for `f`. In a file, `z` is for `r(x, s) / c(x)`, and prices are doubles: binary fractions,
whatever their text.

**Observers.** Then the constraints are those of the vertices of every observer (`observers`), and those of adjacent
inputs for whoever knows everybody else; a fallback counts as such an observer, the last one. There are very many of
them, so prices say which ones they are of: `at[j] = [observer, vertex, u, u', way]` for the line `u_j`, way 0 for
`Pr[s|u] <= e^eps Pr[s|u']` and way 1 for the converse. All others have the price 0. `v` prices adjacent inputs for
the smallest epsilon that a fallback or an observer asks for there. If nobody has a range and nobody is known, there is
no `at`, and `u_j` is as without observers: the first observer asks for at least that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from .claims import as_decimal, figure, stated
from .enclosures import Geometric, exponential, mean_absolute
from .laws import Law
from .observers import Observer, corners
from .priors import Prior
from .verdict import GUARD, Failed, Refused, must, spend

LARGEST = 5000
"""Up to this sum every input has a row."""
CHAINED = 1200
"""The same where ordinary privacy is asked for."""
MOST_TERMS = 80_000_000
"""The most products of a gap and a price: some ten seconds."""
MOST_BITS = 250_000_000
"""The most that the laws of all priors may take, written out."""
FINE = 200
"""Prices are multiples of `2^-FINE`; the numbers of an input have so many bits below their largest."""
_PRICES = re.compile(r"(?:-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[-+]?[0-9]{1,3})?(?: |$))*")


@dataclass(frozen=True)
class Program:
    """What a bound is about."""

    priors: Sequence[Prior]
    weights: Sequence[Fraction]
    """How much each prior counts in the objective."""
    power: int
    every: bool
    """Whether every two contributions are a step, or neighbouring ones."""
    epsilon: Fraction
    """What a step may reveal."""
    q: Fraction
    """Of geometric noise."""
    tailed: bool
    capped: bool
    fallback: Fraction | None
    """What every two adjacent inputs may reveal, whatever the prior."""
    reach: int
    """How far adjacent inputs are apart at most."""
    observers: Sequence[Observer] = ()
    """If there are any, prices name their constraints; a step may reveal the `epsilon` of each."""

    @property
    def size(self) -> int:
        """How many inputs there are."""
        return max(prior.last for prior in self.priors) + 1


@dataclass(frozen=True)
class Prices:
    """Of caps, privacy and a fallback: `v` by distance, then by the smaller input, and the converse ones last.

    With observers, `at` says for each line of `u` of which constraint it is.
    """

    z: list[Fraction]
    u: list[list[Fraction]]
    v: list[list[Fraction]]
    at: list[list[int]] | None


Growth = tuple[int, int]
"""At least `e^eps`, and the bits of its fraction."""


@dataclass(frozen=True)
class Line:
    """The price of each output, for the probability given `one` not to exceed `growth` times that given `other`."""

    one: Law
    other: Law
    growth: Growth
    prices: Sequence[Fraction]


@dataclass
class Chain:
    """For each input and output the prices of what the input may not exceed, and of what may not exceed the input."""

    growth: Growth
    out: list[list[int]]
    into: list[list[int]]

    def add(self, x: int, y: int, prices: Sequence[int]) -> None:
        """`r(x, s) <= growth r(y, s)`."""
        self.out[x] = [a + b for a, b in zip(self.out[x], prices, strict=True)]
        self.into[y] = [a + b for a, b in zip(self.into[y], prices, strict=True)]


def check_bound(
    claim: Mapping[str, Any], provenance: Mapping[str, Any], value: Fraction, program: Program | None
) -> tuple[str, ...]:
    """The claimed bound must be at most the objective, `value`, and be proved; its name if it is not looked at here."""
    prices = _read_prices(provenance.get("prices"))
    if claim.get("lower_bound") is None:
        return ()
    limit = stated(claim, "lower_bound")
    if limit > figure(value):
        raise Failed(f"a lower bound must be at most the objective, {as_decimal(value)}. Found {as_decimal(limit)}.")
    if program is None or prices is None:
        raise Refused("A lower bound must come with prices that prove it. Found None.")
    if _too_long(program, prices):
        return ("lower_bound",)
    right = len(prices.z) == program.size and all(len(row) == program.size for row in (*prices.u, *prices.v))
    doubtful = any(observer.doubtful for observer in program.observers)
    must(right and (prices.at is not None) == doubtful, "Prices must fit the problem", len(prices.u))
    chains = _chains(program, prices)
    if prices.at is None:  # whoever knows everybody else sees at least what somebody sees who knows the priors
        lines = _lines(program, prices)
    else:
        lines, more = _observed(program, prices)
        chains += more
    found = _least(program, prices, lines, chains)
    if Fraction(math.floor(found * 10**20), 10**20) < limit:
        raise Failed(f"the claimed lower bound {claim['lower_bound'][:40]} is not proved. Found {as_decimal(found)}.")
    return ()


def _too_long(program: Program, prices: Prices) -> bool:
    """Whether a bound is left to `optdp verify`."""
    pairs = sum(n * (n - 1) if program.every else 2 * (n - 1) for prior in program.priors for n in prior.sizes)
    bits = sum((prior.last + 1) * prior.bits * (1 + len(prior.sizes)) for prior in program.priors)
    if program.observers:
        pairs, named = len(prices.u), {tuple(line[:2]) for line in prices.at or ()}
        each = [observer.bits for observer in program.observers]
        bits += program.size * sum(each[i] for i, _ in named if i < len(each))
    rows = LARGEST if program.fallback is None else CHAINED
    return program.size > rows + 1 or bits > MOST_BITS or program.size**2 * (1 + pairs) > MOST_TERMS


def _read_prices(found: Any) -> Prices | None:
    if found is None:
        return None
    right = isinstance(found, dict) and {"z", "u"} <= found.keys() <= {"z", "u", "v", "at"}
    must(right, "Prices must be z, u, v and at, numbers in text", found)
    (z,), u, v = (price_lines(part, found) for part in ([found["z"]], found["u"], found.get("v", [])))
    at = found.get("at")
    if "at" in found:
        right = isinstance(at, list) and all(isinstance(line, list) and len(line) == 5 for line in at)
        must(right and all(type(number) is int and number >= 0 for line in at for number in line) and len(at) == len(u),
             "at must name the constraint of every line of u by five whole numbers", at)  # fmt: skip
    return Prices(z, u, v, at)


def price_lines(lines: Any, found: Any) -> list[list[Fraction]]:
    """Lines of prices, none of them below 0; a price is the double that its text stands for."""
    right = isinstance(lines, list) and all(isinstance(line, str) and _PRICES.fullmatch(line) for line in lines)
    must(right, "Prices must be z, u and v, numbers in text", found)
    numbers = [[float(text) for text in line.split()] for line in lines]
    must(all(math.isfinite(price) for line in numbers for price in line), "Prices must be finite", found)
    return [[max(Fraction(price), Fraction(0)) for price in line] for line in numbers]


def _growth(epsilon: Fraction) -> Growth:
    return exponential(epsilon)[1:]


def _lines(program: Program, prices: Prices) -> list[Line]:
    """Every two adjacent secrets under every prior, either of them first."""
    steps = [
        step
        for prior in program.priors
        for laws in prior.people
        for i, j in combinations(range(len(laws)), 2)
        if program.every or j == i + 1
        for step in ((laws[i], laws[j]), (laws[j], laws[i]))
    ]
    must(len(prices.u) == len(steps), "Prices must fit the problem", len(prices.u))
    growth = _growth(program.epsilon)
    return [Line(*step, growth, row) for step, row in zip(steps, prices.u, strict=True)]


def _chain(size: int, epsilon: Fraction) -> Chain:
    return Chain(_growth(epsilon), *([[0] * size for _ in range(size)] for _ in range(2)))


def _chains(program: Program, prices: Prices) -> list[Chain]:
    """The prices of a fallback, if there are any."""
    if program.fallback is None or not prices.v:
        return []
    size = program.size
    pairs = [(x, x + far) for far in range(1, min(program.reach, size - 1) + 1) for x in range(size - far)]
    must(len(prices.v) == 2 * len(pairs), "Prices must fit the problem", len(prices.v))
    chain = _chain(size, program.fallback)
    for (x, y), row in zip([*pairs, *((y, x) for x, y in pairs)], _whole(prices.v), strict=True):
        chain.add(x, y, row)
    return [chain]


def _observed(program: Program, prices: Prices) -> tuple[list[Line], list[Chain]]:
    """The constraints of observers that prices name; who knows everybody else sees inputs."""
    at, lines, chains = prices.at or [], [], []
    must(all(line[0] < len(program.observers) for line in at), "Prices must be of observers", len(program.observers))
    for i, observer in enumerate(program.observers):
        own = [(line[1:], row) for line, row in zip(at, prices.u, strict=True) if line[0] == i]
        wanted = {line[0] for line, _ in own}
        if observer.known is None and own:
            must(wanted == {0}, "Prices must be of vertices of the observer", max(wanted))
            chain = _chain(program.size, observer.epsilon)
            for (_, *pair), row in own:
                chain.add(*_ordered(pair, program.size, program.reach), _whole([row])[0])
            chains.append(chain)
        elif own:
            growth, found = _growth(observer.epsilon), corners(observer, program.priors[0], wanted)
            must(found.keys() == wanted, "Prices must be of vertices of the observer", max(wanted))
            for (vertex, *pair), row in own:
                laws, reach = found[vertex]
                one, other = _ordered(pair, len(laws), reach if program.every else 1)
                lines.append(Line(laws[one], laws[other], growth, row))
    return lines, chains


def _ordered(pair: Sequence[int], size: int, reach: int) -> tuple[int, int]:
    """Two adjacent secrets, the one on the smaller side first."""
    u, w, way = pair
    must(u < w < size and w - u <= reach and way <= 1, "Prices must be of adjacent secrets, u < u'", pair)
    return (w, u) if way else (u, w)


def _whole(lines: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    return [[math.floor(price * 2**FINE) for price in line] for line in lines]


def _least(program: Program, given: Prices, lines: Sequence[Line], chains: Sequence[Chain]) -> Fraction:
    """At most the least objective, by these prices."""
    spend(len(given.z) ** 2 * (1 + len(given.u)) // 4 + sum(map(len, given.v)), 0)
    inputs = _Inputs(program, given.z, lines, chains)
    total = Fraction(0)
    for x in range(len(given.z)):
        total = Fraction(math.floor((total + inputs.part(x)) * 2**GUARD), 2**GUARD)
    return max(total, Fraction(0))


class _Inputs:
    """What each input adds to the bound, rounded down."""

    def __init__(self, program: Program, z: Sequence[Fraction], lines: Sequence[Line], chains: Sequence[Chain]) -> None:
        self.program, self.z, self.lines, self.chains = program, z, lines, chains
        self.last, self.cap = len(z) - 1, mean_absolute(program.q)
        self.noise = Geometric(program.q, self.last + 1) if program.tailed else None
        self.u = _whole([line.prices for line in lines])
        self.priors = [(w, prior.total) for w, prior in zip(program.weights, program.priors, strict=True) if w]

    def part(self, x: int) -> Fraction:
        """`c(x)` times the least cost of an output, what the tails cost, and less what a cap is worth."""
        last, power = self.last, self.program.power
        unit, cost, gaps = self._scaled(x)
        mass, rest, left, fine = (1, 1), 0, 0, 0  # the mass inside, and the errors outside, over 2^fine
        if self.noise is not None:
            fine, mass = self.noise.bits, self.noise.inside(x, 0, last)
            rest, left = (sum(self.noise.beyond(d, p)[0] for d in (x + 1, last - x + 1)) for p in (1, power))
        price = math.floor(self.z[x] * 2 ** (unit + fine) / mass[1]) if self.program.capped else 0
        own = [cost * d**power + price * d << FINE for d in range(max(x, last - x) + 1)]
        best = min(map(sum, zip(own[x:0:-1] + own[: last - x + 1], *self._charges(x, unit, gaps), strict=True)))
        found = Fraction(mass[best < 0] * best + (cost * left << FINE), 1 << (unit + FINE + fine))
        return found - Fraction(price, 1 << unit) * (self.cap - Fraction(rest, 1 << fine))

    def _scaled(self, x: int) -> tuple[int, int, list[int]]:
        """The bits of the numbers of an input, and in these its share of the objective and its gaps, rounded down."""
        pairs = [(line.one.at(x), line.other.at(x)) for line in self.lines]
        chances = [(w.numerator * law.at(x)[0], w.denominator * law.unit) for w, law in self.priors]
        known = [value for value in (*chances, *(value for pair in pairs for value in pair)) if value[0]]
        unit = FINE + min((whole.bit_length() - part.bit_length() for part, whole in known), default=0)
        cost = sum((part << unit) // whole for part, whole in chances)
        gaps = []
        for ((a, m), (b, n)), line in zip(pairs, self.lines, strict=True):
            growth, bits = line.growth
            gaps.append((a << unit) // m + (-(b << unit) * growth // (n << bits)))
        return unit, cost, gaps

    def _charges(self, x: int, unit: int, gaps: Sequence[int]) -> list[Iterable[int]]:
        """For each constraint what its prices add to the cost of each output."""
        terms: list[Iterable[int]] = [map(gap.__mul__, row) for gap, row in zip(gaps, self.u, strict=True) if gap]
        for chain in self.chains:
            (most, places), out, into = chain.growth, chain.out[x], chain.into[x]
            terms.append([(a << unit) + (-(b << unit) * most >> places) for a, b in zip(out, into, strict=True)])
        return terms
