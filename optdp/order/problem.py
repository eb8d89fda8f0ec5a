"""What is asked of an order-private shuffle: who is grouped with whom, and how little a group may reveal."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import field, frozen
from pydantic import StrictInt, StrictStr

from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entries, entry, plain_number
from optdp.numbers.exact import Number, check_between, show, shown, to_fraction
from optdp.order.alphabet import ValuesModel, check_values, number_of_values
from optdp.order.mechanism import DISTANCES, Groups, meaning
from optdp.order.orderings import ORDERINGS
from optdp.order.sources import GroupsModel
from optdp.order.study import Study, StudyModel

if TYPE_CHECKING:
    from optdp.order.solve import OrderSolution  # noqa: F401  # what its problems are solved by


def _alpha(value: Number) -> Fraction:
    exact = to_fraction(value, "alpha")
    if not Fraction(1, 10**9) <= exact <= 10**6:
        raise ProblemError(f"alpha must be between 1e-9 and 1e6. Found {shown(value)}.")
    return exact


def _seconds(value: float | str) -> float:
    budget = plain_number(value, "budget") if isinstance(value, str) else value
    check_between(budget, "budget", 0.0, 1e6)
    return float(budget)


def _source(spec: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(spec or {})


@frozen(eq=False, repr=False)
class OrderShuffle(Problem["OrderSolution"]):
    """Find the reference order that minimizes the largest sensitivity of a group, and the shuffle for `alpha`.

    Parameters
    ----------
    groups : who is grouped with whom.
    alpha : how much a group may reveal.
    distance : "kendall" or "hamming".
    ordering : "best", a portfolio within `budget` seconds, or one heuristic by its name.
    budget : seconds of search for "best".
    spec : where the groups come from, as a file says it; empty if they were given.
    values : how many different values the answers have at most, or the answers themselves, which are counted; None:
        any number. Fewer need less mixing: two about half as much.
    study : what to simulate with the order that is found, if anything.
    title : what files and reports call it.

    Examples
    --------
    >>> from optdp import Groups, OrderShuffle
    >>> OrderShuffle(Groups.of([[0, 1], [1, 2]], 3), alpha=1).distance
    'kendall'
    """

    kind: ClassVar[str] = "order-shuffle"
    unknown: ClassVar[str] = "sensitivity"

    groups: Groups = field(metadata=entry(GroupsModel))
    alpha: Fraction = field(converter=_alpha, metadata=entry(Exact))
    distance: str = field(default="kendall", metadata=entry(StrictStr, "kendall or hamming."))
    ordering: str = field(default="best", metadata=entry(StrictStr, "best, or a heuristic by its name."))
    budget: float = field(default=60.0, converter=_seconds, metadata=entry(Exact, "Seconds for best."))
    spec: Mapping[str, Any] = field(default=None, converter=_source, eq=False)
    values: int | None = field(
        default=None,
        converter=number_of_values,
        metadata=entry(
            StrictInt | ValuesModel | None, "How many different values answers have; or a column to count them in."
        ),
    )
    study: Study | None = field(default=None, eq=False, metadata=entry(StudyModel | None))

    @classmethod
    def from_file(cls, file: Any) -> OrderShuffle:
        return cls(**entries(file, spec=file.groups.spec()))

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.groups, Groups):
            raise ProblemError(
                f"groups must be Groups, such as Groups.of([[0, 1], [1, 2]], 3). Found {shown(self.groups)}."
            )
        if self.distance not in DISTANCES:
            raise ProblemError(f"distance must be one of {', '.join(DISTANCES)}. Found {shown(self.distance)}.")
        if self.ordering != "best" and self.ordering not in ORDERINGS:
            names = ", ".join(ORDERINGS)
            raise ProblemError(f"ordering must be best or one of {names}. Found {shown(self.ordering)}.")
        if self.values is not None and self.distance != "kendall":
            raise ProblemError(
                f"values are for the Kendall distance: by another, they gain nothing. Found {self.distance}. Leave "
                "values out."
            )
        if self.study is not None and len(self.study.values) != self.groups.n:
            raise ProblemError(
                f"A study needs a value for each of the {self.groups.n:,} records. Found "
                f"{len(self.study.values):,} values."
            )
        if self.study is not None:
            check_values(self.study.k, self.values)

    @property
    def meaning(self) -> str:
        return meaning(self.values)

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        given: dict[str, Any] = {"n": self.groups.n, "alpha": show(self.alpha), "distance": self.distance}
        if self.values is not None:
            given["values"] = self.values
        return given | {"ordering": self.ordering, "budget": self.budget}
