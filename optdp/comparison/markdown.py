"""The tables of a comparison for the documentation: between two marks of a page whose other words are written by hand.

<!-- begin optdp compare -->
<!-- end optdp compare -->
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from optdp.comparison.results import Results
from optdp.comparison.rows import Head, Row
from optdp.comparison.statistics import OURS, SHIFT, TOLERANCE, Comparison, ratios
from optdp.comparison.tables import asked, short, times
from optdp.errors import ProblemError
from optdp.files.atomic import name_of
from optdp.files.models import read_text

BEGIN, END = "<!-- begin optdp compare -->", "<!-- end optdp compare -->"


def written(results: Results, path: Path) -> bytes:
    """The page at `path` with these tables between its marks; a new page if there is none."""
    tables = "\n".join((BEGIN, "", *_tables(results), END))
    if not path.exists():
        return f"# Solvers side by side\n\n{tables}\n".encode()
    text = read_text(path, "Markdown")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ProblemError(
            f"{name_of(path)} must have one {BEGIN} and one {END} after it. Add them, or use a new name."
        )
    before, rest = text.split(BEGIN)
    return f"{before}{tables}{rest.split(END)[1]}".encode()


def _tables(results: Results) -> Iterator[str]:
    """Problem set after problem set."""
    for name in dict.fromkeys(head.sets for head in results.heads):
        heads = [head for head in results.heads if head.sets == name]
        runs = {head.run for head in heads}
        yield f"### Set `{name}`\n" if name else "### Problems\n"
        yield from map(_run, heads)
        yield from _of_set(Comparison(tuple(row for row in results.rows if row.run in runs)))


def _run(head: Head) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in head.versions.items())
    early = "" if head.status == "complete" else " It was ended early."
    return (
        f"Run of {head.date}: {head.cpu}, {head.cores} cores, {head.memory:g} GB, {head.machine}, {head.blas}; "
        f"{versions}; repeats: {head.repeat}, {_limit(head.timeout)} each.{early}\n"
    )


def _of_set(found: Comparison) -> Iterator[str]:
    yield "#### Success\n"
    yield from _table(
        ("backend", "version", "runs", "solved", "private as returned", "private after repair", "certified",
         "mean seconds", "fastest on"),
        (_summary(found, who) for who in found.backends), 2,
    )  # fmt: skip
    yield (
        f'\nAt a tolerance of {TOLERANCE:g}; "certified" counts every exactly private table that came out, however far '
        f"from the optimum. Means are shifted geometric means (shift {SHIFT:g} s); what was not done counts as its "
        "time limit.\n"
    )
    if wrong := [f"- {row.problem}, {row.who}: {said}" for row in found.rows if (said := found.wrong(row))]:
        yield from ("Statuses that another answer disproves:\n", *wrong, "")
    if OURS in {row.backend for row in found.rows} and len(found.backends) > 1:
        pairs = found.against()
        yield "#### optdp's engines against the best other backend\n"
        yield from _table(
            ("problem", "optdp's engines, s", "best other, s", "which", "times faster", "times less CPU"),
            ((one.problem, short(one.ours), short(one.best), one.who or "none", times(one), short(one.cpu_ratio))
             for one in pairs), 1,
        )  # fmt: skip
        told = ", ".join(f"{name} {short(value)}" for name, value in ratios(pairs).items())
        yield (
            f"\nTimes faster: {told or 'nobody else has done any'}. A ratio with > is that of the time limit, where "
            "it ended all the others.\n"
        )
    yield "#### Each problem\n"
    for name, rows in found.problems.items():
        first = rows[0]
        size = f", {first.unknowns:,} unknowns" if first.unknowns else ""
        yield f"**{_safe(name)}** ({first.kind}, {asked(first)}{size})\n"
        yield from _table(
            ("backend", "status", "theirs", "seconds", "real epsilon as returned", "broken rows", "MAE", "epsilon",
             "gap", "repair", "note"),
            map(_row, rows), 3,
        )  # fmt: skip
        yield ""


def _limit(seconds: float | None) -> str:
    return "no time limit" if seconds is None else f"{seconds:g} s"


def _summary(found: Comparison, who: str) -> Sequence[str]:
    rows = found.of(who)
    certified = sum(row.certified_epsilon not in (None, "infinite") for row in rows) / len(rows)
    tests = (found.solved, found.private_as_returned, found.private_after_repair)
    first = sum(ratio == 1.0 for ratio in found.profile(who))
    rates = [f"{100 * found.rate(who, test, TOLERANCE):.0f} %" for test in tests]
    return (who, rows[0].version, str(len(rows)), *rates, f"{100 * certified:.0f} %", short(found.mean_seconds(who)),
            str(first))  # fmt: skip


def _row(row: Row) -> Sequence[str]:
    figures = (row.seconds, row.raw_epsilon, row.violated, row.mae, row.certified_epsilon, row.gap, row.repair_cost)
    theirs = "" if row.theirs == row.status else row.theirs
    return (row.who, row.status, theirs, *map(short, figures), row.note)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> Iterator[str]:
    """A table of which the first columns are words, and the others numbers."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join("---" if i < words else "---:" for i in range(len(head))) + "|"
    for row in rows:
        yield "| " + " | ".join(map(_safe, row)) + " |"


def _safe(text: str) -> str:
    """A cell that cannot end its row, nor be more than text."""
    shown = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:160]
    return "".join(f"\\{sign}" if sign in "\\|<>[]*_`" else sign for sign in shown)
