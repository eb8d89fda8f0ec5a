"""From a wanted epsilon to the noise: root-finding programs over certified profiles (D, sections 3 to 5 and 7).

    maximise eps_geo (or minimise p)   subject to   L(d) <= epsilon d   for every distance d up to the furthest.

The padding `c` is found with it. A longer one loses less to truncation and costs everybody two bits more: the product
of error and bits is made smallest, which also splits delta between truncation and divergence. In no case is the
probability that somebody truncates above delta.

*Hybrid.* Among shares `SGDL(beta, q)`, `1/n <= beta <= 1`, each `beta` has its largest `eps_geo`; the error rises with
`beta`, and what one message alone gives away falls. The smallest `beta` whose message keeps the wanted local epsilon is
the most accurate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from optdp.errors import InfeasibleError, ProblemError
from optdp.numbers.divergence import gaussian_sigma
from optdp.numbers.exact import down, show, there
from optdp.numbers.roots import edge
from optdp.shuffle.honest import fewest
from optdp.shuffle.metric.accuracy import accuracy
from optdp.shuffle.metric.design import Design, broken, distances, largest_epsilon, local_epsilon, losses
from optdp.shuffle.metric.flips import FlippedPair
from optdp.shuffle.metric.problem import LARGEST_N, MetricShuffle
from optdp.work import Progress, silent

SEARCHED = 12  # at how many distances a search looks; the result is then certified at all of them
LARGEST_NOISE = 60.0  # the largest eps_geo that is looked at: noise that is practically none
FLIP_GRID = 1 << 40
MOST_FLIPS = 1.0 - 1e-6  # the largest p: a bit then gives away 2e-6 by itself, so that any epsilon can be kept


def calibrate(problem: MetricShuffle, progress: Progress = silent) -> Design:
    """What to deploy for a problem with `n`."""
    if problem.n is None:
        return _least_people(problem, progress)
    design = _DESIGNS[problem.mechanism](problem, problem.n, progress)
    if problem.mae is None or query_error(problem, design) <= problem.mae:
        return design
    reached = f"{query_error(problem, design):.6g}"
    if problem.known:
        raise ProblemError(
            f"A mean absolute error of {show(problem.mae)} must be reached. Found {reached}. Add less noise."
        )
    least = _least_people(problem.changed(n=None), progress).n
    raise ProblemError(
        f"n is too small for a mean absolute error of {show(problem.mae)}. Found n = {problem.n:,}, which gives "
        f"{reached}. The least n is {least:,}."
    )


def query_error(problem: MetricShuffle, design: Design) -> float:
    """The mean absolute error of what is asked: the sum, or the average."""
    return accuracy(design).mae / (design.n if problem.query == "average" else 1)


def _least_people(problem: MetricShuffle, progress: Progress) -> Design:
    """The least `n` that reaches the wanted accuracy, by doubling and halving.

    The error of an average falls as people join. That of a sum mostly rises, to a limit: after some doublings in which
    it did not fall none will help.
    """
    goal, found = float(there(problem.mae)), {}
    rising = 0

    def reaches(n: int) -> bool:
        progress(f"trying {n:,} people")
        found[n] = calibrate(problem.changed(n=n, mae=None), progress)
        return query_error(problem, found[n]) <= goal

    low, high = 0, 1
    while not reaches(high):
        fell = low == 0 or query_error(problem, found[high]) < query_error(problem, found[low])
        rising = 0 if fell else rising + 1
        low, high = high, 2 * high
        if high > LARGEST_N or rising > 4:
            raise ProblemError(
                f"mae must be in reach of {LARGEST_N:,} people. Found {show(there(problem.mae))}; {low:,} people have "
                f"{query_error(problem, found[low]):.6g}. Ask for less, or query = average."
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return found[high]


def _plain(problem: MetricShuffle, n: int) -> dict[str, Any]:
    least = None if problem.honest is None else fewest(problem.honest, n)
    return {"k": problem.k, "quantum": problem.quantum, "dimensions": problem.dimensions, "honest": least}


def _baseline(problem: MetricShuffle, n: int, progress: Progress) -> Design:
    """Geometric noise, by everybody or by a curator: epsilon itself, in the plane a part of it for each coordinate."""
    noise = problem.eps_geo
    if noise is None:
        epsilon = there(problem.epsilon)
        noise = epsilon if problem.dimensions == 1 else _short(float(epsilon) / math.sqrt(2.0))
    return Design.noisy(problem.mechanism, n, Fraction(1), noise, None, **_plain(problem, n))


def _geo(problem: MetricShuffle, n: int, progress: Progress) -> Design:
    return _padded(problem, n, Fraction(1), progress)


def _sgdl(problem: MetricShuffle, n: int, progress: Progress) -> Design:
    """Shares of geometric noise, which honest people alone make whole: it hides epsilon for every unit, so only the
    padding is to be found.
    """
    share = Fraction(1, fewest(problem.honest, n))
    if problem.epsilon is not None and problem.eps_geo is None and problem.dimensions == problem.quantum == 1:
        design = Design.noisy("sgdl", n, share, problem.epsilon, problem.c, **_plain(problem, n))
        return design if problem.c is not None else _shortest(design, problem, progress)
    return _padded(problem, n, share, progress)


def _hybrid(problem: MetricShuffle, n: int, progress: Progress) -> Design:
    if problem.known:
        return _padded(problem, n, there(problem.beta), progress)
    wanted, whole = float(there(problem.local_epsilon)), fewest(problem.honest, n)
    least = 1.0 / whole
    tried: dict[Fraction, float] = {}

    def share(place: float) -> Fraction:
        if place <= math.log(least):
            return Fraction(1, whole)
        return min(Fraction(1), max(Fraction(1, whole), Fraction(math.exp(place)).limit_denominator(10**7)))

    def excess(place: float) -> float:
        beta = share(place)
        if beta not in tried:
            progress(f"trying shares of beta = {float(beta):.4g}")
            noise = _largest_noise(problem, n, beta, None, progress)
            design = Design.noisy("hybrid", n, beta, noise, None, **_plain(problem, n))
            tried[beta] = local_epsilon(design, 0.0, 1)[0] - wanted
        return tried[beta]

    if whole == 1 or excess(math.log(least)) <= 0.0:
        return _padded(problem, n, Fraction(1, whole), progress)
    if excess(0.0) > 0.0:  # more noise than epsilon asks for: geometric noise of the local epsilon itself
        each = _short(wanted / (math.sqrt(2.0) if problem.dimensions == 2 else 1.0))
        return _shortest(Design.noisy("hybrid", n, Fraction(1), each, None, **_plain(problem, n)), problem, progress)
    found = _padded(problem, n, share(edge(excess, 0.0, math.log(least), 1e-4)), progress)
    while local_epsilon(found, 0.0, 1)[0] > wanted:  # rounding: a little more of a share
        found = _padded(problem, n, min(Fraction(1), found.noise.beta * Fraction(1001, 1000)), progress)
    return found


def _padded(problem: MetricShuffle, n: int, beta: Fraction, progress: Progress) -> Design:
    """Noise and padding for one beta."""
    if problem.eps_geo is not None:
        design = Design.noisy(problem.mechanism, n, beta, problem.eps_geo, problem.c, **_plain(problem, n))
        return design if problem.c is not None else _balanced(design, problem, progress)
    limit = _largest_noise(problem, n, beta, None, progress)
    free = Design.noisy(problem.mechanism, n, beta, limit, None, **_plain(problem, n))
    c = there(_balanced(free, problem, progress).c) if problem.c is None else problem.c
    while True:
        try:
            noise = _largest_noise(problem, n, beta, c, progress, limit)
            design = Design.noisy(problem.mechanism, n, beta, noise, c, **_plain(problem, n))
            if problem.c is not None or _rarely(design, problem):
                return design
        except InfeasibleError:
            if problem.c is not None:
                raise
        c += max(1, c // 16)


def _largest_noise(
    problem: MetricShuffle, n: int, beta: Fraction, c: int | None, progress: Progress, most: Fraction | None = None
) -> Fraction:
    """The largest eps_geo that keeps epsilon at every distance, for a padding; none (`None`) means a very long one.

    A search looks at a few distances, and again at those where what it found does not do.
    """
    epsilon, delta, furthest = there(problem.epsilon), down(problem.delta), problem.max_distance
    every = distances(Design.noisy(problem.mechanism, n, beta, epsilon, c, **_plain(problem, n)), furthest)
    wanted, searched, steps = float(epsilon), _some(every), 0

    def design(noise: float | Fraction) -> Design:
        return Design.noisy(problem.mechanism, n, beta, Fraction(noise), c, **_plain(problem, n))

    def excess(noise: float) -> float:
        nonlocal steps
        steps += 1
        progress(f"finding the noise{'' if c is None else f' with padding {c:,}'}: {steps} of about 30 steps")
        return min(largest_epsilon(losses(design(noise), delta, furthest, searched)), 1e3) - wanted

    if most is None:
        low = 0.9 * _normal_guess(fewest(problem.honest, n) * beta, wanted, delta, furthest)
        while excess(low) > 0.0:
            low /= 1.25
        high = 1.25 * low
        while excess(high) <= 0.0:
            low, high = high, 1.25 * high
            if low > LARGEST_NOISE:
                return _short(low)
    else:  # near the limit of long paddings: with much more noise a padding would truncate too much
        high = float(most)
        if excess(high) <= 0.0 and not broken(design(most), delta, furthest, wanted, every):
            return most
        parts = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2) if problem.c is None else (1e-3, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6)
        lows = (high * (1.0 - part) for part in parts)
        low = next((value for value in lows if excess(value) <= 0.0), 0.0)
        if not low:
            raise _unkept(problem, c)
    noise, less = _short(edge(excess, low, high, 1e-9 * low) if excess(high) > 0.0 else high), 1e-9
    while worse := broken(design(noise), delta, furthest, wanted, every):
        searched = [place for place in every if place in {*searched, worse[0], worse[len(worse) // 2], worse[-1]}]
        while excess(low) > 0.0 and low > 0.3 * high:
            low *= 0.99
        if excess(low) > 0.0:
            raise _unkept(problem, c)
        found = edge(excess, low, float(noise), 1e-9 * low) if excess(float(noise)) > 0.0 else float(noise)
        noise, less = _short(found * (1.0 - less)), 2.0 * less
    return noise


def _unkept(problem: MetricShuffle, c: int | None) -> InfeasibleError:
    return InfeasibleError(
        f"No noise keeps epsilon = {show(there(problem.epsilon))} up to distance {problem.max_distance} with padding "
        f"c = {c}. Leave out c, or raise epsilon or delta."
    )


def _normal_guess(total: Fraction, epsilon: float, delta: float, furthest: int) -> float:
    """The eps_geo with which all noise has the deviation that normal noise would need, near and far."""
    deviation = max(d * gaussian_sigma(min(epsilon * d, 50.0), delta) for d in (1, furthest))
    return max(epsilon / 2.0, 2.0 * math.asinh(math.sqrt(2.0 * float(total)) / deviation / 2.0))


def _balanced(design: Design, problem: MetricShuffle, progress: Progress) -> Design:
    """The padding that makes error times bits smallest, for given noise: epsilon stands for the error.

    As long as nothing is proved beyond what the messages give away by themselves a longer one may still help, unless
    hardly anything is truncated any more.
    """
    delta, worse = down(problem.delta), 0
    best: tuple[float, Design] = math.inf, design
    c = design.noise.padding(problem.delta)
    step = max(1, c // 24)
    searched = _some(distances(design, problem.max_distance))
    alone = local_epsilon(design, 0.0, 1)[0] * (1.0 - 1e-9)
    for _ in range(400):
        progress(f"finding the padding: {c:,}")
        tried = replace(design, c=c)
        epsilon = largest_epsilon(losses(tried, delta, problem.max_distance, searched))
        spent = epsilon * tried.bits
        if spent < best[0] or not math.isfinite(best[0]):
            best, worse = (spent, tried), 0
        elif (worse := worse + 1) > 4 and (epsilon < alone or tried.noise.exceeding(c) < problem.delta / 10**9):
            break
        c += step
    return best[1]


def _shortest(design: Design, problem: MetricShuffle, progress: Progress) -> Design:
    """The shortest padding with which given noise keeps epsilon, and with which truncation is rarer than delta."""
    delta, wanted = down(problem.delta), float(there(problem.epsilon))
    places = distances(design, problem.max_distance)
    below, c = -1, design.noise.padding(problem.delta)

    def kept(padding: int) -> bool:
        progress(f"finding the padding: {padding:,}")
        tried = replace(design, c=padding)
        return not any(broken(tried, delta, problem.max_distance, wanted, some) for some in (_some(places), places))

    if kept(c):
        return replace(design, c=c)
    step = 1
    while not kept(c + step):
        below, step = c + step, 2 * step
        if step > 10**6:
            raise InfeasibleError(f"No padding up to a million keeps epsilon = {wanted:g}. Lower max_distance.")
    low, high = max(below, c), c + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return replace(design, c=high)


def _rarely(design: Design, problem: MetricShuffle) -> bool:
    """Whether somebody truncates with a probability of at most delta."""
    return design.noise.exceeding(there(design.c)) <= problem.delta


def _rr(problem: MetricShuffle, n: int, progress: Progress) -> Design:
    """The least `p`; a quick search, then certified steps until every distance keeps epsilon for every data set."""
    plain = _plain(problem, n)
    if problem.p is not None:
        return Design("rr", n, flip=problem.p / 2, **plain)
    wanted, delta, bits = float(there(problem.epsilon)), down(problem.delta) / problem.dimensions, n * problem.k
    least = fewest(problem.honest, n) * problem.k
    every = distances(Design("rr", n, **plain), problem.max_distance)
    shifts = _some(every) if problem.dimensions == 2 else [(d,) for d in _some(every)]
    places = sorted({d for shift in shifts for d in shift if 0 < d <= bits})
    steps = 0

    def excess(place: float) -> float:
        nonlocal steps
        steps += 1
        progress(f"finding how often to flip: {steps} of about 40 steps")
        flip = _dyadic(math.exp(place) / 2.0)
        known = {d: FlippedPair(max(least, d), flip, delta, d).good(steps=0)[0] for d in places}
        return float(max(sum(known.get(d, 0.0) for d in shift) / math.hypot(*shift) for shift in shifts)) - wanted

    low, high = math.log(max(1e-9, 1e-3 / bits)), math.log(MOST_FLIPS)
    place, certified = edge(excess, high, low, 1e-9) if excess(low) > 0.0 else low, _some(every)
    for _ in range(60):
        design = Design("rr", n, flip=_dyadic(math.exp(min(place, high)) / 2.0), **plain)
        found = largest_epsilon(losses(design, down(problem.delta), problem.max_distance, certified, progress))
        if found <= wanted and len(certified) == len(every):
            return design
        if found <= wanted:
            certified = every
        else:
            place += max(2.0 * math.log(found / wanted), 1e-6)
    raise InfeasibleError(f"No p was found that keeps epsilon = {wanted:g}. Raise epsilon or delta.")


def _dyadic(value: float) -> Fraction:
    return Fraction(min(FLIP_GRID // 2 - 1, max(1, math.ceil(value * FLIP_GRID))), FLIP_GRID)


def _some(places: Sequence[Any]) -> Sequence[Any]:
    """A few distances, spread evenly on a logarithmic scale, both ends among them."""
    if len(places) <= SEARCHED:
        return places
    chosen = {round(len(places) ** (i / (SEARCHED - 1))) - 1 for i in range(SEARCHED)}
    return [places[i] for i in sorted(chosen)]


def _short(value: float) -> Fraction:
    """A decimal of ten digits, not above the value."""
    digits = 10 - math.ceil(math.log10(value)) if value > 0 else 10
    return Fraction(math.floor(value * 10**digits), 10**digits)


_DESIGNS: dict[str, Callable[[MetricShuffle, int, Progress], Design]] = {
    "rr": _rr,
    "geo": _geo,
    "sgdl": _sgdl,
    "hybrid": _hybrid,
    "geo-local": _baseline,
    "geo-central": _baseline,
}
