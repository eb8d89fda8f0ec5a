"""Problems that several tests need solved: each is solved once in a process.

Solutions cannot be changed, so tests can share them. What is being tested is not asked here, but of `optdp.solve`.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from optdp import solve
from optdp.files.models import Problem

S = TypeVar("S")
_FOUND: dict[str, Any] = {}


def shared_solution(problem: Problem[S]) -> S:
    """The solution of a problem that another test may have solved already."""
    key = json.dumps([problem.kind, problem.spec()], sort_keys=True, default=str)
    if key not in _FOUND:
        _FOUND[key] = solve(problem)
    found: S = _FOUND[key]
    return found
