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

from optdp.numbers.ordered import dot, outer_sum
from optdp.single.laws import Sight
from optdp.single.lp import NoiseLP

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
UNIT = 2.0**-52
SMALL = 1e-10
"""Inputs that cannot take off more than this share of the bound are not looked at one by one."""


@dataclass(frozen=True)
class Prices:
    """A dual point: any non-negative numbers prove a bound, good ones a good bound."""

    z: Array
    """One for each input with a row."""
    u: Array
    """One row for each privacy constraint, one column for each output."""
    v: Array | None = None
    """For a fallback: `v[0][i, s]` prices `r(x) <= chain r(x+d)` and `v[1][i, s]` prices `r(x+d) <= chain r(x)`, where
    `i` counts the inputs `x` for `d = 1`, then those for `d = 2`, and so on up to the reach."""
    sights: tuple[Sight, ...] | None = None
    """With observers in doubt: what each two rows of `u` price, one for either way."""

    @staticmethod
    def none(lp: NoiseLP) -> Prices:
        size = len(lp.inputs)
        return Prices(np.zeros(size), np.zeros((len(lp.gaps), size)))


def lower_bound(lp: NoiseLP, prices: Prices) -> Fraction:
    """A number that is proved to be at most the optimum of the objective over all feasible mechanisms."""
    if prices.sights is not None:
        lp = lp.seen(prices.sights)
    z = np.maximum(np.nan_to_num(prices.z, posinf=0.0), 0.0) if lp.cap is not None else np.zeros(len(lp.inputs))
    u = np.maximum(np.nan_to_num(prices.u, posinf=0.0), 0.0)
    v = None if prices.v is None or lp.chain is None else np.maximum(np.nan_to_num(prices.v, posinf=0.0), 0.0)
    if max(z.max(initial=0.0), u.max(initial=0.0)) > 1e200:
        return Fraction(0)
    # Against the program with a row for every input: there c(x) has grown, and with it what y(x) takes off.
    caps = -z * lp.far_cap if lp.far_cap is not None else np.zeros(0)
    underflow = -1e-300 * float(u.sum())
    rest = [*caps, lp.inevitable, *_beyond(lp, u), underflow]
    y = _least_of_all(lp, z, u, v, math.fsum(rest))
    terms = [*np.where(y < 0, y * lp.growth, y), *rest]
    if not np.isfinite(terms).all():
        return Fraction(0)
    value = math.fsum(terms) - 8 * UNIT * math.fsum(abs(term) for term in terms)
    return Fraction(max(value, 0.0))


def _least_of_all(lp: NoiseLP, z: Array, u: Array, v: Array | None, rest: float) -> Array:
    """`y(x)` for every input, rounded down; where it cannot matter, only what it is at least."""
    size = len(lp.inputs)
    block = max(1, 4_000_000 // size)
    if v is not None:
        return np.concatenate([_least(lp, z, u, v, np.arange(i, min(i + block, size))) for i in range(0, size, block)])
    peaks = u.max(axis=1, initial=0.0)
    # 2 covers the rounding; a cap or a cost only adds
    y: Array = -2.0 * (np.maximum(-lp.gaps, 0.0).T @ peaks)
    order = np.argsort(y, kind="stable")
    left = np.append(np.cumsum(y[order][::-1])[::-1], 0.0)  # what those from here on take off at most
    for start in range(0, size, block):
        if -left[start] <= SMALL * (y[order[:start]].sum() + rest):
            break
        rows = np.sort(order[start : start + block])
        y[rows] = _least(lp, z, u, v, rows)
    return y


def _least(lp: NoiseLP, z: Array, u: Array, v: Array | None, rows: Ints) -> Array:
    distance = np.abs(lp.inputs[rows, None] - lp.inputs[None, :])
    own = lp.cost[rows, None] * distance**lp.power + z[rows, None] * distance
    privacy, size = outer_sum(lp.gaps[:, rows], u), outer_sum(np.abs(lp.gaps[:, rows]), u)
    total, size = own + privacy, own + size
    if v is not None and lp.chain is not None:
        mass = lp.mass[rows, None]
        plus, minus = _chain_terms(lp, v, lp.chain, rows)
        total, size = total - mass * (plus - minus), size + mass * (plus + minus)
    least: Array = (total - (len(lp.gaps) + 4 * lp.reach + 16) * UNIT * size).min(axis=1)
    if lp.shape.outside != "error":  # outputs outside the table, at least one step beyond its edge, with u = 0
        (first, last), x = lp.shape.inputs, lp.inputs[rows]
        ends = [x - first] * (first > 0) + [last - x] * (last < lp.shape.last)
        edge = np.minimum.reduce(ends) + 1
        least = np.minimum(least, lp.cost[rows] * edge**lp.power + z[rows] * edge)
    return least


def _chain_terms(lp: NoiseLP, v: Array, e: float, rows: Ints) -> tuple[Array, Array]:
    """The two non-negative parts of `(C'v)(x, s)`: what it adds and what it takes."""
    size = len(lp.inputs)
    plus, minus = np.zeros((size, size)), np.zeros((size, size))
    start = 0
    for far in lp.rungs:
        up, down = v[:, start : start + size - far]
        plus[far:] += e * up
        minus[far:] += down
        plus[:-far] += e * down
        minus[:-far] += up
        start += size - far
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
    for share in (10.0**-k for k in range(1, 13)):
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
    total = 0.0 if lp.cap is None else -dot(z, lp.cap[run])
    block = max(1, 4_000_000 // len(x))
    for start in range(0, len(x), block):
        rows = slice(start, start + block)
        distance = np.abs(x[rows, None] - x[None, :])
        own = cost[rows, None] * distance**lp.power + z[rows, None] * distance
        total += float((own + outer_sum(gaps[:, rows], u)).min(axis=1).sum())
    return total


NO_DUALS = "the solver gives no duals, so the distance from the optimum is not proved"
"""What is said of a draft without prices."""
PRICED = "the solver gives no duals, so the lower bound is from HiGHS"
"""What is said of a draft whose solver gave none."""


@dataclass(frozen=True)
class Draft:
    """Entries `W(rows, cols) = values` of a table (indices, not inputs; repeated entries add up) and dual prices."""

    rows: npt.NDArray[np.int64]
    cols: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    prices: Prices | None
    status: str
    engine: str
    note: str = ""

    def objective(self, lp: NoiseLP) -> float:
        """What the draft costs as it stands, tails included."""
        error = np.abs(lp.inputs[self.rows] - lp.inputs[self.cols]) ** lp.power
        return float((lp.cost[self.rows] * error * self.values).sum()) + lp.constant

    @staticmethod
    def dense(table: npt.NDArray[np.float64], prices: Prices | None, status: str, engine: str) -> Draft:
        rows, cols = np.nonzero(table)
        return Draft(rows, cols, table[rows, cols], prices, status, engine)
