"""Grids: what `--grid` says, the points of the product, and the problem at each of them.

    epsilon=0.1:1:10            ten places from 0.1 to 1, evenly spaced, both ends included, in exact arithmetic
    epsilon=log:0.01:10:7       seven places, evenly spaced on a logarithmic scale
    population.p=0.1,0.5        these values; words as well: method=lp,shifting

    backend=highs,clarabel      whoever solves the linear programs; no key of the problem

A value goes into the problem as the decimal that it is. Between the ends of a logarithmic grid that is the place
rounded to 6 significant digits, or to a whole number where both ends are whole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from operator import index
from typing import Any

from pydantic import ValidationError

from optdp.errors import ProblemError
from optdp.files.models import file_model
from optdp.kinds import KINDS, problem_class
from optdp.numbers.exact import show, shown, to_fraction
from optdp.programs.backends import find

MOST_POINTS = 1_000_000
LONGEST_VALUE = 200
LOG_DIGITS = 6
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FORM = "Write epsilon=0.1:1:10 (first:last:count), epsilon=log:0.01:10:7, or epsilon=0.1,0.5."

Value = int | str | bool
"""What a problem file can hold at one place: whole numbers, truths, decimals as text, words."""


@dataclass(frozen=True)
class Grid:
    """The values that each key takes; a point takes one of each, the last key moving fastest."""

    values: Mapping[str, tuple[Value, ...]]

    def __post_init__(self) -> None:
        if not self.values:
            raise ProblemError(f"A sweep needs a grid. Found none. {_FORM}")
        for key, values in self.values.items():
            if not all(key.split(".")):
                raise ProblemError(f"A grid moves a key of the problem, such as population.p. Found {shown(key)}.")
            if not values:
                raise ProblemError(f"The grid of {key} must have a value. Found none. {_FORM}")
        if len(self) > MOST_POINTS:
            sizes = " x ".join(f"{len(values):,}" for values in self.values.values())
            raise ProblemError(
                f"A sweep may have {MOST_POINTS:,} points. Found {sizes} = {len(self):,}. Thin the grid."
            )

    def __len__(self) -> int:
        return math.prod(len(values) for values in self.values.values())

    def __iter__(self) -> Iterator[dict[str, Value]]:
        for point in product(*self.values.values()):
            yield dict(zip(self.values, point, strict=True))

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Grid:
        """What the command line says."""
        values: dict[str, tuple[Value, ...]] = {}
        for text in texts:
            key, equals, given = (part.strip() for part in text.partition("="))
            if not equals or not key or not given:
                raise ProblemError(f"--grid must be key=values. Found {shown(text)}. {_FORM}")
            if key in values:
                raise ProblemError(f"Each key has one grid. Found two of {shown(key)}. Put all values into one.")
            values[key] = _spread(key, given) if ":" in given else tuple(_value(key, part) for part in given.split(","))
        return cls(values)

    @classmethod
    def of(cls, values: Mapping[Any, Any]) -> Grid:
        """What Python says: a text is read as in a file, a float is the binary fraction that it is."""
        found: dict[str, tuple[Value, ...]] = {}
        for key, given in values.items():
            if not isinstance(key, str) or isinstance(given, str) or not isinstance(given, Iterable):
                raise ProblemError(f"A grid maps keys to lists of values. Found {shown(key)}: {shown(given)}.")
            found[key] = tuple(_plain(key, value) for value in given)
        return cls(found)


def _spread(key: str, text: str) -> tuple[Value, ...]:
    """The places of `first:last:count`."""
    parts = text.split(":")
    logarithmic = parts[0].strip() == "log"
    if len(parts) != 3 + logarithmic:
        raise ProblemError(f"The grid of {key} must be first:last:count. Found {shown(text)}. {_FORM}")
    first, last = (to_fraction(part[:LONGEST_VALUE], f"An end of the grid of {key}") for part in parts[-3:-1])
    size = parts[-1].strip()
    if not re.fullmatch(r"[0-9]{1,9}", size) or int(size) < 1 or (int(size) == 1 and first != last):
        raise ProblemError(f"The grid of {key} needs a count of 2 or more. Found {shown(size)}. {_FORM}")
    if int(size) > MOST_POINTS:
        raise ProblemError(f"A sweep may have {MOST_POINTS:,} points. Found {int(size):,} for {key}. Thin the grid.")
    steps = max(int(size) - 1, 1)
    if logarithmic:
        places = _logarithmic(key, first, last, steps)
    else:
        places = [first + (last - first) * i / steps for i in range(int(size))]
    return tuple(number(place) for place in places)


def _logarithmic(key: str, first: Fraction, last: Fraction, steps: int) -> list[Fraction]:
    """`first (last/first)^(i/steps)`, rounded; places that round to the same number once."""
    if not (first > 0 and last > 0):
        raise ProblemError(f"The ends of a logarithmic grid must be positive. Found {key} from {show(first)}.")
    whole = first.denominator == last.denominator == 1
    with localcontext() as context:
        context.prec = 60
        low, high = (Decimal(end.numerator) / Decimal(end.denominator) for end in (first, last))
        inner = [low * (high / low) ** (Decimal(i) / steps) for i in range(1, steps)]
        digits = [f"{place:.0f}" if whole else f"{place:.{LOG_DIGITS - 1}e}" for place in inner]
    return list(dict.fromkeys([first, *map(Fraction, digits), last]))


def _value(key: str, text: str) -> Value:
    """A value as a problem file would have it: decimals and words stay the text that they are."""
    text = text.strip()
    if not text:
        raise ProblemError(f"The grid of {key} must have a value between its commas. Found none. {_FORM}")
    if len(text) > LONGEST_VALUE or not text.isprintable():
        raise ProblemError(f"A value of a grid is a number or a word. Found {shown(text)} for {key}.")
    return int(text) if _WHOLE.fullmatch(text) else {"true": True, "false": False}.get(text, text)


def _plain(key: str, value: Any) -> Value:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _value(key, value)
    try:
        return index(value)
    except TypeError:
        return number(to_fraction(value, f"A value of the grid of {key}"))


def number(value: Fraction) -> int | str:
    """A number as a problem file can hold it."""
    return value.numerator if value.denominator == 1 else show(value)


def column(values: tuple[Value, ...]) -> dict[Value, int | float | str | bool]:
    """The values as a column of a table has them: all whole, or all floats; words are text.

    A float is the one nearest to the exact number.
    """
    kinds = {type(value) for value in values}
    if kinds in ({int}, {bool}):
        return {value: value for value in values}
    try:
        return {value: float(to_fraction(value, "")) for value in values}
    except (ProblemError, OverflowError):
        return {value: str(value).lower() if isinstance(value, bool) else str(value) for value in values}


# ---------------------------------------------------------------------- the problem at a point

DESCRIPTION = ("title", "source", "notes", "expect", "sweep")
"""What a file says besides its problem."""


BACKEND = "backend"
"""The key of a grid that names no entry of the problem, but who solves it."""


def base_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The problem alone."""
    return {key: value for key, value in data.items() if key not in DESCRIPTION}


def put(base: Mapping[str, Any], point: Mapping[str, Value]) -> dict[str, Any]:
    """The problem with the values of a point in their places."""
    data: dict[str, Any] = deepcopy(dict(base))
    for key, value in point.items():
        if key == BACKEND:
            data[key] = value
            continue
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
    """Refuse keys that this kind of problem does not know, and unknown backends, before any work; other values are the
    points' own affair."""
    if BACKEND in grid.values:
        if not KINDS[base["kind"]].linear:
            able = " and ".join(kind.name for kind in KINDS.values() if kind.linear)
            raise ProblemError(f"Backends are for {able}. Found a grid of them for {base['kind']}: leave it out.")
        for value in grid.values[BACKEND]:
            find(str(value))
    for key in grid.values:
        if key.split(".")[0] in (*DESCRIPTION, "kind"):
            raise ProblemError(f"A grid moves a number or a word of the problem. Found {key!r}, which is neither.")
    first = {key: value for key, value in next(iter(grid)).items() if key != BACKEND}
    try:
        file_model(problem_class(KINDS[base["kind"]])).model_validate(put(base, first))
    except ValidationError as error:
        for defect in error.errors(include_url=False):
            if defect["type"] == "extra_forbidden":
                named = ".".join(str(step) for step in defect["loc"])
                last = str(defect["loc"][-1])
                key = next((key for key in grid.values if key.split(".")[-1] == last), named)
                raise ProblemError(f"Unknown key {key!r}. Check its spelling; see: optdp schema.") from None
