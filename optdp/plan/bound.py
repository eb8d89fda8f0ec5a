"""A lower bound for every plan: the program of `bound_proof`, solved for its prices.

With `q(x, S) = w(x) r(x, S)` for some weights, over a core of likely states and a window of outputs,

    minimise    sum of P(x)/w(x) |S - t(x)|^p q(x, S)  +  sum of c(x) (up(x) + down(x))
    subject to  sum over S of q(x, S) = w(x)                                               u(x), free
                sum over x of a(x_b) prod P(x_l) / w(x) q(x, S) <= 0     each rule, each S       y(S) >= 0
                sum over S of (S - t(x)) P(x)/w(x) q(x, S) + up(x) - down(x) = P(x) sum of a_b(x_b)    n(x)
                q, up, down >= 0, a_b free.

`up` and `down` move the mean at a cost, which stands for outputs beyond the window: so `|n(x)| <= c(x)`, with `c = 1`
for absolute errors and, for squares, twice the distance to the edge of the window. Prices need not be exact. An
interior point method without a crossover finds them in seconds, where the simplex method takes minutes, and whatever it
gives is proved, or not, by integers.

**Blocks.** The finer they are, the larger is the bound and the program. Parties are merged, those with alike people
first and then the smallest ones, until the program is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sparse
from flint import fmpz_poly

from optdp.errors import OptdpError
from optdp.numbers.pmf import ExactPmf
from optdp.plan.bound_proof import (
    BITS,
    MOST_NUMBERS,
    MOST_STATES,
    UNIT,
    Block,
    BlockPrices,
    PlanPrices,
    additive,
    made,
    number_of_rules,
    number_of_states,
    out_of_reach,
    proved,
)
from optdp.plan.certificate import bounding
from optdp.plan.problem import MultiLTE, each_once
from optdp.programs.backends import chosen
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.highs import model_of, new_highs, run
from optdp.programs.program import Array, LinearProgram
from optdp.single.bound import Prices
from optdp.single.solve import solve_single
from optdp.work import Progress, announce

RARE = 1e-9
"""The mass of the states on each side of a core, and of sums on each side of the window of outputs."""
FAINT = 1e-7
"""States of a block that are rarer have no price of the mean."""
MOST_ENTRIES = 1_500_000
"""The most entries of the program's matrix: some ten seconds."""
MOST_BLOCKS, SPREADS = 4, 6.0
"""The most blocks; how many standard deviations a core is about wide, on each side."""
MARGINS, SMALL, MOST_MARGIN = (10, 6), 300_000, 60
"""How far beyond the likely sums outputs have prices, in multiples of the sensitivity over epsilon: in a program of up
to so many entries, and in a larger one; and at most."""
MOST_RULES = 24
"""Of a party with more rules only the two of its mean are used."""
SECONDS = 6e-6
"""What an entry takes."""
SPARE = Fraction(1, 10**12)
"""So much less than is proved is claimed: another checker rounds elsewhere."""
SHRINK = 1 - 1e-6
"""Prices of the mean stay so far below 1, for what rounding does to them."""


@dataclass(frozen=True)
class BlockChoice:
    """A choice of blocks: their parties and rules."""

    parties: tuple[tuple[int, ...], ...]
    rules: tuple[str, ...]
    margin: int
    """How far beyond the likely sums outputs have prices."""
    entries: float
    """About how many the program's matrix has."""

    @property
    def seconds(self) -> float:
        return SECONDS * self.entries


Found = tuple[Fraction, PlanPrices | Prices]
"""A proved bound, and the prices that prove it."""


def plan_bound(problem: MultiLTE, progress: Progress) -> Found | str:
    """The largest proved lower bound for every plan with the prices that prove it, or why there is none.

    One entity with everybody's data is looked at where all people are alike and there are no blocks to speak of, or
    where a plan must also hold in other worlds or against observers with doubts, which blocks leave out.
    """
    reason = out_of_reach(problem)
    layout = None if reason else best_layout(problem)
    found: list[Found] = []
    if layout is None or len(layout.parties) == 1 or problem.also or problem.watched:
        found += _one_entity(problem, progress)
    if layout is not None and (len(layout.parties) > 1 or not found):
        announce(layout.seconds, "A lower bound for every plan", "", progress)
        progress(f"a bound for every plan: {len(layout.parties)} blocks of parties")
        prices = priced(problem, layout)
        if prices is None:
            reason = "the solver found no prices"
        else:
            found.append((max(Fraction(0), proved(problem, prices) - SPARE), prices))
    return max(found, key=lambda one: one[0]) if found else reason or "its program would be too large"


def _one_entity(problem: MultiLTE, progress: Progress) -> Iterator[Found]:
    """What one entity with all data could do at best, if that bounds every plan."""
    whole = bounding(problem)
    if whole is None:
        return
    progress("a bound: one entity with everybody's data")
    try:
        found = solve_single(whole)
    except OptdpError:
        return
    if found.lower_bound is not None and isinstance(found.prices, Prices):
        yield found.lower_bound, found.prices
    elif found.status == "interrupted":
        raise KeyboardInterrupt


# ---------------------------------------------------------------------- blocks


def best_layout(problem: MultiLTE) -> BlockChoice | None:
    """The finest blocks whose program is small enough."""
    return next((layout for layout in layouts(problem) if layout.entries <= MOST_ENTRIES), None)


def layouts(problem: MultiLTE) -> Iterator[BlockChoice]:
    """From many blocks to one for all."""
    everybody = tuple(range(len(problem.parties)))
    spreads = each_once(map(id, problem.parties), lambda i: _variance(problem, i))
    groups = _first(problem) if additive(problem) else [everybody]
    while len(groups) > 1:
        yield _layout(problem, groups, spreads)
        groups = _merged(problem, groups)
    yield _layout(problem, [everybody], spreads)


def _first(problem: MultiLTE) -> list[tuple[int, ...]]:
    """A block for each party; if there are many, slices of about equal size of parties that are alike."""
    count = len(problem.parties)
    if count <= MOST_BLOCKS:
        return [(i,) for i in range(count)]
    order = sorted(range(count), key=lambda i: (repr(_kind(problem, (i,))), number_of_states(problem, (i,)), i))
    whole = number_of_states(problem, order)
    slices: list[list[int]] = [[] for _ in range(MOST_BLOCKS)]
    before = 0
    for i in order:
        slices[min(MOST_BLOCKS * before // whole, MOST_BLOCKS - 1)].append(i)
        before += number_of_states(problem, (i, i)) // 2
    return [tuple(sorted(own)) for own in slices if own]


def _layout(problem: MultiLTE, groups: Sequence[tuple[int, ...]], spreads: Sequence[float]) -> BlockChoice:
    kinds, states, count = [], 1.0, 0
    for group in groups:
        everybody = len(group) == 1 and number_of_rules(problem, group[0]) <= MOST_RULES
        kinds.append("people" if everybody else "mean")
        count += number_of_rules(problem, group[0]) if everybody else 2
        size, single = number_of_states(problem, group), len(group) == 1
        near = SPREADS * math.sqrt(sum((1 if single else problem.f[i] ** 2) * spreads[i] for i in group))
        states *= math.inf if size > MOST_STATES else min(size, 2 * near + 3)
    whole = math.sqrt(sum(f * f * spread for f, spread in zip(problem.f, spreads, strict=True)))
    width = min(2 * SPREADS * whole, number_of_states(problem, range(len(problem.parties))))
    if len(groups) > 1 and states > MOST_NUMBERS / 2:
        states = math.inf  # too many numbers for a file
    wide, narrow = (min(math.ceil(far * problem.sensitivity / problem.epsilon), MOST_MARGIN) for far in MARGINS)
    margin = wide if states * (width + 2 * wide) * (2 + count) <= SMALL else narrow
    return BlockChoice(tuple(groups), tuple(kinds), margin, states * (width + 2 * margin) * (2 + count))


def _variance(problem: MultiLTE, party: int) -> float:
    total = problem.parties[party].total
    assert isinstance(total, ExactPmf)
    first = sum(x * weight for x, weight in enumerate(total.weights))
    second = sum(x * x * weight for x, weight in enumerate(total.weights))
    return float(Fraction(second, total.denominator) - Fraction(first, total.denominator) ** 2)


def _kind(problem: MultiLTE, group: Sequence[int]) -> object:
    """What makes blocks alike, so that nothing is lost by merging them; of people who differ, the block itself."""
    kinds = {(problem.f[i], law) for i in group for law, _ in problem.parties[i].laws}
    if len(kinds) == 1 and all(problem.parties[i].largest == 1 and problem.parties[i].laws for i in group):
        return next(iter(kinds))
    return tuple(group)


def _merged(problem: MultiLTE, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """With two blocks made one: alike ones if there are any, the smallest first."""
    listed = sorted(groups, key=lambda group: (number_of_states(problem, group), group))
    pairs = list(combinations(listed, 2))
    alike = [pair for pair in pairs if _kind(problem, pair[0]) == _kind(problem, pair[1])]
    one, other = (alike or pairs)[0]
    return sorted([group for group in groups if group not in (one, other)] + [tuple(sorted(one + other))])


# ---------------------------------------------------------------------- the program


@dataclass(frozen=True)
class LikelyStates:
    """A block's likely states."""

    block: Block
    people: bool
    first: int
    law: Array
    size: Array
    """The largest of each state's chance and its part in a rule: impossible states can matter to a rule."""
    rules: Array
    """Of each state, divided by its size; one line for each rule."""
    values: Array

    @staticmethod
    def of(block: Block, people: bool) -> LikelyStates:
        shares = []
        for rule in block.rules:
            whole = max(1, sum(map(abs, rule)))
            shares.append([(abs(a) << BITS) // whole for a in rule])
        sizes = [max(own) for own in zip(block.law, *shares, strict=True)]
        first, last = _likely(sizes)
        kept = slice(first, last + 1)
        law, *rules = (np.array([float(a) for a in line[kept]]) * 2.0**-BITS for line in (block.law, *block.rules))
        size = np.array([float(a) for a in sizes[kept]]) * 2.0**-BITS
        values = np.array([float(t) for t in block.values[kept]])
        return LikelyStates(block, people, first, law, size, np.array(rules) / np.where(size > 0, size, 1.0), values)


def _likely(law: Sequence[int]) -> tuple[int, int]:
    """The first and the last place of a law without its rare ends."""
    most = int(RARE * 2**BITS)

    def beyond(weights: Sequence[int]) -> int:
        mass, place = 0, 0
        while mass + weights[place] <= most:
            mass, place = mass + weights[place], place + 1
        return place

    return beyond(law), len(law) - 1 - beyond(law[::-1])


def priced(problem: MultiLTE, layout: BlockChoice) -> PlanPrices | None:
    """Prices for these blocks; None if the solver finds none."""
    program = bound_program(problem, layout)
    duals = _duals(program.to_program())
    if duals is None:
        return None
    means = program.means(duals) if len(program.cores) > 1 else ""
    return PlanPrices(tuple(program.lists(duals)), program.outputs, means)


def bound_program(problem: MultiLTE, layout: BlockChoice) -> BoundLP:
    """The program of a layout."""
    cores = [
        LikelyStates.of(made(problem, group, rules), rules == "people")
        for group, rules in zip(layout.parties, layout.rules, strict=True)
    ]
    return BoundLP(cores, _window(cores, layout.margin), 1 if problem.objective == "mae" else 2)


def _window(cores: Sequence[LikelyStates], margin: int) -> tuple[int, int]:
    """The likely values of the true sum, and more on each side: outputs without prices should be expensive."""
    lowest, law = 0, fmpz_poly([1])
    for core in cores:
        size, step = len(core.law), core.block.values.step
        weights = core.block.law[core.first : core.first + size]
        spread = [0] * (abs(step) * (size - 1) + 1)
        spread[:: abs(step)] = weights if step > 0 else weights[::-1]
        lowest += min(core.block.values[core.first], core.block.values[core.first + size - 1])
        law *= fmpz_poly(spread)
    first, last = _likely([int(weight) >> BITS * (len(cores) - 1) for weight in law.coeffs()])
    return lowest + first - margin, lowest + last + margin


class BoundLP:
    """The program over the cores, as arrays: states run over all tuples, the last block's the fastest."""

    def __init__(self, cores: list[LikelyStates], outputs: tuple[int, int], power: int) -> None:
        self.cores, self.outputs, self.power = cores, outputs, power
        self.shape = tuple(len(core.law) for core in cores)
        grids = np.indices(self.shape).reshape(len(cores), -1)
        self.chance = np.ones(grids.shape[1])
        self.weight = np.ones(grids.shape[1])
        self.target = np.zeros(grids.shape[1])
        for core, place in zip(cores, grids, strict=True):
            self.chance *= core.law[place]
            self.weight *= core.size[place]
            self.target += core.values[place]
        self.kept = np.flatnonzero(self.weight > 0)
        self.places = grids[:, self.kept]

    @property
    def size(self) -> int:
        return self.outputs[1] - self.outputs[0] + 1

    def to_program(self) -> LinearProgram:
        """The arrays; rows: masses, means if there are several blocks, the rules."""
        states, size, wide = len(self.kept), self.size, self.size + 2
        chance, weight, target = self.chance[self.kept], self.weight[self.kept], self.target[self.kept]
        outputs = np.arange(self.outputs[0] - 1, self.outputs[1] + 2, dtype=float)
        far = (outputs[None, :] - target[:, None]).ravel()
        columns = np.arange(states * wide)
        x, s = columns // wide, columns % wide
        means = states if len(self.cores) > 1 else 0
        rows, places, values = [x], [columns], [np.ones(len(columns))]
        share = (chance / weight)[x]
        cost, lower = [share * (np.abs(far) if self.power == 1 else far * far)], [np.zeros(len(columns))]
        if means:
            rows, places, values = [*rows, states + x], [*places, columns], [*values, share * far]
        inner = np.flatnonzero((s > 0) & (s < wide - 1))  # beyond the window nothing has a price
        base = states + means
        for b, (core, place) in enumerate(zip(self.cores, self.places, strict=True)):
            beside = np.ones(states)
            for other, at in zip(self.cores[:b] + self.cores[b + 1 :], np.delete(self.places, b, 0), strict=True):
                beside *= other.law[at] / other.size[at]
            for rule in core.rules:
                rows.append(base + s[inner] - 1)
                places.append(inner)
                values.append((rule[place] * beside)[x[inner]])
                base += size
        count = len(columns)
        if means:
            every = np.arange(states)
            for core, place in zip(self.cores, self.places, strict=True):  # the free functions a_b
                rows.append(states + every)
                places.append(count + place)
                values.append(-chance / np.where(core.law[place] > 0, core.law[place], 1.0))
                cost.append(np.zeros(len(core.law)))
                lower.append(np.full(len(core.law), -np.inf))
                count += len(core.law)
            for sign, edge in ((1.0, outputs[-1]), (-1.0, outputs[0])):
                rows.append(states + every)
                places.append(count + every)
                values.append(np.full(states, sign))
                cost.append(np.ones(states) if self.power == 1 else np.maximum(2 * sign * (edge - target), 1.0))
                lower.append(np.zeros(states))
                count += states
        matrix = sparse.coo_matrix(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(places))), shape=(base, count)
        ).tocsc()
        upper = np.concatenate([weight, np.zeros(base - states)])
        under = np.concatenate([weight, np.zeros(means), np.full(base - states - means, -np.inf)])
        return LinearProgram(np.concatenate(cost), matrix, under, upper, np.concatenate(lower))

    def to_cvxpy(self) -> Any:
        """The specification: the program of this module's docstring."""
        cp = import_cvxpy()
        chance, weight, target = self.chance[self.kept], self.weight[self.kept], self.target[self.kept]
        outputs = np.arange(self.outputs[0] - 1, self.outputs[1] + 2, dtype=float)
        far, share = outputs[None, :] - target[:, None], (chance / weight)[:, None]
        q = cp.Variable(far.shape, nonneg=True, name="q")
        rules = [cp.sum(q, axis=1) == weight]
        for b, (core, place) in enumerate(zip(self.cores, self.places, strict=True)):
            others = [(c, at) for k, (c, at) in enumerate(zip(self.cores, self.places, strict=True)) if k != b]
            beside = np.prod([c.law[at] / c.size[at] for c, at in others], axis=0) if others else np.ones(len(weight))
            rules += [(rule[place] * beside) @ q[:, 1:-1] <= 0 for rule in core.rules]
        loss = cp.sum(cp.multiply(share * np.abs(far) ** self.power, q))
        if len(self.cores) > 1:
            up, down = cp.Variable(len(weight), nonneg=True), cp.Variable(len(weight), nonneg=True)
            free = [cp.Variable(len(core.law)) for core in self.cores]
            means = [
                cp.multiply(chance / np.where(core.law[place] > 0, core.law[place], 1.0), a[place])
                for core, place, a in zip(self.cores, self.places, free, strict=True)
            ]
            rules.append(cp.sum(cp.multiply(share * far, q), axis=1) + up - down == sum(means))
            ends = (outputs[-1], 1.0), (outputs[0], -1.0)
            dear = [np.ones(len(weight)) if self.power == 1 else np.maximum(2 * sign * (edge - target), 1.0)
                    for edge, sign in ends]  # fmt: skip
            loss += dear[0] @ up + dear[1] @ down
        return cp.Problem(cp.Minimize(loss), rules)

    def lists(self, duals: Array) -> Iterator[BlockPrices]:
        """The prices of the rules, as a file has them."""
        base, size = len(self.kept) * (2 if len(self.cores) > 1 else 1), self.size
        for core in self.cores:
            lines = []
            for _ in core.rules:
                prices = np.maximum(-duals[base : base + size], 0.0)
                lines.append(" ".join(_short(price) for price in prices) if prices.any() else "")
                base += size
            kind = "people" if core.people else "mean"
            last = core.first + len(core.law) - 1
            yield BlockPrices(core.block.parties, kind, (core.first, last), tuple(lines))

    def means(self, duals: Array) -> str:
        """The prices of the mean, as a file has them; so small that none is above 1 when it is centred."""
        states = len(self.kept)
        numbers = np.zeros(len(self.chance))
        numbers[self.kept] = -duals[states : 2 * states]
        grids = np.indices(self.shape).reshape(len(self.shape), -1)
        for core, place in zip(self.cores, grids, strict=True):
            numbers[core.law[place] < FAINT] = 0  # where a solver's prices are noise
        numbers = numbers.reshape(self.shape)
        if self.power == 1:
            numbers = numbers.clip(-1, 1)
        law = self.chance.reshape(self.shape)
        centred = numbers.copy()
        axes = range(len(self.shape))
        for b in axes:
            others = tuple(axis for axis in axes if axis != b)
            mass = law.sum(axis=others)
            given = (law * numbers).sum(axis=others) / np.where(mass > 0, mass, 1.0)
            centred -= given.reshape([-1 if axis == b else 1 for axis in axes])
        centred += (len(self.shape) - 1) * (law * numbers).sum() / law.sum()
        largest = np.abs(centred[law > 0]).max()
        if self.power == 1:
            centred *= min(1.0, SHRINK / largest) if largest > 0 else 1.0
        return " ".join(str(round(float(number) * (2**UNIT - 8))) for number in centred.ravel())


def _short(price: float) -> str:
    return f"{price:.7g}" if price >= 1e-9 else "0"


def _duals(program: LinearProgram) -> Array | None:
    """The prices of the backend that is chosen; else those of an interior point method, or, if it ends early and the
    program is small, of the simplex method."""
    who = chosen.get()
    if not who.own:
        answer = who.solve(program)
        if answer.duals is not None:
            return answer.duals
    highs = new_highs(solver="ipm", run_crossover="off")
    highs.passModel(model_of(program))
    run(highs)
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal and program.matrix.nnz <= SMALL:
        highs = new_highs(solver="simplex")
        highs.passModel(model_of(program))
        run(highs)
    duals = np.array(highs.getSolution().row_dual)
    return duals if len(duals) == len(program.lower) and np.isfinite(duals).all() else None
