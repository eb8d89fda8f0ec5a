"""What a problem demands and what a claim states, against what was recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .enclosures import log_above, within
from .fields import exact_number
from .verdict import Failed, must


def demand(name: str, ratio: Fraction | None, epsilon: Fraction, factor: Fraction | int) -> None:
    """A quotient must keep what the problem asks for; `factor` steps of it make an epsilon."""
    if not within(ratio, epsilon / factor):
        raise Failed(f"{name} must be at most {as_decimal(epsilon)}. Found {as_decimal(epsilon_of(ratio, factor))}.")


def epsilon_of(ratio: Fraction | None, factor: Fraction | int) -> Fraction | None:
    log = log_above(ratio)
    return None if log is None else log * factor


def _stated(claim: Mapping[str, Any], name: str) -> Fraction:
    text = claim.get(name)
    must(isinstance(text, str), f"The claim must state {name} as text", text)
    value = exact_number(text, name)
    must(abs(value) <= 10**300, f"The claim must state {name} as a number of a usual size", text)
    return value


def claimed_epsilon(claim: Mapping[str, Any], name: str, ratio: Fraction | None, factor: Fraction | int) -> None:
    if name == "ordinary_epsilon" and claim.get(name) == "infinite":
        return
    limit = _stated(claim, name)
    if not within(ratio, limit / factor):
        found = as_decimal(epsilon_of(ratio, factor))
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {found}.")


def claimed(claim: Mapping[str, Any], name: str, found: Fraction) -> None:
    if found > _stated(claim, name):
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {as_decimal(found)}.")


def as_decimal(value: Fraction | None, digits: int = 15) -> str:
    """At least `value`, with so many significant digits."""
    if value is None:
        return "infinite"
    if value == 0:
        return "0"
    places = digits - (len(str(abs(value.numerator) // value.denominator)) if abs(value) >= 1 else 0)
    while abs(value) * 10**places < 10 ** (digits - 1) and places < 400:
        places += 1
    scaled = -(-value.numerator * 10 ** max(places, 0) // value.denominator)
    text = f"{abs(scaled):0{max(places, 0) + 1}d}"
    if places > 0:
        text = f"{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".")
    return "-" + text if scaled < 0 else text
