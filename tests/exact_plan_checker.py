"""A second checker of plans, written apart from optdp's: Python integers and fractions, no balls, no numpy, no optdp.

It reads `plan.json` and every `party-i.json` as the text that they are, builds every party's priors person by person
and every row of every table as integers over a common denominator, adds independent reports by exact multiplication of
polynomials, and looks at every quotient of every aggregate. What it finds are rational numbers; only the comparison
with `e^x` needs bounds, which are a series with its remainder.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals just below and just above `e^x`: the series of a small argument, squared back up."""
    if x < 0:
        below, above = exp_bounds(-x)
        return 1 / above, 1 / below
    halvings = max(0, math.ceil(x).bit_length() + 2)
    small, one = x / 2**halvings, 1 << 600
    total = term = Fraction(1)
    for k in range(1, 80):
        term = term * small / k
        total += term
    low, high = int(total * one), int((total + term) * one) + 1  # the rest of the series is less than its last term
    for _ in range(halvings):
        low, high = low * low // one, high * high // one + 1
    return Fraction(low, one), Fraction(high, one)


@dataclass(frozen=True)
class Law:
    """A law on consecutive integers from `low`: weights over one denominator, which need not be the least."""

    weights: tuple[int, ...]
    denominator: int
    low: int = 0

    @staticmethod
    def of(values: Sequence[Fraction], low: int = 0) -> Law:
        denominator = math.lcm(*(value.denominator for value in values))
        assert sum(values) == 1
        assert min(values) >= 0
        return Law(tuple(int(value * denominator) for value in values), denominator, low)

    def plus(self, other: Law) -> Law:
        """The law of the sum: the polynomials are multiplied as two long integers (Kronecker's trick)."""
        if POINT in (self, other):
            return other if self == POINT else self
        width = (sum(self.weights) * sum(other.weights)).bit_length() // 8 + 1
        product = _pack(self.weights, width) * _pack(other.weights, width)
        size = len(self.weights) + len(other.weights) - 1
        data = product.to_bytes(size * width, "little")
        weights = tuple(int.from_bytes(data[k * width : (k + 1) * width], "little") for k in range(size))
        return Law(weights, self.denominator * other.denominator, self.low + other.low)

    def times(self, count: int) -> Law:
        """The law of the sum of `count` independent copies."""
        if len(self.weights) == 2:
            no, yes = self.weights
            weights = tuple(math.comb(count, k) * yes**k * no ** (count - k) for k in range(count + 1))
            return Law(weights, self.denominator**count, self.low * count)
        result, power = POINT, self
        while count:
            if count & 1:
                result = result.plus(power)
            power, count = power.plus(power), count >> 1
        return result

    def shifted(self, by: int) -> Law:
        return Law(self.weights, self.denominator, self.low + by)

    def at(self, value: int) -> int:
        place = value - self.low
        return self.weights[place] if 0 <= place < len(self.weights) else 0

    def mean(self, power: int) -> Fraction:
        """The mean of `|value|^power`."""
        total = sum(weight * abs(self.low + k) ** power for k, weight in enumerate(self.weights))
        return Fraction(total, self.denominator)


POINT = Law((1,), 1)


def _pack(weights: Iterable[int], width: int) -> int:
    return int.from_bytes(b"".join(weight.to_bytes(width, "little") for weight in weights), "little")


def total_law(laws: Iterable[Law]) -> Law:
    result = POINT
    for law in laws:
        result = result.plus(law)
    return result


def quotient(one: Law, other: Law) -> Fraction | None:
    """The largest quotient of two laws in either direction over all values; None if only one of them reaches one."""
    best = Fraction(1)
    for a, b in ((one, other), (other, one)):
        up, down = 0, 1  # the largest quotient so far, but for the denominators
        for value in range(min(a.low, b.low), max(a.low + len(a.weights), b.low + len(b.weights))):
            x, y = a.at(value), b.at(value)
            if x and not y:
                return None
            if x * down > up * y:
                up, down = x, y
        best = max(best, Fraction(up * b.denominator, down * a.denominator))
    return best


# ---------------------------------------------------------------------- priors


def people(spec: dict[str, Any]) -> list[tuple[list[Fraction], int]]:
    """The law of one person of each kind, and how many there are."""
    kind = spec["kind"]
    if kind == "binomial":
        p = Fraction(spec["p"])
        crowd = [([1 - p, p], spec["n"])]
    elif kind == "iid":
        crowd = [([Fraction(v) for v in spec["pmf"]], spec["n"])]
    elif kind == "counts":
        added = Fraction(spec["smoothing"])
        everybody = sum(spec["counts"]) + added * len(spec["counts"])
        crowd = [([(count + added) / everybody for count in spec["counts"]], spec["n"])]
    else:
        assert kind == "independent", kind
        crowd = [([Fraction(v) for v in group["pmf"]], group["count"]) for group in spec["people"]]
    return crowd


@dataclass(frozen=True)
class Prior:
    """One party in one world: the law of its input, and for each kind of person that law given each contribution."""

    total: Law
    secrets: list[list[Law]]
    last: int
    largest: int


def prior(spec: dict[str, Any]) -> Prior:
    if spec["kind"] == "others":
        rest = Law.of([Fraction(v) for v in spec["others"]])
        own = Law.of([Fraction(v) for v in spec["contributions"]])
        largest = len(own.weights) - 1
        given = [rest.shifted(w) for w in range(largest + 1)]
        return Prior(rest.plus(own), [given], len(rest.weights) - 1 + largest, largest)
    if spec["kind"] == "conditionals":
        crowds = [[Law.of([Fraction(v) for v in law]) for law in laws] for laws in spec["people"]]
        total = Law.of([Fraction(v) for v in spec["total"]])
        return Prior(total, crowds, len(total.weights) - 1, max(len(laws) for laws in crowds) - 1)
    crowd = people(spec)
    last = sum((len(law) - 1) * count for law, count in crowd)
    largest = max(len(law) for law, _ in crowd) - 1
    known = Fraction(0)
    if "conservative" in spec:
        share = Fraction(spec["conservative"])
        kept = [(law, max(1, math.ceil(share * count))) for law, count in crowd]
        for (law, count), (_, left) in zip(crowd, kept, strict=True):
            known += sum((w * value for w, value in enumerate(law)), Fraction(0)) * (count - left)
        crowd = kept
    secrets = []
    for i, (law, _) in enumerate(crowd):
        others = total_law(Law.of(other).times(count - (i == j)) for j, (other, count) in enumerate(crowd))
        secrets.append([others.shifted(round(known) + w) for w in range(len(law))])
    total = total_law(Law.of(law).times(count) for law, count in crowd)
    return Prior(total.shifted(round(known)), secrets, last, largest)


# ---------------------------------------------------------------------- tables


class Table:
    """One party's table, from its file: `row(x)` is the law of the report of input `x` as weights."""

    def __init__(self, data: dict[str, Any]) -> None:
        assert data["tail"] is None
        self.data = data
        self.denominator = int(data["denominator"])
        self.first, self.last = data["inputs"]
        self.low, self.high = data["outputs"]
        self.rows = [dict(row) for row in data["weights"]]
        assert len(self.rows) == self.last - self.first + 1
        for row in self.rows:
            assert all(type(s) is int and type(weight) is int and weight > 0 for s, weight in row.items())
            assert sum(row.values()) == self.denominator
            assert self.low <= min(row)
            assert max(row) <= self.high

    def row(self, x: int) -> dict[int, int]:
        if not self.first <= x <= self.last:
            assert self.data["outside"] == "clamp"
        return self.rows[min(max(x, self.first), self.last) - self.first]

    def report(self, inputs: Law, factor: int = 0) -> Law:
        """The law of the report `s`, or of `s - factor x`, where the input follows `inputs`."""
        found: dict[int, int] = {}
        for x, chance in enumerate(inputs.weights, start=inputs.low):
            if chance:
                for s, weight in self.row(x).items():
                    found[s - factor * x] = found.get(s - factor * x, 0) + chance * weight
        low, high = min(found), max(found)
        weights = tuple(found.get(s, 0) for s in range(low, high + 1))
        return Law(weights, inputs.denominator * self.denominator, low)

    def ordinary(self, last: int) -> Fraction | None:
        """The largest quotient of the rows of adjacent inputs `0..last`; None if it is infinite."""
        worst = Fraction(1)
        for x in range(last):
            one, other = self.row(x), self.row(x + 1)
            if one.keys() != other.keys():
                return None
            worst = max([worst, *(max(Fraction(one[s], other[s]), Fraction(other[s], one[s])) for s in one)])
        return worst


# ---------------------------------------------------------------------- plans


class CheckedPlan:
    """The exact truth about the plan in a folder."""

    def __init__(self, folder: Path) -> None:
        self.plan = json.loads((folder / "plan.json").read_text())
        self.problem = self.plan["problem"]
        specs = self.problem["parties"]
        files = [json.loads((folder / f"party-{i}.json").read_text()) for i in range(len(specs))]
        assert all(file["problem"] == self.problem for file in files)
        self.tables = [Table(file) for file in files]
        self.f: list[int] = self.problem.get("f", [1] * len(specs))
        self.epsilon = Fraction(self.problem["epsilon"])
        self.honest: int = self.problem["honest"]
        self.worlds = [[prior(spec) for spec in specs]]
        self.worlds += [[prior(spec) for spec in world["parties"]] for world in self.problem.get("also", [])]
        for world in self.worlds:
            for one, other in zip(world, self.worlds[0], strict=True):
                assert (one.last, one.largest) == (other.last, other.largest)
        reach = [abs(factor) * party.largest for factor, party in zip(self.f, self.worlds[0], strict=True)]
        self.sensitivity = max(reach)

    def quotients(self, worlds: Sequence[Sequence[Prior]] | None = None) -> list[Fraction | None]:
        """For each party the largest quotient of one step of one of its people, whoever else is honest."""
        worst: list[Fraction | None] = [Fraction(1)] * len(self.tables)
        for world in self.worlds if worlds is None else worlds:
            totals = [table.report(party.total) for table, party in zip(self.tables, world, strict=True)]
            for i, (table, party) in enumerate(zip(self.tables, world, strict=True)):
                given = [[table.report(law) for law in kind] for kind in party.secrets]
                for rest in itertools.combinations([j for j in range(len(totals)) if j != i], self.honest - 1):
                    around = total_law(totals[j] for j in rest)
                    for kind in given:
                        seen = [law.plus(around) for law in kind]
                        for one, other in itertools.pairwise(seen):
                            found, known = quotient(one, other), worst[i]
                            worst[i] = None if found is None or known is None else max(known, found)
        return worst

    def step(self, party: int, epsilon: Fraction | None = None) -> Fraction:
        """What one step of a person of `party` may give away."""
        return (self.epsilon if epsilon is None else epsilon) * abs(self.f[party]) / self.sensitivity

    def keeps(self, party: int, ratio: Fraction | None, epsilon: Fraction | None = None) -> bool:
        """Whether a quotient of `party` is proved to keep `epsilon`."""
        return ratio is not None and ratio <= exp_bounds(self.step(party, epsilon))[0]

    def exceeds(self, party: int, ratio: Fraction | None, epsilon: Fraction) -> bool:
        """Whether a quotient of `party` is proved to be above `epsilon`."""
        return ratio is None or ratio > exp_bounds(self.step(party, epsilon))[1]

    def private(self) -> bool:
        """Whether every person keeps the problem's epsilon."""
        return all(self.keeps(i, ratio) for i, ratio in enumerate(self.quotients()))

    def ordinary(self, party: int, epsilon: Fraction) -> bool:
        """Whether the table of `party` alone keeps `epsilon` for a whole contribution, with no prior."""
        about = self.worlds[0][party]
        ratio = self.tables[party].ordinary(about.last)
        return ratio is not None and ratio <= exp_bounds(epsilon / about.largest)[0]

    def errors(self) -> list[Law]:
        """For each party the law of `s - f x` in the first world."""
        parties = zip(self.tables, self.worlds[0], self.f, strict=True)
        return [table.report(party.total, factor) for table, party, factor in parties]

    def mean(self, power: int) -> Fraction:
        """The mean of the absolute error of the aggregate to a power."""
        return total_law(self.errors()).mean(power)

    def own_mae(self) -> list[Fraction]:
        return [law.mean(1) for law in self.errors()]
