"""Users' data: columns of a CSV file, checked cell by cell before anything is drawn.

Rows are counted as a spreadsheet counts them: the header is row 1, the first user is row 2. Errors say the row and the
rule, and never what stands there: it is somebody's answer, or a line of a file that is no data at all.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from optdp.errors import ProblemError
from optdp.files.atomic import name_of
from optdp.numbers.exact import shown
from optdp.work import check_memory, expect
from optdp.work.account import spend

if TYPE_CHECKING:  # reading needs no numpy, and verifying an order must do without
    import numpy as np
    from numpy.typing import NDArray

LARGEST_DATA = 2 * 1024**3
"""The largest data file in bytes: all of its cells have to fit into the memory."""
RATE, MEMORY = 1.5e7, 12
"""Bytes of a data file that are read in a second, and the bytes of memory that each of them takes meanwhile."""
WHOLE = 2**53
"""Below it a float is every whole number that it is read from."""


def read_columns(path: Path, columns: Sequence[str]) -> dict[str, list[str]]:
    """The cells of the named columns of a CSV file (UTF-8, commas, a header), without the header."""
    names = [name.strip() for name in columns]
    if not names or len(set(names)) < len(names):
        raise ProblemError(f"Columns must be named, each by a name of its own. Found {_few(names)}.")
    try:
        if not path.is_file():
            found = "Not a regular file" if path.exists() else "No such file"
            raise ProblemError(f"{found}: {name_of(path)}.")
        if path.stat().st_size > LARGEST_DATA:
            raise ProblemError(f"Data must be smaller than {LARGEST_DATA >> 20} MiB. Found {name_of(path)}. Split it.")
        spend(path.stat().st_size / 8, "a table of data")
        what = f"reading {path.stat().st_size / 1e6:,.0f} MB of data"
        check_memory(MEMORY * path.stat().st_size, what, "Split it.")
        expect(path.stat().st_size / RATE, what)
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(file, name_of(path), names)
    except OSError as error:
        raise ProblemError(f"Cannot read {name_of(path)}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ProblemError(f"{name_of(path)} is not text in UTF-8. Convert it, for example with iconv.") from None


def _read(file: TextIO, place: str, names: list[str]) -> dict[str, list[str]]:
    rows = csv.reader(_lines(file, place), strict=True)
    number = 1
    try:
        header = [name.strip() for name in next(rows, [])]
        where = _places(header, place, names)
        cells: list[list[str]] = [[] for _ in names]
        pairs = [(column.append, i) for column, i in zip(cells, where, strict=True)]
        width, blank = len(header), 0
        for number, row in enumerate(rows, start=2):
            if len(row) != width or blank:
                if row:
                    raise ProblemError(
                        f"Every row must have {width} cells, as the header has. Found {0 if blank else len(row)} in "
                        f"row {blank or number}."
                    )
                blank = blank or number  # allowed at the end only: else nobody knows whether it is a user
                continue
            for append, i in pairs:
                append(row[i])
    except csv.Error as error:
        raise ProblemError(f"Data must be a CSV file. Found in {place} after row {number}: {error}.") from None
    if not cells[0]:
        raise ProblemError(f"Data must have a row for each user. Found nothing below the header of {place}.")
    return dict(zip(names, cells, strict=True))


def _lines(file: TextIO, place: str) -> Iterator[str]:
    for line in file:
        if "\0" in line:
            raise ProblemError(f"Data must be text. Found a zero byte in {place}. Export it as CSV.")
        yield line


def _places(header: list[str], place: str, names: list[str]) -> list[int]:
    if not any(header):
        raise ProblemError(f"Data must begin with a header line. Found none in {place}. Name the columns there.")
    if len(set(header)) < len(header):
        second = next(i for i, name in enumerate(header) if name in header[:i])
        first = header.index(header[second])
        raise ProblemError(
            f"Columns must have different names. Found one name for columns {first + 1} and {second + 1} of {place}. "
            "Rename one."
        )
    missing = [name for name in names if name not in header]
    if missing:
        raise ProblemError(
            f"Data must have the column {shown(missing[0])}. Found {len(header):,} with other names in the header of "
            f"{place}."
        )
    return [header.index(name) for name in names]


def whole_numbers(cells: Sequence[str], name: str, least: int, most: int, clip: bool) -> NDArray[np.int64]:
    """The cells as whole numbers in `least..most`; `clip` moves those outside to the nearest end."""
    import numpy as np

    return np.asarray(wholes(cells, name, least, most, clip))


def real_numbers(cells: Sequence[str], name: str, least: float, most: float, clip: bool) -> NDArray[np.float64]:
    """The cells as finite numbers in `least..most`; `clip` moves those outside to the nearest end."""
    import numpy as np

    return np.asarray(reals(cells, name, least, most, clip))


def wholes(cells: Sequence[str], name: str, least: int, most: int, clip: bool) -> array[int]:
    """As `whole_numbers`, without numpy."""
    if not -WHOLE < least <= most < WHOLE:
        raise ProblemError(f"Ends must be in order and below 2^53. Found {shown(least)} and {shown(most)}.")
    values = _floats(cells)
    _check(map(float.is_integer, values), name, "a whole number")  # of nan and infinity it is false
    return array("q", map(int, _within(values, name, least, most, clip)))


def reals(cells: Sequence[str], name: str, least: float, most: float, clip: bool) -> array[float]:
    """As `real_numbers`, without numpy."""
    if not -math.inf < least <= most < math.inf:
        raise ProblemError(f"Ends must be finite and in order. Found {shown(least)} and {shown(most)}.")
    values = _floats(cells)
    _check(map(math.isfinite, values), name, "a finite number")
    return _within(values, name, least, most, clip)


def labels(cells: Sequence[str], name: str, known: Sequence[str]) -> NDArray[np.int64]:
    """The place of each cell in `known`."""
    import numpy as np

    places = {label: i for i, label in enumerate(known)}
    if len(places) < len(known):
        raise ProblemError(f"The labels of {_plain(name)} must differ. Found one of them twice. Remove it.")
    found = np.fromiter((places.get(cell.strip(), -1) for cell in cells), np.int64, len(cells))
    _check((found >= 0).tolist(), name, f"one of {_few(known)}")
    return found


def _floats(cells: Sequence[str]) -> array[float]:
    """The numbers, and nan for what is none: Python reads 1_000 as a number, people do not."""
    if "_" not in "".join(cells):
        with suppress(ValueError):
            return array("d", map(float, cells))
    return array("d", map(_float, cells))


def _float(cell: str) -> float:
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def _check(fine: Iterable[bool], name: str, rule: str) -> None:
    given = list(fine)
    if not all(given):
        wrong = [i for i, good in enumerate(given) if not good]
        raise ProblemError(
            f"{_plain(name)} must be {rule} in every row. Found {_values(len(wrong))} that "
            f"{'is' if len(wrong) == 1 else 'are'} not, "
            f"the first in row {wrong[0] + 2}. Correct the data."
        )


def _within(values: array[float], name: str, least: float, most: float, clip: bool) -> array[float]:
    if not values or (least <= min(values) and max(values) <= most):
        return array("d", [value + 0.0 for value in values])  # no minus zero
    wrong = [i for i, value in enumerate(values) if not least <= value <= most]
    if not clip:
        raise ProblemError(
            f"{_plain(name)} must be between {least} and {most}. Found {_values(len(wrong))} outside, "
            f"the first in row {wrong[0] + 2}. Use --clip to move them to the nearest bound."
        )
    return array("d", [min(max(value, least), most) + 0.0 for value in values])


def _values(count: int) -> str:
    return f"{count:,} values" if count > 1 else "1 value"


def _few(names: Sequence[str]) -> str:
    """Some of the names, for a message of one line."""
    listed = ", ".join(_plain(name) for name in names[:8])
    return f"{listed} and {len(names) - 8:,} others" if len(names) > 8 else listed or "none"


def _plain(text: str) -> str:
    clean = "".join(sign if sign.isprintable() else "?" for sign in text[:40])
    return clean if len(text) <= 40 else clean + "..."
