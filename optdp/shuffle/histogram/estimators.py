"""From shuffled reports back to the histogram: three estimators for any channel, and standard errors for every bin.

Person `i` holds `x_i` and reports `y` with probability `R(x_i, y)`; of `n` reports `c_y` were `y`. Wanted are the
shares `pi(x) = n_x / n` of the people who are there, not of a law that they might be drawn from.

- **Inversion** (C, appendix B). With `R G = 1`, `G = R^T (R R^T)^-1`, the estimate `pi = G^T c / n` is unbiased. Shares
  may be negative.
- **Projection.** The point of the simplex nearest to it: `(pi(x) - t)_+`, `t` such that the sum is 1. Nearer to the
  truth than inversion, whatever the truth is, as it is a point of the simplex itself.
- **Likelihood.** The maximum of `sum_y c_y log(sum_x pi(x) R(x, y))` over the simplex, by the iterative Bayesian
  update.

**Standard errors.** People report independently, and `sum_y R(x,y) G(y,j) = [x = j]`, so that for data that stay fixed

    Var pi(j) = (1/n^2) sum_x n_x (sum_y R(x,y) G(y,j)^2 - [x = j]) = (1/n^2) (sum_y E[c_y] G(y,j)^2 - n_j).

It is linear in what is not known: with `c_y` for `E[c_y]` and the inverted estimate for `n_j` the plug-in variance is
itself unbiased (where it is negative, 0 stands for it). For people drawn from a law add `pi(1-pi)/n`.

**Randomized response** on `k` values, `R = (1-g) 1 + g/k`, needs no matrix: `G = (1 - g/k)/(1-g)`, and the likeliest
law is `pi(x) = (c_x/m - a)_+` with `a = g/(k(1-g))` and `m` such that the sum is 1 (the conditions of Karush, Kuhn and
Tucker). Both take a sort.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from optdp.errors import ProblemError
from optdp.numbers.exact import check_whole, shown
from optdp.people.learn import iterative_bayesian_update

Array = npt.NDArray[np.float64]

LARGEST_RANK = 2000  # the most inputs or outputs of a channel that is inverted as a matrix
SINGULAR = 1e-10  # a channel whose smallest singular value is that much below its largest is not inverted


@dataclass(frozen=True)
class Response:
    """Randomized response on `k` values: with probability `gamma` a uniform answer, else the true one."""

    k: int
    gamma: Fraction

    def __post_init__(self) -> None:
        check_whole(self.k, "k", 2)
        if not 0 <= self.gamma < 1:
            raise ProblemError(f"gamma must be at least 0 and below 1. Found {shown(self.gamma)}.")

    def matrix(self) -> Array:
        """The channel as a table, for a moderate k."""
        share = float(self.gamma)
        return (1.0 - share) * np.eye(self.k) + share / self.k


Channel = Response | Array


def invert(channel: Channel, counts: npt.ArrayLike) -> Array:
    """The unbiased estimate of the shares; they sum to 1, and may be negative."""
    channel, seen = _checked(channel, counts)
    if isinstance(channel, Response):
        share = float(channel.gamma)
        closed: Array = (seen / seen.sum() - share / channel.k) / (1.0 - share)
        return closed
    found: Array = _right_inverse(channel).T @ seen / seen.sum()
    return found


def project(law: npt.ArrayLike) -> Array:
    """The point of the simplex nearest to `law`, in O(k log k)."""
    shares = np.asarray(law, dtype=float)
    if shares.ndim != 1 or not len(shares) or not np.isfinite(shares).all():
        raise ProblemError(f"What is projected must be a list of finite numbers. Found {shown(law)}.")
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(shares) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    found: Array = np.maximum(shares - excess[kept], 0.0)
    return found


def inverted_and_projected(channel: Channel, counts: npt.ArrayLike) -> Array:
    """The projection of the inverted estimate."""
    return project(invert(channel, counts))


def likely(channel: Channel, counts: npt.ArrayLike) -> Array:
    """The law under which the reports are likeliest."""
    channel, seen = _checked(channel, counts)
    if not isinstance(channel, Response):
        return np.array([float(share) for share in iterative_bayesian_update(channel, seen)])
    share = float(channel.gamma)
    offset = share / (channel.k * (1.0 - share))
    falling = np.sort(seen)[::-1]
    # with the j largest counts above zero: sum of (c/m - a) over them is 1, so m = (their sum) / (1 + j a)
    level = np.cumsum(falling) / (1.0 + offset * np.arange(1, channel.k + 1))
    kept = int(np.flatnonzero(falling > offset * level)[-1])
    found: Array = np.maximum(seen / level[kept] - offset, 0.0)
    found /= found.sum()
    return found


def standard_errors(channel: Channel, counts: npt.ArrayLike) -> Array:
    """For every bin the standard error of its inverted share, for fixed data: the plug-in variance is unbiased."""
    channel, seen = _checked(channel, counts)
    n, inverted = seen.sum(), invert(channel, seen)
    if isinstance(channel, Response):
        share = float(channel.gamma)
        each = share / channel.k
        squared = (seen * (1.0 - 2.0 * each) + n * each**2) / (1.0 - share) ** 2
    else:
        squared = (_right_inverse(channel) ** 2).T @ seen
    found: Array = np.sqrt(np.maximum(squared - n * inverted, 0.0)) / n
    return found


def _right_inverse(channel: Array) -> Array:
    """`R^T (R R^T)^-1`, if the inputs can be told apart."""
    if max(channel.shape) > LARGEST_RANK:
        raise ProblemError(
            f"A channel that is inverted may have up to {LARGEST_RANK:,} inputs and outputs. Found {channel.shape}."
        )
    left, sizes, right = np.linalg.svd(channel, full_matrices=False)
    if channel.shape[0] > channel.shape[1] or sizes[-1] < SINGULAR * sizes[0]:
        raise ProblemError(
            "A channel is inverted only if the laws of its outputs are linearly independent. "
            'Found inputs that are a mixture of others. Use the estimator "likelihood".'
        )
    found: Array = right.T @ ((left / sizes).T)
    return found


def _checked(channel: Channel, counts: npt.ArrayLike) -> tuple[Channel, Array]:
    """A channel and as many counts as it has outputs."""
    seen = np.asarray(counts, dtype=float)
    if seen.ndim != 1 or not np.isfinite(seen).all() or (seen < 0).any() or not seen.sum() > 0:
        raise ProblemError(f"Counts must be a list of finite numbers from 0 on, not all 0. Found {shown(counts)}.")
    if isinstance(channel, Response):
        outputs = channel.k
    else:
        channel = np.asarray(channel, dtype=float)
        if channel.ndim != 2 or not (np.isfinite(channel).all() and (channel >= 0).all()):
            raise ProblemError(f"A channel must be a table of probabilities. Found {shown(channel)}.")
        if not len(channel) or np.abs(channel.sum(axis=1) - 1.0).max() > 1e-9:
            raise ProblemError("Every row of a channel must sum to 1. Found one that does not.")
        outputs = channel.shape[1]
    if len(seen) != outputs:
        raise ProblemError(f"There must be a count for each of the {outputs} outputs. Found {len(seen)} counts.")
    return channel, seen


ESTIMATORS: dict[str, Callable[[Channel, npt.ArrayLike], Array]] = {
    "likelihood": likely,
    "projection": inverted_and_projected,
    "inversion": invert,
}
"""Every estimator of the shares by its name."""
