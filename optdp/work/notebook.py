"""What is being done, below a notebook's cell: a line with the time that has passed, and a bar for what is counted."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from html import escape
from typing import Any

BEAT = 1.0  # seconds between two times that are shown
SOON = 0.5  # seconds that something must take to be shown at all
_COUNT = re.compile(r"([0-9][0-9,]*) of ([0-9][0-9,]*)")


def shower() -> Callable[..., Any] | None:
    """What displays in a notebook, or None where this is no notebook."""
    ipython = sys.modules.get("IPython")  # whoever runs in a notebook has imported it
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    found: Callable[..., Any] = sys.modules["IPython.display"].display
    return found


class Shown:
    """A `Progress` that a notebook shows until `close`, which takes it away."""

    def __init__(self, display: Callable[..., Any], clock: Callable[[], float] = time.monotonic) -> None:
        self.display, self.clock, self.begin = display, clock, clock()
        self.text, self.expected = "working", ""
        self.handle: Any = None
        self.ended = threading.Event()
        self.showing = threading.Lock()
        self.thread = threading.Thread(target=self._watch, name="optdp-progress", daemon=True)
        self.thread.start()

    def __call__(self, text: str) -> None:
        self.text = " ".join(text.split())

    def estimate(self, text: str) -> None:
        """How long it is expected to take; it stays beside what is said later."""
        self.expected = " ".join(text.split())

    def bundle(self) -> dict[str, str]:
        """What is shown now, as text and as HTML."""
        passed = f"{self.clock() - self.begin:.0f} s"
        words = "  ".join(filter(None, (self.text, passed, self.expected)))
        found = _COUNT.search(self.text)
        done, most = (int(part.replace(",", "")) for part in found.groups()) if found else (0, 0)
        bar = f'<progress value="{min(done, most)}" max="{most}"></progress> ' if most else ""
        return {"text/plain": words, "text/html": f'<div class="optdp">{bar}{escape(words)}</div>'}

    def close(self) -> None:
        """Nothing is shown after this, and what was shown is gone."""
        self.ended.set()
        with self.showing:
            if self.handle is not None:
                self.handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def _watch(self) -> None:
        wait = SOON
        while not self.ended.wait(wait):
            with self.showing:
                if self.ended.is_set():
                    return
                if self.handle is None:
                    self.handle = self.display(self.bundle(), raw=True, display_id=True)
                else:
                    self.handle.update(self.bundle(), raw=True)
            wait = BEAT
