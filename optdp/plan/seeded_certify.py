"""What a plan with a common secret word reveals and how far it is off, from its integers.

The word chooses cell `c` with probability `W_c / D`. Given the cell each party reports `g_i^c(x_i)`, so that

    Pr[S | w] = sum over c of W_c / D Pr[g_1^c(x_1) + .. + g_m^c(x_m) = S | w],

a mixture of laws of sums of independent numbers, each of which is a product of polynomials. The mean error is the same
mixture. An observer who does not know the word compares these mixtures, for every party, person and step, at every
sum that either of them reaches (docs/mathematics.md, "A common secret word").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import flint
from flint import arb, arb_poly

from optdp.errors import ArtifactError
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.numbers.exact import log_upper, precision, upper_fraction
from optdp.people.population import Population
from optdp.plan.certificate import PlanCertificate
from optdp.plan.certify import (
    PRECISIONS,
    PartyReports,
    StepComparison,
    aggregate_errors,
    error_laws,
    product_of,
    raise_quotients,
    reach_of,
    reports_of,
    sums_of,
)
from optdp.plan.problem import MultiLTE
from optdp.work.account import product_steps, spend


def check_common(problem: MultiLTE, tables: Sequence[SeededMaps]) -> None:
    """The tables of all parties must have the same cells."""
    if len(tables) != len(problem.parties):
        raise ArtifactError(f"A plan must have {len(problem.parties)} tables. Found {len(tables)}.")
    if len({(table.denominator, table.cuts) for table in tables}) > 1:
        raise ArtifactError("All parties must have the same cuts of the common word. Found others.")
    for i, (table, population) in enumerate(zip(tables, problem.parties, strict=True)):
        if table.last != population.last:
            raise ArtifactError(f"Party {i} must serve inputs 0..{population.last}. Found {table.last}.")


def certify_seeded(problem: MultiLTE, tables: Sequence[SeededMaps]) -> PlanCertificate:
    """Recompute every figure of a plan with a common word.

    Nothing is claimed of a report by itself, as a party that knows the word reads the input from it.
    """
    check_common(problem, tables)
    epsilons = seeded_epsilons(problem, tables, problem.worlds)
    with precision():
        mae, mse = _errors(problem, tables, problem.parties)
        own = tuple(
            upper_fraction(law.mean(1) + law.beyond_mean)
            for law in error_laws(problem, [table.matrix for table in tables], problem.parties)
        )
    return PlanCertificate(epsilons, (None,) * len(tables), own, mae, mse)


def seeded_epsilons(
    problem: MultiLTE, tables: Sequence[SeededMaps], worlds: Sequence[Sequence[Population]]
) -> tuple[Fraction | None, ...]:
    """The largest log-quotient over worlds, secrets and sums, for each party (None: infinite)."""
    for bits in PRECISIONS:
        with precision(bits):
            worst: list[Fraction | None] = [Fraction(1)] * len(tables)
            exact = True
            for world in worlds:
                exact = raise_quotients(seeded_comparisons(world, tables), worst) and exact
        if exact:
            break
    moves = [abs(f) * party.largest for world in worlds for f, party in zip(problem.f, world, strict=True)]
    reach = max(problem.sensitivity, *moves)
    return tuple(
        None if ratio is None else log_upper(ratio) * reach / abs(factor)
        for ratio, factor in zip(worst, problem.f, strict=True)
    )


def _errors(
    problem: MultiLTE, tables: Sequence[SeededMaps], populations: Sequence[Population]
) -> tuple[Fraction, Fraction]:
    mae, mse, weights = Fraction(0), Fraction(0), tables[0].weights
    for cell, weight in enumerate(weights):
        laws = error_laws(problem, [table.column(cell) for table in tables], populations)
        one, two = aggregate_errors(laws)
        mae, mse = mae + weight * one, mse + weight * two
    return mae / tables[0].denominator, mse / tables[0].denominator


# ---------------------------------------------------------------------- laws of the sum


@dataclass(frozen=True)
class Mixture:
    """A law of the sum, times the denominator, and the sums that it reaches."""

    law: arb_poly
    reached: int


def seeded_comparisons(world: Sequence[Population], tables: Sequence[SeededMaps]) -> Iterator[StepComparison]:
    """Every step of every kind of person of every party: two laws of the sum."""
    everybody = tuple(range(len(tables)))
    for (party, kind), laws in mixtures(world, tables, tables[0].weights).items():
        for w, (one, other) in enumerate(pairwise(laws)):
            yield StepComparison(everybody, party, kind, (w, w + 1), one.law, other.law, (one.reached, other.reached))


def mixtures(
    world: Sequence[Population], tables: Sequence[SeededMaps], weights: Sequence[int]
) -> dict[tuple[int, int], list[Mixture]]:
    """For each party and kind of person the laws of the sum given each of its contributions."""
    found: dict[tuple[int, int], list[Mixture]] = {}
    for cell, weight in enumerate(weights):
        if not weight:
            continue
        reports = reports_of(world, [table.column(cell) for table in tables])
        for i, own in enumerate(reports):
            rest = [*reports[:i], *reports[i + 1 :]]
            around, beside = product_of([other.total for other in rest]), reach_of(other.support for other in rest)
            for kind, laws in enumerate(_of_cell(own, around, beside)):
                known = found.setdefault((i, kind), [Mixture(arb_poly(), 0)] * len(laws))
                for w, (law, reached) in enumerate(laws):
                    known[w] = Mixture(known[w].law + weight * law, known[w].reached | reached)
    return found


def _of_cell(own: PartyReports, around: arb_poly, beside: int) -> Iterator[list[tuple[arb_poly, int]]]:
    scale = flint.ctx.prec / PRECISIONS[0]
    for laws, supports in zip(own.kinds, own.supports, strict=True):
        steps = product_steps(len(laws[0]), len(around)) + len(laws[0]) + len(around)
        spend(len(laws) * steps * scale, "laws of the aggregate")
        yield [(law * around, sums_of(support, beside)) for law, support in zip(laws, supports, strict=True)]


def excess(one: arb, other: arb, bound: arb) -> arb:
    """How much more `one` is than `bound` times `other`; 0 if it is less."""
    over = one - bound * other
    return over.upper() if over.upper() > 0 else arb(0)
