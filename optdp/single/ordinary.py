"""Ordinary differential privacy with the belief in the objective alone: the optimum in closed form, without a program.

For neighbours that differ by one unit the best table is geometric noise, clamped to the inputs, and then the best
reading `c(t)` of its output `t` (`alternatives`). The prices that prove it are in closed form too. In the chain form
(see `chain`; tails and caps there are none) let, with `w` the belief and `q = 1 / chain`,

    m(t) = sum over x of w(x) q^|x-t| loss(x - c(t)),        y  with  sum over x of q^|x-t| y(x) = m(t) for every t.

The matrix `q^|x-t|` has a tridiagonal inverse. The surplus `g(x) = w(x) loss(x - s) - y(x)` of an output `s` that is
read from `t = t1..t2` is carried off by the prices of its rungs, from below up to `t1` and from above down to `t2`:

    a(x) = g(x) + q a(x-1)  on  r(x, s) - q r(x+1, s) >= 0,  x < t1;      b(x) = g(x+1) + q b(x+1)  likewise, x >= t2.

Nothing remains in between, for there `sum over x of q^|x-t| g(x) = 0`. An output that is never read has its place
between its neighbours'; what remains there is not negative, as `c(t)` is the best reading.

With geometric tails and condition (3) there is nothing to choose: only geometric noise itself is left. The prices of
the caps that prove it are `z(x) = k w(x)`, with `w(x) = 1`, and `1 / (1-q)` at the two ends: then in

    sum over x of w(x) q^|x-t| |x-s|

it costs exactly 1 to read `t` as a neighbour and not as itself, whatever `t` is, and with `k` large enough that
outweighs what the belief would gain. What is left is as above, with `c(t) = t` and the cost `g(x) loss + z(x) |x-s|`.
"""

from __future__ import annotations

import numpy as np

from optdp.numbers.ordered import Array, geometric
from optdp.single.alternatives import Whole, readings
from optdp.single.bound import Draft, Prices
from optdp.single.laws import Sight
from optdp.single.lp import NoiseLP
from optdp.single.window import only_ordinary
from optdp.work import Progress


def is_closed_form(lp: NoiseLP) -> bool:
    """Whether nothing but ordinary privacy between units is asked for."""
    return only_ordinary(lp.problem) and lp.cap is None and lp.shape.q is None


def solve_ordinary(lp: NoiseLP, progress: Progress) -> Draft:
    """The best table, and prices that prove it."""
    progress("the best reading of geometric noise")
    q, noise = _noise(lp)
    size = len(noise)
    read = np.clip(readings(lp.problem, int(lp.inputs[0]), size) - int(lp.inputs[0]), 0, size - 1)
    chances = np.full(size, (1 - q) / (1 + q))
    chances[0] = chances[-1] = 1 / (1 + q)
    table: Array = np.zeros((size, size))
    for t in range(size):
        table[:, read[t]] += chances[t] * noise[:, t]
    rungs = _rungs(lp.cost[:, None] * lp.distances**lp.power, q, read, noise)
    return Draft.dense(table, Prices(np.zeros(size), np.zeros_like(lp.gaps), rungs), "optimal", "ordinary")


def prices_of_noise(lp: NoiseLP, sights: tuple[Sight, ...] | None = None) -> Prices:
    """Prices that prove that geometric noise is the best, where condition (3) and geometric tails leave only that.

    Whatever else the program asks, by the worlds that `sights` names, has the price 0.
    """
    q, noise = _noise(lp)
    size = len(noise)
    belief, every = lp.cost / lp.mass, np.arange(size)
    loss = lp.distances**lp.power
    beside = [np.abs(every[:, None] - (every + way)) ** lp.power - loss for way in (-1, 1)]
    gain = max(float(-np.add.reduce(noise * belief[:, None] * more, axis=0).min()) for more in beside)
    ends = np.ones(size)
    ends[0] = ends[-1] = 1 / (1 - q)
    z = max(gain, 0.0) * (1 + 1e-9) * ends
    cost = belief[:, None] * loss + z[:, None] * lp.distances
    return Prices(z * lp.mass, np.zeros_like(lp.gaps), _rungs(cost, q, every, noise), sights)


def _noise(lp: NoiseLP) -> tuple[float, Array]:
    """`q`, and `q^|x-t|`."""
    assert lp.chain is not None
    size = len(lp.inputs)
    return 1 / lp.chain, geometric(1 / lp.chain, size)[np.abs(np.subtract.outer(np.arange(size), np.arange(size)))]


def _rungs(cost: Array, q: float, read: Whole, noise: Array) -> Array:
    """The prices of the rungs where report `s` of input `x` costs `cost[x, s]`, and `t` is read as `read[t]`."""
    size = len(read)
    y = _unblurred(np.add.reduce(noise * cost[:, read], axis=0), q)
    surplus = cost - y[:, None]
    first, last = np.searchsorted(read, np.arange(size), "left"), np.searchsorted(read, np.arange(size), "right") - 1
    first, last = np.minimum(first, size - 1), np.maximum(last, np.minimum(first, size - 1))
    v: Array = np.zeros((2, size - 1, size))
    carried = np.zeros(size)
    for x in range(size - 1):
        carried = np.where(x < first, surplus[x] + q * carried, 0.0)
        v[1, x] = carried
    carried = np.zeros(size)
    for x in range(size - 2, -1, -1):
        carried = np.where(x >= last, surplus[x + 1] + q * carried, 0.0)
        v[0, x] = carried
    rungs: Array = np.maximum(v, 0.0) * q
    return rungs


def _unblurred(values: Array, q: float) -> Array:
    """`y` with `sum over x of q^|x-t| y(x) = values(t)`."""
    if len(values) == 1:
        return values
    apart = -np.diff(values)
    inner = np.zeros_like(values)  # in differences, which cancel less where q is next to 1
    inner[:-1] += q * apart
    inner[1:] -= q * apart
    inner += (1 - q) * (1 - q) * values
    inner[0] += q * (1 - q) * values[0]
    inner[-1] += q * (1 - q) * values[-1]
    found: Array = inner / ((1 - q) * (1 + q))
    return found
