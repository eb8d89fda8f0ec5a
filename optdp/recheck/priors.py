"""Priors: from what a problem says about a population to the laws of its sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from .fields import exact_number, list_of, one_of, table_with, whole_number
from .laws import (
    Law,
    Wide,
    binomial,
    common_unit,
    convolved,
    divided,
    exact_law,
    integer_law,
    multiplied,
    powered,
    widened,
)
from .verdict import MOST_MEMORY, must, spend

WIDE = 60_000_000
"""From so many bits of a law on, its values are enclosed and not written out."""
Crowd = Mapping[tuple[Fraction, ...], int]
"""How many people follow each law."""


@dataclass(frozen=True)
class Prior:
    """Who is counted: the law of the sum, and for each kind of person the law of the sum given each contribution."""

    last: int
    sizes: Sequence[int]
    """How many contributions each kind of person can make, from 0 on."""
    independent: bool
    alone: bool
    """Whether the sum is one person's contribution and nothing else."""
    bits: int
    """Of the denominator of the law of the sum."""
    build: Callable[[], tuple[Law, Sequence[Sequence[Law]]]]
    """Writes out the law of the sum, and for each kind of person that given each contribution."""
    crowd: tuple[int, int, int, int] | None = None
    """If all are alike, and contribute 0 or 1: how many, the weights of 0 and 1, and what is added to the sum."""
    laws: Crowd = field(default_factory=dict)
    """The uncertain people, if they are independent and their laws are known."""

    @property
    def largest(self) -> int:
        return max(self.sizes) - 1

    @cached_property
    def _written(self) -> tuple[Law, Sequence[Sequence[Law]]]:
        return self.build()

    @property
    def total(self) -> Law:
        return self._written[0]

    @property
    def people(self) -> Sequence[Sequence[Law]]:
        return self._written[1]

    @property
    def wide(self) -> bool:
        return self.independent and (self.last + 1) * self.bits > WIDE

    def wide_total(self, kept: range | None) -> Wide:
        """The law of the sum in enclosures; all of it, or `kept` and what matters at all."""
        return widened(self.total) if self.crowd is None else self._binomial(0, kept)

    def wide_people(self, kept: range | None) -> Sequence[Sequence[Wide]]:
        if self.crowd is None:
            return [[widened(law) for law in laws] for laws in self.people]
        others = self._binomial(1, kept)
        return [[others, others.shifted(1)]]

    def _binomial(self, less: int, kept: range | None) -> Wide:
        """The sum of all but `less` people."""
        assert self.crowd is not None
        n, f0, f1, shift = self.crowd
        near = None if kept is None else range(kept.start - shift - less, kept.stop - shift)
        return binomial(n - less, f0, f1, near).shifted(shift)


def read_law(values: Any, name: str, least: int = 2) -> tuple[Fraction, ...]:
    """Probabilities of `0, 1, ..`, which sum to exactly one."""
    law = tuple(exact_number(value, name) for value in list_of(values, name, least))
    must(min(law) >= 0, f"{name} must not be negative", values)
    unit = common_unit(law, name)
    must(sum(int(value * unit) for value in law) == unit, f"{name} must sum to exactly 1", values)
    return law


def read_prior(spec: Any, unit: str = "") -> Prior:
    """The population that a problem states; `unit` if it may also say what it counts."""
    known = "binomial iid independent counts others conditionals"
    kind = one_of(spec.get("kind") if isinstance(spec, dict) else spec, "kind of a population", known)
    name, more = f"{kind} population", f"conservative {unit}"
    if kind == "others":
        spec = table_with(spec, name, "kind others", f"contributions {unit}")
        return _given_others(read_law(spec["others"], "others", 1), spec.get("contributions", 1))
    if kind == "conditionals":
        return _conditionals(table_with(spec, name, "kind people total", unit))
    crowd: Crowd
    if kind == "binomial":
        spec = table_with(spec, name, "kind n p", more)
        p = exact_number(spec["p"], "p")
        must(0 <= p <= 1, "p must lie in [0, 1]", spec["p"])
        crowd = {(1 - p, p): whole_number(spec["n"], "n", 1, 10**9)}
    elif kind == "iid":
        spec = table_with(spec, name, "kind n pmf", more)
        crowd = {read_law(spec["pmf"], "pmf"): whole_number(spec["n"], "n", 1, 10**9)}
    elif kind == "counts":
        spec = table_with(spec, name, "kind counts", f"n smoothing {more}")
        crowd = _counted(spec)
    else:
        spec = table_with(spec, name, "kind people", more)
        crowd = _listed(spec["people"])
    return independent(crowd, exact_number(spec["conservative"], "conservative") if "conservative" in spec else None)


def _conditionals(spec: Mapping[str, Any]) -> Prior:
    """The laws of the sum given each contribution, as they are stated: people need not be independent."""
    total = integer_law(read_law(spec["total"], "total"))
    people = []
    for rows in list_of(spec["people"], "people", 1):
        people.append([integer_law(read_law(row, "people")) for row in list_of(rows, "people", 2)])
        right = all(len(law.below) == len(total.below) for law in people[-1])
        must(right, "Laws must have one length", "conditionals population")
    bits, sizes = total.unit.bit_length(), [len(laws) for laws in people]
    return Prior(len(total.below) - 1, sizes, False, False, bits, lambda: (total, people))


def _counted(spec: Mapping[str, Any]) -> Crowd:
    """People who follow the frequencies of a survey, smoothed."""
    counts = [whole_number(count, "counts", 0, 10**300) for count in list_of(spec["counts"], "counts", 2)]
    added = exact_number(spec.get("smoothing", 1), "smoothing")
    total = sum(counts) + added * len(counts)
    must(added >= 0 and total > 0, "counts and smoothing must be at least 0, and not all 0", counts)
    spend(len(counts), total.denominator.bit_length() + 1000)
    n = whole_number(spec.get("n", sum(counts)), "n", 1, 10**9)
    return {tuple((count + added) / total for count in counts): n}


def _listed(people: Any) -> Crowd:
    crowd: dict[tuple[Fraction, ...], int] = {}
    for group in list_of(people, "people", 1):
        group = table_with(group, "a group of people", "pmf", "count")
        law = read_law(group["pmf"], "pmf")
        crowd[law] = crowd.get(law, 0) + whole_number(group.get("count", 1), "count", 1, 10**6)
    must(sum(crowd.values()) <= 10**6, "people must be at most 1,000,000", sum(crowd.values()))
    return crowd


def _given_others(others: tuple[Fraction, ...], contributions: Any) -> Prior:
    """One kind of person, and the law of everybody else's sum."""
    if isinstance(contributions, list):
        own = read_law(contributions, "contributions")
    else:
        largest = whole_number(contributions, "contributions", 1, 10_000)
        own = (Fraction(1, largest + 1),) * (largest + 1)
    must(len(own) * len(others) <= 10**6, "others and contributions may have 1,000,000 combinations", len(own))
    rest = integer_law(others)
    secrets = [rest.shifted(w) for w in range(len(own))]
    total = convolved(rest, integer_law(own))
    last, bits = len(others) + len(own) - 2, total.unit.bit_length()
    return Prior(last, [len(own)], True, len(others) == 1, bits, lambda: (total, [secrets]))


def independent(crowd: Crowd, share: Fraction | None) -> Prior:
    """Independent people: how many follow each law. With a `share` only so many of each are uncertain (at least one);
    the others contribute their mean, rounded to a whole number for all of them together."""
    last = sum((len(law) - 1) * count for law, count in crowd.items())
    known = Fraction(0)
    if share is not None:
        must(0 < share <= 1, "conservative must lie in (0, 1]", str(share)[:40])
        kept = {law: max(1, math.ceil(share * count)) for law, count in crowd.items()}
        known += sum(w * p * (crowd[law] - kept[law]) for law in crowd for w, p in enumerate(law))
        crowd = kept
    units = {law: common_unit(law, "a law") for law in crowd}
    bits = sum(count * units[law].bit_length() for law, count in crowd.items())
    alike = None
    if len(crowd) == 1:
        (law, count), unit = next(iter(crowd.items())), next(iter(units.values()))
        if len(law) == 2 and 0 < law[1] < 1:
            alike = count, int(law[0] * unit), int(law[1] * unit), round(known)

    def build() -> tuple[Law, Sequence[Sequence[Law]]]:
        memory = (1 + last) * bits * (1 + len(crowd))
        must(memory <= MOST_MEMORY, f"Priors are written out in at most {MOST_MEMORY} bits; use optdp verify", memory)
        spend((1 + last) * (1 + len(crowd)), 20 * bits)
        return _written_out(crowd, units, round(known))

    return Prior(last, [len(law) for law in crowd], True, sum(crowd.values()) == 1, bits, build, alike, crowd)


def _written_out(
    crowd: Crowd, units: Mapping[tuple[Fraction, ...], int], shift: int
) -> tuple[Law, Sequence[Sequence[Law]]]:
    """The law of the sum, and for each kind of person those of the sum given a contribution."""
    product, unit, laws = [1], 1, []
    for law, count in crowd.items():
        weights, zeros = list(integer_law(law).below), 0
        while weights[zeros] == 0:  # everybody contributes at least so much
            zeros += 1
        laws.append((law, weights[zeros:], zeros))
        shift += zeros * count
        product, unit = multiplied(product, powered(weights[zeros:], count)), unit * units[law] ** count
    people = []
    for law, weights, zeros in laws:
        others = exact_law(divided(product, weights), unit // units[law])
        people.append([others.shifted(shift - zeros + w) for w in range(len(law))])
    return exact_law(product, unit, shift), people
