"""Newton's equations of the chain form (see `chain`), solved output by output.

At a point with slacks `k, t, w` and prices `v, u, z` of the chain, of privacy and of the caps, a step solves

    T dr + G du = a + dy - |x-s| dz,   G' dr - (t/u) du = b           for each output
    sum over s of dr = ..,   sum over s of |x-s| dr - (w/z) dz = ..   for each input

where `T = C' (v/k) C` is tridiagonal or banded, `C` being the rows of the chain and `G` those of privacy.

An interior-point method keeps every rounding error of its way in the digits of its last point. So all sums are those
of `numbers.ordered`: the same table on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optdp.numbers.ordered import cholesky, cholesky_solve, dot, gram, outer_sum, times

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

REFINEMENTS = 4
"""At most so many times are the equations of the outputs refined."""
PRECISE = 1e-13
"""What a privacy equation may miss; its terms are of the order of 1."""


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
    rungs: range
    """The distances at which inputs are compared."""
    binding: Ints
    """The numbers of the constraints that are kept."""
    sizes: Array
    """What the privacy constraints were divided by."""
    unit: float
    """What costs were divided by."""
    least: float
    """Objectives below this count as this when the gap is judged: the optimum may be 0."""

    def slopes(self, r: Array) -> Array:
        """How far each rung is from its limit: `r(x+d) - ratio r(x)` and `r(x) - ratio r(x+d)`, by `d`, then `x`."""
        feet = self.feet(r)
        slopes: Array = feet - self.ratio * feet[::-1]
        return slopes

    def feet(self, r: Array) -> Array:
        """The upper and the lower end of every rung."""
        upper, lower = [r[far:] for far in self.rungs], [r[:-far] for far in self.rungs]
        return np.stack([np.concatenate(upper), np.concatenate(lower)])

    def slopes_transposed(self, v: Array) -> Array:
        out = np.zeros_like(self.cost)
        pull = v - self.ratio * v[::-1]
        start, size = 0, len(out)
        for far in self.rungs:
            up, down = pull[:, start : start + size - far]
            out[far:] += up
            out[:-far] += down
            start += size - far
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


@dataclass(frozen=True)
class PointResiduals:
    """By how much a point misses each equation, and what it is worth."""

    dual: Array
    sums: Array
    slacks: list[Array]
    objective: float
    bound: float
    worth: float
    """What the gap is relative to."""

    @staticmethod
    def of(model: Model, point: Point) -> PointResiduals:
        v, u = point.prices[:2]
        reduced = model.cost + outer_sum(model.gaps.T, u) - model.slopes_transposed(v)
        limits = [model.slopes(point.r), -times(model.gaps.T, point.r)]
        paid = 0.0
        if model.cap is not None:
            z = point.prices[2]
            reduced += z[:, None] * model.distance
            limits.append(model.cap - model.error(point.r))
            paid = dot(z, model.cap)
        objective = float((model.cost * point.r).sum())
        return PointResiduals(
            dual=reduced - point.y[:, None],
            sums=model.mass - point.r.sum(axis=1),
            slacks=[limit - slack for limit, slack in zip(limits, point.slacks, strict=True)],
            objective=objective,
            bound=dot(reduced.min(axis=1), model.mass) - paid,
            worth=max(abs(objective), model.least),
        )

    @property
    def gap(self) -> float:
        return (self.objective - self.bound) / self.worth

    @property
    def infeasible(self) -> float:
        """The largest miss of any sum or constraint."""
        return max(float(np.abs(missed).max()) for missed in (self.sums, *self.slacks))


class Tridiagonal:
    """`T = C' diag(weights) C` for every output at once, `C` being the rows of the chain: M-matrices.

    The determinant of a rung is `weights[0] weights[1] (1 - ratio^2)^2`, so that pivots and the (positive)
    inverse need no subtraction: they have full relative accuracy.
    """

    def __init__(self, weights: Array, ratio: float) -> None:
        square = ratio * ratio
        near, far = square * weights[0] + weights[1], weights[0] + square * weights[1]
        off, det = ratio * (weights[0] + weights[1]), weights[0] * weights[1] * (1 - square) * (1 - square)
        rungs, outputs = near.shape
        self.pivot, self.factor = np.empty((rungs + 1, outputs)), np.empty((rungs, outputs))
        carry = np.zeros(outputs)
        for i in range(rungs):
            self.pivot[i] = carry + near[i]
            self.factor[i] = off[i] / self.pivot[i]
            carry = (carry * far[i] + det[i]) / self.pivot[i]
        self.pivot[rungs] = carry

    def solve(self, right: Array) -> Array:
        """`T^-1 right` for each output; the axes are inputs, outputs, and perhaps one more."""
        extra = (slice(None), slice(None)) + (None,) * (right.ndim - 2)
        factor, out = self.factor[extra], right.copy()
        for i in range(len(factor)):
            out[i + 1] += factor[i] * out[i]
        out /= self.pivot[extra]
        for i in range(len(factor) - 1, -1, -1):
            out[i] += factor[i] * out[i + 1]
        return out

    def inverse_sums(self, d: Array | None) -> Array:
        """The sums over outputs of `Z`, `Z diag(d)` and `diag(d) Z diag(d)` with `Z = T^-1`; without `d` the first."""
        size, outputs = self.pivot.shape
        sums: Array = np.zeros((3, size, size))
        row = np.zeros((size, outputs))  # row i of every Z, from the diagonal on
        for i in range(size - 1, -1, -1):
            row[i] = 1 / self.pivot[i]
            if i < size - 1:
                row[i + 1 :] *= self.factor[i]
                row[i] += self.factor[i] * row[i + 1]
            _add_up(row[i:], d, i, sums)
        return sums


class Banded:
    """The same where inputs up to `reach` apart are compared: M-matrices of that many bands beside the diagonal.

    Here the diagonal is never subtracted from: it follows from a positive vector `r` and its image `T r`, as in the
    algorithm of W. Grassmann, M. Taksar and D. Heyman, Oper. Res. 33 (1985). At a point of the method the image is of
    the order of the prices, however large the weights, and then so are the errors.
    """

    def __init__(self, weights: Array, ratio: float, rungs: range, r: Array, image: Array) -> None:
        (size, outputs), reach = r.shape, len(rungs)
        off, image = np.zeros((size + reach, reach, outputs)), image.copy()  # -T(i, i + d) at [i, d - 1]
        start = 0
        for far in rungs:
            off[: size - far, far - 1] = ratio * weights[:, start : start + size - far].sum(axis=0)
            start += size - far
        self.pivot, self.factor = np.empty((size, outputs)), np.zeros((size, reach, outputs))
        for i in range(size):
            ahead = min(reach, size - 1 - i)
            self.pivot[i] = (image[i] + (off[i, :ahead] * r[i + 1 : i + 1 + ahead]).sum(axis=0)) / r[i]
            self.factor[i] = off[i] / self.pivot[i]
            image[i + 1 : i + 1 + ahead] += self.factor[i, :ahead] * image[i]
            for d in range(1, ahead + 1):
                off[i + d, : reach - d] += self.factor[i, d - 1] * off[i, d:]

    def solve(self, right: Array) -> Array:
        """`T^-1 right` for each output; the axes are inputs, outputs, and perhaps one more."""
        extra = (slice(None), slice(None)) + (None,) * (right.ndim - 2)
        size, reach = self.factor.shape[:2]
        out = right.copy()
        for i in range(size - 1):
            for d in range(1, min(reach, size - 1 - i) + 1):
                out[i + d] += self.factor[i, d - 1][extra[1:]] * out[i]
        out /= self.pivot[extra]
        for i in range(size - 2, -1, -1):
            for d in range(1, min(reach, size - 1 - i) + 1):
                out[i] += self.factor[i, d - 1][extra[1:]] * out[i + d]
        return out

    def inverse_sums(self, d: Array | None) -> Array:
        """As those of `Tridiagonal`."""
        (size, outputs), reach = self.pivot.shape, self.factor.shape[1]
        sums: Array = np.zeros((3, size, size))
        rows = np.zeros((reach + 1, size, outputs))  # row i of every Z at i modulo reach + 1, as far as it is known
        for i in range(size - 1, -1, -1):
            row, ahead = rows[i % (reach + 1)], range(1, min(reach, size - 1 - i) + 1)
            row[:] = 0.0
            for k in ahead:
                row[i + 1 :] += self.factor[i, k - 1] * rows[(i + k) % (reach + 1), i + 1 :]
            row[i] = 1 / self.pivot[i] + sum(self.factor[i, k - 1] * row[i + k] for k in ahead)
            for k in ahead:  # Z is symmetric
                rows[(i + k) % (reach + 1), i] = row[i + k]
            _add_up(row[i:], d, i, sums)
        return sums


def _add_up(row: Array, d: Array | None, i: int, sums: Array) -> None:
    """Enter row `i` of every `Z`, from the diagonal on, into the sums over outputs."""
    plain, once, twice = sums
    plain[i, i:] = plain[i:, i] = np.add.reduce(row, axis=1)
    if d is not None:
        near, far = row * d[i], row * d[i:]
        once[i, i:], once[i:, i] = np.add.reduce(far, axis=1), np.add.reduce(near, axis=1)
        near *= d[i:]
        twice[i, i:] = twice[i:, i] = np.add.reduce(near, axis=1)


class Newton:
    """Newton's equations at a point, factored.

    For each output `T dr + G du = a, G' dr - (t/u) du = b`, by its Schur complement in `du`; then one dense
    complement in `(dy, dz)`. Computing `du` from `G' dr` instead, or leaving out the refinements, breaks
    the prices down at a gap of 1e-4.
    """

    def __init__(self, model: Model, point: Point, residuals: PointResiduals) -> None:
        self.model, self.point, self.residuals = model, point, residuals
        gaps, size = model.gaps, len(model.mass)
        (k, t), (v, u) = point.slacks[:2], point.prices[:2]
        self.chain_weights, self.privacy_weights = v / k, u / t
        self.blocks: Tridiagonal | Banded = (
            Tridiagonal(self.chain_weights, model.ratio)
            if len(model.rungs) == 1
            else Banded(
                self.chain_weights, model.ratio, model.rungs, point.r,
                model.slopes_transposed(v + self.chain_weights * residuals.slacks[0]),
            )
        )  # fmt: skip
        inner = self.blocks.solve(np.broadcast_to(gaps[:, None, :], (size, size, gaps.shape[1])))  # Z G
        root = np.sqrt(self.privacy_weights.T)
        bordered = np.stack([np.add.reduce(gap[:, None, None] * inner, axis=0) for gap in gaps.T], axis=1)
        bordered *= root[:, :, None] * root[:, None, :]
        diagonal = np.arange(gaps.shape[1])
        bordered[:, diagonal, diagonal] = bordered[:, diagonal, diagonal] * (1 + 1e-14) + 1
        half = _inverse_factor(bordered) * root[:, None, :]
        self.border_inverse = _products(half.transpose(0, 2, 1), half)
        self.inner_rows = np.ascontiguousarray(inner.transpose(1, 2, 0))
        self.scale, self.factor = self._tie(_products(half, self.inner_rows))

    def _tie(self, thin: Array) -> tuple[Array, Array]:
        """The dense system in `(dy, dz)`; `thin` is what privacy takes off, a few rows for each output."""
        size, distance = len(self.model.mass), self.model.distance
        if self.model.cap is None:
            dense = self.blocks.inverse_sums(None)[0] - gram(thin.reshape(-1, size))
        else:
            plain, once, twice = self.blocks.inverse_sums(distance)
            both = np.concatenate([thin, -thin * distance.T[:, None, :]], axis=2)
            price = np.diag(self.point.slacks[2] / self.point.prices[2])
            dense = np.block([[plain, -once], [-once.T, twice + price]]) - gram(both.reshape(-1, 2 * size))
        scale = 1 / np.sqrt(np.diag(dense))
        return scale, _cholesky(dense * scale[:, None] * scale)

    def _once(self, a: Array, b: Array) -> tuple[Array, Array]:
        right = np.add.reduce(self.inner_rows * a.T[:, None, :], axis=2) - b.T
        du = np.add.reduce(self.border_inverse * right[:, None, :], axis=2).T
        return self.blocks.solve(a - outer_sum(self.model.gaps.T, du)), du

    def _outputs(self, a: Array, b: Array, rough: bool = False) -> tuple[Array, Array]:
        """Solve the equations of every output; unless `rough`, refined at least once, and until privacy is precise."""
        model = self.model
        dr, du = self._once(a, b)
        for turn in range(0 if rough else REFINEMENTS):
            missed = b - times(model.gaps.T, dr) + du / self.privacy_weights
            if turn and np.abs(missed).max() < PRECISE:
                break
            applied = model.slopes_transposed(self.chain_weights * model.slopes(dr)) + outer_sum(model.gaps.T, du)
            more, mend = self._once(a - applied, missed)
            dr, du = dr + more, du + mend
        return dr, du

    def step(self, targets: list[Array], rough: bool = False) -> Point:
        """The step after which `slack * price` would move by `targets`, to first order; `rough`: a few digits of it."""
        model, point, residuals = self.model, self.point, self.residuals
        (k, t), u = point.slacks[:2], point.prices[1]
        pull = targets[0] / k
        a = model.slopes_transposed(pull - self.chain_weights * residuals.slacks[0]) - residuals.dual
        b = residuals.slacks[1] - targets[1] / u
        size = len(model.mass)
        dy, dz, shift = np.zeros(size), np.zeros(size), np.zeros_like(a)
        dr, du = self._outputs(a, b, rough)
        for _ in range(1 if rough else 2):
            right = residuals.sums - dr.sum(axis=1)
            if model.cap is not None:
                w, z = point.slacks[2], point.prices[2]
                right = np.append(right, targets[2] / z - residuals.slacks[2] + model.error(dr) - dz * w / z)
            found = self.scale * cholesky_solve(self.factor, self.scale * right)
            dy, move = dy + found[:size], np.broadcast_to(found[:size, None], a.shape)
            if model.cap is not None:
                dz, move = dz + found[size:], move - model.distance * found[size:, None]
            # Added, not solved anew: the rounding error shrinks with the move.
            more, mend = self._outputs(move, np.zeros_like(b), rough)
            dr, du, shift = dr + more, du + mend, shift + move
        slacks = [model.slopes(dr) + residuals.slacks[0], (targets[1] - t * du) / u]
        # The prices from one fresh solve: accurate in the dual equation, as dr is in the sums.
        fresh, du = (dr, du) if rough else self._outputs(a + shift, b)
        prices = [pull - self.chain_weights * (model.slopes(fresh) + residuals.slacks[0]), du]
        if model.cap is not None:
            slacks.append(residuals.slacks[2] - model.error(dr))
            prices.append(dz)
        return Point(dr, dy, slacks, prices)


def _products(one: Array, other: Array) -> Array:
    """The product of the matrices of every output, which are small on the inner side."""
    found: Array = np.zeros((len(one), one.shape[1], other.shape[2]))
    for k in range(one.shape[2]):
        found += one[:, :, k, None] * other[:, k, None, :]
    return found


def _inverse_factor(matrices: Array) -> Array:
    """The inverse of the lower triangular factor of every matrix; all are at least the identity."""
    rest, found = matrices.copy(), np.zeros_like(matrices)
    for j in range(rest.shape[1]):
        pivot = np.sqrt(rest[:, j, j])
        if not (pivot > 0).all():
            raise np.linalg.LinAlgError("not positive definite")
        column = rest[:, j:, j] / pivot[:, None]
        found[:, j, j] = 1.0
        found[:, j] /= pivot[:, None]  # so far it held what the rows above take off
        found[:, j + 1 :] -= column[:, 1:, None] * found[:, j, None, :]
        rest[:, j + 1 :, j + 1 :] -= column[:, 1:, None] * column[:, None, 1:]
    return found


def _cholesky(matrix: Array) -> Array:
    """Factor a matrix with unit diagonal, with as little added to the diagonal as it takes."""
    diagonal = np.diag_indices_from(matrix)
    for added in (1e-14, 1e-12, 1e-10):
        matrix[diagonal] = 1 + added
        try:
            return cholesky(matrix)
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("not positive definite")


def _longest(values: list[Array], steps: list[Array]) -> float:
    worst = min(float((b / a).min()) for a, b in zip(values, steps, strict=True))
    return 1.0 if worst >= -1.0 else -1.0 / worst
