"""Answers of few different values: what a group can move then, and how many values there are (docs/mathematics.md).

Exchanging equal answers changes nothing. So a group needs at most `K` exchanges of neighbouring answers to get from one
sequence to another, and each changes a probability by a factor of at most `e^theta`. For a group with `m` members at
positions `g_1 < .. < g_m` of the order, let `Delta` be its sensitivity if all answers differ. By Kendall's distance

    2 values, exactly:   (sum of the upper half - sum of the lower half)  =  (Delta + floor(m/2)) / 2,
    k values, at most:   Delta - (the least number of pairs of equal answers among m answers).

The second is for k >= 3; it has `m (m-1) / 2` in `Delta` replaced by the edges of Turan's graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictStr

from optdp.errors import ProblemError
from optdp.files.data import read_columns
from optdp.files.models import Strict
from optdp.numbers.exact import check_whole

Whole = NDArray[np.int64]
MOST = 10**7
"""As many values as there may be records."""
PLAIN = (str, bytes, bool, int, float, type(None))
"""Types whose text says all."""


class ValuesModel(Strict):
    """The column of a file whose different answers are counted."""

    data: StrictStr = Field(description="A CSV file.")
    column: StrictStr = Field(description="The column with the answers, as they are shuffled.")

    def build(self) -> list[str]:
        return read_columns(Path(self.data), [self.column])[self.column.strip()]


def number_of_values(given: Any) -> int | None:
    """How many different values answers have: as it is said, or counted; None if nobody knows."""
    if given is None:
        return None
    counted = hasattr(given, "__len__") and not isinstance(given, (str, bytes, dict))
    values: int = max(2, different(given)) if counted else given
    check_whole(values, "values", 2, MOST)
    return values


def different(answers: Any) -> int:
    """How many different answers there are; each row of a table is one. What is told apart in doubt counts twice."""
    try:
        given = np.asarray(answers)
    except ValueError:
        raise ProblemError("Answers must be a column, or rows of the same length. Found rows of several.") from None
    if given.dtype.kind != "O":
        return len({row.tobytes() for row in given})
    rows = given if given.ndim == 1 else [tuple(row) for row in given.reshape(len(given), -1)]
    return len({tuple(map(_told, row)) if isinstance(row, tuple) else _told(row) for row in rows})


def _told(answer: Any) -> tuple[type, Any]:
    return type(answer), repr(answer) if type(answer) in PLAIN else id(answer)


def check_values(found: int, values: int | None) -> None:
    """Refuse answers of more different values than the claim is for."""
    if values is not None and found > values:
        raise ProblemError(
            f"The order is for answers of at most {values:,} different values. Found {found:,}. Change the answers, or "
            "solve again with more values, or without."
        )


def narrowed(found: Whole, sizes: Whole, values: int | None) -> Whole:
    """Kendall sensitivities of groups of these sizes for answers of so many values, from those for any answers."""
    if values is None:
        return found
    if values == 2:
        return (found + sizes // 2) // 2  # even: `found` is twice the sum of a half less the other, less `m // 2`
    each, more = sizes // values, sizes % values
    alike: Whole = values * (each * (each - 1) // 2) + more * each
    return found - alike


def narrowed_bound(below: int, sizes: Whole, values: int | None) -> int:
    """What no order's largest sensitivity is below for so many values, if without them it is not below `below`.

    Some group has at least `below`, and none has less than side by side.
    """
    several = sizes[sizes > 1]
    if values is None or not len(several):
        return below
    beside = several * (several - 1) // 2
    least = np.maximum(beside, below)
    if values == 2:
        least += (least + several // 2) % 2  # the next that there is
    return int(max(narrowed(beside, several, values).max(), narrowed(least, several, values).min()))
