"""A second checker, written apart from optdp's: plain fractions, no balls, no numpy, straight from the artifact's text.

It reads the JSON, builds `Pr[s|x]` as rationals by the meaning that the format gives them, builds the priors by
enumeration, and decides every inequality `Pr[s|w] <= e^eps Pr[s|w']` with a rational lower bound of `e^eps`.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

Law = list[Fraction]


def exp_below(x: Fraction, terms: int = 60) -> Fraction:
    """A rational just below `e^x` for `x >= 0`: a truncated series of a small argument, squared back up."""
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    small = x / 2**halvings
    total, term = Fraction(1), Fraction(1)
    for k in range(1, terms):
        term = term * small / k
        total += term
    value = Fraction(int(total * 2**400), 2**400)
    for _ in range(halvings):
        value = Fraction(int(value * value * 2**400), 2**400)
    return value


def convolve(a: Law, b: Law) -> Law:
    out = [Fraction(0)] * (len(a) + len(b) - 1)
    for (i, x), (j, y) in itertools.product(enumerate(a), enumerate(b)):
        out[i + j] += x * y
    return out


def people(spec: dict[str, Any]) -> list[Law]:
    """The law of every single person."""
    kind = spec["kind"]
    assert "conservative" not in spec
    if kind == "binomial":
        p = Fraction(spec["p"])
        return [[1 - p, p]] * spec["n"]
    if kind == "iid":
        return [[Fraction(v) for v in spec["pmf"]]] * spec["n"]
    if kind == "independent":
        return [[Fraction(v) for v in group["pmf"]] for group in spec["people"] for _ in range(group["count"])]
    if kind == "counts":
        added = Fraction(spec["smoothing"])
        total = sum(spec["counts"]) + added * len(spec["counts"])
        return [[(count + added) / total for count in spec["counts"]]] * spec["n"]
    raise AssertionError(kind)


def conditionals(spec: dict[str, Any]) -> tuple[list[list[Law]], Law]:
    """For each distinct person the law of the sum given each contribution; and the law of the sum."""
    if spec["kind"] == "others":
        others, own = [Fraction(v) for v in spec["others"]], [Fraction(v) for v in spec["contributions"]]
        shifts = [[Fraction(0)] * w + others + [Fraction(0)] * (len(own) - 1 - w) for w in range(len(own))]
        return [shifts], convolve(others, own)
    crowd = people(spec)
    found = []
    for law in {tuple(law) for law in crowd}:
        rest = list(crowd)
        rest.remove(list(law))
        others = [Fraction(1)]
        for other in rest:
            others = convolve(others, other)
        d = len(law) - 1
        found.append([[Fraction(0)] * w + others + [Fraction(0)] * (d - w) for w in range(d + 1)])
    total = [Fraction(1)]
    for law in crowd:
        total = convolve(total, law)
    return found, total


class Checked:
    """The exact truth about one artifact."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text())
        self.data, self.problem = data, data["problem"]
        self.denominator = int(data["denominator"])
        self.first, self.last = data["inputs"]
        self.low, self.high = data["outputs"]
        self.rows = [dict(row) for row in data["weights"]]
        tail = data["tail"]
        self.q = Fraction(int(tail["q"][0]), int(tail["q"][1])) if tail else None
        specs = self.problem["population"]
        self.specs = specs if isinstance(specs, list) else [specs]
        self.epsilon = Fraction(self.problem["epsilon"])
        for row in self.rows:
            assert all(isinstance(w, int) and w > 0 for w in row.values())
            assert sum(row.values()) == self.denominator

    def inside(self, x: int) -> Fraction:
        if self.q is None:
            return Fraction(1)
        q = self.q
        if self.low <= x <= self.high:
            return 1 - (q ** (self.high - x + 1) + q ** (x - self.low + 1)) / (1 + q)
        return sum((self.geometric(x, s) for s in range(self.low, self.high + 1)), Fraction(0))

    def geometric(self, x: int, s: int) -> Fraction:
        assert self.q is not None
        return (1 - self.q) / (1 + self.q) * self.q ** abs(x - s)

    def table(self, size: int) -> list[dict[int, Fraction]]:
        """`Pr[s|x]` for `x` in `0..size` and `s` in the table's outputs."""
        rows = []
        for x in range(size + 1):
            if self.first <= x <= self.last:
                c = self.inside(x)
                rows.append({s: c * w / self.denominator for s, w in self.rows[x - self.first].items()})
            elif self.data["outside"] == "geometric":
                rows.append({s: self.geometric(x, s) for s in range(self.low, self.high + 1)})
            else:
                assert self.data["outside"] == "clamp"
                edge = self.rows[0 if x < self.first else -1]
                rows.append({s: self.inside(x) * w / self.denominator for s, w in edge.items()})
        return rows

    def laws(self) -> list[list[Law]]:
        return [person for spec in self.specs for person in conditionals(spec)[0]]

    def private(self, epsilon: Fraction | None = None) -> bool:
        """Whether every person, every pair of adjacent secrets, and every output keep `epsilon`."""
        laws = self.laws()
        largest = max(len(person) - 1 for person in laws)
        target = self.epsilon if epsilon is None else epsilon
        unit = self.problem["adjacency"] == "unit"
        bound = exp_below(target / largest if unit else target)
        size = max(len(law) for person in laws for law in person) - 1
        table = self.table(size)
        if self.q is not None:  # all outputs outside the table: quotients are powers of q
            reach = 1 if unit else largest
            if 1 / self.q**reach > bound:
                return False
        for person in laws:
            columns: list[dict[int, Fraction]] = []
            for law in person:
                column: dict[int, Fraction] = {}
                for x, chance in enumerate(law):
                    if chance:
                        for s, value in table[x].items():
                            column[s] = column.get(s, Fraction(0)) + chance * value
                columns.append(column)
            for i, j in itertools.permutations(range(len(columns)), 2):
                if unit and abs(i - j) != 1:
                    continue
                for s in columns[i].keys() | columns[j].keys():
                    if columns[i].get(s, Fraction(0)) > bound * columns[j].get(s, Fraction(0)):
                        return False
        return True

    def ordinary(self, epsilon: Fraction) -> bool:
        """Whether neighbouring inputs keep `epsilon` on every output, with no prior."""
        laws = self.laws()
        largest = max(len(person) - 1 for person in laws)
        unit = self.problem["adjacency"] == "unit"
        bound, reach = exp_below(epsilon / largest if unit else epsilon), 1 if unit else largest
        size = max(len(law) for person in laws for law in person) - 1
        table = self.table(size)
        if self.q is not None and 1 / self.q**reach > bound:
            return False
        for x in range(size + 1):
            for y in range(max(0, x - reach), min(size, x + reach) + 1):
                for s, value in table[x].items():
                    if value > bound * table[y].get(s, Fraction(0)):
                        return False
        return True

    def errors(self, power: int = 1) -> list[Fraction]:
        """The mean of `|s-x|^power` for each input, tails included (the far end of the tails by closed form)."""
        size = max(len(law) for person in self.laws() for law in person) - 1
        errors = []
        for x, row in enumerate(self.table(size)):
            error = sum((value * abs(s - x) ** power for s, value in row.items()), Fraction(0))
            if self.q is not None:
                q = self.q
                whole = 2 * q / (1 - q * q) if power == 1 else 2 * q / (1 - q) ** 2
                error += whole - sum(
                    (self.geometric(x, s) * abs(s - x) ** power for s in range(self.low, self.high + 1)), Fraction(0)
                )
            errors.append(error)
        return errors

    def mae(self, power: int = 1) -> Fraction:
        """Under the first prior."""
        total = conditionals(self.specs[0])[1]
        return sum((p * e for p, e in zip(total, self.errors(power), strict=False)), Fraction(0))
