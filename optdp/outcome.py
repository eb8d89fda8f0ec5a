"""What every solution is, whatever its kind: figures for programs, a sheet for people, files where there are any."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from optdp.kind import Home, at
from optdp.objects import Public
from optdp.sheet import Cell, Sheet


class Outcome(Public):
    """The base of all solutions: a problem, what came out, and how it was found. What was asked for is its `value`."""

    fragment: ClassVar[Home] = ""
    """`solution -> HTML`: what a notebook shows of it, if that is more than its sheet."""
    problem: Any
    status: str
    note: str
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        raise NotImplementedError

    def sheet(self) -> Sheet:
        """What a person is shown."""
        raise NotImplementedError

    def written(self, path: Path) -> str:
        """What `save` wrote, in words."""
        return str(path)

    def digest(self) -> str | None:
        """The `sha256` that its file would state, if that does not depend on where the file lies."""
        return None

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        if self.fragment:
            drawn: str = at(self.fragment)(self)
            return drawn
        return f'<div class="optdp"><strong>optdp: {type(self).__name__}</strong>{self.sheet().html()}</div>'

    def facts(self, *own: tuple[str, Cell | str]) -> tuple[tuple[str, Cell | str], ...]:
        """What every sheet tells, around what is the kind's own."""
        given = ", ".join(f"{name} = {value}" for name, value in self.problem.figures().items())
        last: list[tuple[str, Cell | str]] = [("status", f"{self.status}, {self.seconds:.2f} s")]
        if self.note:
            last.append(("note", Cell(self.note, "warning")))
        return (("problem", given), *own, *last)
