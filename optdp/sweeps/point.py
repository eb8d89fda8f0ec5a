"""One point of a sweep: the values put into the problem, the problem solved, its figures as one flat row."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from optdp.errors import OptdpError, ProblemError
from optdp.files.models import file_model
from optdp.kinds import KINDS, problem_class, solve
from optdp.loading import built
from optdp.sweeps.grid import Grid, Value

DESCRIPTION = ("title", "source", "notes", "expect", "sweep")
"""What a file says besides its problem."""
_LEFT_OUT = ("kind", "status", "seconds", "meaning", "given")
_ALONE = threading.Lock()
"""The precision of exact arithmetic belongs to the whole process: one point at a time, however many threads it has."""

Row = dict[str, Any]


def base_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The problem alone."""
    return {key: value for key, value in data.items() if key not in DESCRIPTION}


def put(base: Mapping[str, Any], point: Mapping[str, Value]) -> dict[str, Any]:
    """The problem with the values of a point in their places."""
    data: dict[str, Any] = deepcopy(dict(base))
    for key, value in point.items():
        *path, last = key.split(".")
        place: Any = data
        for step in path:
            place = _inside(place, step, key)
        if not isinstance(place, dict | list):
            raise ProblemError(f"Unknown key {key!r}: the problem has no table there. See: optdp schema.")
        before = _inside(place, last, key) if isinstance(place, list) else place.get(last)
        if isinstance(before, dict | list):
            raise ProblemError(f"A grid moves a number or a word. Found a whole table at {key!r}. Name a key in it.")
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return data


def _inside(place: Any, step: str, key: str) -> Any:
    if isinstance(place, list) and step.isascii() and step.isdigit() and len(step) < 9 and int(step) < len(place):
        return place[int(step)]
    if isinstance(place, dict) and step in place:
        return place[step]
    hint = f" Lists are counted from 0 to {len(place) - 1}." if isinstance(place, list) else ""
    raise ProblemError(f"Unknown key {key!r}: the problem has no {step!r} there.{hint} See: optdp schema.")


def check_keys(base: Mapping[str, Any], grid: Grid) -> None:
    """Refuse keys that this kind of problem does not know, before any work; values are the points' own affair."""
    for key in grid.values:
        if key.split(".")[0] in (*DESCRIPTION, "kind"):
            raise ProblemError(f"A grid moves a number or a word of the problem. Found {key!r}, which is neither.")
    try:
        file_model(problem_class(KINDS[base["kind"]])).model_validate(put(base, next(iter(grid))))
    except ValidationError as error:
        for defect in error.errors(include_url=False):
            if defect["type"] == "extra_forbidden":
                named = ".".join(str(step) for step in defect["loc"])
                last = str(defect["loc"][-1])
                key = next((key for key in grid.values if key.split(".")[-1] == last), named)
                raise ProblemError(f"Unknown key {key!r}. Remove it, or see: optdp schema.") from None


def solve_point(spec: Mapping[str, Any]) -> Row:
    """Solve a problem: `status`, `seconds`, `figures`, `sha256`, `error`. Whatever goes wrong is told in the row."""
    from threadpoolctl import threadpool_limits

    with _ALONE, threadpool_limits(1):
        begin = time.perf_counter()
        try:
            solution: Any = solve(built(spec))
            summary = solution.summary()
            row: Row = {"status": summary["status"], "figures": dict(_flat(summary)), "sha256": solution.digest()}
            row["error"] = None
        except OptdpError as error:
            row = failed(str(error))
        except Exception as error:  # one point that breaks must not take the others with it
            row = failed(f"{type(error).__name__}: {error}")
        row["seconds"] = round(time.perf_counter() - begin, 4)
    return row


def failed(why: str) -> Row:
    """The row of a point that has no solution, and why, in one line."""
    text = " ".join(why.split())[:1000]
    said = "".join(sign if sign.isprintable() else "?" for sign in text)
    return {"status": "failed", "seconds": 0.0, "figures": {}, "sha256": None, "error": said}


def _flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every single figure, tables within tables by dotted names; lists are left out, and so is what is not finite."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            if prefix or name not in _LEFT_OUT:
                yield from _flat(value, f"{prefix}{name}.")
        elif (value is None or isinstance(value, str | int | float)) and (prefix or name not in _LEFT_OUT):
            yield prefix + name, None if isinstance(value, float) and not math.isfinite(value) else value
