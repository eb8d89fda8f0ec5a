"""What every solution is, whatever its kind: figures for programs, a sheet for people, files where there are any."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optdp.objects import Public
from optdp.pictures.pictured import Pictured
from optdp.sheet import Cell


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Outcome(Pictured, Public):
    """The base of all solutions: a problem, what came out, and how it was found. What was asked for is its `value`."""

    problem: Any
    status: str
    note: str
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        raise NotImplementedError

    def written(self, path: Path) -> str:
        """What `save` wrote, in words."""
        return str(path)

    def digest(self) -> str | None:
        """The `sha256` that its file would state, if that does not depend on where the file lies."""
        return None

    def facts(self, *own: tuple[str, Cell | str]) -> tuple[tuple[str, Cell | str], ...]:
        """What every sheet tells, around what is the kind's own."""
        given = ", ".join(f"{name} = {value}" for name, value in self.problem.figures().items())
        last: list[tuple[str, Cell | str]] = [("status", f"{self.status}, {self.seconds:.2f} s")]
        if self.note:
            last.append(("note", Cell(self.note, "warning")))
        return (("problem", given), *own, *last)
