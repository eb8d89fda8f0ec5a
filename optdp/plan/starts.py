"""Where the search for a joint plan begins, and how large a plan is.

A descent (`joint.py`) ends at a local optimum, so that several starts are tried:

- tables that are private alone, whatever the others do (`_from_alone`);
- the truth that is sometimes forgotten, and then anything is reported (`_mostly_true`);
- the truth that is rarely far away (`_jumping`): among many a sum is private as it is, but for sums so rare that their
  law falls faster than epsilon allows. There, `unit variance` away from the mean, a geometric tail has to take over.
  With a tiny probability a report is that far away, and farther with a geometric law.

With `never_worse` a start need not keep that: what it does not keep has a price (`block.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product as product_of

import numpy as np

from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.ordered import Array, exp, geometric, product, total
from optdp.plan.block import steepest
from optdp.plan.joint import FLOOR, MANY, NARROW, ROOM, SWEEPS, PlanDraft, Try
from optdp.plan.parties import Party, parties_of, spelled, width
from optdp.plan.problem import MultiLTE, each_once
from optdp.work import Progress, check, silent
from optdp.work.account import LONG_PRODUCTS, PRODUCTS, UNITS

TRIES = (
    (4.0, 0.6, ROOM),
    (4.0, 1.0, NARROW),
    (8.0, 0.3, ROOM),
    (2.0, 0.6, ROOM),
    (3.0, 0.6, ROOM),
    (8.0, 1.0, NARROW),
    (4.0, 0.3, NARROW),
    (3.0, 1.0, ROOM),
    (2.0, 1.0, ROOM),
    (4.0, 1.0, ROOM),
    (1.0, 0.3, NARROW),
)
"""How far outputs leave the range of the inputs, times epsilon for a unit; the pace of the first two sweeps; and the
slack of the first step."""
REACHES = (2.0, 4.0, 8.0, 12.0, 16.0, 24.0)
"""The same for parties that mostly report the truth."""
HALVINGS = 23
"""The truth is forgotten with a probability of at least 2^-HALVINGS, which is about the floor."""
JUMPS, TAIL, BEYOND = ((1.1, 1e-7), (1.2, 3e-8)), 10.0, 40.0
"""For parties that rarely report what is far away: how far, times epsilon for a unit times the variance of the sum, and
the probability of anything; how long a geometric tail is, times epsilon for a unit; and how far outputs may leave the
range of the inputs (`format.BEYOND`)."""
WIDEST = 5.0
"""Outputs leave the range of the inputs by at most so many standard deviations of the whole sum."""
LARGE, MANY_KINDS = 40_000, 4
"""With more entries in all tables, of more kinds of parties, only the first try is made, and less patiently."""
CELLS = 3_000_000
MOST_PRODUCTS = 600_000_000
"""The most products of a look at a whole plan, some seconds; with more each party designs its noise alone."""
SECONDS_PER_CELL = 3e-5
"""What an entry takes in a sweep."""
HOPELESS, MOST_SETS = 4.0, 1000
"""Many parties do not descend from a plan that is so many times worse than geometric noise; the most sets of honest
parties."""


def starts(
    problem: MultiLTE, alone: Callable[[float], Sequence[NoiseMatrix]], progress: Progress = silent
) -> Iterator[Try]:
    """Where to descend from."""
    most = None if problem.most_error is None else float(problem.most_error)
    for attempt in _starts(problem, alone, progress):
        yield replace(attempt, start=replace(attempt.start, most_error=most))


def _starts(problem: MultiLTE, alone: Callable[[float], Sequence[NoiseMatrix]], progress: Progress) -> Iterator[Try]:
    """Where to descend from: from tables that are private `alone`, with some room, and from the truth that is
    sometimes forgotten.

    Among many the truth needs hardly any noise: it is forgotten just so often that every aggregate is private. That
    start comes first where its error is below that of the tables that are private alone, and is the only one where
    that is far below. There may be no start that is worth a descent.
    """
    sets = math.comb(len(problem.parties), problem.honest)
    if sets > MOST_SETS:
        raise ProblemError(
            f"A joint plan hides people in every set of {problem.honest} parties; at most {MOST_SETS:,} sets are "
            f'looked at. Found {sets:,}. Use method = "divisible".'
        )
    unit = float(problem.epsilon) / problem.sensitivity
    spread = 1 + WIDEST * _deviation(parties_of(problem, [0] * len(problem.parties)))
    exponent = 1 if problem.objective == "mae" else 2

    def parties_for(reach: float) -> tuple[Party, ...]:
        margin = max(2, round(min(reach / unit, spread)))
        return tuple(parties_of(problem, [margin] * len(problem.parties)))

    parties = parties_for(TRIES[0][0])
    cells = sum(len(party.targets) * len(party.reports) for party in parties)
    check_cells(cells)
    large = cells > LARGE and len(set(map(id, parties))) > MANY_KINDS
    if large and (plan := _jumping(problem, progress)) is not None:
        yield Try(plan, (), NARROW, 1e-3)
        return
    first = _from_alone(parties, alone(ROOM), problem.honest)
    errors = {}
    for reach in REACHES:
        if _from_alone(parties_for(reach), alone(ROOM), problem.honest).products <= MOST_PRODUCTS:
            progress(f"the truth, forgotten as rarely as can be: outputs {reach / unit:.0f} beyond the inputs")
            plan = mostly_true(parties_for(reach), problem.honest)
            errors[plan.error(exponent)] = plan
    least, worst = min(errors, default=math.inf), first.error(exponent)
    if large:
        yield Try(errors[least] if least < worst else first, (1.0,) * 6, NARROW, 1e-3)
        return
    baseline = float(problem.baseline_mae if exponent == 1 else problem.baseline_mse)
    if min(least, worst) > HOPELESS * baseline and len(parties) > MANY and problem.fallback_epsilon is None:
        return
    if least < worst:
        yield Try(errors[least], (1.0,) * SWEEPS, ROOM, 1e-6)
    if least < worst / 4:
        return
    seen = set()
    bases = (False,) if problem.fallback_epsilon is None else (False, True)
    for (reach, pace, slack), base in product_of(TRIES, bases):
        parties = parties_for(reach)
        key = (parties[0].outputs, pace, slack, base)
        if key not in seen:
            seen.add(key)
            start = _from_alone(parties, alone(slack), problem.honest, base)
            yield Try(start, (pace, pace, *(1.0,) * SWEEPS), slack, 1e-6)


def _from_alone(
    parties: tuple[Party, ...], alone: Sequence[NoiseMatrix], honest: int, geometric: bool = False
) -> PlanDraft:
    """The plan of tables that are private alone, with a floor under every entry.

    With a fallback they are mixed with so much geometric noise that they keep it (`geometric`: with nothing else).
    Privacy alone is linear in the table, and kept by any mixture.
    """

    def table_of(i: int) -> Array:
        party, table = parties[i], parties[i].table(alone[i])
        if party.chain is not None:
            noise, limit = _geometric(party), party.chain * (1 - 1.2 * ROOM)
            low, high = 0, 0 if geometric else 4 * HALVINGS
            while low < high:
                share = _root(middle := (low + high + 1) // 2)
                mixed = (1 - FLOOR) * ((1 - share) * table + share * noise) + FLOOR / len(party.reports)
                low, high = (middle, high) if steepest(mixed) <= limit else (low, middle - 1)
            table = (1 - _root(low)) * table + _root(low) * noise
        table = (1 - FLOOR) * table + FLOOR / len(party.reports)
        return np.asarray(table / total(table, axis=1, keepdims=True))

    return PlanDraft(parties, tuple(each_once(zip(map(id, parties), map(id, alone), strict=True), table_of)), honest)


def _geometric(party: Party) -> Array:
    """The table of geometric noise, clamped to what can be true, that is private alone with some room."""
    first, last = int(party.targets.min()), int(party.targets.max())
    away = np.abs(np.subtract.outer(party.targets, np.arange(first, last + 1))).astype(np.int64)
    q = exp(-party.unit * (1 - 1.2 * ROOM))
    noise = geometric(q, last - first + 1)
    inside = (1 - q) / (1 + q) * noise[away]
    inside[:, 0], inside[:, -1] = noise[away[:, 0]] / (1 + q), noise[away[:, -1]] / (1 + q)
    table = np.zeros((len(party.targets), len(party.reports)))
    table[:, first - party.outputs[0] : last - party.outputs[0] + 1] = inside / total(inside, axis=1, keepdims=True)
    return table


def mostly_true(parties: tuple[Party, ...], honest: int) -> PlanDraft:
    """Everybody reports the truth, but forgets it and reports anything with the least probability that is private."""

    def plan(forgotten: float) -> PlanDraft:
        def table_of(i: int) -> Array:
            return (1 - forgotten) * _truth(parties[i]) + forgotten / len(parties[i].reports)

        return PlanDraft(parties, tuple(each_once(map(id, parties), table_of)), honest)

    low, high = 0, 4 * HALVINGS  # the probability is 2^-(k/4), and that of 1 is private
    while low < high:
        middle = (low + high + 1) // 2
        check()
        low, high = (middle, high) if plan(_root(middle)).excess <= 1 - ROOM else (low, middle - 1)
    return plan(_root(low))


def _jumping(problem: MultiLTE, progress: Progress) -> PlanDraft | None:
    """Everybody reports the truth, but for a tiny probability of a report that is far away; None if that is too large.

    Either side of the truth, from `JUMP` times `unit variance` on, the law of the report is geometric. Where that ends
    anything is reported with a probability that is smaller still (`SPREAD`).
    """
    exponent = 1 if problem.objective == "mae" else 2
    unit = float(problem.epsilon) / problem.sensitivity
    deviation = _deviation(parties_of(problem, [0] * len(problem.parties)))
    best, least = None, float(problem.baseline_mae if exponent == 1 else problem.baseline_mse)
    for share, spread in JUMPS:
        jump = round(min(share * unit * deviation * deviation, (BEYOND - TAIL) / unit))
        margin = jump + round(TAIL / unit)
        parties = tuple(parties_of(problem, [margin] * len(problem.parties)))
        tail = geometric(exp(-unit), margin - jump + 1)
        tail = tail / total(tail) / 2

        def plan(
            chance: float,
            parties: tuple[Party, ...] = parties,
            jump: int = jump,
            tail: Array = tail,
            spread: float = spread,
        ) -> PlanDraft:
            def table_of(i: int) -> Array:
                party = parties[i]
                table = np.full((len(party.targets), len(party.reports)), spread / len(party.reports))
                for row, place in zip(table, (party.targets - party.outputs[0]).astype(np.int64).tolist(), strict=True):
                    row[place] += 1 - chance - spread
                    row[place + jump : place + jump + len(tail)] += chance * tail
                    row[place - jump - len(tail) + 1 : place - jump + 1] += chance * tail[::-1]
                return table

            return PlanDraft(parties, tuple(each_once(map(id, parties), table_of)), problem.honest)

        cells = sum(len(party.targets) * len(party.reports) for party in parties)
        if cells > CELLS or plan(1.0).products > MOST_PRODUCTS:
            continue
        progress(f"the truth, and rarely {jump} away from it")
        low, high = 16, 4 * HALVINGS  # the probability is 2^-(k/4)
        while low < high:
            middle = (low + high + 1) // 2
            check()
            low, high = (middle, high) if plan(_root(middle)).excess <= 1 - NARROW else (low, middle - 1)
        found = plan(_root(low))
        if found.error(exponent) < least and found.excess <= 1 - NARROW:
            best, least = found, found.error(exponent)
    return best


def _truth(party: Party) -> Array:
    """The table that reports the truth."""
    table = np.zeros((len(party.targets), len(party.reports)))
    table[np.arange(len(table)), (party.targets - party.outputs[0]).astype(np.int64)] = 1.0
    return table


def _root(quarters: int) -> float:
    """`2^-(quarters/4)` by square roots, which every machine rounds alike."""
    return math.ldexp(math.prod([math.sqrt(math.sqrt(0.5))] * (quarters % 4)), -(quarters // 4))


def check_cells(cells: int) -> None:
    """Refuse tables that are too large together."""
    if cells > CELLS:
        raise ProblemError(
            f"A joint plan is designed for up to {CELLS:,} entries in all tables. Found {cells:,}. Use fewer "
            'people, a larger epsilon, or method = "divisible".'
        )


@dataclass(frozen=True)
class Size:
    """How large a problem is, counted from its numbers alone, before anything is computed."""

    cells: int
    """Entries of all tables, at least."""
    products: int
    """What a look at a whole plan takes, at least (`PlanDraft.products`)."""
    long: bool
    kinds: int

    @staticmethod
    def of(problem: MultiLTE) -> Size:
        widths = [width(party) for party in problem.parties]
        alike = Counter(
            (*(spelled(world[i]) for world in problem.worlds), factor) for i, factor in enumerate(problem.f)
        )
        reach = [abs(factor) * width for factor, width in zip(problem.f, widths, strict=True)]
        sets = math.comb(len(alike) + problem.honest - 1, problem.honest) if len(alike) > 1 else 1
        longest = sum(reach) + 4 * len(reach)
        return Size(
            sum(width * (outputs + 4) for width, outputs in zip(widths, reach, strict=True)),
            min(sets, MOST_SETS if problem.honest < len(reach) else 1)
            * len(problem.worlds)
            * (longest**2 * (4 + len(alike)) // 6),
            len(reach) > MANY,
            len(alike),
        )

    @property
    def look(self) -> float:
        """Seconds of a look at a whole plan."""
        return self.products / (LONG_PRODUCTS if self.long else PRODUCTS) / UNITS

    def seconds(self, most: float) -> float:
        """About how long a plan takes, if a search may take `most` units of work."""
        looks = len(REACHES) * math.log2(4 * HALVINGS) + 2
        return self.look * looks + min(most / UNITS, len(TRIES) * SWEEPS * self.cells * SECONDS_PER_CELL)


def _deviation(parties: Sequence[Party]) -> float:
    """The standard deviation of the weighted sum of all."""
    variance = 0.0
    for party in parties:
        mean = float(product(party.priors[0], party.targets))
        variance += float(product(party.priors[0], (party.targets - mean) * (party.targets - mean)))
    return math.sqrt(variance)
