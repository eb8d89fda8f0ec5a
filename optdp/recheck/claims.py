"""What a problem demands and what a claim states, against what was recomputed.

**A lower bound of the optimum** is proved again from the prices in a file. The program of one entity: `r(x, s) >= 0`
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
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from .enclosures import Geometric, exponential, log_above, mean_absolute
from .fields import exact_number
from .laws import Law
from .priors import Prior
from .verdict import GUARD, Failed, Refused, must, spend


def figure(value: Fraction) -> Fraction:
    """A figure as it is compared: rounded up to 30 decimals, so that no bit of its arithmetic decides."""
    return Fraction(math.ceil(value * 10**30), 10**30)


def exceeds(found: Fraction | None, limit: Fraction) -> bool:
    return found is None or figure(found) > limit


def demand(name: str, ratio: Fraction | None, epsilon: Fraction, factor: Fraction | int) -> None:
    """A quotient must keep what the problem asks for; `factor` steps of it make an epsilon."""
    found = epsilon_of(ratio, factor)
    if exceeds(found, epsilon):
        raise Failed(f"{name} must be at most {as_decimal(epsilon)}. Found {as_decimal(found)}.")


def epsilon_of(ratio: Fraction | None, factor: Fraction | int) -> Fraction | None:
    log = log_above(ratio)
    return None if log is None else log * factor


def check_keys(claim: Mapping[str, Any], known: str) -> None:
    """A claim must not be about something that nobody recomputes."""
    must(claim.keys() <= set(known.split()), f"A claim must be of {known}", sorted(claim))
    must(type(claim.get("never_worse", False)) is bool, "never_worse must be true or false", claim.get("never_worse"))


def stated(claim: Mapping[str, Any], name: str) -> Fraction:
    text = claim.get(name)
    must(isinstance(text, str), f"The claim must state {name} as text", text)
    value = exact_number(text, name)
    must(abs(value) <= 10**300, f"The claim must state {name} as a number of a usual size", text)
    return value


def claimed_epsilon(claim: Mapping[str, Any], name: str, ratio: Fraction | None, factor: Fraction | int) -> None:
    if name == "ordinary_epsilon" and claim.get(name) == "infinite":
        return
    limit, found = stated(claim, name), epsilon_of(ratio, factor)
    if exceeds(found, limit):
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {as_decimal(found)}.")


def claimed(claim: Mapping[str, Any], name: str, found: Fraction) -> None:
    if exceeds(found, stated(claim, name)):
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {as_decimal(found)}.")


def as_decimal(value: Fraction | None, digits: int = 15) -> str:
    """At least `value`, with so many significant digits."""
    if value is None:
        return "infinite"
    if value == 0:
        return "0"
    places = digits - (len(str(abs(value.numerator) // value.denominator)) if abs(value) >= 1 else 0)
    while abs(value) * 10**places < 10 ** (digits - 1) and places < 400:
        places += 1
    scaled = -(-value.numerator * 10 ** max(places, 0) // value.denominator)
    text = f"{abs(scaled):0{max(places, 0) + 1}d}"
    if places > 0:
        text = f"{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".")
    return "-" + text if scaled < 0 else text


# ---------------------------------------------------------------------- lower bounds

LARGEST = 5000
"""Up to this sum every input has a row."""
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
    """What a step may give away."""
    q: Fraction
    """Of geometric noise."""
    tailed: bool
    capped: bool
    fallback: Fraction | None
    """What every two adjacent inputs may give away, whatever the prior."""
    reach: int
    """How far adjacent inputs are apart at most."""

    @property
    def size(self) -> int:
        """How many inputs there are."""
        return max(prior.last for prior in self.priors) + 1


@dataclass(frozen=True)
class Prices:
    """Of caps, privacy and a fallback: `v` by distance, then by the smaller input, and the converse ones last."""

    z: list[Fraction]
    u: list[list[Fraction]]
    v: list[list[Fraction]]


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
    if _too_long(program):
        return ("lower_bound",)
    steps = [step for prior in program.priors for step in _steps(prior, program.every)]
    fits = len(prices.z) == program.size and [len(row) for row in prices.u] == [program.size] * len(steps)
    must(fits, "Prices must fit the problem", len(prices.u))
    found = _least(program, steps, prices)
    if Fraction(math.floor(found * 10**20), 10**20) < limit:
        raise Failed(f"the claimed lower bound {claim['lower_bound'][:40]} is not proved. Found {as_decimal(found)}.")
    return ()


def _too_long(program: Program) -> bool:
    """Whether a bound is left to `optdp verify`."""
    pairs = sum(n * (n - 1) if program.every else 2 * (n - 1) for prior in program.priors for n in prior.sizes)
    bits = sum((prior.last + 1) * prior.bits * (1 + len(prior.sizes)) for prior in program.priors)
    return program.size > LARGEST + 1 or bits > MOST_BITS or program.size**2 * (1 + pairs) > MOST_TERMS


def _read_prices(found: Any) -> Prices | None:
    if found is None:
        return None
    right = isinstance(found, dict) and {"z", "u"} <= found.keys() <= {"z", "u", "v"}
    must(right, "Prices must be z, u and v, numbers in text", found)
    (z,), u, v = (_price_lines(part, found) for part in ([found["z"]], found["u"], found.get("v", [])))
    return Prices(z, u, v)


def _price_lines(lines: Any, found: Any) -> list[list[Fraction]]:
    """Lines of prices, none of them below 0; a price is the double that its text stands for."""
    right = isinstance(lines, list) and all(isinstance(line, str) and _PRICES.fullmatch(line) for line in lines)
    must(right, "Prices must be z, u and v, numbers in text", found)
    numbers = [[float(text) for text in line.split()] for line in lines]
    must(all(math.isfinite(price) for line in numbers for price in line), "Prices must be finite", found)
    return [[max(Fraction(price), Fraction(0)) for price in line] for line in numbers]


def _steps(prior: Prior, every: bool) -> list[tuple[Law, Law]]:
    """The laws given two adjacent secrets, either of them first."""
    return [
        step
        for laws in prior.people
        for i, j in combinations(range(len(laws)), 2)
        if every or j == i + 1
        for step in ((laws[i], laws[j]), (laws[j], laws[i]))
    ]


def _chain(program: Program, prices: Prices) -> tuple[list[list[int]], list[list[int]]] | None:
    """For each input and output the prices of what the input may not exceed, and of what may not exceed the input."""
    if program.fallback is None or not prices.v:
        return None
    size = len(prices.z)
    pairs = [(x, x + far) for far in range(1, min(program.reach, size - 1) + 1) for x in range(size - far)]
    must([len(row) for row in prices.v] == [size] * (2 * len(pairs)), "Prices must fit the problem", len(prices.v))
    out, into = [[0] * size for _ in range(size)], [[0] * size for _ in range(size)]
    for (x, y), row in zip([*pairs, *((y, x) for x, y in pairs)], _whole(prices.v), strict=True):
        out[x] = [a + b for a, b in zip(out[x], row, strict=True)]
        into[y] = [a + b for a, b in zip(into[y], row, strict=True)]
    return out, into


def _whole(lines: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    return [[math.floor(price * 2**FINE) for price in line] for line in lines]


def _least(program: Program, steps: Sequence[tuple[Law, Law]], given: Prices) -> Fraction:
    """At most the least objective, by these prices."""
    spend(len(given.z) ** 2 * (1 + len(given.u)) // 4 + sum(map(len, given.v)), 0)
    inputs = _Inputs(program, steps, given)
    total = Fraction(0)
    for x in range(len(given.z)):
        total = Fraction(math.floor((total + inputs.part(x)) * 2**GUARD), 2**GUARD)
    return max(total, Fraction(0))


class _Inputs:
    """What each input adds to the bound, rounded down."""

    def __init__(self, program: Program, steps: Sequence[tuple[Law, Law]], given: Prices) -> None:
        self.program, self.steps, self.z, self.chain = program, steps, given.z, _chain(program, given)
        self.last, self.cap = len(given.z) - 1, mean_absolute(program.q)
        self.noise = Geometric(program.q, self.last + 1) if program.tailed else None
        self.growth = exponential(program.epsilon)[1:]
        self.fallback = exponential(program.fallback or Fraction(0))[1:]
        self.u = _whole(given.u)
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
        pairs = [(one.at(x), other.at(x)) for one, other in self.steps]
        chances = [(w.numerator * law.at(x)[0], w.denominator * law.unit) for w, law in self.priors]
        known = [value for value in (*chances, *(value for pair in pairs for value in pair)) if value[0]]
        unit = FINE + min((whole.bit_length() - part.bit_length() for part, whole in known), default=0)
        cost = sum((part << unit) // whole for part, whole in chances)
        growth, bits = self.growth
        gaps = [(a << unit) // m + (-(b << unit) * growth // (n << bits)) for (a, m), (b, n) in pairs]
        return unit, cost, gaps

    def _charges(self, x: int, unit: int, gaps: Sequence[int]) -> list[Iterable[int]]:
        """For each constraint what its prices add to the cost of each output."""
        terms: list[Iterable[int]] = [map(gap.__mul__, row) for gap, row in zip(gaps, self.u, strict=True) if gap]
        if self.chain is not None:
            (most, places), out, into = self.fallback, self.chain[0][x], self.chain[1][x]
            terms.append((a << unit) + (-(b << unit) * most >> places) for a, b in zip(out, into, strict=True))
        return terms
