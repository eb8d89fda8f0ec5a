"""Arithmetic that is the same on every machine, to the last bit.

`@`, `np.dot`, `np.convolve` and `np.linalg` hand their work to a BLAS library, which adds in whatever order suits the
processor and the number of threads; and numpy has other code for `exp`, `log` and `**` on newer processors than on
older ones. Where such a number takes part in a decision, or is written into a file, it is made here instead: each
product is rounded by itself, numpy's own sum adds in an order that depends on nothing but the number of terms, and
powers are products. Products of large matrices are left to BLAS in slices of few bits, in which nothing is rounded and
the order does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from optdp.numbers.exact import precision

Array = NDArray[np.float64]
Real = NDArray[np.floating[Any]]


def dot(one: Real, other: Real) -> float:
    """The sum of the products of two vectors."""
    return float(np.add.reduce(one * other))


def times(matrix: Array, values: Array) -> Array:
    """`matrix @ values`, for a vector, or for another matrix if the first has few rows."""
    if values.ndim == 1:
        line: Array = np.add.reduce(matrix * values, axis=1)
        return line
    found: Array = np.empty((len(matrix), values.shape[1]))
    for target, row in zip(found, matrix, strict=True):
        np.add.reduce(row[:, None] * values, axis=0, out=target)
    return found


def outer_sum(one: Array, other: Array) -> Array:
    """`one.T @ other`, for matrices with few rows."""
    total: Array = np.zeros((one.shape[1], other.shape[1]))
    for a, b in zip(one, other, strict=True):
        total += a[:, None] * b
    return total


def slide(values: Real, kernel: Real) -> Array:
    """`np.convolve(values, kernel, "valid")`, where the kernel is not the longer one."""
    count, turned = len(values) - len(kernel) + 1, kernel[::-1]
    if count < len(kernel):
        return np.array([dot(values[i : i + len(kernel)], turned) for i in range(count)])
    total: Array = np.zeros(count)
    for i, share in enumerate(turned):
        total += share * values[i : i + count]
    return total


def powers(values: Any, power: int) -> Any:
    """`values ** power`, by squaring."""
    found = np.ones_like(values)
    while power:
        if power & 1:
            found = found * values
        power >>= 1
        if power:
            values = values * values
    return found


def geometric(ratio: float, count: int) -> Array:
    """`1, ratio, ratio^2, ...`."""
    found: Array = np.full(count, ratio)
    found[:1] = 1.0
    return np.multiply.accumulate(found)


SLICES = 3
"""Of each float, with at least 17 bits each if sums have up to half a million terms."""


def gram(matrix: Array) -> Array:
    """`matrix.T @ matrix` by BLAS, but the same in whatever order it adds.

    Each column is scaled by a power of two and cut into slices of so few bits that no sum of products of slices is ever
    rounded (Ozaki, Ogita, Oishi and Rump, Numer. Algorithms 59, 2012). Those few sums are then added in one order. The
    error is that of a common product or less: a unit of the 50th bit, relative to the largest entries of both columns.
    """
    bits = (53 - len(matrix).bit_length()) // 2
    exponents = np.frexp(np.abs(matrix).max(axis=0, initial=0.0))[1]
    slices = _slices(np.ldexp(matrix, -exponents), bits)
    found: Array = np.zeros((matrix.shape[1], matrix.shape[1]))
    for depth in range(SLICES - 1, -1, -1):  # the smallest terms first
        for k in range((depth + 1) // 2):
            part = slices[k].T @ slices[depth - k]
            found += part + part.T
        if depth % 2 == 0:
            found += slices[depth // 2].T @ slices[depth // 2]
        found *= 0.5**bits
    return np.asarray(np.ldexp(found, exponents[:, None] + exponents - bits))


def _slices(values: Array, bits: int) -> list[Array]:
    """Numbers of at most 1 as whole numbers of at most so many bits, the leading ones first."""
    rest, slices = values, []
    for _ in range(SLICES):
        rest = rest * 2.0**bits
        slices.append(np.rint(rest))
        rest = rest - slices[-1]
    return slices


def cholesky(matrix: Array, block: int = 48) -> Array:
    """The lower triangular factor of a positive definite matrix with ones on its diagonal; LinAlgError for others.

    What the columns on the left take off each block of columns is made of slices, as in `gram`.
    """
    size = len(matrix)
    bits = (53 - size.bit_length()) // 2
    factor, slices = np.zeros((size, size)), np.zeros((SLICES, size, size))
    for start in range(0, size, block):
        stop = min(start + block, size)
        panel = np.zeros((size - start, stop - start))
        for depth in range(SLICES - 1, -1, -1):
            for k in range(depth + 1):
                panel -= slices[k, start:, :start] @ slices[depth - k, start:stop, :start].T
            panel *= 0.5**bits
        panel = matrix[start:, start:stop] + panel * 0.5**bits
        for j in range(stop - start):
            if not 0 < panel[j, j] < np.inf:
                raise np.linalg.LinAlgError("not positive definite")
            panel[j:, j] /= np.sqrt(panel[j, j])
            panel[:j, j] = 0.0
            panel[j + 1 :, j + 1 :] -= panel[j + 1 :, j, None] * panel[j + 1 : stop - start, j]
        factor[start:, start:stop] = panel
        slices[:, start:, start:stop] = _slices(panel, bits)
    return factor


def cholesky_solve(factor: Array, right: Array) -> Array:
    """`x` with `factor factor' x = right`, for one vector."""
    x = right.copy()
    columns = np.ascontiguousarray(factor.T)
    for j, pivot in enumerate(np.diag(factor).tolist()):
        x[j] /= pivot
        x[j + 1 :] -= columns[j, j + 1 :] * x[j]
    for j in range(len(x) - 1, -1, -1):
        x[j] /= factor[j, j]
        x[:j] -= factor[j, :j] * x[j]
    return x


SHORT = 400  # up to this length of the longer law a convolution of long doubles is quicker than one of whole arrays


def _long(values: Any) -> Any:
    return np.asarray(values, dtype=np.longdouble)


def product(one: Any, other: Any) -> Array:
    """The matrix product, or that of a vector and a matrix."""
    return np.asarray(np.matmul(_long(one), _long(other)), dtype=np.float64)


def total(values: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """The sum of all values, or along an axis."""
    return np.asarray(_long(values).sum(axis=axis, keepdims=keepdims), dtype=np.float64)


def convolve(one: Any, other: Any) -> Any:
    """The law of a sum, term by term, so that every value has a tiny relative error; of the wider of both types."""
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    if long.dtype != np.float64 or short.dtype != np.float64:
        return np.convolve(_long(long), _long(short))
    if len(long) <= SHORT:
        return np.convolve(_long(long), _long(short)).astype(np.float64)
    result, term = np.zeros(len(long) + len(short) - 1), np.empty(len(long))
    for k, weight in enumerate(short.tolist()):
        if weight:
            np.multiply(long, weight, out=term)
            result[k : k + len(long)] += term
    return result


def exp(value: float) -> float:
    """`e^value`, rounded correctly but for a chance that is negligible: mathematical libraries differ."""
    with precision(128):
        return float(arb(value).exp().mid())


LOG_2 = 0.693145751953125, 1.42860682030941723212e-6
"""The logarithm of 2 as a sum; a thousand times the first is exact."""


def exps(values: Any) -> Array:
    """`e^value` of every value, to the last bit or two, from 0 where it is less than 1e-307."""
    x: Array = np.clip(values, -1000.0, 709.0)
    power = np.rint(x * 1.4426950408889634)
    x = (x - power * LOG_2[0]) - power * LOG_2[1]
    found = np.ones_like(x)
    for k in range(14, 0, -1):  # Taylor's series
        found = 1.0 + x * found / k
    whole = np.ldexp(found, power.astype(np.int64))
    return np.where(power < -1020, 0.0, whole)


def logs(values: Any) -> Array:
    """The natural logarithm of every value, to the last bit or two of the larger of it and 1; of 0 minus infinity."""
    values = np.asarray(values, dtype=np.float64)
    part, power = np.frexp(values)
    low = part < 0.7071067811865476
    part, power = np.where(low, 2 * part, part), power - low
    z = (part - 1) / (part + 1)
    square, found = z * z, np.zeros_like(z)
    for k in range(25, 1, -2):  # that of the inverse hyperbolic tangent
        found = square * (1.0 / k + found)
    whole = power * LOG_2[0] + (power * LOG_2[1] + 2 * (z + z * found))
    return np.where(values > 0, whole, -np.inf)


def log_sum(one: Any, other: Any) -> Array:
    """`log(e^one + e^other)` of every two values."""
    high = np.maximum(one, other)
    with np.errstate(invalid="ignore"):
        found: Array = high + logs(1.0 + exps(np.minimum(one, other) - high))
    return np.where(high == -np.inf, high, found)


def log_sums(values: Array) -> Array:
    """The logarithm of the sum of `e^value` up to each place."""
    found, step = values, 1
    while step < len(values):
        found = np.concatenate([found[:step], log_sum(found[step:], found[:-step])])
        step *= 2
    return found
