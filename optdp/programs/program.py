"""A linear program, what a solver answers, and whether solvers print their logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Option = bool | int | float | str
Options = Mapping[str, Option]
"""What goes to the solver as it stands, by the solver's own names."""
Status = Literal["optimal", "feasible", "infeasible", "limit", "failed"]
"""What an answer is worth, by our own measure:

optimal      feasible, and its own duals show that nothing is better, within the tolerance (`optdp.programs.residuals`)
feasible     feasible within the tolerance; that nothing is better is not shown
infeasible   the solver says that there is no solution
limit        it ended at a limit: of time, of steps, or of the accuracy that it reaches
failed       there is no answer
"""


@dataclass(frozen=True)
class LinearProgram:
    """Minimise `cost @ x` subject to `lower <= matrix @ x <= upper` and `least <= x <= most`."""

    cost: Array
    matrix: Any
    """A `scipy.sparse` matrix, by columns or by rows."""
    lower: Array
    upper: Array
    least: Array | None = None
    """None: all zero."""
    most: Array | None = None
    """None: no bound."""
    whole: Mask | None = None
    """Which unknowns are whole numbers. None: none is."""

    @property
    def floor(self) -> Array:
        """The least value of each unknown."""
        return np.zeros(len(self.cost)) if self.least is None else self.least

    @property
    def ceiling(self) -> Array:
        """The largest value of each unknown."""
        return np.full(len(self.cost), np.inf) if self.most is None else self.most

    @property
    def sides(self) -> tuple[Mask, Mask, Mask]:
        """Which rows are equations, which others have an upper limit, and which a lower one."""
        equal = self.lower == self.upper
        return equal, np.isfinite(self.upper) & ~equal, np.isfinite(self.lower) & ~equal

    @property
    def mixed(self) -> bool:
        """Whether some unknown must be a whole number."""
        return self.whole is not None and bool(self.whole.any())


@dataclass(frozen=True)
class Answer:
    """What a solver says; nothing of it is believed before it was repaired and certified."""

    x: Array | None
    """None: the solver gave no point."""
    duals: Array | None
    """A price for each row: by how much the optimum grows with the limit of the row that binds, for each unit (so at
    least 0 for a lower limit, at most 0 for an upper one). None: no duals."""
    objective: float
    """`cost @ x`, computed here; nan without a point."""
    status: Status
    said: str
    """The status in the solver's own words."""
    iterations: int | None = None
    build_seconds: float = 0.0
    """Handing the arrays over."""
    solve_seconds: float = 0.0


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
