"""The blanket of a randomizer, to look at: `R(x) = (1-gamma) nu_x + gamma omega` (B, section 5.1).

Whatever the input is, with probability `gamma` the message comes from one and the same law `omega`, the blanket:

    gamma = int inf_x R(x)(y) dy,    omega(y) = inf_x R(x)(y) / gamma,    nu_x = (R(x) - gamma omega) / (1 - gamma).

No larger `gamma` is possible: for every message `y` there is an input `x` with `nu_x(y) = 0`, or it is approached.
For finite randomizers densities are probabilities. B, Lemmas 6 and 7:

| randomizer | gamma |
|---|---|
| `k-rr` | `k / (e^eps0 + k - 1)` |
| `laplace` | `e^(-eps0/2)` |
| `gaussian` | `2 Pr[N(0, sigma^2) <= -1/2]` |
| `channel` | sum of the smallest entries of the columns |
| any | at least `e^-eps0` |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from optdp.amplification.catalogue import Gaussian, Laplace, LocalHash
from optdp.amplification.randomizers import KRR, Channel, Floats, Randomizer
from optdp.errors import ProblemError
from optdp.numbers.exact import check_between

EXACT = ("subset-selection", "piecewise")
"""Randomizers of the catalogue whose cells hold all of the blanket; those of the others hold a part of it."""


@dataclass(frozen=True)
class Densities:
    """The densities of a randomizer."""

    of: Callable[[float, Floats], Floats]  # `R(x)(y)`
    least: Callable[[Floats], Floats]  # `inf_x R(x)(y)`
    takes: Callable[[float], bool]  # whether something is an input


@dataclass(frozen=True)
class Blanket:
    """What does not depend on the input, and what is left."""

    gamma: float
    exact: bool  # whether `gamma` is the total variation similarity itself, and not a lower bound of it
    law: Densities | None = None

    def density(self, y: ArrayLike) -> Floats:
        """`omega(y)`: of the blanket, at each `y`."""
        return self._known.least(np.asarray(y, dtype=np.float64)) / self.gamma

    def residual(self, x: float, y: ArrayLike) -> Floats:
        """`nu_x(y)`: of what the input `x` adds, at each `y`."""
        if not self._known.takes(x):
            raise ProblemError(f"This is not an input of the randomizer: {x}.")
        if self.gamma >= 1.0:
            raise ProblemError("The messages do not depend on the input: nothing is left beside the blanket.")
        places = np.asarray(y, dtype=np.float64)
        return np.maximum(self._known.of(x, places) - self._known.least(places), 0.0) / (1.0 - self.gamma)

    @property
    def _known(self) -> Densities:
        if self.law is None:
            raise ProblemError("Only gamma is known of this randomizer. Densities: k-rr, laplace, gaussian, channel.")
        return self.law


def decompose(randomizer: Randomizer, eps0: float) -> Blanket:
    """The privacy blanket of a randomizer: the part of its messages that does not depend on the input.

    Parameters
    ----------
    randomizer : KRR, Channel, Laplace, Gaussian, Generic, ...
        Inputs are `0..k-1` for `k-rr` (and the buckets of `local-hash`), rows of a `channel`, and numbers in [0, 1] for
        `laplace` and `gaussian`. Of other randomizers only `gamma` is known.
    eps0 : float
        The local epsilon.

    Returns
    -------
    Blanket
        `gamma`, the probability of the blanket, and where they are known its law and what is left for each input.

    Examples
    --------
    >>> from optdp import KRR, decompose
    >>> found = decompose(KRR(10), 2.0)
    >>> round(found.gamma, 4), found.exact
    (0.6102, True)
    """
    check_between(eps0, "eps0", 0.0, math.inf)
    match randomizer:
        case KRR():
            return _krr(randomizer.k, eps0)
        case LocalHash():
            return _krr(randomizer.g, eps0)
        case Laplace():
            return Blanket(math.exp(-eps0 / 2.0), True, _around(lambda far: eps0 / 2.0 * np.exp(-eps0 * far)))
        case Gaussian():
            return _gaussian(randomizer.deviation(eps0))
        case Channel():
            return _channel(randomizer.array)
    if randomizer.kind == "generic":
        return Blanket(math.exp(-eps0), False)
    similarity = max(float(cells.others.sum()) for cells in randomizer.blankets(eps0))
    return Blanket(min(similarity, 1.0), randomizer.kind in EXACT)


def _krr(k: int, eps0: float) -> Blanket:
    p = math.exp(eps0)
    unit = 1.0 / (p + k - 1.0)

    def least(y: Floats) -> Floats:
        return np.where((y >= 0) & (y < k) & (y == np.floor(y)), unit, 0.0)

    def of(x: float, y: Floats) -> Floats:
        return least(y) * np.where(y == x, p, 1.0)

    return Blanket(k * unit, True, Densities(of, least, lambda x: x in range(k)))


def _around(density: Callable[[Floats], Floats]) -> Densities:
    """Noise added to a number in [0, 1], by its density at a distance: of all inputs, 0 or 1 is farthest from `y`."""

    def of(x: float, y: Floats) -> Floats:
        return density(np.abs(y - x))

    def least(y: Floats) -> Floats:
        return density(np.maximum(np.abs(y), np.abs(y - 1.0)))

    return Densities(of, least, lambda x: 0.0 <= x <= 1.0)


def _gaussian(sigma: float) -> Blanket:
    scale = 1.0 / (sigma * math.sqrt(2.0 * math.pi))
    law = _around(lambda far: scale * np.exp(-0.5 * (far / sigma) ** 2))
    return Blanket(2.0 * float(ndtr(-0.5 / sigma)), True, law)


def _channel(array: Floats) -> Blanket:
    smallest = array.min(axis=0)

    def at(row: Floats, y: Floats) -> Floats:
        inside = (y >= 0) & (y < len(row)) & (y == np.floor(y))
        return np.where(inside, row[np.where(inside, y, 0).astype(np.int64)], 0.0)

    gamma = float(smallest.sum())
    if gamma == 0.0:
        raise ProblemError("Every message of this channel is impossible for some input: it has no blanket.")
    law = Densities(lambda x, y: at(array[int(x)], y), lambda y: at(smallest, y), lambda x: x in range(len(array)))
    return Blanket(min(gamma, 1.0), True, law)
