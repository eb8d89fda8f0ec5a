"""A lower bound of every plan whose reports are added, proved again from the prices in a file.

Parties stand in blocks. `x_b` is the state of block `b`: the sum of its people if it is one party, else the weighted
sum `t` of all its parties. Write `P` for the priors, and `r(x, S)` for the law of the release given all states. Then

    sum over x of a(x_b) prod over the other blocks of P(x_l)  r(x, S)  <=  0                for every output S

for each **rule** `a` of a block. "people": `Pr[x|w] - e^eps Pr[x|w+1]` and the converse, for each kind of person and
each `w`, in this order. "mean": `P(x) (t(x) - upper)`, then `P(x) (lower - t(x))`: whoever sees the release has, of
each person, a mean between those of the law multiplied by `e^(-eps w)` and by `e^(eps w)`. Moreover the mean of `S`
given `x` is a sum of functions of one state each, as every report depends on the data of its party alone.

So with prices `y >= 0` of the rules, and `v(x)` that vanishes when it is added up over all states but one block's,
the error of every plan is at least

    sum over x of  min over S of  P(x) |S - t(x)|^p + sum of a(x_b) P(others) y(S) + v(x) S.

In a file `y` has a price for each of `outputs`, 0 elsewhere, and there are integers `n(x)` (over `2^20`, by states, the
last block's the fastest). `v` is `Q(x)` times `n`, less what a sum of functions of one state explains of `n`, with
`Q <= P` a product of the blocks' laws, rounded down. Then `v` vanishes as it should whatever `n` is. Beyond `outputs`
the least is at the output next to `t(x)`, or for squares next to `t(x) - v(x)/2Q(x)`; for absolute errors `|v| <= Q`
is needed. States outside of `states` have no `v`. What rules take off there is at most their negative part times the
largest price.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

from .claims import as_decimal, figure, stated
from .enclosures import exponential
from .fields import list_of, one_of, table_with, whole_number
from .laws import Law, multiplied
from .plans import Plan
from .verdict import Failed, must, spend

BITS = 80
"""Laws, rules and prices are integers over `2^BITS`."""
LONGEST, MOST_CELLS = 20_000, 4_000_000
"""The most states of a block, and the most states and outputs of all."""
TILTED = 256
"""Of larger contributions only the range is used."""
_PRICES = re.compile(r"(?:[0-9]{1,30}(?:\.[0-9]{1,30})?(?:e[-+]?[0-9]{1,2})?(?: |$))*")
_WHOLES = re.compile(r"(?:-?[0-9]{1,15}(?: |$))*")


@dataclass(frozen=True)
class Block:
    """Some parties; of each state its value, its chance rounded down, and what each rule says, rounded down."""

    values: Sequence[int]
    law: Sequence[int]
    rules: Sequence[Sequence[int]]
    core: range
    prices: Sequence[Sequence[int]]


def check_plan_bound(
    plan: Plan, claim: Mapping[str, Any], provenance: Mapping[str, Any], value: Fraction, method: str
) -> None:
    """The claimed bound must be at most the objective, `value`, and be proved by blocks."""
    limit = stated(claim, "lower_bound")
    if limit > figure(value):
        raise Failed(f"a lower bound must be at most the objective, {as_decimal(value)}. Found {as_decimal(limit)}.")
    found = least_error(plan, provenance["prices"], method != "inside")
    if found < limit:
        raise Failed(f"the claimed lower bound {claim['lower_bound'][:40]} is not proved. Found {as_decimal(found)}.")


def least_error(plan: Plan, stored: Any, added: bool) -> Fraction:
    """What the prices prove; `added` if the release is a sum of reports."""
    stored = table_with(stored, "prices", "blocks outputs mean")
    listed = list_of(stored["blocks"], "blocks", 1)
    must(added or len(listed) == 1, "A release from all data must have one block", len(listed))
    low, high = _ends(stored["outputs"], "outputs")
    tables = [table_with(entry, "a block", "parties rules states y") for entry in listed]
    parties = [i for table in tables for i in list_of(table["parties"], "parties", 1)]
    right = all(type(i) is int for i in parties) and sorted(parties) == list(range(len(plan.f)))
    must(right, "Every party must be in one block", parties)
    _demand_belief(plan)
    blocks = [_read_block(plan, table, high - low + 1) for table in tables]
    cells = math.prod(len(block.core) for block in blocks) * (high - low + 1)
    must(cells <= MOST_CELLS, f"A bound must have at most {MOST_CELLS} states and outputs", cells)
    spend(cells * len(blocks), 6 * BITS)
    pulls, unit = _pulls(stored["mean"], blocks)
    must(plan.power == 2 or all(abs(pull) <= unit for pull in pulls), "Prices of the mean must be at most 1", "more")
    total = sum(_least(blocks, state, range(low, high + 1), pull, unit, plan.power) for state, pull in zip(
        product(*(block.core for block in blocks)), pulls, strict=True))  # fmt: skip
    return max(Fraction(0), Fraction(total, unit << BITS * (len(blocks) + 1)) - _elsewhere(blocks))


def _ends(pair: Any, name: str) -> tuple[int, int]:
    must(isinstance(pair, list) and len(pair) == 2, f"{name} must be [first, last]", pair)
    first, last = (whole_number(end, name, -(1 << 40), 1 << 40) for end in pair)
    must(first <= last, f"{name} must not be empty", pair)
    return first, last


def _demand_belief(plan: Plan) -> None:
    """The priors must be among what the observers hold possible."""
    for prior, observer in zip(plan.worlds[0], plan.observers, strict=True):
        kinds = () if observer is None else observer.kinds
        for law in prior.laws if kinds else ():
            inside = any(_on_segment(law, kind.low, kind.high) for kind in kinds)
            must(inside, "A prior must lie in its observer's range", len(law))


def _on_segment(law: Sequence[Fraction], low: Sequence[Fraction], high: Sequence[Fraction]) -> bool:
    """Whether a law is `low + share (high - low)` with a share from 0 to 1."""
    if not len(law) == len(low) == len(high):
        return False
    shares = {(c - a) / (b - a) for a, b, c in zip(low, high, law, strict=True) if a != b}
    fixed = all(a == c for a, b, c in zip(low, high, law, strict=True) if a == b)
    return fixed and (not shares or (len(shares) == 1 and 0 <= min(shares) <= 1))


# ---------------------------------------------------------------------- blocks


def _read_block(plan: Plan, entry: Mapping[str, Any], outputs: int) -> Block:
    parties: list[int] = entry["parties"]
    size = 1 + sum((abs(plan.f[i]) if len(parties) > 1 else 1) * plan.worlds[0][i].last for i in parties)
    must(size <= LONGEST, f"A block must have at most {LONGEST} states", size)
    first, last = _ends(entry["states"], "states")
    must(first >= 0 and last < size, f"The states of a block must lie in 0..{size - 1}", [first, last])
    kind = one_of(entry["rules"], "rules", "people mean")
    if len(parties) == 1:
        (party,) = parties
        total = plan.worlds[0][party].total
        values = [plan.f[party] * x for x in range(size)]
        law = [_chance(total, x) for x in range(size)]
    else:
        values, law = _added(plan, parties, size)
    if kind == "people":
        must(len(parties) == 1, 'A block of several parties must have the rules "mean"', parties)
        rules = list(_people(plan, parties[0], size))
    else:
        rules = _means(plan, parties, values, law)
    lines = list_of(entry["y"], "y")
    must(len(lines) == len(rules), f"There must be prices for {len(rules)} rules", len(lines))
    must(outputs * len(lines) <= MOST_CELLS, "There must be fewer outputs", outputs)
    return Block(values, law, rules, range(first, last + 1), [_read_prices(line, outputs) for line in lines])


def _read_prices(line: Any, outputs: int) -> list[int]:
    must(isinstance(line, str) and _PRICES.fullmatch(line) is not None, "Prices must be numbers in text", line)
    found = [Fraction(text) for text in line.split()] if line else [Fraction(0)] * outputs
    must(len(found) == outputs, f"There must be a price for {outputs} outputs", len(found))
    return [int(price * 2**BITS) for price in found]


def _chance(law: Law, x: int) -> int:
    weight, unit = law.at(x)
    return (weight << BITS) // unit


def _added(plan: Plan, parties: Sequence[int], size: int) -> tuple[list[int], list[int]]:
    """The values of the weighted sum of several parties, and its law."""
    weights, unit, lowest = [1], 1, 0
    for i in parties:
        total, f = plan.worlds[0][i].total, plan.f[i]
        must(total.exact, "The laws of the parties must be exact", i)
        last = plan.worlds[0][i].last
        spread = [0] * (abs(f) * last + 1)
        for x in range(last + 1):
            spread[f * x if f > 0 else -f * (last - x)] = total.at(x)[0]
        lowest += min(0, f * last)
        spend(len(weights) + len(spread), 20 * (unit * total.unit).bit_length())
        weights, unit = multiplied(weights, spread), unit * total.unit
    weights = [*weights, *[0] * (size - len(weights))]
    return list(range(lowest, lowest + size)), [(weight << BITS) // unit for weight in weights]


def _people(plan: Plan, party: int, size: int) -> Iterator[list[int]]:
    _, top, bits = exponential(plan.epsilon / plan.steps[party])
    for laws in plan.worlds[0][party].people:
        for k in range(len(laws) - 1):
            for one, other in ((laws[k], laws[k + 1]), (laws[k + 1], laws[k])):
                spend(4 * size, one.unit.bit_length() + bits)
                rule = []
                for x in range(size):
                    weight, unit = other.at(x)
                    rule.append(_chance(one, x) - -(-weight * top // (unit << bits - BITS)))
                yield rule


def _means(plan: Plan, parties: Sequence[int], values: Sequence[int], law: Sequence[int]) -> list[list[int]]:
    lower = upper = Fraction(0)
    for i in parties:
        ends = [plan.f[i] * end for end in _mean_ends(plan, i)]
        lower, upper = lower + min(ends), upper + max(ends)
    low, high = math.floor(lower * 2**BITS), math.ceil(upper * 2**BITS)
    over = [(t << BITS) - high for t in values]
    under = [low - (t << BITS) for t in values]
    return [[_below(gap, p) for gap, p in zip(gaps, law, strict=True)] for gaps in (over, under)]


def _below(gap: int, chance: int) -> int:
    """At most their product; the chance may be larger by one."""
    return (gap * chance if gap > 0 else gap * (chance + 1)) >> BITS


def _mean_ends(plan: Plan, party: int) -> tuple[Fraction, Fraction]:
    """The least and the largest mean of a party's sum that somebody may have after a release."""
    prior = plan.worlds[0][party]
    if not prior.laws or json.loads(plan.names[0][party]).get("conservative") is not None:
        return Fraction(0), Fraction(prior.last)
    _, top, bits = exponential(plan.epsilon / plan.steps[party])
    tilt = Fraction(-(-top >> bits - BITS), 1 << BITS)
    least = most = Fraction(0)
    for law, count in prior.laws.items():
        if len(law) > TILTED + 1:
            most += count * (len(law) - 1)
            continue
        powers = list(accumulate([tilt] * (len(law) - 1), lambda power, by: power * by, initial=Fraction(1)))
        spend(8 * len(law), len(law) * BITS)
        up = [p * power for p, power in zip(law, powers, strict=True)]
        down = [p * power for p, power in zip(law, reversed(powers), strict=True)]  # both ends times the last power
        most += count * _mean(up)
        least += count * _mean(down)
    return least, most


def _mean(weights: Sequence[Fraction]) -> Fraction:
    return sum((w * weight for w, weight in enumerate(weights)), Fraction(0)) / sum(weights, Fraction(0))


# ---------------------------------------------------------------------- the bound


def _pulls(line: Any, blocks: Sequence[Block]) -> tuple[list[int], int]:
    """`v(x) / Q(x)` of each state, over the unit."""
    shape = [len(block.core) for block in blocks]
    count = math.prod(shape)
    must(isinstance(line, str) and _WHOLES.fullmatch(line) is not None, "mean must be whole numbers in text", line)
    numbers = [int(text) for text in line.split()] if line else []
    must(not numbers or len(numbers) == count, f"mean must have {count} numbers", len(numbers))
    if not numbers or len(blocks) == 1:
        return [0] * count, 1
    laws = [[block.law[x] for x in block.core] for block in blocks]
    masses = [sum(law) for law in laws]
    must(min(masses) > 0, "The states of a block must be possible", masses)
    whole = math.prod(masses)
    places = list(product(*(range(size) for size in shape)))
    explained = [0] * count
    for b, mass in enumerate(masses):
        sums = [0] * shape[b]
        for place, number in zip(places, numbers, strict=True):
            sums[place[b]] += number * math.prod(laws[k][place[k]] for k in range(len(laws)) if k != b)
        explained = [old + sums[place[b]] * mass for old, place in zip(explained, places, strict=True)]
        if b == 0:  # the mean of all, which every block explains
            common = sum(p * total for p, total in zip(laws[0], sums, strict=True))
    found = [number * whole - part + (len(laws) - 1) * common for number, part in zip(numbers, explained, strict=True)]
    impossible = [any(laws[b][k] == 0 for b, k in enumerate(place)) for place in places]
    return [0 if never else pull for never, pull in zip(impossible, found, strict=True)], whole << 20


def _least(blocks: Sequence[Block], state: Sequence[int], outputs: range, pull: int, unit: int, power: int) -> int:
    """The term of a state, in units of `1 / (unit 2^(BITS (blocks + 1)))`."""
    chances = [block.law[x] for block, x in zip(blocks, state, strict=True)]
    t = sum(block.values[x] for block, x in zip(blocks, state, strict=True))
    taken = [0] * len(outputs)
    for b, block in enumerate(blocks):
        low = math.prod(chances[:b] + chances[b + 1 :])
        high = math.prod(chance + 1 for chance in chances[:b] + chances[b + 1 :])
        for rule, prices in zip(block.rules, block.prices, strict=True):
            a = rule[state[b]]
            a *= low if a > 0 else high
            if a:
                taken = [old + a * price for old, price in zip(taken, prices, strict=True)]
    cost = math.prod(chances) << BITS

    def alone(s: int) -> int:
        far = abs(s - t)
        return cost * ((far if power == 1 else far * far) * unit + pull * s)

    centre = t if power == 1 else math.floor(t - Fraction(pull, 2 * unit) + Fraction(1, 2))
    best = min(alone(min(centre, outputs[0] - 1)), alone(max(centre, outputs[-1] + 1)))
    return min(best, *(alone(s) + more * unit for s, more in zip(outputs, taken, strict=True)))


def _elsewhere(blocks: Sequence[Block]) -> Fraction:
    """What states outside the cores take off at most."""
    rare = [(1 << BITS) - sum(block.law[x] for x in block.core) for block in blocks]
    total = 0
    for b, block in enumerate(blocks):
        for rule, prices in zip(block.rules, block.prices, strict=True):
            negative = [max(0, -a) for a in rule]
            within = sum(negative[x] for x in block.core)
            total += max(prices) * (((sum(negative) - within) << BITS) + within * (sum(rare) - rare[b]))
    return Fraction(total, 1 << 3 * BITS)
