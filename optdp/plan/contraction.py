"""The programs of an entity that designs alone: how it moves its input, and how its report hangs together with that.

**Contractions** (A, section VI-D). A contraction is a random map `A(x, y)` on `0..last` towards the likely inputs. What
privacy asks of it (docs/mathematics.md, Proposition 12) is that the contracted input is private under geometric noise
of the ratio `q` that all shares together amount to. With `P_w(x)` the probability of `x` given secret `w` and
`a_w(y) = sum over x of P_w(x) A(x, y)`:

    sum over y of a_w(y) q^(|f||z-y|) <= e^(step epsilon) (the same for w')          every z, every step w, w'      (*)

For `q = e^-eps` this holds for every `A` that moves neighbours no further apart than they were, which is so exactly
when the distribution functions satisfy `F_x(y-1) <= F_{x+1}(y) <= F_x(y)`. Clipping each row to the bounds that its
neighbour sets, from the mode outwards, makes it so (`settled`). But a contraction makes (*) slack, and what it saves is
spent on **less noise**, `q = e^-(level eps)` with a `level` above 1, on which the parties agree as they do on epsilon.

**The best contraction** for a level is part of a linear program, as the laws to be kept are linear in `A`. With `G` the
kernel `SGDL_beta(s - f y)` and `I` the outputs of the table:

    minimise    sum over x of prior(x) (sum over s in I of cost(s - f x) r(x, s) + sum over y of A(x, y) outer(x, y))
    subject to  sum over y of A(x, y) = 1
                sum over s in I of r(x, s) = sum over y of A(x, y) sum over s in I of G(y, s)
                sum over x of P_w(x) r(x, s) = sum over y of a_w(y) G(y, s)               every s in I, every secret w
                (*),  A >= 0,  r >= 0

`outer(x, y)` is the cost that noise around `f y` has outside `I`. Rare inputs are treated like the nearest likely one.
Only `A` is taken from the answer; the table is then optimised for it anew.

**The coupling program** (A, section VI-C): with a contraction, and then a share of noise, as the *base kernel*, privacy
only asks that the law of the report given each secret stays what it is; which input gets which report is free:

    minimise    sum over x and s in I of prior(x) cost(s - f x) r(x, s)
    subject to  sum over s in I of r(x, s) = sum over s in I of base(x, s)                  every input x
                sum over x of P_w(x) r(x, s) = sum over x of P_w(x) base(x, s)              every s in I, every secret w
                r >= 0

Outside `I`, and for inputs that are too rare to matter, the base kernel stays. It is feasible itself, so nothing gets
worse. The cost is first `|gap|^power`, the party's own error; then, since only the aggregate counts, `E |gap +
N|^power` with `N` the error of others like itself; the better table (for an aggregate of parties like itself) is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.signal import fftconvolve

from optdp.errors import ProblemError
from optdp.mechanism.matrix import Row
from optdp.numbers.ordered import Array, convolve, product, total
from optdp.plan.parties import Cost, Entity, Integers, decay, expected_cost
from optdp.programs.backends import answers
from optdp.programs.program import LinearProgram

DENOMINATOR = 1 << 62
"""What the weights of a contraction's row sum to."""
NEGLIGIBLE = 1e-12
"""Coefficients of a scaled program that are left out; HiGHS itself drops what is below 1e-9."""
TOLERANCE = 1e-6
"""How far an answer may miss a constraint of a scaled program."""
HIDING = (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Shares of "forget the input and draw one" that make up for a solver's inaccuracy in (*), tried in turn."""


# ---------------------------------------------------------------------- tables and integers


def unmoved(last: int) -> Array:
    """The contraction that does nothing."""
    return np.eye(last + 1)


def rounded(places: Sequence[Fraction]) -> Array:
    """Each input goes to a real place, which is rounded at random up or down with the right mean."""
    table = np.zeros((len(places), len(places)))
    for x, place in enumerate(places):
        low = math.floor(place)
        table[x, low] = 1 - float(place - low)
        if place > low:
            table[x, low + 1] = float(place - low)
    return table


def scaled(entity: Entity, strength: float) -> Array:
    """`mode + (1 - strength) (x - mode)`, rounded at random; the strength is rounded up to a multiple of 1/4096."""
    kept = 1 - Fraction(min(math.ceil(strength * 4096), 4096), 4096)
    return rounded([entity.mode + kept * (x - entity.mode) for x in range(entity.last + 1)])


def just_enough(entity: Entity) -> Array:
    """The weakest scaled contraction that satisfies (*)."""
    low, high = 0.0, 1.0
    if entity.quotient(unmoved(entity.last)) <= entity.limit * (1 + 1e-12):
        return unmoved(entity.last)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if entity.quotient(scaled(entity, middle)) <= entity.limit else (middle, high)
    return scaled(entity, high)


def hidden(entity: Entity, moved: Array, law: Array) -> Array | None:
    """`moved` with the least share of "forget the input and draw from `law`" with which it satisfies (*)."""
    for share in HIDING:
        trial = (1 - share) * moved + share * law
        if entity.quotient(trial) <= entity.limit:
            return np.asarray(trial, dtype=np.float64)
    return None


def settled(moved: Array, mode: int, clip: bool = True) -> Integers:
    """The nearest integer rows; with `clip`, each within what its neighbour allows: inputs never move apart."""
    sums = np.cumsum(np.maximum(moved, 0.0), axis=1)
    sums = np.rint(sums / sums[:, -1:] * DENOMINATOR).astype(np.int64)
    start, end = np.zeros(1, np.int64), np.full(1, DENOMINATOR)
    for x in range(mode + 1, len(sums) if clip else 0):
        sums[x] = np.clip(sums[x], np.concatenate([start, sums[x - 1, :-1]]), sums[x - 1])
    for x in range(mode - 1 if clip else -1, -1, -1):
        sums[x] = np.clip(sums[x], sums[x + 1], np.concatenate([sums[x + 1, 1:], end]))
    return np.asarray(np.diff(sums, axis=1, prepend=0), dtype=np.int64)


def integer_rows(weights: Integers) -> tuple[Row, ...] | None:
    """Rows of `(y, weight)`; None for the contraction that does nothing."""
    if (np.diagonal(weights) == DENOMINATOR).all():
        return None
    return tuple(tuple((int(y), int(row[y])) for y in np.flatnonzero(row)) for row in weights)


# ---------------------------------------------------------------------- the program


def basis(laws: Array, weight: Array) -> list[int]:
    """Secrets whose laws span all others': equalities for them imply the rest, and a solver needs them independent.

    The law that is farthest from the span of those so far comes next, the first of those that are nearly as far.
    """
    left = laws / np.sqrt(weight)
    chosen: list[int] = []
    farthest = 0.0
    while len(chosen) < len(laws):
        sizes = np.sqrt(total(left * left, axis=1))
        next_one = int(np.flatnonzero(sizes >= (1 - 1e-6) * sizes.max())[0])
        farthest = max(farthest, float(sizes[next_one]))
        if sizes[next_one] <= 1e-8 * farthest:
            break
        chosen.append(next_one)
        direction = left[next_one] / sizes[next_one]
        for _ in range(2):  # once more for what rounding left
            left = left - product(left, direction)[:, None] * direction[None, :]
    return sorted(chosen)


@dataclass(frozen=True)
class ContractionLP:
    """The program of the best contraction (head of this module), on likely inputs and outputs."""

    entity: Entity
    inputs: Integers
    outputs: Integers

    @staticmethod
    def of(entity: Entity, rare_input: float, rare_output: float) -> ContractionLP:
        inputs = entity.core(rare_input)
        return ContractionLP(entity, inputs, entity.window(unmoved(entity.last), inputs, rare_output))

    def _merged(self, laws: Array) -> Array:
        """Laws on the likely inputs; rarer ones count for the nearest."""
        first, final = self.inputs[0], self.inputs[-1]
        merged = laws[..., first : final + 1].copy()
        merged[..., 0] += total(laws[..., :first], axis=-1)
        merged[..., -1] += total(laws[..., final + 1 :], axis=-1)
        return merged

    @cached_property
    def prior(self) -> Array:
        return self._merged(self.entity.prior)

    @cached_property
    def laws(self) -> Array:
        return self._merged(self.entity.laws)

    @cached_property
    def kernel(self) -> Array:
        return self.entity.kernel(self.inputs, self.outputs)

    @cached_property
    def decay(self) -> Array:
        return decay(self.inputs, float(self.entity.noise.q), self.entity.factor)

    @cached_property
    def losses(self) -> Array:
        """`prior(x) cost(s - f x)`."""
        gaps = self.outputs[None, :] - self.entity.factor * self.inputs[:, None]
        return self.prior[:, None] * self.entity.own_cost(gaps)

    @cached_property
    def outer_losses(self) -> Array:
        """`prior(x) outer(x, y)`."""
        f = self.entity.factor
        moves = f * (self.inputs[None, :] - self.inputs[:, None])
        gaps = self.outputs[None, :] - f * self.inputs[:, None]
        return self.prior[:, None] * (
            self.entity.noisy_cost()(moves) - product(self.entity.own_cost(gaps), self.kernel.T)
        )

    @cached_property
    def scales(self) -> tuple[Array, Array, Array]:
        """How important each input is, and the joint scaling of `r` and `A`: what their row and column can hold."""
        weight = self._merged(self.entity.importance)
        column = product(weight, self.kernel)
        return weight, np.minimum(1.0, column / weight[:, None]), np.minimum(1.0, weight[None, :] / weight[:, None])

    def to_program(self) -> LinearProgram:
        """As sparse arrays, scaled: the unknowns are `r`, then `A`, then `a_w`, each divided by its scale.

        For each secret the equality at the likeliest output is left out: it follows from the others and the row
        sums, and near-dependent rows are what a solver stumbles over.
        """
        size, width, secrets = len(self.inputs), len(self.outputs), len(self.laws)
        weight, scale, step = self.scales
        column = product(weight, self.kernel)
        rows, places = sp.diags(scale.ravel()), sp.diags(step.ravel())
        eye, ones = sp.identity(size), np.ones((1, size))
        row_sums = sp.kron(eye, np.ones((1, width))) @ rows
        inside = sp.kron(eye, total(self.kernel, axis=1)[None, :]) @ places
        used = np.delete(np.arange(width), np.argmax(column))
        select = sp.identity(width, format="csr")[used]
        needed = basis(self.laws, weight)
        released = sp.kron(self.laws[needed], sp.diags(1 / column[used]) @ select) @ rows
        kept = sp.kron(
            sp.identity(secrets, format="csr")[needed], _sparse((weight[:, None] * self.kernel / column).T[used])
        )
        moved = sp.kron(self.laws, sp.diags(1 / weight)) @ places
        seen = self.decay * weight
        choose = np.zeros((2 * len(self.entity.steps), secrets))
        for i, (one, other) in enumerate(self.entity.steps):
            choose[2 * i, [one, other]] = 1, -self.entity.limit
            choose[2 * i + 1, [other, one]] = 1, -self.entity.limit
        private = sp.kron(choose, _sparse(seen / total(seen, axis=1, keepdims=True)))
        matrix = sp.block_array(
            [
                [row_sums, -inside, None],
                [None, sp.kron(eye, ones) @ places, None],
                [released, None, -kept],
                [None, moved, -sp.identity(secrets * size)],
                [None, None, private],
            ],
            format="csr",
        )
        equal = np.concatenate([np.zeros(size), np.ones(size), np.zeros(len(needed) * len(used) + secrets * size)])
        bounded = private.shape[0]
        cost = [(self.losses * scale).ravel(), (self.outer_losses * step).ravel(), np.zeros(secrets * size)]
        lower = np.concatenate([equal, np.full(bounded, -np.inf)])
        return LinearProgram(np.concatenate(cost), matrix, lower, np.concatenate([equal, np.zeros(bounded)]))

    def solve(self) -> tuple[Array | None, float]:
        """The contraction that a solver finds, for every input, if it can be made to satisfy (*), and its own error."""
        size, width = len(self.inputs), len(self.outputs)
        first, final, last = int(self.inputs[0]), int(self.inputs[-1]), self.entity.last
        weight, _, step = self.scales
        law = np.zeros(last + 1)
        law[first : final + 1] = weight / total(weight)
        program = self.to_program()
        for answer in answers(program, "ipm", "simplex"):
            x = answer.x
            if x is None:
                continue
            values = program.matrix @ x  # an answer is judged by that, not by what the solver says of it
            if max(np.max(program.lower - values), np.max(values - program.upper), np.max(-x)) > TOLERANCE:
                continue
            found = np.maximum(x[size * width : size * (width + size)].reshape(size, size) * step, 0)
            table = np.zeros((last + 1, last + 1))
            table[first : final + 1, first : final + 1] = found / total(found, axis=1, keepdims=True)
            table[:first], table[final + 1 :] = table[first], table[final]
            private = hidden(self.entity, table, law)
            if private is not None:
                return private, float(product(program.cost, x))
        return None, math.inf


def _sparse(values: Array) -> Any:
    return sp.csr_array(np.where(values < NEGLIGIBLE, 0.0, values))


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

    def solve(self) -> Array | None:
        """The best table that a solver finds, if its output laws are right."""
        program = self.to_program()
        for answer in answers(program, "simplex", "ipm"):
            if answer.x is None:
                continue
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
