"""What is asked of an order-private shuffle: who is grouped with whom, and how little a group may give away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from optdp.errors import ProblemError
from optdp.math.exact import Number, check_between, show, shown, to_fraction

if TYPE_CHECKING:  # verifying an order needs the names here, and no numpy
    from optdp.mallows.groups import Groups
    from optdp.mallows.study import Study

DISTANCES = ("kendall", "hamming")
_MEANING = (
    "Order privacy: if people of one group exchanged their answers, whatever is released would be at most e^alpha "
    "times more or less likely. It hides who in a group said what, not what was said: randomize the answers first. It "
    "needs an honest shuffler."
)


@dataclass(frozen=True, init=False)
class OrderShuffle:
    """Find the reference order whose largest sensitivity is least, and the shuffle for `alpha`.

    `ordering` is "best", a portfolio within `budget` seconds, or one heuristic by its name.
    """

    groups: Groups
    alpha: Fraction
    distance: str
    ordering: str
    budget: float
    spec: Mapping[str, Any] = field(compare=False)
    """Where the groups come from, as a file says it; empty if they were given."""
    study: Study | None = field(compare=False)
    """What to simulate with the order that is found, if anything."""
    kind: ClassVar[str] = "order-shuffle"
    meaning: ClassVar[str] = _MEANING
    unknown: ClassVar[str] = "sensitivity"

    def __init__(
        self,
        groups: Groups,
        alpha: Number,
        distance: str = "kendall",
        ordering: str = "best",
        budget: float = 60.0,
        spec: Mapping[str, Any] | None = None,
        study: Study | None = None,
    ) -> None:
        from optdp.mallows.groups import Groups
        from optdp.mallows.orderings import ORDERINGS

        if not isinstance(groups, Groups):
            raise ProblemError(f"groups must be Groups, such as Groups.of([[0, 1], [1, 2]], 3). Found {shown(groups)}.")
        exact = to_fraction(alpha, "alpha")
        if not Fraction(1, 10**9) <= exact <= 10**6:
            raise ProblemError(f"alpha must be between 1e-9 and 1e6. Found {shown(alpha)}.")
        if distance not in DISTANCES:
            raise ProblemError(f"distance must be one of {', '.join(DISTANCES)}. Found {shown(distance)}.")
        if ordering != "best" and ordering not in ORDERINGS:
            raise ProblemError(f"ordering must be best or one of {', '.join(ORDERINGS)}. Found {shown(ordering)}.")
        check_between(budget, "budget", 0.0, 1e6)
        values = {
            "groups": groups, "alpha": exact, "distance": distance, "ordering": ordering, "budget": float(budget),
            "spec": dict(spec or {}), "study": study,
        }  # fmt: skip
        if study is not None and len(study.values) != groups.n:
            raise ProblemError(
                f"A study needs a value for each of the {groups.n:,} records. Found {len(study.values):,} values."
            )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        given: dict[str, Any] = {"n": self.groups.n, "alpha": show(self.alpha), "distance": self.distance}
        return given | {"ordering": self.ordering, "budget": self.budget}
