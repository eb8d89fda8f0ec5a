"""What an engine eats, and what it gives back."""

from __future__ import annotations

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
