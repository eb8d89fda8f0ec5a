"""How far off the analyst's sum is, whatever the data are: mean absolute and root mean square error, a 95% interval.

**Noise.** Somebody who holds `x` of `0..K` quanta adds `N` and clamps to `-c..K+c` (the padding `c` taken off again).
The error is `M(x)`, `N` clamped to `-c-x..K+c-x`, which falls in `x`, draw by draw. So of all data the error `E` of the
sum is stochastically largest if everybody holds 0, and smallest if everybody holds `K`, which is its mirror image:

    Pr[|E| > t] <= G(t) = min(1, 2 H(t)),    H(t) = Pr[M_1(0) + ... + M_n(0) > t],    E|E| <= sum over t >= 0 of G(t).

Without clamping the sum is symmetric, and both are equalities. The mean of `M(x)` is `T(c+x) - T(K+c-x)` with
`T(a) = E(N-a)_+`, largest in size at the ends; clamping to a part of an interval lowers the variance. So

    E E^2 <= n Var[N clamped to -K-c..K+c] + n^2 (T(c) - T(K+c))^2.

Where it is rare that anybody clamps, of a probability `r`, the law of the noise itself serves: it adds at most `r` to a
probability and at most `n (T(c) + T(K+c))` to `E|E|`, as `|M(x) - N|` has the mean `T(c+x) + T(K+c-x)`, convex in `x`.

**Roundings** to quanta add `R`, a sum of `n` centred steps of length 1 that does not depend on the noise: a variance of
at most `n/4`, and `Pr[R > t] <= exp(-2 t^2 / n)` (Hoeffding): `R` is stochastically below a variable with that tail.

**Flipped bits.** The estimate is unbiased, with one variance `s^2` for all data. For a few thousand bits the laws of
all data sets are at hand. For more, let `b = sum E|X_i|^3 / s^2`. No probability is further from the normal law's than
`0.56 b/s` (Shevtsova 2010), and no mean of a function that changes by at most as much as its argument than `b`
(Goldstein 2010), of the absolute value than `b/2`; Bernstein's inequality serves too. So for noise that is too wide to
be looked at point by point, and for roundings: noise is infinitely divisible, and for ever smaller shares `b` becomes
`(1+q)/(1-q)`; of roundings it is at most 1.

**Two dimensions.** If `|E_1|` and `|E_2|` are stochastically below independent `A_1` and `A_2`, the distance is
stochastically below theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, irfft, next_fast_len, rfft
from scipy.special import ndtr

from optdp.numbers.exact import there
from optdp.numbers.ordered import dot, times
from optdp.shuffle.metric.design import Design
from optdp.shuffle.metric.released import UNIT, NoiseLaw, Shares, log_of

Floats = NDArray[np.floating[Any]]

MISSED = 0.05  # how often an interval may miss the truth
RARE = 1e-3  # where somebody clamps with a smaller probability, the law of the noise serves
NEGLIGIBLE = 1e-9  # probability that may be left out of a law; it is added to what an interval misses
WIDEST = 1 << 22  # the longest law that is looked at point by point
AT_HAND = 8_000_000  # how many probabilities of flipped bits are looked at, over all data sets
BINS = 1500  # steps of each coordinate for the mean distance in the plane


@dataclass(frozen=True)
class Accuracy:
    """Of the released sum; in the plane of its Euclidean distance from the truth. Bounds that hold for all data."""

    mae: float
    rmse: float
    within_95: float


@dataclass(frozen=True, eq=False)
class _Errors:
    """Of one coordinate, over all data, in units of `scale`.

    `tails[j]` bounds half of `Pr[|E| > j step]`, but for `missing`. What lies past the last of them, and what clamping
    does, adds at most `beyond` to half of `E|E|`. `mean` bounds `E|E|`, and `length` the mean length of two
    coordinates, where more is known than the tails tell.
    """

    tails: Floats
    step: float
    rms: float
    missing: float = 0.0
    beyond: float = 0.0
    mean: float = math.inf
    length: float = math.inf
    scale: float = 1.0

    @property
    def either(self) -> Floats:
        """Of both sides."""
        return np.asarray(np.minimum(1.0, 2.0 * self.tails))


@lru_cache(maxsize=512)
def accuracy(design: Design) -> Accuracy:
    """The errors of a design, bounded over all data."""
    found = _noise(design) if design.flip is None else _flips(design.n * design.k, design.flip, design.dimensions)
    if design.dimensions == 1:
        rmse, within = found.rms, _interval(found)
        mae = min(found.mean, found.step * float(found.either.sum()) + 2.0 * found.beyond, rmse)
    else:
        rmse, within = found.rms * math.sqrt(2.0), _radius(found)
        mae = min(found.length, _mean_length(found), rmse)
    return Accuracy(found.scale * mae, found.scale * rmse, found.scale * within)


def _interval(found: _Errors) -> float:
    """The least multiple of the step that is passed rarely enough; Chebyshev's inequality if there is none."""
    far = found.rms / math.sqrt(MISSED)
    kept = np.flatnonzero(found.either + 2.0 * found.missing <= MISSED)
    return min(far, found.step * float(kept[0])) if len(kept) else far


def _radius(found: _Errors) -> float:
    """The same for the distance in the plane."""
    either, step = found.either, found.step
    chances = np.append(1.0, either[:-1]) - either  # of 0, 1, ... steps
    places = step * np.arange(len(either))
    far = found.rms * math.sqrt(2.0 / MISSED)

    def missed(radius: float) -> float:
        inside = places <= radius
        left = np.floor(np.sqrt(np.maximum(radius**2 - places[inside] ** 2, 0.0)) / step * (1.0 - 1e-12))
        index = np.minimum(left.astype(np.int64), len(either) - 1)
        outside = float(either[max(int(inside.sum()) - 1, 0)])
        return dot(chances[inside], either[index]) + outside + 4.0 * found.missing

    low, high = 0.0, math.sqrt(2.0) * float(places[-1]) * (1.0 + 1e-9)
    if missed(high) > MISSED:
        return far
    while high - low > 1e-6 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if missed(middle) <= MISSED else (middle, high)
    return min(far, high)


def _mean_length(found: _Errors) -> float:
    """The mean length of two coordinates, each split onto a few places with its mean kept: that makes it no less."""
    either = found.either
    chances = np.append(1.0, either) - np.append(either, 0.0)  # of 0, 1, ... steps; the last has all that is left
    width = -(-len(chances) // BINS)
    below, part = np.divmod(np.arange(len(chances)), width)
    weights = np.bincount(below, chances * (1.0 - part / width)) + 0.0
    weights = np.append(weights, 0.0) + np.append(0.0, np.bincount(below, chances * part / width))
    places = found.step * width * np.arange(len(weights))
    return dot(weights, times(np.hypot(places[:, None], places[None, :]), weights)) + 4.0 * found.beyond


# ------------------------------------------------------------------------------------------------------------- noise


def _noise(design: Design) -> _Errors:
    shares, quantum = design.noise, design.quantum
    n, variance, bias, moved, rarely = shares.n, shares.deviation**2, 0.0, 0.0, 0.0
    if design.c is not None:
        own, last = _own(shares), design.c + design.largest
        near, far = _excess(own, shares.q, design.c), _excess(own, shares.q, last)
        bias, moved, rarely = n * max(near - far, 0.0), n * (near + far), float(shares.exceeding(design.c))
        if rarely > RARE and last < own.reach:
            variance = min(variance, n * _clamped_variance(own, last))
    if rarely <= RARE:
        found = _free(shares)
        found = replace(found, missing=found.missing + rarely, beyond=found.beyond + moved / 2.0)
        found = replace(found, mean=found.mean + moved, length=found.length + 2.0 * moved)
    else:
        found = _clamped(own, n, there(design.c), design.largest) or _cantelli(bias, math.sqrt(variance))
    if design.rounds:
        found, variance = _rounded(found, n), variance + n / 4.0
        third = max(1.0, _third(shares))  # of roundings it is at most 1
        found = replace(found, mean=_normal_mean(math.sqrt(variance), third) + moved if rarely <= RARE else math.inf)
    return replace(found, rms=math.sqrt(variance + bias**2), scale=float(quantum))


def _own(shares: Shares) -> NoiseLaw:
    """One person's noise, all but a negligible part of it for all people together."""
    level, reach, proved = math.log(NEGLIGIBLE / shares.n), 64, replace(shares, proved=True)
    while shares.law(1, reach).log_tails[-1] > level:
        reach *= 2
    return proved.law(1, reach)


def _excess(own: NoiseLaw, q: Fraction, a: int) -> float:
    """Not below `T(a)`, the sum of `Pr[N > j]` from `a` on; past the law's reach by ratios of at most q."""
    last = math.exp(float(own.log_tails[-1])) / float(1 - q)
    if a > own.reach:
        return last * math.exp(log_of(q) * (a - own.reach))
    return float(np.exp(own.log_tails[a:]).sum()) + last


def _clamped_variance(own: NoiseLaw, most: int) -> float:
    """Not below `Var[N clamped to -most..most]`, twice the sum of `(2j+1) Pr[N > j]` for `j < most`."""
    return 2.0 * dot(2.0 * np.arange(most) + 1.0, np.exp(own.log_tails[:most]))


def _free(shares: Shares) -> _Errors:
    """Nobody clamps."""
    reach = 64 + math.ceil(8.0 * shares.deviation - 40.0 / log_of(shares.q))
    if reach > WIDEST:
        return _nearly_normal(shares.deviation, _third(shares))
    law = shares.law(shares.n, reach)
    tails = np.exp(law.log_tails)
    ratio = max(math.exp(min(float(law.log_p[-1] - law.log_p[-2]), 0.0)), float(shares.q))  # of all that lies beyond
    return _Errors(tails, 1.0, shares.deviation, beyond=float(tails[-1]) * ratio / (1.0 - ratio))


def _third(shares: Shares) -> float:
    """`sum E|X_i|^3 / s^2` of ever smaller shares."""
    return float((1 + shares.q) / (1 - shares.q))


def _nearly_normal(deviation: float, third: float) -> _Errors:
    """A sum whose `sum E|X_i|^3 / s^2` is at most `third`."""
    step = deviation / 512.0
    tails, wrong = ndtr(-np.arange(512 * 9) / 512.0), 0.56 * third / deviation
    length = deviation * math.sqrt(math.pi / 2.0) + 2.0 * third
    return _Errors(tails, step, deviation, wrong, math.inf, _normal_mean(deviation, third), length)


def _normal_mean(deviation: float, third: float) -> float:
    """Not below the mean absolute value of such a sum."""
    return deviation * math.sqrt(2.0 / math.pi) + third / 2.0


def _cantelli(bias: float, deviation: float) -> _Errors:
    """What a mean and a deviation tell by themselves."""
    step = (bias + 7.0 * deviation) / 4096.0
    above = np.maximum(np.arange(4097) * step - bias, 0.0)
    return _Errors(1.0 / (1.0 + (above / deviation) ** 2), step, deviation, beyond=math.inf)


def _clamped(own: NoiseLaw, n: int, c: int, largest: int) -> _Errors | None:
    """`H` by an FFT, modulo a length that the sum leaves with a negligible probability.

    The FFT of a law is wrong by at most `8 log2(length) u`, its n-th power by `n |.|^(n-1)` times that, and sums of
    probabilities by the 2-norm of this (as in `optdp.numbers.positive_part`).
    """
    top = min(largest + c, own.reach)
    places = np.arange(-c, top + 1)
    law = np.exp(own.log_p[np.minimum(np.abs(places), own.reach)])
    law[places < -own.reach] = 0.0
    law[[0, -1]] += math.exp(float(own.log_tails[min(c, own.reach)])), math.exp(float(own.log_tails[top]))
    law /= law.sum()
    low, high = (_passed(law, places, n, way) for way in (-1.0, 1.0))
    length = next_fast_len(math.ceil(high - low) + 2)
    if length > WIDEST or n * own.error > 0.001:
        return None
    spectrum, wrong = fft(np.bincount(places % length, law, length)), 8.0 * math.log2(length) * UNIT
    size = np.minimum(np.abs(spectrum) + wrong, 1.0)
    with np.errstate(all="ignore"):
        summed = ifft(np.nan_to_num(np.exp(n * np.log(spectrum)))).real  # a zero stays one
        off = n * (wrong + 8.0 * UNIT) * math.sqrt(float(np.sum(np.exp((2.0 * n - 2.0) * np.log(size)))))
    start = math.floor(low)
    above = np.cumsum(np.roll(np.maximum(summed, 0.0), -(start % length))[::-1])[::-1]  # Pr[sum >= start + i]
    index = np.arange(max(1, math.ceil(high))) + 1 - start
    tails = np.where(index < length, above[np.clip(index, 0, length - 1)], 0.0)
    missing = off + 3.0 * NEGLIGIBLE + n * 2.0 * own.error
    return _Errors(tails, 1.0, 0.0, missing, missing * len(tails))


def _passed(law: Floats, places: NDArray[np.int64], n: int, way: float) -> float:
    """A place past which the sum of n copies is with negligible probability, upwards or downwards (Chernoff)."""
    mean = dot(law, places.astype(np.float64))
    spread = math.sqrt(n * max(dot(law, (places - mean) ** 2), 1e-12))
    best = math.inf
    for rate in np.geomspace(0.01, 30.0, 40) / spread:
        exponents = rate * way * (places - mean)
        most = float(exponents.max())
        grown = most + math.log(dot(law, np.exp(exponents - most)))
        best = min(best, (n * grown - math.log(NEGLIGIBLE)) / rate)
    return n * mean + way * best


def _rounded(found: _Errors, n: int) -> _Errors:
    """Roundings added: `Pr[E + R > t] <= Pr[R > t] + sum over r <= t of Pr[R = r] Pr[E > t-r]`, `R` rounded up."""
    every = max(1, round(math.sqrt(n) / 64.0 / found.step))
    step, tails = found.step * every, found.tails[::every]
    j = np.arange(math.ceil(4.0 * math.sqrt(n) / step) + 2)
    past = np.exp(-2.0 * (step * np.maximum(j - 1.0, 0.0)) ** 2 / n)  # Pr[R is j steps or more]
    size, last = len(tails) + len(j), float(tails[-1])
    length = next_fast_len(size, real=True)
    both = irfft(rfft(tails, length) * rfft(past - np.append(past[1:], 0.0), length), length)[:size]
    alone = np.append(past[1:], np.zeros(size - len(past) + 1))
    beyond = found.beyond + size * step * (last + 1e-12)
    return _Errors(np.maximum(both, 0.0) + alone, step, found.rms, found.missing + last + 1e-12, beyond)


# ------------------------------------------------------------------------------------------------------------- flips


def _flips(bits: int, flip: Fraction, dimensions: int) -> _Errors:
    """Flipped bits, in units of the sum of the bits."""
    f, scale = float(flip), float(1 / (1 - 2 * flip))
    deviation, third = math.sqrt(bits * f * (1.0 - f)), f * f + (1.0 - f) ** 2
    length = min(bits + 1, next_fast_len(2 * math.ceil(9.0 * deviation + 30.0)))  # all but e^-40, by Bernstein
    if (bits // 2 + 1) * length <= AT_HAND:
        return replace(_all_data(bits, f, deviation, length, dimensions), scale=scale)
    normal = _nearly_normal(deviation, third)
    step = max(normal.step, 1.0 / 64.0)
    places = step * np.arange(math.ceil((12.0 * deviation + 40.0) / step))
    bernstein = np.exp(-(places**2) / (2.0 * (deviation**2 + places / 3.0)))
    tails = np.minimum(ndtr(-places / deviation) + normal.missing, bernstein)
    return replace(normal, tails=tails, step=step, missing=0.0, scale=scale)


def _all_data(bits: int, f: float, deviation: float, length: int, dimensions: int) -> _Errors:
    """The largest probabilities and means over every number of true ones, by symmetry up to half of the bits.

    For the plane, `h(x)` is the largest mean length of `(x, E_2)`: convex in `x`, so below its chords.
    """
    step = max(deviation / 256.0, 1e-3)
    places = step * np.arange(math.ceil(12.0 * deviation / step) + 2) - 1e-9
    nodes = np.linspace(0.0, 12.0 * deviation, 65 if dimensions == 2 else 0)
    tails, mean, h = np.zeros(len(places)), 0.0, np.zeros(len(nodes))
    for errors, laws in _every_law(bits, f, length):
        mean = max(mean, float((laws * np.abs(errors)).sum(axis=1).max()))
        h = np.maximum(h, [float((laws * np.hypot(errors, node)).sum(axis=1).max()) for node in nodes])
        below, above = np.cumsum(laws, axis=1), np.cumsum(laws[:, ::-1], axis=1)[:, ::-1]
        none, first = np.zeros((len(laws), 1)), errors[:, :1]
        high = np.clip(np.floor(places - first) + 1.0, 0, length).astype(np.int64)
        low = np.clip(np.ceil(-places - first), 0, length).astype(np.int64)
        both = np.take_along_axis(np.hstack((above, none)), high, axis=1)  # Pr[E > place]
        both += np.take_along_axis(np.hstack((none, below)), low, axis=1)  # Pr[E < -place]
        tails = np.maximum(tails, both.max(axis=0) / 2.0)
    plane = 0.0 if dimensions == 2 else math.inf
    for errors, laws in _every_law(bits, f, length) if dimensions == 2 else ():
        far = np.abs(errors)
        lengths = np.interp(far, nodes, h) + np.maximum(far - nodes[-1], 0.0)
        plane = max(plane, float((laws * lengths).sum(axis=1).max()))
    missing, slack = 1e-10, 1.0 + 1e-9
    return _Errors(tails, step, deviation, missing, bits * (float(tails[-1]) + missing), mean * slack, plane * slack)


def _every_law(bits: int, f: float, length: int) -> Iterator[tuple[Floats, Floats]]:
    """Errors of the sum and their probabilities, a row for each number of true ones: by FFT, modulo `length`."""
    turn = -2j * np.pi * np.arange(length) / length
    zero, one = np.log(1.0 - f + f * np.exp(turn)), np.log(f + (1.0 - f) * np.exp(turn))
    rows = max(1, (1 << 17) // length)
    for begin in range(0, bits // 2 + 1, rows):
        ones = np.arange(begin, min(begin + rows, bits // 2 + 1))[:, None]
        centres = f * (bits - ones) + (1.0 - f) * ones
        start = np.zeros_like(centres) if length > bits else np.floor(centres) - length // 2
        laws = ifft(np.exp((bits - ones) * zero + ones * one - start * turn), axis=1).real
        yield np.asarray(start + np.arange(length) - centres, dtype=np.float64), np.maximum(laws, 0.0)
