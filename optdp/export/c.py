"""A sampler in C99: a header and a source file; getrandom, nothing allocated, integers only."""

from __future__ import annotations

from optdp.export.sampler import Sampler
from optdp.export.subject import Subject
from optdp.export.text import block, filled, head, numbers, pieces, single_numbers

MOVE = """\
    int64_t centre = 0;
    int moving = moved(x, first, word, state, &centre);
    if (moving != SAMPLER_OK)
        return moving;
"""
"""The steps of a draw that a contraction adds."""


def sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.c` and `sampler.h`."""
    made = Sampler.of(subject)
    lists = {name: numbers(entries) for name, entries in made.lists().items()}
    values = single_numbers(made.laid) | lists | {"DIGEST": made.digest, "CHECKSUM": made.checksum()}
    values |= {"HEAD": block(head(subject, made.laid, " *"))}
    values |= pieces(made.laid, "moved.c.in", "centre") | {"MOVE": MOVE if made.laid.drawing.moves else ""}
    return {name: filled(f"{name}.in", values).encode("ascii") for name in ("sampler.c", "sampler.h")}
