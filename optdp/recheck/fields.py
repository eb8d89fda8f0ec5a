"""What stands in a file: exact numbers in text, whole numbers, tables with known keys, and choices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .verdict import must

_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE]([+-]?[0-9]{1,4}))?")
_RATIO = re.compile(r"[+-]?[0-9]{1,400}/0*[1-9][0-9]{0,399}")


def exact_number(value: Any, name: str) -> Fraction:
    """The exact number that a problem states: an integer, or a decimal or a fraction in text."""
    if type(value) is int and value.bit_length() <= 4000:
        return Fraction(value)
    text = value.strip() if isinstance(value, str) else ""
    decimal = _DECIMAL.fullmatch(text)
    right = abs(int(decimal[4] or 0)) <= 1000 if decimal else _RATIO.fullmatch(text) is not None
    must(right, f"{name} must be a number such as 3, '0.3' or '3/10'", value)
    return Fraction(text)


def whole_number(value: Any, name: str, least: int, most: int) -> int:
    must(type(value) is int and least <= value <= most, f"{name} must be a whole number {least}..{most}", value)
    return int(value)


def positive(text: Any, name: str) -> int:
    right = isinstance(text, str) and len(text) <= 1300 and re.fullmatch("[1-9][0-9]*", text, re.ASCII) is not None
    must(right and int(text) <= 1 << 4096, f"{name} must be a positive integer up to 2^4096, in text", text)
    return int(text)


def quotient_of(pair: Any, name: str) -> Fraction:
    must(isinstance(pair, list) and len(pair) == 2, f"{name} must be [numerator, denominator]", pair)
    top, bottom = (positive(text, name) for text in pair)
    must(math.gcd(top, bottom) == 1, f"{name} must be in lowest terms", pair)
    return Fraction(top, bottom)


NULL = frozenset(
    {"fallback_epsilon", "weights", "conservative", "n", "honest", "f", "observer", "between", "margin", "epsilon"}
)
"""Keys of a problem that may be null, which is the same as left out, unless they are needed."""


def table_with(table: Any, name: str, needed: str, allowed: str = "") -> dict[str, Any]:
    """A table with the needed keys, and of the others only allowed ones."""
    must(isinstance(table, dict), f"{name} must be a table", table)
    must(set(needed.split()) <= table.keys(), f"{name} must have the keys {needed}", sorted(table))
    extra = table.keys() - set(needed.split()) - set(allowed.split())
    must(not extra, f"{name} must have no other keys", sorted(extra))
    absent = NULL - set(needed.split())  # what may be left out may also be null
    return {key: value for key, value in table.items() if value is not None or key not in absent}


def list_of(value: Any, name: str, least: int = 0) -> list[Any]:
    must(isinstance(value, list) and len(value) >= least, f"{name} must be a list of at least {least}", value)
    return list(value)


def one_of(value: Any, name: str, known: str) -> str:
    must(isinstance(value, str) and value in known.split(), f"{name} must be one of {known}", value)
    return str(value)


def check_epsilons(spec: Mapping[str, Any]) -> tuple[Fraction, Fraction | None]:
    epsilons = [exact_number(spec[key], key) for key in ("epsilon", "fallback_epsilon") if key in spec]
    for value in epsilons:
        must(Fraction(1, 2**40) <= value <= 100, "An epsilon must be from 2^-40 to 100", str(value)[:40])
    fallback = epsilons[1] if len(epsilons) > 1 else None
    must(fallback is None or fallback > epsilons[0], "fallback_epsilon must be larger than epsilon", spec["epsilon"])
    for key in ("title", "source", "notes"):
        must(isinstance(spec.get(key, ""), str), f"{key} must be text", spec.get(key))
    must(isinstance(spec.get("expect", {}), dict), "expect must be a table", spec.get("expect"))
    return epsilons[0], fallback
