"""What is being done is shown below a notebook's cell, with a bar where there is a count, and is gone at the end."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from optdp.work import reporting
from optdp.work.notebook import Shown

SCRIPT = """
import time
from optdp.work import reporting
with reporting(True) as say:
    say("3 of 8 points")
    while say.progress.handle is None:
        time.sleep(0.05)
"""


class Screen:
    """Where a notebook displays."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []
        self.drawn = threading.Event()

    def __call__(self, bundle: dict[str, str], raw: bool, display_id: bool) -> Screen:
        assert raw
        assert display_id
        self.update(bundle, raw=True)
        self.drawn.set()
        return self

    def update(self, bundle: dict[str, str], raw: bool) -> None:
        assert raw
        self.seen.append(bundle)


def test_a_bar_where_there_is_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optdp.work.notebook.SOON", 0.01)
    screen = Screen()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=screen))
    with reporting(True) as say:
        say("1,200 of 4,000 <points>")
        assert screen.drawn.wait(30)
        shown: Any = say.progress  # type: ignore[attr-defined]
        first = shown.bundle()
        say("rounding")
        assert "<progress" not in shown.bundle()["text/html"]
    assert '<progress value="1200" max="4000">' in first["text/html"]
    assert "&lt;points&gt;" in first["text/html"]
    assert first["text/plain"].startswith("1,200 of 4,000 <points>  ")
    assert screen.seen[-1] == {"text/plain": "", "text/html": ""}
    shown.thread.join(30)
    assert not shown.thread.is_alive()


def test_what_is_quick_shows_nothing() -> None:
    screen = Screen()
    shown = Shown(screen)
    shown("working")
    shown.close()
    assert not screen.seen


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_elsewhere_there_are_lines(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with reporting(True) as say:
        assert type(say.progress).__name__ == "Lines"  # type: ignore[attr-defined]


def test_a_real_notebook() -> None:
    nbformat, client = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SCRIPT)])
    seen = []

    class Watched(client.NotebookClient):  # type: ignore[misc, name-defined]
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            seen.append((msg["msg_type"], msg["content"].get("data", {}).get("text/html", "")))
            return super().process_message(msg, cell, cell_index)

    Watched(book, timeout=120, kernel_name="python3").execute()
    assert any(kind == "display_data" and '<progress value="3" max="8">' in html for kind, html in seen)
    assert ("update_display_data", "") in seen
    assert not [output for output in book.cells[0].outputs if output.output_type in ("stream", "error")]
