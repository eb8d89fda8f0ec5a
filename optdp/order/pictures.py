"""The pictures of an order: who stands where, how sensitive each group is, and how the order compares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from optdp.order.mechanism import Groups, placed, sensitivities
from optdp.order.solve import OrderSolution
from optdp.pictures.chart import MOST_ENTRIES, Bars, Chart, Heat, Ints, Level, Line, Picture, PlottedCurve, binned

DOWN, ACROSS = "group, in the order of its middle", "position in the order"


def pictures(solution: OrderSolution) -> Mapping[str, Callable[[], Picture]]:
    """By name, the first the one that is shown unless another is asked for."""
    groups, order = solution.problem.groups, solution.order
    rows = (
        ("this order", float(solution.sensitivity)),
        ("lower bound (proved)", float(solution.lower_bound)),
        ("the paper's bound", float(solution.paper_sensitivity)),
    )

    def by_group() -> Chart:
        own = sensitivities(groups, order, solution.problem.distance, solution.problem.values)
        return sensitivity_chart(own[positions(groups, order)[0]], solution.sensitivity)

    return {
        "order": lambda: positions(groups, order)[1],
        "sensitivities": by_group,
        "bounds": lambda: Bars(rows, "sensitivity"),
    }


def sensitivity_chart(own: Ints, largest: int) -> Chart:
    """The sensitivity of each group, and the one that counts."""
    curve = PlottedCurve("sensitivity", own.astype(np.float64))
    return Chart(0, (curve,), DOWN, "sensitivity", (Level(float(largest), "largest"),))


def positions(groups: Groups, order: Ints) -> tuple[Ints, Heat]:
    """Groups in the order of their middle, and the map of who stands where."""
    place = placed(groups, order)
    middles = np.array(
        [
            float(np.median(place[a:b])) if b > a else math.inf
            for a, b in zip(groups.starts, groups.starts[1:], strict=False)
        ]
    )
    along = np.argsort(middles, kind="stable")

    def lines() -> Iterator[Line]:
        for group in along.tolist():
            at = place[groups.starts[group] : groups.starts[group + 1]]
            yield at, np.full(len(at), 1 / max(1, len(at)))

    rows, columns = (0, max(0, len(groups) - 1)), (0, groups.n - 1)
    if not len(groups):
        return along, Heat(rows, columns, ((np.zeros(0, np.int64), np.zeros(0)),), down=DOWN, across=ACROSS)
    if len(groups.members) <= MOST_ENTRIES:
        return along, Heat(rows, columns, tuple(lines()), down=DOWN, across=ACROSS)
    return along, replace(binned(lines(), rows, columns), down=DOWN, across=ACROSS)
