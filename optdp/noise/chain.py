"""With a fallback: the whole program by an interior-point method that knows its structure.

In the mechanism itself, `r(x, s) = c(x) W(x, s)`, and with `ratio = e^-f` for one unit step the program is

    minimise    sum over x, s of  (cost(x)/c(x)) |x-s|^power r(x, s)
    subject to  sum over s of r(x, s) = c(x)                                        price y(x)
                r(x', s) - ratio r(x, s) >= 0              |x - x'| = 1             price v(x, s) >= 0
                - sum over x of (gaps[j](x)/c(x)) r(x, s) >= 0                      price u(j, s) >= 0
                c(x) cap(x) - sum over s of |x-s| r(x, s) >= 0                      price z(x) >= 0

The chain alone makes `r` positive, so that there is no other sign to keep. Simplex is hopeless (the optimum has three
quarters of all `2 n^2` chain rows tight), but Newton's equations decouple: for each output a tridiagonal matrix,
bordered by its privacy rows, and one dense system in `(y, z)` that ties the outputs together. The steps are those of
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2 (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from optdp.errors import ProblemError, SolverError
from optdp.noise.bound import Prices
from optdp.noise.draft import Draft
from optdp.noise.lp import NoiseLP

Array = npt.NDArray[np.float64]

LARGEST = 1200
"""The most inputs; time grows with the third power of their number."""
MEMORY = 8e9
"""Bytes that the factors may take."""
GAP = 1e-7
"""The relative gap between value and bound that is good enough."""
RESIDUAL = 1e-9
"""By how much a row of the table may miss its sum or exceed its cap."""
PATIENCE = 25
"""Iterations without progress before giving up."""
ITERATIONS = 250
REFINEMENTS = 4


@dataclass(frozen=True)
class Model:
    """The program's numbers, scaled so that masses and costs are of the order of 1."""

    cost: Array
    """One for each input and output."""
    distance: Array
    gaps: Array
    """One row for each input, one column for each privacy constraint that binds, of largest entry 1."""
    mass: Array
    cap: Array | None
    ratio: float
    binding: Array
    """The numbers of the constraints that are kept."""
    sizes: Array
    """What the privacy constraints were divided by."""
    unit: float
    """What costs were divided by."""

    @staticmethod
    def of(lp: NoiseLP, cap: Array | None) -> Model:
        e = lp.chain if lp.chain is not None else np.inf
        largest = float(lp.mass.max())
        cost, gaps = lp.cost / lp.mass, lp.gaps / lp.mass
        binding = np.flatnonzero(gaps.max(axis=1) > 0)
        binding = binding if len(binding) else np.array([0])
        sizes = np.abs(gaps[binding]).max(axis=1)
        sizes = np.where(sizes > 0, sizes, 1.0)
        unit = float(lp.cost.sum()) or 1.0
        return Model(
            cost=(cost / unit)[:, None] * lp.distances**lp.power,
            distance=lp.distances,
            gaps=(gaps[binding] / sizes[:, None]).T.copy(),
            mass=lp.mass / largest,
            cap=None if cap is None else cap * lp.mass / largest,
            ratio=1 / e,
            binding=binding,
            sizes=sizes,
            unit=unit,
        )

    def slopes(self, r: Array) -> Array:
        """How far each rung of the chain is from its limit: `r(x+1) - ratio r(x)` and `r(x) - ratio r(x+1)`."""
        return np.stack([r[1:] - self.ratio * r[:-1], r[:-1] - self.ratio * r[1:]])

    def slopes_transposed(self, v: Array) -> Array:
        out = np.zeros_like(self.cost)
        out[1:] += v[0] - self.ratio * v[1]
        out[:-1] += v[1] - self.ratio * v[0]
        return out

    def error(self, r: Array) -> Array:
        total: Array = (self.distance * r).sum(axis=1)
        return total


@dataclass(frozen=True)
class Point:
    """An iterate. Slacks and prices: of the chain, of privacy, and of the caps where there are any."""

    r: Array
    y: Array
    slacks: list[Array]
    prices: list[Array]

    @property
    def products(self) -> list[Array]:
        return [a * b for a, b in zip(self.slacks, self.prices, strict=True)]

    @property
    def mean(self) -> float:
        """The barrier parameter: the mean of slack times price."""
        count = sum(a.size for a in self.slacks)
        return sum(float(product.sum()) for product in self.products) / count

    def moved(self, step: Point, primal: float, dual: float) -> Point:
        return Point(
            self.r + primal * step.r,
            self.y + dual * step.y,
            [a + primal * b for a, b in zip(self.slacks, step.slacks, strict=True)],
            [a + dual * b for a, b in zip(self.prices, step.prices, strict=True)],
        )

    def reach(self, step: Point) -> tuple[float, float]:
        """How far one may go along `step` before a slack or a price turns negative."""
        return _longest(self.slacks, step.slacks), _longest(self.prices, step.prices)

    @staticmethod
    def start(model: Model) -> Point:
        """Half geometric, half uniform noise: strictly private; only sums, caps and prices are off."""
        size, ratio = len(model.mass), model.ratio
        geometric = ratio ** (0.5 * model.distance)
        r = 0.5 * geometric / geometric.sum(axis=1, keepdims=True) + 0.5 / size
        slacks = [
            np.maximum(model.slopes(r), 1e-3 * np.stack([r[1:], r[:-1]])),
            np.maximum(-(model.gaps.T @ r), 1e-3 * (np.abs(model.gaps).T @ r) + 1e-12),
        ]
        if model.cap is not None:
            slacks.append(np.maximum(model.cap - model.error(r), 0.1 * model.cap))
        return Point(r, np.zeros(size), slacks, [1e-3 / slack for slack in slacks])


@dataclass(frozen=True)
class Residuals:
    """By how much a point misses each equation, and what it is worth."""

    dual: Array
    sums: Array
    slacks: list[Array]
    objective: float
    bound: float

    @staticmethod
    def of(model: Model, point: Point) -> Residuals:
        v, u = point.prices[:2]
        reduced = model.cost + model.gaps @ u - model.slopes_transposed(v)
        limits = [model.slopes(point.r), -(model.gaps.T @ point.r)]
        paid = 0.0
        if model.cap is not None:
            z = point.prices[2]
            reduced += z[:, None] * model.distance
            limits.append(model.cap - model.error(point.r))
            paid = float(z @ model.cap)
        return Residuals(
            dual=reduced - point.y[:, None],
            sums=model.mass - point.r.sum(axis=1),
            slacks=[limit - slack for limit, slack in zip(limits, point.slacks, strict=True)],
            objective=float((model.cost * point.r).sum()),
            bound=float(reduced.min(axis=1) @ model.mass) - paid,
        )

    @property
    def gap(self) -> float:
        return (self.objective - self.bound) / max(abs(self.objective), 1e-300)

    @property
    def merit(self) -> float:
        """At most 1 for a point that is good enough."""
        infeasible = np.abs(self.sums).max()
        if len(self.slacks) > 2:
            infeasible = max(infeasible, np.abs(self.slacks[2]).max())
        return float(max(abs(self.gap) / GAP, infeasible / RESIDUAL))


class Tridiagonal:
    """`T = C' diag(weights) C` for every output at once, `C` being the rows of the chain: M-matrices.

    The determinant of a rung is `weights[0] weights[1] (1 - ratio^2)^2`, so that pivots and the inverse, which is
    positive, need no subtraction: they have full relative accuracy.
    """

    def __init__(self, weights: Array, ratio: float) -> None:
        square = ratio * ratio
        near, far = square * weights[0] + weights[1], weights[0] + square * weights[1]
        off, det = ratio * (weights[0] + weights[1]), weights[0] * weights[1] * (1 - square) ** 2
        rungs, outputs = near.shape
        self.pivot, self.factor = np.empty((rungs + 1, outputs)), np.empty((rungs, outputs))
        carry = np.zeros(outputs)
        for i in range(rungs):
            self.pivot[i] = carry + near[i]
            self.factor[i] = off[i] / self.pivot[i]
            carry = (carry * far[i] + det[i]) / self.pivot[i]
        self.pivot[rungs] = carry

    def solve(self, right: Array) -> Array:
        """`T^-1 right` for each output; `right` has an axis of inputs, one of outputs, and perhaps one more."""
        extra = (slice(None), slice(None)) + (None,) * (right.ndim - 2)
        factor, out = self.factor[extra], right.copy()
        for i in range(len(factor)):
            out[i + 1] += factor[i] * out[i]
        out /= self.pivot[extra]
        for i in range(len(factor) - 1, -1, -1):
            out[i] += factor[i] * out[i + 1]
        return out

    def inverse_sums(self, d: Array) -> tuple[Array, Array, Array]:
        """The sums over outputs of `Z`, `Z diag(d)` and `diag(d) Z diag(d)` with `Z = T^-1`."""
        size, outputs = self.pivot.shape
        plain, once, twice = np.zeros((3, size, size))
        row = np.zeros((size, outputs))  # row i of every Z, from the diagonal on
        weight = np.ones((outputs, 2))
        for i in range(size - 1, -1, -1):
            row[i] = 1 / self.pivot[i]
            if i < size - 1:
                row[i + 1 :] *= self.factor[i]
                row[i] += self.factor[i] * row[i + 1]
            weight[:, 1] = d[i]
            a, b = row[i:] @ weight, (row[i:] * d[i:]) @ weight
            plain[i, i:] = plain[i:, i] = a[:, 0]
            once[i, i:], once[i:, i] = b[:, 0], a[:, 1]
            twice[i, i:] = twice[i:, i] = b[:, 1]
        return plain, once, twice


class Newton:
    """Newton's equations at a point, factored.

    For each output `T dr + G du = a, G' dr - (t/u) du = b`, by its Schur complement in `du`; then one dense
    complement in `(dy, dz)`. Computing `du` from `G' dr` instead, or leaving out the refinements, breaks the prices
    down at a gap of 1e-4.
    """

    def __init__(self, model: Model, point: Point, residuals: Residuals) -> None:
        self.model, self.point, self.residuals = model, point, residuals
        gaps, size = model.gaps, len(model.mass)
        (k, t), (v, u) = point.slacks[:2], point.prices[:2]
        self.chain_weights, self.privacy_weights = v / k, u / t
        self.blocks = Tridiagonal(self.chain_weights, model.ratio)
        inner = self.blocks.solve(np.broadcast_to(gaps[:, None, :], (size, size, gaps.shape[1])))  # Z G
        root = np.sqrt(self.privacy_weights.T)
        bordered = np.einsum("xj,xsk->sjk", gaps, inner, optimize=True) * root[:, :, None] * root[:, None, :]
        half = np.linalg.inv(np.linalg.cholesky(bordered + np.eye(gaps.shape[1]))) * root[:, None, :]
        self.border_inverse = np.matmul(half.transpose(0, 2, 1), half)
        self.inner_rows = np.ascontiguousarray(inner.transpose(1, 2, 0))
        self.scale, self.factor = self._tie(np.matmul(half, self.inner_rows))

    def _tie(self, thin: Array) -> tuple[Array, tuple[Array, bool]]:
        """The dense system in `(dy, dz)`; `thin` is what privacy takes off, one thin matrix for each output."""
        size, distance = len(self.model.mass), self.model.distance
        plain, once, twice = self.blocks.inverse_sums(distance)
        rows = thin.reshape(-1, size)
        dense = plain - rows.T @ rows
        if self.model.cap is not None:
            far = (thin * distance.T[:, None, :]).reshape(-1, size)
            corner, price = rows.T @ far - once, self.point.slacks[2] / self.point.prices[2]
            dense = np.block([[dense, corner], [corner.T, twice - far.T @ far + np.diag(price)]])
        scale = 1 / np.sqrt(np.diag(dense))
        return scale, _cholesky(dense * scale[:, None] * scale)

    def _once(self, a: Array, b: Array) -> tuple[Array, Array]:
        right = np.matmul(self.inner_rows, a.T[:, :, None]) - b.T[:, :, None]
        du = np.matmul(self.border_inverse, right)[:, :, 0].T
        return self.blocks.solve(a - self.model.gaps @ du), du

    def _outputs(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Solve the equations of every output, refined once."""
        model = self.model
        dr, du = self._once(a, b)
        applied = model.slopes_transposed(self.chain_weights * model.slopes(dr)) + model.gaps @ du
        more, mend = self._once(a - applied, b - model.gaps.T @ dr + du / self.privacy_weights)
        return dr + more, du + mend

    def step(self, targets: list[Array]) -> Point:
        """The step after which `slack * price` would move by `targets`, to first order."""
        model, point, residuals = self.model, self.point, self.residuals
        (k, t), u = point.slacks[:2], point.prices[1]
        pull = targets[0] / k
        a = model.slopes_transposed(pull - self.chain_weights * residuals.slacks[0]) - residuals.dual
        b = residuals.slacks[1] - targets[1] / u
        size = len(model.mass)
        dy, dz, shift = np.zeros(size), np.zeros(size), np.zeros_like(a)
        dr, du = self._outputs(a, b)
        for _ in range(REFINEMENTS):
            right = residuals.sums - dr.sum(axis=1)
            if model.cap is not None:
                w, z = point.slacks[2], point.prices[2]
                right = np.append(right, targets[2] / z - residuals.slacks[2] + model.error(dr) - dz * w / z)
            found = self.scale * cho_solve(self.factor, self.scale * right)
            dy, move = dy + found[:size], np.broadcast_to(found[:size, None], a.shape)
            if model.cap is not None:
                dz, move = dz + found[size:], move - model.distance * found[size:, None]
            more, mend = self._outputs(move, np.zeros_like(b))  # added: the rounding error shrinks with the move
            dr, du, shift = dr + more, du + mend, shift + move
        slacks = [model.slopes(dr) + residuals.slacks[0], (targets[1] - t * du) / u]
        # The prices from one fresh solve: accurate in the dual equation, as dr is in the sums.
        fresh, du = self._outputs(a + shift, b)
        prices = [pull - self.chain_weights * (model.slopes(fresh) + residuals.slacks[0]), du]
        if model.cap is not None:
            slacks.append(residuals.slacks[2] - model.error(dr))
            prices.append(dz)
        return Point(dr, dy, slacks, prices)


def solve_chain(lp: NoiseLP, progress: Callable[[str], None] = lambda _: None) -> Draft:
    """A table within a relative `GAP` of the optimum, with prices that prove it."""
    if lp.chain is None:
        raise ProblemError("The chain form is for problems with a fallback_epsilon. Found none.")
    _check_memory(lp)
    with np.errstate(all="ignore"):  # what overflows is never kept
        model = Model.of(lp, lp.tight_cap)
        point, status = _iterate(model, progress)
    if point is None:
        raise SolverError("The interior-point method must find a finite point. Found none. Try another backend.")
    return _draft(lp, model, point, status)


def _check_memory(lp: NoiseLP) -> None:
    size = len(lp.inputs)
    needed = size * size * 8.0 * (6 * len(lp.gaps) + 30)
    if size > LARGEST or needed > MEMORY:
        raise ProblemError(
            f"With a fallback the program for {size:,} inputs and {len(lp.gaps)} privacy constraints would need about "
            f"{needed / 1e9:,.1f} GB, and hours (at most {LARGEST} inputs and {MEMORY / 1e9:.0f} GB). "
            "Use fewer people, coarser contributions, or no fallback_epsilon."
        )


def _iterate(model: Model, progress: Callable[[str], None]) -> tuple[Point | None, str]:
    """The best point found, and why it was the last."""
    point, best, least, stalled = Point.start(model), None, np.inf, 0
    try:
        for iteration in range(ITERATIONS):
            residuals = Residuals.of(model, point)
            if not np.isfinite(residuals.merit):
                return best, "numerical trouble"
            progress(f"iteration {iteration}: gap {residuals.gap:.0e}")
            stalled += 1
            if residuals.merit < least:
                best, least, stalled = point, residuals.merit, 0
            if least <= 1:
                return best, "optimal"
            if stalled > PATIENCE:
                return best, "stalled"
            point = _advance(point, Newton(model, point, residuals))
    except KeyboardInterrupt:
        if best is None:
            raise
        return best, "interrupted"
    except (np.linalg.LinAlgError, ValueError):  # a matrix that is not positive definite, or not finite
        return best, "numerical trouble"
    return best, "iteration limit"


def _advance(point: Point, newton: Newton) -> Point:
    """One step of Mehrotra's: see how far the plain step leads, then aim at the centre accordingly."""
    mean = point.mean
    guess = newton.step([-product for product in point.products])
    after = point.moved(guess, *point.reach(guess)).mean
    target = max((after / mean) ** 3, 1e-6) * mean
    second = [a * b for a, b in zip(guess.slacks, guess.prices, strict=True)]
    step = newton.step([target - a - b for a, b in zip(point.products, second, strict=True)])
    damp = 0.995 if after < 0.1 * mean else 0.95
    primal, dual = (min(1.0, damp * reach) for reach in point.reach(step))
    return point.moved(step, primal, dual)


def _cholesky(matrix: Array) -> tuple[Array, bool]:
    """Factor a matrix with unit diagonal, with as little added to the diagonal as it takes."""
    diagonal = np.diag_indices_from(matrix)
    for added in (1e-14, 1e-12, 1e-10):
        matrix[diagonal] = 1 + added
        try:
            factor: tuple[Array, bool] = cho_factor(matrix, lower=True)
            return factor
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("not positive definite")


def _longest(values: list[Array], steps: list[Array]) -> float:
    worst = min(float((b / a).min()) for a, b in zip(values, steps, strict=True))
    return 1.0 if worst >= -1.0 else -1.0 / worst


def _draft(lp: NoiseLP, model: Model, point: Point, status: str) -> Draft:
    """Back to the table and the prices of the plain program."""
    table = np.maximum(point.r, 0.0) / model.mass[:, None]
    u = np.zeros_like(lp.gaps)
    u[model.binding] = point.prices[1] * (model.unit / model.sizes)[:, None]
    z = np.zeros(len(lp.mass)) if model.cap is None else point.prices[2] * model.unit * lp.mass
    prices = Prices(z, u, point.prices[0] * model.unit * model.ratio)
    return Draft.dense(table, prices, status, "chain")
