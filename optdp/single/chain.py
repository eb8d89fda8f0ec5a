"""With a fallback: the whole program by an interior-point method that knows its structure.

In the mechanism itself, `r(x, s) = c(x) W(x, s)`, the program is, with `ratio = 1 / chain` (see `lp`),

    minimise    sum over x, s of  (cost(x)/c(x)) |x-s|^power r(x, s)
    subject to  sum over s of r(x, s) = c(x)                                        price y(x)
                r(x', s) - ratio r(x, s) >= 0              |x - x'| <= reach        price v(x, s) >= 0
                - sum over x of (gaps[j](x)/c(x)) r(x, s) >= 0                      price u(j, s) >= 0
                c(x) cap(x) - sum over s of |x-s| r(x, s) >= 0                      price z(x) >= 0

The chain alone makes `r` positive, so that there is no other sign to keep. Simplex is hopeless (most of the
`2 n^2` chain rows are tight at the optimum), but Newton's equations decouple (see `newton`): for each output
a tridiagonal matrix (with a longer reach a banded one), bordered by its privacy rows, and one dense system in
`(y, z)` that ties the outputs together. The steps are those of S. Mehrotra, "On the implementation of a primal-dual
interior point method", SIAM J. Optim. 2 (1992).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from optdp import work
from optdp.errors import ProblemError, SolverError
from optdp.numbers.exact import log
from optdp.numbers.ordered import exp, geometric, powers, times
from optdp.single.bound import Draft, Prices
from optdp.single.lp import NoiseLP
from optdp.single.newton import Model, Newton, Point, PointResiduals

LARGEST = 1200
"""The most inputs; time grows with the third power of their number."""
MEMORY = 8e9
"""Bytes that the factors may take."""
GAP = 1e-7
"""The relative gap between value and bound that is aimed at."""
RESIDUAL = 1e-9
"""By how much a row of the table may miss its sum or exceed its cap."""
LENIENCE = 10.0
"""Where no more can be reached, this many times as much is still called optimal."""
PATIENCE = 25
"""Iterations without progress before giving up."""
ITERATIONS = 250


def solve_chain(lp: NoiseLP, progress: Callable[[str], None] = lambda _: None) -> Draft:
    """A table within a relative `GAP` of the optimum, with prices that prove it."""
    if lp.chain is None:
        raise ProblemError("The chain form is for problems with a fallback_epsilon. Found none.")
    _check_memory(lp)
    size, count = len(lp.inputs), len(lp.gaps)
    iterations = min(ITERATIONS, 50 + 0.4 * size)
    seconds = iterations * size * size * (4e-7 * (count + 4 * lp.reach) + 3e-10 * size * (1 + lp.reach))
    fits = f"Up to about {int(size * (work.LONGEST / seconds) ** 0.3):,} inputs fit: use fewer people, coarser "
    work.announce(seconds, f"A fallback for {size:,} inputs", f"{fits}contributions, or no fallback.", progress)
    # What overflows is never kept. One thread: small products gain nothing from more, and lose where cores are busy.
    with np.errstate(all="ignore"), threadpool_limits(1):
        model = _model(lp, lp.chain)
        point, merit, reason = _iterate(model, progress)
    if point is None:
        raise SolverError("The interior-point method must find a point. Found none. Try another backend.")
    status = "optimal" if merit <= LENIENCE and reason != "interrupted" else reason
    return _draft(lp, model, point, status)


def _check_memory(lp: NoiseLP) -> None:
    size = len(lp.inputs)
    needed = size * size * 8.0 * (6 * len(lp.gaps) + 30 * lp.reach)
    if size > LARGEST or needed > MEMORY:
        raise ProblemError(
            f"A program with a fallback must have at most {LARGEST} inputs and take at most "
            f"{MEMORY / 1e9:.0f} GB. Found {size:,} inputs and {len(lp.gaps)} privacy constraints: "
            f"about {needed / 1e9:,.1f} GB. "
            "Use fewer people, coarser contributions, or no fallback_epsilon."
        )


def _model(lp: NoiseLP, chain: float) -> Model:
    """The program in the mechanism itself; constraints that nothing can break are left out."""
    largest, unit = float(lp.mass.max()), float(lp.cost.sum()) or 1.0
    gaps, cap = lp.gaps / lp.mass, lp.tight_cap
    binding = np.flatnonzero(gaps.max(axis=1) > 0)
    binding = binding if len(binding) else np.array([0])
    sizes = np.abs(gaps[binding]).max(axis=1)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return Model(
        cost=(lp.cost / lp.mass / unit)[:, None] * lp.distances**lp.power,
        distance=lp.distances,
        gaps=(gaps[binding] / sizes[:, None]).T.copy(),
        mass=lp.mass / largest,
        cap=None if cap is None else cap * lp.mass / largest,
        ratio=1 / chain,
        rungs=lp.rungs,
        binding=binding,
        sizes=sizes,
        unit=unit,
        least=max(1e-2 * lp.constant / (unit * largest), 1e-6),
    )


def _start(model: Model) -> Point:
    """Half geometric, half uniform noise: strictly private; only sums, caps and prices are off."""
    size = len(model.mass)
    falling = geometric(exp(0.5 * log(model.ratio) / len(model.rungs)), size)[
        abs(np.subtract.outer(*[range(size)] * 2))
    ]
    r = 0.5 * falling / falling.sum(axis=1, keepdims=True) + 0.5 / size
    slacks = [
        np.maximum(model.slopes(r), 1e-3 * model.feet(r)),
        np.maximum(-times(model.gaps.T, r), 1e-3 * times(np.abs(model.gaps).T, r) + 1e-12),
    ]
    if model.cap is not None:
        slacks.append(np.maximum(model.cap - model.error(r), 0.1 * model.cap))
    return Point(r, np.zeros(size), slacks, [1e-3 / slack for slack in slacks])


def _iterate(model: Model, progress: Callable[[str], None]) -> tuple[Point | None, float, str]:
    """The best point found, its merit (at most 1 is as good as aimed at), and why it was the last."""
    point, best, least, stalled = _start(model), None, math.inf, 0
    try:
        for iteration in range(ITERATIONS):
            residuals = PointResiduals.of(model, point)
            merit = max(abs(residuals.gap) / GAP, residuals.infeasible / RESIDUAL)
            if not math.isfinite(merit):
                return best, least, "numerical trouble"
            progress(f"iteration {iteration}: gap {residuals.gap:.0e}")
            work.check()
            stalled += 1
            if merit < least:
                best, least, stalled = point, merit, 0
            if least <= 1:
                return best, least, "optimal"
            if stalled > PATIENCE:
                return best, least, "stalled"
            point = _advance(point, Newton(model, point, residuals))
    except KeyboardInterrupt:
        if best is None:
            raise
        return best, least, "interrupted"
    except (np.linalg.LinAlgError, ValueError):  # a matrix that is not positive definite, or not finite
        return best, least, "numerical trouble"
    return best, least, "iteration limit"


def _advance(point: Point, newton: Newton) -> Point:
    """One step of Mehrotra's: see how far the plain step leads, then aim at the centre accordingly."""
    mean = point.mean
    guess = newton.step([-product for product in point.products], rough=True)  # only how far it leads counts
    after = point.moved(guess, *point.reach(guess)).mean
    target = max(powers(after / mean, 3), 1e-6) * mean
    second = [a * b for a, b in zip(guess.slacks, guess.prices, strict=True)]
    step = newton.step([target - a - b for a, b in zip(point.products, second, strict=True)])
    damp = 0.995 if after < 0.1 * mean else 0.95
    primal, dual = (min(1.0, damp * reach) for reach in point.reach(step))
    return point.moved(step, primal, dual)


def _draft(lp: NoiseLP, model: Model, point: Point, status: str) -> Draft:
    """Back to the table and the prices of the plain program."""
    table = np.maximum(point.r, 0.0) / model.mass[:, None]
    u = np.zeros_like(lp.gaps)
    u[model.binding] = point.prices[1] * (model.unit / model.sizes)[:, None]
    z = np.zeros(len(lp.mass)) if model.cap is None else point.prices[2] * model.unit * lp.mass
    prices = Prices(z, u, point.prices[0] * model.unit * model.ratio)
    return Draft.dense(table, prices, status, "chain")
