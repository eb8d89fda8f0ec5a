"""The process of one backend and one problem: `python -m optdp.comparison.worker`, spoken to by `run`.

It says, in this order: `{"loaded": {}}`; `{"row": ...}` with the seconds of the warm-up; `{"row": ...}` after each
repeat and after what takes longer (the real epsilon needs exact arithmetic); `{"last": true}`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from optdp.comparison.process import limit_memory, peak_memory, speaking


def answer(request: Any, say: Callable[[object], None]) -> None:
    """Measure, and say what was found so far."""
    if request["memory"] is not None:
        limit_memory(request["memory"])
    try:
        measure: Any = import_module("optdp.comparison.measure")  # within the limit, and after the pipes are set up
        say({"loaded": {}})
        for row in measure.measured(request):
            say({"row": {**row, "memory": peak_memory()}})
    except MemoryError:
        say({"row": {"status": "memory", "note": "out of memory"}})
        return
    say({"last": True})


if __name__ == "__main__":
    speaking(answer)
