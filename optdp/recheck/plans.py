"""The problem of several entities, and what is recomputed of their plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from .claims import demand
from .fields import check_epsilons, exact_number, list_of, one_of, table_with, whole_number
from .priors import Prior, read_prior
from .reading import canonical
from .table import Table
from .verdict import must


@dataclass(frozen=True)
class Plan:
    """The problem of several entities, and a table for each."""

    tables: Sequence[Table]
    worlds: Sequence[Sequence[Prior]]
    names: Sequence[Sequence[bytes]]
    """For each world and party what tells its prior from another."""
    epsilon: Fraction
    fallback: Fraction | None
    honest: int
    f: Sequence[int]

    @cached_property
    def sensitivity(self) -> int:
        """How far one person can move the sum."""
        return max(abs(f) * prior.largest for f, prior in zip(self.f, self.worlds[0], strict=True))

    @cached_property
    def steps(self) -> list[Fraction]:
        """For each party how many steps of one of its people move the sum as far as anybody can."""
        return [Fraction(self.sensitivity, abs(f)) for f in self.f]


@dataclass(frozen=True)
class Figures:
    """What is recomputed of a plan; quotients are those of one step."""

    quotients: Sequence[Fraction | None]
    ordinary: Sequence[Fraction | None]
    own: Sequence[Fraction]
    mae: Fraction
    mse: Fraction


def read_plan(problem: Any, tables: Sequence[Table]) -> Plan:
    spec = table_with(
        problem, "problem", "kind epsilon parties",
        "method honest objective fallback_epsilon f divisor contraction also title source notes expect",
    )  # fmt: skip
    one_of(spec["kind"], "kind", "multi-lte")
    epsilon, fallback = check_epsilons(spec)
    method = one_of(spec.get("method", "joint"), "method", "joint divisible geometric")
    one_of(spec.get("objective", "mae"), "objective", "mae mse")
    one_of(spec.get("contraction", "optimal"), "contraction", "optimal scaled shifts none algorithm-5")
    divisor = exact_number(spec.get("divisor", 1), "divisor")
    must(Fraction(1, 10**12) <= divisor <= 10**12, "divisor must lie between 1e-12 and 1e12", spec.get("divisor"))
    count = whole_number(len(list_of(spec["parties"], "parties")), "the number of parties", 2, 1000)
    honest = whole_number(spec.get("honest", count), "honest", 1, count)
    f = [whole_number(factor, "f", -1000, 1000) for factor in list_of(spec.get("f", [1] * count), "f")]
    must(len(f) == count and 0 not in f, "f must be one coefficient for each party, not 0", f)
    lists = [spec["parties"]]
    lists += [
        list_of(table_with(world, "a world", "parties")["parties"], "parties")
        for world in list_of(spec.get("also", []), "also")
    ]
    must(method == "joint" or (fallback is None and len(lists) == 1), "also and fallback_epsilon are for joint", method)
    must(all(len(world) == count for world in lists), "Every world must have every party", len(lists))
    must(len(tables) == count, "A plan must have a table for each party", len(tables))
    known: dict[bytes, Prior] = {}
    names, units = [], set()
    for world in lists:
        for party in world:
            name = canonical(party)
            if name not in known:
                known[name] = read_prior(party, "unit")
                unit = party.get("unit", "")
                must(isinstance(unit, str), "unit must be text", unit)
                units.add(unit)
        names.append([canonical(party) for party in world])
    must(len(units) == 1, "All parties must count in one unit", sorted(units))
    worlds = [[known[name] for name in world] for world in names]
    for world in worlds:
        alike = all((a.last, a.largest) == (b.last, b.largest) for a, b in zip(world, worlds[0], strict=True))
        must(alike, "Parties must have the same inputs and contributions in every world", len(worlds))
    for table, prior in zip(tables, worlds[0], strict=True):
        inputs = [table.first, table.final]
        must(table.first >= 0 and table.final <= prior.last, f"Rows must be for inputs 0..{prior.last}", inputs)
        whole = inputs == [0, prior.last]
        must(table.outside != "error" or whole, f"Every input 0..{prior.last} must have a row", inputs)
    return Plan(tables, worlds, names, epsilon, fallback, honest, f)


def demand_privacy(plan: Plan, quotients: Sequence[Fraction | None]) -> None:
    for i, ratio in enumerate(quotients):
        demand(f"epsilon of the people of party {i}", ratio, plan.epsilon, plan.steps[i])
