"""From the prices of the pair form to prices of the plain program, which prove a lower bound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optdp.noise.bound import Prices, estimate
from optdp.noise.lp import NoiseLP

Array = npt.NDArray[np.float64]


def plain_prices(lp: NoiseLP, core: slice, y: Array, z: Array, tolerance: float) -> Prices:
    """Prices of the plain program from those of the pair form, on the most useful trusted run of inputs.

    A solver's tolerances are absolute, so that the prices of inputs that hardly ever occur are noise. Inputs outside
    the trusted run get `z = 0`, and outputs outside it the `u` of its edge, which costs nothing for the inputs inside.
    """
    best, value = Prices.none(lp), -np.inf
    for share in (1e-6, 1e-8, 1e-10):
        trusted = lp.core(share * float(lp.cost[(lp.gaps > 0).any(axis=0)].sum()))
        a, b = max(trusted.start, core.start), min(trusted.stop, core.stop)
        if a >= b:
            continue
        inside = slice(a - core.start, b - core.start)
        u = _least_prices(lp, slice(a, b), y[inside], z[inside], tolerance)
        found = estimate(lp, z[inside], u, slice(a, b))
        if found > value:
            full_z = np.zeros(len(lp.inputs))
            full_z[a:b] = z[inside]
            value, best = found, Prices(full_z, u[:, np.clip(np.arange(len(lp.inputs)) - a, 0, b - a - 1)])
    return best


def _least_prices(lp: NoiseLP, trusted: slice, y: Array, z: Array, tolerance: float) -> Array:
    """For each trusted output `s` the least `u >= 0` with `g(x) + gaps[0](x) u0 + gaps[1](x) u1 >= 0` for all `x`.

    Here `g(x)` is the cost of reporting `s` less `y(x)`. The bound on `u0` rises with `u1` and the other way round,
    so that repeating the two maxima from zero climbs to the least solution. Every `y(x)` may give way by a little more
    than the solver's tolerance; without that, inputs right at a bound would ask for absurd prices.
    """
    y = y - 1e-8 * np.abs(y) - tolerance
    cost, x, gaps = lp.cost[trusted], lp.inputs[trusted], lp.gaps[:, trusted]
    low, high = gaps[0] > 0, gaps[1] > 0
    u = np.zeros((2, len(x)))
    block = max(1, 4_000_000 // len(x))
    for start in range(0, len(x), block):
        distance = np.abs(x[start : start + block, None] - x[None, :])
        slack = cost * distance**lp.power + z * distance - y
        u0, u1 = np.zeros(len(distance)), np.zeros(len(distance))
        for _ in range(40):
            before = u0, u1
            if low.any():
                wanted = (-slack[:, low] - gaps[1][low] * u1[:, None]) / gaps[0][low]
                u0 = np.maximum(u0, wanted.max(axis=1))
            if high.any():
                wanted = (-slack[:, high] - gaps[0][high] * u0[:, None]) / gaps[1][high]
                u1 = np.maximum(u1, wanted.max(axis=1))
            if not low.any() or not high.any() or (np.array_equal(u0, before[0]) and np.array_equal(u1, before[1])):
                break
        u[0, start : start + block], u[1, start : start + block] = u0, u1
    return u
