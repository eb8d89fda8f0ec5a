"""How much work a file may ask for, counted before it is done.

A few kilobytes, right in form, can ask for hours: a thousand parties, a million inputs, every quotient of a thousand
secrets. Whoever opens a file of somebody else does so within `limited()`. Then what is about to be computed is
announced by `spend`, and refused if all that was announced exceeds the limit. A step is an operation of two balls,
about a microsecond; counts, not clocks, so that a file is refused on every machine or on none. Elsewhere `spend` does
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from optdp.errors import ArtifactError, ProblemError

PATIENCE = 30.0
"""Seconds of work that a file may ask for, unless said otherwise: more than the library of problems needs."""
STEPS = 1_000_000
"""Steps of a second."""

_left: ContextVar[list[float] | None] = ContextVar("left", default=None)


class EffortError(ArtifactError):
    """A file asks for more work than is done unasked."""


@contextmanager
def limited(seconds: float = PATIENCE) -> Iterator[None]:
    """A context in which files may ask for about so many seconds of work: `with limited(1): verify(path)`."""
    if not seconds > 0:
        raise ProblemError(f"patience must be a number of seconds above 0. Found {seconds}.")
    token = _left.set([seconds * STEPS, seconds])
    try:
        yield
    finally:
        _left.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """A context for work that may fail without harm: it may take what is left, and takes nothing of it away."""
    found = _left.get()
    token = _left.set(None if found is None else list(found))
    try:
        yield
    finally:
        _left.reset(token)


def left() -> float:
    """How many steps may still be taken."""
    found = _left.get()
    return float("inf") if found is None else found[0]


def spend(steps: float, what: str) -> None:
    """Announce that `what` will take so many steps, and refuse it if that is too much."""
    found = _left.get()
    if found is None:
        return
    if steps > found[0]:  # not charged: whoever can do without goes on with what is left
        asked = found[1] + (steps - found[0]) / STEPS
        raise EffortError(
            f"A file may ask for about {found[1]:,.9g} seconds of work. Found {asked:,.3g} or more, most recently for "
            f"{what}. If you know who made it and can wait, write: optdp --patience SECONDS, and then the command "
            "(in Python, limited(SECONDS))."
        )
    found[0] -= steps


def product_steps(one: int, other: int) -> float:
    """What it takes to multiply two polynomials of so many coefficients, whose sizes may differ widely."""
    return 6.0 * (one + other) + 0.008 * one * other
