"""m entities that agree on a plan: one linear program for each party in turn, all other tables fixed.

Every plan on the way is private; each step lowers the error of the aggregate. The start is a plan in which every party
is private alone, whatever the others do. Where a descent ends depends on where it starts, so several are tried: how far
outputs may leave the range of the inputs, and how boldly a party moves while the others still can (`pace`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from optdp.errors import ProblemError
from optdp.math.pmf import BinomialPmf
from optdp.noise.block import Block, Effort, View, improve
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.parties import Array, Party, convolve, parties_of

FLOOR = 1e-7
"""The probability that a report says nothing, spread evenly: it keeps every aggregate possible for everybody."""
SLACK = (1e-3, 1e-8)
"""How far below epsilon the programs stay, relatively: in the first step, and at least."""
ENOUGH = 1e-4
"""A sweep that gains less than this, relatively, is the last."""
TRIES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (4.0, (1.0,) * 6),
    (8.0, (1.0,) * 6),
    (4.0, (0.3, 0.3, *(1.0,) * 6)),
    (2.0, (0.5, 0.5, *(1.0,) * 6)),
)
"""How far outputs leave the range of the inputs, times epsilon for a unit, and the pace of each sweep."""
WIDEST = 5.0
"""Outputs leave the range of the inputs by at most so many standard deviations of the whole sum."""
LARGE = 40_000
"""With more entries in all tables only the first try is made, and less patiently."""
CELLS = 3_000_000
MANY = 16
"""With more parties the laws of aggregates are held as long doubles, for the rare ones would underflow."""
MOST_SETS = 1000
"""The most sets of honest parties."""
EASE = 0.5
"""The slack of a step relative to the one before, so that the plan at hand has room in the next program; more if the
parties are so many that it would be used up before the second sweep."""


@dataclass(frozen=True)
class Draft:
    """A plan in floating point: the parties and their tables."""

    parties: tuple[Party, ...]
    tables: tuple[Array, ...]
    honest: int

    def error(self, power: int = 1) -> float:
        """The mean of `|S - target|^power` in the first world."""
        law, low = self._noise(range(len(self.parties)))
        return float(np.abs(np.arange(low, low + len(law))) ** power @ law)

    def _noise(self, members: Sequence[int] | range) -> tuple[Array, int]:
        laws = [self.parties[j].error_law(self.tables[j]) for j in members]
        return convolve(law for law, _ in laws), sum(low for _, low in laws)

    def block(self, i: int, power: int) -> Block:
        """The program of party `i`."""
        party = self.parties[i]
        others = [j for j in range(len(self.parties)) if j != i]
        noise, low = self._noise(others)
        likely = np.flatnonzero(noise > 1e-18)
        values, chances = likely + float(low), noise[likely]
        differences = np.subtract.outer(party.reports, party.targets).T
        distinct, index = np.unique(differences, return_inverse=True)
        costs = np.abs(np.add.outer(distinct, values)) ** power @ chances
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
        seen: set[bytes] = set()
        others = [j for j in range(len(self.parties)) if j != i]
        for world in range(len(self.parties[i].priors)):
            wide = np.longdouble if len(self.parties) > MANY else np.float64
            sums: list[Array] = [
                (party.priors[world] @ table).astype(wide)
                for party, table in zip(self.parties, self.tables, strict=True)
            ]
            for rest in combinations(others, self.honest - 1):
                besides = _without_each([sums[j] for j in rest])
                around = np.convolve(besides[0], sums[rest[0]]) if rest else np.ones(1)
                if not _fresh(seen, b"own%d" % world, around):
                    continue
                for kind in self.parties[i].secrets[world]:
                    for one, other in pairwise(kind):
                        yield View(number(one), around, number(other), around, self.parties[i].epsilon)
                for j, beside in zip(rest, besides, strict=True):
                    for kind in self.parties[j].secrets[world]:
                        laws = kind @ self.tables[j]
                        for one, other in pairwise(laws):
                            if _fresh(seen, b"%d" % world, one, other, beside):
                                prior = number(self.parties[i].priors[world])
                                first, second = np.convolve(one, beside), np.convolve(other, beside)
                                yield View(prior, first, prior, second, self.parties[j].epsilon)

    def replaced(self, i: int, table: Array) -> Draft:
        tables = (*self.tables[:i], table, *self.tables[i + 1 :])
        return Draft(self.parties, tables, self.honest)


def _without_each(laws: Sequence[Array]) -> list[Array]:
    """For each law the sum of all the others."""
    before, after = [np.ones(1)], [np.ones(1)]
    for law in laws[:-1]:
        before.append(np.convolve(before[-1], law))
    for law in reversed(laws[1:]):
        after.append(np.convolve(after[-1], law))
    return [np.convolve(one, other) for one, other in zip(before, reversed(after), strict=True)][: len(laws)]


def _fresh(seen: set[bytes], *parts: Array | bytes) -> bool:
    key = b"|".join(part if isinstance(part, bytes) else part.tobytes() for part in parts)
    if key in seen:
        return False
    seen.add(key)
    return True


def descend(
    start: Draft,
    problem: MultiLTE,
    paces: Sequence[float],
    progress: Callable[[str], None],
    patience: float = 1e-6,
    effort: Effort | None = None,
    most: float = math.inf,
) -> Iterator[Draft]:
    """Sweep over the parties with each pace in turn; yield every plan that is better than the one before.

    The work is added to `effort`; no block is begun once that is above `most`.

    Large parties come first: the last to move carries most of the noise, and a small table does that as well.
    """
    power = 1 if problem.objective == "mae" else 2
    plan, slack, effort = start, SLACK[0], effort or Effort()
    ease = max(EASE, (SLACK[1] / SLACK[0]) ** (0.5 / len(plan.parties)))
    best = plan.error(power)
    order = sorted(range(len(plan.parties)), key=lambda i: -len(plan.parties[i].targets))
    for sweep, pace in enumerate(paces):
        before = best
        for i in order:
            if effort.spent > most:
                return
            progress(f"sweep {sweep + 1}, party {i}: {problem.objective} {best:.6g}")
            block = plan.block(i, power)
            allowed = 1 - ease * slack
            table = improve(block, plan.tables[i], FLOOR, slack, patience, effort)
            if table is not None and block.excess(table) > allowed:
                table = improve(block, plan.tables[i], FLOOR, 10 * slack, patience, effort)
            slack = max(ease * slack, SLACK[1])
            if table is None:
                continue
            table = (1 - pace) * plan.tables[i] + pace * table
            value = block.objective(table)
            if value < best and block.excess(table) <= allowed:
                plan, best = plan.replaced(i, table), value
                yield plan
        if pace == 1 and best > before * (1 - ENOUGH):
            return


def starts(problem: MultiLTE, alone: Sequence[NoiseMatrix]) -> Iterator[tuple[Draft, tuple[float, ...], float]]:
    """Where to descend from, with which paces and patience; `alone` are tables that are private alone."""
    sets = math.comb(len(problem.parties), problem.honest)
    if sets > MOST_SETS:
        raise ProblemError(
            f"A joint plan hides people in every set of {problem.honest} parties; at most {MOST_SETS:,} sets are "
            f'looked at. Found {sets:,}. Use method = "divisible".'
        )
    unit = float(problem.epsilon) / problem.sensitivity
    spread = 1 + WIDEST * _deviation(parties_of(problem, [0] * len(problem.parties)))
    margins: set[int] = set()
    for reach, paces in TRIES:
        margin = max(2, round(min(reach / unit, spread)))
        if margin in margins and paces[0] == 1:
            continue
        margins.add(margin)
        parties = parties_of(problem, [margin] * len(problem.parties))
        cells = sum(len(party.targets) * len(party.reports) for party in parties)
        _check_cells(cells)
        tables = []
        for party, matrix in zip(parties, alone, strict=True):
            table = (1 - FLOOR) * party.table(matrix) + FLOOR / len(party.reports)
            tables.append(table / table.sum(axis=1, keepdims=True))
        large = cells > LARGE
        yield Draft(tuple(parties), tuple(tables), problem.honest), paces, 1e-3 if large else 1e-6
        if large:
            return


def _check_cells(cells: int) -> None:
    if cells > CELLS:
        raise ProblemError(
            f"A joint plan is designed for up to {CELLS:,} entries in all tables. Found {cells:,}. Use fewer "
            'people, a larger epsilon, or method = "divisible".'
        )


def check_people(problem: MultiLTE) -> None:
    """Refuse very many people before anything is computed: tables have inputs for more than a standard deviation to
    either side of the mean, and outputs as far.
    """
    totals = [(abs(factor), party.total) for factor, party in zip(problem.f, problem.parties, strict=True)]
    _check_cells(sum(int(factor * t.n * t.p * (1 - t.p)) for factor, t in totals if isinstance(t, BinomialPmf)))


def _deviation(parties: Sequence[Party]) -> float:
    """The standard deviation of the weighted sum of all."""
    total = 0.0
    for party in parties:
        mean = party.priors[0] @ party.targets
        total += float(party.priors[0] @ (party.targets - mean) ** 2)
    return math.sqrt(total)


def rounded(draft: Draft, problem: MultiLTE, bits: int) -> tuple[NoiseMatrix, ...]:
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
