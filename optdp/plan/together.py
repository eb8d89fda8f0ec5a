"""A joint plan against observers with doubts: the tables of all parties move together, in small steps.

The program, over the tables `X_i(y | x)` of parties `i`, with every product of vertices `k` of `optdp.plan.products`:

    minimise    E |sum_i (y_i - x_i)|^power                                  under our belief
    subject to  Pr[s | w; k, X] <= e^eps Pr[s | w'; k, X]                    for every party, sum s, and product k
                X_i(. | x) is a law                                          for every party and input

Both sides are linear in each table and not in all together. Linear programs for one table after the other soon end
where no table can be improved by itself. So all of them move at once, each entry by at most `delta`: the error and the
logarithms of the quotients are made linear where they stand, what is violated has a cost, and a step is taken if it
lowers the error and the cost together, else `delta` is reduced. The constraints of a step are cuts: for each party, sum
and direction the worst product on a grid of vertices, and those found before. When nothing moves, all products are
looked at, the worst ones join the grid, and the search goes on.

What is left of violations is repaired by moving every row towards the mean row, by a share that is as small as will do:
with equal rows a report says nothing. Nothing here is believed: the tables are rounded and certified afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from scipy import sparse

from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import log
from optdp.numbers.ordered import Array, convolve, exp, product, total
from optdp.people.observer import Crowd
from optdp.people.population import Population
from optdp.plan.parties import rounded_table
from optdp.plan.problem import MultiLTE
from optdp.plan.products import convolve_rows, crowds_of
from optdp.programs.backends import answers
from optdp.programs.program import LinearProgram
from optdp.work import Progress

RARE = 1e-7
"""Inputs beyond those that are more likely than this, at some vertex, are served by the nearest row."""
DEVIATIONS = 3.0
"""Reports are this many standard deviations of the belief around its mean."""
NODES = 7
"""So many numbers of people at the high end of each party, to begin with."""
ROUNDS, STEPS, MOST_CUTS = 6, 60, 300
"""Looks at all products; steps between them; the most cuts of a step."""
PATIENCE, PROGRESS = 4, 3e-4
"""After so many steps that together improve by less than this share, all products are looked at."""
CLOSE = 3e-4
"""Violations of the logarithm of a quotient that are left to the repair."""
COST, FIRST, LEAST = 0.3, 0.3, 1e-5
"""What a violation costs at first; how far a step goes at first, and how far it must be able to go."""
LEAST_CHANCE = 1e-12
"""Sums that are less likely than this count as if they were as likely."""
SMALL = 1e-9
"""Coefficients of a cut that are not passed to the solver."""
Tables = tuple[Array, ...]


@dataclass(frozen=True)
class Seat:
    """One party in the search: its rows, its reports, and the laws of its input on the rows, as floats."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    belief: Array
    total: Array
    given: tuple[Array, Array]
    """For each vertex the law if a person contributes 0, or 1."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.inputs[1] - self.inputs[0] + 1, self.outputs[1] - self.outputs[0] + 1

    @cached_property
    def errors(self) -> np.typing.NDArray[np.int64]:
        """`y - x` for each entry of the table."""
        places = (np.arange(low, high + 1) for low, high in (self.inputs, self.outputs))
        return np.subtract.outer(*places).astype(np.int64) * -1

    def error_law(self, table: Array) -> tuple[Array, int]:
        """The law of `y - x`, and its smallest value."""
        low = self.outputs[0] - self.inputs[1]
        law = np.zeros(sum(self.shape) - 1)
        np.add.at(law, self.errors.ravel() - low, (self.belief[:, None] * table).ravel())
        return law, low


@dataclass(frozen=True)
class Cut:
    """A constraint: the sum tells a person's contribution `1` (direction 0) or `0` apart, at a product of vertices."""

    party: int
    direction: int
    place: int
    high: tuple[int, ...]


def seat_of(population: Population, crowd: Crowd) -> Seat:
    """A party for the search."""
    everybody = [_floats(crowd, count) for count in (crowd.count, crowd.count - 1)]
    reached = np.flatnonzero((everybody[0] > RARE).any(axis=0))
    first, last = int(reached[0]), int(reached[-1])
    (law, _), *_ = population.laws
    mean, deviation = float(law[1]) * crowd.count, (float(law[1] * (1 - law[1])) * crowd.count) ** 0.5
    low = max(0, int(np.floor(mean - DEVIATIONS * deviation)))
    high = min(crowd.count, int(np.ceil(mean + DEVIATIONS * deviation)))
    first, last = min(first, low), max(last, high)
    shifted = [np.pad(everybody[1], ((0, 0), (w, 1 - w))) for w in (0, 1)]
    belief = _floats(Crowd(law, law, crowd.count), crowd.count)[0]
    fold = [_folded(laws, first, last) for laws in (belief[None], everybody[0], *shifted)]
    return Seat((first, last), (low, high), fold[0][0], fold[1], (fold[2], fold[3]))


def _floats(crowd: Crowd, count: int) -> Array:
    """The law of `count` people at each vertex."""
    unit = crowd.unit(count)
    rows = [[int(value) / unit for value in law.coeffs()] for law in crowd.powers(count)]
    found = np.zeros((len(rows), count + 1))
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found


def _folded(laws: Array, first: int, last: int) -> Array:
    """The laws on the rows `first..last`; what lies beyond is served by the nearest one."""
    found = laws[:, first : last + 1].copy()
    found[:, 0] += total(laws[:, :first], axis=1)
    found[:, -1] += total(laws[:, last + 1 :], axis=1)
    return found


@dataclass(frozen=True)
class SeatedPlan:
    """All parties and their tables."""

    seats: tuple[Seat, ...]
    tables: Tables
    power: int

    @cached_property
    def error(self) -> float:
        law, low = reduce(_added, (seat.error_law(table) for seat, table in zip(self.seats, self.tables, strict=True)))
        return float(product(np.abs(np.arange(low, low + len(law))).astype(np.float64) ** self.power, law))

    def costs(self) -> Array:
        """The derivative of the error by each entry of each table."""
        found = []
        laws = [seat.error_law(table) for seat, table in zip(self.seats, self.tables, strict=True)]
        for i, seat in enumerate(self.seats):
            law, low = reduce(_added, (own for j, own in enumerate(laws) if j != i))
            least, most = seat.outputs[0] - seat.inputs[1], seat.outputs[1] - seat.inputs[0]
            errors = np.add.outer(np.arange(least, most + 1), np.arange(low, low + len(law)))
            means = product(np.abs(errors).astype(np.float64) ** self.power, law)
            found.append((seat.belief[:, None] * means[seat.errors - least]).ravel())
        return np.concatenate(found)

    def moved(self, values: Array) -> SeatedPlan:
        """The plan with other entries, in the same order as `costs`."""
        tables, begin = [], 0
        for seat in self.seats:
            size = seat.shape[0] * seat.shape[1]
            table = np.clip(values[begin : begin + size], 0.0, 1.0).reshape(seat.shape)
            tables.append(table / total(table, axis=1, keepdims=True))
            begin += size
        return SeatedPlan(self.seats, tuple(tables), self.power)

    def blurred(self, share: float) -> SeatedPlan:
        """Every row moved towards the mean row, so that a report says less."""
        tables = tuple(
            (1 - share) * table + share * product(seat.belief, table)
            for seat, table in zip(self.seats, self.tables, strict=True)
        )
        return SeatedPlan(self.seats, tables, self.power)

    def worst(self, nodes: Sequence[Sequence[int]]) -> dict[Cut, float]:
        """For each party, direction and sum the worst product of `nodes`, with its quotient."""
        found: dict[Cut, float] = {}
        reports = [
            product(seat.total[list(own)], table)
            for seat, table, own in zip(self.seats, self.tables, nodes, strict=True)
        ]
        for i, (seat, table) in enumerate(zip(self.seats, self.tables, strict=True)):
            rest = [j for j in range(len(self.seats)) if j != i]
            beside = reduce(lambda one, other: np.concatenate([convolve_rows(other, row) for row in one]),
                            (reports[j] for j in rest))  # fmt: skip
            own = [k for k in nodes[i] if k < len(seat.given[0])]
            given = [product(laws[own], table) for laws in seat.given]
            best = np.zeros((2, beside.shape[1] + seat.shape[1] - 1))
            where = np.zeros((*best.shape, 2), dtype=np.int64)
            for k in range(len(own)):
                zero, one = (convolve_rows(beside, laws[k]) for laws in given)
                for direction, (above, below) in enumerate(((one, zero), (zero, one))):
                    with np.errstate(divide="ignore", invalid="ignore"):
                        quotients = np.where(above > 0, above / below, 0.0)
                    at = quotients.argmax(axis=0)
                    values = quotients[at, np.arange(len(at))]
                    more = values > best[direction]
                    best[direction][more] = values[more]
                    where[direction][more] = np.column_stack([np.full(len(at), k), at])[more]
            for direction in (0, 1):
                for place, value in enumerate(best[direction].tolist()):
                    k, at = where[direction, place].tolist()
                    high = [own[k]] * len(self.seats)
                    for j in reversed(rest):
                        at, chosen = divmod(at, len(nodes[j]))
                        high[j] = nodes[j][chosen]
                    found[Cut(i, direction, place, tuple(high))] = value
        return found

    def row(self, cut: Cut, bound: float) -> tuple[Array, float]:
        """The derivative of `log(Pr[s | w] / Pr[s | w'] / bound)` by each entry, and its value."""
        sides = []
        for side in (0, 1):
            laws = [seat.total[min(k, len(seat.total) - 1)] for seat, k in zip(self.seats, cut.high, strict=True)]
            laws[cut.party] = self.seats[cut.party].given[1 - (side ^ cut.direction)][cut.high[cut.party]]
            reports = [product(law, table) for law, table in zip(laws, self.tables, strict=True)]
            slopes = []
            for i, seat in enumerate(self.seats):
                beside = reduce(convolve, (own for j, own in enumerate(reports) if j != i))
                places = cut.place - np.arange(seat.shape[1])
                inside = (places >= 0) & (places < len(beside))
                chances = np.where(inside, beside[np.clip(places, 0, len(beside) - 1)], 0.0)
                slopes.append((laws[i][:, None] * chances).ravel())
            value = float(total(slopes[0].reshape(self.seats[0].shape) * self.tables[0]))
            sides.append((np.concatenate(slopes), value))
        (one, above), (other, below) = ((slope, max(value, LEAST_CHANCE)) for slope, value in sides)
        return one / above - other / below, log(above / below / bound)


def _added(one: tuple[Array, int], other: tuple[Array, int]) -> tuple[Array, int]:
    return convolve(one[0], other[0]), one[1] + other[1]


@dataclass
class _Search:
    """The state of the search: the cuts that were ever the worst, newest first."""

    bound: float
    nodes: list[list[int]]
    cuts: dict[Cut, None]

    def excess(self, plan: SeatedPlan) -> tuple[dict[Cut, float], float]:
        """The worst products on the grid, and by how much they violate, in logarithms."""
        found = plan.worst(self.nodes)
        quotients = np.array(list(found.values()))
        over = np.log(np.minimum(np.maximum(quotients / self.bound, 1.0), 1e9))
        return found, float(total(over))

    def remember(self, found: dict[Cut, float]) -> None:
        near = {cut: None for cut, quotient in found.items() if quotient > 1 + 0.6 * (self.bound - 1)}
        self.cuts = dict(list((near | self.cuts).items())[:MOST_CUTS])

    def descend(self, plan: SeatedPlan, cost: float, delta: float) -> Iterator[SeatedPlan]:
        """Steps that lower the error and the cost of violations together."""
        found, over = self.excess(plan)
        self.remember(found)
        values = [plan.error + cost * over]
        for _ in range(STEPS):
            step = self._step(plan, cost, delta)
            found, more = self.excess(step)
            self.remember(found)
            if step.error + cost * more < values[-1]:
                plan, delta = step, min(1.0, 1.5 * delta)
                values.append(step.error + cost * more)
                yield plan
            else:
                delta /= 3
            slow = len(values) > PATIENCE and values[-1 - PATIENCE] - values[-1] < PROGRESS * values[-1]
            if slow or delta < LEAST:
                return

    def _step(self, plan: SeatedPlan, cost: float, delta: float) -> SeatedPlan:
        """The linear program of one step: entries `lower + v`, and what is violated."""
        rows = [plan.row(cut, self.bound) for cut in self.cuts]
        now = np.concatenate([table.ravel() for table in plan.tables])
        slopes = np.array([slope for slope, _ in rows]).reshape(len(rows), len(now))
        lower, upper = np.maximum(now - delta, 0.0), np.minimum(now + delta, 1.0)
        room = product(slopes, now - lower) - np.array([value for _, value in rows])
        size, count = len(now), len(rows)
        laws = sparse.block_diag(
            [sparse.kron(sparse.eye(tall), np.ones((1, wide))) for tall, wide in (seat.shape for seat in plan.seats)]
        )
        matrix = sparse.vstack([
            sparse.hstack([laws, sparse.csr_matrix((laws.shape[0], count))]),
            sparse.hstack([sparse.csr_matrix(np.where(np.abs(slopes) < SMALL, 0.0, slopes)), -sparse.eye(count)]),
            sparse.hstack([sparse.eye(size), sparse.csr_matrix((size, count))]),
        ])  # fmt: skip
        sums = 1.0 - laws @ lower
        program = LinearProgram(
            np.concatenate([plan.costs(), np.full(count, cost)]),
            matrix,
            np.concatenate([sums, np.full(count + size, -np.inf)]),
            np.concatenate([sums, room, upper - lower]),
        )
        x = next(answers(program, "simplex")).x
        return plan if x is None else plan.moved(lower + x[:size])


def designed(problem: MultiLTE, reserve: float, progress: Progress) -> Iterator[SeatedPlan]:
    """Better and better plans; what is left to repair of the last one is little."""
    crowds = crowds_of(problem)
    pairs = zip(problem.parties, crowds, strict=True)
    seats = tuple(seat_of(population, crowd) for population, crowd in pairs)
    noise = min(0.1, exp(-float(problem.epsilon)))
    plan = SeatedPlan(seats, tuple(_mostly_true(seat, noise) for seat in seats), 1 if problem.objective == "mae" else 2)
    every = [list(range(len(seat.total))) for seat in seats]
    grid = [
        sorted({round(k * (len(own) - 1) / (NODES - 1)) for k in range(NODES)} | {max(0, len(own) - 2)})
        for own in every
    ]
    search = _Search(exp(float(problem.epsilon) * reserve), grid, {})
    cost, delta = COST, FIRST
    yield plan
    for number in range(ROUNDS):
        for step, better in enumerate(search.descend(plan, cost, delta), start=1):
            progress(f"all tables move together: round {number + 1}, step {step}, error {better.error:.4f}")
            yield (plan := better)
        progress(f"looking at all products of vertices, error {plan.error:.4f}")
        found = plan.worst(every)
        worse = [cut for cut, quotient in found.items() if quotient > search.bound * (1 + CLOSE)]
        if not worse:
            return
        for i, own in enumerate(search.nodes):
            search.nodes[i] = sorted({*own, *(cut.high[i] for cut in worse)})
        search.remember(found)
        cost, delta = 4 * cost, 0.05


def _mostly_true(seat: Seat, noise: float) -> Array:
    """The input, as near as it can be reported, but for a chance of `noise` anything."""
    wide = seat.shape[1]
    truth = np.clip(np.arange(seat.inputs[0], seat.inputs[1] + 1), *seat.outputs) - seat.outputs[0]
    return np.asarray((1 - noise) * np.eye(wide)[truth] + noise / wide)


def rounded(plan: SeatedPlan, problem: MultiLTE, bits: int) -> list[NoiseMatrix]:
    """The tables as integers over `2^bits`."""
    matrices = []
    for seat, table, population in zip(plan.seats, plan.tables, problem.parties, strict=True):
        matrices.append(rounded_table(seat.inputs, seat.outputs, table, bits, population.last))
    return matrices
