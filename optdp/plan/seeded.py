"""Plans with a common secret word: each party applies the map that the word chooses.

A column is one map for every party, `g_i: inputs -> reports`. With weights `lambda_c` on the columns

    minimise    sum over c of lambda_c E |sum over i of g_i^c(x_i) - f_i x_i|           (or its square)
    subject to  sum over c of lambda_c = 1
                sum over c of lambda_c (Pr_c[S|w] - e^eps Pr_c[S|w+1]) <= 0, and the reverse
                                            every world, party, kind of person, step w -> w + 1 and sum S

is a linear program, for both the law of the sum given any secret and the error are mixtures. Columns are generated.
With prices `y` of the rows a column's reduced cost is `E[|S - T| + sum over i of theta_i(x_i, S)]`, where `theta_i`
collects the prices of the rows about party `i`. Given the maps of the others that falls apart into the inputs of one
party: its best map takes for each input the cheapest report. Parties respond in turn, from many starts, until nobody
gains. If all tuples of maps are few, all are columns and the optimum is exact.

**Constant columns** report one sum whatever the data. They are private, so that there is a plan from the start; they
bound the prices; and they repair what a solver leaves: if `Pr[S|w]` exceeds `e^eps Pr[S|w+1]` by `v`, then a weight of
`v / (e^eps - 1)` on the constant `S` makes it right, and harms no other sum. So the repair is computed in balls from
the integer weights, once, and holds whatever the solver did.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from itertools import product as product_of
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy import sparse

from optdp.errors import SolverError
from optdp.mechanism.seeded_maps import SeededMaps, seeded_tables
from optdp.numbers.exact import ball, ceil_scaled, precision
from optdp.numbers.ordered import Array, exp, total
from optdp.plan.parties import Party, parties_of, width
from optdp.plan.problem import MultiLTE
from optdp.plan.seeded_certify import excess, mixtures
from optdp.programs.backends import chosen
from optdp.programs.growing import solved
from optdp.programs.highs import add_columns, model_of, new_highs
from optdp.programs.program import LinearProgram
from optdp.work import Progress, announce, certifying, check

BITS = 62
"""The common word has so many bits: one word of every sampler."""
STARTS = 24
"""Tuples of maps from which the parties respond to each other in one round; half of them from the best columns."""
SWEEPS, ROUNDS = 12, 400
GAP, STALLED, PATIENCE, FIRST = 1e-4, 1e-4, 20, 120
"""Pricing ends if nothing saves more than this share of the error, or if so many rounds gained less than that. The
first gain may take longer: at first one sum has all weight, and a tuple of maps that reaches others is of no use until
more of them balance it there."""
ENUMERATED = 20_000
"""Up to so many tuples of maps are all columns."""
RARE = 1e-7
"""Reports beyond inputs of this probability are not considered: the inputs there are reported as nearer ones."""
MARGIN = 1
SMALLEST, TOLERANCE = 1e-12, 1e-9
RATE = 2e8
"""Products of a pricing round in a second."""
USUAL = 120
"""Rounds that a search takes, about."""
MOST_SUMS, MOST_PARTIES = 1200, 12
FITS = 'Use fewer people or parties, or method = "joint".'

Maps = npt.NDArray[np.int64]


def refusal(problem: MultiLTE) -> str:
    """Why no plan with a common word can be made; empty if one can."""
    sums = sum(abs(f) * width(party) for f, party in zip(problem.f, problem.parties, strict=True))
    if not problem.untold and (len(problem.parties) > MOST_PARTIES or sums > MOST_SUMS):
        return (
            f"there may be {MOST_PARTIES} parties and about {MOST_SUMS:,} likely sums. Found {len(problem.parties)} "
            f"and {sums:,}"
        )
    return problem.untold


def seconds(problem: MultiLTE) -> float:
    """About how long a plan takes."""
    return Search.of(problem).seconds


@dataclass(frozen=True)
class Side:
    """Two laws of one party's input that its reports must not tell apart, in one world."""

    world: int
    party: int
    one: Array
    other: Array
    bound: float

    @cached_property
    def weights(self) -> Array:
        """`Pr[x | w] - e^eps Pr[x | w']`."""
        return self.one - self.bound * self.other


@dataclass
class Search:
    """The program and its columns so far."""

    problem: MultiLTE
    parties: tuple[Party, ...]
    outputs: tuple[tuple[int, int], ...]
    power: int
    columns: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)
    """The maps of each column, as places of outputs."""
    known: set[tuple[tuple[int, ...], ...]] = field(default_factory=set)
    weights: Array = field(default_factory=lambda: np.zeros(0))
    chance: random.Random = field(default_factory=lambda: random.Random(17))

    @staticmethod
    def of(problem: MultiLTE) -> Search:
        parties = tuple(parties_of(problem, [0] * len(problem.parties)))
        power = 1 if problem.objective == "mae" else 2
        return Search(problem, parties, tuple(map(_outputs, parties)), power)

    # ------------------------------------------------------------------ shape

    @cached_property
    def count(self) -> int:
        return len(self.parties)

    @cached_property
    def worlds(self) -> range:
        return range(len(self.parties[0].priors))

    @cached_property
    def widths(self) -> list[int]:
        """How many reports each party has."""
        return [high - low + 1 for low, high in self.outputs]

    @cached_property
    def sums(self) -> int:
        return sum(self.widths) - self.count + 1

    @cached_property
    def targets(self) -> list[npt.NDArray[np.int64]]:
        return [party.targets.astype(np.int64) for party in self.parties]

    @cached_property
    def turning(self) -> bool:
        """Whether all parties are alike: then a column stands for all its rotations, and one party for all."""
        return all(party is self.parties[0] for party in self.parties)

    @cached_property
    def sides(self) -> list[Side]:
        """What the rows compare, one for each direction of each step; each has a row for every sum."""
        found = []
        for i, party in enumerate(self.parties[:1] if self.turning else self.parties):
            for world in self.worlds:
                for laws in party.secrets[world]:
                    for w in range(len(laws) - 1):
                        for one, other in ((laws[w], laws[w + 1]), (laws[w + 1], laws[w])):
                            found.append(Side(world, i, one, other, exp(party.epsilon)))
        return found

    @property
    def seconds(self) -> float:
        """About how long a search takes, by the products of one round of pricing."""
        cells = sum(len(t) * width for t, width in zip(self.targets, self.widths, strict=True))
        products = STARTS * 6 * len(self.worlds) * (cells + self.count**2 * max(self.widths)) * self.sums
        return products * USUAL / RATE

    # ------------------------------------------------------------------ laws of batches of maps

    def _report(self, i: int, maps: Maps, law: Array) -> Array:
        """The law of the report of party `i` under each of the maps."""
        found = np.zeros((len(maps), self.widths[i]))
        lines = np.arange(len(maps))
        for x, chance in enumerate(law):
            found[lines, maps[:, x]] += chance
        return found

    def _error(self, i: int, maps: Maps) -> tuple[Array, int]:
        """The law of `g(x) - f x` under each of the maps, and its smallest value."""
        targets, low = self.targets[i], self.outputs[i][0]
        least = low - int(targets.max())
        found = np.zeros((len(maps), self.widths[i] + int(np.ptp(targets))))
        lines = np.arange(len(maps))
        for x, chance in enumerate(self.parties[i].priors[0]):
            found[lines, maps[:, x] + (low - int(targets[x]) - least)] += chance
        return found, least

    def _price(self, values: npt.NDArray[np.int64]) -> Array:
        return np.abs(values).astype(np.float64) if self.power == 1 else (values * values).astype(np.float64)

    def coefficients(self, maps: Sequence[Maps]) -> tuple[Array, Array]:
        """For each tuple of maps its error, and its entries in the rows of all sides."""
        law, low = self._error(0, maps[0])
        for i in range(1, self.count):
            more, least = self._error(i, maps[i])
            law, low = _added(law, more), low + least
        costs = total(law * self._price(low + np.arange(law.shape[1])), axis=1)
        entries = np.zeros((len(maps[0]), len(self.sides), self.sums))
        for turn in range(self.count if self.turning else 1):
            turned = [maps[(i + turn) % self.count] for i in range(self.count)]
            reports = {
                (world, i): self._report(i, turned[i], self.parties[i].priors[world])
                for world in self.worlds
                for i in range(self.count)
            }
            around: dict[tuple[int, int], Array] = {}
            for k, side in enumerate(self.sides):
                key = (side.world, side.party)
                if key not in around:
                    others = [reports[side.world, j] for j in range(self.count) if j != side.party]
                    around[key] = _all_added(others)
                own = self._report(side.party, turned[side.party], side.weights)
                entries[:, k] += _added(own, around[key])
        return costs, entries / (self.count if self.turning else 1)

    # ------------------------------------------------------------------ pricing

    def _burdens(self, prices: Array) -> list[list[Array]]:
        """For each party and world what a sum costs in prices, for each input and sum."""
        found = [[np.zeros((len(t), self.sums)) for _ in self.worlds] for t in self.targets]
        for side, price in zip(self.sides, prices, strict=True):
            found[side.party][side.world] += side.weights[:, None] * price[None, :]
        if self.turning:
            shared = [burden / self.count for burden in found[0]]
            return [shared] * self.count
        return found

    def _respond(self, i: int, maps: list[Maps], burdens: list[list[Array]]) -> tuple[Maps, Array]:
        """The best maps of party `i` to those of the others, and what the tuples cost then."""
        batch, wide, targets = len(maps[0]), self.widths[i], self.targets[i]
        others = [j for j in range(self.count) if j != i]
        law, low = self._error(others[0], maps[others[0]])
        for j in others[1:]:
            more, least = self._error(j, maps[j])
            law, low = _added(law, more), low + least
        first = self.outputs[i][0] - int(targets.max())
        distances = first + np.arange(wide + int(np.ptp(targets)))
        expected = np.zeros((batch, len(distances)))
        for k in range(law.shape[1]):
            expected += law[:, k : k + 1] * self._price(distances + (low + k))
        costs = np.empty((batch, len(targets), wide))
        for x, chance in enumerate(self.parties[i].priors[0]):
            start = self.outputs[i][0] - int(targets[x]) - first
            costs[:, x] = chance * expected[:, start : start + wide]
        for world in self.worlds:
            reports = {j: self._report(j, maps[j], self.parties[j].priors[world]) for j in others}
            around, burden = _all_added(list(reports.values())), burdens[i][world]
            for y in range(around.shape[1]):
                costs += around[:, y, None, None] * burden[None, :, y : y + wide]
            theirs = np.zeros((batch, wide))
            for j in others:
                reach = self.sums - self.widths[j] + 1
                own = np.zeros((batch, reach))
                for x in range(len(self.targets[j])):
                    own += burdens[j][world][x][maps[j][:, x][:, None] + np.arange(reach)]
                rest = _all_added([reports[k] for k in others if k != j], batch)
                for y in range(rest.shape[1]):
                    theirs += rest[:, y : y + 1] * own[:, y : y + wide]
            costs += self.parties[i].priors[world][None, :, None] * theirs[:, None, :]
        best = costs.argmin(axis=2)
        return best, total(np.take_along_axis(costs, best[:, :, None], 2)[:, :, 0], axis=1)

    def priced(self, prices: Array) -> tuple[list[Maps], Array]:
        """Tuples of maps in which nobody gains by another map, and what they cost."""
        burdens, maps = self._burdens(prices), self._starts()
        last: Array | None = None
        for _ in range(SWEEPS):
            for i in range(self.count):
                check()
                maps[i], costs = self._respond(i, maps, burdens)
            if last is not None and bool(np.all(costs >= last - 1e-12 * np.abs(last))):
                break
            last = costs
        return maps, costs

    def _starts(self) -> list[Maps]:
        """Half of the starts are the heaviest columns, the others steps, rounded inputs, and anything."""
        order = np.argsort(-self.weights, kind="stable")[: STARTS // 2]
        chosen = [self.columns[c] for c in order if self.weights[c] > TOLERANCE]
        while len(chosen) < STARTS:
            chosen.append(tuple(self._start(i) for i in range(self.count)))
        return [np.array([tuples[i] for tuples in chosen], dtype=np.int64) for i in range(self.count)]

    def _start(self, i: int) -> tuple[int, ...]:
        wide, targets, chance = self.widths[i], self.targets[i], self.chance
        kind = chance.randrange(3)
        if kind == 1:
            step = chance.randrange(1, 8) * abs(self.parties[i].factor)
            shift, back = chance.randrange(step), chance.randrange(step)
            found = (targets + shift) // step * step - shift + back - self.outputs[i][0]
            return tuple(np.clip(found, 0, wide - 1).tolist())
        drawn = [chance.randrange(wide) for _ in targets]
        return tuple(sorted(drawn) if kind == 0 else drawn)

    # ------------------------------------------------------------------ columns

    def constants(self) -> list[tuple[int, ...]]:
        """For each sum one report of each party, as places, that add up to it."""
        found = []
        for place in range(self.sums):
            left, reports = place, []
            for wide in self.widths:
                reports.append(min(left, wide - 1))
                left -= reports[-1]
            found.append(tuple(reports))
        return found

    def first(self) -> list[Maps]:
        """The columns to begin with: the constants, and every tuple of maps if there are few."""
        tuples: list[tuple[tuple[int, ...], ...]] = [
            tuple((report,) * len(t) for report, t in zip(reports, self.targets, strict=True))
            for reports in self.constants()
        ]
        if self.few:
            every = [product_of(range(w), repeat=len(t)) for w, t in zip(self.widths, self.targets, strict=True)]
            tuples += product_of(*every)
        return [np.array([maps[i] for maps in tuples], dtype=np.int64) for i in range(self.count)]

    @cached_property
    def few(self) -> bool:
        """Whether all tuples of maps are few."""
        sizes = (len(t) * math.log(w) for w, t in zip(self.widths, self.targets, strict=True))
        return sum(sizes) <= math.log(ENUMERATED) + 1e-9

    def fresh(self, maps: Sequence[Maps]) -> list[int]:
        """The tuples that are no columns yet, nor rotations of one; they become columns."""
        found = []
        for k, tuples in enumerate(zip(*(own.tolist() for own in maps), strict=True)):
            column = tuple(tuple(own) for own in tuples)
            turns = [column[i:] + column[:i] for i in range(self.count)] if self.turning else [column]
            if min(turns) not in self.known:
                self.known.add(min(turns))
                self.columns.append(column)
                found.append(k)
        return found


def _outputs(party: Party) -> tuple[int, int]:
    """The reports that are considered: the targets of likely inputs and a little beyond."""
    prior = party.priors[0]
    for other in party.priors[1:]:
        prior = np.maximum(prior, other)
    likely = np.flatnonzero(prior > RARE)
    ends = sorted((party.targets[likely[0]], party.targets[likely[-1]]))
    return int(ends[0]) - MARGIN, int(ends[1]) + MARGIN


def _added(one: Array, other: Array) -> Array:
    """The laws of sums, line by line."""
    if one.shape[1] < other.shape[1]:
        one, other = other, one
    found = np.zeros((len(one), one.shape[1] + other.shape[1] - 1))
    for k in range(other.shape[1]):
        found[:, k : k + one.shape[1]] += other[:, k : k + 1] * one
    return found


def _all_added(laws: Sequence[Array], batch: int = 0) -> Array:
    if not laws:
        return np.ones((batch, 1))
    found = laws[0]
    for law in laws[1:]:
        found = _added(found, law)
    return found


# ---------------------------------------------------------------------- the program


class MapsProgram:
    """The linear program in HiGHS, which columns are added to."""

    def __init__(self, search: Search) -> None:
        self.search, self.optimal = search, False
        self.rows = len(search.sides) * search.sums
        self.highs = new_highs(
            simplex_strategy=4,  # primal: columns are added
            small_matrix_value=SMALLEST,
            primal_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE,
        )
        lower, upper = np.append(np.full(self.rows, -np.inf), 1.0), np.append(np.zeros(self.rows), 1.0)
        none = sparse.csc_array((self.rows + 1, 0))
        self.highs.passModel(model_of(LinearProgram(np.zeros(0), none, lower, upper)))

    def add(self, maps: Sequence[Maps]) -> int:
        """Columns for the tuples that are none yet."""
        fresh = self.search.fresh(maps)
        if not fresh:
            return 0
        costs, entries = self.search.coefficients([own[fresh] for own in maps])
        values = np.column_stack([entries.reshape(len(fresh), self.rows), np.ones(len(fresh))])
        places = np.broadcast_to(np.arange(self.rows + 1), values.shape)
        add_columns(self.highs, costs, places, values, np.abs(values) > SMALLEST)
        return len(fresh)

    def solve(self) -> tuple[float, Array, float]:
        """The error, the prices of the rows, and that of the sum of all weights."""
        answer = solved(self.highs)
        if answer.status != "optimal" and chosen.get().own:
            self.highs.clearSolver()
            answer = solved(self.highs)
        usable = answer.status == "optimal" or not chosen.get().own
        if not usable or answer.x is None or answer.duals is None:
            raise SolverError(f"The program of a plan with a common word must be solved. Found {answer.said!r}.")
        self.optimal = answer.status == "optimal"
        self.search.weights = np.maximum(answer.x, 0.0)
        prices = np.maximum(-answer.duals[:-1], 0.0).reshape(len(self.search.sides), self.search.sums)
        return answer.objective, prices, float(answer.duals[-1])


def design(problem: MultiLTE, progress: Progress) -> tuple[tuple[SeededMaps, ...], str]:
    """The tables of a plan with a common word, and the status; what it claims is still to be certified.

    Interrupted, it gives the best so far.
    """
    search = Search.of(problem)
    announce(search.seconds, "A plan with a common word", FITS, progress)
    program, status = MapsProgram(search), "local optimum"
    try:
        program.add(search.first())
        status = _generate(search, program, progress)
    except KeyboardInterrupt:
        status = "interrupted"
    progress("rounding and repairing")
    with certifying():
        return repaired(search), status


def _generate(search: Search, program: MapsProgram, progress: Progress) -> str:
    errors: list[float] = []
    quiet = 0
    for number in range(ROUNDS):
        check()
        error, prices, price = program.solve()
        errors.append(error)
        if search.few:
            return "optimal" if program.optimal else "feasible"
        progress(f"maps for a common word: round {number + 1}, error {error:.4f}")
        maps, costs = search.priced(prices)
        saving = costs - price
        paying = saving < -TOLERANCE
        added = program.add([own[paying] for own in maps]) if paying.any() else 0
        quiet = quiet + 1 if not added or -float(saving.min()) < GAP * error else 0
        patience = PATIENCE if errors[0] - error > STALLED * error else FIRST
        stalled = len(errors) > patience and errors[-1 - patience] - error < STALLED * error
        if quiet >= 3 or stalled:
            return "local optimum"
    return "work limit"


# ---------------------------------------------------------------------- integers


def repaired(search: Search) -> tuple[SeededMaps, ...]:
    """The weights as integers over 2^62, with as much weight on constant sums as makes every step private."""
    inputs = [party.inputs for party in search.parties]
    lasts = [population.last for population in search.problem.parties]
    chosen = [int(c) for c in np.argsort(-search.weights, kind="stable") if search.weights[c] > SMALLEST]
    columns = [(float(search.weights[c]), turned) for c in chosen for turned in _turns(search, search.columns[c])]
    constants = [tuple((report,) * len(t) for report, t in zip(reports, search.targets, strict=True))
                 for reports in search.constants()]  # fmt: skip
    whole, spare = 1 << BITS, 1 << (BITS - 50)
    mass = math.fsum(weight for weight, _ in columns)
    for _ in range(60):
        left = whole - spare
        listed = [(int(weight / mass * (left / whole) * whole), maps) for weight, maps in columns]
        listed = [(weight, maps) for weight, maps in listed if weight]
        repairs = _repairs(search, inputs, lasts, listed, constants)
        rest = whole - sum(weight for weight, _ in listed) - sum(repairs)
        if rest >= 0:
            repairs[_middle(search)] += rest  # a constant is private, and the middle one costs least
            listed += [(weight, maps) for weight, maps in zip(repairs, constants, strict=True) if weight]
            return seeded_tables(inputs, lasts, _shown(search, listed), whole)
        spare = min(2 * spare - rest, whole)
    raise SolverError("A plan with a common word could not be repaired.")


def _turns(search: Search, column: tuple[tuple[int, ...], ...]) -> list[tuple[tuple[int, ...], ...]]:
    """A column, or all its rotations where parties are alike; each has the weight of the column."""
    return [column[i:] + column[:i] for i in range(search.count)] if search.turning else [column]


def _shown(search: Search, listed: Sequence[tuple[int, Any]]) -> list[tuple[int, tuple[tuple[int, ...], ...]]]:
    """Columns of reports instead of places; equal ones together."""
    merged: dict[tuple[tuple[int, ...], ...], int] = {}
    for weight, maps in listed:
        own = _reports(search, maps)
        merged[own] = merged.get(own, 0) + weight
    return [(weight, maps) for maps, weight in merged.items()]


def _reports(search: Search, maps: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(place + low for place in own) for own, (low, _) in zip(maps, search.outputs, strict=True))


def _middle(search: Search) -> int:
    """The place of the sum that costs least without data, about: that of the means."""
    means = [total(party.priors[0] * party.targets) for party in search.parties]
    place = round(float(sum(means))) - sum(low for low, _ in search.outputs)
    return min(max(place, 0), search.sums - 1)


def _repairs(
    search: Search, inputs: Sequence[tuple[int, int]], lasts: Sequence[int], listed: Sequence[Any],
    constants: Sequence[Any],
) -> list[int]:  # fmt: skip
    """For each sum the weight that a constant needs, so that all steps of all persons are private at that sum."""
    needed = [0] * search.sums
    if not listed:
        return needed
    problem = search.problem
    left = (1 << BITS) - sum(weight for weight, _ in listed)
    ends = [(1, constants[0]), (left - 1, constants[-1])]  # so that the maps reach every sum; their weight is left out
    shown = [(weight, _reports(search, maps)) for weight, maps in (*listed, *ends)]
    tables = seeded_tables(inputs, lasts, shown, 1 << BITS)
    weights = [weight for weight, _ in listed] + [0, 0]
    with precision(256):
        for world in problem.worlds:
            for (party, _), laws in mixtures(world, tables, weights).items():
                epsilon = ball(problem.step_epsilon(party)) * (1 - arb(2) ** -80)
                bound = epsilon.exp()
                for one, other in pairwise(laws):
                    for place in range(search.sums):
                        a, b = one.law[place], other.law[place]
                        over = [excess(a, b, bound), excess(b, a, bound)]
                        for value in over:
                            if value > 0:
                                needed[place] = max(needed[place], ceil_scaled(value / (bound - 1), 0) + 1)
    return needed
