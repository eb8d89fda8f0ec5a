"""What an estimate of a law is held against: the likelihood of what was seen."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def log_likelihood(law: npt.ArrayLike, channel: npt.ArrayLike, observed: npt.ArrayLike) -> float:
    """`sum over s of n_s log(sum over x of law(x) C(x, s))`; -infinity if what was seen is impossible."""
    counts = np.asarray(observed, dtype=float)
    chances = np.asarray(law, dtype=float) @ np.asarray(channel, dtype=float)
    seen = counts > 0
    if (chances[seen] <= 0).any():
        return -math.inf
    return float(counts[seen] @ np.log(chances[seen]))
