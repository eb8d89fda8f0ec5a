"""What an entity that designs alone does to its laws, and to each of its inputs (A, section VI: Fig. 2, Eqs. 7 and 8).

With `chi` the law of the input `x`, `A` the contraction, `mu = A o chi` the law of the contracted input, `f` the
coefficient and `e` the share of noise, the report of an entity has the law

    eta(s) = sum over x of chi(x) r(x, s) = (law of f y + e for y from mu)(s)                                    (A, 7)

The table `r` changes which input gets which report, and not that law. Eq. (8) asks that no input gains an error by it:

    sum over s of |s - f x| r(x, s) <= E |e'|     every x, with e' a share of the geometric noise of epsilon     (A, 8)

As printed, (8) multiplies `A` into an `r` that contains it already, and leaves out the noise beyond the table, which
adds the same to both sides. Here the whole of both sides is computed, in balls, from the integers of the noise.

`CappedCouplingLP` is the coupling program (`contraction.py`) with (8) as one more row for each input:

    sum over s in I of |s - f x| r(x, s) <= E |e'| - (what noise around A(x) adds beyond I)               every input x
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from flint import arb

from optdp.errors import ProblemError
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import precision
from optdp.numbers.ordered import Array, convolve, product, total
from optdp.numbers.sgdl import SGDL
from optdp.people.population import Population
from optdp.plan.contraction import ACCURACY, CouplingLP
from optdp.plan.parties import Entity
from optdp.plan.problem import MultiLTE
from optdp.programs.program import LinearProgram

NEARLY = 1e-12
"""How far noise is written out: less than this is beyond it on a side."""


@dataclass(frozen=True)
class ReportLaws:
    """The laws of Fig. 2 on one range of outputs."""

    first: int
    """The output that the first entry of each law belongs to."""
    prior: Array
    """Of `f x`: what would be reported without noise."""
    noisy: Array
    """Of `f x + e`, if the input is not contracted."""
    contracted: Array
    """Of `f y`: `mu`."""
    base: Array
    """Of `f y + e`: `mu` and a share of noise."""
    released: Array
    """Of the report, by the deployed table; (7) says that it is `base`."""

    @property
    def outputs(self) -> range:
        return range(self.first, self.first + len(self.prior))


def report_laws(population: Population, noise: SharedNoise) -> ReportLaws:
    """How an entity's contraction, share of noise and table change the law of what it reports (A, Fig. 2).

    In floating point, for looking, not for claims.

    Parameters
    ----------
    population : Population
        The entity's people.
    noise : SharedNoise
        Its noise: one of the `tables` of a plan of method "divisible" or "geometric".

    Returns
    -------
    ReportLaws
        `prior`, `noisy`, `contracted` (mu), `base` (mu and noise) and `released`, all on `outputs`.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, solve
    >>> from optdp.plan.coupling import report_laws
    >>> people = Population.binomial(6, "0.5")
    >>> plan = solve(MultiLTE([people] * 2, epsilon=1, method="divisible"))
    >>> laws = report_laws(people, plan.tables[0])
    >>> bool(laws.contracted.max() > laws.prior.max())  # mu is more concentrated
    True
    >>> bool(abs(laws.released - laws.base).max() < 1e-6)  # Eq. (7)
    True
    """
    _check_fits(population, noise)
    f, last = noise.factor, noise.last
    reach = max(noise.noise.quantile(1 - Fraction(NEARLY)), 1)
    chances = np.asarray(noise.noise.pmf(np.arange(-reach, reach + 1)), dtype=np.float64)
    low, high = min(0, f * last), max(0, f * last)
    first = min(low - reach, noise.outputs[0] if noise.rows else low)
    final = max(high + reach, noise.outputs[1] if noise.rows else high)
    inputs = np.array([float(value.mid()) for value in population.total.balls(0, last)])
    prior, contracted, released = (np.zeros(final - first + 1) for _ in range(3))
    start, end = noise.outputs[0] - first, noise.outputs[1] - first + 1
    for x, chance in enumerate(inputs):
        prior[f * x - first] += chance
        moved = np.zeros(final - first + 1)
        for y, weight in noise.contracted(x):
            moved[f * y - first] += weight / noise.contraction_denominator
        contracted += chance * moved
        law = convolve(moved, chances)[reach : reach + len(moved)]
        row = noise.row(x)
        if row is not None:
            inside = float(law[start:end].sum())
            law[start:end] = 0.0
            for s, weight in row:
                law[s - first] = inside * (weight / noise.denominator)
        released += chance * law

    def spread(law: Array) -> Array:
        return np.asarray(convolve(law, chances)[reach : reach + len(law)], dtype=np.float64)

    return ReportLaws(first, prior, spread(prior), contracted, spread(contracted), released)


@dataclass(frozen=True)
class InputError:
    """What one input's report is wrong by on average, and what its share of geometric noise would be."""

    x: int
    error: arb
    share: arb

    @property
    def worse(self) -> bool:
        """Whether Eq. (8) is broken at this input, proved."""
        return bool(self.error > self.share)


def against_share(problem: MultiLTE, party: int, noise: SharedNoise) -> list[InputError]:
    """Both sides of Eq. (8) for every input of one party, in balls from the deployed integers.

    Parameters
    ----------
    problem : MultiLTE
        What the plan was made for.
    party : int
        Which of its parties.
    noise : SharedNoise
        That party's noise.

    Returns
    -------
    list of InputError
        `x`, the `error` of its report, and that of its `share` of geometric noise; `worse` where Eq. (8) is broken.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, solve
    >>> from optdp.plan.coupling import against_share
    >>> problem = MultiLTE([Population.binomial(6, "0.5")] * 2, epsilon=1, method="divisible")
    >>> rows = against_share(problem, 0, solve(problem).tables[0])
    >>> [row.x for row in rows if row.worse]  # rare inputs pay for the likely ones
    [0, 6]
    """
    _check_fits(problem.parties[party], noise)
    with precision():
        share = SGDL(Fraction(1, problem.honest), problem.q).mean_absolute()
        return [InputError(x, error, share) for x, error in enumerate(_errors(noise))]


@dataclass(frozen=True)
class CappedCouplingLP(CouplingLP):
    """The coupling program in which every input keeps to Eq. (8)."""

    @staticmethod
    def on_every_input(entity: Entity, moved: Array) -> CappedCouplingLP:
        """The program for a party's own absolute error, with the outputs of the plain program around all inputs."""
        if entity.power != 1:
            raise ProblemError("Eq. (8) is about the mean absolute error. Found the mean squared one.")
        plain = CouplingLP.of(entity, moved, entity.own_cost)
        low, high = sorted((0, entity.factor * entity.last))
        outputs = np.arange(min(low, int(plain.outputs[0])), max(high, int(plain.outputs[-1])) + 1)
        return CappedCouplingLP(entity, moved, np.arange(entity.last + 1), outputs, entity.own_cost)

    @cached_property
    def gaps(self) -> Array:
        return np.asarray(np.abs(self.outputs[None, :] - self.entity.factor * self.inputs[:, None]), dtype=np.float64)

    @cached_property
    def beyond(self) -> Array:
        """For each input what the base kernel adds to its error outside the table."""
        places, cost = np.arange(self.entity.last + 1), self.entity.noisy_cost()
        whole = [float(product(self.moved[x], cost(self.entity.factor * (places - x)))) for x in self.inputs]
        return np.asarray(whole - total(self.base * self.gaps, axis=1), dtype=np.float64)

    def to_program(self) -> LinearProgram:
        plain, share = super().to_program(), float(self.entity.noise.mean_absolute())
        caps = np.maximum(share - self.beyond, 0.0)
        rows = sp.kron(sp.identity(len(self.inputs)), np.ones((1, len(self.outputs)))) @ sp.diags(
            (self.gaps * self.scale).ravel()
        )
        return LinearProgram(
            plain.cost,
            sp.vstack([plain.matrix, rows], format="csr"),
            np.concatenate([plain.lower, np.full(len(caps), -np.inf)]),
            np.concatenate([plain.upper, caps]),
        )

    def own_error(self) -> float | None:
        """The least own error with Eq. (8); None if the contraction leaves no room for it."""
        table = self.solve()
        if table is None:
            return None
        errors = total(table * self.gaps, axis=1) + self.beyond
        if (errors > float(self.entity.noise.mean_absolute()) * (1 + ACCURACY)).any():
            return None
        return float(product(self.entity.prior[self.inputs], errors))


def _errors(noise: SharedNoise) -> list[arb]:
    """`sum over s of |s - f x| Pr[s|x]` for each `x`: the noise around each place, and the change by the table."""
    f, (low, high) = noise.factor, noise.outputs
    furthest = max(abs(f) * noise.last, 1)
    near = noise.noise.balls(0, furthest)
    moved, slope = [noise.noise.mean_absolute()], near[0]  # E|e + d| for d = 0, 1, ...: it grows by Pr[|e| <= d]
    for d in range(furthest):
        moved.append(moved[-1] + slope)
        slope += 2 * near[d + 1]
    beyond = max(abs(low), abs(high)) + abs(f) * noise.last
    column = noise.noise.balls(0, beyond) if noise.rows else near
    found = []
    for x in range(noise.last + 1):
        row, places, whole = noise.row(x), noise.contracted(x), noise.contraction_denominator
        error = sum((moved[abs(f * (y - x))] * weight for y, weight in places), arb(0)) / whole
        if row is not None:
            inside, mass = arb(0), arb(0)
            for y, weight in places:
                for s in range(low, high + 1):
                    chance = column[abs(s - f * y)] * weight
                    mass += chance
                    inside += chance * abs(s - f * x)
            truth = sum((arb(weight * abs(s - f * x)) for s, weight in row), arb(0)) / noise.denominator
            error += (mass * truth - inside) / whole
        found.append(error)
    return found


def _check_fits(population: Population, noise: SharedNoise) -> None:
    if not isinstance(noise, SharedNoise):
        raise ProblemError('This is for plans of method = "divisible" or "geometric". Found another kind of table.')
    if population.last != noise.last:
        raise ProblemError(f"The noise must be for inputs 0..{population.last}. Found 0..{noise.last}.")
