"""The coupling program: how an entity's report hangs together with its input, the laws of its output being fixed.

An entity reports with a *base kernel*: a contraction of its input, then a share of noise. What an observer learns about
a secret `w` of one of its people is the law of its report given `w`. Privacy only asks that these laws stay what they
are; which input gets which report is free (A, section VI-C). With `P_w(x)` the probability of input `x` given secret
`w`, and `I` a window of outputs:

    minimise    sum over x and s in I of prior(x) cost(s - f x) r(x, s)
    subject to  sum over s in I of r(x, s) = sum over s in I of base(x, s)                  every input x
                sum over x of P_w(x) r(x, s) = sum over x of P_w(x) base(x, s)              every s in I, every secret w
                r >= 0

Outside `I`, and for inputs that are too rare to matter, the base kernel stays. The base kernel itself is feasible, so
nothing gets worse. The cost is first `|gap|^power`, the party's own error; then, since only the aggregate counts, `E
|gap + N|^power` with `N` the error of others like itself; the better table (for an aggregate of parties like itself) is
kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.signal import fftconvolve

from optdp.errors import ProblemError
from optdp.numbers.ordered import Array, convolve, product, total
from optdp.plan.contraction import basis
from optdp.plan.entity import Cost, Entity, Integers, expected_cost
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.highs import solve_highs
from optdp.programs.program import LinearProgram

ACCURACY = 1e-5
"""A table whose output laws are further off than this, in relation, is not used."""
RARE_INPUT, RARE_OUTPUT = 1e-10, 1e-7
"""Inputs below this share of the likeliest have no row; the window leaves out this share of the outputs on a side."""
CELLS = 200_000
"""The most unknowns of a coupling program."""
DIRECT = 300_000_000
"""Up to so many products a law of a sum is added up term by term."""
CLOSE_OTHERS = 7
"""How many others like itself a party thinks of; more change little."""


@dataclass(frozen=True)
class CouplingLP:
    """The coupling program (head of this module) of one party for one contraction, on likely inputs and outputs."""

    entity: Entity
    moved: Array
    """The contraction, one row for each input `0..last`."""
    inputs: Integers
    outputs: Integers
    cost: Cost

    @staticmethod
    def of(entity: Entity, moved: Array, cost: Cost, every: bool = False) -> CouplingLP:
        """The program on the likely inputs and outputs, or with `every` on all inputs with outputs like them."""
        inputs = np.arange(entity.last + 1) if every else entity.core(RARE_INPUT)
        outputs = entity.factor * inputs if every else entity.window(moved, inputs, RARE_OUTPUT)
        if len(inputs) * len(outputs) > CELLS:
            raise ProblemError(
                f"The coupling program may have at most {CELLS:,} unknowns. Found {len(inputs)} likely inputs and "
                f'{len(outputs)} outputs. Use method = "geometric", or coarser contributions.'
            )
        return CouplingLP(entity, moved, inputs, outputs, cost)

    @cached_property
    def base(self) -> Array:
        places = np.arange(self.entity.last + 1)
        return product(self.moved[self.inputs], self.entity.kernel(places, self.outputs))

    @cached_property
    def laws(self) -> Array:
        return self.entity.laws[:, self.inputs]

    @cached_property
    def losses(self) -> Array:
        gaps = self.outputs[None, :] - self.entity.factor * self.inputs[:, None]
        return self.entity.prior[self.inputs][:, None] * self.cost(gaps)

    @cached_property
    def scale(self) -> Array:
        """Joint scaling: no unknown is larger than what its row and its column can hold."""
        weight = self.entity.importance[self.inputs]
        return np.minimum(1.0, product(weight, self.base)[None, :] / weight[:, None])

    def to_program(self) -> LinearProgram:
        """As sparse arrays: unknown `x * width + s` is `r(x, s) / scale(x, s)`, and every equality is about 1 = 1.

        What follows from other equalities is left out: at the likeliest output, and for secrets whose laws are
        combinations of others'. Near-dependent rows are what a solver stumbles over.
        """
        width = self.base.shape[1]
        weight = self.entity.importance[self.inputs]
        needed = self.laws[basis(self.laws, weight)]
        used = np.delete(np.arange(width), np.argmax(product(weight, self.base)))
        scale = sp.diags(self.scale.ravel())
        rows = sp.kron(sp.diags(1 / total(self.base, axis=1)), np.ones((1, width))) @ scale
        columns = sp.kron(needed, sp.identity(width, format="csr")[used]) @ scale
        mass = np.maximum(product(needed, self.base)[:, used].ravel(), 1e-300)
        matrix = sp.vstack([rows, sp.diags(1 / mass) @ columns], format="csr")
        equal = np.ones(matrix.shape[0])
        return LinearProgram((self.losses * self.scale).ravel(), matrix, equal, equal)

    def to_cvxpy(self) -> Any:
        """The specification: a CVXPY problem whose only variable is the table `r` on the window."""
        cp = import_cvxpy()
        R = cp.Variable(self.base.shape, name="R")
        constraints = [
            R >= 0,
            cp.sum(R, axis=1) == self.base.sum(axis=1),
            self.laws @ R == self.laws @ self.base,
        ]
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(self.losses, R))), constraints)

    def solve(self) -> Array | None:
        """The best table that HiGHS finds, if its output laws are right."""
        program = self.to_program()
        for solver in ("simplex", "ipm"):
            answer = solve_highs(program, solver)
            table = self.trusted(answer.x.reshape(self.base.shape) * self.scale)
            if table is not None:
                return table
        return None

    def trusted(self, table: Array) -> Array | None:
        """`table` with the row sums of the base kernel, if it then keeps the output laws to `ACCURACY`."""
        table = np.maximum(table, 0.0)
        sums, mass = total(table, axis=1), total(self.base, axis=1)
        if not (sums > 0).all():
            return None
        table = table * (mass / sums)[:, None]
        wanted = product(self.laws, self.base)
        return table if (np.abs(product(self.laws, table) - wanted) <= ACCURACY * wanted).all() else None

    def error_law(self, table: Array) -> Array:
        """The law of `s - f x` on `-half..half`, where `2 half + 1` is its length."""
        entity = self.entity
        f, span = entity.factor, abs(entity.factor) * entity.last
        half = entity.reach + 2 * span + int(np.abs(self.outputs).max())
        moves = np.zeros(2 * span + 1)
        for x in range(entity.last + 1):
            places = np.flatnonzero(self.moved[x])
            moves[span + f * (places - x)] += entity.prior[x] * self.moved[x, places]
        chances = np.zeros(2 * half + 1)
        known = min(half, entity.half)
        chances[half - known : half + known + 1] = entity.chances[entity.half - known : entity.half + known + 1]
        law = _sum(chances, moves)[span : span + 2 * half + 1]
        for x, change in zip(self.inputs, table - self.base, strict=True):
            law[self.outputs - f * x + half] += entity.prior[x] * change
        return np.asarray(np.maximum(law, 0.0), dtype=np.float64)


def best_table(entity: Entity, moved: Array) -> tuple[CouplingLP, Array | None]:
    """The table for one's own error, then the one for the aggregate of parties like oneself; the better of the two."""
    program = CouplingLP.of(entity, moved, entity.own_cost)
    table = program.solve()
    if table is None:
        return program, table
    law = program.error_law(table)
    second = replace(program, cost=among_others(entity, law))
    other = second.solve()
    if other is None or aggregate_error(entity, second.error_law(other)) >= aggregate_error(entity, law):
        return program, table
    return second, other


def among_others(entity: Entity, law: Array) -> Cost:
    """`E |gap + N|^power`, `N` the sum of the others' errors, each of the law `law`."""
    others = np.ones(1)
    for _ in range(min(entity.copies - 1, CLOSE_OTHERS)):
        others = _sum(others, law)
    return expected_cost(others / total(others), entity.power)


def _sum(one: Array, other: Array) -> Array:
    """The law of a sum, for what it costs: by Fourier where it is long, and then what may differ is rounded away."""
    if len(one) * len(other) <= DIRECT:
        return np.asarray(convolve(one, other), dtype=np.float64)
    return np.asarray(np.rint(np.maximum(fftconvolve(one, other), 0.0) * 2.0**44) / 2.0**44, dtype=np.float64)


def aggregate_error(entity: Entity, law: Array) -> float:
    """The error of an aggregate of parties like this one."""
    half = len(law) // 2
    return float(product(law, among_others(entity, law)(np.arange(-half, half + 1))))


def coupled_error(entity: Entity, moved: Array) -> float:
    """A party's own error with the best coupling after the contraction `moved`; infinite if none was found."""
    program = CouplingLP.of(entity, moved, entity.own_cost)
    table = program.solve()
    if table is None:
        return math.inf
    law = program.error_law(table)
    half = len(law) // 2
    return float(product(law, entity.own_cost(np.arange(-half, half + 1))))
