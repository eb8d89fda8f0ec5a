"""The error of a joint plan, in balls: what the aggregate of finite tables costs.

An entity's error `s - f x` has a finite law, a polynomial; the error of the aggregate has the product of all. Of very
many people the inputs far from the table are taken at its edge, which is served by the same row, and what that changes
is bounded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations, groupby
from typing import TypeVar

import flint
from flint import arb, arb_poly

from optdp.errors import ArtifactError, ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import ball, log_upper, precision, upper_fraction
from optdp.numbers.pmf import Pmf
from optdp.people.population import Population
from optdp.plan.by_total import worst_sum
from optdp.plan.certificate import PlanCertificate, largest
from optdp.plan.problem import MultiLTE, each_once
from optdp.plan.products import worst_products
from optdp.single.certify import observed, row_ratios
from optdp.single.laws import Shape, larger_quotient, restrict
from optdp.work.account import power_steps, product_steps, spend

Part = TypeVar("Part")
EXPLICIT = 20_000
"""Inputs without a row whose errors are added one by one; the rest is bounded together."""


@dataclass(frozen=True)
class FiniteError:
    """The law of `s - f x` as a polynomial from `low`, but for rare inputs, which are taken at the nearest row."""

    law: arb_poly
    low: int
    beyond_mean: arb
    """At most this is added to the mean absolute error by the inputs that are taken elsewhere."""
    beyond_square: arb

    def plus(self, other: FiniteError) -> FiniteError:
        spend(product_steps(len(self.law), len(other.law)), "the error of the aggregate")
        square = (self.beyond_square.sqrt() + other.beyond_square.sqrt()) ** 2
        return FiniteError(self.law * other.law, self.low + other.low, self.beyond_mean + other.beyond_mean, square)

    def times(self, count: int) -> FiniteError:
        """The error of so many of these."""
        if count == 1:
            return self
        spend(power_steps(len(self.law), count), "the error of the aggregate")
        beyond = (count * self.beyond_mean, count**2 * self.beyond_square)
        return FiniteError(self.law**count, count * self.low, *beyond)

    def mean(self, power: int) -> arb:
        spend(0.8 * len(self.law), "the error of the aggregate")
        values = self.law.coeffs()
        return sum((value * abs(self.low + k) ** power for k, value in enumerate(values)), arb(0))


def error_laws(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], populations: Sequence[Population]
) -> list[FiniteError]:
    """The error of each party; those of parties that are alike are one object."""
    keys = [
        (factor, str(population.spec), table.inputs, table.rows, table.denominator)
        for factor, population, table in zip(problem.f, populations, tables, strict=True)
    ]
    return each_once(keys, lambda i: _error_law(problem.f[i], populations[i].total, tables[i]))


def _folded(parts: Sequence[Part], power: Callable[[Part, int], Part], plus: Callable[[Part, Part], Part]) -> Part:
    """All parts together: powers of those that are one object, then neighbours first, as like lengths are fastest."""
    counts = Counter(map(id, parts))
    queue = deque(power(part, counts[id(part)]) for part in {id(part): part for part in parts}.values())
    while len(queue) > 1:
        queue.append(plus(queue.popleft(), queue.popleft()))
    return queue[0]


def aggregate_errors(laws: Sequence[FiniteError]) -> tuple[Fraction, Fraction]:
    total = _folded(laws, FiniteError.times, FiniteError.plus)
    mae = upper_fraction(total.mean(1) + total.beyond_mean)
    root = total.mean(2).sqrt() + total.beyond_square.sqrt()
    return mae, upper_fraction(total.mean(2) if total.beyond_square == 0 else root * root)


def _error_law(factor: int, law: Pmf, table: NoiseMatrix) -> FiniteError:
    (first, last), (low, high) = table.inputs, table.outputs
    begin, end = max(0, first - EXPLICIT), min(table.last, last + EXPLICIT)
    targets = (factor * begin, factor * end)
    least = low - max(targets)
    size = high - least - min(targets) + 1
    longest = max(map(len, table.rows)) * (0.6 + table.denominator.bit_length() / 3000)
    spend(size / 3 + (end - begin + 1) * (1 + longest), "errors of reports")
    values = [arb(0)] * size
    for x, chance in zip(range(begin, end + 1), law.balls(begin, end), strict=True):
        if chance == 0:
            continue
        share, shift = chance / table.denominator, least + factor * x
        for s, weight in table.rows[min(max(x, first), last) - first]:
            values[s - shift] += share * weight
    beyond, square = arb(0), arb(0)
    for edge, upwards, reach in ((begin, False, begin), (end, True, table.last - end)):
        if reach:
            mass = law.geometric_sum(edge, arb(1), upwards)
            for s, weight in table.rows[-1 if upwards else 0]:  # taken at the edge, which is served by the same row
                values[s - least - factor * edge] += mass * weight / table.denominator
            beyond += mass * abs(factor) * reach
            square += mass * (factor * reach) ** 2
    return FiniteError(arb_poly(values), least, beyond, square)


PRECISIONS = (256, 1024, 4096)
"""Bits of the balls, in turn, until the figures are decided."""
MOST_SETS = 5000
"""The most sets of honest parties that are looked at one by one."""


def certify_plan(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> PlanCertificate:
    """Recompute every figure of a plan of finite tables."""
    _check_tables(problem, tables)
    largest_inputs = [party.largest for party in problem.parties]
    keys = [(table.inputs, table.last, table.rows, most) for table, most in zip(tables, largest_inputs, strict=True)]
    ordinary = each_once(keys, lambda i: ordinary_of(problem, i, tables[i]))
    if problem.method == "alone":
        epsilons = _alone_epsilons(problem, tables)
    elif problem.watched:
        epsilons = tuple(worst.epsilon for worst in worst_products(problem, tables))
    else:
        epsilons = _epsilons(problem, tables, problem.worlds)
    with precision():
        laws = error_laws(problem, tables, problem.parties)
        distinct = {id(law): law for law in laws}
        means = {name: upper_fraction(law.mean(1) + law.beyond_mean) for name, law in distinct.items()}
        mae, mse = aggregate_errors(laws)
    worst = None if problem.never_worse is None else worst_sum(problem, tables).mae
    return PlanCertificate(epsilons, tuple(ordinary), tuple(means[id(law)] for law in laws), mae, mse, worst)


def _alone_epsilons(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> tuple[Fraction | None, ...]:
    """The epsilon of each table by itself against its observer."""
    keys = [(id(problem.alone(i)), table.inputs, table.rows) for i, table in enumerate(tables)]
    return tuple(each_once(keys, lambda i: _alone_epsilon(problem, i, tables[i])))


def _alone_epsilon(problem: MultiLTE, party: int, table: NoiseMatrix) -> Fraction | None:
    """The same of one table, for as many steps as move the sum as far as anybody."""
    whole = problem.alone(party)
    with precision():
        own = observed(whole, table)[0]
    return None if own is None else own * problem.epsilon / whole.epsilon


def stands_alone(problem: MultiLTE) -> bool:
    """Whether the people of a party are protected by its own finite table, whatever tables the others have."""
    return problem.method == "alone" or (problem.method == "joint" and problem.honest == 1 and not problem.watched)


def own_epsilon(problem: MultiLTE, party: int, table: NoiseMatrix) -> Fraction | None:
    """The epsilon of a party's people by its table alone, where that `stands_alone`."""
    if problem.method == "alone":
        return _alone_epsilon(problem, party, table)
    worst: list[Fraction | None] = [Fraction(1)]
    for bits in PRECISIONS:
        with precision(bits):
            worst = [Fraction(1)]
            own = [_reports(world[party], table) for world in problem.worlds]
            every = problem.adjacency == "all"
            exact = [raise_quotients(comparisons(1, [reports], every), worst) for reports in own]
        if all(exact):
            break
    return None if worst[0] is None else log_upper(worst[0]) * steps_of(problem, problem.worlds)[party]


def plan_errors(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], populations: Sequence[Population]
) -> tuple[Fraction, Fraction]:
    """Upper bounds of the aggregate's MAE and MSE if the world is `populations`, one for each party."""
    with precision():
        return aggregate_errors(error_laws(problem, tables, populations))


def plan_epsilons(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], populations: Sequence[Population]
) -> tuple[Fraction | None, ...]:
    """The real epsilon of each party's people if the world is `populations`, one for each party (None: infinite)."""
    return _epsilons(problem, tables, [populations])


def _check_tables(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> None:
    if len(tables) != len(problem.parties):
        raise ArtifactError(f"A plan must have {len(problem.parties)} tables. Found {len(tables)}.")
    for i, table in enumerate(tables):
        if table.q is not None:
            raise ArtifactError(f"The tables of a joint plan must be finite. Found a tail in that of party {i}.")
        if table.last != problem.parties[i].last:
            raise ArtifactError(f"Party {i} must serve inputs 0..{problem.parties[i].last}. Found {table.last}.")


# ---------------------------------------------------------------------- privacy


@dataclass(frozen=True)
class PartyReports:
    """One party in one world: the law of its report, and given each secret, as polynomials in `s - low`.

    A support is an integer: bit `k` says whether `low + k` can be reported at all.
    """

    total: arb_poly
    kinds: tuple[tuple[arb_poly, ...], ...]
    support: int
    supports: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class StepComparison:
    """What whoever sees the sum of `honest` parties compares: two contributions of a kind of person of one of them, two
    laws, and their supports."""

    honest: tuple[int, ...]
    party: int
    person: int
    contributions: tuple[int, int]
    one: arb_poly
    other: arb_poly
    reached: tuple[int, int]


def _epsilons(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], worlds: Sequence[Sequence[Population]]
) -> tuple[Fraction | None, ...]:
    """The largest log-quotient over worlds, sets of honest parties, secrets and aggregates, for each party."""
    every = problem.adjacency == "all"
    for bits in PRECISIONS:
        with precision(bits):
            worst: list[Fraction | None] = [Fraction(1)] * len(tables)
            exact = True
            for world in worlds:
                reports = reports_of(world, tables)
                found: list[Fraction | None] = [Fraction(1)] * len(tables)
                exact = raise_quotients(comparisons(problem.honest, reports, every), found) and exact
                pairs = zip(worst, _alike(reports, found), strict=True)  # who is alike here need not be elsewhere
                worst = [largest(pair) for pair in pairs]
        if exact or bits == PRECISIONS[-1]:
            break
    return tuple(
        None if ratio is None else log_upper(ratio) * times
        for ratio, times in zip(worst, steps_of(problem, worlds), strict=True)
    )


def steps_of(problem: MultiLTE, worlds: Sequence[Sequence[Population]]) -> list[Fraction]:
    """For each party how many comparisons of one of its people make a whole contribution."""
    if problem.adjacency == "all":
        return [Fraction(1)] * len(problem.f)
    moves = [abs(f) * party.largest for world in worlds for f, party in zip(problem.f, world, strict=True)]
    return [Fraction(max(problem.sensitivity, *moves), abs(factor)) for factor in problem.f]


def reports_of(world: Sequence[Population], tables: Sequence[NoiseMatrix]) -> list[PartyReports]:
    """The reports of every party in one world; equal parties are looked at once and share an object.

    `outputs` tells them apart as well: the laws are counted from the first.
    """
    pairs = list(zip(world, tables, strict=True))
    keys = [
        (str(population.spec), table.inputs, table.outputs, table.rows, table.denominator)
        for population, table in pairs
    ]
    return each_once(keys, lambda i: _reports(*pairs[i]))


def _alike(reports: Sequence[PartyReports], worst: Sequence[Fraction | None]) -> list[Fraction | None]:
    """Parties with the same laws stand for each other, for of sets that look alike only the first was looked at."""
    spend(len(reports) ** 2 / 10, "parties that are alike")
    return [largest(tuple(worst[j] for j, other in enumerate(reports) if other is own)) for own in reports]


def comparisons(honest: int, reports: Sequence[PartyReports], every: bool = False) -> Iterator[StepComparison]:
    """Every step of every kind of person of every honest party, for every set of honest parties.

    With `every` any two contributions instead of steps.

    Of parties that are alike the first of the set stands for all.
    """
    for chosen in _sets(honest, reports):
        for i in sorted({id(reports[i]): i for i in reversed(chosen)}.values()):
            rest = [reports[j] for j in chosen if j != i]
            around, beside = product_of([other.total for other in rest]), reach_of(other.support for other in rest)
            for kind, (laws, supports) in enumerate(zip(reports[i].kinds, reports[i].supports, strict=True)):
                spend(len(laws) * (_steps(laws[0], around) + len(laws[0]) + len(around)), "laws of the aggregate")
                columns, seen = [law * around for law in laws], [sums_of(support, beside) for support in supports]
                for w, v in combinations(range(len(laws)), 2):
                    if every or v == w + 1:
                        reached = seen[w], seen[v]
                        yield StepComparison(chosen, i, kind, (w, v), columns[w], columns[v], reached)


def raise_quotients(steps: Iterable[StepComparison], worst: list[Fraction | None]) -> bool:
    """Raise `worst` to the largest quotients; whether every ball was narrow enough to tell."""
    exact = True
    for step in steps:
        known = worst[step.party]
        if known is None:
            continue
        if step.reached[0] != step.reached[1]:
            worst[step.party] = None
            continue
        worst[step.party], sharp = largest_quotient(step.one, step.other, places(step.reached[0]), known)
        exact = exact and sharp
    return exact


def largest_quotient(
    one: arb_poly, other: arb_poly, values: Sequence[int], known: Fraction
) -> tuple[Fraction | None, bool]:
    """An upper bound of the larger of `known` and every quotient of coefficients, and whether the balls are narrow.

    None, which is infinite, if a coefficient cannot be told from zero.
    """
    limit, narrow = ball(known), True
    spend(1.5 * len(values) * flint.ctx.prec / PRECISIONS[0], "quotients of aggregates")
    for s in values:
        a, b = one[s], other[s]
        if not (a > 0 and b > 0):
            return None, False
        ratio = larger_quotient(a, b)
        if not ratio < limit:
            narrow = narrow and bool(ratio.rad() < ratio.mid() * arb(2) ** -100)
            known = max(known, upper_fraction(ratio))
            limit = ball(known)
    return known, narrow


def _sets(honest: int, reports: Sequence[PartyReports]) -> Iterator[tuple[int, ...]]:
    """Every set of honest parties, but of sets with the same laws only the first: so many of each kind of party."""
    alike: dict[int, list[int]] = {}
    for i, own in enumerate(reports):
        alike.setdefault(id(own), []).append(i)
    kinds = list(alike.values())
    if number_of_sets(honest, [len(kind) for kind in kinds]) > MOST_SETS:
        raise ProblemError(
            f"At most {MOST_SETS:,} different sets of honest parties are looked at. Found more. "
            "Use fewer parties, identical parties, or another number of honest ones."
        )
    room = [sum(map(len, kinds[k:])) for k in range(len(kinds) + 1)]
    stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while stack:
        k, chosen = stack.pop()
        left = honest - len(chosen)
        if left == 0:
            yield tuple(sorted(chosen))
            continue
        counts = range(max(0, left - room[k + 1]), min(len(kinds[k]), left) + 1)
        stack.extend((k + 1, (*chosen, *kinds[k][:count])) for count in counts)


def number_of_sets(honest: int, sizes: Sequence[int]) -> int:
    """How many sets of `honest` parties differ, if there are `sizes` of each kind: a coefficient of a product."""
    ways = [1] + [0] * honest
    for size in sizes:
        sums = [0, *accumulate(ways)]
        ways = [sums[k + 1] - sums[max(0, k - size)] for k in range(honest + 1)]
    return ways[honest]


def _reports(population: Population, table: NoiseMatrix) -> PartyReports:
    """The laws of one party's report; `denominator` is left out, for it cancels."""
    secrets = [list(person.conditionals) for person in population.people]
    laws: list[Pmf] = [population.total, *(law for kind in secrets for law in kind)]
    shape = Shape.of(table)
    weights = [restrict(law, shape)[0] for law in laws]
    low, high = table.outputs
    scale = flint.ctx.prec / PRECISIONS[0]
    spend(len(laws) * (high - low + 1) * scale / 3, "laws of reports")
    sums = [[arb(0)] * (high - low + 1) for _ in laws]
    each = len(laws) * (0.6 * scale + table.denominator.bit_length() / 3000)
    for i, row in enumerate(table.rows):
        spend(1 + len(row) * each, "laws of reports")
        column = [weight[i] for weight in weights]
        for k, value in enumerate(column):
            if value == 0:
                continue
            line = sums[k]
            for s, weight in row:
                line[s - low] += value * weight
    polynomials, reached = [arb_poly(line) for line in sums], [_support(line) for line in sums]
    kinds, supports, start = [], [], 1
    for kind in secrets:
        kinds.append(tuple(polynomials[start : start + len(kind)]))
        supports.append(tuple(reached[start : start + len(kind)]))
        start += len(kind)
    return PartyReports(polynomials[0], tuple(kinds), reached[0], tuple(supports))


def product_of(factors: Sequence[arb_poly]) -> arb_poly:
    """The product of all; 1 if there are none."""

    def power(factor: arb_poly, count: int) -> arb_poly:
        if count > 1:
            spend(power_steps(len(factor), count) * flint.ctx.prec / PRECISIONS[0], "laws of the aggregate")
        return factor**count if count > 1 else factor

    def times(one: arb_poly, other: arb_poly) -> arb_poly:
        spend(_steps(one, other), "laws of the aggregate")
        return one * other

    return _folded(factors, power, times) if factors else arb_poly([1])


def _steps(one: arb_poly, other: arb_poly) -> float:
    return product_steps(len(one), len(other)) * flint.ctx.prec / PRECISIONS[0]


def _support(line: Sequence[arb]) -> int:
    """Which values have a mass: only what nothing was added to is exactly zero."""
    return int("".join("0" if value == 0 else "1" for value in reversed(line)), 2)


def places(support: int) -> list[int]:
    """The bits that are set."""
    return [k for k, bit in enumerate(reversed(f"{support:b}")) if bit == "1"]


def reach_of(supports: Iterable[int]) -> int:
    """Which sums can be reached."""
    result = 1
    for support in supports:
        result = sums_of(result, support)
    return result


def sums_of(one: int, other: int) -> int:
    """The support of the sum of two independent values: `one` moved to every place of `other`, run by run."""
    result, start = 0, 0
    for bit, run in groupby(reversed(f"{other:b}")):
        length = len(list(run))
        if bit == "1":
            moved, width = one, 1  # `one` at `width` neighbouring places
            while width < length:
                step = min(width, length - width)
                moved, width = moved | moved << step, width + step
            result |= moved << start
        start += length
    return result


def ordinary_of(problem: MultiLTE, party: int, table: NoiseMatrix) -> Fraction | None:
    """The ordinary epsilon of one table: adjacent inputs, times the largest contribution."""
    worst = Fraction(0)
    with precision():
        for _, ratio in row_ratios(table, 1):
            if ratio is None:
                return None
            worst = max(worst, log_upper(ratio))
    return worst * problem.parties[party].largest
