"""Arithmetic that is the same on every machine, to the last bit.

`@`, `np.dot`, `np.convolve` and `np.linalg` hand their work to a BLAS library, which adds in whatever order suits the
processor and the number of threads; and numpy has other code for `exp`, `log` and `**` on newer processors than on
older ones. Where such a number takes part in a decision, or is written into a file, it is made here instead: each
product is rounded by itself, numpy's own sum adds in an order that depends on nothing but the number of terms, and
powers are products.
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


SHORT = 400  # up to this length of the longer law a convolution of long doubles is quicker than one of whole arrays


def _long(values: Any) -> Any:
    return np.asarray(values, dtype=np.longdouble)


def product(one: Any, other: Any) -> Array:
    """The matrix product, or that of a vector and a matrix."""
    return np.asarray(np.matmul(_long(one), _long(other)), dtype=np.float64)


def total(values: Any, axis: int | None = None, keepdims: bool = False) -> Array:
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


def log(value: float) -> float:
    """The natural logarithm, as `exp`; that of 0 and of infinity are infinite."""
    if value <= 0 or value == np.inf:
        return -np.inf if value <= 0 else np.inf
    with precision(128):
        return float(arb(value).log().mid())
