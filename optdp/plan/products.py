"""The epsilon of a plan whose observer has doubts about the people of every party: all products of vertices.

Each person's probability lies anywhere between two ends, not at the same place for all, and what is seen is the sum of
all reports. For a fixed sum and a fixed person, `Pr[s | w] - e^eps Pr[s | w']` is affine in the law of each other
person, of whichever party. So it is largest where everybody is at an end, and people of one party are alike, so that
only the numbers `k_l` of those at the high end count. With `R_l` the law of party `l`'s report, for a person of party
`i`, privacy holds for every such observer if and only if it holds for

    Pr[s | w; k] = sum over y_1 + .. + y_m = s of  R_i(y_i | w, k_i) prod_{l != i} R_l(y_l | k_l),
    k_i = 0..n_i - 1,   k_l = 0..n_l.

For three parties with hundreds of people these are millions of products. Floats say which of them may be the worst, and
those are computed with integers. All terms are positive, every factor is an integer quotient that was rounded once,
and sums are added in a fixed order. So with `A` outputs in all tables a quotient of two floats is within a factor
`1 +- 4 (A + 10) 2^-53` of the truth, and a product whose quotient is further below the largest is not the worst one.
A report less likely than 1e-90 counts as that, or as impossible, whichever is worse: no product underflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from math import prod
from operator import mul
from typing import TYPE_CHECKING

from flint import fmpz_mat, fmpz_poly

from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import log_upper
from optdp.people.observer import Crowd
from optdp.plan.problem import MultiLTE
from optdp.work.account import spend

if TYPE_CHECKING:  # whoever verifies tables that no observer with doubts watches needs no numpy
    from optdp.numbers.ordered import Array

TINY = 1e-90
"""Reports that are less likely are not trusted to floats."""
MOST_CANDIDATES = 20_000
"""With more products that may be the worst, the largest quotient is bounded and not computed."""
CHUNK = 1024
"""So many products are looked at together: their laws stay in the processor's cache."""


@dataclass(frozen=True)
class VertexLaws:
    """The law of one party's report at each vertex: integers over `unit`, row by row, and floats above and below."""

    exact: tuple[tuple[int, ...], ...]
    unit: int

    @cached_property
    def _near(self) -> Array:
        import numpy as np

        return np.array([[weight / self.unit for weight in row] for row in self.exact])

    @cached_property
    def upper(self) -> Array:
        import numpy as np

        return np.where((self._near < TINY) & (np.array(self.exact, dtype=object) != 0), TINY, self._near)

    @cached_property
    def lower(self) -> Array:
        import numpy as np

        return np.where(self._near < TINY, 0.0, self._near)

    @property
    def plain(self) -> bool:
        """Whether no report is too unlikely for floats."""
        return bool((self.upper == self.lower).all())


@dataclass(frozen=True)
class PartyLaws:
    """The law of a party's report, and given that one of its people contributes 0 or 1."""

    low: int
    """The smallest output."""
    total: VertexLaws
    given: tuple[VertexLaws, VertexLaws]


@dataclass(frozen=True)
class WorstProduct:
    """Where the sum tells most about a person of `party`: how many of each party's other people are at the high end,
    what the person contributes in the two cases, the sum, and how likely it is. `above` bounds the quotient."""

    party: int
    high: tuple[int, ...]
    contributions: tuple[int, int]
    sum: int
    one: Fraction
    other: Fraction
    above: Fraction | None

    @property
    def epsilon(self) -> Fraction | None:
        """What such a person's privacy is, an upper bound; None is infinite."""
        return None if self.above is None else log_upper(max(self.above, Fraction(1)))


def crowds_of(problem: MultiLTE) -> list[Crowd]:
    """The people of each party, who are of one kind."""
    found = []
    for observer, population in zip(problem.observers, problem.parties, strict=True):
        (crowd,) = observer.worlds(population).crowds
        found.append(crowd)
    return found


def laws_of(crowd: Crowd, table: NoiseMatrix) -> PartyLaws:
    """The laws of a party's report at all vertices, with integers."""
    (first, last), (low, high) = table.inputs, table.outputs
    rows = [[0] * (high - low + 1) for _ in range(first, last + 1)]
    for row, weights in zip(rows, table.rows, strict=True):
        for s, weight in weights:
            row[s - low] = weight
    served = fmpz_mat(rows)

    def reports(people: int, contribution: int) -> VertexLaws:
        spend((people + 1) * (len(rows) * (high - low + 1) / 5 + people), "laws of reports")
        places = [_folded(law, contribution, first, last) for law in crowd.powers(people)]
        found = (fmpz_mat(places) * served).tolist()
        return VertexLaws(tuple(tuple(map(int, row)) for row in found), crowd.unit(people) * table.denominator)

    others = crowd.count - 1
    return PartyLaws(low, reports(crowd.count, 0), (reports(others, 0), reports(others, 1)))


def _folded(law: fmpz_poly, shift: int, first: int, last: int) -> list[int]:
    """The weights of `law + shift` on the rows; inputs beyond them are served by the nearest one."""
    found = [0] * (last - first + 1)
    for x, weight in enumerate(law.coeffs(), start=shift):
        found[min(max(x, first), last) - first] += int(weight)
    return found


def worst_products(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> list[WorstProduct]:
    """For each party where the sum tells most about one of its people. Equal parties are looked at once."""
    crowds = crowds_of(problem)
    keys = [(crowd, table.inputs, table.outputs, table.rows) for crowd, table in zip(crowds, tables, strict=True)]
    known = {key: laws_of(*pair) for key, pair in zip(keys, zip(crowds, tables, strict=True), strict=True)}
    laws = [known[key] for key in keys]
    return [_worst(laws, i) for i in range(len(laws))]


def _worst(laws: Sequence[PartyLaws], party: int) -> WorstProduct:
    """The worst product for a person of `party`."""
    import numpy as np

    width = sum(len(own.total.exact[0]) for own in laws)
    slack = 4 * (width + 10) * 2.0**-53
    best, kept = 0.0, [np.zeros((0, 5))]  # quotient, vertex of the party, of the others, sum, direction
    for own, others, quotients in _quotients(laws, party):
        best = max(best, float(quotients.max()))
        direction, vertex, place = np.nonzero(quotients >= best * (1 - 2 * slack))
        if len(place):
            values = quotients[direction, vertex, place]
            kept.append(np.column_stack([values, np.full(len(place), own), others + vertex, place, direction]))
        if sum(map(len, kept)) > 4 * MOST_CANDIDATES:
            kept = [_enough(np.concatenate(kept), best, slack)]
    candidates = _enough(np.concatenate(kept), best, slack)
    found: WorstProduct | None = None
    for _, own, others, place, direction in candidates[:MOST_CANDIDATES].tolist():
        tried = _exact(laws, party, int(own), int(others), int(place), int(direction))
        if found is None or tried.above is None or (found.above is not None and tried.above > found.above):
            found = tried
        if found.above is None:
            return found
    assert found is not None
    if len(candidates) > MOST_CANDIDATES:
        above = None if best == np.inf else Fraction(best) * (1 + Fraction(slack))
        return WorstProduct(party, found.high, found.contributions, found.sum, found.one, found.other, above)
    return found


def _enough(candidates: Array, best: float, slack: float) -> Array:
    """Those that may still be the worst, the largest first; of more than can be computed some."""
    import numpy as np

    left = candidates[candidates[:, 0] >= best * (1 - 2 * slack)]
    order = np.lexsort((*left.T[:0:-1], -left[:, 0]))
    return left[order[: MOST_CANDIDATES + 1]]


def _quotients(laws: Sequence[PartyLaws], party: int) -> Iterator[tuple[int, int, Array]]:
    """For each vertex of the party and each chunk of the others': `Pr[s | 1] / Pr[s | 0]` and its inverse, all `s`."""
    import numpy as np

    rest = [own.total for i, own in enumerate(laws) if i != party]
    given = laws[party].given
    plain = all(law.plain for law in (*rest, *given))
    vertices, width = given[0].upper.shape
    size = prod(len(law.exact) for law in rest) * (width + sum(len(law.exact[0]) for law in rest))
    spend(vertices * size * width * (2 if plain else 4) / 500, "products of vertices")
    above = reduce(_sums, (law.upper for law in rest))
    below = above if plain else reduce(_sums, (law.lower for law in rest))
    for own in range(vertices):
        for begin in range(0, len(above), CHUNK):
            part = slice(begin, begin + CHUNK)
            high = [convolve_rows(above[part], law.upper[own]) for law in given]
            low = high if plain else [convolve_rows(below[part], law.lower[own]) for law in given]
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.stack([high[1] / low[0], high[0] / low[1]])
            yield own, begin, np.where(np.isnan(found), 0.0, found)  # nan: impossible in both cases


def convolve_rows(laws: Array, other: Array) -> Array:
    """Each row convolved with `other`, added in a fixed order."""
    import numpy as np

    found = np.zeros((len(laws), laws.shape[1] + len(other) - 1))
    for k, weight in enumerate(other.tolist()):
        if weight:
            found[:, k : k + laws.shape[1]] += weight * laws
    return found


def _sums(one: Array, other: Array) -> Array:
    """The laws of the sum of two reports, for every vertex of each, those of `other` first."""
    import numpy as np

    return np.concatenate([convolve_rows(other, row) for row in one])


def _exact(laws: Sequence[PartyLaws], party: int, own: int, others: int, place: int, direction: int) -> WorstProduct:
    """One product with integers."""
    rest = [i for i in range(len(laws)) if i != party]
    high = [own] * len(laws)
    for i in reversed(rest):
        others, high[i] = divmod(others, len(laws[i].total.exact))
    beside = reduce(mul, (fmpz_poly(list(laws[i].total.exact[high[i]])) for i in rest), fmpz_poly([1]))
    chances = []
    for law in laws[party].given:
        unit = prod((laws[i].total.unit for i in rest), start=law.unit)
        chances.append(Fraction(int((fmpz_poly(list(law.exact[own])) * beside)[place]), unit))
    contributions = (0, 1) if direction else (1, 0)
    one, other = (chances[w] for w in contributions)
    low = sum(own.low for own in laws)
    above = one / other if other else (None if one else Fraction(1))
    return WorstProduct(party, tuple(high), contributions, low + place, one, other, above)
