"""The page about a ladder of observers: one picture, one table, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from optdp.html import Child, Html, el, join
from optdp.numbers.exact import show
from optdp.report import page as html
from optdp.report.words import described, headcount
from optdp.single.ladder import HEAD, NO_BETTER, Ladder, Rung
from optdp.single.pictures import MEASURES
from optdp.single.problem import SingleLTE

WIDE, TALL, BAR = 400, 40, 10
"""Of the picture: its width, the height of a row, and of a bar."""
LONGEST = 42
"""Letters of a name in the picture."""
STRETCH = 1.25
"""How much longer than all others the bar of geometric noise may be before it is cut."""


def page(found: Ladder, title: str = "") -> bytes:
    """The page; the same for the same ladder, but for how far it came."""
    problem = found.problem
    subject = title.strip()[:200] or f"A private sum over {headcount(problem.populations[0])}"
    body = (
        _header(found, subject),
        html.section("picture", "What knowledge costs", _picture(found), html.warning(found.note)),
        html.section("figures", "The figures", _table(found), _reading(problem)),
        html.section("problem", "What all rungs have in common", *_common(problem)),
        _choosing(),
    )
    return html.document(f"{subject} · observers · optdp", body, _data(found))


def _data(found: Ladder) -> dict[str, Any]:
    """The figures in the page, for programs; how long they took is left out."""
    rows = [{key: value for key, value in rung.summary().items() if key != "seconds"} for rung in found.rungs]
    return found.summary() | {"rows": rows}


def _header(found: Ladder, subject: str) -> Html:
    problem = found.problem
    lead = (
        f"Each rung is the most accurate mechanism at epsilon {show(problem.epsilon)} against someone who may know "
        f"that much about the other people. The {MEASURES[problem.objective]} is always the one under your own belief."
    )
    tiles = [
        html.tile(rung.cells()[1], rung.label, words)
        for rung, words in _marked(found)
        if rung.error is not None
    ]  # fmt: skip
    return html.header("Ladder of observers", subject, lead, tiles, join())


def _marked(found: Ladder) -> Iterator[tuple[Rung, str]]:
    """The rungs that a reader looks for first."""
    first, last = found.rungs[0], found.rungs[-1]
    if first.step.observers:
        yield first, "The smallest error, and the promise that depends most on the prior."
    for rung in found.rungs[1:]:
        everybody = [one.known for one in rung.step.observers] == ["all"]
        if rung.step.yours or everybody:
            yield rung, "Assumes nothing about anyone." if everybody else "What your problem asks for."
    yield last, f"Needs no data: {last.note}."


def _picture(found: Ladder) -> Html:
    """Bars below their names, so that they can be read on a narrow screen."""
    known = [rung.error for rung in found.rungs if rung.error is not None]
    plain = [rung.error for rung in found.rungs if rung.error is not None and rung.step.name != "geometric noise"]
    top = min(max(known), STRETCH * max(plain)) or 1.0
    nothing = found.rungs[-1].error or 0.0
    tall = TALL * len(found.rungs) + 4
    at = f"{min(WIDE * nothing / top, WIDE - 0.75):.2f}"
    words = ", ".join(f"{rung.label}: {rung.cells()[1]}" for rung in found.rungs)
    svg = el(
        "svg",
        [_bar(rung, TALL * i, top) for i, rung in enumerate(found.rungs)],
        [el("line", x1=at, x2=at, y1=TALL * i + 20, y2=TALL * i + 36) for i in range(len(found.rungs))],
        viewBox=f"0 0 {WIDE} {tall}",
        role="img",
        aria_label=f"{MEASURES[found.problem.objective]}. {words}",
    )
    caption = (
        f"The {MEASURES[found.problem.objective]} against what the observer may know; shorter is better. The mark "
        "on each bar is the error of publishing nothing. Outlined bars are for comparison."
    )
    return el("figure", svg, el("figcaption", caption), class_="ladder", id="ladder")


def _bar(rung: Rung, y: int, top: float) -> Html:
    label, error = rung.label, rung.cells()[1]
    name = label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
    mine = "mine" if rung.step.yours else None
    parts = [el("text", name, x=0, y=y + 16, class_=mine)]
    if rung.error is None:
        parts.append(el("text", "not solved", x=WIDE, y=y + 16, text_anchor="end", class_="soft"))
        return join(parts)
    cut = rung.error > top
    shown = f"{error}, cut" if cut else error
    parts += [
        el("text", shown, x=WIDE, y=y + 16, text_anchor="end", class_="value mine" if mine else "value"),
        el("rect", x=0, y=y + 23, width=WIDE, height=BAR, class_="track"),
        el("rect", x=0, y=y + 23, width=f"{max(WIDE * min(rung.error / top, 1), 1):.2f}", height=BAR,
           class_=_kind(rung)),
    ]  # fmt: skip
    return join(parts)


def _kind(rung: Rung) -> str:
    """How a bar is painted."""
    if not rung.step.observers:
        return "compared"
    return "worse" if NO_BETTER in rung.note else "own" if rung.step.yours else "other"


def _table(found: Ladder) -> Html:
    rows: list[list[str]] = []
    for rung in found.rungs:
        label, *figures = rung.cells()
        note = el("p", rung.note, class_="hint") if rung.note else None
        rows.append([join(el("strong", label) if rung.step.yours else label, note), *figures])
    return el("div", html.table(HEAD, rows, numbers=(1, 2, 3)), class_="rungs")


def _reading(problem: SingleLTE) -> Html:
    bound = "no mechanism with these tails" if problem.tail == "geometric" else "no mechanism"
    return html.paragraphs(
        f"Errors are rounded up and lower bounds down. A lower bound is proved: {bound} keeps the promise of its rung "
        "with a smaller error. The last column says where the error lies between that of the exact prior (0 %) and "
        "that of publishing nothing (100 %)."
    )


def _common(problem: SingleLTE) -> Iterator[Child]:
    more = f", and ordinary epsilon {show(problem.fallback_epsilon)}" if problem.fallback_epsilon else ""
    never = "no input is worse than with geometric noise" if problem.never_worse else "some inputs may be worse"
    outputs = "geometric tails" if problem.tail == "geometric" else "outputs within the possible sums"
    step = "each unit step" if problem.adjacency == "unit" else "any two contributions"
    yield html.paragraphs(f"Epsilon {show(problem.epsilon)}{more}, for {step}; {outputs}; {never}.")
    for prior in problem.populations:
        yield html.box("Your belief, under which the error is measured", described(prior), kind="box prior")


def _choosing() -> Html:
    items = (
        html.term("Give a range, not a number", "The first rung only holds against someone who believes exactly the "
                  "prior. Nobody knows a probability to the last digit, and a little off, the promise may be far "
                  "weaker."),
        html.term("Count who may be known", "Colleagues, friends and members of a household know some of the others. "
                  "Allow for as many as one person may know, and some more."),
        html.term("Look at the mark", "Where a bar reaches it, the release is no better than the prior alone: "
                  "accept less privacy, count more people, or publish nothing."),
    )  # fmt: skip
    return html.section("choosing", "How to choose", html.listed(*items))
