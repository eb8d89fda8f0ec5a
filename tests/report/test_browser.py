"""The page in a real browser: it draws without complaint, answers to mouse and keys, prints, and loads nothing."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from optdp import verify, verify_plan
from tests.report.reading import exact

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")

QUIET = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic",
]  # fmt: skip
CLOCK = "{ let now = 10000; performance.now = () => now; window.later = (passed) => { now += passed; }; }"
"""The page's clock, which goes on when a test says so."""
SETTLED = """new Promise((done) => {
  let place = scrollY, still = 0;
  const look = () => {
    still = scrollY === place ? still + 1 : 0;
    place = scrollY;
    if (still > 5) done(); else requestAnimationFrame(look);
  };
  look();
})"""
PAIR = re.compile(r"input ([\d,\u2212]+) \u2192 output ([\d,\u2212]+)")


@dataclass
class Window:
    """An open page, and all that it complained about or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def tooltip(self) -> str:
        shown = self.page.locator("#tooltip")
        return "\n".join(shown.locator("> *").all_inner_texts()) if shown.is_visible() else ""

    def box(self, selector: str) -> dict[str, float]:
        place, offset = self.page.locator(selector).first, self.page.evaluate("scrollY")
        place.scroll_into_view_if_needed()
        if self.page.evaluate("scrollY") != offset:  # a wheel turned while the page scrolls by is not for the chart
            self.settle()
            self.page.evaluate("later(1000)")
        found: dict[str, float] = place.bounding_box()
        return found

    def settle(self) -> None:
        """Wait until the page has drawn and no longer scrolls."""
        self.page.evaluate(SETTLED)

    def hover(self, selector: str, x: float, y: float) -> str:
        """Point at a share of an element's width and height."""
        box = self.box(selector)
        self.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        return self.tooltip

    def view(self, figure: str = "#heatmap") -> list[int]:
        return [int(part) for part in self.page.locator(figure).get_attribute("data-view").split()]

    def picture(self) -> str:
        drawn: str = self.page.evaluate("document.querySelector('#heatmap canvas').toDataURL()")
        return drawn

    def clean(self) -> None:
        assert self.complaints == []
        assert len(self.requests) == 1
        assert self.requests[0].startswith("file:")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, pages: dict[str, bytes], tmp_path: Path) -> Iterator[Callable[..., Window]]:
    windows = []

    def show(name: str, **options: Any) -> Window:
        file = tmp_path / f"{name}.html"
        file.write_bytes(pages[name])
        page = browser.new_page(**({"viewport": {"width": 1000, "height": 900}} | options))
        window = Window(page)
        page.on("console", lambda said: window.complaints.append(said.text))
        page.on("pageerror", lambda error: window.complaints.append(str(error)))
        page.on("dialog", lambda dialog: window.complaints.append(dialog.message))
        page.on("request", lambda asked: window.requests.append(asked.url))
        page.add_init_script(CLOCK)
        page.goto(file.as_uri())
        page.wait_for_function("document.querySelector('#heatmap canvas')?.width > 300")
        windows.append(window)
        return window

    yield show
    for window in windows:
        window.page.close()


def pointed(tooltip: str) -> tuple[int, int, float]:
    """Input, output and probability that a tooltip names."""
    x, s = (int(text.replace(",", "").replace("\u2212", "-")) for text in PAIR.search(tooltip).groups())  # type: ignore[union-attr]
    return x, s, float(tooltip.split("probability ")[1])


@pytest.mark.parametrize("name", ["sick-leave", "small", "large", "two-by-two"])
def test_hovering_tells_the_probability(name: str, opened: Callable[..., Window], places: dict[str, Path]) -> None:
    window, matrix = opened(name), verify(places[name]).matrix
    seen = {}
    for x in (0.08, 0.2, 0.5, 0.8, 0.97):
        for y in (0.2, 0.4, 0.5, 0.75):
            row, column, value = pointed(window.hover("#heatmap canvas", x, y))
            seen[x, y] = row, column
            assert value == pytest.approx(float(matrix.probability(row, column).mid()), rel=2e-3, abs=1e-30)
    assert len(set(seen.values())) >= min(4, len(seen))
    assert seen[0.2, 0.5][1] <= seen[0.8, 0.5][1]
    assert seen[0.5, 0.2][0] < seen[0.5, 0.75][0]
    window.page.mouse.move(2, 2)
    assert window.tooltip == ""
    window.clean()


def test_zoom_and_back(opened: Callable[..., Window]) -> None:
    window = opened("sick-leave")
    heat, page = window.page.locator("#heatmap"), window.page
    whole, first = window.view(), window.picture()
    heat.get_by_role("button", name="Zoom in").click()
    near = window.view()
    assert whole[0] < near[0] < near[1] < whole[1]
    assert whole[2] < near[2] < near[3] < whole[3]
    assert window.picture() != first
    heat.get_by_role("button", name="Zoom out").click()
    assert window.view() == whole
    assert window.picture() == first
    for _ in range(30):
        heat.get_by_role("button", name="Zoom in").click()
    assert window.view()[1] - window.view()[0] == 2
    heat.get_by_role("button", name="Reset zoom").click()
    assert (window.view(), window.picture()) == (whole, first)

    before = pointed(window.hover("#heatmap canvas", 0.3, 0.4))
    offset = page.evaluate("scrollY")
    for _ in range(3):
        page.mouse.wheel(0, -100)
        window.settle()
    assert window.view() != whole
    assert page.evaluate("scrollY") == offset
    after = pointed(window.tooltip)
    assert abs(after[0] - before[0]) <= 2  # what was pointed at stays there
    assert abs(after[1] - before[1]) <= 2
    box = window.box("#heatmap canvas")
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert window.view() == whole

    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.45 * box["height"], steps=4)
    assert page.locator("#heatmap .frame").is_visible()
    page.mouse.up()
    boxed = window.view()
    assert whole[0] < boxed[0] < boxed[1] < whole[1]
    assert (boxed[3] - boxed[2]) < 0.3 * (whole[3] - whole[2])
    window.clean()


def test_the_wheel_scrolls_the_page_where_nothing_is_left_to_zoom(opened: Callable[..., Window]) -> None:
    window = opened("sick-leave")
    window.hover("#heatmap canvas", 0.5, 0.5)
    offset, whole = window.page.evaluate("scrollY"), window.view()
    window.page.mouse.wheel(0, 200)
    window.page.wait_for_function("(offset) => scrollY > offset", arg=offset)
    window.settle()
    window.page.mouse.wheel(0, -50)  # still scrolling: not meant for the chart that came by
    window.settle()
    assert window.view() == whole
    window.page.evaluate("later(1000)")
    window.page.mouse.wheel(0, -50)
    window.settle()
    assert window.view() != whole


def test_the_likely_rows_of_a_large_table(opened: Callable[..., Window]) -> None:
    window = opened("sick-leave")
    window.page.locator("#heatmap").get_by_role("button", name="Likely rows").click()
    tops = [pointed(window.hover("#heatmap canvas", 0.5, y))[0] for y in (0.1, 0.9)]
    assert 0 <= tops[0] < 10 < tops[1] <= 22  # the mean is 10, the standard deviation 3


def test_keys(opened: Callable[..., Window], places: dict[str, Path]) -> None:
    window, matrix = opened("sick-leave"), verify(places["sick-leave"]).matrix
    page, whole = window.page, window.view()
    page.locator("#heatmap canvas").focus()
    page.keyboard.press("ArrowRight")
    x, s, value = pointed(window.tooltip)
    assert value == pytest.approx(float(exact(matrix, x, s)), rel=2e-3)
    page.keyboard.press("ArrowRight")
    assert pointed(window.tooltip)[:2] == (x, s + 1)
    page.keyboard.press("ArrowUp")
    assert pointed(window.tooltip)[:2] == (x - 1, s + 1)
    page.keyboard.press("Shift+ArrowLeft")
    assert pointed(window.tooltip)[:2] == (x - 1, s - 9)
    page.keyboard.press("+")
    assert window.view() != whole
    for _ in range(4):
        page.keyboard.press("Shift+ArrowDown")
    assert pointed(window.tooltip)[0] == x + 39  # the view follows
    page.keyboard.press("0")
    assert window.view() == whole
    page.keyboard.press("Escape")
    assert window.tooltip == ""
    order = []
    for _ in range(30):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.tagName + (document.activeElement.ariaLabel || '')"))
    assert sum(name.startswith("svg") for name in order) >= 2
    assert "BUTTONZoom in" in order
    window.clean()


def test_curves_answer_too(opened: Callable[..., Window], places: dict[str, Path]) -> None:
    window, found = opened("sick-leave"), verify(places["sick-leave"])
    for share in (0.1, 0.2, 0.5):
        said = window.hover("#errors svg", share, 0.5)
        x = int(re.search(r"input\): (\d+)", said)[1])  # type: ignore[index]
        shown = float(re.search(r"mean error: ([\d.e-]+)", said)[1])  # type: ignore[index]
        far = float(sum(abs(s - x) * exact(found.matrix, x, s) for s in range(-150, 251)))
        assert shown == pytest.approx(far, rel=2e-3, abs=1e-6)
        assert "geometric noise: 3.284" in said
    said = window.hover("#quotients svg", 0.5, 0.5)
    assert "e^ε: 1.35" in said
    for figure in ("#errors", "#quotients"):
        whole = window.view(figure)
        drawn = window.page.locator(f"{figure} svg").inner_html()
        window.page.locator(figure).get_by_role("button", name="Zoom in").click()
        assert window.view(figure)[1] - window.view(figure)[0] < whole[1] - whole[0]
        assert window.page.locator(f"{figure} svg").inner_html() != drawn
        window.page.locator(f"{figure} svg").focus()
        window.page.keyboard.press("0")
        assert window.view(figure) == whole
        window.page.keyboard.press("ArrowRight")
        assert window.tooltip
    window.clean()


def test_every_party_can_be_looked_at(opened: Callable[..., Window], places: dict[str, Path]) -> None:
    window, tables = opened("offices"), verify_plan(places["offices"]).tables
    pictures = []
    for i, table in enumerate(tables):
        window.page.locator("#heatmap select").select_option(label=f"Party {i}")
        x, s, value = pointed(window.hover("#heatmap canvas", 0.4, 0.4))
        assert value == pytest.approx(float(exact(table, x, s)), rel=2e-3, abs=1e-30)
        assert f"Party {i}" in window.page.locator("#heatmap figcaption").inner_text()
        pictures.append(window.picture())
    assert pictures[0] != pictures[1]
    assert "true total" in window.hover("#errors svg", 0.5, 0.5)
    window.clean()


def test_orders(opened: Callable[..., Window]) -> None:
    window = opened("order")
    said = window.hover("#heatmap canvas", 0.3, 0.3)
    assert re.match(r"group \d+ \u2192 position \d+\nshare of its members [\d.]+", said)
    assert "sensitivity" in window.hover("#sensitivities svg", 0.5, 0.5)
    assert "groups: " in window.hover("#sizes svg", 0.2, 0.5)
    window.clean()


@pytest.mark.parametrize("name", ["sick-leave", "offices", "order", "several", "large"])
def test_paper(name: str, opened: Callable[..., Window]) -> None:
    window = opened(name, color_scheme="dark")
    page = window.page
    printed = page.pdf(format="A4", prefer_css_page_size=True)
    sheets = re.findall(rb"/Type\s*/Page\b", printed)
    assert 3 <= len(sheets) <= 9
    page.set_viewport_size({"width": 680, "height": 1000})  # the width of an A4 sheet without its margins
    page.emulate_media(media="print", color_scheme="dark")
    window.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert page.evaluate("[...document.querySelectorAll('.screen')].every(part => part.offsetHeight === 0)")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    drawn = window.picture()
    page.emulate_media(media="print", color_scheme="light")
    window.settle()
    assert window.picture() == drawn  # paper is light, whatever the screen is
    page.emulate_media(media="screen", color_scheme="dark")
    window.settle()
    assert window.picture() != drawn
    page.emulate_media(media="print", color_scheme="dark")
    tallest = page.evaluate("Math.max(...[...document.querySelectorAll('figure')].map(part => part.offsetHeight))")
    assert tallest < 940  # fits on one sheet, so that it need not be cut
    window.clean()


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 768), ("dark", 1600)])
def test_screens(scheme: str, width: int, opened: Callable[..., Window]) -> None:
    for name in ("sick-leave", "offices"):
        window = opened(name, color_scheme=scheme, viewport={"width": width, "height": 800})
        assert window.page.evaluate("document.documentElement.scrollWidth") <= width
        ground = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", ground)[:3]))
        assert (light > 600) == (scheme == "light")
        assert PAIR.search(window.hover("#heatmap canvas", 0.5, 0.5))
        window.clean()


def test_hostile_words_stay_words_and_nothing_can_be_loaded(opened: Callable[..., Window]) -> None:
    window = opened("hostile")
    page = window.page
    assert page.evaluate("window.owned") is None
    assert "<script>window.owned=1</script>" in page.locator("h1").inner_text()
    window.clean()
    heard = socket.create_server(("127.0.0.1", 0))
    heard.setblocking(False)
    place = f"http://127.0.0.1:{heard.getsockname()[1]}"
    blocked = page.evaluate(
        """async (place) => {
          const found = [];
          addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
          const image = new Image(); image.src = `${place}/x.png`;
          const script = document.createElement("script"); script.textContent = "window.owned = 1";
          const style = document.createElement("style"); style.textContent = "body { display: none }";
          document.body.append(image, script, style);
          await fetch(place).catch(() => 0);
          await new Promise((done) => setTimeout(done, 100));
          return found;
        }""",
        place,
    )
    assert {"img-src", "script-src-elem", "style-src-elem", "connect-src"} <= set(blocked)
    assert page.evaluate("window.owned") is None
    with heard, pytest.raises(BlockingIOError):  # nobody came
        heard.accept()
