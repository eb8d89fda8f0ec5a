"""Columns of a CSV file: UTF-8, commas, a header, as many cells in every row as in the header.

An empty line may stand at the end only: elsewhere nobody knows whether it is a record. Numbers are read as the floats
that they are next to, as every reader of CSV does.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from .reading import read_bytes
from .verdict import LONG_BYTES, Refused, must, printable, spend


def read_columns(path: str, names: Sequence[str] | None) -> dict[str, list[str]]:
    """The cells of the named columns, or of the only two that there are."""
    try:
        data = read_bytes(path, LONG_BYTES)
        spend(len(data) // 10, 0)
        text = data.decode("utf-8-sig")
        must("\0" not in text, "Data must be text", "a zero byte")
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = [name.strip() for name in next(rows, [])]
        must(any(header) and len(set(header)) == len(header), "A header must name the columns, each once", header)
        if names is None:
            must(len(header) == 2, "An edge list must have two columns", header)
            digits = all(name.lstrip("-").isdigit() for name in header)
            must(not digits and "\n" not in "".join(header), "An edge list must begin with a header", header)
            names = header
        wanted = [name.strip() for name in names]
        must(len(wanted) > 0 and len(set(wanted)) == len(wanted), "Columns must be named, and differ", wanted)
        must(set(wanted) <= set(header), "The columns must be there", wanted)
        places = [header.index(name) for name in wanted]
        found: list[list[str]] = [[] for _ in wanted]
        ended = False
        for row in rows:
            if not row:
                ended = True
                continue
            must(not ended and len(row) == len(header), "A row must have as many cells as the header", row)
            for cells, place in zip(found, places, strict=True):
                cells.append(row[place])
    except (csv.Error, UnicodeDecodeError) as error:
        raise Refused(f"{printable(path)}: must be a CSV file in UTF-8. Found {type(error).__name__}.") from None
    must(len(found[0]) > 0, "Data must have a row for each record", 0)
    return dict(zip(wanted, found, strict=True))


def real_numbers(cells: Sequence[str], name: str, largest: float) -> list[float]:
    """Finite numbers of at most that size; no minus zero."""
    found = []
    for cell in cells:
        try:
            value = math.nan if "_" in cell else float(cell)  # Python reads 1_000 as a number, people do not
        except ValueError:
            value = math.nan
        must(abs(value) <= largest, f"{name} must be numbers of at most {largest:g}", cell)
        found.append(value + 0.0)
    return found


def record_numbers(cells: Sequence[str], name: str, most: int) -> list[int]:
    found = []
    for value in real_numbers(cells, name, 2.0**53 - 1):
        must(value == int(value) and 0 <= value < most, f"{name} must be records 0..{most - 1}", value)
        found.append(int(value))
    return found
