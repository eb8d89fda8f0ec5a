"""A sampler in C99: a header and a source file; getrandom, nothing allocated, integers only."""

from __future__ import annotations

from optdp.export.sampler import Sampler
from optdp.export.subject import Subject
from optdp.export.text import block, filled, head, numbers, single_numbers


def sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.c` and `sampler.h`."""
    made = Sampler.of(subject)
    lists = {name: numbers(entries) for name, entries in made.lists().items()}
    values = single_numbers(made.laid) | lists | {"DIGEST": made.digest, "CHECKSUM": made.checksum()}
    values |= {"HEAD": block(head(subject, made.laid, " *"))}
    return {name: filled(f"{name}.in", values).encode("ascii") for name in ("sampler.c", "sampler.h")}
