"""The parts of which every page is made."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from optdp.html import Child, Html, el, join


def paragraphs(*texts: str) -> Html:
    return join(*(el("p", text) for text in texts))


def listed(*items: str) -> Html:
    return el("ul", [el("li", item) for item in items])


def table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "", numbers: Iterable[int] = ()) -> Html:
    """A table; the columns `numbers` are aligned to the right. Wide ones scroll within themselves."""
    kind = dict.fromkeys(numbers, "number")
    top = el("tr", [el("th", text, scope="col", class_=kind.get(i)) for i, text in enumerate(head)])
    body = [el("tr", [el("td", cell, class_=kind.get(i)) for i, cell in enumerate(row)]) for row in rows]
    inner = el("table", el("caption", caption) if caption else None, el("thead", top), el("tbody", body))
    return el("div", inner, class_="wide")


SCRIPTS = ("scales.js", "chart.js", "heat.js", "lines.js", "start.js")


@cache
def asset(name: str) -> str:
    """A style sheet or script of this package."""
    return (files("optdp.report") / "assets" / name).read_text(encoding="utf-8")


def document(title: str, body: Sequence[Child], data: Mapping[str, Any]) -> bytes:
    """The bytes of the page; the same for the same content."""
    style = asset("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(asset, SCRIPTS)) + "\n})();\n"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="generator", content="optdp"),
        el("title", title),
        el("link", rel="icon", href="data:,"),
        el("style", Html(style)),
    )
    main = el(
        "body",
        el("main", *body),
        el("div", class_="tooltip", id="tooltip", role="status", aria_live="polite", hidden=True),
        el("script", Html(embedded(data)), type="application/json", id="data"),
        el("script", Html(script)),
    )
    return (Html("<!DOCTYPE html>\n") + el("html", head, "\n", main, lang="en") + "\n").encode("utf-8")


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


# ---------------------------------------------------------------------- parts that every report has


def term(name: str, *said: Child) -> Html:
    """An item of a list that begins with what it is about."""
    return join(el("strong", f"{name}. "), *said)


def warning(said: str | None) -> Html | None:
    """A paragraph that stands out, if there is anything to say."""
    return el("p", said, class_="warning") if said else None


def one_release(said: str) -> Html:
    """The rule that every deployment has to keep."""
    return box("One release", paragraphs(said), kind="box rule")


def section(name: str, heading: str, *children: Child) -> Html:
    return el("section", el("h2", heading), *children, id=name)


def box(heading: str, *children: Child, kind: str = "box", name: str | None = None) -> Html:
    return el("div", el("h3", heading), *children, class_=kind, id=name)


def header(kicker: str, title: str, lead: Child, tiles: Sequence[Html], digest: Html) -> Html:
    words = (el("p", kicker, class_="kicker"), el("h1", title), el("p", lead, class_="lead"))
    return el("header", *words, el("div", *tiles, class_="tiles"), digest)


def tile(figure: str, name: str, words: Child) -> Html:
    """A large figure and what it is."""
    long = " long" if len(figure) > 7 else ""
    parts = (el("p", figure, class_=f"figure{long}"), el("p", name, class_="name"), el("p", words))
    return el("div", *parts, class_="tile")


def digest_line(name: str, digest: str) -> Html:
    return el("p", f"{name} ", el("code", digest, class_="digest"), class_="seal")


def commands(*lines: str) -> Html:
    return el("pre", el("code", "\n".join(lines)))


def chart(name: str, kind: str, key: str, label: str, caption: Child, choice: Child = None) -> Html:
    """A figure that the script draws: `kind` is heat or lines, `key` names its data."""
    buttons = [
        el("button", sign, type="button", data_do=do, aria_label=words, title=words)
        for sign, do, words in (("+", "in", "Zoom in"), ("\u2212", "out", "Zoom out"), ("\u2922", "all", "Reset zoom"))
    ]
    zoom = el("button", "Likely rows", type="button", data_do="likely", title="Zoom to the likely rows", hidden=True)
    hint = (
        "Point at the figure for its numbers. Zoom with the wheel, the buttons, or by dragging a box; keyboard: "
        "arrows, +, \u2212 and 0."
    )
    bar = (
        el("div", choice, zoom if kind == "heat" else None, class_="choice"),
        el("div", *buttons, class_="buttons", role="group", aria_label=f"Zoom of: {label}"),
    )
    return el(
        "figure", el("div", *bar, class_="bar screen"), el("div", class_="plot"), el("figcaption", caption),
        el("p", hint, class_="hint screen"),
        el("noscript", el("p", "This figure is drawn by the page's own script, which is switched off.")),
        id=name, class_=f"chart {kind}", data_chart=kind, data_key=key, data_label=label,
    )  # fmt: skip


def bars(rows: Sequence[tuple[str, float | None, str]], label: str) -> Html:
    """Bars for a few numbers; None is infinite. The first is the one that the page is about."""
    top = max([*(value for _, value, _ in rows if value is not None), 1e-300])
    lines = []
    for i, (name, value, shown) in enumerate(rows):
        width = 100.0 if value is None else 100 * value / top
        kind = "infinite" if value is None else "own" if i == 0 else "other"
        rect = el("rect", x=0, y=0, width=f"{max(width, 0.4):.2f}", height=10, class_=kind)
        svg = el("svg", rect, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true", focusable="false")
        cells = (el("th", name, scope="row"), el("td", shown, class_="number"), el("td", svg, class_="bar-cell"))
        lines.append(el("tr", *cells))
    return el("div", el("table", el("tbody", lines), class_="bars", aria_label=label), class_="wide")
