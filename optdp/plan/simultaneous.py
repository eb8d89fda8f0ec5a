"""All tables of a small joint plan move at once, from random starts.

The program is that of `problem.py`. The error and both sides of a quotient are linear in each table, not in all
together. A descent that moves one table after the other (`joint.py`) ends where none can be improved by itself, which
is often far from the best. Here all tables move together, each entry by at most `delta`:

    minimise    sum over i of <gradient_i, d_i>  +  penalty * sum over rows of v
    subject to  g_k + sum over i of <derivative_(k,i), d_i> <= v_k       every quotient near its bound, or beyond it
                sum over s of d_i(x, s) = 0                              every party and input
                |d_i(x, s)| <= delta,  r_i + d_i >= floor                every entry

where `g_k = (e^-eps Pr[S | w] - Pr[S | w']) / (Pr[S | w] + Pr[S | w'])`, or with `never_worse` the error given a sum as
a share of what is allowed, less 1. A step is taken if it lowers the error and the penalty together; else `delta`
shrinks. Privacy has a price at first, so that a start may be anything: rows of random numbers, or random monotone maps.
The price rises until nothing is violated.

Draws are made of integers, and work is counted. What is found is held against the same bounds as every other plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from random import Random

import numpy as np
from scipy import sparse

from optdp.numbers.ordered import Array, convolve, exp, product, total
from optdp.plan.given_sums import coefficients
from optdp.plan.joint import FLOOR, PlanDraft
from optdp.plan.parties import Party, parties_of
from optdp.plan.problem import MultiLTE
from optdp.programs.backends import chosen
from optdp.programs.growing import solved
from optdp.programs.highs import model_of, new_highs
from optdp.programs.program import LinearProgram
from optdp.work import Progress, check
from optdp.work.account import Effort

MOST_CELLS, MOST_SETS, MOST_SECRETS, MOST_LAWS = 1200, 20, 12, 1000
"""The most entries of all tables, sets of honest parties, secrets of a party, and laws that a step adds up for its
derivatives, of a plan that is small."""
MOST_SLOPES = 1_500_000
"""The most derivatives of a step, about."""
MARGINS = (0, 1, 2)
"""How far outputs leave the range of the inputs."""
WORK = 10_000_000
"""Work (`Effort`) after which no further start is tried."""
TOO_MUCH = 2 * WORK
"""Work after which a start that has not settled is left as it is."""
UNITS_OF_A_LAW = 40
STALLED = 40.0
"""Seconds after which a program on which HiGHS gets nowhere is left; others take a few."""
TRIES = 12
STEPS = 60
"""Steps of a try."""
FIRST, LEAST, WIDEST = 0.3, 1e-7, 1.0
"""How far an entry moves in a step: at first, at least, and at most."""
PRICE, DEARER, DEAREST = 0.3, 4.0, 1e3
"""What a violation costs at first, how that rises, and where it ends."""
NEAR = -0.5
"""Quotients farther below their bound are left out of a step."""
CLOSE = 1e-7
"""What is left of violations when the price no longer rises."""
KEPT = 1 - 1e-6
"""The share of epsilon that is spent: a solver is right to about the rest."""
SMALL = 1e-11
SCARCE = 1e-280
"""Probabilities that are not divided by."""


@dataclass(frozen=True)
class AlikeLaws:
    """Two laws of the aggregate that must look alike: secrets of one party, and the reports of the others."""

    world: int
    honest: tuple[int, ...]
    party: int
    one: Array
    other: Array


@dataclass(frozen=True)
class Small:
    """A small problem: its parties, and everything that is compared."""

    parties: tuple[Party, ...]
    honest: int
    exponent: int
    most_error: float | None

    @cached_property
    def compared(self) -> list[AlikeLaws]:
        found = []
        for world in range(len(self.parties[0].priors)):
            for honest in combinations(range(len(self.parties)), self.honest):
                for i in honest:
                    for kind in self.parties[i].secrets[world]:
                        for pair in self.parties[i].compared(kind):
                            found += [AlikeLaws(world, honest, i, *sides) for sides in (pair, pair[::-1])]
        return found

    @cached_property
    def sums(self) -> Array:
        """Which entries every row of every table has."""
        shapes = ((len(party.targets), len(party.reports)) for party in self.parties)
        return np.asarray(
            sparse.block_diag([sparse.kron(sparse.eye_array(x), np.ones((1, s))) for x, s in shapes]).toarray()
        )

    def draft(self, tables: Sequence[Array]) -> PlanDraft:
        return PlanDraft(self.parties, tuple(tables), self.honest, self.most_error)

    def quotients(self, tables: Sequence[Array], slopes: bool) -> tuple[Array, list[Array]]:
        """How far every comparison of every aggregate is beyond its bound, and, if wanted, the derivatives."""
        beyond, rows = [], []
        reports = [
            [product(law, table) for law in party.priors] for party, table in zip(self.parties, tables, strict=True)
        ]
        for own in self.compared:
            party, table = self.parties[own.party], tables[own.party]
            others = [j for j in own.honest if j != own.party]
            around = reduce(convolve, (reports[j][own.world] for j in others), np.ones(1))
            grow = exp(-party.epsilon * KEPT)
            one, other = product(np.array([own.one, own.other]), table)
            above, below = convolve(one, around), convolve(other, around)
            chance = np.maximum(above + below, SCARCE)
            beyond.append((grow * above - below) / chance)
            if not slopes:
                continue
            parts = [np.zeros((len(chance), table.size)) for table in tables]
            parts[own.party] = _outer(grow * own.one - own.other, around, chance, table.shape[1])
            for j in others:
                beside = reduce(convolve, (reports[k][own.world] for k in others if k != j), np.ones(1))
                moved = convolve(grow * one - other, beside)
                parts[j] = _outer(self.parties[j].priors[own.world], moved, chance, tables[j].shape[1])
            rows.append(np.hstack(parts))
        if self.most_error is not None:
            given = [
                coefficients(self.parties, tables, i, self.most_error) for i in range(len(tables) if slopes else 1)
            ]
            beyond.append(total(given[0] * tables[0], axis=(1, 2)) - KEPT)
            rows += [np.hstack([own.reshape(len(own), -1) for own in given])] if slopes else []
        return np.concatenate(beyond), rows

    def step(
        self, tables: Sequence[Array], price: float, delta: float, effort: Effort
    ) -> tuple[list[Array], float] | None:
        """Where the linear program would go, and what it says that this gains."""
        beyond, rows = self.quotients(tables, True)
        near = beyond > NEAR
        beyond, slopes = beyond[near], np.vstack(rows)[near]
        slopes[np.abs(slopes) < SMALL] = 0.0
        draft = self.draft(tables)
        costs = np.concatenate([_costs(draft, i, self.exponent).ravel() for i in range(len(tables))])
        now = np.concatenate([table.ravel() for table in tables])
        floor = np.concatenate([np.full(table.size, FLOOR / table.shape[1]) for table in tables])
        lower = np.minimum(np.maximum(floor - now, -delta), 0.0)
        size, count = len(now), len(beyond)
        kept = len(self.sums)
        moves = sparse.csc_matrix(np.vstack([self.sums, slopes]))
        matrix = sparse.hstack([moves, -sparse.eye(kept + count, count, k=-kept, format="csc")], format="csc")
        program = LinearProgram(
            np.concatenate([costs, np.full(count, price)]),
            matrix,
            np.concatenate([np.zeros(kept), np.full(count, -np.inf)]),
            np.concatenate([np.zeros(kept), -beyond]),
            np.concatenate([lower, np.zeros(count)]),
            np.concatenate([np.full(size, delta), np.full(count, np.inf)]),
        )
        left = max(TOO_MUCH - effort.spent, 0) // matrix.shape[0]
        highs = new_highs(simplex_iteration_limit=min(20 * (size + count), left), time_limit=STALLED)
        highs.passModel(model_of(program))
        answer = solved(highs)
        effort.spent += UNITS_OF_A_LAW * len(self.compared) * self.honest**2
        effort.spent += matrix.shape[0] * (answer.iterations or 0) + matrix.nnz
        values = answer.x
        if values is None or (answer.status != "optimal" and chosen.get().own):
            return None
        gain = price * float(total(np.maximum(beyond, 0.0))) - float(total(program.cost * values))
        moved, begin = [], 0
        for table in tables:
            more = np.maximum(
                table + values[begin : begin + table.size].reshape(table.shape), 0.999 * FLOOR / table.shape[1]
            )
            moved.append(more / total(more, axis=1, keepdims=True))
            begin += table.size
        return moved, gain


def _outer(law: Array, around: Array, chance: Array, outputs: int) -> Array:
    """The derivatives of `(law r * around)(S) / chance(S)` by the entries of a table `r`, a row for each aggregate."""
    gaps = np.arange(len(chance))[:, None] - np.arange(outputs)[None, :]
    inside = (gaps >= 0) & (gaps < len(around))
    taken = np.where(inside, around[np.clip(gaps, 0, len(around) - 1)], 0.0) / chance[:, None]
    return np.asarray((law[None, :, None] * taken[:, None, :]).reshape(len(chance), -1), dtype=np.float64)


def _costs(draft: PlanDraft, i: int, exponent: int) -> Array:
    """The derivatives of the error by the entries of one table."""
    costs = draft.costs(i, exponent)
    return np.asarray(draft.parties[i].priors[0][:, None] * costs, dtype=np.float64)


def settle(small: Small, tables: Sequence[Array], effort: Effort) -> PlanDraft | None:
    """Steps from a start until nothing moves; None if privacy does not hold then."""
    price, delta = PRICE, FIRST

    def worth(tables: Sequence[Array]) -> tuple[float, float]:
        beyond, _ = small.quotients(tables, False)
        over = float(total(np.maximum(beyond, 0.0)))
        return small.draft(tables).error(small.exponent), over

    error, over = worth(tables)
    for _ in range(STEPS):
        check()
        found = small.step(tables, price, delta, effort)
        gain = 0.0
        if found is None:
            delta /= 4  # the same program would fail again
        else:
            moved, gain = found
            after, left = worth(moved)
            real = error + price * over - after - price * left
            if real > 1e-10:
                tables, error, over = moved, after, left
                delta = min(2 * delta, WIDEST) if real > 0.75 * gain else delta if real > 0.25 * gain else delta / 2
            else:
                delta /= 4
        if delta < LEAST or (found is not None and gain < 1e-6 * (error + price * over)):
            if over <= CLOSE or price >= DEAREST:
                break
            price, delta = price * DEARER, max(delta, 0.05)
        if effort.spent > TOO_MUCH:
            break
    plan = small.draft(tables)
    return plan if plan.excess <= 1 else None


def drawn(small: Small, number: int) -> list[Array]:
    """The tables of a random start: rows of random numbers, or random monotone maps, somewhat blurred."""
    random, tables = Random(number), []
    for party in small.parties:
        inputs, outputs = len(party.targets), len(party.reports)
        if number % 2:
            places = sorted(random.getrandbits(30) * outputs >> 30 for _ in range(inputs))
            table = np.zeros((inputs, outputs))
            table[np.arange(inputs), places if party.factor > 0 else places[::-1]] = 1.0
            blur = 0.1
        else:
            table = np.array([[(random.getrandbits(20) / 2**20) ** 8 for _ in range(outputs)] for _ in range(inputs)])
            blur = 0.01
        table = table / np.maximum(total(table, axis=1, keepdims=True), 1e-12)
        table = (1 - blur) * table + blur / outputs
        tables.append(table / total(table, axis=1, keepdims=True))
    return tables


def is_small(problem: MultiLTE, parties: Sequence[Party]) -> bool:
    """Whether all tables of a plan may move at once."""
    cells = sum(len(party.targets) * len(party.reports) for party in parties)
    sets = 1
    for k in range(problem.honest):
        sets = sets * (len(parties) - k) // (k + 1)
    secrets = max(sum(map(len, world)) for party in parties for world in party.secrets)
    compared = 2 * secrets * sets * problem.honest
    slopes = compared * sum(len(party.reports) for party in parties) * cells
    small = cells <= MOST_CELLS and sets <= MOST_SETS and secrets <= MOST_SECRETS and slopes <= MOST_SLOPES
    return small and compared * problem.honest**2 <= MOST_LAWS and problem.fallback_epsilon is None


def settled(problem: MultiLTE, start: PlanDraft | None, progress: Progress) -> Iterator[PlanDraft]:
    """Plans of a small problem: the given one, settled, and those from random starts."""
    most = None if problem.most_error is None else float(problem.most_error)
    exponent = 1 if problem.objective == "mae" else 2
    effort = Effort(most=WORK)
    if start is not None and is_small(problem, start.parties):
        progress("all tables at once")
        small = Small(start.parties, problem.honest, exponent, most)
        if (plan := settle(small, start.tables, effort)) is not None:
            yield plan
    for number in range(TRIES):
        margin = MARGINS[number // 2 % len(MARGINS)]
        parties = tuple(parties_of(problem, [margin] * len(problem.parties)))
        if effort.over or not is_small(problem, parties):
            continue
        progress(f"all tables at once: random start {number + 1} of {TRIES}")
        small = Small(parties, problem.honest, exponent, most)
        if (plan := settle(small, drawn(small, number), effort)) is not None:
            yield plan
