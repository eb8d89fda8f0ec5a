"""The pictures of a plan: each party's table, the error of the aggregate, and how it compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from optdp.errors import OptdpError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.pictures.chart import Bars, Chart, Heat, Level, Picture, PlottedCurve
from optdp.plan.solve import PlanSolution
from optdp.plan.worlds import AnyPlan, errors_by_total
from optdp.single.heat import of_table
from optdp.single.pictures import MEASURES

MOST_CELLS = 3_000_000
"""Cells of the joint law of total and error up to which errors are drawn by the true total."""


def pictures(solution: PlanSolution) -> Mapping[str, Callable[[], Picture]]:
    """By name, the first the one that is shown unless another is asked for."""
    found: dict[str, Callable[[], Picture]] = {
        "inside": lambda: of_table(solution.tables[0], solution.problem.merged.populations[0])
    }
    if solution.problem.method != "inside":
        found = {f"party {i}": partial(_report, solution, i) for i in range(len(solution.tables))}
    errors = totals_chart(solution)
    if errors is not None:
        found["errors"] = lambda: errors
    return found | {"bounds": partial(bounds, solution)}


def _report(solution: PlanSolution, i: int) -> Heat:
    """What a party reports for each of its sums."""
    heat = of_table(solution.tables[i], solution.problem.parties[i])
    return replace(heat, down=f"true sum of party {i}", across="report (output)")


def bounds(solution: PlanSolution) -> Bars:
    """The error between what is proved to be out of reach and what needs less."""
    objective = solution.problem.objective
    rows = [("this plan", solution.value)]
    if solution.lower_bound is not None:
        rows.append((f"proved for {solution.bound_for}", float(solution.lower_bound)))
    if objective == "mae":
        rows.append(("shared geometric noise", solution.baseline_mae))
    without = solution.no_data[f"no_data_{objective}"]
    if without is not None:
        rows.append(("without data", without))
    return Bars(tuple(rows), f"{MEASURES[objective]} of the aggregate")


def totals_chart(found: AnyPlan) -> Chart | None:
    """The error of the aggregate by the true total (A, Fig. 8), for joint plans that are small enough."""
    problem = found.problem
    tables = [kept for kept in found.tables if isinstance(kept, NoiseMatrix)]
    if len(tables) < len(found.tables):
        return None
    wide = sum(abs(f) * (party.last + 1) for f, party in zip(problem.f, problem.parties, strict=True))
    deep = sum(
        kept.outputs[1] - kept.outputs[0] + 1 + abs(f) * (party.last + 1)
        for kept, f, party in zip(tables, problem.f, problem.parties, strict=True)
    )
    if wide * deep > MOST_CELLS:
        return None
    try:
        listed = errors_by_total(found)
    except OptdpError:
        return None
    if not listed:
        return None
    first, last = listed[0].total, listed[-1].total
    errors, chances = np.full(last - first + 1, np.nan), np.zeros(last - first + 1)
    for item in listed:
        errors[item.total - first], chances[item.total - first] = item.error, item.probability
    curves = [PlottedCurve("mean error", errors), PlottedCurve("probability of this total", chances, "area")]
    level = Level(float(problem.baseline_mae), "shared geometric noise")
    return Chart(first, curves, "true total", "mean absolute error", (level,))
