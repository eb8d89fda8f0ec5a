"""The pictures of one entity's mechanism: its table or its noise, its errors, its quotients, and how it compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial

import numpy as np

from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import exp_bounds, precision
from optdp.pictures.chart import Bars, Chart, Heat, Level, Picture, PlottedCurve
from optdp.single.added import Seen, kinds_of, seen_by
from optdp.single.certify import mixed_prior
from optdp.single.heat import of_matrix
from optdp.single.ladder import Ladder
from optdp.single.laws import secrets_of, steps_of
from optdp.single.measure import Quotient, errors_by_input, quotients
from optdp.single.problem import SingleLTE
from optdp.single.solve import Solution

MOST_CURVES = 6
"""Pairs of contributions that get a curve each; of more, the envelope is drawn."""
MARGIN_WORK = 200_000
"""Terms that may be added for the quotients outside of the table."""
MEASURES = {"mae": "mean absolute error", "mse": "mean squared error"}
LIKELY = 1e-6
"""The chart ends where the noise, or what is published, is rarer than this beside its likeliest value."""


def pictures(solution: Solution) -> Mapping[str, Callable[[], Picture]]:
    """By name, the first the one that is shown unless another is asked for."""
    problem, mechanism = solution.problem, solution.mechanism
    if isinstance(mechanism, AddedNoise):
        return {
            "noise": partial(noise_chart, mechanism, float(problem.q)),
            "quotients": partial(added_quotient_chart, problem, mechanism),
            "bounds": partial(bounds, solution),
        }
    heat = partial(of_matrix, mechanism, problem.populations[0])
    return {
        "matrix": heat,
        "errors": lambda: error_chart(problem, mechanism, heat()),
        "quotients": partial(quotient_chart, problem, mechanism),
        "bounds": partial(bounds, solution),
    }


def bounds(solution: Solution) -> Bars:
    """The error between what is proved to be out of reach and what needs less."""
    objective = solution.problem.objective
    rows = [("this mechanism", solution.value)]
    if solution.lower_bound is not None:
        rows.append(("no mechanism is below (proved)", float(solution.lower_bound)))
    if objective == "mae":
        rows.append(("geometric noise", solution.baseline_mae))
    others = solution.alternatives.named(objective)
    rows += [(name.removeprefix(f"{objective.upper()}, "), float(error)) for name, error in others]
    return Bars(tuple(rows), MEASURES[objective])


def rungs(found: Ladder) -> Mapping[str, Callable[[], Picture]]:
    """The error against each observer."""
    rows = tuple((rung.label, rung.error) for rung in found.rungs if rung.error is not None)
    return {"errors": lambda: Bars(rows, MEASURES[found.problem.objective])}


def error_chart(problem: SingleLTE, matrix: NoiseMatrix, heat: Heat) -> Chart:
    """The mean absolute error of every input that the map shows."""
    first, last = matrix.inputs
    start, stop = (first, last) if matrix.outside == "clamp" else heat.rows
    values = np.full(stop - start + 1, np.nan)
    if matrix.outside == "geometric" and matrix.q is not None:
        q = matrix.q
        values[:] = float(2 * q / (1 - q * q))
    values[first - start : last + 1 - start] = errors_by_input(matrix)
    with precision():
        prior = np.array([float(value.mid()) for value in mixed_prior(problem, start, stop)])
    curves = [PlottedCurve("mean error", values), PlottedCurve("probability of this sum", prior, "area")]
    cap = Level(float(problem.cap), "geometric noise")
    return Chart(start, curves, "true sum (input)", "mean absolute error", (cap,))


def quotient_chart(problem: SingleLTE, matrix: NoiseMatrix) -> Chart:
    """The quotients of every pair of adjacent secrets, with the band that they keep to."""
    secrets = secrets_of(problem.populations)
    steps = steps_of(secrets, problem.epsilon, problem.largest, problem.adjacency)
    low, high = matrix.outputs
    margin = more = 0
    if matrix.q is not None and low <= 0 and high >= problem.last:
        margin, more = 1, max(2, (high - low) // 10)  # outside of all sums the quotients are constant
    elif matrix.q is not None:
        terms = min(problem.last, 200_000) * len(secrets)
        margin = max(1, min(max(3, (high - low) // 8, (100 - (high - low)) // 2), 60, MARGIN_WORK // terms))
    found = [_extended(item, more) for item in quotients(problem, matrix, margin=margin)]
    names = []
    if problem.watched:
        names, steps = [f"{item.one} against {item.other} in the worst world" for item in found], []
    for step in steps:
        one, other = secrets[step.one], secrets[step.other]
        where = f"prior {one.prior + 1}, " if len(problem.populations) > 1 else ""
        kind = f"kind {one.person + 1}, " if len(problem.populations[one.prior].people) > 1 else ""
        names.append(f"{where}{kind}{one.contribution} against {other.contribution}")
    if len(found) <= MOST_CURVES:
        curves = [PlottedCurve(name, item.values) for name, item in zip(names, found, strict=True)]
    else:
        every = np.stack([item.values for item in found])
        largest = np.where(np.isnan(every), -np.inf, every).max(axis=0)
        least = np.where(np.isnan(every), np.inf, every).min(axis=0)
        curves = [PlottedCurve("largest quotient", largest), PlottedCurve("smallest quotient", least)]
    bound = max((step.epsilon for step in steps), default=problem.epsilon / problem.steps)
    below, above = factor_bounds(bound)
    part = "e^ε" if bound == problem.epsilon else f"e^(ε/{problem.largest})"
    levels = (Level(above, part), Level(below, part.replace("^", "^−", 1)))
    first = int(found[0].outputs[0]) if found else low
    return Chart(first, curves, "published number (output)", "quotient of probabilities", levels, log=True)


def _extended(found: Quotient, more: int) -> Quotient:
    """The same with the first and the last value repeated `more` times."""
    outputs = np.arange(found.outputs[0] - more, found.outputs[-1] + more + 1)
    return Quotient(found.one, found.other, outputs, np.pad(found.values, more, mode="edge"))


def noise_chart(noise: AddedNoise, q: float) -> Chart:
    """The law of the noise, beside geometric noise of ratio `q`."""
    values = noise.to_array()
    e = np.arange(-noise.reach, noise.reach + 1)
    plain = (1 - q) / (1 + q) * q ** np.abs(e)
    shown = np.flatnonzero(np.maximum(values, plain) > LIKELY * values.max())
    part = slice(int(shown[0]), int(shown[-1]) + 1)
    curves = [PlottedCurve("this noise", values[part]), PlottedCurve("geometric noise", plain[part], "area")]
    return Chart(int(e[part][0]), curves, "noise", "probability")


def added_quotient_chart(problem: SingleLTE, noise: AddedNoise) -> Chart:
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


def factor_bounds(epsilon: Fraction) -> tuple[float, float]:
    """`e^-epsilon` and `e^epsilon`, for lines in a chart."""
    above = float(exp_bounds(min(epsilon, Fraction(100)))[1])
    return 1 / above, above
