"""A lower bound for every plan, proved from stored prices with integers that are rounded to the safe side.

The parties are put into **blocks**. Block `b` adds `t_b(x_b)` to the true sum; its state `x_b` is the sum of its people
if it is one party, and the (weighted) sum of all of them if it is several. With the law of the release `S` given all
states, `r(x, S)`, every plan of independent or seeded reports keeps

    sum over S of r(x, S) = 1                                         every x = (x_1, .., x_B)
    sum over x of a(x_b) prod over l /= b of P(x_l) r(x, S) <= 0      every rule `a` of every block b, every S
    sum over S of S r(x, S) = a_1(x_1) + .. + a_B(x_B)                for some functions a_b (the additive mean)

and costs `sum of P(x) |S - t(x)|^p r(x, S)`. The rules of one party are `Pr[x|w] - e^eps Pr[x|w']` for every step of
each of its people, both ways ("people"). Those of any block are two ("mean"): each person's mean, after any release, is
at most that of the law tilted by `e^(eps w)` and at least that tilted by `e^(-eps w)`, so that for their sum

    a(x) = P(x) (t(x) - upper)    and    a(x) = P(x) (lower - t(x)).

For people who are alike and contribute 0 or 1 that says all that privacy says of the sum. With one block nothing is
said about means, and the bound holds for whatever sees all data.

**Weak duality.** For any prices `y(S) >= 0` of the rules and any `v(x)` whose sums over all states but one block's
vanish, no plan costs less than

    sum over x of min over S of ( P(x) |S - t(x)|^p + sum of a(x_b) prod P(x_l) y(S) + v(x) S ).

A file gives `y` for a window of outputs, 0 elsewhere, and `v` by numbers `n(x)` that are made to vanish here:

    v(x) = W(x) (n(x) - sum over b of E[n|x_b] + (B-1) E[n])      W = prod W_b, means under W,

with `W_b(x_b) <= P(x_b)` integers over `2^BITS`. If `|v| <= W`, the sum is smallest beyond the window at the output
there that is next to `t(x)` (for squares, next to `t - v/2W`, whatever `v`). Only a core of likely states is looked at,
`v = 0` elsewhere; the others take off at most what is negative in the rules there, times the largest price.
Proof: docs/mathematics.md, "A bound for every plan".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from flint import fmpz_poly

from optdp.errors import ArtifactError
from optdp.files.canonical import refused, shown
from optdp.numbers.exact import exp_bounds
from optdp.numbers.pmf import ExactPmf
from optdp.people.population import Distribution, Population
from optdp.plan.certificate import bounding
from optdp.plan.problem import MultiLTE
from optdp.single.claims import check_possible, check_proved, proves
from optdp.work.account import product_steps, spend

BITS = 64
"""Laws and rules are multiples of `2^-BITS`, rounded down."""
FINE = 64
"""Prices are multiples of `2^-FINE`."""
UNIT = 20
"""The numbers `n(x)` of a file are multiples of `2^-UNIT`."""
MOST_STATES, MOST_CELLS, MOST_NUMBERS = 20_000, 4_000_000, 200_000
"""The most states of a block, of states and outputs that a minimum is taken over, and of numbers in a file."""
TILTED = 256
"""The largest contribution whose tilted mean is computed; of larger ones only the range is used."""
_NUMBERS = re.compile(r"(?:[0-9]{1,30}(?:\.[0-9]{1,30})?(?:e[-+]?[0-9]{1,2})?(?: |$))*")
_WHOLES = re.compile(r"(?:-?[0-9]{1,15}(?: |$))*")

Rule = list[int]
"""What a rule says of each state: integers over `2^BITS`, rounded down."""


@dataclass(frozen=True)
class BlockPrices:
    """Some parties, their rules ("people" or "mean"), their core of states, and a list of prices for each rule."""

    parties: tuple[int, ...]
    rules: str
    states: tuple[int, int]
    y: tuple[str, ...]


@dataclass(frozen=True)
class PlanPrices:
    """Prices for a plan's blocks; they prove a lower bound of every plan, or if there is one block, of everything."""

    blocks: tuple[BlockPrices, ...]
    outputs: tuple[int, int]
    mean: str

    @property
    def holds_for(self) -> str:
        """Of what the bound holds."""
        return "any plan with these parties" if len(self.blocks) > 1 else "whatever sees all data"

    def document(self) -> dict[str, Any] | None:
        """As a file has them."""
        blocks = [
            {"parties": list(one.parties), "rules": one.rules, "states": list(one.states), "y": list(one.y)}
            for one in self.blocks
        ]
        return {"blocks": blocks, "outputs": list(self.outputs), "mean": self.mean}


@dataclass(frozen=True)
class Block:
    """A block with all its states, in integers."""

    parties: tuple[int, ...]
    values: range
    """What each state adds to the true sum."""
    law: list[int]
    """`P(x) 2^BITS`, rounded down."""
    rules: list[Rule]


# ---------------------------------------------------------------------- what is asked of a block


def out_of_reach(problem: MultiLTE) -> str:
    """Why nothing is proved by blocks; empty if something is."""
    if not all(isinstance(population.total, ExactPmf) for population in problem.parties):
        return "a party has too many people for exact laws"
    return "a population lies outside its observer's range" if problem.outside else ""


def made(problem: MultiLTE, parties: tuple[int, ...], rules: str) -> Block:
    """The block of these parties."""
    values, law = _sum_of(problem, parties)
    if rules == "people":
        (party,) = parties
        return Block(parties, values, law, list(_people(problem, party)))
    return Block(parties, values, law, _means(problem, parties, values, law))


def number_of_states(problem: MultiLTE, parties: Sequence[int]) -> int:
    """How many states a block of these parties has."""
    if len(parties) == 1:
        return problem.parties[parties[0]].last + 1
    return 1 + sum(abs(problem.f[i]) * problem.parties[i].last for i in parties)


def _sum_of(problem: MultiLTE, parties: tuple[int, ...]) -> tuple[range, list[int]]:
    """The values of a block's states, and their law."""
    if len(parties) == 1:
        (i,) = parties
        total = _exact(problem.parties[i])
        f = problem.f[i]
        return range(0, f * total.last + (1 if f > 0 else -1), f), _scaled(total.weights, total.denominator)
    polynomial, unit, lowest = fmpz_poly([1]), 1, 0
    for i in parties:
        total, f = _exact(problem.parties[i]), problem.f[i]
        spread = [0] * (abs(f) * total.last + 1)
        spread[:: abs(f)] = total.weights if f > 0 else total.weights[::-1]
        lowest += min(0, f * total.last)
        spend(product_steps(polynomial.length(), len(spread)) * (1 + unit.bit_length() / 500), "the lower bound")
        polynomial, unit = polynomial * fmpz_poly(spread), unit * total.denominator
    size = number_of_states(problem, parties)
    weights = [int(weight) for weight in polynomial.coeffs()]
    weights += [0] * (size - len(weights))
    return range(lowest, lowest + size), _scaled(weights, unit)


def _exact(population: Population) -> ExactPmf:
    assert isinstance(population.total, ExactPmf)
    return population.total


def _scaled(weights: Sequence[int], unit: int) -> list[int]:
    return [(weight << BITS) // unit for weight in weights]


def _people(problem: MultiLTE, party: int) -> Iterator[Rule]:
    """For each kind of person and each step, `Pr[x|w] - e^eps Pr[x|w+1]` and `Pr[x|w+1] - e^eps Pr[x|w]`."""
    top = math.ceil(exp_bounds(problem.pair_epsilon(party))[1] * 2**BITS)  # at least e^eps
    for person in problem.parties[party].people:
        for one, other in zip(person.conditionals[:-1], person.conditionals[1:], strict=True):
            assert isinstance(one, ExactPmf)
            assert isinstance(other, ExactPmf)
            for a, b in ((one, other), (other, one)):
                yield [
                    (v << BITS) // a.denominator - -((-w * top) // b.denominator)
                    for v, w in zip(a.weights, b.weights, strict=True)
                ]


def number_of_rules(problem: MultiLTE, party: int) -> int:
    """How many rules the people of a party have."""
    return sum(2 * person.largest for person in problem.parties[party].people)


def _means(problem: MultiLTE, parties: tuple[int, ...], values: range, law: Sequence[int]) -> list[Rule]:
    """`P(x) (t(x) - upper)` and `P(x) (lower - t(x))`."""
    lower = upper = Fraction(0)
    for i in parties:
        ends = sorted(problem.f[i] * end for end in _mean_range(problem, i))
        lower, upper = lower + ends[0], upper + ends[1]
    low, high = math.floor(lower * 2**BITS), math.ceil(upper * 2**BITS)
    gaps = ([(t << BITS) - high for t in values], [low - (t << BITS) for t in values])
    return [[(gap * (p if gap >= 0 else p + 1)) >> BITS for p, gap in zip(law, own, strict=True)] for own in gaps]


def _mean_range(problem: MultiLTE, party: int) -> tuple[Fraction, Fraction]:
    """Where the mean of a party's sum lies after any private release."""
    population = problem.parties[party]
    if not population.laws or "conservative" in population.spec:
        return Fraction(0), Fraction(population.last)  # nothing is used of them
    tilt = Fraction(math.ceil(exp_bounds(problem.pair_epsilon(party))[1] * 2**BITS), 2**BITS)
    least = sum((count * _tilted(law, 1 / tilt) for law, count in population.laws), Fraction(0))
    most = sum((count * _tilted(law, tilt) for law, count in population.laws), Fraction(0))
    return least, most


def _tilted(law: Distribution, by: Fraction) -> Fraction:
    """The mean of the law whose chances are multiplied by `by^w`."""
    if len(law) > TILTED + 1:
        return Fraction(len(law) - 1 if by > 1 else 0)
    weights = [chance * by**w for w, chance in enumerate(law)]
    return sum((w * weight for w, weight in enumerate(weights)), Fraction(0)) / sum(weights)


# ---------------------------------------------------------------------- the proof


def proved(problem: MultiLTE, prices: PlanPrices) -> Fraction:
    """A number that no plan of `problem` has a smaller error than; at least 0."""
    blocks = _blocks(problem, prices)
    lowest, highest = prices.outputs
    cores = [range(one.states[0], one.states[1] + 1) for one in prices.blocks]
    size = highest - lowest + 1
    states = math.prod(map(len, cores))
    lists = [[_prices(line, size) for line in one.y] for one in prices.blocks]
    rules = sum(len(core) * len(block.rules) for core, block in zip(cores, blocks, strict=True))
    spend(0.1 * rules * size + 0.25 * len(blocks) * states * (size + 8), "the lower bound")
    numbers = _means_of(prices.mean, states)
    laws = [[block.law[x] for x in core] for block, core in zip(blocks, cores, strict=True)]
    mean, unit = _centred(numbers, laws)
    power = 1 if problem.objective == "mae" else 2
    if power == 1 and any(abs(price) > unit for price in mean):
        raise ArtifactError("Prices of the mean must be at most 1. Found a larger one. The file was changed.")
    sums = [_priced(block, core, y) for block, core, y in zip(blocks, cores, lists, strict=True)]
    total = 0
    for place, (at, price) in enumerate(zip(product(*map(range, map(len, cores))), mean, strict=True)):
        if place % 4096 == 0:
            spend(1, "the lower bound")
        t = sum(block.values[core[k]] for block, core, k in zip(blocks, cores, at, strict=True))
        own = [law[k] for law, k in zip(laws, at, strict=True)]
        weight = math.prod(own)
        beside = [0] * size
        for b, k in enumerate(at):
            others = own[:b] + own[b + 1 :]
            low, high = math.prod(others), math.prod(p + 1 for p in others)
            up, down = sums[b][k]
            beside = [c + low * p - high * n for c, p, n in zip(beside, up, down, strict=True)]
        scale = weight << FINE  # of one unit of cost
        pulled = weight * price << FINE  # of one unit of the output, times `unit`
        inside = [
            (abs(s - t) ** power * scale + c) * unit + pulled * s
            for s, c in zip(range(lowest, highest + 1), beside, strict=True)
        ]
        nearest = t if power == 1 else (2 * t * unit - price + unit) // (2 * unit)
        ends = (min(nearest, lowest - 1), max(nearest, highest + 1))
        total += min(*inside, *(abs(s - t) ** power * scale * unit + pulled * s for s in ends))
    found = Fraction(total, unit << (BITS * len(blocks) + FINE))
    return max(Fraction(0), found - _beyond(blocks, cores, lists))


def _blocks(problem: MultiLTE, prices: PlanPrices) -> list[Block]:
    """The blocks of the prices, which must be ones of the problem."""
    if reason := out_of_reach(problem):
        raise ArtifactError(f"A lower bound by blocks cannot be proved: {reason}.")
    listed = sorted(i for one in prices.blocks for i in one.parties)
    if listed != list(range(len(problem.parties))):
        raise refused("Every party must be in one block", shown(listed[:50]))
    if len(prices.blocks) > 1 and not additive(problem):
        raise refused("The mean of a release that is drawn from all data need not be additive", "several blocks")
    low, high = prices.outputs
    cells = high - low + 1
    for one in prices.blocks:
        size = number_of_states(problem, one.parties)
        if size > MOST_STATES or not 0 <= one.states[0] <= one.states[1] < size:
            raise refused(f"The states of a block must lie in 0..{min(size, MOST_STATES) - 1}", shown(one.states))
        cells *= one.states[1] - one.states[0] + 1
        if one.rules == "people" and len(one.parties) > 1:
            raise refused('A block of several parties must have the rules "mean"', one.rules)
    if not low <= high or cells > MOST_CELLS:
        raise refused(f"A bound must have 1 to {MOST_CELLS:,} states and outputs", f"{cells:,}")
    blocks = [made(problem, one.parties, one.rules) for one in prices.blocks]
    if any(len(block.rules) != len(one.y) for block, one in zip(blocks, prices.blocks, strict=True)):
        raise refused("Every rule of a block must have a list of prices", "more or fewer")
    return blocks


def additive(problem: MultiLTE) -> bool:
    """Whether the mean of the release given all sums is a sum of functions of each party's own: reports are added."""
    return str(problem.method) != "inside"


def _centred(numbers: Sequence[int] | None, laws: Sequence[Sequence[int]]) -> tuple[list[int], int]:
    """The prices of the mean divided by `W`, and their unit."""
    shape = [len(law) for law in laws]
    if numbers is None or len(laws) == 1:
        return [0] * math.prod(shape), 1
    masses = [sum(law) for law in laws]
    whole = math.prod(masses)
    if whole == 0:
        raise refused("The core of a block must be possible", "states without any chance")
    weights = [math.prod(own) for own in product(*laws)]
    given = [[0] * size for size in shape]
    centre = 0
    places = list(product(*map(range, shape)))
    for place, n, weight in zip(places, numbers, weights, strict=True):
        centre += n * weight
        for b, k in enumerate(place):
            given[b][k] += n * weight
    means = [  # `E[n|x_b]`, times `whole`; `p` divides each term of `total`
        [total // p * mass if p else 0 for total, p in zip(own, law, strict=True)]
        for own, law, mass in zip(given, laws, masses, strict=True)
    ]
    more = (len(laws) - 1) * centre
    found = [
        n * whole - sum(mean[k] for mean, k in zip(means, place, strict=True)) + more if weight else 0
        for place, n, weight in zip(places, numbers, weights, strict=True)
    ]
    return found, whole << UNIT


def _priced(block: Block, core: range, lists: Sequence[Sequence[int]]) -> list[tuple[list[int], list[int]]]:
    """For each state and output what the rules cost there: those where a rule is positive, and the others, negated."""
    found = []
    size = len(lists[0])
    for x in core:
        sides = [[0] * size, [0] * size]
        for rule, y in zip(block.rules, lists, strict=True):
            if a := abs(rule[x]):
                side = 0 if rule[x] > 0 else 1
                sides[side] = [c + a * price for c, price in zip(sides[side], y, strict=True)]
        found.append((sides[0], sides[1]))
    return found


def _beyond(blocks: Sequence[Block], cores: Sequence[range], lists: Sequence[Sequence[Sequence[int]]]) -> Fraction:
    """The most that states outside the core take off."""
    missing = [(1 << BITS) - sum(block.law[x] for x in core) for block, core in zip(blocks, cores, strict=True)]
    total = 0
    for b, (block, core, own) in enumerate(zip(blocks, cores, lists, strict=True)):
        others = sum(missing) - missing[b]
        for rule, y in zip(block.rules, own, strict=True):
            inside = sum(max(0, -rule[x]) for x in core)
            outside = sum(max(0, -a) for a in rule) - inside
            total += max(y) * ((outside << BITS) + inside * others)
    return Fraction(total, 1 << (2 * BITS + FINE))


# ---------------------------------------------------------------------- files


def _prices(line: str, size: int) -> list[int]:
    """The prices of a rule at each output; an empty line is one of zeros."""
    values = [int(Fraction(text) * 2**FINE) for text in line.split()] if line else [0] * size
    if len(values) != size:
        raise refused(f"A list of prices must have {size} numbers", str(len(values)))
    return values


def _means_of(line: str, states: int) -> list[int] | None:
    if not line:
        return None
    values = [int(text) for text in line.split()]
    if len(values) != states:
        raise refused(f"The prices of the mean must be {states}", str(len(values)))
    return values


def parse(found: Mapping[str, Any]) -> PlanPrices:
    """The prices of a file."""
    try:
        blocks = tuple(map(_block, found["blocks"]))
        prices = PlanPrices(blocks, _pair(found["outputs"]), found["mean"])
        count = sum(1 + line.count(" ") for line in (prices.mean, *(line for one in blocks for line in one.y)))
        if found.keys() != {"blocks", "outputs", "mean"} or not blocks or count > MOST_NUMBERS:
            raise ValueError
        if not _WHOLES.fullmatch(prices.mean):
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ArtifactError(
            "Prices of a plan must be blocks (parties, rules, states, y), outputs and mean. Found others. "
            "The file was changed."
        ) from None
    return prices


def _block(found: Any) -> BlockPrices:
    block = BlockPrices(tuple(found["parties"]), found["rules"], _pair(found["states"]), tuple(found["y"]))
    if found.keys() != {"parties", "rules", "states", "y"} or block.rules not in ("people", "mean"):
        raise ValueError
    if not block.parties or any(type(i) is not int for i in block.parties):
        raise ValueError
    if not block.y or not all(_NUMBERS.fullmatch(line) for line in block.y):
        raise ValueError
    return block


def _pair(found: Any) -> tuple[int, int]:
    low, high = found
    if type(found) is not list or type(low) is not int or type(high) is not int or max(abs(low), abs(high)) > 1 << 40:
        raise ValueError
    return low, high


def bound_proves(problem: MultiLTE, claimed: Any, provenance: Mapping[str, Any], value: Fraction) -> bool:
    """Prove a claimed lower bound again; raise if the stored prices do not, False if that would take long."""
    stored = provenance.get("prices")
    if not isinstance(stored, dict) or "blocks" not in stored:
        return proves(None if claimed is None else bounding(problem), claimed, provenance, value)
    if claimed is None:
        return False
    prices = parse(stored)
    check_possible(claimed, value)
    return check_proved(claimed, lambda: proved(problem, prices))
