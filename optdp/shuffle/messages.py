"""What every protocol asks of rows and messages before it looks at them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optdp.errors import ProblemError
from optdp.math.exact import shown


def check_rows(found: int, n: int) -> None:
    """A design is for so many people: with fewer it would hide less, with more its estimate would be wrong."""
    if found != n:
        raise ProblemError(
            f"The design is for n = {n} people. Found {found} row{'' if found == 1 else 's'}. Change n, or the data."
        )


def check_messages(messages: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Messages from `0..k-1`."""
    found = np.asarray(messages)
    if found.ndim != 1 or not len(found):
        raise ProblemError(f"Messages must be a list, not empty. Found {shown(messages)}.")
    if found.dtype.kind not in "iu":
        raise ProblemError(f"Messages must be whole numbers. Found {shown(found[0].item())} among them.")
    wrong = np.flatnonzero((found < 0) | (found >= k))
    if len(wrong):
        raise ProblemError(
            f"Messages must be from 0 to {k - 1}. Found {len(wrong)} outside, first {found[wrong[0]]} at position "
            f"{wrong[0]}. Use the design that they were made with."
        )
    return found.astype(np.int64)
