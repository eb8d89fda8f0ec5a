"""Curves: a problem solved at many values of one of its numbers, as the `[sweep]` table of its file says.

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
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optdp.amplification.count import KRRCount
from optdp.amplification.problem import Amplification
from optdp.amplification.solve import point
from optdp.artifact.files import write_bytes
from optdp.errors import OptdpError, ProblemError
from optdp.file_models import Sweep
from optdp.math.exact import show, shown, to_fraction
from optdp.problem import ProblemFile, from_spec
from optdp.solution import solve

if TYPE_CHECKING:
    from optdp.problem import Problem

MOST_POINTS = 10_000
SHOWN = ("value", "lower")
"""What kinds of problems with bounds can show; protocols show any of their figures."""
PROTOCOLS = ("metric-shuffle", "shuffle-histogram", "real-sum", "order-shuffle")
_POWER = re.compile(r"([a-z_0-9.]+)\^(?:(-?[0-9]{1,3})|\((-?[0-9]{1,3}(?:/[1-9][0-9]{0,2})?)\))")


@dataclass(frozen=True)
class Curve:
    """Lines over the same places; None where a problem has no answer."""

    title: str
    over: str
    unknown: str
    places: tuple[float, ...]
    lines: Mapping[str, tuple[float | None, ...]]
    log_x: bool
    log_y: bool
    interrupted: bool = False

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {"over": self.over, "unknown": self.unknown, "x": self.places, "series": dict(self.lines)}


def sweep(file: ProblemFile, progress: Callable[[str], None] = lambda _: None, points: int | None = None) -> Curve:
    """Solve every point. Interrupted (Ctrl-C), it returns the points that are ready, None for the rest."""
    plan = _plan(file)
    places = _places(plan, points)
    both = [{"label": "value"}, {"label": "lower", "show": "lower"}]
    series = plan.series or both[: 1 if file.data.get("kind") in PROTOCOLS else 2]
    lines: dict[str, list[float | None]] = {}
    drawn: dict[str, None] = {}  # what the lines are of, in their order
    known: dict[str, tuple[Problem, Any]] = {}
    interrupted = False
    try:
        for number, entry in enumerate(series):
            label, base, shown = _series(file.data, entry, number)
            if label in lines:
                raise ProblemError(f"Two series have the label {label!r}. Give each its own.")
            lines[label] = [None] * len(places)
            for i, place in enumerate(places):
                progress(f"{label}: {i + 1} of {len(places)}")
                moved = _moved(base, plan, place)
                same = json.dumps(moved, sort_keys=True, default=str)
                if same not in known:  # lines of one problem's figures are of one solution
                    problem = from_spec(moved)
                    known[same] = problem, _solution(problem) if problem.kind in PROTOCOLS else None
                problem, solution = known[same]
                drawn[shown if shown not in SHOWN else getattr(problem, "unknown", "value")] = None
                if problem.kind in PROTOCOLS:
                    lines[label][i] = None if solution is None else _figure(solution, shown)
                else:
                    lines[label][i] = _solved(problem, shown)
    except KeyboardInterrupt:
        interrupted = True
    return Curve(
        file.title, plan.over, ", ".join(drawn), tuple(map(float, places)),
        {name: tuple(line) for name, line in lines.items()}, plan.scale == "log", plan.y_scale == "log", interrupted,
    )  # fmt: skip


def _plan(file: ProblemFile) -> Sweep:
    if file.data.get("sweep") is None:
        raise ProblemError('A curve needs a [sweep] table: over = "n", from = 1000, to = 1000000. Found none.')
    return Sweep.model_validate(file.data["sweep"])


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


def _series(data: Mapping[str, Any], entry: Mapping[str, Any], number: int) -> tuple[str, dict[str, Any], str]:
    """The label of a series, its problem before anything moves, and what of its solution is drawn."""
    base = {key: value for key, value in data.items() if key not in ("sweep", "expect", "notes")}
    label, shown = entry.get("label", f"series {number + 1}"), entry.get("show", "value")
    names = SHOWN[:1] if data.get("kind") in PROTOCOLS else SHOWN
    if not isinstance(label, str) or not isinstance(shown, str) or (shown not in names and names == SHOWN):
        raise ProblemError('A series has a label, which is text, and may have show = "value" or "lower".')
    return label, base | {key: value for key, value in entry.items() if key not in ("label", "show")}, shown


def _moved(base: Mapping[str, Any], plan: Sweep, place: Fraction) -> dict[str, Any]:
    """The problem at one place, with what is tied to it."""
    data = deepcopy(dict(base))
    _put(data, plan.over, _number(place))
    for key, text in plan.tie.items():
        found = _POWER.fullmatch(text.replace(" ", ""))
        if found is None or found[1] != plan.over:
            raise ProblemError(f'A tie is a power of what moves, such as "{plan.over}^-2". Found {shown(text)}.')
        try:
            value = float(place) ** float(Fraction(found[2] or found[3]))
        except OverflowError:
            raise ProblemError(f"{text!r} is too large at {plan.over} = {show(place)}.") from None
        _put(data, key, max(2, round(value)) if key.split(".")[-1] in ("n", "k") else f"{value:.15g}")
    return data


def _put(data: dict[str, Any], key: str, value: int | str) -> None:
    *path, last = key.split(".")
    for step in path:
        inner = data.get(step)
        if not isinstance(inner, dict):
            raise ProblemError(f"The sweep moves {key!r}, which the problem does not have.")
        data = inner
    data[last] = value


def _number(value: Fraction) -> int | str:
    return value.numerator if value.denominator == 1 else show(value)


def _solved(problem: Problem, shown: str) -> float | None:
    """What is drawn of a problem's solution; None if it has none."""
    try:
        if isinstance(problem, Amplification):
            return point(problem, "upper" if shown == "value" else "lower")
        if isinstance(problem, KRRCount):
            answer = solve(problem)
            return answer.value if shown == "value" else answer.lower
        solution: Any = solve(problem)
    except OptdpError:
        return None
    if shown == "lower":
        return None if solution.lower_bound is None else float(solution.lower_bound)
    return _figure(solution, shown)


def _solution(problem: Problem) -> Any:
    """The solution of a problem; None if it has none."""
    try:
        return solve(problem)
    except OptdpError:
        return None


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
            "Pictures need matplotlib: pip install 'optdp[plot]'. Or write the numbers: --out curve.csv."
        ) from None
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for label, line in curve.lines.items():
        heights = [math.nan if value is None or (curve.log_y and value <= 0) else value for value in line]
        axes.plot(curve.places, heights, label=label if label[:1] != "_" else f" {label}", linewidth=1.6)
    axes.set_xlabel(curve.over)
    axes.set_ylabel(curve.unknown)
    axes.set_title(curve.title, fontsize=10, parse_math=False)
    axes.set_xscale("log" if curve.log_x else "linear")
    axes.set_yscale("log" if curve.log_y and any(v for line in curve.lines.values() for v in line) else "linear")
    axes.grid(visible=True, which="both", alpha=0.25)
    for text in axes.legend(fontsize=8).get_texts():
        text.set_parse_math(False)
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
