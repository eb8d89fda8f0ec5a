"""optdp: describe your deployment; get the best private mechanism, a proof of what it reveals, and its tables.

from optdp import Population, SingleLTE, solve
solution = solve(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3"))
solution.mae, solution.baseline_mae, solution.certificate.epsilon
solution.mechanism.sample(12, size=1000)
solution.save("sick-leave.json")
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_HOMES = {
    alias.name: f"optdp.{node.module}"
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""Where each public name lives, stated once, in `__init__.pyi`; imported when first used: verifying needs no solver."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'optdp' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
