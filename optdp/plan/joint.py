"""m entities that agree on a plan: one linear program for each party in turn, all other tables fixed.

Every plan on the way is private; each step lowers the error of the aggregate. The start is a plan in which every party
is private alone, whatever the others do, or one in which all mostly report the truth. Where a descent ends depends on
where it starts, so several are tried: how far outputs may leave the range of the inputs, and how boldly a party moves
while the others still can (`pace`): see `starts.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import log
from optdp.numbers.ordered import Array, convolve, exp, product
from optdp.plan.block import SeenPair, TableProgram, improve
from optdp.plan.certify import number_of_sets
from optdp.plan.given_sums import coefficients
from optdp.plan.parties import Party, power, rounded_table
from optdp.plan.problem import MultiLTE, each_once
from optdp.work import Progress, check
from optdp.work.account import Effort

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
PRICE = 10.0
"""What it costs if the error given some sum is twice what `never_worse` allows, relative to that."""
MANY = 16
"""With more parties alike ones move together, and the laws of aggregates are long doubles: rare ones underflow."""
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""How far alike parties that move together go, in turn."""


@dataclass(frozen=True)
class PlanDraft:
    """A plan in floating point: the parties and their tables."""

    parties: tuple[Party, ...]
    tables: tuple[Array, ...]
    honest: int
    most_error: float | None = None
    """With `never_worse`, the largest mean absolute error that any sum may have."""

    @cached_property
    def kinds(self) -> list[int]:
        """For each party the first that is the same and has the same table."""
        return each_once(zip(map(id, self.parties), map(id, self.tables), strict=True), lambda i: i)

    def error(self, exponent: int = 1) -> float:
        """The mean of `|S - target|^exponent` in the first world."""
        law, low = self._noise(Counter(self.kinds))
        return float(product(_powered(np.arange(low, low + len(law), dtype=np.float64), exponent), law))

    def value(self, exponent: int) -> float:
        """The error, and the price of what `never_worse` does not allow."""
        return self.error(exponent) if self.most_error is None else self.block(0, exponent).objective(self.tables[0])

    def _noise(self, counts: Mapping[int, int]) -> tuple[Array, int]:
        """The law of the error of so many parties of each kind, and its smallest value."""
        result, least = np.ones(1), 0
        for kind, count in counts.items():
            law, low = self.parties[kind].error_law(self.tables[kind])
            result, least = convolve(result, power(law, count)), least + count * low
        return result, least

    def _others(self, i: int) -> Counter[int]:
        return Counter(kind for j, kind in enumerate(self.kinds) if j != i)

    def costs(self, i: int, exponent: int) -> Array:
        """What a report of party `i` costs, for each input and output: the mean error with the noise of the others."""
        party = self.parties[i]
        noise, low = self._noise(self._others(i))
        likely = np.flatnonzero(noise > 1e-18)
        values, chances = likely + float(low), noise[likely]
        differences = np.subtract.outer(party.reports, party.targets).T
        distinct, index = np.unique(differences, return_inverse=True)
        costs = product(_powered(np.add.outer(distinct, values), exponent), chances)
        return np.asarray(costs[index].reshape(differences.shape), dtype=np.float64)

    def block(self, i: int, exponent: int) -> TableProgram:
        """The program of party `i`."""
        party = self.parties[i]
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
        given = None if self.most_error is None else coefficients(self.parties, self.tables, i, self.most_error)
        price = 0.0 if self.most_error is None else PRICE * self.most_error**exponent
        return TableProgram(np.array(weights), self.costs(i, exponent), views, party.chain, given, price)

    def _views(self, i: int, number: Callable[[Array], int]) -> Iterator[SeenPair]:
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
                    for one, other in own.compared(kind):
                        yield SeenPair(number(one), around, number(other), around, own.epsilon)
                prior = number(own.priors[world])
                for j, beside in zip(rest, besides, strict=True):
                    for kind in self.parties[j].secrets[world]:
                        laws = [convolve(law, beside) for law in product(kind, self.tables[j])]
                        for first, second in self.parties[j].compared(laws):
                            yield SeenPair(prior, first, prior, second, self.parties[j].epsilon)

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
        return replace(self, tables=tuple(tables))


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
    count, best = len(plan.parties), plan.value(exponent)
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
    best = chosen.value(exponent)
    if len(plan.parties) <= MANY or plan.honest < len(plan.parties):
        return moved, chosen, best
    size = len(alike)
    while size > 1:
        for share in SHARES:
            partly = (1 - share) * plan.tables[first] + share * table
            trial = plan.replaced(alike[:size], partly)
            value = trial.value(exponent)
            check()
            if value >= best or effort.over:
                continue
            effort.convolved(trial.products, trial.long)
            if trial.excess <= allowed:
                moved, chosen, best = list(alike[:size]), trial, value
        size //= 2
    return moved, chosen, best


def rounded(draft: PlanDraft, problem: MultiLTE, bits: int) -> tuple[NoiseMatrix, ...]:
    """The tables as integers over `2^bits`."""
    matrices = []
    for party, table, population in zip(draft.parties, draft.tables, problem.parties, strict=True):
        matrices.append(rounded_table(party.inputs, party.outputs, table, bits, population.last))
    return tuple(matrices)
