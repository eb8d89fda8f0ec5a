"""The rows of a sweep as a picture: one figure against one key of the grid, a line for each value of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from optdp.errors import ProblemError
from optdp.extras import install
from optdp.files.atomic import check_writable
from optdp.numbers.exact import shown
from optdp.pictures.chart import Chart
from optdp.sweeps.curve import Curve, write_picture
from optdp.sweeps.table import Rows

PICTURES = (".svg", ".png", ".pdf")
FIRST = ("mae", "value", "error", "epsilon", "delta", "seconds")
"""What is drawn unless a column is named: the first of these that the rows have as numbers."""
FAR = 100.0
"""Places and heights that lie further apart than this are drawn on a logarithmic axis."""


def check_picture(path: Path) -> None:
    """Refuse before a long sweep what could not be drawn after it."""
    if path.suffix not in PICTURES:
        raise ProblemError(f"--plot must end in {', '.join(PICTURES)}. Found {path.name!r}.")
    check_writable(path)
    if find_spec("matplotlib") is None:
        raise ProblemError(f"Pictures need matplotlib: {install('plot')}. Or leave out --plot.")


def drawn(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], title: str, figure: str, path: Path) -> None:
    """Draw them; `keys` are those of the grid."""
    write_picture(curve_of(rows, keys, title, figure), path)


def of_curve(curve: Curve) -> Mapping[str, Callable[[], Chart]]:
    """A curve has one picture."""
    return {"curve": curve.chart}


def of_rows(found: Rows) -> Mapping[str, Callable[[], Chart]]:
    """Every column of numbers that is not a key of the grid is a picture; the figure that counts is the first."""
    names = [name for name in found[0] if name not in found.keys and any(_is_number(row[name]) for row in found)]
    names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return {name: partial(_chart, found, name) for name in names}


def _chart(found: Rows, figure: str) -> Chart:
    return curve_of(found, found.keys, "", figure).chart()


def curve_of(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], title: str, figure: str) -> Curve:
    """Along the key with the most numbers; rows without the figure are gaps."""
    along = [key for key in keys if all(_is_number(row[key]) for row in rows)]
    if not along:
        raise ProblemError("A picture needs a key of the grid whose values are numbers. Found words alone.")
    over = max(along, key=lambda key: len({row[key] for row in rows}))
    figure = figure or next((name for name in FIRST if any(_is_number(row.get(name)) for row in rows)), "seconds")
    if not any(_is_number(row.get(figure)) for row in rows):
        raise ProblemError(f"--show must name a column of numbers. Found {shown(figure)}.")
    places = sorted({float(row[over]) for row in rows})
    lines: dict[str, dict[float, float]] = {}
    for row in rows:
        label = ", ".join(f"{key} = {row[key]}" for key in keys if key != over) or figure
        line = lines.setdefault(label, {})
        if _is_number(row.get(figure)):
            line[float(row[over])] = float(row[figure])
    heights = [value for line in lines.values() for value in line.values()]
    return Curve(
        title, over, figure, tuple(places),
        {label: tuple(line.get(place) for place in places) for label, line in lines.items()},
        _far(places), _far(heights),
    )  # fmt: skip


def _far(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > FAR


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
