"""A fragment for notebooks: a few figures and a small picture, without script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optdp.mechanism.added_noise import AddedNoise
from optdp.plan.certificate import meaning as plan_meaning
from optdp.report.page import Child, Html, el
from optdp.report.pictures import Floats, Heat, of_matrix, of_table
from optdp.report.words import at_most, epsilon, headcount, less, odds_factor, people
from optdp.single.certify import meaning

if TYPE_CHECKING:
    from optdp.order.solve import OrderSolution
    from optdp.plan.solve import PlanSolution
    from optdp.single.solve import Solution


CELLS, SIDE = 48, 200
"""Cells and pixels of a picture's longer side."""
SHADES = ("#edf8b1", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#253494", "#081d58")
LOW = -6
"""The power of ten at which shades begin."""
MEANING = "color:#6b7280;font-size:85%;max-width:40em"


def with_factor(value: str, factor: str) -> str:
    """A number with its odds factor, if there is one."""
    return f"{value}  (odds change by at most × {factor})" if factor else value


def fragment(
    title: str, rows: Sequence[tuple[str, str]], maps: Sequence[tuple[str, Heat]], note: str, meaning: str
) -> Html:
    """Figures by name, maps with their names, a note if there is one, and what it all means."""
    left = "text-align:left;padding:1px 1em 1px 0"
    lines = [el("tr", el("th", name, style=left, scope="row"), el("td", text, style=left)) for name, text in rows]
    figures: list[Child] = [
        el("div", picture(heat), el("div", name, style=MEANING), style="display:inline-block;margin:6px 12px 0 0")
        for name, heat in maps
    ]
    return el(
        "div",
        el("strong", title),
        el("table", el("tbody", *lines), style="border-collapse:collapse;margin:4px 0"),
        *figures,
        el("div", note, style=MEANING) if note else None,
        el("div", meaning, style=MEANING),
        class_="optdp",
    )


def picture(heat: Heat) -> Html:
    """A small heat map: the largest probability of each block, one path for each shade."""
    tall, wide = heat.shape
    cells = _largest(heat)
    unit = SIDE / max(cells.shape)
    height, width = (max(12.0, unit * size) for size in cells.shape)
    down, across = height / cells.shape[0], width / cells.shape[1]
    logs = np.full(cells.shape, -np.inf)
    np.log10(cells, out=logs, where=cells > 0)
    levels = np.floor((1 - logs / LOW) * len(SHADES))
    paths = []
    for level, shade in enumerate(SHADES):
        inside = (levels == level) | ((level == len(SHADES) - 1) & (levels > level))
        boxes = "".join(
            f"M{j * across:.4g} {i * down:.4g}h{across:.4g}v{down:.4g}h-{across:.4g}z" for i, j in np.argwhere(inside)
        )
        if boxes:
            paths.append(el("path", d=boxes, fill=shade))
    ground = el("rect", width=f"{width:.4g}", height=f"{height:.4g}", fill="#ffffff", stroke="#9ca3af")
    label = f"Heat map of {tall} inputs and {wide} outputs"
    return el(
        "svg", ground, *paths, width=f"{width:.0f}", height=f"{height:.0f}",
        viewBox=f"0 0 {width:.4g} {height:.4g}", role="img", aria_label=label,
    )  # fmt: skip


def _largest(heat: Heat) -> Floats:
    """The largest probability of each of at most CELLS by CELLS blocks."""
    tall, wide = heat.shape
    if tall * wide > 4_000_000:  # too large to be written out: the table's own entries alone
        cells = np.zeros((min(tall, CELLS), min(wide, CELLS)))
        for i, (places, values) in enumerate(heat.lines):
            np.maximum.at(cells[i * len(cells) // tall], places * cells.shape[1] // wide, values)
        return cells
    dense = heat.dense()
    rows = np.unique(np.arange(min(tall, CELLS)) * tall // min(tall, CELLS))
    columns = np.unique(np.arange(min(wide, CELLS)) * wide // min(wide, CELLS))
    found: Floats = np.maximum.reduceat(np.maximum.reduceat(dense, rows, axis=0), columns, axis=1)
    return found


def of_solution(solution: Solution) -> Html:
    """One entity's mechanism."""
    certificate, problem = solution.certificate, solution.problem
    eps = None if certificate.epsilon is None else min(certificate.epsilon, problem.epsilon)
    rows = [
        ("people", headcount(problem.populations[0])),
        (problem.promise, with_factor(epsilon(eps), "" if eps is None else odds_factor(eps))),
        ("ordinary epsilon", epsilon(certificate.ordinary_epsilon)),
        ("mean error", f"{at_most(certificate.mae)}, {less(certificate.mae, problem.cap)}"),
        ("status", solution.status),
    ]
    maps = []
    if not isinstance(solution.mechanism, AddedNoise):
        maps.append(("inputs down, outputs across", of_matrix(solution.mechanism, problem.populations[0])))
    return fragment("optdp: a certified mechanism", rows, maps, solution.note, meaning(problem))


def of_plan(solution: PlanSolution) -> Html:
    """Several entities' tables; the first few are drawn."""
    certificate, problem = solution.certificate, solution.problem
    eps = None if certificate.epsilon is None else min(certificate.epsilon, problem.epsilon)
    below = less(certificate.mae, problem.baseline_mae, "shared geometric noise")
    rows = [
        ("parties", f"{len(problem.parties)}, {problem.honest} assumed honest"),
        (problem.promise, with_factor(epsilon(eps), "" if eps is None else odds_factor(eps))),
        ("mean error of the aggregate", f"{at_most(certificate.mae)}, {below}"),
        ("status", solution.status),
    ]
    shown = zip(solution.tables[:3], problem.parties[:3], strict=True)
    maps = [(f"party {i}", of_table(table, population)) for i, (table, population) in enumerate(shown)]
    return fragment("optdp: a certified plan", rows, maps, solution.note, plan_meaning(problem))


def of_order(solution: OrderSolution) -> Html:
    """An order and its shuffle."""
    rows = [
        ("records", people(solution.n)),
        ("groups", f"{len(solution.problem.groups):,}"),
        ("alpha", with_factor(at_most(solution.alpha), odds_factor(solution.alpha))),
        ("theta", "infinite" if math.isinf(solution.theta) else f"{solution.theta:.6g}"),
        ("pairs reversed", f"{100 * solution.reversed_pairs:.3g} %, by a uniform shuffle 50 %"),
        ("sensitivity", f"{solution.sensitivity:,}, no order is below {solution.lower_bound:,}"),
        ("status", solution.status),
    ]
    return fragment("optdp: an order-private shuffle", rows, [], solution.note, solution.problem.meaning)
