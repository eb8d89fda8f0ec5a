"""Curves: sweeps over one number of a problem, as the `[sweep]` table of its file says.

    [sweep]
    over = "n"                  # the number that moves
    from = 1000
    to = 1000000
    points = 25
    scale = "log"               # how the points are spread; the unknown's axis is y_scale
    tie = { delta = "n^-2" }    # what moves along with it
    series = [{ label = "k = 2", randomizer = { kind = "k-rr", k = 2 }, method = "bennett-k-rr" }]

Each series is the problem of the file with some of its entries replaced; `show = "lower"` draws the lower bound, and
of a shuffle protocol any of its figures: `show = "local_epsilon"`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from optdp.errors import OptdpError, ProblemError
from optdp.extras import install
from optdp.files.atomic import write_bytes
from optdp.files.models import Problem, Sweep
from optdp.kind import Home
from optdp.kinds import KINDS, find, solve
from optdp.loading import ProblemFile, built, names_file
from optdp.numbers.exact import show, shown, to_fraction
from optdp.pictures.chart import Chart, PlottedCurve
from optdp.pictures.pictured import Pictured
from optdp.pictures.plot import draw
from optdp.sheet import Listing, Sheet
from optdp.sweeps.grid import Value, base_of, number, put
from optdp.sweeps.pool import Row, solved_here
from optdp.sweeps.run import Interrupted, solve_left
from optdp.sweeps.table import Journal
from optdp.work import Progress, reporting

MOST_POINTS = 10_000
SHOWN = ("value", "lower")
"""What is drawn unless a figure of the solution is named."""
_POWER = re.compile(r"([a-z_0-9.]+)\^(?:(-?[0-9]{1,3})|\((-?[0-9]{1,3}(?:/[1-9][0-9]{0,2})?)\))")


@dataclass(frozen=True)
class Curve(Pictured):
    """Lines over the same places; None where a problem has no answer."""

    title: str
    over: str
    unknown: str
    places: tuple[float, ...]
    lines: Mapping[str, tuple[float | None, ...]]
    log_x: bool
    log_y: bool
    interrupted: bool = False
    drawing: ClassVar[Home] = "optdp.sweeps.plot:of_curve"

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {"over": self.over, "unknown": self.unknown, "x": self.places, "series": dict(self.lines)}

    def sheet(self) -> Sheet:
        """What a person is shown: a row for each place."""
        rows = tuple(
            (f"{place:.6g}", *("none" if line[i] is None else f"{line[i]:.6g}" for line in self.lines.values()))
            for i, place in enumerate(self.places)
        )
        return Sheet((("curve", self.title), ("drawn", self.unknown)), (Listing((self.over, *self.lines), rows),))

    def chart(self) -> Chart:
        """The lines as a picture."""
        curves = tuple(
            PlottedCurve(label, np.array([math.nan if value is None else value for value in line], dtype=np.float64))
            for label, line in self.lines.items()
        )
        return Chart(0, curves, self.over, self.unknown, log=self.log_y, places=np.array(self.places, dtype=np.float64),
                     log_across=self.log_x)  # fmt: skip


def sweep(file: ProblemFile, progress: Progress | bool = False, points: int | None = None) -> Curve:
    """Solve every point. Interrupted, it returns the points that are ready, None for the rest."""
    plan = file.file.sweep
    if plan is None:
        raise ProblemError('A curve needs a [sweep] table: over = "n", from = 1000, to = 1000000. Found none.')
    places = _places(plan, points)
    both = [{"label": "value"}, {"label": "lower", "show": "lower"}]
    series = [_series(entry, i) for i, entry in enumerate(plan.series or both[: 2 if file.kind.bounded else 1])]
    labels, size = [label for label, _, _ in series], len(places)
    for label in labels:
        if labels.count(label) > 1:
            raise ProblemError(f"Two series have the label {label!r}. Give each its own.")
    book, interrupted = Journal(), False
    tasks = (_task(base_of(file.data) | changes, name, plan, place) for _, changes, name in series for place in places)
    here = partial(solved_here, solved=_Figures())
    with reporting(progress) as say:
        try:
            solve_left(enumerate(tasks), nullcontext(here), book, len(series) * size, say)
        except Interrupted:
            interrupted = True
    found = [book.done[i]["figure"] if i in book.done else None for i in range(len(series) * size)]
    begun = labels[: len(book.done) // size + 1]
    return Curve(
        file.title, plan.over, ", ".join(dict.fromkeys(row["name"] for row in book.done.values())),
        tuple(map(float, places)), {label: tuple(found[i * size : (i + 1) * size]) for i, label in enumerate(begun)},
        plan.scale == "log", plan.y_scale == "log", interrupted,
    )  # fmt: skip


def _places(plan: Sweep, points: int | None) -> list[Fraction]:
    """Where to solve, exactly; whole numbers if the ends are."""
    if plan.values is not None:
        if not 1 <= len(plan.values) <= MOST_POINTS:
            raise ProblemError(f"A sweep must have from 1 to {MOST_POINTS:,} values. Found {len(plan.values)}.")
        return [to_fraction(value, "A value of the sweep") for value in plan.values]
    if plan.start is None or plan.stop is None:
        raise ProblemError("A sweep needs values, or from and to. Found neither.")
    low, high = to_fraction(plan.start, "from"), to_fraction(plan.stop, "to")
    count = plan.points if points is None else points
    if not 2 <= count <= MOST_POINTS:
        raise ProblemError(f"A sweep must have from 2 to {MOST_POINTS:,} points. Found {count}.")
    if not 0 < low < high:
        raise ProblemError(
            f"A sweep must go from a positive number to a larger one. Found {show(low)} to {show(high)}."
        )
    whole = low.denominator == high.denominator == 1
    steps = [i / (count - 1) for i in range(count)]
    if plan.scale == "log":
        middle = [float(low) ** (1.0 - step) * float(high) ** step for step in steps[1:-1]]
    else:
        middle = [float(low) * (1.0 - step) + float(high) * step for step in steps[1:-1]]
    inner = [Fraction(round(value)) if whole else Fraction(f"{value:.9g}") for value in middle]
    return sorted({low, high, *inner})


def _series(entry: Mapping[str, Any], number: int) -> tuple[str, dict[str, Any], str]:
    """The label of a series, what of the problem it replaces, and what of the solution is drawn."""
    label, shown = entry.get("label", f"series {number + 1}"), entry.get("show", "value")
    if not isinstance(label, str) or not isinstance(shown, str):
        raise ProblemError('A series has a label, which is text, and may have show = "value" or "lower".')
    return label, {key: value for key, value in entry.items() if key not in ("label", "show")}, shown


def _task(base: Mapping[str, Any], name: str, plan: Sweep, place: Fraction) -> dict[str, Any]:
    """A point: the problem at a place, with what is tied to it, and the name of the figure that is drawn."""
    moved: dict[str, Value] = {plan.over: number(place)}
    for key, text in plan.tie.items():
        found = _POWER.fullmatch(text.replace(" ", ""))
        if found is None or found[1] != plan.over:
            raise ProblemError(f'A tie is a power of what moves, such as "{plan.over}^-2". Found {shown(text)}.')
        try:
            value = float(place) ** float(Fraction(found[2] or found[3]))
        except OverflowError:
            raise ProblemError(f"{text!r} is too large at {plan.over} = {show(place)}.") from None
        moved[key] = max(2, round(value)) if key.split(".")[-1] in ("n", "k") else f"{value:.15g}"
    kind = KINDS.get(str(base["kind"]))
    for key in moved:
        if kind is not None and names_file(kind, key):
            raise ProblemError(f"A sweep moves a number. Found {key!r}, which names a file.")
    return {"problem": put(base, moved), "show": name}


class _Figures:
    """Solves the points of a curve: a problem once, whatever is drawn of it."""

    def __init__(self) -> None:
        self.problems: dict[str, Problem[Any]] = {}
        self.solutions: dict[str, Any] = {}

    def __call__(self, task: Mapping[str, Any]) -> Row:
        """The figure of a point; None if the problem has no solution, or the solution no such bound."""
        name, same = task["show"], json.dumps(task["problem"], sort_keys=True, default=str)
        if same not in self.problems:
            self.problems[same] = built(task["problem"])
        problem = self.problems[same]
        kind, drawn = KINDS[problem.kind], getattr(problem, "unknown", "value") if name in SHOWN else name
        row: Row = {"status": "solved", "name": drawn, "figure": None}
        try:
            if kind.point and name in SHOWN:
                return row | {"figure": find(kind, "point")(problem, "upper" if name == "value" else "lower")}
            if same not in self.solutions:
                self.solutions[same] = None
                self.solutions[same] = solve(problem)
        except OptdpError:
            return row
        solution = self.solutions[same]
        if solution is None:
            return row
        chosen = "lower_bound" if name == "lower" and kind.bounded else name
        return row | {"status": solution.status, "figure": _figure(solution, chosen)}


def _figure(solution: Any, name: str) -> float | None:
    """A number of a solution, or of a theorem beside it, by its name."""
    known = getattr(solution, "theorem", {})
    value = known[name] if name in known else getattr(solution, name, "")
    if name.startswith("_") or not (value is None or isinstance(value, int | float | Fraction)):
        raise ProblemError(f"A curve shows a number of the solution. Found show = {shown(name)}.")
    return None if value is None or not math.isfinite(value) else float(value)


def write_csv(curve: Curve, path: Path) -> None:
    """One column for the places and one for each line."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([curve.over, *curve.lines])
    for i, place in enumerate(curve.places):
        shown = int(place) if place == int(place) else place
        table.writerow([shown, *("" if line[i] is None else repr(line[i]) for line in curve.lines.values())])
    write_bytes(path, text.getvalue().encode())


def write_picture(curve: Curve, path: Path) -> None:
    """The lines, drawn by matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ProblemError(
            f"Pictures need matplotlib: {install('plot')}. Or write the numbers: --out curve.csv."
        ) from None
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    draw(curve.chart(), axes)
    axes.set_title(curve.title, fontsize=10, parse_math=False)
    drawn, dated = io.BytesIO(), {".svg": "Date", ".pdf": "CreationDate"}.get(path.suffix)
    with rc_context({"svg.hashsalt": "optdp"}):  # the same curve is the same file
        figure.savefig(drawn, format=path.suffix[1:], metadata={dated: None} if dated else None)
    write_bytes(path, drawn.getvalue())


WRITERS: dict[str, Callable[[Curve, Path], None]] = {
    ".csv": write_csv,
    ".svg": write_picture,
    ".png": write_picture,
    ".pdf": write_picture,
}
"""How a curve is written, by the ending of its name."""
