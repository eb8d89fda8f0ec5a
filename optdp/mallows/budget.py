"""What a search may spend: seconds of an ordinary machine, counted by the work that was done.

By the clock a busy machine would end a search at an earlier step, and the same problem would give another order. So
each step is charged what it takes on an ordinary machine, and the search ends at the same step everywhere. The clock
is for machines that are much slower: after `PATIENCE` times the budget a search ends in any case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter as now

PATIENCE = 4.0


@dataclass
class Budget:
    """Seconds that may be spent, and those that were."""

    seconds: float
    spent: float = 0.0
    begun: float = field(default_factory=lambda: now())

    @property
    def left(self) -> float:
        """Seconds that are not spent yet."""
        return max(self.seconds - self.spent, 0.0)

    @property
    def share(self) -> float:
        """The share that is spent: 1 once nothing is left."""
        if self.left == 0.0 or now() - self.begun > PATIENCE * self.seconds:
            return 1.0
        return self.spent / self.seconds

    def spend(self, seconds: float) -> None:
        """Charge a step."""
        self.spent += seconds
