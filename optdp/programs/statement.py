"""A linear program as it is stated: what it is, how large, and the two forms of it, arrays and a CVXPY model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optdp.errors import ProblemError
from optdp.programs.program import LinearProgram

MOST_ENTRIES = 30_000_000
"""The most entries of a matrix that is written out: about a gigabyte of text."""
BYTES = 30
"""What an entry takes in a text file."""


@dataclass(frozen=True)
class Statement:
    """One of the linear programs that solve a problem."""

    name: str
    what: str
    unknowns: int
    rows: int
    entries: int
    """About how many coefficients the rows have."""
    arrays: Callable[[], LinearProgram]
    cvxpy: Callable[[], Any]
    """The specification; its optimum is that of the arrays."""
    constant: float | None = None
    """What the error is besides the objective; None where the program is not about the error alone."""

    @property
    def note(self) -> str:
        """What a file says of the program."""
        more = "" if self.constant is None else f" Besides the objective the error has {self.constant!r}."
        return f"{self.name}: {self.what}.{more}"

    def program(self) -> LinearProgram:
        """The arrays, if they are within reach."""
        self._check()
        return self.arrays()

    def model(self) -> Any:
        """The CVXPY model, if it is within reach."""
        self._check()
        return self.cvxpy()

    def _check(self) -> None:
        if self.entries > MOST_ENTRIES:
            raise ProblemError(
                f"A program that is written out must have at most {MOST_ENTRIES:,} coefficients. The program "
                f"{self.name!r} has about {self.entries:,}: {self.entries * BYTES / 1e9:,.0f} GB. "
                "Use fewer people or coarser contributions."
            )


def named(statements: Sequence[Statement], name: str = "") -> Statement:
    """The statement of that name; without a name the first."""
    for statement in statements:
        if name in ("", statement.name):
            return statement
    there = ", ".join(statement.name for statement in statements)
    raise ProblemError(f"Unknown program {name!r}. This problem has: {there}.")
