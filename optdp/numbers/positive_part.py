"""`E[Z_1 + ... + Z_n]_+` for independent copies of a law with finitely many values: proved bounds by FFT.

How it is computed:

1. *Tilting.* The law is weighted by `e^(theta z)` with the `theta` that brings the mean to zero, so that the sums that
   matter are the likely ones and 1e-30 keeps as many digits as 1e-3. With `M = E e^(theta Z)`, `S = Z_1 + ... + Z_n`
   and `~` for the tilted law, `E S_+ = M^n E~[S_+ e^(-theta S)]`.
2. *Powers in steps.* `n` is written in base 64. The law of `m` copies on a grid becomes that of `64 m + d` copies on a
   coarser one by one FFT, so that the work is a handful of FFTs whatever `n` is.
3. *Convex order.* A value between two grid points is split onto them so that its (untilted) mean is kept. `x -> x_+` is
   convex, so the expectation can only grow: what comes out is an **upper** bound.
4. *How much it grew*, for the **lower** bound. The splits add centred noise `Xi`, a sum of steps in intervals of
   lengths `h_i`, so `Pr[Xi > r | Z] <= exp(-r^2 / 2v)` and `Var[Xi | Z] <= v` with `v = sum h_i^2 / 4` (Hoeffding), and
   the same for `-Xi`. `(s + x)_+ - s_+ - x 1[s > 0]` is 0 unless `x` carries `s` past zero, when it is `|x| - |s|`: the
   growth is at most `E k(S)`, `k(s) = int_|s|^inf exp(-r^2 / 2v) dr <= sqrt(pi v / 2) exp(-s^2 / 2v)`. By Jensen's
   inequality `exp(-s^2 / 2v) <= sqrt(e) E exp(-(s + Xi)^2 / 2v)`, an expectation over the law that the grid holds.
5. *Round-off and truncation.* Every output of an FFT of length `2^k` is a sum of the inputs, each multiplied by `k`
   factors of modulus 1, so its error is at most `8 k u` times the 1-norm of the input, and `8 k u` relative to the
   2-norm (Higham, Accuracy and Stability, section 24.1); the error of every power is carried along. What may wrap
   around the grid's upper end is bounded by Bernstein's inequality. Both are put on the safe side of each bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.optimize import brentq

from optdp.numbers.ordered import dot, powers

Floats = NDArray[np.floating[Any]]
Spectrum = NDArray[np.complexfloating[Any, Any]]

BASE, LARGE_BASE = 64, 256
TINY = 1e-60  # powers of a spectrum below this are left out, and counted as error
EXTENDED = 1 << 14
"""From so many copies on numbers may have extended precision, where the machine has it, and steps are larger: round-off
grows with every step."""
BUDGET = 1e-5
"""Where round-off may have moved the expectation by more than this, relatively, extended precision is used."""
ABOVE, BELOW = 34.0, 26.0
"""A step may lose `e^-ABOVE` of the tilted probability past its grid's upper end, and `e^-BELOW` past the lower."""


@dataclass(frozen=True)
class LogEnclosure:
    """Natural logarithms of a proved lower and a proved upper bound; `-inf` is zero."""

    lower: float
    upper: float


@dataclass(frozen=True)
class _Tilted:
    """The tilted law, with zero among its values, and what tilting costs."""

    theta: float
    values: Floats
    weights: Floats
    log_mgf: float
    perturbation: float  # how much `log E S_+` may move for each copy when the inputs move by one unit of round-off

    @cached_property
    def mean(self) -> float:
        return dot(self.weights, self.values)

    @cached_property
    def variance(self) -> float:
        return dot(self.weights, (self.values - self.mean) ** 2)


@dataclass(frozen=True)
class _Sum:
    """The tilted law of a sum on the grid `step * (start + i)`; `error` bounds its 2-norm error."""

    count: int
    start: int
    step: float
    law: Floats
    error: float

    @cached_property
    def positions(self) -> Floats:
        return self.step * (self.start + np.arange(len(self.law), dtype=self.law.dtype))


def log_positive_part(values: Floats, masses: Floats, n: int, grid: int, more: float = 0.0) -> LogEnclosure:
    """Bounds of `log E[Z_1 + ... + Z_n]_+`; `Z` is `values[j]` with probability `masses[j]`, and 0 with what is left.

    `grid` is the length of the FFTs, a power of two: more is tighter and slower. `more` is added to what is left, for
    masses that are known to so much only; the expectation grows with it.
    """
    largest = float(values.max(initial=-math.inf))
    if largest <= 0.0:
        return LogEnclosure(-math.inf, -math.inf)
    left = max(0.0, math.fsum([1.0, more, *(-masses).tolist()]))
    hopeful = values > -(n - 1) * largest * (1.0 + 1e-15)  # with any other value the sum cannot be positive
    kept, weights = np.append(values[hopeful], 0.0), np.append(masses[hopeful], left)
    found, precise = _enclosed(kept, weights, n, grid, BASE)
    if precise or n < EXTENDED:
        return found
    other, _ = _enclosed(kept.astype(np.longdouble), weights.astype(np.longdouble), n, grid, LARGE_BASE)
    return LogEnclosure(max(found.lower, other.lower), min(found.upper, other.upper))


def _enclosed(values: Floats, masses: Floats, n: int, grid: int, base: int) -> tuple[LogEnclosure, bool]:
    """The bounds in the precision of `values`, and whether round-off leaves them as sharp as the grid is."""
    tilted = _tilt(values, masses, n)
    theta = tilted.theta
    chernoff = -1.0 - math.log(theta)  # x e^(-theta x) <= 1 / (e theta)
    slack = n * 2.0**-53 * 32 * tilted.perturbation + 1e-13
    lower, upper, precise = -math.inf, chernoff, tilted.variance <= 0.0
    found = _power(tilted, n, grid, float(values.max()), base) if tilted.variance > 0.0 else None
    if found is not None:
        done, noise, astray = found
        value, error = _expectation(done, theta)
        precise = error <= BUDGET * value
        error += math.exp(chernoff) * astray
        upper = min(upper, math.log(value + error))
        certain = value - error - _growth(done, theta, noise, astray)
        lower = math.log(certain) if certain > 0.0 else -math.inf
    enclosure = LogEnclosure(n * tilted.log_mgf + lower - slack, n * tilted.log_mgf + upper + slack)
    return enclosure, precise


def _tilt(values: Floats, masses: Floats, n: int) -> _Tilted:
    """The tilt that minimises the moment generating function; a floor keeps `1/theta` below the sum's size."""
    spread = math.sqrt(dot(masses, values**2))
    floor = 0.5 / max(spread * math.sqrt(n), float(values.max()))

    def mean(theta: float) -> float:
        weights = masses * np.exp(theta * (values - values.max()))
        return dot(weights, values) / spread

    theta = floor
    if mean(floor) < 0.0:
        high = 2.0 * floor
        while mean(high) < 0.0:
            high *= 2.0
        theta = float(brentq(mean, high / 2.0 if high > 2.0 * floor else floor, high, xtol=1e-9 * high))
    grown = masses * np.expm1(theta * values) if theta * float(values.max()) < 30.0 else None
    missing = max(0.0, 1.0 - float(masses.sum()))  # what the hopeless values held
    if grown is not None and float(grown.sum()) - missing > -0.5:
        log_mgf = math.log1p(float(grown.sum()) - missing)
        moved = float(np.abs(grown).sum()) + missing
    else:
        top = float(values.max())
        log_mgf = theta * top + math.log(float((masses * np.exp(theta * (values - top))).sum()))
        moved = 1.0 + abs(theta * top) + abs(log_mgf)
    weights = masses * np.exp(theta * values - log_mgf)
    return _Tilted(theta, values, weights, log_mgf, moved + theta * dot(weights, np.abs(values)) + 1e-30)


def _power(tilted: _Tilted, n: int, grid: int, largest: float, base: int) -> tuple[_Sum, float, float] | None:
    """The law of the sum, the variance proxy `v` of the splits' noise, and how much tilted probability may be astray.

    A sum leaves its grid if the sum of the values does (Bernstein) or the noise (Hoeffding). Under the tilt, noise of
    proxy `v` has `E e^(theta Xi) <= e^(theta^2 v / 2)`, and what exceeds `sqrt(2 r v)` at most `e^-r` times that and
    times `e^(theta sqrt(2 r v))`. None if the grid is so coarse that `theta^2 v > 1`: then Chernoff's bound is better.
    """
    digits, copies, noise = [], 1.0, 0.0
    while n:
        n, digit = divmod(n, base)
        digits.append(digit)
        copies *= base
    rarest = math.log(copies) + ABOVE
    total = None
    for digit in reversed(digits):
        copies /= base
        splits = digit + (0 if total is None else base)
        count = digit + (0 if total is None else base * total.count)
        window = _window(tilted, count, grid, largest, math.log(copies), noise / copies, splits)
        if window is None:
            return None
        step, start = window
        noise += copies * splits * step * step / 4.0
        if tilted.theta**2 * noise > 1.0:
            return None
        total = _extend(tilted, total, base, digit, grid, step, start)
    assert total is not None
    drift = tilted.theta * math.sqrt(noise)
    factor = math.exp(drift * drift / 2.0) * (1.0 + math.exp(drift * math.sqrt(2.0 * rarest)))
    return total, noise, len(digits) * factor * (math.exp(-ABOVE) + math.exp(-BELOW))


def _window(
    tilted: _Tilted, count: int, grid: int, largest: float, rarity: float, carried: float, splits: int
) -> tuple[float, int] | None:
    """Step and start of a grid that the sum of `count` copies leaves with probability `e^-(ABOVE + rarity)` at its
    upper end and `e^-(BELOW + rarity)` at its lower, with noise of the proxy `carried + splits step^2 / 4` on it.
    """
    mean, variance = tilted.mean, count * tilted.variance
    edges = mean - float(tilted.values.min()), float(tilted.values.max()) - mean
    below, above = (
        min(_bernstein(variance, far, rarity + rare), count * far * (1.0 + 1e-9))
        for far, rare in zip(edges, (BELOW, ABOVE), strict=True)
    )
    room = math.sqrt(2.0 * (rarity + ABOVE) * carried)
    spare = math.sqrt((rarity + ABOVE) * splits / 2.0) + 4.0
    if 4.0 * spare > grid:
        return None
    step = (above + below + 2.0 * room) / (grid - 2.0 * spare)
    if step < largest:  # zero and the largest value lie on the grid
        step = largest / math.floor(largest / step)
    return step, math.floor((count * mean - below - room) / step - spare)


def _extend(tilted: _Tilted, total: _Sum | None, base: int, digit: int, grid: int, step: float, start: int) -> _Sum:
    """From the law of `m` copies to that of `base m + digit`, on another grid."""
    spectrum: Spectrum = np.ones(1, dtype=np.complex128)
    error: Floats = np.zeros(1)
    if total is not None:
        law = _split(total.positions, total.law, tilted.theta, step, grid)
        spectrum, error = _transform(law, math.sqrt(len(total.law)) * total.error, base)
    if digit:
        law = _split(tilted.values, tilted.weights, tilted.theta, step, grid)
        other, wrong = _transform(law, 0.0, digit)
        error = np.abs(spectrum) * wrong + np.abs(other) * error + error * wrong
        spectrum = spectrum * other
        error += 4.0 * _round_off(error) * np.abs(spectrum)
    summed = irfft(spectrum, grid)
    off = math.sqrt(2.0 * dot(error, error) / grid)
    off += 8.0 * math.log2(grid) * _round_off(summed) * math.sqrt(dot(summed, summed))
    law = np.maximum(np.concatenate((summed[start % grid :], summed[: start % grid])), 0.0)
    return _Sum(digit + (0 if total is None else base * total.count), start, step, law, off)


def _bernstein(variance: float, edge: float, rarity: float) -> float:
    """The distance that a sum exceeds with probability at most `e^-rarity`."""
    third = rarity * max(edge, 0.0) / 3.0
    return 1.001 * (third + math.sqrt(third * third + 2.0 * rarity * variance))


def _split(positions: Floats, weights: Floats, theta: float, step: float, grid: int) -> Floats:
    """Each weight on the two grid points around its position, modulo the grid, so that the untilted mean is kept."""
    places = positions / step
    below = np.floor(places)
    share = places - below
    index = below.astype(np.int64) & (grid - 1)  # the grid is a power of two
    moved = weights * np.exp(-theta * step * share)
    lower, upper = moved * (1.0 - share), moved * share * np.exp(theta * step)
    law: Floats
    if weights.dtype == np.float64:
        law = np.asarray(np.bincount(index, lower, grid), dtype=np.float64)
        shifted = np.bincount(index, upper, grid)
        law[1:] += shifted[:-1]
        law[0] += shifted[-1]
        return law
    law = np.zeros(grid, dtype=weights.dtype)
    np.add.at(law, index, lower)
    np.add.at(law, (index + 1) & (grid - 1), upper)
    return law


def _round_off(numbers: Floats) -> float:
    return float(np.finfo(numbers.dtype).eps) / 2.0


def _transform(law: Floats, wrong: float, power: int) -> tuple[Spectrum, Floats]:
    """The spectrum of `law` to a power, and a bound of its error; `wrong` is the error of `law` in the 1-norm."""
    grid = len(law)
    spectrum = rfft(law)
    unit = _round_off(law)
    off = wrong + (8.0 * math.log2(grid) + 16.0) * unit * float(law.sum())
    size = np.minimum(np.abs(spectrum) + off, 2.0)
    loud = np.flatnonzero(size > TINY ** (1.0 / power))
    result = np.zeros_like(spectrum)
    result[loud] = powers(spectrum[loud], power)
    error = np.full(len(spectrum), TINY, dtype=law.dtype)
    error[loud] = power * off * powers(size[loud], power - 1) + 8.0 * power * unit * np.abs(result[loud])
    return result, error


def _expectation(done: _Sum, theta: float) -> tuple[float, float]:
    """`E~[S_+ e^(-theta S)]` on the grid, and how far round-off may have moved it."""
    positions = done.positions
    gain = np.where(positions > 0.0, positions, 0.0)
    gain *= np.exp(-theta * gain)
    value = dot(gain, done.law)
    return value, done.error * math.sqrt(dot(gain, gain)) + 1e-14 * value


def _growth(done: _Sum, theta: float, noise: float, astray: float) -> float:
    """By how much the splits may have raised the expectation, in units of `M^n`."""
    if noise == 0.0:
        return 0.0
    near = np.exp(-theta * done.positions - done.positions**2 / (2.0 * noise))
    likely = dot(near, done.law) + done.error * math.sqrt(dot(near, near)) + math.exp(0.5) * astray
    return math.sqrt(math.pi * noise / 2.0) * math.exp(0.5) * likely
