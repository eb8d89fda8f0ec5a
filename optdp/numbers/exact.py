"""Exact numbers and rigorous balls: how decimals come in and how claims go out.

Numbers that a user writes are rationals: `"0.1"` is one tenth, a Python float is the binary fraction that it is.
Transcendental values (`e^eps`, logarithms) are balls of `python-flint`: a midpoint with a radius that is proved to
cover the true value. A claim leaves as a decimal string rounded to the private side.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from operator import index
from typing import Any, TypeVar

import flint
from flint import arb, fmpq, fmpz

from optdp.errors import ProblemError

PRECISION = 256  # bits of working precision for balls; far beyond what any claim needs

Number = int | float | str | Fraction | Decimal
T = TypeVar("T")

_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_RATIO = re.compile(r"[+-]?[0-9]{1,400}/[0-9]{1,400}")


def to_fraction(value: Number, name: str) -> Fraction:
    """The rational number that `value` is; refuses what is not finite and what would take forever to read."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Fraction | Decimal):
        raise ProblemError(f'{name} must be a number. Found {value!r}. Write a decimal or a fraction such as "1/3".')
    if isinstance(value, str):
        text = value.strip()
        if not _DECIMAL.fullmatch(text) and not _RATIO.fullmatch(text):
            shown = text if len(text) <= 40 else text[:37] + "..."
            raise ProblemError(f'{name} must be a decimal or a fraction. Found {shown!r}. Write "0.3" or "3/10".')
        if "/" in text and int(text.split("/")[1]) == 0:
            raise ProblemError(f"{name} must not have the denominator 0. Found {text!r}.")
        if abs(int(re.split("[eE]", text)[1]) if re.search("[eE]", text) else 0) > 1000:
            raise ProblemError(f"{name} must have an exponent between -1000 and 1000. Found {text[:40]!r}.")
        return Fraction(text)
    if isinstance(value, int) and value.bit_length() > 4000:
        raise ProblemError(f"{name} must be a number of at most 4000 bits. Found one with {value.bit_length()}.")
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise ProblemError(f"{name} must be finite. Found {value}.")
    if isinstance(value, Decimal) and abs(value.adjusted()) > 1000:
        raise ProblemError(f"{name} must have an exponent between -1000 and 1000. Found {value}.")
    return Fraction(value)


def show(value: Fraction) -> str:
    """A rational as the shortest string that reads back as itself: a decimal if it has one, else a fraction."""
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    digits = max(twos, fives)
    if rest != 1 or digits > 1000:
        return f"{value.numerator}/{value.denominator}"
    scaled = value.numerator * 10**digits // value.denominator
    if digits > 60:
        return f"{scaled}e-{digits}"
    text = f"{abs(scaled):0{digits + 1}d}"
    text = f"{text[:-digits]}.{text[-digits:]}" if digits else text
    return f"-{text}" if scaled < 0 else text


def shown(value: object) -> str:
    """Any value for a message of one line, however large or deep."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # too deep, or an integer of too many digits
        return f"a very large {type(value).__name__}"
    text = "".join(sign if sign.isprintable() else "?" for sign in text[:60])
    return text if len(text) < 60 else text[:57] + "..."


def check_whole(value: object, name: str, least: int, most: int = 10**15) -> None:
    """Refuse what is not a whole number between two ends."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProblemError(f"{name} must be a whole number. Found {shown(value)}.")
    if not least <= value <= most:
        raise ProblemError(f"{name} must be from {least:,} to {most:,}. Found {shown(value)}.")


def there(value: T | None) -> T:
    """A value that its problem must state by now; whether it does was checked when the problem was made."""
    assert value is not None
    return value


def is_boolean(value: object) -> bool:
    """Whether a value, or one in a list, is True or False, which Python takes for 1 and 0; also numpy's."""
    if isinstance(value, list | tuple):
        return any(map(is_boolean, value))
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def whole_input(value: Any) -> int:
    """An input of a mechanism, of any type of whole numbers; the message does not tell it."""
    if not is_boolean(value):
        with suppress(TypeError):
            return index(value)
    raise ProblemError(f"An input must be a whole number. Found the type {type(value).__name__}.")


def check_between(value: object, name: str, least: float, most: float) -> None:
    """Refuse what is not a number between two ends, which belong to what is allowed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ProblemError(f"{name} must be a number from {least:g} to {most:g}. Found {shown(value)}.")


def significant(value: Fraction, digits: int = 60) -> Fraction:
    """`value` rounded to so many significant decimal digits; what is below 1e-900 becomes zero."""
    if value == 0:
        return value
    size = len(str(abs(value.numerator))) - len(str(value.denominator))
    if size < -900:
        return Fraction(0)
    scale = Fraction(10) ** (digits - size)
    return Fraction(round(value * scale)) / scale


def ball(value: Fraction | int) -> arb:
    """The ball of a rational at the current precision."""
    if isinstance(value, int):
        return arb(fmpz(value))
    return arb(fmpq(value.numerator, value.denominator))


@contextmanager
def precision(bits: int = PRECISION) -> Iterator[None]:
    """A context in which balls carry `bits` bits: `with precision(): ...`."""
    with flint.ctx.workprec(bits):
        yield


def ceiling(value: arb) -> int:
    """The smallest integer proved to be at least `value`."""
    whole = value.upper().ceil().unique_fmpz()
    if whole is None:
        raise ArithmeticError("A ball without bounds has no ceiling.")
    return int(whole)


def floor_scaled(value: arb, bits: int) -> int:
    """The largest integer proved to be at most `value * 2^bits`."""
    return -ceiling(-(value * arb(2) ** bits))


def ceil_scaled(value: arb, bits: int) -> int:
    """The smallest integer proved to be at least `value * 2^bits`."""
    return ceiling(value * arb(2) ** bits)


def upper_fraction(value: arb, bits: int = 128) -> Fraction:
    """A rational that is at least `value`."""
    return Fraction(ceil_scaled(value, bits), 1 << bits)


def lower_fraction(value: arb, bits: int = 128) -> Fraction:
    """A rational that is at most `value`."""
    return Fraction(floor_scaled(value, bits), 1 << bits)


def decimal_up(value: Fraction, digits: int = 20) -> str:
    """A decimal with `digits` places that is at least `value`."""
    return show(Fraction(-((-value.numerator * 10**digits) // value.denominator), 10**digits))


def decimal_down(value: Fraction, digits: int = 20) -> str:
    """A decimal with `digits` places that is at most `value`."""
    return show(Fraction((value.numerator * 10**digits) // value.denominator, 10**digits))


def figure(value: Fraction) -> Fraction:
    """A proved upper bound as it is compared: rounded up to 30 decimals, so that no bit of its arithmetic decides."""
    return Fraction(math.ceil(value * 10**30), 10**30)


def geometric_ratio(epsilon: Fraction) -> Fraction:
    """The `q` of geometric noise: a dyadic rational at least `e^-epsilon`: more noise rather than less."""
    bits = 64 + math.ceil(float(epsilon) * 1.4427)
    with precision(bits + 128):
        return upper_fraction((-ball(epsilon)).exp(), bits)


def exp_bounds(epsilon: Fraction, bits: int = 192) -> tuple[Fraction, Fraction]:
    """Rationals below and above `e^epsilon`."""
    with precision(bits + 64 + math.ceil(abs(float(epsilon)) * 1.4427)):
        value = ball(epsilon).exp()
        return lower_fraction(value, bits), upper_fraction(value, bits)


def log_upper(ratio: Fraction) -> Fraction:
    """A rational that is at least `log(ratio)`."""
    with precision():
        return upper_fraction(ball(ratio).log(), 160)


def log_of(value: Fraction) -> float:
    """The logarithm in floating point of a number from 0 to 1, also of one that is too small for a float itself."""
    near = float(value)
    return math.log(near) if near else math.log(value.numerator) - math.log(value.denominator)


def up(value: Fraction) -> float:
    """The float next to a number, not below it."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def down(value: Fraction) -> float:
    """The float next to a number, not above it."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def finite(value: float) -> float | None:
    """A number as JSON can say it: None for an infinite one."""
    return value if math.isfinite(value) else None


def log(value: float | Fraction) -> float:
    """The natural logarithm, rounded correctly but for a negligible chance; those of 0 and infinity are infinite."""
    if value <= 0 or value == math.inf:
        return -math.inf if value <= 0 else math.inf
    with precision(128):
        return float((arb(value) if isinstance(value, float) else ball(value)).log().mid())
