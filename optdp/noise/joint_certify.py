"""The certificate of a joint plan: what the aggregate gives away and costs, from the integers of all tables, in balls.

For a set of honest parties the law of their sum given a secret of one of them is a product of polynomials: the law of
that party's report given the secret, and the laws of the other reports. Every coefficient is a sum of positive terms.
All tables are finite, so the aggregate takes finitely many values and every quotient is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
from flint import arb, arb_poly

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.math.exact import ball, log_upper, precision, upper_fraction
from optdp.math.pmf import Pmf
from optdp.noise.certify import row_ratio
from optdp.noise.laws import Shape, larger_quotient, restrict
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.plan_certificate import PlanCertificate, largest
from optdp.noise.population import Population

PRECISIONS = (256, 1024, 4096)
"""Bits of the balls, in turn, until the figures are decided."""
MOST_SETS = 5000
"""The most sets of honest parties that are looked at one by one."""
EXPLICIT = 20_000
"""Inputs without a row whose errors are added one by one; the rest is bounded together."""


def certify_plan(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> PlanCertificate:
    """Recompute every figure of a plan of finite tables."""
    _check_tables(problem, tables)
    epsilons = _epsilons(problem, tables, problem.worlds)
    ordinary = tuple(_ordinary(problem, i, table) for i, table in enumerate(tables))
    with precision():
        laws = _error_laws(problem, tables, problem.parties)
        own = tuple(upper_fraction(law.mean(1) + law.beyond_mean) for law in laws)
        mae, mse = _aggregate(laws)
    return PlanCertificate(epsilons, ordinary, own, mae, mse)


def plan_errors(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], populations: Sequence[Population]
) -> tuple[Fraction, Fraction]:
    """Upper bounds of the aggregate's MAE and MSE if the world is `populations`, one for each party."""
    with precision():
        return _aggregate(_error_laws(problem, tables, populations))


def plan_epsilons(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], populations: Sequence[Population]
) -> tuple[Fraction | None, ...]:
    """The real epsilon of each party's people if the world is `populations`, one for each party (None: infinite)."""
    world = tuple(populations)
    if len(world) != len(tables):
        raise ProblemError(f"A world must have {len(tables)} populations. Found {len(world)}.")
    for i, (population, table) in enumerate(zip(world, tables, strict=True)):
        if population.last > table.last:
            raise CertificateError(
                f"Party {i} serves inputs 0..{table.last}. Found a population whose sum reaches {population.last}."
            )
    return _epsilons(problem, tables, [world])


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
class _Reports:
    """One party in one world: the law of its report, and given each secret, as polynomials in `s - low`."""

    total: arb_poly
    kinds: tuple[tuple[arb_poly, ...], ...]
    support: npt.NDArray[np.bool_]
    supports: tuple[tuple[npt.NDArray[np.bool_], ...], ...]


def _epsilons(
    problem: MultiLTE, tables: Sequence[NoiseMatrix], worlds: Sequence[Sequence[Population]]
) -> tuple[Fraction | None, ...]:
    """The largest log-quotient over worlds, sets of honest parties, secrets and aggregates, for each party."""
    for bits in PRECISIONS:
        with precision(bits):
            worst: list[Fraction | None] = [Fraction(1)] * len(tables)
            exact = True
            for world in worlds:
                same: dict[tuple[object, ...], _Reports] = {}
                reports = []
                for population, table in zip(world, tables, strict=True):
                    key = (str(population.spec), table.inputs, table.rows, table.denominator)
                    if key not in same:
                        same[key] = _reports(population, table)
                    reports.append(same[key])
                exact = _quotients(problem.honest, reports, worst) and exact
                worst = _alike(reports, worst)
        if exact or bits == PRECISIONS[-1]:
            break
    moves = [abs(f) * party.largest for world in worlds for f, party in zip(problem.f, world, strict=True)]
    reach = max(problem.sensitivity, *moves)
    return tuple(
        None if ratio is None else log_upper(ratio) * reach / abs(factor)
        for ratio, factor in zip(worst, problem.f, strict=True)
    )


def _alike(reports: Sequence[_Reports], worst: Sequence[Fraction | None]) -> list[Fraction | None]:
    """Parties with the same laws stand for each other, for of sets that look alike only the first was looked at."""
    return [largest(tuple(worst[j] for j, other in enumerate(reports) if other is own)) for own in reports]


def _quotients(honest: int, reports: Sequence[_Reports], worst: list[Fraction | None]) -> bool:
    """Raise `worst` to the largest quotients; whether every ball was narrow enough to tell."""
    exact = True
    for chosen in _sets(honest, reports):
        for i, rest in _each(chosen):
            if worst[i] is None:
                continue
            around = _product(reports[j].total for j in rest)
            beside = _reach(reports[j].support for j in rest)
            for laws, supports in zip(reports[i].kinds, reports[i].supports, strict=True):
                columns = [law * around for law in laws]
                seen = [np.convolve(support, beside) > 0 for support in supports]
                for w in range(len(columns) - 1):
                    if (seen[w] != seen[w + 1]).any():
                        worst[i] = None
                        break
                    values = np.flatnonzero(seen[w])
                    known = worst[i]
                    assert known is not None
                    bound, sharp = _largest(columns[w], columns[w + 1], values, known)
                    worst[i], exact = bound, exact and sharp
                    if bound is None:
                        break
                if worst[i] is None:
                    break
    return exact


def _largest(one: arb_poly, other: arb_poly, values: Iterable[int], known: Fraction) -> tuple[Fraction | None, bool]:
    """An upper bound of the larger of `known` and every quotient of coefficients, and whether the balls are narrow.

    None, which is infinite, if a coefficient cannot be told from zero.
    """
    limit, narrow = ball(known), True
    for s in values:
        a, b = one[int(s)], other[int(s)]
        if not (a > 0 and b > 0):
            return None, False
        ratio = larger_quotient(a, b)
        if not ratio < limit:
            narrow = narrow and bool(ratio.rad() < ratio.mid() * arb(2) ** -100)
            known = max(known, upper_fraction(ratio))
            limit = ball(known)
    return known, narrow


def _sets(honest: int, reports: Sequence[_Reports]) -> Iterator[tuple[int, ...]]:
    """Every set of honest parties, but of sets with the same laws in the same order only the first."""
    seen: set[tuple[int, ...]] = set()
    for chosen in combinations(range(len(reports)), honest):
        key = tuple(sorted(id(reports[i]) for i in chosen))
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > MOST_SETS:
            raise ProblemError(
                f"At most {MOST_SETS:,} different sets of honest parties are looked at. Found more. "
                "Use fewer parties, identical parties, or another number of honest ones."
            )
        yield chosen


def _each(chosen: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    for i in chosen:
        yield i, [j for j in chosen if j != i]


def _reports(population: Population, table: NoiseMatrix) -> _Reports:
    """The laws of one party's report; `denominator` is left out, for it cancels."""
    secrets = [list(person.conditionals) for person in population.people]
    laws: list[Pmf] = [population.total, *(law for kind in secrets for law in kind)]
    shape = Shape.of(table)
    weights = [restrict(law, shape)[0] for law in laws]
    low, high = table.outputs
    sums = [[arb(0)] * (high - low + 1) for _ in laws]
    reached = np.zeros((len(laws), high - low + 1), dtype=bool)
    for i, row in enumerate(table.rows):
        column = [weight[i] for weight in weights]
        for k, value in enumerate(column):
            if value == 0:
                continue
            line = sums[k]
            for s, weight in row:
                line[s - low] += value * weight
            reached[k, [s - low for s, _ in row]] = True
    polynomials = [arb_poly(line) for line in sums]
    kinds, supports, start = [], [], 1
    for kind in secrets:
        kinds.append(tuple(polynomials[start : start + len(kind)]))
        supports.append(tuple(reached[start : start + len(kind)]))
        start += len(kind)
    return _Reports(polynomials[0], tuple(kinds), reached[0], tuple(supports))


def _product(factors: Iterable[arb_poly]) -> arb_poly:
    result = arb_poly([1])
    for factor in factors:
        result = result * factor
    return result


def _reach(supports: Iterable[npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    """Which sums can be reached."""
    result = np.ones(1, dtype=bool)
    for support in supports:
        result = np.convolve(result, support) > 0
    return result


def _ordinary(problem: MultiLTE, party: int, table: NoiseMatrix) -> Fraction | None:
    """The ordinary epsilon of one table: adjacent inputs, times the largest contribution."""
    worst = Fraction(0)
    with precision():
        rows = [dict(row) for row in table.rows]
        for x, (one, other) in enumerate(pairwise(rows), start=table.inputs[0]):
            ratio = row_ratio(table, (x, one), (x + 1, other))
            if ratio is None:
                return None
            worst = max(worst, log_upper(ratio))
    return worst * problem.parties[party].largest


# ---------------------------------------------------------------------- errors


@dataclass(frozen=True)
class _Errors:
    """The law of `s - f x` as a polynomial from `low`, but for rare inputs, which are taken at the nearest row."""

    law: arb_poly
    low: int
    beyond_mean: arb
    """At most this is added to the mean absolute error by the inputs that are taken elsewhere."""
    beyond_square: arb

    def plus(self, other: _Errors) -> _Errors:
        square = (self.beyond_square.sqrt() + other.beyond_square.sqrt()) ** 2
        return _Errors(self.law * other.law, self.low + other.low, self.beyond_mean + other.beyond_mean, square)

    def mean(self, power: int) -> arb:
        values = self.law.coeffs()
        return sum((value * abs(self.low + k) ** power for k, value in enumerate(values)), arb(0))


def _error_laws(problem: MultiLTE, tables: Sequence[NoiseMatrix], populations: Sequence[Population]) -> list[_Errors]:
    return [
        _error_law(factor, population.total, table)
        for factor, population, table in zip(problem.f, populations, tables, strict=True)
    ]


def _aggregate(laws: Sequence[_Errors]) -> tuple[Fraction, Fraction]:
    total = laws[0]
    for law in laws[1:]:
        total = total.plus(law)
    mae = upper_fraction(total.mean(1) + total.beyond_mean)
    root = total.mean(2).sqrt() + total.beyond_square.sqrt()
    return mae, upper_fraction(total.mean(2) if total.beyond_square == 0 else root * root)


def _error_law(factor: int, law: Pmf, table: NoiseMatrix) -> _Errors:
    (first, last), (low, high) = table.inputs, table.outputs
    begin, end = max(0, first - EXPLICIT), min(table.last, last + EXPLICIT)
    targets = (factor * begin, factor * end)
    least = low - max(targets)
    values = [arb(0)] * (high - least - min(targets) + 1)
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
    return _Errors(arb_poly(values), least, beyond, square)
