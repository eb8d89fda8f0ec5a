"""The page about a shuffle protocol or about what shuffling buys: from a problem, or from a protocol's file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from optdp.artifact import OpenedShuffle
from optdp.errors import ProblemError
from optdp.files.models import Problem
from optdp.html import Child, Html, el
from optdp.kind import Kind
from optdp.kinds import KINDS, kind_of, solve
from optdp.outcome import Outcome
from optdp.pictures.chart import Bars, Heat, Picture
from optdp.pictures.svg import svg
from optdp.report import page as html
from optdp.sheet import Cell, Listing, Sheet
from optdp.shuffle import turnout as turnouts
from optdp.shuffle.format import ERRORS, VerifiedShuffle
from optdp.work import Progress, silent

NOT_PROMISED = (
    html.term("An observer of single messages", "Unless it says otherwise above, the promise is about all messages "
              "together, in an order that nobody knows. Whoever links a message to its sender sees what stands at "
              "“without the shuffler”, if it stands there."),
    html.term("A second release", "A second run about the same people is a second release: both together reveal "
              "more than this page says."),
    html.term("People who do not keep to the protocol", "They can change the result, and the others then hide among "
              "fewer people: the promise holds for as many as keep to it."),
)  # fmt: skip


def report(problem: Problem[Any], name: str, title: str = "", progress: Progress = silent) -> bytes:
    """Solve the problem whose file is called `name`, and make its page; not for kinds whose own files are reported."""
    kind = kind_of(problem)
    if kind.target and not kind.run:
        raise ProblemError(
            f"A report about kind = {kind.name!r} is made of what solve wrote: optdp solve {name} --out RESULT, then "
            "optdp report RESULT."
        )
    solution: Any = solve(problem, progress=progress)
    return page(solution, kind, name, title)


def page(solution: Outcome, kind: Kind, name: str, title: str = "") -> bytes:
    """The page about a solution of the problem whose file is called `name`."""
    problem = solution.problem
    sheet, pictures = solution.sheet(), list(_pictures(solution))
    subject = title or problem.title.strip()[:200] or kind.purpose[0].upper() + kind.purpose[1:]
    figures = [_facts(sheet), *map(_listing, sheet.listings), *(html.paragraphs(remark) for remark in sheet.remarks)]
    header = _header(solution, sheet, subject, kind.purpose)
    return _document(subject, header, problem.meaning, figures, pictures, _deploy(kind.run, name))


def deployed(found: OpenedShuffle, title: str = "") -> bytes:
    """The page about the file of a shuffle protocol, with what was recomputed from its integers."""
    verified, name = found.verified, found.path.name
    sheet, purpose = verified.sheet(), KINDS[found.deployed.kind].purpose
    subject = title or purpose[0].upper() + purpose[1:]
    lead = f"{purpose[0].upper()}{purpose[1:]}, for {found.deployed.n:,} people."
    said = found.claim
    large = {"epsilon": "epsilon", "delta": "delta", "local_epsilon": "epsilon of one message alone"}
    large |= {next(error for error in ERRORS if error in said): "error"}
    tiles = [html.tile(said[key], key.replace("_", " "), words if words != key else "") for key, words in large.items()]
    steps = (
        f"randomize {name} --input VALUE >> messages.jsonl    # each person",
        f"shuffle {name} --messages messages.jsonl --out shuffled.jsonl",
        f"analyze {name} --messages shuffled.jsonl --out estimate.json",
    )
    figures = [_facts(sheet), *_turnout(verified), html.paragraphs(
        "They were computed anew, from the integers in the file, when this page was made.")]  # fmt: skip
    header = html.header("Privacy report", subject, lead, tiles, html.paragraphs(f"SHA-256 {found.sha256}"))
    deploy = html.section(
        "deploy", "How to go on",
        html.commands(f"optdp verify {name} --recheck", *(f"optdp {step}" for step in steps)),
    )  # fmt: skip
    return _document(subject, header, sheet.meaning, figures, [], deploy)


def _turnout(found: VerifiedShuffle) -> Iterable[Html]:
    if found.turnout:
        yield html.paragraphs("Epsilon if only so many people do as the design says, and the others tell:")
        yield _listing(turnouts.listing(found.turnout, found.deployed.honest))


def _document(
    subject: str, header: Html, meaning: str, figures: Sequence[Html], pictures: Sequence[Html], deploy: Html
) -> bytes:
    body = (
        header,
        html.section("claim", "What is promised", el("p", meaning, class_="claim")),
        html.section("figures", "The figures", *figures),
        html.section("pictures", "Pictures", *pictures) if pictures else None,
        html.section("limits", "What is not promised",
                     html.box("Limits", html.listed(*NOT_PROMISED), kind="box limits")),
        deploy,
    )  # fmt: skip
    return html.document(f"{subject} · optdp", body, {})


def _header(solution: Outcome, sheet: Sheet, subject: str, purpose: str) -> Html:
    given = ", ".join(f"{key} = {value}" for key, value in solution.problem.figures().items())
    lead = f"{purpose[0].upper()}{purpose[1:]}. Given: {given}."
    large = [(name, cell) for name, cell in sheet.facts if name not in ("problem", "deploy", "status", "note")]
    tiles = [html.tile(figure, name, words) for name, figure, words in map(_tile, large[:4])]
    return html.header("Privacy report", subject, lead, tiles, html.paragraphs(*filter(None, [solution.note])))


def _tile(fact: tuple[str, Cell | str]) -> tuple[str, str, str]:
    """The name of a fact, its figure, and the words behind it."""
    name, cell = fact
    text = cell if isinstance(cell, str) else cell.text + cell.after
    figure, _, words = text.strip().partition("  ")
    if len(figure) > 24:
        figure, _, rest = figure.partition(", ")
        words = f"{rest} {words}".strip()
    if words.startswith("("):  # (wanted 0.1), up to distance 10
        words = words[1:].replace(")", "", 1)
    return name, figure, words.strip()


def _facts(sheet: Sheet) -> Html:
    return html.table(("", ""), ((name, _cell(cell)) for name, cell in sheet.facts if name != "status"))


def _listing(listing: Listing) -> Html:
    rows: Iterable[Iterable[str]] = (tuple(_cell(cell) for cell in row) for row in listing.rows)
    return html.table(listing.head, rows)


def _cell(cell: Cell | str) -> str:
    """A cell with its bar."""
    if isinstance(cell, str):
        return cell
    bar = None
    if cell.share is not None:
        kind = "own" if cell.tone == "good" else "other"
        rect = el("rect", width=f"{max(1.0, 100 * cell.share):.2f}", height=10, class_=kind)
        bar = el("svg", rect, viewBox="0 0 100 10", preserveAspectRatio="none", class_="cell-bar", aria_hidden="true")
    text: Child = el("strong", cell.text) if cell.tone == "strong" else cell.text
    return el("span", text, bar, cell.after)


def _pictures(solution: Outcome) -> Iterable[Html]:
    for name, make in solution.pictures.items():
        if name == "bounds":  # the figures have bars for them
            continue
        picture: Picture = make()
        drawn = el("div", svg(picture, name), class_="plot")
        yield el("figure", drawn, el("figcaption", _caption(picture)), class_="drawing", id=name)


def _caption(picture: Picture) -> str:
    if isinstance(picture, Bars):
        return f"{picture.across[0].upper()}{picture.across[1:]}."
    if isinstance(picture, Heat):
        return f"{picture.down} by {picture.across}."
    return f"{picture.up[0].upper()}{picture.up[1:]} by {picture.across}."


def _deploy(run: str, name: str) -> Html:
    lines = [f"optdp solve {name}    # the same figures again, and as JSON with --json"]
    if run:
        lines.append(f"optdp run {name} --data data.csv --column x    # the whole protocol, on data")
    return html.section(
        "deploy",
        "How to go on",
        html.paragraphs("Everything here follows from the problem file; optdp computes and proves it again:"),
        html.commands(*lines),
        html.one_release("One run for one set of data. A second run about the same people is a second release."),
    )
