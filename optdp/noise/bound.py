"""A rigorous lower bound of the optimum from dual prices (weak duality, with every rounding error accounted for).

For any `z >= 0` (prices of the caps), `u >= 0` (of privacy) and `v >= 0` (of the fallback chain) every feasible table
costs at least

    sum over x of y(x)  -  sum over x of z(x) cap(x),     y(x) = min over s of  cost(x) |x-s|^p + z(x) |x-s|
                                                                 + sum over j of gaps[j](x) u(j, s) - c(x) (C'v)(x, s)

because the rows of the table sum to one. The sum is evaluated in floating point. Every input float is within two
units in the last place of its exact value, so that a sum of `k` products is off by at most `(k + 8) 2^-52` times the
sum of the absolute values of its terms; that much is taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb

from optdp.noise.lp import NoiseLP

Array = npt.NDArray[np.float64]
UNIT = 2.0**-52


@dataclass(frozen=True)
class Prices:
    """A dual point: any non-negative numbers prove a bound, good ones a good bound."""

    z: Array
    """One for each input with a row."""
    u: Array
    """One row for each privacy constraint, one column for each output."""
    v: Array | None = None
    """For a fallback, `v[0][x, s]` prices `r(x) <= e^f r(x+1)` and `v[1][x, s]` prices `r(x+1) <= e^f r(x)`."""

    @staticmethod
    def none(lp: NoiseLP) -> Prices:
        size = len(lp.inputs)
        return Prices(np.zeros(size), np.zeros((len(lp.gaps), size)))


def lower_bound(lp: NoiseLP, prices: Prices) -> Fraction:
    """A number that is proved to be at most the optimum of the objective over all feasible mechanisms."""
    z = np.maximum(np.nan_to_num(prices.z, posinf=0.0), 0.0) if lp.cap is not None else np.zeros(len(lp.inputs))
    u = np.maximum(np.nan_to_num(prices.u, posinf=0.0), 0.0)
    v = None if prices.v is None or lp.chain is None else np.maximum(np.nan_to_num(prices.v, posinf=0.0), 0.0)
    if max(z.max(initial=0.0), u.max(initial=0.0)) > 1e200:
        return Fraction(0)
    y = np.empty(len(lp.inputs))
    block = max(1, 4_000_000 // len(lp.inputs))
    for start in range(0, len(y), block):
        y[start : start + block] = _least(lp, z, u, v, slice(start, min(start + block, len(y))))
    caps = -z * lp.cap if lp.cap is not None else np.zeros(0)
    if lp.shape.outside == "error":
        terms = [*y, *caps, lp.constant]
    else:
        # Against the program with a row for every input: c(x) is at most doubled, a cap is at most that of the whole
        # error, and the error in the tails is left out.
        if lp.cap is not None:
            caps = -z * (float(lp.problem.cap) * (1 + 1e-12)) / lp.mass
        terms = [*np.where(y < 0, 2 * y, y), *caps, *_beyond(lp, u)]
    terms.append(-1e-300 * float(u.sum()))  # products that underflow
    if not np.isfinite(terms).all():
        return Fraction(0)
    value = math.fsum(terms) - 8 * UNIT * math.fsum(abs(term) for term in terms)
    return Fraction(max(value, 0.0))


def _least(lp: NoiseLP, z: Array, u: Array, v: Array | None, rows: slice) -> Array:
    distance = np.abs(lp.inputs[rows, None] - lp.inputs[None, :])
    own = lp.cost[rows, None] * distance**lp.power + z[rows, None] * distance
    privacy, size = lp.gaps[:, rows].T @ u, np.abs(lp.gaps[:, rows]).T @ u
    total, size = own + privacy, own + size
    if v is not None and lp.chain is not None:
        mass = lp.mass[rows, None]
        plus, minus = _chain_terms(v, lp.chain, rows, len(lp.inputs))
        total, size = total - mass * (plus - minus), size + mass * (plus + minus)
    least: Array = (total - (len(lp.gaps) + 16) * UNIT * size).min(axis=1)
    if lp.shape.outside != "error":  # outputs outside the table, at least one step beyond its edge, with u = 0
        edge = np.minimum(lp.inputs[rows] - lp.inputs[0], lp.inputs[-1] - lp.inputs[rows]) + 1
        least = np.minimum(least, lp.cost[rows] * edge**lp.power + z[rows] * edge)
    return least


def _chain_terms(v: Array, e: float, rows: slice, size: int) -> tuple[Array, Array]:
    """The two non-negative parts of `(C'v)(x, s)`: what it adds and what it takes."""
    plus, minus = np.zeros((size, size)), np.zeros((size, size))
    plus[1:] += e * v[0]
    minus[1:] += v[1]
    plus[:-1] += e * v[1]
    minus[:-1] += v[0]
    return plus[rows], minus[rows]


def _beyond(lp: NoiseLP, u: Array) -> list[float]:
    """What inputs without a row may take off the bound: for them `y(x) >= - sum over j of |gaps[j](x)| max u(j, .)`."""
    if lp.shape.outside == "error":
        return []
    first, last = lp.shape.inputs
    missing = [float((arb(1) - sum(secret.law.balls(first, last), arb(0))).upper()) for secret in lp.laws.secrets]
    largest = u.max(axis=1, initial=0.0)
    return [
        -2
        * (1 + 1e-9)
        * float(largest[2 * k + way])
        * math.exp(step.epsilon)
        * (missing[step.one] + missing[step.other])
        for k, step in enumerate(lp.laws.steps)
        for way in (0, 1)
    ]


def best_window(lp: NoiseLP, prices: Prices) -> Prices:
    """The same prices, trusted only where they are not noise: on the run of inputs that gives the best bound.

    Outputs outside the run copy the prices of its edge (privacy prices cost nothing), inputs outside it get `z = 0`.
    """
    best, value = prices, lower_bound(lp, prices)
    if prices.v is not None:
        return best
    every = np.arange(len(lp.inputs))
    for share in 10.0 ** -np.arange(1.0, 13.0):
        run = lp.core(share)
        if run.start >= run.stop:
            continue
        inside = (every >= run.start) & (every < run.stop)
        trial = Prices(np.where(inside, prices.z, 0.0), prices.u[:, np.clip(every, run.start, run.stop - 1)])
        found = lower_bound(lp, trial)
        if found > value:
            best, value = trial, found
    return best


def estimate(lp: NoiseLP, z: Array, u: Array, run: slice = slice(None)) -> float:
    """The bound that prices on a run of inputs give there, up to rounding: enough to compare prices."""
    cost, x, gaps = lp.cost[run], lp.inputs[run], lp.gaps[:, run]
    total = 0.0 if lp.cap is None else -float(z @ lp.cap[run])
    block = max(1, 4_000_000 // len(x))
    for start in range(0, len(x), block):
        rows = slice(start, start + block)
        distance = np.abs(x[rows, None] - x[None, :])
        own = cost[rows, None] * distance**lp.power + z[rows, None] * distance
        total += float((own + gaps[:, rows].T @ u).min(axis=1).sum())
    return total
