"""Everybody in one population, and the coalitions of parties that are watching it: the problem of `method = "inside"`.

The parties' inputs are added inside a secure computation, and the release is drawn there from one table of the total.
So a plan is the table of one entity that holds everybody's data, and whoever sees the release alone is the observer of
that entity. A coalition `C` of `m - honest` parties knows more: what its own people contribute, `x_C`. For a person of
another party the sum of all others is then

    others = x_C + (the other people of the parties outside C),         x_C anything in 0..(the largest input of C),

a law that is shifted by something known: the people of `C` are known people (`people.observer`). The table must be
private in all of these worlds, for every coalition. Smaller coalitions know less: theirs are mixtures over the input of
the missing party, which does not depend on the person. Somebody inside `C` has nothing to hide from it, and is
protected from the coalitions that do not have his party. Proof: docs/mathematics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from optdp.errors import ProblemError
from optdp.people.observer import Insider, Observer
from optdp.people.population import Distribution, Population
from optdp.single.problem import SingleLTE

if TYPE_CHECKING:
    from optdp.plan.problem import MultiLTE

MOST_COALITIONS = 5000
"""The most coalitions that differ in the kinds of their people."""
MOST_TOTAL = 5000
"""The largest total: the parties hold a shared number for each one that is possible."""


def refusal(problem: MultiLTE) -> str:
    """Why nothing can be drawn inside for this problem; empty if it can."""
    count, honest = len(problem.parties), problem.honest
    if count < 3 or 2 * (count - honest) >= count:
        return (
            "needs three parties or more, and more than half of them honest: a secure computation that multiplies "
            f"hides nothing from half of its parties. Found {count} parties, {honest} of them honest"
        )
    if set(problem.f) != {1}:
        return f"is for a plain sum, without coefficients f. Found f = {list(problem.f)}"
    every = [population for world in problem.worlds for population in world]
    if not all(population.laws and "conservative" not in population.spec for population in every):
        return "needs independent people whose laws are given (binomial, iid, independent, counts). Found others"
    if len(set(problem.observers)) > 1:
        return "has one observer, who is watching everybody. Found another one for some party. Name one for all"
    if problem.also and (problem.watched or honest < count):
        return "has one world if there is an observer, or a party that may not be honest. Found also"
    total = sum(population.last for population in problem.parties)
    if total > MOST_TOTAL:
        return f"is for totals up to {MOST_TOTAL:,}. Found {total:,}. Use coarser contributions, or fewer people"
    if coalitions_of(problem) is None:
        return f"may have {MOST_COALITIONS:,} coalitions that differ. Found more. Use parties that are alike"
    return ""


def merged(problem: MultiLTE) -> SingleLTE:
    """The problem of one entity that holds the data of all parties, watched by every coalition."""
    own = problem.observers[0]
    observer: Observer | None = own if problem.watched else None
    if problem.honest < len(problem.parties) and own.known != "all":
        observer = Insider(own.between, own.margin, own.known, own.epsilon, groups=coalitions_of(problem) or ())
    populations = [union(world) for world in problem.worlds]
    weights = [1] + [0] * (len(populations) - 1)
    return SingleLTE(
        populations, problem.epsilon, problem.fallback_epsilon, tail="none", never_worse=False,
        objective=problem.objective, weights=weights, observer=observer,
    )  # fmt: skip


def union(parties: Sequence[Population]) -> Population:
    """The people of all parties."""
    counts: Counter[Distribution] = Counter()
    for party in parties:
        for law, count in party.laws:
            counts[law] += count
    (first, count), *more = counts.items()
    if not more and len(first) == 2:
        return Population.binomial(count, first[1])
    return Population.independent([law for law, count in counts.items() for _ in range(count)])


def coalitions_of(problem: MultiLTE) -> list[tuple[int, ...]] | None:
    """How many people of each law of `union` every coalition of `m - honest` parties has, those that are alike once;
    None if there are too many."""
    laws = list(dict.fromkeys(law for party in problem.parties for law, _ in party.laws))
    size = len(problem.parties) - problem.honest
    sums: list[set[tuple[int, ...]]] = [{(0,) * len(laws)}, *(set() for _ in range(size))]
    for party in problem.parties:
        held = dict(party.laws)
        own = [held.get(law, 0) for law in laws]
        for k in range(size, 0, -1):
            sums[k] |= {tuple(a + b for a, b in zip(group, own, strict=True)) for group in sums[k - 1]}
            if len(sums[k]) > MOST_COALITIONS:
                return None
    return sorted(sums[size])


def check(problem: MultiLTE) -> None:
    """Refuse at once what cannot be drawn inside."""
    if why := refusal(problem):
        raise ProblemError(f'method = "inside" {why}.')
    assert problem.merged is not None  # which refuses what cannot be looked at
