"""One account of work, counted and not timed, so that a file is refused and a search ends at the same step everywhere.

**Files.** A few kilobytes, right in form, can ask for hours: a thousand parties, a million inputs, every quotient of a
thousand secrets. Whoever opens a file of somebody else does so within `limited()`. Then what is about to be computed is
announced by `spend`, and refused if all that was announced exceeds the limit. A step is an operation of two balls,
about a microsecond. Elsewhere `spend` does nothing.

**Searches for orders.** By the clock a busy machine would end a search at an earlier step, and the same problem would
give another order. So each step is charged what it takes on an ordinary machine (`Budget`). The clock is for machines
that are hopelessly slow: after `SLOWEST` times the budget and `GRACE` seconds a search ends anyway.

**Searches for plans** count rows of iterations of the simplex method (`Effort`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter as now
from typing import TypeVar

from optdp import work
from optdp.errors import ArtifactError, ProblemError

PATIENCE = 30.0
"""Seconds of work that a file may ask for, unless said otherwise: more than the library of problems needs."""
STEPS = 1_000_000  # steps of a second

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
            f"This file needs {asked:,.3g} seconds of work or more, most recently for {what}; the limit is about "
            f"{found[1]:,.9g}. If you trust its source and can wait, raise the limit: optdp --patience SECONDS, "
            "followed by the command (in Python: limited(SECONDS))."
        )
    found[0] -= steps


def product_steps(one: int, other: int) -> float:
    """What it takes to multiply two polynomials of so many coefficients, whose sizes may differ widely."""
    return 6.0 * (one + other) + 0.008 * one * other


SLOWEST, GRACE = 10.0, 5.0
RECORDS, MEMBERS, PARTS = 10_000, 1_000_000, 1_000
"""What is quick for so many records, members of groups or components is charged for those beyond."""


def beyond(records: int, members: int, each: tuple[float, float, float], parts: int = 0) -> float:
    """Seconds for what takes so long for each record, each member of a group and each component."""
    counts = (records - RECORDS, members - MEMBERS, parts - PARTS)
    return sum(seconds * max(count, 0) for seconds, count in zip(each, counts, strict=True))


@dataclass
class Budget:
    """Seconds that may be spent, and those that were."""

    seconds: float
    spent: float = 0.0
    begun: float = field(default_factory=lambda: now())
    end: float | None = None  # when the clock ends it

    def __post_init__(self) -> None:
        if self.end is None:
            self.end = self.begun + SLOWEST * self.seconds + GRACE

    @property
    def left(self) -> float:
        """Seconds that are not spent yet."""
        return max(self.seconds - self.spent, 0.0)

    @property
    def share(self) -> float:
        """The share that is spent: 1 once nothing is left."""
        if self.left == 0.0 or (self.end is not None and now() > self.end):
            return 1.0
        return self.spent / self.seconds

    def spend(self, seconds: float) -> None:
        """Charge a step."""
        self.spent += seconds

    def part(self, seconds: float) -> Budget:
        """A budget of its own for a part of the search; the clock ends both at once."""
        return Budget(seconds, end=self.end)


def power_steps(length: int, count: int) -> float:
    """What a power takes by squaring: a few products, the last of which is the longest."""
    return 1.4 * product_steps(length * count // 2, length * count // 2)


UNITS = 5_000_000  # units of work (`Effort`) of a second
PRODUCTS, LONG_PRODUCTS = 150, 35
"""Products of a convolution that take as long as a unit of work, and of one of long doubles."""


@dataclass
class Effort:
    """The work of a search for a plan, counted and not timed, so that every machine ends it at the same step.

    A unit is one row of one iteration of the simplex method.
    """

    spent: int = 0
    most: float = math.inf  # what may be spent

    def convolved(self, products: int, long: bool) -> None:
        """So many products were added up."""
        self.spent += products // (LONG_PRODUCTS if long else PRODUCTS)

    @property
    def over(self) -> bool:
        return self.spent > self.most


Item = TypeVar("Item")

PAUSE = 1.0  # seconds between two words


def paced(items: Sequence[Item], what: str, progress: Callable[[str], None]) -> Iterator[Item]:
    """The items one by one; meanwhile `progress` hears how far it is, if that takes long."""
    said = time.monotonic()
    for done, item in enumerate(items):
        if done % 256 == 0:
            work.check()
            now = time.monotonic()
            if now - said > PAUSE:
                said = now
                progress(f"{what}: {done / len(items):.0%}")
        yield item
