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
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import optdp.work as work
from optdp.errors import OptdpError, ProblemError
from optdp.files.atomic import write_bytes
from optdp.files.models import Problem, Sweep
from optdp.kind import Kind
from optdp.kinds import KINDS, find, solve
from optdp.loading import ProblemFile, built, names_file
from optdp.numbers.exact import show, shown, to_fraction
from optdp.work import Progress, reporting

MOST_POINTS = 10_000
SHOWN = ("value", "lower")
"""What is drawn unless a figure of the solution is named."""
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


def sweep(
    file: ProblemFile, progress: Progress | bool = False, points: int | None = None, deadline: float | None = None
) -> Curve:
    """Solve every point. Interrupted (Ctrl-C, or after `deadline` seconds), it returns the points that are ready, None
    for the rest."""
    with reporting(progress) as say, work.deadline(deadline):
        return _sweep(file, say, points)


def _sweep(file: ProblemFile, progress: Progress, points: int | None) -> Curve:
    plan = _plan(file)
    places = _places(plan, points)
    both = [{"label": "value"}, {"label": "lower", "show": "lower"}]
    series = plan.series or both[: 2 if file.kind.bounded else 1]
    lines: dict[str, list[float | None]] = {}
    drawn: dict[str, None] = {}  # what the lines are of, in their order
    known: dict[str, _Place] = {}
    interrupted, begin = False, time.perf_counter()

    def left(done: int) -> str:
        """How long the rest takes at the pace so far."""
        seconds = (time.perf_counter() - begin) / max(done, 1) * (len(series) * len(places) - done)
        return f", about {work.duration(seconds)} left" if done and seconds >= 1.0 else ""

    try:
        for number, entry in enumerate(series):
            label, base, shown = _series(file.data, entry, number)
            if label in lines:
                raise ProblemError(f"Two series have the label {label!r}. Give each its own.")
            lines[label] = [None] * len(places)
            for i, place in enumerate(places):
                progress(f"{label}: {i + 1} of {len(places)}{left(i + len(places) * number)}")
                moved = _moved(base, plan, place)
                same = json.dumps(moved, sort_keys=True, default=str)
                if same not in known:
                    known[same] = _Place(built(moved))
                drawn[shown if shown not in SHOWN else getattr(known[same].problem, "unknown", "value")] = None
                lines[label][i] = known[same].figure(shown)
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
    if not isinstance(label, str) or not isinstance(shown, str):
        raise ProblemError('A series has a label, which is text, and may have show = "value" or "lower".')
    return label, base | {key: value for key, value in entry.items() if key not in ("label", "show")}, shown


def _moved(base: Mapping[str, Any], plan: Sweep, place: Fraction) -> dict[str, Any]:
    """The problem at one place, with what is tied to it."""
    data, kind = deepcopy(dict(base)), KINDS[base["kind"]]
    _put(data, plan.over, _number(place), kind)
    for key, text in plan.tie.items():
        found = _POWER.fullmatch(text.replace(" ", ""))
        if found is None or found[1] != plan.over:
            raise ProblemError(f'A tie is a power of what moves, such as "{plan.over}^-2". Found {shown(text)}.')
        try:
            value = float(place) ** float(Fraction(found[2] or found[3]))
        except OverflowError:
            raise ProblemError(f"{text!r} is too large at {plan.over} = {show(place)}.") from None
        _put(data, key, max(2, round(value)) if key.split(".")[-1] in ("n", "k") else f"{value:.15g}", kind)
    return data


def _put(data: dict[str, Any], key: str, value: int | str, kind: Kind) -> None:
    *path, last = key.split(".")
    if names_file(kind, key):
        raise ProblemError(f"A sweep moves a number. Found {key!r}, which names a file.")
    for step in path:
        inner = data.get(step)
        if not isinstance(inner, dict):
            raise ProblemError(f"The sweep moves {key!r}, which the problem does not have.")
        data = inner
    data[last] = value


def _number(value: Fraction) -> int | str:
    return value.numerator if value.denominator == 1 else show(value)


class _Place:
    """A problem at one place of a curve: solved when that is needed, and once, whatever is drawn of it."""

    def __init__(self, problem: Problem[Any]) -> None:
        self.problem, self.kind = problem, KINDS[problem.kind]

    def figure(self, name: str) -> float | None:
        """What is drawn; None if the problem has no solution, or the solution no such bound."""
        if self.kind.point and name in SHOWN:
            try:
                found: float | None = find(self.kind, "point")(self.problem, "upper" if name == "value" else "lower")
                return found
            except OptdpError:
                return None
        if self.solution is None:
            return None
        chosen = "lower_bound" if name == "lower" and self.kind.bounded else name
        return _figure(self.solution, chosen)

    @cached_property
    def solution(self) -> Any:
        """Its solution; None if it has none. What is only the best so far is no point of the curve."""
        try:
            solution: Any = solve(self.problem)
        except OptdpError:
            return None
        if solution.status == "interrupted" or work.stopped() is not None:
            raise work.stopped() or KeyboardInterrupt
        return solution


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
