"""The page about a comparison: one file that loads nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from optdp.comparison.charts import Axis, Series, cloud, steps
from optdp.comparison.results import Results
from optdp.comparison.rows import Head, Row, number
from optdp.comparison.statistics import ALIKE, OURS, SHIFT, TOLERANCE, TOLERANCES, Comparison, ratios
from optdp.comparison.tables import asked, figures, short, times
from optdp.html import Html, el, join
from optdp.report import page as html

INFINITE, PRIVATE = 0.96, 0.04
"""Where on the axis of epsilons those are that are no excess."""
UNEVEN = "Not every backend was given every problem, so that means and shares are over different ones."
WITHIN = 1e-9
"""An excess below this share of epsilon is within the rounding of a solver's last digits, and drawn as such."""


def page(results: Results) -> bytes:
    """The page; the same for the same rows."""
    found = Comparison(results.rows)
    sets = list(dict.fromkeys(head.sets for head in results.heads if head.sets))
    title = f"Solvers side by side: {', '.join(sets)}" if sets else "Solvers side by side"
    body = [
        _header(found, title),
        *([html.warning("The run was ended early: not everything was tried.")]
          if any(head.status != "complete" for head in results.heads) else []),
        _success(found),
        _times(found),
        _sizes(found),
        _epsilons(found),
        *_against(found),
        _problems(found),
        _machines(results.heads),
        _reading(),
    ]  # fmt: skip
    data = {"summary": figures(results.rows), "rows": [row.summary() for row in results.rows],
            "heads": [asdict(head) for head in results.heads]}  # fmt: skip
    return html.document(f"{title} · optdp", body, data)


def _header(found: Comparison, title: str) -> Html:
    lead = (
        "Linear programs whose solutions are deployed as privacy mechanisms, each given to every solver as it stands. "
        "What a solver returned is measured in exact arithmetic: the real epsilon of its own numbers."
    )
    measured = [row for row in found.rows if row.raw_epsilon is not None]
    returned = sum(found.private_as_returned(row, 0.0) for row in measured)
    repaired = [row for row in found.rows if row.certified_epsilon is not None]
    kept = sum(row.certified_epsilon != "infinite" for row in repaired)
    tiles = [
        html.tile(str(len(found.problems)), "problems", f"{len(found.rows)} runs"),
        html.tile(str(len(found.backends)), "backends", "with their options"),
        html.tile(f"{returned} of {len(measured)}", "private as returned", "answers, to twelve digits"),
        html.tile(f"{kept} of {len(repaired)}", "private after repair", "answers that could be repaired, certified"),
    ]
    return html.header("Linear programs of optdp", title, lead, tiles, join())


def _success(found: Comparison) -> Html:
    head = ["backend", "runs"]
    tests = (("solved", found.solved), ("private as returned", found.private_as_returned),
             ("private after repair", found.private_after_repair))  # fmt: skip
    head += [f"{name}, {tolerance:g}" for name, _ in tests for tolerance in TOLERANCES]
    rows = [
        [who, str(len(found.of(who)))]
        + [f"{100 * found.rate(who, test, tolerance):.0f}" for _, test in tests for tolerance in TOLERANCES]
        for who in found.backends
    ]
    table = html.table(head, rows, "Of all runs, in per cent, at three tolerances.", numbers=range(1, len(head)))
    wrong = [f"{row.problem}, {row.who}: {said}" for row in found.rows if (said := found.wrong(row))]
    told = html.listed(*wrong) if wrong else el("p", "No backend's status was disproved by another's answer.")
    return html.section("success", "Who succeeds", _dense(table), told)


def _times(found: Comparison) -> Html:
    best = [found.mean_seconds(who) for who in found.backends]
    least = min((mean for mean in best if mean is not None), default=None)
    rows = [
        [who, short(mean), "-" if mean is None or not least else f"{mean / least:.1f}",
         str(sum(ratio == 1.0 for ratio in found.profile(who))), str(len(found.profile(who)))]
        for who, mean in zip(found.backends, best, strict=True)
    ]  # fmt: skip
    table = html.table(
        ("backend", "mean seconds", "times the least", "fastest on", "done"), rows,
        f"Shifted geometric means (shift {SHIFT:g} s); what was not done counts as its time limit."
        + (f" {UNEVEN}" if found.uneven else ""), range(1, 5),
    )  # fmt: skip
    count = len(found.problems)
    series = []
    for place, who in enumerate(found.backends):
        ratios_, points = found.profile(who), []
        for done, ratio in enumerate(ratios_, 1):
            points.append((ratio, done / count, who))
        series.append(Series(who, place, tuple(points)))
    widest = max((point[0] for one in series for point in one.points), default=10.0)
    picture = steps(
        "profile", "Performance profile", Axis.around("times the fastest", [1.0, widest * 1.01]), "share of problems",
        series,
        "Performance profile (Dolan and Moré): the share of problems that a backend has done within so many times the "
        f"time of the fastest. Done: private after repair, and within {TOLERANCE:g} of the optimum.",
    )  # fmt: skip
    return html.section("times", "How long they take", _dense(table), picture)


def _sizes(found: Comparison) -> Html:
    series = _series(found, lambda row: (row.entries, row.seconds))
    points = [point for one in series for point in one.points]
    picture = cloud(
        "sizes", "Time against size", Axis.around("entries of the plain program", [x for x, _, _ in points]),
        Axis.around("seconds", [y for _, y, _ in points]), series,
        "Seconds in all (formulate, build, solve, repair, certify) against the size of the plain program. Every answer "
        "that could be repaired is a point.",
    )  # fmt: skip
    return html.section("sizes", "Time against size", picture)


def _epsilons(found: Comparison) -> Html:
    series = _series(found, lambda row: (row.seconds, _excess(row)))
    points = [point for one in series for point in one.points]
    up = Axis.around("excess over epsilon", [y for _, y, _ in points if y > 0], private=PRIVATE, infinite=INFINITE)
    picture = cloud(
        "epsilons", "Real epsilon against time", Axis.around("seconds", [x for x, _, _ in points]), up, series,
        "By what share the real epsilon of a solver's own numbers exceeds what was asked for, against its time. At the "
        f"bottom those that are private (or beyond by less than {WITHIN:g} of epsilon), at the top those that hide "
        "nothing in some output.",
    )  # fmt: skip
    return html.section("epsilons", "The real epsilon of what they return", picture)


def _series(found: Comparison, place: Any) -> list[Series]:
    """The points of each backend; those that are not known are left out."""
    series = []
    for at, who in enumerate(found.backends):
        points = []
        for row in found.of(who):
            x, y = place(row)
            if x and y:
                said = f"{row.problem}, {who}: {short(row.seconds)} s, real epsilon {short(row.raw_epsilon)}"
                points.append((float(x), float(y), said))
        series.append(Series(who, at, tuple(points)))
    return [one for one in series if one.points]


def _excess(row: Row) -> float | None:
    """The share by which epsilon is exceeded; negative: a place on the axis."""
    raw, wanted = number(row.raw_epsilon), number(row.epsilon or None)
    if raw is None or not wanted:
        return None
    if math.isinf(raw):
        return -INFINITE
    return max(raw / wanted - 1.0, 0.0) if raw / wanted - 1.0 > WITHIN else -PRIVATE


def _against(found: Comparison) -> Iterator[Html]:
    if OURS not in {row.backend for row in found.rows} or len(found.backends) < 2:
        return
    pairs = found.against()
    rows = [
        [one.problem, short(one.ours), short(one.best), one.who or "-", times(one), short(one.cpu_ratio)]
        for one in pairs
    ]
    table = html.table(("problem", "optdp's engines, s", "best other, s", "which", "times faster", "times less CPU"),
                       rows, numbers=(1, 2, 4, 5))  # fmt: skip
    told = ", ".join(f"{name} {short(value)}" for name, value in ratios(pairs).items())
    words = f"Times faster: {told}. " if told else ""
    yield html.section(
        "against", "optdp's engines and the best other",
        el("p", f"{words}In the same run; the best other is the fastest backend that has done the problem. A dash: "
           "nobody has; a ratio with > is that of the time limit, where it ended all the others."), _dense(table),
    )  # fmt: skip


SHORT = 18
"""Letters of a solver's own word that stand below ours."""
PROBLEM = ("backend", "status", "seconds", "solve", "real epsilon", "broken rows", "MAE", "epsilon", "gap", "repair",
           "primal", "dual", "steps", "MB")  # fmt: skip


def _problems(found: Comparison) -> Html:
    parts = []
    for place, (name, rows) in enumerate(found.problems.items()):
        lines = [_cells(row) for row in rows]
        first = rows[0]
        size = f"{first.unknowns:,} unknowns, {first.rows:,} rows" if first.unknowns and first.rows else ""
        told = ", ".join(filter(None, (first.kind, asked(first), size)))
        notes = [f"{row.who}: {row.note}" for row in rows if row.note]
        parts.append(
            el("div", el("h3", name), el("p", told, class_="hint"),
               _dense(html.table(PROBLEM, lines, numbers=range(2, len(PROBLEM)))),
               el("ul", [el("li", note) for note in notes], class_="hint") if notes else None,
               class_="problem", id=f"problem-{place + 1}")
        )  # fmt: skip
    return html.section("problems", "Each problem", parts)


def _cells(row: Row) -> list[str]:
    """A row of a problem's table; what is less important stands below in small letters."""
    figures = (row.solve, row.raw_epsilon, row.violated, row.mae, row.certified_epsilon, row.gap, row.repair_cost,
               row.primal_residual, row.dual_residual, row.iterations, row.memory)  # fmt: skip
    spread = f"±{brief(row.seconds_spread / 2)}" if row.seconds_spread else ""
    theirs = row.theirs if len(row.theirs) <= SHORT else f"{row.theirs[:SHORT]}…"
    return [
        join(row.who, _small(row.form)),
        join(row.status, _small(theirs if row.theirs != row.status else "", row.theirs)),
        join(brief(row.seconds), _small(spread)),
        *map(brief, figures),
    ]


def _small(text: str, whole: str = "") -> Html | None:
    return el("p", text, class_="hint", title=whole if whole != text else None) if text else None


def brief(figure: float | str | None) -> str:
    """A figure in as few digits as tell solvers apart."""
    if figure is None or isinstance(figure, str | int):
        return short(figure)
    return f"{figure:.3g}" if 1e-3 <= abs(figure) < 1e5 else f"{figure:.0e}"


def _dense(table: Html) -> Html:
    return el("div", table, class_="dense")


def _machines(heads: Sequence[Head]) -> Html:
    parts = []
    for head in heads:
        versions = ", ".join(f"{name} {value}" for name, value in head.versions.items())
        limits = [f"{head.repeat} repeats"]
        limits += [f"{head.timeout:g} s each"] if head.timeout is not None else []
        limits += [f"{head.allowed:.3g} GB each"] if head.allowed is not None else []
        facts = (
            ("date", head.date), ("machine", f"{head.machine}, {head.cores} cores, {head.memory:g} GB"),
            ("processor", head.cpu), ("linear algebra", head.blas), ("versions", versions),
            ("optdp commit", head.commit or "not from a checkout"), ("set", head.sets or "none"),
            ("settings", ", ".join(limits)), ("status", head.status),
        )  # fmt: skip
        parts.append(html.table(("what", "value"), facts, f"Run {head.run}"))
    return html.section("machines", "Where and how", parts)


def _reading() -> Html:
    said: Iterable[tuple[str, str]] = (
        ("Solved", "the solver says so, its numbers miss no row of the program by more than the tolerance, and they "
         "cost what the optimum costs, up to the tolerance."),
        ("Private as returned", "the real epsilon of the solver's own floats is at most what was asked for, times one "
         "plus the tolerance. Negative numbers count as zero."),
        ("Private after repair", "optdp has made a certified table of the answer, which keeps epsilon exactly, and "
         "its error is within the tolerance of the optimum. Of a plan whose optimum nobody has proved: within "
         f"{100 * ALIKE:g} % of the best that any backend found."),
        ("Optimal", "is said only of what is proved to be within a millionth of the optimum. The solver's own word "
         "stands below ours where it is another."),
        ("Gap", "how far the certified error is at most from the least possible, as a part of it."),
        ("Repair", "how much dearer the certified table is than the solver's numbers, as a part of it; negative where "
         "those numbers cost less than any table that keeps the rules."),
        ("Primal, dual", "the most by which the numbers miss a row, and the prices the sign that a dual solution has."),
    )  # fmt: skip
    return html.section("reading", "How to read this", html.listed(*(html.term(name, words) for name, words in said)))
