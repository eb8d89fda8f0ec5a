"""How much work a file may ask for, counted before it is done.

A few kilobytes, right in form, can ask for hours: a thousand parties, a million inputs, every quotient of a thousand
secrets. Whoever opens a file of somebody else does so within `limited()`. Then what is about to be computed is
announced by `spend`, and refused if all that was announced exceeds STEPS. A step is an operation of two balls, about a
microsecond; counts, not clocks, so that a file is refused on every machine or on none. Elsewhere `spend` does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from optdp.errors import ArtifactError

STEPS = 1_000_000
"""The most steps that are taken for a file without having been asked to be patient."""

_spent: ContextVar[list[float] | None] = ContextVar("spent", default=None)


class EffortError(ArtifactError):
    """A file asks for more work than is done unasked."""


@contextmanager
def limited() -> Iterator[None]:
    """A context in which at most STEPS steps are taken: `with limited(): verify(path)`."""
    token = _spent.set([0.0])
    try:
        yield
    finally:
        _spent.reset(token)


def left() -> float:
    """How many steps may still be taken."""
    spent = _spent.get()
    return float("inf") if spent is None else STEPS - spent[0]


def spend(steps: float, what: str) -> None:
    """Announce that `what` will take so many steps, and refuse it if that is too much."""
    spent = _spent.get()
    if spent is None:
        return
    spent[0] += steps
    if spent[0] > STEPS:
        raise EffortError(
            f"A file may ask for {STEPS:,} steps of work, about a second. Found {spent[0]:,.0f} or more, most recently "
            f"for {what}. If you know who made it and can wait, write: optdp --patient, and then the command."
        )


def product_steps(one: int, other: int) -> float:
    """What it takes to multiply two polynomials of so many coefficients, whose sizes may differ widely."""
    return 6.0 * (one + other) + 0.008 * one * other
