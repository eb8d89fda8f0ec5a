"""The linear program of one LTE as numbers, as sparse arrays, and as a CVXPY model that reads like the paper.

The unknown is the table `W(x, s) >= 0`; the mechanism is `r(x, s) = c(x) W(x, s)`, where `c(x)` is the mass that
geometric tails leave to the table (1 without tails). With `weight_i(x) = Pr[sum = x | secret i] c(x)`:

    minimise    sum over x, s of  cost(x) |x-s|^power W(x, s)                    cost(x) = prior(x) c(x)
    subject to  sum over s of W(x, s) = 1
                sum over s of |x-s| W(x, s) <= cap(x)                            cap(x) = (2q/(1-q^2) - tail(x)) / c(x)
                sum over x of (weight_i(x) - e^eps weight_j(x)) W(x, s) <= 0     each step i, j, both ways, each s
                c(x) W(x, s) <= e^f c(x') W(x', s)                               |x - x'| = 1, with a fallback
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from flint import arb

from optdp.math.exact import ball
from optdp.noise.certify import mixed_prior, tail_error
from optdp.noise.laws import Laws, Shape
from optdp.noise.single import SingleLTE
from optdp.noise.window import choose_shape
from optdp.solvers.program import LinearProgram

Array = npt.NDArray[np.float64]

CELLS = 4_000_000
"""Largest number of unknowns of the core program; each takes some hundred bytes and more for every secret."""


@dataclass(frozen=True)
class NoiseLP:
    """The program's numbers; floats are correct to the last bit or two, being rounded from balls."""

    problem: SingleLTE
    laws: Laws
    inputs: Array
    """The inputs that have a row; the outputs are the same numbers."""
    cost: Array
    weights: Array
    """One row for each secret."""
    gaps: Array
    """One row for each privacy constraint: `gaps[j] @ W[:, s] <= 0` for every output `s`."""
    cap: Array | None
    mass: Array
    """`c(x)`."""
    chain: float | None
    """`e^f` for one unit step, or None without a fallback."""
    margin: float
    """By how much the caps are tightened for an engine, so that repair has room; the lower bound ignores it."""
    constant: float
    """The error that geometric tails (and inputs without a row) add to the objective."""

    @property
    def shape(self) -> Shape:
        return self.laws.shape

    @property
    def power(self) -> int:
        return 1 if self.problem.objective == "mae" else 2

    @property
    def tight_cap(self) -> Array | None:
        """The caps that an engine should keep."""
        return None if self.cap is None else self.cap * (1 - self.margin)

    @property
    def importance(self) -> Array:
        """How much an input matters to anything: to the objective or to any secret."""
        total: Array = self.cost + self.weights.sum(axis=0)
        return total

    @property
    def distances(self) -> Array:
        gaps: Array = np.abs(np.subtract.outer(self.inputs, self.inputs))
        return gaps

    def core(self, share: float) -> slice:
        """The shortest run of inputs that leaves out at most `share` of the importance on either side."""
        ranked = self.importance
        total = ranked.sum()
        first = int(np.searchsorted(np.cumsum(ranked), share * total))
        last = len(ranked) - 1 - int(np.searchsorted(np.cumsum(ranked[::-1]), share * total))
        return slice(first, last + 1)

    # ------------------------------------------------------------------ the same program, three ways

    def to_program(self) -> LinearProgram:
        """The plain program as sparse arrays, without scaling: variable `(x, s)` is number `x * size + s`."""
        size = len(self.inputs)
        distance = self.distances
        eye, ones = sp.identity(size, format="csr"), np.ones((1, size))
        blocks: list[Any] = [sp.kron(eye, ones)]
        lower, upper = [np.ones(size)], [np.ones(size)]
        for gap in self.gaps:
            blocks.append(sp.kron(gap[None, :], eye))
            lower.append(np.full(size, -np.inf))
            upper.append(np.zeros(size))
        if self.tight_cap is not None:
            blocks.append(sp.block_diag([row[None, :] for row in distance]))
            lower.append(np.full(size, -np.inf))
            upper.append(self.tight_cap)
        if self.chain is not None:
            mass = sp.diags(self.mass, format="csr")
            up = mass[:-1] - self.chain * mass[1:]
            down = mass[1:] - self.chain * mass[:-1]
            for step in (up, down):
                blocks.append(sp.kron(step, eye))
                lower.append(np.full((size - 1) * size, -np.inf))
                upper.append(np.zeros((size - 1) * size))
        return LinearProgram(
            cost=(self.cost[:, None] * distance**self.power).ravel(),
            matrix=sp.vstack(blocks, format="csr"),
            lower=np.concatenate(lower),
            upper=np.concatenate(upper),
        )

    def to_cvxpy(self) -> Any:
        """The specification: a CVXPY problem whose only variable is the table `W`."""
        from optdp.solvers.cvxpy import import_cvxpy

        cp = import_cvxpy()
        size, distance = len(self.inputs), self.distances
        W = cp.Variable((size, size), name="W")
        constraints = [W >= 0, cp.sum(W, axis=1) == 1]
        for step in self.laws.steps:
            e = math.exp(step.epsilon)
            one, other = self.weights[step.one], self.weights[step.other]
            constraints += [one @ W <= e * (other @ W), other @ W <= e * (one @ W)]
        if self.tight_cap is not None:
            constraints.append(cp.sum(cp.multiply(distance, W), axis=1) <= self.tight_cap)
        if self.chain is not None:
            R = cp.multiply(self.mass[:, None], W)
            constraints += [R[:-1] <= self.chain * R[1:], R[1:] <= self.chain * R[:-1]]
        loss = cp.multiply(self.cost[:, None] * distance**self.power, W)
        return cp.Problem(cp.Minimize(cp.sum(loss)), constraints)


def formulate(problem: SingleLTE, margin: float = 1e-9) -> NoiseLP:
    """The numbers of `problem`'s program, with caps tightened by `margin`. To be called within `precision()`."""
    shape = choose_shape(problem)
    laws = Laws.build(problem, shape)
    first, last = shape.inputs
    prior = mixed_prior(problem, first, last)
    tails = [tail_error(shape, x, 1) for x in range(first, last + 1)]
    losses = tails if problem.objective == "mae" else [tail_error(shape, x, 2) for x in range(first, last + 1)]
    outer = arb(1) - sum(prior, arb(0)) if shape.outside == "geometric" else arb(0)
    constant = sum((a * b for a, b in zip(prior, losses, strict=True)), arb(0)) + outer * ball(problem.baseline)
    gaps = []
    for step in laws.steps:
        e = laws.exponentials[step.epsilon]
        one, other = laws.weights[step.one], laws.weights[step.other]
        gaps += [
            [float(a - e * b) for a, b in zip(one, other, strict=True)],
            [float(b - e * a) for a, b in zip(one, other, strict=True)],
        ]
    cap = None
    if problem.never_worse:
        limit = ball(problem.cap)
        cap = np.array([float((limit - tail) / mass) for tail, mass in zip(tails, shape.masses, strict=True)])
    fallback = problem.fallback_epsilon
    return NoiseLP(
        problem=problem,
        laws=laws,
        inputs=np.arange(first, last + 1, dtype=float),
        cost=np.array([float(a * b) for a, b in zip(prior, shape.masses, strict=True)]),
        weights=np.array([[float(value) for value in row] for row in laws.weights]),
        gaps=np.array(gaps),
        cap=cap,
        mass=np.array([float(mass) for mass in shape.masses]),
        chain=None if fallback is None else float(ball(fallback / problem.largest).exp()),
        margin=margin,
        constant=float(constant),
    )
