"""Numbers as a reader sees them: what is promised is rounded up, what is left is rounded down."""

from __future__ import annotations

import math
from fractions import Fraction

from optdp.math.exact import decimal_down, decimal_up, exp_bounds

LARGE = 10**6


def at_most(value: Fraction, digits: int = 4) -> str:
    """A decimal that is at least `value`, with more places for what is tiny."""
    places = digits
    while 0 < value < Fraction(10) ** (2 - places) and places < 12:
        places += 1
    return _plain(decimal_up(value, places)) if value < LARGE else f"{float(value):.3e}"


def at_least(value: Fraction, digits: int = 4) -> str:
    """A decimal that is at most `value`."""
    return _plain(decimal_down(value, digits)) if value < LARGE else f"{float(value):.3e}"


def epsilon(value: Fraction | None) -> str:
    """An epsilon, rounded up; None is infinite."""
    return "infinite" if value is None else at_most(value)


def odds_factor(value: Fraction) -> str:
    """`e^value` for people who think in odds, rounded up."""
    factor = exp_bounds(value)[1]
    if factor < Fraction(11, 10):
        return _plain(decimal_up(factor, 4))
    if factor < 100:
        return _plain(decimal_up(factor, 2))
    if factor < LARGE:
        return f"{math.ceil(factor):,}"
    for size, name in ((10**6, "million"), (10**9, "billion"), (10**12, "trillion")):
        if factor < 1000 * size:
            return f"{_plain(decimal_up(factor / size, 2))} {name}"
    return f"10^{len(str(math.ceil(factor)))}"


def belief(before: Fraction, value: Fraction) -> tuple[str, str]:
    """The least and the largest belief after a release, in percent, if odds move by at most `e^value`."""
    factor = exp_bounds(min(value, Fraction(60)))[1]
    least = before / (before + (1 - before) * factor)
    most = before * factor / (before * factor + 1 - before)
    return f"{percent_down(least)} %", f"{percent_up(most)} %"


def percent_up(share: Fraction) -> str:
    return _plain(decimal_up(share * 100, 1))


def percent_down(share: Fraction) -> str:
    return _plain(decimal_down(share * 100, 1))


def less(error: Fraction, baseline: Fraction, name: str = "geometric noise") -> str:
    """How far an error lies below that of a baseline, in words; an improvement is rounded down."""
    if not baseline or error >= baseline:
        return f"not below {name}"
    share = (1 - error / baseline) * 100
    shown = decimal_down(share, 0 if share < 99 else 2)
    return f"less than 1 % below {name}" if shown == "0" else f"{shown} % below {name}"


def short(value: Fraction) -> str:
    """A number as somebody would write it, where nothing is promised about it."""
    return f"{float(value):.6g}"


def people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"


def _plain(text: str) -> str:
    whole, _, rest = text.partition(".")
    return f"{int(whole):,}" + (f".{rest}" if rest else "")
