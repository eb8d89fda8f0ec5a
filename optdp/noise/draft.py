"""Draft: an engine's answer in floating point, before repair. Nothing of it is believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optdp.noise.bound import Prices
from optdp.noise.lp import NoiseLP


@dataclass(frozen=True)
class Draft:
    """Entries `W(rows, cols) = values` of a table (indices, not inputs; repeated entries add up) and dual prices."""

    rows: npt.NDArray[np.int64]
    cols: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    prices: Prices | None
    status: str
    engine: str

    def objective(self, lp: NoiseLP) -> float:
        """What the draft costs as it stands, tails included."""
        error = np.abs(lp.inputs[self.rows] - lp.inputs[self.cols]) ** lp.power
        return float((lp.cost[self.rows] * error * self.values).sum()) + lp.constant

    @staticmethod
    def dense(table: npt.NDArray[np.float64], prices: Prices | None, status: str, engine: str) -> Draft:
        rows, cols = np.nonzero(table)
        return Draft(rows, cols, table[rows, cols], prices, status, engine)
