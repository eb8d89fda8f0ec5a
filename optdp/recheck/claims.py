"""What a problem demands and what a claim states, against what was recomputed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .enclosures import log_above
from .fields import exact_number
from .verdict import Failed, must


def figure(value: Fraction) -> Fraction:
    """A figure as it is compared: rounded up to 30 decimals, so that no bit of its arithmetic decides."""
    return Fraction(math.ceil(value * 10**30), 10**30)


def exceeds(found: Fraction | None, limit: Fraction) -> bool:
    return found is None or figure(found) > limit


def demand(name: str, ratio: Fraction | None, epsilon: Fraction, factor: Fraction | int) -> None:
    """A quotient must keep what the problem asks for; `factor` steps of it make an epsilon."""
    found = epsilon_of(ratio, factor)
    if exceeds(found, epsilon):
        raise Failed(f"{name} must be at most {as_decimal(epsilon)}. Found {as_decimal(found)}.")


def epsilon_of(ratio: Fraction | None, factor: Fraction | int) -> Fraction | None:
    log = log_above(ratio)
    return None if log is None else log * factor


def check_keys(claim: Mapping[str, Any], known: str) -> None:
    """A claim must not be about something that nobody recomputes."""
    must(claim.keys() <= set(known.split()), f"A claim must be of {known}", sorted(claim))
    must(type(claim.get("never_worse", False)) is bool, "never_worse must be true or false", claim.get("never_worse"))


def stated(claim: Mapping[str, Any], name: str) -> Fraction:
    text = claim.get(name)
    must(isinstance(text, str), f"The claim must state {name} as text", text)
    value = exact_number(text, name)
    must(abs(value) <= 10**300, f"The claim must state {name} as a number of a usual size", text)
    return value


def claimed_epsilon(claim: Mapping[str, Any], name: str, ratio: Fraction | None, factor: Fraction | int) -> None:
    if name == "ordinary_epsilon" and claim.get(name) == "infinite":
        return
    limit, found = stated(claim, name), epsilon_of(ratio, factor)
    if exceeds(found, limit):
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {as_decimal(found)}.")


def claimed_observed(claim: Mapping[str, Any], ratios: Sequence[Fraction | None], factor: int) -> None:
    """With several observers a claim states the epsilon of each."""
    listed = claim.get("observed")
    right = isinstance(listed, list) and len(listed) == len(ratios)
    must(right, "The claim must state observed, an epsilon for each observer", listed)
    for i, (text, ratio) in enumerate(zip(listed or [], ratios, strict=True), 1):
        name = f"observed, of observer {i},"
        claimed_epsilon({name: text}, name, ratio, factor)


def claimed(claim: Mapping[str, Any], name: str, found: Fraction) -> None:
    limit = stated(claim, name)
    if exceeds(found, limit):
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {as_decimal(found)}.")
    if name == "baseline_mae" and limit > found + (1 + found) / 10**12:  # more would flatter the table beside it
        raise Failed(f"the claim baseline_mae must be the error of geometric noise, {as_decimal(found)}.")


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
