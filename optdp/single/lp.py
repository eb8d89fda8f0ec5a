"""The linear program of one LTE as numbers, as sparse arrays, and as a CVXPY model that reads like the paper.

The unknown is the table `W(x, s) >= 0`; the mechanism is `r(x, s) = c(x) W(x, s)`, where `c(x)` is the mass that
geometric tails leave to the table (1 without tails). With `weight_i(x) = Pr[sum = x | secret i] c(x)`:

    minimise    sum over x, s of  cost(x) |x-s|^power W(x, s)                    cost(x) = prior(x) c(x)
    subject to  sum over s of W(x, s) = 1
                sum over s of |x-s| W(x, s) <= cap(x)                            cap(x) = (2q/(1-q^2) - tail(x)) / c(x)
                sum over x of (weight_i(x) - e^eps weight_j(x)) W(x, s) <= 0     each step i, j, both ways, each s
                c(x) W(x, s) <= chain c(x') W(x', s)                             |x - x'| <= reach, with a fallback f

With unit steps `chain = e^(f/D)` and `reach = 1`; with adjacency "all" `chain = e^f` and `reach = D`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from flint import arb

from optdp import work
from optdp.errors import ProblemError
from optdp.numbers.exact import ball
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.program import LinearProgram
from optdp.single.certify import mixed_prior, tail_error
from optdp.single.laws import Laws, Shape, Sight
from optdp.single.problem import SingleLTE
from optdp.single.watch import views
from optdp.single.window import FULL_LIMIT, choose_shape, likely_inputs
from optdp.work.account import paced

Array = npt.NDArray[np.float64]

COEFFICIENTS = 20_000_000
"""The most numbers that the privacy constraints of an output may have."""
SECRET_SECONDS, PAIR_SECONDS = 2e-6, 4e-6
"""What the law of a secret and the constraints of a pair of them take at an input."""
ROWS = 400_000
"""The most rows of a table; a file may have three million values."""
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
    far_cap: Array | None
    """The caps, were there a row for every input: only tails outside `0..last` count."""
    mass: Array
    """`c(x)`."""
    growth: Array
    """By what factor `c(x)` would be larger, were there a row for every input."""
    chain: float | None
    """By what factor inputs at most `reach` apart may differ in an output, or None without a fallback."""
    reach: int
    margin: float
    """By how much the caps are tightened for an engine, so that repair has room; the lower bound ignores it."""
    constant: float
    """The error that geometric tails (and inputs without a row) add to the objective."""
    envelope: Array | None
    """How likely each input is at most in any world of the observers; None without such worlds."""
    inevitable: float
    """As much of it as any table has, were there a row for every input: that of tails outside `0..last`."""

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
        total: Array = self.cost + (self.weights.sum(axis=0) if self.envelope is None else self.envelope)
        return total

    @property
    def rungs(self) -> range:
        """The distances at which a fallback compares inputs."""
        return range(1, min(self.reach, len(self.inputs) - 1) + 1)

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

    def seen(self, sights: Sequence[Sight]) -> NoiseLP:
        """The same program with the privacy constraints of these sights alone. To be called within `precision()`."""
        laws = Laws.build(self.problem, self.shape, sights=sights)
        weights = np.array([[float(value) for value in row] for row in laws.weights])
        return replace(self, laws=laws, weights=weights, gaps=_gaps(laws))

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
            blocks.append(sp.block_diag([sp.csr_matrix(row[None, :]) for row in distance]))
            lower.append(np.full(size, -np.inf))
            upper.append(self.tight_cap)
        if self.chain is not None:
            mass = sp.diags(self.mass, format="csr")
            for far in self.rungs:
                for step in (mass[:-far] - self.chain * mass[far:], mass[far:] - self.chain * mass[:-far]):
                    blocks.append(sp.kron(step, eye))
                    lower.append(np.full((size - far) * size, -np.inf))
                    upper.append(np.zeros((size - far) * size))
        return LinearProgram(
            cost=(self.cost[:, None] * distance**self.power).ravel(),
            matrix=sp.vstack(blocks, format="csr"),
            lower=np.concatenate(lower),
            upper=np.concatenate(upper),
        )

    def to_cvxpy(self) -> Any:
        """The specification: a CVXPY problem whose only variable is the table `W`."""
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
            for far in self.rungs:
                constraints += [R[:-far] <= self.chain * R[far:], R[far:] <= self.chain * R[:-far]]
        loss = cp.multiply(self.cost[:, None] * distance**self.power, W)
        return cp.Problem(cp.Minimize(cp.sum(loss)), constraints)


def formulate(problem: SingleLTE, margin: float = 1e-9, progress: Callable[[str], None] = lambda _: None) -> NoiseLP:
    """The numbers of `problem`'s program, with caps tightened by `margin`. To be called within `precision()`."""
    shape = choose_shape(problem)
    first, last = shape.inputs
    _announce(problem, last - first + 1, progress)
    laws = Laws.build(problem, shape)
    prior = mixed_prior(problem, first, last)
    tails = [tail_error(shape, x, 1) for x in range(first, last + 1)]
    losses = tails if problem.objective == "mae" else [tail_error(shape, x, 2) for x in range(first, last + 1)]
    outer = arb(1) - sum(prior, arb(0)) if shape.outside == "geometric" else arb(0)
    constant = sum((a * b for a, b in zip(prior, losses, strict=True)), arb(0)) + outer * ball(problem.baseline)
    far, inevitable = tails, constant  # outside all inputs
    if shape.outside != "error":
        whole, power = shape.whole, 1 if problem.objective == "mae" else 2
        far = [tail_error(whole, x, 1) for x in range(first, last + 1)]
        inevitable = sum((chance * tail_error(whole, x, power) for x, chance in enumerate(prior, first)), arb(0))
    cap, far_cap = None, None
    if problem.never_worse:
        limit = ball(problem.cap)
        cap = np.array([float((limit - tail) / mass) for tail, mass in zip(tails, shape.masses, strict=True)])
        far_cap = np.array([float((limit - tail) / mass) for tail, mass in zip(far, shape.masses, strict=True)])
    ordinary, every = problem.chain_epsilon, problem.adjacency == "all"
    return NoiseLP(
        problem=problem,
        laws=laws,
        inputs=np.arange(first, last + 1, dtype=float),
        cost=np.array([float(a * b) for a, b in zip(prior, shape.masses, strict=True)]),
        weights=np.array([[float(value) for value in row] for row in laws.weights]),
        gaps=_gaps(laws, progress),
        cap=cap,
        far_cap=far_cap,
        mass=np.array([float(mass) for mass in shape.masses]),
        growth=np.array([float(value) for value in shape.growth]),
        chain=None if ordinary is None else float(ball(ordinary / problem.steps).exp()),
        reach=problem.largest if every else 1,
        margin=margin,
        constant=float(constant),
        envelope=_envelope(problem, shape),
        inevitable=float(inevitable),
    )


def _gaps(laws: Laws, progress: Callable[[str], None] = lambda _: None) -> Array:
    """The privacy constraints of an output: two for each step."""
    gaps = []
    for step in paced(laws.steps, "writing out privacy constraints", progress):
        e = laws.exponentials[step.epsilon]
        one, other = laws.weights[step.one], laws.weights[step.other]
        gaps += [
            np.array([float(a - e * b) for a, b in zip(one, other, strict=True)]),
            np.array([float(b - e * a) for a, b in zip(one, other, strict=True)]),
        ]
    return np.array(gaps)


def _envelope(problem: SingleLTE, shape: Shape) -> Array | None:
    """How likely each input is at most, at any vertex of any observer."""
    if not problem.watched:
        return None
    found = np.zeros(problem.last + 1)
    for view in views(problem):
        peaks = view.floats.max(axis=0)
        for u in range(view.family.shifts + 1):
            run = slice(u, u + len(peaks))
            found[run] = np.maximum(found[run], peaks)
    envelope: Array = found * np.array([float(mass) for mass in shape.masses])
    return envelope


def pair_seconds(size: int) -> float:
    """About how long the pair form takes with so many inputs that matter."""
    return float(1e-8 * size**2.6)


def _announce(problem: SingleLTE, size: int, progress: Callable[[str], None]) -> None:
    """How long it takes to write down the numbers: some microseconds for each secret and each pair, at each input."""
    kinds = [len(person.conditionals) for prior in problem.populations for person in prior.people]
    pairs = sum(many * (many - 1) // 2 if problem.adjacency == "all" else many - 1 for many in kinds)
    fits = "Use fewer people, kinds of people or priors, or coarser contributions."
    if size > ROWS:
        raise ProblemError(
            f"A table may have {ROWS:,} rows. Found {size:,} inputs that need one, as geometric noise reaches so far "
            f'at epsilon = {float(problem.epsilon):.3g}. Use a larger epsilon, fewer people, or method = "geometric".'
        )
    if 2 * pairs * size > COEFFICIENTS:
        raise ProblemError(
            f"The privacy constraints of an output may have {COEFFICIENTS:,} coefficients. Found {2 * pairs * size:,}, "
            f"for {pairs:,} pairs of secrets at {size:,} inputs. {fits}"
        )
    if problem.last > FULL_LIMIT and problem.method == "lp":
        low, high = likely_inputs(problem, 1e-13)
        crowd = f"The program of {high - low + 1:,} inputs that matter, or more,"
        work.announce(pair_seconds(high - low + 1), crowd, "Use a larger epsilon or fewer people.")
    seconds = size * (SECRET_SECONDS * sum(kinds) + PAIR_SECONDS * pairs)
    work.announce(seconds, f"Writing down the laws of {sum(kinds):,} secrets at {size:,} inputs", fits, progress)
