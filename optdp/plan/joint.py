"""m entities that agree on a plan: one linear program for each party in turn, all other tables fixed.

Every plan on the way is private; each step lowers the error of the aggregate. The start is a plan in which every party
is private alone, whatever the others do, or one in which all mostly report the truth. Where a descent ends depends on
where it starts, so several are tried: how far outputs may leave the range of the inputs, and how boldly a party moves
while the others still can (`pace`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from itertools import product as product_of

import numpy as np

from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.ordered import Array, convolve, exp, geometric, log, product, total
from optdp.plan.block import Block, View, improve, steepest
from optdp.plan.certify import number_of_sets
from optdp.plan.parties import Party, parties_of, power, spelled, width
from optdp.plan.problem import MultiLTE, each_once
from optdp.work import Progress, check, silent
from optdp.work.account import LONG_PRODUCTS, PRODUCTS, UNITS, Effort

FLOOR = 1e-7
"""The probability that a report says nothing, spread evenly: it keeps every aggregate possible for everybody."""
ROOM, NARROW, LEAST_SLACK = 0.05, 1e-3, 1e-8
"""How far below epsilon the programs stay, relatively: in the first step, where whoever moves first would take all
that there is to gain; in that of other tries; and at least."""
EASE = 0.35
"""The slack after a sweep relative to the one before."""
ENOUGH = 1e-4
"""A sweep that gains less than this, relatively, is the last."""
SWEEPS = 10
"""The most sweeps of a descent."""
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
)
"""How far outputs leave the range of the inputs, times epsilon for a unit; the pace of the first two sweeps; and the
slack of the first step."""
REACHES = (2.0, 4.0, 8.0, 12.0, 16.0, 24.0)
"""The same for parties that mostly report the truth."""
HALVINGS = 23
"""The truth is forgotten with a probability of at least 2^-HALVINGS, which is about the floor."""
WIDEST = 5.0
"""Outputs leave the range of the inputs by at most so many standard deviations of the whole sum."""
LARGE, MANY_KINDS = 40_000, 4
"""With more entries in all tables, of more kinds of parties, only the first try is made, and less patiently."""
CELLS = 3_000_000
MANY = 16
"""With more parties alike ones move together, and the laws of aggregates are long doubles: rare ones underflow."""
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""How far alike parties that move together go, in turn."""
MOST_PRODUCTS = 600_000_000
"""The most products of a look at a whole plan, some seconds; with more each party designs its noise alone."""
SECONDS_PER_CELL = 3e-5
"""What an entry takes in a sweep."""
HOPELESS, MOST_SETS = 4.0, 1000
"""Many parties do not descend from a plan that is so many times worse than geometric noise; the most sets of honest
parties."""


@dataclass(frozen=True)
class PlanDraft:
    """A plan in floating point: the parties and their tables."""

    parties: tuple[Party, ...]
    tables: tuple[Array, ...]
    honest: int

    @cached_property
    def kinds(self) -> list[int]:
        """For each party the first that is the same and has the same table."""
        return each_once(zip(map(id, self.parties), map(id, self.tables), strict=True), lambda i: i)

    def error(self, exponent: int = 1) -> float:
        """The mean of `|S - target|^exponent` in the first world."""
        law, low = self._noise(Counter(self.kinds))
        return float(product(_powered(np.arange(low, low + len(law), dtype=np.float64), exponent), law))

    def _noise(self, counts: Mapping[int, int]) -> tuple[Array, int]:
        """The law of the error of so many parties of each kind, and its smallest value."""
        result, least = np.ones(1), 0
        for kind, count in counts.items():
            law, low = self.parties[kind].error_law(self.tables[kind])
            result, least = convolve(result, power(law, count)), least + count * low
        return result, least

    def _others(self, i: int) -> Counter[int]:
        return Counter(kind for j, kind in enumerate(self.kinds) if j != i)

    def block(self, i: int, exponent: int) -> Block:
        """The program of party `i`."""
        party = self.parties[i]
        noise, low = self._noise(self._others(i))
        likely = np.flatnonzero(noise > 1e-18)
        values, chances = likely + float(low), noise[likely]
        differences = np.subtract.outer(party.reports, party.targets).T
        distinct, index = np.unique(differences, return_inverse=True)
        costs = product(_powered(np.add.outer(distinct, values), exponent), chances)
        weights: list[Array] = []
        numbers: dict[bytes, int] = {}

        def number(law: Array) -> int:
            key = law.tobytes()
            if key not in numbers:
                numbers[key] = len(weights)
                weights.append(law)
            return numbers[key]

        number(party.priors[0])
        views = tuple(self._views(i, number))
        return Block(np.array(weights), costs[index].reshape(differences.shape), views, party.chain)

    def _views(self, i: int, number: Callable[[Array], int]) -> Iterator[View]:
        """What an observer who knows all but `honest` parties can compare, if party `i` is one of the honest."""
        own = self.parties[i]
        wide = np.longdouble if self.long else np.float64
        for world in range(len(own.priors)):
            sums = {
                kind: product(self.parties[kind].priors[world], self.tables[kind]).astype(wide)
                for kind in sorted(set(self.kinds))
            }
            for rest in multisets(self._others(i), self.honest - 1):
                fewer = [power(sums[kind], count - 1) for kind, count in rest.items()]
                besides = _without_each([convolve(law, sums[kind]) for law, kind in zip(fewer, rest, strict=True)])
                besides = [convolve(law, beside) for law, beside in zip(fewer, besides, strict=True)]
                around = convolve(besides[0], sums[next(iter(rest))]) if rest else np.ones(1)
                for kind in own.secrets[world]:
                    for one, other in pairwise(kind):
                        yield View(number(one), around, number(other), around, own.epsilon)
                prior = number(own.priors[world])
                for j, beside in zip(rest, besides, strict=True):
                    for kind in self.parties[j].secrets[world]:
                        laws = [convolve(law, beside) for law in product(kind, self.tables[j])]
                        for first, second in pairwise(laws):
                            yield View(prior, first, prior, second, self.parties[j].epsilon)

    @cached_property
    def products(self) -> int:
        """About how many products the views of everybody take."""
        counts = Counter(self.kinds)
        longest = sum(len(party.reports) for party in self.parties)
        sets = number_of_sets(self.honest, list(counts.values()))
        return sets * len(self.parties[0].priors) * (longest**2 * (4 + len(counts)) // 6)

    @property
    def long(self) -> bool:
        """Whether laws are long doubles."""
        return len(self.parties) > MANY

    @cached_property
    def excess(self) -> float:
        """The largest log-quotient of anybody's view, as a multiple of what is allowed.

        Where all are honest everybody has the same views, but for the fallback of the own table.
        """
        everybody = sorted(set(self.kinds))
        alone = len(self.parties) == self.honest and self.parties[0].chain is None
        return max(self.block(i, 1).excess(self.tables[i]) for i in (everybody[:1] if alone else everybody))

    def replaced(self, members: Sequence[int], table: Array) -> PlanDraft:
        """The plan in which all `members` have this table."""
        tables = list(self.tables)
        for i in members:
            tables[i] = table
        return PlanDraft(self.parties, tuple(tables), self.honest)


def _powered(values: Array, exponent: int) -> Array:
    """`|value|` or its square."""
    return np.abs(values) if exponent == 1 else values * values


def multisets(counts: Mapping[int, int], size: int) -> Iterator[dict[int, int]]:
    """Every choice of `size` things, of which there are so many of each kind."""
    if size == 0 or not counts:
        if size == 0:
            yield {}
        return
    (kind, most), *rest = counts.items()
    left = dict(rest)
    for taken in range(max(0, size - sum(left.values())), min(most, size) + 1):
        for others in multisets(left, size - taken):
            yield ({kind: taken} if taken else {}) | others


def _without_each(laws: Sequence[Array]) -> list[Array]:
    """For each law the sum of all the others."""
    before, after = [np.ones(1)], [np.ones(1)]
    for law in laws[:-1]:
        before.append(convolve(before[-1], law))
    for law in reversed(laws[1:]):
        after.append(convolve(after[-1], law))
    return [convolve(one, other) for one, other in zip(before, reversed(after), strict=True)][: len(laws)]


@dataclass(frozen=True)
class Try:
    """Where a descent starts, and how it goes on."""

    start: PlanDraft
    paces: tuple[float, ...]
    """How far a party moves towards its best table, sweep by sweep."""
    slack: float
    """How far below epsilon the first program stays, relatively."""
    patience: float
    """How far above its optimum a program may end, relatively."""


def descend(attempt: Try, problem: MultiLTE, progress: Progress, effort: Effort | None = None) -> Iterator[PlanDraft]:
    """Sweep over the parties with each pace in turn; yield every plan that is better than the one before.

    The work is added to `effort`; no block is begun once that is over. The slack shrinks from block to block,
    so that the plan at hand always has room in the next program. Large parties come first: the last to move carries
    most of the noise, and a small table does that as well. Of more than `MANY` parties those that are alike move
    together as far as that pays (`_together`).
    """
    exponent = 1 if problem.objective == "mae" else 2
    plan, effort = attempt.start, effort or Effort()
    count, best = len(plan.parties), plan.error(exponent)
    order = sorted(range(count), key=lambda i: -len(plan.parties[i].targets))

    def slack_at(sweep: int, done: int) -> float:
        return max(attempt.slack * exp(log(EASE) * (sweep + done / count)), LEAST_SLACK)

    for sweep, pace in enumerate(attempt.paces):
        before, left = best, list(order)
        while left:
            if effort.over:
                return
            effort.convolved(plan.products, plan.long)
            i, done = left[0], count - len(left)
            progress(
                f"sweep {sweep + 1} of {len(attempt.paces)}, party {done + 1} of {count}: "
                f"{problem.objective} {best:.6g}"
            )
            block = plan.block(i, exponent)
            slack, allowed = slack_at(sweep, done), 1 - slack_at(sweep, done + 1)
            table = improve(block, plan.tables[i], FLOOR, slack, attempt.patience, effort)
            if table is not None and block.excess(table) > allowed:
                table = improve(block, plan.tables[i], FLOOR, min(10 * slack, 0.1), attempt.patience, effort)
            moved = [j for j in left if plan.kinds[j] == plan.kinds[i]]  # none of them can do better, unless i can
            if table is not None:
                table = (1 - pace) * plan.tables[i] + pace * table
                value = block.objective(table)
                if value < best and block.excess(table) <= allowed:
                    moved, plan, best = _together(plan, moved, table, allowed, exponent, effort)
                    yield plan
            left = [j for j in left if j not in moved]
        if pace == 1 and best > before * (1 - ENOUGH) and slack_at(sweep, 0) < ENOUGH:
            return


def _together(
    plan: PlanDraft, alike: Sequence[int], table: Array, allowed: float, exponent: int, effort: Effort
) -> tuple[list[int], PlanDraft, float]:
    """How many of those that are `alike` take the new table of the first, or go part of the way to it.

    With one of them the plan is private. With more it may be, and where it is better it saves their programs.
    """
    first = alike[0]
    moved, chosen = [first], plan.replaced([first], table)
    best = chosen.error(exponent)
    if len(plan.parties) <= MANY or plan.honest < len(plan.parties):
        return moved, chosen, best
    size = len(alike)
    while size > 1:
        for share in SHARES:
            partly = (1 - share) * plan.tables[first] + share * table
            trial = plan.replaced(alike[:size], partly)
            value = trial.error(exponent)
            check()
            if value >= best or effort.over:
                continue
            effort.convolved(trial.products, trial.long)
            if trial.excess <= allowed:
                moved, chosen, best = list(alike[:size]), trial, value
        size //= 2
    return moved, chosen, best


def starts(
    problem: MultiLTE, alone: Callable[[float], Sequence[NoiseMatrix]], progress: Progress = silent
) -> Iterator[Try]:
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
    first = _from_alone(parties, alone(ROOM), problem.honest)
    errors = {}
    for reach in REACHES:
        if _from_alone(parties_for(reach), alone(ROOM), problem.honest).products <= MOST_PRODUCTS:
            progress(f"the truth, forgotten as rarely as can be: outputs {reach / unit:.0f} beyond the inputs")
            plan = _mostly_true(parties_for(reach), problem.honest)
            errors[plan.error(exponent)] = plan
    least, worst = min(errors, default=math.inf), first.error(exponent)
    if cells > LARGE and len(set(first.kinds)) > MANY_KINDS:
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
    q = exp(-party.epsilon / abs(party.factor) * (1 - 1.2 * ROOM))
    noise = geometric(q, last - first + 1)
    inside = (1 - q) / (1 + q) * noise[away]
    inside[:, 0], inside[:, -1] = noise[away[:, 0]] / (1 + q), noise[away[:, -1]] / (1 + q)
    table = np.zeros((len(party.targets), len(party.reports)))
    table[:, first - party.outputs[0] : last - party.outputs[0] + 1] = inside / total(inside, axis=1, keepdims=True)
    return table


def _mostly_true(parties: tuple[Party, ...], honest: int) -> PlanDraft:
    """Everybody reports the truth, but forgets it and reports anything with the least probability that is private."""

    def plan(forgotten: float) -> PlanDraft:
        def table_of(i: int) -> Array:
            party = parties[i]
            table = np.full((len(party.targets), len(party.reports)), forgotten / len(party.reports))
            table[np.arange(len(table)), (party.targets - party.outputs[0]).astype(np.int64)] += 1 - forgotten
            return table

        return PlanDraft(parties, tuple(each_once(map(id, parties), table_of)), honest)

    low, high = 0, 4 * HALVINGS  # the probability is 2^-(k/4), and that of 1 is private
    while low < high:
        middle = (low + high + 1) // 2
        check()
        low, high = (middle, high) if plan(_root(middle)).excess <= 1 - ROOM else (low, middle - 1)
    return plan(_root(low))


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


def rounded(draft: PlanDraft, problem: MultiLTE, bits: int) -> tuple[NoiseMatrix, ...]:
    """The tables as integers over `2^bits`."""
    matrices = []
    for party, table, population in zip(draft.parties, draft.tables, problem.parties, strict=True):
        rows = []
        for row in table:
            weights = [round(value) for value in np.ldexp(row, bits).tolist()]
            weights[int(np.argmax(row))] += (1 << bits) - sum(weights)
            rows.append(tuple((party.outputs[0] + k, weight) for k, weight in enumerate(weights) if weight))
        matrices.append(
            NoiseMatrix(party.inputs, party.outputs, 1 << bits, tuple(rows), None, "clamp", population.last)
        )
    return tuple(matrices)
