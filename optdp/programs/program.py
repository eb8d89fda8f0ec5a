"""A linear program, what a solver answers, and whether solvers print their logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LinearProgram:
    """Minimise `cost @ x` subject to `lower <= matrix @ x <= upper` and `x >= 0`."""

    cost: Array
    matrix: Any
    """A `scipy.sparse` matrix."""
    lower: Array
    upper: Array


@dataclass(frozen=True)
class Answer:
    """What a solver says; nothing of it is believed before it was repaired and certified."""

    x: Array
    objective: float
    status: str


verbose: ContextVar[bool] = ContextVar("verbose", default=False)
"""Whether solvers print their own logs."""


@contextmanager
def verbosely(on: bool = True) -> Iterator[None]:
    """A context in which solvers print their own logs: HiGHS to standard error, CVXPY and its solvers as they do."""
    token = verbose.set(on)
    try:
        yield
    finally:
        verbose.reset(token)
