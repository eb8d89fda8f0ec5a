"""Sums of randomly flipped bits: `T = Bin(zeros, f) - Bin(ones, f)`, its tails and masses with full relative accuracy.

With `G(z) = E z^(S-s)` and `n` points `z` on a circle of radius `e^theta > 1`,

    mean of G(z) / (1 - 1/z) = sum over integers j of Pr[S >= s + jn] e^(theta j n),

and without the factor the same for `Pr[S = s + jn]`. At the saddle point nothing cancels but a digit, and 10 to 50
points suffice for every `N`, for all data sets at once. All is done in logarithms, so that no probability is too small.
What is left out is bounded: `|G(z)/(1-1/z)|` only falls up to the negative axis, and `Pr[S >= s] <= G(rho)` for
`rho >= 1` (Markov). Rounding: every exponent and phase is a sum of a few products; its error is taken as `24 u` times
the sum of their sizes, and `128 u` for each term besides (`u = 2^-52`, numpy's functions being good to `4 u`). It comes
to some 1e-14 sqrt(N f) and goes to the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIGITS = 36.0  # what a sum over a circle leaves out is about `e^-36` of it
MOST = 2000  # no sum has more points on either side; it then knows little, far below the mean, and says so
CHUNK = 1 << 16  # how many points are summed at a time
U = 2.0**-52


@dataclass(frozen=True)
class Sums:
    """Logarithms of `Pr[S >= s]` and `Pr[S = s]`, and bounds on their relative errors; endless where unknown."""

    tail: Floats
    tail_error: Floats
    mass: Floats
    mass_error: Floats


def flipped_sums(f: float, ones: Floats, zeros: Floats, place: Floats, order: int = 1) -> Sums:
    """`Pr[T >= place]` and `Pr[T = place]` for `T = Bin(zeros, f) - Bin(ones, f)`; of order 2, the sum of the tails."""
    theta, slope, bend = _tilt(f, ones, zeros, place, order)
    sigma = np.maximum(np.sqrt(bend), 1e-6)
    up = np.log1p(math.sqrt(2 * DIGITS) / sigma)
    down = np.minimum(up, theta * (1.0 if order == 1 else 0.9))
    extra = slope - place
    digits = DIGITS + 2 * np.log1p(sigma)
    points = np.ceil(
        np.maximum((digits + bend * (np.expm1(up) - up)) / up + extra, (digits + bend * (np.expm1(down) - down)) / down)
    )
    points = np.maximum(points, 4.0)
    turn = np.arcsin(np.minimum(np.sqrt(digits / 2) / sigma, 1.0)) / math.pi
    half = np.minimum(np.floor(points / 2), np.minimum(np.ceil(turn * points), MOST))
    parts = _exponent(f, ones, zeros, place, theta)
    scale, scale_error = sum(parts), 24 * U * sum(np.abs(part) for part in parts)
    alias = np.zeros(theta.size)
    with np.errstate(all="ignore"):
        for step, other in ((up, theta + up), (down, theta - down)):
            gain = sum(_exponent(f, ones, zeros, place, other)) - scale
            alias += np.exp(gain + scale_error) / np.expm1(step * points) * (-np.expm1(-other)) ** (1 - order)
    alias = np.where(np.isfinite(alias), alias * points, np.inf)
    rows = max(1, CHUNK // int(half.max(initial=0) + 2))
    given = ones, zeros, place, theta, points, half
    pieces = [_points(f, order, *(part[i : i + rows] for part in given)) for i in range(0, theta.size, rows)]
    tail, tail_error, mass, mass_error = (np.concatenate(part) for part in zip(*pieces, strict=True))
    with np.errstate(all="ignore"):
        level = scale - np.log(points)
        errors = [
            np.expm1(scale_error) + 1.01 * (error + alias) / value
            for value, error in ((tail, tail_error), (mass, mass_error))
        ]
        errors = [np.where(error < 0.5, error * 2, np.inf) for error in errors]
        return Sums(level + np.log(tail), errors[0], level + np.log(mass), errors[1])


def _points(
    f: float, order: int, ones: Floats, zeros: Floats, place: Floats, theta: Floats, points: Floats, half: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The sums over the circle relative to the largest value of `G`, and bounds on their errors."""
    j = np.arange(half.max() + 2)
    n = points[:, None]
    phi = 2 * math.pi * j / n
    sine, square = np.sin(phi), np.sin(phi / 2) ** 2
    real, phase = np.zeros_like(phi), -place[:, None] * phi
    size = np.abs(phase)
    for count, sign in ((zeros, 1.0), (ones, -1.0)):
        grown = f * np.exp(sign * theta)
        h = (grown / (1 - f + grown))[:, None]
        x = 4 * h * ((1 - f) / (1 - f + grown))[:, None] * square
        along = 1 - 2 * h * square
        bent = np.log1p(-np.minimum(x, 0.5))
        if x.max() > 0.5:
            bent = np.where(x > 0.5, 2 * np.log(np.maximum(np.hypot(along, h * sine), 1e-300)), bent)
        part, angle = count[:, None] * bent / 2, count[:, None] * np.arctan2(h * sine, along)
        real += part
        phase += sign * angle
        size += np.abs(part) + angle
    weight = np.where((j == 0) | (2 * j == n), 1.0, 2.0) * np.exp(real)
    q, lift = np.exp(-theta)[:, None], -np.expm1(-theta)[:, None]
    kernel = 1 / (lift + 2 * q * square + 1j * q * sine)
    if order > 1:
        kernel = kernel**order
    used = j <= half[:, None]
    c, s = np.cos(phase), np.sin(phase)
    rounding, absolute = (24 * size + 128 + j.size) * U, np.abs(kernel)
    tail = np.sum(weight * (c * kernel.real - s * kernel.imag), axis=1, where=used)
    mass = np.sum(weight * c, axis=1, where=used)
    beyond = np.where(2 * half + 1 < points, points - 2 * half - 1, 0.0)
    edge = np.arange(half.size), (half + 1).astype(np.int64)
    rest = beyond * np.exp(real[edge])
    noise = weight * rounding + 128 * U
    mass_error = np.sum(noise, axis=1, where=used) + rest
    tail_error = np.sum(noise * absolute, axis=1, where=used) + rest * absolute[edge]
    return tail, tail_error, mass, mass_error


def _exponent(f: float, ones: Floats, zeros: Floats, place: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """The parts of `log E e^(theta (T - place))`."""
    return ones * np.log1p(f * np.expm1(-theta)), zeros * np.log1p(f * np.expm1(theta)), -place * theta


def _tilt(f: float, ones: Floats, zeros: Floats, place: Floats, order: int) -> tuple[Floats, Floats, Floats]:
    """About the saddle point `theta > 0` of `E e^(theta (T - place)) / (1 - e^-theta)^order`; tilted mean, variance.

    What matters for speed alone: the sums are right with any `theta`.
    """
    most = 2 * math.log((1 - f) / f) + 40
    low, high = np.full(place.size, 1e-12), np.full(place.size, most)
    spread = (ones + zeros) * f * (1 - f)
    far = place - (zeros - ones) * f
    theta = np.clip(np.log1p((far + np.sqrt(far**2 + 4 * order * spread)) / (2 * spread)), low, high)
    for step in range(60):
        up, down = f * np.exp(theta), f * np.exp(-theta)
        more, less = up / (1 - f + up), down / (1 - f + down)
        slope = zeros * more - ones * less
        bend = zeros * more * (1 - f) / (1 - f + up) + ones * less * (1 - f) / (1 - f + down)
        grown = np.expm1(theta)
        value, rate = slope - place - order / grown, bend + order * (1 + 1 / grown) / grown
        move = value / rate
        if step == 59 or np.all((np.abs(move) * np.sqrt(rate) < 0.03) | (high - low < 1e-3 * low)):
            break
        low, high = np.where(value < 0, theta, low), np.where(value < 0, high, theta)
        new = theta - move
        theta = np.where((new > low) & (new < high), new, np.where(step % 2, np.sqrt(low * high), (low + high) / 2))
    return theta, slope, bend
