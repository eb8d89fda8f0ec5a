"""The example of a survey page in a real browser: it sends one message of the design, whatever is pressed."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from optdp import ShuffleHistogram, solve
from optdp.export import export
from optdp.shuffle.format import Deployed, read_design
from optdp.shuffle.messages import received

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
PAGE = Path(__file__).parents[2] / "examples" / "survey_page" / "index.html"
ANSWERS = ["very good", "good", "fair", "poor", "very poor", "not used", "unknown", "no answer"]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    solve(ShuffleHistogram(labels=ANSWERS, n=500, eps0=3, delta="1e-6")).save(tmp_path / "design.json")
    export(tmp_path / "design.json", "js", tmp_path / "client")
    shutil.copy(PAGE, tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    running = threading.Thread(target=server.serve_forever)
    running.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", tmp_path
    finally:
        server.shutdown()
        running.join()
        server.server_close()


def test_a_phone_sends_one_message(served: tuple[str, Path]) -> None:
    address, folder = served
    design: Deployed = read_design(folder / "design.json")
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            phone = browser.new_context().new_page()
            phone.on("console", lambda said: complaints.append(said.text) if "favicon" not in said.text else None)
            phone.on("pageerror", lambda error: complaints.append(str(error)))
            sent = []
            for answer in ("fair", "poor"):
                phone.goto(address)
                phone.get_by_label(answer, exact=True).check()
                phone.get_by_role("button").click()
                sent.append(phone.locator("output").inner_text())
            drawn = phone.evaluate(
                "async () => { const { line } = await import('./client/client.mjs');"
                " return Array.from({ length: 499 }, (_, i) => line(i % 2 ? 'fair' : 'no answer')); }"
            )
            (folder / "client" / "client.mjs").write_text(
                (folder / "client" / "client.mjs").read_text().replace("const CHANCE = ", "const CHANCE = 1n + ")
            )
            other = browser.new_context().new_page()
            other.goto(address)
            other.get_by_label("good", exact=True).check()
            other.get_by_role("button").click()
            changed = other.locator("output").inner_text()
        finally:
            browser.close()
    assert sent[0] == sent[1]  # the answer that was given first, and its message
    assert json.loads(sent[0])["design"] == design.name
    (folder / "m.jsonl").write_text("\n".join([sent[0], *drawn]) + "\n")
    tally = received(design, folder / "m.jsonl")
    assert tally["messages"] == 500
    assert min(tally["counts"][2], tally["counts"][7]) > 100
    assert "export the client again" in changed
    assert not [text for text in complaints if "404" not in text]
