"""Many releases at once: the procedure of `Drawing` on whole arrays, and columns that stay what they are.

The first words of all draws are compared with the first words of the cuts by numpy. The few draws that these do not
decide (less than one in 2^40) are made again one by one from the same words and further ones: the law stays exact.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.mechanism.cuts import WORD, Cuts
from optdp.mechanism.drawing import Drawing
from optdp.numbers.exact import check_whole, shown, whole_input
from optdp.numbers.source import Source

if TYPE_CHECKING:
    from optdp.mechanism.added_noise import AddedNoise
    from optdp.mechanism.matrix import NoiseMatrix

    Mechanism: TypeAlias = NoiseMatrix | AddedNoise

BLOCK = 1 << 18
"""Draws that are made together."""
FEW = 100
"""Up to so many releases of one input are drawn one by one, which is faster; the words are the same."""

Integers = NDArray[np.int64]


def sample(matrix: Mechanism, x: Any, size: int | None, seed: int | None) -> Any:
    """Releases of one input as a list, or of each input of a column as a column of the same kind."""
    source = Source(seed)
    try:
        one = whole_input(x) if isinstance(x, bool) else index(x)
    except TypeError:
        if size is not None:
            raise ProblemError("size is for one input; a column gets one release for each of its inputs.") from None
        return _column(matrix, x, source)
    count = 1 if size is None else size
    check_whole(count, "size", 0)
    matrix.known(one)
    return repeated(matrix.drawing, one, count, source)


def repeated(drawing: Drawing, x: int, count: int, source: Source) -> list[int]:
    """So many releases of one input."""
    if count < FEW:
        return [_single(drawing, x, source) for _ in range(count)]
    found: list[int] = many(drawing, np.full(count, x, dtype=np.int64), source).tolist()
    return found


def many(drawing: Drawing, inputs: Integers, source: Source) -> Integers:
    """One release for each input."""
    if len(inputs) and not 0 <= inputs.min() <= inputs.max() <= drawing.last:
        drawing.row_of(int(inputs.min() if inputs.min() < 0 else inputs.max()))
    released = np.empty(len(inputs), dtype=np.int64)
    for start in range(0, len(inputs), BLOCK):
        block = slice(start, start + BLOCK)
        released[block] = _block(drawing, inputs[block] * (not drawing.added), source)
    return released + inputs if drawing.added else released


def _single(drawing: Drawing, x: int, source: Source) -> int:
    first = (source.words(drawing.slots) >> np.uint64(64 - WORD)).tolist()
    return drawing.draw(x, _words_from(first, source))


def _block(drawing: Drawing, inputs: Integers, source: Source) -> Integers:
    words = (source.words(len(inputs) * drawing.slots) >> np.uint64(64 - WORD)).reshape(-1, drawing.slots)
    undecided = np.zeros(len(inputs), dtype=bool)
    order = np.argsort(inputs, kind="stable")
    bounds = np.flatnonzero(np.diff(inputs[order])) + 1
    groups = np.split(order, bounds) if len(inputs) else []
    released = inputs * drawing.factor
    for group in groups if drawing.moves else ():
        x, open_ones = int(inputs[group[0]]), np.zeros(len(group), dtype=bool)
        released[group] = drawing.places(x)[_index(drawing.moves[x], words[group, -2], open_ones)]
        undecided[group] |= open_ones
    noise = drawing.noise
    if noise is not None:
        negative = _index(noise.sign, words[:, 0], undecided)
        amount, unit = np.zeros(len(inputs), dtype=np.int64), 1
        for i, cuts in enumerate(noise.digits, start=1):
            digit = _index(cuts, words[:, i], undecided)
            if i == len(noise.digits):
                undecided |= digit == len(cuts.places)
            amount, unit = amount + unit * digit, unit * noise.base
        released += np.where(negative > 0, noise.origin - amount, amount)
    low, high = drawing.outputs
    inside = (low <= released) & (released <= high)
    for group in groups:
        row = drawing.row_of(int(inputs[group[0]]))
        if row is None:
            continue
        if noise is not None:
            group = group[inside[group]]
        open_ones = np.zeros(len(group), dtype=bool)
        chosen = _index(drawing.rows[row], words[group, -1], open_ones)
        released[group] = drawing.numbers(row)[chosen]
        undecided[group] |= open_ones
    for i in np.flatnonzero(undecided).tolist():
        first = words[i].tolist()
        released[i] = drawing.drawn(int(inputs[i]), _words_from(first, source))
    return released


def _index(cuts: Cuts, words: NDArray[np.uint64], undecided: NDArray[np.bool_]) -> Integers:
    """How many cuts lie at or below each number, of which the first word is known; marks where that is not enough."""
    marks = cuts.marks
    found = np.searchsorted(marks, words, side="right")
    if cuts.words > 1:
        undecided |= (found > 0) & (marks[np.maximum(found - 1, 0)] == words)
    return found


def _words_from(first: Sequence[int], source: Source) -> Any:
    """The words of one draw: the first are given, the others are drawn when they are asked for."""
    known = dict(enumerate(first))

    def word(place: int) -> int:
        if place < 0:
            return source.bits(WORD)
        if place not in known:
            known[place] = source.bits(WORD)
        return known[place]

    return word


# ---------------------------------------------------------------------- columns


def _column(matrix: Mechanism, column: Any, source: Source) -> Any:
    home = type(column).__module__.partition(".")[0]
    if isinstance(column, list | tuple):
        inputs = np.array([whole_input(value) for value in column], dtype=object)
        released = _released(matrix, inputs, source).tolist()
        return released if isinstance(column, list) else tuple(released)
    if isinstance(column, np.ndarray):
        if np.ma.is_masked(column):
            raise _missing()
        column = np.asarray(column)  # of a subclass only the numbers: a mask would leave inputs as they are
        _check_kind(column.dtype, matrix)
        released = _released(matrix, column.ravel(), source)
        return _fit(released, column.dtype).reshape(column.shape)
    if home == "pandas" and type(column).__name__ == "Series":
        if column.isna().any():
            raise _missing()
        kind = getattr(column.dtype, "numpy_dtype", column.dtype)
        _check_kind(kind, matrix)
        released = _fit(_released(matrix, column.to_numpy(dtype=kind), source), kind)
        return type(column)(released, index=column.index, name=column.name, dtype=column.dtype)
    if home == "pyarrow" and type(column).__module__ == "pyarrow.lib":
        return _arrow(matrix, column, source)
    if home == "polars" and type(column).__name__ == "Series":
        if column.null_count():
            raise _missing()
        if not column.dtype.is_integer() or "128" in str(column.dtype):  # numpy has no integers of 128 bits
            raise ProblemError(f"A column must be of whole numbers. Found {column.dtype}. Convert it to Int64.")
        values = column.to_numpy()
        _check_kind(values.dtype, matrix)
        released = _fit(_released(matrix, values, source), values.dtype)
        return type(column)(column.name, released, dtype=column.dtype)
    raise ProblemError(
        "sample takes a whole number, a list, a numpy array, one column (Series) of pandas or polars, or an array of "
        "pyarrow. "
        f"Found {shown(type(column))}."
    )


def _arrow(matrix: Mechanism, column: Any, source: Source) -> Any:
    """An array of pyarrow, or one in chunks, which it stays."""
    pyarrow: Any = sys.modules["pyarrow"]  # whoever has such a column has imported it
    if not isinstance(column, pyarrow.Array | pyarrow.ChunkedArray) or not pyarrow.types.is_integer(column.type):
        found = getattr(column, "type", type(column))
        raise ProblemError(f"A column must be of whole numbers. Found {shown(str(found))}. Cast it to int64.")
    if column.null_count:
        raise _missing()
    kind = np.dtype(column.type.to_pandas_dtype())
    _check_kind(kind, matrix)
    released = _fit(_released(matrix, column.to_numpy(), source), kind)
    if isinstance(column, pyarrow.Array):
        return pyarrow.array(released, column.type)
    ends = np.cumsum([len(chunk) for chunk in column.chunks], dtype=np.int64)[:-1]
    return pyarrow.chunked_array(np.split(released, ends) if column.chunks else [], column.type)


def _released(matrix: Mechanism, inputs: NDArray[Any], source: Source) -> Integers:
    if len(inputs):
        matrix.known(int(inputs.min()))
        matrix.known(int(inputs.max()))
    return many(matrix.drawing, inputs.astype(np.int64), source)


def _check_kind(kind: Any, matrix: Mechanism) -> None:
    """Refuse a type that is not of whole numbers or that cannot hold every release."""
    if not isinstance(kind, np.dtype) or kind.kind not in "iu":
        raise ProblemError(f"A column must be of whole numbers. Found the type {kind}. Convert it to int64.")
    low, high = matrix.outputs
    noise = matrix.drawing.noise
    if noise is not None:
        low, high = min(low, -noise.reach), max(high, matrix.last + noise.reach)
    limits = np.iinfo(kind)
    if low < limits.min or high > limits.max:
        raise ProblemError(
            f"The type of a column must hold every release, {low} to {high}. Found {kind}. Convert it to int64."
        )


def _fit(released: Integers, kind: np.dtype[Any]) -> NDArray[Any]:
    if len(released):
        limits = np.iinfo(kind)
        if released.min() < limits.min or released.max() > limits.max:
            raise ProblemError(f"A release does not fit into {kind}. Convert the column to int64.")
    return released.astype(kind)


def _missing() -> ProblemError:
    return ProblemError("A column must have an input in every place. Found missing values. Drop or fill them.")
