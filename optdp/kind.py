"""A kind of problem: one object that says who does what with it.

Each room that solves problems makes its own in its `__init__`; `optdp.kinds` lists them. What a kind can do is named
as "module:name" and imported when it is first needed, so that checking one kind loads nothing of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Home = str
"""Where something is: "optdp.single.solve:solve_single"."""


@dataclass(frozen=True)
class Kind:
    """A kind of problem, and what can be done with it; what is empty it cannot."""

    name: str
    """What a file says: kind = "single-lte"."""
    purpose: str
    problem: Home
    """Its class, a `files.models.Problem`."""
    solve: Home
    """`(problem, backend, progress) -> Outcome`."""
    target: Home = ""
    """`(problem, path)`: refuses before a long solve what could not be written after it. Empty: it has no files."""
    run: Home = ""
    """The class of its protocol, if it is solved by one that runs on data."""
    compare: Home = ""
    """`(problem, backends, timeout, progress) -> rows`, each with a `summary()`."""
    compared: Home = ""
    """`rows -> Sheet`, for what `compare` found."""
    observers: Home = ""
    """`(problem, progress, deadline, seen) -> Ladder`: the error against what an observer may know."""
    point: Home = ""
    """`(problem, side) -> float | None`: one point of a curve, where that takes less than a solution."""
    bounded: bool = False
    """Whether its solutions have a `lower_bound` of their `value`, which a curve draws too."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The tables of its problem files that name other files, and the keys under which they do."""
