"""What a search may spend: seconds of an ordinary machine, counted by the work that was done.

By the clock a busy machine would end a search at an earlier step, and the same problem would give another order. So
each step is charged what it takes on an ordinary machine, and the search ends at the same step everywhere. The clock
is for machines that are hopelessly slow: after `PATIENCE` times the budget and `GRACE` seconds a search ends anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter as now

PATIENCE, GRACE = 10.0, 5.0


@dataclass
class Budget:
    """Seconds that may be spent, and those that were."""

    seconds: float
    spent: float = 0.0
    begun: float = field(default_factory=lambda: now())
    end: float | None = None
    """When the clock ends it."""

    def __post_init__(self) -> None:
        if self.end is None:
            self.end = self.begun + PATIENCE * self.seconds + GRACE

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
