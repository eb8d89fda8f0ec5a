"""The curves of one entity's page: the error of each input (A, Fig. 4) and the quotient of each output (A, Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optdp.artifact.verify import Verified
from optdp.math.exact import precision
from optdp.noise.certify import mixed_prior
from optdp.noise.laws import secrets_of, steps_of
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.measure import Quotient, errors_by_input, quotients
from optdp.noise.single import SingleLTE
from optdp.page.figures import at_most
from optdp.page.heat import Heat
from optdp.page.lines import Chart, Curve, Level
from optdp.page.markup import Child, paragraphs
from optdp.page.page import bars, chart
from optdp.page.words import factor_bounds

MOST_CURVES = 6
"""Pairs of contributions that get a curve each; of more, the envelope is drawn."""
MARGIN_WORK = 200_000
"""Terms that may be added for the quotients outside of the table."""


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
    curves = [
        Curve("mean error", values),
        Curve("probability of this sum", prior, "area"),
    ]
    cap = Level(float(problem.cap), "geometric noise")
    return Chart(start, curves, "true sum (input)", "mean absolute error", (cap,))


def error_section(found: Verified, data: dict[str, Any]) -> Sequence[Child]:
    """The errors in words, bars and a curve."""
    problem, certificate = found.problem, found.certificate
    words = (
        "How far the published number is from the true sum on average, for each true sum, beside geometric noise, "
        "which is off by the same amount for all. The shaded area is the prior: where it is high the sum is likely."
    )
    rows = [("this mechanism", float(certificate.mae), at_most(certificate.mae))]
    rows.append(("geometric noise", float(problem.cap), at_most(problem.cap)))
    return (
        paragraphs(words),
        bars(rows, "Mean absolute error under the prior"),
        chart(
            "errors",
            "lines",
            "errors",
            "Error for each true sum",
            _thinned("Mean absolute error by input.", data["errors"]),
        ),
        paragraphs(
            f"The worst input has a mean error of {at_most(certificate.worst_error)}. The mean squared error under the "
            f"prior is {at_most(certificate.mse)}."
        ),
    )


def _thinned(caption: str, chart_data: dict[str, Any]) -> str:
    step = chart_data["step"]
    return caption if step == 1 else f"{caption} Of every {step} places the largest value is drawn."


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
    for step in steps:
        one, other = secrets[step.one], secrets[step.other]
        where = f"prior {one.prior + 1}, " if len(problem.populations) > 1 else ""
        kind = f"kind {one.person + 1}, " if len(problem.populations[one.prior].people) > 1 else ""
        names.append(f"{where}{kind}{one.contribution} against {other.contribution}")
    if len(found) <= MOST_CURVES:
        curves = [Curve(name, item.values) for name, item in zip(names, found, strict=True)]
    else:
        every = np.stack([item.values for item in found])
        largest = np.where(np.isnan(every), -np.inf, every).max(axis=0)
        least = np.where(np.isnan(every), np.inf, every).min(axis=0)
        curves = [Curve("largest quotient", largest), Curve("smallest quotient", least)]
    bound = max((step.epsilon for step in steps), default=problem.epsilon)
    below, above = factor_bounds(bound)
    part = "e^ε" if bound == problem.epsilon else f"e^(ε/{problem.largest})"
    levels = (Level(above, part), Level(below, part.replace("^", "^−", 1)))
    first = int(found[0].outputs[0]) if found else low
    return Chart(first, curves, "published number (output)", "quotient of probabilities", levels, log=True)


def _extended(found: Quotient, more: int) -> Quotient:
    """The same with the first and the last value repeated `more` times."""
    outputs = np.arange(found.outputs[0] - more, found.outputs[-1] + more + 1)
    return Quotient(found.one, found.other, outputs, np.pad(found.values, more, mode="edge"))


def quotient_section(problem: SingleLTE, data: dict[str, Any]) -> Sequence[Child]:
    """The quotients in words and a chart."""
    said = (
        "For each number that may be published: how many times likelier it is if a person contributes one thing than "
        "if the same person contributes another. At 1 it tells nothing. The promise is that no quotient leaves the "
        "band between the two lines."
    )
    if problem.largest > 1 and problem.adjacency == "unit":
        said += " Each curve is about a step of one; the steps of a whole contribution multiply."
    if len(data["quotients"]["curves"]) == 2 and data["quotients"]["curves"][0]["name"] == "largest quotient":
        said += " There are many pairs of contributions; the largest and the smallest quotient of all are drawn."
    return (
        paragraphs(said),
        chart(
            "quotients",
            "lines",
            "quotients",
            "Quotient for each output",
            _thinned("Quotient by output.", data["quotients"]),
        ),
    )
