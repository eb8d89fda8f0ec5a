"""Learning a prior from noisy past releases: the iterative Bayesian update.

A known channel `C(x, s) = Pr[s | x]` was applied to inputs drawn from an unknown law `pi`, and output `s` was
seen `n_s` times, `n` in all. The maximum-likelihood estimate is

    maximise    sum over s of  n_s log(sum over x of pi(x) C(x, s))
    subject to  sum over x of  pi(x) = 1,   pi >= 0,

a concave program. Expectation maximisation, from the uniform law, multiplies each `pi(x)` by how much more
often than expected its outputs were seen:

    pi(x)  <-  pi(x) * (1/n) sum over s of  n_s C(x, s) / sum over x' of pi(x') C(x', s).

The likelihood never falls, and how far its logarithm is from the maximum is bounded at every step:
by `n log(m)`, where `m` is the largest multiplier (Jensen's inequality). That is the rule for stopping.

What is learnt from releases reveals nothing more than they did. But it is an estimate: privacy under an
estimated prior is only as good as the estimate, and an input that the data do not need gets probability 0.

References: D. Agrawal and C. Aggarwal, "On the design and quantification of privacy preserving data mining
algorithms", PODS 2001; E. ElSalamouny and C. Palamidessi, "Generalized iterative Bayesian update and
applications to mechanisms for privacy protection", EuroS&P 2020.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from optdp.errors import ProblemError
from optdp.numbers.ordered import times

Array = npt.NDArray[np.float64]

GRID = 2**53
"""The estimate is a multiple of 1/GRID."""
SUM_TOLERANCE = 1e-9
"""How far the rows of a channel may be from 1: they are floating-point numbers."""


def iterative_bayesian_update(
    channel: npt.ArrayLike,
    observed: npt.ArrayLike,
    iterations: int = 10_000,
    tolerance: float = 1e-9,
) -> tuple[Fraction, ...]:
    """Learn the distribution of the inputs from noisy releases: the one that makes the observed outputs likeliest.

    Parameters
    ----------
    channel : array
        `channel[x][s] = Pr[s | x]`; each row sums to 1.
    observed : array
        How often each output was seen; counts, or shares of any total.
    iterations : int
        The most steps that are taken.
    tolerance : float
        Stop when the mean log-likelihood of an observation is within this of its maximum.

    Returns
    -------
    tuple of Fraction
        Probabilities that sum to exactly 1. Give them to `Population.iid(n, law)` if an input is one person's
        contribution.

    Examples
    --------
    >>> from optdp import Population, iterative_bayesian_update
    >>> law = iterative_bayesian_update([[0.75, 0.25], [0.25, 0.75]], [60, 40])
    >>> [round(float(chance), 3) for chance in law]
    [0.7, 0.3]
    >>> Population.iid(50, law)
    Population(iid: 50 people, contributions 0..1)
    """
    matrix, counts = _channel(channel), _counts(observed)
    if matrix.shape[1] != len(counts):
        raise ProblemError(
            f"observed must have one count for each output of the channel, {matrix.shape[1]}. "
            f"Found {len(counts)}. Give 0 for an output that was not seen."
        )
    if not (iterations >= 1 and iterations % 1 == 0):
        raise ProblemError(f"iterations must be a whole number of at least 1. Found {iterations}. Give more.")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ProblemError(f"tolerance must be a number of at least 0. Found {tolerance}. Give, say, 1e-9.")
    unexplained = np.flatnonzero((counts > 0) & (matrix.max(axis=0) == 0))
    if len(unexplained):
        s = int(unexplained[0])
        raise ProblemError(
            "Every output that was seen must be possible. "
            f"Found that output {s} was seen {counts[s]:g} times, which no input can produce. "
            "Use the channel that made the releases."
        )
    law = np.full(len(matrix), 1 / len(matrix))
    for _ in range(int(iterations)):
        law, shortfall = update(law, matrix, counts)
        if shortfall <= tolerance:
            break
    return to_grid(law)


def update(law: Array, channel: Array, counts: Array) -> tuple[Array, float]:
    """One step of the update, and at most how far the old law's mean log-likelihood is below the maximum."""
    seen = counts > 0
    shares = counts[seen] / counts[seen].sum()
    # the scale of a column cancels, and this way nothing overflows
    relative = channel[:, seen] / channel[:, seen].max(axis=0)
    factor = times(relative, shares / times(law[None, :], relative)[0])
    new: Array = law * factor
    return new / new.sum(), math.log(max(float(factor.max()), 1.0))


def to_grid(law: Array) -> tuple[Fraction, ...]:
    """Fractions k/2^53 next to `law` that sum to exactly 1; the largest takes the remainder."""
    units = [round(Fraction(float(value)) * GRID) for value in law]
    units[int(np.argmax(law))] += GRID - sum(units)
    return tuple(Fraction(unit, GRID) for unit in units)


def _channel(channel: npt.ArrayLike) -> Array:
    matrix = _numbers(channel, "channel")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ProblemError(
            "channel must be a table with a row for each input and a column for each output. "
            f"Found shape {matrix.shape}. Give a list of rows."
        )
    for x, s in np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))[:1]:
        raise ProblemError(
            "channel must hold probabilities, finite and at least 0. "
            f"Found {matrix[x, s]} for input {x}, output {s}. Give Pr[s | x] for each."
        )
    off = matrix.sum(axis=1) - 1
    worst = int(np.argmax(np.abs(off)))
    if abs(off[worst]) > SUM_TOLERANCE:
        raise ProblemError(
            f"Each row of channel must sum to 1. Found that row {worst} is off by {off[worst]:+.3g}. "
            "Give one row for each input, with every output it can have."
        )
    return matrix


def _counts(observed: npt.ArrayLike) -> Array:
    counts = _numbers(observed, "observed")
    if counts.ndim != 1:
        raise ProblemError(f"observed must be a list of counts. Found shape {counts.shape}. Give one for each output.")
    for s in np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)))[:1]:
        raise ProblemError(
            f"observed must hold finite counts of at least 0. Found {counts[s]} for output {s}. "
            "Give how often each output was seen."
        )
    if not counts.sum() > 0:
        raise ProblemError("observed must count at least one observation. Found none. Give past releases.")
    if not np.isfinite(counts.sum()):
        raise ProblemError("observed must have a finite total. Found counts that overflow. Give shares.")
    return counts


def _numbers(values: npt.ArrayLike, name: str) -> Array:
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(
            f"{name} must hold numbers, in rows of one length. Found: {error}. Give decimals."
        ) from error
