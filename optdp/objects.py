"""How public objects behave: pickled and copied by their fields, shown in one line, and as a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from html import escape
from operator import attrgetter
from typing import Any, ClassVar

LONGEST = 280
"""Characters of a line that shows an object, at most."""


class Public:
    """Base of the public dataclasses.

    What an object has cached (balls, arrays, functions) is left out of pickles and copies, and computed again.
    """

    told: ClassVar[tuple[str, ...]] = ()
    """The attributes that are shown, such as "mae" or "certificate.epsilon"; by default all fields."""
    none: ClassVar[str] = ""
    """What None means as a value, such as "infinite"; nothing is shown of it by default."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):  # otherwise @dataclass writes one of its own, with every number of a table
            cls.__repr__ = Public.__repr__  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in self.__dict__.items() if name in names}

    def __repr__(self) -> str:
        return brief(self)

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in facts(self).items()
        )
        return f'<div class="optdp"><strong>optdp: {type(self).__name__}</strong><table>{rows}</table></div>'


def facts(thing: Public) -> dict[str, str]:
    """What is shown of an object, by name."""
    told = thing.told or tuple(field.name for field in fields(thing) if field.repr)  # type: ignore[arg-type]
    found = {}
    for path in told:
        home, _, name = path.rpartition(".")
        holder = attrgetter(home)(thing) if home else thing
        value = getattr(holder, name)
        text = getattr(holder, "none", "") if value is None else short(value)
        if text:
            found[name] = text
    return found


def brief(thing: Public) -> str:
    """An object in one line: `Solution(status='optimal', mae=0.98, ...)`."""
    text = ", ".join(f"{name}={value}" for name, value in facts(thing).items())
    line = f"{type(thing).__name__}({text}"
    return f"{line})" if len(line) < LONGEST else f"{line[: LONGEST - 4]}...)"


def short(value: object) -> str:
    """A value in a few characters: numbers to six digits, and how many there are of what is long."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 40:
        power = value.bit_length() - 1
        return f"2**{power}" if value == 1 << power else f"about 2**{power}"
    if isinstance(value, Fraction) and value.denominator == 1 and value.numerator.bit_length() <= 40:
        return str(value.numerator)
    if isinstance(value, float | Fraction):
        try:
            return f"{float(value):.6g}"
        except OverflowError:
            return "a very large number"
    if hasattr(value, "shape"):
        return f"array of shape {value.shape}"
    if isinstance(value, tuple | list) and len(value) <= 3:
        text = f"({', '.join(short(item) for item in value)})"
        return text if len(text) <= 120 else f"{len(value)} items"
    if isinstance(value, tuple | list | Mapping):
        return f"{len(value)} items"
    text = " ".join(repr(value).split())
    return text if isinstance(value, Public) or len(text) <= 120 else f"{text[:117]}..."
