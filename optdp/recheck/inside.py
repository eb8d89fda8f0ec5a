"""A plan whose release is drawn inside a secure computation: one table of the total, the same in every party's file.

It is the table of one entity that holds everybody's data. Whoever sees the release alone is that entity's observer. A
coalition of `m - honest` parties also knows what its own people contribute. Only their sum `x_C` counts, which is
anything from 0 to the largest: they are known people, and the vertices are those of `observers`, with the people of a
coalition in place of any `t` people. What a smaller coalition sees is a mixture of these, over the inputs of parties
that join it. Coalitions with equally many people of each law have the same vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .boxes import observed_quotient
from .enclosures import worst_of
from .entity import Entity, Table
from .fields import exact_number, list_of, table_with
from .observers import Chances, Observer, insider, read_observers
from .priors import Prior, independent
from .single import Problem
from .verdict import must, spend

MOST_TOTAL = 5000
MOST_COALITIONS = 5000


def read_whole(
    spec: Mapping[str, Any], worlds: Sequence[Sequence[Prior]], epsilon: Fraction, fallback: Fraction | None,
    honest: int, power: int,
) -> Problem:  # fmt: skip
    """The problem of one entity with everybody's data."""
    count = len(spec["parties"])
    right = count >= 3 and 2 * (count - honest) < count
    must(right, "To draw inside there must be three parties or more, most of them honest", [count, honest])
    must(set(spec.get("f") or [1]) == {1}, "To draw inside there must be no coefficients", spec.get("f"))
    stated = [party for world in [spec, *spec.get("also", [])] for party in world["parties"]]
    plain = all(party.get("conservative") is None for party in stated)
    plain = plain and all(prior.laws for world in worlds for prior in world)
    must(plain, "To draw inside people must be independent, of stated laws, and not conservative", count)
    told = [_watching(spec if party.get("observer") is None else party) for party in spec["parties"]]
    must(all(_plain(one) == _plain(told[0]) for one in told), "To draw inside there must be one observer", told)
    priors = [_merged(world) for world in worlds]
    must(priors[0].last <= MOST_TOTAL, f"To draw inside totals must be at most {MOST_TOTAL}", priors[0].last)
    watching = read_observers(told[0], {}, priors[0], epsilon)
    if honest < count:
        watching = [insider(told[0], priors[0], epsilon, _coalitions(worlds[0], priors[0], count - honest))]
    must(len(priors) == 1 or not watching, "With an observer, or coalitions, there must be one world", len(priors))
    weights = [Fraction(1)] + [Fraction(0)] * (len(priors) - 1)
    return Problem(priors, weights, epsilon, fallback, False, power, False, "lp", False, watching, False)


def _watching(named: Mapping[str, Any]) -> dict[str, Any]:
    """The observer that is named, of whom nothing need be said."""
    stated = named.get("observer")
    found = table_with({} if stated is None else stated, "observer", "", "between margin known epsilon")
    must("epsilon" not in found, "An observer of a plan has no epsilon", stated)
    return found


def _plain(stated: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """What is said of an observer, in one spelling."""

    def law(end: Any) -> list[Fraction]:
        if isinstance(end, list):
            return [exact_number(chance, "between") for chance in end]
        p = exact_number(end, "between")
        return [1 - p, p]

    between = [law(end) for end in list_of(stated["between"], "between")] if "between" in stated else None
    margin = exact_number(stated["margin"], "margin") if "margin" in stated else None
    return between, margin, stated.get("known", 0)


def _merged(world: Sequence[Prior]) -> Prior:
    crowd: dict[Chances, int] = {}
    for prior in world:
        for law, count in prior.laws.items():
            crowd[law] = crowd.get(law, 0) + count
    return independent(crowd, None)


def _coalitions(world: Sequence[Prior], whole: Prior, size: int) -> list[tuple[int, ...]]:
    """How many people of each law every coalition of so many parties has, in increasing order."""
    held = [tuple(prior.laws.get(law, 0) for law in whole.laws) for prior in world]
    kinds = list(dict.fromkeys(held))
    found = set()
    for chosen in _chosen([held.count(kind) for kind in kinds], size):
        found.add(tuple(sum(k * kind[i] for k, kind in zip(chosen, kinds, strict=True)) for i in range(len(held[0]))))
        must(len(found) <= MOST_COALITIONS, f"There may be {MOST_COALITIONS} coalitions that differ", len(found))
    return sorted(found)


def _chosen(counts: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Every way to take so many parties, of each kind at most so many."""
    spend(1, 1000)
    if not counts:
        yield ()
        return
    for k in range(max(0, size - sum(counts[1:])), min(counts[0], size) + 1):
        for rest in _chosen(counts[1:], size - k):
            yield (k, *rest)


def check_fit(whole: Problem, tables: Sequence[Table]) -> None:
    """There must be one table, of the total."""
    table = tables[0]
    must(all(other.bare == table.bare for other in tables), "All parties must have the same table", len(tables))
    inputs, outputs = [table.first, table.final], [table.low, table.high]
    right = table.first >= 0 and table.final <= whole.last
    must(right and table.low >= 0 and table.high <= whole.last, f"A table must be of 0..{whole.last}", inputs + outputs)
    right = table.outside != "error" or inputs == [0, whole.last]
    must(right, f"Every total 0..{whole.last} must have a row", inputs)


def quotient(whole: Problem, entity: Entity) -> Fraction | None:
    """The largest quotient of a step that the release shows to anybody who is watching."""
    observer: Observer | None = next(iter(whole.observers), None)
    if observer is None or observer.exact:
        return worst_of([entity.quotients(prior, False) for prior in whole.priors])
    return entity.ordinary(1) if observer.known is None else observed_quotient(entity, observer, False)
