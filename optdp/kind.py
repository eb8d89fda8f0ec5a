"""A kind of problem: one object that says who does what with it.

Each room that solves problems makes its own in its `__init__`; `optdp.kinds` lists them. What a kind can do is named
as "module:name" and imported when it is first needed, so that checking one kind loads nothing of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

Home = str
"""Where something is: "optdp.single.solve:solve_single"."""


def at(home: Home) -> Any:
    """What is there, imported now."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Start:
    """How somebody begins who does not know the kinds: the answers that lead to this one, and a file that solves."""

    release: str
    """What do you want to release?"""
    noise: str
    """Who adds the noise?"""
    sees: str
    """Who may see what?"""
    file: Home
    """A problem file in the package, such as "optdp.single:single-lte.toml"; files that it names lie beside it."""


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
    measure: Home = ""
    """`(problem, backend, options, form)`: what `compare` measures of a backend, if it is solved by linear programs."""
    compare: Home = ""
    """`(problem, progress) -> rows`, each with a `summary()`: other ways to keep the same promise."""
    compared: Home = ""
    """`rows -> Sheet`, for what `compare` found."""
    observers: Home = ""
    """`(problem, progress, deadline, seen) -> Ladder`: the error against what an observer may know."""
    read: Home = ""
    """`(path, bytes) -> what its file holds`, where verifying another kind's file shall not load that."""
    verify: Home = ""
    """`(path, allow_outside=, found=) -> what was recomputed`, of what `read` found."""
    point: Home = ""
    """`(problem, side) -> float | None`: one point of a curve, where that takes less than a solution."""
    linear: bool = False
    """Whether linear programs solve it, so that their backend can be chosen."""
    formulate: Home = ""
    """`problem -> list[Statement]`: its linear programs, the specification first."""
    bounded: bool = False
    """Whether its solutions have a `lower_bound` of their `value`, which a curve draws too."""
    start: Start | None = None
    """How to begin with it; None if `optdp init` does not offer it."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The tables of its problem files that name other files, and the keys under which they do."""
