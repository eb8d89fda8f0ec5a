"""What the page about one entity shows of noise that is added: its law, and what each release gives away."""

from __future__ import annotations

import numpy as np

from optdp.mechanism.added_noise import AddedNoise
from optdp.numbers.exact import precision
from optdp.report.pictures import Chart, Level, PlottedCurve
from optdp.report.words import factor_bounds
from optdp.single.added import Seen, kinds_of, seen_by
from optdp.single.problem import SingleLTE

LIKELY = 1e-6
"""The chart ends where the noise, or what is published, is rarer than this beside its likeliest value."""
WORDS = (
    "The noise has the same distribution for every true sum. So the mean error is the same for all of them, and "
    "epsilon also holds against someone who knows less about the others than the prior says. Its tails are geometric."
)


def noise_chart(noise: AddedNoise, q: float) -> Chart:
    """The law of the noise, beside geometric noise of ratio `q`."""
    values = noise.to_array()
    e = np.arange(-noise.reach, noise.reach + 1)
    plain = (1 - q) / (1 + q) * q ** np.abs(e)
    shown = np.flatnonzero(np.maximum(values, plain) > LIKELY * values.max())
    part = slice(int(shown[0]), int(shown[-1]) + 1)
    curves = [PlottedCurve("this noise", values[part]), PlottedCurve("geometric noise", plain[part], "area")]
    return Chart(int(e[part][0]), curves, "noise", "probability")


def quotient_chart(problem: SingleLTE, noise: AddedNoise) -> Chart:
    """The largest and the smallest quotient of two contributions a step apart, at each likely published number."""
    bound = problem.epsilon / problem.steps
    with precision():
        every = [seen_by(kind, noise) for kind in kinds_of(problem)]
        ends = [_likely(seen) for seen in every]
        first, last = min(low for low, _ in ends), max(high for _, high in ends)
        largest, least = np.full(last - first + 1, np.nan), np.full(last - first + 1, np.nan)
        for seen, (low, high) in zip(every, ends, strict=True):
            for t, d, one, other in seen.pairs():
                if low <= t + d <= high:  # published t + d: a contribution of d against none
                    place, ratio = t + d - first, float(one / other)
                    largest[place] = np.fmax(largest[place], ratio)
                    least[place] = np.fmin(least[place], ratio)
    below, above = factor_bounds(bound)
    part = "e^ε" if bound == problem.epsilon else f"e^(ε/{problem.largest})"
    levels = (Level(above, part), Level(below, part.replace("^", "^−", 1)))
    curves = [PlottedCurve("largest quotient", largest), PlottedCurve("smallest quotient", least)]
    if np.array_equal(largest, least, equal_nan=True):
        curves = [PlottedCurve("1 against 0", largest)]
    return Chart(first, curves, "published number (output)", "quotient of probabilities", levels, log=True)


def _likely(seen: Seen) -> tuple[int, int]:
    values = np.array([float(value) for value in seen.values])
    shown = np.flatnonzero(values > LIKELY * values.max())
    return seen.span.first + int(shown[0]), seen.span.first + int(shown[-1])
