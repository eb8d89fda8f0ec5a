"""The pictures of what shuffling buys: every bound beside the others, and the trade of epsilon for delta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from optdp.amplification.problem import Amplification
from optdp.amplification.solve import AmplificationSolution, profile
from optdp.pictures.chart import Bars, Chart, Picture, PlottedCurve

POINTS = 15
"""Of a profile."""


def pictures(solution: AmplificationSolution) -> Mapping[str, Callable[[], Picture]]:
    """By name, the first the one that is shown unless another is asked for."""
    found: dict[str, Callable[[], Picture]] = {"bounds": partial(bounds, solution)}
    problem = solution.problem
    if isinstance(problem, Amplification) and problem.unknown in ("epsilon", "delta") and problem.rounds == 1:
        found["profile"] = partial(curve_of, problem, solution.value)
    return found


def bounds(solution: AmplificationSolution) -> Bars:
    """The answer, every other bound, and what no analysis can pass."""
    rows = [(f"{solution.method} (proved)", float(solution.value))]
    rows += [
        (f"{row.method} ({'proved' if row.side == 'upper' else 'a data set breaks it'})", float(row.value))
        for row in solution.bounds if row.value is not None and row.value > 0 and row.method != solution.method
    ]  # fmt: skip
    return Bars(tuple(rows), solution.unknown, log=True)


def curve_of(problem: Amplification, value: float) -> Chart:
    """Delta for every epsilon from a fourth of the problem's to twice it, from above and from below."""
    middle = value if problem.epsilon is None else float(problem.epsilon)
    places = np.linspace(middle / 4, 2 * middle, POINTS)
    lower, upper = np.array([row[1:] for row in profile(problem, places.tolist())]).T
    curves = (PlottedCurve("proved", upper), PlottedCurve("a data set breaks all below", lower))
    return Chart(0, curves, "epsilon", "delta", log=True, places=places)
