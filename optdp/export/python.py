"""A sampler in Python: one file, the standard library alone."""

from __future__ import annotations

from optdp.export.sampler import Sampler
from optdp.export.subject import Subject
from optdp.export.text import filled, head, numbers, pieces, single_numbers


def sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.py`."""
    made = Sampler.of(subject)
    lists = {name: f"({_tuple(numbers(entries))})" for name, entries in made.lists().items()}
    values = single_numbers(made.laid) | lists | {"DIGEST": made.digest, "CHECKSUM": made.checksum()}
    values |= pieces(made.laid, "moved.py.in", "_moved(x, first, word)")
    text = filled("sampler.py.in", values | {"HEAD": head(subject, made.laid, "#")})
    return {"sampler.py": text.encode("ascii")}


def _tuple(text: str) -> str:
    """A comma after the last entry, without which one entry would be no tuple."""
    return text if not text else text[:-1] + ",\n" if text.endswith("\n") else text + ","
