"""The pictures of the shuffle protocols: what they give away by distance, and their errors beside those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from optdp.pictures.chart import Bars, Chart, Level, Picture, PlottedCurve
from optdp.shuffle.histogram import HistogramSolution, standard_error
from optdp.shuffle.metric.solve import MetricSolution
from optdp.shuffle.real_sum import RealSumSolution

POINTS = 101
"""Of the error of a bin."""


def of_metric(solution: MetricSolution) -> Mapping[str, Callable[[], Picture]]:
    """The certified epsilon at every distance, and what the paper's theorems say of the same number."""

    def profile() -> Chart:
        places, values = np.array(solution.profile, dtype=np.float64).T
        curve = PlottedCurve("certified", np.where(np.isfinite(values), values, np.nan))
        wanted = solution.problem.epsilon
        levels = () if wanted is None else (Level(float(wanted), "wanted"),)
        return Chart(0, (curve,), "distance", "epsilon per unit", levels, places=places)

    found: dict[str, Callable[[], Picture]] = {"profile": profile}
    theorems = tuple((theorem.name, theorem.value) for theorem in solution.theorems if theorem.value is not None)
    if theorems:
        rows = (("certified", float(solution.value)), *theorems)
        found["bounds"] = lambda: Bars(rows, solution.problem.unknown)
    return found


def of_histogram(solution: HistogramSolution) -> Mapping[str, Callable[[], Picture]]:
    """The standard error of a bin by how many people hold its value, beside a trusted curator's."""
    n, k, gamma = solution.problem.n, solution.problem.k, float(solution.gamma)

    def errors() -> Chart:
        held = np.linspace(0, n, POINTS)
        values = np.array([standard_error(people, n, k, gamma) for people in held.tolist()])
        levels = (Level(solution.gaussian_sigma, "by a curator"),)
        return Chart(0, (PlottedCurve("this protocol", values),), "people who hold the value",
                     "standard error of their number", levels, places=held)  # fmt: skip

    rows = (
        ("this protocol, equal shares", solution.standard_error),
        ("by a curator (Gaussian noise)", solution.gaussian_sigma),
    )
    return {"errors": errors, "bounds": lambda: Bars(rows, "standard error of a bin")}


def of_real_sum(solution: RealSumSolution) -> Mapping[str, Callable[[], Picture]]:
    """The mean squared error between what others reach and what nobody can."""
    rows = [("this protocol", solution.mse)]
    if solution.theorem_1_mse is not None:
        rows.append(("Theorem 1's constants", solution.theorem_1_mse))
    if solution.lower_mse:
        rows.append(("no protocol of one message is below (proved)", solution.lower_mse))
    rows.append(("by a curator (Gaussian noise)", solution.central_mse))
    return {"bounds": lambda: Bars(tuple(rows), "mean squared error of the sum", log=True)}
