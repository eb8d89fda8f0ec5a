"""A kind of problem of its own, as somebody would add one: a problem, a solution, and one `Kind`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from attrs import field, frozen
from pydantic import StrictInt

from optdp.files.models import Problem, entry
from optdp.kind import Kind
from optdp.outcome import Outcome
from optdp.pictures.chart import Bars, Picture
from optdp.sheet import Cell, Sheet
from optdp.work import Progress


@frozen(eq=False, repr=False)
class Toy(Problem["ToySolution"]):
    """Twice a number."""

    kind: ClassVar[str] = "toy"

    size: int = field(metadata=entry(StrictInt, "The number."))

    def figures(self) -> dict[str, Any]:
        return {"size": self.size}


@dataclass(frozen=True, kw_only=True, repr=False)
class ToySolution(Outcome):
    problem: Toy
    value: float
    drawing = "tests.toy:pictures"
    status: str = "solved"
    note: str = ""
    seconds: float = 0.0

    def summary(self) -> dict[str, Any]:
        return {"kind": "toy", "status": self.status, "value": self.value}

    def sheet(self) -> Sheet:
        return Sheet(self.facts(("twice", Cell(f"{self.value:g}", "strong"))))


def pictures(solution: ToySolution) -> dict[str, Callable[[], Picture]]:
    return {"both": lambda: Bars((("twice", solution.value), ("once", solution.value / 2)), "number")}


def solve_toy(problem: Toy, backend: str, progress: Progress) -> ToySolution:
    return ToySolution(problem=problem, value=2.0 * problem.size)


TOY = Kind("toy", "twice a number", problem="tests.toy:Toy", solve="tests.toy:solve_toy")
